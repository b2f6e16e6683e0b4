"""Validation of bags: who passes, who fails and why, what is written, and exit codes."""

import csv
import html
import json
import re
import shutil

import numpy as np
import pytest
from support.bags.recorded_motion import crane, oil, write_demonstration
from support.machines import URDF

import psdyn_ros
from psdyn_ros.cli import main
from psdyn_ros.validation.bags.simulated_bag import TELEMETRY
from psdyn_ros.validation.metrics import FAIL, INVALID, PASS
from psdyn_ros.validation.metrics.comparison import BETTER, SAME, WORSE, compare
from psdyn_ros.validation.metrics.figure import Delay, estimate
from psdyn_ros.validation.metrics.metrics import EFFORT, FIGURES
from psdyn_ros.validation.metrics.tolerances import read_settings
from psdyn_ros.validation.metrics.verdict import Check
from psdyn_ros.validation.validate import validate

PICTURES = ('efforts.png', 'errors.png', 'closure.png', 'spectrum.png', 'friction.png', 'energy.png', 'simulation.png',
            'motion.png')
CASES = {'exact': {}, 'plain': {'plain': True}, 'payload': {'plain': True, 'payload': 30.0},
         'drift': {'plain': True, 'drift': 5e4}}


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp('bags')
    return {name: write_demonstration(folder / name, **what) for name, what in CASES.items()}


@pytest.fixture(scope='module')
def exact(bags, tmp_path_factory):
    """(`Validation` of exact sensors, folder of its outputs)."""
    folder = tmp_path_factory.mktemp('exact') / 'report'
    return validate(bags['exact'], 'hiab_xs031', output=folder), folder


def short(bags, name, **options):
    return validate(bags[name], crane(), hydraulics=oil(), **options)


# verdicts


def test_an_exact_model_with_exact_sensors_passes_within_one_percent(exact):
    found, _ = exact
    assert found.verdict.verdict == PASS and found.verdict.exit_code == 0
    assert found.verdict.reasons == () and found.verdict.partial == ()
    assert all(found.metrics.metrics(EFFORT, axis).nrmse <= 0.01 for axis in range(4))
    assert found.metrics.rows * found.channels.period >= 0.95 * found.duration
    assert found.quality.findings() == [] or all(one.severity == 'note' for one in found.quality.findings())


@pytest.mark.parametrize('name, verdict, about', [
    ('plain', PASS, None), ('payload', FAIL, 'lift_cylinder: nrmse'), ('drift', FAIL, 'tilt_cylinder: bias')])
def test_tolerances_tell_a_payload_and_a_drifting_sensor_from_a_healthy_machine(bags, name, verdict, about):
    found = short(bags, name).verdict
    assert found.verdict == verdict, found.text
    assert found.exit_code == (verdict == FAIL)
    assert about is None or any(reason.startswith(about) for reason in found.reasons)
    if name == 'drift':
        assert all(reason.startswith('tilt_cylinder') for reason in found.reasons)


@pytest.mark.long
def test_two_recordings_are_told_from_each_other_where_the_machine_changed_and_only_there(bags):
    plain, payload, drift = (short(bags, name) for name in ('plain', 'payload', 'drift'))
    assert {change.verdict for change in compare(plain, plain)} == {SAME}
    worse = {(change.actuator, change.figure) for change in compare(plain, payload) if change.verdict == WORSE}
    assert worse >= {('lift_cylinder', 'rmse'), ('lift_cylinder', 'bias'), ('tilt_cylinder', 'bias')}
    changes = compare(plain, drift)
    assert {change.actuator for change in changes if change.verdict != SAME} == {'tilt_cylinder'}
    back = {change.verdict for change in compare(drift, plain)}
    assert back == {SAME, BETTER} and all('to' in change.text for change in changes)
    bias, = (change for change in changes if (change.actuator, change.figure) == ('tilt_cylinder', 'bias'))
    # 0.5 bar/s over 10 s on the piston side; the end, where it has drifted most, is at rest and not judged
    assert bias.change.estimate == pytest.approx(0.5 * 5e4 * 10.0 * oil().cylinders['tilt_cylinder'].area_a, rel=0.15)


def test_how_a_recording_is_cut_into_blocks_changes_nothing(bags, exact):
    cut = short(bags, 'exact', rows=300)
    for axis in range(4):
        whole = exact[0].metrics.metrics(EFFORT, axis).as_dict()
        assert cut.metrics.metrics(EFFORT, axis).as_dict() == pytest.approx(whole, rel=1e-6, abs=1e-6)


