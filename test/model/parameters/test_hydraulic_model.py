"""What a hydraulics file says arrives in dataclasses; what is wrong in it is named with file, line and joint."""

import math
import re
from dataclasses import fields

import pytest
import yaml
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.harmed_text import harmed_text
from support.hydraulics.declared_machines import ACTUATORS, CRANE, EXCAVATOR, everything, on_oil
from support.paths import ROOT

from psdyn_ros import PsdynError
from psdyn_ros.model.errors import ActuationError, DuplicateNameError, ModelError, UnknownNameError
from psdyn_ros.model.parameters import hydraulics as model
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.parameter_blocks import INTEGER, NUMBER, NUMBERS, declared
from psdyn_ros.model.yaml_file import MAX_DECLARATION

CRANE_ACTUATORS = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
EXCAVATOR_ACTUATORS = ('swing', 'boom_cylinder_left', 'boom_cylinder_right', 'arm_cylinder', 'bucket_cylinder')

SOUND = '''\
supply: {pressure: 19e6, return_pressure: 1e6}
oil: {bulk_modulus: 800e6}
cylinders:
  lift:
    bore: 0.08
    rod: 0.045
    stroke: 0.59
    dead_volume_a: 3e-3
    dead_volume_b: 3e-3
    valve: {nominal_flow: 1.6e-3, nominal_pressure_drop: 7e6, natural_frequency: 30}
    safe_output: valve_neutral
axes:
  slew:
    brake: {stiffness: 1e7, damping: 1e5}
    safe_output: brake
'''
def test_the_crane_is_as_published():
    """Table 'Hydraulics' of the reference crane (petrovicrgoran/HydraulicManipulatorVDC)."""
    crane = read_hydraulics(CRANE, CRANE_ACTUATORS)
    assert list(crane.cylinders) == ['lift_cylinder', 'tilt_cylinder', 'telescope']
    assert list(crane.axes) == ['slew']
    assert (crane.supply.pressure, crane.supply.return_pressure, crane.oil.bulk_modulus) == (190e5, 10e5, 800e6)
    assert math.isinf(crane.supply.max_flow)
    for name, area_a, area_b, stroke, dead, flow in (
            ('lift_cylinder', 5.0265e-3, 3.4361e-3, 0.59, 3e-3, 100),
            ('tilt_cylinder', 5.0265e-3, 3.4361e-3, 0.59, 4e-3, 100),
            ('telescope', 1.9635e-3, 1.2566e-3, 1.1, 5e-3, 40)):
        cylinder = crane.cylinders[name]
        assert cylinder.area_a == pytest.approx(area_a, rel=5e-5)
        assert cylinder.area_b == pytest.approx(area_b, rel=5e-5)
        assert (cylinder.stroke, cylinder.dead_volume_a, cylinder.dead_volume_b) == (stroke, dead, dead)
        assert cylinder.valve.nominal_flow == pytest.approx([flow / 60e3] * 4, rel=1e-12)
        assert cylinder.valve.nominal_pressure_drop == 70e5
        assert (cylinder.valve.natural_frequency, cylinder.valve.damping, cylinder.valve.slew_limit) == (30, 0.707, 100)
        assert cylinder.leakage == 1e-16
        assert (cylinder.friction.coulomb, cylinder.friction.viscous, cylinder.friction.presliding) == (4e3, 3e3, 5e-4)
        assert cylinder.friction.slip_velocity == 5e-3
    assert crane.safe_outputs == {'lift_cylinder': 'valve_neutral', 'tilt_cylinder': 'valve_neutral',
                                  'telescope': 'valve_neutral', 'slew': 'brake'}
    assert crane.command_modes['slew'] == 'effort'
    assert crane.command_modes['telescope'] == 'valve'


