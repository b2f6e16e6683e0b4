"""A payload on a link is the same as a URDF with the payload written into it."""

import re

import numpy as np
import pytest
from conftest import thorough
from support import urdf_text as urdf
from support.cases import made
from support.comparison import error
from support.machines import chain, hiab, load, random_state
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import InertiaError, NonFiniteError, PsdynError, ShapeError, UnknownNameError
from psdyn_ros.model.locate import find_machine

CRANE = made('crane').m
COM, INERTIA = np.array([0.2, -0.1, 0.3]), np.array([[9.0, 0.5, 0.2], [0.5, 8.0, -0.4], [0.2, -0.4, 7.0]])
BODY = 150.0, COM, INERTIA


def written_in(name, link, *bodies):
    """Load a machine with payloads (mass, com, inertia) welded to a link, as links of their own."""
    welds = ''.join(urdf.link(f'payload{k}', *body) + urdf.joint(f'weld{k}', 'fixed', link, f'payload{k}', (0, 0, 0),
                                                                 (0, 0, 0)) for k, body in enumerate(bodies))
    machine, _, m, _ = made(name)
    return load(machine._replace(xml=machine.xml.replace('<ros2_control', welds + '<ros2_control', 1)),
                coordinates=m.coordinates)


def assert_same(a, b, name, rng):
    s = made(name).state(rng)
    base = None if a.floating else psdyn_ros.BaseMotion((0.1, 0.2, -0.1, 0.9), *rng.normal(size=(2, 6)))
    assert (a.coordinates, a.actuators) == (b.coordinates, b.actuators) and a.total_mass == pytest.approx(b.total_mass)
    assert error(a.forward_dynamics(s.x, s.xd, s.f), b.forward_dynamics(s.x, s.xd, s.f)) < 1e-12
    assert error(a.inverse_dynamics(*s[:3], base=base), b.inverse_dynamics(*s[:3], base=base)) < 1e-12
    assert error(a.base_wrench(*s[:3], base=base), b.base_wrench(*s[:3], base=base)) < 1e-12
    assert error(a.energy(s.x, s.xd), np.array(b.energy(s.x, s.xd))) < 1e-12
    assert error(a.mass_matrix(s.x), b.mass_matrix(s.x)) < 1e-12


@pytest.mark.parametrize('name', thorough(['crane', 'tree', 'shared', 'floating shared'], 2))
def test_payload_is_a_link_more(name, rng):
    """On every link of the crane, and on some of other machines."""
    m, links = made(name).m, made(name).oracle.links
    for link in m.links if name == 'crane' else rng.choice(links, 3, replace=False):
        loaded = m.with_payload(str(link), *BODY)
        assert loaded.total_mass == pytest.approx(m.total_mass + 150.0)
        assert_same(loaded, written_in(name, link, BODY), name, rng)


def test_payload_keeps_the_weights_of_the_actuators(rng):
    machine, _, m, _ = made('shared')
    m = load(machine, coordinates=m.coordinates)
    m.allocation.set_weights(dict(zip(m.actuators, rng.uniform(0.1, 10, 4))))
    loaded = m.with_payload('base_link', 3.0, (0, 0, 0), np.eye(3))
    assert (loaded.allocation.weights == m.allocation.weights).all()
    loaded.allocation.set_weights(None)
    assert (loaded.allocation.weights != m.allocation.weights).any()


def test_payloads_add_up(rng):
    bodies = (100.0, COM, INERTIA), (50.0, -COM, 0.5 * INERTIA)
    two = CRANE.with_payload('tcp', *bodies[0]).with_payload('tcp', *bodies[1])
    assert_same(two, written_in('crane', 'tcp', *bodies), 'crane', rng)


@pytest.mark.parametrize('link', ['tcp', 'lift_rod_link', 'base_link'])
def test_no_payload_is_no_change(link, rng):
    nothing = CRANE.with_payload(link, 0.0, np.zeros(3), np.zeros((3, 3)))
    s = random_state(hiab(), rng)
    assert (nothing.forward_dynamics(s.x, s.xd, s.f) == CRANE.forward_dynamics(s.x, s.xd, s.f)).all()
    assert nothing.total_mass == CRANE.total_mass


def test_a_point_mass_is_a_payload(rng):
    written = written_in('crane', 'tcp', (20.0, COM, np.zeros((3, 3))))
    assert_same(CRANE.with_payload('tcp', 20.0, COM, np.zeros((3, 3))), written, 'crane', rng)
    assert_same(CRANE.with_payload('tcp', 20, COM.tolist(), [[0] * 3] * 3), written, 'crane', rng)


