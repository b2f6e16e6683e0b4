"""More messages than a controller reads: they wait in the middleware, which drops them, and cost no callback."""

import time
from collections import deque
from types import SimpleNamespace

import pytest
from support.machines import URDF

import psdyn_ros

pytest.importorskip('rclpy', reason='the nodes need rclpy')

import rclpy  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.nodes.controller.subscribers import STREAMED, ControllerInputs  # noqa: E402
from psdyn_ros.nodes.messages.cdr_templates import PointBytes  # noqa: E402
from psdyn_ros.nodes.messages.streamed_point import PointReader  # noqa: E402
from psdyn_ros.nodes.runtime import executor  # noqa: E402
from psdyn_ros.nodes.runtime.lifecycle import ManagedNode  # noqa: E402
from psdyn_ros.nodes.runtime.take_message import oldest  # noqa: E402
from psdyn_ros.tools.demo.processes import free_domain  # noqa: E402

CRANE = URDF / 'hiab_xs031.urdf'


@pytest.fixture(scope='module')
def crane():
    return psdyn_ros.load(CRANE)


class Waiting:
    """A subscription on which messages wait to be taken, no more than its depth."""

    msg_type, raw = JointTrajectory, True

    def __init__(self, depth, callback=None):
        self.handle, self.callback, self._messages = self, callback, deque(maxlen=depth)
        self.come = self._messages.append

    def take_message(self, kind, raw):
        return (self._messages.popleft(), {}) if self._messages else None


def test_of_a_flood_of_points_one_is_read_in_a_cycle_and_nonsense_is_counted(crane):
    taken, rejected, reports = [], [], []
    inputs = object.__new__(ControllerInputs)
    inputs._core = SimpleNamespace(take_point=lambda stamp, now, *motion: taken.append((stamp, *motion)),
                                   report=lambda now, name, result, text: reports.append((name, text)))
    inputs._rejections = SimpleNamespace(add=lambda topic, error, now: rejected.append((topic, str(error))))
    inputs._point_message, inputs._points, inputs._now = PointBytes(), PointReader(crane), lambda: 7
    inputs._streamed = waiting = Waiting(STREAMED.depth)
    inputs.take_point()
    assert not taken
    for k in range(1000):
        waiting.come(serialize_message(JointTrajectory(joint_names=list(crane.actuators), points=[
            JointTrajectoryPoint(positions=[0.001 * k, 0.2, 0.3, 0.3])])))
    inputs.take_point()
    inputs.take_point()
    (stamp, x, *_), = taken
    assert stamp == 7 and x.tolist() == [0.999, 0.2, 0.3, 0.3]
    assert reports == [('flood', 'one point or more was overtaken by another in the same cycle')] and not rejected
    reports.clear()
    for data in (b'', b'\x00\x01', b'\x00\x01\x00\x00' + b'\xff' * 60, b'x' * 70_000,
                 serialize_message(JointTrajectory())):
        waiting.come(data)
        inputs.take_point()
    assert len(taken) == 1 and len(rejected) == 5 and all(topic == 'point' for topic, _ in rejected)
    assert [row for row, _ in reports] == 3 * ['reference_malformed'] + ['flood', 'reference_rejected']


def test_one_message_of_each_topic_without_haste_is_taken_after_a_cycle_and_none_is_lost():
    taken = []
    inputs = object.__new__(ControllerInputs)
    inputs._unhurried = [Waiting(10, taken.append), Waiting(1, taken.append)]
    for k in range(10):
        inputs._unhurried[0].come(f'trajectory {k}')
    inputs._unhurried[1].come('payload')
    inputs.serve()
    assert taken == ['trajectory 0', 'payload']
    for _ in range(12):
        inputs.serve()
    assert taken == ['trajectory 0', 'payload', *(f'trajectory {k}' for k in range(1, 10))]


@pytest.mark.dds
def test_an_executor_leaves_alone_what_is_taken_by_hand_and_serves_the_rest():
    context, came = rclpy.Context(), []
    rclpy.init(context=context, domain_id=free_domain(), signal_handler_options=SignalHandlerOptions.NO)
    try:
        node, other = ManagedNode('hands', context=context), rclpy.create_node('other', context=context)
        both = {name: node.create_subscription(String, name, lambda msg: came.append(msg.data), 10)
                for name in ('served', 'waiting')}
        node.by_hand = frozenset([both['waiting']])
        served = executor.make_executor(context)
        served.add_node(node)
        publishers = {name: other.create_publisher(String, name, 10) for name in both}
        deadline = time.monotonic() + 20.0
        while 'served' not in came and time.monotonic() < deadline:
            for name, publisher in publishers.items():
                publisher.publish(String(data=name))
            served.spin_once(timeout_sec=0.05)
        waiting = None
        while waiting is None and time.monotonic() < deadline:
            served.spin_once(timeout_sec=0.05)
            waiting = oldest(both['waiting'])
        assert set(came) == {'served'} and waiting[0].data == 'waiting'
        served.remove_node(node)
        served.shutdown()
        for one in (node, other):
            one.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)
