"""Laws of machines on valves, per actuator: force loop, flow reference, and the inverse of the valve.

    F* = F_m + friction(v_r) + m (kp e + kd e') + m ki int e + bias
    v_c = v_r + kf e + ks int e - kv e'
    F' = F_m' + kF (F* - F)

F_m: the machine's model on the reference, ahead in time by the valve's lag; F: the piston's force, from filtered
pressures; e: reference at the time of the measurement minus measurement; e' and the filter of e: critically damped.
A valve gets the opening that gives F' with the rod at v_c; a velocity-controlled valve gets v_c and the flow for F'.
Where effort or pressure is commanded, it is F = ID(x, x', x_r'' + kp e + kd e' + ki int e) + friction(v_r).
"""
import math
from typing import NamedTuple

import numpy as np

from ..hydraulics.equations import SENSING_OPENING, store_load_pressure
from ..hydraulics.friction import sliding_friction
from ..hydraulics.records import AXIS, CYLINDER, SUPPLY
from ..rigid_body.entry import close_and_place, finite
from ..rigid_body.measurement import actuator_states
from ..rigid_body.mechanism import bind
from ..runtime.buffer import FLOAT, matrix, records, stack
from ..runtime.compiler import entry, kernel
from ..runtime.status import NON_FINITE, OK
from .actuation import INT, REST_BAND, actuator_motion, share
from .joint_space import bind_joint_space, joint_motion, solve_rates
from .passive import required_efforts
from .path import sample_path
from .valve_inversion import command_for, force_gains, limited, opening_for, opening_of

EFFORT, PRESSURE, VALVE, VELOCITY = 0, 1, 2, 3      # interfaces: what a command is

# One for each actuator; what it is and its gains first, then the state of the law.
AXIS_LAW = np.dtype([
    ('interface', 'i8'),
    ('area', 'f8'),             # m^2 of the piston where pressure is commanded, else 1
    ('lag', 'f8'),              # s, lag of electronics that control a pressure
    ('speed_out', 'f8'),        # m/s of the rod at full opening, for PID
    ('speed_in', 'f8'),
    ('limit', 'f8'),            # largest command, in the unit of the interface
    ('frozen', 'i8'),           # 1: int e does not grow
    ('inertia', 'f8'),          # m [kg]
    ('stiffness', 'f8'),        # kp [1/s^2]; kp, kd and ki are also those of an axis at force level
    ('damping', 'f8'),          # kd [1/s]
    ('integral', 'f8'),         # ki [1/s^3]
    ('flow_stiffness', 'f8'),   # kf [1/s]
    ('flow_integral', 'f8'),    # ks [1/s^2]
    ('flow_decoupling', 'f8'),  # kv
    ('force_gain', 'f8'),       # kF [1/s]
    ('error_filter', 'f8'),     # rad/s
    ('pressure_filter', 'f8'),  # rad/s
    ('blend', 'f8'),            # opening over which the step over a dead band is spread
    ('error', 'f8'),            # e, not filtered
    ('slow', 'f8'),             # e filtered
    ('error_rate', 'f8'),       # e'
    ('sum', 'f8'),              # int e [m s]
    ('resting', 'i8'),          # 1: the integral rests, as reference and axis do
    ('stood', 'f8'),            # s since the axis moved
    ('anchor', 'f8'),           # e since then
    ('side', 'f8'),             # sign of the last e that was not small since the reference rests, 0: none
    ('jumped', 'i8'),           # 1: that sign has changed
    ('saturated', 'f8'),        # s for which the sum rests that would grow this way; signed as the clipped command was
    ('pressure_a', 'f8'),       # filtered [Pa]
    ('pressure_b', 'f8'),
    ('bias', 'f8'),             # N, force of the piston beyond the model
    ('samples', 'i8'),          # that the bias is the mean of
    ('wanted', 'f8'),           # F* [N]
    ('force', 'f8'),            # F [N]
    ('predicted', 'f8'),        # effort of the model on the reference, with friction [N, N m]
    ('lead', 'f8'),             # of the effort of an axis at force level, against the lag of a pressure [N, N m]
    ('wish', 'f8'),             # the last command before it was clipped
], align=True)

PID, BIAS_SAMPLES, KNOWN = range(3)     # options

LEAST_MARGIN = 0.25         # share of the margin of load sensing that a law counts on

