"""Forces on a joint besides its actuator: damping, Coulomb friction, springs and stops, and friction of closing pins.

Friction of a joint at a rate is -(d rate + F tanh(rate / v_s)), on passive joints through their rates (Paz & Mattila,
limits of (56)). The stop at a limit is that of K. Hunt and F. Crossley, J. Appl. Mech. 42 (1975) 440.
"""
import math

from ..algebra.spatial import dot, general_times, pair, vector
from ..runtime.compiler import kernel, python_kernel
from .records import APPLIED, STOPS


@kernel
def joint_friction(damping, coulomb, slip, rate):
    """Return the force of damping and regularised Coulomb friction at a rate; slip: v_s."""
    force = -damping * rate
    if coulomb != 0.0:
        force -= coulomb * math.tanh(rate / slip)
    return force


@kernel
def friction_slope(damping, coulomb, slip, rate):
    """Return the derivative of `joint_friction` by the rate."""
    if coulomb == 0.0:
        return -damping
    level = math.tanh(rate / slip)
    return -damping - coulomb * (1.0 - level * level) / slip


@python_kernel
def stop_force(depth, rate, stiffness, damping):
    """Return the pushing force of a Hunt-Crossley contact, k d (1 + c d'), zero outside and never pulling."""
    if depth <= 0.0:
        return 0.0
    return max(0.0, stiffness * depth * (1.0 + damping * rate))


@kernel
def passive_force(b, u):
    """Return the force of friction, springs and stops on the joint of a module, without that of its actuator."""
    rate = u['qd']
    force = joint_friction(b['damping'][0], b['friction'][0], b['slip'], rate)
    if b['passive'] & APPLIED:
        force += b['applied']
    if b['passive'] & STOPS:
        force += stop_force(b['lower'] - u['q'], -rate, b['stop_stiffness'], b['stop_damping'])
        force -= stop_force(u['q'] - b['upper'], rate, b['stop_stiffness'], b['stop_damping'])
    return force


@kernel
def pin_axis(loops, b):
    """Return the axis of a closing pin in the axes of its cluster's base body."""
    a = vector(b['axis'])
    if b['a'] < 0 or b['planar']:
        return a
    return general_times(loops.work[b['a']]['rotation'], a)


@kernel
def pin_rate(loops, b):
    """Return the rate of a closing pin."""
    n, rate = pin_axis(loops, b), 0.0
    for sign in (1.0, -1.0):
        j = b['b'] if sign > 0.0 else b['a']
        if j >= 0:
            _, w = pair(loops.work[j]['velocity'])
            rate += sign * dot(n, w)
    return rate


@kernel
def add_pin_friction(loops):
    """Add the friction of the pins that close loops to the efforts tau of the joints that they couple."""
    for i in range(loops.friction_pins.shape[0]):
        b = loops.friction_pins[i]
        torque = joint_friction(b['damping'], b['friction'], b['slip'], pin_rate(loops, b))
        n = pin_axis(loops, b)
        for sign in (1.0, -1.0):
            j = b['b'] if sign > 0.0 else b['a']
            while j >= 0:
                _, w = pair(loops.work[j]['screw'])
                loops.work[j]['tau'] += sign * torque * dot(n, w)
                j = loops.cluster_joints[j]['parent']
