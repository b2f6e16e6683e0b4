"""Records of hydraulic machines, and what of their declaration does not fit the mechanism."""

import re

import numpy as np
import pytest
import yaml
from support.hydraulics.declared_machines import (
    ACTUATORS,
    CRANE,
    CRANE_URDF,
    EXCAVATOR,
    EXCAVATOR_URDF,
    POST,
    URDF,
    Machine,
    everything,
    excavator,
    post,
)
from support.hydraulics.declared_machines import crane as make_crane

import psdyn_ros
from psdyn_ros.api.hydraulics import statics as api
from psdyn_ros.api.hydraulics.checks import check_hydraulics
from psdyn_ros.kernels.hydraulics.records import CYLINDER
from psdyn_ros.model.errors import ActuationError, LoopError, ModelError
from psdyn_ros.model.parameters.hydraulics import read_hydraulics


@pytest.fixture(name='crane')
def crane_fixture():
    return make_crane()


@pytest.fixture(name='excavator')
def excavator_fixture():
    return excavator()


def test_records_of_the_crane(crane):
    lift, tilt, telescope = crane.cylinders
    np.testing.assert_array_equal(crane.cylinders['axis'], [1, 2, 3])
    np.testing.assert_array_equal(crane.axes['cylinder'], [-1, 0, 1, 2])
    np.testing.assert_allclose(crane.cylinders['area_a'], [5.0265e-3, 5.0265e-3, 1.9635e-3], rtol=5e-5)
    np.testing.assert_allclose(crane.cylinders['area_b'], [3.4361e-3, 3.4361e-3, 1.2566e-3], rtol=5e-5)
    np.testing.assert_allclose(lift['gain'], 6.3e-7, rtol=1e-3)
    np.testing.assert_allclose(telescope['gain'], 0.4 * lift['gain'], rtol=1e-12)
    # through an edge at its nominal pressure drop
    np.testing.assert_allclose(tilt['gain'] * np.sqrt(70e5), 100 / 60e3, rtol=1e-12)
    np.testing.assert_allclose(crane.cylinders['omega'], 2 * np.pi * 30)
    # push about 92 kN, pull about 60 kN; telescope 36.0 and 21.9 kN
    high, low = crane.supply['pressure'][0], crane.supply['return_pressure'][0]
    np.testing.assert_allclose(high * crane.cylinders['area_a'] - low * crane.cylinders['area_b'],
                               [92.1e3, 92.1e3, 36.0e3], rtol=2e-3)
    np.testing.assert_allclose(high * crane.cylinders['area_b'] - low * crane.cylinders['area_a'],
                               [60.3e3, 60.3e3, 21.9e3], rtol=2e-3)
    assert crane.axes['coulomb'].tolist() == [0, 4e3, 4e3, 4e3]
    assert crane.axes['lower'].tolist() == [-3.0, 0.0, 0.03, 0.0]
    assert crane.axes['upper'].tolist() == [3.0, 0.5, 0.58, 1.1]
    assert not crane.axes['bristle'].any()
    assert not crane.supply['limited'][0]


def test_hydraulic_spring_at_mid_stroke(crane):
    """6.9e6 N/m: 5.9, 2.9 and 2.1 Hz for 5, 20 and 40 t."""
    stiffness = api.oil_stiffness(crane.cylinders[0], 0.5 * 0.59)
    assert stiffness == pytest.approx(6.9e6, rel=0.01)
    alone = np.sqrt(stiffness / np.array([5e3, 20e3, 40e3])) / (2 * np.pi)
    np.testing.assert_allclose(alone, [5.9, 2.9, 2.1], rtol=0.02)


