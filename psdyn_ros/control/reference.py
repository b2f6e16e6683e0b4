"""The reference that a control law follows: a position to hold, or a trajectory mapped to the coordinates."""

import numpy as np

from .trajectory import TrajectoryError, cubic_curve, quintic_curve, smooth_accelerations

CHECKS = 2000               # samples of an accepted trajectory: some 10 ms, what the control process may lose on it
CHECKS_PER_SEGMENT = 8
GENERAL_CHECKS = 120        # where loops are closed by iteration, which takes longer
SPEED_MARGIN = 1.001        # a reference at exactly the rated speed passes
POSITION_MARGIN = 1e-9      # m or rad: so does one that ends exactly at a limit


class ReferenceMotion:
    """Reference position, velocity and acceleration of the coordinates as functions of time.

    It knows nothing until `hold` is called. A trajectory starts from the reference of that moment, whatever
    it is, so that position and velocity never jump; its points at or before its start are passed over. After
    its end the last position is held. A trajectory that starts later waits, and the present motion goes on
    until then.

    Times are seconds on any one clock.
    """

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self._motion = None         # _Hold or _Follow in progress
        self._next = None           # the _Follow that takes over at its start
        self._maps = {}             # joints of a trajectory -> JointMap

    @property
    def started(self):
        """Whether there is a reference at all."""
        return self._motion is not None

    def hold(self, x):
        """Hold the position x (dof,) from now on and forget every trajectory."""
        self._motion = _Hold(x)
        self._next = None

    def follow(self, waypoints, now, start=None):
        """Follow the waypoints, their times counted from `start` (now, where it is None).

        Raises a PsdynError and changes nothing when they cannot be followed.
        """
        if not self.started:
            raise TrajectoryError('no state was measured yet, so there is nowhere to start from')
        if set(waypoints.joints) == set(self._manipulator.coordinates):
            waypoints = waypoints.ordered(self._manipulator.coordinates)
        origin = now if start is None else start
        motion = self._through(waypoints, max(now, origin), origin + waypoints.times)
        self._check(motion)
        self.sample(now)            # a trajectory that was due until now is the one in progress
        self._next = motion

    def sample(self, t):
        """(x, xd, xdd) of the reference at time t, each (dof,); valid until the next call."""
        if self._next is not None and t >= self._next.start:
            self._motion, self._next = self._next, None
        return self._motion.sample(t)

    def moving(self, t):
        """Whether a trajectory is in progress or waiting at time t."""
        return self._next is not None or (self.started and t < self._motion.end)

    def ahead(self, t):
        """As `sample`, for a time to come: a trajectory that starts until then is looked at, but does not begin."""
        motion = self._next if self._next is not None and t >= self._next.start else self._motion
        return motion.sample(t)

    def _through(self, waypoints, start, times):
        """The `_Follow` that leaves the reference of time `start` and passes the waypoints later than that."""
        ahead = times > start
        if not ahead.any():
            raise TrajectoryError(f'the trajectory is over: its last point lies {start - times[-1]:.3g} s in the past, '
                                  'or is no later than its start')
        joint_map = self._map(waypoints.joints)
        p0, v0, a0 = self._in_joints(waypoints.joints, self.ahead(start))
        knots = np.concatenate([[start], times[ahead]])
        positions = np.vstack([p0, waypoints.positions[ahead]])
        if waypoints.velocities is None:
            return _Follow(cubic_curve(knots, positions, v0), joint_map)
        velocities = np.vstack([v0, waypoints.velocities[ahead]])
        if waypoints.accelerations is None:
            accelerations = smooth_accelerations(knots, positions, velocities, a0)
        else:
            accelerations = np.vstack([a0, waypoints.accelerations[ahead]])
        return _Follow(quintic_curve(knots, positions, velocities, accelerations), joint_map)

    def _map(self, joints):
        if joints == self._manipulator.coordinates:
            return _AlreadyMapped
        if joints not in self._maps:
            surplus = len(joints) - self._manipulator.dof
            if surplus > 0:
                raise TrajectoryError(f'the trajectory names {len(joints)} joints, {surplus} more than this machine of '
                                      f'{self._manipulator.dof} degrees of freedom can follow independently')
            self._maps[joints] = self._manipulator.joint_map(joints)
        return self._maps[joints]

    def _in_joints(self, joints, reference):
        """Rows position, velocity, acceleration (3, n) of the joints named when the machine is at `reference`."""
        names, *values = self._manipulator.joint_state(*reference)
        columns = [names.index(name) for name in joints]
        return np.asarray(values)[:, columns]

    def _check(self, motion):
        """Raise TrajectoryError where the motion leaves the limits, or whatever the map raises where no loop closes."""
        general = self._manipulator.machine.general
        checked = _Checked(self._manipulator)
        for segment, t in motion.check_times(GENERAL_CHECKS if general else CHECKS):
            fault = checked.fault(*motion.sample(t)[:2])
            if fault:
                where = f'on the way to its point at {motion.knots[segment + 1] - motion.start:.3f} s the trajectory'
                raise TrajectoryError(f'{where} {fault}')


