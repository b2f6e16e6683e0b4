"""The range that reference and errors explain: of what a law asks for, and of the speeds for which it opens valves.

What a sound law asks for is that of its reference, fed forward or not, with feedback towards the reference, and within
a few cycles, in which noise and filters may shift errors.  An integral gathers what it asks for beyond that (`trim`).
"""
import math
from typing import NamedTuple

import numpy as np

from ..runtime.buffer import FLOAT, matrix, pack, records, stack
from ..runtime.compiler import entry, kernel
from .actuation import INT

STRONGER = 2.0          # times the feedback by the gains, that a law may give towards its reference
STOP_SHARE = 0.25       # of the slack in motion, that speeds have in a stop
MEASURED, MEASURED_RATE, REFERENCE, REFERENCE_RATE, AHEAD_RATE = range(5)       # rows of the motion
ASKED, LOW, HIGH = range(3)             # rows of `found`
OFF, WAY, ALLOWED = range(3)            # rows of the ways
FORGET_S = 0.4                          # in which ways are forgotten: rods swing on their oil meanwhile
STILL, UNKNOWN = 0.5, 1.5               # of the speed of standstill, and of that of its valve, that a rod may be off it
LONGEST_STEP_S = 0.1                    # between two states, else the comparison begins again


@kernel
def set_bounds(check, gains, scale, measured, desired, ahead, now):
    """Set the least and the largest of what a sound law asks for, by the last cycles.

    check     with `recent` (N, 4, n): least and largest of the reference, of the error, of its rate; `count` (1,) of
              cycles until now, the last N of them in `recent`; and `bounds` (2, n)
    gains     (2, n) of the law for an error and for its rate
    scale     of what the law feeds forward
    measured  (2, n) positions and rates
    desired   the same of the reference, or more rows
    ahead     (n,) what is fed forward, at the time at which the law looks ahead
    now       (n,) the same at the time of the measurement
    """
    room = check.recent.shape[0]
    latest = check.recent[check.count[0] % room]
    check.count[0] += 1
    for i in range(ahead.shape[0]):
        low, high = np.inf, -np.inf
        for fed in (ahead[i], now[i]):
            low, high = min(low, min(fed, scale * fed)), max(high, max(fed, scale * fed))
        latest[0, i], latest[1, i] = low, high
        latest[2, i] = STRONGER * gains[0, i] * (desired[0, i] - measured[0, i])
        latest[3, i] = STRONGER * gains[1, i] * (desired[1, i] - measured[1, i])
        back, forth = min(latest[2, i], 0.0), max(latest[2, i], 0.0)
        slower, faster = min(latest[3, i], 0.0), max(latest[3, i], 0.0)
        for k in range(min(check.count[0], room)):
            then = check.recent[k]
            low, high = min(low, then[0, i]), max(high, then[1, i])
            back, forth = min(back, then[2, i]), max(forth, then[2, i])
            slower, faster = min(slower, then[3, i]), max(faster, then[3, i])
        check.bounds[0, i], check.bounds[1, i] = low + back + slower, high + forth + faster


class OpeningRange(NamedTuple):
    """Motion, memory and limits of n actuators, of which the valves of k are opened for a speed."""

    rows: np.ndarray        # (k,) actuators
    slack: np.ndarray       # (n,) m/s beyond the range that is explained
    learning: np.ndarray    # (1,) share of what is asked for beyond the range that counts as an integral, in a cycle
    motion: np.ndarray      # (5, n) positions and rates measured, those of the reference, and its rate ahead in time
    recent: np.ndarray      # (N, 4, n) speeds [m/s], see `set_bounds`
    count: np.ndarray       # (1,)
    trim: np.ndarray        # (n,) m/s of the integrals
    speeds: np.ndarray      # (n,) m/s for which valves may be opened
    bounds: np.ndarray      # (2, n) scratch: least and largest speed
    found: np.ndarray       # (3, n) m/s for which valves are opened, and the range of that
    ways: np.ndarray        # (3, n) m of `compare_ways`, forgotten over `FORGET_S`: measured beyond those that `speeds`
                            # give, those, and how far the first may be off
    open: np.ndarray        # (2, n) m/s of valves that are open entirely, inward and outward


# types of the fields of `OpeningRange`
TYPES = INT, *(FLOAT,) * 4, INT, *(FLOAT,) * 6


