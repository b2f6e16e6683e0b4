"""Trajectories filled with efforts, and what a stock trajectory controller makes of them."""


import numpy as np
import pytest
import yaml
from support.machines import URDF
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.control.offline.annotate import SWING_STEP, annotate
from psdyn_ros.control.offline.feedforward import Feedforward
from psdyn_ros.control.offline.hanging_load import HangingLoad
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints, quintic_curve
from psdyn_ros.model.locate import find_machine
from psdyn_ros.simulation.plant import Plant

CONTROLLERS = ROOT / 'config' / 'ros2_control' / 'hiab_xs031_controllers.yaml'
BOOMS = ('slew', 'lift_boom', 'tilt_boom', 'telescope')
TRAVEL = np.array([0.4, 0.08, -0.1, 0.2])


@pytest.fixture(scope='module')
def excavator():
    return psdyn_ros.load(URDF / 'excavator.urdf')


def waypoints(m, *shifts, times=None, joints=None, **more):
    """Positions only, in some joints, at the initial position and at shifts of the coordinates from it."""
    joints = joints or m.actuators
    rows = []
    for shift in (0.0, *shifts):
        names, q, _, _ = m.joint_state(m.initial_position + shift)
        rows.append([q[names.index(name)] for name in joints])
    return Waypoints(joints, np.arange(len(rows)) * 2.0 if times is None else times, rows, **more)


# what comes out


@pytest.mark.parametrize('kind', ['positions', 'velocities', 'accelerations'])
def test_efforts_are_those_of_inverse_dynamics_and_the_motion_passes_the_points(crane, kind):
    given = waypoints(crane, TRAVEL, 0.4 * TRAVEL)
    speed = np.array([np.zeros(4), -0.1 * TRAVEL, np.zeros(4)])
    more = {'positions': {}, 'velocities': {'velocities': speed},
            'accelerations': {'velocities': speed, 'accelerations': 0.3 * speed}}[kind]
    given = Waypoints(given.joints, given.times, given.positions, **more)
    found, efforts, clamped = annotate(crane, given, 0.003)
    assert clamped == 0 and found.joints == given.joints
    assert np.diff(found.times).max() <= 0.003 + 1e-12
    rows = [int(np.flatnonzero(found.times == t)[0]) for t in given.times]      # exactly at their times
    for field in ('positions', *more):
        assert getattr(found, field)[rows] == pytest.approx(getattr(given, field), abs=1e-12)
    expected = [crane.inverse_dynamics(*motion)
                for motion in zip(found.positions, found.velocities, found.accelerations)]
    np.testing.assert_array_equal(efforts, expected)
    for values, rates in ((found.positions, found.velocities), (found.velocities, found.accelerations)):
        slope = (values[2:] - values[:-2]) / (found.times[2:] - found.times[:-2])[:, None]
        assert slope == pytest.approx(rates[1:-1], abs=5e-3)


def test_efforts_on_booms_do_the_work_of_their_cylinders(crane):
    on_cylinders = annotate(crane, waypoints(crane, TRAVEL), 0.05)
    on_booms = annotate(crane, waypoints(crane, TRAVEL, joints=BOOMS), 0.05)
    for found, joints in ((on_cylinders, crane.actuators), (on_booms, BOOMS)):
        joint_map = crane.joint_map(joints)
        for q, qd, qdd, effort in zip(*(getattr(found.waypoints, what) for what in (
                'positions', 'velocities', 'accelerations')), found.efforts):
            x, xd, xdd = joint_map.motion(q, qd, qdd)
            assert effort @ qd == pytest.approx(crane.inverse_dynamics(x, xd, xdd) @ xd, rel=1e-9, abs=1e-9)


