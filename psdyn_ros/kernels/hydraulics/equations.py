"""Cylinders, valves and their supply: the equations.  Records, units and signs as in `records`.

Volumes and flows of a cylinder with position x and rate v, flows positive into the chambers:

    V_a = dead_a + area_a (x - start)             p_a' = K_a / V_a (Q_a - leak (p_a - p_b) - area_a v)
    V_b = dead_b + area_b (start + stroke - x)    p_b' = K_b / V_b (Q_b + leak (p_a - p_b) + area_b v)

    Q = gain opening sq(dp) of the open edge + suction from the return line - relief - drain (p - tank)
    sq(z) = z / (z^2 + d^2)^(1/4)

The chambers of a motor keep their dead volumes; `leak` and `drain` are its internal and external leakage (Merritt,
Hydraulic Control Systems, 1967, section 4-3; Jelali & Kroll, Hydraulic Servo-systems, 2003, section 4.5).  On their way
out of a chamber edge, load-holding valve and cushion are turbulent restrictions in series; check valves let oil in past
both.

Load sensing: the highest load pressure p_L of all ports that are fed sets the pump (Merritt 1967 has the orifice; Krus,
On Load Sensing Fluid Power Systems, Linkoping 1988, the pump), which a regulator makes a lag with limited flow:

    p' = min((p_L + margin - p) / lag, (flow - taken) / capacity),      p_L + margin at most the setting

What it is above that goes to the return line, as through an unloading valve.  Post-compensated valves, called flow
sharing or LUDV, hold p_L behind their metering edges: all see p - p_L, whatever their own load, so that flows keep
their ratio where the pump gives too little.  A regenerative valve empties chamber B into A through B-T while A is fed,
so that the pump gives the difference of the areas (differential circuit).
"""
import math

from ..runtime.compiler import entry, kernel, python_kernel
from .records import AT, HOLDING_A, HOLDING_B, PA, PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE

ATMOSPHERIC_PRESSURE_PA = 101325.0
MIN_CAVITY_PRESSURE_PA = 5000.0     # absolute: air in the oil expands no further
SUCTION_SCALE_PA = 1e5
DRAIN_OPENING = 0.02                # opening of the drain that empties the line of a port which the spool does not feed
SENSING_OPENING = 0.002             # opening at which half of a load pressure is sensed, as the sensing line drains
SLEW_STIFFNESS = 20.0               # times omega: with which a spool comes to its slew limit


@python_kernel
def root(z, d):
    """Return the regularised root sq(z) of a pressure difference."""
    return z / math.sqrt(math.sqrt(z * z + d * d))


@kernel
def root_slope(z, d):
    """Return the derivative of `root`, largest at z = 0."""
    s = z * z + d * d
    return (0.5 * z * z + d * d) / (s * math.sqrt(math.sqrt(s)))


@kernel
def metered(z, margin):
    """Return (pressure difference that a compensator leaves to the metering edge, its slope): z up to `margin`."""
    if z <= 0.0:
        return z, 1.0
    ratio = z / margin
    ratio *= ratio
    ratio *= ratio
    share = 1.0 / math.sqrt(math.sqrt(1.0 + ratio))
    return z * share, share / (1.0 + ratio)


@python_kernel
def volumes(c, x):
    """Return the volumes of both chambers [m^3]."""
    if c['motor']:
        return c['dead_a'], c['dead_b']
    travel = x - c['start']
    return c['dead_a'] + c['area_a'] * travel, c['dead_b'] + c['area_b'] * (c['stroke'] - travel)


@python_kernel
def bulk_modulus(c, p, volume, hose):
    """Return the effective bulk modulus of a chamber: oil with air that expands isentropically, wall and hoses."""
    softness = 1.0 / c['bulk']
    if c['air'] > 0.0:
        absolute = max(p + ATMOSPHERIC_PRESSURE_PA, MIN_CAVITY_PRESSURE_PA)
        bubbles = c['air'] / (1.0 - c['air']) * (ATMOSPHERIC_PRESSURE_PA / absolute) ** (1.0 / c['polytropic'])
        softness = (softness + bubbles / (c['polytropic'] * absolute)) / (1.0 + bubbles)
    softness += ((volume - hose) / c['wall'] + hose / c['hose']) / volume
    return 1.0 / softness


@python_kernel
def opening(c, spool):
    """Return (opening -1 to 1, its slope) of a spool position, dead band taken off."""
    up, down = c['overlap_up'], c['overlap_down']
    if spool > up:
        slope = 1.0 / (1.0 - up)
        o = (spool - up) * slope
        return (o, slope) if o < 1.0 else (1.0, 0.0)
    if spool < -down:
        slope = 1.0 / (1.0 - down)
        o = (spool + down) * slope
        return (o, slope) if o > -1.0 else (-1.0, 0.0)
    return 0.0, 0.0


