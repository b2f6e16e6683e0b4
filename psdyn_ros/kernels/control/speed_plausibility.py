"""Plausibility of measured speeds of actuators: beside the rated one, that of the reference, and that of a stop."""
from ..runtime.compiler import entry
from .plausibility import largest

SOUND, TOO_FAST, APART, NOT_STANDING = range(4)
FAST_STATES, APART_STATES, RESTED_S = range(3)      # of the memory
IN_A_ROW = 3                # states
APART_S = 0.05              # s off the speed of the reference: static friction lets go in less
RESTING_S = 0.5             # s of rest of machine and reference, from which on both have to rest
SMOOTHING_S = 0.05          # s over which the speed at rest, and that of a stop, is smoothed
FASTER = 1.1                # times the speed at its beginning that a stop may have
SETTLING_S = 0.5            # of rest of the reference, in which the largest swing is that of the motion before
GROWTH = 1.25               # times that, from which it grows
REST = 0.5                  # of the speed that is allowed at rest, at which the machine rests


@entry
def judge_speeds(limits, smooth, memory, rates, desired, period, stopping):
    """Return (SOUND or what is wrong, actuator) of rates (n,) beside those of the reference (n,).

    limits    (3, n) m/s, rad/s: fastest, off the reference, at rest
    smooth    (n,) rates in the meantime
    memory    (3,) states in a row too fast, and apart; s at rest in a row, since what swings after a motion is no fault
    period    s since the state before
    stopping  whether the machine is brought to rest: it may then be slower than its reference
    """
    apart, most = 0, -1.0
    for i in range(rates.shape[0]):
        off = abs(rates[i] - desired[i]) / limits[1, i]
        if off > most:
            apart, most = i, off
    fast, share = largest(rates, limits[0])
    memory[FAST_STATES] = memory[FAST_STATES] + 1.0 if share > 1.0 else 0.0
    memory[APART_STATES] = memory[APART_STATES] + 1.0 if most > 1.0 else 0.0
    if memory[FAST_STATES] >= IN_A_ROW:
        return TOO_FAST, fast
    if memory[APART_STATES] * period >= APART_S and not stopping:
        return APART, apart
    moves = False
    for i in range(rates.shape[0]):
        smooth[i] += min(period / SMOOTHING_S, 1.0) * (rates[i] - smooth[i])
        moves = moves or desired[i] != 0.0
    row, share = largest(smooth, limits[2])
    if moves:
        memory[RESTED_S] = 0.0
    elif memory[RESTED_S] < RESTING_S:
        memory[RESTED_S] = memory[RESTED_S] + period if share < REST else 0.0
    if memory[RESTED_S] < RESTING_S or share <= 1.0:
        return SOUND, -1
    return NOT_STANDING, row


@entry
def judge_stop(limits, stop, rates, elapsed, period):
    """Return the actuator that is furthest beyond the speed that a stop leaves it; -1: none is beyond.

    limits   (2, n) deceleration that is demanded; speed that a stop may add, and ends with
    stop     (3, n) |rates| at the beginning of the stop, smoothed rates, and speed that is left, which is set
    rates    (n,) measured
    elapsed  s in which the deceleration must have acted
    """
    begin, smooth, left = stop[0], stop[1], stop[2]
    for i in range(rates.shape[0]):
        smooth[i] += min(period / SMOOTHING_S, 1.0) * (rates[i] - smooth[i])
        allowed = max(FASTER * begin[i], begin[i] + limits[1, i]) - elapsed * limits[0, i]
        left[i] = max(allowed, limits[1, i])
    row, share = largest(smooth, left)
    return row if share > 1.0 else -1


@entry
def judge_swing(limits, swing, rested, rates, desired, period):
    """Return the actuator that swings most beyond what it may while its reference rests; -1: none does.

    limits   (n,) speed that a machine may have anyway
    swing    (3, n) smoothed rates, their largest speeds as the reference came to rest, and the speed that is allowed
    rested   (1,) s for which the reference rests
    rates    (n,)
    desired  (dof,) rates of the reference
    period   s since the state before
    """
    moves, settling = False, rested[0] < SETTLING_S
    for i in range(desired.shape[0]):
        moves = moves or desired[i] != 0.0
    for i in range(rates.shape[0]):
        swing[0, i] += min(period / SMOOTHING_S, 1.0) * (rates[i] - swing[0, i])
        if moves:
            swing[1, i] = abs(swing[0, i])
        elif settling:
            swing[1, i] = max(swing[1, i], abs(swing[0, i]))
        swing[2, i] = max(GROWTH * swing[1, i], limits[i])
    if moves:
        rested[0] = 0.0
    elif settling:
        rested[0] += period
    if moves or settling:
        return -1
    row, share = largest(swing[0], swing[2])
    return row if share > 1.0 else -1
