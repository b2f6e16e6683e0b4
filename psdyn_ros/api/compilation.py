"""Compile kernels of single calls when a machine is loaded; those of batches, derivatives and redundant actuation at
their first call."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..kernels.hydraulics import entry as hydraulics
from ..kernels.hydraulics.records import FLUID, QUANTITIES
from ..kernels.loops import closure
from ..kernels.rigid_body import entry, floating_base, measurement, triangle
from ..kernels.runtime import compiler
from ..kernels.runtime.turn import Turn

# groups of kernels: compiled without and with clusters
TREE, LOOPS, HYDRAULIC, HYDRAULIC_LOOPS = 'tree', 'loops', 'hydraulic', 'hydraulic_loops'

_RECURSIONS = (
    entry.forward_checked, entry.inverse_checked, entry.place_checked, entry.read_joint_states,
    entry.read_mass_matrix, entry.read_actuator_map, entry.read_energy, entry.read_base_reaction,
    measurement.coordinates_of_modules, floating_base.position_rate, triangle.triangle)
# `close_machine` stays open: kernels of both groups call it, each with `loops` of its own
_CLOSING = (closure.close_from, closure.linearise_at, entry.forward_hinted, entry.inverse_hinted)
_HYDRAULIC = (hydraulics.step, hydraulics.rates_of, hydraulics.observe)
_ENTRIES = {TREE: _RECURSIONS, LOOPS: (*_RECURSIONS, *_CLOSING), HYDRAULIC: _HYDRAULIC, HYDRAULIC_LOOPS: _HYDRAULIC}
_ready: set[str] = set()


class Compilation:
    """Compiles one group of kernels: enter it before their first call, call `finish` after loading, leave it.

    Of processes that need the same kernels one compiles them, and the others wait for its cache.
    """

    def __init__(self, group: str) -> None:
        self._group, self._done = group, False
        self._turn: Turn | None = None

    def __enter__(self) -> Compilation:
        group = self._group
        if self._is_cold():
            folder = compiler.CACHE_FOLDER
            self._turn = Turn('the kernels for this machine', folder and folder / 'compiling.lock')
            self._turn.wait()
        self._cold = self._is_cold()
        if not compiler.compiled and not _ready:
            print('psdyn_ros: Numba is missing or disabled: plain Python, some hundred times slower '
                  '(pip install numba)', file=sys.stderr)
        if self._cold and self._turn:
            self._turn.begin()
        if group not in _ready and compiler.compiled:
            for kernel in _ENTRIES[group]:
                kernel.disable_compile(False)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._turn:
            self._turn.end(self._done)

    def _is_cold(self) -> bool:
        return compiler.compiled and self._group not in _ready and not compiler.cache_is_warm(self._group)

    def finish(self, machine: Any) -> None:
        """Compile the rest of the group and freeze its signatures; machine: a manipulator, or a hydraulic integrator.

        A later call with another type or stride is a TypeError, which callers avoid by checking or converting.
        """
        if self._group in _ready:
            return
        _ready.add(self._group)
        if not compiler.compiled:
            return
        (_call_recursions if self._group in (TREE, LOOPS) else _call_hydraulics)(machine)
        for kernel in _ENTRIES[self._group]:
            kernel.disable_compile()
        if self._cold:
            compiler.mark_cache_warm(self._group)
            self._done = True


def compiled_for(kernel: Any, *arguments: Any) -> Any:
    """Return the code of a kernel for the types of these arguments, compiled before.

    It is called as the kernel, but compares no types, which takes Numba 0.2 us a call: callers must have checked them.
    """
    return kernel.get_overload(tuple(map(kernel.typeof_pyval, arguments)))


def _call_recursions(m: Any) -> None:
    handle = m.handle()
    buffers, x, zero = (handle.tree, handle.loops), m.initial_position, np.zeros(m.dof)
    f, n = np.zeros(len(m.actuators)), len(handle.modules)
    entry.forward_checked(*buffers, x, zero, f, zero.copy())
    entry.inverse_checked(*buffers, x, zero, zero, zero.copy())
    entry.place_checked(*buffers, x, zero, zero)
    entry.read_joint_states(*buffers, np.zeros((3, len(m.joints))))
    entry.read_mass_matrix(*buffers, x, np.zeros((m.dof, m.dof)))
    entry.read_actuator_map(*buffers, np.zeros((len(f), m.dof)))
    entry.read_energy(*buffers, np.zeros(4))
    entry.read_base_reaction(*buffers, np.zeros(6))
    measurement.coordinates_of_modules(m.machine.records[:0], np.zeros((0, 3), np.int64), np.zeros((3, 1)),
                                       np.zeros((4, n)))
    floating_base.position_rate(x, zero, x.copy())
    triangle.triangle(m.machine.records[0], 0.0, 1.0)
    if handle.loops is not None:
        closure.close_machine(*buffers, x, zero)
        closure.linearise_at(*buffers, 0)
        closure.close_from(*buffers, 0, zero)
        hint = np.zeros(len(handle.arrays.loops.cluster_joints), np.int64), np.zeros(1)
        entry.forward_hinted(*buffers, *hint, x, zero, f, zero.copy())
        entry.inverse_hinted(*buffers, *hint, x, zero, zero, zero.copy())


def _call_hydraulics(integrator: Any) -> None:
    n, m, c = integrator.manipulator.dof, len(integrator.axes), len(integrator.cylinders)
    state = (integrator.manipulator.initial_position, np.zeros(n), np.zeros((c, FLUID)), np.zeros(m), np.zeros(1))
    row = integrator.pack(*state)
    hydraulics.rates_of(*integrator.arguments, n, row, row.copy())
    integrator.observe(*state, np.zeros(n), np.zeros(m), np.zeros((c, len(QUANTITIES))))
    integrator.step(*state, np.zeros(n))
