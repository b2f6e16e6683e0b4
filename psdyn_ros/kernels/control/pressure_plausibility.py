"""Plausibility of measured pressures, and of measured motion by the flow of oil.

A pressure is possible where it is within its range, and where it changed no faster than oil lets it.  The oil that a
valve lets into a chamber says how far the rod must have gone, from either chamber by itself:

    area_a v_a = Q_a - leak (p_a - p_b) - V_a p_a' / K_a          -area_b v_b = Q_b + leak (p_a - p_b) - V_b p_b' / K_b

Each is compared with the rate of the measured position, over a time constant.  Letters and signs as in
`kernels/hydraulics/equations.py`.
"""
import math
from typing import NamedTuple

import numpy as np

from ..hydraulics.equations import (
    bulk_modulus,
    chamber_flows,
    free_spool,
    holding_demand,
    opening,
    pilot_share,
    spool_target,
    volumes,
)
from ..hydraulics.records import HOLDING_A, HOLDING_B, PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE
from ..runtime.compiler import entry, kernel
from .valve_inversion import force_gains

POSSIBLE, NOT_FINITE, OUT_OF_RANGE, TOO_FAST = range(4)
SUBSTEPS = 4                # of the spool within a cycle
REMEMBERED_WAY_M = 0.5      # over which flows and measured motion are compared in sum
LEARNABLE = 0.25            # of the measured rate, by which those of the flows are off at most
SPOOL_STEP = 0.5            # of omega times a substep, at most

# One for each sensor: of ports A and B of every cylinder, and of the supply.
PRESSURE_SENSOR = np.dtype([
    ('low', 'f8'), ('high', 'f8'),      # Pa gauge
    ('rate', 'f8'),                     # Pa/s, the fastest change
    ('step', 'f8'),                     # Pa, a change that is possible at once
    ('value', 'f8'),                    # Pa, last accepted
    ('changed', 'i8'),                  # ns, of the last value that was another one; 0: none yet
    ('beside', 'f8'),                   # Pa, of the other port of the cylinder at that time
], align=True)

# One for each cylinder whose valve is commanded.
FLOW_WITNESS = np.dtype([
    ('cylinder', 'i8'),                 # row of CYLINDER
    ('actuator', 'i8'),
    ('stroke', 'f8'),                   # m, of the cycle before
    ('pressure_a', 'f8'), ('pressure_b', 'f8'),     # Pa, of the cycle before
    ('rate', 'f8'), ('rate_a', 'f8'), ('rate_b', 'f8'),     # m/s: measured, v_a, v_b, smoothed
    ('way', 'f8'), ('way_a', 'f8'), ('way_b', 'f8'),        # m, gone of late: by the three rates, forward in sum
    ('commanded', 'f8'),                # m/s, of the rod at constant pressures, once the spool is where it is sent
    ('stiffness', 'f8'),                # N/m, of the oil in both chambers
], align=True)


class Witnesses(NamedTuple):
    """What is known of the oil of all commanded cylinders."""

    records: np.ndarray     # (n,) FLOW_WITNESS
    fluid: np.ndarray       # (n, 6) measured pressures, spool and load-holding valves by the model


class Oil(NamedTuple):
    """What is measured of it."""

    pressures: np.ndarray   # (m, 2) Pa gauge, of chambers A and B
    supply: float           # Pa gauge
    tank: float             # Pa gauge


@entry
def judge_pressures(sensors, values, stamp, before):
    """Return (POSSIBLE, 0) and keep the values (n,) [Pa], or (why not, which sensor) and keep nothing.

    sensors        (n,) PRESSURE_SENSOR: ports A and B of one cylinder after the other, then the supply
    stamp, before  ns, of these values and of those accepted before; 0: none were, any within its range will do
    """
    for i in range(values.shape[0]):
        s, value = sensors[i], values[i]
        if not math.isfinite(value):
            return NOT_FINITE, i
        if value < s['low'] or value > s['high']:
            return OUT_OF_RANGE, i
        if before != 0 and abs(value - s['value']) > s['step'] + s['rate'] * 1e-9 * float(stamp - before):
            return TOO_FAST, i
    for i in range(values.shape[0]):
        s = sensors[i]
        if before == 0 or s['changed'] == 0 or values[i] != s['value']:
            s['changed'] = stamp
            s['beside'] = values[i ^ 1] if i ^ 1 < values.shape[0] else 0.0
        s['value'] = values[i]
    return POSSIBLE, 0


@entry
def frozen_pressure(sensors, ports, stamp, freeze_time):
    """Return the port that shows one value for `freeze_time` [ns] while the other of its cylinder moved; -1: none.

    The first `ports` of the sensors are ports; the other one moved by more than may happen at once.
    """
    for i in range(ports):
        s = sensors[i]
        if stamp - s['changed'] >= freeze_time and abs(sensors[i ^ 1]['value'] - s['beside']) > s['step']:
            return i
    return -1


