"""TITOP two-ports: machines and parts of machines as blocks in other machines."""

import numpy as np
import pytest
from support import titop_machines as titop
from support.comparison import error
from support.titop_machines import connect

from psdyn_ros.formulations.titop import Body, LoopClosure, Network, Prismatic, Revolute, Weld


class Parts:
    """Blocks of a machine with two arms on a carriage, tied at their tips; made anew with the same numbers."""

    def __init__(self, rng):
        self.inertials = [titop.random_inertial(rng) for _ in range(6)]
        self.points, self.axes = rng.normal(size=(8, 3)), rng.normal(size=(4, 3))
        self.orientation, self.K = titop.random_rotation(rng), np.diag(rng.uniform(10, 50, 6))

    def base(self):
        return Body('base', *self.inertials[0], {'C': self.points[0]})

    def carriage(self):
        return Prismatic('carriage', self.axes[0], *self.inertials[1],
                         {'left': self.points[1], 'right': self.points[2]})

    def arm(self):
        return [Revolute('arm', self.axes[1], *self.inertials[2], {'C': self.points[3], 'tie': self.points[4]}),
                Weld('hand', *self.inertials[3], {'tool': self.points[5]}, self.orientation)]

    def rocker(self):
        return [Revolute('rocker', self.axes[2], *self.inertials[4], {'C': self.points[6]}),
                Prismatic('ram', self.axes[3], *self.inertials[5], {'tie': self.points[7]}, self.orientation)]

    def tie(self):
        return LoopClosure('tie', self.K, self.K / 10)

    def whole(self):
        network = Network()
        network.add(self.base(), self.carriage(), *self.arm(), *self.rocker(), self.tie())
        connect(network, 'carriage.P base.C', 'arm.P carriage.left', 'hand.P arm.C', 'rocker.P carriage.right',
                'ram.P rocker.C', 'tie.l arm.tie', 'tie.r ram.tie')
        network.expose('hand.tool')
        return network


@pytest.fixture
def parts(rng):
    return Parts(rng)


def arms_as_blocks(parts):
    """Each arm a two-port, tied through exposed ports."""
    arm, rocker, network = Network(), Network(), Network()
    arm.add(*parts.arm())
    arm.connect('hand.P', 'arm.C')
    arm.expose('arm.tie')
    arm.expose('hand.tool')
    rocker.add(*parts.rocker())
    rocker.connect('ram.P', 'rocker.C')
    rocker.expose('ram.tie')
    network.add(parts.base(), parts.carriage(), arm.two_port('A'), rocker.two_port('R'), parts.tie())
    connect(network, 'carriage.P base.C', 'A.P carriage.left', 'carriage.right R.P', 'A.arm.tie tie.l',
            'tie.r R.ram.tie')
    network.expose('A.hand.tool')
    return network


def loop_as_block(parts):
    """The closed loop with its carriage inside one two-port, a two-port itself inside, and its child outside."""
    inner, loop, network = Network(), Network(), Network()
    inner.add(*parts.rocker())
    inner.connect('ram.P', 'rocker.C')
    inner.expose('ram.tie')
    loop.add(parts.carriage(), parts.arm()[0], inner.two_port('R'), parts.tie())
    connect(loop, 'arm.P carriage.left', 'R.P carriage.right', 'tie.l arm.tie', 'R.ram.tie tie.r')
    loop.expose('arm.C')
    network.add(parts.base(), loop.two_port('loop'), parts.arm()[1])
    connect(network, 'loop.P base.C', 'hand.P loop.arm.C')
    network.expose('hand.tool')
    return network


def whole_as_block(parts):
    network = Network()
    network.add(parts.whole().two_port('machine'))
    network.expose('machine.hand.tool')
    return network


@pytest.mark.parametrize('split', [arms_as_blocks, loop_as_block, whole_as_block])
def test_machine_of_two_ports_is_the_whole(split, parts, rng):
    whole, system = parts.whole().assemble(), split(parts).assemble()
    assert sorted(joint.split('.')[-1] for joint in system.joints) == sorted(whole.joints)
    own = {joint: joint.split('.')[-1] for joint in system.joints}
    for _ in range(10):
        ref_state = titop.random_state(whole, rng)
        position, rate, force = (dict(zip(whole.joints, values)) for values in
                                 (ref_state.joint_positions, ref_state.joint_rates, rng.normal(size=4)))
        state = system.state(*ref_state[:3], {joint: position[name] for joint, name in own.items()},
                             {joint: rate[name] for joint, name in own.items()})
        wrench, driven = rng.normal(size=6), rng.normal()
        driven_joint = next(joint for joint, name in own.items() if name == 'arm')
        for accelerations, ref_accelerations in ((None, None), ({driven_joint: driven}, {'arm': driven})):
            forces = {joint: force[name] for joint, name in own.items() if not (accelerations and name == 'arm')}
            ref_forces = {own[joint]: value for joint, value in forces.items()}
            ref = whole.solve(ref_state, 0, ref_forces, {'hand.tool': wrench}, ref_accelerations)
            comp = system.solve(state, 0, forces, {system.ports[-1]: wrench}, accelerations)
            assert error(comp.base_acceleration, ref.base_acceleration) < 1e-12
            for field in ('joint_accelerations', 'joint_forces'):
                values = dict(zip(whole.joints, getattr(ref, field)))
                assert error(getattr(comp, field), np.array([values[own[joint]] for joint in system.joints])) < 1e-12
            assert error(comp.port_accelerations[system.ports[-1]], ref.port_accelerations['hand.tool']) < 1e-12
            inside = {name.split('.')[-1]: wrench for name, wrench in comp.wrenches.items()}
            for block, value in ref.wrenches.items():
                assert error(inside[block], value) < 1e-11
        assert error(system.energy(state), np.array(whole.energy(ref_state))) < 1e-13
        assert error(system.momentum(state), whole.momentum(ref_state)) < 1e-13


