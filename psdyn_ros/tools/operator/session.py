"""A node of an operator beside a controller and a simulator: services, what both report, and who is there at all."""

import importlib
import math
import os
import time
from contextlib import contextmanager, suppress

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.exceptions import InvalidNamespaceException
from rclpy.node import NodeNameNonExistentError
from rclpy.validate_namespace import validate_namespace
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from ...control.safety.fault_table import State
from ...model.errors import PsdynError
from ...nodes.runtime.lifecycle import ACTIVE, INACTIVE, UNCONFIGURED
from ...nodes.runtime.qos import subscription_for
from ..demo.session import own_node

TURN = 0.05             # s that is waited for a message at a time
FOUND = 0.1             # s after which a service that is ready knows its client, too
UNKNOWN = '_UNKNOWN_'   # in the name that DDS gives the node of a publisher until it has heard of the node
ANSWER = 5.0            # s after which it is asked again: what nodes send while they find each other may be lost
RETRY = 0.2             # s between two requests for activation, or to be enabled
LIFECYCLE = 'get_state'     # service that every managed node offers
REPORT = 3.5            # s in which a node reports twice by default, and DDS announces again what was missed (3 s)
TRANSITIONS = {UNCONFIGURED: ('configure', Transition.TRANSITION_CONFIGURE),
               INACTIVE: ('activate', Transition.TRANSITION_ACTIVATE)}
AGAIN = {ACTIVE: ('deactivate', Transition.TRANSITION_DEACTIVATE)}
CONFIGURE_TIME = 300.0  # s; a first configuration compiles
ENABLED = State.HOLD, State.RUN, State.DEGRADED


class OperatorError(PsdynError):
    """Nodes that are not there, or do not answer."""


class RefusedError(PsdynError):
    """A node refuses what is asked of it, or the machine was stopped meanwhile."""


@contextmanager
def operator(namespace='', controller='controller', timeout=10.0):
    """Yield an `Operator` on the ROS domain of the environment.

    namespace   in which names of nodes and topics are resolved
    controller  name of the controller node
    timeout     s of the steady clock to wait for a node, a topic or an answer
    """
    namespace = '/' + namespace.strip('/')
    try:
        validate_namespace(namespace)
    except InvalidNamespaceException as error:
        raise OperatorError(f"--namespace '{namespace}': {error}") from error
    with own_node(name=f'psdyn_{os.getpid()}', namespace=namespace) as (node, spin_once):
        yield Operator(node, spin_once, controller, timeout)


