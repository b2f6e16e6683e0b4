"""TITOP: networks, numbers and inputs that are refused, and what the refusal says."""

import numpy as np
import pytest
from support.titop_machines import connect

from psdyn_ros import (
    DuplicateNameError,
    InertiaError,
    ModelError,
    NonFiniteError,
    ShapeError,
    StateError,
    UnknownNameError,
)
from psdyn_ros.formulations.titop import (
    AlgebraicLoopError,
    Body,
    LoopClosure,
    Network,
    NetworkError,
    Prismatic,
    Revolute,
    Weld,
)

NOTHING, Z, ORIGIN = np.zeros((3, 3)), (0, 0, 1), (0, 0, 0)


def blocks():
    """A body, an arm and a hand, each with a port C, and a closure; nothing is connected."""
    network = Network()
    network.add(Body('body', 2, np.eye(3), ports={'C': ORIGIN}),
                Revolute('arm', Z, 1, np.eye(3), ports={'C': (1, 0, 0)}),
                Weld('hand', 1, np.eye(3), ports={'C': ORIGIN}), LoopClosure('tie', np.eye(6), np.eye(6)))
    return network


@pytest.mark.parametrize('pairs, exposed, words', [
    ('arm.P-body.C', 'arm.C hand.C', "'body.P', 'hand.P'"),
    ('arm.P-body.C hand.P-arm.C', 'hand.C', "'tie.l' is not connected"),
    ('arm.P-body.C hand.P-arm.C tie.l-hand.C', '', "'tie.r' is not connected"),
])
def test_unconnected_ports_are_refused(pairs, exposed, words):
    network = blocks()
    for pair in pairs.split():
        network.connect(*pair.split('-'))
    for port in exposed.split():
        network.expose(port)
    with pytest.raises(NetworkError, match=words):
        network.assemble()


def test_open_child_port_is_refused_unless_exposed():
    network = Network()
    network.add(Body('body', 2, np.eye(3), ports={'C': ORIGIN}))
    with pytest.raises(NetworkError, match=r"'body\.C' is not connected.*expose"):
        network.assemble()
    network.expose('body.C')
    assert network.assemble().ports == ('body.P', 'body.C')


def test_network_without_a_body_is_refused():
    network = Network()
    with pytest.raises(NetworkError, match='no body'):
        network.assemble()
    network.add(LoopClosure('tie', np.eye(6), np.eye(6)))
    with pytest.raises(NetworkError, match='no body'):
        network.two_port('nothing')


@pytest.mark.parametrize('call, hint', [
    (lambda network: network.connect('arm.P', 'hand.C'), 'LoopClosure'),
    (lambda network: network.connect('hand.P', 'body.C'), 'any number of ports C'),
    (lambda network: network.connect('tie.l', 'body.C'), 'any number of ports C'),
    (lambda network: network.expose('body.C'), 'the outside'),
])
def test_doubly_connected_ports_are_refused(call, hint):
    network = blocks()
    network.connect('arm.P', 'body.C')
    with pytest.raises(NetworkError, match=rf"connected already.*{hint}"):
        call(network)
    # what was refused has left nothing behind
    connect(network, 'hand.P arm.C', 'hand.C tie.l')
    with pytest.raises(NetworkError, match=r"'tie\.r' is not connected"):
        network.assemble()


def test_port_that_is_exposed_cannot_be_connected():
    network = blocks()
    network.expose('body.C')
    with pytest.raises(NetworkError, match="connected already, to 'the outside'"):
        network.connect('arm.P', 'body.C')


@pytest.mark.parametrize('pairs', ['hand.P-hand.C', 'hand.P-arm.C arm.P-hand.C',
                                   'hand.P-arm.C body.P-hand.C arm.P-body.C'])
def test_cycles_of_rigid_blocks_are_refused(pairs):
    network = blocks()
    *good, last = (pair.split('-') for pair in pairs.split())
    for pair in good:
        network.connect(*pair)
    with pytest.raises(NetworkError, match=f'cycle of rigid blocks {last[0][:-2]} - .*LoopClosure'):
        network.connect(*last)


@pytest.mark.parametrize('pair, words', [('arm.C-hand.C', 'cut .*LoopClosure'), ('arm.P-hand.P', 'cut .*LoopClosure'),
                                         ('tie.l-arm.P', 'two bodies'), ('tie.l-tie.r', 'LoopClosure')])
def test_ports_that_do_not_fit_are_refused(pair, words):
    with pytest.raises(NetworkError, match=words):
        blocks().connect(*pair.split('-'))


