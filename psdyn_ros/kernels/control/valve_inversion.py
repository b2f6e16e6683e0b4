"""Inverse flow model of a valve-controlled cylinder: the command for a given rate of force.

With Q_a the flow into chamber A, Q_b that out of chamber B, x the stroke and F = p_a A_a - p_b A_b the piston's force

    F' = k_a Q_a + k_b Q_b - (k_a A_a + k_b A_b) x' - (k_a + k_b) leak (p_a - p_b),    k_a = K_a A_a / V_a, k_b likewise

A positive opening o feeds A through P-A and empties B through B-T, into A where the valve is regenerative; a
negative one feeds B through P-B and empties A through A-T.  A flow-sharing valve meters what the line has above the
highest load, `sensed`.  Load-holding valves count as open, relief and suction as closed; the feedback corrects their
effect.
"""
import math

from ..hydraulics.equations import bulk_modulus, cushion, edge_gain, metered, regenerates, root, volumes
from ..hydraulics.records import PA, PB
from ..runtime.compiler import entry, kernel, python_kernel

MIN_PRESSURE_DROP_PA = 2e5      # across an edge: a lower drop would demand more opening than is useful
MIN_CHAMBER_VOLUME_M3 = 1e-5    # for a stroke that is measured beyond its end
MAX_NEWTON_STEPS = 30           # to an opening whose outflow is restricted
OPENING_TOLERANCE = 1e-14       # relative change of the opening in the last step


@kernel
def force_gains(c, pressure_a, pressure_b, stroke):
    """Return (k_a, k_b): rate of force for unit flow into chamber A, out of chamber B [N/m^3]."""
    va, vb = volumes(c, stroke)
    va, vb = max(va, MIN_CHAMBER_VOLUME_M3), max(vb, MIN_CHAMBER_VOLUME_M3)
    ka = bulk_modulus(c, pressure_a, va, c['hose_a']) * c['area_a'] / va
    return ka, bulk_modulus(c, pressure_b, vb, c['hose_b']) * c['area_b'] / vb


@kernel
def feed_root(c, line, pressure):
    """Return the root of the pressure drop across a metering edge, as its compensator leaves it."""
    drop = max(line - (max(pressure, c['sensed']) if c['sharing'] else pressure), MIN_PRESSURE_DROP_PA)
    if c['compensated']:
        drop, _ = metered(drop, c['margin'])
    return root(drop, c['linear'])


@kernel
def drain_root(c, drop):
    """Return the root of the pressure drop across an edge that a chamber empties through."""
    return root(max(drop, MIN_PRESSURE_DROP_PA), c['linear'])


@kernel
def flow_effect(c, feeding_port, o, feed, drain, resistance):
    """Return (rate of force, positive, of both flows at opening o; its slope by |o|), edges as they are restricted.

    feed, drain: k times root of the pressure drop of the port that is fed and of the one that is emptied.
    """
    inflow, by_in, _ = edge_gain(c, feeding_port, o, 1.0, 0.0, False)
    outflow, by_out, _ = edge_gain(c, 1 - feeding_port, o, 1.0, resistance, True)
    return feed * inflow + drain * outflow, feed * by_in + drain * by_out


