"""The managed node `controller`: measured state and reference in, commands of the actuators out.

docs/reference/controller.md says what its states are, what it stops for, and how to commission it.

    joint_states         sensor_msgs/JointState            in   any joints that fix every loop
    pressures            see `pressures.py`                in   of all chambers, for laws on valves
    ~/joint_trajectory   trajectory_msgs/JointTrajectory   in   in any joints that fix the others; stamp zero means now
    ~/point              trajectory_msgs/JointTrajectory   in   its one point, streamed
    ~/payload            geometry_msgs/InertiaStamped      in   on the link `frame_id`, in its axes; mass zero: none
    ~/base_motion/twist, acceleration, imu                 in   TwistStamped, AccelStamped, Imu of the base, in its axes
    ~/imu                       sensor_msgs/Imu            in   of the link `frame_id` that passive joints carry
    ~/emergency_stop     std_msgs/Bool                     in   true stops; so does its absence, where it is required
    ~/joint_commands     sensor_msgs/JointState            out  by name, stamped as the state they answer: effort or
                                                                pressure in `effort`, velocity in `velocity`, valve in
                                                                `position`
    ~/commands           std_msgs/Float64MultiArray        out  the same in the order of the actuators, while heard
    ~/reference          trajectory_msgs/JointTrajectory   out  one point: the reference of that cycle, in coordinates
    ~/state              std_msgs/Float64MultiArray        out  `publishers.STATE` of that cycle
    ~/statistics         std_msgs/Float64MultiArray        out  now and then: `cycle_statistics.STATISTICS`
    /diagnostics         diagnostic_msgs/DiagnosticArray   out  now and then (`report_rate`)
    ~/enable             std_srvs/SetBool                  true: hold the machine where it is; false: stop, stand by
    ~/reset              std_srvs/Trigger                  forget the faults that are gone
    ~/follow_joint_trajectory  control_msgs/FollowJointTrajectory  action, where control_msgs is installed
"""

import sys
import time
from contextlib import nullcontext, suppress

from rcl_interfaces.msg import SetParametersResult
from std_srvs.srv import SetBool, Trigger

from ...control.core.assembly import assemble
from ...control.core.diagnostics import status
from ...control.core.trial import Trial
from ...control.monitors.clock import both_clocks
from ...control.safety.fault_table import Result, State
from ...control.safety.state_machine import SafetyError
from ...model.errors import PsdynError
from ...model.troubleshooting import DEACTIVATING, NOT_ACTIVATED, NOT_CONFIGURED, NOT_RECEIVED
from ...model.units import SECOND
from ..messages.action import action_modules
from ..runtime import deadlines, diagnostics, executor, parameters, realtime
from ..runtime.lifecycle import ACTIVE, UNCONFIGURED, Autostart, ManagedNode
from ..runtime.rejection_log import Rejections, brief
from . import setup as controller_setup
from .follow_joint_trajectory import TrajectoryAction
from .loop import MAX_SILENCE_PERIODS, ControlLoop, DeferredLog
from .parameters import PARAMETERS, Gains
from .publisher_monitor import PublisherMonitor
from .publishers import ControllerDiagnostics, ControllerOutputs
from .subscribers import ControllerInputs
from .trajectory_validation import TrajectoryValidation

GRAPH_CHECK_PERIOD_S = 1.0          # between two checks of who else publishes
MIN_GRAPH_CHECK_PERIOD_NS = SECOND // 20    # the same after a state that contradicts itself
FLUSH_S = 0.01                      # between two lines of the log
STOP_OVERTIME_NS = SECOND           # beyond the declared time of a stop, or of a clock that stands: it is given up
DELIVERY_S = 0.05                   # that receivers have to acknowledge the last output
IDLE_NS = SECOND // 20              # between two cycles while simulated time stands still


