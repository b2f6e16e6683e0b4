"""Laws of machines on valves, per actuator: force loop, flow reference, and the inverse of what its command does.

    F* = F_m + friction(v_r) + m (kp e + kd e') + m ki int e + bias
    v_c = v_r + kf e + ks int e - kv e'
    F' = F_m' + kF (F* - F)

F_m: the machine's model on the reference, ahead in time by the valve's lag; F: the piston's force, from filtered
pressures; e: reference at the time of the measurement minus measurement; e' and the filter of e: critically damped.
A valve gets the opening that gives F' with the rod at v_c; one that is told a velocity v_c and the flow that F' takes.
Where effort or pressure is commanded, it is F = ID(x, x', x_r'' + kp e + kd e' + ki int e) + friction(v_r).
"""
import math

import numpy as np

from ..hydraulics.friction import sliding_friction
from ..hydraulics.records import AXIS, CYLINDER, SUPPLY
from ..rigid_body.entry import NON_FINITE, finite
from ..rigid_body.inverse import inverse
from ..rigid_body.records import MODULE, WORK
from ..runtime.compiler import entry, kernel, matrix, stack, vector
from ..runtime.places import FLOAT, INT, bound
from .computed_torque import sample_path
from .valve_inversion import command_for, force_gains, opening_for

EFFORT, PRESSURE, VALVE, VELOCITY = 0, 1, 2, 3      # tiers: what a command is

# One for each actuator; what it is and its gains first, then the state of the law.
AXIS_LAW = np.dtype([
    ('tier', 'i8'),
    ('area', 'f8'),             # m^2 of the piston where pressure is commanded, else 1
    ('lag', 'f8'),              # s of the electronics that are told a pressure
    ('speed_out', 'f8'),        # m/s of the rod at full opening, for PID
    ('speed_in', 'f8'),
    ('limit', 'f8'),            # largest command, in the unit of the tier
    ('frozen', 'i8'),           # 1: int e stands still
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
    ('saturated', 'f8'),        # sign of the last command where it was clipped, else 0
    ('pressure_a', 'f8'),       # filtered [Pa]
    ('pressure_b', 'f8'),
    ('bias', 'f8'),             # N, force of the piston beyond the model
    ('samples', 'i8'),          # that the bias is the mean of
    ('wanted', 'f8'),           # F* [N]
    ('force', 'f8'),            # F [N]
    ('predicted', 'f8'),        # effort of the model on the reference, with friction [N, N m]
], align=True)

# of the arrays that `cycle` is given once
HELD = ((MODULE, 1), (WORK, 1), (FLOAT, 2), (AXIS, 1), (CYLINDER, 1), (SUPPLY, 1), (AXIS_LAW, 1), (INT, 1), (FLOAT, 3),
        (FLOAT, 2), (FLOAT, 2), (INT, 1), (FLOAT, 1))


@kernel
def track_error(a, e, dt):
    """Take the next error of an axis: filter it, and sum it up unless it is frozen or the command clipped that way."""
    a['error'] = e
    if dt < 0.0:
        a['slow'], a['error_rate'] = e, 0.0
        return
    # exact for an error that is constant between samples
    w = a['error_filter']
    decay, off = math.exp(-w * dt), a['slow'] - e
    slope = a['error_rate'] + w * off
    a['slow'] = e + (off + slope * dt) * decay
    a['error_rate'] = (a['error_rate'] - w * slope * dt) * decay
    if a['frozen'] == 0 and not a['saturated'] * e > 0.0:
        a['sum'] += e * dt


@kernel
def acceleration_feedback(a):
    """Return kp e + kd e' + ki int e of an axis at force level, 0 of others."""
    if a['tier'] > PRESSURE:
        return 0.0
    return a['stiffness'] * a['error'] + a['damping'] * a['error_rate'] + a['integral'] * a['sum']


