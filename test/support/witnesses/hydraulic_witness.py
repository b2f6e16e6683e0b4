"""The equations of hydraulic machines once more, slow and plain, from the text: a witness of the kernels.

Records come as any mapping of field names to numbers.  Nothing here knows the kernels.
"""
import math

import numpy as np

ATMOSPHERE = 101325.0


def sq(z, d):
    return z / (z * z + d * d) ** 0.25


def bulk(c, p, volume, hose):
    """Effective bulk modulus from the compressibilities of oil with air, wall and hoses."""
    absolute = max(p + ATMOSPHERE, 5000.0)
    oil = 1.0
    air = c['air'] / (1.0 - c['air']) * (ATMOSPHERE / absolute) ** (1.0 / c['polytropic'])
    mixture = (oil / c['bulk'] + air / (c['polytropic'] * absolute)) / (oil + air)
    return 1.0 / (mixture + (volume - hose) / volume / c['wall'] + hose / volume / c['hose'])


def opening(c, s):
    if s > c['overlap_up']:
        return min(1.0, (s - c['overlap_up']) / (1.0 - c['overlap_up']))
    if s < -c['overlap_down']:
        return max(-1.0, (s + c['overlap_down']) / (1.0 - c['overlap_down']))
    return 0.0


def series(*gains):
    """Gain of turbulent restrictions one after another."""
    if min(gains) == 0.0:
        return 0.0
    return sum(gain ** -2 for gain in gains) ** -0.5


def port_flow(c, port, o, x, p, y, pump, tank):
    """Flow into chamber A (port 0) or B (port 1) through the edge that is open."""
    if o == 0.0:
        return 0.0
    to_pump = (o > 0.0) if port == 0 else (o < 0.0)
    gain = c['gain'][2 * port + (0 if to_pump else 1)] * abs(o)
    back = port == 1 and o > 0.0 and c['regenerative']
    dp = (pump if to_pump else tank) - p
    if to_pump and c['sharing']:
        dp = min(dp, pump - c['sensed'])
    if dp > 0.0 and back or dp < 0.0 and to_pump and c['check']:
        return 0.0      # check valves
    if dp < 0.0:
        gains = [gain]
        if c['holding'][port]:
            gains.append(c['holding_gain'] * max(y, 0.0))
        end = c['start'] + c['stroke']
        length, left = (c['cushion_a'], x - c['start']) if port == 0 else (c['cushion_b'], end - x)
        if length > 0.0 and left < length:
            gains.append(c['cushion_gain'] / min(1.0, 1.0 - left / length))
        gain = series(*gains)
    elif to_pump and c['compensated']:
        dp = (dp ** -4 + c['margin'] ** -4) ** -0.25 if dp > 0.0 else 0.0
    return gain * sq(dp, c['linear'])


def check_valves(c, p, tank):
    flow = -c['drain'] * (p - tank)
    if p < tank:
        flow += c['suction'] * (tank - p) ** 2 / (tank - p + 1e5)
    if p > c['relief']:
        flow -= c['relief_gain'] * (p - c['relief'])
    return flow


def port_flows(c, x, fluid, pump, tank):
    """Flows into A and B through the ports, and what the pump gives of them."""
    o = opening(c, fluid[2])
    q_a = port_flow(c, 0, o, x, fluid[0], fluid[4], pump, tank)
    back = o > 0.0 and c['regenerative']
    q_b = port_flow(c, 1, o, x, fluid[1], fluid[5], pump, fluid[0] if back else tank)
    taken = q_a if o > 0.0 else q_b if o < 0.0 else 0.0
    if back:
        q_a -= q_b      # from B into A
    return q_a + check_valves(c, fluid[0], tank), q_b + check_valves(c, fluid[1], tank), taken


def spool(c, s, r):
    if c['stuck']:
        return 0.0, 0.0
    u = min(1.0, max(-1.0, c['command']))
    if c['jump'] and u != 0.0:
        band = c['overlap_up'] if u > 0.0 else c['overlap_down']
        u = math.copysign(band + (1.0 - band) * abs(u), u)
    free = c['omega'] ** 2 * (u + c['offset'] - s) - 2.0 * c['zeta'] * c['omega'] * r
    # to the limit with a time constant of 1 / (20 omega)
    return r, float(np.clip(free, 20.0 * c['omega'] * (-c['slew'] - r), 20.0 * c['omega'] * (c['slew'] - r)))


