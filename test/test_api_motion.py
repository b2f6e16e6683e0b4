"""The mechanism in time: energy along a motion, order of the integrator, stops at the joint limits."""

import numpy as np
import pytest
from support.machines import chain, hiab, load, random_state, tree
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import PsdynError, ShapeError, StateError, UnreachableStrokeError

CRANE = psdyn_ros.load(hiab().xml)


def run(manipulator, x, xd, f, steps, h, **options):
    """Integrate at constant effort; return the states (steps + 1, 2, dof)."""
    integrator = manipulator.integrator(h, **options)
    x, xd, f = (np.array(value, dtype=float) for value in (x, xd, f))
    states = [np.array((x, xd))]
    for _ in range(steps):
        assert integrator.step(x, xd, f) == 0
        states.append(np.array((x, xd)))
    return np.array(states)


def total_energy(manipulator, state):
    return sum(manipulator.energy(*state))


@pytest.mark.parametrize('machine', [hiab(), tree(11, 5, cylinder_branches=True), chain(12, 'RLPL')],
                         ids=['crane', 'tree', 'chain'])
def test_power_of_the_efforts_is_the_rate_of_energy(machine, rng):
    """dE/dt = f . xd along an integrated motion, by Simpson's rule over the steps."""
    manipulator = load(machine)
    s = random_state(machine, rng)
    x = 0.5 * (s.x + np.mean([machine.span[name] for name in machine.actuators], axis=1))
    h = 1e-3
    f = manipulator.gravity_forces(x) + 0.2 * s.f
    states = run(manipulator, x, 0.3 * s.xd, f, 41, 0.5 * h, stiffness=0.0)
    power = states[:, 1] @ f
    for k in range(0, 40, 2):
        work = (power[k] + 4 * power[k + 1] + power[k + 2]) * h / 6
        gain = total_energy(manipulator, states[k + 2]) - total_energy(manipulator, states[k])
        scale = abs(power[k:k + 3]).max() * h
        assert gain == pytest.approx(work, abs=1e-6 * scale + 1e-9)


def test_power_is_exact_at_every_state(rng):
    """The same as an identity: xd . (M xdd + bias) against the derivative of the energy by finite differences."""
    for machine in (hiab(), tree(11, 5, cylinder_branches=True)):
        manipulator = load(machine)
        s = random_state(machine, rng)
        xdd = manipulator.forward_dynamics(s.x, s.xd, s.f)

        def energy(t, s=s, xdd=xdd, manipulator=manipulator):
            return total_energy(manipulator, (s.x + t * s.xd + 0.5 * t**2 * xdd, s.xd + t * xdd))
        h = 1e-4
        rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
        assert s.f @ s.xd == pytest.approx(rate, rel=1e-6, abs=1e-5)


def test_energy_is_kept_without_efforts_and_lost_by_friction():
    for losses, kept in (((None,) * 4, True), (((100, 5), (20, 2), (20, 2), (20, 2)), False)):
        machine = one_loop(losses=losses, spaced=False)
        loop = load(machine)
        states = run(loop, [0.25], [0.3], [0.0], 200, 5e-4, stiffness=0.0)
        energies = np.array([total_energy(loop, state) for state in states])
        drift = np.diff(energies)
        if kept:
            assert np.abs(energies - energies[0]).max() < 1e-7 * np.abs(energies).max()
        else:
            assert (drift < 0).all() and energies[-1] < energies[0] - 0.1


def test_parts_of_energy():
    kinetic, potential = CRANE.energy([0.1, 0.2, 0.3, 0.4], np.zeros(4))
    assert kinetic == 0.0
    xd = np.array([0.1, -0.2, 0.3, 0.1])
    kinetic, moving = CRANE.energy([0.1, 0.2, 0.3, 0.4], xd)
    assert moving == potential
    assert kinetic == pytest.approx(0.5 * xd @ CRANE.mass_matrix([0.1, 0.2, 0.3, 0.4]) @ xd, rel=1e-12)
    weightless = psdyn_ros.load(hiab().xml, gravity=(0, 0, 0))
    assert weightless.energy([0.1, 0.2, 0.3, 0.4], xd)[1] == 0.0


