"""The subscriptions of a controller: measured state, pressures, emergency stop, references, load, base, description.

All of them are served by the executor. What may flood is KEEP_LAST(1), so that the middleware drops what is
superseded, and is bounded in size before it is read; of the emergency stop nothing is superseded.
"""

import time

import numpy as np
from geometry_msgs.msg import InertiaStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory

from ...control.core.inputs import MeasuredState
from ...control.monitors.clock import both_clocks
from ...control.safety.fault_table import Result
from ...model.errors import NonFiniteError, PsdynError
from ..messages import conversions
from ..messages.base_motion import BaseInputs, check_imu, three
from ..messages.conversions import MessageError, OversizeError, RepeatedNameError, read_message
from ..messages.pressures import PressureInputs
from ..messages.streamed_point import PointReader
from ..runtime.qos import ADJUSTABLE, LATCHED, LATEST, RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import brief
from ..runtime.robot_description import TOPIC
from .trajectory_message import SerializedTrajectory

MAX_JOINTS = 1000               # in a message
MAX_POINT_BYTES = 65536         # of a message with a streamed point


class ControllerInputs:
    """Subscribes to all inputs of a control core; a message that cannot be used is counted and named, never used.

    node        to subscribe on
    setup       `setup.ControllerSetup`
    core        `ControlCore`
    now         function that gives ns on the clock of the stamps
    rejections  where rejected messages are counted
    on_state    called with a `MeasuredState` and the ns at which its conversion began
    on_trajectory  called with the `SerializedTrajectory` that came
    """

    def __init__(self, node, setup, core, *, now, rejections, on_state, on_trajectory):
        self._node, self._core, self._now, self._rejections = node, core, now, rejections
        self._on_state, self._on_trajectory = on_state, on_trajectory
        machine, hydraulics = setup.config.machine.driven_machine, setup.config.hydraulics
        self._passive = setup.config.machine.passive_joints if machine is not setup.config.machine else ()
        self._reader = conversions.StateReader(machine, np.inf, self._surplus, self._passive)
        self._joints = ()           # of the last state
        self._simulated = setup.config.simulated_time   # a plant that waits for an answer repeats its state then
        self._points = PointReader(machine)
        self._point, self._point_read, self._overtaken = None, False, 0     # kept; since the last cycle: read, lost
        # text of the description that came last, or that is used
        self._known = setup.description if setup.description.lstrip().startswith('<') else None
        before = list(node.subscriptions)
        states = node.create_subscription(JointState, 'joint_states', self._state, SENSOR_DATA, **ADJUSTABLE, raw=True)
        # a release hides no press
        node.create_subscription(Bool, '~/emergency_stop', self._emergency_stop, RELIABLE)
        if hydraulics is not None and hydraulics.cylinders:
            PressureInputs(node, tuple(hydraulics.cylinders), *setup.pressures,
                           take=self._take_pressures, reject=self._reject_pressures)
        node.create_subscription(JointTrajectory, '~/joint_trajectory', self._trajectory, LATEST, raw=True)
        node.create_subscription(JointTrajectory, '~/point', self._on_point, LATEST, raw=True)
        node.create_subscription(InertiaStamped, '~/payload', self._payload, LATEST)
        node.create_subscription(Imu, '~/imu', self._imu, LATEST)
        node.create_subscription(String, TOPIC, self._description, LATCHED)
        self.base = BaseInputs(node, machine, now=now, age_clock=time.monotonic_ns, timeout=setup.base_timeout,
                                reject=self._reject_load, check=core.set_base)
        self._subscriptions = [one for one in node.subscriptions if one not in before]
        self.state_topics = (states.topic_name,)

    def destroy(self):
        """Receive nothing any more."""
        for subscription in self._subscriptions:
            # an executor still delivers what it has noticed already
            subscription.callback = _ignore
            self._node.destroy_subscription(subscription)

    def move_base(self, seconds):
        """Pass the motion of the base to the law, so many seconds after the last time."""
        if self.base.turned:
            self._core.set_base(self.base.motion(seconds))

    def reject(self, topic, error, row):
        """Count a message that cannot be used, and report it to the core: as a flood where it is too large."""
        now, row = time.monotonic_ns(), 'flood' if isinstance(error, OversizeError) else row
        self._rejections.add(topic, error, now)
        self._core.report(now, row, Result.FAIL, brief(error))

    # measured

    def _state(self, data):
        received = time.monotonic_ns()
        try:
            message = read_message(data, JointState)
            if len(message.name) > MAX_JOINTS:
                raise OversizeError(f'{len(message.name)} joints in a message, at most {MAX_JOINTS}')
        except MessageError as error:
            row = 'flood' if isinstance(error, OversizeError) else 'state_malformed'
            self._refuse_state(received, row, error)
            return
        stamp = conversions.stamp_to_ns(message.header.stamp)
        if self._simulated and stamp and stamp == self._core.inputs.stamp:
            return
        began = time.monotonic_ns()
        try:
            x, xd = self._reader.read(message)
        except RepeatedNameError as error:
            self._refuse_state(received, 'state_duplicate', error)
        except NonFiniteError as error:
            self._refuse_state(received, 'state_not_finite', error)
        except PsdynError as error:
            self._refuse_state(received, 'state_malformed' if len(message.velocity) else 'velocity_missing', error)
        else:
            if self._reader.joints is not self._joints:
                self._joints = self._reader.joints
                self._core.inputs.state_check.measure(self._joints)
            self._on_state(MeasuredState(stamp, x, xd, self._reader.residual, self._reader.positions,
                                         self._reader.passive if self._passive else None), began)

    def _refuse_state(self, now, row, error):
        self._rejections.add('joint_states', error, now)
        self._core.reject_state(now, row, brief(error))

    def _surplus(self, names):
        self._core.report(time.monotonic_ns(), 'state_surplus', Result.FAIL, brief(', '.join(names)))
        self._node.get_logger().warning(
            f'states of {brief(", ".join(names))} are passed over: no joint of this machine', throttle_duration_sec=1.0)

    def _take_pressures(self, stamp, values, supply):
        if self._simulated and stamp == self._core.inputs.pressure_check.input.stamp:
            return
        now, ros_now = both_clocks(self._now)
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

    def _on_point(self, data):
        """Read one streamed point between two cycles when it comes, and keep the newest of those that follow."""
        self._overtaken += self._point is not None
        if self._point_read:
            self._point = data
        else:
            self._point, self._point_read = None, True
            self._read_point(data)

    def take_point(self):
        """Read the point that was kept, if none came since the last cycle; to be called once in each cycle."""
        if self._overtaken:
            self._core.report(time.monotonic_ns(), 'flood', Result.FAIL,
                              f'{self._overtaken} points were overtaken by another in the same cycle')
            self._overtaken = 0
        if self._point is not None and not self._point_read:
            data, self._point = self._point, None
            self._read_point(data)
        self._point_read = False

    def _read_point(self, data):
        try:
            message = read_message(data, JointTrajectory, MAX_POINT_BYTES)
        except MessageError as error:
            self.reject('point', error, 'reference_malformed')
            return
        stamp = conversions.stamp_to_ns(message.header.stamp) or self._now()
        try:
            self._core.take_point(stamp, time.monotonic_ns(), *self._points.read(message))
        except PsdynError as error:
            self.reject('point', error, 'reference_rejected')

    # load

    def _payload(self, msg):
        try:
            self._core.set_payload(*conversions.payload_from_msg(msg))
        except PsdynError as error:
            self._reject_load('payload', error)
        else:
            self._node.get_logger().info(f'{msg.header.frame_id} carries {msg.inertia.m:g} kg')

    def _imu(self, msg):
        try:
            check_imu(msg)
            self._core.take_imu(msg.header.frame_id, three(msg.angular_velocity), three(msg.linear_acceleration))
        except PsdynError as error:
            self._reject_load('imu', error)

    def _reject_load(self, topic, error):
        self.reject(topic, error, 'load_rejected')

    # description

    def _description(self, msg):
        known, self._known = self._known, msg.data
        if known is not None and known.strip() != msg.data.strip():
            self._core.report(time.monotonic_ns(), 'description_changed', Result.FAIL, f'another one came on {TOPIC}')
            self._node.get_logger().warning('another robot_description is passed over: it takes effect when the node '
                                            'is cleaned up and configured')


def _ignore(msg):
    """Drop a message."""
