"""Machines with their hydraulics and records as the readers make them, for tests."""

from pathlib import Path

import numpy as np
import yaml
from test_hydraulic_model import ACTUATORS, CRANE, EXCAVATOR, everything

import psdyn_ros
from psdyn_ros.api.hydraulics.statics import hydraulic_records
from psdyn_ros.kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

URDF = Path(__file__).resolve().parents[2] / 'urdf'
CRANE_URDF = (URDF / 'hiab_xs031.urdf').read_text()
EXCAVATOR_URDF = (URDF / 'excavator.urdf').read_text()


class Machine:
    """A machine with its hydraulics and their records."""

    def __init__(self, urdf, source, **options):
        self.manipulator = psdyn_ros.load(urdf, **options)
        self.hydraulics = read_hydraulics(source, self.manipulator.actuators)
        self.axes, self.cylinders, self.supply = hydraulic_records(self.manipulator, self.hydraulics)

    @property
    def all(self):
        return self.manipulator, self.hydraulics, self.axes, self.cylinders, self.supply

    def force(self, fluid):
        """Return the forces (actuators,) of the chambers."""
        out = np.zeros(len(self.axes))
        out[self.cylinders['axis']] = (fluid[:, PRESSURE_A] * self.cylinders['area_a']
                                       - fluid[:, PRESSURE_B] * self.cylinders['area_b'])
        return out


def crane(change=lambda text: text):
    """Return the crane, its file changed."""
    return Machine(CRANE_URDF, change(CRANE.read_text()))


def excavator():
    """Return the excavator."""
    return Machine(EXCAVATOR_URDF, EXCAVATOR)


POST = '''
<robot name="post">
  <link name="ground"/>
  <joint name="slew" type="revolute"><parent link="ground"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="1e4" velocity="1"/></joint>
  <link name="arm"><inertial><mass value="50"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="lift" type="prismatic"><parent link="arm"/><child link="load"/><axis xyz="0 0 1"/>
    <limit lower="0.1" upper="0.55" effort="9e4" velocity="1"/></joint>
  <link name="load"><inertial><mass value="800"/>
    <inertia ixx="9" iyy="9" izz="9" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>'''


def post(change=None, urdf=POST):
    """Return the small machine with every parameter given, after a change of the contents of its file."""
    contents = everything()
    if change:
        change(contents)
    return Machine(urdf, yaml.safe_dump(contents), actuated=list(ACTUATORS))
