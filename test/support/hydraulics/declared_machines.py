"""Machines with their hydraulics and records as the readers make them, for tests."""


import numpy as np
import yaml

import psdyn_ros
from psdyn_ros.api.hydraulics.statics import hydraulic_records
from psdyn_ros.kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from psdyn_ros.model.parameters import hydraulics as model
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.parameter_blocks import BLOCK, FLAG, INTEGER, NUMBER, NUMBERS, declared

from ..paths import CONFIG, URDF

CRANE = CONFIG / 'hiab_xs031_hydraulics.yaml'
EXCAVATOR = CONFIG / 'excavator_hydraulics.yaml'
ACTUATORS = ('slew', 'lift')
CRANE_URDF = (URDF / 'hiab_xs031.urdf').read_text()
EXCAVATOR_URDF = (URDF / 'excavator.urdf').read_text()


def distinct(parameter, number):
    """Return a value of a parameter that is not its default, inside its range, another for each number."""
    if parameter.kind in (NUMBER, NUMBERS):
        low = parameter.low if parameter.low > 0.0 else parameter.high * 1e-4
        values = [float(f'{low * (parameter.high / low) ** ((number + k / 7) % 97 / 100 + 0.01):.6g}')
                  if parameter.low >= 0.0 else 1.0 + number / 8 + k for k in range(parameter.count)]
        return values if parameter.kind == NUMBERS else values[0]
    if parameter.kind == INTEGER:
        return 3
    if parameter.kind == FLAG:
        return not parameter.default
    return parameter.choices[-1]


def filled(cls, counter):
    """Return {parameter: value} of a block with all its parameters, and of those in it."""
    out = {}
    for name, parameter in declared(cls).items():
        counter[0] += 13
        out[name] = filled(parameter.block, counter) if parameter.kind == BLOCK else distinct(parameter, counter[0])
    return out


def everything():
    """Return the contents of a file in which every parameter is given and nothing has its default."""
    counter = [0]
    contents = {'supply': filled(model.Supply, counter), 'oil': filled(model.Oil, counter),
                'cylinders': {'lift': filled(model.Cylinder, counter)}, 'axes': {'slew': filled(model.Axis, counter)}}
    lift = contents['cylinders']['lift']
    # what checks against each other
    contents['supply'].update(pressure=2.1e7, return_pressure=3e5, droop=2e6)
    lift.update(bore=0.09, rod=0.05, stroke=0.7, dead_volume_a=3e-3, dead_volume_b=4e-3, hose_volume_a=1e-3,
                hose_volume_b=2e-3, command_mode='velocity')
    lift['relief']['pressure'] = 2.5e7
    lift['valve']['compensated'] = False        # flow sharing is the other
    lift['cushion'].update(length_a=0.04, length_b=0.05)
    return contents


def on_oil(section, **changes):
    """Return the contents of a file in which the slew of the small machine is one of `section`, 'racks' or 'motors',
    with all parameters given."""
    contents = everything()
    slew = filled(model.JOINTS[section], [7])
    slew.update({name: contents['cylinders']['lift'][name] for name in (
        'dead_volume_a', 'dead_volume_b', 'hose_volume_a', 'hose_volume_b', 'command_mode', 'relief')})
    slew.update(dict(count=2, bore=0.08, rod=0.03, pinion_radius=0.15, stroke=0.75, centre=0.1) if section == 'racks'
                else dict(displacement=1e-4, gear_ratio=60.0))
    slew['valve'].update(compensated=False, regenerative=section == 'racks')
    if section == 'racks':
        slew['cushion'].update(length_a=0.03, length_b=0.06)
    del contents['axes']
    return {**contents, section: {'slew': {**slew, **changes}}}


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
