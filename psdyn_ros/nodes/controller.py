"""The node `controller`: measured state and reference in, commands of the actuators out.

    joint_states        sensor_msgs/JointState            in   any joints that fix every loop
    pressures           see `pressures.py`                in   of all chambers, for laws on valves
    ~/joint_trajectory  trajectory_msgs/JointTrajectory   in   in any joints that fix the others; stamp zero means now
    ~/joint_commands    sensor_msgs/JointState            out  by name, stamped as the state they answer: efforts; of
                                                               laws on valves -1 to 1 of cylinders, as positions
    ~/commands          std_msgs/Float64MultiArray        out  the same in the order of the actuators
    ~/reference         trajectory_msgs/JointTrajectory   out  one point: the reference of that cycle, in coordinates
    ~/statistics        std_msgs/Float64MultiArray        out  now and then: `STATISTICS` of the last 16384 cycles
    /diagnostics        diagnostic_msgs/DiagnosticArray   out  now and then (`report_rate`)

When states or pressures stop coming, so do commands: what drives the actuators then has to hold the load, as the
simulator does. When they come again the machine is held where it is, whatever the reference was before.
"""

import sys
import time

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ..control.computed_torque import check_actuation
from ..control.state_monitor import StateMonitor, Verdict
from ..control.trajectory import TrajectoryError
from ..model.errors import PsdynError
from . import conversions, executor, pacing, parameters
from .control_level import level_of
from .pressures import PressureError
from .rejections import Rejections, brief
from .robot_description import load_machine

SENSOR_DATA = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)    # the newest state only
COMMANDS = QoSProfile(depth=1)
RELIABLE = QoSProfile(depth=10)
STATISTICS = ('cycles', 'missed', 'p50', 'p99', 'p99.9')   # execution times in s


