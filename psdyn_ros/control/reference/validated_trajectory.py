"""A trajectory that is being looked at while another motion is in progress."""

from math import inf
from time import perf_counter

import numpy as np

from ...model.errors import PsdynError
from .segments import SAME, Path
from .suspension_path import follow_suspension, swings_cancel
from .swing_shaper import shaped
from .trajectory import Curve, TrajectoryError, UnreachableError, cubic_curve, quintic_curve, smooth_accelerations

CHECKS = 2000               # samples of a trajectory
CHECKS_MAPPED = 600         # where each has to be mapped to the coordinates by itself
CHECKS_SLOW = 120        # where loops are closed by iteration
PER_SEGMENT = 32            # the most of them in one segment
SLICE, SLICE_MAPPED = 24, 8         # samples looked at between two looks at the clock
BLOCK = 4000                # numbers of a spline that is solved for between two looks at the clock
AT_REST = 1e-7              # m/s, m/s^2 or rad, of a reference from which a motion is shaped
STEP_TIME = 0.002           # s that a step of the acceleration counts as, where the jerk is limited


class ValidatedTrajectory:
    """Checks of a trajectory in slices; `ReferenceMotion.validate_trajectory` makes it, `execute` puts it to work.

    waypoints   `Waypoints` as they came
    start       time of the clock at which it begins, path time 0
    at_once     it was to begin when accepted: where the machine rests then, path time 0 is that moment
    path        `Path`, in seconds from `start`, as soon as all of it is built
    first       index of the first waypoint that lies ahead of the start
    shaping     `SwingShaping` of a motion from rest; None: as it is
    shaped_by   what of the motion is shaped, and why no more, as text
    """

    def __init__(self, checks, waypoints, joint_map, start, at_once, ahead, entry, shaping=None):
        self.waypoints, self.start, self.at_once = waypoints, start, at_once
        self.first, times = ahead
        self.path = None
        self.done = False
        self.speed_rate = inf           # 1/s, see `ReferenceChecks.speed_rate`
        self._checks, self._map, self._times = checks, joint_map, times
        self._entry = entry             # (3, n) of the joints at the start: position, velocity, acceleration
        self.shaped_by = 'nothing: no joint swings'
        self._shaping, self._origin = shaping, None     # of a shaped path, (segments,) of that which came
        self._error = None
        self._steps = self._work()

    def advance(self, seconds=inf):
        """Go on with the checks for about so long; True when all of them are passed.

        Raises TrajectoryError, this time and whenever it is asked again; the trajectory cannot be accepted then.
        """
        if self._error is not None:
            raise self._error
        if self.done:
            return True
        before = perf_counter()
        stop = before + seconds
        try:
            for _ in self._steps:
                now = perf_counter()
                if 2.0 * now - before >= stop:      # another such step would end too late
                    return False
                before = now
        except TrajectoryError as error:
            self._error = error
            raise
        self.done = True
        return True

    def _work(self):
        """Build the path and check it, with a pause wherever the caller may want to do something else."""
        yield
        for _ in self._map.building:        # not `yield from`: a trajectory that is dropped must not close it
            yield
        knots = np.concatenate([[0.0], self._times])
        p0, v0, a0 = self._entry
        w, first = self.waypoints, self.first
        given = [np.vstack([p0, w.positions[first:]])]
        if w.velocities is not None:
            given.append(np.vstack([v0, w.velocities[first:]]))
        if w.accelerations is not None:
            given.append(np.vstack([a0, w.accelerations[first:]]))
        parts = []
        block = max(BLOCK // len(knots), 1)
        for j in range(0, len(w.joints), block):
            yield
            some = slice(j, j + block)
            beyond = self._checks.beyond(w.joints[some], w.positions[first:, some], p0[some])
            if beyond is not None:
                raise UnreachableError(f'point {first + beyond[0]}: {beyond[1]}', first + beyond[0])
            parts.append(_curve(knots, [values[:, some] for values in given], v0[some], a0[some],
                                self._checks.has_jerk).coefficients)
        yield
        curve = Curve(knots, np.concatenate(parts, axis=2))
        yield
        try:
            path = Path(curve, self._map, w.joints)
        except PsdynError as error:
            raise self._refusal(len(knots) - 2, f'cannot be followed: {error}') from error
        yield
        if self._shaping is not None:
            self.shaped_by = 'nothing: the trajectory begins in motion'
            if np.abs(self._entry[1:]).max() <= AT_REST:
                path = yield from self._shape(path)
        if self.path is None:
            yield from self._check(path, len(path.curve.times) - 1)
            self.path = path

    def _shape(self, path):
        """Return the shaped `Path`; `path` is it, and checked, where the points of suspension may be shaped as well."""
        shaper = self._shaping(path.rest)
        if shaper is None:
            self.shaped_by = self._shaping.none
            return path
        yield
        if self._shaping.suspension is not None and (yield from self._swings_cancel(path)):
            self.shaped_by = 'nothing: its own swings cancel each other'
            return Path(path.curve, self._map, self.waypoints.joints, shaped=True)
        self.shaped_by = 'joints'
        yield
        curve, self._origin = shaped(path.curve, shaper)
        of_joints = Path(curve, self._map, self.waypoints.joints, shaped=True)
        if self._shaping.suspension is not None:
            yield
            origin = self._origin
            try:
                curve, self._origin = yield from follow_suspension(path, of_joints, shaper, self._shaping.suspension)
                yield
                found = Path(curve, SAME, self._checks.names[:curve.coefficients.shape[2]], shaped=True)
                yield from self._check(found, len(curve.times) - 1)
                self.path, self.shaped_by = found, 'path of the suspension'
            except PsdynError as error:     # beyond limits, or reach: the joints alone keep theirs
                self.shaped_by = f'joints: with the path of the suspension {error}'
                self._origin, self.speed_rate = origin, inf
        return of_joints

    def _swings_cancel(self, path):
        """Whether the path leaves no swing by itself."""
        try:
            return (yield from swings_cancel(path, self._shaping.suspension, self._shaping.modes(path.rest)))
        except PsdynError:      # loops that do not close on the way: the checks name them
            return False

    def _check(self, path, segments):
        """Look at the samples in the order of time."""
        checks, most, size = self._checks, CHECKS, SLICE
        if checks.slow:
            most, size = CHECKS_SLOW, 1
        elif checks.mapped or not path.plain:
            most, size = CHECKS_MAPPED, SLICE_MAPPED
        steps = min(max(most // segments, 1), PER_SEGMENT)
        last = self._entry_state(path)
        start = last[0]
        for k in range(0, segments * steps, size):
            place = np.arange(k, min(k + size, segments * steps))
            segment, share = place // steps, (place % steps + 1) / steps
            x, states = self._states(path, segment, share)
            jerk = self._jerks(path, last, segment, share, states, steps) if checks.has_jerk else None
            found = checks.fault(x, states, start, jerk)
            if found is not None:
                raise self._refusal(int(segment[found[0]]), found[1])
            overload = checks.overload(x[-1], start[:x.shape[1]])
            if overload is not None:
                raise self._refusal(int(segment[-1]), overload)
            last = states[:, -1]
            self.speed_rate = min(self.speed_rate, checks.speed_rate(states))
            yield
        if checks.has_jerk:
            found = checks.fault(x[-1:], states[:, -1:], start, -last[None, 2] / STEP_TIME)
            if found is not None:
                raise self._refusal(segments - 1, f'ends with a step of the acceleration: it {found[1]}',
                                    TrajectoryError)

    def _states(self, path, segment, share):
        try:
            motion = path.rows(segment, share)
            return motion[0], self._checks.columns(*motion)
        except PsdynError as error:
            if len(segment) == 1:
                raise self._refusal(int(segment[0]), f'cannot be followed: {error}') from error
        for k in range(len(segment)):       # which of them it was
            self._states(path, segment[k:k + 1], share[k:k + 1])
        raise self._refusal(int(segment[0]), 'cannot be followed')

    def _entry_state(self, path):
        """(3, columns) at the start; a step of the acceleration there is refused where the jerk is limited."""
        checks = self._checks
        none = np.zeros(1, dtype=int)
        x, states = self._states(path, none, np.zeros(1))
        if checks.has_jerk:
            before = self._states_of(self._entry)
            found = checks.fault(x, states, states[0, 0], (states[2] - before[2]) / STEP_TIME)
            if found is not None:
                raise self._refusal(0, f'starts with a step of the acceleration: it {found[1]}', TrajectoryError)
        return states[:, 0]

    def _states_of(self, joints):
        return self._checks.columns(*self._map.motion(*joints))

    def _jerks(self, path, last, segment, share, states, steps):
        """(M, columns) the larger of both ends of a step, or the mean between samples where they are mapped."""
        if path.plain and not self._checks.mapped:
            begin, end = (path.curve.jerks(segment, place) for place in (share - 1.0 / steps, share))
            return np.where(np.abs(begin) > np.abs(end), begin, end)
        knots = path.curve.times
        dt = (knots[segment + 1] - knots[segment]) / steps
        return np.diff(np.vstack([last[None, 2], states[2]]), axis=0) / dt[:, None]

    def _refusal(self, segment, fault, kind=UnreachableError):
        point = self.first + (segment if self._origin is None else int(self._origin[segment]))
        seconds = self.waypoints.times[point]
        return kind(f'point {point}: on the way to it, at {seconds:.3f} s, the trajectory {fault}', point)


def _curve(knots, given, start_velocity, start_acceleration, limited_jerk):
    """`Curve` through positions, and velocities and accelerations where given, each (N + 1, n).

    limited_jerk  whether a spline through positions alone must not begin and end with a step of the acceleration
    """
    if len(given) == 1:
        curve = cubic_curve(knots, given[0], start_velocity)
        if not limited_jerk:
            return curve
        given = [*given, np.vstack([curve.coefficients[:, 1], np.zeros_like(start_velocity)])]
    if len(given) == 2:
        given = [*given, smooth_accelerations(knots, *given, start_acceleration)]
    return quintic_curve(knots, *given)
