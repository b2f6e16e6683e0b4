"""`psdyn record-demo`: bags of real nodes, and whether a validation finds in each what was done to the machine."""

import json
import os
import signal

import numpy as np
import pytest
import yaml
from support.nodes import children
from support.paths import ROOT

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros import cli, load  # noqa: E402
from psdyn_ros.control.reference.reference import ReferenceMotion  # noqa: E402
from psdyn_ros.tools.recordings import cases as record_cases  # noqa: E402
from psdyn_ros.tools.recordings import record as record_demo  # noqa: E402
from psdyn_ros.tools.studies import loaded_crane  # noqa: E402
from psdyn_ros.tools.studies.loaded_crane import random_moves  # noqa: E402
from psdyn_ros.validation.bags.recording import joint_series, read_messages, telemetry_series  # noqa: E402
from psdyn_ros.validation.metrics.comparison import WORSE, compare  # noqa: E402
from psdyn_ros.validation.validate import validate  # noqa: E402

# in lock-step a recording takes as long as the computer is busy with other things
pytestmark = [pytest.mark.dds, pytest.mark.lockstep, pytest.mark.timeout(3600)]

SECONDS = 15.0          # of motion
CASES = tuple(record_cases.CASES)
WRONG = CASES[1:]


def start(output, *arguments):
    # checks of every field of every message make the nodes slow
    quick = {name: value for name, value in os.environ.items() if name != 'ROS_PYTHON_CHECK_FIELDS'}
    return children.start('psdyn_ros.cli', 'record-demo', '--output', str(output), *arguments, env=quick)


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    """{'plain', 'noiseless': folder, 'expected': {case: what should be found}}; two machines run at a time."""
    plain, more, exact = (tmp_path_factory.mktemp(name) for name in ('plain', 'more', 'noiseless'))
    duration = '--duration', str(SECONDS)
    graphs = [start(exact, '--cases', 'healthy', '--sensors', 'noiseless', *duration),
              start(plain, '--cases', ','.join(CASES[:4]), *duration)]
    said = [graphs[0].communicate()[0]]
    graphs.append(start(more, '--cases', ','.join(CASES[4:]), *duration))
    said += [graph.communicate()[0] for graph in graphs[1:]]
    for graph, text in zip(graphs, said):
        assert graph.returncode == 0, text
    listed = {}
    for folder in (plain, more):
        listed |= yaml.safe_load((folder / 'cases.yaml').read_text())['cases']
    for case in CASES[4:]:
        (more / case).rename(plain / case)
    return {'plain': plain, 'noiseless': exact, 'expected': listed}


@pytest.fixture(scope='module')
def found(folders):
    """{(sensors, case): `Validation`}."""
    crane = load(folders['plain'] / 'machine.urdf')
    return {(sensors, case): validate(folder / case, crane, hydraulics=folder / 'hydraulics.yaml')
            for sensors, folder in (('plain', folders['plain']), ('noiseless', folders['noiseless']))
            for case in CASES if (folder / case).is_dir()}


@pytest.mark.long
def test_the_model_is_that_of_the_bags_and_cases_say_what_to_expect(folders):
    plain = folders['plain']
    crane = load(plain / 'machine.urdf')
    assert record_cases.PAYLOAD_LINK in crane.links
    said = yaml.safe_load((plain / 'cases.yaml').read_text())
    assert (plain / said['model']).is_file() and (plain / said['hydraulics']).is_file()
    made = {'sensors': 'plain', 'seconds': SECONDS, 'rate': 500.0, 'seed': 1, 'lock_step': True}
    assert said['cases']['payload'].items() >= {'cause': {'kind': 'payload', 'about': 'payload'}, **made}.items()
    assert said['cases']['healthy'] == {
        'what': 'machine and model are the same', 'verdict': 'PASS', 'cause': None, **made}
    more = record_cases.cases_text(['payload'], {'seed': 2}, (plain / 'cases.yaml').read_text())
    assert yaml.safe_load(more)['cases'] == {**said['cases'], 'payload': {
        **{key: said['cases']['payload'][key] for key in ('what', 'verdict', 'cause')}, 'seed': 2}}