def test_the_excavator_has_the_cylinders_of_its_urdf():
    """Bore x rod x stroke, in the comment of the URDF."""
    excavator = read_hydraulics(str(EXCAVATOR), EXCAVATOR_ACTUATORS)
    comment = ' '.join((ROOT / 'urdf' / 'excavator.urdf').read_text().split())
    boom, arm, bucket = ([float(size) / 1e3 for size in re.search(rf'{words} (\d+) x (\d+) x (\d+)', comment).groups()]
                         for words in ('boom 2 x', 'arm', 'bucket'))
    for name, size in (('boom_cylinder_left', boom), ('boom_cylinder_right', boom), ('arm_cylinder', arm),
                       ('bucket_cylinder', bucket)):
        cylinder = excavator.cylinders[name]
        assert [cylinder.bore, cylinder.rod, cylinder.stroke] == size
        assert cylinder.valve.natural_frequency == 15.0
        assert cylinder.valve.dead_band == (0.1, 0.1)
        assert (cylinder.load_holding is None) == (name == 'bucket_cylinder')
    assert excavator.cylinders['boom_cylinder_left'] == excavator.cylinders['boom_cylinder_right']




def given_values(block):
    """Return what a block has, as the file would say it."""
    if block is None or not hasattr(block, '__dataclass_fields__'):
        return list(block) if isinstance(block, tuple) else block
    return {one.name: given_values(getattr(block, one.name)) for one in fields(block) if 'declared' in one.metadata}


def test_every_parameter_arrives():
    contents = everything()
    text = yaml.safe_dump(contents)
    found = read_hydraulics(text, ACTUATORS)
    assert given_values(found.supply) == contents['supply']
    assert given_values(found.oil) == contents['oil']
    assert given_values(found.cylinders['lift']) == contents['cylinders']['lift']
    assert given_values(found.axes['slew']) == contents['axes']['slew']
    # and again from what was read
    again = yaml.safe_dump({'supply': given_values(found.supply), 'oil': given_values(found.oil),
                            'cylinders': {'lift': given_values(found.cylinders['lift'])},
                            'axes': {'slew': given_values(found.axes['slew'])}})
    assert read_hydraulics(again, ACTUATORS) == found


def test_defaults_are_those_of_the_reference():
    lift = read_hydraulics(SOUND, ACTUATORS).cylinders['lift']
    assert (lift.valve.damping, lift.valve.slew_limit, lift.valve.linear_range) == (0.707, 100.0, 2e5)
    assert lift.anti_cavitation == 2e-9
    assert (lift.end_stop.stiffness, lift.end_stop.damping) == (5e7, 1.0)
    assert model.Friction().slip_velocity == 5e-3
    assert (lift.count, lift.leakage, lift.relief, lift.load_holding, lift.cushion, lift.friction) == (
        1, 0.0, None, None, None, None)


def test_a_file_and_its_text_say_the_same(tmp_path):
    path = tmp_path / 'machine.yaml'
    path.write_text(SOUND)
    found = read_hydraulics(path, ACTUATORS)
    assert found == read_hydraulics(SOUND, ACTUATORS) == read_hydraulics(str(path), ACTUATORS)
    assert found.cylinders['lift'].where == f"hydraulics file '{path}' (line 4): cylinder 'lift'"


def test_one_number_stands_for_all_edges_and_both_ways():
    text = changed('nominal_flow: 1.6e-3', 'dead_band: [0.05, 0.1], nominal_flow: [1e-3, 2e-3, 3e-3, 4e-3]')
    edges = read_hydraulics(text, ACTUATORS).cylinders['lift'].valve
    assert edges.nominal_flow == (1e-3, 2e-3, 3e-3, 4e-3)
    assert edges.dead_band == (0.05, 0.1)
    assert read_hydraulics(SOUND, ACTUATORS).cylinders['lift'].valve.nominal_flow == (1.6e-3,) * 4


def changed(old, new):
    assert SOUND.count(old) == 1, old
    return SOUND.replace(old, new)


