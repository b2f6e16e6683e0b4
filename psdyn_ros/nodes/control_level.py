"""What the controller commands: efforts, or valves and efforts, each with its laws, its gains and its messages."""

import time

import numpy as np

from ..control.computed_torque import LAWS
from ..control.trajectory import Waypoints
from . import conversions, parameters, pressures
from .conversions import SECOND
from .parameters import ParameterError


class ForceLevel:
    """Efforts of all actuators, by a law of `LAWS`."""

    def __init__(self, node, machine, p):
        self._node, self._machine, self._law_name = node, machine, p.law
        self._table = parameters.gains(machine, p.bandwidth)
        self._gains = parameters.declare_map(node, self._table)
        self.law = self._make()
        self._message = conversions.JointStateWriter(machine.actuators, ('effort',))

    def _make(self):
        return LAWS[self._law_name](self._machine, self._gains[0::2], self._gains[1::2])

    def rehearsal(self, reader):
        """What one cycle costs, messages aside, as a function to call."""
        law = self._make()
        state = rehearsed(law, reader)
        return lambda: law.update(0.5, *state())

    def command(self, stamp, t, x, xd):
        """Efforts (actuators,) for the state x, xd of time t [s], and the JointState with this stamp [ns]."""
        force = self.law.update(t, x, xd)
        self._message.effort[:] = force
        return force, self._message.stamp(stamp)

    def take_gains(self):
        """Use the present values of the parameters."""
        self._gains = [self._node.get_parameter(parameter.name).value for parameter in self._table]
        self.law.set_gains(self._gains[0::2], self._gains[1::2])


class ValveLevel:
    """Commands of valves by a law on valves, efforts of the actuators that no cylinder drives."""

    def __init__(self, node, machine, p, clock, rejections):
        # without hydraulics nobody waits for its kernels
        from ..control.valve_control import ValveControl
        from ..control.valve_pid import ValvePid
        from ..model.hydraulics import read_hydraulics
        hydraulics = read_hydraulics(p.hydraulics, machine.actuators)
        self._node, self._clock, self._oldest = node, clock, p.state_timeout
        self._kind = dict(zip(parameters.VALVE_LAWS, (ValveControl, ValvePid)))[p.law]
        self._actuators = tuple(machine.actuators)
        self._arguments = machine, hydraulics, 1.0 / p.rate
        self._options = {'delay': p.command_delay, 'bandwidth': p.valve_bandwidth or None,
                         'effort_bandwidth': p.bandwidth}
        self.law = self._make()
        self._table = parameters.valve_gains(machine.actuators, hydraulics.cylinders, self.law.gains)
        self._set_gains(parameters.declare_map(node, self._table))
        self._pressures = pressures.Pressures(
            node, tuple(hydraulics.cylinders), p.pressure_source, p.pressure_topic,
            monitor=lambda: pressures.pressure_monitor(p.rate, p.state_timeout, p.max_clock_skew), clock=clock,
            steady=time.monotonic_ns, reject=rejections.add)
        self._message = conversions.JointStateWriter(machine.actuators, ('position', 'effort'))
        self._on_valve = np.array([name in hydraulics.cylinders for name in machine.actuators])

    def _make(self):
        return self._kind(*self._arguments, **self._options)

    def rehearsal(self, reader):
        """As that of `ForceLevel`."""
        law = self._make()
        state = rehearsed(law, reader)
        pressure = np.full((len(law.cylinders), 2), 0.5 * float(law.supply['pressure'][0]))
        return lambda: law.update(0.5, *state(), pressure)

    def command(self, stamp, t, x, xd):
        """As that of `ForceLevel`, -1 to 1 of valves.

        In the message they are positions of the cylinders, and efforts are those of the others; NaN where neither is.
        Raises PressureError where there are no fresh pressures.
        """
        age = min(max((self._clock() - stamp) / SECOND, 0.0), self._oldest)
        measured = self._pressures.fresh()
        command = self.law.update(t, x, xd, measured, age, self._pressures.supply)
        self._message.position[:] = np.where(self._on_valve, command, np.nan)
        self._message.effort[:] = np.where(self._on_valve, np.nan, command)
        return command, self._message.stamp(stamp)

    def take_gains(self):
        """Use the present values of the parameters."""
        self._set_gains([self._node.get_parameter(parameter.name).value for parameter in self._table])

    def _set_gains(self, values):
        self.law.set_gains(parameters.changed_gains(self.law.gains, self._actuators, self._table, values))


def level_of(node, machine, p, clock, rejections):
    """`ForceLevel` or `ValveLevel`, as the law asks for; ParameterError where law and hydraulics do not go together."""
    on_valves = p.law in parameters.VALVE_LAWS
    if on_valves and not p.hydraulics:
        raise ParameterError(f"parameter law: '{p.law}' commands valves and needs the parameter hydraulics")
    if p.hydraulics and not on_valves:
        raise ParameterError(f"parameter hydraulics: the law '{p.law}' commands efforts and has no use for it; "
                             f'expected one of {", ".join(parameters.VALVE_LAWS)}')
    return ValveLevel(node, machine, p, clock, rejections) if on_valves else ForceLevel(node, machine, p)


def rehearsed(law, reader):
    """Let a law follow a trajectory; a function that reads a message in which all joints are measured."""
    machine = law.manipulator
    state = conversions.JointStateWriter(machine.joints)
    state.position[:] = machine.joint_state(machine.initial_position)[1]
    law.reference.hold(machine.initial_position)
    law.reference.follow(Waypoints(machine.coordinates, [1.0], [machine.initial_position]), 0.0)
    return lambda: reader.read(state.message)
