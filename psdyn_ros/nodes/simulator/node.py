"""The node `simulator`: a machine under commands of its actuators and all that acts on it from outside.

    ~/joint_commands   sensor_msgs/JointState        in   by name, each in its command mode: effort [N, N m] or pressure
                                                          [Pa] in `effort`, m/s in `velocity`, valve [-1, 1] in
                                                          `position`
    ~/commands         std_msgs/Float64MultiArray    in   the same in the order of the actuators
    ~/valve_commands   sensor_msgs/JointState        in   with hydraulics: valve commands in `position`
    ~/base_motion/twist, acceleration, imu           in   TwistStamped, AccelStamped, Imu of the base, in its axes
    ~/tool_wrench      geometry_msgs/WrenchStamped   in   on the link `frame_id`, at its origin in its axes
    ~/measured/<cylinder>, ~/measured_pressures/<cylinder>   in   force [N] in `effort` of a JointState, or pressures
                                                          [Pa] A, B in an array, of a real cylinder on a rig
    joint_states       sensor_msgs/JointState        out  as sensors say; effort of the actuators, zero elsewhere
    ~/base_pose, ~/base_twist                        out  PoseStamped, TwistStamped of a floating base
    ~/ground_truth     sensor_msgs/JointState        out  all joints, exact
    ~/dynamics         trajectory_msgs/JointTrajectory  out  one point: motion of all joints, effort of the actuators
    ~/base_wrench      geometry_msgs/WrenchStamped   out  by the machine on what carries it, at its base in base axes
    ~/tool_pose, ~/tool_twist                        out  PoseStamped, TwistStamped of `tool_link`
    ~/load_motion/<cylinder>  trajectory_msgs/JointTrajectory  out  what a rig must impose on the rod of a real cylinder
    ~/hydraulic_telemetry, ~/ground_truth/hydraulic_telemetry  out  Float64MultiArray: cylinders x `TELEMETRY`
    ~/hydraulic_states control_msgs/DynamicJointState  out  the same, where control_msgs is installed
    ~/pressure/<cylinder>/a, b  sensor_msgs/FluidPressure  out  absolute, if `publish_fluid_pressure`
    ~/imu/<link>, ~/load_pin/<joint>                 out  Imu, WrenchStamped of sensors that the file `sensors` mounts
    /clock             rosgraph_msgs/Clock           out  if `publish_clock`
    /diagnostics       diagnostic_msgs/DiagnosticArray  out  now and then (`report_rate`)
    ~/pause            std_srvs/SetBool              true stops time and joint_states, false lets both go on
    ~/step             std_srvs/Trigger              one period, while paused
    ~/reset            std_srvs/Trigger              back to the start, held until the next command
    ~/clear_faults     std_srvs/Trigger              ends all faults, also those to come

Until commands come, and when they stop coming, every actuator takes its safe output: a brake at force level
(`simulation/plant.py`), with hydraulics what the machine declares (`simulation/hydraulic_plant.py`). Parameters
`external_forces.<name>.<parameter>` put named forces on a machine at force level: types and parameters are printed by
`python3 -m psdyn_ros.model.parameters.external_forces`, kinds of faults by
`python3 -m psdyn_ros.model.parameters.faults`.
"""

import sys
import time

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType

from ...model.errors import PsdynError
from ...model.parameters.faults import placed, read_fault
from ...model.troubleshooting import NO_CLOCK
from ...simulation.plant import FAULT
from ..runtime import executor, parameters
from ..runtime.rejection_log import Rejections, brief
from . import services as simulation_services
from . import setup as plant_setup
from .clock import SimulationClock
from .command_subscribers import PlantInputs
from .diagnostics import PlantReport
from .environment_subscribers import PlantEnvironment
from .parameters import PARAMETERS
from .publishers import PlantOutputs

POLL = 1.0              # s between two looks at who publishes and who listens
REPEAT = 0.1            # s between two messages with the state, in lock-step before the first command
UNANSWERED = 10         # times as long after the last one: state or command was lost on the way
INJECT = 'inject_fault'