BAD = [
    # volumes, bore and rod, stroke, modulus
    (changed('dead_volume_a: 3e-3', 'dead_volume_a: -3e-3'), ModelError,
     r"line 8\): cylinder 'lift': 'dead_volume_a' is -0.003; expected 1e-07 to 1 .m\^3 of chamber A"),
    (changed('dead_volume_b: 3e-3', 'dead_volume_b: 0'), ModelError,
     r"line 9\): cylinder 'lift': 'dead_volume_b' is 0; expected"),
    # A 19 MPa / 50 MN/m = 1.91 mm, 4 times that on A = 50.3 cm^2 is 38.4 cm^3
    (changed('dead_volume_a: 3e-3', 'dead_volume_a: 3e-5'), ModelError,
     r"line 8\): cylinder 'lift': 'dead_volume_a' 3e-05 m\^3 may vanish in the stop, which yields 0.00764 m under "
     r"4 times the 9.55e\+04 N of the cylinder; expected more than 3.84e-05 m\^3, or a stiffer end_stop"),
    (changed('dead_volume_b: 3e-3', 'dead_volume_b: 2.6e-5'), ModelError, "'dead_volume_b' 2.6e-05 .* than 2.63e-05"),
    (changed('rod: 0.045', 'rod: 0.09'), ModelError,
     r"line 6\): cylinder 'lift': 'rod' 0.09 m is not smaller than 'bore' 0.08 m"),
    (changed('rod: 0.045', 'rod: 0.08'), ModelError, "'rod' 0.08 m is not smaller than 'bore' 0.08 m"),
    (changed('bore: 0.08', 'bore: -0.08'), ModelError, "'bore' is -0.08; expected"),
    (changed('stroke: 0.59', 'stroke: 0'), ModelError, "'stroke' is 0; expected"),
    (changed('800e6', '0'), ModelError, r"line 2\): oil: 'bulk_modulus' is 0; expected 1e\+07 to 1e\+10 .Pa"),
    (changed('800e6', '-1'), ModelError, "'bulk_modulus' is -1"),
    (changed('rod: 0.045', 'rod: 0.045\n    hose_volume_a: 4e-3\n    hose_modulus: 1e9'), ModelError,
     r"line 7\): cylinder 'lift': 'hose_volume_a' 0.004 m\^3 is more than 'dead_volume_a' 0.003"),
    (changed('rod: 0.045', 'rod: 0.045\n    hose_volume_b: 1e-3'), ModelError,
     "'hose_volume_b' is given without 'hose_modulus'"),
    (changed('rod: 0.045', 'rod: 0.045\n    hose_modulus: 1e9'), ModelError,
     "'hose_modulus' is given without 'hose_volume_a' or 'hose_volume_b'"),
    (changed('rod: 0.045', 'rod: 0.045\n    count: 1.5'), ModelError, "'count' is 1.5; expected a whole number"),
    (changed('rod: 0.045', 'rod: 0.045\n    count: 0'), ModelError, "'count' is 0; expected 1 to 16"),
    # pressures
    (changed('19e6', '1e6'), ModelError,
     r"line 1\): supply: 'return_pressure' 1e\+06 Pa is not below 'pressure' 1e\+06"),
    (changed('return_pressure: 1e6', 'return_pressure: 1e6, droop: 9e6').replace('19e6', '9e6'), ModelError,
     r"supply: 'droop' 9e\+06 Pa is not below 'pressure' - 'return_pressure' 8e\+06 Pa"),
    (changed('rod: 0.045', 'rod: 0.045\n    relief: {gain: 1e-9,\n      pressure: 18e6}'), ModelError,
     r"line 8\): cylinder 'lift': relief: 'pressure' 1.8e\+07 Pa is not above that of the supply, 1.9e\+07 Pa"),
    (changed('rod: 0.045', 'rod: 0.045\n    cushion: {length_a: 0.3, length_b: 0.3, gain: 1e-7}'), ModelError,
     r"line 7\): cylinder 'lift': cushion: 'length_a' 0.3 m and 'length_b' 0.3 m are longer than 'stroke' 0.59 m"),
    (changed('pressure: 19e6, ', ''), ModelError, r"line 1\): supply: 'pressure' is missing .Pa, what the pump is set"),
    (changed('pressure: 19e6, ', 'pressure: .nan, '), ModelError, "'pressure' is '.nan'; expected a finite number"),
    (changed('pressure: 19e6, ', 'pressure: inf, '), ModelError, "'pressure' is 'inf'; expected a finite number"),
    (changed('pressure: 19e6, ', 'pressure: [1, 2], '), ModelError, r"'pressure' is \['1', '2'\]; expected a finite"),
    (changed('pressure: 19e6, ', 'pressure: {a: 1}, '), ModelError, r'supply: expected a text, a number'),
    (changed('pressure: 19e6, ', 'pressure: 190 bar, '), ModelError, "'pressure' is '190 bar'; expected a finite"),
    # safe outputs: mandatory, and never nothing
    (changed('    safe_output: valve_neutral\n', ''), ModelError,
     r"line 4\): cylinder 'lift': 'safe_output' is missing .what it does without a fresh command; mandatory.*; one of "
     'valve_neutral, brake'),
    (changed('    safe_output: brake\n', ''), ModelError, "axis 'slew': 'safe_output' is missing"),
    (changed('valve_neutral', 'zero'), ModelError,
     r"line 4\): cylinder 'lift': 'safe_output' is 'zero', with which the load would drop; expected 'valve_neutral'"),
    (changed('safe_output: brake', 'safe_output: none'), ModelError, "axis 'slew': 'safe_output' is 'none', with"),
    (changed('safe_output: brake', 'safe_output: valve_neutral'), ModelError,
     "axis 'slew': 'safe_output': there is no 'valve_neutral'; there are: brake"),
    (changed('valve_neutral', 'valve_neutrl'), ModelError, "there is no 'valve_neutrl'; did you mean 'valve_neutral'"),
    (changed('valve_neutral', 'brake'), ModelError,
     r"line 11\): cylinder 'lift': 'safe_output' is 'brake', but there is no 'brake'"),
    (changed('    brake: {stiffness: 1e7, damping: 1e5}\n', ''), ModelError, "axis 'slew': 'brake' is missing"),
    # modes
    (changed('rod: 0.045', 'rod: 0.045\n    command_mode: velocity'), ModelError,
     r"line 7\): cylinder 'lift': 'command_mode' is 'velocity', but the flow of its valve depends on the load"),
    (changed('rod: 0.045', 'rod: 0.045\n    command_mode: speed'), ModelError,
     "'command_mode': there is no 'speed'; there are: effort"),
    (changed('safe_output: brake', 'safe_output: brake\n    command_mode: valve'), ModelError,
     "axis 'slew': 'command_mode': there is no 'valve'"),
    # load sensing, flow sharing, regeneration
    (changed('return_pressure: 1e6', 'return_pressure: 1e6, load_sensing: {margin: 9e6}').replace('19e6', '10e6'),
     ModelError, r"line 1\): supply: load_sensing: 'margin' 9e\+06 Pa is not below 'pressure' - 'return_pressure' 9e"),
    (changed('return_pressure: 1e6', 'return_pressure: 1e6, load_sensing: {}'), ModelError,
     r"line 1\): supply: load_sensing: 'margin' is missing"),
    (changed('natural_frequency: 30', 'natural_frequency: 30, flow_sharing: true'), ModelError,
     r"line 10\): cylinder 'lift': valve: 'flow_sharing' is true, but the supply has no 'load_sensing'"),
    (changed('natural_frequency: 30', 'natural_frequency: 30, flow_sharing: true, compensated: true'), ModelError,
     r"line 10\): cylinder 'lift': valve: 'flow_sharing' and 'compensated' are both true"),
    # friction
    (changed('rod: 0.045', 'rod: 0.045\n    friction: {viscous: 1,\n       model: lugre}'), ModelError,
     r"line 8\): cylinder 'lift': friction: 'model' is 'lugre', whose bristle needs a 'coulomb' friction above zero"),
    (changed('rod: 0.045', 'rod: 0.045\n    friction: 4000'), ModelError,
     r"line 7\): cylinder 'lift': friction: expected a mapping of coulomb, viscous"),
    # names
    (changed('rod: 0.045', 'rdo: 0.045'), ModelError,
     r"line 6\): cylinder 'lift': 'rdo' is no parameter of it; did you mean 'rod'"),
    (changed('nominal_flow: 1.6e-3', 'nominalflow: 1'), ModelError,
     r"line 10\): cylinder 'lift': valve: 'nominalflow' is no parameter of it; did you mean 'nominal_flow'"),
    (changed('nominal_flow: 1.6e-3', 'nominal_flow: [1e-3, 2e-3]'), ModelError,
     r"valve: 'nominal_flow' is \['1e-3', '2e-3'\]; expected one number or a list of 4"),
    (changed('nominal_flow: 1.6e-3', 'nominal_flow: 100'), ModelError,
     r"'nominal_flow' is 100; expected 1e-09 to 1 .m\^3"),
    (changed('nominal_flow: 1.6e-3, ', ''), ModelError,
     r"line 10\): cylinder 'lift': valve: 'nominal_flow' is missing"),
    (changed('natural_frequency: 30', 'natural_frequency: 30, compensated: perhaps'), ModelError,
     "'compensated' is 'perhaps'; expected true or false"),
    (changed('oil: {', 'oils: {'), ModelError, r"line 2\): 'oils' is not known; did you mean 'oil'"),
    (changed('oil: {bulk_modulus: 800e6}\n', ''), ModelError, "'oil' is missing; expected supply, oil, .cyl"),
    (changed('  lift:', '  lfit:'), UnknownNameError,
     r"line 4\): cylinder 'lfit': the machine has no such actuator; did you mean 'lift'"),
    (changed('  slew:', '  slow:'), UnknownNameError,
     r"line 13\): axis 'slow': the machine has no such actuator; did you mean 'slew'"),
    (SOUND[:SOUND.index('axes:')], ActuationError, "nothing for slew; expected every actuator in 'cylinders', 'racks'"),
    (changed('cylinders:', 'other: &a\n'), ModelError, "'other' is not known"),
    (SOUND[:SOUND.index('cylinders:')], ActuationError, 'nothing for slew, lift; expected every actuator'),
    (changed('  slew:', '  lift:\n    brake: {stiffness: 1e7, damping: 1e5}\n    safe_output: brake\n  slew:'),
     ActuationError, r"line 13\): axis 'lift': the actuator stands in 'cylinders' too .*line 4\): cylinder 'lift'"),
    (changed('rod: 0.045', 'rod: 0.045\n    rod: 0.05'), DuplicateNameError, r"line 7\): 'rod' is there twice"),
    (SOUND + 'oil: {bulk_modulus: 1e9}\n', DuplicateNameError, "'oil' is there twice"),
    (changed('  lift:\n', '  lift: 5\n  more:\n'), ModelError,
     r"line 4\): cylinder 'lift': expected a mapping of bore"),
    (changed('  lift:\n', '  [lift]:\n'), ModelError, 'expected a name'),
    # no YAML at all, and no tags
    ('supply: {\n', ModelError, 'is not YAML'),
    ('\n', ModelError, r'line 1\): expected a mapping'),
    ('[\n', ModelError, 'is not YAML'),
    ('- a\n- b\n', ModelError, r'line 1\): expected a mapping'),
    (changed('rod: 0.045', 'rod: !!python/object/apply:os.getcwd []'), ModelError,
     r"line 6\): cylinder 'lift': YAML tag 'tag:yaml.org,2002:python/object/apply:os.getcwd'; expected a plain value"),
    (changed('rod: 0.045', 'rod: !!python/name:os.getcwd 0.04'), ModelError, 'YAML tag'),
    (changed('rod: 0.045', 'rod: !mine 0.04'), ModelError, "YAML tag '!mine'"),
    (changed('{nominal_flow', '!!python/object:os.Thing {nominal_flow'), ModelError, 'valve: YAML tag'),
    # what contains itself
    (changed('{pressure: 19e6, ', '&a {pressure: *a, '), ModelError, r'line 1\): supply: expected a text, a'),
    (changed('    valve: {', '    valve: &a {damping: *a, '), ModelError, 'cylinder .lift.: valve: expected a text'),
]


