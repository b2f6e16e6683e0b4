"""`psdyn view` on machines and bags, healthy and not."""

import numpy as np
import pytest
from support.bags.bag_cases import TYPES, motion, serialised, state_messages, write
from support.bags.recorded_motion import write_swinging
from support.machines import URDF
from test_view_pages import parts

from psdyn_ros import cli
from psdyn_ros.api.load import load
from psdyn_ros.tools.fuzzing.mutations import BEGIN
from psdyn_ros.validation.bags.bulk_decoder import JOINT_STATE
from psdyn_ros.validation.playback import playback_html, recorded_motion

STRING = 'std_msgs/msg/String'


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return write_swinging(tmp_path_factory.mktemp('bags') / 'swinging.mcap')


def test_command_writes_a_page_of_a_machine(tmp_path, capsys):
    assert cli.main(['view', 'five_bar', '--html', str(tmp_path / 'a.html')]) == 0
    assert 'MB; opens in any browser' in capsys.readouterr().out
    shown, _ = parts((tmp_path / 'a.html').read_text())
    assert [slider['name'] for slider in shown['sliders']] == ['shoulder_1', 'shoulder_2']


def test_command_writes_a_page_of_a_bag(bag, tmp_path, crane):
    assert cli.main(['view', str(bag), '--urdf', 'hiab_xs031', '--html', str(tmp_path / 'a.html')]) == 0
    shown, arrays = parts((tmp_path / 'a.html').read_text())
    assert shown['pressures'] == ['lift_cylinder', 'tilt_cylinder', 'telescope']
    assert np.isfinite(arrays['effort']).all() and arrays['time'][-1, 0] == pytest.approx(6.0, abs=0.1)
    recorded = recorded_motion(bag, crane)
    np.testing.assert_allclose(arrays['joints'], recorded.motion.joints, atol=1e-6)
    # loops closed: the joints are those of the states that the coordinates fix
    columns = [crane.joints.index(name) for name in crane.coordinates]
    for row in recorded.motion.joints[::50]:
        np.testing.assert_allclose(row, crane.joint_state(row[columns])[1], atol=1e-9)


def test_reference_in_a_bag_is_the_ghost(tmp_path, crane):
    times, positions, _ = motion(crane, 100, 0.01)
    wanted = state_messages(crane, times, positions, topic='/controller/reference')
    path = write(tmp_path / 'a.mcap', state_messages(crane, times, positions), wanted,
                 kinds={'/controller/reference': JOINT_STATE})
    found = recorded_motion(path, crane).motion
    np.testing.assert_allclose(found.reference, found.joints, atol=1e-3)
    assert found.signals[0].reference is not None


def test_bag_of_another_machine_shows_the_machine_and_why_it_stands_still(bag, tmp_path, capsys):
    assert cli.main(['view', str(bag), '--urdf', 'excavator', '--html', str(tmp_path / 'a.html')]) == 3
    assert "is not of 'excavator'" in capsys.readouterr().err
    shown, arrays = parts((tmp_path / 'a.html').read_text())
    assert any("no motion is shown: bag" in text for text in shown['messages']) and 'time' not in arrays
    assert len(shown['sliders']) == 4


def test_truncated_bag_plays_as_far_as_it_goes(bag, tmp_path, capsys):
    cut = tmp_path / 'cut.mcap'
    cut.write_bytes(bag.read_bytes()[:bag.stat().st_size * 2 // 3])
    assert cli.main(['view', str(cut), '--urdf', 'hiab_xs031', '--html', str(tmp_path / 'a.html')]) == 3
    assert 'the bag is not whole, the rest is shown' in capsys.readouterr().err
    _, arrays = parts((tmp_path / 'a.html').read_text())
    assert 1.0 < arrays['time'][-1, 0] < 5.9


def test_bag_that_cannot_be_read_shows_the_machine(tmp_path, capsys):
    broken = tmp_path / 'broken.mcap'
    broken.write_bytes(b'no bag at all')
    assert cli.main(['view', str(broken), '--urdf', 'five_bar', '--html', str(tmp_path / 'a.html')]) == 3
    assert 'no motion is shown' in capsys.readouterr().err
    assert 'five_bar' in (tmp_path / 'a.html').read_text()


def test_bag_without_a_description_asks_for_the_machine(bag, capsys):
    assert cli.main(['view', str(bag)]) == 2
    assert 'no /robot_description' in capsys.readouterr().err


def test_description_in_a_bag_is_its_machine(tmp_path):
    m = load(URDF / 'five_bar.urdf')
    times, positions, _ = motion(m, 100, 0.01)
    text = (URDF / 'five_bar.urdf').read_text()
    described = [('/robot_description', BEGIN, serialised(TYPES[STRING](data=text)))]
    path = write(tmp_path / 'a.mcap', described, state_messages(m, times, positions),
                 kinds={'/robot_description': STRING})
    assert cli.main(['view', str(path), '--html', str(tmp_path / 'a.html')]) == 0
    shown, arrays = parts((tmp_path / 'a.html').read_text())
    assert shown['name'] == 'five_bar' and len(arrays['joints']) > 20


def test_view_of_nothing_and_of_nobody_are_errors(capsys):
    assert cli.main(['view']) == 2
    assert 'expected a MACHINE, a BAG or --live' in capsys.readouterr().err
    assert cli.main(['view', 'missing.mcap', '--urdf', 'five_bar', '--html', 'unused']) == 2
    assert "'missing.mcap': no such file or folder" in capsys.readouterr().err
    assert cli.main(['view', 'hiab_xs03', '--html', 'unused']) == 2
    assert "did you mean 'hiab_xs031'" in capsys.readouterr().err


def test_playback_of_a_path_is_that_of_its_motion(bag, crane):
    assert parts(playback_html(crane, bag))[1].keys() == parts(
        playback_html(crane, recorded_motion(bag, crane).motion))[1].keys()
