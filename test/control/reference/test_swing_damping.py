"""Active damping: released loads lose their swing, axes keep to their deviation and return, with wrong models too."""

from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.api.load import load
from psdyn_ros.control import ControllerConfig, PointStream, State, assemble
from psdyn_ros.control.closed_loop import ClosedLoop
from psdyn_ros.control.laws.payload_model import LoadModel
from psdyn_ros.control.reference.swing_damping import SwingDamping, SwingTerms, damping_feedback
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints
from psdyn_ros.kernels.control import passive as kernels
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.studies.hanging_runs import LATER, PENDULUMS, Case, run
from psdyn_ros.tools.studies.tracking_runs import CORNERS as MISMATCHES

URDF, SAFETY = find_machine('loader_crane'), find_config('loader_crane_safety.yaml')
DRIVEN, PASSIVE = slice(0, 4), slice(4, 6)
RELEASED = 10.0         # degrees
LATE = 3                # cycles of 2 ms
CORNERS = tuple(product((0.8, 1.2), (0.8, 1.2), (0.5, 2.0)))    # mass of the load, length of the rope, friction


@entry
def bounded(u, low, high, coupled):
    """Call `bound_feedback`, which is inlined, from Python."""
    kernels.bound_feedback(u, low, high, coupled)


@cache
def config():
    return ControllerConfig.from_files(URDF, safety=SAFETY)


def machine(mass, length, friction):
    """The crane with these shares of mass of the load, length of the rope, and friction of the passive joints."""
    text = Path(URDF).read_text()
    changes = [('xyz="0 -1.464286 0"', f'xyz="0 {-1.464286 * length} 0"'),
               ('xyz="0 -1.65 0"', f'xyz="0 {-1.65 * length} 0"'),
               ('<dynamics damping="25"/>', f'<dynamics damping="{25.0 * friction}"/>'),
               ('<mass value="279"/>', f'<mass value="{279.0 * mass}"/>')]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return load(text)


class Released:
    """A load that is released at an angle [degrees] from where it hangs, and the controller that holds the crane."""

    def __init__(self, angle, plant=None, late=LATE, seconds=6.0, **options):
        c, queue = replace(config(), **options), []
        whole = plant or c.machine
        passive = LoadModel(whole).passive

        def delayed(time, measured):
            queue.append(measured)
            return queue.pop(0)._replace(age=late * c.period) if len(queue) > late else None

        simulated = Plant(whole, period=c.period, command_timeout=0.02)
        self.start = simulated.x[DRIVEN].copy()
        simulated.x[PASSIVE] = passive.resting(self.start)[PASSIVE] + np.radians(angle)
        self.core = assemble(c)
        loop = ClosedLoop(self.core, simulated, change=delayed)
        for _ in range(late):
            loop.cycle()
        self.record = loop.start().run(seconds).recording()
        rows = slice(None, None, 20)
        self.time = self.record.time[rows]
        rest = np.array([passive.resting(x[DRIVEN])[PASSIVE] for x in self.record.x[rows]])
        self.swing = np.degrees(np.linalg.norm(self.record.x[rows, PASSIVE] - rest, axis=1))
        self.period = 2.0 * np.pi / float(passive.modes(self.start)[0].min())
        followed = np.isfinite(self.record.desired[:, 0, 0])
        self.deviation = self.record.desired[followed, 0] - self.start

    def largest(self, k):
        """Largest swing [degrees] in the period k after the release."""
        return self.swing[(self.time >= k * self.period) & (self.time < (k + 1) * self.period)].max()