RACK = '''\
  slew:
    bore: 0.08
    pinion_radius: 0.15
    stroke: 0.9
    dead_volume_a: 1e-3
    dead_volume_b: 1e-3
    valve: {nominal_flow: 1.6e-3, nominal_pressure_drop: 7e6, natural_frequency: 30}
    safe_output: valve_neutral
'''
MOTOR = RACK.replace('''    bore: 0.08
    pinion_radius: 0.15
    stroke: 0.9
''', '''    displacement: 1e-4
    gear_ratio: 60
''')
CYLINDER_ONLY = SOUND[:SOUND.index('axes:')]
WITH_RACK, WITH_MOTOR = CYLINDER_ONLY + 'racks:\n' + RACK, CYLINDER_ONLY + 'motors:\n' + MOTOR


def slewing(text, old, new):
    """Return the text with another line of its slew, which comes last."""
    head, found, tail = text.rpartition(old)
    assert found, old
    return head + new + tail


BAD += [
    (slewing(WITH_RACK, 'bore: 0.08', 'bore: 0.08\n    rod: 0.09'), ModelError,
     r"line 15\): rack 'slew': 'rod' 0.09 m is not smaller than 'bore' 0.08 m"),
    (slewing(WITH_RACK, '    pinion_radius: 0.15\n', ''), ModelError,
     r"line 13\): rack 'slew': 'pinion_radius' is missing .m, of the pitch circle"),
    (slewing(WITH_RACK, 'pinion_radius: 0.15', 'pinion_radius: -0.15'), ModelError,
     r"line 15\): rack 'slew': 'pinion_radius' is -0.15; expected 0.001 to 5 .m, of the pitch circle"),
    (slewing(WITH_RACK, 'stroke: 0.9', 'stroke: 0'), ModelError, "rack 'slew': 'stroke' is 0; expected 0.001 to 50"),
    (slewing(WITH_RACK, 'bore: 0.08', 'bore: 0.08\n    count: 3'), ModelError,
     "rack 'slew': 'count' is 3; expected 1 to 2 .of racks on the pinion"),
    (slewing(WITH_RACK, 'stroke: 0.9', 'stroke: 0.9\n    cushion: {length_a: 0.5, length_b: 0.5, gain: 1e-7}'),
     ModelError,
     "rack 'slew': cushion: 'length_a' 0.5 m and 'length_b' 0.5 m are longer than 'stroke' 0.9 m"),
    # 19 MPa x 7.54e-4 m^3/rad = 14.3 kN m on 1e6 N m/rad, 4 times that x 7.54e-4 m^3/rad is 43.2 cm^3
    (slewing(WITH_RACK, 'dead_volume_b: 1e-3', 'dead_volume_b: 4e-5\n    end_stop: {stiffness: 1e6}'), ModelError,
     r"rack 'slew': 'dead_volume_b' 4e-05 m\^3 may vanish in the stop, which yields 0.0573 rad under 4 times the "
     r'1.433e\+04 N m of the rack; expected more than 4.32e-05 m\^3'),
    (slewing(WITH_RACK, 'natural_frequency: 30', 'natural_frequency: 30, regenerative: true'), ModelError,
     r"line 19\): rack 'slew': valve: 'regenerative' is true, but chamber A of the rack is not larger than B"),
    (slewing(WITH_RACK, 'stroke: 0.9', 'gear_ratio: 0.9'), ModelError, "rack 'slew': 'gear_ratio' is no parameter of"),
    (slewing(WITH_MOTOR, '    displacement: 1e-4\n', ''), ModelError,
     r"line 13\): motor 'slew': 'displacement' is missing .m\^3 per revolution of the motor"),
    (slewing(WITH_MOTOR, 'displacement: 1e-4', 'displacement: 100'), ModelError,
     r"line 14\): motor 'slew': 'displacement' is 100; expected 1e-08 to 0.1 .m\^3 per revolution of the motor"),
    (slewing(WITH_MOTOR, 'gear_ratio: 60', 'gear_ratio: 0'), ModelError,
     "motor 'slew': 'gear_ratio' is 0; expected 0.01"),
    (slewing(WITH_MOTOR, 'gear_ratio: 60', 'case_leakage: -1e-12'), ModelError,
     "'case_leakage' is -1e-12; expected 0 to"),
    (slewing(WITH_MOTOR, 'gear_ratio: 60', 'bore: 0.1'), ModelError, "motor 'slew': 'bore' is no parameter of it"),
    (slewing(WITH_MOTOR, 'gear_ratio: 60', 'hose_volume_a: 2e-3\n    hose_modulus: 1e9'), ModelError,
     r"motor 'slew': 'hose_volume_a' 0.002 m\^3 is more than 'dead_volume_a' 0.001 m\^3"),
    (slewing(WITH_MOTOR, 'valve_neutral', 'none'), ModelError,
     "motor 'slew': 'safe_output' is 'none', with which the load would drop"),
    (slewing(WITH_MOTOR, 'valve_neutral', 'brake'), ModelError,
     "motor 'slew': 'safe_output' is 'brake', but there is no"),
    (slewing(WITH_MOTOR, '  slew:', '  swing:'), UnknownNameError, "motor 'swing': the machine has no such actuator"),
    (WITH_RACK + 'motors:\n' + MOTOR, ActuationError,
     r"line 22\): motor 'slew': the actuator stands in 'racks' too .*line 13\): rack 'slew'.; expected one of the two"),
]


