"""Plausibility of a measured state, per coordinate: jump, rate, frozen sensor, end stop.

A state that is accepted is kept in `channels` (dof,) and in a ring of the last ones; `memory` (1,) has the limits of
the checks, and the state of the ring.  Times are ns.
"""
import math
from typing import NamedTuple

import numpy as np

from ..rigid_body.entry import close_and_place, read_joint_states
from ..runtime.buffer import FLOAT, matrix, records, stack
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK
from .actuation import INT

CHANNEL = np.dtype([
    ('lower', 'f8'),            # m, rad
    ('upper', 'f8'),
    ('margin', 'f8'),           # m, rad from the limits where the end stop begins
    ('speed', 'f8'),            # rated [m/s, rad/s]
    ('x', 'f8'),                # last accepted
    ('xd', 'f8'),
    ('step', 'f8'),             # least change of the position ever, the step of its encoder; 0: none yet [m, rad]
    ('travel', 'f8'),           # integral of the velocities [m, rad]
    ('disagreement', 'f8'),     # between travel and x, by the time of the window [m/s, rad/s]
    ('drift', 'f8'),            # of x from the travel, forgotten over `DRIFT_S`, and the most that is allowed [m, rad]
    ('drift_allowed', 'f8'),
    ('fastest', 'f8'),          # velocity, forgotten alike [m/s, rad/s]
    ('changed', 'i8'),          # stamp of the last position that was another one
    ('driven', 'i8'),           # stamp since which the reference moves; 0: it does not
    ('wanted', 'f8'),           # travel of the reference meanwhile, since the position changed [m, rad]
    ('sticking', 'f8'),         # of that travel, so much may be friction [m, rad]
    ('travel_then', 'f8'),      # that integral when the position changed [m, rad]
    ('measured', 'i8'),         # stamp of the last velocity that was another one
    ('change', 'f8'),           # of the position in the last state [m, rad]
    ('rate_change', 'f8'),      # of the velocity [m/s, rad/s]
    ('noise', 'f8'),            # mean square of changes to and fro at rest, over `NOISE_S` [m^2, rad^2]
    ('rate_noise', 'f8'),       # the same of the velocity
    ('repeated', 'i8'),         # states in a row with the position of the one before
    ('longest', 'i8'),          # most of them at rest, and
    ('rested', 'i8'),           # states of rest until the last change
    ('same', 'i8'),             # the same three of position and velocity together
    ('longest_same', 'i8'),
    ('rested_same', 'i8'),
    ('silent', 'i8'),           # repetitions that its noise should not have allowed; else 0
], align=True)

MEMORY = np.dtype([
    ('jump', 'f8'),             # m, rad: how far a position may be from the one expected
    ('rise', 'f8'),             # s in which no actuator gets to its rated speed
    ('step', 'f8'),             # m/s, rad/s that a velocity may change by at once
    ('freeze_time', 'i8'),
    ('freeze_speed', 'f8'),     # m/s, rad/s of the reference
    ('window', 'i8'),
    ('disagreement', 'f8'),     # m/s, rad/s allowed
    ('lag', 'f8'),              # s by which velocities may lag
    ('stamp', 'i8'),            # last accepted; 0: none
    ('first', 'i8'),            # place of the oldest state in the window, in the ring
    ('last', 'i8'),             # place of the newest
], align=True)

SENSOR = np.dtype([
    ('module', 'i8'),           # sensors of one module measure the same motion
    ('x', 'f8'),                # m, rad
    ('changed', 'i8'),          # stamp of the last value that was another one; 0: none yet
], align=True)

UNCLOSED, NON_FINITE, ACCEPTED, JUMPED = -3, -2, 0, 1
ADDED, MOST_ADDED, STEP = 2, 3, 4      # rows of what goes on without its position
FROZEN, WARNED, DISAGREES, AT_STOP, DRIFTS, QUIET = 1, 2, 4, 8, 16, 32      # bits
DRIFT_S = 0.25              # over which a drift of positions from velocities is forgotten
RATE_S = 0.02               # over which positions tell a rate
DRIFT_STEP_S = 0.02         # of the disagreement that is allowed, by which a position may drift at rest
DRIFT_STEPS = 1.5           # steps of an encoder, by which a position may, where they are more
NOISE_S = 0.5               # over which the noise of a position is smoothed
LEAST_NOISE, LEAST_RATE_NOISE = 1e-7, 1e-5      # m, rad; m/s, rad/s; and
OFTEN, RESTED = 2, 500      # repetitions in a row at most, in so many states of rest, of what is noisy
REPEATED = 25               # of one that then is frozen
MISSED_STEPS = 3.0          # of it, that a position may stay behind its reference without being frozen

