"""Computed torque on valves, per actuator: force loop, flow reference, and the valve inversion behind them.

    F* = F_m + friction(v_r) + m (kp e + kd e') + m ki int e + bias
    v_c = v_r + kf e + ks int e - kv e'
    u from F' = F_m' + kF (F* - F)  with the rod at v_c

F_m: the machine's model on the reference, ahead in time by the valve's lag; F: the piston's force, from filtered
pressures; e: reference at the time of the measurement minus measurement; e' and the filter of e: critically damped.
"""
import math

import numpy as np

from .compiler import entry, kernel
from .entry import NON_FINITE, finite
from .friction import sliding_friction
from .valve_inversion import command_for, opening_for

# One for each actuator; gains first, then the state of the law.
AXIS_LAW = np.dtype([
    ('inertia', 'f8'),          # m [kg]
    ('stiffness', 'f8'),        # kp [1/s^2]; kp and kd are also those of an axis at force level
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
], align=True)


@kernel
def track_error(a, e, dt):
    """Take the next error of an axis: filter it, and sum it up unless the command is clipped that way."""
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
    if not a['saturated'] * e > 0.0:
        a['sum'] += e * dt


@entry
def observe(law, cylinder_of, dt, position, reference, feedback):
    """Take the errors of all actuators; write feedback (actuators,), kp e + kd e' of axes at force level, else 0.

    law (actuators,) AXIS_LAW; cylinder_of (actuators,): row of its cylinder, -1 for axes at force level; dt [s] since
    the last sample, negative for the first; position, reference (actuators,).
    Returns 0, or NON_FINITE and changes nothing.
    """
    total = 0.0 * dt
    for i in range(law.shape[0]):
        total += 0.0 * position[i] + 0.0 * reference[i]
    if total != 0.0:
        return NON_FINITE
    for i in range(law.shape[0]):
        track_error(law[i], reference[i] - position[i], dt)
        feedback[i] = 0.0
        if cylinder_of[i] < 0:
            feedback[i] = law[i]['stiffness'] * law[i]['error'] + law[i]['damping'] * law[i]['error_rate']
    return 0


@entry
def torque_commands(axes, cylinders, supply, supply_pressure, law, cylinder_of, dt, spacing, bias_samples, position,
                    pressures, velocity, force, limit, clipped, u):
    """Write the commands u (actuators,) of computed torque: of valves for cylinders, efforts [N, N m] else.

    axes, cylinders, supply  the records
    supply_pressure  Pa gauge
    law, cylinder_of, dt     as `observe`
    spacing          s between the rows of velocity and the last two of force: before and after the time aimed at
    bias_samples     of which the bias is the mean, as long as the reference rests
    position         (actuators,) measured [m]
    pressures        (cylinders, 2) measured [Pa gauge]
    velocity         (2, actuators) of the reference [m/s]
    force            (3, actuators) of the model: at the measured state, for axes at force level; then of the reference
    limit, clipped   (actuators,) largest efforts; count of commands that were clipped
    Returns 0, or NON_FINITE: then u is not to be used.
    """
    status = inputs_finite(supply_pressure, position, pressures, velocity, force)
    if status != 0:
        return status
    for i in range(law.shape[0]):
        wish = force[0, i]
        if cylinder_of[i] >= 0:
            k = cylinder_of[i]
            v0, v1 = velocity[0, i], velocity[1, i]
            before, after = force[1, i] + sliding_friction(axes[i], v0), force[2, i] + sliding_friction(axes[i], v1)
            wish = torque_on_valve(cylinders[k], supply_pressure, supply[0]['return_pressure'], law[i], dt,
                                   bias_samples, v0 == 0.0 and v1 == 0.0, position[i], pressures[k], 0.5 * (v0 + v1),
                                   0.5 * (before + after), (after - before) / spacing)
        u[i] = bounded(law[i], wish, 1.0 if cylinder_of[i] >= 0 else limit[i], clipped, i)
    return finite(u)


@entry
def pid_commands(cylinders, law, cylinder_of, speed, velocity, force, limit, clipped, u):
    """Write the commands u (actuators,) of PID: the flow reference over the speed that a valve gives when it is open.

    speed (2, actuators): of the rod at full opening, out and in, both positive [m/s]; the rest as `torque_commands`,
    and of velocity the mean counts.
    Returns 0, or NON_FINITE: then u is not to be used.
    """
    status = inputs_finite(0.0, speed[0], speed, velocity, force)
    if status != 0:
        return status
    for i in range(law.shape[0]):
        wish = force[0, i]
        if cylinder_of[i] >= 0:
            v = flow_reference(law[i], 0.5 * (velocity[0, i] + velocity[1, i]))
            wish = command_for(cylinders[cylinder_of[i]], v / speed[0 if v > 0.0 else 1, i], law[i]['blend'])
        u[i] = bounded(law[i], wish, 1.0 if cylinder_of[i] >= 0 else limit[i], clipped, i)
    return finite(u)


@kernel
def torque_on_valve(c, supply, tank, a, dt, bias_samples, resting, stroke, pressures, velocity, model, model_rate):
    """Return the command of a valve, not clipped: force loop and flow reference of the top of this file."""
    share = 1.0 if dt < 0.0 else 1.0 - math.exp(-a['pressure_filter'] * dt)
    a['pressure_a'] += share * (pressures[0] - a['pressure_a'])
    a['pressure_b'] += share * (pressures[1] - a['pressure_b'])
    pa, pb = a['pressure_a'], a['pressure_b']
    force = pa * c['area_a'] - pb * c['area_b']
    if not resting:
        a['samples'] = bias_samples
    elif a['samples'] < bias_samples:
        a['samples'] += 1
        a['bias'] += (force - model - a['bias']) / a['samples']
    wanted = model + a['bias'] + a['inertia'] * (a['stiffness'] * a['error'] + a['damping'] * a['error_rate']
                                                 + a['integral'] * a['sum'])
    a['force'], a['wanted'] = force, wanted
    o = opening_for(c, supply, tank, pa, pb, stroke, flow_reference(a, velocity),
                    model_rate + a['force_gain'] * (wanted - force))
    return command_for(c, o, a['blend'])


@kernel
def flow_reference(a, velocity):
    """Return v_c [m/s] for a velocity of the reference."""
    return (velocity + a['flow_stiffness'] * a['error'] + a['flow_integral'] * a['sum']
            - a['flow_decoupling'] * a['error_rate'])


@kernel
def bounded(a, wish, bound, clipped, i):
    """Return the command within +-bound; note the sign of what was cut off, and count it."""
    a['saturated'] = 0.0
    if abs(wish) > bound:
        a['saturated'] = 1.0 if wish > 0.0 else -1.0
        clipped[i] += 1
        return bound * a['saturated']
    return wish


@kernel
def inputs_finite(supply_pressure, position, pressures, velocity, force):
    """Return 0, or NON_FINITE."""
    total = 0.0 * supply_pressure
    for i in range(position.shape[0]):
        total += 0.0 * position[i]
        for row in range(velocity.shape[0]):
            total += 0.0 * velocity[row, i]
        for row in range(force.shape[0]):
            total += 0.0 * force[row, i]
    for k in range(pressures.shape[0]):
        for side in range(pressures.shape[1]):
            total += 0.0 * pressures[k, side]
    return 0 if total == 0.0 else NON_FINITE