@kernel
def advance_valve(c, fluid, tank, dt):
    """Advance spool and load-holding valves of a cylinder by dt [s], under its command."""
    steps = max(SUBSTEPS, int(math.ceil(c['omega'] * dt / SPOOL_STEP)))
    h = dt / steps
    for _ in range(steps):
        r = fluid[SPOOL_RATE] + h * free_spool(c, fluid[SPOOL], fluid[SPOOL_RATE])
        fluid[SPOOL_RATE] = max(-c['slew'], min(c['slew'], r))
        fluid[SPOOL] += h * fluid[SPOOL_RATE]
    o, _ = opening(c, fluid[SPOOL])
    for port in range(2):
        if c['holding'][port]:
            load, pilot, row = (PRESSURE_A, PRESSURE_B, HOLDING_A) if port == 0 else (PRESSURE_B, PRESSURE_A, HOLDING_B)
            wanted, _ = holding_demand(c, port, fluid[load], fluid[pilot], tank, pilot_share(c, port, o))
            fluid[row] += (wanted - fluid[row]) * (1.0 - math.exp(-dt / c['holding_time']))


@kernel
def rates_by_flow(c, x, fluid, line, tank, slope_a, slope_b):
    """Return (v_a, v_b) [m/s]: rates of the rod by the flows into both chambers; slopes: of the pressures [Pa/s]."""
    q_a, q_b, _ = chamber_flows(c, x, fluid, line, tank)
    across = c['leak'] * (fluid[PRESSURE_A] - fluid[PRESSURE_B])
    v_a, v_b = volumes(c, x)
    soft_a = v_a / bulk_modulus(c, fluid[PRESSURE_A], v_a, c['hose_a'])
    soft_b = v_b / bulk_modulus(c, fluid[PRESSURE_B], v_b, c['hose_b'])
    return ((q_a - across - soft_a * slope_a) / c['area_a'], -(q_b + across - soft_b * slope_b) / c['area_b'])


@entry
def compare_flows(witnesses, cylinders, oil, position, commands, dt, smoothing):
    """Advance the oil by dt [s], 0 at first, and compare its flows with the measured motion.

    witnesses  `Witnesses`; their `rate`, `rate_a`, `rate_b`, `commanded`, `stiffness` are the result
    cylinders  (m,) CYLINDER as the law believes in them; `command` is overwritten
    oil        `Oil` of the cylinders
    position   (actuators,) measured [m]
    commands   (actuators,) of the spools since the cycle before
    smoothing  s, time constant
    """
    pressures, supply, tank = oil
    for i in range(witnesses.records.shape[0]):
        w, fluid = witnesses.records[i], witnesses.fluid[i]
        c, x = cylinders[w['cylinder']], position[w['actuator']]
        fluid[PRESSURE_A], fluid[PRESSURE_B] = pressures[w['cylinder'], 0], pressures[w['cylinder'], 1]
        if dt > 0.0:
            c['command'] = commands[w['actuator']]
            advance_valve(c, fluid, tank, dt)
            v_a, v_b = rates_by_flow(c, x, fluid, supply, tank, (fluid[PRESSURE_A] - w['pressure_a']) / dt,
                                     (fluid[PRESSURE_B] - w['pressure_b']) / dt)
            v = (x - w['stroke']) / dt
            share = 1.0 - math.exp(-dt / smoothing)
            w['rate'] += share * (v - w['rate'])
            w['rate_a'] += share * (v_a - w['rate_a'])
            w['rate_b'] += share * (v_b - w['rate_b'])
            step = dt * abs(w['rate'])
            # nothing is learnt of a chamber, or of a position, that is wrong
            if max(abs(w['rate_a'] - w['rate']), abs(w['rate_b'] - w['rate'])) < LEARNABLE * abs(w['rate']):
                kept, forward = math.exp(-step / REMEMBERED_WAY_M), math.copysign(dt, w['rate'])
                w['way'] = kept * w['way'] + step
                w['way_a'] = kept * w['way_a'] + forward * w['rate_a']
                w['way_b'] = kept * w['way_b'] + forward * w['rate_b']
        c['command'], spool = commands[w['actuator']], fluid[SPOOL]
        fluid[SPOOL] = spool_target(c)
        v_a, v_b = rates_by_flow(c, x, fluid, supply, tank, 0.0, 0.0)
        w['commanded'], fluid[SPOOL] = 0.5 * (v_a + v_b), spool
        k_a, k_b = force_gains(c, fluid[PRESSURE_A], fluid[PRESSURE_B], x)
        w['stiffness'] = k_a * c['area_a'] + k_b * c['area_b']
        w['stroke'], w['pressure_a'], w['pressure_b'] = x, fluid[PRESSURE_A], fluid[PRESSURE_B]
