"""A cylinder in the implicit step: its spool, holding valves and chambers are eliminated, which leaves

    k_p = P0 + P1 k_v + P2 k_s      k_v, k_s: increments per second of its axis' velocity and of the supply pressure

with k the stage increment of (I - g h J) k = r.  Slopes in J are the steepest that the predictor u + h f(u) crosses.
"""
import numpy as np

from ..runtime.compiler import entry, kernel, python_kernel
from .equations import (
    SLEW_STIFFNESS,
    SUCTION_SCALE_PA,
    bulk_modulus,
    cushion,
    edge_gain,
    free_spool,
    holding_demand,
    metered,
    opening,
    opposed,
    pilot_share,
    regenerates,
    root,
    root_slope,
    volumes,
)
from .friction import nearest_zero
from .records import HOLDING_A, HOLDING_B, PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE

SLOPES = np.dtype([
    ('regulated', 'f8'),                        # 1: the spool follows its target, 0: at its slew limit, or stuck
    ('stiff', 'f8', 2),                         # K / V of the chambers [Pa/m^3]
    ('by_spool', 'f8', 2), ('by_holding', 'f8', 2),     # slopes of the flows Q_a, Q_b
    ('by_port', 'f8', 2),                        # by the fall of the pressure of the port
    ('by_line', 'f8', 2),                       # by the pressure of the supply line, 0 where it does not feed the port
    ('demand', 'f8', 2), ('pilot', 'f8', 2),    # of a holding valve's y' by the pressure of its load, of its pilot
    ('inverse', 'f8', 4),                       # of the system of both chambers, by rows
    ('P0', 'f8', 2), ('P1', 'f8', 2), ('P2', 'f8', 2),
    ('back', 'f8'), ('back_by_spool', 'f8'),    # of the flow from B into A: by their pressures, -1 times by the spool
    ('feeding', 'i8'),                          # port that the supply feeds, -1: none
], align=True)


@kernel
def edge_slopes(c, port, o, o_slope, dp, dp_ahead, y, resistance):
    """Return the slopes of the flow into a port by spool, by holding valve and by the pressure beyond the edge."""
    z = nearest_zero(dp, dp_ahead)
    feeding = (o > 0.0) == (port == 0)
    if z != 0.0 and opposed(c, feeding, o, z):
        return 0.0, 0.0, 0.0
    compensated = c['compensated'] and feeding
    gain, _, _ = edge_gain(c, port, o, y, resistance, z < 0.0)
    by_line = gain
    if compensated:
        z, share = metered(z, c['margin'])
        by_line *= share
        dp, _ = metered(dp, c['margin'])
    if opposed(c, feeding, o, dp):
        dp = 0.0
    by_line *= root_slope(z, c['linear'])
    _, by_o, by_y = edge_gain(c, port, o, y, resistance, dp < 0.0)
    flow = root(dp, c['linear'])
    return (by_o if o > 0.0 else -by_o) * o_slope * flow, by_y * flow, by_line


@python_kernel
def guard_slope(c, p, ahead, tank):
    """Return the slope of anti-cavitation, relief and drain by the fall of the pressure."""
    slope, z = c['drain'], tank - min(p, ahead)
    if z > 0.0:
        slope += c['suction'] * z * (z + 2.0 * SUCTION_SCALE_PA) / ((z + SUCTION_SCALE_PA) * (z + SUCTION_SCALE_PA))
    if max(p, ahead) > c['relief']:
        slope += c['relief_gain']
    return slope


@kernel
def stiffest(c, p, ahead, volume, hose):
    bulk = bulk_modulus(c, p, volume, hose)
    if c['air'] > 0.0:
        bulk = max(bulk, bulk_modulus(c, ahead, volume, hose))
    return bulk / volume


@kernel
def holding_slopes(c, w, port, h, o, tank, fluid, rate):
    """Set the slopes of the holding valve at a port."""
    load, other = PRESSURE_A + port, PRESSURE_B - port
    share = pilot_share(c, port, o)
    _, slope = holding_demand(c, port, fluid[load], fluid[other], tank, share)
    _, ahead = holding_demand(c, port, fluid[load] + h * rate[load], fluid[other] + h * rate[other], tank, share)
    w['demand'][port] = max(slope, ahead) / c['holding_time']
    w['pilot'][port] = w['demand'][port] * c['holding_ratio'] * share