@pytest.mark.parametrize('port', ['arm.P', 'tie.l'])
def test_only_child_ports_are_exposed(port):
    with pytest.raises(NetworkError, match='cannot be exposed'):
        blocks().expose(port)


@pytest.mark.parametrize('port, words', [
    ('amr.C', "no block 'amr'; did you mean 'arm'"), ('arm.D', "'D'; there are: C, P"), ('arm', "no port ''"),
    ('tie.P', 'there are: l, r'), (3, "no block '3'")])
def test_unknown_names_suggest_the_nearest(port, words):
    with pytest.raises(UnknownNameError, match=words):
        blocks().connect(port, 'body.C')
    with pytest.raises(UnknownNameError, match=words):
        blocks().expose(port)


def test_names_must_differ():
    network = blocks()
    with pytest.raises(DuplicateNameError, match="'arm'"):
        network.add(Body('new', 1, np.eye(3)), Body('arm', 1, np.eye(3)))
    with pytest.raises(DuplicateNameError, match="'twin'"):
        network.add(Body('twin', 1, np.eye(3)), Body('twin', 1, np.eye(3)))
    with pytest.raises(UnknownNameError):
        network.connect('new.P', 'body.C')


@pytest.mark.parametrize('name', ['', 'a.b', None, 3])
def test_block_names_have_no_dot(name):
    with pytest.raises(NetworkError, match='block name'):
        Body(name, 1, np.eye(3))
    with pytest.raises(NetworkError, match='block name'):
        blocks().two_port(name)


@pytest.mark.parametrize('make, kind, words', [
    (lambda: Body('b', -1, np.eye(3)), InertiaError, 'mass'),
    (lambda: Body('b', np.nan, np.eye(3)), NonFiniteError, 'mass'),
    (lambda: Body('b', 1, np.eye(2)), ShapeError, 'inertia'),
    (lambda: Body('b', 1, np.diag((1, 1, -1))), InertiaError, 'semidefinite'),
    (lambda: Body('b', 1, np.triu(np.ones((3, 3)))), InertiaError, 'symmetric'),
    (lambda: Body('b', 1, np.eye(3), 'here'), ShapeError, 'center'),
    (lambda: Body('b', 1, np.eye(3), ports=['C']), ShapeError, 'ports'),
    (lambda: Body('b', 1, np.eye(3), ports={'P': ORIGIN}), NetworkError, "'P'"),
    (lambda: Body('b', 1, np.eye(3), ports={'C': (0, np.inf, 0)}), NonFiniteError, r'b\.C'),
    (lambda: Weld('b', 1, np.eye(3), orientation=np.diag((1, 1, -1))), NetworkError, 'no rotation'),
    (lambda: Revolute('b', ORIGIN, 1, np.eye(3)), NetworkError, 'direction'),
    (lambda: Prismatic('b', (1, 0), 1, np.eye(3)), ShapeError, 'axis'),
    (lambda: LoopClosure('t', np.eye(3), np.eye(6)), ShapeError, 'stiffness'),
    (lambda: LoopClosure('t', np.eye(6), -np.eye(6)), NetworkError, 'damping'),
    (lambda: blocks().assemble((0, 0)), ShapeError, 'gravity'),
    (lambda: Network().add('body'), NetworkError, 'no block'),
])
def test_bad_properties_are_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        network = make()
        network.assemble()


@pytest.mark.parametrize('joint', [Revolute('arm', Z, 1, NOTHING, (0, 0, 1)), Prismatic('arm', Z, 0, NOTHING)])
def test_joint_that_nothing_resists_has_no_solution(joint):
    network = Network()
    network.add(Body('body', 2, np.eye(3), ports={'C': ORIGIN}), joint)
    network.connect('arm.P', 'body.C')
    system = network.assemble()
    with pytest.raises(AlgebraicLoopError, match="joint 'arm'"):
        system.solve(system.state())
    # with its acceleration given the system is regular
    assert system.solve(system.state(), accelerations={'arm': 1}).joint_forces == pytest.approx([0])


