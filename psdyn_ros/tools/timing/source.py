"""The machine whose states loops under measurement receive: it stands still, and they come at a steady rate."""

import time
from typing import NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray

from ...api.hydraulics.statics import equilibrium_state, hydraulic_records
from ...api.manipulator import Manipulator
from ...control.safety.fault_table import State
from ...model.parameters.hydraulics import Hydraulics
from ...model.units import SECOND
from ...nodes.controller.loop import ControlLoop
from ...nodes.controller.publishers import STATE
from ...nodes.messages import conversions
from ...nodes.simulator.publishers import TELEMETRY

NEWEST = 1              # depth of publishers and subscriptions
STOP_PERIOD = 0.02      # s between two messages of the emergency stop


class Machine(NamedTuple):
    """What the states are of.

    manipulator  it
    hydraulics   that drive it
    pressures    (cylinders, 2) Pa gauge that hold it where it is
    """

    manipulator: Manipulator
    hydraulics: Hydraulics
    pressures: np.ndarray


class Source:
    """Publishes states of a machine for one loop, and receives its commands, by name, without reading them.

    name  of the node with the loop
    """

    def __init__(self, node, name, machine, rate):
        m, cylinders = machine.manipulator, tuple(machine.hydraulics.cylinders)
        joints, position, velocity, _ = m.joint_state(m.initial_position, np.zeros(m.dof))
        self._state = conversions.JointStateWriter(joints)
        self._state.position[:], self._state.velocity[:] = position, velocity
        self._telemetry = conversions.LabelledArrayWriter(cylinders, TELEMETRY)
        values = self._telemetry.values
        values[:, [TELEMETRY.index('pressure_a'), TELEMETRY.index('pressure_b')]] = machine.pressures
        values[:, TELEMETRY.index('supply_pressure')] = machine.hydraulics.supply.pressure
        self._stamps = values[:, TELEMETRY.index('stamp')]
        self._publish_state = node.create_publisher(JointState, f'/{name}/joint_states', NEWEST).publish
        self._publish_pressures = node.create_publisher(Float64MultiArray, f'/{name}/pressures', NEWEST).publish
        self._publish_stop = node.create_publisher(Bool, f'/{name}/emergency_stop', NEWEST).publish
        self._stop, self._stopped = Bool(data=False), 0
        self.sent = self.received = 0
        node.create_subscription(JointState, f'/{name}/joint_commands', self._count, NEWEST, raw=True)
        self._last_state = None         # of a controller, as it came
        node.create_subscription(Float64MultiArray, f'/{name}/state', self._keep_state, NEWEST, raw=True)
        self.loop = ControlLoop(round(SECOND / rate), self._send)

    def _send(self, now, dt):
        if now - self._stopped >= STOP_PERIOD * SECOND:
            self._stopped = now
            self._publish_stop(self._stop)
        stamp = time.time_ns()
        self._stamps[:] = stamp / SECOND
        self._publish_pressures(self._telemetry.message)
        self._publish_state(self._state.stamp(stamp))
        self.sent += 1

    def _count(self, raw):
        self.received += 1

    def _keep_state(self, raw):
        self._last_state = raw

    def forget_state(self):
        """What the controller said of itself is out of date."""
        self._last_state = None

    @property
    def state(self):
        """The sub-state that the controller was last in; None where it said nothing."""
        if self._last_state is None:
            return None
        return State(int(deserialize_message(self._last_state, Float64MultiArray).data[STATE.index('state')]))


def standing(manipulator, hydraulics):
    """The `Machine`, held where it starts."""
    fluid = equilibrium_state(manipulator, hydraulics, *hydraulic_records(manipulator, hydraulics),
                              manipulator.initial_position)[0]
    return Machine(manipulator, hydraulics, fluid[:, :2])
