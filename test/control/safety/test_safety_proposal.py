"""The safety file that is proposed for a machine is complete, is accepted, and a controller runs with it."""

import numpy as np
import pytest
import yaml
from support.machines import hiab

import psdyn_ros
from psdyn_ros import cli
from psdyn_ros.control import ControllerConfig, State, Waypoints, assemble, follow
from psdyn_ros.control.safety.proposal import proposed_safety
from psdyn_ros.model.errors import ModelError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant

URDF = find_machine('hiab_xs031')
HYDRAULICS = find_config('hiab_xs031_hydraulics.yaml')


@pytest.mark.long
@pytest.mark.parametrize('machine', ['hiab_xs031', 'excavator', 'four_bar', 'five_bar', 'pkm_2pur2rpu'])
def test_the_proposed_file_of_each_machine_is_accepted(machine, capsys):
    assert cli.main(['check', machine, '--safety']) == 0
    text = capsys.readouterr().out
    config = ControllerConfig.from_files(find_machine(machine), safety=text)
    rated = np.array(config.machine.limits.velocity)
    assert (config.declaration.standstill_speed < rated).all()
    assert (rated / config.declaration.deceleration < config.declaration.stop_time).all()


def test_a_controller_on_valves_runs_with_the_proposed_file(capsys):
    assert cli.main(['check', 'hiab_xs031', '--safety']) == 0
    config = ControllerConfig.from_files(URDF, HYDRAULICS, safety=capsys.readouterr().out)
    plant = HydraulicPlant(config.machine, config.hydraulics, period=config.period)
    goal = plant.x + [0.1, 0.03, -0.03, 0.05]
    zero = np.zeros((1, 4))
    record = follow(assemble(config), plant, Waypoints(config.machine.coordinates, [2.5], [goal], zero, zero), 4.0)
    assert record.state[-1] == State.HOLD and not record.reasons
    assert np.abs(plant.x - goal).max() < 2e-3


def test_a_machine_without_limits_gets_no_file():
    machine = psdyn_ros.load(hiab().xml.replace('velocity="0.6"', 'velocity="0"', 1))
    with pytest.raises(ModelError, match="no safety file can be proposed, since position, velocity or effort of slew"):
        proposed_safety(machine)


def weak(effort):
    """A joint that carries 10 kg 1 m away from it, which needs 98 N m."""
    return psdyn_ros.load(f'''<robot name="weak"><link name="base"/><link name="arm"><inertial>
      <origin xyz="1 0 0"/><mass value="10"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="swivel" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
      <limit lower="-1" upper="1" velocity="1" effort="{effort}"/></joint><ros2_control name="c" type="system">
      <joint name="swivel"><command_interface name="effort"/></joint></ros2_control></robot>''')


def test_an_actuator_that_cannot_hold_its_load_is_named():
    with pytest.raises(ModelError, match="'weak': no safety file .* since swivel cannot hold the machine"):
        proposed_safety(weak(95.0))


def test_no_more_acceleration_is_proposed_than_the_weight_leaves():
    proposed = yaml.safe_load(proposed_safety(weak(102.0)))['actuators']['swivel']
    possible = (102.0 - 98.1) / 11.0
    assert proposed['deceleration'] <= proposed['acceleration'] <= possible
    assert yaml.safe_load(proposed_safety(weak(300.0)))['actuators']['swivel']['acceleration'] == pytest.approx(3.3)