# of an integral that rests while the reference does
REST_TIME = 0.5             # s for which the axis has not moved
REST_TRAVEL = 1.5e-4        # m, rad that it may move meanwhile: noise and the quantum of a sensor
REST_HYSTERESIS = 2.0       # times as much once the integral rests or the axis has jumped; times as far off
LANDED_BAND = 3e-3          # m, rad that an axis may be off which has jumped across its reference
RECOVERY = 0.5              # s after a command was clipped, in which an error that it left is no lack of the model
LANDED_TIME = 0.3           # s for which that one has not moved: it creeps while the integral goes on, and without
                            # static friction an integral would bring it back faster


class ValveLaw(NamedTuple):
    """State of a law on valves between cycles, and its scratch."""

    axes: np.ndarray            # (actuators,) AXIS
    cylinders: np.ndarray       # (cylinders,) CYLINDER
    supply: np.ndarray          # (1,) SUPPLY
    law: np.ndarray             # (actuators,) AXIS_LAW
    options: np.ndarray         # (3,) 1: PID; samples that the bias is the mean of, as long as the reference rests;
                                # 1: pressures are measured
    coordinate: np.ndarray      # (actuators,) row of each among the coordinates, -1: none
    motion: np.ndarray          # (4, 3, dof) x, xd, xdd: of the reference at the time of the measurement, before and
                                # after the time aimed at; and measured, with room for xdd
    needed: np.ndarray          # (dof,) scratch: efforts on the coordinates
    position: np.ndarray        # (2, actuators) scratch: measured, of the reference
    velocity: np.ndarray        # (3, actuators) scratch: of the reference, before and after; unused
    force: np.ndarray           # (3, actuators) scratch: of the model, at the measured state, then of the reference
    pressures: np.ndarray       # (cylinders, 2) measured [Pa gauge]
    saturations: np.ndarray     # (actuators,) count of commands that were clipped
    command: np.ndarray         # (actuators,) each in the unit of its interface
    residual: np.ndarray        # (actuators,) N of the pistons of valves beyond model and bias


# types of the fields of `ValveLaw`
TYPES = AXIS, CYLINDER, SUPPLY, AXIS_LAW, INT, INT, *(FLOAT,) * 6, INT, FLOAT, FLOAT


class Step(NamedTuple):
    """One cycle."""

    times: tuple                # s: of the measurement, before and after the time aimed at
    dt: float                   # s since the last one, negative for the first
    spacing: float              # s between the samples of the reference before and after the time aimed at
    share: float                # of the way from the first sample to that time at which commands of effort act
    scale: float                # of rate and acceleration of the reference that is fed forward
    supply_pressure: float      # Pa gauge


@kernel
def bind_law(buffer):
    """Return the `ValveLaw` of a buffer."""
    return ValveLaw(
        records(buffer, 0, AXIS)[0], records(buffer, 1, CYLINDER)[0], records(buffer, 2, SUPPLY)[0],
        records(buffer, 3, AXIS_LAW)[0], records(buffer, 4, INT)[0], records(buffer, 5, INT)[0], stack(buffer, 6)[0],
        records(buffer, 7, FLOAT)[0], matrix(buffer, 8)[0], matrix(buffer, 9)[0], matrix(buffer, 10)[0],
        matrix(buffer, 11)[0], records(buffer, 12, INT)[0], records(buffer, 13, FLOAT)[0],
        records(buffer, 14, FLOAT)[0])


@kernel
def rest_integral(a, e, dt, still, zone):
    """Set whether the integral of an axis rests, dt [s] after the last call; still: whether the reference rests.

    zone: whether it also rests as soon as the axis is near enough, until it is twice as far off.
    Under stiction an integral that never rests breaks the axis loose again and again. It rests where the axis has not
    moved for a while and is near enough, and goes on where it has moved (hysteresis). An axis that has jumped across
    its reference stays where it landed: the next jump is no shorter.
    """
    if not still or dt < 0.0:
        a['resting'], a['side'], a['jumped'], a['stood'], a['anchor'] = 0, 0.0, 0, 0.0, e
        return
    patient = a['jumped'] != 0 or a['resting'] != 0
    if abs(e - a['anchor']) > (REST_HYSTERESIS if patient else 1.0) * REST_TRAVEL:
        a['anchor'], a['stood'] = e, 0.0
    else:
        a['stood'] += dt
    if abs(e) > REST_BAND:
        side = 1.0 if e > 0.0 else -1.0
        if a['side'] * side < 0.0:
            a['jumped'] = 1
        a['side'] = side
    landed = a['jumped'] != 0 and abs(e) <= LANDED_BAND and a['stood'] >= LANDED_TIME
    near = abs(e) <= REST_BAND and a['stood'] >= REST_TIME
    within = zone and abs(e) <= (REST_HYSTERESIS if a['resting'] != 0 else 1.0) * REST_BAND
    a['resting'] = 1 if near or landed or within else 0