class _Checked:
    """The joints whose limits count: the coordinates, and actuators that are none."""

    def __init__(self, manipulator):
        m = self._manipulator = manipulator
        self._names, self._limits = m.coordinates, m.coordinate_limits
        self._columns = None
        others = [name for name in m.actuators if name not in m.coordinates]
        if others:
            self._names += tuple(others)
            self._columns = [m.joints.index(name) for name in self._names]
            rows = [m.actuators.index(name) for name in others]
            self._limits = [np.append(of_coordinates, of_actuators[rows])
                            for of_coordinates, of_actuators in zip(self._limits, m.limits)]

    def fault(self, x, xd):
        """What limit the state x, xd (dof,) breaks, as the end of a sentence; empty where it breaks none."""
        if self._columns:
            _, x, xd, _ = self._manipulator.joint_state(x, xd)
            x, xd = x[self._columns], xd[self._columns]
        elif self._manipulator.machine.general:
            self._manipulator.joint_state(x, xd)        # raises where no loop closes
        lower, upper, speed, _ = self._limits
        outside = (x < lower - POSITION_MARGIN) | (x > upper + POSITION_MARGIN)
        if outside.any():
            i = int(np.argmax(outside))
            return f'takes {self._names[i]} to {x[i]:.4g}, outside of [{lower[i]:.4g}, {upper[i]:.4g}]'
        fast = np.abs(xd) > SPEED_MARGIN * speed
        if fast.any():
            i = int(np.argmax(fast))
            return f'moves {self._names[i]} at {xd[i]:.3g} per second, limit {speed[i]:.3g}'
        return ''


class _Hold:
    """Standing still at x (dof,)."""

    start = end = -np.inf

    def __init__(self, x):
        self._rest = np.array(x, dtype=float), np.zeros(len(x)), np.zeros(len(x))

    def sample(self, t):
        return self._rest


class _AlreadyMapped:
    """In the place of a JointMap where the joints of a trajectory are the coordinates."""

    @staticmethod
    def motion(position, velocity, acceleration):
        return position, velocity, acceleration


class _Follow:
    """A curve in the joints of a trajectory, mapped to the coordinates; at rest after its end."""

    def __init__(self, curve, joint_map):
        self._curve, self._map = curve, joint_map
        self.knots, self.start, self.end = curve.knots, curve.start, curve.end
        position = curve.sample(self.end)[0]
        zero = np.zeros_like(position)
        self._rest = _Hold(joint_map.motion(position, zero, zero)[0]).sample(self.end)

    def sample(self, t):
        return self._rest if t >= self.end else self._map.motion(*self._curve.sample(t))

    def check_times(self, checks):
        """Some `checks` (segment, time) pairs that cover the motion, at least the knots."""
        segments = len(self.knots) - 1
        steps = min(max(checks // segments, 1), CHECKS_PER_SEGMENT)
        for k in range(segments):
            for i in range(1, steps + 1):
                yield k, self.knots[k] + (self.knots[k + 1] - self.knots[k]) * i / steps
