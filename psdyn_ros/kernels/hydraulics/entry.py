"""Entries that step a hydraulic machine."""
from typing import NamedTuple

import numpy as np

from ..runtime.compiler import entry, kernel
from ..runtime.status import OK
from .equations import chamber_flows
from .friction import friction_of
from .records import FLUID, PRESSURE_A, PRESSURE_B, SPOOL, VALVE
from .rosenbrock import advance, line_pressure, rates


class State(NamedTuple):
    """State of a hydraulic machine."""

    x: np.ndarray                   # (dof,) [m, rad]
    xd: np.ndarray                  # (dof,)
    fluid: np.ndarray               # (cylinders, FLUID) [Pa, 1, 1/s]
    bristles: np.ndarray            # (actuators,) [m]
    supply_pressure: np.ndarray     # (1,) [Pa]


@kernel
def pack(state, U):
    """Write a state into one row."""
    x, xd, fluid, bristles, supply_pressure = state
    n, cylinders = xd.shape[0], fluid.shape[0]
    last = 2 * n + FLUID * cylinders
    for i in range(n):
        U[i], U[n + i] = x[i], xd[i]
    for k in range(cylinders):
        for j in range(FLUID):
            U[2 * n + FLUID * k + j] = fluid[k, j]
    for i in range(bristles.shape[0]):
        U[last + i] = bristles[i]
    U[U.shape[0] - 1] = supply_pressure[0]


@kernel
def unpack(s, U, state):
    """Take a state from one row."""
    x, xd, fluid, bristles, supply_pressure = state
    n, cylinders = xd.shape[0], fluid.shape[0]
    last = 2 * n + FLUID * cylinders
    for i in range(n):
        x[i], xd[i] = U[i], U[n + i]
    for k in range(cylinders):
        for j in range(FLUID):
            fluid[k, j] = U[2 * n + FLUID * k + j]
    for i in range(bristles.shape[0]):
        bristles[i] = U[last + i]
    supply_pressure[0] = line_pressure(s, U)


@kernel
def mean_acceleration(s, n, xdd):
    """Write the mean acceleration of the last sub-step, 1.5 k1 + 0.5 k2."""
    for i in range(n):
        xdd[i] = 1.5 * s.states[2][n + i] + 0.5 * s.states[3][n + i]


@kernel
def observe_state(s, n, U, force, telemetry):
    """Write net forces of the actuators and the telemetry of the state U whose rates were taken last."""
    last = 2 * n + FLUID * s.cylinders.shape[0]
    q, qd, net = s.actuators[0], s.actuators[1], s.actuators[2]
    line = line_pressure(s, U)
    for i in range(net.shape[0]):
        force[i] = net[i]
    for k in range(s.cylinders.shape[0]):
        c, row, fluid = s.cylinders[k], telemetry[k], U[2 * n + FLUID * k:2 * n + FLUID * k + FLUID]
        i = c['axis']
        row[0], row[1] = fluid[PRESSURE_A], fluid[PRESSURE_B]
        row[2], row[3] = 0.0, 0.0
        if s.axes[i]['drive'] == VALVE:
            row[2], row[3], _ = chamber_flows(c, q[i], fluid, line, s.supply[0]['return_pressure'])
        row[4] = fluid[SPOOL]
        row[5] = min(1.0, max(-1.0, c['command']))
        row[6], _ = friction_of(s.axes[i], qd[i], U[last + i])
        row[7] = net[i]
        row[8] = line
        row[9] = s.supply[0]['sensed'] if s.supply[0]['sensing'] else s.supply[0]['return_pressure']


@entry
def step(tree, loops, s, state, xdd, h, substeps):
    """Advance a `State` in place by `substeps` of h [s]; xdd: mean acceleration of the last one.  Returns a status."""
    n = xdd.shape[0]
    pack(state, s.states[0])
    status, done = advance(tree, loops, s, n, h, substeps)
    if done > 0:
        unpack(s, s.states[0], state)
    if status == OK:
        mean_acceleration(s, n, xdd)
    return status


@entry
def rates_of(tree, loops, s, n, U, F):
    """Write the rates of a state row U into F; return a status."""
    return rates(tree, loops, s, n, U, F)


@entry
def observe(tree, loops, s, state, xdd, force, telemetry):
    """Write accelerations, net forces of the actuators and telemetry of a `State`; return a status."""
    n, U, F = xdd.shape[0], s.states[0], s.states[1]
    pack(state, U)
    status = rates(tree, loops, s, n, U, F)
    if status == OK:
        observe_state(s, n, U, force, telemetry)
        for i in range(n):
            xdd[i] = F[n + i]
    return status
