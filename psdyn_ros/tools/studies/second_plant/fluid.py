"""Cylinders with their valves, friction of the seals, pump line and end stops; and the rates of the whole plant.

    chambers   p' = K / V (Q - A v - leakage), K falling to nothing at vacuum
    edges      Q = c o sqrt(dp); below the transition pressure d an odd cubic with the same value and slope at d,
               sqrt(d) z (5 - z^2) / 4, z = dp / d (after Ellman and Piche, 1999)
    spool      pilot and main stage, a lag of damping / omega each, the main stage with a limited rate
    friction   elasto-plastic bristle (Dupont, Hayward, Armstrong and Altpeter, 2002), Stribeck curve of Tustin: it
               sticks without creeping
    pump       swash plate with a lag, on a line of its own volume; unlimited: constant pressure
    stops      spring and damper at the limits of a joint, never pulling
    brake      spring and damper about the position where it was engaged

State: y, yd, bristles (dof,) each; p_a, p_b, pilot, spool of each cylinder; pressure of the line, share of the pump.
"""

import math

import numpy as np

from .compiled import compiled
from .mechanism import equations_of_motion

AXIS = np.dtype([(name, 'f8') for name in (
    'coulomb', 'stiction', 'stribeck_velocity', 'viscous', 'bristle', 'bristle_damping', 'lower', 'upper',
    'stop_stiffness', 'stop_damping', 'braked', 'brake_position', 'brake_stiffness', 'brake_damping', 'brake_force',
    'effort')])
CYLINDER = np.dtype([('axis', 'i8'), ('gain', 'f8', 4), *((name, 'f8') for name in (
    'area_a', 'area_b', 'dead_a', 'dead_b', 'stroke', 'transition', 'overlap_up', 'overlap_down', 'lag', 'slew',
    'leakage', 'relief', 'relief_gain', 'suction', 'bulk', 'command'))])
SUPPLY = np.dtype([(name, 'f8') for name in ('pressure', 'return_pressure', 'flow', 'droop', 'volume', 'bulk', 'lag')])
BREAKAWAY = 0.7     # share of the deflection of sliding up to which a bristle is purely elastic
VACUUM_PA, VACUUM_RANGE_PA = -0.9e5, 2e4


@compiled
def edge_flow(gain, opening, drop, transition):
    """Return the flow [m^3/s] through an edge at a pressure drop [Pa]."""
    size = abs(drop)
    if size >= transition:
        root = math.copysign(math.sqrt(size), drop)
    else:
        z = drop / transition
        root = math.sqrt(transition) * z * (5.0 - z * z) / 4.0
    return gain * opening * root


@compiled
def opening_of(cylinder, spool):
    """Return the share of the edges that is open, -1 to 1."""
    if spool > cylinder['overlap_up']:
        return min(1.0, (spool - cylinder['overlap_up']) / (1.0 - cylinder['overlap_up']))
    if spool < -cylinder['overlap_down']:
        return max(-1.0, (spool + cylinder['overlap_down']) / (1.0 - cylinder['overlap_down']))
    return 0.0


@compiled
def port_flows(cylinder, spool, p_a, p_b, pump, tank):
    """Return flows [m^3/s] into A and into B through the spool, and what the pump gives of them."""
    o, gain, d = opening_of(cylinder, spool), cylinder['gain'], cylinder['transition']
    if o > 0.0:
        q = edge_flow(gain[0], o, pump - p_a, d)
        return q, -edge_flow(gain[3], o, p_b - tank, d), q
    q = edge_flow(gain[2], -o, pump - p_b, d)
    return -edge_flow(gain[1], -o, p_a - tank, d), q, q


@compiled
def pressure_rate(cylinder, pressure, volume, flow, tank):
    """Return dp/dt [Pa/s] of a chamber, relief and suction valve included."""
    flow -= cylinder['relief_gain'] * max(0.0, pressure - cylinder['relief'])
    flow += cylinder['suction'] * max(0.0, tank - pressure)
    stiff = 1.0
    if flow < 0.0:
        stiff = min(1.0, max(0.0, (pressure - VACUUM_PA) / VACUUM_RANGE_PA))
    return stiff * cylinder['bulk'] / volume * flow


