"""Messages about a plant, each made once and refilled."""

from importlib import import_module
from operator import attrgetter

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import FluidPressure

from ...api.orientation import quaternion
from ...model.units import ATMOSPHERE
from ..messages.conversions import ReferenceWriter, ns_to_stamp, view


class DynamicsWriter(ReferenceWriter):
    """A JointTrajectory of one point: motion of joints, and what their actuators do, at the time of its stamp.

    `position`, `velocity`, `acceleration`, `effort` are (n,) views of `message`; without effort the last is None.
    """

    def __init__(self, joints, effort=True):
        super().__init__(joints)
        self.effort = view(self.message.points[0], 'effort', len(joints)) if effort else None

    def stamp(self, ns):
        """The message with this stamp."""
        ns_to_stamp(ns, self.message.header.stamp)
        return self.message


class WrenchWriter:
    """A WrenchStamped in the axes of a frame."""

    def __init__(self, frame):
        self._message = WrenchStamped()
        self._message.header.frame_id = frame

    def fill(self, ns, wrench):
        """The message of a wrench (f, m) (6,)."""
        force, torque = self._message.wrench.force, self._message.wrench.torque
        force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench.tolist()
        ns_to_stamp(ns, self._message.header.stamp)
        return self._message


class LinkPoseWriter:
    """A PoseStamped of a link, in the base, or in the root link where the base floats."""

    def __init__(self, manipulator, link):
        self._manipulator, self._link, self._message = manipulator, link, PoseStamped()
        self._message.header.frame_id = manipulator.links[0] if manipulator.floating else manipulator.machine.base_link

    def fill(self, ns, x):
        """The message at the state x (nx,)."""
        pose = self._manipulator.link_pose(x, self._link)
        place, turn = self._message.pose.position, self._message.pose.orientation
        place.x, place.y, place.z = pose[:3, 3].tolist()
        turn.x, turn.y, turn.z, turn.w = quaternion(pose[:3, :3]).tolist()
        ns_to_stamp(ns, self._message.header.stamp)
        return self._message


class LinkTwistWriter:
    """A TwistStamped of the origin of a link in its axes, relative to the base where that does not float."""

    def __init__(self, manipulator, link):
        self._manipulator, self._link, self._message = manipulator, link, TwistStamped()
        self._message.header.frame_id = link

    def fill(self, ns, x, xd):
        """The message at the state x (nx,), xd (dof,)."""
        linear, angular = self._message.twist.linear, self._message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = self._manipulator.link_twist(
            x, xd, self._link).tolist()
        ns_to_stamp(ns, self._message.header.stamp)
        return self._message


class PortPressureWriter:
    """A FluidPressure of a port of a cylinder: absolute, where all else in this package is gauge."""

    def __init__(self, frame):
        self._message = FluidPressure()
        self._message.header.frame_id = frame

    def fill(self, ns, gauge):
        """The message of a gauge pressure [Pa]."""
        self._message.fluid_pressure = float(gauge) + ATMOSPHERE
        ns_to_stamp(ns, self._message.header.stamp)
        return self._message


class SensorWriter:
    """The message of a `Mounted` sensor; `type` is its class."""

    def __init__(self, mounted):
        package, name = mounted.message.type.split('/msg/')
        self.type = getattr(import_module(f'{package}.msg'), name)
        self._message = self.type()
        self._message.header.frame_id = mounted.frame
        if mounted.message.unknown:
            getattr(self._message, mounted.message.unknown)[0] = -1.0
        self._vectors = {kind: attrgetter(field)(self._message) for kind, field in mounted.fields.items()}

    def fill(self, ns, values):
        """The message of {kind: (3,)}."""
        for kind, vector in self._vectors.items():
            vector.x, vector.y, vector.z = values[kind].tolist()
        ns_to_stamp(ns, self._message.header.stamp)
        return self._message


class DynamicStateWriter:
    """A control_msgs/DynamicJointState: the same quantities of each of several joints.

    types       module with DynamicJointState and InterfaceValue
    joints      names
    quantities  names
    """

    def __init__(self, types, joints, quantities):
        self.message = types.DynamicJointState(joint_names=list(joints), interface_values=[
            types.InterfaceValue(interface_names=list(quantities)) for _ in joints])
        self._rows = [view(value, 'values', len(quantities)) for value in self.message.interface_values]

    def fill(self, ns, values):
        """The message of values (joints, quantities)."""
        for row, given in zip(self._rows, np.asarray(values)):
            row[:] = given
        ns_to_stamp(ns, self.message.header.stamp)
        return self.message
