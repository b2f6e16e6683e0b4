"""The reference that a control law follows: a position to hold, a trajectory, streamed points, or a stop."""

from math import inf, sqrt

import numpy as np

from ...model.errors import PsdynError
from .reference_limits import EASE, ReferenceChecks, ReferenceLimits
from .segments import SAME, Follow, Free, Halt, Hold, Path, PathTime, bridge, bridge_rows, in_path_time
from .stop_motion import coming_to_rest, stop_of_path, within_limits
from .stream import Stream, fault_after, fault_of, streamed_point
from .stream_shaper import StreamShaper
from .trajectory import TrajectoryError, TrajectoryJointsError, TrajectoryOverError
from .validated_trajectory import AT_REST, ValidatedTrajectory

SAME_STATE = 1e-7           # m, m/s, m/s^2 or rad; what rounding may make of a state
SPEED_RATE = 4.0            # 1/s that the speed of a path changes by at most, where nothing bounds it
BRIDGES = 8                 # times that the length of a bridge is doubled
SHORTEST_BRIDGE = 0.02      # s
LARGE_CHANGE = 0.5          # of the speed of a path, which `ReferenceLimits.speed_change_time` refers to
EASE_IN = 0.1               # s of a bridge that only spares a step of the acceleration
COMMANDED = 1e-3            # s; a first point this near to the start says where the start is meant to be


