"""The mechanism in time: energy along a motion, order of the integrator, stops at the joint limits."""

import re

import numpy as np
import pytest
from support.cases import made
from support.comparison import error
from support.machines import URDF
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import NonFiniteError, PsdynError, ShapeError, StateError, UnreachableStrokeError

CRANE = made('crane').m
CONSERVATIVE = ('crane', 'chain of loops', 'nested', 'floating loops', 'redundant in space')
MACHINES = ('crane', 'tree', 'five_bar', 'excavator', 'floating', 'redundant')


def run(manipulator, x, xd, f, steps, h, **options):
    """Integrate at constant effort; return the positions (steps + 1, nx) and the velocities (steps + 1, dof)."""
    integrator = manipulator.integrator(h, **options)
    x, xd, f = (np.array(value, dtype=float) for value in (x, xd, f))
    states = [(x.copy(), xd.copy())]
    for _ in range(steps):
        assert integrator.step(x, xd, f) == 0
        states.append((x.copy(), xd.copy()))
    return tuple(map(np.array, zip(*states)))


def energies(manipulator, states):
    return np.array([sum(manipulator.energy(*state)) for state in zip(*states)])


@pytest.mark.parametrize('name', CONSERVATIVE)
@pytest.mark.parametrize('scale', [0.0, 0.2], ids=['free', 'driven'])
def test_energy_gained_is_the_work_of_the_efforts(name, scale, rng):
    """dE/dt = f . velocity of the actuators along an integrated motion, by Simpson's rule over pairs of steps."""
    case, h = made(name), 2.5e-4
    m, s = case.m, case.state(rng)
    f = scale * s.f
    states = run(m, s.x, 0.3 * s.xd, f, 80, h, stiffness=0.0)
    power = np.array([m.actuator_map(x) @ xd @ f for x, xd in zip(*states)])
    work = (power[:-2:2] + 4 * power[1::2] + power[2::2]) * h / 3
    total = energies(m, states)
    kinetic = max(m.energy(*state)[0] for state in zip(*states))
    assert kinetic > 1e-4
    assert np.abs(np.diff(total[::2]) - work).max() < 1e-9 * (kinetic + np.abs(total).max())


def test_energy_is_lost_by_friction():
    loop = psdyn_ros.load(one_loop(losses=((100, 5), (20, 2), (20, 2), (20, 2)), spaced=False).xml)
    total = energies(loop, run(loop, [0.25], [0.3], [0.0], 200, 5e-4, stiffness=0.0))
    assert (np.diff(total) < 0).all() and total[-1] < total[0] - 0.1