def assert_damped(released):
    assert released.largest(1) < 0.5 * RELEASED
    assert released.swing.max() < 1.01 * RELEASED and released.largest(1) > released.largest(2) - 0.05
    assert (np.abs(released.deviation) <= config().declaration.swing_deviation).all()
    assert int(released.record.state[-1]) == int(released.record.state[len(released.time) // 2])


@pytest.mark.parametrize('angle', thorough([(RELEASED, 0.0), (0.0, RELEASED)], 1))
def test_released_swing_halves_within_a_period_late_by_6_ms(angle):
    assert_damped(Released(angle, seconds=8.5))


@pytest.mark.long
@pytest.mark.parametrize('corner', thorough(CORNERS, 1))
def test_released_swing_halves_with_a_wrong_model(corner):
    angle = RELEASED * np.sqrt(0.5)
    assert_damped(Released((angle, -angle), machine(*corner), seconds=9.2))


@pytest.mark.parametrize('wrong', thorough([
    {}, *({'mismatch': one} for one in MISMATCHES), *({'pendulum': one} for one in PENDULUMS)], 1), ids=str)
def test_released_swing_halves_on_valves(wrong):
    """Plain sensors, 6 ms late, a model that is wrong; along the boom, which is the harder way."""
    outcome = run(Case(seconds=6.0, released=(RELEASED, 0.0), damped=True, late=LATER, **wrong))
    assert outcome.sound and outcome.largest(0) < np.radians(1.01 * RELEASED)
    assert outcome.largest(1) < np.radians(0.5 * RELEASED)


@pytest.mark.parametrize('angle', thorough([(RELEASED, 0.0), (0.0, RELEASED)], 1))
def test_released_swing_that_nobody_measures_halves_on_valves(angle):
    """By the pressures alone."""
    outcome = run(Case(seconds=6.0, released=angle, damped=True, late=LATER, source='estimated'))
    assert outcome.sound and outcome.largest(0) < np.radians(1.01 * RELEASED)
    assert outcome.largest(1) < np.radians(0.5 * RELEASED)


@pytest.mark.long
@pytest.mark.parametrize('joint', ['tip_pitch', 'tip_roll'])
def test_grapple_of_the_forwarder_loses_its_swing_on_valves(joint):
    c = ControllerConfig.from_files(find_machine('forwarder'), find_config('forwarder_hydraulics.yaml'),
                                    safety=find_config('forwarder_safety.yaml'))
    row, swing = c.machine.coordinates.index(joint), []
    for ratio in (0.0, 0.3):
        plant = HydraulicPlant(c.machine, c.hydraulics, period=c.period)
        rest = plant.x[row]
        plant.x[row] += np.radians(RELEASED)
        loop = ClosedLoop(assemble(replace(c, swing_damping=ratio)), plant).start().run(6.0)
        record = loop.recording()
        assert record.reasons == ()
        swing.append(np.abs(record.x[record.time > 3.0, row] - rest).max())
    assert swing[1] < 0.5 * swing[0] and swing[0] > np.radians(0.7 * RELEASED)


@pytest.mark.long
def test_axes_return_to_their_reference():
    released = Released((4.0, 4.0), seconds=25.0)
    assert np.abs(released.deviation).max() > 0.01
    assert (np.abs(released.deviation[-1]) < 0.02 * config().declaration.swing_deviation).all()
    assert released.swing[-1] < 0.3


@pytest.mark.parametrize('options', thorough([{}, {'swing_damping': 0.0}, {'passive_states': 'hanging'}], 1), ids=str)
def test_without_a_declared_deviation_the_reference_stands_still(options):
    options = options or {'declaration': replace(config().declaration, swing_deviation=np.zeros(4))}
    released = Released((RELEASED, 0.0), seconds=4.0, **options)
    assert np.abs(released.deviation).max() < 1e-6
    assert released.largest(1) > 0.9 * RELEASED or 'passive_states' in options


def test_disabling_ends_the_deviation_within_the_stop_time():
    c = config()
    plant = Plant(c.machine, period=c.period, command_timeout=0.02)
    plant.x[PASSIVE] += np.radians((0.0, RELEASED))
    core = assemble(c)
    loop = ClosedLoop(core, plant).start().run(0.9)
    assert np.abs(core.law.reference.damping.motion[1]).max() > 0.02
    core.disable(loop.now)
    loop.run(0.6)
    assert core.states.state is State.STANDBY and not core.states.reasons
    assert np.abs(core.law.reference.damping.motion[1]).max() < 0.01


def held():
    """A loop at 100 Hz that holds the crane, and where."""
    c = ControllerConfig.from_files(URDF, safety=SAFETY, rate=100.0)
    loop = ClosedLoop(assemble(c), Plant(c.machine, period=c.period, command_timeout=0.02)).start()
    return loop, loop.core.law.desired[0].copy()


@pytest.mark.parametrize('axis', [0, 1])
def test_a_base_that_rocks_moves_no_axis(axis):
    loop, start = held()
    while loop.time < 16.0:
        turn = min(loop.time / 4.0, 1.0) * 0.15 * np.sin(0.4 * loop.time)
        rate = min(loop.time / 4.0, 1.0) * 0.06 * np.cos(0.4 * loop.time)
        orientation, twist = np.zeros(4), np.zeros(6)
        orientation[[axis, 3]], twist[3 + axis] = (np.sin(0.5 * turn), np.cos(0.5 * turn)), rate
        base = BaseMotion(tuple(orientation), tuple(twist))
        loop.plant.set_environment(base)
        loop.core.set_base(base)
        loop.cycle()
        np.testing.assert_allclose(loop.core.law.desired[0], start, atol=5e-3)
    assert loop.core.states.state is State.HOLD
    assert np.abs(loop.plant.x[PASSIVE] - loop.core.law.load.passive.resting(start)[PASSIVE]).max() > 0.005


def test_a_stream_that_ends_leaves_the_machine_at_its_last_point():
    loop, start = held()
    way = np.array([0.1, 0.02, -0.02, 0.05])

    def motion(t):
        share = np.pi * min(t / 3.0, 1.0)
        return start + way * (1.0 - np.cos(share)), way * np.pi / 3.0 * np.sin(share)

    loop.run(6.5, PointStream(motion, 50.0)).run(8.0)
    assert loop.core.states.state is State.HOLD and 'F19' in str(loop.recording().reasons)
    np.testing.assert_allclose(loop.plant.x[DRIVEN], start + 2.0 * way, atol=5e-4)


def test_trajectory_may_begin_where_damping_has_the_machine():
    c = config()
    plant = Plant(c.machine, period=c.period, command_timeout=0.02)
    plant.x[PASSIVE] += np.radians((0.0, RELEASED))
    core = assemble(c)
    loop = ClosedLoop(core, plant).start()
    tolerance = c.declaration.plausibility.start_tolerance
    while np.abs(core.law.reference.damping.motion[0]).max() < 1.5 * tolerance:
        loop.cycle()
    here, still = plant.x[DRIVEN].copy(), np.zeros((2, 4))
    for start in (here, loop.output.desired[0] - core.law.reference.damping.motion[0]):
        core.validate_trajectory(Waypoints(core.manipulator.coordinates, [0.0, 2.0], [start, here], still, still))
    with pytest.raises(TrajectoryError, match='away from where it is at the start'):
        core.validate_trajectory(Waypoints(core.manipulator.coordinates, [0.0, 2.0], [here + 2.0 * tolerance, here],
                                           still, still))


def test_feedback_takes_energy_out_of_every_swing():
    passive, rng = LoadModel(config().machine).passive, np.random.default_rng(0)
    terms = passive.swing_terms(config().machine.initial_position[DRIVEN] + (0.4, 0.05, 0.1, 0.2))
    feedback, frequency = damping_feedback(terms, 0.3, config().declaration.swing_deviation**2)
    assert frequency == pytest.approx(passive.modes(terms.x)[0].min(), rel=1e-3)
    for _ in range(100):
        rate = rng.standard_normal(2)
        u, coupled = feedback @ rate, terms.coupling.T @ rate
        assert u @ coupled > 0.0
        low, high = rng.uniform(0.0, 0.5, (2, 4)) * np.abs(u) * ((-1.0,), (1.0,))
        bounded(u, low, high, coupled)
        assert u @ coupled >= 0.0 and (low <= u).all() and (u <= high).all()


def test_coupling_is_the_acceleration_of_the_swing():
    """Beside forward dynamics with prescribed accelerations of the driven joints."""
    m = config().machine
    passive = LoadModel(m).passive
    terms = passive.swing_terms(m.initial_position[DRIVEN])
    u = np.array((0.1, -0.05, 0.04, 0.2))
    names = m.coordinates
    whole = passive.resting(terms.x)
    motion = m.hybrid_dynamics(whole, np.zeros(6), accelerations=dict(zip(names[DRIVEN], u)),
                               efforts=dict.fromkeys(names[PASSIVE], 0.0)).accelerations
    swing = motion[PASSIVE] - terms.slope @ u
    np.testing.assert_allclose(terms.inertia @ swing, -terms.coupling @ u, rtol=1e-3, atol=0.5)


class Twin:
    """A step of the deviation in NumPy, by the same constants; limits as of `SwingDamping.limit`."""

    def __init__(self, terms, limits):
        self.s, self.limits, self.motion, self.gain = terms, limits, np.zeros((3, len(terms.x))), 0.0
        self.feedback, self.w = damping_feedback(terms, 0.3, limits[0]**2)

    def advance(self, dt, driven, passive, nominal, damps, allowed):
        k, s = kernels, self.s
        deviation, acceleration, jerk, speed, upper, lower = self.limits
        rate = passive[1] - s.slope @ driven[1]
        off = passive[0] - s.rest - s.slope @ (driven[0] - s.x)
        self.swing = np.sqrt(np.max(off**2 + (rate / self.w)**2))
        acts = damps and self.swing > (k.ENDS if self.gain > 0.0 else k.BEGINS)
        self.gain = min(1.0, self.gain + dt / k.RAMP) if acts else 0.0
        x, v, a = self.motion
        most, w = np.minimum(k.SHARE * acceleration, deviation * self.w**2), k.RETURN * self.w
        low = -np.clip(acceleration + nominal[2], 0.0, most)
        high = np.clip(acceleration - nominal[2], 0.0, most)
        u, coupled = np.clip(self.gain * (self.feedback @ rate), low, high), s.coupling.T @ rate
        if u @ coupled < 0.0:
            u[u * coupled < 0.0] = 0.0
        wish = np.clip(u - w * (2.0 * v + w * x), low, high) if allowed else -v / k.BRAKING_TIME
        ahead = nominal[0] + k.LOOK * nominal[1]
        above = np.clip(upper - np.maximum(ahead, nominal[0]), 0.0, k.MARGIN * deviation)
        below = np.clip(np.minimum(ahead, nominal[0]) - lower, 0.0, k.MARGIN * deviation)
        brake = 2.0 * k.BRAKING * most
        fastest = np.minimum(np.sqrt(brake * np.maximum(above - x, 0.0)), np.maximum(speed - nominal[1], 0.0))
        slowest = -np.minimum(np.sqrt(brake * np.maximum(below + x, 0.0)), np.maximum(speed + nominal[1], 0.0))
        wish = np.clip(np.clip(wish, (slowest - v) / k.BRAKING_TIME, (fastest - v) / k.BRAKING_TIME), -most, most)
        step = jerk * max(dt, k.MIN_STEP_S)
        a += np.clip(wish - a, -step, step)
        x += dt * (v + 0.5 * dt * a)
        v += dt * a
        if self.gain == 0.0 and np.abs(self.motion).max() < k.ENDED:
            self.motion[:] = 0.0


def test_kernel_takes_the_steps_of_its_numpy_twin():
    rng, dt, n, p = np.random.default_rng(1), 0.005, 4, 2
    inertia, stiffness = np.diag((600.0, 700.0)), np.array(((4e3, 300.0), (300.0, 5e3)))
    terms = SwingTerms(rng.normal(size=n), rng.normal(size=p), rng.normal(size=(p, n)), 500.0 * rng.normal(size=(p, n)),
                       inertia, stiffness)
    limits = np.array((np.full(n, 0.05), np.full(n, 0.6), np.full(n, 6.0), np.full(n, 0.15), terms.x + 0.04,
                       terms.x - 0.3))
    limits[0, 2] = 0.0          # an axis that may not deviate
    twin, damping = Twin(terms, limits), SwingDamping(lambda x: terms, n, p)
    damping.limit(*limits)
    ended = 0
    for step in range(5000):
        t = step * dt
        size = 0.15 if step < 800 else 0.0
        swing = size * np.array((np.sin(2.6 * t), 2.6 * np.cos(2.6 * t)))[:, None] * (1.0, -0.7)
        driven = np.array((terms.x + 0.02 * np.sin(t), np.full(n, 0.02 * np.cos(t))))
        passive = np.array((terms.rest + terms.slope @ (driven[0] - terms.x), terms.slope @ driven[1])) + swing
        nominal = np.array((driven[0], driven[1], np.full(n, -0.02 * np.sin(t))))
        if step == 600:
            damping.stay()
        if step == 680:
            damping.allow()
        damping.advance(t, driven, passive, nominal)
        allowed = not 600 <= step < 680
        twin.advance(dt if step else 0.0, driven, passive, nominal, allowed, allowed)
        np.testing.assert_allclose(damping.motion, twin.motion, rtol=1e-9, atol=1e-13)
        assert damping.swing == pytest.approx(twin.swing, abs=1e-12) and damping.active == (
            twin.gain > 0.0 or twin.motion.any())
        ended += step > 800 and not damping.active
    assert ended        # it was active, braked, went on, and came to its end
    assert np.abs(damping.motion).max() == 0.0
