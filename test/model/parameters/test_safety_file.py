"""What a safety file says arrives in arrays; what is wrong or unsafe in it is refused with the reason."""

import re

import numpy as np
import pytest
import yaml
from conftest import examples
from hypothesis import given, settings
from support.control.safety_declarations import ACTUATORS, INTERFACES, LIMITS, SUPPLY, contents, declaration
from support.harmed_text import harmed_text
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import PsdynError
from psdyn_ros.control.safety.declaration_checks import check_safety
from psdyn_ros.model.errors import ActuationError, DuplicateNameError, ModelError, ShapeError, UnknownNameError
from psdyn_ros.model.parameters import safety as model
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.model.yaml_file import MAX_DECLARATION

CONFIG = ROOT / 'config'
EVERYTHING = '''\
timeouts: {degraded_misses: 4, stopping: 0.03, safe: 0.15, stream: 0.12, emergency_stop: 0.08,
           simulated_pause: 0.5}
stop_time: 0.7
probation: 2.0
plausibility: {jump_margin: 0.003, freeze_time: 0.11, freeze_speed: 0.03, velocity_window: 0.06,
               velocity_residual: 0.07, clock_skew: 0.004, start_tolerance: 0.02, closure_tolerance: 0.006,
               sigma_slow: 0.2, sigma_stop: 0.1}
actuators:
  lift:
    safe_output: {valve: neutral, velocity: 0.0, effort: 4e4, pressure: gravity}
    deceleration: 0.5
    tracking_tolerance: 0.03
    command_rate: {valve: 20.0, velocity: 5.0, effort: 1e6, pressure: 2e9}
    command_limit: {valve: 0.8, velocity: 0.25, effort: 6e4, pressure: 1.2e7}
    acceleration: 2.0
    jerk: 30.0
    standstill_speed: 0.015
    soft_margin: 0.02
    swing_deviation: 0.03
'''
LIFT = psdyn_ros.Limits(*(row[1:2] for row in LIMITS))
SOUND = yaml.safe_dump(contents(), sort_keys=False)


def lift(interface, text=EVERYTHING):
    return read_safety(text, ('lift',), (interface,), LIFT, SUPPLY)


# what is read

@pytest.mark.parametrize('interface, kind, value, rate, limit', [
    ('valve', 'neutral', 0.0, 20.0, 0.8), ('velocity', 'number', 0.0, 5.0, 0.25), ('effort', 'number', 4e4, 1e6, 6e4),
    ('pressure', 'gravity', np.nan, 2e9, 1.2e7)])
def test_every_parameter_arrives(interface, kind, value, rate, limit):
    d = lift(interface)
    assert (d.actuators, d.interfaces, d.safe_kind) == (('lift',), (interface,), (kind,))
    t = d.timeouts
    assert (t.degraded_misses, t.stopping, t.safe, t.stream, t.emergency_stop) == (4, 0.03, 0.15, 0.12, 0.08)
    assert (t.stopping_ns, t.safe_ns, t.stream_ns, t.emergency_stop_ns, t.simulated_pause_ns) == (
        30e6, 150e6, 120e6, 80e6, 500e6)
    assert (d.stop_time, d.stop_time_ns, d.probation, d.probation_ns) == (0.7, 700e6, 2.0, 2e9)
    p = d.plausibility
    assert [getattr(p, name) for name in yaml.safe_load(EVERYTHING)['plausibility']] == [
        0.003, 0.11, 0.03, 0.06, 0.07, 0.004, 0.02, 0.006, 0.2, 0.1]
    assert (p.freeze_ns, p.clock_skew_ns) == (110e6, 4e6)
    for name, expected in (('safe_value', value), ('command_rate', rate), ('command_limit', limit),
                           ('deceleration', 0.5), ('tracking_tolerance', 0.03), ('acceleration', 2.0), ('jerk', 30.0),
                           ('standstill_speed', 0.015),
                           ('soft_margin', 0.02), ('swing_deviation', 0.03)):
        array = getattr(d, name)
        assert array.shape == (1,)
        assert array.dtype == float
        np.testing.assert_equal(array[0], expected)
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


def test_what_is_not_said():
    d = declaration({'actuators': contents()['actuators'], 'stop_time': 0.5})
    assert d.timeouts == model.Timeouts(degraded_misses=3, stopping=0.02, safe=0.1, stream=0.1, emergency_stop=0.1)
    assert d.plausibility == model.Plausibility()
    assert d.probation == 1.0
    assert d.command_limit.tolist() == [3e4, 1.0, 1.5e7, 0.3], 'URDF effort, fully open, as declared, URDF velocity'
    assert (d.acceleration.tolist(), d.jerk.tolist()) == ([2.0] * 4, [40.0] * 4)
    assert d.soft_margin.tolist() == [0.005] * 4 and d.swing_deviation.tolist() == [0.0] * 4
    assert d.safe_kind == ('number', 'neutral', 'gravity', 'brake')
    np.testing.assert_equal(d.safe_value, [3000.0, 0.0, np.nan, np.nan])


