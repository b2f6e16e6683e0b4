"""Values at the API of control that are none: refused in a sentence, before anything is controlled."""

import math

import numpy as np
import pytest
from support.control.control_rig import Rig

from psdyn_ros.control import ControllerConfig
from psdyn_ros.control.core.assembly import FIELDS, RANGES
from psdyn_ros.control.laws.registry import OWN
from psdyn_ros.model.errors import ModelError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.nodes.controller.parameters import PARAMETERS

NAME = 'hiab_xs031'


def config(**options):
    return ControllerConfig.from_files(find_machine(NAME), safety=find_config(f'{NAME}_safety.yaml'), **options)


@pytest.mark.parametrize('field, value', [
    *[('rate', value) for value in (1e9, 0, 0.5, -1, math.nan, math.inf, '500', None, True, 1 + 2j, np.array([500.0]))],
    *[('feedforward_ramp', value) for value in (-1, math.nan, math.inf, 'a', None)],
    *[('overrun_share', value) for value in (math.nan, -1, 5, 'x', False)],
    *[('stream_delay', value) for value in (math.nan, -0.1, 'a', None)],
    *[('swing_damping', value) for value in (math.nan, -1, 3, None)],
    *[('emergency_stop', value) for value in (None, 'no', 0, 1, math.nan)],
    *[('simulated_time', value) for value in (None, 'false', 2)],
    *[('passive_states', value) for value in (None, 'x', 3)],
    *[('swing_shaper', value) for value in (None, 'abc', True)],
    *[('law_options', value) for value in (None, 'bandwidth', [1])],
    *[('checks', value) for value in (None, 'abc', (int,), (3,), [])]])
def test_a_field_that_cannot_be_is_refused_by_its_name_and_what_is_expected(field, value):
    with pytest.raises(ModelError) as error:
        config(**{field: value})
    assert str(error.value).startswith(f'{field}={value!r:.80}: expected {FIELDS[field][0]}')


def test_the_ends_of_the_ranges_and_the_numbers_of_numpy_are_taken():
    for field, (low, high) in RANGES.items():
        for value in (low, high) if field not in ('rate', 'stream_delay') else (500, np.float64(250.0), np.int64(200)):
            assert field == 'stream_delay' or getattr(config(**{field: value}), field) == value
    assert not config(emergency_stop=np.False_).emergency_stop


def test_the_ranges_of_the_node_are_those_of_the_configuration():
    for one in PARAMETERS:
        if one.name in RANGES and one.name != 'stream_delay':
            assert (one.low, one.high) == RANGES[one.name]


@pytest.mark.parametrize('options, says', [
    ({'law': 'valve_pid'}, "law 'valve_pid': it needs hydraulics"),
    ({'law_options': {'foo': 1}}, "law_options: 'foo' is no option of the law 'computed_torque'; there are: bandwidth"),
    ({'law_options': {'bandwith': 1}}, "did you mean 'bandwidth'"),
    ({'law_options': {'period': 1}}, "law_options: 'period' is no option"),
    ({'law': 'foo'}, "law 'foo'")])
def test_options_and_hydraulics_are_those_of_the_law(options, says):
    with pytest.raises(ModelError) as error:
        config(**options)
    assert says in str(error.value)


def test_every_parameter_of_a_law_is_an_option_of_it():
    for name, law in OWN.items():
        hydraulics = find_config(f'{NAME}_hydraulics.yaml')
        ControllerConfig.from_files(find_machine(NAME), hydraulics, safety=find_config(f'{NAME}_safety.yaml'), law=name,
                                    law_options=dict.fromkeys(law.parameters.values(), 1.0))


@pytest.mark.parametrize('values, supply', [([['a', 'b']] * 3, None), (np.ones((3, 2)) * 1j, None),
                                            (None, None), (np.ones((3, 2)), '19e6'), (np.ones((3, 2)), [1.0, 2.0])])
def test_pressures_that_are_no_numbers_are_not_used_and_why_is_said(values, supply):
    rig = Rig('valve').hold()
    refused = rig.core.take_pressures(rig.ros_now + 1, rig.ros_now, rig.now, values, supply)
    assert refused and rig.counts['pressures_not_finite'] == 1
