"""A managed node (lifecycle) whose transitions are the methods of the object that works on it."""

import time

from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from ..model.errors import PsdynError

UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED = 'unconfigured', 'inactive', 'active', 'finalized'
AFTER = {'configure': INACTIVE, 'activate': ACTIVE, 'deactivate': INACTIVE, 'cleanup': UNCONFIGURED,
         'shutdown': FINALIZED}


class ManagedNode(LifecycleNode):
    """Calls `configure`, `activate`, `deactivate`, `cleanup`, `shutdown` of `work`, each from one state to another.

    A PsdynError refuses the transition: the node stays as it was, and `refusal` says why. Any other exception is kept
    in `failure`, which is for the one who serves the node to raise: rclpy itself drops it.

    `lifecycle` is the present state, one of UNCONFIGURED, INACTIVE, ACTIVE, FINALIZED.
    """

    def __init__(self, name, **options):
        self.work = self.failure = None
        self.lifecycle, self.refusal = UNCONFIGURED, ''
        super().__init__(name, **options)

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
            if str(error) != self.refusal:
                self.get_logger().error(f'{transition} refused: {error}')
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
    again while `obstacles()` tells a reason against it, and given up as soon as somebody else manages the node.
    """

    PERIOD = 0.05       # s between two tries
    SAY = 1.0           # s between two lines about what is in the way

    def __init__(self, node, obstacles):
        self._node, self._obstacles = node, obstacles
        self._state = UNCONFIGURED      # in which the next step is ours
        self._next = self._said = -float('inf')

    @property
    def over(self):
        """Whether nothing is left to do."""
        return self._state is None

    def turn(self):
        """Try the next step, if it is time."""
        now = time.monotonic()
        if self.over or now < self._next:
            return
        self._next = now + self.PERIOD
        node = self._node
        if node.lifecycle != self._state:
            self._state = None
        elif node.lifecycle == UNCONFIGURED:
            node.trigger_configure()
            self._raise_refusal()
            self._state = INACTIVE
        else:
            self._activate(now)

    def _activate(self, now):
        reasons = self._obstacles()
        if not reasons:
            self._node.trigger_activate()
            if self._node.lifecycle == ACTIVE:
                self._state = None
                return
            reasons = self._node.refusal
        if now - self._said > self.SAY:
            self._said = now
            self._node.get_logger().info(f'not active yet: {reasons}')

    def _raise_refusal(self):
        if self._node.failure is None and self._node.lifecycle == UNCONFIGURED:
            raise PsdynError(self._node.refusal)
