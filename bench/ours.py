"""psdyn_ros on the benchmark's states: the public calls, and a compiled loop around the kernels."""

import numpy as np

import psdyn_ros
from psdyn_ros.kernels.loops.closure import close_all
from psdyn_ros.kernels.rigid_body.forward import forward
from psdyn_ros.kernels.rigid_body.general import general_forward, general_inverse
from psdyn_ros.kernels.rigid_body.inverse import inverse
from psdyn_ros.kernels.runtime.compiler import kernel


@kernel
def forward_loop(mods, work, env, x, xd, f, xdd):
    failures = 0
    for k in range(x.shape[0]):
        failures += forward(mods, work, env, x[k], xd[k], f[k], xdd[k]) != 0
    return failures


@kernel
def inverse_loop(mods, work, env, x, xd, xdd, f):
    failures = 0
    for k in range(x.shape[0]):
        failures += inverse(mods, work, env, x[k], xd[k], xdd[k], f[k]) != 0
    return failures


@kernel
def general_forward_loop(mods, work, env, loops, base, passive, x, xd, f, xdd):
    failures = 0
    for k in range(x.shape[0]):
        failures += general_forward(
            mods, work, env, loops, base, x[k], xd[k], f[k], passive, 0.0, 0.0, xdd[k]) != 0
    return failures


@kernel
def hinted_forward_loop(mods, work, env, loops, base, passive, x, xd, f, hints, xdd):
    failures = 0
    for k in range(x.shape[0]):
        for j in range(hints.shape[1]):
            loops.hint[0, j] = hints[k, j]
        failures += general_forward(
            mods, work, env, loops, base, x[k], xd[k], f[k], passive, 0.0, 0.0, xdd[k]) != 0
    return failures


@kernel
def general_inverse_loop(mods, work, env, loops, x, xd, xdd, f_y):
    failures = 0
    for k in range(x.shape[0]):
        failures += general_inverse(mods, work, env, loops, x[k], xd[k], xdd[k], f_y[k]) != 0
    return failures


class Engine:
    def __init__(self, machine):
        self.manipulator = psdyn_ros.load(machine.xml)
        self.forward = self.manipulator.forward_dynamics
        self.inverse = self.manipulator.inverse_dynamics
        self.records = self.manipulator.records

    def lengthen(self, loops):
        """Repeat the records of a chain up to `loops` modules: longer than the reader takes from a URDF."""
        mods = np.resize(self.records.mods, loops)
        mods['parent'], mods['coordinate'] = np.arange(-1, loops - 1), np.arange(loops)
        mods['chained'] = np.arange(loops) < loops - 1
        self.records = self.records._replace(mods=mods, work=np.zeros(loops, self.records.work.dtype))

    def native_forward(self, x, xd, f, xdd):
        self._run(forward_loop, x, xd, f, xdd)

    def native_inverse(self, x, xd, xdd, f):
        self._run(inverse_loop, x, xd, xdd, f)

    def _run(self, loop, *arrays):
        none_failed(loop(*self.records, *arrays))

    def tree_positions(self, x, tree):
        """Positions of all joints, in the order of Pinocchio's tree."""
        positions = np.empty((len(x), tree.nq))
        for row, state in zip(positions, x):
            names, values = self.manipulator.joint_state(state)[:2]
            by_name = dict(zip(names, values))
            row[:] = [by_name[name] for name in tree.names[1:]]
        return positions


class GeneralEngine:
    """The same of a machine with any loops; the inverse gives the efforts on the coordinates."""

    def __init__(self, manipulator):
        self.forward = manipulator.forward_dynamics
        self.inverse = manipulator.generalized_forces
        self.records = (*manipulator.records, manipulator.loops)
        self.loops = manipulator.loops
        self.at_rest = np.zeros((2, 6)), np.zeros(len(manipulator.records.mods))

    def native_forward(self, x, xd, f, xdd):
        none_failed(general_forward_loop(*self.records, *self.at_rest, x, xd, f, xdd))

    def native_inverse(self, x, xd, xdd, f):
        none_failed(general_inverse_loop(*self.records, x, xd, xdd, f))

    def closed(self, x):
        """Positions of the joints of all loops at x (N, dof), to be hints."""
        rows = np.empty((len(x), self.loops.hint.shape[1]))
        for row, position in zip(rows, x):
            none_failed(close_all(self.loops, position, np.zeros_like(position)) != 0)
            row[:] = self.loops.work['q']
        return rows


class HintedEngine(GeneralEngine):
    """The same, told where the loops are closed, as Pinocchio is."""

    def __init__(self, manipulator):
        super().__init__(manipulator)
        self.loops.hinted[0] = 1

    def native_forward(self, x, xd, f, hints, xdd):
        none_failed(hinted_forward_loop(*self.records, *self.at_rest, x, xd, f, hints, xdd))

    def forward_from(self, x, xd, f, hint):
        self.loops.hint[0] = hint
        return self.forward(x, xd, f)


def none_failed(failures):
    if failures:
        raise RuntimeError(f'{failures} states were refused by the kernel')
