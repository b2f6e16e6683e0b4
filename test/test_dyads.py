"""Closed forms of planar loops against the iteration that closes any loop, and against straight lines of their kind."""

import numpy as np
import pytest
from support.comparison import error
from support.general_machines import general_machine

from psdyn_ros import load
from psdyn_ros.kernels.loops.closure import close_all
from psdyn_ros.kernels.rigid_body.mechanism import Handle

CLOSED_FORM = ('four_bar', 'four_bar_spherical', 'five_bar', 'driven_boom', 'twin_cylinders', 'six_link', 'knuckle')
LINEAR = ('parallelogram', 'three_cranks')


def drawn(rng, kind):
    machine = general_machine(rng, [kind])
    return load(machine.xml, gravity=machine.gravity)


def iterated(m):
    """Return a handle whose planar clusters are closed by iteration."""
    handle = Handle(m.handle().tree, m.handle().loops.copy())
    handle.arrays.loops.clusters['dyads'] = 0
    return handle


def closed(handle, x, xd):
    """Return (status, TIED_WORK) of closing all clusters."""
    return close_all(handle.tree, handle.loops, x, xd), handle.arrays.loops.work


@pytest.mark.parametrize('kind', CLOSED_FORM)
def test_closed_form_agrees_with_iteration(rng, kind):
    compared = 0
    for _ in range(3):
        m = drawn(rng, kind)
        own, plain, clusters = m.handle(), iterated(m), m.machine.loops.clusters
        assert clusters['dyads'].tolist() == clusters['pins'].tolist()
        for _ in range(20):
            x, xd = m.initial_position + rng.uniform(-0.2, 0.2, m.nx), rng.normal(size=m.dof)
            (status, found), (other, expected) = closed(own, x, xd), closed(plain, x, xd)
            assert other == status
            if status == 0:
                compared += 1
                for name in ('q', 'qd', 'g'):
                    assert error(found[name], expected[name]) < 1e-11, name
    assert compared > 20


@pytest.mark.parametrize('kind', LINEAR)
def test_parallelograms_have_constant_ratios(rng, kind):
    m = drawn(rng, kind)
    assert m.machine.loops.clusters['linear'].all()
    x, xd, xdd = m.initial_position, np.ones(m.dof), np.zeros(m.dof)
    # through the flat pose, where the constraints alone lose rank
    for angle in np.linspace(-4.0, 4.0, 41):
        _, q, qd, qdd = m.joint_state(x + angle, xd, xdd)
        assert abs(qdd).max() == 0.0
        assert np.allclose(abs(qd[qd != 0.0]), 1.0, atol=1e-9)
        start = m.joint_state(x)[1]
        assert np.allclose(q - start, qd * angle, atol=1e-9)


def test_same_statuses_over_the_range_of_the_crank(rng):
    m = drawn(rng, 'four_bar')
    own, plain, statuses = m.handle(), iterated(m), set()
    for angle in np.linspace(-0.9, 0.9, 60):
        x = m.initial_position + angle
        status = closed(own, x, np.zeros(1))[0]
        statuses.add(status)
        assert (status == 0) == (closed(plain, x, np.zeros(1))[0] == 0)
    assert 0 in statuses