def test_the_supply_limits_pressures():
    changed = contents()
    del changed['actuators']['tilt']['command_limit']
    assert declaration(changed).command_limit[2] == SUPPLY
    with pytest.raises(ModelError, match="'command_limit' of interface pressure is missing, and nothing else"):
        read_safety(yaml.safe_dump(changed), ACTUATORS, INTERFACES, LIMITS)


def test_a_file_and_its_text_say_the_same(tmp_path):
    path = tmp_path / 'safety.yaml'
    path.write_text(SOUND)
    d = read_safety(path, ACTUATORS, INTERFACES, LIMITS, SUPPLY)
    assert d.where == f"safety file '{path}'"
    assert d.command_rate.tolist() == declaration().command_rate.tolist()


# what is refused

def changed(old, new, text=SOUND):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def unsafe(interface, value):
    return re.sub(rf'(safe_output: .*{interface}: )[^,}}]*', rf'\g<1>{value}', EVERYTHING)


BAD = [
    # safe outputs, tolerances, rates and decelerations have no default
    (changed('    safe_output:\n      valve: neutral\n', ''), ModelError,
     "'lift': 'safe_output' is missing .by interface"),
    (changed('      valve: neutral\n', '      velocity: neutral\n'), ModelError,
     r"line 18\): actuator 'lift': 'safe_output' says nothing of interface valve, which is in use; it has no default"),
    (changed('      valve: 50.0\n', '      effort: 50.0\n'), ModelError,
     "'lift': 'command_rate' says nothing of interface valve"),
    (changed('    deceleration: 2.0\n', ''), ModelError,
     r"line \d+\): .*'deceleration' of 'slew' is missing: .*; recommended, from its rated speed: 0.6$"),
    (changed('stop_time: 0.5\n', ''), ModelError,
     r"line 1\): 'stop_time' is missing: .*; recommended, from rated speeds and decelerations: 1$"),
    (changed('stop_time: 0.5\n', '').replace('deceleration: 2.0', 'deceleration: 0.3'), ModelError,
     r"'stop_time' is missing: .*: 2.9$"),
    (changed('    tracking_tolerance: 0.05\n', ''), ModelError, "'slew': 'tracking_tolerance' is missing"),
    (changed('tracking_tolerance: 0.05', 'tracking_tolerance: 0'), ModelError, "'tracking_tolerance' is 0; expected"),
    (SOUND[:SOUND.index('  telescope:')], ActuationError, 'nothing for telescope; expected every actuator, since safe'),
    (SOUND[:SOUND.index('actuators:')], ModelError, "'actuators' is missing; expected actuators"),
    # the hard cap
    *((changed('stopping: 0.02', f'stopping: 0.02\n  {name}: 0.201'), ModelError,
       rf"timeouts: '{name}' is 0.201; expected 0.00\d to 0.2 ") for name in ('stream', 'emergency_stop')),
    (changed('safe: 0.1', 'safe: 0.5'), ModelError, "timeouts: 'safe' is 0.5; expected 0.002 to 0.2 .s without"),
    (changed('stopping: 0.02', 'stopping: 0.1'), ModelError, r"line 2\): timeouts: 'stopping' 0.1 is not below 'safe'"),
    (changed('stopping: 0.02', 'degraded_misses: 2.5'), ModelError, "'degraded_misses' is 2.5; expected a whole"),
    (changed('stop_time: 0.5', 'stop_time: 11'), ModelError, "line 4.: 'stop_time' is 11; expected 0.05 to 10"),
    (changed('probation: 1.0', 'probation: .nan'), ModelError, "'probation' is '.nan'; expected a finite number"),
    (changed('probation: 1.0', 'probation: !x 1'), ModelError, "YAML tag '!x'"),
    (changed('probation: 1.0', 'probation: {a: 1}'), ModelError, 'expected a text, a number'),
    (changed('stop_time: 0.5', 'plausibility: {sigma_slow: 0.04}'), ModelError,
     "plausibility: 'sigma_stop' 0.05 is not below 'sigma_slow' 0.04"),
    (changed('stop_time: 0.5', 'plausibility: {freeze_time: 0.3}'), ModelError, "'freeze_time' is 0.3; expected 0.002"),
    # names
    (changed('timeouts:', 'timeout:'), ModelError, "'timeout' is not known; did you mean 'timeouts'"),
    (changed('  lift:', '  lfit:'), UnknownNameError, "'lfit': the machine has no such actuator; did you mean 'lift'"),
    (changed('stopping:', 'stoping:'), ModelError, "'stoping' is no parameter of it; did you mean 'stopping'"),
    (changed('effort: 3000.0', 'efort: 3000.0'), ModelError, "'efort' is no parameter of it; did you mean 'effort'"),
    (changed('deceleration: 2.0', 'decelration: 2.0'), ModelError, "'decelration' is no .*; did you mean 'decelerat"),
    (changed('probation: 1.0', 'stop_time: 0.5'), DuplicateNameError, "'stop_time' is there twice"),
    (changed('valve: neutral', 'valve: neutrl'), ModelError,
     "'valve' is 'neutrl'; expected neutral, brake, gravity or a number .*; did you mean 'neutral'"),
    (changed('valve: neutral', 'valve: [0]'), ModelError, r"'valve' is \['0'\]; expected neutral, brake"),
    (changed('valve: neutral', 'valve: inf'), ModelError, "'valve' is 'inf'; expected a finite number"),
    (changed('valve: neutral', 'valve: free'), ModelError, "'valve' is 'free'; expected neutral, brake"),
    # limits
    (changed('effort: 3000.0', 'effort: 30001.0'), ModelError,
     r"'slew': safe_output: 'safe_output' of interface effort is 30001, beyond the limit of commands, 30000"),
    (changed('pressure: 15000000.0', 'pressure: 2e7'), ModelError,
     r"'command_limit' of interface pressure is 2e\+07, more than the 1.9e\+07 Pa that the actuator has"),
    (SOUND.replace('jerk: 40.0', 'jerk: -1', 1), ModelError, "'jerk' is -1; expected 0.001 to 1e"),
    (SOUND.replace('    acceleration: 2.0\n', '', 1), ModelError,
     r"line \d+\).*'acceleration' of 'slew' is missing: .* recommended, .*: 2$"),
    (SOUND.replace('    jerk: 40.0\n', '', 1), ModelError, r"line \d+\).*'jerk' of 'slew' is missing: .*: 40$"),
    (SOUND.replace('    standstill_speed: 0.02\n', '', 1), ModelError,
     r"line \d+\).*'standstill_speed' of 'slew' is missing: .*: 0.03$"),
    (SOUND.replace('standstill_speed: 0.02', 'standstill_speed: 5.0', 1), ModelError,
     r"'standstill_speed' of 'slew' is 5, not below its rated speed, 0.6: it would never act; recommended: 0.03$"),
    (SOUND.replace('acceleration: 2.0', 'acceleration: 1.9', 1), ModelError,
     r"'slew': .*'acceleration' 1.9 is less than 'deceleration' 2, which a stop has"),
    ('\n', ModelError, r'line 1\): expected a mapping'),
    ('a: [\n', ModelError, 'is not YAML'),
]