def test_the_original_is_unchanged(rng):
    s = random_state(hiab(), rng)
    fresh = psdyn_ros.load(hiab().xml)
    before = fresh.forward_dynamics(s.x, s.xd, s.f)
    com, inertia = COM.copy(), INERTIA.copy()
    loaded = fresh.with_payload('tcp', 500.0, com, inertia)
    with_load = loaded.forward_dynamics(s.x, s.xd, s.f)
    com[:], inertia[:] = 99.0, 99.0
    assert (fresh.forward_dynamics(s.x, s.xd, s.f) == before).all()
    assert (loaded.forward_dynamics(s.x, s.xd, s.f) == with_load).all()
    assert not np.allclose(with_load, before)
    assert fresh.total_mass == CRANE.total_mass


@pytest.mark.long
def test_the_options_of_load_are_kept(rng):
    machine = chain(9, 'RLP')
    order = machine.actuators[::-1]
    options = dict(gravity=(1.0, 2.0, 3.0), actuated=list(order), initial={order[0]: machine.initial[order[0]]})
    loaded = psdyn_ros.load(machine.xml, **options).with_payload('base_link', *BODY)
    assert loaded.actuators == order and (loaded.gravity == (1.0, 2.0, 3.0)).all()
    ambiguous = one_loop(initial=('cylinder',)).xml
    chosen = psdyn_ros.load(ambiguous, initial={'boom': 1.0}).with_payload('boom_link', *BODY)
    assert chosen.machine.modules[0].assembly.mode == 1
    bars = psdyn_ros.load(find_machine('five_bar'), initial={'elbow_1': -1.15, 'elbow_2': -2.61})
    loaded, x = bars.with_payload('tcp', 5.0, (0, 0, 0), np.eye(3) * 0.01), bars.initial_position
    assert (loaded.joint_state(x)[1] == bars.joint_state(x)[1]).all()
    unphysical = re.sub('izz="0.3"', 'izz="3.3"', one_loop().xml)
    assert psdyn_ros.load(unphysical, allow_unphysical=True).with_payload('boom_link', *BODY).dof == 1


@pytest.mark.parametrize('link', ['tpc', '', None, 5, ['tcp'], 'slew'])
def test_unknown_links(link):
    with pytest.raises(UnknownNameError, match="no such link in 'hiab_xs031'"):
        CRANE.with_payload(link, *BODY)


@pytest.mark.parametrize('mass, com, inertia, error, words', [
    (-1.0, COM, INERTIA, InertiaError, 'mass -1 kg is negative'),
    (np.nan, COM, INERTIA, NonFiniteError, r'mass = \[nan\] is not finite'),
    (1.0, (0, 0, np.inf), INERTIA, NonFiniteError, 'com = .* is not finite'),
    (1.0, COM, INERTIA * np.nan, NonFiniteError, 'inertia = .* is not finite'),
    (1.0, COM[:2], INERTIA, ShapeError, r'com has shape \(2,\); expected \(3,\)'),
    (1.0, COM, (1, 1, 1), ShapeError, r'inertia has shape \(3,\); expected \(3, 3\)'),
    (1.0, COM, np.eye(6), ShapeError, r'inertia has shape \(6, 6\)'),
    ([1.0, 2.0], COM, INERTIA, ShapeError, 'mass has shape'),
    ('1', COM, INERTIA, ShapeError, 'mass is not an array of'),
    (None, COM, INERTIA, ShapeError, 'mass is not an array of'),
    (1.0, 'com', INERTIA, ShapeError, 'com is not an array of'),
    (1.0, COM, np.diag((1, 1, -1)), InertiaError, 'negative principal moment'),
    (1.0, COM, np.diag((1, 1, 3)), InertiaError, 'principal moments 1, 1, 3'),
    (1.0, COM, np.triu(INERTIA), InertiaError, 'the inertia is not symmetric'),
    (0.0, COM, INERTIA, InertiaError, 'inertia without mass'),
])
def test_bodies_that_cannot_be(mass, com, inertia, error, words):
    with pytest.raises(error, match=f"payload on 'tcp'.*{words}") as caught:
        CRANE.with_payload('tcp', mass, com, inertia)
    assert isinstance(caught.value, PsdynError)
