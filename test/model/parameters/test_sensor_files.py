"""YAML files of sensors: what they say, and every way to get them wrong."""

import re

import numpy as np
import pytest
import yaml
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.model.errors import DuplicateNameError, ModelError, PsdynError, UnknownNameError
from psdyn_ros.model.parameters.sensors import Sensor, read_sensors
from psdyn_ros.simulation.sensors.bank import SensorBank

CRANE = ROOT / 'config' / 'hiab_xs031_sensors.yaml'
CHANNELS = ('lift.position', 'lift.velocity', 'lift.effort', 'lift.pressure_a', 'lift.pressure_b', 'tilt.position')


def test_single_joints_differ_from_the_default():
    read = read_sensors('default:\n  position: {noise: 1, delay: 0.5}\n  pressure: {quantum: 6e3}\n'
                        'joints:\n  lift:\n    position: {noise: 2}\n    effort: {bias: -3}\n', CHANNELS)
    assert read.of('lift.position') == Sensor(noise=2.0, delay=0.5)
    assert read.of('tilt.position') == Sensor(noise=1.0, delay=0.5)
    assert read.of('lift.pressure_a') == read.of('lift.pressure_b') == Sensor(quantum=6e3)
    assert read.of('lift.effort') == Sensor(bias=-3.0)
    assert read.of('lift.velocity') == Sensor()


def test_a_set_stands_alone():
    text = 'default: {position: {noise: 1}}\nsets:\n  exact: {}\n  coarse: {default: {position: {quantum: 1}}}\n'
    assert read_sensors(text, CHANNELS).of('lift.position') == Sensor(noise=1.0)
    assert read_sensors(text, CHANNELS, 'exact').of('lift.position') == Sensor()
    assert read_sensors(text, CHANNELS, 'coarse').of('lift.position') == Sensor(quantum=1.0)
    with pytest.raises(UnknownNameError, match=r"sensors file 'text': no set 'corse'; did you mean 'coarse'\?"):
        read_sensors(text, CHANNELS, 'corse')


def test_the_crane_has_plain_sensors_and_a_set_of_good_ones():
    crane = psdyn_ros.load(str(ROOT / 'urdf' / 'hiab_xs031.urdf'))
    cylinders = ('lift_cylinder', 'tilt_cylinder', 'telescope')
    channels = (*(f'{joint}.{kind}' for joint in crane.joints for kind in ('position', 'velocity')),
                *(f'{joint}.effort' for joint in crane.actuators),
                *(f'{cylinder}.pressure_{port}' for cylinder in cylinders for port in 'ab'))
    plain, good = read_sensors(CRANE, channels), read_sensors(str(CRANE), channels, 'good')
    for cylinder in cylinders:
        assert plain.of(f'{cylinder}.position') == Sensor(quantum=1e-4, noise=2e-5)
        assert plain.of(f'{cylinder}.pressure_b') == Sensor(quantum=6e3, noise=5e4)
        assert good.of(f'{cylinder}.position') == Sensor(noise=1e-5)
        assert good.of(f'{cylinder}.pressure_a') == Sensor(noise=2e4)
    for channel in channels:
        assert 0.0 < good.of(channel).noise < plain.of(channel).noise