def test_a_delay_that_is_not_there_is_told_by_its_sign(bags):
    found = short(bags, 'exact', config=f'delays: {{{TELEMETRY}: 0.008}}\n')
    delays = {check.about: check for check in found.verdict.checks if check.figure == 'delay'}
    assert found.verdict.verdict == FAIL and delays.keys() == set(oil().cylinders)
    for check in delays.values():
        assert check.value == pytest.approx(-0.008, abs=5e-4) and not check.passed


def test_positions_alone_and_another_filter_do_as_well(bags):
    config = 'filter: {kind: butterworth, frequency: 6}\nactuator: {nrmse: 0.01, r2: 0.999, maximum: 0.05}\n'
    found = short(bags, 'exact', config=config)
    assert found.verdict.verdict == PASS, found.verdict.text
    assert '6 Hz' in found.predictor.filter.text()
    assert {check.figure for check in found.verdict.checks} >= {'nrmse', 'r2', 'maximum', 'bias', 'delay'}


def test_one_actuator_may_have_a_tolerance_of_its_own(bags):
    config = 'actuator: {nrmse: 0.9, bias: 0.9}\nactuators:\n  lift_cylinder: {nrmse: 0.01}\n'
    found = short(bags, 'payload', config=config).verdict
    assert [reason.split(': nrmse')[0] for reason in found.reasons if 'nrmse' in reason] == ['lift_cylinder']
    assert found.exit_code == 1


def test_every_figure_is_judged_where_it_has_a_tolerance(bags):
    config = 'actuator: {r2: 0.5, maximum: 0.5}\nmachine: {energy: 0.5}\n'
    found = short(bags, 'plain', config=config)
    assert {check.figure for check in found.verdict.checks} | {'frozen'} == {figure.name for figure in FIGURES}


# partial and unusable input


def test_a_bag_that_was_cut_off_passes_in_part_and_a_failure_counts_all_the_same(bags, tmp_path):
    for name, code in (('plain', 3), ('payload', 1)):
        whole, = bags[name].glob('*.mcap')
        data = whole.read_bytes()
        cut = tmp_path / f'{name}.mcap'
        cut.write_bytes(data[:int(0.7 * len(data))])
        found = validate(cut, crane(), hydraulics=oil()).verdict
        assert found.exit_code == code, found.text
        assert 'not whole' in found.partial[0]


def test_without_efforts_there_is_no_verdict(bags):
    found = short(bags, 'plain', topics={'efforts': 'none', 'pressures': 'none'})
    assert found.verdict.verdict == INVALID and found.verdict.exit_code == 2
    assert 'no effort' in found.verdict.text and found.simulation == ()


def test_too_little_of_it_is_no_verdict_either(bags):
    found = short(bags, 'plain', config='machine: {seconds: 60}\n\n').verdict
    assert found.exit_code == 2 and 'at least 60 s' in found.text


def test_the_command_line_prints_and_returns_the_exit_code(bags, tmp_path, capsys):
    urdf = str(URDF / 'hiab_xs031.urdf')
    assert main(['validate', str(bags['exact']), '--urdf', 'hiab_xs031']) == 0
    assert capsys.readouterr().out.startswith('PASS')
    for arguments, text in (
            (['--urdf', str(URDF / 'five_bar.urdf')], 'is not of'),
            (['--urdf', 'hiab_xs013'], "did you mean 'hiab_xs031'"),
            (['--urdf', urdf, '--topic', 'states'], 'expected WHAT=TOPIC'),
            (['--urdf', urdf, '--topic', 'states=/joint_statez'], '/joint_states'),
            (['--urdf', urdf, '--config', str(tmp_path / 'nowhere.yaml')], 'nowhere.yaml')):
        assert main(['validate', str(bags['exact']), *arguments]) == 2
        assert text in capsys.readouterr().err
    # a URDF without hydraulics has no friction of seals, which is part of the efforts
    assert main(['validate', str(bags['exact']), '--urdf', urdf]) == 1
    out = capsys.readouterr().out
    assert 'no hydraulics are used' in out and ' = 0 J of friction' in out
    assert "1. friction of 'lift_cylinder'" in out