@python_kernel
def spool_target(c):
    """Return where the spool is sent: the clipped command, over the dead band where the valve jumps it."""
    u = min(1.0, max(-1.0, c['command']))
    if c['jump']:
        if u > 0.0:
            u = c['overlap_up'] + (1.0 - c['overlap_up']) * u
        elif u < 0.0:
            u = -c['overlap_down'] + (1.0 - c['overlap_down']) * u
    return u + c['offset']


@python_kernel
def spool_rates(c, s, r):
    """Return (s', s'') of a spool: omega^2 (u - s) - 2 zeta omega s', unless s' is at its slew limit."""
    if c['stuck']:
        return 0.0, 0.0
    stiffness = SLEW_STIFFNESS * c['omega']
    return r, min(stiffness * (c['slew'] - r), max(stiffness * (-c['slew'] - r), free_spool(c, s, r)))


@kernel
def free_spool(c, s, r):
    """Return s'' of a spool without slew limit."""
    return c['omega'] * (c['omega'] * (spool_target(c) - s) - 2.0 * c['zeta'] * r)


@kernel
def cushion(c, port, x):
    """Return 1 / gain of the cushion that port 0 (A) or 1 (B) empties through, 0 outside it."""
    length = c['cushion_a'] if port == 0 else c['cushion_b']
    if length <= 0.0:
        return 0.0
    travel = x - c['start']
    left = travel if port == 0 else c['stroke'] - travel
    share = min(1.0, max(0.0, 1.0 - left / length))
    return share / c['cushion_gain']


@kernel
def edge_gain(c, port, o, y, resistance, outward):
    """Return (gain, its slopes by |opening| and by the holding valve's opening y) of the open edge of a port."""
    feeding = (o > 0.0) == (port == 0)
    full = c['gain'][2 * port + (PA if feeding else AT)]
    gain, by_o, by_y = full * abs(o), full, 0.0
    if outward:
        if c['holding'][port]:
            valve = c['holding_gain'] * max(0.0, y)
            both = math.sqrt(gain * gain + valve * valve)
            if both <= 0.0:
                return 0.0, 0.0, 0.0
            first, second = valve / both, gain / both
            by_o, by_y = by_o * first * first * first, c['holding_gain'] * second * second * second
            gain *= first
        if resistance > 0.0:
            factor = 1.0 / math.sqrt(1.0 + gain * gain * resistance * resistance)
            gain *= factor
            factor *= factor * factor
            by_o, by_y = by_o * factor, by_y * factor
    return gain, by_o, by_y


@python_kernel
def regenerates(c, o):
    """Return whether chamber B empties into A at opening o."""
    return c['regenerative'] != 0 and o > 0.0


@kernel
def opposed(c, feeding, o, dp):
    """Return whether a check valve shuts an open edge against the pressure difference dp from its other side."""
    if feeding:
        return c['check'] != 0 and dp <= 0.0
    return regenerates(c, o) and dp >= 0.0


@kernel
def edge_flow(c, port, o, p, line, y, resistance):
    """Return the flow into a chamber through the open edge of its port; line: pressure on the edge's other side."""
    feeding = (o > 0.0) == (port == 0)
    dp = line - max(p, c['sensed']) if feeding and c['sharing'] else line - p
    if opposed(c, feeding, o, dp):
        return 0.0
    gain, _, _ = edge_gain(c, port, o, y, resistance, dp < 0.0)
    if c['compensated'] and feeding:
        dp, _ = metered(dp, c['margin'])
    return gain * root(dp, c['linear'])


@kernel
def guard_flow(c, p, tank):
    """Return the flow into a chamber through anti-cavitation and relief valves, and from the case."""
    z = tank - p
    flow = c['drain'] * z
    if z > 0.0:
        flow += c['suction'] * z * z / (z + SUCTION_SCALE_PA)
    if p > c['relief']:
        flow -= c['relief_gain'] * (p - c['relief'])
    return flow


@python_kernel
def pilot_share(c, port, o):
    """Return how much of the other port's pressure pilots the holding valve of a port.

    All of it, unless a holding valve stands at the other port too: its line is then drained while the spool does not
    feed it.
    """
    if not c['holding'][1 - port]:
        return 1.0
    feeding = o if port == 1 else -o
    return feeding * feeding / (feeding * feeding + DRAIN_OPENING * DRAIN_OPENING) if feeding > 0.0 else 0.0


