"""What a controller listens to: measured state, pressures, emergency stop, references, load, base, description.

What was measured and the emergency stop are served by the executor, as they come. The rest waits in the middleware, and
one message of each topic is taken in a cycle: what a flood brings beyond that is dropped there, without a callback.
"""

import time
from contextlib import suppress

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory

from ...control.safety.fault_table import Result
from ...model.errors import NonFiniteError, PsdynError
from ..messages import conversions
from ..messages.base_motion import BaseInputs, three
from ..messages.cdr_templates import LARGEST, JointStateBytes, PointBytes
from ..messages.conversions import SECOND, MessageError, RepeatedNameError
from ..messages.pressures import PressureInputs
from ..messages.streamed_point import PointReader
from ..runtime.deadlines import both_clocks
from ..runtime.rejection_log import brief
from ..runtime.robot_description import LATCHED, TOPIC
from ..runtime.take_message import newest, oldest
from .trajectory_message import SerializedTrajectory

SENSOR_DATA = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)    # the newest state only
RELIABLE = QoSProfile(depth=10)
NEWEST = QoSProfile(depth=1)        # reliable, volatile
STREAMED = QoSProfile(depth=2)      # one more than is read, which tells that points were overtaken
MOST_JOINTS = 1000                  # in a message
MOST_POINT_BYTES = 65536            # of a message with a streamed point