@pytest.mark.parametrize('text, error, words', BAD, ids=[str(number) for number in range(len(BAD))])
def test_what_is_wrong_is_named(text, error, words, tmp_path):
    path = tmp_path / 'machine.yaml'
    path.write_text(text)
    with pytest.raises(error, match=words) as caught:
        read_safety(path, ACTUATORS, INTERFACES, LIMITS, SUPPLY)
    assert str(path) in str(caught.value)
    assert type(caught.value) is error


@pytest.mark.parametrize('interface, value, reason', [
    ('effort', 'neutral', "without force the load would drop; expected 'brake', 'gravity' or a number that holds it"),
    ('pressure', 'neutral', 'without force the load would drop'),
    ('valve', 'gravity', "no effort is commanded there; expected 'neutral' or 'brake'"),
    ('velocity', 'gravity', 'no effort is commanded there'),
    ('valve', '0.1', "the actuator would never stop; expected 'neutral' or 'brake'"),
    ('velocity', '-1e-3', 'the actuator would never stop'),
])
def test_unsafe_outputs_are_refused_with_the_reason_in_whatever_interface(interface, value, reason):
    for used in model.INTERFACES:
        with pytest.raises(ModelError, match=rf"'safe_output' of interface {interface} is \S+: {reason}"):
            lift(used, unsafe(interface, value))


@pytest.mark.parametrize('interface', ['valve', 'velocity'])
def test_zero_is_safe_where_it_holds_the_load(interface):
    assert lift(interface, unsafe(interface, '0')).safe_value.tolist() == [0.0]


