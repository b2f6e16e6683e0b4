"""Trajectories in YAML files, and `psdyn annotate`."""

import numpy as np
import pytest
import yaml
from support.machines import URDF

import psdyn_ros
from psdyn_ros import cli
from psdyn_ros.control.offline.annotate import annotate
from psdyn_ros.control.offline.trajectory_file import read_trajectory, trajectory_text
from psdyn_ros.control.reference.trajectory import Waypoints

ECHOED = '''\
header:
  stamp:
    sec: 12
    nanosec: 5
  frame_id: ''
joint_names:
- slew
- lift_cylinder
- tilt_cylinder
- telescope
points:
- positions: [0.0, 0.2, 0.3, 0.3]
  velocities: []
  accelerations: []
  effort: []
  time_from_start: {sec: 0, nanosec: 0}
- positions: [1.0e-05, 0.25, 0.3, 0.3]
  time_from_start:
    sec: 2
    nanosec: 500000000
---
'''


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'trajectory.yaml'


@pytest.fixture
def psdyn(capsys):
    """Function of the arguments: exit code, output, errors."""
    def run(*arguments):
        code = cli.main(['annotate', *map(str, arguments)])
        return code, *capsys.readouterr()
    return run


def test_what_ros_prints_is_read(path):
    path.write_text(ECHOED)
    found = read_trajectory(path)
    assert found.joints == ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
    assert found.times.tolist() == [0.0, 2.5] and found.positions[1].tolist() == [1e-5, 0.25, 0.3, 0.3]
    assert found.velocities is None and found.accelerations is None


@pytest.mark.parametrize('rates', [0, 1, 2])
def test_what_is_written_is_read_again_to_the_last_bit(path, rng, rates):
    rows = [rng.normal(size=(5, 2)) for _ in range(3)]
    rows[1][-1] = 0.0
    given = Waypoints(('a', 'b'), np.cumsum(rng.integers(1, 10**10, 5)) / 1e9, *rows[:rates + 1])
    path.write_text(trajectory_text(given, rng.normal(size=(5, 2))))
    found = read_trajectory(path)
    assert found.joints == given.joints and found.times.tolist() == given.times.tolist()
    for field in ('positions', 'velocities', 'accelerations')[:rates + 1]:
        assert getattr(found, field).tolist() == getattr(given, field).tolist()
    assert set(yaml.safe_load(path.read_text())['points'][0]) >= {'positions', 'effort', 'time_from_start'}


@pytest.mark.parametrize('change, says', [
    (('joint_names', 'joints_names'), "'joints_names' is not known; did you mean 'joint_names'"),
    (('positions: [0.0, 0.2, 0.3, 0.3]', 'positions: [0.0, 0.2]'), "point 0: 'positions' has 2 entries for 4 joints"),
    (('positions: [0.0, 0.2, 0.3, 0.3]', 'positions: 0.0'), "point 0: 'positions' is 0.0; expected numbers"),
    (('positions: [0.0, 0.2, 0.3, 0.3]', 'positions: [0.0, 0.2, 0.3, true]'), 'expected numbers'),
    (('positions: [0.0, 0.2, 0.3, 0.3]', 'positions: []'), 'point 0 has no positions'),
    (('velocities: []', 'velocities: [0.0, 0.0, 0.0, 0.0]'), 'point 1 has no velocities'),
    (('[0.0, 0.2, 0.3, 0.3]', '[0.0, .nan, 0.3, 0.3]'), 'point 0 has positions that are not finite'),
    (('sec: 2\n', 'sec: 2.5\n'), 'point 1: time_from_start is .* expected whole numbers'),
    (('sec: 2\n', 'seconds: 2\n'), "time_from_start: 'seconds' is not known"),
    (('sec: 2\n    nanosec: 500000000', 'sec: 0'), 'point 1 is not later'),
    (('- slew\n', '- 4\n'), "'joint_names' are .* expected names"),
    (('- slew\n', '- tilt_cylinder\n'), 'more than once'),
    ((ECHOED, '- 1'), r'is \[1\]; expected a mapping with header, joint_names, points'), ((ECHOED, ''), 'is None'),
    ((ECHOED, 'joint_names: [a]'), "'points' is None; expected a list"), ((ECHOED, 'a: [b'), 'is not YAML'),
    ((ECHOED, 'joint_names: [a]\npoints: ' + str([{}] * 10001)), 'has 10001 points; expected at most 10000'),
    ((ECHOED, 'joint_names: [a]\npoints: [3]'), 'point 0 is 3; expected a mapping')])
def test_a_file_that_is_no_trajectory_is_refused_by_name(path, change, says):
    path.write_text(ECHOED.replace(*change, 1))
    with pytest.raises(psdyn_ros.ModelError, match=f"(?s)trajectory '.*trajectory.yaml'.*{says}"):
        read_trajectory(path)


def test_the_command_writes_what_the_function_gives(path, psdyn, tmp_path):
    path.write_text(ECHOED)
    m, out = psdyn_ros.load(URDF / 'hiab_xs031.urdf'), tmp_path / 'out.yaml'
    code, said, _ = psdyn('hiab_xs031', path, '--max-dt', '0.1', '--output', out)
    assert code == 0 and said.startswith('26 points over 2.5 s in ')
    expected, efforts, _ = annotate(m, read_trajectory(path), 0.1)
    assert read_trajectory(out).accelerations.tolist() == expected.accelerations.tolist()
    points = yaml.safe_load(out.read_text())['points']
    assert [point['effort'] for point in points] == efforts.tolist()
    code, said, _ = psdyn('hiab_xs031', path, '--max-dt', '0.1', '--payload', 'tcp', '100', '0', '0', '0.1')
    loaded = m.with_payload('tcp', 100.0, (0.0, 0.0, 0.1), np.zeros((3, 3)))
    expected = annotate(loaded, read_trajectory(path), 0.1).efforts
    assert code == 0 and [point['effort'] for point in yaml.safe_load(said)['points']] == expected.tolist()


def test_the_command_clamps_only_if_told_to(path, psdyn, tmp_path):
    path.write_text(ECHOED)
    heavy = ('hiab_xs031', path, '--payload', 'tcp', '2500', '0', '0', '0', '--output', tmp_path / 'out.yaml')
    code, _, errors = psdyn(*heavy)
    assert code == 2 and 'TrajectoryError: point 0 (0 s): lift_cylinder needs' in errors
    assert not (tmp_path / 'out.yaml').exists()
    code, said, _ = psdyn(*heavy, '--clamp')
    assert code == 0 and 'clamped at 126 of them' in said


@pytest.mark.parametrize('arguments, says', [
    (('five_bars', 'FILE'), "did you mean 'five_bar'"), (('hiab_xs031', 'none.yaml'), 'none.yaml'),
    (('hiab_xs031', 'FILE', '--max-dt', '-1'), 'max_dt = -1'),
    (('hiab_xs031', 'FILE', '--payload', 'tcp', 'much', '0', '0', '0'), 'expected LINK KG X Y Z'),
    (('hiab_xs031', 'FILE', '--payload', 'tpc', '1', '0', '0', '0'), "did you mean 'tcp'"),
    (('hiab_xs031', 'FILE', '--output', '/dev/null/out.yaml'), "Not a directory: '/dev/null/out.yaml'"),
    (('five_bar', 'FILE'), "joint 'slew'")])
def test_what_the_command_cannot_use_ends_with_two_and_says_so(path, psdyn, arguments, says):
    path.write_text(ECHOED)
    code, _, errors = psdyn(*(path if argument == 'FILE' else argument for argument in arguments))
    assert code == 2 and says in errors and 'Traceback' not in errors
