"""Gains of the laws that command valves, and where their defaults come from.

One bandwidth w [rad/s] gives them all: that of the lowest mode of the machine on its oil with closed valves, at its
initial position, or what the lag of the slowest valve allows, whichever is less.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...api.hydraulics.statics import natural_modes
from ...kernels.control.valve_control import PRESSURE
from .gains import CYLINDERS, OTHERS, error_limits, gain

LAG_SHARE = 0.1         # bandwidth times the lag of the loop; at 0.18 cranes begin to chatter while they move
LOWEST = 1.0            # rad/s
PID_SHARE = 0.09        # of an axis's own mode: twice the gains that follow still work on the crane
DERIVATIVE = 0.2        # of PID, where the rate comes at once
FLOW_SHARE = 0.2        # of an axis's own mode
EFFORT_BANDWIDTH = 15.0         # rad/s of axes at force level at most
EFFORT_LAG_SHARE = 0.3          # the same times period and delay
INTEGRAL_SHARE = 0.25           # of w^3, integral gain at force level; with 2 it would be at its limit of stability
PRESSURE_FILTER = 1000.0        # rad/s
ERROR_FILTER = 150.0            # rad/s
BLEND = 0.002
STABLE = 2.0            # times the shares of lag and mode that default gains have, which still work
SLOWEST_FILTER = 1.0    # rad/s
LATE_SHARE = 0.75       # damping times its lag; at 1 the crane chatters
FILTER_LAG = 1.5        # times 1 / error_filter, delay of a rate: 2 for slow ones, but fast ones are weakened


@dataclass(frozen=True)
class ValveGains:
    """Gains of `ValveControl`, each (actuators,).

        F* = model + friction + inertia (stiffness e + damping e' + integral int e) + bias
        v_c = v_r + flow_stiffness e + flow_integral int e - flow_decoupling e'
        F' = model' + force_gain (F* - F)

    Axes of which effort or pressure is commanded have stiffness, damping and integral as at force level.  What
    flow_stiffness and flow_integral do is what makes the machine stiff against all that the model does not know;
    flow_decoupling of 1 would take away the spring that the oil is.  The force loop damps the lowest hydraulic mode and
    has to be fast enough for it.
    """

    inertia: np.ndarray = gain('kg', 'that force feedback is scaled with', CYLINDERS, high=1e9)
    stiffness: np.ndarray = gain('1/s^2', 'force for an error', high=1e5)
    damping: np.ndarray = gain('1/s', 'force for the rate of an error')
    integral: np.ndarray = gain('1/s^3', 'force for the integral of an error', high=1e6)
    flow_stiffness: np.ndarray = gain('1/s', 'flow for an error', CYLINDERS)
    flow_integral: np.ndarray = gain('1/s^2', 'flow for the integral of an error', CYLINDERS)
    flow_decoupling: np.ndarray = gain('1', 'share of the measured rate in the flow', CYLINDERS, high=1.0)
    force_gain: np.ndarray = gain('1/s', 'bandwidth of the force loop', CYLINDERS)
    error_filter: np.ndarray = gain('rad/s', 'critically damped, of the error whose rate is used', low=SLOWEST_FILTER)
    pressure_filter: np.ndarray = gain('rad/s', 'low-pass of the pressures', CYLINDERS, 1e5, SLOWEST_FILTER)
    blend: np.ndarray = gain('1', 'opening over which the step across a dead band is spread', CYLINDERS, high=0.5)


@dataclass(frozen=True)
class PidGains:
    """Gains of `ValvePid`, each (actuators,):  v_c = v_r + proportional e + integral int e + derivative e'.

    Stiffness, damping and force_integral are of axes of which effort or pressure is commanded, as at force level.
    """

    proportional: np.ndarray = gain('1/s', 'velocity for an error', CYLINDERS)
    integral: np.ndarray = gain('1/s^2', 'velocity for the integral of an error', CYLINDERS)
    derivative: np.ndarray = gain('1', 'velocity for the rate of an error', CYLINDERS, high=1.0)
    stiffness: np.ndarray = gain('1/s^2', 'acceleration for an error', OTHERS, high=1e5)
    damping: np.ndarray = gain('1/s', 'acceleration for the rate of an error', OTHERS)
    force_integral: np.ndarray = gain('1/s^3', 'acceleration for the integral of an error', OTHERS, high=1e6)
    error_filter: np.ndarray = gain('rad/s', 'critically damped, of the error whose rate is used', low=SLOWEST_FILTER)
    blend: np.ndarray = gain('1', 'opening over which the step across a dead band is spread', CYLINDERS, high=0.5)


def modes_at_start(manipulator, hydraulics, axes, cylinders, supply, mass):
    """Return the `NaturalModes` of a machine of inertia mass (dof, dof) with closed valves at its initial position."""
    return natural_modes(manipulator, hydraulics, (axes, cylinders, supply), manipulator.initial_position, mass=mass)


def default_bandwidth(modes, lag):
    """Return w [rad/s] of a machine with these `NaturalModes`; lag [s] of the loop: spool, samples, delays."""
    standing = modes.frequencies[modes.frequencies > 0.0]
    lowest = 2.0 * math.pi * standing.min() if standing.size else math.inf
    return max(min(lowest, LAG_SHARE / lag), LOWEST)


def driven_inertia(manipulator, M):
    """Return the inertia (actuators,) [kg, kg m^2] that each actuator feels while the others rest, at the start.

    M (dof, dof): that of the coordinates.  Where several actuators share a coordinate, each has its share.
    """
    m, A = manipulator, manipulator.actuator_map(manipulator.initial_position)
    inertia = np.zeros(len(m.actuators))
    for i, row in enumerate(A):
        # unit acceleration of actuator i with the least of the coordinates
        effort = M @ (row / (row @ row))
        inertia[i] = np.linalg.lstsq(A.T, effort, rcond=None)[0][i]
    return inertia


def own_modes(inertia, modes):
    """Return the mode (actuators,) [rad/s] of each axis while the others rest; infinite where it is locked.

    inertia (actuators,): of `driven_inertia`.
    """
    return np.sqrt(modes.stiffness / inertia)


def default_effort_bandwidth(lag):
    """Return w [rad/s] of axes at force level; lag [s] of the loop: samples, delays."""
    return min(EFFORT_BANDWIDTH, EFFORT_LAG_SHARE / lag) if lag > 0.0 else EFFORT_BANDWIDTH


def torque_gains(inertia, interfaces, modes, bandwidth, effort_bandwidth=EFFORT_BANDWIDTH):
    """Return the `ValveGains` of a bandwidth w [rad/s] for interfaces (actuators,) of `valve_computed_torque.py`.

    inertia (actuators,): of `driven_inertia`; modes: `NaturalModes` of the machine; effort_bandwidth [rad/s]: of axes
    at force level.  Force loop at w, position in it at w / 2, flow feedback at w / 2, of an axis whose own mode is far
    above the lowest up to 3 w / 4: for w = 10 those tried on the crane.  Its telescope halves its errors by that when
    areas and valves differ from the model.
    """
    w, v, full = bandwidth, effort_bandwidth, np.ones(len(inertia))
    by_flow = np.asarray(interfaces) > PRESSURE
    flow = np.clip(FLOW_SHARE * own_modes(inertia, modes), 0.5 * w, 0.75 * w)
    return ValveGains(
        inertia=inertia,
        stiffness=np.where(by_flow, 0.25 * w**2, v**2), damping=np.where(by_flow, w, 2.0 * v),
        integral=np.where(by_flow, 0.01 * w**3, INTEGRAL_SHARE * v**3),
        flow_stiffness=flow, flow_integral=0.6 * flow**2,
        flow_decoupling=0.3 * full, force_gain=w * full, error_filter=ERROR_FILTER * full,
        pressure_filter=PRESSURE_FILTER * full, blend=BLEND * full)


def pid_bandwidth(inertia, modes, lag):
    """Return the bandwidths (actuators,) [rad/s] that the hydraulic modes allow PID, which cannot damp them.

    Each axis for itself, from its mode while the others rest.  Arguments as of `own_modes` and `default_bandwidth`.
    """
    return np.minimum(PID_SHARE * own_modes(inertia, modes), LAG_SHARE / lag)


def pid_derivative(inertia, modes, lag):
    """Return the derivative gains d (actuators,) of PID; arguments as of `pid_bandwidth`.

    A rate that is T late takes d w^2 T from the damping of a mode w: none is fed back where w T is 1 or more.
    """
    late = own_modes(inertia, modes) * (lag + 2.0 / ERROR_FILTER)
    return DERIVATIVE * np.maximum(1.0 - late**2, 0.0)


def pid_gains(interfaces, bandwidth, derivative, effort_bandwidth=EFFORT_BANDWIDTH):
    """Return the `PidGains` of bandwidths [rad/s], one or (actuators,), and derivative gains (actuators,).

    Other arguments as of `torque_gains`.
    """
    v, full, by_flow = effort_bandwidth, np.ones(len(interfaces)), np.asarray(interfaces) > PRESSURE
    return PidGains(
        proportional=bandwidth * full, integral=0.25 * bandwidth**2 * full, derivative=derivative * full,
        stiffness=np.where(by_flow, 0.0, v**2), damping=np.where(by_flow, 0.0, 2.0 * v),
        force_integral=np.where(by_flow, 0.0, INTEGRAL_SHARE * v**3),
        error_filter=ERROR_FILTER * full, blend=BLEND * full)


class StableLimits(NamedTuple):
    """What the loop of a machine bears: largest gains (actuators,) [1/s], and what the limits of others follow from."""

    force: np.ndarray           # of the force loop
    flow: np.ndarray            # of the flow for an error, with a force loop
    position: np.ndarray        # of PID, which does not damp the modes
    inertia: np.ndarray         # kg, kg m^2 that each axis feels
    mode: np.ndarray            # rad/s of each axis while the others rest
    lag: float                  # s


def stable_limits(inertia, modes, lag):
    """Return the `StableLimits` of a machine of this inertia (actuators,) with these `NaturalModes`.

    lag [s] of the loop: spool, samples, delays.  The gains are twice what `default_bandwidth` and `pid_bandwidth` take
    of lag and own mode of each axis.
    """
    own, full = own_modes(inertia, modes), np.ones(len(inertia))
    by_lag = STABLE * max(LAG_SHARE / lag, LOWEST) * full
    return StableLimits(by_lag, 0.75 * by_lag, np.minimum(STABLE * PID_SHARE * own, by_lag), inertia, own, lag)


def torque_bounds(gains, stable, by_flow):
    """Return the bounds, as of `rejection`, of the `ValveGains` of axes by_flow (actuators,).

    An axis of mode w with force loop kF, r = inertia over its own and errors whose rate is T late has
    s^3 + (kF (1 - r kd T) + D) s^2 + (kF r kd + w^2 (1 - kv)) s + kF r kp + w^2 kf;  D, damping of the oil, is what the
    limit of PID counts on.  The bounds of kp, kd, kf, kv, inertia and filters are one: that of Routh.
    """
    g, w2, kF, kd = gains, stable.mode**2, gains.force_gain, gains.damping
    late, oil = stable.lag + 1.0 / g.pressure_filter + 2.0 / g.error_filter, STABLE * PID_SHARE * stable.mode
    with np.errstate(divide='ignore', invalid='ignore'):
        r, spring = g.inertia / stable.inertia, w2 * (1.0 - g.flow_decoupling)
        damped, pull = kF * (1.0 - r * kd * late) + oil, kF * r * g.stiffness
        room = damped * (kF * r * kd + spring)
        # r kd of both is the larger root of a parabola
        a, b, c = kF**2 * late, kF * (kF + oil) - kF * late * spring, (kF + oil) * spring - w2 * g.flow_stiffness
        damping = _larger_root(a, b, c - pull) / r
        inertia = _larger_root(a, b - kF * g.stiffness / kd, c) / kd * stable.inertia
        most = {'force_gain': stable.force, 'damping': np.fmin(damping, LATE_SHARE / late),
                'inertia': np.fmin(inertia, LATE_SHARE * stable.inertia / (kd * late)),
                'flow_stiffness': np.fmin((room - pull) / w2, stable.flow), 'flow_integral': g.flow_stiffness**2,
                'integral': g.stiffness * kd, 'stiffness': (room - w2 * g.flow_stiffness) / (kF * r),
                'flow_decoupling': 1.0 - ((pull + w2 * g.flow_stiffness) / damped - kF * r * kd) / w2}
        latest = (kF + oil - (pull + w2 * g.flow_stiffness) / (kF * r * kd + spring)) / (kF * r * kd)
        latest = np.fmin(latest, LATE_SHARE / (r * kd)) - stable.lag
        least = {'pressure_filter': np.fmax(kF, 1.0 / (latest - 2.0 / g.error_filter)),
                 'error_filter': np.fmax(kd, 2.0 / (latest - 1.0 / g.pressure_filter))}
    none, all_of = np.zeros(len(w2)), np.full(len(w2), np.inf)
    return [*((name, by_flow, values, all_of) for name, values in least.items()),
            *((name, by_flow, none, np.maximum(values, 0.0)) for name, values in most.items())]


def _larger_root(a, b, c):
    """x from which on -a x^2 + b x + c is negative."""
    return (b + np.sqrt(b**2 + 4.0 * a * c)) / (2.0 * a)


def force_bounds(names, stiffness, damping, error_filter, lag, by_force):
    """Return the bounds, as of `rejection`, of the gains of axes by_force (actuators,) that act lag [s] late.

    names: of the fields for an error, its rate and its integral.
    """
    none, all_of = np.zeros(len(by_force)), np.full(len(by_force), np.inf)
    limits = error_limits(stiffness, damping, lag + FILTER_LAG / error_filter)
    return [('error_filter', by_force, damping, all_of),
            *((name, by_force, none, most) for name, most in zip(names, limits))]