def test_every_parameter_reaches_the_records():
    contents = everything()
    lift, slew, supply, oil = (contents['cylinders']['lift'], contents['axes']['slew'], contents['supply'],
                               contents['oil'])
    machine = post()
    record, axis = machine.cylinders[0], machine.axes[1]
    viscosity = np.exp(-oil['viscosity_coefficient'] * (oil['temperature'] - oil['reference_temperature']))
    bulk = oil['bulk_modulus'] * np.exp(-oil['bulk_coefficient'] * (oil['temperature'] - oil['reference_temperature']))
    expected = {
        'axis': 1, 'area_a': 3 * np.pi / 4 * 0.09**2, 'area_b': 3 * np.pi / 4 * (0.09**2 - 0.05**2), 'stroke': 0.7,
        'start': 0, 'motor': 0, 'drain': 0,
        'dead_a': 3 * 3e-3, 'dead_b': 3 * 4e-3, 'hose_a': 3 * 1e-3, 'hose_b': 3 * 2e-3, 'bulk': bulk,
        'air': oil['air_content'], 'polytropic': oil['polytropic_exponent'], 'wall': lift['wall_modulus'],
        'hose': lift['hose_modulus'], 'linear': lift['valve']['linear_range'],
        'gain': np.array(lift['valve']['nominal_flow']) / np.sqrt(lift['valve']['nominal_pressure_drop']),
        'compensated': 0, 'sharing': 1, 'margin': supply['load_sensing']['margin'], 'check': 1, 'regenerative': 1,
        'sensed': 3e5, 'jump': 1,
        'omega': 2 * np.pi * lift['valve']['natural_frequency'], 'zeta': lift['valve']['damping'],
        'slew': lift['valve']['slew_limit'], 'overlap_up': lift['valve']['dead_band'][0],
        'overlap_down': lift['valve']['dead_band'][1], 'leak': 3 * lift['leakage'] / viscosity, 'relief': 2.5e7,
        'relief_gain': lift['relief']['gain'], 'suction': lift['anti_cavitation'], 'holding': [1, 1],
        'holding_setting': lift['load_holding']['setting'], 'holding_ratio': lift['load_holding']['pilot_ratio'],
        'holding_range': lift['load_holding']['range'], 'holding_time': lift['load_holding']['time_constant'],
        'holding_gain': lift['load_holding']['gain'], 'cushion_a': 0.04, 'cushion_b': 0.05,
        'cushion_gain': lift['cushion']['gain'], 'command': 0, 'stuck': 0, 'offset': 0}
    assert set(expected) == set(CYLINDER.names)
    for name, value in expected.items():
        np.testing.assert_allclose(record[name], value, rtol=1e-12, err_msg=name)
    assert (viscosity, bulk) != (1.0, oil['bulk_modulus'])
    for axis, declared, factor in ((machine.axes[0], slew, 1.0), (machine.axes[1], lift, viscosity)):
        friction = declared['friction']
        broken_away = friction['coulomb'] + friction['stribeck']
        expected = {
            'coulomb': friction['coulomb'], 'stribeck': friction['stribeck'], 'viscous': friction['viscous'] * factor,
            'stribeck_velocity': friction['stribeck_velocity'], 'slip': friction['slip_velocity'],
            'bristle': broken_away / friction['presliding'], 'bristle_damping': friction['bristle_damping'],
            'stop_stiffness': declared['end_stop']['stiffness'], 'stop_damping': declared['end_stop']['damping'],
            'brake_stiffness': declared['brake']['stiffness'], 'brake_damping': declared['brake']['damping']}
        for name, value in expected.items():
            np.testing.assert_allclose(axis[name], value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        list(machine.supply[0]), [2.1e7, 3e5, 1, supply['max_flow'], 2e6, supply['line_volume'] / bulk, 1,
                                  *supply['load_sensing'].values(), 3e5], rtol=1e-12)
    assert machine.axes['lower'].tolist() == [-2.0, 0.1]


def test_limits_without_stops_and_strokes_without_limits():
    def change(contents):
        contents['axes']['slew']['end_stop']['stiffness'] = 0.0
        contents['cylinders']['lift']['end_stop']['stiffness'] = 1e7

    machine = post(change)
    assert machine.axes['lower'].tolist() == [-np.inf, 0.1]
    assert machine.axes['upper'].tolist() == [np.inf, 0.55]


def test_temperature_of_the_oil(crane):
    """Warm oil is thin and soft; the records of a machine are at the temperature that it declares."""
    oil = crane.hydraulics.oil
    assert api.oil_factors(oil) == (1.0, 1.0)
    np.testing.assert_allclose(api.oil_factors(oil, 60.0), [np.exp(-0.6), np.exp(-0.1)])
    np.testing.assert_allclose(api.oil_factors(oil, 20.0, 60.0), [np.exp(1.2), np.exp(0.2)])
    cold = make_crane(lambda text: text.replace('bulk_modulus: 800.0e6', 'temperature: 0\n  bulk_modulus: 8e8'))
    viscosity, bulk = api.oil_factors(oil, 0.0)
    np.testing.assert_allclose(cold.cylinders['bulk'], bulk * crane.cylinders['bulk'])
    np.testing.assert_allclose(cold.cylinders['leak'], crane.cylinders['leak'] / viscosity)
    np.testing.assert_allclose(cold.axes['viscous'], viscosity * crane.axes['viscous'])
    np.testing.assert_array_equal(cold.axes['coulomb'], crane.axes['coulomb'])


DYNAMICS = '<dynamics damping="120" friction="300"/>'


def rubbing(urdf, *joints):
    for name in joints:
        urdf = re.sub(rf'(<joint name="{name}" type="\w+">)', rf'\1{DYNAMICS}', urdf, count=1)
    return urdf