class ControllerInputs:
    """Subscribes to all that a control core takes; a message that cannot be used is counted and named, never used.

    node        to subscribe on
    setup       `setup.Setup`
    core        `ControlCore`
    p           parameters of the controller
    now         function that gives ns on the clock of the stamps
    rejections  where what is refused is counted
    on_state    called with the ns at which a message with the state began to be read, once it was taken
    on_trajectory  called with the `SerializedTrajectory` that came
    on_doubt    called when a state was refused for what it says, or when it says that
    """

    def __init__(self, node, setup, core, p, *, now, rejections, on_state, on_trajectory,
                 on_doubt):
        self._node, self._core, self._now, self._rejections = node, core, now, rejections
        self._on_state, self._on_trajectory, self._on_doubt = on_state, on_trajectory, on_doubt
        self._simulated = node.get_parameter('use_sim_time').value
        self._message = JointStateBytes()
        self._reader = conversions.StateReader(setup.machine, np.inf, self._surplus)
        self._joints = ()           # of the last state
        self._last = None           # its message, serialized
        self._point_message, self._points = PointBytes(), PointReader(setup.machine)
        # text of the last one heard on the topic, or used
        self._heard = setup.description if setup.description.lstrip().startswith('<') else None
        self._latest = 0                    # ns, stamp of the last state taken by hand
        overrides = QoSOverridingOptions.with_default_policies()
        before = list(node.subscriptions)
        self._states = node.create_subscription(JointState, 'joint_states', self._state, SENSOR_DATA,
                                                qos_overriding_options=overrides, raw=True)
        self._emergency_stops = node.create_subscription(Bool, '~/emergency_stop', self._emergency_stop, NEWEST)
        if setup.hydraulics is not None and setup.hydraulics.cylinders:
            PressureInputs(node, tuple(setup.hydraulics.cylinders), p.pressure_source, p.pressure_topic,
                           take=self._take_pressures, reject=self._reject_pressures)
        self._measured = [one for one in node.subscriptions if one not in before]
        self._in_time = [one for one in self._measured if one is not self._states] + [self._states]
        node.create_subscription(JointTrajectory, '~/joint_trajectory', self._trajectory, RELIABLE, raw=True)
        self._streamed = node.create_subscription(JointTrajectory, '~/point', self._point, STREAMED, raw=True)
        node.create_subscription(InertiaStamped, '~/payload', self._payload, NEWEST)
        node.create_subscription(String, TOPIC, self._description, LATCHED)
        self._base = BaseInputs(node, setup.machine, now=now, age_clock=time.monotonic_ns,
                                timeout=round(p.port_timeout * SECOND), reject=self._reject_load,
                                check=core.set_base)
        self._subscriptions = [one for one in node.subscriptions if one not in before]
        node.by_hand = frozenset(self._subscriptions).difference(self._measured)
        self._unhurried = [one for one in self._subscriptions if one in node.by_hand and one is not self._streamed]
        self.state_topics = (self._states.topic_name,)

    def destroy(self):
        """Listen to nothing any more."""
        for subscription in self._subscriptions:
            # an executor still delivers what it has noticed already
            subscription.callback = _pass_over
            self._node.destroy_subscription(subscription)
        self._node.by_hand = frozenset()

    def poll(self):
        """Take what was measured by hand, where no executor does."""
        for subscription in self._measured:
            taken = newest(subscription)
            if taken is not None:
                if self._simulated and subscription is self._states:
                    with suppress(MessageError):
                        self._message.read(taken[0])
                    self._latest = self._message.stamp
                subscription.callback(taken[0])

    def look(self):
        """Take what was measured by hand, the state last, since it is answered at once.

        Not in simulated time, which goes on by messages that only the executor takes.
        """
        if not self._simulated:
            for subscription in self._in_time:
                taken = oldest(subscription)
                if taken is not None:
                    subscription.callback(taken[0])

    def serve(self):
        """Take a message of each topic that is not urgent, to be called between cycles."""
        for subscription in self._unhurried:
            taken = oldest(subscription)
            if taken is not None:
                subscription.callback(taken[0])

    def ros_now(self):
        """ns on the clock of the stamps; while no executor takes /clock, simulated time is that of the last state."""
        return max(self._now(), self._latest) if self._simulated else self._now()

    def move_base(self, seconds):
        """Tell the law how the base moves, so many seconds after the last time."""
        base = self._base.motion(seconds)
        if base is not None:
            self._core.set_base(base)

    @property
    def base_stale(self):
        """Whether a motion of the base stopped coming."""
        return self._base.stale

    def reject(self, topic, error, row):
        """Count a message that cannot be used, and tell the core of it."""
        now = time.monotonic_ns()
        self._rejections.add(topic, error, now)
        self._core.report(now, row, Result.FAIL, brief(error))

    # measured

    def rehearse(self):
        """Read the last state once more, without taking it."""
        if self._last is not None:
            self._message.read(self._last)
            self._reader.read(self._message)

    def _state(self, serialized):
        began, message = time.monotonic_ns(), self._message
        if len(serialized) > LARGEST:
            self._refuse_state(began, 'flood', f'a message of {len(serialized)} bytes, at most {LARGEST}')
            return
        try:
            message.read(serialized)
        except MessageError as error:
            self._refuse_state(began, 'state_malformed', error)
            return
        if len(message.name) > MOST_JOINTS:
            self._refuse_state(began, 'flood', f'{len(message.name)} joints in a message, at most {MOST_JOINTS}')
            return
        try:
            x, xd = self._reader.read(message)
        except RepeatedNameError as error:
            self._refuse_state(began, 'state_duplicate', error)
        except NonFiniteError as error:
            self._refuse_state(began, 'state_not_finite', error)
        except PsdynError as error:
            self._refuse_state(began, 'state_malformed' if len(message.velocity) else 'velocity_missing', error)
        else:
            if self._reader.joints is not self._joints:
                self._joints = self._reader.joints
                self._core.inputs.checks.measure(self._joints)
            self._last = serialized
            now, ros_now = both_clocks(self.ros_now)
            refused = self._core.take_state(message.stamp, ros_now, now, x, xd, self._reader.residual,
                                            self._reader.positions)
            if refused:
                self._rejections.add('joint_states', refused, began)
                self._on_doubt()
            else:
                self._on_state(began)

    def _refuse_state(self, now, row, error):
        self._rejections.add('joint_states', error, now)
        self._core.reject_state(now, row, brief(error))

    def _surplus(self, names):
        self._core.report(time.monotonic_ns(), 'state_surplus', Result.FAIL, brief(', '.join(names)))
        self._node.get_logger().warning(
            f'states of {brief(", ".join(names))} are passed over: no joint of this machine', throttle_duration_sec=1.0)

    def _take_pressures(self, stamp, values, supply):
        now, ros_now = both_clocks(self.ros_now)
        refused = self._core.take_pressures(stamp, ros_now, now, values, supply)
        if refused:
            self._rejections.add('pressures', refused, now)

    def _reject_pressures(self, error):
        self.reject('pressures', error, 'pressures_not_finite')

    def _emergency_stop(self, msg):
        self._core.take_emergency_stop(msg.data, time.monotonic_ns())

    # references

    def _trajectory(self, data):
        try:
            reader = SerializedTrajectory(data)
        except PsdynError as error:
            self.reject('joint_trajectory', error, 'reference_malformed')
        else:
            self._on_trajectory(reader)

    def take_point(self):
        """Take the newest streamed point that came, to be called once for each cycle: so a flood costs one of them."""
        first = oldest(self._streamed)
        if first is not None:
            newer = oldest(self._streamed)
            if newer is not None:
                self._core.report(time.monotonic_ns(), 'flood', Result.FAIL,
                                  'one point or more was overtaken by another in the same cycle')
            self._point((newer or first)[0])

    def _point(self, data):
        message = self._point_message
        if len(data) > MOST_POINT_BYTES:
            self.reject('point', f'{len(data)} bytes, at most {MOST_POINT_BYTES} are read', 'flood')
            return
        try:
            message.read(data)
        except MessageError as error:
            self.reject('point', error, 'reference_malformed')
            return
        try:
            self._core.take_point(message.stamp or self._now(), time.monotonic_ns(), *self._points.read(message))
        except PsdynError as error:
            self.reject('point', error, 'reference_rejected')

    # load

    def _payload(self, msg):
        body = msg.inertia
        inertia = [[body.ixx, body.ixy, body.ixz], [body.ixy, body.iyy, body.iyz], [body.ixz, body.iyz, body.izz]]
        try:
            if not msg.header.frame_id:
                raise MessageError('frame_id is empty; expected the link that carries the payload')
            self._core.set_payload(msg.header.frame_id, body.m, np.array(three(body.com)), np.array(inertia))
        except PsdynError as error:
            self._reject_load('payload', error)
        else:
            self._node.get_logger().info(f'{msg.header.frame_id} carries {body.m:g} kg')

    def _reject_load(self, topic, error):
        self.reject(topic, error, 'load_rejected')

    # description

    def _description(self, msg):
        known, self._heard = self._heard, msg.data
        if known is not None and known.strip() != msg.data.strip():
            self._core.report(time.monotonic_ns(), 'description_changed', Result.FAIL, f'another one came on {TOPIC}')
            self._node.get_logger().warning('another robot_description is passed over: it takes effect when the node '
                                            'is cleaned up and configured')


def _pass_over(msg):
    """Take no notice of a message."""
