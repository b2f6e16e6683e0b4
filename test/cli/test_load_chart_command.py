"""`psdyn load-chart`: a picture, and a table whose masses are those of the chart."""

import csv

import numpy as np
import pytest

import psdyn_ros
from psdyn_ros.cli import main
from psdyn_ros.model.locate import find_machine


def test_command_writes_picture_and_table(tmp_path, capsys):
    assert main(['load-chart', 'hiab_xs031', '--link', 'tcp', '--hydraulics', 'none', '--nodes', '6',
                 '--output', str(tmp_path / 'chart')]) == 0
    assert 'chart.png' in capsys.readouterr().out
    assert (tmp_path / 'chart.png').read_bytes().startswith(b'\x89PNG')
    rows = list(csv.DictReader((tmp_path / 'chart.csv').open()))
    m = psdyn_ros.load(find_machine('hiab_xs031'))
    assert len(rows) > 5
    for row in rows:
        x = [float(row[name]) for name in m.coordinates]
        weight = m.link_pose(x, 'tcp')[:3, :3].T @ (float(row['mass_kg']) * m.gravity)
        f = m.inverse_dynamics(x, np.zeros(4), np.zeros(4), wrenches={'tcp': (weight, np.zeros(3))})
        limited = m.actuators.index(row['limited_by'])
        assert abs(f[limited]) == pytest.approx(m.limits.effort[limited], rel=1e-4)


def test_pressure_without_hydraulics_is_refused(capsys):
    assert main(['load-chart', 'hiab_xs031', '--link', 'tcp', '--hydraulics', 'none', '--pressure', '2e7']) == 2
    assert 'give the hydraulics too' in capsys.readouterr().err
