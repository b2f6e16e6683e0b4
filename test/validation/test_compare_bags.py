"""`psdyn compare`: what changed from one recording to another, its page, and exit codes."""

import json
import re
from types import SimpleNamespace

import pytest
from conftest import thorough
from support.bags.recorded_motion import crane, oil, write_swinging

from psdyn_ros.cli import main
from psdyn_ros.validation.compare_bags import Comparison, compare_bags
from psdyn_ros.validation.metrics import INVALID, PASS, UNDECIDED, comparison
from psdyn_ros.validation.metrics.bootstrap import Interval
from psdyn_ros.validation.metrics.comparison import BETTER, SAME, WORSE

pytestmark = pytest.mark.slow

CASES = {'before': {}, 'again': {'seed': 2}, 'heavier': {'gain': 1.1, 'seed': 3},
         'frozen': {'frozen': ('lift_boom', 1.5, 4.0), 'seed': 5}, 'deaf': {'without': ('telescope',), 'seed': 2}}
CYLINDERS = {'lift_cylinder', 'tilt_cylinder', 'telescope'}


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp('compared')
    return {name: write_swinging(folder / f'{name}.mcap', **what) for name, what in CASES.items()}


def compared(bags, first, second, **options):
    return compare_bags(bags[first], bags[second], crane(), hydraulics=oil(), **options)


def changed(comparison, verdict):
    return {(change.actuator, change.figure) for change in comparison.changes if change.verdict == verdict}


@pytest.mark.parametrize('first, second', thorough(
    [('before', 'again'), ('again', 'before'), ('before', 'before')], 1, several=True))
def test_recordings_of_one_machine_are_the_same(bags, first, second):
    found = compared(bags, first, second)
    assert found.verdict == SAME and found.exit_code == 0 and found.text.startswith('SAME')
    assert {(change.actuator, change.figure) for change in found.changes} >= {
        (name, figure) for name in CYLINDERS for figure in ('rmse', 'bias', 'delay')} | {('machine', 'closure')}


def test_a_page_pictures_and_json_say_what_got_worse(bags, tmp_path):
    found = compared(bags, 'before', 'heavier', output=tmp_path)
    assert found.exit_code == 1 and changed(found, WORSE) >= {
        (name, figure) for name in ('lift_cylinder', 'tilt_cylinder') for figure in ('rmse', 'bias')}
    assert {path.name for path in tmp_path.iterdir()} == {
        'report.html', 'comparison.json', 'changes.png', 'errors.png', 'playback_first.html', 'playback_second.html'}
    page = re.sub(r'srcdoc="[^"]*"', '', (tmp_path / 'report.html').read_text())
    assert re.findall(r'(?:src|href)="(?!data:)(.*?)"', page) == ['playback_first.html', 'playback_second.html']
    assert found.text in page and page.count('data:image/png;base64') == 2 and 'lift_cylinder' in page
    said = json.loads((tmp_path / 'comparison.json').read_text())
    assert said['verdict'] == WORSE and said['exit_code'] == 1
    assert said['first']['verdict'] == 'PASS' and said['second']['verdict'] == 'FAIL'
    bias, = (one for one in said['changes'] if (one['actuator'], one['figure']) == ('lift_cylinder', 'bias'))
    force = found.first.metrics.sums[:, 0, 1].sum(axis=(0, 1))      # of the efforts of the lift cylinder
    assert bias['change']['estimate'] == pytest.approx(0.1 * force[4] / force[0], rel=0.02)
    assert bias['change']['low'] < bias['change']['estimate'] < bias['change']['high']
    assert compared(bags, 'heavier', 'before').verdict == BETTER


@pytest.mark.parametrize('values, one_fails, verdict', [
    ((400.0, 3400.0), True, WORSE), ((3400.0, 400.0), True, BETTER), ((400.0, 3400.0), False, SAME),
    ((400.0, 420.0), True, SAME)])
