"""Compile every kernel that Python calls, when a machine is loaded rather than in a control cycle."""
import sys
import time

import numpy as np

from ..kernels.control import allocation
from ..kernels.hydraulics import entry as coupled_entry
from ..kernels.hydraulics import entry_general as coupled_general
from ..kernels.hydraulics.records import FLUID, QUANTITIES
from ..kernels.loops import closure
from ..kernels.rigid_body import (
    energy as quantities,
)
from ..kernels.rigid_body import (
    entry,
    general_entry,
    inverse,
)
from ..kernels.rigid_body import (
    joints as motion,
)
from ..kernels.rigid_body import (
    time_step as simulate,
)
from ..kernels.runtime import compiler

# groups of kernels, by the kind of machine that needs them
CLOSED_FORM, GENERAL, HYDRAULIC, HYDRAULIC_GENERAL = 'closed_form', 'general', 'hydraulic', 'hydraulic_general'

_ENTRIES = {
    CLOSED_FORM: (
        entry.forward_checked, entry.inverse_checked, entry.forward_batch, entry.inverse_batch,
        quantities.mass_matrix, quantities.energy, quantities.joint_states, quantities.coordinates,
        motion.outward_velocities, inverse.base_reaction, simulate.runge_kutta),
    GENERAL: (
        closure.close_all, closure.close_from, closure.linearise_at, general_entry.inverse_general,
        general_entry.forward_general, general_entry.closed_general, general_entry.joint_states_general,
        general_entry.energy_general, general_entry.runge_kutta_general, general_entry.inverse_general_rows,
        general_entry.forward_general_rows, quantities.joint_states, quantities.coordinates, inverse.base_reaction,
        allocation.allocate),
    HYDRAULIC: (coupled_entry.step_coupled, coupled_entry.rates_coupled, coupled_entry.observe_coupled),
    HYDRAULIC_GENERAL: (
        coupled_general.step_general, coupled_general.rates_general, coupled_general.observe_general)}
_ready = set()


class Compilation:
    """The compilation that the first machine of a kind brings; made before its kernels are called, then finished."""

    def __init__(self, group):
        self._group, self._start = group, time.monotonic()
        self._cold = compiler.compiled and group not in _ready and not compiler.cache_is_warm(group)
        if not compiler.compiled and not _ready:
            print('psdyn_ros: Numba is missing or disabled: plain Python, some hundred times slower '
                  '(pip install numba)', file=sys.stderr)
        if self._cold:
            print('psdyn_ros: compiling the kernels for this machine, once (about 30 s) ...', file=sys.stderr,
                  flush=True)

    def finish(self, machine):
        """Compile what is left of the group, for one signature only; machine: what `_CALLS` tells of.

        A later call with another type or stride is a TypeError, which `Manipulator` answers by converting.
        """
        if self._group in _ready:
            return
        _ready.add(self._group)
        if not compiler.compiled:
            return
        _CALLS[self._group](machine)
        complete = True
        for kernel in _ENTRIES[self._group]:
            # a machine without loops leaves the kernels of loops to one that has some
            if kernel.signatures:
                kernel.disable_compile()
            else:
                complete = False
        if self._cold and complete:
            compiler.mark_cache_warm(self._group)
            print(f'psdyn_ros: compiled in {time.monotonic() - self._start:.0f} s', file=sys.stderr, flush=True)


def _call_closed_form(m):
    x, zero, rows = m.initial_position, np.zeros(m.dof), np.zeros((2, m.dof))
    mods, work, env = m.records
    entry.forward_checked(mods, work, env, x, zero, zero, zero.copy())
    entry.inverse_checked(mods, work, env, x, zero, zero, zero.copy())
    entry.forward_batch(mods, work, env, rows, rows, rows, rows.copy(), 0, 0)
    entry.inverse_batch(mods, work, env, rows, rows, rows, rows.copy(), 0, 0)
    quantities.mass_matrix(mods, work, env, x, zero.copy(), zero.copy(), zero.copy(), np.empty((m.dof, m.dof)))
    quantities.energy(mods, work, env, x, zero, np.empty(4))
    q = np.empty((3, len(m.joints)))
    quantities.joint_states(mods, x, zero, zero, q[0], q[1], q[2])
    m.joint_map(m.actuators).state(x)
    motion.outward_velocities(mods, work, env, x, zero)
    inverse.base_reaction(mods, work, env, m.machine.base_inertia, np.empty(6))
    m.integrator(1e-6).step(x.copy(), zero.copy(), zero)


def _call_general(m):
    x, zero, f = m.initial_position, np.zeros(m.dof), np.zeros(len(m.actuators))
    mods, work, env = m.records
    m.forward_dynamics(x, zero, f)
    m.forward_dynamics(x[None], zero[None], f[None])
    m.generalized_forces(x, zero, zero)
    m.generalized_forces(x[None], zero[None], zero[None])
    m.link_pose(x, m.links[-1])
    m.joint_state(x)
    m.energy(x, zero)
    m.integrator(1e-6).step(x.copy(), zero.copy(), f)
    z, q = np.zeros((4, len(mods))), np.empty((3, len(m.joints)))
    quantities.joint_states(mods[:0], z[0], z[1], z[2], q[0], q[1], q[2])
    quantities.coordinates(mods[:0], np.zeros((0, 3), dtype=np.int64), q[0], q[1], q[2], z[0], z[1], z[2], z[3])
    inverse.base_reaction(mods, work, env, m.machine.base_inertia, np.empty(6))
    # a machine without loops has called none of these
    loops = m.loops
    closure.close_all(loops, x, zero)
    one, bound = np.ones(2), np.full(2, np.inf)
    allocation.allocate(np.ones((2, 1)), one, 0.0 * one, -bound, bound, np.ones(1), allocation.scratch(2, 1), one)
    if len(loops.clusters):
        closure.linearise_at(loops, 0)
        closure.close_from(loops, 0, zero)


def _call_hydraulic(integrator):
    n, m, c = integrator.manipulator.dof, len(integrator.axes), len(integrator.cylinders)
    state = (integrator.manipulator.initial_position, np.zeros(n), np.zeros((c, FLUID)), np.zeros(m), np.zeros(1))
    row = integrator.pack(*state)
    rates = coupled_general.rates_general if integrator.manipulator.machine.general else coupled_entry.rates_coupled
    rates(*integrator.arguments, n, row, row.copy())
    integrator.observe(*state, np.zeros(n), np.zeros(m), np.zeros((c, len(QUANTITIES))))
    integrator.step(*state, np.zeros(n))


# each with what the first machine of the group brings: the manipulator, or its `HydraulicIntegrator`
_CALLS = {CLOSED_FORM: _call_closed_form, GENERAL: _call_general, HYDRAULIC: _call_hydraulic,
          HYDRAULIC_GENERAL: _call_hydraulic}