@kernel
def track_error(a, e, dt, still, zone):
    """Take the next error of an axis: filter it, and sum it up unless the sum rests, or a command was clipped that way.

    still: whether the reference rests.  zone: as of `rest_integral`
    """
    a['error'] = e
    rest_integral(a, e, dt, still, zone)
    a['saturated'] = math.copysign(max(abs(a['saturated']) - max(dt, 0.0), 0.0), a['saturated'])
    if dt < 0.0:
        a['slow'], a['error_rate'] = e, 0.0
        return
    # exact for an error that is constant between samples
    w = a['error_filter']
    decay, off = math.exp(-w * dt), a['slow'] - e
    slope = a['error_rate'] + w * off
    a['slow'] = e + (off + slope * dt) * decay
    a['error_rate'] = (a['error_rate'] - w * slope * dt) * decay
    if a['resting'] == 0 and (a['frozen'] == 0 or a['sum'] * e < 0.0) and not a['saturated'] * e > 0.0:
        a['sum'] += e * dt


@kernel
def acceleration_feedback(a):
    """Return kp e + kd e' + ki int e of an axis at force level, 0 of others."""
    if a['interface'] > PRESSURE:
        return 0.0
    return a['stiffness'] * a['error'] + a['damping'] * a['error_rate'] + a['integral'] * a['sum']


@entry
def valve_cycle(tree, loops, hanging, actuation, space, law, path, step):
    """Write the commands of a law on valves, each in the unit of its interface; return a status.

    tree, loops  buffers of the machine without friction of its actuators
    hanging      `Hanging` of a machine with passive coordinates, tree and loops are then of the driven ones; None
    actuation    buffer of `Actuation`; None where the actuators are the coordinates
    space        buffer of `JointSpace`; None where errors are those of the actuators
    law          buffer of `ValveLaw`; where the status is not OK its command is not to be used
    path         `Spline` of the reference; without segments its samples are in `motion` already
    step         `Step`
    """
    s = bind_law(law)
    if path.knots.shape[0] > 0:
        sample_path(path, step.times, s.motion)
    if not_finite(s, step):
        return NON_FINITE
    status = observe(tree, loops, actuation, space, s, step.dt)
    if status == OK:
        aim(s, step)
        status = model_forces(tree, loops, hanging, actuation, s, step.times)
    if status != OK:
        return status
    line = line_pressure(s, step.supply_pressure)
    for i in range(s.law.shape[0]):
        s.command[i] = bounded(s.law[i], wished_command(s, step, line, i), s.saturations, i)
    return finite(s.command)


@kernel
def not_finite(s, step):
    """Return whether something measured, or a sample of the reference, is not finite."""
    total = 0.0 * float(step.supply_pressure) + 0.0 * float(step.dt)
    for i in range(s.motion.shape[2]):
        total += 0.0 * float(s.motion[3, 0, i]) + 0.0 * float(s.motion[3, 1, i])
        for sample in range(3):
            for row in range(3):
                total += 0.0 * float(s.motion[sample, row, i])
    for k in range(s.pressures.shape[0]):
        total += 0.0 * float(s.pressures[k, 0]) + 0.0 * float(s.pressures[k, 1])
    return total != 0.0


@kernel
def observe(tree, loops, actuation, space, s, dt):
    """Take the errors of all actuators; return a status."""
    x, xd, reference = s.motion[3, 0], s.motion[3, 1], s.motion[0, 0]
    status = actuator_motion(tree, loops, actuation, x, xd, s.position[0], s.velocity[2])
    if status != OK:
        return status
    if space is None:
        status = actuator_motion(tree, loops, actuation, reference, xd, s.position[1], s.velocity[2])
    else:
        status = reference_from_joints(tree, loops, actuation, space, s)
    if status != OK:
        return status
    still = reference_rests(s)
    for i in range(s.law.shape[0]):
        track_error(s.law[i], s.position[1, i] - s.position[0, i], dt, still, s.options[PID] != 0)
    return OK


