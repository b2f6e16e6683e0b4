"""What the command line says of itself: files beside names of machines, YAML files, completion in a shell."""

import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import thorough
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.cli import commands
from psdyn_ros.cli._options import UNPHYSICAL
from psdyn_ros.control.offline.time_optimal import check_plannable
from psdyn_ros.kernels.runtime import turn
from psdyn_ros.model.errors import ActuationError
from psdyn_ros.model.locate import machine_names

WITH_MACHINE = ('annotate', 'check', 'demo', 'load-chart', 'plan', 'simulate', 'validate', 'view')


def test_the_page_of_commands_has_all():
    page = (ROOT / 'docs/reference/commands.md').read_text()
    assert [name for name in commands() if f'`psdyn {name}' not in page] == []


@pytest.mark.parametrize('command', WITH_MACHINE)
def test_help_names_files_and_machines_of_the_package(psdyn, command):
    code, out, _ = psdyn(command, '--help')
    words = ' '.join(out.split())
    assert code == 0 and 'URDF file, or a machine of the package:' in words
    refused = {'check': set(), 'demo': set(), 'view': set()}.get(command, UNPHYSICAL)
    assert {name for name in machine_names() if f' {name}' not in words} == set(refused)


def test_machines_that_are_not_offered_are_refused():
    for name in machine_names():
        machine = psdyn_ros.load(name, allow_unphysical=True)
        try:
            check_plannable(machine)
        except ActuationError:
            assert name in UNPHYSICAL


def test_help_says_which_yaml_file_does_what(psdyn):
    code, out, _ = psdyn('--help')
    assert code == 0
    for option, word in (('--hydraulics', 'cylinders'), ('--safety', 'stops'), ('--sensors', 'noise'),
                         ('--config', 'ROS parameters')):
        line = next(line for line in out.splitlines() if line.strip().startswith(option))
        assert word in line
    _, demo, _ = psdyn('demo', '--help')
    assert all(option in demo for option in ('--hydraulics', '--safety', '--sensors', '--config'))


@pytest.mark.parametrize('option', ['hydraulics', 'safety', 'sensors'])
def test_demo_refuses_a_yaml_file_that_does_not_exist(psdyn, option, tmp_path):
    pytest.importorskip('rclpy')
    code, _, errors = psdyn('demo', f'--{option}', tmp_path / 'none.yaml', '--output', tmp_path)
    assert code == 2 and f"--{option} '{tmp_path / 'none.yaml'}': no such file" in errors


def completions(line):
    """Return what a shell would offer after a line."""
    environment = {**os.environ, '_ARGCOMPLETE': '1', '_ARGCOMPLETE_IFS': '\n', 'COMP_LINE': line,
                   'COMP_POINT': str(len(line)), '_ARGCOMPLETE_STDOUT_FILENAME': 'offered', 'COMP_TYPE': '9',
                   '_ARGCOMPLETE_SUPPRESS_SPACE': '1', 'PYTHONPATH': str(ROOT)}
    return environment


@pytest.mark.parametrize('line, offered', thorough([
    ('psdyn check five', 'five_bar'), ('psdyn sim', 'simulate'), ('psdyn demo --saf', '--safety'),
    ('psdyn check mine', 'mine.urdf')], 1, several=True))
def test_a_shell_completes_commands_machines_and_files(line, offered, tmp_path):
    (tmp_path / 'mine.urdf').write_text('<robot/>')
    program = 'import sys; sys.argv[0] = "psdyn"; from psdyn_ros.cli import main; main()'
    run = subprocess.run([sys.executable, '-c', program], cwd=tmp_path, env=completions(line), capture_output=True,
                         text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert offered in [word.strip() for word in (tmp_path / 'offered').read_text().split('\n')]


def test_version_is_that_of_the_package(psdyn):
    assert psdyn('--version')[1] == f'psdyn {psdyn_ros.__version__}\n'


def test_who_waits_for_another_compilation_says_so(tmp_path, capsys):
    with open(tmp_path / 'lock', 'w') as held, open(tmp_path / 'lock', 'w') as wanted:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=turn._wait_for, args=(wanted, 'the kernels'))
        waiting.start()
        text = ''
        for _ in range(500):
            text += capsys.readouterr().err
            if text:
                break
            time.sleep(0.01)
        assert waiting.is_alive() and 'another process compiles the kernels; waiting for it' in text
        fcntl.flock(held, fcntl.LOCK_UN)
        waiting.join(10.0)
        assert not waiting.is_alive()
    with open(tmp_path / 'lock', 'w') as free:
        turn._wait_for(free, 'the kernels')
    assert capsys.readouterr().err == ''


def test_ranges_of_a_simulation_show_rounding_as_zero():
    from psdyn_ros.validation.simulated_states import _range
    assert _range(-3.904e-34, 0.02) == '0 to 0.02' and _range(-0.5, 1e-17) == '-0.5 to 0'


def test_what_only_some_commands_need_is_not_imported_for_all():
    program = 'import sys, psdyn_ros.cli; psdyn_ros.cli.parser(); print(*sys.modules)'
    found = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True,
                           env={**os.environ, 'PYTHONPATH': str(ROOT)}).stdout.split()
    assert 'psdyn_ros.cli.validate' in found
    assert not {'matplotlib', 'rclpy', 'rosbags', 'scipy.signal', 'scipy.stats'} & set(found)