class Controller:
    """Puts a control core on a managed node."""

    def __init__(self, node):
        self._node = node
        node.work = self
        p = self._p = parameters.declare(node, PARAMETERS, fixed=False)
        if p.parameter_services:
            node.offer_parameters()
        self._rejections = Rejections(node.get_logger().warning)
        self._diagnostics = ControllerDiagnostics(node)
        self._now = None                # function that gives ns on the clock of the stamps
        self._setup = self.core = self._gains = self._inputs = self._outputs = self.loop = self._validation = None
        self._measured = None           # the newest state that no cycle has taken
        self._last_step = 0             # ns of the last step of the core
        self._not_received = ''         # a note that nobody receives the commands, or ''
        self._action = None             # where control_msgs is installed
        self._services, self.measures = [], ()
        self._rest_deadline = None      # ns on the clock of ages when a stop is given up; None: there is none
        self._rest_progress = 0, 0      # ns on that clock in a stop, and on the steady one when it was so far
        self._failing = False           # it ends because of an exception: only errors of commands count
        self._log = diagnostics.log_function(node)
        self._lines = DeferredLog(self._log)        # of the core, which must not wait for a terminal
        self._reported = -STOP_OVERTIME_NS
        self._autostart = Autostart(node) if p.autostart else None
        if not p.autostart:
            node.get_logger().info(f'waiting for `ros2 lifecycle set {node.get_fully_qualified_name()} configure`')
        node.add_on_set_parameters_callback(self._validate_parameters)
        node.add_post_set_parameters_callback(self._apply_gains)

    # transitions of the managed node

    def configure(self):
        """Read machine, safety declaration and law; nothing is commanded yet."""
        node = self._node
        p = self._p = parameters.declared(node, PARAMETERS)
        self._now = deadlines.clock_of(node)
        try:
            setup = self._setup = controller_setup.build(node, p)
            machine, declaration = setup.config.machine, setup.config.declaration
            trial = Trial(setup.config)
            deadlines.require_rate(p.rate, trial, 'one control cycle')
            trial.stop()
            core = self.core = assemble(setup.config, self._lines)
            self._gains = Gains(node, core.law)
            self._outputs = ControllerOutputs(node, machine.driven_machine, declaration)
            self._validation = TrajectoryValidation(core, p.rate, self._log)
            self._inputs = ControllerInputs(
                node, setup, core, now=self._now, rejections=self._rejections, on_state=self._on_state,
                on_trajectory=self._read_trajectory)
            modules = action_modules()
            if modules is not None:
                self._action = TrajectoryAction(node, core, self._validation, self._rejections, *modules)
            self._services = [node.create_service(SetBool, '~/enable', self._enable),
                              node.create_service(Trigger, '~/reset', self._reset)]
            self._publisher_monitors = (
                ('conflicting_commands', PublisherMonitor(node, self._outputs.command_topics, ours=True)),
                ('conflicting_states', PublisherMonitor(node, self._inputs.state_topics, ours=False)))
            self._restart_loop()
            self.measures = realtime.achieve(p.realtime, p.priority, p.cpus)
        except PsdynError:
            self._release()
            raise
        parameters.warn_of_unknown(node)
        if p.emergency_stop == 'none':
            node.get_logger().warning("emergency_stop: 'none': the silence of ~/emergency_stop stops nothing")
        for measure in self.measures:
            node.get_logger().info(f'realtime {p.realtime}: {measure}')
        interfaces = ', '.join(dict.fromkeys(declaration.interfaces))
        node.get_logger().info(f'{machine.name}: {p.law} of {len(machine.actuators)} actuators, commands: '
                               f'{interfaces}, trigger: {p.trigger}')

    def activate(self):
        """Give the safe output, and let the machine be enabled; SafetyError with every reason against it."""
        self._check_publishers()
        self.core.activate(*both_clocks(self._now))
        self._restart_loop()

    def deactivate(self):
        """Give no output any more; the machine rests, see `rest`."""
        self._end_stop()

    def cleanup(self):
        """Forget everything that `configure` made."""
        self._release()

    def shutdown(self):
        """Forget everything; the machine rests, see `rest`."""
        self._end_stop()
        self._release()

    def rest(self):
        """Begin to bring the machine to rest and to its safe output; `turn` goes on with it."""
        if self._rest_deadline is None:
            now = time.monotonic_ns()
            clock = self.core.inputs.at(now)
            self._rest_progress = clock, now
            self._rest_deadline = clock + self._setup.config.declaration.stop_time_ns + STOP_OVERTIME_NS
            self._validation.forget()
            self.core.deactivate(now)

    def may_end(self):
        """Stop the machine; whether that is done."""
        if self._node.lifecycle != ACTIVE:
            return True
        self.rest()
        return self._rests()

    def _rests(self):
        """Whether a stop came to its end, or takes too long."""
        if self._rest_deadline is None:
            return False
        now = time.monotonic_ns()
        clock = self.core.inputs.at(now)
        if clock != self._rest_progress[0]:
            self._rest_progress = clock, now
        return self.core.finished or clock > self._rest_deadline or now - self._rest_progress[1] > STOP_OVERTIME_NS

    def end(self, failure):
        """The node is not served any more, because of a failure or since it was asked to end."""
        node = self._node
        if node.lifecycle != ACTIVE or not node.context.ok():
            return
        if failure is not None:
            self._failing = True
            self.core.fail(time.monotonic_ns(), f'{type(failure).__name__}: {failure}')
            self.rest()
            self._stop_unserved()
        self._end_stop()

    def _stop_unserved(self):
        """Give the last outputs without the executor, hence without measurements: safe ones after a failure."""
        last = time.monotonic_ns()
        while not self._rests():
            time.sleep(self.loop.period / SECOND)
            now = time.monotonic_ns()
            self._cycle(now, (now - last) / SECOND)
            last = now

    def _end_stop(self):
        if self._node.lifecycle != ACTIVE:
            return
        # a process that ends takes with it what its receivers do not have yet
        with suppress(Exception):       # of a middleware that cannot tell
            self._outputs.wait_for_receivers(DELIVERY_S)
        self._lines.flush_all()
        if not self.core.finished and any(map(self._node.count_subscribers, self._outputs.command_topics)):
            self._node.get_logger().error('the stop did not come to its end; the receiver of the commands has to act')
        self._rest_deadline = None
        self._report()

    def _restart_loop(self):
        p = self._p
        loop = self.loop = ControlLoop(round(SECOND / p.rate), self._cycle, p.trigger)
        loop.chore(self._publish_statistics, 1.0 / p.report_rate)
        loop.chore(self._report, 1.0 / p.report_rate)
        self._publisher_check = loop.chore(self._check_publishers, GRAPH_CHECK_PERIOD_S)
        loop.chore(self._collect_garbage, GRAPH_CHECK_PERIOD_S)
        loop.chore(self._lines.flush, FLUSH_S)
        loop.chore(self._check_trajectory, 0.0, 4 * loop.period)     # somebody waits for it

    def _release(self):
        node = self._node
        for part in (self._action, self._inputs, self._outputs):
            if part is not None:
                part.destroy()
        for service in self._services:
            node.destroy_service(service)
        gains, self._services, self._action = self._gains, [], None
        self._setup = self.core = self._gains = self._inputs = self._outputs = self.loop = self._validation = None
        self._measured = self._rest_deadline = None
        self._not_received = ''
        # last: values that stay are declared again, and judged as of a node that is not configured
        if gains is not None:
            gains.forget()
        parameters.release_all(node, 'output.')

    # control

    def turn(self):
        """Run the cycle and chores that are due; return the longest time [s] to wait for the next callback."""
        if self._node.failure is not None:
            raise self._node.failure
        if self._autostart is not None:
            self._autostart.turn()
            if self._autostart.over:
                self._autostart = None
        seconds = executor.WAKE_UP if self._autostart is None else Autostart.PERIOD
        if self.loop is None:
            self._report_if_due()
            return seconds
        seconds = min(seconds, self.loop.turn())
        if self._rests():
            self._node.rested()
        return seconds

    def _on_state(self, measured, began):
        self._measured = measured
        if self._p.trigger == 'state':
            self.loop.request(began)

    def _cycle(self, now, dt):
        inputs, core = self._inputs, self.core
        if self._measured is None and self._time_stands(now):
            return
        self._last_step = now
        inputs.move_base(dt)
        inputs.take_point()
        measured, self._measured = self._measured, None
        began = time.monotonic_ns()
        output = core.step(*both_clocks(self._now), measured)
        if measured is not None and core.refused:
            self._rejections.add('joint_states', core.refused, began)
            self._publisher_check.hasten(MIN_GRAPH_CHECK_PERIOD_NS)     # perhaps another node publishes states
        if output is None:
            return
        computed = time.monotonic_ns()
        self._outputs.commands(output)
        published = time.monotonic_ns()
        self.loop.published(max(0, self._now() - output.stamp), published - computed, computed - began)
        with suppress(Exception) if self._failing else nullcontext():
            self._outputs.state(output, core)
            if self._action is not None:
                self._action.update(output)

    def _time_stands(self, now):
        """Return whether simulated time has not passed since the last step: a plant in lock-step waits for no other.

        A step that repeats an answer would count its period twice where /clock is ahead of the state.
        """
        return (self._p.trigger == 'state' and self._setup.config.simulated_time and now - self._last_step < IDLE_NS
                and self._now() - self.core.inputs.stamp < MAX_SILENCE_PERIODS * self.loop.period)

    def _check_publishers(self):
        """See who else publishes; 0.1 ms for each topic."""
        now = time.monotonic_ns()
        for row, monitor in self._publisher_monitors:
            conflicts = monitor.conflicts()
            self.core.report(now, row, Result.FAIL if conflicts else Result.PASS, conflicts)
        self._check_subscribers()

    def _check_subscribers(self):
        """See whether somebody receives the commands; the log says so when that changes."""
        topics = self._outputs.command_topics
        received = any(map(self._node.count_subscribers, topics))
        self.core.inputs.state_check.commands_received = received
        note = '' if received else NOT_RECEIVED.text.format(
            text=f'no subscriber on {" or ".join(topics)}; expected drives, or a simulator whose joint_commands are '
                 'remapped to this topic')
        if note != self._not_received:
            self._not_received = note
            self._log(*(('warning', note) if note else ('info', 'the commands are received')))

    # services and parameters

    def _enable(self, request, response):
        now = time.monotonic_ns()
        try:
            if self._node.lifecycle != ACTIVE:
                raise SafetyError(NOT_ACTIVATED.text.format(state=self._node.lifecycle))
            if self._rest_deadline is not None:
                raise SafetyError(DEACTIVATING.text)
            if request.data:
                self.core.enable(now)
            else:
                self._validation.forget()
                self.core.disable(now)
        except PsdynError as error:
            return self._answer(response, False, error)
        return self._answer(response, True, 'enabled' if request.data else 'stops and stands by')

    def _reset(self, request, response):
        try:
            if self.core is None:      # an executor still delivers what it has noticed before a clean-up
                raise SafetyError(NOT_CONFIGURED.text.format(state=self._node.lifecycle))
            self.core.reset(time.monotonic_ns())
        except PsdynError as error:
            return self._answer(response, False, error)
        return self._answer(response, True, 'reset')

    def _answer(self, response, success, message):
        response.success, response.message = success, str(message)
        self._log('info' if success else 'warning', response.message)
        return response

    def _read_trajectory(self, reader):
        self._validation.read(reader, self._end_trajectory)

    def _end_trajectory(self, error):
        if error is not None:
            # neither a message that cannot be read nor unknown joints are a `TrajectoryError`
            self._inputs.reject('joint_trajectory', error, getattr(error, 'condition', 'reference_malformed'))
        elif self._action is not None:
            self._action.preempt()

    def _validate_parameters(self, given):
        for parameter in given:
            reason = self._rejection_reason(parameter)
            if reason:
                break
        else:
            reason = self._gains.against({one.name: one.value for one in given}) if self._gains else ''
        if reason and self.core is not None:
            row = 'clock_parameter' if parameter.name == 'use_sim_time' else 'parameter_rejected'
            self.core.report(time.monotonic_ns(), row, Result.FAIL, brief(reason))
        return SetParametersResult(successful=not reason, reason=brief(reason))

    def _rejection_reason(self, parameter):
        """Reason to reject the value of a parameter, or ''."""
        tables = PARAMETERS + (self._gains.table if self._gains else ())
        declared = {one.name: one for one in tables}.get(parameter.name)
        if self._node.lifecycle != UNCONFIGURED and self.core is not None and not (declared and declared.live):
            return f'{parameter.name}: may change only while the node is unconfigured; it is {self._node.lifecycle}'
        try:
            if declared is not None:
                parameters.check_choice(declared, parameter.value)
        except PsdynError as error:
            return str(error)
        return ''

    def _apply_gains(self, given):
        if self._gains is not None and any(parameter.name.startswith('gains.') for parameter in given):
            self._gains.take()

    # reports

    def _report_if_due(self):
        if time.monotonic_ns() - self._reported > SECOND / self._p.report_rate:
            self._report()

    def _check_trajectory(self):
        if self._validation.pending:
            self._validation.advance(time.monotonic_ns())

    def _collect_garbage(self):
        if self.core.states.state is State.STANDBY:
            realtime.collect_young()

    def _publish_statistics(self):
        self._outputs.statistics(self.loop.records.statistics())

    def _report(self):
        self._reported = time.monotonic_ns()
        core, records = self.core, self.loop.records if self.loop is not None else None
        rejected = self._rejections
        values = {'lifecycle': self._node.lifecycle, **rejected.values(),
                  **{f'last rejected {topic}': brief(reason) for topic, reason in rejected.reasons.items()},
                  'resident memory [MiB]': realtime.resident_memory() / 2**20}
        if core is not None:
            values |= {'cycles': records.cycles, 'missed slots': records.missed, 'stalls': records.stalls,
                       'longest run missed': records.longest_missed, 'execution p99 [ms]':
                       float(records.histograms['execution'].percentiles(99.0)[0] * 1e3), **status(core)}
        self._diagnostics.publish(time.time_ns() if self._now is None else self._now(), self._node.lifecycle,
                                  self._node.refusal, None if core is None else core.states, values, self._notes())

    def _notes(self):
        """(level, text) of what is wrong without being a reason for the sub-state."""
        notes = [('warn', self._not_received)] if self._not_received else []
        if self._inputs is not None and self._inputs.base.stale:
            notes.append(('warn', 'the motion of the base stopped coming: it is taken to be at rest'))
        return notes


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('controller', Controller, args, make=ManagedNode)


if __name__ == '__main__':
    sys.exit(main())