def test_racks_and_motors_have_the_areas_of_their_geometry():
    rack = read_hydraulics(WITH_RACK, ACTUATORS).cylinders['slew']
    assert rack.area_a == rack.area_b == pytest.approx(math.pi / 4.0 * 0.08 ** 2 * 0.15, rel=1e-12)     # m^3/rad
    assert rack.reach == pytest.approx((-3.0, 3.0)) and rack.lever == 0.15
    rod = read_hydraulics(slewing(WITH_RACK, 'bore: 0.08', 'bore: 0.08\n    rod: 0.04\n    count: 2\n    centre: 0.5'),
                          ACTUATORS).cylinders['slew']
    assert (rod.area_a, rod.area_b) == pytest.approx((2.0 * rack.area_a, 1.5 * rack.area_a), rel=1e-12)
    assert rod.reach == pytest.approx((-2.5, 3.5))
    motor = read_hydraulics(WITH_MOTOR, ACTUATORS).cylinders['slew']
    # a revolution of the joint swallows 60 displacements
    assert 2.0 * math.pi * motor.area_a == 2.0 * math.pi * motor.area_b == pytest.approx(60 * 1e-4, rel=1e-12)
    assert motor.reach == (-math.inf, math.inf)


@pytest.mark.parametrize('section', ['racks', 'motors'])
def test_every_parameter_of_racks_and_motors_arrives(section):
    contents = on_oil(section)
    found = read_hydraulics(yaml.safe_dump(contents), ACTUATORS)
    assert given_values(found.cylinders['slew']) == contents[section]['slew'] and not found.axes
    assert list(found.cylinders) == ['slew', 'lift']        # in the order of the actuators
    assert list(declared(model.DRIVES[section]))[0] == {'racks': 'bore', 'motors': 'displacement'}[section]


