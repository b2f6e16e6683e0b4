"""From bags to metrics and reports, on recordings whose errors are known; no ROS in here."""

import re

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore
from support.machines import URDF

from psdyn_ros.model.units import SECOND
from psdyn_ros.validation.bags.recording import TOPICS, BagError, read_bag, write_bag
from psdyn_ros.validation.metrics.tracking import BOUNDS, track, units
from psdyn_ros.validation.report import page as report

CRANE = URDF / 'hiab_xs031.urdf'
STORE = get_typestore(Stores.ROS2_JAZZY)
STEP = 20_000_000       # ns
NAMES = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
TYPES = {TOPICS.states: 'sensor_msgs/msg/JointState', TOPICS.commands: 'sensor_msgs/msg/JointState',
         TOPICS.reference: 'trajectory_msgs/msg/JointTrajectory',
         TOPICS.statistics: 'std_msgs/msg/Float64MultiArray'}


def new(kind, **fields):
    return STORE.types[kind](**fields)


def header(ns):
    stamp = new('builtin_interfaces/msg/Time', sec=ns // SECOND, nanosec=ns % SECOND)
    return new('std_msgs/msg/Header', stamp=stamp, frame_id='')


def joint_state(ns, names, position=(), effort=()):
    return new('sensor_msgs/msg/JointState', header=header(ns), name=list(names), position=np.array(position, float),
               velocity=np.zeros(len(position)), effort=np.array(effort, float))


def reference(ns, names, position, velocity):
    point = new('trajectory_msgs/msg/JointTrajectoryPoint', positions=np.array(position, float),
                velocities=np.array(velocity, float), accelerations=np.zeros(len(names)), effort=np.zeros(0),
                time_from_start=new('builtin_interfaces/msg/Duration', sec=0, nanosec=0))
    return new('trajectory_msgs/msg/JointTrajectory', header=header(ns), joint_names=list(names), points=[point])


def statistics(labels, values):
    dim = [new('std_msgs/msg/MultiArrayDimension', label=label, size=size, stride=len(values))
           for label, size in (('cycle', 1), (','.join(labels), len(values)))]
    layout = new('std_msgs/msg/MultiArrayLayout', dim=dim, data_offset=0)
    return new('std_msgs/msg/Float64MultiArray', layout=layout, data=np.array(values, float))


def bag(folder, rng, amplitude, seconds=2.0, missing=()):
    """A bag in which each actuator is off by amplitude sin(2 pi t); joints in a new order in every message."""
    messages = []
    extra = 'gripper'
    for k in range(round(seconds * SECOND / STEP) + 1):
        ns = 1_700_000_000 * SECOND + k * STEP
        t = k * STEP / SECOND
        wanted = np.array([0.1, 0.2, 0.3, 0.3]) + 0.05 * t
        there = wanted + amplitude * np.sin(2.0 * np.pi * t)
        order = rng.permutation(5)
        names, position = [(*NAMES, extra)[i] for i in order], np.append(there, 9.0)[order]
        contents = {TOPICS.states: joint_state(ns, names, position, np.zeros(5)),
                    TOPICS.commands: joint_state(ns, NAMES, effort=[1e3, 2e3, 3e3, 4e3]),
                    TOPICS.reference: reference(ns, NAMES, wanted, [0.05] * 4)}
        if k % 50 == 0:
            contents[TOPICS.statistics] = statistics(
                ('cycles', 'missed', 'p50', 'p99', 'p99.9'), [k, 2, 1e-4, 2e-4, 3e-4])
        messages += [(topic, ns, bytes(STORE.serialize_cdr(message, TYPES[topic])))
                     for topic, message in contents.items() if topic not in missing]
    write_bag(folder, messages, {topic: kind for topic, kind in TYPES.items() if topic not in missing})
    return folder


def test_the_error_of_each_actuator_is_that_of_the_recording(tmp_path, crane, rng):
    amplitude = np.array([0.5e-3, 0.2e-3, 1.0e-3, 0.4e-3])
    recording = read_bag(bag(tmp_path / 'bag', rng, amplitude))
    tracking = track(recording, units(crane))
    assert [error.joint for error in tracking.errors] == list(NAMES)
    assert [error.unit for error in tracking.errors] == ['rad', 'm', 'm', 'm']
    assert [error.rms for error in tracking.errors] == pytest.approx(amplitude / np.sqrt(2.0), rel=0.01)
    assert [error.maximum for error in tracking.errors] == pytest.approx(amplitude, rel=0.01)
    assert [error.passed for error in tracking.errors] == [True, True, False, True]
    assert not tracking.passed
    assert tracking.time[-1] == pytest.approx(2.0)
    assert recording.statistics == pytest.approx({'cycles': 100, 'missed': 2, 'p50': 1e-4, 'p99': 2e-4, 'p99.9': 3e-4})


def test_a_bound_that_is_not_a_number_passes_nothing(tmp_path, crane, rng):
    recording = read_bag(bag(tmp_path / 'bag', rng, np.zeros(4)))
    assert track(recording, units(crane)).passed
    assert not track(recording, units(crane), {'m': float('nan'), 'rad': 1.0}).passed


@pytest.mark.parametrize('topic', [TOPICS.states, TOPICS.reference, TOPICS.commands])
def test_a_recording_that_lacks_something_is_named(tmp_path, rng, topic):
    with pytest.raises(BagError, match=topic):
        read_bag(bag(tmp_path / 'bag', rng, np.zeros(4), missing=(topic,)))


def test_what_is_no_bag_is_an_error(tmp_path):
    with pytest.raises(BagError):
        read_bag(tmp_path / 'nothing')


def test_a_joint_that_was_not_recorded_is_named(tmp_path, rng):
    recording = read_bag(bag(tmp_path / 'bag', rng, np.zeros(4)))
    with pytest.raises(BagError, match="did you mean 'telescope'"):
        track(recording, {'telescop': 'm'})


def test_a_reference_that_never_moves_has_no_tracking_error(tmp_path, crane):
    ns = SECOND
    messages = [(TOPICS.states, ns, bytes(STORE.serialize_cdr(joint_state(ns, NAMES, [0.0] * 4, [0.0] * 4),
                                                              TYPES[TOPICS.states]))),
                (TOPICS.commands, ns, bytes(STORE.serialize_cdr(joint_state(ns, NAMES, effort=[0.0] * 4),
                                                                TYPES[TOPICS.commands]))),
                (TOPICS.reference, ns, bytes(STORE.serialize_cdr(reference(ns, NAMES, [0.0] * 4, [0.0] * 4),
                                                                 TYPES[TOPICS.reference])))]
    write_bag(tmp_path / 'bag', messages, TYPES)
    with pytest.raises(BagError, match='never moves'):
        track(read_bag(tmp_path / 'bag'), units(crane))


# report


@pytest.fixture
def summary(tmp_path, crane, rng):
    def make(amplitude, duration=2.0, travel=0.1):
        runs = []
        for law, off in (('computed torque', amplitude), ('PD', 10.0 * amplitude)):
            recording = read_bag(bag(tmp_path / law.replace(' ', '_'), rng, np.full(4, off)))
            runs.append(report.Run(law, recording, track(recording, units(crane))))
        return report.Summary(crane.name, *runs, duration, np.full(4, travel), {'a <fact>': 'and its & value'})
    return make


def test_the_verdict_is_on_top_and_the_page_needs_nothing_else(tmp_path, crane, summary):
    page = report.write_report(tmp_path, summary(1e-5), crane).read_text()
    body = page[page.index('<body>'):]
    assert body.index('PASS') < body.index('<table>') < body.index('<img')
    assert not re.search(r'(src|href)="(?!data:)', page) and '://' not in page
    assert page.count('data:image/png;base64,') == 3
    assert 'a &lt;fact&gt;' in page and 'and its &amp; value' in page
    for name in ('motion.png', 'tracking.png', 'forces.png'):
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')


def test_the_reason_of_a_failure_is_named(tmp_path, crane, summary):
    late = summary(2.0 * max(BOUNDS.values()))
    assert late.verdict.startswith('FAIL: slew, lift_cylinder, tilt_cylinder, telescope did not follow')
    assert 'FAIL' in report.write_report(tmp_path, late, crane).read_text()


def test_a_recording_that_ends_early_fails(summary):
    assert summary(1e-5, duration=10.0).verdict == 'FAIL: the recording ends after 2.0 s of 10.0 s.'


def test_a_reference_that_was_abandoned_fails(summary):
    assert summary(1e-5, travel=0.5).verdict == 'FAIL: the reference of slew went 0.1 of 0.5 rad only.'


def test_tables_hold_the_figures(summary):
    figures = summary(1e-4)
    table = list(report.tracking_table(figures))
    assert table[0][0] == 'joint' and len(table) == 5
    assert table[1][:4] == ('slew', 'mrad', '0.070', '1.000') and table[2][1] == 'mm'
    assert table[1][-1] == '10'
    text = report.as_text(report.timing_table(figures))
    assert 'computed torque' in text and text.splitlines()[1].split()[-3:] == ['100', '200', '300']


@pytest.mark.long
def test_a_baseline_that_ended_early_costs_only_its_columns(tmp_path, crane, summary):
    whole = summary(1e-4)
    never_moved = whole.baseline._replace(recording=None, tracking=None, stopped='it did not hold the machine')
    for baseline in whole.baseline._replace(stopped='the controller stopped the machine: F08'), never_moved:
        shortened = whole._replace(baseline=baseline)
        assert shortened.verdict == ('PASS: every coordinate follows its reference within its bound. The baseline did '
                                     f'not: {baseline.stopped}.')
        header, *rows = report.tracking_table(shortened)
        assert header[5:] == ('RMS baseline', 'maximum baseline', 'ratio of RMS')
        assert [row[:5] for row in rows] == [row[:5] for row in list(report.tracking_table(whole))[1:]]
        assert {row[5:] for row in rows} == {('', '', '')}
        text = report.write_report(tmp_path, shortened, crane).read_text()
        assert baseline.stopped in text and 'It is not compared.' in text
    assert [run.law for run in shortened.runs] == ['computed torque']


def test_a_law_that_was_stopped_fails_after_the_time_that_it_moved(summary):
    whole = summary(1e-4)
    stopped = whole._replace(judged=whole.judged._replace(stopped='the controller stopped the machine: F08'))
    assert stopped.verdict == 'FAIL: after 2.0 s of 2.0 s the controller stopped the machine: F08.'


def test_a_better_baseline_has_a_ratio_below_one(summary):
    whole = summary(1e-4)
    swapped = whole._replace(judged=whole.baseline, baseline=whole.judged)
    assert {row[-1] for row in list(report.tracking_table(swapped))[1:]} == {'0.1'}
