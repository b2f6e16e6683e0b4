"""The node `viewer` of `psdyn view --live`: what joint states say of a machine, to the pages that are open.

    joint_states       sensor_msgs/JointState           in   any joints that fix every loop
    reference          trajectory_msgs/JointTrajectory  in   its first point, shown as a ghost
    robot_description  std_msgs/String                  in   the machine, where none is given
"""

import time

import numpy as np
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...api.load import load
from ...model.errors import PsdynError
from ...model.units import SECOND
from ...view import machine_page
from ...view.server import Server
from ..messages import conversions
from ..messages.conversions import MessageError
from ..runtime import executor
from ..runtime.qos import RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import Rejections
from ..runtime.robot_description import description_from_topic

RATE_HZ = 30.0          # at which pages are updated
SILENCE_S = 1.0         # without a state before a page says so
GHOST_S = 0.5           # for which a reference is shown


class ViewerNode:
    """Puts a `Server` of a live page on a node.

    manipulator  the machine; None: that of the topic robot_description, within `timeout` [s]
    host, port   where the server listens
    on_ready     called with the `Server`
    """

    def __init__(self, node, manipulator, states, reference, *, host, port, timeout, on_ready):
        machine = self._machine = manipulator or load(description_from_topic(node, timeout))
        self._rejections = Rejections(node.get_logger().warning)
        self._state = self._effort = self._wanted = None
        self._received = self._sent = self._wanted_at = 0       # ns of the steady clock
        self._note = ''
        self._maps = conversions.NameMaps(self._columns)
        self._topic = node.create_subscription(JointState, states, self._on_state, SENSOR_DATA).topic_name
        node.create_subscription(JointTrajectory, reference, self._on_reference, RELIABLE)
        node.create_timer(1.0 / RATE_HZ, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._server = Server(machine_page(machine, live=True, title=f'{machine.name}, live'), host, port)
        on_ready(self._server)

    def end(self, failure):
        """Stop serving pages."""
        self._server.close()

    def _columns(self, names):
        known = tuple(name for name in self._machine.joints if name in names)
        return [names.index(name) for name in known], self._machine.joint_map(known)

    def _on_state(self, msg):
        now = time.monotonic_ns()
        try:
            conversions.check_lengths(msg, ('position',))
            self._state = conversions.stamp_to_ns(msg.header.stamp), self._closed(msg.name, msg.position)
            self._effort, self._received, self._note = self._efforts(msg), now, ''
        except PsdynError as error:
            self._note = f'states on {self._topic} are rejected: {error}'
            self._rejections.add('joint_states', error, now)

    def _closed(self, names, positions):
        columns, joint_map = self._maps[names]
        x, *_ = joint_map.state(np.frombuffer(positions)[columns])
        return self._machine.joint_state(x)[1].tolist()

    def _efforts(self, msg):
        if not len(msg.effort):
            return None
        given = dict(zip(msg.name, msg.effort))
        efforts = [given.get(name) for name in self._machine.actuators]
        return [None if effort is None or not np.isfinite(effort) else float(effort) for effort in efforts]

    def _on_reference(self, msg):
        now = time.monotonic_ns()
        try:
            if not msg.points:
                raise MessageError('it has no points')
            self._wanted, self._wanted_at = self._closed(msg.joint_names, msg.points[0].positions), now
        except (PsdynError, IndexError) as error:
            self._rejections.add('reference', error, now)

    def _publish(self):
        now = time.monotonic_ns()
        if self._received and self._received != self._sent:
            self._sent = self._received
            fresh = now - self._wanted_at < GHOST_S * SECOND
            self._server.publish({'t': self._state[0] / SECOND, 'q': self._state[1], 'effort': self._effort,
                                  'reference': self._wanted if fresh else None, 'note': self._note})
        elif now - max(self._received, self._sent) > SILENCE_S * SECOND:
            self._sent = now
            self._server.publish({'note': self._note or f'no states on {self._topic}'})


def run(manipulator, states, reference, *, host, port, timeout, on_ready):
    """Serve a live page until a signal; return the exit code.  Arguments as `ViewerNode`."""
    return executor.run('viewer', lambda node: ViewerNode(node, manipulator, states, reference, host=host, port=port,
                                                          timeout=timeout, on_ready=on_ready), ['psdyn'])
