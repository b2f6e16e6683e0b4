"""How a reference comes to rest: on its path, or each axis by itself.

On the path all axes come to rest together, and where the path was free of obstacles so is the stop: this is the way of
a stop that no fault forces. From a measured state there is no path, and each axis stops as soon as it can.
"""

from math import sqrt

import numpy as np

from ...model.errors import PsdynError
from .reference_limits import DECELERATION, EASE
from .segments import Halt, Hold, Phase, in_halves, ramp, rate_at
from .trajectory import Curve

HALT_RATE = 20.0            # 1/s that the speed of a path that stops changes by at most
STEPS = 8                   # of a stop on a path at its present deceleration
ROUNDED = 1.001             # what rounding may add to a speed that is left
LEAST = 1e-9                # m or rad per s of path time, and 1/s
MARGIN = 1.02               # what a stop of axes may exceed the deceleration by
REFINEMENTS = 4             # of a stop whose actuators are not the axes
LOOKS = 12                  # samples of a stop


def stop_of_path(follow, t, limit, checks, halves):
    """The motion, `Halt` or `Hold`, that brings a `Follow` to rest on its path from time t on.

    limit   (columns,) deceleration; the path itself may slow down harder
    halves  whether it slows down in two halves that excite no swing on oil
    """
    if follow.pace.at(t)[1] <= 0.0:
        return Hold(follow.sample(t)[0])
    pace = follow.pace.copy()
    pace.change(0.0, t, braking_on_path(follow, t, limit, checks, halves))
    return Halt(follow, pace)


def braking_on_path(follow, t, limit, checks, halves):
    """`Phase`s of the speed of a path that bring it to rest from time t on; arguments as of `stop_of_path`.

    At every moment the axes slow down as much as the first of them may, and no less than the path does by itself.
    """
    path, speed, rate = follow.path_time(t), *follow.pace.at(t)[1:]
    states = checks.columns(*follow.at(path))
    delay = float(swing_delays(speed * np.abs(states[1]), checks, halves).min()) if rate == 0.0 else 0.0
    room, bend = _braking_room(states, speed, limit)
    phases, left, seconds = [], speed, 0.0          # left: of the speed, when the second half is not looked at
    braking, now = -rate, -rate                     # of the first half; of both
    while left > ROUNDED * braking * max(braking, 0.0) / (2.0 * bend):
        step = min(max(left / (STEPS * max(room, LEAST)), 0.5 * EASE), 2.0 * EASE, left / max(braking, LEAST))
        ahead, slower = path + step * (speed - 0.5 * step * now), max(speed - step * now, 0.0)
        # the most with which the rest of the speed can still be taken away at this bend
        end = sqrt(bend * (2.0 * left - step * braking + 0.25 * bend * step * step)) - 0.5 * bend * step
        most = min(braking + bend * step, end)
        room, bend = _braking_room(checks.columns(*follow.at(ahead)), slower, limit)
        if delay > 0.0:
            earlier = -rate_at(phases, seconds + step - delay)[0]
            _, later = _braking_room(checks.columns(*follow.at(ahead + delay * slower)), slower, limit)
            next_braking = min(max(min(room, 2.0 * room - earlier, 2.0 * later * EASE), 0.0), most)
            next_now = 0.5 * (next_braking + earlier)
        else:
            next_braking = next_now = min(room, most)
        phases.append(Phase(step, -braking, (braking - next_braking) / step))
        path += step * (speed - step * (2.0 * now + next_now) / 6.0)
        speed = max(speed - 0.5 * step * (now + next_now), 0.0)
        left -= 0.5 * step * (braking + next_braking)
        braking, now, seconds = next_braking, next_now, seconds + step
    phases.append(Phase(2.0 * left / braking, -braking, 0.5 * braking * braking / left))
    return in_halves(phases, delay) if delay > 0.0 else phases


def _braking_room(states, speed, limit):
    """(1/s by which the speed of a path may fall a second, 1/s^2 by which that may change), from (3, columns)."""
    _, slopes, bends = states
    own, slopes = np.where(slopes < 0.0, -bends, bends) * (speed * speed), np.maximum(np.abs(slopes), LEAST)
    fastest = min(float((limit / slopes).min()), HALT_RATE)
    return min(max(float(((limit + own) / slopes).min()), 0.0), HALT_RATE), fastest / EASE


def within_limits(state, checks):
    """Whether a state (3, dof) is within the limits of the joints, with all loops closed."""
    try:
        x = checks.columns(*state)[0]
    except PsdynError:
        return False
    return bool(((x >= checks.lower) & (x <= checks.upper)).all())


