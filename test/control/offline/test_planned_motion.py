"""Planned motions: chamber pressures, pump flow and jerk within limits, and executed on valves as planned."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import thorough
from hypothesis import assume, given, settings
from hypothesis.strategies import floats, lists
from scipy.interpolate import CubicSpline
from support.paths import CONFIG, ROOT

from psdyn_ros import StateError
from psdyn_ros.control import ClosedLoop, ControllerConfig, State, assemble, follow, limits_of, plan_motion
from psdyn_ros.control.offline.hanging_load import HangingLoad
from psdyn_ros.control.offline.planned_motion import LIMITS
from psdyn_ros.control.offline.time_optimal import opening_loss, path_curve
from psdyn_ros.control.offline.way_file import reached
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.reference_limits import ReferenceLimits
from psdyn_ros.control.reference.swing_shaper import NONE, ZVD
from psdyn_ros.control.reference.trajectory import quintic_curve
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant

PER_MINUTE = 1.0 / 6e4      # m^3/s of l/min
SHARE = 0.9
WAYS = ((0.5, 0.1, 0.05, 0.3), (1.0, 0.05, 0.1, 0.5))


@cache
def config(flow):
    """The crane on valves with a pump of so many l/min."""
    c = ControllerConfig.from_files(ROOT / 'urdf' / 'hiab_xs031.urdf', CONFIG / 'hiab_xs031_hydraulics.yaml',
                                    safety=CONFIG / 'hiab_xs031_safety.yaml', emergency_stop=False)
    supply = replace(c.hydraulics.supply, max_flow=flow * PER_MINUTE)
    return replace(c, hydraulics=replace(c.hydraulics, supply=supply))


def way(c):
    start = c.machine.initial_position
    return np.array([start, *(start + step for step in WAYS)])


@cache
def planned(flow):
    c = config(flow)
    limits = limits_of(c.machine, c.hydraulics, acceleration=c.declaration.acceleration, share=SHARE)
    return plan_motion(c.machine, way(c), limits, jerk=c.declaration.jerk), limits


@cache
def hanging(shaper):
    """A straight line of the boom tip of the loader crane, its load on a rope, as planned."""
    c = ControllerConfig.from_files(ROOT / 'urdf' / 'loader_crane.urdf', safety=CONFIG / 'loader_crane_safety.yaml',
                                    emergency_stop=False)
    m = c.machine.driven_machine
    tip = m.link_pose(m.initial_position, 'tcp')[:3, 3]
    line = reached(m, 'tcp', m.initial_position, [(tip + (0.2, 0.7, 0.3), None, None)], True, 'line')
    limits = limits_of(c.machine, acceleration=c.declaration.acceleration, share=SHARE)
    return c, plan_motion(c.machine, line, limits, jerk=c.declaration.jerk, shaper=shaper), tip


def test_motion_with_a_hanging_load_leaves_it_at_rest():
    (_, motion, _), (_, unshaped, _) = hanging(ZVD), hanging(NONE)
    assert unshaped.swing_left.max() > np.radians(2.0)
    assert motion.swing_left.max() < 0.03 * unshaped.swing_left.max()
    assert motion.use.max() <= 1.001 and unshaped.use.max() <= 1.001


def test_efforts_with_a_hanging_load_are_those_of_forward_dynamics():
    c, motion, _ = hanging(ZVD)
    m = c.machine
    driven = [m.coordinates.index(name) for name in m.driven_machine.coordinates]
    passive = [m.coordinates.index(name) for name in m.passive_joints]
    swing = CubicSpline(motion.time, motion.passive)
    x, xd, xdd = np.empty((3, len(motion.time), m.dof))
    for row, of_driven, order in ((x, motion.x, 0), (xd, motion.xd, 1), (xdd, motion.xdd, 2)):
        row[:, driven], row[:, passive] = of_driven, swing(motion.time, order)
    found = m.forward_dynamics(x, xd, motion.f)
    error = np.abs(found - xdd)
    assert error[:, driven].max() < 1e-4 * np.abs(xdd[:, driven]).max()
    # the spline through positions of the load smooths a kink of its acceleration
    assert error[:, passive].max() < 1e-2 * np.abs(xdd[:, passive]).max()


def test_efforts_with_a_hanging_load_are_also_looked_at_half_way():
    """Instants far apart, and little torque for the slew; beside the swing by steps of a quarter."""
    c, free, _ = hanging(ZVD)
    m = c.machine
    limits = limits_of(m, acceleration=c.declaration.acceleration, share=SHARE)
    upper = limits.upper.copy()
    upper[0] = 0.2 * np.abs(free.f[:, 0]).max()
    motion = plan_motion(m, free.x[[0, -1]], replace(limits, lower=-upper, upper=upper), jerk=c.declaration.jerk,
                         step=0.1)
    curve = quintic_curve(motion.time, motion.x, motion.xd, motion.xdd)
    states = HangingLoad(m).motion(curve, 0.25 * motion.time[1])[1]
    used = (np.abs(states[3][:, :4]) / upper).max(axis=1)
    at_instants, half_way = used[::4], np.append(0.0, used[2::4])
    assert (half_way > 1.03 * at_instants).sum() > 3
    np.testing.assert_allclose(motion.use[:, 3], np.maximum(at_instants, half_way), rtol=0.01)
    assert 0.9 < used.max() <= 1.0


def test_line_of_the_suspension_stays_one_and_a_controller_takes_it_as_it_is():
    c, motion, tip = hanging(ZVD)
    m, core = c.machine.driven_machine, assemble(c)
    points = m.link_pose(motion.x, 'tcp')[:, :3, 3] - tip
    way = points[-1] / np.linalg.norm(points[-1])
    assert np.linalg.norm(points - np.outer(points @ way, way), axis=1).max() < 2e-3
    plant = Plant(c.machine, period=c.period)
    record = follow(core, plant, motion.waypoints(c.machine), motion.duration + 3.0)
    assert core.law.reference.shaped_by == 'nothing: its own swings cancel each other'
    driven, passive = ([c.machine.coordinates.index(name) for name in names]
                       for names in (m.coordinates, c.machine.passive_joints))
    assert State(record.state[-1]) is State.HOLD and np.abs(record.x[-1, driven] - motion.x[-1]).max() < 1e-3
    swing = np.abs(record.x[-round(1.0 / c.period):][:, passive] - motion.passive[-1]).max()
    assert 0.0 < swing < np.radians(0.5)


@given(steps=lists(lists(floats(-1.0, 1.0), min_size=4, max_size=4), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None)
def test_controller_takes_every_planned_motion(steps):
    """Short ones too, whose jerk is all that counts."""
    c = config(np.inf)
    m = c.machine
    points = m.initial_position + np.cumsum(np.array(steps) * (0.3, 0.05, 0.05, 0.1), axis=0)
    rows = np.clip(np.vstack([m.initial_position, points]), m.coordinate_limits.lower + 0.02,
                   m.coordinate_limits.upper - 0.02)
    assume((np.abs(np.diff(rows, axis=0)).max(axis=1) > 1e-3).all())
    limits = limits_of(m, c.hydraulics, acceleration=c.declaration.acceleration, share=SHARE)
    motion = plan_motion(m, rows, limits, jerk=c.declaration.jerk)
    reference = ReferenceMotion(m, ReferenceLimits.declared(c.declaration))
    reference.hold(rows[0])
    reference.follow(motion.waypoints(m), 0.0)
    assert reference.end == pytest.approx(motion.duration)


@pytest.mark.parametrize('flow', [np.inf, 30.0])
def test_pressures_flow_and_jerk_are_within_limits_between_instants(flow):
    """Chambers by the orifice equation of each open edge, from the quintics that a controller follows."""
    c, (motion, limits) = config(flow), planned(flow)
    m, supply = c.machine, c.hydraulics.supply
    curve = quintic_curve(motion.time, motion.x, motion.xd, motion.xdd)
    samples = np.array([curve.sample(t).copy() for t in np.linspace(0.0, motion.duration, 3001)])
    x, xd, xdd = samples.transpose(1, 0, 2)
    assert (np.abs(xd) <= 1.001 * limits.velocity).all() and (np.abs(xdd) <= 1.001 * limits.acceleration).all()
    third = np.diff(xdd, axis=0) / (motion.duration / 3000)
    assert (np.abs(third) <= 1.001 * np.array(c.declaration.jerk)).all()
    f, oil = m.inverse_dynamics(x, xd, xdd), 0.0
    pump = SHARE * (supply.pressure - (supply.droop if np.isfinite(flow) else 0.0))
    for k, name in enumerate(m.actuators):
        if name not in c.hydraulics.cylinders:
            continue
        cylinder = c.hydraulics.cylinders[name]
        valve, v = cylinder.valve, xd[:, k]
        areas = np.array([cylinder.area_a, cylinder.area_b])
        flows = np.abs(v)[:, None] * areas
        oil = oil + np.where(v > 0.0, flows[:, 0], flows[:, 1])
        pa, at, pb, bt = (valve.nominal_pressure_drop * (flows[:, side] / (SHARE * nominal)) ** 2
                          for side, nominal in zip((0, 0, 1, 1), valve.nominal_flow))
        friction = cylinder.friction.coulomb * np.sign(v) + cylinder.friction.viscous * v
        extending = (pump - pa) * areas[0] - (supply.return_pressure + bt) * areas[1]
        retracting = (supply.return_pressure + at) * areas[0] - (pump - pb) * areas[1]
        needed = f[:, k] + friction
        rounding = 1e-3 * pump * areas
        assert (needed <= extending + rounding[0])[v > 0.0].all(), name
        assert (needed >= retracting - rounding[1])[v < 0.0].all(), name
    assert (oil <= 1.001 * SHARE * flow * PER_MINUTE).all()
    assert motion.use.max() > 0.95 and motion.use.max() <= 1.001
    if np.isfinite(flow):
        assert motion.use[:, LIMITS.index('flow')].max() > 0.95


def test_averaged_timing_stays_on_the_path():
    c, (motion, _) = config(np.inf), planned(np.inf)
    curve = path_curve(c.machine, way(c))
    dense = curve(np.linspace(0.0, 1.0, 20001))
    assert max(np.abs(dense - x).max(axis=1).min() for x in motion.x) < 2e-4
    np.testing.assert_allclose(motion.x[[0, -1]], way(c)[[0, -1]], atol=1e-9)
    assert not motion.xd[[0, -1]].any() and not motion.xdd[[0, -1]].any()


def test_rates_are_derivatives_of_positions():
    motion = planned(np.inf)[0]
    for values, rates, within in ((motion.x, motion.xd, 5e-4), (motion.xd, motion.xdd, 0.02)):
        expected = np.diff(values, axis=0) / np.diff(motion.time)[:, None]
        assert np.abs(expected - 0.5 * (rates[1:] + rates[:-1])).max() < within


@pytest.mark.parametrize('flow', thorough([30.0, np.inf], 1))
def test_motion_is_executed_as_planned_on_valves(flow):
    c, (motion, _) = config(flow), planned(flow)
    loop = ClosedLoop(assemble(c), HydraulicPlant(c.machine, c.hydraulics, period=c.period)).start().run(1.0)
    loop.send(motion.waypoints(c.machine))
    record = loop.run(1.1 * motion.duration + 0.5).recording()
    moving = np.flatnonzero(np.abs(record.desired[:, 1]).max(axis=1) > 1e-6)
    took = record.time[moving[-1]] - record.time[moving[0]]
    assert took <= 1.03 * motion.duration
    rows = slice(moving[0], moving[-1])
    rms = np.sqrt(np.mean((record.desired[rows, 0] - record.x[rows]) ** 2, axis=0))
    assert rms.max() < 3e-4
    np.testing.assert_allclose(record.x[-1], way(c)[-1], atol=1e-3)
    assert record.state[-1] == State.HOLD and record.reasons == ()


def test_less_oil_takes_longer():
    assert planned(30.0)[0].duration > 1.1 * planned(np.inf)[0].duration


def test_constant_limits_that_are_safe_everywhere_take_a_quarter_longer():
    """Speeds and accelerations alone, scaled until efforts, valves and flow are within their limits all along."""
    c, (motion, limits) = config(30.0), planned(30.0)
    free = np.full(4, np.inf)
    slow, fast, safe = 0.02, 1.0, np.inf
    for _ in range(8):
        share = 0.5 * (slow + fast)
        constant = replace(limits, velocity=share * limits.velocity, acceleration=share ** 2 * limits.acceleration,
                           lower=-free, upper=free, flow=np.inf)
        other = plan_motion(c.machine, way(c), constant, jerk=c.declaration.jerk)
        lost = opening_loss(limits, other.xd)
        flow = np.maximum(other.xd, 0.0) @ limits.area_out + np.maximum(-other.xd, 0.0) @ limits.area_in
        if (other.f <= limits.upper - lost[0]).all() and (other.f >= limits.lower + lost[1]).all() and (
                flow <= limits.flow).all():
            slow, safe = share, other.duration
        else:
            fast = share
    assert np.isfinite(safe) and safe > 1.25 * motion.duration


def test_path_beyond_a_stop_is_refused():
    c = config(np.inf)
    points = way(c)
    points[1, 3] = c.machine.coordinate_limits.upper[3] + 0.05
    with pytest.raises(StateError, match=r'the path goes 0\.0\d+ beyond the limit of telescope at .* % of the path'):
        plan_motion(c.machine, points, planned(np.inf)[1])


def test_limits_that_admit_no_motion_are_named():
    c, limits = config(np.inf), planned(np.inf)[1]
    with pytest.raises(StateError, match='no motion along the path is within the limits at .* % of the path, .*; '
                       r"at rest there '\w+' needs [-+.e\d]+ N or N m with friction, and its limit is [-+.e\d]+$"):
        plan_motion(c.machine, way(c), replace(limits, upper=0.5 * limits.upper))


@pytest.mark.parametrize('share', [0.0, 1.2, float('nan')])
def test_share_of_limits_is_above_zero_and_at_most_one(share):
    with pytest.raises(StateError, match='share = .*: expected more than 0, and at most 1'):
        limits_of(config(np.inf).machine, share=share)