@entry
def set_slopes(c, w, h, x, fluid, rate, supply):
    """Set the slopes of a cylinder at x, fluid (6,) on the way to fluid + h rate.

    supply: pressure of the line, its rate, pressure of the tank.
    """
    line, line_rate, tank = supply
    s, r = fluid[SPOOL], fluid[SPOOL_RATE]
    free, stiffness = free_spool(c, s, r), SLEW_STIFFNESS * c['omega']
    limited = free > stiffness * (c['slew'] - r) or free < stiffness * (-c['slew'] - r)
    w['regulated'] = 0.0 if limited or c['stuck'] else 1.0
    o, o_slope = opening(c, s)
    ahead, ahead_slope = opening(c, s + h * rate[SPOOL])
    if abs(ahead) > abs(o):
        o, o_slope = ahead, ahead_slope
    w['feeding'], w['back'], w['back_by_spool'] = -1 if o == 0.0 else 0 if o > 0.0 else 1, 0.0, 0.0
    v_a, v_b = volumes(c, x)
    w['stiff'][0] = stiffest(c, fluid[PRESSURE_A], fluid[PRESSURE_A] + h * rate[PRESSURE_A], v_a, c['hose_a'])
    w['stiff'][1] = stiffest(c, fluid[PRESSURE_B], fluid[PRESSURE_B] + h * rate[PRESSURE_B], v_b, c['hose_b'])
    for port in range(2):
        w['by_spool'][port], w['by_holding'][port], w['by_port'][port], w['by_line'][port] = 0.0, 0.0, 0.0, 0.0
        w['demand'][port], w['pilot'][port] = 0.0, 0.0
        if o != 0.0:
            set_edge_slopes(c, w, port, h, o, o_slope, x, (fluid, rate, line, line_rate, tank))
        if c['holding'][port]:
            holding_slopes(c, w, port, h, o, tank, fluid, rate)


@kernel
def set_edge_slopes(c, w, port, h, o, o_slope, x, oil):
    """Set the slopes of the open edge of a port; oil: fluid and its rates, pressure of the line, its rate, the tank."""
    fluid, rate, line, line_rate, tank = oil
    feeding = w['feeding'] == port
    p = fluid[PRESSURE_A + port]
    ahead, share = p + h * rate[PRESSURE_A + port], 1.0
    if feeding and c['sharing']:
        share = 1.0 if max(p, ahead) >= c['sensed'] else 0.0
        p, ahead = max(p, c['sensed']), max(ahead, c['sensed'])
    beyond, beyond_ahead = (line, line + h * line_rate) if feeding else (tank, tank)
    back = not feeding and regenerates(c, o)
    if back:
        beyond, beyond_ahead = fluid[PRESSURE_A], fluid[PRESSURE_A] + h * rate[PRESSURE_A]
    w['by_spool'][port], w['by_holding'][port], slope = edge_slopes(
        c, port, o, o_slope, beyond - p, beyond_ahead - ahead, fluid[HOLDING_A + port], cushion(c, port, x))
    if back:
        w['back'], w['back_by_spool'] = slope, w['by_spool'][port]
    else:
        w['by_port'][port] = share * slope
    w['by_line'][port] = slope if feeding else 0.0