def holding(c, port, fluid, tank):
    """Rate of the opening of the holding valve at a port."""
    if not c['holding'][port]:
        return 0.0
    pilot = fluid[1 - port]
    if c['holding'][1 - port]:
        # the line of the other port is held at tank pressure by a drain of 2 %, unless the spool feeds it
        o = opening(c, fluid[2])
        fed = max(0.0, o if port == 1 else -o)
        pilot = tank + (pilot - tank) * fed ** 2 / (fed ** 2 + 0.02 ** 2)
    wanted = (fluid[port] + c['holding_ratio'] * pilot - c['holding_setting']) / c['holding_range']
    return (min(1.0, max(0.0, wanted)) - fluid[4 + port]) / c['holding_time']


def fluid_rates(c, x, v, fluid, pump, tank):
    """Rates of p_a, p_b, spool, its rate and both holding valves; and the flow taken from the pump."""
    q_a, q_b, taken = port_flows(c, x, fluid, pump, tank)
    leak = c['leak'] * (fluid[0] - fluid[1])
    v_a, v_b = c['dead_a'], c['dead_b']
    if not c['motor']:
        v_a += c['area_a'] * (x - c['start'])
        v_b += c['area_b'] * (c['start'] + c['stroke'] - x)
    return [bulk(c, fluid[0], v_a, c['hose_a']) / v_a * (q_a - leak - c['area_a'] * v),
            bulk(c, fluid[1], v_b, c['hose_b']) / v_b * (q_b + leak + c['area_b'] * v),
            *spool(c, fluid[2], fluid[3]), holding(c, 0, fluid, tank), holding(c, 1, fluid, tank)], taken


def friction(b, v, z):
    """Friction force and rate of the bristle."""
    fade = math.exp(-(v / b['stribeck_velocity']) ** 2) if b['stribeck_velocity'] > 0.0 else 0.0
    if b['bristle'] > 0.0:
        rate = v - b['bristle'] * abs(v) / (b['coulomb'] + b['stribeck'] * fade) * z
        damping = b['bristle_damping'] * (fade if b['stribeck_velocity'] > 0.0 else 1.0)
        return b['bristle'] * z + damping * rate + b['viscous'] * v, rate
    return (b['coulomb'] + b['stribeck'] * fade) * math.tanh(v / b['slip']) + b['viscous'] * v, 0.0


def stop(depth, rate, k, c):
    return max(0.0, k * depth * (1.0 + c * rate)) if depth > 0.0 else 0.0


def axis_force(b, q, v, z, drive):
    """Net force of an axis, and the rate of its bristle."""
    lost, rate = friction(b, v, z)
    force = drive - lost
    force += stop(b['lower'] - q, -v, b['stop_stiffness'], b['stop_damping'])
    force -= stop(q - b['upper'], v, b['stop_stiffness'], b['stop_damping'])
    if b['braked']:
        force += b['brake_force'] - b['brake_stiffness'] * (q - b['brake_position']) - b['brake_damping'] * v
    return force, rate


def sensed_load(cylinders, fluids, tank):
    """Highest pressure of all ports that are fed, each faded in over an opening of 0.2 %."""
    found = [tank]
    for c, fluid in zip(cylinders, fluids):
        o = opening(c, fluid[2])
        load = max(fluid[0] if o > 0.0 else fluid[1], tank)
        found.append(tank + (load - tank) / (1.0 + (0.002 / o) ** 2) if o != 0.0 else tank)
    return max(found)


def sensing_line_rate(s, p, load, taken):
    """Rate of the line of a load-sensing pump: a lag, unless the pump gives all that it can."""
    wanted = min(load + s['margin'], s['pressure'])
    return min((wanted - p) / s['lag'], (s['flow'] - taken) / s['capacity'])


def pump_flow(s, p):
    return s['flow'] * min(1.0, max(0.0, (s['pressure'] - p) / s['droop']))
