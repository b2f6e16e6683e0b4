"""The node `loop_state`: any measured joints that fix every loop in, all joints and the actuators out.

    joint_states       sensor_msgs/JointState           in   any sufficient subset, in any order; NaN: not measured
    pressures          see `pressures.py`               in   of all chambers, with `effort_source: pressures`
    joint_states_full  sensor_msgs/JointState           out  all joints, in the order of the tree; no velocities where
                                                             those measured do not fix them; efforts where some are
                                                             known: NaN of other actuators, zero of passive joints
    ~/actuator_states  sensor_msgs/JointState           out  the actuators: strokes, their rates, efforts as above
    /diagnostics       diagnostic_msgs/DiagnosticArray  out  residual of each loop, distance to toggle, margins

Both outputs carry the stamp of the message that they complete. A message that contradicts itself by more than
`closure_tolerance`, that does not fix a loop, or that is no later than the one before is answered by nothing.
"""

import sys
import time

import numpy as np
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState

from ...control.monitors.singularity import toggle_measure
from ...control.offline.state_completion import LoopState
from ...model.errors import PsdynError
from ...model.parameters.hydraulics import read_hydraulics
from ...model.units import SECOND
from ..messages import conversions
from ..messages.conversions import MessageError
from ..messages.pressures import PressureInputs
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, PRESSURE_TOPICS, Parameter
from ..runtime.qos import ADJUSTABLE, RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import Rejections, brief
from ..runtime.robot_description import load_machine

PARAMETERS = MACHINE + (
    Parameter('closure_tolerance', 0.005, 'm or rad by which redundant measured joints may differ', 1e-9, 1.0),
    Parameter('state_timeout', 0.1, 's without a state that can be used after which diagnostics are an error', 0.001,
              10.0),
    Parameter('effort_source', 'message', 'efforts of cylinders: those of the message, or the force of their '
              'pressures, friction of the seals not taken off', choices=('message', 'pressures')),
    Parameter('hydraulics', '', 'YAML file of the cylinders, for efforts from pressures'),
    *PRESSURE_TOPICS,
    Parameter('toggle_warning', 0.15, 'distance to toggle, 0 to 1, below which diagnostics warn', 0.0, 1.0),
    Parameter('margin_warning', 0.0, 'm or rad between an actuator and its limit below which diagnostics warn', -1.0,
              10.0),
)


