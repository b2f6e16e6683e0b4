"""
Non-linear TITOP: rigid multibody systems as a diagram of blocks with two or more ports.

A port P takes the motion that the parent imposes and returns the wrench on the parent; a port C takes the wrench of a
child and returns the motion of the point.  `Network` connects blocks by name, `System` computes.

    closures    LoopClosure('pin', stiffness, damping)
    bodies      Body, Weld(..., orientation), Revolute(name, axis, ...), Prismatic(name, axis, ...)

Source: D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems.
"""
from .errors import AlgebraicLoopError, NetworkError
from .loop_closure import LoopClosure
from .network import Network
from .records import AffineMap, Motion
from .rigid_blocks import Body, Prismatic, Revolute, Weld
from .system import Solution, State, System
from .two_port import TwoPort

__all__ = ['AffineMap', 'AlgebraicLoopError', 'Body', 'LoopClosure', 'Motion', 'Network', 'NetworkError', 'Prismatic',
           'Revolute', 'Solution', 'State', 'System', 'TwoPort', 'Weld']
