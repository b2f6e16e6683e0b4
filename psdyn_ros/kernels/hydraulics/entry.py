"""What Python calls to step a hydraulic machine whose coordinates are its actuators."""
from ..runtime.compiler import entry, kernel
from . import mechanism
from .equations import chamber_flows
from .friction import friction_of
from .records import FLUID, PRESSURE_A, PRESSURE_B, SPOOL, VALVE
from .rosenbrock import advance, line_pressure, rates


@kernel
def pack(x, xd, fluid, bristles, supply_pressure, U):
    """Write a state into one row."""
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
def unpack(s, U, x, xd, fluid, bristles, supply_pressure):
    """Take a state from one row."""
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


@entry
def step_coupled(mods, work, env, still, rows, s, x, xd, fluid, bristles, supply_pressure, xdd, h, substeps):
    """Advance a state in place by `substeps` of h [s]; xdd: mean acceleration of the last one.  Returns a status."""
    n, machine = xd.shape[0], (mods, work, env, still, rows)
    pack(x, xd, fluid, bristles, supply_pressure, s.states[0])
    status, done = advance(
        mechanism.place, mechanism.accelerate, mechanism.inertia, mechanism.along, mechanism.onto, mechanism.laden,
        machine, s, n, h, substeps)
    if done > 0:
        unpack(s, s.states[0], x, xd, fluid, bristles, supply_pressure)
    if status == 0:
        mean_acceleration(s, n, xdd)
    return status


@entry
def rates_coupled(mods, work, env, still, rows, s, n, U, F):
    """Write the rates of a state row U into F; return a status."""
    return rates(mechanism.place, mechanism.accelerate, (mods, work, env, still, rows), s, n, U, F)


@entry
def observe_coupled(mods, work, env, still, rows, s, x, xd, fluid, bristles, supply_pressure, xdd, force, telemetry):
    """Write accelerations, net forces of the actuators and telemetry of a state; return a status."""
    n, U, F = xd.shape[0], s.states[0], s.states[1]
    pack(x, xd, fluid, bristles, supply_pressure, U)
    status = rates_coupled(mods, work, env, still, rows, s, n, U, F)
    if status == 0:
        observe_state(s, n, U, force, telemetry)
        for i in range(n):
            xdd[i] = F[n + i]
    return status