@pytest.mark.parametrize('old, new, words', [
    ('soft_margin: 0.02', 'soft_margin: 0.25', "'soft_margin' 0.25 leaves nothing of the 0.5 between the limits"),
    ('swing_deviation: 0.03', 'swing_deviation: 0.25', "'swing_deviation' 0.25 leaves nothing of the 0.5 between the"),
    ('swing_deviation: 0.03', 'swing_deviation: -0.1', "'swing_deviation' is -0.1; expected 0 to 1"),
    ('tracking_tolerance: 0.03', 'tracking_tolerance: 0.5', "'tracking_tolerance' 0.5 is all of the 0.5 between the l"),
])
def test_margins_must_leave_something(old, new, words):
    with pytest.raises(ModelError, match=words):
        lift('valve', changed(old, new, EVERYTHING))


@pytest.mark.parametrize('interfaces, error, words', [
    (INTERFACES[:3], ShapeError, '3 interfaces for 4 actuators; expected one for each of slew, lift, tilt, telescope'),
    ((*INTERFACES[:3], 'speed'), ModelError, "interface of 'telescope': there is no 'speed'"),
    ((*INTERFACES[:3], 'velocty'), ModelError, "did you mean 'velocity'"),
])
def test_interfaces_that_cannot_be(interfaces, error, words):
    with pytest.raises(error, match=words):
        read_safety(SOUND, ACTUATORS, interfaces, LIMITS, SUPPLY)


def test_files_that_cannot_be_read(tmp_path):
    for source, words in ((tmp_path / 'nowhere.yaml', 'nowhere.yaml'), (5, 'safety 5: expected a YAML file'),
                          (SOUND + '# ' + 'x' * MAX_DECLARATION,
                           f'characters; at most {MAX_DECLARATION} are read')):
        with pytest.raises(ModelError, match=words):
            read_safety(source, ACTUATORS, INTERFACES, LIMITS, SUPPLY)


@settings(max_examples=examples(80))
@given(harmed_text([SOUND, EVERYTHING]))
def test_harmed_files_are_read_or_refused(text):
    try:
        d = read_safety(text + '\n', ACTUATORS, INTERFACES, LIMITS, SUPPLY)
    except PsdynError as error:
        assert str(error)
    else:
        assert np.isfinite(d.command_limit).all()
        assert (d.command_rate > 0).all()
        assert max(d.timeouts.stopping, d.timeouts.safe, d.timeouts.stream, d.timeouts.emergency_stop) <= 0.2


# what does not fit the machine

MACHINES = ('hiab_xs031', 'excavator', 'four_bar', 'five_bar', 'pkm_2pur2rpu')


def machine(name):
    return psdyn_ros.load(ROOT / 'urdf' / f'{name}.urdf')


CRANE = (CONFIG / 'hiab_xs031_safety.yaml').read_text()


def check(crane, text, interfaces='effort', hydraulics=None):
    interfaces = interfaces if isinstance(interfaces, tuple) else (interfaces,) * 4
    check_safety(read_safety(text, crane.actuators, interfaces, crane.limits, 19e6), crane, hydraulics)


@pytest.mark.parametrize('name', MACHINES)
def test_the_machines_of_the_package_are_safe_in_every_interface_that_is_declared(name):
    m, hydraulics = machine(name), None
    path = CONFIG / f'{name}_safety.yaml'
    declared = next(iter(yaml.safe_load(path.read_text())['actuators'].values()))['safe_output']
    if 'pressure' in declared:
        hydraulics = read_hydraulics(CONFIG / f'{name}_hydraulics.yaml', m.actuators)
    for interface in declared:
        d = read_safety(path, m.actuators, (interface,) * len(m.actuators), m.limits, 19e6)
        check_safety(d, m)
        check_safety(d, m, hydraulics)
        assert set(d.safe_kind) <= {'neutral', 'brake'}
        assert d.timeouts == model.Timeouts()
    assert 'effort' in declared


@pytest.mark.parametrize('value, words', [
    ('0.0', r"actuator 'lift_cylinder': its safe output of 0 N or N m does not hold its load, which takes 48930.6 N or "
            r'N m, to within 10% of the limit, 92100 N or N m'),
    ('39700.0', 'its safe output of 39700 N or N m does not hold'), ('39740.0', None), ('58120.0', None),
    ('58150.0', 'its safe output of 58150 N or N m does not hold'),
])
def test_a_constant_effort_must_hold_the_load(crane, value, words):
    text = with_lift(safe_output={'effort': float(value)})
    if words is None:
        check(crane, text)
    else:
        with pytest.raises(ModelError, match=words):
            check(crane, text)


