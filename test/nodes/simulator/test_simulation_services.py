"""The services of a simulator, without processes, and those of simulation_interfaces as if that were installed."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros.nodes.simulator import services as simulation_services  # noqa: E402


class Node:
    """As much of a node as services ask for."""

    def __init__(self):
        self.services = {}

    def create_service(self, kind, name, answer):
        self.services[name] = kind, answer



class Simulation:
    """Writes down what services ask for."""

    def __init__(self):
        self.paused, self.asked, self.problem = False, [], ''

    def pause(self, paused):
        self.paused = paused
        self.asked.append(('pause', paused))

    def step(self, periods):
        self.asked.append(('step', periods))
        return self.problem

    def reset(self, *, state, time):
        self.asked.append(('reset', state, time))
        return ''

    def clear_faults(self):
        self.asked.append(('clear',))


def constants(**values):
    return type('Constants', (), values)


def interfaces():
    """Stand-ins for the modules msg and srv of simulation_interfaces, with its constants (2.1.0)."""
    result = constants(RESULT_FEATURE_UNSUPPORTED=0, RESULT_OK=1, RESULT_NOT_FOUND=2, RESULT_INCORRECT_STATE=3,
                       RESULT_OPERATION_FAILED=4)
    state = constants(STATE_STOPPED=0, STATE_PLAYING=1, STATE_PAUSED=2, STATE_QUITTING=3)
    features = constants(SIMULATION_RESET=20, SIMULATION_RESET_TIME=21, SIMULATION_RESET_STATE=22,
                         SIMULATION_STATE_GETTING=24, SIMULATION_STATE_SETTING=25, SIMULATION_STATE_PAUSE=26,
                         STEP_SIMULATION_SINGLE=31, STEP_SIMULATION_MULTIPLE=32)
    srv = SimpleNamespace(
        ResetSimulation=SimpleNamespace(Request=constants(SCOPE_DEFAULT=0, SCOPE_TIME=1, SCOPE_STATE=2,
                                                          SCOPE_SPAWNED=4, SCOPE_ALL=255)),
        SetSimulationState=SimpleNamespace(Response=constants(ALREADY_IN_TARGET_STATE=101)),
        GetSimulatorFeatures=object(), GetSimulationState=object(), StepSimulation=object())
    return srv, SimpleNamespace(Result=result, SimulationState=state, SimulatorFeatures=features)


@pytest.fixture
def standard(monkeypatch):
    """(simulation, call) with the standard services offered, as if the package were installed."""
    package = ModuleType('simulation_interfaces')
    package.srv, package.msg = interfaces()
    monkeypatch.setitem(sys.modules, 'simulation_interfaces', package)
    node, simulation = Node(), Simulation()
    offered = simulation_services.offer(node, simulation)
    assert len(offered) == 2

    def call(name, **request):
        response = SimpleNamespace(result=SimpleNamespace(result=None, error_message=''),
                                   state=SimpleNamespace(state=None), features=SimpleNamespace(features=None))
        return node.services[f'~/{name}'][1](SimpleNamespace(**request), response)
    return simulation, call


def test_the_standard_services_tell_what_they_can_and_do_it(standard):
    simulation, call = standard
    assert call('get_simulator_features').features.features == [20, 21, 22, 24, 25, 26, 31, 32]
    assert call('get_simulation_state').state.state == 1

    def state(wanted):
        return call('set_simulation_state', state=SimpleNamespace(state=wanted)).result.result

    assert state(2) == 1 and call('get_simulation_state').state.state == 2
    assert state(2) == 101
    assert state(0) == 1 and simulation.asked[-1] == ('reset', True, True)
    assert call('get_simulation_state').state.state == 0
    assert state(1) == 1 and call('get_simulation_state').state.state == 1
    assert state(3) == 0 and state(7) == 0
    assert [call('reset_simulation', scope=scope).result.result for scope in (0, 1, 2, 255, 4)] == [1, 1, 1, 1, 0]
    assert simulation.asked[-4:] == [('reset', True, True), ('reset', False, True), ('reset', True, False),
                                     ('reset', True, True)]
    assert call('step_simulation', steps=5).result.result == 1 and simulation.asked[-1] == ('step', 5)
    assert call('step_simulation', steps=10**9).result.result == 4
    simulation.problem = 'not paused'
    response = call('step_simulation', steps=1)
    assert response.result.result == 4 and response.result.error_message == 'not paused'


def test_without_that_package_there_are_the_plain_services(monkeypatch):
    monkeypatch.setitem(sys.modules, 'simulation_interfaces', None)
    node = Node()
    assert len(simulation_services.offer(node, Simulation())) == 1
    assert set(node.services) == {'~/pause', '~/step', '~/reset', '~/clear_faults'}