def coming_to_rest(t, x, xd, xdd, limit, checks, halves=True):
    """`Curve` of axes at x, xd, xdd (dof,) that each slow down by themselves from time t on.

    limit   (columns,) deceleration; where actuators are no axes, all axes slow down less until theirs is kept
    halves  as of `stop_of_path`
    """
    n = x.size
    own, others = limit[:n], limit[n:]
    rates = np.where(np.isfinite(own), own, DECELERATION)
    lower, upper = checks.soft_lower, checks.soft_upper
    delays = swing_delays(np.abs(xd), checks, halves)
    for _ in range(REFINEMENTS):
        jerks = np.minimum(np.maximum(rates, np.abs(xdd)) / EASE, checks.jerk[:n])
        curve = axes_curve(t, x, xd, [calm_phases(x[i], xd[i], xdd[i], rates[i], jerks[i], lower[i], upper[i],
                                                  delays[i]) for i in range(n)])
        if not others.size:
            break
        try:
            states = [checks.columns(*curve.sample(s)) for s in np.linspace(t, curve.end, LOOKS)]
        except PsdynError:          # the loops do not close there: the axes are all that can be slowed down
            break
        excess = max(float((np.abs(state[2, n:]) / others).max()) for state in states)
        if excess <= MARGIN:
            break
        rates = rates / excess
    return curve


def braking(v, a, deceleration, jerk):
    """`Phase`s that bring an axis from velocity v to rest; the acceleration a goes over into the deceleration."""
    return ramp(v, a, 0.0, deceleration, jerk)


def braking_at_once(v, deceleration):
    """The same with the whole deceleration from the first moment: the shortest way."""
    return [Phase(abs(v) / deceleration, -deceleration if v > 0.0 else deceleration, 0.0)] if v != 0.0 else []


def way(v, phases):
    """How far an axis goes in these phases, from velocity v."""
    x = 0.0
    for duration, rate, bend in phases:
        x += duration * (v + duration * (rate / 2.0 + duration * bend / 6.0))
        v += duration * (rate + duration * bend / 2.0)
    return x


def stopping_phases(x, v, a, deceleration, jerk, lower, upper):
    """The phases in which an axis at x, v, a comes to rest before its limits, where the deceleration allows.

    It takes up the deceleration gently where there is room for that, and at once where there is not.
    """
    phases = braking(v, a, deceleration, jerk)
    end = x + way(v, phases)
    if lower <= end <= upper:
        return phases
    return min(phases, braking_at_once(v, deceleration), key=lambda some: abs(way(v, some)))


def calm_phases(x, v, a, deceleration, jerk, lower, upper, delay):
    """As `stopping_phases`, in two halves so many seconds apart where there is room for that.

    An acceleration is given up before; an axis that slows down already is not let go again.
    """
    if delay > 0.0 and a * v >= 0.0:
        given_up = [Phase(abs(a) / jerk, a, -jerk if a > 0.0 else jerk)] if a != 0.0 else []
        phases = given_up + in_halves(braking(v + 0.5 * a * abs(a) / jerk, 0.0, deceleration, jerk), delay)
        if lower <= x + way(v, phases) <= upper:
            return phases
    return stopping_phases(x, v, a, deceleration, jerk, lower, upper)


def swing_delays(speeds, checks, halves):
    """s (n,) between the halves of stops from speeds (n,) [m/s, rad/s] of the first columns; 0 without halves."""
    ways = 2.0 * checks.swing_way[:len(speeds)]
    return np.minimum(checks.limits.half_swing * halves, ways / np.maximum(speeds, 1e-9))


def rest_positions(rows, checks):
    """(N, dof) where axes come to rest that begin to stop at states (3, N, dof), each by itself."""
    x, v, a = rows
    n = x.shape[1]
    deceleration, size = checks.braking[:n], np.abs(a)
    seconds = size / np.minimum(np.maximum(deceleration, size) / EASE, checks.jerk[:n])       # until it is zero
    x, v = x + seconds * (v + seconds * a / 3.0), v + 0.5 * seconds * a
    return x + v * (0.5 * np.abs(v) / deceleration + 0.5 * EASE)


def axes_curve(t, x, v, phases):
    """`Curve` from time t on of axes at x, v (n,) that come to rest, each through `Phase`s of its own."""
    edges = sorted({t}.union(*(_edges(t, axis) for axis in phases)))
    if len(edges) == 1:
        edges.append(t + EASE)
    table = []
    for axis, position, velocity in zip(phases, x.tolist(), v.tolist()):
        begin, rows = t, []
        for duration, rate, bend in axis:
            while edges[len(rows)] < begin + duration:
                dt = edges[len(rows)] - begin
                rows.append((position + dt * (velocity + dt * (rate / 2.0 + dt * bend / 6.0)),
                             velocity + dt * (rate + dt * bend / 2.0), 0.5 * (rate + dt * bend), bend / 6.0, 0.0, 0.0))
            position += duration * (velocity + duration * (rate / 2.0 + duration * bend / 6.0))
            velocity += duration * (rate + duration * bend / 2.0)
            begin += duration
        rows += [(position, 0.0, 0.0, 0.0, 0.0, 0.0)] * (len(edges) - 1 - len(rows))
        table.append(rows)
    return Curve(np.array(edges), np.array(table).transpose(1, 2, 0))


def _edges(t, phases):
    edges = []
    for phase in phases:
        t += phase.duration
        edges.append(t)
    return edges