@entry
def observe(law, dt, position, reference, feedback):
    """Take the errors of all actuators; write feedback (actuators,), the accelerations of axes at force level, else 0.

    law (actuators,) AXIS_LAW; dt [s] since the last sample, negative for the first; position, reference (actuators,).
    Returns 0, or NON_FINITE and changes nothing.
    """
    total = 0.0 * dt
    for i in range(law.shape[0]):
        total += 0.0 * float(position[i]) + 0.0 * float(reference[i])
    if total != 0.0:
        return NON_FINITE
    for i in range(law.shape[0]):
        track_error(law[i], reference[i] - position[i], dt)
        feedback[i] = acceleration_feedback(law[i])
    return 0


@entry
def cycle(mods, work, env, axes, cylinders, supply, law, options, motion, actuators, pressures, clipped, u,
          supply_pressure, dt, spacing, share, scale, coefficients, knots, phases, offset, first, second, third):
    """Write the commands u (actuators,), each in the unit of its tier.

    mods, work, env  of the machine without friction of its actuators
    axes, cylinders, supply  the records; supply_pressure  Pa gauge
    law      (actuators,) AXIS_LAW
    options  (4,): 1 for PID; 1 where errors were observed, and position, velocities and forces of `actuators` are
             given; of how many samples the bias is the mean, as long as the reference rests; 1 where pressures are
             measured
    dt       s since the last sample, negative for the first
    spacing  s between the samples of the reference before and after the time aimed at
    share    of the way from the first sample to that time at which commands of effort act
    scale    of rate and acceleration of the reference that is fed forward
    coefficients, knots, phases, offset, first, second, third  of the reference, as for `path_samples`; with no knots
             it is in `motion` already
    motion   (4, 3, dof) x, x', x'': of the reference at the time of the measurement, before and after the time aimed
             at; and measured, with room for x''
    actuators  (6, actuators): measured position; velocity of the reference, before and after; force of the model, at
             the measured state, then of the reference
    pressures  (cylinders, 2) measured [Pa gauge]
    clipped  (actuators,) count of commands that were clipped

    Returns 0, NON_FINITE, or 1 + the module that does not close: then u is not to be used.
    """
    if knots.shape[0] > 0:
        sample_path(coefficients, knots, phases, offset, first, second, third, motion)
    total = 0.0 * float(supply_pressure) + 0.0 * float(dt)
    for i in range(motion.shape[2]):
        total += 0.0 * float(motion[3, 0, i]) + 0.0 * float(motion[3, 1, i])
        for sample in range(3):
            for row in range(3):
                total += 0.0 * float(motion[sample, row, i])
    for k in range(pressures.shape[0]):
        total += 0.0 * float(pressures[k, 0]) + 0.0 * float(pressures[k, 1])
    if total != 0.0:
        return NON_FINITE
    position, velocity, force = actuators[0], actuators[1:3], actuators[3:6]
    if options[1] == 0:
        measured = motion[3]
        for i in range(law.shape[0]):
            position[i] = measured[0, i]
            track_error(law[i], motion[0, 0, i] - position[i], dt)
            for sample in range(1, 3):
                velocity[sample - 1, i] = motion[sample, 1, i] = scale * motion[sample, 1, i]
                motion[sample, 2, i] *= scale
            aimed = 0.5 * (motion[1, 2, i] + motion[2, 2, i])
            measured[2, i] = (scale * (1.0 - share) * motion[0, 2, i] + share * aimed
                              + acceleration_feedback(law[i]))
        status = 0
        for k in range(3):
            # one place in the code, which is long, and has to come into the caches after a sleep
            sample = motion[3 if k == 0 else k]
            if status == 0:
                status = inverse(mods, work, env, sample[0], sample[1], sample[2], force[k])
        if status != 0:
            return status
    for i in range(law.shape[0]):
        a, v0, v1 = law[i], velocity[0, i], velocity[1, i]
        v = 0.5 * (v0 + v1)
        before, after = force[1, i] + sliding_friction(axes[i], v0), force[2, i] + sliding_friction(axes[i], v1)
        a['predicted'], rate = 0.5 * (before + after), (after - before) / spacing
        if a['tier'] <= PRESSURE:
            wish = (force[0, i] + sliding_friction(axes[i], v) + a['lag'] * rate) / a['area']
        else:
            k = axes[i]['cylinder']
            c = cylinders[k]
            if options[0] == 0:
                wish = torque_command(c, supply_pressure, supply[0]['return_pressure'], a, dt, options[2],
                                      v0 == 0.0 and v1 == 0.0, options[3], position[i], pressures[k], v, rate)
            else:
                wish = flow_reference(a, v)
                if a['tier'] == VALVE:
                    wish = command_for(c, wish / (a['speed_out'] if wish > 0.0 else a['speed_in']), a['blend'])
        u[i] = bounded(a, wish, clipped, i)
    return finite(u)


