"""`Mechanism`: the data that the kernels of a machine read and write, as views of two flat buffers.

`tree` holds the modules and all scratch, so that a copy of it is a machine for another thread; `loops` holds what is
constant of clusters, and is None where a machine has none: Numba then leaves out what only clusters need.
"""
import copyreg
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..loops.records import (
    FIRST_SCRATCH,
    HINT,
    HINTED,
    INDEX,
    SCRATCH,
    ClusterArrays,
    bind_clusters,
    loop_arrays,
    loops_of,
)
from ..runtime.buffer import FLOAT, matrix, pack, records, shapes_text, view, views
from ..runtime.compiler import kernel
from .records import ENVIRONMENT, MODULE, WORK


class Mechanism(NamedTuple):
    """First argument of the recursions."""

    modules: np.ndarray         # (n,) MODULE
    work: np.ndarray            # (n,) WORK
    environment: np.ndarray     # (2,) ENVIRONMENT: what acts on the machine; nothing, at rest
    loops: ClusterArrays | None

    __repr__ = shapes_text


@kernel
def bind(tree, loops):
    """Return the `Mechanism` of two buffers."""
    return Mechanism(records(tree, 0, MODULE)[0], records(tree, 1, WORK)[0], records(tree, 2, ENVIRONMENT)[0],
                     bind_clusters(tree, loops))


@kernel
def columns_of(tree):
    """Return the scratch (3, dof) of the mass matrix, in a tuple: zeros, a unit vector, efforts."""
    return matrix(tree, 3)


@kernel
def at_rest(m):
    """Return the `Mechanism` with a base at rest, without gravity and external wrenches; it shares all scratch."""
    return Mechanism(m.modules, m.work, m.environment[1:], m.loops)


class Handle:
    """The buffers of a machine, and their arrays as Python sees them.

    Kernels are called as `kernel(handle.tree, handle.loops, ...)`. One call at a time may use the buffers of a handle.
    """

    def __init__(self, tree, loops):
        self.tree, self.loops = tree, loops

    def __repr__(self):
        return f'<Handle: {len(self.modules)} modules, {"no clusters" if self.loops is None else "with clusters"}>'

    @cached_property
    def arrays(self):
        """`Mechanism` of views; its loops are `Loops`, or None."""
        dtypes = (MODULE, WORK, ENVIRONMENT, FLOAT)
        arrays = views(self.tree, dtypes if self.loops is None else dtypes + SCRATCH)
        return Mechanism(*arrays[:FIRST_SCRATCH - 1], loops_of(self.loops, arrays[FIRST_SCRATCH:]))

    @cached_property
    def modules(self):
        """(n,) MODULE"""
        return view(self.tree, 0, MODULE)

    @cached_property
    def work(self):
        """(n,) WORK"""
        return view(self.tree, 1, WORK)

    @cached_property
    def environment(self):
        """ENVIRONMENT"""
        return view(self.tree, 2, ENVIRONMENT)[0]

    def let_efforts_act_on_coordinates(self):
        """Make f (dof,) the efforts on the coordinates, those of a floating base included, instead of the actuators."""
        self.modules['actuator'] = self.modules['coordinate']
        self.environment['actuators'] = self.environment['dof']

    def start_from_last(self):
        """Close clusters from their last closed positions; this changes only time and rounding."""
        if self.loops is not None:
            view(self.tree, HINTED, INDEX)[0] = 1

    def start_from(self, positions):
        """Close clusters from these positions (cluster joints,); NaN: that cluster from the table."""
        if self.loops is not None:
            view(self.tree, HINT, FLOAT)[0] = positions
            self.start_from_last()

    def copy(self):
        """Return a handle with scratch, modules and environment of its own."""
        return Handle(self.tree.copy(), self.loops)


# views would become arrays of their own
copyreg.pickle(Handle, lambda handle: (Handle, (handle.tree, handle.loops)))


def make_handle(sizes, modules, environment, loops=None):
    """Return the `Handle` of MODULE records.

    sizes: entries of x, xd, f.  environment: ENVIRONMENT record.  loops: `Loops`, or None.
    """
    environments = np.zeros(2, ENVIRONMENT)
    environments[0] = environment
    for row in environments:
        row['nx'], row['dof'], row['actuators'] = sizes
    scratch, constants = loop_arrays(loops)
    arrays = [modules, np.zeros(len(modules), WORK), environments, np.zeros((3, sizes[1]))]
    assert len(arrays) == FIRST_SCRATCH
    return Handle(pack([*arrays, *scratch]), None if loops is None else pack(constants))