@pytest.mark.parametrize('text, error, words', BAD, ids=[str(number) for number in range(len(BAD))])
def test_what_is_wrong_is_named(text, error, words, tmp_path):
    path = tmp_path / 'machine.yaml'
    path.write_text(text)
    with pytest.raises(error, match=words) as caught:
        read_hydraulics(path, ACTUATORS)
    assert str(path) in str(caught.value)
    assert type(caught.value) is error


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelError, match='nowhere.yaml'):
        read_hydraulics(tmp_path / 'nowhere.yaml', ACTUATORS)
    with pytest.raises(ModelError, match='hydraulics 5: expected a YAML file or YAML text'):
        read_hydraulics(5, ACTUATORS)
    large = SOUND + '# ' + 'x' * MAX_DECLARATION
    with pytest.raises(ModelError, match=f'characters; at most {MAX_DECLARATION} are read'):
        read_hydraulics(large, ACTUATORS)
    (tmp_path / 'large.yaml').write_text(large)
    with pytest.raises(ModelError, match=f'at most {MAX_DECLARATION} are read'):
        read_hydraulics(tmp_path / 'large.yaml', ACTUATORS)


def test_an_alias_of_an_alias_is_never_expanded():
    bomb = 'a: &a [x, x, x]\n' + ''.join(f'{b}: &{b} [{", ".join([f"*{a}"] * 9)}]\n'
                                         for a, b in zip('abcdefghij', 'bcdefghijk'))
    with pytest.raises(ModelError, match="'a' is not known"):
        read_hydraulics(bomb, ACTUATORS)
    nested = '\n'.join(f'{" " * k}k:' for k in range(3000)) + '\n'
    with pytest.raises(ModelError):
        read_hydraulics(nested, ACTUATORS)