MAX_SPEED_RATIO = 2.0       # of a speed to the rated speed of its actuator


class History(NamedTuple):
    """The states that were accepted, and the limits of the checks."""

    channels: np.ndarray    # (dof,) CHANNEL
    memory: np.ndarray      # (1,) MEMORY
    stamps: np.ndarray      # (N,) ns of the last N states
    ring: np.ndarray        # (N, 2, dof) x and travel of them


# types of the fields of `History`
TYPES = CHANNEL, MEMORY, INT, FLOAT


class Sensors(NamedTuple):
    """m joints that are measured, the same joints by the state, and scratch."""

    records: np.ndarray     # (2 m,) SENSOR: measured joints, then those of the state
    seen: np.ndarray        # (2 m, 2 m) row i: all values when that of record i last changed
    values: np.ndarray      # (2 m,)
    columns: np.ndarray     # (m,) of these joints among all
    joints: np.ndarray      # (3, joints)
    still: np.ndarray       # (dof,) zeros


# types of the fields of `Sensors`
SENSOR_TYPES = SENSOR, FLOAT, FLOAT, INT, FLOAT, FLOAT


@kernel
def bind_history(buffer):
    """Return the `History` of a buffer."""
    return History(records(buffer, 0, CHANNEL)[0], records(buffer, 1, MEMORY)[0], records(buffer, 2, INT)[0],
                   stack(buffer, 3)[0])


@kernel
def bind_sensors(buffer):
    """Return the `Sensors` of a buffer."""
    return Sensors(records(buffer, 0, SENSOR)[0], matrix(buffer, 1)[0], records(buffer, 2, FLOAT)[0],
                   records(buffer, 3, INT)[0], matrix(buffer, 4)[0], records(buffer, 5, FLOAT)[0])


@kernel
def jump_of_velocity(c, m, xd, dt):
    """Whether a finite velocity changed more than its actuator can change it."""
    step = abs(float(xd) - c['xd'])
    return m['step'] + c['speed'] / m['rise'] * dt < step and step < np.inf


@kernel
def jump_of_state(c, m, x, xd, dt):
    """Whether position and velocity cannot follow those before."""
    fastest = MAX_SPEED_RATIO * c['speed']
    return (not abs(x - c['x']) <= fastest * dt + m['jump'] or not abs(xd) <= fastest
            or not abs(x - c['x'] - dt * c['xd']) <= m['jump'] + c['speed'] * dt * dt / m['rise']
            or not abs(xd - c['xd']) <= c['speed'] * (1.0 + dt / m['rise']))


@kernel
def record_stamp(m, stamps, stamp, known):
    """Write the stamp into the ring and forget those older than the window; memory: 'first', 'last', 'stamp'."""
    count = stamps.shape[0]
    if known:
        last = (m['last'] + 1) % count
        if last == m['first']:
            m['first'] = (last + 1) % count
    else:
        last = m['first'] = 0
    m['last'], m['stamp'] = last, stamp
    stamps[last] = stamp
    first = m['first']
    while first != last and stamps[(first + 1) % count] <= stamp - m['window']:
        first = (first + 1) % count
    m['first'] = first


@kernel
def update_channel(c, m, x, xd, stamp, dt, known, desired_rate):
    """Integrate the velocity, and note since when the channel stands still and since when it should move."""
    if known:
        way, left = 0.5 * dt * (c['xd'] + xd), max(1.0 - dt / DRIFT_S, 0.0)
        c['travel'] += way
        c['drift'] = left * (c['drift'] + x - c['x'] - way)
        c['fastest'] = max(left * c['fastest'], abs(xd))
    else:
        c['travel'] = c['drift'] = c['fastest'] = 0.0
    change = x - c['x'] if known else 0.0
    rate_change = xd - c['xd'] if known else 0.0
    rests, share = known and desired_rate == 0.0, min(dt / NOISE_S, 1.0)
    if rests:       # a motion changes one way for many states, noise to and fro
        c['noise'] += share * (-change * c['change'] - c['noise'])
        c['rate_noise'] += share * (-rate_change * c['rate_change'] - c['rate_noise'])
    moved = not known or change != 0.0
    c['repeated'], c['longest'], c['rested'] = repetitions(moved, rests, c['repeated'], c['longest'], c['rested'])
    c['same'], c['longest_same'], c['rested_same'] = repetitions(
        moved or rate_change != 0.0, rests, c['same'], c['longest_same'], c['rested_same'])
    c['change'], c['rate_change'] = change, rate_change
    step = abs(change)
    if known and step > 0.0 and (c['step'] == 0.0 or step < c['step']):
        c['step'] = step
    if not known or step > 0.0:
        c['changed'], c['wanted'], c['travel_then'] = stamp, 0.0, c['travel']
    if not known or xd != c['xd']:
        c['measured'] = stamp
    if not abs(desired_rate) > m['freeze_speed']:
        c['driven'], c['wanted'] = 0, 0.0
    elif c['driven'] == 0:
        c['driven'] = stamp
    elif known:
        c['wanted'] += abs(desired_rate) * dt
    c['x'], c['xd'] = x, xd


