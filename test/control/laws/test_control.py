"""Plant, control laws, references and demonstrations on the crane and on machines with any loops and actuators."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.laws.computed_torque import ComputedTorque, ForceGains, PdGravity, check_actuation
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.reference_limits import ReferenceLimits
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.simulation.external_forces import ExternalForces
from psdyn_ros.simulation.forced import ForcedIntegrator
from psdyn_ros.simulation.offline import simulate
from psdyn_ros.simulation.plant import HELD, RUNNING, Plant
from psdyn_ros.tools.demo.demonstration import demonstration, through

LOW = {'elbow_1': -1.1504558472410755, 'elbow_2': -2.6118557488308576}
GENERAL = [('four_bar', {}), ('five_bar', {}), ('five_bar', LOW), ('pkm_2pur2rpu', {}), ('excavator', {})]
MACHINES = [('hiab_xs031', {}), *GENERAL]
PERIOD = 0.002
SPRINGS = {'pull': {'type': 'joint_spring', 'joint': 'slider', 'stiffness': 400.0},
           'loss': {'type': 'joint_damper', 'joint': 'pendulum_1', 'linear': 0.5},
           'lift': {'type': 'constant_force', 'link': 'balloon', 'force': [0.0, 0.0, 156.96]}}


@pytest.fixture(scope='module')
def machine():
    load = cache(lambda name, *initial: psdyn_ros.load(URDF / f'{name}.urdf', initial=dict(initial),
                                                       allow_unphysical=True))
    return lambda name, initial=(): load(name, *sorted(dict(initial).items()))


def law_of(kind, m, bandwidth):
    return kind(m, np.full(m.dof, bandwidth**2), np.full(m.dof, 2.0 * bandwidth))


# control laws


@pytest.fixture(scope='module')
def crane(machine):
    return machine('hiab_xs031')


def run(law, plant, seconds):
    """(N, dof) differences between motion and reference of the law in closed loop with the plant."""
    errors = []
    for k in range(round(seconds / PERIOD)):
        force = law.update(k * PERIOD, plant.x.copy(), plant.xd.copy())
        errors.append(plant.x - law.desired[0])
        plant.step(force, PERIOD)
    return np.array(errors)


@pytest.mark.parametrize('name, initial', thorough(MACHINES, 2, several=True))
@pytest.mark.parametrize('kind', [ComputedTorque, PdGravity])
def test_the_first_position_is_held(machine, name, initial, kind):
    m = machine(name, initial)
    law, plant = law_of(kind, m, 10.0), Plant(m, period=PERIOD)
    assert law.update(0.0, plant.x, plant.xd) == pytest.approx(m.gravity_forces(plant.x))
    errors = run(law, plant, 1.0 if name == 'hiab_xs031' else 0.04)
    assert np.abs(errors).max() <= 1e-9 and np.abs(plant.x - m.initial_position).max() < 1e-9
    assert not law.saturations.any()


@pytest.mark.parametrize('name, initial', thorough(MACHINES, 3, several=True))
def test_computed_torque_gives_the_accelerations_it_asks_for(machine, name, initial, rng):
    m = machine(name, initial)
    law = law_of(ComputedTorque, m, 3.0)
    law.reference.hold(m.initial_position)
    small = 1e-3 * np.ones(m.dof)
    x, xd = m.initial_position + rng.uniform(-1, 1, m.dof) * small, rng.uniform(-1, 1, m.dof) * small
    force = law.update(0.0, x, xd)
    wanted = 9.0 * (m.initial_position - x) - 6.0 * xd
    assert force.shape == (len(m.actuators),)
    assert m.forward_dynamics(x, xd, force) == pytest.approx(wanted, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize('name, reach', thorough([('hiab_xs031', 0.01), ('pkm_2pur2rpu', 1e-3)], 1, several=True))
def test_the_baseline_does_to_the_coordinates_what_its_formula_says(machine, name, reach, rng):
    m = machine(name)
    law, start, still = law_of(PdGravity, m, 6.0), m.initial_position, np.zeros(m.dof)
    law.update(0.0, start, still)
    x, xd = start + rng.uniform(-reach, reach, m.dof), rng.uniform(-reach, reach, m.dof)
    expected = (m.generalized_forces(start, still, still)
                + np.diag(m.mass_matrix(start)) * (36.0 * (start - x) - 12.0 * xd))
    assert m.actuator_map(x).T @ law.update(0.0, x, xd) == pytest.approx(expected)


def test_an_error_decays_as_the_gains_say_on_every_actuator(crane):
    plant = Plant(crane, period=PERIOD / 8, command_timeout=9.0)
    law = law_of(ComputedTorque, crane, 10.0)
    law.reference.hold(crane.initial_position)
    off = np.array([0.02, 0.004, -0.003, 0.01])
    plant.x[:] += off
    for k in range(8 * 100):
        plant.step(law.update(k * PERIOD / 8, plant.x.copy(), plant.xd.copy()), PERIOD / 8)
    t = 100 * PERIOD
    assert plant.x - crane.initial_position == pytest.approx(off * (1.0 + 10.0 * t) * np.exp(-10.0 * t), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['hiab_xs031', 'hiab_xs031_lift'])
def test_computed_torque_follows_the_demonstration_within_the_bounds_and_far_better_than_the_baseline(name):
    machine = psdyn_ros.load(URDF / f'{name}.urdf')
    rms = {}
    for kind, bandwidth in ((ComputedTorque, 15.0), (PdGravity, 6.0)):
        law, plant = law_of(kind, machine, bandwidth), Plant(machine, period=PERIOD)
        law.update(0.0, plant.x, plant.xd)
        law.reference.follow(demonstration(machine), 0.0)
        rms[kind] = np.sqrt(np.mean(run(law, plant, 10.0)**2, axis=0))
    assert (rms[ComputedTorque] <= 0.5e-3).all()
    assert (rms[PdGravity] >= 10.0 * rms[ComputedTorque]).all()


@pytest.mark.parametrize('kind', [ComputedTorque, PdGravity])
def test_forces_are_clamped_to_the_limits_and_counted(crane, kind):
    law = law_of(kind, crane, 200.0)
    law.reference.hold(crane.initial_position)
    force = law.update(0.0, crane.initial_position + [0.0, 0.2, 0.0, 0.0], np.zeros(4))
    assert (np.abs(force) <= crane.limits.effort).all()
    assert law.saturations[1] == 1
    law.update(0.0, crane.initial_position, np.zeros(4))
    assert law.saturations[1] == 1


def test_a_stroke_at_which_no_loop_closes_is_named(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.reference.hold(crane.initial_position)
    with pytest.raises(psdyn_ros.UnreachableStrokeError, match='lift_cylinder'):
        law.update(0.0, crane.initial_position + [0.0, 5.0, 0.0, 0.0], np.zeros(4))


def test_new_gains_count_in_full_half_a_second_later(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.reference.hold(crane.initial_position)
    off = crane.initial_position + [0.01, 0.0, 0.0, 0.0]
    law.update(0.0, off, np.zeros(4))
    law.set_gains(ForceGains(*np.zeros((3, 4))))
    assert law.update(0.5, off, np.zeros(4)) == pytest.approx(crane.gravity_forces(off))


def test_a_trajectory_starts_from_the_reference_and_not_from_the_measurement(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.update(0.0, crane.initial_position, np.zeros(4))
    law.update(0.1, crane.initial_position + 0.001, np.zeros(4))
    law.reference.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05]), 0.1)
    law.update(0.1, crane.initial_position + 0.001, np.zeros(4))
    assert law.desired[0] == pytest.approx(crane.initial_position)


def test_redundant_actuators_beyond_a_limit_share_the_load_within_it(machine):
    m = machine('excavator')
    law = law_of(ComputedTorque, m, 10.0)
    law.reference.hold(m.initial_position)
    still = np.zeros(m.dof)
    free = law.update(0.0, m.initial_position, still)
    left, right = m.actuators.index('boom_cylinder_left'), m.actuators.index('boom_cylinder_right')
    law._law.limit[left] = 0.5 * free[left]
    shared = law.update(0.0, m.initial_position, still)
    assert shared[left] == pytest.approx(0.5 * free[left])
    assert shared[right] == pytest.approx(1.5 * free[right], rel=1e-3)
    assert m.forward_dynamics(m.initial_position, still, shared) == pytest.approx(still, abs=1e-6)
    assert law.saturations[left] == 1 and law.saturations[right] == 0


@pytest.mark.parametrize('kind', [ComputedTorque, PdGravity])
def test_a_machine_that_floats_is_refused_by_name(machine, kind):
    with pytest.raises(psdyn_ros.ActuationError, match="'balloon' cannot be controlled: its base floats"):
        kind(machine('balloon'), np.ones(9), np.ones(9))


def test_a_machine_with_too_few_actuators_is_refused_by_name():
    m = psdyn_ros.load(URDF / 'five_bar.urdf', actuated=['shoulder_1'])
    with pytest.raises(psdyn_ros.ActuationError, match=r'1 actuators \(shoulder_1\) for 2 degrees of freedom'):
        check_actuation(m)


# references


@pytest.mark.parametrize('name, initial', GENERAL)
def test_a_demonstration_can_be_followed_and_comes_back(machine, name, initial):
    m = machine(name, initial)
    waypoints = demonstration(m)
    assert waypoints.joints == m.coordinates
    assert waypoints.positions[0] == pytest.approx(m.initial_position)
    assert waypoints.positions[-1] == pytest.approx(m.initial_position)
    assert (np.ptp(waypoints.positions, axis=0) > 0.02).all()
    joints = [m.machine.description.joints[joint] for joint in m.joints]
    for x in waypoints.positions:
        assert all(joint.lower - 1e-9 <= q <= joint.upper + 1e-9 for joint, q in zip(joints, m.joint_state(x)[1]))
        assert (np.abs(m.gravity_forces(x)) < 0.7 * m.limits.effort).all()


def test_a_declared_travel_is_taken_and_shortened_where_loops_do_not_follow(machine):
    m = machine('five_bar')
    assert np.ptp(demonstration(m, travel={'shoulder_1': 0.2}).positions[:, 0]) == pytest.approx(0.2)
    down = demonstration(m, travel={'shoulder_1': -0.2}).positions[:, 0]
    assert down.min() == pytest.approx(down[0] - 0.2)
    # legs stretched: 1.7 m and 1.5 m over a ground of 1.2 m leave the shoulders no 5 rad apart
    far = demonstration(m, duration=100.0, travel={'shoulder_1': 2.5, 'shoulder_2': -2.5})
    assert 0.1 < np.ptp(far.positions[:, 0]) < 2.4
    with pytest.raises(psdyn_ros.UnknownNameError, match="did you mean 'shoulder_"):
        demonstration(m, travel={'shoulder': 1.0})


@pytest.mark.parametrize('pause', [0.0, 0.5])
def test_way_goes_through_its_points_and_back_at_shares_of_the_rated_speeds(crane, pause):
    start = crane.initial_position
    way = through(crane, {'up': {'lift_cylinder': start[1] + 0.1},
                          'side': {'slew': 0.4, 'telescope': start[3] + 0.1}}, 12.0, pause=pause)
    points = np.array([start, start + (0.0, 0.1, 0.0, 0.0), start + (0.4, 0.1, 0.0, 0.1), start])
    np.testing.assert_allclose(way.positions[1:], np.repeat(points[1:], 2 if pause else 1, axis=0))
    np.testing.assert_array_equal(way.positions[0], start)
    assert way.times[-1] == pytest.approx(12.0 + 3.0 * pause) and not way.velocities.any()
    standing = np.diff(way.times)[(np.diff(way.positions, axis=0) == 0.0).all(axis=1)]
    np.testing.assert_allclose(standing, [pause] * (3 if pause else 0))
    seconds = np.diff(way.times)[(np.diff(way.positions, axis=0) != 0.0).any(axis=1)]
    shares = (np.abs(np.diff(points, axis=0)) / crane.coordinate_limits.velocity).max(axis=1) / seconds
    np.testing.assert_allclose(shares, shares[0])


def test_way_that_is_too_fast_or_of_no_coordinate_is_an_error(crane):
    with pytest.raises(TrajectoryError, match="way of 'hiab_xs031', side and back, in 0.5 s: .*slew"):
        through(crane, {'side': {'slew': 1.0}}, 0.5)
    with pytest.raises(TrajectoryError, match='two points after each other are the same'):
        through(crane, {'nowhere': {}}, 5.0)
    with pytest.raises(psdyn_ros.UnknownNameError, match="point 'side' of the way: no coordinate 'slow'.*'slew'"):
        through(crane, {'side': {'slow': 1.0}}, 5.0)


def followed(m, waypoints, declaration=None):
    """(N, actuators) efforts that a motion needs, where it is accepted."""
    reference = ReferenceMotion(m, ReferenceLimits() if declaration is None else ReferenceLimits.declared(declaration))
    reference.hold(m.initial_position)
    reference.follow(waypoints, 0.0)
    return np.array([m.inverse_dynamics(*reference.sample(t)) for t in np.linspace(0.0, waypoints.times[-1], 300)])


@pytest.mark.parametrize('name', ['excavator', 'hiab_xs031', 'hiab_xs031_lift', 'four_bar', 'five_bar', 'pkm_2pur2rpu'])
@pytest.mark.parametrize('duration', [0.5, 1.0, 3.0, 10.0])
def test_a_demonstration_of_any_duration_leaves_every_actuator_some_of_its_effort(machine, name, duration):
    m, said = machine(name), []
    waypoints = demonstration(m, duration, say=said.append)
    needed = np.abs(followed(m, waypoints)).max(axis=0)
    assert (needed <= 0.91 * m.limits.effort).all()
    assert waypoints.times[-1] == duration and (np.ptp(waypoints.positions, axis=0) > 1e-3).all()
    tired = {'excavator': {0.5, 1.0, 3.0, 10.0}, 'hiab_xs031': {0.5, 1.0}}
    assert bool(said) is (duration in tired.get(name, ()))


def test_what_goes_less_far_for_want_of_effort_is_named_and_the_rest_goes_as_far(machine):
    m, said = machine('excavator'), []
    short = np.ptp(demonstration(m, 3.0, say=said.append).positions, axis=0)
    # the swing has the torque for 0.59 rad/s^2 with the arm out
    assert re.fullmatch(r'swing goes 0\.1\d* instead of 0\.384: more takes swing beyond 90% of its effort', *said)
    assert 0.05 < short[0] < 0.2
    usual = np.ptp(demonstration(m).positions, axis=0)
    assert short[1:3] == pytest.approx(0.3 * usual[1:3]), 'as their speeds tell'


def test_a_demonstration_keeps_the_limits_that_are_declared(machine):
    m, said = machine('five_bar'), []
    declaration = read_safety(find_config('five_bar_safety.yaml'), m.actuators, ('effort', 'effort'), m.limits)
    fast = replace(declaration, acceleration=np.array([0.2, np.inf]), command_limit=0.2 * m.limits.effort)
    usual, slow = demonstration(m), demonstration(m, declaration=fast, say=said.append)
    with pytest.raises(TrajectoryError, match='accelerates shoulder_1'):
        followed(m, usual, fast)
    assert (np.abs(followed(m, slow, fast)) <= 0.182 * m.limits.effort).all()
    assert (np.ptp(slow.positions, axis=0) < 0.99 * np.ptp(usual.positions, axis=0)).all()
    assert len(said) == 2 and all('limit 0.2' in sentence for sentence in said)


def test_a_machine_too_weak_for_any_motion_has_no_demonstration(machine):
    m = machine('four_bar')
    declaration = read_safety(find_config('four_bar_safety.yaml'), m.actuators, ('effort',), m.limits)
    # less than it takes to stand: standing is given, and rising is not
    weak = replace(declaration, command_limit=1e-3 * m.limits.effort)
    with pytest.raises(TrajectoryError, match="'four_bar' cannot move .*: crank needs"):
        demonstration(m, declaration=weak)


def test_a_trajectory_in_other_joints_of_the_loop_is_mapped(machine):
    m = machine('four_bar')
    reference = ReferenceMotion(m)
    reference.hold(m.initial_position)
    names, q, _, _ = m.joint_state(m.initial_position + 0.2)
    rocker = names.index('rocker')
    reference.follow(Waypoints(('rocker',), [2.0], [[q[rocker]]]), 0.0)
    assert reference.sample(2.0)[0] == pytest.approx(m.initial_position + 0.2, abs=1e-9)
    x, xd, xdd = (row.copy() for row in reference.sample(1.0))
    step = 1e-4
    ahead, behind = (reference.sample(1.0 + sign * step)[0].copy() for sign in (1, -1))
    assert xd == pytest.approx((ahead - behind) / (2.0 * step), rel=1e-5)
    assert xdd == pytest.approx((ahead - 2.0 * x + behind) / step**2, abs=1e-4)


def test_an_actuator_that_is_no_coordinate_has_its_limits_too(machine):
    m = machine('pkm_2pur2rpu')
    follower = next(name for name in m.actuators if name not in m.coordinates)
    reference = ReferenceMotion(m)
    reference.hold(m.initial_position)
    target = m.initial_position.copy()
    target[m.coordinates.index('slider_1')] += 0.05     # tilts the platform
    with pytest.raises(psdyn_ros.PsdynError, match=f'{follower}|slider|leg'):
        reference.follow(Waypoints(m.coordinates, [0.2], [target]), 0.0)
    assert not reference.moving(0.1)


def test_more_joints_than_freedom_are_no_trajectory(machine):
    m = machine('excavator')
    reference = ReferenceMotion(m)
    reference.hold(m.initial_position)
    with pytest.raises(TrajectoryError, match='5 joints, 1 more than'):
        reference.follow(Waypoints(m.actuators, [2.0], [np.zeros(5)]), 0.0)


# the plant


def test_a_machine_without_actuators_moves_from_the_start_and_follows_its_equations(machine):
    m = machine('balloon')
    forces = ExternalForces(m, SPRINGS)
    plant = Plant(m, period=0.004, substeps=1, external_forces=forces)
    assert plant.state == RUNNING
    plant.step(None, 0.2)
    exact = simulate(m, m.initial_position, np.zeros(9), [0.0, 0.2], external=forces)
    assert plant.x == pytest.approx(exact.x[-1], abs=1e-7) and plant.xd == pytest.approx(exact.xd[-1], abs=1e-6)
    assert np.abs(plant.x - m.initial_position).max() > 0.01
    plant.reset()
    assert plant.x.tolist() == m.initial_position.tolist() and not plant.xd.any()


def test_the_error_of_forced_steps_has_the_order_of_the_method(machine):
    m = machine('balloon')
    forces = ExternalForces(m, SPRINGS)
    exact = simulate(m, m.initial_position, np.zeros(9), [0.0, 0.1], external=forces).x[-1]

    def error(substeps):
        x, xd = m.initial_position.copy(), np.zeros(9)
        ForcedIntegrator(m, forces, 0.1, substeps).step(x, xd, np.zeros(0))
        return np.abs(x - exact).max()

    assert error(2) / error(6) > 3.0**3.5


def test_forced_steps_without_forces_are_those_of_the_integrator(machine):
    m = machine('five_bar')
    free, forced = Plant(m, period=PERIOD), Plant(m, period=PERIOD, external_forces=ExternalForces(m, {
        'nothing': {'type': 'joint_spring', 'joint': 'elbow_1', 'stiffness': 0.0}}))
    for plant in (free, forced):
        plant.step(np.array([5.0, 10.0]), 10 * PERIOD)
    assert free.xd @ free.xd > 1e-4
    assert forced.x == pytest.approx(free.x, abs=1e-12) and forced.xd == pytest.approx(free.xd, abs=1e-10)


def test_brakes_carry_the_external_forces(machine):
    m = machine('five_bar')
    forces = ExternalForces(m, {'spring': {'type': 'joint_spring', 'joint': 'elbow_1', 'stiffness': 100.0}})
    plant = Plant(m, period=PERIOD, external_forces=forces)
    assert plant.state == HELD
    applied = forces(plant.x, plant.xd)._asdict()
    assert m.forward_dynamics(plant.x, plant.xd, plant.force, **applied) == pytest.approx(np.zeros(2), abs=1e-9)
    assert np.abs(plant.force - m.gravity_forces(plant.x)).max() > 1.0


def test_brakes_hold_the_actuators_while_what_has_none_moves():
    m = psdyn_ros.load(URDF / 'five_bar.urdf', actuated=['shoulder_1'])
    plant = Plant(m, period=PERIOD)
    column = m.joints.index('shoulder_1')
    start = m.joint_state(plant.x)[1]
    energy = sum(m.energy(plant.x, plant.xd))
    plant.step(None, 0.3)
    q = m.joint_state(plant.x)[1]
    assert plant.state == HELD and abs(q[column] - start[column]) < 1e-4
    assert np.abs(q - start).max() > 0.05
    assert sum(m.energy(plant.x, plant.xd)) == pytest.approx(energy, abs=1e-3)      # brakes that rest do no work
