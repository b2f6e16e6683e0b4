"""The node `rig`: stands for a test rig with a real cylinder and its valve, for tests of hardware in the loop.

    ~/load_motion         trajectory_msgs/JointTrajectory  in   one point: what the rod of the cylinder must do
    ~/valve_commands      sensor_msgs/JointState           in   spool position -1 to 1 in `position`, by name
    ~/measured            sensor_msgs/JointState           out  `rate`: force [N] in `effort`, motion of the rod
    ~/measured_pressures  std_msgs/Float64MultiArray       out  `rate`: pressures [Pa] A, B; instead, by `measures`
    /diagnostics          diagnostic_msgs/DiagnosticArray  out  now and then (`report_rate`)
    ~/reset               std_srvs/Trigger                 begins anew at the next motion

The rig begins at the first motion, with the rod where the load is and the force that holds it. Stamps of what it
measures are on the clock of the motions: they tell which instant of the load an answer is for. Without motions the rod
stands still and nothing is measured; without commands the spool goes to neutral. In lock-step commands are stamped as
the state of the machine that they answer.

    ros2 run psdyn_ros rig --ros-args -p cylinder:=lift_cylinder -p hydraulics:=FILE -p robot_description:=FILE \\
        -r '~/load_motion:=/simulator/load_motion/lift_cylinder' -r '~/measured:=/simulator/measured/lift_cylinder'
"""

import math
import sys
import time

from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from ...api.hydraulics.statics import holding_efforts
from ...model.errors import ModelError, PsdynError
from ...model.parameters.hydraulics import read_hydraulics
from ...model.units import SECOND
from ...simulation.rig import HORIZON, CylinderRig
from ..messages import conversions
from ..messages.conversions import MessageError
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, Parameter
from ..runtime.qos import LATEST, RELIABLE
from ..runtime.rejection_log import Rejections
from ..runtime.robot_description import load_machine

JUMP = 0.01             # m between rod and load beyond which the load was put elsewhere


FORCE, PRESSURES = 'force', 'pressures'      # what a rig measures

PARAMETERS = MACHINE + (
    Parameter('hydraulics', '', 'YAML file of the cylinders, valves and supply of the machine'),
    Parameter('cylinder', '', 'the cylinder that is on the rig'),
    Parameter('measures', FORCE, 'what is measured; of light loads rather pressures, since friction that '
                         'comes late chatters', choices=(FORCE, PRESSURES)),
    Parameter('rate', 500.0, 'Hz at which the rig steps and measures', 50.0, 5000.0),
    Parameter('substeps', 2, 'integration steps in one step of the rig', 1, 100),
    Parameter('step_on_motion', False, 'lock-step: the rig goes to the instant of each motion and measures '
                         'there'),
    Parameter('bandwidth', 200.0, 'rad/s with which the rod follows the load', 10.0, 2000.0),
    Parameter('initial_force', math.nan, 'N with which the cylinder begins; nan: what holds the machine at '
                         'its initial position'),
    Parameter('ttl', 0.02, 's without a command after which the spool goes to neutral', 0.001, 10.0),
)