def make_opening_range(rows, actuators, room):
    """Return the buffer of `OpeningRange` over `room` cycles; rows (k,): actuators whose valves are opened."""
    n = actuators
    return pack(OpeningRange(
        rows=np.array(rows, INT), slack=np.zeros(n), learning=np.zeros(1), motion=np.zeros((5, n)),
        recent=np.zeros((room, 4, n)), count=np.zeros(1, INT), trim=np.zeros(n), speeds=np.zeros(n),
        bounds=np.zeros((2, n)), found=np.zeros((3, n)), ways=np.zeros((3, n)),
        open=np.array((n * [-np.inf], n * [np.inf]))))


@kernel
def bind_opening_range(buffer):
    """Return the `OpeningRange` of a buffer."""
    return OpeningRange(
        records(buffer, 0, INT)[0], records(buffer, 1, FLOAT)[0], records(buffer, 2, FLOAT)[0], matrix(buffer, 3)[0],
        stack(buffer, 4)[0], records(buffer, 5, INT)[0], records(buffer, 6, FLOAT)[0], records(buffer, 7, FLOAT)[0],
        matrix(buffer, 8)[0], matrix(buffer, 9)[0], matrix(buffer, 10)[0], matrix(buffer, 11)[0])


@entry
def restrain_speeds(buffer, gains, scale, asked, stopping):
    """Set the `speeds` for which valves may be opened; return (actuator, how far what is asked for was beyond).

    The actuator that is furthest beyond its range, and that distance as a share of its slack; (-1, 0) where none is.
    The farther a speed is beyond its range the less it counts: beyond it by the slack what is fed forward takes its
    place, with what an integral has gathered.

    buffer  of `OpeningRange`, with the motion of this cycle
    gains   (2, n) speeds of the law for an error and for its rate
    scale   of the rate of the reference that the law feeds forward
    asked   (n,) m/s for which the law opens valves
    stopping whether the machine is brought to rest: valves then shut as fast as the reference, whatever the error is
    """
    check, worst, most = bind_opening_range(buffer), -1, 0.0
    motion = check.motion
    set_bounds(check, gains, scale, motion, motion[REFERENCE:], motion[AHEAD_RATE], motion[REFERENCE_RATE])
    for k in range(check.rows.shape[0]):
        i = check.rows[k]
        trim, slack = check.trim[i], check.slack[i]
        low = min(trim + check.bounds[0, i] - slack, check.open[1, i])
        high = max(trim + check.bounds[1, i] + slack, check.open[0, i])
        kept = min(max(asked[i], low), high)
        check.found[ASKED, i], check.found[LOW, i], check.found[HIGH, i] = asked[i], low, high
        off = abs(asked[i] - kept) / slack
        if off > 0.0:
            fed = trim + scale * motion[AHEAD_RATE, i]
            kept = fed + max(1.0 - off, 0.0) * (kept - fed)
        if stopping:
            one, other = motion[REFERENCE_RATE, i], motion[AHEAD_RATE, i]
            room = STOP_SHARE * slack
            kept = max(trim + min(one, other) - room, min(trim + max(one, other) + room, kept))
        check.speeds[i] = kept
        if off > most:
            worst, most = i, off
        if check.open[0, i] < kept < check.open[1, i]:
            explained = min(max(kept, check.bounds[0, i]), check.bounds[1, i])
            check.trim[i] += check.learning[0] * (kept - explained - trim)
    return worst, most


@entry
def compare_ways(buffer, dt):
    """Return the actuator whose rod went otherwise than its valve was opened, farthest beyond what it may; -1: none.

    Without pressures the speed of a rod is known badly, and it swings on its oil.

    buffer  of `OpeningRange`, with the motion of this cycle and the `speeds` of the last
    dt      s since the state before; where it is too long, or negative, the comparison begins again
    """
    check, worst, most = bind_opening_range(buffer), -1, 1.0
    ways, left, step = check.ways, 0.0, 0.0
    if 0.0 <= dt <= LONGEST_STEP_S:
        left, step = math.exp(-dt / FORGET_S), dt
    for k in range(check.rows.shape[0]):
        i = check.rows[k]
        speed = check.speeds[i]
        ways[OFF, i] = left * ways[OFF, i] + step * (check.motion[MEASURED_RATE, i] - speed)
        ways[WAY, i] = left * ways[WAY, i] + step * abs(speed)
        ways[ALLOWED, i] = FORGET_S * STILL * check.slack[i] + UNKNOWN * ways[WAY, i]
        share = abs(ways[OFF, i]) / ways[ALLOWED, i]
        if share > most:
            worst, most = i, share
    return worst
