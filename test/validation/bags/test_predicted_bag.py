"""Bag of predictions beside measurements: written many messages at a time, opened by rosbags and by our own reader."""

import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from support.bags.recorded_motion import PERIOD, crane, exact_block, oil
from support.paths import CONFIG

from psdyn_ros.cli import main
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN
from psdyn_ros.validation.bags.bulk_decoder import ARRAY, Decoder
from psdyn_ros.validation.bags.folders import find_bags
from psdyn_ros.validation.bags.predicted_bag import (
    FRICTIONLESS,
    MEASURED,
    MEASURED_ACCELERATION,
    PREDICTED,
    PREDICTED_ACCELERATION,
    RESIDUAL,
    PredictedBag,
    curve,
    write_layout,
)
from psdyn_ros.validation.bags.row_bag import RowBag, joint_states, labelled_array
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.metrics.prediction import Predictor

FIELDS = ('position', 'velocity', 'effort')


def messages_of(path):
    """{topic: [(ns, message)]} as rosbags reads them."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore
    store, found = get_typestore(Stores.ROS2_JAZZY), {}
    with Reader(path) as reader:
        assert sum(one.msgcount for one in reader.connections) == reader.message_count
        for connection, when, data in reader.messages():
            found.setdefault(connection.topic, []).append((when, store.deserialize_cdr(data, connection.msgtype)))
    return found


@pytest.fixture(scope='module')
def prediction():
    return Predictor(crane(), oil()).predict(exact_block(12.0))


@pytest.fixture(scope='module')
def predicted(prediction, tmp_path_factory):
    path = tmp_path_factory.mktemp('predicted') / 'bag'
    with PredictedBag(path, crane(), BEGIN) as bag:
        bag.add(prediction)
        assert bag.count == 6 * 1180
    return path


@pytest.mark.parametrize('compress', [True, False])
def test_messages_written_at_once_are_those_written_one_by_one(tmp_path, rng, compress):
    names, ns = ('lift', 'tilt_cylinder'), BEGIN + 3 * np.arange(12_000) * SECOND // 1000
    states, array = rng.standard_normal((3, len(ns), 2)), rng.standard_normal((len(ns), 4))
    topics = {'/states': joint_states(names), '/array': labelled_array(names, ('pressure_a', 'stamp'))}
    with RowBag(tmp_path / 'bag', topics, compress) as bag:
        for part in np.array_split(np.arange(len(ns)), 3):
            bag.write(ns[part], {'/states': states[:, part], '/array': (array[part],)})
    found = messages_of(tmp_path / 'bag')
    assert {topic: len(messages) for topic, messages in found.items()} == {'/states': 12_000, '/array': 12_000}
    for k in (0, 1, 7777, 11_999):
        when, message = found['/states'][k]
        assert when == ns[k] == message.header.stamp.sec * SECOND + message.header.stamp.nanosec
        assert tuple(message.name) == names
        for values, field in zip(states, FIELDS):
            np.testing.assert_array_equal(getattr(message, field), values[k])
        np.testing.assert_array_equal(found['/array'][k][1].data, array[k])
    assert found['/array'][0][1].layout.dim[0].label == 'lift,tilt_cylinder'
    with open_bag(tmp_path / 'bag') as source:
        assert source.lost is None and {topic.msgtype for topic in source.topics} >= {ARRAY}
        decoder = Decoder('sensor_msgs/msg/JointState')
        rows = [rows for packet in source.packets(('/states',)) for rows in decoder.decode(packet)]
        assert decoder.bad == 0 and source.invalid == ''
        np.testing.assert_array_equal(np.concatenate([one.values['effort'] for one in rows]), states[2])
        np.testing.assert_array_equal(np.concatenate([one.stamps for one in rows]), ns)


def test_a_bag_that_is_not_finished_leaves_nothing_that_looks_like_one(tmp_path):
    topics = {'/states': joint_states(('lift',))}
    with RowBag(tmp_path / 'bag', topics) as bag:
        bag.write([BEGIN], {'/states': np.zeros((3, 1, 1))})
    with pytest.raises(RuntimeError), RowBag(tmp_path / 'bag', topics):
        raise RuntimeError
    assert list((tmp_path / 'bag').iterdir()) == []


def test_every_topic_says_what_the_prediction_says_at_the_times_of_the_bag(predicted, prediction):
    found = messages_of(predicted)
    assert found.keys() == {MEASURED, PREDICTED, FRICTIONLESS, RESIDUAL, MEASURED_ACCELERATION, PREDICTED_ACCELERATION}
    rows = np.arange(prediction.core.start, prediction.core.stop, round(0.01 / PERIOD))
    assert {len(messages) for messages in found.values()} == {len(rows)}
    for topic, effort in ((MEASURED, prediction.effort), (PREDICTED, prediction.effort_id),
                          (FRICTIONLESS, prediction.effort_id_frictionless),
                          (RESIDUAL, prediction.effort - prediction.effort_id)):
        for k in (0, 500, len(rows) - 1):
            when, message = found[topic][k]
            assert when == BEGIN + round(prediction.t[rows[k]] * SECOND) and tuple(message.name) == crane().actuators
            np.testing.assert_array_equal(message.effort, effort[rows[k]])
            np.testing.assert_array_equal(message.position, prediction.x[rows[k]])
            np.testing.assert_array_equal(message.velocity, prediction.v[rows[k]])
    for topic, values in ((MEASURED_ACCELERATION, prediction.xdd), (PREDICTED_ACCELERATION, prediction.xdd_fd)):
        message = found[topic][-1][1]
        assert tuple(message.joint_names) == crane().coordinates
        np.testing.assert_array_equal(message.points[0].accelerations, values[rows[-1]])


def test_blocks_follow_each_other_at_one_rate(tmp_path, prediction):
    predictor = Predictor(crane(), oil())
    with PredictedBag(tmp_path / 'bag', crane(), 0, rate=70.0) as bag:
        for start in (0.0, 2.0, 7.0):
            bag.add(predictor.predict(exact_block(3.0, start)))
    times = np.array([when for when, _ in messages_of(tmp_path / 'bag')[MEASURED]]) / SECOND
    steps = np.diff(times)
    assert (steps > 0).all() and np.median(steps) == pytest.approx(0.014) and (steps > 0.05).sum() == 1


def test_the_layout_shows_curves_that_are_in_the_bag(predicted, tmp_path):
    write_layout(tmp_path / 'layout.xml', crane().actuators)
    root = ElementTree.parse(tmp_path / 'layout.xml').getroot()
    window = root.find('tabbed_widget')
    assert root.tag == 'root' and window.get('parent') == 'main_window'
    tabs = window.findall('Tab')
    assert [tab.get('tab_name') for tab in tabs] == [*crane().actuators, 'measured - predicted']
    there = {curve(topic, name, field) for topic, messages in messages_of(predicted).items()
             if hasattr(messages[0][1], 'effort') for name in messages[0][1].name for field in FIELDS}
    shown = [one.get('name') for one in root.iter('curve')]
    assert set(shown) <= there and f'{MEASURED}/lift_cylinder/effort' in shown
    for tab in tabs:
        for splitter in tab.iter('DockSplitter'):
            sizes = [float(size) for size in splitter.get('sizes').split(';')]
            assert int(splitter.get('count')) == len(splitter) == len(sizes)
            assert sum(sizes) == pytest.approx(1.0, abs=1e-4)
    # PlotJuggler reads as many positions, velocities and efforts as there are names
    assert all(len(getattr(message, field)) == len(message.name) for topic, messages in messages_of(predicted).items()
               if hasattr(messages[0][1], 'effort') for _, message in messages[:3] for field in FIELDS)


@pytest.mark.long
def test_what_is_predicted_does_not_replace_what_it_is_predicted_from(predicted, capsys):
    output = predicted.parent
    # it has no pressures, by which validation would know the machine with its oil
    assert main(['validate', str(predicted), '--urdf', 'hiab_xs031', '--hydraulics',
                 str(CONFIG / 'hiab_xs031_hydraulics.yaml'), '--output', str(output)]) == 0
    assert (output / 'predicted' / 'metadata.yaml').is_file() and (output / 'plotjuggler_layout.xml').is_file()
    capsys.readouterr()
    before = (output / 'predicted' / 'recording.mcap').read_bytes()
    assert main(['validate', str(output / 'predicted'), '--urdf', 'hiab_xs031', '--output', str(output)]) == 2
    assert 'would be replaced' in capsys.readouterr().err
    assert (output / 'predicted' / 'recording.mcap').read_bytes() == before


def test_the_bag_of_somebody_else_is_not_replaced(predicted, tmp_path, capsys):
    shutil.copytree(predicted, tmp_path / 'mine')
    (tmp_path / 'predicted').mkdir()
    (tmp_path / 'predicted' / 'recording.mcap').write_bytes(b'mine')
    assert main(['validate', str(tmp_path / 'mine'), '--urdf', 'hiab_xs031', '--hydraulics', '',
                 '--topic', f'states={MEASURED}', '--output', str(tmp_path)]) == 2
    assert 'is no bag of predictions and would be replaced' in capsys.readouterr().err
    assert (tmp_path / 'predicted' / 'recording.mcap').read_bytes() == b'mine'


def test_bags_of_predictions_are_no_recordings_of_a_folder(predicted, tmp_path):
    shutil.copytree(predicted, tmp_path / 'report' / 'predicted')
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run' / 'metadata.yaml').write_text('')
    assert find_bags([tmp_path]) == (str(tmp_path / 'run'),)
    assert find_bags([tmp_path / 'report' / 'predicted']) == (str(tmp_path / 'report' / 'predicted'),)


@pytest.mark.parametrize('rate', ['0', '-1', 'nan', 'fast'])
def test_rates_are_more_than_nothing(rate, capsys):
    with pytest.raises(SystemExit) as refused:
        main(['validate', 'bag', '--urdf', 'hiab_xs031', '--predicted-rate', rate])
    assert refused.value.code == 2 and 'predicted-rate' in capsys.readouterr().err