class Simulator:
    """Puts a plant on a node: commands in, time, state out."""

    def __init__(self, node):
        self._node = node
        p = parameters.declare(node, PARAMETERS)
        self._clock = SimulationClock(node, p)
        setup = plant_setup.build(node, p)
        self._plant, self._faults = setup.plant, setup.faults
        self.paused = False
        self._waiting = True            # in lock-step: no command came since the machine was put where it is
        self._unanswered = 0            # in lock-step: turns of REPEAT since the last period
        self._unanswerable = False      # in lock-step: no state was published that a command could answer
        self._states = []               # the last messages of joint states
        rejections = self._rejections = Rejections(node.get_logger().warning)
        oldest = p.ttl if p.hydraulics else p.command_timeout
        self._inputs = PlantInputs(
            node, self._plant, setup.modes, clock=self._clock, rejections=rejections,
            limits=(oldest, p.max_clock_skew), on_extra=self._warn_extra, on_command=self._on_command)
        self._environment = PlantEnvironment(
            node, self._plant, clock=self._clock, rejections=rejections, timeout=p.port_timeout, tool_link=p.tool_link)
        self._outputs = PlantOutputs(node, setup, self._clock, p)
        self._report = PlantReport(node, setup, self._clock, self._inputs, self._environment, rejections,
                                   p.snapshot_folder)
        self._services = simulation_services.offer(node, self)
        node.add_on_set_parameters_callback(self._judge_fault)
        node.add_post_set_parameters_callback(self._inject_fault)
        if p.inject_fault:
            self._faults.inject(p.inject_fault)
        self._start_timers(p)
        machine = self._plant.manipulator
        node.get_logger().info(
            f'{machine.name}: {len(machine.actuators)} actuators, {machine.dof} degrees of freedom, at {p.rate:g} Hz, '
            + ('in lock-step, ' if p.step_on_command else '')
            + ('held until commands come' if machine.actuators else 'free')
            + (f', under {", ".join(setup.forces)}' if setup.forces else ''))

    def _start_timers(self, p):
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._node.create_timer(1.0 / p.report_rate, lambda: self._report.publish(self.paused), clock=steady)
        self._node.create_timer(POLL, self._poll, clock=steady)
        if self._clock.lock_step:
            self._node.create_timer(REPEAT, self._repeat, clock=steady)
        self._node.create_timer(self._clock.turn, self._tick, clock=steady)

    # time

    def _tick(self):
        began = time.monotonic_ns()
        if self.paused or self._plant.state == FAULT:
            return
        if self._clock.lock_step:
            if self._unanswerable:
                self._run(1)
            return
        for periods in self._clock.due(began):
            self._run(periods)

    def _on_command(self):
        if self._clock.lock_step and not self.paused and self._inputs.complete and self._plant.state != FAULT:
            self._waiting = False
            self._run(1)

    def _run(self, periods, single=False):
        """Do so many periods under the commands that came, and tell about the last one; single: while paused."""
        began = time.monotonic_ns()
        self._unanswered = 0
        command = self._inputs.take()
        for _ in range(periods):
            if not self._step(command):
                return
            command = None
        self._clock.advance(periods, single)
        self._publish()
        self._report.took(time.monotonic_ns() - began)

    def _step(self, command):
        """Do one period; whether that could be done."""
        plant = self._plant
        try:
            self._faults.update(plant.time)
            self._environment.update(plant.period)
        except PsdynError as error:     # a fault or a motion that the machine cannot have
            self._rejections.add('environment', error, time.monotonic_ns())
        plant.step(command, plant.period, self._clock.age_clock())
        if plant.state == FAULT:
            self._report.fault()
            return False
        self._outputs.sample()
        return True

    def _publish(self):
        self._clock.publish()
        self._keep(self._faults.message(self._outputs.measured()))
        self._unanswerable = not self._states
        self._outputs.publish_states(self._states)
        self._outputs.publish_details()

    def _keep(self, messages):
        """Keep messages of joint states; None stands for a period in which nothing was measured."""
        self._states = [message for message in messages if message is not None]

    def _repeat(self):
        self._unanswered += 1
        if (self._waiting or self._unanswered >= UNANSWERED) and not self.paused and self._plant.state != FAULT:
            self._unanswered = 0
            if not self._states:
                self._keep([self._outputs.measured()])
            self._clock.publish()
            self._outputs.publish_states(self._states)
            self._outputs.repeat_details()

    def _poll(self):
        self._inputs.count_publishers()
        self._on_command()      # the present state may be answered, once it is known who publishes and who no longer
        self._outputs.count_listeners()

    # what services ask for

    def pause(self, paused):
        """Stop time, or let it go on."""
        self.paused = paused
        self._clock.restart()
        if self._clock.lock_step:
            self._waiting = True
            self._on_command()
        else:
            self._inputs.clear()

    def step(self, periods):
        """Do so many periods while paused; why that could not be, or ''."""
        if not self.paused:
            return 'not paused'
        if self._clock.waits:
            return NO_CLOCK.text
        for _ in range(periods):
            if self._plant.state != FAULT:
                self._run(1, single=True)
        return f'FAULT: {self._plant.fault}' if self._plant.fault else ''

    def reset(self, *, state, time):
        """Go back to the start: the machine with its sensors and faults, simulated time; why that failed, or ''."""
        if time:
            self._clock.back_to_start()
        elif state and self._clock.simulated:
            self._clock.advance()       # no stamp stands for two states
        if state:
            self._faults.reset()
            self._environment.reset()
            self._plant.reset()
            self._outputs.reset()
            self._report.forget_fault()
            self._clock.restart()
        self._inputs.clear()
        self._waiting, self._states = True, []
        return self._plant.fault

    def clear_faults(self):
        """End all faults, also those of the schedule that did not begin yet."""
        self._faults.clear()

    # faults

    def _judge_fault(self, given):
        for parameter in given:
            if parameter.name == INJECT and parameter.value:
                try:
                    placed(read_fault(parameter.value), self._faults.targets)
                except PsdynError as error:
                    return SetParametersResult(successful=False, reason=brief(error))
        return SetParametersResult(successful=True)

    def _inject_fault(self, given):
        for parameter in given:
            if parameter.name == INJECT and parameter.value:
                self._faults.inject(parameter.value)

    def _warn_extra(self, names):
        self._node.get_logger().warning(
            f'commands for {brief(", ".join(names))} are passed over: no actuator', throttle_duration_sec=1.0)


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('simulator', Simulator, args)


if __name__ == '__main__':
    sys.exit(main())