@kernel
def repetitions(changed, rests, repeated, longest, rested):
    """Return the three counts of `CHANNEL` after one more state."""
    if not rests:
        longest = rested = 0
    elif changed:
        longest, rested = max(longest, repeated), rested + repeated + 1
    return 0 if changed else repeated + 1, longest, rested


@kernel
def lost_noise(noisy, repeated, longest, rested):
    """Whether what was noisy at rest stays the same."""
    return noisy and rested >= RESTED and longest <= OFTEN and repeated >= REPEATED


@kernel
def findings_of_channel(c, m, stamp):
    """Return the bits of one channel."""
    found = 0
    # a machine that does not follow has not reached the next step of its encoder, as a velocity of its own says
    stands = stamp - c['measured'] < m['freeze_time'] and abs(c['travel'] - c['travel_then']) < DRIFT_STEPS * c['step']
    if (c['driven'] != 0 and c['wanted'] >= max(c['sticking'], MISSED_STEPS * c['step']) and not stands
            and stamp - max(c['changed'], c['driven']) >= m['freeze_time']):
        found |= FROZEN
    silent = lost_noise(c['noise'] > LEAST_NOISE**2, c['repeated'], c['longest'], c['rested'])
    # noise of the position may be below the step of its encoder; a velocity of 0 may be that of a machine that stands
    stuck = c['xd'] != 0.0 and lost_noise(c['rate_noise'] > LEAST_RATE_NOISE**2, c['same'], c['longest_same'],
                                          c['rested_same'])
    c['silent'] = c['same'] if stuck else c['repeated'] if silent else 0
    if c['silent'] > 0 and stamp - max(c['changed'], c['measured'] if stuck else 0) >= m['freeze_time']:
        found |= QUIET
    if c['disagreement'] > m['disagreement']:
        found |= DISAGREES
    elif c['disagreement'] > 0.5 * m['disagreement']:
        found |= WARNED
    at_rest = max(DRIFT_STEP_S * m['disagreement'], DRIFT_STEPS * c['step'])
    c['drift_allowed'] = at_rest + m['lag'] * c['fastest']
    if abs(c['drift']) > c['drift_allowed']:
        found |= DRIFTS
    if c['x'] < c['lower'] + c['margin'] or c['x'] > c['upper'] - c['margin']:
        found |= AT_STOP
    return found


@entry
def judge_state(history, x, xd, stamp, desired_rate):
    """Return (ACCEPTED, bits, channel) and keep the state, or return (JUMPED or NON_FINITE, 0, channel).

    history              buffer of `History`
    x, xd, desired_rate  (dof,); the last one is the velocity of the reference
    stamp                later than the one before; after memory['stamp'] = 0 anything finite is accepted
    channel: the first with one of the bits, or the one that jumped.
    """
    channels, memory, stamps, ring = bind_history(history)
    m = memory[0]
    n = channels.shape[0]
    known = m['stamp'] != 0
    dt = 1e-9 * float(stamp - m['stamp'])
    if known:
        for i in range(n):
            if jump_of_velocity(channels[i], m, xd[i], dt):
                return JUMPED, 0, i
    for i in range(n):
        if 0.0 * float(x[i]) + 0.0 * float(xd[i]) != 0.0:
            return NON_FINITE, 0, i
    if known:
        for i in range(n):
            if jump_of_state(channels[i], m, x[i], xd[i], dt):
                return JUMPED, 0, i
    record_stamp(m, stamps, stamp, known)
    first, last = m['first'], m['last']
    span = 1e-9 * float(m['window'])
    bits, channel = 0, -1
    for i in range(n):
        c = channels[i]
        update_channel(c, m, x[i], xd[i], stamp, dt, known, desired_rate[i])
        ring[last, 0, i], ring[last, 1, i] = x[i], c['travel']
        c['disagreement'] = abs(x[i] - ring[first, 0, i] - c['travel'] + ring[first, 1, i]) / span
        found = findings_of_channel(c, m, stamp)
        if found != 0 and channel < 0:
            channel = i
        bits |= found
    return ACCEPTED, bits, channel


