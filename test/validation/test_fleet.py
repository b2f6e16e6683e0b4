"""Many bags: which are found, what is said of all of them, processes that die, and a cluster."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.bags.recorded_motion import write_swinging

import psdyn_ros
from psdyn_ros.cli import main
from psdyn_ros.validation.bags.folders import find_bags, is_collection, report_names
from psdyn_ros.validation.fleet import batch, dask_workers, process_pool
from psdyn_ros.validation.fleet.batch import Fleet, validate_many
from psdyn_ros.validation.fleet.process_pool import ClusterLost, Outcome
from psdyn_ros.validation.fleet.summary_page import summary
from psdyn_ros.validation.metrics import EXIT_CODES, FAIL, INVALID, PASS, UNDECIDED

# a scheduler, and one worker in a process of its own, until standard input ends
CLUSTER = '''
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=1, host='127.0.0.1', dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
'''
PARENT = '''
import sys
from psdyn_ros.validation.fleet.process_pool import Processes, _Process
print(_Process().pid, flush=True)
sys.stdin.read()
'''
MACHINE = 'hiab_xs031'


def empty_bag(path, name='a.mcap'):
    path.mkdir(parents=True)
    (path / name).write_bytes(b'')
    return path


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    """A folder of bags of two days, one with a payload, one of rubbish, and a link out of it."""
    root = tmp_path_factory.mktemp('fleet')
    for day in ('monday', 'tuesday'):
        (root / day).mkdir()
    write_swinging(root / 'monday' / 'lift.mcap', seconds=4.5)
    write_swinging(root / 'tuesday' / 'lift.mcap', seconds=4.5, gain=1.2)
    odd = root / 'tuesday' / 'Kran ü #1 & 50% $x$'
    odd.mkdir()
    os.link(root / 'monday' / 'lift.mcap', odd / 'part_0.mcap')
    (root / 'rubbish.mcap').write_bytes(os.urandom(1000))
    (root / 'monday' / 'elsewhere').symlink_to(tmp_path_factory.mktemp('elsewhere'))
    (root / 'notes.txt').write_text('none of them')
    return root


@pytest.fixture(scope='module')
def local(bags, tmp_path_factory):
    """(`Fleet`, folder of its outputs) of two processes here, one of which is killed over a bag."""
    doomed = bags / 'doomed.mcap'
    os.link(bags / 'monday' / 'lift.mcap', doomed)
    folder = tmp_path_factory.mktemp('local')
    with pytest.MonkeyPatch.context() as patch:
        ask = process_pool._Process.ask

        def killed(process, bag, setup):
            if bag == str(doomed):
                os.kill(process.pid, signal.SIGKILL)
            return ask(process, bag, setup)
        patch.setattr(process_pool._Process, 'ask', killed)
        found = validate_many([bags, bags / 'monday'], MACHINE, output=folder, workers=2)
    doomed.unlink()
    return found, folder


@pytest.fixture(scope='module')
def cluster():
    """(address, process) of a cluster."""
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    process = subprocess.Popen([sys.executable, '-c', CLUSTER], **pipes)
    yield process.stdout.readline().strip(), process
    process.communicate('', timeout=60)


# which bags


def test_bags_are_found_in_folders_each_once(tmp_path):
    one, two = empty_bag(tmp_path / 'a' / 'one'), empty_bag(tmp_path / 'a' / 'b' / 'two', 'run_0.db3')
    (two / 'run_1.db3').write_bytes(b'')
    three = empty_bag(tmp_path / 'c', 'lift.mcap')          # a folder of two recordings, none of their parts
    (three / 'slew.mcap').write_bytes(b'')
    four = tmp_path / 'd'
    four.mkdir()
    (four / 'metadata.yaml').write_text('no YAML: [')
    outside = empty_bag(tmp_path.parent / f'{tmp_path.name}_outside')
    (tmp_path / 'a' / 'link').symlink_to(outside)
    (tmp_path / 'a' / 'loop').symlink_to(tmp_path)
    found = [one, two, three / 'lift.mcap', three / 'slew.mcap', four]
    assert sorted(map(Path, find_bags([tmp_path]))) == sorted(found)
    assert sorted(map(Path, find_bags([tmp_path, one, tmp_path / 'a' / '..' / 'd' / 'metadata.yaml']))) == sorted(found)
    assert find_bags([tmp_path / 'a' / 'link']) == (str(tmp_path / 'a' / 'link'),)      # asked for by name
    assert [is_collection(path) for path in (tmp_path, one, two, three, four, tmp_path / 'nowhere')] == [
        True, False, False, True, False, False]
    assert find_bags([tmp_path / 'nowhere']) == (str(tmp_path / 'nowhere'),)
    empty_bag(tmp_path / 'f' / 'g')
    (tmp_path / 'f' / 'h.mcap').write_bytes(b'')       # beside a folder with another bag
    assert set(find_bags([tmp_path / 'f'])) == {str(tmp_path / 'f' / 'g'), str(tmp_path / 'f' / 'h.mcap')}
    deep = tmp_path / 'e' / Path(*'12345678')
    empty_bag(deep)
    with pytest.raises(psdyn_ros.ModelError, match="/e' has no bags.*6 folders below"):
        find_bags([tmp_path / 'e'])


@pytest.mark.parametrize('bags, names', [
    (['/x/monday/lift', '/x/tuesday/lift', '/x/slew'], ['monday_lift', 'tuesday_lift', 'slew']),
    (['/a/x', '/b/a/x', '/b/a_x'], ['a_x', 'b_a_x', 'b_a_x_2']),
    (['/a/Lift', '/b/lift'], ['a_Lift', 'b_lift']), (['/index.html', '/'], ['index.html_2', 'bag'])])
def test_reports_have_names_of_their_own(bags, names):
    assert list(report_names(bags, ('index.html',)).values()) == names


# what is said of all


@pytest.mark.parametrize('codes, error, code', [
    ([0, 0], '', 0), ([0, 3], '', 3), ([3, 2, 0], '', 2), ([0, 3, 2, 1], '', 1), ([0], 'lost', 2), ([1], 'lost', 2)])
def test_the_worst_bag_counts(codes, error, code):
    verdicts = {0: PASS, 1: FAIL, 2: INVALID, 3: PASS}
    outcomes = tuple(Outcome(str(k), verdicts[one], one, '') for k, one in enumerate(codes))
    found = Fleet(MACHINE, 'defaults', outcomes, {}, error)
    assert found.exit_code == code and found.text.startswith(verdicts[code])
    assert f'of {len(codes)} bags' in summary(found)


@pytest.mark.parametrize('verdicts, said', [
    ((UNDECIDED, UNDECIDED), f'{UNDECIDED}: of 2 bags 2 undecided'),
    ((PASS, UNDECIDED), f'{PASS}: of 2 bags 1 undecided, 1 pass')])
def test_fleet_of_undecided_bags_alone_is_undecided(verdicts, said):
    outcomes = tuple(Outcome(str(k), one, EXIT_CODES[one], '') for k, one in enumerate(verdicts))
    found = Fleet(MACHINE, 'defaults', outcomes, {})
    assert found.text == said and found.exit_code == EXIT_CODES[UNDECIDED]


@pytest.mark.long
@pytest.mark.slow
def test_every_bag_has_its_own_report_and_one_that_kills_its_process_ends_no_other(local):
    found, folder = local
    assert found.exit_code == 1 and found.error == ''
    assert [one.exit_code for one in found.outcomes] == [1, 2, 2, 0, 0]
    worst, doomed, rubbish, *healthy = found.outcomes
    assert worst.bag.endswith('tuesday/lift.mcap') and 'lift_cylinder: nrmse' in worst.text
    assert doomed.bag.endswith('doomed.mcap') and 'SIGKILL' in doomed.text and doomed.verdict == INVALID
    assert rubbish.bag.endswith('rubbish.mcap') and 'MCAP' in rubbish.text
    assert {Path(one.bag).name for one in healthy} == {'monday', 'Kran ü #1 & 50% $x$'}
    reports = {path.parent.name for path in folder.glob('*/report.html')}
    assert reports == {'monday', 'lift.mcap', 'Kran ü #1 & 50% $x$'}
    assert all((folder / name / 'validation.json').is_file() for name in reports)
    assert not list(folder.glob('*/predicted'))


@pytest.mark.slow
def test_the_page_leads_to_the_reports_and_json_and_csv_say_the_same(local):
    found, folder = local
    page = (folder / 'index.html').read_text()
    links = re.findall(r'href="([^"]+)"', page)
    assert len(links) == 3 and all((folder / unquote(link)).is_file() for link in links)
    assert found.text in page and 'data:image/png;base64' in page and 'http' not in page
    assert page.index('tuesday/lift') < page.index('doomed') < page.index('monday')
    assert (folder / 'overview.png').read_bytes().startswith(b'\x89PNG')
    said = json.loads((folder / 'summary.json').read_text())
    assert [one['exit_code'] for one in said['bags']] == [1, 2, 2, 0, 0] and said['exit_code'] == 1
    worst = said['bags'][0]
    report = json.loads((folder / worst['report'] / 'validation.json').read_text())
    nrmse, = (check['value'] for check in report['checks'] if (check['about'], check['figure']) == ('lift_cylinder',
                                                                                                     'nrmse'))
    assert worst['actuators']['lift_cylinder']['nrmse'] == nrmse
    assert worst['worst']['about'] in report['actuators'] and not worst['worst']['passed']
    rows = list(csv.DictReader((folder / 'summary.csv').open(encoding='utf-8')))
    assert [row['verdict'] for row in rows] == [one['verdict'] for one in said['bags']]
    assert float(rows[0]['lift_cylinder.nrmse']) == worst['actuators']['lift_cylinder']['nrmse']
    assert rows[1]['report'] == rows[1]['lift_cylinder.nrmse'] == ''


# processes


def gone(pid):
    """Whether a process ends within a minute."""
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            if Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] == 'Z':
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def interruptible():
    """What a shell starts in the background ignores Control-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