@kernel
def reference_rests(s):
    """Return whether all samples of the reference have no velocity."""
    for sample in range(3):
        for i in range(s.motion.shape[2]):
            if s.motion[sample, 1, i] != 0.0:
                return False
    return True


@kernel
def reference_from_joints(tree, loops, actuation, space, s):
    """Set the positions of the actuators that take away the errors of the joints, to first order; return a status."""
    j, x = bind_joint_space(space), s.motion[3, 0]
    status = joint_motion(tree, loops, j, s.motion[0, 0], j.zero, j.zero, j.desired)
    if status == OK:
        status = joint_motion(tree, loops, j, x, j.zero, j.zero, j.measured)
    if status == OK:
        for i in range(j.columns.shape[0]):
            j.desired[0, i] -= j.measured[0, i]
        status = solve_rates(tree, loops, j, x, j.desired[0], j.measured[1])
    if status == OK:
        status = actuator_motion(tree, loops, actuation, x, j.measured[1], s.position[1], s.velocity[2])
    for i in range(s.law.shape[0]):
        s.position[1, i] = s.position[0, i] + s.velocity[2, i]
    return status


@kernel
def aim(s, step):
    """Scale what is fed forward, and set the accelerations of axes at force level."""
    motion, measured = s.motion, s.motion[3]
    for i in range(motion.shape[2]):
        for sample in range(1, 3):
            motion[sample, 1, i] *= step.scale
            motion[sample, 2, i] *= step.scale
        aimed = 0.5 * (motion[1, 2, i] + motion[2, 2, i])
        measured[2, i] = step.scale * (1.0 - step.share) * motion[0, 2, i] + step.share * aimed
    for i in range(s.law.shape[0]):
        if s.coordinate[i] >= 0:
            measured[2, s.coordinate[i]] += acceleration_feedback(s.law[i])


@kernel
def model_forces(tree, loops, hanging, actuation, s, times):
    """Set the forces and rates of the actuators by the model, at the measured state and on the reference; a status.

    times: as of `Step`.
    """
    for k in range(3):
        # called at one place only: the code is long, and caches are cold after a sleep
        sample = s.motion[3 if k == 0 else k]
        status = required_efforts(tree, loops, hanging, sample[0], sample[1], sample[2], times[k] - times[0], s.needed)
        if status == OK and hanging is not None:
            status = close_and_place(tree, loops, sample[0], sample[1], sample[2])
        if status == OK:
            status = share(tree, loops, actuation, s.needed, s.force[k])
        if status != OK:
            return status
        if k > 0:
            actuator_states(bind(tree, loops), s.position[1], s.velocity[k - 1])
    return OK


@kernel
def line_pressure(s, measured):
    """Return the pressure of the supply line [Pa]; with load sensing at least what the last commands make of it.

    A line that stands by rises as soon as a valve opens: an opening for what is measured before would be too wide, so
    that a share of the margin is counted on.
    """
    supply = s.supply[0]
    if not supply['sensing']:
        return measured
    highest = supply['return_pressure']
    for i in range(s.law.shape[0]):
        a = s.law[i]
        if a['interface'] > PRESSURE:
            o = opening_of(s.cylinders[s.axes[i]['cylinder']], s.command[i], a['blend'])
            if abs(o) > SENSING_OPENING:
                highest = max(highest, a['pressure_a'] if o > 0.0 else a['pressure_b'])
    store_load_pressure(s.cylinders, supply, highest)
    return max(measured, min(supply['pressure'], highest + LEAST_MARGIN * supply['margin']))


