"""What a model says of a recorded motion: efforts that it needs, and accelerations that measured efforts give."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from ...api.batch import actuator_states
from ...api.hydraulics.statics import frictionless, hydraulic_records
from ...model.errors import StateError
from ...model.mechanism.description import SLIP_VELOCITY
from ...model.parameters.hydraulics import Friction
from ..signals.filters import SavitzkyGolay, through_gaps

REGIMES = STATIC, SLOW, FAST, REVERSING, NEAR_STOP, HELD = range(6)
REGIME_NAMES = 'static', 'slow', 'fast', 'reversing', 'near_stop', 'held'
SLIDES = 3.0                # slip velocities from which an actuator slides: 99.5 % of the level of the regularised law
TRAVEL = 4.0                # deflections of bristles after which friction has its level, whatever it was before
PRESLIDING = Friction().presliding
JUDGED_REGIMES = slice(NEAR_STOP)     # no model knows the force of an end stop, nor friction that may be anything


@dataclass(frozen=True)
class Prediction:
    """A `Block` and what the model says of it, at the same N instants; everything has the bandwidth of one filter.

    t          (N,) s since the start of the bag
    x, xd, xdd (N, dof) filtered: positions, velocities as recorded or differentiated, accelerations
    v          (N, actuators) velocities of the actuators
    effort     (N, actuators) measured; NaN where unknown
    effort_rate  (N, actuators) its derivative
    effort_id  (N, actuators) inverse dynamics with friction
    effort_near  (N, actuators) the same, with as much of what the model leaves open as was measured: of friction where
               that is undetermined, and of what redundant actuators do against each other
    effort_id_frictionless  (N, actuators)
    xdd_fd     (N, dof) forward dynamics under the measured efforts; unknown ones, and those near a stop, are taken to
               be those that the motion needs, and where none is left it is NaN
    regime     (N, actuators) uint8, one of `REGIMES` for each actuator
    undetermined  (N, actuators) whether friction may be anything up to its level, either way: the actuator stands,
               creeps, or has just turned round
    held       (N, actuators) whether that explains the measured effort, which is not judged then
    residual   (N,) largest disagreement of redundant joints at a rod eye [m]
    core       the rows that count: those of the block without what the filter cannot know at the ends of a record
    period     s
    """

    t: np.ndarray
    x: np.ndarray
    xd: np.ndarray
    xdd: np.ndarray
    v: np.ndarray
    effort: np.ndarray
    effort_rate: np.ndarray
    effort_id: np.ndarray
    effort_near: np.ndarray
    effort_id_frictionless: np.ndarray
    xdd_fd: np.ndarray
    regime: np.ndarray
    undetermined: np.ndarray
    held: np.ndarray
    residual: np.ndarray
    core: slice
    period: float

    @property
    def friction(self):
        """(N, actuators) that the model takes off the efforts."""
        return self.effort_id - self.effort_id_frictionless

    @property
    def near_stop(self):
        """(N, actuators) where an end stop may push, so that the effort is not judged."""
        return self.regime == NEAR_STOP

    @property
    def unclear(self):
        """(N, actuators) where the effort says nothing of causes: near a stop, or with undetermined friction."""
        return self.near_stop | self.undetermined


@dataclass(frozen=True)
class Bounds:
    """What tells regimes of an actuator from each other; m/s where it slides, rad/s where it turns.

    static      below this speed it stands
    slow        below this speed it is slow, from there on fast
    reversal    s around a change of direction in which it reverses
    stop        share of its range that is near its stops; so is what the filter mixes with that.  Where one actuator
                loses more than `slow` of its speed there, it hits its stop, and all are
    """

    static: float = 2e-3
    slow: float = 0.03
    reversal: float = 0.2
    stop: float = 0.01


class Predictor:
    """Predicts block after block.

    manipulator  the model, on a fixed base
    hydraulics   its `Hydraulics`, whose friction counts; None: that of the URDF does
    filter       made by `make_filter`; None: `SavitzkyGolay` with the period of the first block
    bounds       of regimes
    """

    def __init__(self, manipulator, hydraulics=None, filter=None, bounds=None):
        self.manipulator, self.hydraulics = manipulator, hydraulics
        self.filter, self.bounds = filter, bounds or Bounds()
        self.mechanism = frictionless(manipulator, hydraulics)
        self._axes = hydraulic_records(manipulator, hydraulics)[0] if hydraulics else None
        self._seals = np.array(_seals(manipulator, hydraulics)).T
        self._lower, self._upper = manipulator.limits.lower, manipulator.limits.upper
        self._passive = [k for k, name in enumerate(manipulator.coordinates) if name not in manipulator.actuators]
        self.skipped = 0        # rows of blocks too short for the filter, or that the model cannot follow

    def predict(self, block):
        """Return the `Prediction` of a `Block`; None where it is too short for the filter, or out of reach of the
        model at all its rows."""
        if self.filter is None:
            self.filter = SavitzkyGolay(block.period)
        smooth, rows = self.filter, len(block.t)
        if rows < 2 * smooth.half + 1:
            self.skipped += block.core.stop - block.core.start
            return None
        x = smooth(block.x)
        if block.xd is None:
            xd, xdd = smooth(block.x, 1), smooth(block.x, 2)
        else:
            xd, xdd = smooth(block.xd), smooth(block.xd, 1)
        effort = [through_gaps(lambda values, order=order: smooth(values, order), block.effort) for order in (0, 1)]
        core = slice(max(block.core.start, smooth.half), min(block.core.stop, rows - smooth.half))
        if core.start >= core.stop:
            self.skipped += block.core.stop - block.core.start
            return None
        try:
            return self._evaluate(block, (x, xd, xdd), *effort, core)
        except StateError:
            self.skipped += core.stop - core.start
            return None

    def _evaluate(self, block, motion, effort, effort_rate, core):
        x, xd, xdd = motion
        v, positions = self._actuator_motion(x, xd)
        bare = driven_efforts(self.mechanism, x, xd, xdd)
        # measured efforts have lost the corners of friction to the filter; what is viscous has been through it with v
        viscous = self._seals[1] * v
        friction = viscous + self.filter(self.friction(x, xd, xdd, v, bare) - viscous)
        # of positions as recorded: the filter hides a short hit of a stop
        regime = self._regimes(block.x, self._actuator_motion(block.x, xd)[1], v, block.period)
        undetermined, level = self._undetermined(v, positions)
        internal = internal_efforts(self.manipulator, x, effort - bare - friction)
        own = effort - internal
        nearest = np.clip(own - bare, -level, level)
        nearest = bare + internal + np.where(undetermined & np.isfinite(nearest), nearest, friction)
        with np.errstate(invalid='ignore'):     # unknown efforts
            held = undetermined & (np.abs(own - bare) <= level)
        known = np.isfinite(effort) & (regime != NEAR_STOP)
        driving = np.where(known, effort, bare + friction) - friction
        xdd_fd = self.mechanism.forward_dynamics(x, xd, driving)
        xdd_fd[~known.any(axis=1)] = np.nan
        return Prediction(
            t=block.t, x=x, xd=xd, xdd=xdd, v=v, effort=effort, effort_rate=effort_rate, effort_id=bare + friction,
            effort_near=nearest, effort_id_frictionless=bare, xdd_fd=xdd_fd, regime=regime, undetermined=undetermined,
            held=held & (regime != NEAR_STOP), residual=block.residual, core=core, period=block.period)

    def friction(self, x, xd, xdd, v, bare):
        """Return the friction (N, actuators) of states, positive against motion."""
        if self._axes is not None:
            return sliding_friction(self._axes, v)
        return driven_efforts(self.manipulator, x, xd, xdd) - bare

    def efforts(self, x, xd, xdd):
        """Return the efforts (N, actuators) of states with their friction, which no filter has smoothed."""
        bare = driven_efforts(self.mechanism, x, xd, xdd)
        return bare + self.friction(x, xd, xdd, self._actuator_motion(x, xd)[0], bare)

    def _undetermined(self, v, positions):
        """Return where friction is undetermined (N, actuators), and the most that it may be there (N, actuators).

        Seals stick before they slide, by some deflections of their bristles, and the regularised law is below its level
        at some slip velocities.  So friction is what the model says after some travel one way, at some speed.
        """
        level, viscous, slip, presliding = self._seals
        slides = slid(v, positions, SLIDES * slip, TRAVEL * presliding)
        # measured efforts are smoothed
        near = maximum_filter1d(~slides, 2 * self.filter.half + 1, axis=0)
        return near & (level > 0.0), level + viscous * np.abs(v)

    def turning(self, prediction):
        """Return where (N, actuators) friction is undetermined, as long before a change of direction as after it."""
        v, positions = self._actuator_motion(prediction.x, prediction.xd)
        _, _, slip, presliding = self._seals
        later = slid(v[::-1], positions[::-1], SLIDES * slip, TRAVEL * presliding)[::-1]
        return prediction.undetermined | maximum_filter1d(~later, 2 * self.filter.half + 1, axis=0)

    def has_slid(self, prediction):
        """Return where (N, actuators) seals have slid at however low a speed, so that friction follows from that."""
        v, positions = self._actuator_motion(prediction.x, prediction.xd)
        _, _, slip, presliding = self._seals
        slides = slid(v, positions, np.minimum(SLIDES * slip, self.bounds.static), TRAVEL * presliding)
        return ~maximum_filter1d(~slides, 2 * self.filter.half + 1, axis=0)

    def slip_change(self, v, factor):
        """Return what friction (N, actuators) gains where slip velocities are `factor` times those of the model."""
        level, _, slip, _ = self._seals
        if self._axes is None:
            return level * (np.tanh(v / (factor * slip)) - np.tanh(v / slip))
        axes = self._axes.copy()
        axes['slip'] *= factor
        return sliding_friction(axes, v) - sliding_friction(self._axes, v)

    def _actuator_motion(self, x, xd):
        """(v, positions) (N, actuators)."""
        if self.manipulator.actuators == self.manipulator.coordinates:
            return xd, x
        positions, v, _ = actuator_states(self.manipulator, x, xd)
        return v, positions

    def _regimes(self, x, positions, v, period):
        bounds, speed = self.bounds, np.abs(v)
        regime = np.where(speed < bounds.static, STATIC, np.where(speed < bounds.slow, SLOW, FAST)).astype(np.uint8)
        regime[reversals(v, bounds.static, round(bounds.reversal / period))] = REVERSING
        near = self._near(positions, self._lower, self._upper)
        width = 2 * self.filter.half + 1
        lost = maximum_filter1d(v, width, axis=0) - minimum_filter1d(v, width, axis=0)
        # a hit shakes the whole machine, and so does the stop of a coordinate that no actuator is named for
        near |= (near & (lost >= bounds.slow)).any(axis=1, keepdims=True)
        if self._passive:
            limits = self.manipulator.coordinate_limits
            near |= self._near(x[:, self._passive], limits.lower[self._passive],
                               limits.upper[self._passive]).any(axis=1, keepdims=True)
        # rates and friction of what was filtered go through the filter again
        regime[maximum_filter1d(near, 2 * width - 1, axis=0)] = NEAR_STOP
        return regime

    def _near(self, positions, lower, upper):
        margin = self.bounds.stop * (upper - lower)
        with np.errstate(invalid='ignore'):     # ranges without limits
            return (positions < lower + margin) | (positions > upper - margin)


def driven_efforts(manipulator, x, xd, xdd, base=None):
    """Return the efforts (..., actuators) of states (..., dof); passive joints were measured to move like that."""
    if not manipulator.underactuated:
        return manipulator.inverse_dynamics(x, xd, xdd, base=base)
    f = manipulator.generalized_forces(x, xd, xdd, base=base)
    return (np.linalg.pinv(np.swapaxes(manipulator.actuator_map(x), -1, -2)) @ f[..., None])[..., 0]


def internal_efforts(manipulator, x, efforts):
    """Return the part (N, actuators) of efforts that does nothing to the coordinates, and that no motion tells.

    It is in the null space of A' (Wang et al., torques of least norm); zero where efforts are unknown, NaN.
    """
    if manipulator.underactuated or len(manipulator.actuators) <= manipulator.dof:
        return np.zeros_like(efforts)
    known = np.isfinite(efforts)
    A, efforts = np.where(known[..., None], manipulator.actuator_map(x), 0.0), np.where(known, efforts, 0.0)
    return efforts - (A @ (np.linalg.pinv(A) @ efforts[..., None]))[..., 0]


def sliding_friction(axes, v):
    """Return the regularised friction (N, actuators) of AXIS records at velocities; of LuGre's, that of sliding.

    The law of `kernels/hydraulics/friction.py` for rows of a recording.
    """
    level = np.broadcast_to(axes['coulomb'], v.shape)
    if axes['stribeck'].any():
        scale = np.where(axes['stribeck_velocity'] > 0.0, axes['stribeck_velocity'], 1.0)
        fading = np.where(axes['stribeck_velocity'] > 0.0, np.exp(-(v / scale) ** 2), 0.0)
        level = level + axes['stribeck'] * fading
    return level * np.tanh(v / axes['slip']) + axes['viscous'] * v


def slid(v, positions, speeds, travel):
    """Return where (N, n) actuators have travelled by (n,) since they last were slower than (n,) speeds."""
    out, rows = np.zeros(v.shape, dtype=bool), np.arange(len(v))
    way = np.where(np.abs(v) >= speeds, np.sign(v), 0.0)
    for column, sign in enumerate(way.T):
        begins = np.flatnonzero(np.diff(sign, prepend=np.nan) != 0.0)
        first = begins[np.searchsorted(begins, rows, side='right') - 1]
        gone = np.abs(positions[:, column] - positions[first, column])
        out[:, column] = (sign != 0.0) & (gone >= travel[column])
    return out


def _seals(manipulator, hydraulics):
    """Return (level, viscous, v_s, presliding) of each actuator as declared, by the hydraulics or else by the URDF."""
    joints, found = manipulator.machine.description.joints, []
    for name in manipulator.actuators:
        seal = {**hydraulics.cylinders, **hydraulics.axes}[name].friction if hydraulics else None
        found.append((seal.coulomb + seal.stribeck, seal.viscous, seal.slip_velocity, seal.presliding) if seal else
                     (joints[name].friction, joints[name].damping, SLIP_VELOCITY, PRESLIDING))
    return found


def reversals(v, still, reach):
    """Return where (N, n) velocities are within `reach` rows of a change of direction; below `still` there is none."""
    rows = np.arange(len(v))
    out = np.zeros(v.shape, dtype=bool)
    for column, velocity in enumerate(v.T):
        moving = np.flatnonzero(np.abs(velocity) >= still)
        turns = np.flatnonzero(velocity[moving[1:]] * velocity[moving[:-1]] < 0.0)
        # what stands for longer than that between two ways was at rest, and does not reverse
        before, after = moving[turns], moving[turns + 1]
        quick = after - before <= 2 * reach
        middle = (before + after)[quick] // 2
        if middle.size:
            nearest = np.searchsorted(middle, rows)
            left, right = middle[np.maximum(nearest - 1, 0)], middle[np.minimum(nearest, len(middle) - 1)]
            out[:, column] = np.minimum(np.abs(rows - left), np.abs(right - rows)) <= reach
    return out
