"""`psdyn latency`, the soak, floods of the campaign: what they say of what was measured; short runs over real DDS."""

import json
import os
import re
import signal
import stat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from psdyn_ros.cli import main as psdyn

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rclpy.serialization import serialize_message  # noqa: E402

from psdyn_ros.nodes.controller.cycle_statistics import CycleRecords  # noqa: E402
from psdyn_ros.nodes.runtime.realtime import OFF  # noqa: E402
from psdyn_ros.tools.fault_campaign.over_dds import attacks  # noqa: E402
from psdyn_ros.tools.fault_campaign.over_dds.attacks import ECHO, Slots  # noqa: E402
from psdyn_ros.tools.timing import conditions, cyclictest, flood, latency, soak  # noqa: E402
from psdyn_ros.tools.timing import loops as latency_loops
from psdyn_ros.tools.timing import report as latency_report
from psdyn_ros.tools.timing.latency import Result  # noqa: E402
from psdyn_ros.tools.timing.soak import Sample  # noqa: E402

MS = 1_000_000


def records(cycles=1000, execution=200_000, computation=9_000, stalls=(), lateness=20_000, age=600_000):
    found = CycleRecords(2 * MS)
    for _ in range(cycles):
        found.add(execution, lateness, age=age, computation=computation)
    for slots in stalls:
        found.add(execution, slots * 2 * MS + 100_000, slots)
    return found


def results(ours, echo):
    return {(kind, 500.0, 'timer'): Result(found, CycleRecords(2 * MS), 1000, 2000) for kind, found in (
        ('null', records(execution=3_000, computation=-1, age=-1)), ('echo', echo), ('controller', ours))}


def passed(ours, echo):
    return [check.passed for check in latency_report.verdict(results(ours, echo))]


def test_the_verdict_is_about_execution_beside_the_echo_and_missed_slots():
    echo = records(execution=100_000)
    assert passed(records(execution=190_000), echo) == [True, True, True]
    assert passed(records(execution=260_000), echo) == [True, False, True]      # p50 in 3 times, p99 not in 2 times
    assert passed(records(execution=320_000), echo) == [False, False, True]
    assert passed(records(cycles=0), echo) == [False, False, True]              # was not measured


@pytest.mark.parametrize('ours, echo, fine', [
    ((), (), True), ((), (1,), True), ((1, 2), (3,), True),      # fewer slots, or as many
    ((1,), (), True), ((1,) * 4, (), True),                      # one to four stalls more may be chance
    ((1,) * 5, (), False), ((1,) * 20, (1,) * 8, False), ((1,) * 20, (1,) * 15, True),
    ((40,), (1,), True),                                         # one long stall is one event
])
def test_missed_slots_are_ours_only_where_chance_does_not_explain_them(ours, echo, fine):
    assert passed(records(stalls=ours), records(stalls=echo))[2] is fine


def test_the_table_has_what_was_measured_in_microseconds():
    header, null, echo, ours = latency_report.table(results(records(stalls=(3,)), records()))
    row = dict(zip(header, ours))
    assert row['loop'] == 'controller' and row['execution p50'] == '200'
    assert row['missed slots'] == '3 of 1004 in 1' and row['longest run'] == '3' and row['age p50'] in ('600', '604')
    assert len(header) == len(null) == len(echo) == len(ours) and dict(zip(header, null))['age p50'] == ''


def test_the_parts_of_the_execution_time():
    header, echo, ours = latency_report.parts(results(records(), records(computation=-1)))
    assert dict(zip(header, ours))['computation p99'] == '9' and dict(zip(header, echo))['computation p99'] == ''
    assert len(header) == len(echo) == len(ours)


def test_the_report_says_soft_real_time_with_its_figures():
    found = results(records(stalls=(3,)), records())
    checks = list(latency_report.verdict(found))
    page = latency_report.as_markdown(found, {'kernel': 'Linux'}, checks, 'images/latency.png')
    assert 'Soft real time: meets T = 2 ms (timer) with 3 missed slots in 1004 under these conditions.' in page
    assert '![Share of slots beyond a duration](images/latency.png)' in page and '| kernel | Linux |' in page
    text = latency_report.as_terminal(found, {'kernel': 'Linux'}, checks)
    assert 'at most 3 times that of the echo loop' in text and 'Soft real time' in text