@pytest.mark.long
@pytest.mark.parametrize('case', CASES)
def test_a_bag_has_every_instant_on_every_topic_and_honest_times(folders, case):
    from rosbags.rosbag2 import Reader

    with Reader(folders['plain'] / case) as reader:
        received = {topic: [] for topic in record_demo.RECORDED}
        for connection, ns, _ in reader.messages():
            received[connection.topic].append(ns)
    period = record_demo.PERIOD
    states = read_messages(folders['plain'] / case, [record_demo.STATES])
    stamps = joint_series(states, record_demo.STATES).stamps
    # in lock-step a state that is not answered in time comes once more
    instants = np.unique(stamps)
    assert set(np.diff(instants)) == {period} and len(instants) >= (SECONDS + 2 * record_demo.REST) / (1e-9 * period)
    # a recorder in simulated time notes that of the last state
    assert np.array_equal(stamps, received[record_demo.STATES])
    for topic, times in received.items():
        assert np.all(np.diff(times) >= 0), topic
        # a controller that waits for a state repeats itself; a plant in lock-step repeats all that it says
        least, most = (0, 2) if topic in record_demo.OF_PLANT else (-0.02 * len(stamps), np.inf)
        assert least - 2 <= len(times) - len(stamps) <= most, topic


@pytest.mark.long
def test_the_machine_starts_and_ends_at_rest_and_moves_everything_both_ways(folders):
    truth = joint_series(read_messages(folders['plain'] / 'healthy', [record_demo.TRUTH]), record_demo.TRUTH)
    speed = truth.columns(('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'))['velocity']
    rest = round(0.4 * record_demo.RATE)
    for still in speed[:rest], speed[-rest // 2:]:
        # the slew's drive pushes against the noise of its encoder, some mrad/s
        assert np.abs(still[:, 0]).max() < 1e-2 and np.abs(still[:, 1:]).max() < 1e-3
    assert (speed[:, 1:].max(axis=0) > 0.03).all() and (speed[:, 1:].min(axis=0) < -0.03).all()
    assert speed[:, 0].max() > 0.2 and speed[:, 0].min() < -0.2 and np.abs(speed[:, 1:]).max() < 0.12


@pytest.mark.long
def test_what_is_wrong_is_in_the_bag(folders):
    def series(case):
        messages = read_messages(folders['plain'] / case, [
            record_demo.STATES, record_demo.TRUTH, record_demo.TELEMETRY, record_demo.TRUE_TELEMETRY])
        return (joint_series(messages, record_demo.STATES), joint_series(messages, record_demo.TRUTH),
                telemetry_series(messages[record_demo.TELEMETRY]),
                telemetry_series(messages[record_demo.TRUE_TELEMETRY]))

    _, _, measured, true = series('pressure_drift')
    off = (measured['pressure_a'] - true['pressure_a'])[-100:].mean(axis=0)
    assert off[0] == pytest.approx(record_cases.DRIFT, rel=0.1) and np.abs(off[1:]).max() < 3e4
    _, _, measured, true = series('delay')
    late = round(record_cases.DELAY * record_demo.RATE)
    for lag, most in ((0, None), (late, 7e4)):
        rms = np.sqrt(np.mean((measured['pressure_a'][lag:] - true['pressure_a'][:len(true.stamps) - lag]) ** 2))
        assert rms < most if most else rms > 5e4
    states, truth, _, _ = series('frozen_encoder')
    changes = np.flatnonzero(np.diff(states.columns(['lift_cylinder'])['position'][:, 0]))
    longest = np.argmax(np.diff(changes))
    first, last = changes[longest] + 1, changes[longest + 1]
    true = truth.columns(['lift_cylinder'])['position'][first:last, 0]
    assert (last - first) / record_demo.RATE > 0.9 * record_cases.FROZEN[1] * SECONDS and np.ptp(true) > 0.005


@pytest.mark.long
@pytest.mark.parametrize('sensors', ['plain', 'noiseless'])
def test_a_healthy_machine_passes_and_nothing_is_suspected(found, sensors):
    healthy = found[sensors, 'healthy']
    assert healthy.verdict.exit_code == 0, healthy.verdict.text
    assert healthy.causes == ()


@pytest.mark.long
@pytest.mark.parametrize('case', WRONG)
def test_what_is_wrong_is_told_from_healthy_and_named_first(folders, found, case):
    expected = folders['expected'][case]
    wrong = found['plain', case]
    assert wrong.verdict.verdict == expected['verdict'] == 'FAIL', wrong.verdict.text
    assert any(change.verdict == WORSE for change in compare(found['plain', 'healthy'], wrong))
    first = wrong.causes[0]
    assert (first.kind, first.about) == (expected['cause']['kind'], expected['cause']['about']), first.text
    assert 0.0 < first.low <= first.share <= first.high and 'would explain' in first.text
    json.dumps(first.as_dict())


@pytest.mark.long
def test_the_first_cause_says_how_much_is_wrong(found):
    size = {case: found['plain', case].causes[0] for case in WRONG}
    for case, truth, unit, least in (
            ('payload', (record_cases.HEAVIER - 1.0) * record_cases.PAYLOAD, 'kg', 3.0),
            ('pressure_drift', record_cases.DRIFT / SECONDS, 'Pa/s', 1e4), ('delay', record_cases.DELAY, 's', 1e-3),
            ('base_tilt', record_cases.TILT, 'rad', 3e-3)):
        cause = size[case]
        assert cause.unit == unit and cause.estimate == pytest.approx(truth, abs=max(4.0 * cause.error, least)), case


# ends and refusals


@pytest.mark.long
def test_a_signal_ends_it_and_both_nodes_with_it(tmp_path):
    process = start(tmp_path, '--cases', 'healthy')
    children.wait_for_line(process, 'starting the controller')
    children.assert_a_signal_ends_it(process, signal.SIGINT, 2)
    assert not (tmp_path / 'healthy').exists()


@pytest.mark.parametrize('arguments, says', [
    (['--cases', 'healthy,payloda'], "there is no case 'payloda'; did you mean 'payload'"),
    (['--duration', '1'], 'duration 1 s: expected 5 to 3600'), (['--duration', 'nan'], 'duration nan s'),
    (['--seed', '-1'], 'seed')])
def test_what_it_cannot_use_ends_it_with_two(tmp_path, capfd, arguments, says):
    assert cli.main(['record-demo', '--output', str(tmp_path / 'bags'), *arguments]) == 2
    assert says in capfd.readouterr().err
    assert not (tmp_path / 'bags').exists()


@pytest.mark.parametrize('name', ['payload/mine.txt', 'machine.urdf'])
def test_what_is_there_is_never_overwritten(tmp_path, capfd, name):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text('of somebody')
    assert cli.main(['record-demo', '--output', str(tmp_path), '--cases', 'healthy,payload']) == 2
    assert f"output '{tmp_path / name.split('/')[0]}' exists and will not be overwritten" in capfd.readouterr().err
    assert [path for path in tmp_path.rglob('*') if path.is_file()] == [mine] and mine.read_text() == 'of somebody'


def test_moves_keep_to_their_ranges_and_repeat_with_their_seed():
    crane = load(record_cases.model_urdf((ROOT / 'urdf' / 'hiab_xs031.urdf').read_text()))
    ranges, speeds = loaded_crane.RANGES, loaded_crane.SPEEDS
    one, same, other = (random_moves(crane, ranges, speeds, 40.0, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.positions, same.positions) and one.positions.shape != other.positions.shape
    reference = ReferenceMotion(crane)
    reference.hold(crane.initial_position)
    reference.follow(one, 0.0)
    motion = np.array([np.array(reference.sample(t)) for t in np.arange(0.0, 40.1, 0.01)])
    for column, name in enumerate(crane.coordinates):
        low, high = ranges[name]
        assert low - 1e-6 <= motion[:, 0, column].min() and motion[:, 0, column].max() <= high + 1e-6
        assert np.abs(motion[:, 1, column]).max() <= speeds[name][1] + 1e-6
    assert not motion[0, 1:].any() and not motion[-1, 1:].any() and one.times[-1] == 40.0
    # what turns round does so under acceleration
    turning = np.diff(np.sign(motion[:, 1]), axis=0) != 0
    assert np.median(np.abs(motion[1:, 2, 1:][turning[:, 1:]])) > 0.03
    begin = np.array([0.1, 0.2, 0.3, 0.4])
    assert np.array_equal(random_moves(crane, ranges, speeds, 5.0, 1, begin).positions[0], begin)
