"""A managed node (lifecycle) whose transitions are the methods of the object that works on it."""

import time
from typing import NamedTuple

from lifecycle_msgs.msg import Transition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter_service import ParameterService

from ...model.errors import PsdynError

RCLError = rclpy_implementation.RCLError
UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = 'unconfigured', 'inactive', 'active', 'finalized'
# labels and numbers of transitions that end control
OUT_OF_ACTIVE = ('deactivate', 'shutdown', 'active_shutdown', Transition.TRANSITION_DEACTIVATE,
                 Transition.TRANSITION_ACTIVE_SHUTDOWN)
AFTER = {'configure': INACTIVE, 'activate': ACTIVE, 'deactivate': INACTIVE, 'cleanup': UNCONFIGURED,
         'shutdown': FINALIZED}


class _Later(NamedTuple):
    """A transition that is done later."""

    request: object
    response: object


class ManagedNode(LifecycleNode):
    """Calls `configure`, `activate`, `deactivate`, `cleanup`, `shutdown` of `work`, each from one state to another.

    A PsdynError refuses the transition: the node stays as it was, and `refusal` says why. Any other exception is kept
    in `failure`, which is for the one who serves the node to raise: rclpy itself drops it.

    `lifecycle` is the present state, one of UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED.

    A service call that leads out of ACTIVE calls `work.rest()`, which begins a stop, and is done and answered at the
    next `rested()`. The node is served meanwhile.
    """

    def __init__(self, name, **options):
        self.work = self.failure = None
        self.says_refusals = True       # in its log
        self.lifecycle, self.refusal, self.configuring = UNCONFIGURED, '', False
        # whether there are any is a parameter itself, which is known only when the node is made
        super().__init__(name, start_parameter_services=False, **options)
        service = self._service_change_state
        self._change_state, service.callback = service.callback, self._on_change_state
        self._send, service.send_response = service.send_response, self._answer
        self._waiting = []      # (request, response, header) of transitions that wait for the machine to rest

    def offer_parameters(self):
        """Let others look at the parameters and set them."""
        self.parameter_service = ParameterService(self)

    def rested(self):
        """Do the transitions that waited for the machine to rest."""
        waiting, self._waiting = self._waiting, []
        for request, response, header in waiting:
            self._send(self._transit(request, response), header)

    def _on_change_state(self, request, response):
        """Return the response, or a `_Later` with it."""
        transition = request.transition
        if self.lifecycle == ACTIVE and (transition.label in OUT_OF_ACTIVE or transition.id in OUT_OF_ACTIVE):
            self.work.rest()
            return _Later(request, response)
        return self._transit(request, response)

    def _answer(self, response, header):
        """Send what the callback returned, as executors ask of a service, or keep it until the machine rests."""
        if isinstance(response, _Later):
            self._waiting.append((*response, header))
        else:
            self._send(response, header)

    def _transit(self, request, response):
        """Do a transition, also one that does not exist in this state: rclpy would let it end the node."""
        try:
            return self._change_state(request, response)
        except RCLError:
            self.get_logger().warning(f"transition {request.transition.label or request.transition.id}: the node is "
                                      f'{self.lifecycle}, from where it does not lead')
            response.success = False
            return response

    def on_configure(self, state):
        return self._do('configure')

    def on_activate(self, state):
        return self._do('activate')

    def on_deactivate(self, state):
        return self._do('deactivate')

    def on_cleanup(self, state):
        return self._do('cleanup')

    def on_shutdown(self, state):
        return self._do('shutdown')

    def on_error(self, state):
        self.lifecycle = FINALIZED
        return TransitionCallbackReturn.FAILURE

    def _do(self, transition):
        self.configuring = transition == 'configure'
        try:
            getattr(self.work, transition)()
        except PsdynError as error:
            if self.says_refusals:
                self.get_logger().error(f'{transition}: {error}')
            self.refusal = str(error)
            return TransitionCallbackReturn.FAILURE
        except (Exception, KeyboardInterrupt) as error:
            self.failure = error
            return TransitionCallbackReturn.ERROR
        finally:
            self.configuring = False
        self.lifecycle, self.refusal = AFTER[transition], ''
        return TransitionCallbackReturn.SUCCESS


class Autostart:
    """Configures and activates a node that nobody else manages.

    A configuration that is refused is raised, since nobody is there who could change it. Activation is tried again and
    again, since a state may yet come, and given up as soon as somebody else manages the node.
    """

    PERIOD = 0.05       # s between two tries
    SAY = 1.0           # s between two lines about what is in the way

    def __init__(self, node):
        self._node = node
        self._mine = UNCONFIGURED       # the state in which the next step is ours; None: none is left
        self._next = self._said = -float('inf')

    @property
    def over(self):
        """Whether nothing is left to do."""
        return self._mine is None

    def turn(self):
        """Try the next step, if it is time."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self.PERIOD
        node = self._node
        if node.lifecycle != self._mine:
            self._mine = None
            return
        node.says_refusals = False
        if node.lifecycle == UNCONFIGURED:
            node.trigger_configure()
            if node.failure is None and node.lifecycle == UNCONFIGURED:
                raise PsdynError(node.refusal)
        else:
            node.trigger_activate()
        node.says_refusals = True
        self._mine = None if node.lifecycle == ACTIVE else INACTIVE
        if node.refusal and now - self._said > self.SAY:
            self._said = now
            node.get_logger().info(f'not active yet: {node.refusal}')