def test_integration_is_of_fourth_order():
    x, xd = np.array([0.3, 0.2, 0.3, 0.5]), np.array([0.2, 0.05, -0.05, 0.1])
    f = CRANE.gravity_forces(x)
    time = 0.16
    exact = run(CRANE, x, xd, f, 1, time, substeps=1024)[-1]
    errors = [np.abs(run(CRANE, x, xd, f, 1, time, substeps=n)[-1] - exact).max() for n in (2, 4, 8, 16)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx(4.0, abs=0.35), errors


def test_substeps_are_steps():
    x, xd, f = np.array([0.3, 0.2, 0.3, 0.5]), np.zeros(4), np.zeros(4)
    assert run(CRANE, x, xd, f, 4, 1e-3)[-1] == pytest.approx(run(CRANE, x, xd, f, 1, 4e-3, substeps=4)[-1], rel=1e-12)


def test_a_held_machine_stays():
    x = np.array([0.3, 0.2, 0.3, 0.5])
    states = run(CRANE, x, np.zeros(4), CRANE.gravity_forces(x), 500, 2e-3)
    assert np.abs(states[:, 0] - x).max() < 1e-7


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
    depth, rate = direction * states[:, 0, 0] - 0.5, direction * states[:, 1, 0]
    touched = np.flatnonzero(depth > 0)
    assert touched.size > 10 and depth[-1] < 0 and rate[-1] < 0
    assert (np.diff(rate) <= 1e-12).all()               # a pull would make it faster again
    first = touched[0] - 1
    assert (rate[:first] == 0.5).all()                  # nothing acts before the limit
    assert rate[-1] == pytest.approx(-0.5, rel=1e-6) if damping == 0.0 else rate[-1] > -0.5
    assert depth.max() == pytest.approx(0.5 * np.sqrt(10 / 1e6), rel=1e-2) or damping > 0


def test_stops_hold_an_effort():
    slide = psdyn_ros.load(SLIDE)
    states = run(slide, [0.49], [0.0], [100.0], 4000, 1e-3, stiffness=1e5, damping=10.0, substeps=4)
    assert states[-1, 0, 0] == pytest.approx(0.5 + 100.0 / 1e5, abs=1e-5)
    assert states[:, 0].max() < 0.51


@pytest.mark.slow
def test_stops_of_the_crane_hold_it_off_its_toggle_points():
    """All valves open: everything sinks onto the stops of the joint limits, and stays there."""
    x = CRANE.initial_position
    states = run(CRANE, x, np.zeros(4), np.zeros(4), 5000, 2e-3, substeps=10)
    limits = CRANE.limits
    assert (states[:, 0] > limits.lower - 0.02).all() and (states[:, 0] < limits.upper + 0.02).all()
    energies = [total_energy(CRANE, state) for state in states[::50]]
    assert max(energies) <= energies[0] + 1e-3 * abs(energies[0])


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
    assert (a == alone[-1]).all()


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


@pytest.mark.parametrize('bad', [np.zeros(3), np.zeros(5), np.zeros((1, 4)), [0.0] * 4, None, 5.0] + [
    np.zeros(8)[::2], np.zeros(4, int), np.zeros(4, np.float32), fixed(np.zeros(4))] * psdyn_ros.compiled, ids=str)
def test_bad_arrays_are_refused_before_anything_is_written(bad):
    integrator = CRANE.integrator(1e-3)
    good = CRANE.initial_position, np.zeros(4), np.zeros(4)
    for which in range(3):
        arrays = [*good]
        if which == 2 and isinstance(bad, np.ndarray) and not bad.flags.writeable:
            continue            # efforts are only read, but the compiled signature may well refuse them too
        arrays[which] = bad
        with pytest.raises(ShapeError, match=r'contiguous float64 arrays of shapes \(\(4,\), \(4,\), \(4,\)\)'):
            integrator.step(*arrays)
    assert (good[0] == CRANE.initial_position).all() and not good[1].any()


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
