"""Plausibility of measured pressures, and of measured motion by the flow of oil.

A pressure is possible where it is within its range, and where it changed no faster than oil lets it; a jump that oil
allows counts from the second message on.  The oil that a valve lets into a chamber says how far the rod must have gone,
from either chamber by itself:

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
    sensed_load,
    spool_target,
    volumes,
)
from ..hydraulics.records import CYLINDER, HOLDING_A, HOLDING_B, PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE
from ..rigid_body.entry import finite
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import entry, inner, kernel
from ..runtime.status import OK
from .actuation import INT
from .valve_inversion import MIN_CHAMBER_VOLUME_M3, force_gains

POSSIBLE, NOT_FINITE, OUT_OF_RANGE, TOO_FAST, UNCONFIRMED = range(5)
OPENING_MARGIN = 0.1        # opening of a valve beyond its command
SUBSTEPS = 4                # of the spool within a cycle
REMEMBERED_WAY_M = 0.5      # over which flows and measured motion are compared in sum
LEARNABLE = 0.25            # of the measured rate, by which those of the flows are off at most
SPOOL_STEP = 0.5            # of omega times a substep, at most
SMOOTHING_S = 0.25          # over which rates are compared
PRIOR_M = 0.1               # of motion that count as going as the model of the valve says
SCATTER = 0.05              # share of the speed by which flows differ from their mean
MOVES_AS_OIL, ONE_OFF, BOTH_OFF = range(3)      # verdicts on a rod

# of commands for another speed than that of the reference
SLACK = 0.1                 # of the speed of the reference by which a command may be for another one
STOP_SHARE = 0.25           # of what a command may be off its range in motion, that it may be in a stop
LOOP_GAIN = 20.0            # 1/s, speed that a sound law asks for at most, for an error of position or of compression
LASTING_S = 1.0             # in which an integral forgets what the force lacked
CHANGE = 1.5                # times the flow that compresses the oil as the force of the model changes
HALVINGS = 8                # of the interval in which the command that is allowed is searched
OPEN = 1.0                  # command of a valve that is open entirely

# One for each sensor: of ports A and B of every cylinder, and of the supply.
PRESSURE_SENSOR = np.dtype([
    ('low', 'f8'), ('high', 'f8'),      # Pa gauge
    ('rate', 'f8'),                     # Pa/s, the fastest change
    ('step', 'f8'),                     # Pa, a change that is possible at once
    ('jump', 'f8'), ('jump_rate', 'f8'),    # Pa, Pa/s: the largest change at once, and for each second, that one
                                        # message is believed
    ('value', 'f8'),                    # Pa, last accepted
    ('unconfirmed', 'f8'),              # Pa, of the message before, where it was refused as a jump; NaN: it was not
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
    ('verdict', 'i8'),
    ('oil_a', 'f8'), ('oil_b', 'f8'),   # m/s by either chamber, corrected by what was learnt on the way
    ('allowed', 'f8'),                  # m/s, by which these may be off
    ('slack', 'f8'),                    # m/s, by which a command may be off beyond all that explains it
    ('effort', 'f8'),                   # N of the model, in the cycle before
    ('lasting', 'f8'),                  # m, by which the oil lacked compression of late
    ('commanded', 'f8'),                # m/s, of the rod at a constant force, once the spool is where it is sent
    ('low', 'f8'), ('high', 'f8'),      # m/s for which a command may be
], align=True)


MEASURED, REFERENCE, RATE, AHEAD_RATE, RESIDUAL, EFFORT = range(6)     # rows of the motion


class Witnesses(NamedTuple):
    """What is known of the oil of all n commanded cylinders, and the motion of all actuators."""

    records: np.ndarray     # (n,) FLOW_WITNESS
    fluid: np.ndarray       # (n, 6) measured pressures, spool and load-holding valves by the model
    cylinders: np.ndarray   # (m,) CYLINDER as the law believes in them
    allowed: np.ndarray     # (2,) m/s, and share of the speed before anything was learnt, by which flows may be off
    motion: np.ndarray      # (6, actuators) position measured, and of the reference [m], rate of that now and at the
                            # time that the law looks ahead to [m/s]; force of the piston beyond the model, effort of
                            # the model [N]


# types of the fields of `Witnesses`
TYPES = FLOW_WITNESS, FLOAT, CYLINDER, FLOAT, FLOAT


@kernel
def bind_witnesses(buffer):
    """Return the `Witnesses` of a buffer."""
    return Witnesses(records(buffer, 0, FLOW_WITNESS)[0], matrix(buffer, 1)[0], records(buffer, 2, CYLINDER)[0],
                     records(buffer, 3, FLOAT)[0], matrix(buffer, 4)[0])


class Oil(NamedTuple):
    """What is measured of it."""

    pressures: np.ndarray   # (m, 2) Pa gauge, of chambers A and B
    line: float             # Pa gauge, of the supply
    tank: float             # Pa gauge


@kernel
def measured_oil(s, pressures, supply, line):
    """Return the `Oil` of measured pressures (m, 2) and of the supply, NaN: its setting, or what load sensing makes it.

    Takes the pressures into the fluid of the witnesses.
    """
    tank, most = supply[0]['return_pressure'], supply[0]['pressure']
    highest = tank
    for i in range(s.records.shape[0]):
        k, fluid = s.records[i]['cylinder'], s.fluid[i]
        fluid[PRESSURE_A], fluid[PRESSURE_B] = pressures[k, 0], pressures[k, 1]
        highest = max(highest, sensed_load(s.cylinders[k], fluid, tank))
    for k in range(s.cylinders.shape[0]):
        s.cylinders[k]['sensed'] = highest
    if supply[0]['sensing']:
        most = min(most, highest + supply[0]['margin'])
    return Oil(pressures, most if math.isnan(line) else line, tank)


class PressureRates(NamedTuple):
    """What m cylinders let their pressures change by, and how far their valves may be open."""

    cylinders: np.ndarray   # (m,) CYLINDER
    commanded: np.ndarray   # (m,) 1: the valve is; others may be open
    margin: np.ndarray      # (m,) m/s by which a rod may be faster than measured
    fastest: np.ndarray     # (m, 2) Pa/s of chambers A and B, at any opening and stroke
    decay: np.ndarray       # (1,) share of its opening that a spool may keep for a period
    opening: np.ndarray     # (m,) of the valves, at most


def make_pressure_rates(cylinders, commanded, margin, fastest, decay):
    """Return the buffer of `PressureRates`, with valves that may be open."""
    return pack(PressureRates(cylinders, np.array(commanded, INT), np.array(margin, dtype=float), np.array(fastest),
                              np.array([decay]), np.ones(len(cylinders))))


@kernel
def bind_pressure_rates(buffer):
    """Return the `PressureRates` of a buffer."""
    return PressureRates(records(buffer, 0, CYLINDER)[0], records(buffer, 1, INT)[0], records(buffer, 2, FLOAT)[0],
                         matrix(buffer, 3)[0], records(buffer, 4, FLOAT)[0], records(buffer, 5, FLOAT)[0])


@entry
def set_pressure_rates(buffer, sensors, supply, command, position, rate):
    """Set how fast the pressures of `judge_pressures` may change, by the flows of valves and rods.

    buffer          of `PressureRates`
    sensors         (2 m + 1,) PRESSURE_SENSOR
    supply          (1,) SUPPLY
    command         (actuators,) of the last cycle; NaN: left out
    position, rate  (actuators,) measured
    """
    s, total = bind_pressure_rates(buffer), 0.0
    for k in range(s.cylinders.shape[0]):
        c, port_a, port_b = s.cylinders[k], sensors[2 * k], sensors[2 * k + 1]
        axis = c['axis']
        now = abs(given(command, axis)) if s.commanded[k] else 1.0
        s.opening[k] = max(now, s.decay[0] * s.opening[k])
        gain = max(max(c['gain'][0], c['gain'][1]), max(c['gain'][2], c['gain'][3]))
        flow = (gain * math.sqrt(max(port_a['high'], port_b['high']))
                * min(s.opening[k] + OPENING_MARGIN, 1.0))
        speed = abs(rate[axis]) + s.margin[k]
        volume_a, volume_b = volumes(c, position[axis])
        fastest_a = c['bulk'] / max(volume_a, MIN_CHAMBER_VOLUME_M3) * (flow + c['area_a'] * speed)
        fastest_b = c['bulk'] / max(volume_b, MIN_CHAMBER_VOLUME_M3) * (flow + c['area_b'] * speed)
        port_a['rate'], port_b['rate'] = min(fastest_a, s.fastest[k, 0]), min(fastest_b, s.fastest[k, 1])
        total += flow
    if supply[0]['limited']:
        sensors[2 * s.cylinders.shape[0]]['rate'] = (total + supply[0]['flow']) / supply[0]['capacity']
        if supply[0]['sensing']:
            sensors[2 * s.cylinders.shape[0]]['rate'] += supply[0]['pressure'] / supply[0]['lag']


@entry
def judge_pressures(sensors, pressures, supply, stamp, before, freeze_time):
    """Return (POSSIBLE, frozen port) and keep the values, or (why not, which sensor) and accept nothing.

    A jump is refused once, as UNCONFIRMED; the next message confirms it, or goes on the same way.

    sensors            (2 m + 1,) PRESSURE_SENSOR: ports A and B of one cylinder after the other, then the supply
    pressures, supply  (m, 2) and one [Pa]
    stamp, before      ns, of these values and of those accepted before; 0: none were, any within its range will do
    freeze_time        ns, see `frozen_port`
    """
    for i in range(sensors.shape[0]):
        if not math.isfinite(measured_by(sensors, pressures, supply, i)):
            return NOT_FINITE, i
    since, jumped = 1e-9 * float(stamp - before), -1
    for i in range(sensors.shape[0]):
        s, value = sensors[i], measured_by(sensors, pressures, supply, i)
        if value < s['low'] or value > s['high']:
            return OUT_OF_RANGE, i
        if before != 0:
            change, most = abs(value - s['value']), s['jump'] + s['jump_rate'] * since
            if change > s['step'] + s['rate'] * since:
                return TOO_FAST, i
            if change > most and not confirmed(s, value, most):
                jumped = i
    if jumped >= 0:
        for i in range(sensors.shape[0]):
            sensors[i]['unconfirmed'] = measured_by(sensors, pressures, supply, i)
        return UNCONFIRMED, jumped
    for i in range(sensors.shape[0]):
        s, value = sensors[i], measured_by(sensors, pressures, supply, i)
        if before == 0 or s['changed'] == 0 or value != s['value']:
            s['changed'] = stamp
            s['beside'] = measured_by(sensors, pressures, supply, i ^ 1) if i + 1 < sensors.shape[0] else 0.0
        s['value'], s['unconfirmed'] = value, math.nan
    return POSSIBLE, frozen_port(sensors, stamp, freeze_time)


@kernel
def confirmed(s, value, most):
    """Whether a value lies where the message before was refused as a jump, to within `most`, or beyond."""
    further = value - s['unconfirmed']
    return abs(further) <= most or further * (s['unconfirmed'] - s['value']) > 0.0


@kernel
def measured_by(sensors, pressures, supply, i):
    """Return what sensor i measured [Pa]."""
    return pressures[i // 2, i % 2] if i + 1 < sensors.shape[0] else supply


@kernel
def frozen_port(sensors, stamp, freeze_time):
    """Return the port that shows one value for `freeze_time` [ns] while the other of its cylinder moved; -1: none.

    The other one moved by more than may happen at once.
    """
    for i in range(sensors.shape[0] - 1):
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


@kernel
def given(commands, i):
    """Return the command of an actuator, 0 where it is left out."""
    return 0.0 if math.isnan(commands[i]) else commands[i]


@entry
def compare_flows(buffer, supply, line, pressures, commands, dt):
    """Advance the oil by dt [s], 0 at first, and compare its flows with the measured motion.

    buffer           of `Witnesses`, with the positions of this cycle
    supply           (1,) SUPPLY
    line, pressures  measured pressure of the supply, NaN: its setting, and those of the chambers (m, 2) [Pa gauge]
    commands         (actuators,) of the spools since the cycle before; NaN: left out

    Returns the number of rods that move otherwise than their oil; `verdict` of each witness has which.
    """
    s, wrong = bind_witnesses(buffer), 0
    oil = measured_oil(s, pressures, supply, line)
    for i in range(s.records.shape[0]):
        w, fluid = s.records[i], s.fluid[i]
        c, x = s.cylinders[w['cylinder']], s.motion[MEASURED, w['actuator']]
        if dt > 0.0:
            c['command'] = given(commands, w['actuator'])
            advance_valve(c, fluid, oil.tank, dt)
            compare_rates(w, c, fluid, x, oil, dt)
        w['stroke'], w['pressure_a'], w['pressure_b'] = x, fluid[PRESSURE_A], fluid[PRESSURE_B]
        judge_rod(w, s.allowed)
        wrong += w['verdict'] != MOVES_AS_OIL
    return wrong


@kernel
def compare_rates(w, c, fluid, x, oil, dt):
    """Smooth the rates of a rod by its position and by both flows, and sum up the ways of late."""
    v_a, v_b = rates_by_flow(c, x, fluid, oil.line, oil.tank, (fluid[PRESSURE_A] - w['pressure_a']) / dt,
                             (fluid[PRESSURE_B] - w['pressure_b']) / dt)
    v = (x - w['stroke']) / dt
    share = 1.0 - math.exp(-dt / SMOOTHING_S)
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


@kernel
def judge_rod(w, allowed):
    """Set the verdict on a rod, and what it is based on."""
    way = w['way'] + PRIOR_M
    w['oil_a'] = w['rate_a'] * way / max(w['way_a'] + PRIOR_M, PRIOR_M)
    w['oil_b'] = w['rate_b'] * way / max(w['way_b'] + PRIOR_M, PRIOR_M)
    share = allowed[1] * PRIOR_M / way + SCATTER
    w['allowed'] = allowed[0] + share * max(abs(w['rate']), max(abs(w['oil_a']), abs(w['oil_b'])))
    off_a, off_b = w['oil_a'] - w['rate'], w['oil_b'] - w['rate']
    w['verdict'] = MOVES_AS_OIL
    if min(off_a, off_b) > w['allowed'] or max(off_a, off_b) < -w['allowed']:
        w['verdict'] = BOTH_OFF
    elif max(abs(off_a), abs(off_b)) > w['allowed']:
        w['verdict'] = ONE_OFF


@entry
def restrain_valves(buffer, supply, line, pressures, command, last, period, stopping):
    """Take the commands of valves into the range that reference and errors explain; return (witness, how far beyond).

    The worst one, and that distance as a share of its slack; (-1, 0) where the commands stay as they are, as they do
    where one is not finite. The farther a command is beyond its range the less it counts: beyond it by the slack it
    does not count at all, and the output stays what it was before.

    buffer   of `Witnesses`, with the motion of this cycle; the oil as of `compare_flows`
    command  (actuators,)
    last     (actuators,) the commands before, NaN: left out
    period   s
    stopping whether the machine is brought to rest: valves then shut as fast as the reference, see `restrain_stop`
    """
    if finite(command) != OK:
        return -1, 0.0
    s, worst, most = bind_witnesses(buffer), -1, 0.0
    oil = measured_oil(s, pressures, supply, line)
    for i in range(s.records.shape[0]):
        w, fluid = s.records[i], s.fluid[i]
        c, axis = s.cylinders[w['cylinder']], w['actuator']
        x = s.motion[MEASURED, axis]
        explain_speed(w, c, fluid, s.motion, period)
        w['commanded'] = speed_for(c, fluid, x, oil, command[axis])
        if not w['low'] <= w['commanded'] <= w['high']:     # a valve that is open has no more to give
            w['low'] = min(w['low'], speed_for(c, fluid, x, oil, OPEN))
            w['high'] = max(w['high'], speed_for(c, fluid, x, oil, -OPEN))
        off = max(w['commanded'] - w['high'], w['low'] - w['commanded']) / w['slack']
        if off > 0.0:
            command[axis] = allowed_command(w, c, fluid, x, oil, command[axis], given(last, axis), off)
        if stopping:
            command[axis] = restrain_stop(w, c, fluid, s.motion, oil, command[axis], given(last, axis))
        if off > most:
            worst, most = i, off
    return worst, most


@kernel
def explain_speed(w, c, fluid, motion, period):
    """Set the speeds for which the command of a valve may be."""
    i = w['actuator']
    x, effort = motion[MEASURED, i], motion[EFFORT, i]
    slowest, fastest = speeds_ahead(motion, i)
    k_a, k_b = force_gains(c, fluid[PRESSURE_A], fluid[PRESSURE_B], x)
    stiffness = k_a * c['area_a'] + k_b * c['area_b']
    error = motion[REFERENCE, i] - x
    # oil is compressed, too: for a force that is lacking, and where that of the model changes, as with friction
    lacking, changing = -motion[RESIDUAL, i] / stiffness, CHANGE * (effort - w['effort']) / (period * stiffness)
    w['effort'] = effort
    # what an integral holds against a force that lasted, as a bias of friction at rest, it holds when that has gone
    w['lasting'] += (1.0 - math.exp(-period / LASTING_S)) * (lacking - w['lasting'])
    room, held = room_of(w, slowest, fastest), -w['lasting']
    w['low'] = slowest - room + min(changing, 0.0) + LOOP_GAIN * (min(error, 0.0) + min(lacking, 0.0) + min(held, 0.0))
    w['high'] = fastest + room + max(changing, 0.0) + LOOP_GAIN * (max(error, 0.0) + max(lacking, 0.0) + max(held, 0.0))


@kernel
def restrain_stop(w, c, fluid, motion, oil, command, last):
    """Return a command that opens a valve for the speed that a stop leaves it, whatever the error is.

    What a law makes of an error in a stop, as of a position that goes on, would drive the rod the other way, or shut
    the valve at once, and an axis that is lighter would get what the others had.
    """
    i, low, high = w['actuator'], w['low'], w['high']
    slowest, fastest = speeds_ahead(motion, i)
    room = STOP_SHARE * room_of(w, slowest, fastest)
    w['low'], w['high'] = slowest - room, fastest + room
    if not w['low'] <= speed_for(c, fluid, motion[MEASURED, i], oil, command) <= w['high']:
        command = allowed_command(w, c, fluid, motion[MEASURED, i], oil, command, last, 0.0)
    w['low'], w['high'] = low, high
    return command


@inner
def speeds_ahead(motion, i):
    """Return the least and the largest speed of the reference, now and where the law looks ahead."""
    return min(motion[RATE, i], motion[AHEAD_RATE, i]), max(motion[RATE, i], motion[AHEAD_RATE, i])


@inner
def room_of(w, slowest, fastest):
    """Return the speed by which a command may be off that of its reference anyway."""
    return w['slack'] + SLACK * max(-slowest, fastest)


@inner
def speed_for(c, fluid, x, oil, command):
    """Return the speed [m/s] of a rod at a constant force, once the spool is where the command sends it."""
    c['command'], spool = command, fluid[SPOOL]
    fluid[SPOOL] = spool_target(c)
    v_a, v_b = rates_by_flow(c, x, fluid, oil.line, oil.tank, 0.0, 0.0)
    fluid[SPOOL] = spool
    # where the flows of both chambers differ, their pressures change together: each counts as it changes the force
    k_a, k_b = force_gains(c, fluid[PRESSURE_A], fluid[PRESSURE_B], x)
    stiff_a, stiff_b = k_a * c['area_a'], k_b * c['area_b']
    return (stiff_a * v_a + stiff_b * v_b) / (stiff_a + stiff_b)


@kernel
def allowed_command(w, c, fluid, x, oil, command, last, off):
    """Return what replaces a command that is beyond its range by a share `off` of the slack.

    It is on the way from the command before to the nearest one that is explained, at its beginning where `off` is 1.
    A command before that would be too fast now is first taken towards a shut valve, until it no longer is.
    """
    before = speed_for(c, fluid, x, oil, last)
    begin = last
    if before > max(w['high'], 0.0) or before < min(w['low'], 0.0):
        begin = last * share_explained(w, c, fluid, x, oil, 0.0, last)
    left = max(1.0 - off, 0.0) * share_explained(w, c, fluid, x, oil, begin, command)
    return begin + left * (command - begin)


@kernel
def share_explained(w, c, fluid, x, oil, begin, end):
    """Return the share of the way to a command that is beyond its range, on which it is not beyond that bound."""
    least, most, too_high = 0.0, 1.0, speed_for(c, fluid, x, oil, end) > w['high']
    for _ in range(HALVINGS):
        half = 0.5 * (least + most)
        speed = speed_for(c, fluid, x, oil, begin + half * (end - begin))
        if speed <= w['high'] if too_high else speed >= w['low']:
            least = half
        else:
            most = half
    return least