def test_efforts_let_a_load_swing_freely():
    """They are those of the hybrid dynamics that Runge and Kutta's method integrates, with a payload in the load."""
    m = psdyn_ros.load(find_machine('loader_crane'))
    carried = ('load', 50.0, (0.0, -0.5, 0.0), 2.0 * np.eye(3))
    feedforward = Feedforward(m)
    feedforward.set_payload(*carried)
    assert feedforward.manipulator.coordinates == m.actuators
    given = waypoints(feedforward.manipulator, (0.4, 0.1, -0.1, 0.3), times=[0.0, 4.0])
    found, efforts, _ = annotate(feedforward, given, 0.5)
    assert np.diff(found.times).max() <= SWING_STEP + 1e-12
    curve = quintic_curve(found.times, found.positions, found.velocities, found.accelerations)
    times, (x, _, _, f), _ = HangingLoad(m.with_payload(*carried)).motion(curve, 0.01)
    assert np.ptp(x[:, 4:], axis=0).min() > 0.05
    expected = np.array([np.interp(found.times, times, one) for one in f[:, :4].T]).T
    np.testing.assert_allclose(efforts, expected, atol=2e-3 * np.ptp(expected, axis=0).max())
    resting = m.with_payload(*carried)
    resting = resting.gravity_forces(resting.equilibrium(m.initial_position).x)
    np.testing.assert_allclose(feedforward.at(given.positions[0], np.zeros(4)).joints, resting, rtol=1e-6, atol=1e-2)
    terms = feedforward.terms(*(one[-1] for one in (found.positions, found.velocities, found.accelerations)))
    np.testing.assert_allclose(sum(terms), efforts[-1], rtol=1e-9)


def test_redundant_cylinders_share_the_load(excavator):
    m = excavator
    found = annotate(m, waypoints(m, 0.05), 0.1)
    left, right = (m.actuators.index(f'boom_cylinder_{side}') for side in ('left', 'right'))
    assert found.efforts[:, left] == pytest.approx(found.efforts[:, right])
    one_side = annotate(m, waypoints(m, 0.05, joints=m.coordinates), 0.1)       # has the left one only
    row = one_side.waypoints.joints.index('boom_cylinder_left')
    assert one_side.efforts[0, row] == pytest.approx(found.efforts[0, left] + found.efforts[0, right], rel=1e-6)


def test_payload_and_share_of_friction_are_in_the_efforts():
    rough = (URDF / 'hiab_xs031.urdf').read_text().replace(
        '<limit', '<dynamics damping="300" friction="100"/><limit')
    m = psdyn_ros.load(rough)
    feedforward = Feedforward(m)
    feedforward.set_payload('tcp', 200.0, (0.0, 0.0, 0.1), 5.0 * np.eye(3))
    feedforward.friction_scale = 0.0
    loaded = m.with_payload('tcp', 200.0, (0.0, 0.0, 0.1), 5.0 * np.eye(3))
    found, efforts, _ = annotate(feedforward, waypoints(m, TRAVEL), 0.1)
    x, xd, xdd = (getattr(found, what)[7] for what in ('positions', 'velocities', 'accelerations'))
    odd = 0.5 * (loaded.bias_forces(x, xd) - loaded.bias_forces(x, -xd))
    assert efforts[7] == pytest.approx(loaded.inverse_dynamics(x, xd, xdd) - odd, rel=1e-12)
    assert np.abs(odd).max() > 1.0


def test_a_trajectory_that_begins_later_begins_where_the_machine_rests(crane):
    late = waypoints(crane, TRAVEL, times=[1.0, 3.0])
    start = crane.initial_position - 0.01
    found = annotate(crane, late, 0.1, start=start)
    assert found.waypoints.times[0] == 0.0 and found.waypoints.positions[0].tolist() == start.tolist()
    assert {1.0, 3.0} <= set(found.waypoints.times)
    assert annotate(crane, late, 0.1).waypoints.times[0] == 1.0
    at_once = waypoints(crane, TRAVEL)
    assert annotate(crane, at_once, 0.1, start=start).waypoints.positions[0] == pytest.approx(crane.initial_position)


def test_a_machine_that_rests_beyond_a_limit_may_come_back_but_not_go_there(crane):
    beyond = crane.initial_position.copy()
    beyond[3] = crane.limits.lower[3] - 0.002
    late = waypoints(crane, 0.0, times=[2.0, 4.0])
    assert annotate(crane, late, 0.1, start=beyond).waypoints.positions[0, 3] == beyond[3]
    with pytest.raises(TrajectoryError, match='^point 0 .*it takes telescope to -0.002'):
        annotate(crane, Waypoints(late.joints, [0.0, 2.0], [beyond, late.positions[1]]), 0.1)


