"""A managed node (lifecycle) whose transitions are the methods of the object that works on it."""

import time

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.parameter_service import ParameterService

from ...model.errors import PsdynError

RCLError = rclpy_implementation.RCLError
UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = 'unconfigured', 'inactive', 'active', 'finalized'
AFTER = {'configure': INACTIVE, 'activate': ACTIVE, 'deactivate': INACTIVE, 'cleanup': UNCONFIGURED,
         'shutdown': FINALIZED}


class ManagedNode(LifecycleNode):
    """Calls `configure`, `activate`, `deactivate`, `cleanup`, `shutdown` of `work`, each from one state to another.

    A PsdynError refuses the transition: the node stays as it was, and `refusal` says why. Any other exception is kept
    in `failure`, which is for the one who serves the node to raise: rclpy itself drops it.

    `lifecycle` is the present state, one of UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED.

    Messages on the subscriptions `by_hand` wait in the middleware until somebody takes them: no executor does.
    """

    def __init__(self, name, **options):
        self.work = self.failure = None
        self.says_refusals = True       # in its log
        self.lifecycle, self.refusal = UNCONFIGURED, ''
        self.by_hand = frozenset()
        # whether there are any is a parameter itself, which is known only when the node is made
        super().__init__(name, start_parameter_services=False, **options)
        self.parameter_service = None
        self._change_state = self._service_change_state.callback
        self._service_change_state.callback = self._on_change_state

    @property
    def subscriptions(self):
        """Those that an executor serves; executors ask for them."""
        return (one for one in super().subscriptions if one not in self.by_hand)

    def offer_parameters(self):
        """Let others look at the parameters and set them."""
        self.parameter_service = ParameterService(self)

    def _on_change_state(self, request, response):
        """Answer a transition that there is not in this state; rclpy would let it end the node."""
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
        try:
            getattr(self.work, transition)()
        except PsdynError as error:
            if self.says_refusals:
                self.get_logger().error(f'{transition}: {error}')
            self.refusal = str(error)
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            self.failure = error
            return TransitionCallbackReturn.ERROR
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
