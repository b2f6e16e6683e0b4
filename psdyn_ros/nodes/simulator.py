"""The node `simulator`: a machine under actuator forces and external ones, in real time.

    ~/joint_commands  sensor_msgs/JointState         in   efforts by name, N or N m
    ~/commands        std_msgs/Float64MultiArray     in   the same in the order of the actuators
    joint_states      sensor_msgs/JointState         out  all joints; effort of the actuators, zero elsewhere
    ~/base_pose       geometry_msgs/PoseStamped      out  of a floating base in the root link, stamped as joint_states
    ~/base_twist      geometry_msgs/TwistStamped     out  of its origin in its axes
    /diagnostics      diagnostic_msgs/DiagnosticArray  out  now and then (`report_rate`)
    ~/pause           std_srvs/SetBool               true stops time and joint_states, false lets both go on
    ~/reset           std_srvs/Trigger               back to the start, held until the next command

Until commands come, and when they stop coming, the brakes hold the machine (`simulation/plant.py`); one without
actuators moves freely. Parameters `external_forces.<name>.<parameter>` put named forces on it: types and parameters
are printed by `python3 -m psdyn_ros.model.external_forces`.
"""

import sys
import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.clock import Clock, ClockType
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from ..model.errors import PsdynError
from ..simulation.external_forces import ExternalForces
from ..simulation.plant import FAULT, RUNNING, Plant
from . import conversions, executor, pacing, parameters
from .rejections import Rejections, brief
from .robot_description import load_machine

STATES = QoSProfile(depth=10)       # reliable, volatile, keep-last
COMMANDS = QoSProfile(depth=1)
CLOCK_JUMP = 50_000_000             # ns between simulated and ROS time beyond which the clock was set


