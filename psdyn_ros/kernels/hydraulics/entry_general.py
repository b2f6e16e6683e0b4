"""The entries of `coupled_entry` for machines with loops of any kind, or actuators that are not the coordinates."""
from ..runtime.compiler import entry
from . import mechanism_general as mechanism
from .entry import mean_acceleration, observe_state, pack, unpack
from .rosenbrock import advance, rates


@entry
def step_general(mods, work, env, still, loops, free, passive, rows, A, s, x, xd, fluid, bristles, supply_pressure,
                 xdd, h, substeps):
    """Advance a state in place; see `step_coupled`."""
    n, machine = xd.shape[0], (mods, work, env, still, loops, free, passive, rows, A)
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
def rates_general(mods, work, env, still, loops, free, passive, rows, A, s, n, U, F):
    """Write the rates of a state row U into F; return a status."""
    return rates(mechanism.place, mechanism.accelerate, (mods, work, env, still, loops, free, passive, rows, A), s, n,
                 U, F)


@entry
def observe_general(mods, work, env, still, loops, free, passive, rows, A, s, x, xd, fluid, bristles, supply_pressure,
                    xdd, force, telemetry):
    """Write accelerations, net forces of the actuators and telemetry of a state; see `observe_coupled`."""
    n, U, F = xd.shape[0], s.states[0], s.states[1]
    pack(x, xd, fluid, bristles, supply_pressure, U)
    status = rates_general(mods, work, env, still, loops, free, passive, rows, A, s, n, U, F)
    if status == 0:
        observe_state(s, n, U, force, telemetry)
        for i in range(n):
            xdd[i] = F[n + i]
    return status