class Operator:
    """Asks a controller and listens to it; see `operator`."""

    def __init__(self, node, spin_once, controller, timeout):
        self.node, self.timeout = node, timeout
        self._spin_once, self._controller = spin_once, controller
        self.controller = f'{node.get_namespace().rstrip("/")}/{controller}'
        self.statuses = {}      # name with its namespace -> last DiagnosticStatus
        self.reports = 0        # of the controller so far
        self.state, self.states_seen, self.state_time = None, set(), None
        node.create_subscription(DiagnosticArray, '/diagnostics', self._keep_diagnostics, 10)
        node.create_subscription(Float64MultiArray, f'{self.controller}/state', self._keep_state, 10)

    def until(self, condition, seconds=None):
        """Serve the node until the condition holds; return its value, a false one after so many seconds."""
        deadline = time.monotonic() + (self.timeout if seconds is None else seconds)
        while not (value := condition()):
            left = deadline - time.monotonic()
            if left <= 0.0:
                return value
            self._spin_once(timeout_sec=min(left, TURN))
        return value

    # services of the controller

    def call(self, kind, service, request, seconds=None, again=False):
        """Return the response of a service of the controller; OperatorError where there is none.

        again  whether the request may be made again and again, as one that is harmless however often it is served
        """
        client = self.node.create_client(kind, f'{self.controller}/{service}')
        seconds = self.timeout if seconds is None else seconds
        tries = math.ceil(seconds / ANSWER) if again else 1
        patience, futures = seconds / tries, []
        try:
            if not self.until(client.service_is_ready):
                raise OperatorError(self.absence(service))
            self.until(lambda: False, FOUND)
            for _ in range(tries):
                futures.append(client.call_async(request))
                if done := self.until(lambda: [one for one in futures if one.done()], patience):
                    if done[0] is not futures[0]:
                        self.node.get_logger().warning(f'{self.controller}/{service}: an answer was lost')
                    return done[0].result()
            raise OperatorError(f'{self.controller}/{service} did not answer within {seconds:g} s; the controller '
                                f'reports: {self.report() or "nothing"}')
        finally:
            self.node.destroy_client(client)

    def lifecycle(self):
        """Return the lifecycle state of the controller, such as 'active'."""
        return self.call(GetState, LIFECYCLE, GetState.Request(), again=True).current_state.label

    def activate(self, again=False):
        """Configure and activate the controller where nobody has; yield a sentence for each step.

        Activation is tried again until the timeout, since states may be on their way.  again: whether it is deactivated
        first, which brings a machine that moves to rest.
        """
        steps, deadline = TRANSITIONS | (AGAIN if again else {}), time.monotonic() + self.timeout
        while (state := self.lifecycle()) in steps:
            label, number = steps[state]
            request = ChangeState.Request(transition=Transition(id=number, label=label))
            if self.call(ChangeState, 'change_state', request, CONFIGURE_TIME).success:
                steps.pop(state)
                yield f'{self.controller}: {label}d'
            elif state == UNCONFIGURED or time.monotonic() > deadline:
                raise RefusedError(f'{self.controller} did not {label}: {self.report() or "its log says why"}')
            else:
                self.until(lambda: False, RETRY)
        if state != ACTIVE:
            raise OperatorError(f'{self.controller} is {state}; expected {ACTIVE}')

    def enable(self, seconds=0.0):
        """Enable the controller; return its message, RefusedError where it still refuses after so many seconds."""
        deadline = time.monotonic() + seconds
        while not (response := self.call(SetBool, 'enable', SetBool.Request(data=True))).success:
            if time.monotonic() >= deadline:
                break
            self.until(lambda: False, RETRY)
        return self._accepted(response)

    def disable(self):
        """Disable the controller, which stops its machine; return its message, RefusedError where it refuses."""
        return self._accepted(self.call(SetBool, 'enable', SetBool.Request(data=False), again=True))

    def reset(self):
        """Let the controller forget faults that are gone; return its message, RefusedError where it refuses."""
        return self._accepted(self.call(Trigger, 'reset', Trigger.Request()))

    def _accepted(self, response):
        if not response.success:
            raise RefusedError(f'{self.controller}: {response.message}')
        return response.message

    # what nodes report

    def report(self):
        """Return the next summary that the controller reports on /diagnostics; '' where none comes."""
        before = self.reports
        self.until(lambda: self.reports > before, REPORT)
        status = self.statuses.get(f'{self.controller}: control')
        return '' if status is None else status.message

    def values(self):
        """Return {key: text} of the last diagnostics of the controller."""
        status = self.statuses.get(f'{self.controller}: control')
        return {} if status is None else {pair.key: pair.value for pair in status.values}

    def wait_for_state(self):
        """Return the safety state of the controller; OperatorError where it publishes none."""
        if not self.until(lambda: self.state is not None):
            raise OperatorError(f'{self.controller} is {self.lifecycle()} and publishes nothing on '
                                f'{self.controller}/state; `psdyn enable` makes it active')
        return self.state

    def require_enabled(self):
        """Return the safety state; OperatorError where the controller takes no reference in it."""
        if self.wait_for_state() not in ENABLED:
            raise RefusedError(f'{self.controller} takes no reference: {self.report() or self.state.name}; '
                               '`psdyn reset` forgets faults that are gone, `psdyn enable` holds the machine')
        return self.state

    def topic_type(self, topic):
        """Return (resolved name, message class, QoS that fits its publishers) of a topic; OperatorError for none."""
        name = self.node.resolve_topic_name(topic)
        if not self.until(lambda: self.node.get_publishers_info_by_topic(name)):
            raise OperatorError(f'nobody publishes on {name} (waited {self.timeout:g} s); {self._nodes()}')
        return name, *self.subscription_of(name)

    def subscription_of(self, name):
        """Return (message class, QoS that fits its publishers) of a resolved topic with a publisher."""
        found = self.node.get_publishers_info_by_topic(name)
        package, folder, kind = found[0].topic_type.split('/')
        try:
            message = getattr(importlib.import_module(f'{package}.{folder}'), kind)
        except (ImportError, AttributeError) as error:
            raise OperatorError(f'{name}: the message type {found[0].topic_type} is not installed here') from error
        return message, subscription_for([one.qos_profile for one in found])

    # who is there

    def wait_for_graph(self):
        """Serve the node until nobody has come or gone for the time in which a node reports, or until the timeout.

        Of a node that was just found its name and its other topics may follow later, on a busy computer by seconds.
        """
        known, since = None, 0.0

        def is_settled():
            nonlocal known, since
            graph = (sorted(self.node.get_node_names_and_namespaces()), self.node.count_publishers('/diagnostics'),
                     self.node.count_publishers('joint_states'))
            if graph != known:
                known, since = graph, time.monotonic()
            return time.monotonic() >= since + REPORT

        self.until(is_settled, self.timeout + REPORT)

    def has_controller(self):
        """Return whether the controller offers its services."""
        return f'{self.controller}/{LIFECYCLE}' in self._services()

    def absence(self, service=''):
        """Return a sentence on a controller, or a service of it, that is not there."""
        if service not in ('', LIFECYCLE) and self.has_controller():
            return (f'{self.controller} does not offer {service} yet: it is {self.lifecycle()}; `psdyn enable` '
                    'configures and activates it')
        others = self.until(self._controllers, REPORT)
        hint = f'; found {", ".join(others)}: choose by --namespace' if others else ''
        return f'no controller {self.controller}{hint}; {self._nodes()}'

    def _controllers(self):
        """Return the controllers of this name in all namespaces."""
        return sorted(name.removesuffix(f'/{LIFECYCLE}') for name in self._services()
                      if name.endswith(f'/{self._controller}/{LIFECYCLE}'))

    def _services(self):
        """Return names of services that nodes offer; the graph's own list has those that are only asked for, too."""
        names = set()
        for node, namespace in self.node.get_node_names_and_namespaces():
            with suppress(NodeNameNonExistentError):        # it ended meanwhile
                names.update(name for name, _ in self.node.get_service_names_and_types_by_node(node, namespace))
        return names

    def _nodes(self):
        me = self.node.get_name()
        names = sorted(f'{namespace.rstrip("/")}/{name}'
                       for name, namespace in self.node.get_node_names_and_namespaces() if name != me)
        domain = self.node.context.get_domain_id()
        return f'running nodes on ROS_DOMAIN_ID {domain}: {", ".join(names) or "none"}'

    def silent(self):
        """Return the nodes of this namespace that publish diagnostics and have not reported yet.

        A node whose name is not known yet may be one of them.
        """
        inside = self.node.get_namespace().rstrip('/') + '/'
        reporters = {f'{each.node_namespace.rstrip("/")}/{each.node_name}'
                     for each in self.node.get_publishers_info_by_topic('/diagnostics')}
        return {name for name in reporters if name.startswith(inside) or UNKNOWN in name} - self._heard()

    def _heard(self):
        return {status.hardware_id for status in self.statuses.values()}

    def _keep_diagnostics(self, message):
        inside = self.node.get_namespace().rstrip('/') + '/'
        for status in message.status:
            # /diagnostics is one topic for all machines; nodes of this package give their full name as hardware_id, and
            # begin names of statuses with it, without its slash
            node = status.hardware_id
            if node.startswith('/') and not node.startswith(inside):
                continue
            name = f'/{status.name}' if node.startswith('/') else status.name
            self.statuses[name] = status
            self.reports += name == f'{self.controller}: control'

    def _keep_state(self, message):
        self.state, self.state_time = State(int(message.data[0])), time.monotonic()
        self.states_seen.add(self.state)