@pytest.mark.parametrize('text, error, message', [
    ('defalt: {}\n', ModelError, "sensors file 'text' (line 1): 'defalt' is not known; did you mean 'default'?"),
    ('default:\n  positon: {}\n', ModelError,
     "sensors file 'text' (line 2): 'positon' is not known; did you mean 'position'?"),
    ('default:\n  position: {nose: 1}\n', ModelError,
     "sensors file 'text' (line 2): default: position: 'nose' is no parameter of it; did you mean 'noise'?"),
    ('joints:\n  lfit: {}\n', UnknownNameError,
     "sensors file 'text' (line 2): no joint 'lfit' is measured; did you mean 'lift'?"),
    ('joints:\n  lift: {pressure_a: {}}\n', ModelError, "'pressure_a' is not known; did you mean"),
    ('joints:\n  lift:\n    effort: {noise: -1}\n', ModelError,
     "(line 3): joint 'lift': effort: 'noise' is -1; expected 0 to 1e+09 (rms of Gaussian noise"),
    ('default:\n  effort: {noise: .nan}\n', ModelError, "'noise' is '.nan'; expected a finite number"),
    ('default:\n  effort: {noise: nan}\n', ModelError, "'noise' is 'nan'; expected a finite number"),
    ('default:\n  effort: {delay: 1.5}\n', ModelError, "'delay' is 1.5; expected 0 to 1 (s from when"),
    ('default:\n  effort: {rate: -1}\n', ModelError, "'rate' is -1; expected 0 to 1e+06 (Hz"),
    ('default:\n  effort: {quantum: [1, 2]}\n', ModelError, "'quantum' is ['1', '2']; expected a finite number"),
    ('default:\n  effort: {gain_error: 1}\n', ModelError, "'gain_error' is 1; expected -0.5 to 0.5"),
    ('default:\n  effort: {bias: true}\n', ModelError, "'bias' is 'true'; expected a finite number"),
    ('default:\n  effort: 3\n', ModelError, "sensors file 'text' (line 2): default: effort: expected a mapping"),
    ('default:\n  effort: {noise: 1, noise: 2}\n', DuplicateNameError, "(line 2): 'noise' is there twice"),
    ('default: {}\ndefault: {}\n', DuplicateNameError, "(line 2): 'default' is there twice"),
    ('- 1\n- 2\n', ModelError, "sensors file 'text' (line 1): expected a mapping"),
    ('\n', ModelError, "sensors file 'text' (line 1): expected a mapping"),
    ('default: {\n', ModelError, "sensors file 'text' is not YAML"),
    ('default: !!python/object:os.system {}\n', ModelError, 'YAML tag'),
    ('sets:\n  good: {sets: {}}\n', ModelError, "(line 2): 'sets' is not known; there are: default, joints"),
])
def test_bad_files_are_refused_with_their_line(text, error, message):
    with pytest.raises(error, match=re.escape(message)):
        read_sensors(text, CHANNELS)


@pytest.mark.parametrize('source, message', [
    (None, 'sensors None: expected a YAML file or YAML text'), (7, 'sensors 7: expected'),
    ('no_such_file.yaml', "cannot read 'no_such_file.yaml'"),
    ('default: {}\n' * 60_000, 'the sensors have 720000 characters; at most 262144 are read'),
])
def test_bad_sources_are_refused(source, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        read_sensors(source, CHANNELS)


@pytest.mark.parametrize('channel', ['position', '.position', 'lift.pressure', 'lift.postion', '', 'lift.', None])
def test_channels_are_named_by_joint_and_quantity(channel):
    with pytest.raises(ModelError, match='expected <joint or link>.<one of position, velocity, effort, pressure_a, '):
        read_sensors(CRANE, [channel])


SCALARS = st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5),
                    st.sampled_from(['position', 'noise', 'default', 'joints', 'lift', 'sets', 'good']))
KEYS = st.one_of(st.sampled_from(['default', 'joints', 'sets', 'position', 'effort', 'noise', 'rate', 'lift']),
                 st.text(max_size=4))
TREES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3),
                                                      st.dictionaries(KEYS, inner, max_size=4)), max_leaves=12)


@settings(max_examples=examples(300))
@given(TREES)
def test_any_tree_is_read_or_refused(tree):
    text = yaml.safe_dump(tree, allow_unicode=True) + '\n\n'
    try:
        read = read_sensors(text, CHANNELS)
    except PsdynError as error:
        assert str(error)
        assert len(str(error)) < 2000
    else:
        bank = SensorBank(CHANNELS, read, 1e-3, 0)
        assert np.isfinite(bank.sample(0, np.zeros(len(CHANNELS)))[0]).all()


@settings(max_examples=examples(200))
@given(st.binary(max_size=60), st.integers(0, 400))
def test_any_damage_to_a_file_is_read_or_refused(tmp_path_factory, damage, at):
    content = CRANE.read_bytes()
    path = tmp_path_factory.getbasetemp() / 'damaged_sensors.yaml'
    at += content.index(b'default')
    path.write_bytes(content[:at] + damage + content[at + len(damage):])
    channels = tuple(f'{joint}.position' for joint in (
        'slew', 'lift_cylinder', 'lift_boom', 'lift_barrel', 'tilt_cylinder', 'tilt_boom', 'tilt_barrel', 'telescope'))
    try:
        read = read_sensors(path, channels)
    except PsdynError as error:
        assert 'damaged_sensors.yaml' in str(error)
    else:
        assert set(read.sensors) == set(channels)
