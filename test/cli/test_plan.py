"""`psdyn plan`: trajectory, table and picture of a motion; bad input ends it with two."""

import csv
from pathlib import Path

import numpy as np
import pytest

from psdyn_ros import cli
from psdyn_ros.control.offline.trajectory_file import read_trajectory
from psdyn_ros.model.locate import find_config, find_machine


def test_plan_writes_trajectory_table_and_picture(tmp_path, capsys):
    way, out = tmp_path / 'way.yaml', tmp_path / 'out'
    way.write_text('points: [{slew: 0.5, telescope: 0.5}]')
    assert cli.main(['plan', 'hiab_xs031', str(way), '--output', str(out)]) == 0
    assert 'largest use of limits: speed' in capsys.readouterr().out
    waypoints = read_trajectory(f'{out}.yaml')
    assert waypoints.joints == ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
    np.testing.assert_allclose(waypoints.positions[-1], (0.5, 0.2, 0.3, 0.5), atol=1e-9)
    with open(f'{out}.csv', newline='', encoding='utf-8') as file:
        table = list(csv.reader(file))
    assert len(table) == 1 + len(waypoints.times) and table[0][0] == 'time_s' and table[0][-1] == 'flow_m3_s'
    assert float(table[-1][0]) == pytest.approx(waypoints.times[-1]) and (tmp_path / 'out.png').stat().st_size > 10_000


def test_plan_says_how_far_a_load_swings_after_the_motion(tmp_path, capsys):
    way, out = tmp_path / 'way.yaml', tmp_path / 'out'
    way.write_text('points: [{slew: 0.3}]')
    assert cli.main(['plan', 'loader_crane', str(way), '--output', str(out)]) == 0
    assert 'hook_pitch swings by up to 0.' in capsys.readouterr().out
    assert read_trajectory(f'{out}.yaml').joints == ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')


def test_plan_moves_a_boom_with_two_cylinders(tmp_path, capsys):
    way, out = tmp_path / 'way.yaml', tmp_path / 'out'
    way.write_text('points: [{swing: 0.5}]')
    assert cli.main(['plan', 'excavator', str(way), '--output', str(out)]) == 0
    assert 'largest use of limits' in capsys.readouterr().out and read_trajectory(f'{out}.yaml').times[-1] > 1.0


@pytest.mark.parametrize('machine, text, says', [
    ('hiab_xs031', 'link: tcp\nposes: [{position: [9, 0, 1]}]', 'pose 0'),
    ('hiab_xs031', 'points: [{slew: 0.1}, {telescope: 5}]', 'point 1: 5 is beyond the limit of telescope'),
    ('hiab_xs031', 'points: [{slew: 0.1}, {slew: 0.1}]', 'point 1 is where point 0 is'),
    ('hiab_xs031', 'poses: [{position: [2, 0, 1]}]', "'link' is missing"),
    ('loader_crane', 'link: hook\nposes: [{position: [2.5, 0.4, 1]}]',
     "hangs from passive joints, which are not planned; expected 'tcp'"),
    ('pkm_2pur2rpu', 'points: [{}]', 'point 0 is where the start is'),
])
def test_plan_refuses_with_the_reason(tmp_path, capsys, machine, text, says):
    way = tmp_path / 'way.yaml'
    way.write_text(text)
    assert cli.main(['plan', machine, str(way), '--output', str(tmp_path / 'out')]) == 2
    assert says in capsys.readouterr().err and not (tmp_path / 'out.yaml').exists()


@pytest.mark.parametrize('replaced', ['way.yaml', 'safety.yaml', 'hydraulics.yaml', 'machine.csv'])
def test_plan_does_not_replace_what_it_reads(tmp_path, capsys, replaced):
    way, machine = tmp_path / 'way.yaml', tmp_path / 'machine.csv'
    way.write_text('points: [{telescope: 0.5}]')
    machine.write_text(Path(find_machine('hiab_xs031')).read_text())
    given = []
    for what in ('safety', 'hydraulics'):
        (tmp_path / f'{what}.yaml').write_text(Path(find_config(f'hiab_xs031_{what}.yaml')).read_text())
        given += [f'--{what}', str(tmp_path / f'{what}.yaml')]
    before = (tmp_path / replaced).read_text()
    output = str((tmp_path / replaced).with_suffix(''))
    assert cli.main(['plan', str(machine), str(way), *given, '--output', output]) == 2
    assert 'would be replaced' in capsys.readouterr().err and (tmp_path / replaced).read_text() == before


@pytest.mark.parametrize('pressure', ['190', '-5', 'nan'])
def test_plan_refuses_a_pressure_in_bar(tmp_path, capsys, pressure):
    way = tmp_path / 'way.yaml'
    way.write_text('points: [{telescope: 0.5}]')
    assert cli.main(['plan', 'hiab_xs031', str(way), f'--pressure={pressure}', '--output', str(tmp_path / 'out')]) == 2
    assert 'in bar? expected Pa' in capsys.readouterr().err


def test_plan_refuses_a_shaper_that_is_none(capsys):
    with pytest.raises(SystemExit):
        cli.main(['plan', 'hiab_xs031', 'way.yaml', '--shaper', 'foo'])
    assert "invalid choice: 'foo'" in capsys.readouterr().err
