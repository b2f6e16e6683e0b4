"""Closed forms of planar loops against the iteration that closes any loop, and against straight lines of their kind."""

import numpy as np
import pytest
from conftest import thorough
from support.general_machines import general_machine

from psdyn_ros import load
from psdyn_ros.kernels.loops.closure import close_machine
from psdyn_ros.kernels.rigid_body.mechanism import Handle

CLOSED_FORM = ('four_bar', 'four_bar_spherical', 'five_bar', 'driven_boom', 'twin_cylinders', 'six_link', 'knuckle')
LINEAR = ('parallelogram', 'three_cranks')


def drawn(rng, kind):
    machine = general_machine(rng, [kind])
    return load(machine.xml, gravity=machine.gravity)


def iterated(m):
    """Return a handle of a machine whose loops are all closed by iteration."""
    handle = m.handle()
    out = Handle(handle.tree, handle.loops.copy())
    out.arrays.loops.clusters['dyads'] = 0
    return out


@pytest.mark.parametrize('kind', thorough([*CLOSED_FORM], 3))
def test_closed_form_agrees_with_iteration(rng, kind):
    compared = 0
    for _ in range(3):
        m = drawn(rng, kind)
        handle, plain = m.handle(), iterated(m)
        loops = handle.arrays.loops
        assert loops.clusters['dyads'].tolist() == loops.clusters['pins'].tolist()
        for _ in range(20):
            x, xd = m.initial_position + rng.uniform(-0.2, 0.2, m.nx), rng.normal(size=m.dof)
            status = close_machine(handle.tree, handle.loops, x, xd)
            assert close_machine(plain.tree, plain.loops, x, xd) == status
            if status == 0:
                compared += 1
                for name in ('q', 'qd', 'g'):
                    values = loops.work[name]
                    assert abs(values - plain.arrays.loops.work[name]).max() < 1e-11 * (1.0 + abs(values).max())
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
    handle, plain, statuses = m.handle(), iterated(m), set()
    for angle in np.linspace(-0.9, 0.9, 60):
        x = m.initial_position + angle
        status = close_machine(handle.tree, handle.loops, x, np.zeros(1))
        statuses.add(status)
        assert (status == 0) == (close_machine(plain.tree, plain.loops, x, np.zeros(1)) == 0)
    assert 0 in statuses