def read_or_refuse(text):
    try:
        found = read_hydraulics(text if '\n' in text else text + '\n', ACTUATORS)
    except PsdynError as error:
        assert str(error) and len(str(error)) < 2000
    else:
        assert set(found.safe_outputs) == set(ACTUATORS)
        assert found.cylinders['lift'].rod < found.cylinders['lift'].bore


@settings(max_examples=examples(500))
@given(harmed_text([SOUND, yaml.safe_dump(everything()), CRANE.read_text()]))
def test_harmed_text(text):
    read_or_refuse(text)


@settings(max_examples=examples(200))
@given(st.one_of(st.text(), st.text(alphabet='{}[]:,-&*!|>\'"\n aoilsupy?%#')))
def test_any_text(text):
    read_or_refuse(text)


SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
NAMES = ['supply', 'oil', 'cylinders', 'axes', 'lift', 'slew', 'valve', 'bore', 'safe_output', 'brake', 'friction']


@settings(max_examples=examples(200))
@given(st.recursive(SIMPLE, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(
    st.sampled_from(NAMES), inner, max_size=5)), max_leaves=20))
def test_any_yaml(contents):
    read_or_refuse(yaml.safe_dump(contents))


def test_every_parameter_is_described():
    printed = '\n'.join(model.tables())
    for title, cls in (('supply', model.Supply), ('oil', model.Oil), ('cylinders: JOINT', model.Cylinder),
                       ('cylinders: JOINT: valve', model.Valve), ('cylinders: JOINT: load_holding', model.LoadHolding),
                       ('cylinders: JOINT: cushion', model.Cushion), ('cylinders: JOINT: friction', model.Friction),
                       ('cylinders: JOINT: relief', model.Relief), ('cylinders: JOINT: end_stop', model.EndStop),
                       ('racks: JOINT', model.Rack), ('motors: JOINT', model.Motor),
                       ('axes: JOINT', model.Axis), ('axes: JOINT: brake', model.Brake)):
        table = re.search(rf'### {title}\n(.*?)(?=###|\Z)', printed, re.DOTALL).group(1)
        assert ' '.join(cls.__doc__.split()) in table
        for name, parameter in declared(cls).items():
            row = re.search(rf'\| `{name}` \| (.*)', table).group(1)
            assert parameter.description in row
            assert ('required' in row) == parameter.required
            if parameter.kind in (NUMBER, NUMBERS, INTEGER):
                assert math.isfinite(parameter.low) and math.isfinite(parameter.high)