@entry
def go_on(memory, path, x, xd, desired, dt, estimate):
    """Estimate x and xd for a law while a reference is followed; return whether (any coordinate goes on, rates are
    others).

    Coordinates go on while the reference moves and their position is bit-identical, and get `middle_rates`.

    Such a position says nothing new: friction holds the machine, the step of the encoder is coarse, or it is stuck. A
    law that acted on the error, which grows, would drive the machine of a stuck encoder ever faster. So they go on by
    their velocity, and with the reference where that is bit-identical, too. As far as the position changes again, what
    was added to it is taken back.

    memory    (5, n) x and xd before, what was added, the most that is, and the last step of the position [m, rad]
    path      (N, 1 + n) of `middle_rates`
    x, xd     (n,) measured
    desired   (3, n) reference when those before were measured
    dt        s since then; NaN: there are none before
    estimate  (2, n) set to x and xd for a law
    """
    further = False
    for i in range(x.shape[0]):
        rate, acceleration = desired[1, i], desired[2, i]
        known = dt >= 0.0
        added, still = memory[ADDED, i] if known else 0.0, known and x[i] == memory[0, i]
        stuck = still and xd[i] == memory[1, i]     # else a velocity says how far it goes, if anywhere
        if still and rate != 0.0:
            most = memory[MOST_ADDED, i]
            way = dt * (rate + 0.5 * dt * acceleration) if stuck else 0.5 * dt * (xd[i] + memory[1, i])
            added = max(-most, min(most, added + way))
        elif known and not still:
            memory[STEP, i] = step = abs(x[i] - memory[0, i])
            added = math.copysign(max(abs(added) - step, 0.0), added)
        goes_on = stuck and rate != 0.0 and abs(added) < memory[MOST_ADDED, i]
        # a position in the middle of a step of its encoder was half of it behind when it came
        beyond = math.copysign(max(abs(added) - 0.5 * memory[STEP, i], 0.0), added)
        estimate[0, i] = x[i] + beyond
        estimate[1, i] = rate + dt * acceleration if goes_on else xd[i]
        memory[0, i], memory[1, i], memory[ADDED, i] = x[i], xd[i], added
        further = further or beyond != 0.0 or goes_on
    return further, middle_rates(path, x, desired, dt, estimate[1])


@kernel
def middle_rates(path, x, desired, dt, rates):
    """Let rates (n,) be the middle of themselves, of those of the positions, and of the reference's; return whether any
    changes.

    While the reference moves. By a velocity that lies, a law at force level throws the lightest of coupled axes before
    that is found out.

    path  (N, 1 + n) of the last states, the newest first: s since each, NaN: there was none; and positions
    x, desired, dt  as of `go_on`
    """
    for row in range(path.shape[0] - 1, 0, -1):
        path[row, 0] = path[row - 1, 0] + dt
        for i in range(x.shape[0]):
            path[row, 1 + i] = path[row - 1, 1 + i]
    path[0, 0] = 0.0
    moves, changed, oldest = False, False, 0
    for i in range(x.shape[0]):
        path[0, 1 + i] = x[i]
        moves = moves or desired[1, i] != 0.0
    # after a gap the machine may have another speed than it had on the average
    while oldest < path.shape[0] - 1 and path[oldest, 0] < RATE_S and 0.0 < path[oldest + 1, 0] <= 2.0 * RATE_S:
        oldest += 1
    if not moves or oldest == 0:
        return False
    for i in range(x.shape[0]):
        moved = (x[i] - path[oldest, 1 + i]) / path[oldest, 0]
        middle = median(rates[i], moved, desired[1, i] + dt * desired[2, i])
        changed, rates[i] = changed or middle != rates[i], middle
    return changed