class Controller:
    """Puts a control law on a node: state and trajectory in, commands out."""

    def __init__(self, node):
        self._node = node
        p = parameters.declare(node, parameters.CONTROLLER)
        machine = load_machine(node, p)
        check_actuation(machine)
        self._rejections = Rejections(node.get_logger().warning)
        self._now = pacing.clock_of(node)
        self._level = level_of(node, machine, p, self._now, self._rejections)
        self._law = self._level.law
        self._reader = conversions.StateReader(machine, p.closure_tolerance, self._warn_extra)
        pacing.require_rate(p.rate, self._level.rehearsal(self._reader), 'one control cycle')
        self._monitor = StateMonitor(1.0 / p.rate, p.state_timeout, p.max_clock_skew, p.max_jump)
        self._times = pacing.CycleTimes()
        period = round(conversions.SECOND / p.rate)
        self._slots = pacing.Deadlines(period, period)      # of the timer, where that is the trigger
        self._epoch = None              # ns: stamp of the first state; the law counts seconds from it
        self._state = None              # (stamp in ns, t in s, x, xd), the last one accepted; None while there is none

        self._commands = conversions.LabelledArrayWriter(machine.actuators)
        self._reference = conversions.ReferenceWriter(machine.coordinates)
        self._statistics = conversions.LabelledArrayWriter(('control cycle',), STATISTICS)
        self._connect(p)
        node.add_post_set_parameters_callback(lambda _: self._level.take_gains())
        node.get_logger().info(f'{machine.name}: {p.law} of {len(machine.actuators)} actuators, trigger: {p.trigger}')

    def _connect(self, p):
        node, steady = self._node, Clock(clock_type=ClockType.STEADY_TIME)
        overrides = QoSOverridingOptions.with_default_policies()
        self._publish_joint_commands = node.create_publisher(
            JointState, '~/joint_commands', COMMANDS, qos_overriding_options=overrides).publish
        self._publish_commands = node.create_publisher(Float64MultiArray, '~/commands', COMMANDS).publish
        self._publish_reference = node.create_publisher(JointTrajectory, '~/reference', RELIABLE).publish
        self._publish_statistics = node.create_publisher(Float64MultiArray, '~/statistics', RELIABLE).publish
        self._publish_diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE).publish
        node.create_subscription(JointTrajectory, '~/joint_trajectory', self._on_trajectory, RELIABLE)
        on_state = self._on_state if p.trigger == 'state' else self._keep_state
        node.create_subscription(JointState, 'joint_states', on_state, SENSOR_DATA, qos_overriding_options=overrides)
        if p.trigger == 'timer':
            node.create_timer(1.0 / p.rate, self._on_timer, clock=steady)
        node.create_timer(0.5 * p.state_timeout, self._watch_state, clock=steady)
        node.create_timer(1.0 / p.report_rate, self._report, clock=steady)

    def _on_state(self, msg):
        began = time.perf_counter_ns()
        if self._keep_state(msg):
            self._cycle(began)

    def _on_timer(self):
        now = time.monotonic_ns()
        if self._slots.due(now) and self._state is not None and not self._monitor.silent(now):
            self._cycle(time.perf_counter_ns())

    def _keep_state(self, msg):
        """Take the state of a message for the next cycle; whether it can be acted upon."""
        now = time.monotonic_ns()
        try:
            x, xd = self._reader.read(msg)
        except PsdynError as error:
            self._rejections.add('joint_states', error, now)
            return False
        stamp = conversions.stamp_to_ns(msg.header.stamp)
        verdict = self._monitor.judge(stamp, self._now(), now, x, xd)
        if verdict is Verdict.RESTARTED:
            self._restart(stamp, x)
        elif verdict is not Verdict.ACCEPTED:
            self._rejections.add('joint_states', verdict.value, now)
            return False
        self._state = stamp, (stamp - self._epoch) / conversions.SECOND, x, xd
        return True

    def _restart(self, stamp, x):
        """Hold the machine where it is; the reference of before means nothing any more."""
        if self._epoch is None:
            self._epoch = stamp
        self._law.hold(x)
        self._node.get_logger().info('states are coming: the machine is held where it is', throttle_duration_sec=1.0)

    def _cycle(self, began):
        """Answer the last state with a command."""
        stamp, t, x, xd = self._state
        try:
            command, message = self._level.command(stamp, t, x, xd)
        except PressureError as error:
            self._rejections.add('control', error, time.monotonic_ns())
            self._law.hold(x)
            return
        except PsdynError as error:
            self._rejections.add('control', error, time.monotonic_ns())
            return
        self._publish_joint_commands(message)
        self._commands.values[:] = command
        self._publish_commands(self._commands.message)
        self._times.add(time.perf_counter_ns() - began)
        self._publish_reference(self._reference.fill(stamp, *self._law.desired))

    def _on_trajectory(self, msg):
        now = time.monotonic_ns()
        try:
            waypoints, start = conversions.trajectory_from_msg(msg)
            if self._state is None:
                raise TrajectoryError('no state is coming in, so there is nowhere to start from')
            start = None if start is None else (start - self._epoch) / conversions.SECOND
            self._law.reference.follow(waypoints, self._state[1], start)
        except PsdynError as error:
            self._rejections.add('joint_trajectory', error, now)
        else:
            self._node.get_logger().info(f'following {waypoints.times.size} points over {waypoints.times[-1]:.3g} s')

    def _warn_extra(self, names):
        self._node.get_logger().warning(
            f'states of {brief(", ".join(names))} are passed over: no joint of this machine', throttle_duration_sec=1.0)

    def _watch_state(self):
        if self._state is not None and self._monitor.silent(time.monotonic_ns()):
            self._state = None
            self._node.get_logger().error('no state that can be used any more: no commands until one comes')

    def _report(self):
        cycles, rejected, now = self._times, self._rejections, self._now()
        percentiles = cycles.percentiles(50.0, 99.0, 99.9)
        self._statistics.values[:] = cycles.count, self._monitor.missed + self._slots.missed, *percentiles
        self._publish_statistics(self._statistics.message)
        if self._state is None:
            summary = 'no state'
        else:
            summary = 'moving' if self._law.reference.moving(self._state[1]) else 'holding'
        self._publish_diagnostics(conversions.diagnostics_msg(
            now, f'{self._node.get_name()}: control', 'error' if self._state is None else 'ok', summary, {
                'cycles': cycles.count,
                'missed states': self._monitor.missed,
                'missed slots of the timer': self._slots.missed,
                'execution p99 [ms]': float(percentiles[1] * 1e3),
                'saturated cycles': int(self._law.saturations.max()),
                'rejected messages': rejected.total,
                **{f'rejected {topic}': count for topic, count in rejected.counts.items()}}))


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('controller', Controller, args)


if __name__ == '__main__':
    sys.exit(main())
