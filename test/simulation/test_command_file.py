"""Commands over time from files."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from psdyn_ros.model.errors import PsdynError
from psdyn_ros.simulation.command_file import read_commands

ACTUATORS = ['slew', 'lift_cylinder', 'telescope']


def written(folder, text, name='commands.csv'):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_csv_and_yaml_say_the_same(tmp_path):
    csv = written(tmp_path, 'time, lift_cylinder, slew\n0, 0.1, 500\n# a remark\n0.5, , nan\n\n1.5, -0.2,\n')
    yaml = written(tmp_path, '- {time: 0, lift_cylinder: 0.1, slew: 500}\n- {time: 0.5, slew: .nan}\n'
                             '- {time: 1.5, lift_cylinder: -0.2}\n', 'commands.yaml')
    first, second = read_commands(csv, ACTUATORS), read_commands(yaml, ACTUATORS)
    np.testing.assert_array_equal(first.times, [0.0, 0.5, 1.5])
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.at(0.4), [500.0, 0.1, np.nan])
    np.testing.assert_array_equal(first.at(0.5), [np.nan, 0.1, np.nan])
    np.testing.assert_array_equal(first.at(9.0), [np.nan, -0.2, np.nan])
    assert first.next_change(0.0) == 0.5 and first.next_change(0.5) == 1.5 and first.next_change(1.5) == math.inf


@pytest.mark.parametrize('text', ['\ufefftime,slew\n0.5,1\n', '# by hand\n\ntime,slew\n0.5,1\n'])
def test_what_spreadsheets_and_people_put_before_the_header_is_passed_over(tmp_path, text):
    assert read_commands(written(tmp_path, text), ACTUATORS).next_change(0.0) == 0.5


def test_nothing_is_commanded_before_the_first_time(tmp_path):
    table = read_commands(written(tmp_path, 'time,slew\n0.5,1\n'), ACTUATORS)
    assert np.isnan(table.at(0.49)).all() and table.next_change(0.0) == 0.5


@pytest.mark.parametrize('text, name, message', [
    ('', 'c.csv', 'no commands'),
    ('time,slew\n', 'c.csv', 'no commands'),
    ('time,lift_cylindr\n0,1\n', 'c.csv', "line 1: 'lift_cylindr': no such actuator; did you mean 'lift_cylinder'?"),
    ('slew\n1\n', 'c.csv', "line 1: no 'time' in the header slew"),
    ('time;slew\n0;1\n', 'c.csv', "line 1: no 'time' in the header time;slew; columns are separated by ','"),
    ('time,slew,telescope\n0,9,0.5\n1,9,30\n', 'c.csv', "line 3: 'telescope' is 30; expected an opening of its valve"),
    ('time,slew,slew\n0,1,1\n', 'c.csv', 'a column stands twice'),
    ('time,slew\n0\n', 'c.csv', 'line 2: 1 fields; expected 2'),
    ('time,slew\n0,up\n', 'c.csv', "line 2: 'slew' is 'up'; expected a number"),
    ('time,slew\n0,inf\n', 'c.csv', "'slew' is infinite"),
    ('time,slew\n-1,0\n', 'c.csv', 'time -1; expected a finite one from 0 on'),
    ('time,slew\nnan,0\n', 'c.csv', 'time nan'),
    ('time,slew\n1,0\n1,0\n', 'c.csv', 'line 3: time 1; expected a finite one after 1'),
    ('time,slew\n1700000000,0\n1700000001,1\n', 'c.csv',
     "c.csv', line 2: time 1700000000: epoch stamps? expected seconds since the start"),
    ('{time: 0}', 'c.yaml', 'expected a list of'),
    ('- 3', 'c.yaml', 'entry 1: 3; expected a mapping'),
    ('- {time: 0, slew: true}', 'c.yaml', "entry 1: 'slew' is True; expected a number"),
    ('- {time: 0, slew: [1]}', 'c.yaml', 'expected a number'),
    ('- {time: 0, slew: !!python/object:os.system x}', 'c.yaml', 'is not YAML'),
    ('[', 'c.yaml', 'is not YAML'),
])
def test_bad_files_are_named(tmp_path, text, name, message):
    with pytest.raises(PsdynError) as caught:
        read_commands(written(tmp_path, text, name), ACTUATORS, openings=['telescope'])
    assert message in str(caught.value)


def test_commands_of_some_actuators_are_refused_where_brakes_hold_all_or_none(tmp_path):
    whole = 'time,slew,lift_cylinder,telescope\n0,1,2,3\n0.5,nan,nan,nan\n1,4,5,6\n'
    assert read_commands(written(tmp_path, whole), ACTUATORS, all_or_none=True).values.shape == (3, 3)
    for text, name, message in (
            ('time,slew\n0,1\n', 'c.csv', "c.csv', line 2: no command of lift_cylinder, telescope; without"),
            (whole + '2,nan,,\n', 'd.csv', "d.csv', line 5: no command of slew; without hydraulics"),
            ('- {time: 0, slew: 1}', 'c.yaml', "c.yaml', entry 1: no command of lift_cylinder, telescope;")):
        with pytest.raises(PsdynError) as caught:
            read_commands(written(tmp_path, text, name), ACTUATORS, all_or_none=True)
        assert message in str(caught.value)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(PsdynError, match='nowhere.csv'):
        read_commands('nowhere.csv', ACTUATORS)


@given(text=st.text(max_size=200), suffix=st.sampled_from(['csv', 'yaml']))
@settings(max_examples=examples(200), deadline=None)
def test_garbage_is_refused_or_read(tmp_path_factory, text, suffix):
    path = tmp_path_factory.mktemp('garbage') / f'c.{suffix}'
    path.write_text(text)
    try:
        table = read_commands(str(path), ACTUATORS)
    except PsdynError:
        return
    assert (np.diff(table.times) > 0).all() and not np.isinf(table.values).any()