@compiled
def friction(axis, v, z):
    """Return the friction force [N, N m], and the rate of the bristle of deflection z."""
    if axis['coulomb'] == 0.0:
        return axis['viscous'] * v, 0.0
    sliding = (axis['coulomb'] + axis['stiction'] * math.exp(-abs(v) / axis['stribeck_velocity'])) / axis['bristle']
    elastic = BREAKAWAY * axis['coulomb'] / axis['bristle']
    share = 0.0
    if v * z > 0.0:
        if abs(z) >= sliding:
            share = 1.0
        elif abs(z) > elastic:
            share = 0.5 + 0.5 * math.sin(math.pi * (abs(z) - 0.5 * (sliding + elastic)) / (sliding - elastic))
    rate = v * (1.0 - share * abs(z) / sliding)
    return axis['bristle'] * z + axis['bristle_damping'] * rate + axis['viscous'] * v, rate


@compiled
def axis_force(axis, position, v, force, lost):
    """Return the net force on an axis: of its drive, less friction, with stops and brake."""
    force -= lost
    if position < axis['lower']:
        force += max(0.0, axis['stop_stiffness'] * (axis['lower'] - position) - axis['stop_damping'] * v)
    if position > axis['upper']:
        force -= max(0.0, axis['stop_stiffness'] * (position - axis['upper']) + axis['stop_damping'] * v)
    if axis['braked'] > 0.0:
        force += (axis['brake_force'] - axis['brake_stiffness'] * (position - axis['brake_position'])
                  - axis['brake_damping'] * v)
    return force


@compiled
def rates(t, state, tree, axes, cylinders, supply):
    """Return the rates of the state; tree: (joints, triangles, rows of the actuators)."""
    joints, triangles, rows = tree
    n, count = rows.shape[0], cylinders.shape[0]
    out = np.zeros(state.shape[0])
    y, yd, bristles = state[:n], state[n:2 * n], state[2 * n:3 * n]
    M, h, _, q, G = equations_of_motion(joints, triangles, y, yd)
    out[:n] = yd
    line = state[3 * n + 4 * count]
    pump = line if supply['flow'] < math.inf else supply['pressure']
    tank, taken = supply['return_pressure'], 0.0
    drive = np.empty(n)
    for i in range(n):
        drive[i] = axes[i]['effort']
    for k in range(count):
        c = cylinders[k]
        at, axis = 3 * n + 4 * k, c['axis']
        p_a, p_b, pilot, spool = state[at], state[at + 1], state[at + 2], state[at + 3]
        x = q[rows[axis]]
        v = G[rows[axis]] * yd[axis]
        q_a, q_b, from_pump = port_flows(c, spool, p_a, p_b, pump, tank)
        leak = c['leakage'] * (p_a - p_b)
        out[at] = pressure_rate(c, p_a, c['dead_a'] + c['area_a'] * x, q_a - leak - c['area_a'] * v, tank)
        out[at + 1] = pressure_rate(c, p_b, c['dead_b'] + c['area_b'] * (c['stroke'] - x), q_b + leak + c['area_b'] * v,
                                    tank)
        out[at + 2] = (c['command'] - pilot) / c['lag']
        out[at + 3] = min(c['slew'], max(-c['slew'], (pilot - spool) / c['lag']))
        drive[axis] += p_a * c['area_a'] - p_b * c['area_b']
        taken += from_pump
    for i in range(n):
        slope = G[rows[i]]
        lost, out[2 * n + i] = friction(axes[i], slope * yd[i], bristles[i])
        h[i] = slope * axis_force(axes[i], q[rows[i]], slope * yd[i], drive[i], lost) - h[i]
    out[n:2 * n] = np.linalg.solve(M, h)
    if supply['flow'] < math.inf:
        share, at = state[3 * n + 4 * count + 1], 3 * n + 4 * count
        wanted = min(1.0, max(0.0, (supply['pressure'] - line) / supply['droop']))
        out[at] = supply['bulk'] / supply['volume'] * (supply['flow'] * share - taken)
        out[at + 1] = (wanted - share) / supply['lag']
    return out