@python_kernel
def opening_for(c, supply, tank, pressure_a, pressure_b, stroke, rate, force_rate):
    """Return the opening, not limited, at which the force of the piston changes by `force_rate` [N/s].

    supply, tank and the chambers' pressures [Pa], stroke [m] and its rate [m/s].  NaN where one is not finite.
    """
    if not math.isfinite(supply + pressure_a + pressure_b + stroke + rate + force_rate):
        return math.nan
    ka, kb = force_gains(c, pressure_a, pressure_b, stroke)
    wanted = (force_rate + (ka * c['area_a'] + kb * c['area_b']) * rate
              + (ka + kb) * c['leak'] * (pressure_a - pressure_b))
    if wanted > 0.0:
        port, sign, amount = 0, 1.0, wanted
        feed = ka * feed_root(c, supply, pressure_a)
        if regenerates(c, sign):
            drain = (ka + kb) * drain_root(c, pressure_b - pressure_a)
        else:
            drain = kb * drain_root(c, pressure_b - tank)
    else:
        port, sign, amount = 1, -1.0, -wanted
        feed, drain = kb * feed_root(c, supply, pressure_b), ka * drain_root(c, pressure_a - tank)
    resistance = cushion(c, 1 - port, stroke)
    _, slope = flow_effect(c, port, sign * 1e-9, feed, drain, resistance)
    o = amount / slope
    if resistance > 0.0 or c['holding'][1 - port]:
        # the effect is concave in the opening: from below, Newton's steps never pass the root
        for _ in range(MAX_NEWTON_STEPS):
            effect, slope = flow_effect(c, port, sign * o, feed, drain, resistance)
            step = (amount - effect) / slope
            o += step
            if not abs(step) > OPENING_TOLERANCE * (1.0 + o):
                break
    return sign * o


@python_kernel
def command_for(c, o, blend):
    """Return the command that gives a valve the opening o: over its dead band, unless its electronics do that.

    blend: opening up to which the step over the dead band is spread, so that noise around zero does not make the
    spool hammer; 0: none.
    """
    if c['jump']:
        return o
    overlap = c['overlap_up'] if o > 0.0 else c['overlap_down']
    share = min(abs(o) / blend, 1.0) if blend > 0.0 else 1.0
    if o > 0.0:
        return share * overlap + (1.0 - overlap) * o
    return (1.0 - overlap) * o - share * overlap if o < 0.0 else o


@kernel
def opening_of(c, u, blend):
    """Return the opening for which `command_for` gives a valve the command u."""
    if c['jump']:
        return u
    overlap = c['overlap_up'] if u > 0.0 else c['overlap_down']
    band = overlap + (1.0 - overlap) * blend
    o = abs(u) * blend / band if abs(u) < band else (abs(u) - overlap) / (1.0 - overlap)
    return math.copysign(o, u)


@python_kernel
def limited(u):
    """Return the command within -1 to 1; NaN stays NaN."""
    return 1.0 if u > 1.0 else -1.0 if u < -1.0 else u


@entry
def pressure_command(cylinders, supply, supply_pressure, pressures, stroke, rate, load_pressure, bandwidth):
    """Return the command of a valve whose electronics control the load pressure p_L = F / A_a, F the piston's force.

    cylinders (1,), supply (1,) records; supply_pressure, pressures (A, B) [Pa] gauge, measured by the valve; stroke
    [m] and rate [m/s] of the rod.  The force follows as F' = bandwidth (load_pressure A_a - F), bandwidth in rad/s,
    while the flow that the moving rod displaces is fed forward.  Within -1 to 1; NaN where an input is not finite.
    """
    c, (pressure_a, pressure_b) = cylinders[0], pressures
    lacking = (load_pressure - pressure_a) * c['area_a'] + pressure_b * c['area_b']
    o = opening_for(c, supply_pressure, supply[0]['return_pressure'], pressure_a, pressure_b, stroke, rate,
                    bandwidth * lacking)
    return limited(command_for(c, o, 0.0))


@entry
def velocity_command(cylinders, velocity):
    """Return the command of a pressure-compensated valve for a velocity [m/s] of the rod: its flow over the largest.

    cylinders (1,) records of a valve that is compensated.  The largest flow is that of the metering edge of this
    direction, P-A or P-B, at the compensator's margin.  Within -1 to 1; NaN where the velocity is not a number.
    """
    c = cylinders[0]
    drop = root(c['margin'], c['linear'])
    area = c['area_a'] - c['area_b'] if regenerates(c, velocity) else c['area_a']
    o = velocity * area / (c['gain'][PA] * drop)
    if velocity < 0.0:
        o = velocity * c['area_b'] / (c['gain'][PB] * drop)
    return limited(command_for(c, o, 0.0))
