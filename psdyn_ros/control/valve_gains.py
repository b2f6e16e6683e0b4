"""Gains of the laws that command valves, and where their defaults come from.

One bandwidth w [rad/s] gives them all: that of the lowest mode of the machine on its oil with closed valves, at its
initial position, or what the lag of the slowest valve allows, whichever is less.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..api.hydraulics import natural_modes

LAG_SHARE = 0.12        # bandwidth times the lag of the loop; with twice that the crane's telescope chatters
LOWEST = 1.0            # rad/s
PID_SHARE = 0.15        # of an axis's own mode
EFFORT_BANDWIDTH = 15.0         # rad/s of axes at force level
PRESSURE_FILTER = 1000.0        # rad/s
ERROR_FILTER = 150.0            # rad/s
BLEND = 0.002


@dataclass(frozen=True)
class ValveGains:
    """Gains of `ValveControl`, each (actuators,); of axes at force level stiffness, damping and error_filter count.

        F* = model + friction + inertia (stiffness e + damping e' + integral int e) + bias
        v_c = v_r + flow_stiffness e + flow_integral int e - flow_decoupling e'
        F' = model' + force_gain (F* - F)
    """

    inertia: np.ndarray
    """kg, what the force feedback is scaled with."""
    stiffness: np.ndarray
    """1/s^2"""
    damping: np.ndarray
    """1/s"""
    integral: np.ndarray
    """1/s^3"""
    flow_stiffness: np.ndarray
    """1/s; this makes the machine stiff against what the model does not know."""
    flow_integral: np.ndarray
    """1/s^2"""
    flow_decoupling: np.ndarray
    """Share of the measured rate in the flow reference; 1 would take away the spring that the oil is."""
    force_gain: np.ndarray
    """1/s, bandwidth of the force loop: it damps the lowest hydraulic mode, and has to be fast enough for it."""
    error_filter: np.ndarray
    """rad/s, critically damped, of the error whose rate is used."""
    pressure_filter: np.ndarray
    """rad/s, low-pass of the pressures."""
    blend: np.ndarray
    """Opening over which the step across a dead band is spread."""


@dataclass(frozen=True)
class PidGains:
    """Gains of `ValvePid`, each (actuators,); of axes at force level stiffness, damping and error_filter count.

        v_c = v_r + proportional e + integral int e + derivative e'
    """

    proportional: np.ndarray
    """1/s"""
    integral: np.ndarray
    """1/s^2"""
    derivative: np.ndarray
    """1"""
    stiffness: np.ndarray
    """1/s^2, of axes at force level"""
    damping: np.ndarray
    """1/s, of axes at force level"""
    error_filter: np.ndarray
    """rad/s"""
    blend: np.ndarray
    """Opening over which the step across a dead band is spread."""


def modes_at_start(manipulator, hydraulics, axes, cylinders, supply):
    """Return the `NaturalModes` of a machine with closed valves at its initial position."""
    return natural_modes(manipulator, hydraulics, axes, cylinders, supply, manipulator.initial_position)


def default_bandwidth(modes, lag):
    """Return w [rad/s] of a machine with these `NaturalModes`; lag [s] of the loop: spool, samples, delays."""
    standing = modes.frequencies[modes.frequencies > 0.0]
    lowest = 2.0 * math.pi * standing.min() if standing.size else math.inf
    return max(min(lowest, LAG_SHARE / lag), LOWEST)


def driven_inertia(manipulator):
    """Return the inertia (actuators,) [kg, kg m^2] that each actuator feels while the others rest, at the start.

    Where several share a coordinate, each has its share.
    """
    x, m = manipulator.initial_position, manipulator
    M, A = m.mass_matrix(x), m.actuator_map(x)
    inertia = np.zeros(len(m.actuators))
    for i, row in enumerate(A):
        # unit acceleration of actuator i with the least of the coordinates
        effort = M @ (row / (row @ row))
        inertia[i] = np.linalg.lstsq(A.T, effort, rcond=None)[0][i]
    return inertia


def torque_gains(manipulator, axes, bandwidth):
    """Return the `ValveGains` of a bandwidth w [rad/s].

    Force loop at w, position in it at w / 2, flow feedback w / 2: for w = 10 those tried on the crane.
    """
    w, count = bandwidth, len(manipulator.actuators)
    on_valve, full = axes['cylinder'] >= 0, np.ones(count)
    return ValveGains(
        inertia=driven_inertia(manipulator),
        stiffness=np.where(on_valve, 0.25 * w**2, EFFORT_BANDWIDTH**2),
        damping=np.where(on_valve, w, 2.0 * EFFORT_BANDWIDTH),
        integral=0.01 * w**3 * full, flow_stiffness=0.5 * w * full, flow_integral=0.15 * w**2 * full,
        flow_decoupling=0.3 * full, force_gain=w * full, error_filter=ERROR_FILTER * full,
        pressure_filter=PRESSURE_FILTER * full, blend=BLEND * full)


def pid_gains(manipulator, axes, modes, lag):
    """Return the `PidGains` that the hydraulic modes allow, which PID cannot damp; 1.5 times these still work.

    Each axis for itself, from its mode while the others rest; modes, lag as in `default_bandwidth`.
    """
    full, on_valve = np.ones(len(manipulator.actuators)), axes['cylinder'] >= 0
    own = np.sqrt(modes.stiffness / driven_inertia(manipulator))
    proportional = np.minimum(PID_SHARE * own, LAG_SHARE / lag)
    return PidGains(
        proportional=proportional, integral=0.25 * proportional**2, derivative=0.2 * full,
        stiffness=np.where(on_valve, 0.0, EFFORT_BANDWIDTH**2),
        damping=np.where(on_valve, 0.0, 2.0 * EFFORT_BANDWIDTH),
        error_filter=ERROR_FILTER * full, blend=BLEND * full)