class LoopStateNode:
    """Puts a `LoopState` on a node."""

    def __init__(self, node):
        self._node = node
        p = self._p = parameters.declare(node, PARAMETERS)
        machine = self._machine = load_machine(node, p)
        self._loops = LoopState(machine, p.closure_tolerance)
        self._actuated = np.array([machine.joints.index(name) for name in machine.actuators], dtype=np.intp)
        self._names = conversions.NameMaps(self._places)
        self._rejections = Rejections(node.get_logger().warning)
        self._timeout = round(p.state_timeout * SECOND)
        self._stamp = self._arrival = 0     # ns, of the last message that was answered
        self._last = None                   # (position (joints,), Completed) of it
        self._refused = None                # (position or None, reason) of the last one, where it was not answered
        self._rejected_before = 0           # at the last report
        self._answered = 0
        self._writers = {}
        self._forces = _Forces(node, machine, p, self._rejections) if p.effort_source == 'pressures' else None
        self._publish_full = node.create_publisher(JointState, 'joint_states_full', RELIABLE, **ADJUSTABLE).publish
        self._publish_actuators = node.create_publisher(JointState, '~/actuator_states', RELIABLE, **ADJUSTABLE).publish
        self._publish_diagnostics = diagnostics.publisher(node)
        node.create_subscription(JointState, 'joint_states', self._on_state, SENSOR_DATA, **ADJUSTABLE)
        node.create_timer(1.0 / p.report_rate, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        node.get_logger().info(f'{machine.name}: {len(machine.joints)} joints from any that fix '
                               f'{", ".join(machine.coordinates)}')

    def _places(self, names):
        """(rows of the joints of the machine that a message has, where it has them)."""
        joints = self._machine.joints
        extra = [name for name in names if name not in joints]
        if extra:
            self._node.get_logger().warning(
                f'states of {brief(", ".join(extra))} are passed over: no joint of this machine')
        rows = [row for row, name in enumerate(joints) if name in names]
        return np.array(rows, dtype=np.intp), np.array([names.index(joints[row]) for row in rows], dtype=np.intp)

    def _on_state(self, msg):
        now, position = time.monotonic_ns(), None
        try:
            conversions.check_lengths(msg, ('position',))
            places = self._names[msg.name]
            position, velocity, effort = (self._spread(places, getattr(msg, field))
                                          for field in ('position', 'velocity', 'effort'))
            stamp = self._in_order(conversions.stamp_to_ns(msg.header.stamp), now)
            completed = self._loops.complete(self._machine.joints, position, velocity)
        except PsdynError as error:
            self._refused = position, str(error)
            self._rejections.add('joint_states', error, now)
            return
        self._stamp, self._arrival, self._refused = stamp, now, None
        self._last = position, completed
        self._answered += 1
        self._publish(stamp, completed, effort[self._actuated] if self._forces is None else self._forces.at(stamp))

    def _spread(self, places, values):
        """(joints,) values of a message in the order of the machine; NaN where it has none."""
        rows, columns = places
        spread = np.full(len(self._machine.joints), np.nan)
        if len(values):
            spread[rows] = np.frombuffer(values)[columns]
        return spread

    def _in_order(self, stamp, now):
        """The stamp, if it is later than that of the last answer, or that one was long ago."""
        if stamp == 0:
            raise MessageError('stamp is zero')
        if stamp <= self._stamp and now - self._arrival <= self._timeout:
            raise MessageError(f'stamp is {(self._stamp - stamp) / SECOND:.3g} s before that of the last state')
        return stamp

    def _publish(self, stamp, completed, effort):
        known = np.isfinite(effort).any()
        full, actuators = self._writer('full', completed, known), self._writer('actuators', completed, known)
        full.position[:] = completed.position
        actuators.position[:] = completed.position[self._actuated]
        if completed.velocity is not None:
            full.velocity[:] = completed.velocity
            actuators.velocity[:] = completed.velocity[self._actuated]
        if known:
            full.effort[self._actuated] = actuators.effort[:] = effort
        self._publish_full(full.stamp(stamp))
        self._publish_actuators(actuators.stamp(stamp))

    def _writer(self, what, completed, known):
        """The JointStateWriter with the fields that are known now."""
        key = what, completed.velocity is not None, bool(known)
        if key not in self._writers:
            fields = ['position', *['velocity'] * key[1], *['effort'] * key[2]]
            names = self._machine.joints if what == 'full' else self._machine.actuators
            self._writers[key] = conversions.JointStateWriter(names, fields)
        return self._writers[key]

    # diagnostics

    def _report(self):
        now, p, rejected = time.monotonic_ns(), self._p, self._rejections
        fresh = self._arrival and now - self._arrival <= self._timeout
        values = {'answered messages': self._answered, 'rejected messages': rejected.total}
        warnings = []
        if rejected.total > self._rejected_before:
            warnings.append(f'{rejected.total - self._rejected_before} messages rejected')
        self._rejected_before = rejected.total
        if self._last is not None:
            warnings += self._place(values, p)
        if self._refused is not None:
            level, summary = 'error', self._explained(values)
        elif not fresh:
            level, summary = 'error', 'no state' if self._last is None else 'no state any more'
        else:
            level, summary = ('warn', '; '.join(warnings)) if warnings else ('ok', 'complete')
        self._publish_diagnostics(conversions.diagnostics_msg(
            deadlines.clock_of(self._node)(), f'{self._node.get_name()}: loops', level, summary, values))

    def _place(self, values, p):
        """Fill in where the machine last was; what is to be warned of."""
        position, completed = self._last
        warnings = [completed.rates] if completed.rates else []
        for loop, residual in self._loops.residuals(self._machine.joints, position).items():
            values[f'residual of {loop} [m or rad]'] = float(residual)
        distance, joint = toggle_measure(self._machine, completed.x)
        if joint:
            values['distance to toggle'], values['nearest to toggle'] = distance, joint
            if distance < p.toggle_warning:
                warnings.append(f'{joint} is near its toggle point: {distance:.2g}')
        for name, margin in self._loops.margins(completed.x).items():
            values[f'margin of {name} [m or rad]'] = margin
            if margin < p.margin_warning:
                warnings.append(f'{name} is {margin:.3g} from its limit' if margin >= 0.0
                                else f'{name} is beyond its limit by {-margin:.3g}')
        if self._forces is not None and self._forces.trouble:
            warnings.append(self._forces.trouble)
        return warnings

    def _explained(self, values):
        """Why the last message was not answered; of contradicting joints which ones they are."""
        position, reason = self._refused
        said = [reason]
        for suspicion in [] if position is None else self._loops.suspicions(self._machine.joints, position):
            if suspicion.loop:
                values[f'residual of {suspicion.loop} [m or rad]'] = float(suspicion.residual)
            where = f"loop '{suspicion.loop}', {suspicion.residual:.3g}" if suspicion.loop else 'the machine'
            joints = ' or '.join(suspicion.joints)
            said.append(f'{where}: without {joints} the other joints agree within {suspicion.rest:.2g}'
                        if np.isfinite(suspicion.rest) else f'{where}: no one of {joints} alone explains it')
            values['contradicting joints'] = ', '.join(suspicion.joints)
        return '; '.join(said)


class _Forces:
    """Forces of cylinders by their chamber pressures."""

    def __init__(self, node, machine, p, rejections):
        if not p.hydraulics:
            raise parameters.ParameterError("parameter effort_source: 'pressures' needs the parameter hydraulics")
        cylinders = read_hydraulics(p.hydraulics, machine.actuators).cylinders
        self._rows = [machine.actuators.index(name) for name in cylinders]
        self._areas = np.array([[cylinder.area_a, -cylinder.area_b] for cylinder in cylinders.values()])
        self._count = len(machine.actuators)
        self._oldest = round(p.state_timeout * SECOND)
        self._last = None       # (stamp in ns, pressures (cylinders, 2) in Pa)
        self.trouble = ''       # why they are not known
        PressureInputs(node, tuple(cylinders), p.pressure_source, p.pressure_topic, take=self._take,
                       reject=lambda error: rejections.add('pressures', error, time.monotonic_ns()))

    def _take(self, stamp, pressures, supply):
        self._last = stamp, pressures

    def at(self, stamp):
        """(actuators,) N about the time of a stamp [ns]; NaN of those that no cylinder drives, or of all."""
        force = np.full(self._count, np.nan)
        if self._last is None:
            self.trouble = 'efforts are not known: no pressures came'
        elif abs(stamp - self._last[0]) > self._oldest:
            self.trouble = (f'efforts are not known: the last pressures are {(stamp - self._last[0]) / SECOND:.3g} s '
                            'older than the state')
        else:
            self.trouble = ''
            force[self._rows] = (self._last[1] * self._areas).sum(axis=1)
        return force


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('loop_state', LoopStateNode, args)


if __name__ == '__main__':
    sys.exit(main())