def test_friction_of_the_urdf_counts_where_hydraulics_give_none():
    machine = Machine(rubbing(CRANE_URDF, 'slew', 'lift_boom'), CRANE)
    assert (machine.axes['coulomb'][0], machine.axes['viscous'][0]) == (300.0, 120.0)
    assert machine.axes['slip'][0] == 5e-3
    x, rates = machine.manipulator.initial_position, np.array([0.2, 0.1, 0.1, 0.2])
    smooth = api.frictionless(machine.manipulator, machine.hydraulics)
    assert smooth is not machine.manipulator
    lost = machine.manipulator.bias_forces(x, rates) - smooth.bias_forces(x, rates)
    # the slew's is in the records, that of the boom's pin stays in the mechanism
    np.testing.assert_allclose(lost, [300 * np.tanh(0.2 / 5e-3) + 120 * 0.2, 0, 0, 0], atol=1e-9)
    bare = psdyn_ros.load(CRANE_URDF)
    pin = smooth.bias_forces(x, rates) - bare.bias_forces(x, rates)
    assert abs(pin[1]) > 100.0
    np.testing.assert_allclose(np.delete(pin, 1), 0.0, atol=1e-9)


def test_friction_of_a_general_machine(excavator):
    m = psdyn_ros.load(rubbing(EXCAVATOR_URDF, 'arm_cylinder', 'boom_cylinder_left', 'bucket'))
    smooth = api.frictionless(m, excavator.hydraulics)
    joints = smooth.machine.description.joints
    assert [joints[name].damping for name in ('arm_cylinder', 'boom_cylinder_left', 'bucket')] == [0, 0, 120]
    x, rates = m.initial_position, np.full(4, 0.1)
    assert abs(m.bias_forces(x, rates) - smooth.bias_forces(x, rates))[2] == pytest.approx(312.0, rel=1e-6)


def test_friction_of_both_is_refused():
    with pytest.raises(ModelError, match=r"line 18\): cylinder 'lift_cylinder': 'friction' is given, and the URDF "
                       r"gives joint 'lift_cylinder' .line \d+. <dynamics damping=\"120\" friction=\"300\"/> too"):
        Machine(rubbing(CRANE_URDF, 'lift_cylinder'), CRANE.read_text().replace('# Hydraulics', '#\n# Hydraulics'))


def limited(urdf, name, lower, upper):
    """Return the URDF with other limits of a joint."""
    return re.sub(rf'(<joint name="{name}".*?<limit )lower="\S+" upper="\S+"',
                  rf'\1lower="{lower}" upper="{upper}"', urdf, count=1, flags=re.DOTALL)


def with_stroke(source, name, stroke):
    contents = yaml.safe_load(source.read_text())
    contents['cylinders'][name]['stroke'] = stroke
    return yaml.safe_dump(contents)


def test_a_stroke_beyond_the_toggle_is_a_warning_while_the_limits_keep_off(crane):
    warning, = check_hydraulics(crane.manipulator, crane.hydraulics)
    assert re.search(r"cylinder 'lift_cylinder': 'stroke', 0 to 0.59 m, is longer than its loop allows, which has a "
                     r'toggle point at 0.55322\d m; the limits of the joint, 0 to 0.5 m, keep off it', warning)


@pytest.mark.parametrize('urdf, source, error, words', [
    (limited(CRANE_URDF, 'lift_cylinder', 0, 0.56), CRANE.read_text(), LoopError,
     r"'lift_cylinder': the joint's limits, 0 to 0.56 m, reach beyond a toggle point of its loop, which closes between "
     r'-?[\d.]+ and 0.55322\d m'),
    (limited(CRANE_URDF, 'tilt_cylinder', 0, 0.58), with_stroke(CRANE, 'tilt_cylinder', 0.62), None, ''),
    (limited(CRANE_URDF, 'tilt_cylinder', 0.03, 0.615), with_stroke(CRANE, 'tilt_cylinder', 0.62), LoopError,
     "'tilt_cylinder': the joint's limits, 0.03 to 0.615 m, reach beyond a toggle point"),
    (limited(CRANE_URDF, 'telescope', 0, 1.2), CRANE.read_text(), ModelError,
     r"'telescope': the limits of the joint .line \d+., 0 to 1.2 m, are not within 'stroke', 0 to 1.1 m"),
    (limited(CRANE_URDF, 'telescope', -0.1, 1), CRANE.read_text(), ModelError, '-0.1 to 1 m, are not within'),
    (limited(EXCAVATOR_URDF, 'arm_cylinder', 0, 2.5), with_stroke(EXCAVATOR, 'arm_cylinder', 2.5), LoopError,
     "'arm_cylinder': the joint's limits, 0 to 2.5 m, reach beyond a toggle point"),
    # loops that are no triangles
    (limited(EXCAVATOR_URDF, 'bucket_cylinder', 0, 1.6), with_stroke(EXCAVATOR, 'bucket_cylinder', 1.6), LoopError,
     "'bucket_cylinder': the joint's limits, 0 to 1.6 m, reach beyond a toggle point"),
    (POST, yaml.safe_dump({**everything(), 'axes': {'lift': everything()['axes']['slew']},
                           'cylinders': {'slew': everything()['cylinders']['lift']}}), ActuationError,
     r"cylinder 'slew': the joint .line \d+. is revolute; a cylinder drives a prismatic joint"),
], ids=range(8))
def test_strokes_and_joints_that_do_not_fit(urdf, source, error, words):
    options = {'actuated': list(ACTUATORS)} if urdf is POST else {}
    if error is None:
        Machine(urdf, source, **options)
        return
    with pytest.raises(error, match=words):
        Machine(urdf, source, **options)