def test_one_point_is_held_by_its_efforts(crane):
    found = annotate(crane, waypoints(crane, times=[0.0]), 0.1)
    assert found.waypoints.times.tolist() == [0.0]
    assert found.efforts[0] == pytest.approx(crane.gravity_forces(crane.initial_position))


# what is refused


def changed(given, point, joint, value):
    positions = given.positions.copy()
    positions[point, joint] = value
    return Waypoints(given.joints, given.times, positions)


@pytest.mark.parametrize('change, says', [
    ((2, 1, 3.0), r'^between points 0 and 1 \(at [\d.]+ s\): it takes lift_cylinder to -[\d.]+, outside of \[0, 0.5\]'),
    ((1, 0, 2.9), r'^between points 0 and 1 \(at [\d.]+ s\): it moves slew at 0.6[\d]* per second, limit 0.6')])
def test_the_first_bad_place_is_named(crane, change, says):
    given = changed(waypoints(crane, 0.1 * TRAVEL, 0.2 * TRAVEL, times=[0.0, 6.0, 12.0]), *change)
    with pytest.raises(TrajectoryError, match=says):
        annotate(crane, given, 0.01)


def test_a_place_where_no_loop_closes_is_named():
    m = psdyn_ros.load(URDF / 'five_bar.urdf')
    apart = Waypoints(m.actuators, [0.0, 10.0], [m.initial_position, m.initial_position + [2.6, -2.6]])
    with pytest.raises(TrajectoryError, match=r"^between points 0 and 1 \(at [\d.]+ s\): loop 'pin_c'"):
        annotate(m, apart, 0.05)


def test_a_bad_waypoint_itself_is_named_by_its_number(crane):
    m = crane
    lower = m.limits.lower.copy()
    given = waypoints(m, 0.0, times=[0.0, 1.0])
    speeds = np.array([[0.0] * 4, [0.0] * 4])
    low = Waypoints(given.joints, given.times, np.array([lower - 1e-3, given.positions[1]]), speeds)
    with pytest.raises(TrajectoryError, match=r'^point 0 \(0 s\): it takes slew to -3.001, outside of'):
        annotate(m, low, 0.1)
    late = Waypoints(given.joints, [20.0, 40.0], low.positions, speeds)
    with pytest.raises(TrajectoryError, match=r'^before point 0 \(at [\d.]+ s\): it takes lift_cylinder to -'):
        annotate(m, late, 0.1, start=m.initial_position)


def test_an_effort_beyond_its_limit_is_refused_or_clamped(crane):
    heavy = Feedforward(crane)
    heavy.set_payload('tcp', 2500.0, (0.0, 0.0, 0.0), np.eye(3))
    given = waypoints(crane, 0.1 * TRAVEL)
    with pytest.raises(TrajectoryError, match=r'^point 0 \(0 s\): lift_cylinder needs [\d.e+]+ N or N m, limit \d+'):
        annotate(heavy, given, 0.1)
    found = annotate(heavy, given, 0.1, clamp=True)
    limit = crane.limits.effort
    assert found.clamped == found.waypoints.times.size
    assert (np.abs(found.efforts) <= limit).all()
    lift = crane.actuators.index('lift_cylinder')
    assert found.efforts[0, lift] == limit[lift]


def test_redundant_joints_that_contradict_each_other_are_refused(excavator):
    given = waypoints(excavator, 0.02)
    right = given.joints.index('boom_cylinder_right')
    with pytest.raises(TrajectoryError, match='point 0 .*contradict each other by 0.0'):
        annotate(excavator, changed(given, 0, right, given.positions[0, right] + 0.02), 0.1)


@pytest.mark.parametrize('joints, says', [
    (('slew', 'lift_boom', 'tilt_boom'), 'expected all actuators'),
    (('slew', 'lift_boom', 'lift_cylinder', 'telescope'), "do not fix 'tilt_cylinder'"),
    (('slew', 'lift_boom', 'tilt_bom', 'telescope'), "did you mean 'tilt_boom'")])