@kernel
def eliminate_chambers(c, w, h, gh, fluid, rate, tank):
    """Invert the system of both chambers; set P1, P2 and return the mass [kg] that they add to their axis."""
    slow = gh / (1.0 + gh / c['holding_time']) if c['holding'][0] or c['holding'][1] else 0.0
    a, b = gh * w['stiff'][0], gh * w['stiff'][1]
    p_a, p_b = fluid[PRESSURE_A], fluid[PRESSURE_B]
    across = c['leak'] + w['back']
    diagonal_a = across + w['by_port'][0] + guard_slope(c, p_a, p_a + h * rate[PRESSURE_A], tank)
    diagonal_b = across + w['by_port'][1] + guard_slope(c, p_b, p_b + h * rate[PRESSURE_B], tank)
    y_a, y_b = w['by_holding'][0] * slow, w['by_holding'][1] * slow
    aa = 1.0 + a * (diagonal_a - y_a * w['demand'][0])
    ab = -a * (across + y_a * w['pilot'][0])
    ba = -b * (across + y_b * w['pilot'][1])
    bb = 1.0 + b * (diagonal_b - y_b * w['demand'][1])
    ratio = 1.0 / (aa * bb - ab * ba)
    I = w['inverse']
    I[0], I[1], I[2], I[3] = bb * ratio, -ab * ratio, -ba * ratio, aa * ratio
    fall, rise = -a * c['area_a'], b * c['area_b']
    w['P1'][0], w['P1'][1] = I[0] * fall + I[1] * rise, I[2] * fall + I[3] * rise
    fed_a, fed_b = a * w['by_line'][0], b * w['by_line'][1]
    w['P2'][0], w['P2'][1] = I[0] * fed_a + I[1] * fed_b, I[2] * fed_a + I[3] * fed_b
    return gh * (c['area_b'] * w['P1'][1] - c['area_a'] * w['P1'][0])


@kernel
def set_constant_part(c, w, gh, r, k):
    """Set P0 for the right-hand side r (6,), and the increments of the spool in k (6,)."""
    if c['stuck']:
        k[SPOOL], k[SPOOL_RATE] = r[SPOOL], r[SPOOL_RATE]
    else:
        damping = 1.0 + gh * c['omega'] * (2.0 * c['zeta'] if w['regulated'] else SLEW_STIFFNESS)
        spring = gh * c['omega'] * c['omega'] * w['regulated']
        k[SPOOL] = (damping * r[SPOOL] + gh * r[SPOOL_RATE]) / (damping + gh * spring)
        k[SPOOL_RATE] = (r[SPOOL_RATE] - spring * r[SPOOL]) / (damping + gh * spring)
    b_a, b_b = (w['by_spool'][0] - w['back_by_spool']) * k[SPOOL], w['by_spool'][1] * k[SPOOL]
    if c['holding'][0] or c['holding'][1]:
        slow = 1.0 / (1.0 + gh / c['holding_time'])
        b_a += w['by_holding'][0] * slow * r[HOLDING_A]
        b_b += w['by_holding'][1] * slow * r[HOLDING_B]
    b_a = r[PRESSURE_A] + gh * w['stiff'][0] * b_a
    b_b = r[PRESSURE_B] + gh * w['stiff'][1] * b_b
    I = w['inverse']
    w['P0'][0], w['P0'][1] = I[0] * b_a + I[1] * b_b, I[2] * b_a + I[3] * b_b


@kernel
def fluid_increments(c, w, gh, r, kv, ks, k):
    """Write the increments k (6,) of pressures and holding valves for those of the axis and of the supply."""
    for port in range(2):
        k[PRESSURE_A + port] = w['P0'][port] + w['P1'][port] * kv + w['P2'][port] * ks
    if c['holding'][0] or c['holding'][1]:
        slow = 1.0 / (1.0 + gh / c['holding_time'])
        for port in range(2):
            pull = w['demand'][port] * k[PRESSURE_A + port] + w['pilot'][port] * k[PRESSURE_B - port]
            k[HOLDING_A + port] = slow * (r[HOLDING_A + port] + gh * pull)
    else:
        k[HOLDING_A], k[HOLDING_B] = r[HOLDING_A], r[HOLDING_B]


@kernel
def supply_flow_at_rest(w, k):
    """Return the increment of the flow taken from the supply at k_v = k_s = 0."""
    port = w['feeding']
    return w['by_spool'][port] * k[SPOOL] - w['by_port'][port] * w['P0'][port] if port >= 0 else 0.0


@kernel
def supply_flow_by_axis(w):
    """Return the slope of the flow taken from the supply by k_v."""
    port = w['feeding']
    return -w['by_port'][port] * w['P1'][port] if port >= 0 else 0.0


@kernel
def supply_flow_by_pressure(w):
    """Return the slope of the flow taken from the supply by its pressure, the axis held."""
    port = w['feeding']
    return w['by_line'][port] - w['by_port'][port] * w['P2'][port] if port >= 0 else 0.0
