"""What a reference may do, and the check of its samples against that."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...model.errors import ShapeError
from ...model.parameters.hydraulics import VALVE, VELOCITY
from ...model.units import mistaken_unit
from ..monitors.singularity import toggle_gauge

SPEED_MARGIN = 1.001        # a reference at exactly the rated speed passes, and so with acceleration and jerk
POSITION_MARGIN = 1e-9      # m or rad: so does one that ends exactly at a limit
FAR = 5.0                   # times the limit of a joint, from which a point may be in another unit
AWAY = 1e-6                 # of the singularity measure
EASE = 0.05                 # s in which a stop takes up its deceleration, and gives it up again
DECELERATION = 0.5          # m/s^2 or rad/s^2 of a stop where none is declared
JERK = 20.0                 # m/s^3 or rad/s^3 where none is declared
SWING_WAY = 0.01            # m or rad that a stop on oil may go farther so that the machine does not swing after it
SWING_WAY_BY_FORCE = 0.012  # the same of axes at force level, which follow their reference without a lag
CORRECTING = 0.35           # of it
STREAMING = 0.2             # of it: corrections of points whose stamps are off open valves no faster than they may
RATED = ('per second', 'per second^2', 'per second^3')


@dataclass(frozen=True, eq=False)
class ReferenceLimits:
    """Declared limits of a reference, beside the positions and speeds of the URDF.

    Numbers, or (actuators,) in the order of `manipulator.actuators`; by default nothing is limited.

    acceleration, jerk  m/s^2, m/s^3 or rad/s^2, rad/s^3
    deceleration        m/s^2 or rad/s^2 of a stop
    soft_margin         m or rad before the limits of the joints, where a stop shall have ended
    start_tolerance     m or rad of the coordinates, between where the machine is and where a trajectory starts
    sigma_stop          `toggle_measure` that a trajectory must stay above
    stream_timeout      s that a streamed point is carried on at its velocity
    swing_deviation     m or rad that active damping of a swing may take the reference away by; 0: it does not
    speed_change_time   s over which a change by half of the speed of a path is spread, but for stops
    half_swing          s of half a period of the machine on its oil, that the halves of a stop are apart; 0: none
    swing_way           m or rad that a stop may go farther for that
    stream_lag          s at the rated speed by which a reference that is slowed down may be behind streamed points
    carrying            function of x (dof,) that returns the actuator that needs most of its largest effort to carry
                        the machine there, and what share of it; None: that is not looked at
    """

    acceleration: object = np.inf
    jerk: object = np.inf
    deceleration: object = DECELERATION
    soft_margin: object = 0.0
    start_tolerance: float = np.inf
    sigma_stop: float = 0.0
    stream_timeout: float = 0.1
    stream_lag: float = 0.5
    stream_delay: float = 0.0
    swing_deviation: object = 0.0
    speed_change_time: float = 0.0
    half_swing: float = 0.0
    swing_way: object = SWING_WAY
    carrying: object = None

    @classmethod
    def declared(cls, safety, stream_delay=0.0, law=None):
        """Those of a `SafetyDeclaration`, the delay of streamed points [s], and those that a `ControlLaw` needs.

        What a reference is behind its points is made up for at half speed within the time of a stop.
        """
        swing, carrying = (), None
        if law:
            on_oil = [interface in (VALVE, VELOCITY) for interface in law.interfaces]
            swing = (law.speed_change_time, 0.5 * law.swing_period, np.where(on_oil, SWING_WAY, SWING_WAY_BY_FORCE))
            # loops that are closed by iteration, and what hangs, begin at their last pose, which is that of the machine
            if law.load.passive is None and not law.manipulator.machine.iterates:
                carrying = partial(_carrying, law, _largest_efforts(law, np.asarray(safety.command_limit)))
        return cls(safety.acceleration, safety.jerk, safety.deceleration, safety.soft_margin,
                   safety.plausibility.start_tolerance, safety.plausibility.sigma_stop, safety.timeouts.stream,
                   0.5 * safety.stop_time, stream_delay, safety.swing_deviation, *swing, carrying=carrying)


def _largest_efforts(law, limit):
    """(2, actuators) [N, N m] outward and inward: of the supply through open valves, else by the limits of commands."""
    most = np.array((limit, limit)) * law.area
    for row, (name, interface) in enumerate(zip(law.manipulator.actuators, law.interfaces)):
        if interface in (VALVE, VELOCITY):
            most[:, row] = law.hydraulics.supply.largest_forces(law.hydraulics.cylinders[name])
    return most


def _carrying(law, most, x):
    """As `ReferenceLimits.carrying`, of largest efforts (2, actuators)."""
    efforts = law.load.holding_efforts(x)
    shares = np.abs(efforts) / np.where(efforts > 0.0, *most)
    return law.manipulator.actuators[shares.argmax()], float(shares.max())


class ReferenceChecks:
    """The limits of the joints that have any: the coordinates, and actuators that are none.

    Their columns are those of every array here.
    """

    def __init__(self, manipulator, limits):
        m = self._manipulator = manipulator
        self.limits, self.names = limits, m.coordinates
        bounds = m.coordinate_limits
        others = [name for name in m.actuators if name not in m.coordinates]
        self._columns = None
        if others:
            self.names += tuple(others)
            self._columns = [m.joints.index(name) for name in self.names]
            rows = [m.actuators.index(name) for name in others]
            bounds = [np.append(of_coordinates, of_actuators[rows])
                      for of_coordinates, of_actuators in zip(bounds, m.limits)]
        self.lower, self.upper, self.speed = (np.array(bound, dtype=float) for bound in bounds[:3])
        self.acceleration = self.of_actuators('acceleration', limits.acceleration, np.inf)
        self.jerk = self.of_actuators('jerk', limits.jerk, np.inf)
        self.deceleration = self.of_actuators('deceleration', limits.deceleration, np.inf)
        self.swing_way = self.of_actuators('swing_way', limits.swing_way, np.inf)
        # of axes that slow down by themselves
        self.braking = np.where(np.isfinite(self.deceleration), self.deceleration, DECELERATION)
        self.gentle = np.minimum(self.braking, self.acceleration)      # accelerations that nothing forces
        # of deviations that damp a swing; of what points of a stream disagree by
        jerk = np.where(np.isfinite(self.jerk), self.jerk, JERK)
        self.correcting_jerk, self.streaming_jerk = CORRECTING * jerk, STREAMING * jerk
        margin = self.of_actuators('soft_margin', limits.soft_margin, 0.0)
        self.soft_lower, self.soft_upper = self.lower + margin, self.upper - margin
        self.has_jerk = bool(np.isfinite(self.jerk).any())
        self.mapped = self._columns is not None
        self.slow = m.machine.iterates      # which takes some microseconds a state
        # where no other joints are looked at, nothing else says whether a loop closes
        self._gauge = toggle_gauge(m) if limits.sigma_stop > 0.0 or not self.mapped else None
        self._bounds = [SPEED_MARGIN * limit for limit in (self.speed, self.acceleration, self.jerk)]
        self._lowest, self._highest = self.lower - POSITION_MARGIN, self.upper + POSITION_MARGIN

    def of_actuators(self, what, values, otherwise):
        """A number, or (actuators,), as an array of our columns; coordinates that are no actuators get `otherwise`."""
        actuators = self._manipulator.actuators
        values = np.asarray(values, dtype=float)
        if values.shape not in ((), (len(actuators),)):
            raise ShapeError(f'{what} has shape {values.shape}; expected a number, or one for each of {actuators}')
        if not (values >= 0.0).all():
            raise ShapeError(f'{what} = {values.tolist()}: expected numbers that are not negative')
        given = dict(zip(actuators, np.broadcast_to(values, len(actuators)).tolist()))
        return np.array([given.get(name, otherwise) for name in self.names])

    def columns(self, x, xd, xdd):
        """(3, columns) or (3, N, columns) of states x, xd, xdd, each (dof,) or (N, dof).

        Raises a PsdynError where they are of other joints too and no loop closes.
        """
        if self._columns is None:
            return np.array([x, xd, xdd])
        if np.ndim(x) == 2:
            return np.stack([self.columns(*state) for state in zip(x, xd, xdd)], axis=1)
        _, *joints = self._manipulator.joint_state(x, xd, xdd)
        return np.array(joints)[:, self._columns]

    def beyond(self, joints, points, start):
        """As `fault`, of points (N, n) of some joints and start (n,): the first beyond the limits of a joint."""
        for k, column in ((self.names.index(name), column) for column, name in enumerate(joints) if name in self.names):
            values, first, name = points[:, column], start[column], self.names[k]
            outside = ~((values >= min(self._lowest[k], first)) & (values <= max(self._highest[k], first)))
            if outside.any():
                row = int(outside.argmax())
                value, low, high = map(float, (values[row], self.lower[k], self.upper[k]))
                unit = 'm' if self._manipulator.machine.description.joints[name].type == 'prismatic' else 'rad'
                guess = mistaken_unit(value, value, low, high, unit) if abs(value) > FAR * max(-low, high) else ''
                return row, f'{value:.6g} is beyond the limit of {name}; expected {low:.6g} to {high:.6g} {unit}{guess}'

    def fault(self, x, states, start, jerk=None):
        """(row, what limit it breaks as the end of a sentence) of the first of N states that does; None: none does.

        x       (N, dof), or the last of them (1, dof), which alone is held against singularities then
        states  (3, N, columns) from `columns`
        start   (columns,) positions at the start of the motion: one that begins outside of the limits, or too near to
                a singularity, may come back, or stay, but not go further
        jerk    (N, columns), or None
        """
        position, velocity, acceleration = states
        lower, upper = np.minimum(self._lowest, start), np.maximum(self._highest, start)
        # a number that is none satisfies no comparison
        kept = [(position >= lower) & (position <= upper), np.abs(velocity) <= self._bounds[0],
                np.abs(acceleration) <= self._bounds[1]]
        if jerk is not None:
            kept.append(np.abs(jerk) <= self._bounds[2])
        row, first = len(position), []
        if not all(good.all() for good in kept):
            first = [row if good.all() else int(good.all(axis=1).argmin()) for good in kept]
            row = min(first)
        near = self._near(x[:row + 1], start) if self._gauge is not None else None
        if near is not None or not first:
            return near
        kind = first.index(row)
        i = int(kept[kind][row].argmin())
        name = self.names[i]
        if kind == 0:
            return row, (f'takes {name} to {position[row, i]:.4g}, outside of [{self.lower[i]:.4g}, '
                         f'{self.upper[i]:.4g}]')
        value = (None, velocity, acceleration, jerk)[kind][row, i]
        limit = (None, self.speed, self.acceleration, self.jerk)[kind][i]
        verb = ('moves', 'accelerates', 'jerks')[kind - 1]
        return row, f'{verb} {name} at {value:.3g} {RATED[kind - 1]}, limit {limit:.3g}'

    def overload(self, x, start):
        """What the motion asks too much of at x (dof,), as the end of a sentence, beyond what `start` (dof,) does.

        None: nothing.
        """
        if self.limits.carrying is None:
            return None
        name, share = self.limits.carrying(x)
        if share <= SPEED_MARGIN or share <= self.limits.carrying(start)[1]:
            return None
        return f'comes to where {name} would need {share:.3g} of its largest effort to carry the machine'

    def _near(self, x, start):
        measures, names = ([value] for value in self._gauge(x[0])) if len(x) == 1 else self._gauge.rows(x)
        measures = np.asarray(measures)
        near = (measures < self.limits.sigma_stop) | (measures == 0.0)
        if not near.any():
            return None
        # what begins too near may go away from there
        floor = min(self.limits.sigma_stop, self._gauge(start[:x.shape[1]])[0] - AWAY)
        near = (measures < floor) | (measures == 0.0)
        if not near.any():
            return None
        row = int(near.argmax())
        if measures[row] == 0.0:
            return row, f'takes {names[row]} to where its loop does not close'
        return row, (f'comes too near to a singularity of {names[row]}: {measures[row]:.3g} of its best transmission, '
                     f'limit {self.limits.sigma_stop:.3g}')

    def speed_rate(self, states):
        """How fast [1/s] the speed of a path may change at these states (3, N, columns), all of them.

        What that adds to the accelerations is half of the deceleration at most, and what their limits leave, but a
        tenth of the deceleration in any case.
        """
        left = np.where(np.isfinite(self.acceleration), self.acceleration - np.abs(states[2]), np.inf)
        room = np.clip(left, 0.1 * self.braking, 0.5 * self.braking)
        return float((room / np.maximum(np.abs(states[1]), 1e-9)).min())
