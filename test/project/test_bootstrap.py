"""The decisions of scripts/bootstrap.py: which Python, which packages, and when there is nothing to do."""

import importlib.util
import subprocess
import sys

import numpy
import pytest
from support.paths import ROOT


@pytest.fixture
def bootstrap():
    spec = importlib.util.spec_from_file_location('bootstrap', ROOT / 'scripts' / 'bootstrap.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def jazzy(bootstrap):
    """What Ubuntu 24.04 with ROS 2 jazzy has, the part that matters."""
    installed = {'numpy': '1.26.4', 'scipy': '1.11.4', 'matplotlib': '3.6.3', 'pyyaml': '6.0.1',
                 'empy': '3.3.4', 'lark-parser': '0.12.0', 'setuptools': '68.1.2', 'typing-extensions': '4.10.0'}
    return bootstrap.Probe('works', installed)


def names(bootstrap, lines):
    return {bootstrap.name_of(line) for line in lines}


def lists(folder):
    return {path.name: path.read_text().split('\n')[:-1] for path in folder.iterdir()}


# --- which Python


JAZZY = {'ROS_DISTRO': 'jazzy'}


def test_without_ros_the_first_python_is_taken_and_nothing_is_asked(bootstrap):
    def probe(python):
        raise AssertionError(python)
    assert bootstrap.choose_python({}, ['mine', 'system'], probe) == ('mine', None)


def test_sourced_ros_is_used(bootstrap, jazzy):
    assert bootstrap.choose_python(JAZZY, ['mine', 'system'], lambda python: jazzy) == ('mine', jazzy)


def test_sourced_ros_belongs_to_the_system_python(bootstrap, jazzy):
    answers = {'pyenv': bootstrap.Probe('No module named rclpy._rclpy_pybind11', {}), 'system': jazzy}
    assert bootstrap.choose_python(JAZZY, ['pyenv', 'system'], answers.get) == ('system', jazzy)


def test_sourced_ros_that_no_python_can_use_is_an_error(bootstrap):
    answers = {'pyenv': bootstrap.Probe('wrong ELF class', {}), 'system': bootstrap.Probe('absent', {})}
    with pytest.raises(SystemExit, match=r'(?s)jazzy.*pyenv.*wrong ELF class.*PYTHON='):
        bootstrap.choose_python(JAZZY, ['pyenv', 'system'], answers.get)


def test_named_but_absent_ros_falls_back_to_wheels(bootstrap, capsys):
    absent = bootstrap.Probe('absent', {})
    assert bootstrap.choose_python(JAZZY, ['mine'], lambda python: absent) == ('mine', None)
    assert 'no rclpy' in capsys.readouterr().out


def test_probe_of_a_python_that_does_not_exist(bootstrap):
    assert bootstrap.probe('/nowhere/python3') == ('absent', {})


def test_probe_of_this_python(bootstrap):
    found = bootstrap.probe(sys.executable)
    assert found.rclpy == 'works'
    assert found.installed['numpy'] == numpy.__version__


# --- which packages


@pytest.mark.parametrize('stage, pinocchio', [('run', False), ('dev', True), ('oldest', True)])
def test_on_a_plain_machine_everything_comes_from_pypi(bootstrap, tmp_path, stage, pinocchio):
    bootstrap.pip_steps(stage, None, tmp_path)
    written = lists(tmp_path)
    alone, wanted = names(bootstrap, written['alone']), names(bootstrap, written['wanted'])
    assert 'ros-jazzy-rclpy' in alone
    assert ('pin' in alone) == pinocchio
    assert ('pytest' in wanted) == pinocchio
    assert {'numpy', 'scipy', 'numba', 'rosbags'} <= wanted
    assert ('numpy==1.26.4; python_version < "3.13"' in written['wanted']) == (stage == 'oldest')


def test_a_sourced_ros_is_completed_and_never_replaced(bootstrap, jazzy, tmp_path):
    bootstrap.pip_steps('dev', jazzy, tmp_path)
    written = lists(tmp_path)
    wanted = names(bootstrap, written['wanted'])
    assert not wanted & (set(jazzy.installed) - {'setuptools'})
    assert {'numba', 'rosbags', 'tqdm', 'setuptools', 'hypothesis'} <= wanted
    assert not any(name.startswith('ros-') for name in names(bootstrap, written['alone']))
    assert written['constraints'][:2] == ['numpy==1.26.4', 'scipy==1.11.4']
    assert 'typing-extensions' not in names(bootstrap, written['constraints'])
    assert 'numba==0.68.1' in written['wanted']


def test_a_numpy_that_the_pinned_numba_does_not_take(bootstrap, jazzy, tmp_path):
    bootstrap.pip_steps('run', jazzy._replace(installed={'numpy': '2.6.0'}), tmp_path)
    wanted = lists(tmp_path)['wanted']
    assert 'numba' in wanted
    assert 'llvmlite' not in names(bootstrap, wanted)


def test_oldest_set_next_to_a_sourced_ros(bootstrap, jazzy, tmp_path):
    """Its rclpy comes from the PYTHONPATH, everything else from the list."""
    bootstrap.pip_steps('oldest', jazzy, tmp_path)
    written = lists(tmp_path)
    assert not any(name.startswith('ros-') for name in names(bootstrap, written['alone']))
    assert 'numpy' in names(bootstrap, written['wanted'])


# --- when there is nothing to do


@pytest.fixture
def project(bootstrap, tmp_path, monkeypatch):
    """A project in a temporary folder whose commands are recorded, not run."""
    (tmp_path / 'requirements').mkdir()
    for path in (ROOT / 'requirements').glob('*.txt'):
        (tmp_path / 'requirements' / path.name).write_bytes(path.read_bytes())
    for name in ('setup.py', 'package.xml'):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(bootstrap, 'ROOT', tmp_path)
    monkeypatch.setattr(bootstrap, 'REQUIREMENTS', tmp_path / 'requirements')
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    bootstrap.commands = []

    def run(*command):
        bootstrap.commands.append([str(part) for part in command])
        (tmp_path / '.venv').mkdir(exist_ok=True)
    monkeypatch.setattr(bootstrap, 'run', run)
    return bootstrap


def commands_of(project, stage):
    project.commands.clear()
    project.update(project.ROOT / '.venv', stage)
    return project.commands


def test_the_second_run_does_nothing(project):
    assert len(commands_of(project, 'run')) == 5  # venv and four times pip
    assert commands_of(project, 'run') == []


def test_the_tests_bring_what_the_demo_needs(project):
    assert commands_of(project, 'dev')
    assert commands_of(project, 'run') == []


def test_the_tests_after_the_demo_keep_the_environment(project):
    commands_of(project, 'run')
    assert not any('venv' in command for command in commands_of(project, 'dev'))


def test_a_changed_pin_is_installed_into_the_environment(project):
    commands_of(project, 'run')
    with open(project.REQUIREMENTS / 'run.txt', 'a') as pins:
        pins.write('six==1.17.0\n')
    commands = commands_of(project, 'run')
    assert commands and not any('venv' in command for command in commands)


def test_another_base_means_a_new_environment(project, monkeypatch):
    commands_of(project, 'run')
    monkeypatch.setattr(project.sys, 'version', 'another Python')
    assert '--clear' in commands_of(project, 'run')[0]


def test_an_interrupted_installation_starts_afresh(project, monkeypatch):
    commands_of(project, 'run')
    recorded = project.run

    def interrupted(*command):
        raise subprocess.CalledProcessError(1, command)
    monkeypatch.setattr(project, 'run', interrupted)
    with pytest.raises(subprocess.CalledProcessError):
        commands_of(project, 'dev')
    monkeypatch.setattr(project, 'run', recorded)
    assert '--clear' in commands_of(project, 'run')[0]