@entry
def stuck_sensor(sensors, seen, position, stamp, freeze_time, travel):
    """Return the first of the redundant sensors (m,) that stands still while another one of its module moves; -1: none.

    seen (m, m): row i has the values of all sensors when sensor i last changed; updated here.
    position (m,), finite; travel [m, rad]: by how much the other one moved meanwhile.
    """
    m = sensors.shape[0]
    stuck = -1
    for i in range(m):
        s = sensors[i]
        if s['changed'] == 0 or position[i] != s['x']:
            s['x'], s['changed'] = position[i], stamp
            for j in range(m):
                seen[i, j] = position[j]
        elif stamp - s['changed'] >= freeze_time:
            for j in range(m):
                if sensors[j]['module'] == s['module'] and abs(position[j] - seen[i, j]) > travel and stuck < 0:
                    stuck = i
    return stuck


@entry
def compare_with_state(tree, loops, buffer, x, positions, stamp, freeze_time, travel):
    """Do `compare_sensors` of measured positions (m,) with the joints at x (dof,); (UNCLOSED, 0, 0) where it has none.

    tree, loops: buffers of the machine.  buffer: of `Sensors`.
    """
    sensors = bind_sensors(buffer)
    status = close_and_place(tree, loops, x, sensors.still, sensors.still)
    if status == OK:
        status = read_joint_states(tree, loops, sensors.joints)
    if status != OK:
        return UNCLOSED, 0, 0.0
    for i in range(positions.shape[0]):
        sensors.values[i] = positions[i]
    return compare_sensors(sensors, sensors.joints[0], stamp, freeze_time, travel)


@kernel
def compare_sensors(sensors, q, stamp, freeze_time, travel):
    """Return (stuck, worst, off): what `stuck_sensor` finds, which sensor is furthest from its joint, and by how much.

    sensors: `Sensors`, the first m of its values measured; the others are taken from its columns of q (joints,).
    Returns (NON_FINITE, 0, 0) where one is not finite, and keeps nothing of it.
    """
    values, columns = sensors.values, sensors.columns
    m = columns.shape[0]
    for i in range(m):
        values[m + i] = q[columns[i]]
        if 0.0 * float(values[i]) + 0.0 * values[m + i] != 0.0:
            return NON_FINITE, 0, 0.0
    worst, off = 0, 0.0
    for i in range(m):
        gap = abs(values[i] - values[m + i])
        if gap > off:
            worst, off = i, gap
    return stuck_sensor(sensors.records, sensors.seen, values, stamp, freeze_time, travel), worst, off


@entry
def worst_share(tolerance, counts, x, x_ref):
    """Return (largest |x_ref - x| / tolerance, where, sum of counts), inf where it is not finite; all (n,)."""
    worst, where, total = 0.0, 0, 0
    for i in range(x.shape[0]):
        total += counts[i]
        share = abs(x_ref[i] - x[i]) / tolerance[i]
        if not share <= worst and worst < np.inf:
            worst, where = share if share < np.inf else np.inf, i
    return worst, where, total


@kernel
def median(a, b, c):
    """Return the one in the middle."""
    return max(min(a, b), min(max(a, b), c))


@kernel
def largest(values, limits):
    """Return (row of the largest |value| / limit, that share) of values (n,)."""
    row, most = 0, -1.0
    for i in range(values.shape[0]):
        share = abs(values[i]) / limits[i]
        if share > most:
            row, most = i, share
    return row, most


@entry
def largest_share(values, limits):
    """Return (row of the largest |value| / limit, that share) of values (n,)."""
    return largest(values, limits)


@entry
def clamp_outward(command, x, lower, upper, margin, rest, most, inside):
    """Clamp the commands that push towards a near end stop; return the number of clamped actuators.

    A command may exceed `rest`, which holds the load, by `most` times the remaining share of the margin.
    inside: set to 1 for each actuator within the margin, else 0.  All (actuators,), the position limits may be inf.
    """
    clamped = 0
    for i in range(command.shape[0]):
        inside[i] = 0
        if x[i] > upper[i] - margin[i]:
            inside[i] = 1
            most_out = rest[i] + most[i] * max(0.0, (upper[i] - x[i]) / margin[i])
            if command[i] > most_out:
                command[i] = most_out
                clamped += 1
        if x[i] < lower[i] + margin[i]:
            inside[i] = 1
            most_in = rest[i] - most[i] * max(0.0, (x[i] - lower[i]) / margin[i])
            if command[i] < most_in:
                command[i] = most_in
                clamped += 1
    return clamped