@pytest.mark.parametrize('text, message', [
    ('actuator: {nrms: 0.05}', "did you mean 'nrmse'"), ('actuator: {nrmse: -1}', 'expected 0 to'),
    ('actuators:\n  lift_cylindr: {nrmse: 1}', "did you mean 'lift_cylinder'"),
    ('tolerance: {}\n', "'tolerance' is not known"),
    ('topics: {state: /x}\n', "did you mean 'states'"), ('delays: {/x: fast}\n', 'finite number'),
    ('filter: {kind: median}\n', "there is no 'median'"), ('actuator: {nrmse: .nan}\n', 'finite'), ('- 1\n', 'mapping'),
    ('machine: !!python/object:x {}\n', 'tag'), ('actuator: {nrmse: 0.1, nrmse: 0.2}\n', 'twice')])
def test_settings_are_read_strictly(text, message):
    with pytest.raises(psdyn_ros.PsdynError, match=re.escape(message)):
        read_settings(text + '\n', crane().actuators)


def test_what_is_not_a_number_is_within_no_tolerance():
    for figure in FIGURES:
        if figure is not Delay:         # it fails where it is certain
            assert not figure.passes(figure, estimate(np.nan), 0.05)
    assert 'nan' in Check('lift_cylinder', 'nrmse', *estimate(np.nan), 0.05, '%', False).text


# outputs


def test_the_report_contains_its_pictures_and_the_playback(exact):
    found, folder = exact
    page = (folder / 'report.html').read_text()
    assert found.verdict.text in page and 'hiab_xs031' in page
    around, played = re.sub(r'srcdoc="[^"]*"', '', page), html.unescape(re.search(r'srcdoc="([^"]*)"', page)[1])
    assert set(re.findall(r'(?:src|href)="(?!data:)(.*?)"', around)) == {'playback.html'} and 'http' not in around
    assert played == (folder / 'playback.html').read_text()
    assert page.count('data:image/png;base64') == len(PICTURES)
    assert {path.name for path in folder.iterdir()} == {
        'report.html', 'validation.json', 'metrics.csv', 'seconds.csv', 'spectrum.csv', 'predicted',
        'plotjuggler_layout.xml', 'playback.html', *PICTURES}
    assert page.index(found.verdict.text) < page.index('Likely causes') < page.index('Model against measurement')
    assert page.index('Delays between topics') and found.delays[TELEMETRY].text in page
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(b'\x89PNG')


def test_json_and_csv_say_what_the_metrics_say(exact):
    found, folder = exact

    def refuse(text):
        raise ValueError(text)
    document = json.loads((folder / 'validation.json').read_text(), parse_constant=refuse)
    effort = found.metrics.metrics(EFFORT, 1)
    said = document['actuators']['lift_cylinder']
    assert document['verdict'] == PASS and document['exit_code'] == 0
    assert said['effort']['all']['rmse'] == effort.rmse and said['effort']['all']['count'] == effort.count
    low, high = said['nrmse_interval']
    assert low <= effort.nrmse <= high
    assert document['filter']['cutoff'][0] == found.predictor.filter.cutoff()
    assert document['simulation'][-1]['seconds'] == 1.0 and len(document['checks']) == len(found.verdict.checks)
    rows = list(csv.DictReader((folder / 'metrics.csv').open()))
    row, = (row for row in rows if (row['quantity'], row['name'], row['regime']) == ('effort', 'lift_cylinder', 'all'))
    assert float(row['rmse']) == pytest.approx(effort.rmse, rel=1e-8) and int(row['count']) == effort.count
    assert {row['quantity'] for row in rows} == {'effort', 'effort_frictionless', 'acceleration'}
    seconds = list(csv.DictReader((folder / 'seconds.csv').open()))
    assert len(seconds) == 10 and float(seconds[3]['t']) == 3.5
    judged = [row for row in seconds if row['lift_cylinder.rmse']]     # where friction explains all there is no error
    squares = sum(float(row['lift_cylinder.samples']) * float(row['lift_cylinder.rmse']) ** 2 for row in judged)
    assert squares / effort.count == pytest.approx(effort.rmse ** 2, rel=1e-6)
    assert len(list(csv.reader((folder / 'spectrum.csv').open()))) > 100


@pytest.mark.long
def test_outputs_replace_those_of_the_last_time_and_leave_others_alone(bags, tmp_path):
    (tmp_path / 'mine.txt').write_text('kept')
    (tmp_path / 'report.html').write_text('old')
    short(bags, 'payload', output=tmp_path)
    assert (tmp_path / 'mine.txt').read_text() == 'kept' and 'FAIL' in (tmp_path / 'report.html').read_text()
    shutil.rmtree(tmp_path)