class ReferenceMotion:
    """Reference position, velocity and acceleration of the coordinates as functions of time.

    It knows nothing until `hold` is called. A trajectory starts from the reference of its start, whatever
    it is, so that position and velocity never jump; its points at or before its start are passed over. After its end
    the last position is held. A trajectory that starts later waits, and the present motion goes on until then.

    A trajectory runs in path time, whose speed `set_speed` changes; streamed points and stops run by the clock.
    Times are seconds on any one clock.
    """

    def __init__(self, manipulator, limits=None):
        self._manipulator = manipulator
        self._motion = None         # Hold, Follow, Halt, Free or Stream in progress
        self._next = None           # the Follow that takes over at its start
        self._pace = PathTime()
        self._speed = 1.0           # that is asked for
        self._now = None            # time of the last sample
        self._seen = -inf           # until which a law has looked ahead
        self._bridge_fault = ''     # what limit the last bridge broke
        self._maps = {}             # joints of a trajectory -> JointMap
        self.shaping = None         # of trajectories that begin at rest, as of `ValidatedTrajectory`
        self.shaped_by = 'nothing: no motion was executed yet'      # of the last one, as of `ValidatedTrajectory`
        self._stream_shaper = None  # of the stream in progress, or None
        self._damping = None        # `SwingDamping`, whose deviation is in the samples
        self.abandoned = ''         # why the last trajectory that waited did not begin
        self.limits = limits or ReferenceLimits()

    @property
    def limits(self):
        """`ReferenceLimits`, for everything that is accepted from then on."""
        return self._limits

    @limits.setter
    def limits(self, limits):
        self._checks = ReferenceChecks(self._manipulator, limits)
        self._limits = limits
        self._limit_damping()

    @property
    def damping(self):
        """`SwingDamping`, whose deviation is in the samples; None: there is none."""
        return self._damping

    @damping.setter
    def damping(self, damping):
        self._damping = damping
        self._limit_damping()

    def _limit_damping(self):
        if self._damping is not None:
            c, n = self._checks, self._manipulator.dof
            deviation = c.of_actuators('swing_deviation', self._limits.swing_deviation, 0.0)
            self._damping.limit(*(limit[:n] for limit in (deviation, c.acceleration, c.correcting_jerk, c.speed,
                                                          c.soft_upper, c.soft_lower)))

    @property
    def shaped(self):
        """Whether a shaped trajectory is in progress, whose swing cancels itself."""
        motion = self._motion
        return (isinstance(motion, Follow) and not isinstance(motion, Halt) and motion.path.shaped
                and not motion.over(self._now))

    @property
    def started(self):
        """Whether there is a reference at all."""
        return self._motion is not None

    def hold(self, x):
        """Hold the position x (dof,) from now on and forget every trajectory."""
        self._motion, self._next = Hold(x), None
        if self._damping is not None:
            self._damping.restart()

    # trajectories

    def follow(self, waypoints, now, start=None):
        """Follow the waypoints, their times counted from `start` (now, where it is None).

        Raises a PsdynError and changes nothing when they cannot be followed.
        """
        validated = self.validate_trajectory(waypoints, now, start)
        validated.advance()
        self.execute(validated, now)

    def validate_trajectory(self, waypoints, now, start=None, replace=True, state=None):
        """`ValidatedTrajectory` of these waypoints, to be checked by its `advance`; nothing changes until `execute`.

        start    time that the times of the waypoints count from; None: now, or when it is accepted if at rest then
        replace  whether it may take the place of a trajectory that is in progress
        state    x (dof,) measured; it must lie within the start tolerance of where the reference is
        """
        if not self.started:
            raise TrajectoryError('no state was measured yet, so there is nowhere to start from')
        if not replace and self.moving(now):
            raise TrajectoryError('another motion is in progress, and this trajectory is not to replace it')
        if set(waypoints.joints) == set(self._manipulator.coordinates):
            waypoints = waypoints.ordered(self._manipulator.coordinates)
        origin = now if start is None else start
        begin = max(now, origin)
        times = (origin - begin) + waypoints.times
        first = int(np.searchsorted(times, 0.0, side='right'))
        if first == times.size:
            raise TrajectoryOverError(f'the trajectory is over: its last point lies {abs(times[-1]):.3g} s in the '
                                      'past, or is no later than its start', times.size - 1)
        joint_map = self._map(waypoints.joints)
        waits = self._next is not None and self._next.start > now       # and will not begin if this one is accepted
        running = self._next if self._next is not None and not waits else self._motion
        there = in_path_time(running, begin)
        entry = self._in_joints(waypoints.joints, there)
        deviated = self._in_joints(waypoints.joints, self._deviated(begin, there))
        self._check_start(waypoints, times, first, np.array([entry[0], deviated[0]]), now, state)
        return ValidatedTrajectory(self._checks, waypoints, joint_map, begin, start is None,
                                   (first, times[first:]), entry, self.shaping)

    def execute(self, validated, now):
        """Let a trajectory that passed its checks begin, at its start or now.

        Where the reference is no more what the trajectory was made to start from, a bridge leads over to it. Raises
        TrajectoryError, and changes nothing, where its checks are not over, it is over itself, or no bridge keeps the
        limits.
        """
        if not validated.advance(0.0):
            raise TrajectoryError('the checks of this trajectory have not come to their end')
        if not self.started:
            raise TrajectoryError('there is no reference to start from')
        self._nominal(now)          # a trajectory that was due until now is the one in progress
        start = validated.start
        if now > start and validated.at_once and self.at_rest(now):
            start = now
        follow = Follow(validated.path, self._pace, start)
        follow.speed_rate = validated.speed_rate
        follow = self._entering(follow, max(now, start))
        self._next, self.abandoned, self.shaped_by = follow, '', validated.shaped_by
        self._allow_damping()
        if now >= start:
            self._begin(follow, now)

    def _entering(self, follow, t):
        """The same, with a bridge where the reference at time t is elsewhere; raises TrajectoryError."""
        path, joints = follow.path, follow.path.joints
        at = follow.path_time(t)
        if at >= path.curve.end:
            raise TrajectoryOverError('the trajectory is over: it ended while it was looked at')
        here = self._in_joints(joints, in_path_time(self._motion, t))
        there = (follow.entry or path).curve.sample(at).copy()
        gap = here - there
        same = np.abs(gap) <= SAME_STATE * (1.0 + np.abs(here))
        if same[:2].all():
            # a spline through positions alone starts with an acceleration of its own
            eased = None if same[2].all() or not here[1:].any() else self._bridged(follow, t, here, EASE_IN)
            return eased or follow
        tolerance = self._limits.start_tolerance
        if np.abs(gap[0]).max() > tolerance:
            worst = int(np.abs(gap[0]).argmax())
            raise TrajectoryError(f'{joints[worst]} has moved {abs(gap[0, worst]):.3g} away from the trajectory while '
                                  f'it was looked at, start tolerance {tolerance:.3g}')
        room = 0.5 * float(self._checks.braking.min())
        seconds = max(SHORTEST_BRIDGE, sqrt(6.0 * np.abs(gap[0]).max() / room), 4.0 * np.abs(gap[1]).max() / room)
        left = path.curve.end - at
        for _ in range(BRIDGES):
            bridged = self._bridged(follow, t, here, min(seconds, left))
            if bridged is not None:
                return bridged
            if seconds >= left:
                break
            seconds *= 2.0
        raise TrajectoryError('no way from the present motion over to the trajectory keeps the limits: it '
                              f'{self._bridge_fault}')

    def _bridged(self, follow, t, here, seconds):
        """The same, from the state `here` (3, n) at time t over a bridge of so many seconds; None: it breaks limits."""
        path, at = follow.path, follow.path_time(t)
        end = min(at + seconds, path.curve.end)
        there = path.curve.sample(end).copy()
        self._bridge_fault = self._fault(path, bridge_rows(at, end, here, there), end - at)
        if self._bridge_fault:
            return None
        entered = Follow(path, self._pace, t, Path(bridge(at, end, here, there), path.map, path.joints))
        entered.bind(self._pace, t, at)
        entered.speed_rate = follow.speed_rate
        return entered

    def _fault(self, path, rows, seconds):
        """What limit samples (4, N, n) of a bridge of so many seconds break, as the end of a sentence; empty: none."""
        checks, motion = self._checks, rows[:3]
        try:
            if not path.plain:
                motion = np.array([path.map.motion(*motion[:, i]) for i in range(rows.shape[1])]).swapaxes(0, 1)
            states = checks.columns(*motion)
        except PsdynError as error:
            return f'cannot be followed: {error}'
        jerk = None
        if checks.has_jerk:
            exact = path.plain and not checks.mapped
            jerk = rows[3] if exact else np.gradient(states[2], seconds / (rows.shape[1] - 1), axis=0)
        found = checks.fault(motion[0], states, states[0, 0], jerk)
        return '' if found is None else found[1]

    def _begin(self, follow, t):
        """Make the waiting motion that of the present; t at or after its start."""
        if not isinstance(self._motion, Follow) or isinstance(self._motion, Halt):
            moves = np.abs(self._motion.sample(t)[1]).max() > SAME_STATE
            path_time = follow.path_time(t)
            self._pace.restart(1.0 if moves else self._speed, t)
            follow.bind(self._pace, t, path_time)
        self._motion, self._next = follow, None
        self._aim(t)

    def _take_over(self, t):
        """Let the waiting motion begin, late or not, if it still can."""
        follow, self._next = self._next, None
        follow.bind(self._pace, follow.start, follow.path.curve.start)
        try:
            self._begin(self._entering(follow, follow.start), follow.start)
        except TrajectoryError as error:
            self.abandoned = str(error)
            self.stop(t)

    # samples

    def sample(self, t):
        """(x, xd, xdd) of the reference at time t, each (dof,); valid until the next call."""
        return self._deviated(t, self._nominal(t))

    def _nominal(self, t):
        """The same without the deviation that damps a swing."""
        if self._next is not None and t >= self._next.start:
            self._take_over(t)
        self._now = t
        return self._motion.sample(t)

    def _deviated(self, t, sample):
        if self._damping is None or not self._damping.active:
            return sample
        sample = np.array(sample)
        self._damping.add((t,), sample[None])
        return sample

    def ahead(self, t):
        """As `sample`, for a time to come: a trajectory that starts until then is looked at, but does not begin.

        What is to come of a change of the speed under way is in it.
        """
        motion = self._next if self._next is not None and t >= self._next.start else self._motion
        return self._deviated(t, motion.sample(t))

    def samples(self, times, out):
        """Write `sample` of times[0], and `ahead` of two later ones, into out (3, 3, dof)."""
        if self._next is None or times[-1] < self._next.start:
            self._now = times[0]
            for row, t in zip(out, times):
                row[:] = self._motion.sample(t)
            if self._damping is not None and self._damping.active:
                self._damping.add(times, out)
        else:
            for row, t, look in zip(out, times, (self.sample, self.ahead, self.ahead)):
                row[:] = look(t)

    def path(self, times, out):
        """`Follow.polynomials`, for those who take the samples themselves; or None, and `samples` are in out."""
        self._seen = times[-1]
        deviates = self._damping is not None and self._damping.active
        if not deviates and (self._next is None or times[-1] < self._next.start):
            path = self._motion.polynomials(times)
            if path is not None:
                self._now = times[0]
                return path
        self.samples(times, out)
        return None

    def moving(self, t):
        """Whether a motion is in progress or waiting at time t."""
        return self._next is not None or (self.started and not self._motion.over(t))

    def at_rest(self, t):
        """Whether the reference stands still at time t, and nothing in progress will move it."""
        return self.started and self._motion.over(t)

    @property
    def end(self):
        """Time at which the motion in progress ends at the speed that is asked for; -inf: it has none, inf: never."""
        return self._motion.end if self.started else -inf

    def progress(self, t):
        """Share, 0 to 1, of the motion in progress that is over at time t; 1 where there is none."""
        return self._motion.progress(t) if self.started else 1.0

    # speed

    @property
    def speed_target(self):
        """The speed that was asked for."""
        return self._speed

    def speed(self, t):
        """Seconds of path time in a second of the clock at time t."""
        return self._pace.at(t)[1]

    def set_speed(self, scale, t=None):
        """Let the present and every later trajectory run at this speed, 0 to 1.

        The speed changes smoothly: by as much a second as adds at most half of the declared decelerations to the
        accelerations of the path, and no more than their limits leave. Stops keep to the clock. Streamed points do so
        too as long as they are no faster than this share of the rated speeds, else the reference falls behind them.

        t  when it begins to change, by default at the last sample
        """
        if not 0.0 <= scale <= 1.0:
            raise TrajectoryError(f'speed {scale!r} of the path: expected 0 to 1')
        if scale == self._speed:
            return
        self._speed = scale
        t = self._now if t is None else t
        if t is None:
            self._pace = PathTime(scale)
        elif isinstance(self._motion, Follow) and not isinstance(self._motion, Halt):
            self._aim(t)
        else:
            self._pace.restart(scale, t)
            if isinstance(self._motion, Stream):
                self._motion.slowed(scale, t, self._seen)
        if self._next is not None:
            self._next.bind(self._pace, self._next.start, self._next.path.curve.start)

    def _aim(self, t):
        if self._pace.target != self._speed:
            rate = min(SPEED_RATE, self._motion.speed_rate)
            if self.limits.speed_change_time > 0.0:
                rate = min(rate, LARGE_CHANGE / self.limits.speed_change_time)
            self._pace.aim(self._speed, t, rate, rate / EASE)

    # stops

    def stop(self, t, deceleration=None, halves=True):
        """Bring the reference to rest from where it is at time t, and forget every trajectory.

        A trajectory stays on its path, on which all axes come to rest together; where points were streamed each axis
        slows down by itself. A stop in progress goes on as it is, but in halves only where these are asked for.

        deceleration  number or (actuators,) m/s^2 or rad/s^2, by default the declared one; halves: as of `stop_of_path`
        """
        self._next = None
        motion, goes_on = self._motion, halves or not self.limits.half_swing
        if motion is None or self.at_rest(t) or isinstance(motion, (Halt, Free)) and goes_on:
            return
        limit = self._deceleration(deceleration)
        if isinstance(motion, Follow):
            self._motion = stop_of_path(motion, t, limit, self._checks, halves)
            return
        stop = Free(coming_to_rest(t, *np.array(motion.sample(t)), limit, self._checks, halves))
        if within_limits(stop.sample(stop.end), self._checks):
            self._motion = stop         # else the stream comes to rest by itself, as far as it is taken already

    def stop_from(self, t, x, xd, deceleration=None):
        """Bring the reference to rest from a measured state x, xd (dof,), and forget everything else.

        The reference steps to the measured position, by the tracking error and no more. Each axis slows down by
        itself, so that each stops as soon as it can; where the deceleration allows, before its limits.
        """
        x, xd = np.array(x, dtype=float), np.array(xd, dtype=float)
        if not (np.isfinite(x).all() and np.isfinite(xd).all()):
            raise TrajectoryError(f'no stop starts from x = {x.tolist()}, xd = {xd.tolist()}')
        self._next = None
        if self._damping is not None:
            self._damping.restart(allowed=False)
        self._motion = Free(coming_to_rest(t, x, xd, np.zeros_like(x), self._deceleration(deceleration), self._checks))

    def _deceleration(self, declared):
        """(columns,)"""
        if declared is None:
            return self._checks.deceleration
        limit = self._checks.of_actuators('deceleration', declared, np.inf)
        if not (limit > 0.0).all():
            raise TrajectoryError(f'deceleration = {np.asarray(declared).tolist()}: expected positive numbers')
        return limit

    # streamed points

    def stream(self, t, x, xd=None, xdd=None, now=None):
        """Take a streamed point: at time t the reference shall be at x, xd, xdd, each (dof,); None: to be estimated.

        The reference leads over to it without a jump in position, velocity or acceleration, within the limits of all
        three and of the jerk, and carries it on at its velocity for the stream timeout at most, and not over a limit;
        then it stops. The first point has to lie within the start tolerance. Raises TrajectoryError, and goes on as
        before, for a point that does not fit.

        now  time at which it came, by default that of the last sample

        With a `stream_delay` all points count as stamped so much later.  A stream that begins at rest is shaped, joint
        by joint, where a load hangs: its last point has to be sent until the shaper is over.
        """
        if not self.started:
            raise TrajectoryError('no state was measured yet, so there is nowhere to start from')
        now = (t if self._now is None else self._now) if now is None else now
        before = self._nominal(now)
        streaming = isinstance(self._motion, Stream)
        before, earlier = np.array(before), self._motion if streaming else None
        point = streamed_point(self._manipulator, t + self._limits.stream_delay, x, xd, xdd)
        shaper, shaped, fault = self._stream_shaper, point, ''
        if earlier is None:
            shaper = self._shaper_of_stream(point, before)
        if shaper is not None:
            shaped = shaper.shaped(point)
            fault = '' if earlier is None else fault_after(point, shaper.last, self._checks)
            fault = fault or fault_of(point, before, self._checks)
        stream = Stream(shaped, before, now, self._seen, earlier, self._checks, self._speed)
        fault = fault or stream.fault(earlier)
        if fault:
            raise TrajectoryError(f'streamed point: {fault}')
        if shaper is not None and earlier is not None:
            shaper.take(point)
        self._motion, self._next, self._stream_shaper = stream, None, shaper
        self._allow_damping()

    def _shaper_of_stream(self, point, before):
        """Return the `StreamShaper` of a stream that begins with a point; None: it is followed as it is."""
        if self.shaping is None:
            return None
        if np.abs(before[1:]).max() > AT_REST:
            self.shaped_by = 'nothing: the stream begins in motion'
            return None
        shaper = self.shaping(before[0])
        self.shaped_by = self.shaping.none if shaper is None else 'joints, of streamed points'
        return None if shaper is None else StreamShaper(shaper, point)

    def _allow_damping(self):
        if self._damping is not None:
            self._damping.allow()

    def stream_age(self, t):
        """s at time t since a streamed point came last; inf where none is followed."""
        return t - self._motion.arrival if isinstance(self._motion, Stream) else inf

    # states

    def _check_start(self, waypoints, times, first, here, now, state):
        """Raise TrajectoryError where it does not start `here` (2, joints), or the machine is off its reference."""
        tolerance = self._limits.start_tolerance
        if state is not None:
            gap = np.abs(np.asarray(state, dtype=float) - self.ahead(now)[0])
            if not gap.max() <= tolerance:
                i = int(np.argmax(~(gap <= tolerance)))
                raise TrajectoryError(f'{self._manipulator.coordinates[i]} is {gap[i]:.3g} away from its reference, '
                                      f'start tolerance {tolerance:.3g}')
        point = max(first - 1, 0)
        if first == 0 and times[0] > COMMANDED:
            return
        # between two points nobody knows the way that the sender thinks of
        reached = waypoints.positions[point:point + (2 if times[point] < -COMMANDED else 1)]
        gaps = np.maximum(reached.min(axis=0) - here, here - reached.max(axis=0))
        gap = gaps[gaps.max(axis=1).argmin()]
        if gap.max() > tolerance:
            i = int(gap.argmax())
            raise TrajectoryError(f'point {point} has {waypoints.joints[i]} {gap[i]:.3g} away from where it is at the '
                                  f'start, start tolerance {tolerance:.3g}', point)

    def _map(self, joints):
        if joints == self._manipulator.coordinates:
            return SAME
        if joints not in self._maps:
            found = self._manipulator.joint_map(joints, tabulate=False)     # which names what it does not know
            surplus = len(joints) - self._manipulator.dof
            if surplus > 0:
                raise TrajectoryJointsError(
                    f'the trajectory names {len(joints)} joints, {surplus} more than this machine of '
                    f'{self._manipulator.dof} degrees of freedom can follow independently')
            self._maps[joints] = found
        return self._maps[joints]

    def _in_joints(self, joints, reference):
        """Rows position, velocity, acceleration (3, n) of the joints named when the machine is at `reference`."""
        names, *values = self._manipulator.joint_state(*reference)
        columns = [names.index(name) for name in joints]
        return np.asarray(values)[:, columns]