@python_kernel
def holding_demand(c, port, p, other, tank, share):
    """Return (opening, its slope by the load's pressure) that a holding valve goes to."""
    pilot = tank + share * (other - tank)
    wanted = (p + c['holding_ratio'] * pilot - c['holding_setting']) / c['holding_range']
    if wanted <= 0.0:
        return 0.0, 0.0
    return (1.0, 0.0) if wanted >= 1.0 else (wanted, 1.0 / c['holding_range'])


@entry
def chamber_flows(c, x, fluid, line, tank):
    """Return (Q_a, Q_b, flow taken from the supply) through the ports of a cylinder; fluid (6,)."""
    p_a, p_b = fluid[PRESSURE_A], fluid[PRESSURE_B]
    o, _ = opening(c, fluid[SPOOL])
    q_a, q_b, supply_flow = 0.0, 0.0, 0.0
    if o != 0.0:
        q_a = edge_flow(c, 0, o, p_a, line if o > 0.0 else tank, fluid[HOLDING_A], cushion(c, 0, x))
        back = regenerates(c, o)
        beyond = p_a if back else tank if o > 0.0 else line
        q_b = edge_flow(c, 1, o, p_b, beyond, fluid[HOLDING_B], cushion(c, 1, x))
        supply_flow = q_a if o > 0.0 else q_b
        q_a -= q_b if back else 0.0
    return q_a + guard_flow(c, p_a, tank), q_b + guard_flow(c, p_b, tank), supply_flow


@entry
def cylinder_rates(c, x, v, fluid, line, tank, rate):
    """Write the rates of a cylinder's fluid (6,); return the flow that it takes from the supply."""
    p_a, p_b = fluid[PRESSURE_A], fluid[PRESSURE_B]
    q_a, q_b, supply_flow = chamber_flows(c, x, fluid, line, tank)
    across = c['leak'] * (p_a - p_b)
    v_a, v_b = volumes(c, x)
    rate[PRESSURE_A] = bulk_modulus(c, p_a, v_a, c['hose_a']) / v_a * (q_a - across - c['area_a'] * v)
    rate[PRESSURE_B] = bulk_modulus(c, p_b, v_b, c['hose_b']) / v_b * (q_b + across + c['area_b'] * v)
    rate[SPOOL], rate[SPOOL_RATE] = spool_rates(c, fluid[SPOOL], fluid[SPOOL_RATE])
    rate[HOLDING_A], rate[HOLDING_B] = 0.0, 0.0
    if c['holding'][0] or c['holding'][1]:
        o, _ = opening(c, fluid[SPOOL])
        if c['holding'][0]:
            wanted, _ = holding_demand(c, 0, p_a, p_b, tank, pilot_share(c, 0, o))
            rate[HOLDING_A] = (wanted - fluid[HOLDING_A]) / c['holding_time']
        if c['holding'][1]:
            wanted, _ = holding_demand(c, 1, p_b, p_a, tank, pilot_share(c, 1, o))
            rate[HOLDING_B] = (wanted - fluid[HOLDING_B]) / c['holding_time']
    return supply_flow


@python_kernel
def pump_flow(supply, p):
    """Return the flow of the pump at line pressure p: all of it `droop` below its setting, none above the setting."""
    return supply['flow'] * min(1.0, max(0.0, (supply['pressure'] - p) / supply['droop']))


@python_kernel
def sensed_load(c, fluid, tank):
    """Return the load pressure that a section shows to load sensing: that of the port that is fed."""
    o, _ = opening(c, fluid[SPOOL])
    p = fluid[PRESSURE_A] if o > 0.0 else fluid[PRESSURE_B]
    return tank + o * o / (o * o + SENSING_OPENING * SENSING_OPENING) * max(p - tank, 0.0)


@kernel
def store_load_pressure(cylinders, supply, pressure):
    """Write the highest load pressure where it is read."""
    supply['sensed'] = pressure
    for k in range(cylinders.shape[0]):
        cylinders[k]['sensed'] = pressure


@kernel
def sensed_line(supply):
    """Return the pressure that load sensing gives the line for the load that is sensed."""
    return min(supply['pressure'], supply['sensed'] + supply['margin'])


@kernel
def line_rate(supply, p, taken):
    """Return the rate of the line's pressure p while `taken` flows out of it."""
    if supply['sensing']:
        return min((sensed_line(supply) - p) / supply['lag'], (supply['flow'] - taken) / supply['capacity'])
    return (pump_flow(supply, p) - taken) / supply['capacity']