def test_json_holds_the_histograms():
    found = results(records(stalls=(3,)), records())
    told = json.loads(json.dumps(latency_report.as_json(found, {}, latency_report.verdict(found))))
    back = CycleRecords(2 * MS)
    back.merge(told['loops'][2]['records'])
    assert back.as_dict() == found['controller', 500.0, 'timer'].records.as_dict()
    assert [check['passed'] for check in told['verdict']] == [True, True, True]


def test_the_picture_draws_every_loop():
    figure = latency_report.picture(results(records(stalls=(3,)), records()))
    late, execution, age = figure.axes
    assert [len(axes.get_lines()) for axes in (late, execution, age)] == [4, 3, 3]      # with the period
    longest = max(line.get_xdata()[-1] for line in late.get_lines()[:3])
    assert 6100.0 <= longest <= 6200.0


def test_conditions_are_told_and_steal_is_that_of_the_interval(monkeypatch):
    told = conditions.conditions()
    assert re.match(r'\d+ cores', told['processor'].split(', ')[-2]) and 'rmw_' in told['middleware']
    assert all(text for text in told.values())
    ticks = iter([np.array([100, 0, 0, 100, 0, 0, 0, 7, 0, 0]), np.array([150, 0, 0, 120, 20, 0, 0, 17, 0, 0])])
    monkeypatch.setattr(conditions, '_processor_times', lambda: next(ticks))
    told = conditions.Meanwhile().report()
    assert told['stolen by the host'] == '10.00 % of processor time' and told['idle'] == '40 % of processor time'


@pytest.mark.parametrize('runtime, text', [('', 'unknown'), ('-1', 'off'), ('950000', '95 % of each second at most')])
def test_throttling_is_told(runtime, text):
    assert conditions._throttling(runtime) == text


