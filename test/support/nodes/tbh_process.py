"""What controller_manager does with joint_state_topic_hardware_interface and forward_command_controller, as a process.

`python -m support.nodes.tbh_process --ros-args -p urdf:=FILE -p controllers_file:=FILE -p active:=valve_controller`

Written from the rules of these packages, for tests where they are not installed:

* each <ros2_control> block with the plugin is a system: it subscribes to its states as sensor data, publishes its
  commands with depth 1, and looks at the last state message only;
* joints are matched by name.  An array of a message that is not empty is looked up at the place of each name that the
  block has, and one that is too short ends the process; so does a value for an interface that the joint does not have.
  What is not finite is skipped;
* state interfaces are NaN, or their `initial_value`, until a message sets them; commands are NaN until a controller
  sets them;
* commands are sent where the sum of |state - command| over all command interfaces is not at most
  `trigger_joint_command_threshold`, so always with -1, and always where one of them is NaN;
* a message of commands names every joint of its block.  As released (1.1.0) each array has one entry for each joint
  that has the interface; with `fill:=true`, as proposed to its authors, one for each name, NaN without the interface;
* a cycle reads, updates the controllers, writes.  Each command interface belongs to one active controller; one that
  forwards drops messages of wrong length or with entries that are not finite.

Controllers are not activated before every state of their joints is known.
"""

import math
import sys
from pathlib import Path
from xml.etree import ElementTree

import yaml
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from psdyn_ros.nodes.runtime.executor import run

PLUGIN = 'joint_state_topic_hardware_interface/JointStateTopicSystem'
FORWARD = 'forward_command_controller/ForwardCommandController'
FIELDS = ('position', 'velocity', 'effort')
NAN = float('nan')


class System:
    """One <ros2_control> block; `states` and `commands` by (joint, interface)."""

    def __init__(self, node, block, fill):
        self.name, self._fill = block.get('name'), fill
        plugin = block.findtext('hardware/plugin').strip()
        if plugin != PLUGIN:
            raise ValueError(f"block '{self.name}' has the plugin '{plugin}'")
        parameters = {param.get('name'): param.text for param in block.findall('hardware/param')}
        self._threshold = float(parameters.get('trigger_joint_command_threshold', 1e-5))
        self._node = node
        self._last = JointState()
        self._joints = [joint.get('name') for joint in block.findall('joint')]
        self.states, self.commands = {}, {}
        for joint in block.findall('joint'):
            for state in joint.findall('state_interface'):
                self.states[joint.get('name'), state.get('name')] = float(
                    state.findtext("param[@name='initial_value']", NAN))
            for command in joint.findall('command_interface'):
                self.commands[joint.get('name'), command.get('name')] = NAN
        self.known = set()      # states that a message has set
        self._publisher = node.create_publisher(
            JointState, parameters.get('joint_commands_topic', '/robot_joint_commands'), QoSProfile(depth=1))
        node.create_subscription(JointState, parameters.get('joint_states_topic', '/robot_joint_states'), self._keep,
                                 qos_profile_sensor_data)

    def _keep(self, msg):
        self._last = msg

    def read(self):
        """Take over the last states."""
        for i, joint in enumerate(self._last.name):
            if joint not in self._joints:
                continue
            for field in FIELDS:
                values = getattr(self._last, field)
                if len(values) and math.isfinite(values[i]):
                    if (joint, field) not in self.states:
                        raise KeyError(f"joint '{joint}' has no state interface '{field}'")
                    self.states[joint, field] = values[i]
                    self.known.add((joint, field))

    def write(self):
        """Send the commands, if they are far enough from the states."""
        difference = sum(abs(self.states[key] - command) for key, command in self.commands.items())
        if difference <= self._threshold:
            return
        msg = JointState(name=self._joints)
        msg.header.stamp = self._node.get_clock().now().to_msg()
        for field in FIELDS:
            row = [self.commands.get((joint, field), NAN) for joint in self._joints
                   if self._fill or (joint, field) in self.commands]
            if any(interface == field for _, interface in self.commands):
                setattr(msg, field, row)
        self._publisher.publish(msg)


class ForwardController:
    """forward_command_controller: an array goes to one interface of each of its joints."""

    def __init__(self, node, name, parameters, systems):
        self._interfaces = [(joint, parameters['interface_name']) for joint in parameters['joints']]
        self._systems = []
        for interface in self._interfaces:
            owners = [system for system in systems if interface in system.commands]
            if len(owners) != 1:
                raise LookupError(f"{name}: {len(owners)} systems have the command interface {'/'.join(interface)}")
            self._systems += owners
        self._command = None
        node.create_subscription(Float64MultiArray, f'/{name}/commands', self._keep, 1)

    @property
    def interfaces(self):
        return self._interfaces

    def ready(self):
        """Whether every state of its joints is known."""
        return all(key in system.known for (joint, _), system in zip(self._interfaces, self._systems, strict=True)
                   for key in system.states if key[0] == joint)

    def _keep(self, msg):
        if len(msg.data) == len(self._interfaces) and all(map(math.isfinite, msg.data)):
            self._command = list(msg.data)

    def update(self):
        """Set its command interfaces, once there was a message."""
        if self._command is not None:
            for interface, system, value in zip(self._interfaces, self._systems, self._command, strict=True):
                system.commands[interface] = value


class Manager:
    """controller_manager: systems from a URDF, active controllers from a file, and the cycle."""

    def __init__(self, node):
        blocks = ElementTree.fromstring(Path(_parameter(node, 'urdf', '')).read_text()).findall('ros2_control')
        fill = _parameter(node, 'fill', False)
        self._systems = [System(node, block, fill) for block in blocks]
        file = yaml.safe_load(Path(_parameter(node, 'controllers_file', '')).read_text())
        manager = file['controller_manager']['ros__parameters']
        self._waiting, claimed = [], set()
        for name in _parameter(node, 'active', '').split():
            if manager[name]['type'] != FORWARD:
                raise ValueError(f"controller '{name}' is not a {FORWARD}")
            controller = ForwardController(node, name, file[name]['ros__parameters'], self._systems)
            if claimed & set(controller.interfaces):
                raise ValueError(f"controller '{name}': another one has its interfaces")
            claimed |= set(controller.interfaces)
            self._waiting.append((name, controller))
        self._active = []
        self._node = node
        node.create_timer(1.0 / manager['update_rate'], self._cycle)

    def _cycle(self):
        for system in self._systems:
            system.read()
        for entry in [entry for entry in self._waiting if entry[1].ready()]:
            self._waiting.remove(entry)
            self._active.append(entry[1])
            self._node.get_logger().info(f'{entry[0]} is active')
        for controller in self._active:
            controller.update()
        for system in self._systems:
            system.write()


def _parameter(node, name, default):
    return node.get_parameter_or(name, Parameter(name, value=default)).value


def main():
    """Run until a signal comes; an exception is the end, with code 70."""
    return run('controller_manager', Manager)


if __name__ == '__main__':
    sys.exit(main())