def test_a_stroke_beyond_the_toggle_of_a_four_bar():
    manipulator = psdyn_ros.load(EXCAVATOR_URDF)
    hydraulics = read_hydraulics(with_stroke(EXCAVATOR, 'bucket_cylinder', 1.6), manipulator.actuators)
    warning, = check_hydraulics(manipulator, hydraulics)
    toggle = float(re.search(r'toggle point at ([\d.]+) m', warning).group(1))
    assert 1.04 < toggle < 1.6
    # as far as the four-bar goes, and no further
    positions = dict(zip(*manipulator.joint_state(manipulator.initial_position)[:2]))
    joint_map = manipulator.joint_map(('bucket_cylinder', *manipulator.coordinates[:3]))
    others = [positions[name] for name in manipulator.coordinates[:3]]
    joint_map.state([toggle - 1e-4, *others])
    with pytest.raises(psdyn_ros.PsdynError):
        joint_map.state([toggle + 1e-4, *others])


def test_the_axis_must_point_to_the_rod_eye():
    reversed_rod = re.sub(r'(<joint name="lift_cylinder".*?)<axis xyz="1 0 0"/>(.*?)lower="0" upper="0.5"',
                          r'\1<axis xyz="-1 0 0"/>\2lower="-0.5" upper="0"', CRANE_URDF, count=1, flags=re.DOTALL)
    reversed_rod = reversed_rod.replace('<origin xyz="0.085 0 0"/>', '<origin xyz="0.585 0 0"/>', 1)
    with pytest.raises(psdyn_ros.PsdynError):
        Machine(reversed_rod, CRANE)
    moved = limited(reversed_rod, 'lift_cylinder', 0, 0.5)
    try:
        manipulator = psdyn_ros.load(moved)
    except psdyn_ros.PsdynError:
        pytest.fail('the machine is sound without its hydraulics')
    with pytest.raises(LoopError, match="'lift_cylinder': the axis of the joint points from the rod eye to the barrel"):
        api.hydraulic_records(manipulator, read_hydraulics(CRANE, manipulator.actuators))


def test_an_effort_limit_beyond_the_supply_is_a_warning(crane):
    assert not any('effort' in warning for warning in check_hydraulics(crane.manipulator, crane.hydraulics))
    weak = read_hydraulics(CRANE.read_text().replace('19.0e6', '15.0e6'), crane.manipulator.actuators)
    found = [warning for warning in check_hydraulics(crane.manipulator, weak) if 'effort' in warning]
    assert len(found) == 3
    assert re.search(r"'lift_cylinder': the effort limit of the joint, 92100 N, is more than supply pressure and area "
                     r'give, 71962\.\d N', found[0])


def test_hydraulics_of_another_machine(crane):
    other = psdyn_ros.load(EXCAVATOR_URDF)
    with pytest.raises(ActuationError, match="cylinder 'lift_cylinder': 'excavator' has no such actuator"):
        api.hydraulic_records(other, crane.hydraulics)
    shorter = psdyn_ros.load((URDF / 'hiab_xs031_lift.urdf').read_text())
    lift = read_hydraulics(yaml.safe_dump({key: value if key != 'cylinders' else {
        'lift_cylinder': value['lift_cylinder']} for key, value in yaml.safe_load(CRANE.read_text()).items()
        if key != 'axes'}), shorter.actuators)
    with pytest.raises(ActuationError, match="nothing for slew, tilt_cylinder, telescope of 'hiab_xs031'; expected"):
        check_hydraulics(crane.manipulator, lift)
