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
from .gains import CYLINDERS, OTHERS, gain

LAG_SHARE = 0.1         # bandwidth times the lag of the loop; at 0.18 cranes begin to chatter while they move
LOWEST = 1.0            # rad/s
PID_SHARE = 0.09        # of an axis's own mode: twice the gains that follow still work on the crane
FLOW_SHARE = 0.2        # of an axis's own mode
EFFORT_BANDWIDTH = 15.0         # rad/s of axes at force level
INTEGRAL_SHARE = 0.25           # of w^3, integral gain at force level; with 2 it would be at its limit of stability
PRESSURE_FILTER = 1000.0        # rad/s
ERROR_FILTER = 150.0            # rad/s
BLEND = 0.002
STABLE = 2.0            # times the shares of lag and mode that default gains have, which still work


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
    flow_decoupling: np.ndarray = gain('1', 'share of the measured rate in the flow', CYLINDERS, high=2.0)
    force_gain: np.ndarray = gain('1/s', 'bandwidth of the force loop', CYLINDERS)
    error_filter: np.ndarray = gain('rad/s', 'critically damped, of the error whose rate is used')
    pressure_filter: np.ndarray = gain('rad/s', 'low-pass of the pressures', CYLINDERS, high=1e5)
    blend: np.ndarray = gain('1', 'opening over which the step across a dead band is spread', CYLINDERS, high=0.5)


@dataclass(frozen=True)
class PidGains:
    """Gains of `ValvePid`, each (actuators,):  v_c = v_r + proportional e + integral int e + derivative e'.

    Stiffness, damping and force_integral are of axes of which effort or pressure is commanded, as at force level.
    """

    proportional: np.ndarray = gain('1/s', 'velocity for an error', CYLINDERS)
    integral: np.ndarray = gain('1/s^2', 'velocity for the integral of an error', CYLINDERS)
    derivative: np.ndarray = gain('1', 'velocity for the rate of an error', CYLINDERS, high=2.0)
    stiffness: np.ndarray = gain('1/s^2', 'acceleration for an error', OTHERS, high=1e5)
    damping: np.ndarray = gain('1/s', 'acceleration for the rate of an error', OTHERS)
    force_integral: np.ndarray = gain('1/s^3', 'acceleration for the integral of an error', OTHERS, high=1e6)
    error_filter: np.ndarray = gain('rad/s', 'critically damped, of the error whose rate is used')
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


def pid_gains(interfaces, bandwidth, effort_bandwidth=EFFORT_BANDWIDTH):
    """Return the `PidGains` of bandwidths [rad/s], one or (actuators,); other arguments as `torque_gains`."""
    v, full, by_flow = effort_bandwidth, np.ones(len(interfaces)), np.asarray(interfaces) > PRESSURE
    return PidGains(
        proportional=bandwidth * full, integral=0.25 * bandwidth**2 * full, derivative=0.2 * full,
        stiffness=np.where(by_flow, 0.0, v**2), damping=np.where(by_flow, 0.0, 2.0 * v),
        force_integral=np.where(by_flow, 0.0, INTEGRAL_SHARE * v**3),
        error_filter=ERROR_FILTER * full, blend=BLEND * full)


class StableLimits(NamedTuple):
    """Largest gains (actuators,) [1/s] that the loop of a machine bears."""

    force: np.ndarray           # of the force loop
    flow: np.ndarray            # of the flow for an error, with a force loop
    position: np.ndarray        # of PID, which does not damp the modes


def stable_limits(inertia, modes, lag):
    """Return the `StableLimits` of a machine of this inertia (actuators,) with these `NaturalModes`.

    lag [s] of the loop: spool, samples, delays.  The gains are twice what `default_bandwidth` and `pid_bandwidth` take
    of lag and own mode of each axis.
    """
    own, full = own_modes(inertia, modes), np.ones(len(inertia))
    by_lag = STABLE * max(LAG_SHARE / lag, LOWEST) * full
    return StableLimits(by_lag, 0.75 * by_lag, np.minimum(STABLE * PID_SHARE * own, by_lag))


def beyond(names, judged, gain, values, most):
    """Return why the first of the judged gains (actuators,) is too large, with its limit; '' where none is."""
    for name, counts, value, limit in zip(names, judged, values, most):
        if counts and value > limit * (1.0 + 1e-9):
            return (f'gains.{name}.{gain} {value:.4g} is more than lag, mode and the other gains leave for a stable '
                    f'loop: at most {limit:.4g}')
    return ''
