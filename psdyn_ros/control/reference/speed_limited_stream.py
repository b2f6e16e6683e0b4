"""How a reference that is given less than its speed goes after streamed points, and gets back to them.

Points come by the clock, so that slowing them down means to fall behind. Points that are no faster than the speed that
is left are followed as they are. After faster ones the reference goes with that speed, all axes by the same share of
what they need, so that it heads for the newest point; it is behind as long as that lasts. As soon as a way leads over
to the points that keeps the speed, and the accelerations that are declared for stops, it is taken: position, velocity
and acceleration go on without a jump, whatever comes when.
"""

import numpy as np

from ...model.errors import PsdynError
from .segments import bridge_rows, looks_at
from .stop_motion import rest_positions

LONGEST_WAY = 1.0           # s over to the points
LONGER = 1.7                # times the last one that is tried next
CATCH_UP = 0.3              # s in which what it is behind would be made up for, were there no limit
LOOK = looks_at(40)         # samples of a way, between which it is a thousandth faster at most
MAPPED_STEP = 4             # of those, one that is mapped to other actuators
TINY = 1e-9                 # m, m/s or rad, rad/s


def speed_limit(checks, speed):
    """(columns,) of the joints, for a share 0 to 1 of their rated speed."""
    return np.where(np.isfinite(checks.speed), speed * checks.speed, np.inf)


def way_to_points(estimate, before, start, soonest, planned, checks, speed, slowed):
    """(time, state (3, dof)) at which the reference is where the points are, by a bridge within limits; None: none is.

    estimate  `StreamEstimate`, believed to go on with its acceleration to `soonest`, then with its velocity
    before    (3, dof) reference at time `start`
    soonest   time at which that shall be; later ones are tried after it
    planned   time that was found for the point before, or `soonest`
    slowed    whether accelerations are those of stops where nothing else is declared
    """
    limit, n = speed_limit(checks, speed), before.shape[1]
    hardest = checks.gentle[:n] if slowed else checks.acceleration[:n]
    seconds, first = soonest - start, estimate.carried_on(soonest, hardest)
    if (np.abs(first[1]) > limit[:n]).any():
        return None
    while seconds <= LONGEST_WAY:
        target = first.copy()
        if seconds > soonest - start:
            target[0] += (start + seconds - soonest) * target[1]
            target[2] = 0.0
        rows = bridge_rows(start, start + seconds, before, target, LOOK)
        if (_keeps(rows[1], limit[:n], before[1]) and _keeps(rows[2], hardest, before[2])
                and _keeps(rows[3], checks.jerk[:n])):
            return (start + seconds, target) if _has_room(checks, rows[:3], limit) else None
        seconds = max(LONGER * seconds, planned - start)
    return None


def _keeps(rows, limit, before=0.0):
    """Whether no row is beyond the limit, or beyond what was there before."""
    return bool((np.abs(rows) <= np.maximum(limit, np.abs(before)) + TINY).all())


def _has_room(checks, rows, limit):
    """Whether rows (3, N, n), and stops from all of them, stay within the limits, those of other actuators too."""
    n, rest = rows.shape[2], rest_positions(rows, checks)
    try:
        columns = checks.columns(*rows[:, ::MAPPED_STEP]) if checks.mapped else rows
    except PsdynError:
        return False
    x, start = columns[0], columns[0, 0]
    lower, upper = np.minimum(checks.lower, start), np.maximum(checks.upper, start)
    lowest, highest = np.minimum(lower[:n], rest[0]), np.maximum(upper[:n], rest[0])
    return bool(((x >= lower) & (x <= upper)).all() and ((rest >= lowest) & (rest <= highest)).all()
                and (not checks.mapped or _keeps(columns[1], limit, columns[1, 0])))


def velocity_after_points(estimate, before, now, seconds, checks, speed):
    """(dof,) velocity towards the points, which they may be too fast for; taken up within so many seconds at most."""
    x, v, _ = before
    gap, gentle = estimate.carried_on(now)[0] - x, checks.gentle[:len(x)]
    # so that it can be given up again before the gap is closed
    slower = np.sqrt(gentle / np.maximum(np.abs(gap), TINY)).min()
    wanted = estimate.state[1] + min(1.0 / CATCH_UP, slower) * gap
    speeds = np.abs(checks.columns(x, wanted, np.zeros_like(x))[1])
    wanted *= min(1.0, float((speed_limit(checks, speed) / np.maximum(speeds, TINY)).min()))
    change = wanted - v
    return v + min(1.0, float((gentle * max(seconds, 0.0) / np.maximum(np.abs(change), TINY)).min())) * change


def too_far_behind(estimate, before, now, checks):
    """Why the points are too far away, as the end of a sentence; empty where they are not."""
    gap = np.abs(estimate.carried_on(now)[0] - before[0])
    most = checks.limits.stream_lag * checks.speed[:gap.size]
    if (gap <= most).all():
        return ''
    i = int((gap - most).argmax())
    return (f'{checks.names[i]} is {gap[i]:.3g} behind at the speed that it is given, and {most[i]:.3g} may be made up '
            'for')
