"""
Blocks connected by name.

    network = Network()
    network.add(Body('balloon', ...), Prismatic('slider', ...), Revolute('pendulum', ...))
    network.connect('slider.P', 'balloon.C')
    network.connect('pendulum.P', 'slider.C')
    system = network.assemble(gravity=(0, -9.81, 0))

Every port is used once: a port P by a parent, a port C by a child, by a loop closure or by `expose`, which opens it to
external wrenches or to another network.  One block has no parent: the root, whose P is the port P of the whole.
"""
from ...model.errors import DuplicateNameError, UnknownNameError, did_you_mean
from .checks import block_name, numbers
from .errors import NetworkError
from .loop_closure import LoopClosure
from .rigid_blocks import Body
from .system import System
from .two_port import Slot, Tie, TwoPort

CUT = 'a chain that closes has to be cut at a point of a body, with a LoopClosure between the halves'


class Network:
    """Blocks and what connects them, while it is being built; a call that is refused changes nothing."""

    def __init__(self):
        self._blocks = {}    # name -> block or closure
        self._parents = {}   # name -> (name of the parent, its port C)
        self._sides = {}     # (closure, side) -> (block, port C)
        self._exposed = {}   # 'block.C' -> (block, port C)
        self._used = {}      # (block, port) -> what uses it

    def add(self, *blocks):
        """Add blocks; their names must differ."""
        added = {}
        for block in blocks:
            if not isinstance(block, (Body, LoopClosure, TwoPort)):
                raise NetworkError(f'{block!r:.80} is no block; expected a body, a joint, a LoopClosure or a two-port')
            if block.name in self._blocks or block.name in added:
                raise DuplicateNameError(f"block '{block.name}' is there twice; expected names that differ")
            added[block.name] = block
        self._blocks |= added

    def connect(self, one, other):
        """Connect 'child.P' to 'parent.C', or 'closure.l' or 'closure.r' to 'block.C'; the order does not matter."""
        first, second = self._find(one), self._find(other)
        if self._is_closure(first) != self._is_closure(second):
            side, port = (first, second) if self._is_closure(first) else (second, first)
            if port[1] == 'P':
                raise NetworkError(f"'{one}' to '{other}': a LoopClosure joins ports C of two bodies, not a port P")
            self._use(side, port)
            self._sides[side] = port
            return
        if self._is_closure(first) or (first[1] == 'P') == (second[1] == 'P'):
            raise NetworkError(f"'{one}' to '{other}': expected port P of a child and port C of its parent; {CUT}")
        child, port = (first, second) if first[1] == 'P' else (second, first)
        self._check_no_cycle(child[0], port[0])
        self._use(child, port)
        self._parents[child[0]] = port

    def expose(self, port):
        """Open 'block.C' to the outside: external wrenches, or the children of a two-port."""
        place = self._find(port)
        if self._is_closure(place) or place[1] == 'P':
            raise NetworkError(f"'{port}' cannot be exposed; expected a port C of a body")
        self._use(place)
        self._exposed[port] = place

    def two_port(self, name):
        """Return the whole as one block of that name, with the port P of the root and the exposed ports C."""
        block_name(name)
        order = self._root_first()
        at = {block: i for i, block in enumerate(order)}
        slots, end = [], 0
        for block in order:
            parent, port = self._parents.get(block, (None, None))
            start, end = end, end + len(self._blocks[block].joints)
            slots.append(Slot(self._blocks[block], at.get(parent, -1), port, slice(start, end)))
        ties = [Tie(closure, *((at[block], port) for block, port in (self._sides[closure.name, 'l'],
                                                                    self._sides[closure.name, 'r'])))
                for closure in self._closures()]
        return TwoPort(name, slots, ties, {name: (at[block], port) for name, (block, port) in self._exposed.items()})

    def assemble(self, gravity=(0.0, 0.0, -9.81)):
        """Return the `System` under gravity (3,) [m/s^2] in inertial axes."""
        gravity = numbers('gravity', gravity, (3,))
        return System(self.two_port('system'), gravity)

    def _closures(self):
        return [block for block in self._blocks.values() if isinstance(block, LoopClosure)]

    def _is_closure(self, place):
        return isinstance(self._blocks[place[0]], LoopClosure)

    def _ports(self, name):
        block = self._blocks[name]
        return block.ports if isinstance(block, LoopClosure) else ('P', *block.ports)

    def _find(self, text):
        """Return (block, port) of 'block.port'; UnknownNameError suggests the nearest."""
        name, _, port = str(text).partition('.')
        if name not in self._blocks:
            raise UnknownNameError(f"port '{text}': no block '{name}'{did_you_mean(name, self._blocks)}")
        if port not in self._ports(name):
            raise UnknownNameError(f"port '{text}': block '{name}' has no port '{port}'"
                                   f'{did_you_mean(port, self._ports(name))}')
        return name, port

    def _use(self, *places):
        """Note that ports are used, by each other or from outside."""
        users = [_text(place) for place in reversed(places)] if len(places) > 1 else ['the outside']
        for place, user in zip(places, users):
            if place in self._used:
                hint = f'; {CUT}' if place[1] == 'P' else '; a body may have any number of ports C, also at one point'
                raise NetworkError(f"port '{_text(place)}' is connected already, to {self._used[place]!r}, "
                                   f'and cannot be connected to {user!r} as well{hint}')
        self._used |= zip(places, users)

    def _check_no_cycle(self, child, parent):
        chain = [parent]
        while chain[-1] != child:
            if chain[-1] not in self._parents:
                return
            chain.append(self._parents[chain[-1]][0])
        cycle = ' - '.join([child, *chain])
        raise NetworkError(f"'{child}' cannot be a child of '{parent}', of which it is the parent or an ancestor: "
                           f'a cycle of rigid blocks {cycle}; {CUT}')

    def _root_first(self):
        """Return the names of the blocks, parents before children, when every port is connected."""
        rigid = [name for name, block in self._blocks.items() if not isinstance(block, LoopClosure)]
        if not rigid:
            raise NetworkError('the network has no body; expected at least one')
        roots = [name for name in rigid if name not in self._parents]
        if len(roots) > 1:
            raise NetworkError(f"ports {', '.join(repr(f'{name}.P') for name in roots)} are not connected; "
                               'expected one such port, that of the root')
        for name in self._blocks:
            for port in self._ports(name):
                if (name, port) not in self._used and (name, port) != (roots[0], 'P'):
                    raise NetworkError(f"port '{name}.{port}' is not connected; expected a connection"
                                       + ('' if name not in rigid else ', or expose() for external wrenches'))
        order = [roots[0]]
        for name in order:
            order += [child for child, (parent, _) in self._parents.items() if parent == name]
        return order


def _text(place):
    return '.'.join(place)
