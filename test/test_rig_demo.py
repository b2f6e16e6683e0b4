"""A cylinder on a rig: `psdyn demo --rig`."""

import pytest

pytest.importorskip('rclpy')

from psdyn_ros.nodes import demo
from psdyn_ros.validation.bags import TOPICS, read_messages

pytestmark = pytest.mark.dds


def test_the_split_machine_follows_the_whole_one_in_lock_step(tmp_path, capsys):
    code = demo.main(['--rig', 'lift_cylinder', '--duration', '2', '--output', str(tmp_path)])
    said = capsys.readouterr()
    assert code == 0, said
    assert 'PASS: with lift_cylinder on the rig every actuator moves as in the whole machine' in said.out
    assert (tmp_path / 'report.html').stat().st_size > 20_000 and (tmp_path / 'split.png').is_file()
    measured = read_messages(tmp_path / 'split', ['/simulator/measured/lift_cylinder', TOPICS.telemetry])
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in measured['/simulator/measured/lift_cylinder']]
    # one answer to each instant, none left out
    assert len(stamps) > 900 and {b - a for a, b in zip(stamps, stamps[1:])} == {2_000_000}


@pytest.mark.parametrize('arguments, says', [
    (['--rig', 'lift'], "cylinder 'lift': no such cylinder"),
    (['--rig', 'lift_cylinder', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
    (['--level', 'valve', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
])
def test_what_it_cannot_use_ends_it_with_two(tmp_path, capsys, arguments, says):
    assert demo.main([*arguments, '--output', str(tmp_path)]) == 2
    assert says in capsys.readouterr().err