@kernel
def wished_command(s, step, line, i):
    """Return the command of an actuator, not clipped; line: pressure of the supply [Pa]."""
    a, v0, v1 = s.law[i], s.velocity[0, i], s.velocity[1, i]
    v = 0.5 * (v0 + v1)
    before, after = s.force[1, i] + sliding_friction(s.axes[i], v0), s.force[2, i] + sliding_friction(s.axes[i], v1)
    a['predicted'], rate = 0.5 * (before + after), (after - before) / step.spacing
    if a['interface'] <= PRESSURE:
        a['lead'] = a['lag'] * rate
        return (s.force[0, i] + sliding_friction(s.axes[i], v) + a['lead']) / a['area']
    c = s.cylinders[s.axes[i]['cylinder']]
    if s.options[PID] == 0:
        observe_force(s, step, i)
        return torque_command(s, c, a, line, s.position[0, i], v, rate)
    # a valve that is open for a small error fills a chamber until the axis slips
    wish = 0.0 if a['resting'] != 0 else flow_reference(a, v)
    if a['interface'] == VALVE:
        wish = command_for(c, wish / (a['speed_out'] if wish > 0.0 else a['speed_in']), a['blend'])
    return wish


@kernel
def observe_force(s, step, i):
    """Filter the pressures of an actuator; set the force of its piston, and its bias where the reference rests."""
    a, k = s.law[i], s.axes[i]['cylinder']
    c, pressures = s.cylinders[k], s.pressures[k]
    share = 1.0 if step.dt < 0.0 else 1.0 - math.exp(-a['pressure_filter'] * step.dt)
    a['pressure_a'] += share * (pressures[0] - a['pressure_a'])
    a['pressure_b'] += share * (pressures[1] - a['pressure_b'])
    a['force'] = a['pressure_a'] * c['area_a'] - a['pressure_b'] * c['area_b']
    if not (s.velocity[0, i] == 0.0 and s.velocity[1, i] == 0.0):
        a['samples'] = s.options[BIAS_SAMPLES]
    elif a['samples'] < s.options[BIAS_SAMPLES]:
        a['samples'] += 1
        a['bias'] += (a['force'] - a['predicted'] - a['bias']) / a['samples']
    if a['interface'] == VALVE:
        s.residual[i] = a['force'] - a['predicted'] - a['bias']


@kernel
def torque_command(s, c, a, supply, stroke, velocity, model_rate):
    """Return the command of a valve or its velocity, not clipped, by force loop and flow reference."""
    pa, pb = a['pressure_a'], a['pressure_b']
    a['wanted'] = a['predicted'] + a['bias'] + a['inertia'] * (
        a['stiffness'] * a['error'] + a['damping'] * a['error_rate'] + a['integral'] * a['sum'])
    rate = model_rate
    if s.options[KNOWN] != 0:       # otherwise there is no force loop
        rate += a['force_gain'] * (a['wanted'] - a['force'])
    v = flow_reference(a, velocity)
    if a['interface'] == VALVE:
        opening = opening_for(c, supply, s.supply[0]['return_pressure'], pa, pb, stroke, v, rate)
        return command_for(c, opening, a['blend'])
    # the compensator delivers the flow to the fed chamber; the other chamber drains freely
    ka, kb = force_gains(c, pa, pb, stroke)
    return v + rate / (ka * c['area_a'] if v > 0.0 else kb * c['area_b'])


@kernel
def flow_reference(a, velocity):
    """Return v_c [m/s] for a velocity of the reference."""
    return (velocity + a['flow_stiffness'] * a['error'] + a['flow_integral'] * a['sum']
            - a['flow_decoupling'] * a['error_rate'])


@kernel
def bounded(a, wish, clipped, i):
    """Return the command within its limit; store the sign of a clipped command, and count it."""
    a['wish'] = wish
    if abs(wish) <= a['limit']:
        return wish
    a['saturated'] = math.copysign(RECOVERY, wish)
    clipped[i] += 1
    return math.copysign(a['limit'], wish)


@entry
def rod_speeds(law, given, inverse, found):
    """Write the speeds [m/s] of rods for which PID gives commands (actuators,); inverse: its commands for speeds.

    law: buffer of `ValveLaw`.  found (actuators,): 0 of an actuator whose valve is not commanded.
    """
    s = bind_law(law)
    for i in range(found.shape[0]):
        a, found[i] = s.law[i], 0.0
        if a['interface'] == VALVE:
            c, full = s.cylinders[s.axes[i]['cylinder']], a['speed_out'] if given[i] > 0.0 else a['speed_in']
            found[i] = (limited(command_for(c, given[i] / full, a['blend'])) if inverse else
                        full * opening_of(c, given[i], a['blend']))