def test_singularity_that_shows_in_some_positions_only():
    """Two coaxial joints, and the same with the second axis turned away."""
    network = Network()
    network.add(Body('body', 2, np.eye(3), ports={'C': ORIGIN}),
                Revolute('tilt', (1, 0, 0), 0, NOTHING, ports={'C': ORIGIN}),
                Revolute('turn', Z, 0, NOTHING, ports={'C': ORIGIN}), Revolute('tip', (1, 0, 0), 1, np.eye(3)))
    connect(network, 'tilt.P body.C', 'turn.P tilt.C', 'tip.P turn.C')
    system = network.assemble()
    with pytest.raises(AlgebraicLoopError, match="joint 'tilt'"):
        system.solve(system.state())
    assert np.isfinite(system.solve(system.state(joint_positions={'turn': 1})).joint_accelerations).all()


@pytest.mark.parametrize('mass, inertia', [(0, NOTHING), (1, NOTHING), (1, np.diag((1, 1, 0))),
                                           (1, ((1, -1, 0), (-1, 1, 0), (0, 0, 1))), (0, np.eye(3))])
def test_free_base_without_inertia_has_no_solution(mass, inertia):
    network = Network()
    network.add(Body('body', mass, inertia))
    system = network.assemble()
    with pytest.raises(AlgebraicLoopError, match=r"base 'body\.P'.*base_acceleration"):
        system.solve(system.state())
    assert np.isfinite(system.solve(system.state(), base_acceleration=np.ones(6)).base_wrench).all()


def test_free_joint_as_root_needs_a_driven_base():
    network = Network()
    network.add(Revolute('arm', Z, 1, np.eye(3), (1, 0, 0)))
    system = network.assemble()
    with pytest.raises(AlgebraicLoopError, match=r"base 'arm\.P'"):
        system.solve(system.state())
    solution = system.solve(system.state(), forces={'arm': 4}, base_acceleration=np.zeros(6))
    assert solution.joint_accelerations == pytest.approx([2], rel=1e-14)


@pytest.mark.parametrize('inputs, kind, words', [
    ({'forces': {'amr': 1}}, UnknownNameError, "did you mean 'arm'"),
    ({'forces': {'arm': np.nan}}, NonFiniteError, "force of 'arm'"),
    ({'forces': [1, 2]}, ShapeError, 'forces'),
    ({'forces': lambda t, state: [np.inf]}, NonFiniteError, 'forces'),
    ({'accelerations': {'am': 1}}, UnknownNameError, "did you mean 'arm'"),
    ({'accelerations': {'arm': 'fast'}}, ShapeError, "acceleration of 'arm'"),
    ({'accelerations': [1, 2]}, ShapeError, 'accelerations'),
    ({'accelerations': {'arm': 1}, 'forces': {'arm': 1}}, NetworkError, 'expected one'),
    ({'accelerations': {'arm': 1}, 'forces': [1]}, NetworkError, 'for the others'),
    ({'wrenches': {'arm.P': np.zeros(6)}}, UnknownNameError, "did you mean 'arm.C'"),
    ({'wrenches': {'arm.C': np.zeros(3)}}, ShapeError, r"wrench on 'arm\.C'"),
    ({'base_acceleration': np.zeros(3)}, ShapeError, 'base_acceleration'),
])
def test_bad_inputs_are_refused(inputs, kind, words):
    network = Network()
    network.add(Body('body', 2, np.eye(3), ports={'C': ORIGIN}),
                Revolute('arm', Z, 1, np.eye(3), ports={'C': (1, 0, 0)}))
    network.connect('arm.P', 'body.C')
    network.expose('arm.C')
    system = network.assemble()
    with pytest.raises(kind, match=words):
        system.solve(system.state(), **inputs)


@pytest.mark.parametrize('state, kind, words', [
    ({'quaternion': np.zeros(4)}, StateError, 'no rotation'),
    ({'position': (0, 0)}, ShapeError, 'position'),
    ({'twist': (0, 0, 0, 0, 0, np.nan)}, NonFiniteError, 'twist'),
    ({'joint_positions': {'arn': 1}}, UnknownNameError, "did you mean 'arm'"),
    ({'joint_rates': [1, 2]}, ShapeError, 'joint_rates'),
])
def test_bad_states_are_refused(state, kind, words):
    network = Network()
    network.add(Revolute('arm', Z, 1, np.eye(3)))
    system = network.assemble()
    with pytest.raises(kind, match=words):
        system.state(**state)
    with pytest.raises(ShapeError, match='y has shape'):
        system.state_derivative(0, np.zeros(13))
    with pytest.raises(NonFiniteError, match='the state'):
        system.state_derivative(0, np.full(15, np.nan))


def test_errors_are_errors_of_the_model():
    assert issubclass(AlgebraicLoopError, NetworkError) and issubclass(NetworkError, ModelError)
