"""psdyn_ros on the benchmark's states: the public calls, and a compiled loop around the kernels."""

import numpy as np

from psdyn_ros.kernels.loops.closure import close_machine
from psdyn_ros.kernels.loops.records import bind_loops
from psdyn_ros.kernels.rigid_body.forward import forward_dynamics
from psdyn_ros.kernels.rigid_body.inverse import inverse_dynamics
from psdyn_ros.kernels.rigid_body.mechanism import make_handle
from psdyn_ros.kernels.runtime.compiler import entry


@entry
def forward_loop(tree, loops, x, xd, f, xdd):
    failures = 0
    for k in range(x.shape[0]):
        failures += forward_dynamics(tree, loops, None, x[k], xd[k], f[k], xdd[k]) != 0
    return failures


@entry
def hinted_forward_loop(tree, loops, x, xd, f, hints, xdd):
    hint, failures = bind_loops(tree, loops).hint, 0
    for k in range(x.shape[0]):
        for j in range(hints.shape[1]):
            hint[0, j] = hints[k, j]
        failures += forward_dynamics(tree, loops, None, x[k], xd[k], f[k], xdd[k]) != 0
    return failures


@entry
def inverse_loop(tree, loops, x, xd, xdd, f):
    failures = 0
    for k in range(x.shape[0]):
        failures += inverse_dynamics(tree, loops, x[k], xd[k], xdd[k], f[k]) != 0
    return failures


class Engine:
    """One machine; the inverse gives efforts on the actuators where these are the coordinates, else on those."""

    def __init__(self, manipulator):
        self.manipulator, self.handle = manipulator, manipulator.handle()
        self.forward = manipulator.forward_dynamics
        direct = manipulator.actuators == manipulator.coordinates
        self.inverse = manipulator.inverse_dynamics if direct else manipulator.generalized_forces

    def lengthen(self, loops):
        """Repeat the records of a chain up to `loops` modules: longer than the reader takes from a URDF."""
        modules = np.resize(self.handle.modules, loops)
        modules['parent'], modules['child_by_value'] = np.arange(-1, loops - 1), np.arange(loops) < loops - 1
        for row in ('position', 'coordinate', 'actuator'):
            modules[row] = np.arange(loops)
        self.handle = make_handle((loops, loops, loops), modules, self.handle.environment)

    def native_forward(self, x, xd, f, xdd):
        none_failed(forward_loop(self.handle.tree, self.handle.loops, x, xd, f, xdd))

    def native_inverse(self, x, xd, xdd, f):
        none_failed(inverse_loop(self.handle.tree, self.handle.loops, x, xd, xdd, f))

    def tree_positions(self, x, tree):
        """Positions of all joints, in the order of Pinocchio's tree."""
        positions = np.empty((len(x), tree.nq))
        for row, state in zip(positions, x):
            names, values = self.manipulator.joint_state(state)[:2]
            by_name = dict(zip(names, values))
            row[:] = [by_name[name] for name in tree.names[1:]]
        return positions


class HintedEngine(Engine):
    """The same, told where the loops are closed, as Pinocchio is."""

    def __init__(self, manipulator):
        super().__init__(manipulator)
        self.handle.arrays.loops.hinted[0] = 1

    def closed(self, x):
        """Positions of the joints of all loops at x (N, dof), to be hints."""
        handle = self.manipulator.handle()
        loops = handle.arrays.loops
        rows = np.empty((len(x), len(loops.cluster_joints)))
        for row, position in zip(rows, x):
            none_failed(close_machine(handle.tree, handle.loops, position, np.zeros_like(position)) != 0)
            row[:] = loops.work['q']
        return rows

    def positions(self, x):
        """Positions of all joints at x (N, dof), as users give them."""
        return np.array([self.manipulator.joint_state(row)[1] for row in x])

    def forward_from(self, x, xd, f, positions):
        return self.forward(x, xd, f, positions=positions)

    def inverse_from(self, x, xd, xdd, positions):
        return self.inverse(x, xd, xdd, positions=positions)

    def native_forward(self, x, xd, f, hints, xdd):
        none_failed(hinted_forward_loop(self.handle.tree, self.handle.loops, x, xd, f, hints, xdd))


def none_failed(failures):
    if failures:
        raise RuntimeError(f'{failures} states were refused by the kernel')