def test_whole_machine_on_another_body(parts, rng):
    """A machine with a base, exported and connected by its P, is the same as one whose base is welded on."""
    def on_carrier(*blocks):
        network = Network()
        network.add(Body('ship', 50, 20 * np.eye(3), ports={'deck': (1, 2, 3)}), *blocks)
        return network

    exported = on_carrier(parts.whole().two_port('machine'))
    exported.connect('machine.P', 'ship.deck')
    exported.expose('machine.hand.tool')
    flat = on_carrier(Weld('base', *parts.inertials[0], {'C': parts.points[0]}), parts.carriage(), *parts.arm(),
                      *parts.rocker(), parts.tie())
    connect(flat, 'base.P ship.deck', 'carriage.P base.C', 'arm.P carriage.left', 'hand.P arm.C',
            'rocker.P carriage.right', 'ram.P rocker.C', 'tie.l arm.tie', 'tie.r ram.tie')
    flat.expose('hand.tool')
    one, two = exported.assemble(), flat.assemble()
    state = titop.random_state(two, rng)
    order = [two.joints.index(joint.removeprefix('machine.')) for joint in one.joints]
    comp = one.solve(state._replace(joint_positions=state.joint_positions[order], joint_rates=state.joint_rates[order]))
    ref = two.solve(state)
    assert error(comp.base_acceleration, ref.base_acceleration) < 1e-12
    assert error(comp.joint_accelerations, ref.joint_accelerations[order]) < 1e-12


def test_two_port_acts_on_a_body_as_its_affine_map(parts, rng):
    """Connected or replaced by W = w0 - D x'dot_P at the port, the base moves the same."""
    arm = Network()
    arm.add(*parts.arm())
    arm.connect('hand.P', 'arm.C')
    arm.expose('arm.tie')
    arm.expose('hand.tool')
    network, alone = Network(), Network()
    network.add(parts.base(), arm.two_port('A'))
    network.connect('A.P', 'base.C')
    network.expose('A.arm.tie')
    network.expose('A.hand.tool')
    alone.add(parts.base())
    alone.expose('base.C')
    system, block, base = network.assemble(), arm.assemble(), alone.assemble()
    state, force, wrench = titop.random_state(system, rng), rng.normal(size=1), rng.normal(size=6)
    ref = system.solve(state, 0, force, {'A.hand.tool': wrench})
    bare = base.state(*state[:3])
    at_C = base.motions(bare)['base.C']
    mounted = block.state(at_C.position, state.quaternion, at_C.twist, state.joint_positions, state.joint_rates)
    w0, D = block.affine_map(mounted, 0, force, {'hand.tool': wrench})
    x_C = base.solve(bare, base_acceleration=ref.base_acceleration).port_accelerations['base.C']
    on_base = w0 - D @ x_C
    assert error(on_base, ref.wrenches['A']) < 1e-12
    assert error(base.solve(bare, wrenches={'base.C': on_base}).base_acceleration, ref.base_acceleration) < 1e-12


def test_calls_do_not_depend_on_each_other(parts, rng):
    system = parts.whole().assemble()
    first, second = (titop.random_state(system, rng) for _ in range(2))
    before = system.solve(first)
    system.solve(second)
    assert all(np.array_equal(a, b) for a, b in zip(before[:4], system.solve(first)[:4]))


def test_functions_and_numbers_are_the_same_inputs(parts, rng):
    system = parts.whole().assemble()
    state, forces, wrench = titop.random_state(system, rng), rng.normal(size=4), rng.normal(size=6)
    ref = system.solve(state, 2.0, forces, {'hand.tool': wrench}, base_acceleration=wrench)
    for given in (lambda t, state: forces * t / 2, dict(zip(system.joints, forces)),
                  {joint: lambda t, q, qd, f=f: f + 0 * (t + q + qd) for joint, f in zip(system.joints, forces)}):
        comp = system.solve(state, 2.0, given, {'hand.tool': lambda t, motion: wrench * t / 2},
                            base_acceleration=lambda t: wrench * t / 2)
        assert all(np.array_equal(a, b) for a, b in zip(ref[:4], comp[:4]))
