"""A cylinder on a rig: `psdyn demo --rig`."""

import pytest

pytest.importorskip('rclpy')

from psdyn_ros import cli
from psdyn_ros.nodes.messages.conversions import stamp_to_ns
from psdyn_ros.validation.bags.recording import read_messages

pytestmark = pytest.mark.dds


def test_the_split_machine_follows_the_whole_one_in_lock_step(tmp_path, capfd):
    code = cli.main(['demo', '--rig', 'lift_cylinder', '--duration', '3', '--output', str(tmp_path)])
    said = capfd.readouterr()
    assert code == 0, said
    assert 'PASS: with lift_cylinder on the rig every actuator moves as in the whole machine' in said.out
    page = (tmp_path / 'report.html').read_text()
    assert '<h1>hiab_xs031 with lift_cylinder on a rig</h1>' in page and (tmp_path / 'split.png').is_file()
    topic = '/simulator/measured/lift_cylinder'
    stamps = [stamp_to_ns(message.header.stamp) for message in read_messages(tmp_path / 'split', [topic])[topic]]
    # one answer to each instant, none left out
    assert len(stamps) > 1400 and {b - a for a, b in zip(stamps, stamps[1:])} == {2_000_000}


@pytest.mark.parametrize('arguments, says', [
    (['--rig', 'lift'], "cylinder 'lift': no such cylinder"),
    (['--rig', 'lift_cylinder', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
    (['--level', 'valve', '--machine', 'five_bar'], "no hydraulics are known of this machine"),
])
def test_what_it_cannot_use_ends_it_with_two(tmp_path, capfd, arguments, says):
    assert cli.main(['demo', *arguments, '--output', str(tmp_path)]) == 2
    assert says in capfd.readouterr().err