class Simulator:
    """Puts a `Plant` on a node: commands in, time, state out."""

    def __init__(self, node):
        self._node = node
        p = parameters.declare(node, parameters.SIMULATOR)
        machine = load_machine(node, p)
        joints = parameters.declare_map(node, parameters.initial_positions(machine))
        start = np.concatenate([machine.initial_position[:machine.nx - len(joints)], joints])
        given = parameters.below(node, 'external_forces')
        forces = ExternalForces(machine, given) if given else None
        plants = [Plant(machine, period=1.0 / p.rate, substeps=p.substeps,
                        command_timeout=p.command_timeout, position=start,
                        external_forces=forces) for _ in range(2)]
        pacing.require_rate(p.rate, _rehearsal(plants[0]), 'one step of the plant')
        self._plant = plants[1]
        self._command = None            # efforts that came since the last step
        self._paused = False
        self._now = pacing.clock_of(node)
        self._deadlines = pacing.Deadlines(round(conversions.SECOND / p.rate), round(p.max_catch_up * 1e9))
        self._stamp = None              # ns of the simulated instant, on the ROS clock
        self._clock_jumps = 0
        self._worst_step = 0            # ns since the last diagnostics
        self._said = None               # what the log was told of the state
        self._rejections = Rejections(node.get_logger().warning)

        names = machine.joint_state(self._plant.x)[0]
        self._writer = conversions.JointStateWriter(names)
        self._actuated = [names.index(name) for name in machine.actuators]
        self._reader = conversions.EffortReader(machine.actuators, self._warn_extra)
        self._base = conversions.BaseWriter(machine) if machine.floating else None

        self._states = node.create_publisher(
            JointState, 'joint_states', STATES, qos_overriding_options=QoSOverridingOptions.with_default_policies())
        if self._base:
            self._poses = node.create_publisher(PoseStamped, '~/base_pose', STATES)
            self._twists = node.create_publisher(TwistStamped, '~/base_twist', STATES)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', STATES)
        node.create_subscription(JointState, '~/joint_commands', self._on_named, COMMANDS)
        node.create_subscription(Float64MultiArray, '~/commands', self._on_ordered, COMMANDS)
        node.create_service(SetBool, '~/pause', self._on_pause)
        node.create_service(Trigger, '~/reset', self._on_reset)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(1.0 / p.rate, self._tick, clock=steady)
        node.create_timer(1.0 / p.report_rate, self._report, clock=steady)
        node.get_logger().info(
            f'{machine.name}: {len(machine.actuators)} actuators, {machine.dof} degrees of freedom, at {p.rate:g} Hz, '
            + ('held until commands come' if machine.actuators else 'free')
            + (f', under {", ".join(forces.names)}' if forces else ''))

    def _on_named(self, msg):
        self._take('joint_commands', self._reader.named, msg)

    def _on_ordered(self, msg):
        self._take('commands', self._reader.ordered, msg)

    def _take(self, topic, read, msg):
        try:
            self._command = read(msg)
        except PsdynError as error:
            self._rejections.add(topic, error, time.monotonic_ns())

    def _tick(self):
        began = time.monotonic_ns()
        if self._paused:
            return
        periods = self._deadlines.due(began)
        if not periods:
            return
        command, self._command = self._command, None
        self._plant.step(command, periods * self._plant.period)
        if self._plant.state != FAULT:
            self._advance_stamp(periods)
            self._publish()
        self._worst_step = max(self._worst_step, time.monotonic_ns() - began)

    def _advance_stamp(self, periods):
        """Stamps keep to the grid of the periods, as long as nobody sets the clock and no time was lost."""
        now = self._now()
        stamp = now if self._stamp is None else self._stamp + periods * self._deadlines.period
        if abs(now - stamp) > CLOCK_JUMP:
            self._clock_jumps += 1
            stamp = now
        self._stamp = stamp

    def _publish(self):
        _, position, velocity, _ = self._plant.manipulator.joint_state(self._plant.x, self._plant.xd)
        writer = self._writer
        writer.position[:] = position
        writer.velocity[:] = velocity
        writer.effort[self._actuated] = self._plant.force
        if self._base:
            pose, twist = self._base.fill(self._stamp, self._plant.x, self._plant.xd)
            self._poses.publish(pose)
            self._twists.publish(twist)
        self._states.publish(writer.stamp(self._stamp))

    def _on_pause(self, request, response):
        self._paused = request.data
        self._deadlines.restart()
        self._stamp = self._command = None
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _on_reset(self, request, response):
        self._plant.reset()
        self._command = None
        response.success, response.message = True, 'at the start, held until the next command'
        return response

    def _say(self, level, text):
        # rclpy wants one severity for each line of code that logs
        log = self._node.get_logger()
        if level == 'error':
            log.error(text)
        elif level == 'warn':
            log.warning(text)
        else:
            log.info(text)

    def _warn_extra(self, names):
        self._node.get_logger().warning(
            f'commands for {brief(", ".join(names))} are passed over: no actuator', throttle_duration_sec=1.0)

    def _report(self):
        state, deadlines, rejected = self._plant.state, self._deadlines, self._rejections
        level = 'error' if state == FAULT else 'ok' if state == RUNNING and not self._paused else 'warn'
        summary = self._plant.fault or ('paused' if self._paused else state)
        if summary != self._said:
            self._said = summary
            self._say(level, f'the plant: {summary}')
        self._diagnostics.publish(conversions.diagnostics_msg(
            self._now(), f'{self._node.get_name()}: plant', level, summary, {
                'simulated time [s]': self._plant.time,
                'worst step [ms]': self._worst_step * 1e-6,
                'overruns': deadlines.overruns,
                'lost time [s]': deadlines.slipped * 1e-9,
                'clock jumps': self._clock_jumps,
                'saturated commands': self._plant.saturations,
                'rejected messages': rejected.total,
                **{f'rejected {topic}': count for topic, count in rejected.counts.items()}}))
        self._worst_step = 0


def _rehearsal(plant):
    """What one step of the plant costs, as a function to call."""
    manipulator, force = plant.manipulator, plant.force.copy()

    def work():
        plant.step(force, plant.period)
        manipulator.joint_state(plant.x, plant.xd)
    return work


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('simulator', Simulator, args)


if __name__ == '__main__':
    sys.exit(main())