def test_control_c_ends_all_processes(bags, monkeypatch, interruptible):
    pids, ask = [], process_pool._Process.ask

    def interrupted(process, bag, setup):
        pids.append(process.pid)
        os.kill(os.getpid(), signal.SIGINT)
        return ask(process, bag, setup)
    monkeypatch.setattr(process_pool._Process, 'ask', interrupted)
    with pytest.raises(KeyboardInterrupt):
        validate_many([bags], MACHINE, workers=2)
    assert pids and all(gone(pid) for pid in pids)


@pytest.mark.long
def test_processes_end_with_whoever_started_them():
    parent = subprocess.Popen([sys.executable, '-c', PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert Path(f'/proc/{child}').exists()
    parent.kill()
    parent.communicate()
    assert gone(child)


# a cluster


@pytest.mark.long
@pytest.mark.slow
def test_a_cluster_says_the_same(bags, local, cluster, tmp_path):
    some = [bags / 'tuesday' / 'lift.mcap', bags / 'rubbish.mcap', bags / 'nowhere']
    found = validate_many(some, MACHINE, output=tmp_path, scheduler=cluster[0])
    assert found.exit_code == 1 and found.error == ''
    here, there = ({one['bag']: one for one in json.loads((folder / 'summary.json').read_text())['bags']}
                   for folder in (local[1], tmp_path))
    for bag in map(str, some[:2]):
        assert there[bag] == here[bag]
        if there[bag]['report']:
            first, second = ({path.name: path.read_bytes() for path in (folder / there[bag]['report']).iterdir()}
                             for folder in (local[1], tmp_path))
            assert first == second and 'validation.json' in first
    assert re.search("does not exist on '.*', a worker", there[str(some[2])]['text'])


@pytest.mark.long
@pytest.mark.slow
def test_what_is_done_is_kept_where_the_scheduler_is_lost(bags, cluster, tmp_path, monkeypatch, capsys):
    kept = batch._kept

    def last(outcome, output, reports):
        cluster[1].kill()
        return kept(outcome, output, reports)
    monkeypatch.setattr(batch, '_kept', last)
    arguments = [str(bags / 'monday'), str(bags / 'tuesday'), '--urdf', MACHINE, '--output', str(tmp_path)]
    assert main(['validate', *arguments, '--scheduler', cluster[0]]) == 2
    assert 'was lost' in capsys.readouterr().err
    assert len(list(tmp_path.glob('*/report.html'))) == 1
    said = json.loads((tmp_path / 'summary.json').read_text())
    assert 'was lost' in said['error'] and len(said['bags']) == 3
    assert sum('not validated' in one['text'] for one in said['bags']) == 2


@pytest.mark.parametrize('address', ['tcp://127.0.0.1:1', 'nonsense', 'http://127.0.0.1', ''])
def test_where_no_scheduler_answers_is_an_error(bags, address, monkeypatch, capsys):
    monkeypatch.setattr(dask_workers, 'CONNECT', 0.2)
    assert main(['validate', str(bags), '--urdf', MACHINE, '--scheduler', address]) == 2
    assert f"no Dask scheduler answers at '{address}'" in capsys.readouterr().err


def test_without_dask_it_says_how_to_install_it(bags, monkeypatch):
    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(psdyn_ros.ModelError, match='pip install dask distributed'):
        validate_many([bags], MACHINE, scheduler='tcp://127.0.0.1:1')


def test_a_cluster_without_workers_is_given_up(bags, monkeypatch):
    from distributed import LocalCluster
    monkeypatch.setattr(dask_workers, 'PATIENCE', 0.0)
    monkeypatch.setattr(dask_workers, 'POLL', 0.1)
    with LocalCluster(n_workers=0, processes=False, protocol='tcp', host='127.0.0.1', dashboard_address=None) as empty:
        with pytest.raises(ClusterLost, match='has had no worker'):
            validate_many([bags], MACHINE, scheduler=empty.scheduler_address)


def test_what_cannot_be_done_is_said_at_once(bags, tmp_path, capsys):
    (tmp_path / 'empty').mkdir()
    both = [str(bags), str(bags / 'monday')]
    for arguments, text in (
            ([str(tmp_path / 'empty')], 'has no bags'), ([*both, '--workers', '0'], '0 workers'),
            ([*both, '--config', str(tmp_path / 'nowhere.yaml')], 'nowhere.yaml'),
            ([*both, '--urdf', 'hiab_xs013'], "did you mean 'hiab_xs031'")):
        assert main(['validate', '--urdf', MACHINE, *arguments]) == 2
        assert text in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(['validate', *both, '--urdf', MACHINE, '--workers', '2', '--scheduler', 'tcp://127.0.0.1:1'])
    with pytest.raises(psdyn_ros.ModelError, match='no bags'):
        validate_many([], MACHINE)