@pytest.mark.parametrize('name, time', [('crane', 0.16), ('five_bar', 0.16), ('floating loops', 0.16)])
def test_integration_is_of_fourth_order(name, time):
    m = made(name).m
    x, xd, f = m.initial_position, np.full(m.dof, 0.1), np.zeros(len(m.actuators))
    ends = {n: np.concatenate([values[-1] for values in run(m, x, xd, f, 1, time, substeps=n, stiffness=0.0)])
            for n in (2, 4, 8, 16, 1024)}
    errors = [np.abs(ends[n] - ends[1024]).max() for n in (2, 4, 8, 16)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx(4.0, abs=0.35), errors


@pytest.mark.parametrize('name', MACHINES)
def test_substeps_are_steps(name, rng):
    case = made(name)
    s = case.state(rng)
    for steps, substeps in zip(run(case.m, s.x, s.xd, s.f, 4, 1e-3), run(case.m, s.x, s.xd, s.f, 1, 4e-3, substeps=4)):
        assert error(substeps[-1], steps[-1]) < 1e-12


def test_a_held_machine_stays():
    x = np.array([0.3, 0.2, 0.3, 0.5])
    states = run(CRANE, x, np.zeros(4), CRANE.gravity_forces(x), 500, 2e-3)
    assert np.abs(states[0] - x).max() < 1e-7


SLIDE = '''<robot name="slide"><link name="a"/>
<link name="b"><inertial><mass value="10"/>
<inertia ixx="1" iyy="1.2" izz="1.3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
<limit lower="-0.5" upper="0.5" effort="100" velocity="1"/></joint>
<ros2_control><joint name="slide"><command_interface name="effort"/></joint></ros2_control></robot>'''


@pytest.mark.parametrize('direction', [1, -1])
@pytest.mark.parametrize('damping', [0.0, 1.0, 4.0])
def test_stops_push_never_pull_and_never_give_energy(direction, damping):
    """A mass thrown against a stop: pushed back all the time, out no faster than in."""
    slide = psdyn_ros.load(SLIDE)
    h = 1e-5
    states = run(slide, [direction * 0.499], [direction * 0.5], [0.0], 2000, h, stiffness=1e6, damping=damping)
    depth, rate = direction * states[0][:, 0] - 0.5, direction * states[1][:, 0]
    touched = np.flatnonzero(depth > 0)
    assert touched.size > 10 and depth[-1] < 0 and rate[-1] < 0
    assert (np.diff(rate) <= 1e-12).all()               # a pull would make it faster again
    first = touched[0] - 1
    assert (rate[:first] == 0.5).all()                  # nothing acts before the limit
    assert rate[-1] == pytest.approx(-0.5, rel=1e-6) if damping == 0.0 else rate[-1] > -0.5
    assert depth.max() == pytest.approx(0.5 * np.sqrt(10 / 1e6), rel=1e-2) or damping > 0


@pytest.mark.parametrize('mass', [1e-3, 0.1, 1000.0])
def test_no_stop_throws_a_joint_back_faster_than_it_came(mass):
    slide = psdyn_ros.load(SLIDE.replace('<mass value="10"/>', f'<mass value="{mass}"/>'))
    assert slide.total_mass == pytest.approx(mass)
    speed = run(slide, [0.49], [0.5], [0.0], 200, 1e-3)[1][:, 0]
    assert speed.min() < 0.0 and np.abs(speed).max() < 0.5 * 1.01


def test_stops_hold_an_effort():
    slide = psdyn_ros.load(SLIDE)
    states = run(slide, [0.49], [0.0], [100.0], 4000, 1e-3, stiffness=1e5, damping=10.0, substeps=4)
    assert states[0][-1, 0] == pytest.approx(0.5 + 100.0 / 1e5, abs=1e-5)
    assert states[0].max() < 0.51


def test_stops_hold_a_crank_within_its_limits():
    """It sinks in by what stiffness and speed make of it, and no more; without stops it goes on."""
    m = psdyn_ros.load((URDF / 'four_bar.urdf').read_text().replace('upper="14"', 'upper="1.2"'))
    held, free = (run(m, m.initial_position, [0.0], [40.0], 500, 1e-3, **options)[0]
                  for options in ({'stiffness': 1e5, 'damping': 1.0}, {'stiffness': 0.0}))
    assert 1.2 < held.max() < 1.3 and held[-1] < 1.21 and free[-1] > 1.5


@pytest.mark.slow
def test_stops_of_the_crane_hold_it_off_its_toggle_points():
    """All valves open: everything sinks onto the stops of the joint limits, and stays there."""
    x = CRANE.initial_position
    states = run(CRANE, x, np.zeros(4), np.zeros(4), 5000, 2e-3, substeps=10)
    limits = CRANE.limits
    assert (states[0] > limits.lower - 0.02).all() and (states[0] < limits.upper + 0.02).all()
    total = energies(CRANE, [values[::50] for values in states])
    assert total.max() <= total[0] + 1e-3 * abs(total[0])


def test_states_are_advanced_in_place_and_efforts_are_not():
    integrator = CRANE.integrator(1e-3)
    x, xd, f = CRANE.initial_position, np.zeros(4), np.full(4, 10.0)
    assert integrator.step(x, xd, f) == 0
    assert (x != CRANE.initial_position).any() and xd.any() and (f == 10.0).all()
    assert integrator.step_size == 1e-3


def test_integrators_do_not_share_memory():
    x = CRANE.initial_position
    alone = run(CRANE, x, np.zeros(4), np.zeros(4), 20, 1e-3)
    first, second = CRANE.integrator(1e-3), CRANE.integrator(1e-3)
    a, b = (np.array((x, 0 * x)) for _ in range(2))
    b[0] += 0.01
    for _ in range(20):
        first.step(*a, np.zeros(4))
        second.step(*b, np.ones(4))
        CRANE.forward_dynamics(b[0], b[1], np.ones(4))
    assert (a == [values[-1] for values in alone]).all()


def test_a_state_out_of_reach_is_left_alone_and_named():
    integrator = CRANE.integrator(1e-3, substeps=3)
    x, xd, f = np.array([0.0, 0.56, 0.3, 0.3]), np.full(4, 0.1), np.zeros(4)
    kept = x.copy(), xd.copy()
    status = integrator.step(x, xd, f)
    assert status != 0 and (x == kept[0]).all() and (xd == kept[1]).all()
    error = integrator.error(status, x)
    assert isinstance(error, UnreachableStrokeError) and "loop 'lift_eye'" in str(error)


def fixed(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize('name', MACHINES)
def test_bad_arrays_are_refused_before_anything_is_written(name):
    m = made(name).m
    integrator, good = m.integrator(1e-3), [m.initial_position, np.zeros(m.dof), np.zeros(len(m.actuators))]
    shapes = re.escape(str(tuple(array.shape for array in good)))
    for which, array in enumerate(good):
        bad = [array[1:], np.append(array, 0.0), array[None], array.tolist(), None, 5.0]
        if psdyn_ros.compiled:
            bad += [np.zeros((len(array), 2))[:, 0], array.astype(int), array.astype(np.float32)]
            # efforts are only read, but the compiled signature may well refuse them too
            bad += [fixed(array.copy())] * (which < 2)
        for wrong in bad:
            with pytest.raises(ShapeError, match=f'contiguous float64 arrays of shapes {shapes}'):
                integrator.step(*good[:which], wrong, *good[which + 1:])
    assert (good[0] == m.initial_position).all() and not good[1].any()


@pytest.mark.parametrize('name', MACHINES)
def test_numbers_that_are_not_finite_leave_the_state(name, rng):
    case = made(name)
    integrator, s = case.m.integrator(1e-3), case.state(rng)
    for which in range(3):
        state = [s.x.copy(), s.xd.copy(), s.f.copy()]
        state[which][-1] = np.nan
        kept = [array.copy() for array in state]
        status = integrator.step(*state)
        assert status != 0 and isinstance(integrator.error(status, state[0]), NonFiniteError)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(state, kept))


@pytest.mark.parametrize('options, words', [
    ({'step': 0.0}, 'step = 0.0 must be positive'), ({'step': -1e-3}, 'step = -0.001 must be positive'),
    ({'step': float('nan')}, r'step = \[nan\] is not finite'), ({'step': 'x'}, 'step is not an array of'),
    ({'step': None}, 'step is not an array of'),
    ({'substeps': 0}, 'substeps = 0: expected a whole number from 1 on'), ({'substeps': -1}, 'substeps = -1'),
    ({'substeps': 1.5}, 'substeps = 1.5'), ({'substeps': 'x'}, 'substeps is not an array of'),
    ({'stiffness': -1.0}, 'stiffness = -1.0 .* must not be negative'), ({'damping': -1.0}, 'damping = -1.0 must not'),
    ({'damping': float('inf')}, r'damping = \[inf\] is not finite'),
])
def test_bad_options(options, words):
    with pytest.raises(StateError, match=words) as caught:
        CRANE.integrator(**{'step': 1e-3, **options})
    assert isinstance(caught.value, PsdynError)