def with_lift(**changed):
    parsed = yaml.safe_load(CRANE)
    parsed['actuators']['lift_cylinder'] = dict(parsed['actuators']['lift_cylinder'], **changed)
    return yaml.safe_dump(parsed)


def test_a_constant_pressure_is_held_against_the_load_of_its_cylinder(crane, hydraulics):
    area = hydraulics.cylinders['lift_cylinder'].area_a
    for value, words in ((48930.6 / area, None), (0.0, 'its safe output of 0 Pa does not hold its load')):
        text = with_lift(safe_output={'pressure': value})
        with pytest.raises(ModelError, match='is a pressure, which cannot be held against the load with'):
            check(crane, text, 'pressure')
        if words is None:
            check(crane, text, 'pressure', hydraulics)
        else:
            with pytest.raises(ModelError, match=words):
                check(crane, text, 'pressure', hydraulics)


def test_commands_must_reach_what_holds_the_load(crane):
    text = with_lift(command_limit={'effort': 4e4})
    with pytest.raises(ModelError, match="'lift_cylinder': commands up to 40000 N or N m do not hold its load"):
        check(crane, text)
    check(crane, with_lift(command_limit={'effort': 8e4}))
    check(crane, text, 'valve')


def test_every_reason_is_given(crane):
    text = with_lift(command_limit={'effort': 4e4}, deceleration=0.1, command_rate={'effort': 1e4},
                     tracking_tolerance=0.005)
    with pytest.raises(ModelError) as caught:
        check(crane, text)
    said = str(caught.value)
    for words in ('commands up to 40000 N or N m do not hold its load',
                  "'command_rate' 10000 is too slow: from limit to limit takes 8 s of",
                  "'deceleration' 0.1 is too low: from 0.3 per s to rest takes 3 s of 'stop_time' 1 s",
                  "'start_tolerance' 0.01 is more than its 'tracking_tolerance' 0.005"):
        assert f"actuator 'lift_cylinder': {words}" in said


def test_the_stop_time_is_enough_to_the_last_digit(crane):
    exact = {'deceleration': 0.3, 'command_rate': {'effort': 2 * 92100.0}}
    check(crane, with_lift(**exact))
    for name, value in (('deceleration', 0.2999), ('command_rate', {'effort': 1.999 * 92100.0})):
        with pytest.raises(ModelError, match=f"'{name}' .* is too"):
            check(crane, with_lift(**{**exact, name: value}))


def test_a_deceleration_must_be_within_the_efforts_of_the_machine(crane):
    with pytest.raises(ModelError, match=r"actuator 'lift_cylinder': 'deceleration' 1.5 takes 1\d{5}\S* N or N m, m"):
        check(crane, with_lift(deceleration=1.5, acceleration=1.5))


def test_a_deviation_that_damps_a_swing_needs_a_load_that_hangs(crane):
    with pytest.raises(ModelError, match="'lift_cylinder': 'swing_deviation' 0.03 without a joint that hangs freely"):
        check(crane, with_lift(swing_deviation=0.03))


def test_a_declaration_for_another_machine(crane):
    with pytest.raises(ActuationError, match='declared for slew, lift, tilt, telescope; .* has slew, lift_cylinder'):
        check_safety(declaration(), crane)


@pytest.mark.parametrize('interface', ['valve', 'effort'])
def test_a_closed_valve_must_hold_the_load(crane, hydraulics, interface):
    text = (CONFIG / 'hiab_xs031_hydraulics.yaml').read_text()
    check(crane, CRANE, interface, hydraulics)
    leaking = text.replace('leakage: 1.0e-16', 'leakage: 1.0e-12', 1)
    leaking = read_hydraulics(leaking, crane.actuators)
    with pytest.raises(ModelError, match="'lift_cylinder': its safe output is '.*', but its receiver has no brake, and "
                                         'on its closed valve the load sinks by 1.94 mm/s'):
        check(crane, CRANE, interface, leaking)
    braked = text.replace('leakage: 1.0e-16', 'leakage: 1.0e-12\n    brake: {stiffness: 1e8, damping: 1e5}', 1).replace(
        'valve_neutral', 'brake', 1)
    check(crane, CRANE, interface, read_hydraulics(braked, crane.actuators))


def test_the_receiver_must_be_declared(crane, hydraulics):
    del hydraulics.axes['slew']
    try:
        with pytest.raises(ModelError, match="'slew': its safe output is 'brake', but hydraulics file .* says nothing"):
            check(crane, CRANE, 'effort', hydraulics)
    finally:
        hydraulics.axes['slew'] = None