def test_a_figure_that_passes_in_one_recording_and_fails_in_the_other_counts(values, one_fails, verdict):
    change = values[1] - values[0]
    wide = Interval(change, change - 4000.0, change + 4000.0)
    assert comparison._judged('lift_cylinder', 'rmse', values, wide, one_fails, 50.0, 1e5).verdict == verdict


@pytest.mark.long
def test_a_delay_counts(tmp_path):
    # of 6 s as above the delay of each cylinder is known to 20 ms
    bags = {late: write_swinging(tmp_path / f'{late}.mcap', seconds=12.0, late=late, seed=late + 1) for late in (0, 1)}
    found = compared(bags, 0, 1)
    delays = {change.actuator: change for change in found.changes if change.figure == 'delay'}
    assert found.exit_code == 1 and changed(found, WORSE) >= {(name, 'delay') for name in CYLINDERS}
    for name in CYLINDERS:
        assert delays[name].change.estimate == pytest.approx(0.010, abs=0.002)
    assert delays['slew'].verdict == SAME


@pytest.mark.long
def test_a_frozen_sensor_counts(bags):
    frozen = compared(bags, 'before', 'frozen')
    assert ('lift_boom', 'frozen') in changed(frozen, WORSE) and frozen.exit_code == 1
    change, = (change for change in frozen.changes if change.figure == 'frozen')
    assert change.second == pytest.approx(2.5, abs=0.05) and 'frozen' in change.text
    assert ('lift_boom', 'frozen') in changed(compared(bags, 'frozen', 'before'), BETTER)


def test_an_effort_that_is_not_measured_any_longer_counts(bags):
    found = compared(bags, 'before', 'deaf')
    assert changed(found, WORSE) == {('telescope', 'known')} and found.exit_code == 1
    change, = (change for change in found.changes if change.figure == 'known')
    assert change.first > 0.95 and change.second == 0.0


def test_the_command_line_prints_and_returns_the_exit_code(bags, tmp_path, capsys):
    before, heavier = str(bags['before']), str(bags['heavier'])
    assert main(['compare', before, heavier, '--urdf', 'hiab_xs031']) == 1
    out = capsys.readouterr().out
    assert out.startswith('WORSE: lift_cylinder: rmse') and 'which are not judged' in out
    for arguments, text in (
            ([before, str(tmp_path / 'nowhere')], 'does not exist'),
            ([before, heavier, '--topic', 'states'], 'expected WHAT=TOPIC'),
            ([before, heavier, '--urdf', 'hiab_xs013'], "did you mean 'hiab_xs031'")):
        assert main(['compare', '--urdf', 'hiab_xs031', *arguments]) == 2
        assert text in capsys.readouterr().err


def test_of_recordings_that_cannot_tell_nothing_is_said():
    passed, cannot_tell = (SimpleNamespace(bag=verdict, verdict=SimpleNamespace(
        verdict=verdict, partial=(), reasons=('too short',))) for verdict in (PASS, UNDECIDED))
    assert Comparison(passed, passed, ()).exit_code == 0
    for both in ((passed, cannot_tell), (cannot_tell, passed), (cannot_tell, cannot_tell)):
        assert Comparison(*both, ()).exit_code == 3


@pytest.mark.long
def test_partial_and_unusable_recordings(bags, tmp_path):
    data = bags['again'].read_bytes()
    cut = tmp_path / 'cut.mcap'
    cut.write_bytes(data[:int(0.8 * len(data))])
    found = compare_bags(bags['before'], cut, crane(), hydraulics=oil())
    assert found.verdict == SAME and found.exit_code == 3 and 'not whole' in found.partial[0]
    found = compare_bags(bags['before'], bags['again'], crane(), hydraulics=oil(), config='machine: {seconds: 60}\n\n',
                         output=tmp_path / 'unusable')
    assert found.exit_code == 2 and found.verdict == INVALID and found.changes == ()
    assert 'at least 60 s' in (tmp_path / 'unusable' / 'report.html').read_text()
