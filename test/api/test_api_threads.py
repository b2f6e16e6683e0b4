"""One manipulator in several threads or processes gives the answers that it gives in one."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from conftest import thorough
from support.cases import made
from support.machines import hiab, random_state

import psdyn_ros

# plain Python kernels share their scratch record, and say so
pytestmark = [pytest.mark.jit, pytest.mark.skipif(not psdyn_ros.compiled, reason='needs compiled kernels')]

BASE = psdyn_ros.BaseMotion((0.1, 0.2, 0.3, 0.9), (0.1,) * 6, (0.2,) * 6)


def everything(manipulator, s):
    """Return the answers of every call for one state, flattened."""
    names, position, velocity, _ = manipulator.joint_state(s.x, s.xd, s.xdd)
    wrenches = {manipulator.links[-1]: (s.xd[:1].repeat(3), s.x[:1].repeat(3))}
    first, *others = manipulator.coordinates
    hybrid = manipulator.hybrid_dynamics(s.x, s.xd, accelerations={first: s.xdd[0]},
                                         efforts=dict(zip(others, s.x[1:])))
    answers = [
        manipulator.forward_dynamics(s.x, s.xd, s.f), manipulator.inverse_dynamics(*s[:3]), *hybrid,
        manipulator.inverse_dynamics(*s[:3], base=BASE, wrenches=wrenches),
        manipulator.forward_dynamics(*(np.tile(row, (3, 1)) for row in (s.x, s.xd, s.f))),
        manipulator.mass_matrix(s.x), manipulator.bias_forces(s.x, s.xd), manipulator.gravity_forces(s.x),
        manipulator.energy(s.x, s.xd), manipulator.base_wrench(*s[:3], base=BASE), position,
        *manipulator.joint_map(names).state(position, velocity),
        *(manipulator.link_pose(s.x, link) for link in manipulator.links[::3])]
    return np.concatenate([np.ravel(answer) for answer in answers])


@pytest.mark.long
@pytest.mark.parametrize('name', thorough(['crane', 'tree', 'excavator'], ['excavator']))
def test_threads_do_not_disturb_each_other(name, rng):
    case = made(name)
    manipulator, states = case.m, [case.state(rng) for _ in range(20)]
    alone = [everything(manipulator, s) for s in states]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)             # so that threads change within every call
    try:
        with ThreadPoolExecutor(4) as pool:
            rounds = [pool.submit(lambda: [everything(manipulator, s) for s in states]) for _ in range(8)]
            for answers in rounds:
                assert all(map(np.array_equal, answers.result(), alone))
    finally:
        sys.setswitchinterval(interval)


def test_batches_in_several_threads(rng):
    machine = hiab()
    manipulator = psdyn_ros.load(machine.xml)
    drawn = [random_state(machine, rng) for _ in range(1500)]
    x, xd, f = (np.array([getattr(s, key) for s in drawn]) for key in ('x', 'xd', 'f'))
    alone = manipulator.forward_dynamics(x, xd, f)
    with ThreadPoolExecutor(3) as pool:
        for answer in pool.map(lambda _: manipulator.forward_dynamics(x, xd, f), range(30)):
            assert np.array_equal(answer, alone)


def _batch_in_a_child(n):
    manipulator = psdyn_ros.load(hiab().xml)
    x = np.tile(manipulator.initial_position, (n, 1))
    return manipulator.forward_dynamics(x, 0 * x, 0 * x)[-1]


def test_batches_work_after_a_fork():
    """The threads of the parent's pool do not live on in a child, so that the child must have its own."""
    expected = _batch_in_a_child(2000)
    context = get_context('fork')
    with context.Pool(1) as pool:
        answer = pool.apply_async(_batch_in_a_child, (2000,)).get(timeout=60)
    assert (answer == expected).all()


def _accelerations(manipulator):
    """Return those of rest at the initial position of a machine and of one with a payload."""
    x, f = manipulator.initial_position, np.zeros(len(manipulator.actuators))
    return [m.forward_dynamics(x, np.zeros(m.dof), f)
            for m in (manipulator, manipulator.with_payload(manipulator.links[-1], 20.0))]


def test_other_process_takes_a_manipulator():
    m = psdyn_ros.load(hiab().xml)
    with get_context('fork').Pool(1) as pool:
        answer = pool.apply_async(_accelerations, (m,)).get(timeout=60)
    assert np.array_equal(answer, _accelerations(m))


@pytest.mark.parametrize('name', ['floating crane', 'excavator', 'four_bar', 'loader_crane'])
def test_pickled_manipulator_is_the_same(name, rng):
    m = psdyn_ros.load(name) if name == 'loader_crane' else made(name).m
    if m.actuators != m.coordinates and len(m.actuators) > len(m.coordinates):
        m.allocation.set_weights({one: 1.0 + k for k, one in enumerate(m.actuators)})
    for one in (m, m.driven_machine):
        twin = pickle.loads(pickle.dumps(one))
        assert repr(twin) == repr(one) and twin.machine.warnings == one.machine.warnings
        x = one.random_positions(1, 2)[0]
        xd, f = rng.uniform(-0.2, 0.2, one.dof), rng.uniform(-99.0, 99.0, len(one.actuators))
        assert np.array_equal(twin.forward_dynamics(x, xd, f), one.forward_dynamics(x, xd, f))
        assert np.array_equal(_accelerations(twin), _accelerations(one))
        if len(one.actuators) >= len(one.coordinates):
            assert np.array_equal(twin.inverse_dynamics(x, xd, xd), one.inverse_dynamics(x, xd, xd))
        names, position, velocity, _ = one.joint_state(x, xd)
        measured = pickle.loads(pickle.dumps(one.joint_map(names)))
        assert all(map(np.array_equal, measured.state(position, velocity),
                       one.joint_map(names).state(position, velocity)))
