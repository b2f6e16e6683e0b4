"""The demonstration from end to end, on a short reference; and what becomes of it when it is stopped."""

import re
import signal
import types

import numpy as np
import pytest
from conftest import thorough
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation
from support.machines import URDF
from support.nodes.children import assert_a_signal_ends_it, start, wait_for_line
from support.paths import ROOT

import psdyn_ros

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros import cli  # noqa: E402
from psdyn_ros.tools.demo import demo, session  # noqa: E402
from psdyn_ros.tools.demo.machine_run import MachineRun  # noqa: E402
from psdyn_ros.validation.bags.recording import read_bag  # noqa: E402
from psdyn_ros.validation.metrics import PASS  # noqa: E402
from psdyn_ros.validation.metrics.tracking import track, units  # noqa: E402
from psdyn_ros.validation.validate import validate  # noqa: E402

pytestmark = pytest.mark.dds


@pytest.mark.lockstep
@pytest.mark.parametrize('level, laws, title, better, duration', [
    ('valve', ('valve_computed_torque', 'valve_pid'), 'computed torque on valves', 3.0, 6),
    pytest.param('effort', ('computed_torque', 'pd_gravity'), 'computed torque', 5.0, 10, marks=pytest.mark.long),
])
def test_the_demonstration_passes_and_leaves_bags_figures_and_a_report(tmp_path, level, laws, title, better, duration):
    process = start('psdyn_ros.cli', 'demo', '--duration', str(duration), '--output', str(tmp_path),
                    *(('--level', level) if level != 'valve' else ()))
    said, _ = process.communicate(timeout=500)
    assert process.returncode == 0, said
    assert 'PASS' in said and re.search(r'telescope +mm +0\.\d{3} +0\.500', said)
    assert re.search(title + r' +\d+ +\d+ +\d+', said)
    page = (tmp_path / 'report.html').read_text()
    page = re.sub('srcdoc="[^"]*"', '', page)       # the playback has comments with addresses
    assert 'PASS' in page and f'<h1>hiab_xs031 under {title}</h1>' in page and '://' not in page
    crane = psdyn_ros.load(URDF / 'hiab_xs031.urdf')
    recordings = [read_bag(tmp_path / law, demo.JUDGED_TOPICS) for law in laws]
    judged, baseline = (track(recording, units(crane)) for recording in recordings)
    assert judged.passed
    assert all(weak.rms > better * good.rms for weak, good in zip(baseline.errors[1:], judged.errors[1:]))
    pictures = ['motion.png', 'tracking.png', 'forces.png'] + ['pressures.png'] * (level == 'valve')
    for name in pictures:
        assert (tmp_path / name).stat().st_size > 10_000
    assert sorted(path.name for path in tmp_path.glob('*.png')) == sorted(pictures)
    assert_shows_the_moving_machine(tmp_path / laws[0], crane)
    for law in laws:
        verdict = validate(tmp_path / law, 'hiab_xs031').verdict
        assert verdict.verdict == PASS, verdict.text
    telemetry = recordings[0].telemetry
    if level == 'effort':
        assert telemetry is None
    else:
        assert telemetry.names == crane.actuators[1:] and np.isfinite(telemetry['pressure_a']).all()
        assert np.ptp(telemetry['pressure_a'], axis=0).min() > 1e5      # the oil does the work


def assert_shows_the_moving_machine(bag, crane):
    """A bag has the description, and the poses of all links at the true positions, 50 times a second."""
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        messages = [(connection.topic, reader.deserialize(data, connection.msgtype))
                    for connection, _, data in reader.messages()
                    if connection.topic in ('/robot_description', '/tf', demo.JUDGED_TOPICS.states)]
    described = [message.data for topic, message in messages if topic == '/robot_description']
    assert described == [(URDF / 'hiab_xs031.urdf').read_text()]
    truth = {ns_of(message): message for topic, message in messages if topic == demo.JUDGED_TOPICS.states}
    shown = [message.transforms for topic, message in messages if topic == '/tf']
    assert np.diff([ns_of(transforms[0]) for transforms in shown]).max() <= 22_000_000
    for transforms in shown[::50]:
        state = truth[ns_of(transforms[0])]
        x = [state.position[list(state.name).index(name)] for name in crane.coordinates]
        assert [one.child_frame_id for one in transforms] == list(crane.links[1:])
        for one in transforms:
            pose, p, q = crane.link_pose(x, one.child_frame_id), one.transform.translation, one.transform.rotation
            assert one.header.frame_id == crane.links[0]
            np.testing.assert_allclose([p.x, p.y, p.z], pose[:3, 3], atol=1e-12)
            np.testing.assert_allclose(Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix(), pose[:3, :3], atol=1e-12)