def install(folder, monkeypatch, script):
    program = folder / 'cyclictest'
    program.write_text(f'#!/bin/sh\n{script}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv('PATH', f'{folder}{os.pathsep}{os.environ["PATH"]}')


def test_cyclictest_is_read_where_it_is_installed(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked\n'
            'echo "# /dev/cpu_dma_latency set to 0us"\n'
            'echo "T: 0 ( 4711) P:45 I:2000 C:   1000 Min:      3 Act:    5 Avg:    6 Max:     142"')
    native = cyclictest.Cyclictest(500.0, 45)
    native.turn(2.0)
    native.turn(2.0)
    assert (native.cycles, native.reason) == (2000, '') and native.greatest == pytest.approx(142e-6)
    assert native.mean == pytest.approx(6e-6)
    assert (tmp_path / 'asked').read_text().split() == ['-q', '-t1', '-p45', '-i2000', '-l1000']


@pytest.mark.parametrize('script, reason', [
    ('echo "Unable to change scheduling policy!" >&2; exit 1', 'ended with 1: Unable to change scheduling policy!'),
    ('echo nothing', 'ended with 0: nothing')])
def test_cyclictest_that_fails_is_told_and_not_asked_again(tmp_path, monkeypatch, script, reason):
    install(tmp_path, monkeypatch, script)
    native = cyclictest.Cyclictest(500.0, 45)
    native.turn(0.1)
    assert reason in native.reason and native.cycles == 0
    install(tmp_path, monkeypatch, 'exit 0')
    native.turn(0.1)
    assert reason in native.reason


def test_cyclictest_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setenv('PATH', '')
    assert cyclictest.Cyclictest(500.0, 45).reason == 'cyclictest is not installed'


def test_null_loops_have_timers_only():
    found = latency.subjects((500.0, 1000.0), latency.TRIGGERS)
    assert len(found) == 10 and len({subject.name for subject in found}) == 10
    assert [subject.trigger for subject in found if subject.kind == latency.NULL] == ['timer', 'timer']


@pytest.mark.parametrize('arguments, words', [
    (['--seconds', '0'], '--seconds 0: expected a positive number'),
    (['--rate', '500', 'nan'], '--rate nan: expected a positive number'),
    (['--json', '/no/such/folder/file.json'], "'/no/such/folder/file.json': no such folder"),
    (['--cpus', 'all'], "cpus 'all': expected numbers such as 2,3"),
    (['--priority', '3'], 'priority 3: expected 6 to 99'),
])
def test_unusable_options_end_before_anything_is_started(capsys, arguments, words):
    assert psdyn(['latency', *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_short_run_over_dds(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(latency, 'SLICE', 0.5)
    monkeypatch.setattr(latency.tempfile, 'tempdir', str(tmp_path))
    files = {what: str(tmp_path / f'latency.{what}') for what in ('json', 'png', 'md')}
    code = psdyn(['latency', '--seconds', '3', '--rate', '200', '--trigger', 'timer', '--realtime', OFF,
                  '--json', files['json'], '--picture', files['png'], '--report', files['md']])
    told = json.loads(Path(files['json']).read_text())
    # bounds are held or missed by the speed of this computer; what is judged, and the code of it, are not
    assert [check['what'].split(' at ')[0] for check in told['verdict']] == [
        'execution p50', 'execution p99', 'missed slots']
    assert code == int(not all(check['passed'] for check in told['verdict']))
    loops = {(loop['kind'], loop['trigger']): loop for loop in told['loops']}
    assert len(loops) == 3 and told['conditions']['load beside'] == 'none of ours'
    for (kind, _), loop in loops.items():
        found = CycleRecords(loop['records']['period'])
        found.merge(loop['records'])
        counts = {name: histogram.count for name, histogram in found.histograms.items()}
        # slots of two half seconds, but for those in which records began; a stall at an end adds slots that are missed
        assert found.cycles <= 220 and found.cycles + found.missed >= 100, kind
        assert counts['execution'] == found.cycles
        assert counts['lateness'] == found.cycles + found.missed
        assert (counts['age'] > 0) == (kind != 'null') and (counts['computation'] > 0) == (kind == 'controller')
    assert 'sleep only' in capfd.readouterr().out
    assert Path(files['png']).stat().st_size > 10_000 and '## Verdict' in Path(files['md']).read_text()


def test_a_busy_process_spends_processor_time_until_it_is_ended():
    class Ended(Exception):
        pass

    def end(number, frame):
        raise Ended

    before = signal.signal(signal.SIGVTALRM, end)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)       # s of processor time
        with pytest.raises(Ended):
            latency_loops.burn()
    finally:
        signal.signal(signal.SIGVTALRM, before)


def told_by(samples, motions=(0.3, 0.3), faults=()):
    class Told:
        pass
    found = Told()
    found.samples, found.motions, found.faults = {'controller': samples}, list(motions), list(faults)
    found.statistics, found.rejected = {'cycles': 1000.0, 'missed': 3.0, 'longest_missed': 2.0}, 0
    return found


def memory(slope, hours=2.0, files=0):
    return [Sample(seconds, 200.0 + slope * seconds / 3600.0 + (30.0 if seconds else 0.0),
                   20 + (files if seconds > 0.9 * 3600.0 * hours else 0))
            for seconds in np.linspace(0.0, 3600.0 * hours, 100)]


@pytest.mark.parametrize('found, words', [
    (told_by(memory(0.2)), ''), (told_by(memory(1.5)), 'the memory of the controller grows by 1.50 MiB/h'),
    (told_by(memory(0.2, files=9)), 'the controller opened 9 files'),
    (told_by(memory(0.2), motions=(0.3, 0.5)), 'the tracking error went from 0.300 to 0.500'),
    (told_by(memory(0.2), motions=()), 'no motion was completed'),
    (told_by(memory(0.2), faults=['7 s: F01']), '1 faults'),
])
def test_what_fails_a_soak(found, words):
    rows, failure = soak.judge(found, 7200.0)
    assert failure.startswith(words) and bool(failure) == bool(words)
    assert ('missed slots', '3 of 1003, 2 in a row at most') in rows


def test_a_short_soak_cannot_tell_a_slope():
    assert soak.judge(told_by(memory(50.0, hours=0.01)), 36.0)[1] == ''
    assert np.isnan(soak.growth(memory(1.0)[:2], 7200.0)[0])


@pytest.mark.long
@pytest.mark.dds
def test_a_short_soak_over_dds(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(soak.tempfile, 'tempdir', str(tmp_path))        # logs of a run that failed stay
    file = tmp_path / 'soak.json'
    # of faster motions the first point can be beyond the limit of jerk, by what noise says of the start
    code = soak.main(['--hours', '0.004', '--motion', '2.5', '--rate', '200', '--json', str(file)])
    told = json.loads(file.read_text())
    # a computer that stalls makes faults and worse tracking; nothing else fails so short a run
    assert re.fullmatch(r'(the tracking error went [^;]*)?(; )?(\d+ faults)?', told['failure'])
    assert code == int(bool(told['failure'])) and 'memory of the controller' in capfd.readouterr().out
    assert set(told['samples']) == {'simulator', 'controller'}
    for samples in told['samples'].values():
        assert len(samples) > 5 and all(mebibytes > 20.0 and files > 5 for _, mebibytes, files in samples)
    assert told['statistics']['cycles'] > 100 and told['motions']


@pytest.mark.parametrize('hours', ['0', '-1', 'nan'])
def test_a_soak_of_no_time_is_refused(hours):
    with pytest.raises(SystemExit) as caught:
        soak.main([f'--hours={hours}'])
    assert caught.value.code == 2


@pytest.mark.parametrize('kind, kinds_of_message, most', [('small', 'JointTrajectory', 10_000 * 0.05 + 101),
                                                          ('large', 'JointTrajectory', 4), ('wrong', 'String', 6)])
def test_a_flood_publishes_no_faster_than_asked_for(kind, kinds_of_message, most):
    sent = []

    class Node:
        def create_publisher(self, message, topic, depth):
            assert topic == ('/echo/point' if kind == 'small' else '/echo/joint_trajectory') and depth == 1
            return SimpleNamespace(publish=sent.append, get_subscription_count=lambda: 1)

    assert flood.Flood(Node(), kind, 'echo').burst(0.05) == len(sent) <= most
    assert sent and {type(message).__name__ for message in sent} == {kinds_of_message}
    assert (len(serialize_message(sent[0])) > 2**20) == (kind == 'large')


@pytest.mark.parametrize('ours, echo, code, words', [
    (Slots(1000, 0, 0), Slots(1000, 0, 0), None, ''),
    (Slots(990, 10, 4), Slots(1000, 0, 0), None, ''),                   # four stalls may be chance
    (Slots(990, 10, 5), Slots(1000, 0, 0), None, 'missed slots: 1.000 % in 5 stalls; required: not above the echo'),
    (Slots(900, 100, 50), Slots(890, 110, 20), None, ''),               # fewer slots than the echo
    (Slots(-990, 0, 0), Slots(1000, 0, 0), None, 'cycles of the controller or the echo were not reported'),
    (Slots(990, 10, 5), Slots(1000, 0, 0), 1, 'the process ended under a flood'),
])
def test_a_flood_is_a_problem_where_more_slots_are_missed_than_the_echo_misses_by_chance(
        monkeypatch, ours, echo, code, words):
    found = {'controller_1': (100, Slots(999, 1, 1), ours), ECHO: (100, Slots(500, 0, 0), echo)}
    monkeypatch.setattr(attacks, '_under_flood', lambda bench, name, kind: found[name])
    controller = SimpleNamespace(name='controller_1', states=set(), process=SimpleNamespace(poll=lambda: code))
    attack = attacks._flooded(None, controller, 'a flood', 'small')
    assert attack.problem.startswith(words) and bool(attack.problem) == bool(words)
    assert (attack.missed, len(attack.shares), attack.shares[0]) == (ours.missed, 4, 0.001)