class Rig:
    """Puts a `CylinderRig` on a node: motion and commands in, time, measurements out."""

    def __init__(self, node):
        self._node = node
        p = parameters.declare(node, PARAMETERS)
        machine = load_machine(node, p)
        if not p.hydraulics:
            raise ModelError("parameter 'hydraulics' is empty: expected the YAML file that has the cylinder")
        hydraulics = read_hydraulics(p.hydraulics, machine.actuators)
        rigs = [CylinderRig(machine, hydraulics, p.cylinder, period=1.0 / p.rate, substeps=p.substeps,
                            bandwidth=p.bandwidth) for _ in range(2)]
        deadlines.require_rate(p.rate, rigs[0].step, 'one step of the rig')
        self._rig, self._cylinder, self._lock_step = rigs[1], p.cylinder, p.step_on_motion
        self._force = p.initial_force if math.isfinite(p.initial_force) else _holding_force(machine, p.cylinder)
        self._ttl = round(p.ttl * SECOND)
        self._offset = None             # ns on the clock of the motions at which the time of the rig is zero
        self._command = 0.0
        self._commanded = -self._ttl    # ns when it came, steady; in lock-step the instant of the load that it answers
        self._due = None                # in lock-step: (ns, steady, when it came, stamp) of a motion not yet followed
        self._fault = ''
        self._deadlines = deadlines.Deadlines(round(SECOND / p.rate), 0.05 * SECOND)
        self._rejections = Rejections(node.get_logger().warning)
        if p.measures == FORCE:
            self._force_writer = conversions.JointStateWriter((p.cylinder,))
            self._publisher, self._fill = node.create_publisher(JointState, '~/measured', RELIABLE), self._fill_force
        else:
            self._pressure_writer = conversions.LabelledArrayWriter(('pressure_a', 'pressure_b'))
            self._publisher = node.create_publisher(Float64MultiArray, '~/measured_pressures', RELIABLE)
            self._fill = self._fill_pressures
        self._diagnostics = diagnostics.publisher(node)
        for topic, kind, read in (('load_motion', JointTrajectory, self._on_motion),
                                  ('valve_commands', JointState, self._on_command)):
            node.create_subscription(kind, f'~/{topic}', self._rejections.checked(topic, read), LATEST)
        node.create_service(Trigger, '~/reset', self._on_reset)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        if not p.step_on_motion:
            node.create_timer(1.0 / p.rate, self._tick, clock=steady)
        else:
            node.create_timer(p.ttl, self._follow, clock=steady)
        node.create_timer(1.0 / p.report_rate, self._report, clock=steady)
        node.get_logger().info(f'{p.cylinder} on the rig, at {p.rate:g} Hz, {self._force:.6g} N at first')

    def _on_motion(self, msg):
        if list(msg.joint_names) != [self._cylinder] or len(msg.points) != 1:
            raise MessageError(f"{len(msg.points)} points of {list(msg.joint_names)!s:.80}; expected one of "
                               f"['{self._cylinder}']")
        point = msg.points[0]
        rows = point.positions, point.velocities, point.accelerations
        if any(len(row) != 1 for row in rows):
            raise MessageError('expected position, velocity and acceleration')
        stamp = conversions.stamp_to_ns(msg.header.stamp)
        if not stamp:
            raise MessageError('no stamp: nobody could tell which instant it is of')
        position, velocity, acceleration = (row[0] for row in rows)
        if self._offset is None or abs(position - self._rig.position) > JUMP:
            self._begin(stamp, position, velocity)
        if abs(stamp - self._present()) > HORIZON * SECOND:
            self._offset += stamp - self._present()     # the other side lost time, or paused
        self._rig.impose((stamp - self._offset) / SECOND, position, velocity, acceleration)
        if self._lock_step:
            self._due = time.monotonic_ns(), stamp
            self._follow()

    def _follow(self):
        """In lock-step: go to the instant of the last motion, once the commands for the present came, or `ttl` is over.

        They may come after the motion that follows from them, on another topic.
        """
        if self._due is None:
            return
        came, stamp = self._due
        if 0 < self._present() - self._commanded <= self._ttl and time.monotonic_ns() - came < self._ttl:
            return
        self._due = None
        self._step(max(0, round((stamp - self._present()) / (self._rig.period * SECOND))))

    def _begin(self, stamp, position, velocity):
        self._rig.reset(position, velocity, self._force)
        self._offset, self._fault = stamp, ''
        self._deadlines.restart()

    def _present(self):
        """ns of the rig's time on the clock of the motions."""
        return self._offset + round(self._rig.time * SECOND)

    def _on_command(self, msg):
        if self._cylinder in msg.name:
            conversions.check_lengths(msg, {'position'})
            value = msg.position[msg.name.index(self._cylinder)]
            if not math.isfinite(value):
                raise MessageError(f'the command is {value:g}, not finite')
            self._command = value
        elif not self._lock_step:
            return
        self._commanded = time.monotonic_ns()
        if self._lock_step:
            unstamped = 0 if self._offset is None else self._present()
            self._commanded = conversions.stamp_to_ns(msg.header.stamp) or unstamped
            self._follow()

    def _on_reset(self, request, response):
        self._offset, self._due, self._fault = None, None, ''
        self._commanded = -self._ttl
        response.success, response.message = True, 'begins at the next motion'
        return response

    def _tick(self):
        now = time.monotonic_ns()
        if self._offset is None or self._fault:
            return
        periods = self._deadlines.due(now)
        if periods:
            self._step(periods)

    def _step(self, periods):
        now = self._present() if self._lock_step else time.monotonic_ns()
        command = self._command if now - self._commanded <= self._ttl else 0.0
        try:
            for _ in range(periods):
                self._rig.step(command)
        except PsdynError as error:
            self._fault = str(error)
            return
        if not self._rig.stale:
            self._publisher.publish(self._fill())

    def _fill_force(self):
        writer, rig = self._force_writer, self._rig
        writer.position[0], writer.velocity[0], writer.effort[0] = rig.position, rig.velocity, rig.force
        return writer.stamp(self._present())

    def _fill_pressures(self):
        self._pressure_writer.values[:] = self._rig.pressures
        return self._pressure_writer.message

    def _state(self):
        """(level, summary) of diagnostics."""
        if self._fault:
            return 'error', f'FAULT: {self._fault}'
        if self._offset is None:
            return 'warn', 'waiting for a motion'
        return ('warn', 'standing still: no motion') if self._rig.stale else ('ok', 'following')

    def _report(self):
        rig, rejected = self._rig, self._rejections
        level, summary = self._state()
        self._diagnostics(conversions.diagnostics_msg(
            time.time_ns(), f'{self._node.get_name()}: {self._cylinder}', level, summary, {
                'force [N]': rig.force, 'position [m]': rig.position, 'spool': rig.spool,
                'overruns': self._deadlines.overruns, 'lost time [s]': self._deadlines.slipped / SECOND,
                **rejected.values()}))


def _holding_force(machine, cylinder):
    """N with which the cylinder holds the machine at its initial position."""
    return float(holding_efforts(machine, machine.initial_position)[machine.actuators.index(cylinder)])


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('rig', Rig, args)


if __name__ == '__main__':
    sys.exit(main())