def ns_of(message):
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


@pytest.mark.long
@pytest.mark.lockstep
@pytest.mark.parametrize('number', thorough([signal.SIGINT, signal.SIGTERM], 1))
def test_a_signal_ends_it_and_both_nodes_with_it(tmp_path, number):
    process = start('psdyn_ros.cli', 'demo', '--duration', '10', '--output', str(tmp_path))
    wait_for_line(process, 'waiting for the motion')
    assert_a_signal_ends_it(process, number, 2)


@pytest.mark.lockstep
@pytest.mark.parametrize('arguments, says', thorough([
    (('--machine', 'nowhere.urdf'), 'nowhere.urdf'),
    (('--machine', str(ROOT / 'package.xml')), 'robot'),
    (('--duration', '-1'), 'duration'),
    (('--rate', 'nan'), 'rate is nan; expected a number'),
    (('--rate', '0'), 'rate 0 Hz: expected more than 0'),
    (('--bandwidth', '1000'), 'bandwidth'),
], 5, several=True))
def test_what_it_cannot_use_ends_it_with_two(tmp_path, capfd, arguments, says):
    assert cli.main(['demo', '--output', str(tmp_path), *arguments]) == 2
    said = capfd.readouterr().err
    assert says in said and 'Traceback' not in said


def test_what_is_there_is_never_overwritten(tmp_path, monkeypatch, capfd):
    mine = tmp_path / 'valve_pid' / 'mine.txt'
    mine.parent.mkdir()
    mine.write_text('of somebody')
    assert cli.main(['demo', '--output', str(tmp_path)]) == 2
    assert f"output '{tmp_path}' exists and will not be overwritten" in capfd.readouterr().err
    assert [path for path in tmp_path.rglob('*') if path.is_file()] == [mine] and mine.read_text() == 'of somebody'
    monkeypatch.chdir(tmp_path)
    outputs = []
    monkeypatch.setattr(demo, '_run', lambda setup, output, *_: output.mkdir() or outputs.append(str(output)))
    for _ in range(3):
        demo.run()
    assert outputs == ['demo_output', 'demo_output_2', 'demo_output_3']


@pytest.mark.lockstep
def test_a_node_that_dies_is_reported_with_its_last_words(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(demo.JUDGED, 'valve', 'no_such_law')
    monkeypatch.setitem(demo.NAMES, 'no_such_law', 'no such law')
    assert cli.main(['demo', '--output', str(tmp_path), '--duration', '3']) == 2
    said = capfd.readouterr().err
    assert 'controller ended by itself' in said and "'no_such_law' is not a choice" in said


def test_time_by_hand_waits_for_a_controller_that_stalls():
    run, steps = object.__new__(MachineRun), []
    done = types.SimpleNamespace(add_done_callback=lambda call: call(None))
    run._step = types.SimpleNamespace(call_async=lambda request: steps.append(request) or done)
    run._control = types.SimpleNamespace(reason='STANDBY', active=True, cycles=1)
    run._left, run._asked, run._cycles, run._period_ns = 0, 0.0, 0, 5_000_000
    run._periods()
    assert 1 < len(steps) < 0.18 / 0.005            # the widest timeout of a stop
    before = len(steps)
    run._periods()
    assert len(steps) == before
    run._control.cycles += 1
    run._periods()
    assert len(steps) == 2 * before


def test_a_motion_is_waited_for_however_slowly_it_goes_but_not_where_it_stands(monkeypatch):
    clock = types.SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(session, 'time', clock)
    waiting = session.Waiting(None, None)
    monkeypatch.setattr(waiting, 'turn', lambda what: setattr(clock, 'now', clock.now + session.REACTION / 8.0))
    waiting.through(lambda: 0.1 * clock.now, 10.0, 'motion')
    assert clock.now == 100.0
    waiting.through(lambda: min(0.1 * clock.now, 12.0), 20.0, 'motion')
    assert 120.0 + session.REACTION < clock.now <= 125.0 + session.REACTION     # two turns


@pytest.mark.lockstep
def test_states_without_a_command_are_counted_and_their_time_is_known():
    stamps = np.arange(0, 1_000_000_000, 2_000_000)
    silent, unanswered = demo._silence(np.repeat(stamps, 2), 500.0)        # repeated commands answer nothing new
    assert silent == pytest.approx(0.002) and unanswered == pytest.approx(0.0, abs=1e-9)
    silent, unanswered = demo._silence(np.delete(stamps, [100, 101, 300, 301, 302]), 500.0)
    assert silent == pytest.approx(0.008) and unanswered == pytest.approx(0.01)
