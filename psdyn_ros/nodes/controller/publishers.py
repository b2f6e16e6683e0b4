"""What a controller publishes: commands, the reference, its sub-state, statistics, diagnostics."""

import math

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ...control.safety.fault_table import State
from ...model.parameters.safety import BRAKE
from ..messages.commands import FIELDS
from ..messages.conversions import LEVELS, JointStateWriter, LabelledArrayWriter, ReferenceWriter, diagnostics_msg
from ..runtime import diagnostics
from ..runtime.qos import ADJUSTABLE, LATEST, RELIABLE
from .cycle_statistics import STATISTICS

STATE = ('state', 'valid', 'enabled', 'feedforward', 'speed', 'cycle')
LEVEL = {State.DEGRADED: 'warn', State.STOPPING: 'error', State.SAFE: 'error'}


class ControllerOutputs:
    """Publishes the outputs of the core, each topic by one message that is filled again and again.

    Sub-state and reference are made only where somebody listens.

    node         to publish on
    machine      the Manipulator
    declaration  `SafetyDeclaration`
    """

    def __init__(self, node, machine, declaration):
        self._node = node
        self._names, self._interfaces = declaration.actuators, declaration.interfaces
        # with a brake among the safe outputs an array, which cannot leave anything out, would release it
        self._ordered = BRAKE not in declaration.safe_kind
        self._commands = LabelledArrayWriter(self._names)
        self._reference = ReferenceWriter(machine.coordinates)
        self._state = LabelledArrayWriter(('control',), STATE)
        self._statistics = LabelledArrayWriter(('control cycle',), STATISTICS)
        self._writers = {}              # which actuators have a command, as bytes -> `_CommandWriter`
        self._whole = _CommandWriter(self._names, self._interfaces, np.ones(len(self._names), dtype=bool))
        self._publishers = [
            node.create_publisher(JointState, '~/joint_commands', LATEST, **ADJUSTABLE),
            node.create_publisher(Float64MultiArray, '~/commands', LATEST),
            node.create_publisher(JointTrajectory, '~/reference', RELIABLE),
            node.create_publisher(Float64MultiArray, '~/state', RELIABLE),
            node.create_publisher(Float64MultiArray, '~/statistics', RELIABLE)]
        (self._publish_joints, self._publish_commands, self._publish_reference, self._publish_state,
         self._publish_statistics) = (publisher.publish for publisher in self._publishers)
        self._array_listeners, self._reference_listeners, self._state_listeners = (
            publisher.get_subscription_count for publisher in self._publishers[1:4])
        self.command_topics = tuple(publisher.topic_name for publisher in self._publishers[:2])
        self.cycles = 0

    def destroy(self):
        """Publish nothing any more."""
        for publisher in self._publishers:
            self._node.destroy_publisher(publisher)

    def wait_for_receivers(self, seconds):
        """Wait until what was published last has been received, each topic at most for so long."""
        for publisher in self._publishers:
            publisher.wait_for_all_acked(Duration(seconds=seconds))

    def commands(self, output):
        """Publish the commands of an `Output` of the core."""
        command, stamp = output.command, output.stamp
        if output.valid:                # it passed the gate, so none is left out
            self._publish_joints(self._whole.fill(command, stamp))
            if self._ordered and self._array_listeners():      # to publish to nobody takes longer than to ask
                self._publish_ordered(command)
            return
        given = command == command      # not NaN
        key = given.tobytes()
        writer = self._writers.get(key)
        if writer is None:
            writer = self._writers[key] = _CommandWriter(self._names, self._interfaces, given)
        if writer.names:
            self._publish_joints(writer.fill(command, stamp))
        if self._ordered and given.all():
            self._publish_ordered(command)

    def _publish_ordered(self, command):
        self._commands.values[:] = command
        self._publish_commands(self._commands.message)

    def state(self, output, core):
        """Publish sub-state and reference that belong to an `Output` of the `ControlCore`."""
        self.cycles += 1
        if self._state_listeners():
            self._state.values[:] = (output.state, output.valid, core.states.enabled, core.law.feedforward_scale,
                                     core.selector.speed, self.cycles)
            self._publish_state(self._state.message)
        if output.desired is not None and self._reference_listeners():
            self._publish_reference(self._reference.fill(output.stamp, *output.desired))

    def statistics(self, values):
        """Publish values in the order of `STATISTICS`."""
        self._statistics.values[:] = values
        self._publish_statistics(self._statistics.message)


class _CommandWriter:
    """A JointState of the actuators that have a command, each in the field of its interface and NaN in others."""

    def __init__(self, names, interfaces, given):
        self.names = [name for name, has in zip(names, given) if has]
        fields = np.array([FIELDS[interface][0] for interface, has in zip(interfaces, given) if has])
        if not self.names:
            return
        used = tuple(dict.fromkeys(fields.tolist()))
        self._writer = JointStateWriter(self.names, used)
        for field in used:
            getattr(self._writer, field)[:] = math.nan
        # (array of the message, place in it, row of the command): of so few numbers quicker than masks of NumPy
        self._places = [(getattr(self._writer.message, field), place, row)
                        for place, (field, row) in enumerate(zip(fields.tolist(), np.flatnonzero(given).tolist()))]

    def fill(self, command, stamp):
        """The message of a command (actuators,) with this stamp [ns]."""
        values = command.tolist()
        for array, place, row in self._places:
            array[place] = values[row]
        return self._writer.stamp(stamp)


class ControllerDiagnostics:
    """Publishes `/diagnostics` about a controller, from before it is configured."""

    def __init__(self, node):
        self._node = node
        self._publish = diagnostics.publisher(node)

    def publish(self, now, lifecycle, refusal, states, values, notes=()):
        """Tell everybody.

        now        ns, ROS
        lifecycle  state of the managed node
        refusal    why the last transition was refused, or ''
        states     `SafetyStates`, None before there is one
        values     {what: figure}
        notes      (level, text) of what is wrong without being a reason for the state
        """
        if states is not None and states.active:
            summary, reasons = states.state.name, list(states.reasons.values())
            worst = LEVEL.get(states.state, 'warn' if reasons else 'ok')
        else:
            summary, reasons = lifecycle, [refusal] if refusal else []
            worst = 'warn' if reasons else 'ok'
        level = max(worst, *(level for level, _ in notes), key=tuple(LEVELS).index) if notes else worst
        text = '; '.join([summary, *reasons, *(text for _, text in notes)])
        self._publish(diagnostics_msg(now, f'{self._node.get_name()}: control', level, text, values))