def cycle_of(*held):
    """`cycle` of these arrays, its first thirteen, as a function of its other arguments."""
    return bound(cycle_at, cycle, HELD, *held)


@entry
def cycle_at(places, supply_pressure, dt, spacing, share, scale, coefficients, knots, phases, offset, first, second,
             third):
    """`cycle` of the arrays at these places."""
    return cycle(vector(places, 0, MODULE), vector(places, 1, WORK), matrix(places, 2, FLOAT), vector(places, 3, AXIS),
                 vector(places, 4, CYLINDER), vector(places, 5, SUPPLY), vector(places, 6, AXIS_LAW),
                 vector(places, 7, INT), stack(places, 8, FLOAT), matrix(places, 9, FLOAT), matrix(places, 10, FLOAT),
                 vector(places, 11, INT), vector(places, 12, FLOAT), supply_pressure, dt, spacing, share, scale,
                 coefficients, knots, phases, offset, first, second, third)


@kernel
def torque_command(c, supply, tank, a, dt, bias_samples, resting, known, stroke, pressures, velocity, model_rate):
    """Return the command of a valve or its velocity, not clipped, by force loop and flow reference.

    known: 1 where pressures are measured; otherwise there is no force loop.
    """
    share = 1.0 if dt < 0.0 else 1.0 - math.exp(-a['pressure_filter'] * dt)
    a['pressure_a'] += share * (pressures[0] - a['pressure_a'])
    a['pressure_b'] += share * (pressures[1] - a['pressure_b'])
    pa, pb, model = a['pressure_a'], a['pressure_b'], a['predicted']
    force = pa * c['area_a'] - pb * c['area_b']
    if not resting:
        a['samples'] = bias_samples
    elif a['samples'] < bias_samples:
        a['samples'] += 1
        a['bias'] += (force - model - a['bias']) / a['samples']
    wanted = model + a['bias'] + a['inertia'] * (a['stiffness'] * a['error'] + a['damping'] * a['error_rate']
                                                 + a['integral'] * a['sum'])
    a['force'], a['wanted'] = force, wanted
    rate = model_rate
    if known != 0:
        rate += a['force_gain'] * (wanted - force)
    v = flow_reference(a, velocity)
    if a['tier'] == VALVE:
        return command_for(c, opening_for(c, supply, tank, pa, pb, stroke, v, rate), a['blend'])
    # the compensator gives the flow that is asked for to the chamber that is fed; the other one drains as it can
    ka, kb = force_gains(c, pa, pb, stroke)
    return v + rate / (ka * c['area_a'] if v > 0.0 else kb * c['area_b'])


@kernel
def flow_reference(a, velocity):
    """Return v_c [m/s] for a velocity of the reference."""
    return (velocity + a['flow_stiffness'] * a['error'] + a['flow_integral'] * a['sum']
            - a['flow_decoupling'] * a['error_rate'])


@kernel
def bounded(a, wish, clipped, i):
    """Return the command within its limit; note the sign of what was cut off, and count it."""
    a['saturated'] = 0.0
    if abs(wish) > a['limit']:
        a['saturated'] = 1.0 if wish > 0.0 else -1.0
        clipped[i] += 1
        return a['limit'] * a['saturated']
    return wish
