"""Bags that cannot be judged, or only with doubts: `psdyn validate` ends with 2 or says so, and names what is wrong."""

import numpy as np
import pytest
from support.bags import bag_cases as cases
from support.bags.recorded_motion import crane, oil

from psdyn_ros.cli import main
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, TELEMETRY
from psdyn_ros.validation.bags.bulk_decoder import PRESSURE

PERIOD, COUNT = 0.01, 400


@pytest.fixture(scope='module')
def swing():
    return cases.motion(crane(), COUNT, PERIOD)


def states(swing, factor=1.0, **options):
    times, positions, velocities = swing
    return cases.state_messages(crane(), times, factor * positions, factor * velocities, np.ones_like(positions),
                                **options)


def pressures(swing, factor=1.0, shift=0.0, spoiled=()):
    """Messages of the array, stamps shifted by s, some rows NaN."""
    messages = []
    for k, t in enumerate(swing[0]):
        ns = BEGIN + round(t * SECOND)
        values = factor * np.array([8e6, 4e6]) * (1.0 + 0.1 * np.sin(t)) if k not in spoiled else [np.nan, np.nan]
        rows = [(*values, ns / SECOND + shift)] * len(oil().cylinders)
        messages.append((TELEMETRY, ns + 200_000, cases.labelled(rows, tuple(oil().cylinders), (
            'pressure_a', 'pressure_b', 'stamp'))))
    return messages


@pytest.fixture
def validated(capsys, tmp_path):
    """A function that validates a bag from the command line: (exit code, what it printed)."""
    def run(path, *options):
        code = main(['validate', str(path), '--urdf', 'hiab_xs031', *options])
        printed = capsys.readouterr()
        return code, printed.out + printed.err
    return run


def test_what_is_not_there_or_empty_is_said(validated, tmp_path):
    code, text = validated(tmp_path / 'nowhere')
    assert code == 2 and 'nowhere' in text
    (tmp_path / 'nothing').mkdir()
    code, text = validated(tmp_path / 'nothing')
    assert code == 2 and "nothing'" in text
    (tmp_path / 'zero.mcap').write_bytes(b'')
    code, text = validated(tmp_path / 'zero.mcap')
    assert code == 2 and 'zero.mcap' in text
    code, text = validated(cases.write(tmp_path / 'empty.mcap'))
    assert code == 2 and 'empty.mcap' in text and 'no messages' in text


def test_topics_that_do_not_match_are_listed(validated, tmp_path, swing):
    pressure = [('/tank', BEGIN + k, cases.fluid_pressure(BEGIN, 1e5)) for k in range(10)]
    code, text = validated(cases.write(tmp_path / 'a.mcap', pressure, pressures(swing), kinds={'/tank': PRESSURE}))
    assert code == 2 and 'no topic with measured joints' in text
    assert f'/tank  {PRESSURE}  10 messages' in text and TELEMETRY in text


def test_numbers_that_are_none_are_counted_and_too_many_are_unusable(validated, tmp_path, swing):
    code, text = validated(cases.write(tmp_path / 'a.mcap', states(swing), pressures(swing, spoiled=(50, 51))))
    assert code == 1 and f'{TELEMETRY}: 2 messages with numbers that are not finite' in text
    code, text = validated(cases.write(tmp_path / 'b.mcap', states(swing), pressures(swing, spoiled=range(100))))
    assert code == 2 and 'unusable' in text
    code, text = validated(cases.write(tmp_path / 'c.mcap', states(swing, np.nan)))
    assert code == 2 and 'no topic with measured joints' in text


@pytest.mark.parametrize('name, factor, unit, expected', [
    ('states', 1e3, 'in mm?', 2), ('pressures', 1e-3, 'in kPa?', 1), ('pressures', 1e-5, 'in bar', 1)])
def test_units_that_are_off_are_named(validated, tmp_path, swing, name, factor, unit, expected):
    factors = {'states': 1.0, 'pressures': 1.0, name: factor}
    code, text = validated(cases.write(tmp_path / 'a.mcap', states(swing, factors['states']),
                                       pressures(swing, factors['pressures'])))
    assert code == expected and unit in text
    assert ('lift_cylinder.position' if name == 'states' else 'pressures') in text


def test_machines_that_do_not_fit_are_named(validated, tmp_path, swing):
    bag = cases.write(tmp_path / 'a.mcap', states(swing))
    assert main(['validate', str(bag), '--urdf', str(tmp_path / 'none.urdf')]) == 2
    assert main(['validate', str(bag), '--urdf', 'five_bar']) == 2
    code, text = validated(bag, '--topic', 'pressures=/joint_states')
    assert code == 2 and '/joint_states' in text and 'expected' in text