def test_joints_that_do_not_fix_the_machine_are_named(crane, joints, says):
    with pytest.raises(psdyn_ros.PsdynError, match=says):
        annotate(crane, Waypoints(joints, [0.0], np.zeros((1, len(joints)))), 0.1)


def test_too_many_points_and_steps_that_are_none_are_refused(crane):
    with pytest.raises(TrajectoryError, match='20001 points with max_dt = 0.0001 s over 2 s; expected at most'):
        annotate(crane, waypoints(crane, 0.0), 1e-4)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(TrajectoryError, match='max_dt'):
            annotate(crane, waypoints(crane, 0.0), wrong)
    with pytest.raises(TrajectoryError, match='start has shape'):
        annotate(crane, waypoints(crane, 0.0, times=[1.0, 2.0]), 0.1, start=[0.0])
    with pytest.raises(TrajectoryError, match='the feedforward in'):
        annotate(Feedforward(crane), waypoints(crane, 0.0, joints=BOOMS), 0.1)


# a stock trajectory controller


def interpolated(points, k, s):
    """Reference of `joint_trajectory_controller` in a segment: linear, or quintic; efforts linear."""
    (t0, p0, v0, a0, f0), (t1, p1, v1, a1, f1) = points[k], points[k + 1]
    h = t1 - t0
    u = (s - t0) / h
    if v0 is None:
        return p0 + u * (p1 - p0), (p1 - p0) / h, f0
    basis = np.linalg.solve(
        [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0], [1] * 6, [0, 1, 2, 3, 4, 5], [0, 0, 2, 6, 12, 20]],
        [p0, h * v0, h * h * a0, p1, h * v1, h * h * a1])
    return (u ** np.arange(6) @ basis, np.arange(1, 6) * u ** np.arange(5) @ basis[1:] / h, f0 + u * (f1 - f0))


def tracked(machine, points, settle, delay):
    """RMS errors (4,) under the law of the controller, u = ff + p e + d e' + integral of i e within clamps.

    settle: the integrals at the beginning; delay: periods until a command acts.
    """
    given = yaml.safe_load(CONTROLLERS.read_text())['joint_trajectory_controller']['ros__parameters']['gains']
    p, i, d, clamp = np.array([[g['p'], g['i'], g['d'], g['i_clamp_max']] for g in given.values()]).T
    plant, integral, errors, sent, k = Plant(machine, period=0.002), settle.copy(), [], [], 0
    for step in range(round(points[-1][0] / 0.002)):
        t = 0.002 * step
        while k < len(points) - 2 and t >= points[k + 1][0]:
            k += 1
        position, velocity, effort = interpolated(points, k, t)
        error = position - plant.x
        integral = np.clip(integral + 0.002 * i * error, -clamp, clamp)
        sent.append(p * error + d * (velocity - plant.xd) + integral + effort)
        plant.step(sent[max(step - delay, 0)], 0.002)
        errors.append(error)
    assert not plant.fault
    return np.sqrt(np.mean(np.square(errors), axis=0))


@pytest.mark.parametrize('payload, delay, times', [(0.0, 0, 100.0), (100.0, 3, 5.0)])
def test_a_stock_controller_tracks_an_annotated_trajectory_several_times_better(crane, payload, delay, times):
    """On the plant at force level, although the integrals already hold the crane; also with a load that nobody told."""
    machine = crane.with_payload('tcp', payload, (0.0, 0.0, 0.0), 0.02 * payload * np.eye(3))
    holding = machine.gravity_forces(crane.initial_position)
    rest = np.zeros((2, 4))
    given = waypoints(crane, TRAVEL, times=[0.0, 3.0], velocities=rest, accelerations=rest)
    found = annotate(crane, given, 0.02)
    dense = list(zip(found.waypoints.times, found.waypoints.positions, found.waypoints.velocities,
                     found.waypoints.accelerations, found.efforts))
    sparse = list(zip(given.times, given.positions, given.velocities, given.accelerations, rest))
    annotated = tracked(machine, dense, holding - crane.gravity_forces(crane.initial_position), delay)
    plain = tracked(machine, sparse, holding, delay)
    assert (annotated < plain / times).all(), plain / annotated
    assert (annotated < 1e-3).all()
