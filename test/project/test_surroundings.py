"""What conftest.py promises to every test."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import conftest
import hypothesis
import pytest
from support.paths import ROOT, TESTS

from psdyn_ros.tools.demo import processes


def test_two_runs_do_not_share_a_domain(monkeypatch):
    assert 1 <= conftest.DOMAIN <= 101 and processes.free_domain() != conftest.DOMAIN
    monkeypatch.delenv('ROS_DOMAIN_ID')
    monkeypatch.setattr(processes, '_claims', {})       # as in another process
    monkeypatch.setattr(processes, 'DOMAINS', range(conftest.DOMAIN, conftest.DOMAIN + 1))
    with pytest.raises(RuntimeError, match='no ROS domain'):
        processes.free_domain()


def test_ros_stays_on_this_machine_and_out_of_the_home_folder():
    assert os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert os.environ['ROS_DOMAIN_ID'] == str(conftest.DOMAIN)
    assert os.path.isdir(os.environ['ROS_LOG_DIR'])


def test_tests_that_keep_to_the_clock_are_where_they_are_looked_for():
    *_, (_, _, folders) = runpy.run_path(str(ROOT / 'scripts' / 'run_tests.py'))['PARTS']
    homes = [ROOT / folder for folder in folders]
    files = [path for path in TESTS.rglob('test_*.py') if (path.read_text().count('pytest.mark.dds')
             > path.read_text().count('pytest.mark.lockstep')) and path != Path(__file__)]
    assert len(files) > 5 and [path for path in files if not any(home in path.parents for home in homes)] == []


def test_failures_of_a_part_are_told_in_a_line_each(tmp_path):
    file, report = tmp_path / 'test_three.py', tmp_path / 'report.xml'
    file.write_text('import pytest\n@pytest.fixture\ndef broken():\n    raise OSError("no disk")\n'
                    'def test_a(): assert 1 == 2\ndef test_b(broken): pass\ndef test_c(): pass\n'
                    '@pytest.mark.skip\ndef test_d(): pass\n')
    subprocess.run([sys.executable, '-m', 'pytest', '-c', '/dev/null', f'--junit-xml={report}', file], check=False)
    failures = runpy.run_path(str(ROOT / 'scripts' / 'run_tests.py'))['failures']
    assert failures(tmp_path / 'nothing.xml') == []
    assert failures(report) == [
        'FAILURE test_three test_a assert 1 == 2', 'ERROR test_three test_b failed on setup with "OSError: no disk"']


def test_examples_follow_the_printed_seed(request):
    assert hypothesis.core.global_force_seed == int(request.config.getoption('hypothesis_seed'))


def test_random_numbers_are_those_of_the_seed(rng, request):
    again = conftest.seeded_generator(request.node.nodeid)
    assert (rng.random(5) == again.random(5)).all()


def test_files_that_take_longest_exist_and_come_first():
    assert set(conftest.SLOWEST) <= {path.stem for path in TESTS.rglob('test_*.py')}

    class Item:
        def __init__(self, stem):
            self.path = Path(f'{stem}.py')

    items = [Item(stem) for stem in ('test_a', conftest.SLOWEST[1], 'test_b', conftest.SLOWEST[0])]
    conftest.pytest_collection_modifyitems(items)
    assert [item.path.stem for item in items] == [*conftest.SLOWEST[:2], 'test_a', 'test_b']
