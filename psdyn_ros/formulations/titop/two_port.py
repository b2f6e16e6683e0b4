"""
A tree of blocks as one block: the algebraic loop of accelerations and wrenches, solved from the tips to the root.

At given positions and rates, the wrench of every sub-tree on its parent is affine in the acceleration of the port,
W_A/B = w0 - D x'dot.  `reduce` inserts these maps into each other from the tips to the root; `respond` hands the
acceleration at P, once it is known, down to the tips.  Both are exact.  A `TwoPort` does to its parent what a rigid
block does, so that machines nest.

Source: D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems, algebraic loop.
"""
from typing import NamedTuple

import numpy as np

from .records import AffineMap, Response


class Slot(NamedTuple):
    """A block in the tree of a `TwoPort`."""

    block: object
    parent: int
    """Position of the parent in the tree; -1 for the root."""
    port: str
    """The parent's port C."""
    joints: slice
    """Where the joints of the block are among those of the tree."""


class Tie(NamedTuple):
    """A loop closure between two ports, each (position in the tree, port C)."""

    closure: object
    left: tuple
    right: tuple


class Placements(NamedTuple):
    """The blocks of a tree at given joint positions and rates."""

    parts: list
    """What each block's `place` returned, root first."""
    ports: dict
    """Exposed port C -> Motion."""


class Reductions(NamedTuple):
    """The blocks of a tree with the affine maps of their children inserted."""

    parts: list
    on_parent: AffineMap
    """W_A/B = w0 - D x'dot_B of the root."""


class TwoPort:
    """
    A machine or a part of one as a block with port P (the root's) and the exposed ports C.

    Joints are named 'block' or, of a two-port inside, 'block.joint'; exposed ports 'block.C' or as chosen.
    `Network.two_port` makes it.
    """

    def __init__(self, name, slots, ties, exposed):
        self.name = name
        self._slots = slots
        self._ties = ties
        self._exposed = exposed  # name -> (position in the tree, port C)
        self.joints = tuple(_path(slot.block, joint) for slot in slots for joint in slot.block.joints)

    ports = property(lambda self: tuple(self._exposed), doc='Names of the ports C.')
    blocks = property(lambda self: tuple(slot.block for slot in self._slots), doc='Root first.')

    def place(self, parent, q, qd):
        """Return the `Placements` under the parent's port (a `Motion`) at joint positions and rates (joints,)."""
        parts = []
        for block, above, port, own in self._slots:
            carrier = parent if above < 0 else parts[above].ports[port]
            parts.append(block.place(carrier, q[own], qd[own]))
        return Placements(parts, {name: parts[i].ports[port] for name, (i, port) in self._exposed.items()})

    def reduce(self, placed, gravity, forces, accelerations, children):
        """
        Return the `Reductions`, from the tips to the root.

        gravity (3,) [m/s^2] in inertial axes; forces and accelerations (joints,), the latter NaN where unknown;
        children: {exposed port C: AffineMap of the wrench there}.
        """
        at_ports = [{} for _ in self._slots]
        for tie in self._ties:
            motions = (placed.parts[i].ports[port] for i, port in (tie.left, tie.right))
            for (i, port), wrench in zip((tie.left, tie.right), tie.closure.wrenches(*motions)):
                at_ports[i][port] = AffineMap(wrench, np.zeros((6, 6)))
        for name, child in children.items():
            i, port = self._exposed[name]
            at_ports[i][port] = child
        parts = [None] * len(self._slots)
        for i, (block, above, port, own) in reversed(list(enumerate(self._slots))):
            parts[i] = block.reduce(placed.parts[i], gravity, forces[own], accelerations[own], at_ports[i])
            if above >= 0:
                at_ports[above][port] = parts[i].on_parent
        return Reductions(parts, parts[0].on_parent)

    def respond(self, placed, reduced, acceleration):
        """Return the `Response` to x'dot (6,) of the parent's port in its axes, from the root to the tips."""
        answers, wrenches = [], {}
        for i, (block, above, port, _) in enumerate(self._slots):
            carrier = acceleration if above < 0 else answers[above].ports[port]
            answers.append(block.respond(placed.parts[i], reduced.parts[i], carrier))
            wrenches |= {_path(block, name): wrench for name, wrench in answers[i].wrenches.items()}
        ports = {name: answers[i].ports[port] for name, (i, port) in self._exposed.items()}
        return Response(answers[0].wrench, ports, np.concatenate([a.joint_accelerations for a in answers]),
                        np.concatenate([a.joint_forces for a in answers]), wrenches | {'': answers[0].wrench})

    def bodies(self, placed):
        """Yield (block, Motion of its P) of every rigid body inside."""
        for slot, part in zip(self._slots, placed.parts):
            yield from slot.block.bodies(part)

    def elastic_energy(self, placed):
        """Return the energy [J] stored inside by loop closures."""
        return (sum(slot.block.elastic_energy(part) for slot, part in zip(self._slots, placed.parts))
                + sum(tie.closure.energy(*(placed.parts[i].ports[port] for i, port in (tie.left, tie.right)))
                      for tie in self._ties))


def _path(block, name):
    """Return the name of something inside a block; '' is the block itself."""
    return f'{block.name}.{name}' if name else block.name
