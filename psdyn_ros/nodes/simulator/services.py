"""The services of a simulator: those of std_srvs always, those of simulation_interfaces where that is installed."""

from std_srvs.srv import SetBool, Trigger

MAX_STEPS = 10_000      # in one call; a service keeps everything else waiting


class SimulationServices:
    """Offers ~/pause, ~/step, ~/reset and ~/clear_faults.

    simulation has
        paused              whether time stands still
        pause(paused)       stop time, or let it go on
        step(periods)       why that could not be, or ''; only while paused
        reset(state, time)  back to the start: the machine, simulated time; why that failed, or ''
        clear_faults()
    """

    def __init__(self, node, simulation):
        self._simulation = simulation
        for name, kind, answer in (('pause', SetBool, self._pause), ('step', Trigger, self._step),
                                   ('reset', Trigger, self._reset), ('clear_faults', Trigger, self._clear_faults)):
            node.create_service(kind, f'~/{name}', answer)

    def _pause(self, request, response):
        self._simulation.pause(request.data)
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _step(self, request, response):
        problem = self._simulation.step(1)
        response.success, response.message = not problem, problem or 'one period'
        return response

    def _reset(self, request, response):
        problem = self._simulation.reset(state=True, time=False)
        response.success, response.message = not problem, problem or 'at the start, held until the next command'
        return response

    def _clear_faults(self, request, response):
        self._simulation.clear_faults()
        response.success, response.message = True, 'no faults; those of the schedule do not come again'
        return response


class SimulationInterfaces:
    """Offers the services of the package simulation_interfaces, in private names.

    node        to offer them on
    simulation  as `SimulationServices` takes it
    services    its module `srv`
    messages    its module `msg`
    """

    def __init__(self, node, simulation, services, messages):
        self._simulation, self._result, self._state = simulation, messages.Result, messages.SimulationState
        self._features, self._scopes = messages.SimulatorFeatures, services.ResetSimulation.Request
        self._refused = services.SetSimulationState.Response
        self._stopped = False       # paused at the start, by a request to stop
        for name, kind, answer in (
                ('get_simulator_features', services.GetSimulatorFeatures, self._on_features),
                ('get_simulation_state', services.GetSimulationState, self._on_get),
                ('set_simulation_state', services.SetSimulationState, self._on_set),
                ('reset_simulation', services.ResetSimulation, self._on_reset),
                ('step_simulation', services.StepSimulation, self._on_step)):
            node.create_service(kind, f'~/{name}', answer)

    def _answer(self, response, result, text=''):
        response.result.result, response.result.error_message = result, text
        return response

    def _outcome(self, response, problem):
        return self._answer(response, self._result.RESULT_OPERATION_FAILED if problem else self._result.RESULT_OK,
                            problem)

    def _on_features(self, request, response):
        f = self._features
        response.features.features = [
            f.SIMULATION_RESET, f.SIMULATION_RESET_TIME, f.SIMULATION_RESET_STATE, f.SIMULATION_STATE_GETTING,
            f.SIMULATION_STATE_SETTING, f.SIMULATION_STATE_PAUSE, f.STEP_SIMULATION_SINGLE, f.STEP_SIMULATION_MULTIPLE]
        response.features.custom_info = 'psdyn_ros simulator: one machine, no other entities'
        return response

    def _now(self):
        if not self._simulation.paused:
            return self._state.STATE_PLAYING
        return self._state.STATE_STOPPED if self._stopped else self._state.STATE_PAUSED

    def _on_get(self, request, response):
        response.state.state = self._now()
        return self._answer(response, self._result.RESULT_OK)

    def _on_set(self, request, response):
        wanted, s = request.state.state, self._state
        if wanted not in (s.STATE_STOPPED, s.STATE_PLAYING, s.STATE_PAUSED):
            return self._answer(response, self._result.RESULT_FEATURE_UNSUPPORTED,
                                f'state {wanted}: expected stopped, playing or paused; a signal ends this node')
        if wanted == self._now():
            return self._answer(response, self._refused.ALREADY_IN_TARGET_STATE, 'it is so already')
        self._simulation.pause(wanted != s.STATE_PLAYING)
        self._stopped = wanted == s.STATE_STOPPED
        problem = self._simulation.reset(state=True, time=True) if self._stopped else ''
        return self._outcome(response, problem)

    def _on_reset(self, request, response):
        scope = request.scope or self._scopes.SCOPE_ALL
        if not scope & (self._scopes.SCOPE_TIME | self._scopes.SCOPE_STATE):
            return self._answer(response, self._result.RESULT_FEATURE_UNSUPPORTED,
                                f'scope {scope}: expected time, state or all')
        return self._outcome(response, self._simulation.reset(
            state=bool(scope & self._scopes.SCOPE_STATE), time=bool(scope & self._scopes.SCOPE_TIME)))

    def _on_step(self, request, response):
        if request.steps > MAX_STEPS:
            return self._answer(response, self._result.RESULT_OPERATION_FAILED,
                                f'{request.steps} steps; at most {MAX_STEPS} in one call')
        problem = self._simulation.step(request.steps)
        if not problem:
            self._stopped = False
        return self._outcome(response, problem)


def offer(node, simulation):
    """Offer all services that can be; returns those who answer them."""
    offered = [SimulationServices(node, simulation)]
    try:
        from simulation_interfaces import msg, srv
    except ImportError:
        return offered
    return [*offered, SimulationInterfaces(node, simulation, srv, msg)]
