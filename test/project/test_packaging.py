"""The package as colcon and pip install it, and its lists of dependencies against what the code imports."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from catkin_pkg.package import parse_package
from colcon_core.task.python.test import has_test_dependency
from colcon_python_setup_py.package_identification.python_setup_py import get_setup_information
from conftest import thorough
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.paths import ROOT

from psdyn_ros.nodes import EXECUTABLES as NODES

EXECUTABLES = {'psdyn': 'psdyn_ros.cli', **NODES}
# Module -> rosdep key, where they differ.
KEYS = {
    'argcomplete': 'python3-argcomplete',
    'defusedxml': 'python3-defusedxml',
    'jinja2': 'python3-jinja2',
    'matplotlib': 'python3-matplotlib',
    'numpy': 'python3-numpy',
    'rosbags': 'python3-rosbags-pip',
    'scipy': 'python3-scipy',
    'tqdm': 'python3-tqdm',
    'transforms3d': 'python3-transforms3d',
    'trimesh': 'python3-trimesh-pip',
    'yaml': 'python3-yaml',
}
# No key resolves to Numba on Ubuntu 24.04, none to mcap, which brings lz4 and zstandard (package.xml says so); xacro is
# used where it is installed, distributed and pandas where they are asked for.
NO_KEY = {'distributed', 'lz4', 'mcap', 'numba', 'pandas', 'xacro', 'zstandard'}
# Come with a full ROS 2 only; what imports them does so where they are needed, and does without or says so.
NOT_ON_PYPI = {'control_msgs', 'launch', 'launch_ros', 'simulation_interfaces', 'tf_transformations', 'xacro'}

# Wanted by an extra of setup.py; tests have it.
EXTRA = {'distributed', 'pandas', 'trimesh'}


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """A copy of the package, so that building leaves nothing in the source tree."""
    folder = tmp_path_factory.mktemp('workspace') / 'src' / 'psdyn_ros'
    folder.mkdir(parents=True)
    for name in ('LICENSE', 'NOTICE', 'SECURITY.md', 'package.xml', 'pyproject.toml', 'setup.cfg', 'setup.py'):
        shutil.copy2(ROOT / name, folder)
    for name in ('config', 'launch', 'psdyn_ros', 'resource', 'urdf'):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns('__pycache__'))
    return folder


@pytest.fixture(scope='module')
def workspace(source):
    """The folder in which a real `colcon build` has run."""
    workspace = source.parents[1]
    colcon(workspace, 'build', '--event-handlers', 'console_direct+')
    return workspace


@pytest.fixture(scope='module')
def sourced(workspace):
    """The environment of a shell in the workspace after `source install/local_setup.bash`."""
    script = '. install/local_setup.bash && env -0'
    answer = output(workspace, os.environ, 'bash', '-c', script)
    return dict(entry.split('=', 1) for entry in answer.split('\0') if entry)


def colcon(workspace, *arguments):
    # Not the command `colcon`: the one on the PATH may belong to another Python, which it would build for.
    command = [sys.executable, '-c', 'from colcon_core.command import main; raise SystemExit(main())']
    environ = {**os.environ, 'COLCON_HOME': str(workspace / 'colcon_home')}
    return output(workspace, environ, *command, '--log-base', 'log', *arguments)


def output(folder, environ, *command):
    result = subprocess.run(command, cwd=folder, env=environ, timeout=240, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def manifest():
    return parse_package(str(ROOT), warnings=[])


def pins(name):
    lines = (ROOT / 'requirements' / f'{name}.txt').read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith('#')]


def third_party_imports(folder):
    """The top-level names that the Python files of a folder import from outside of Python and psdyn_ros."""
    names = set()
    for path in sorted((ROOT / folder).rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split('.')[0])
    return names - set(sys.stdlib_module_names) - {'psdyn_ros'}


# --- a real colcon build


def test_colcon_knows_a_ros_package(source):
    assert re.search(r'^psdyn_ros\t\S+\t\(ros\.ament_python\)$', colcon(source.parents[1], 'list'), re.M)


def test_colcon_tests_with_pytest():
    assert has_test_dependency(get_setup_information(ROOT / 'setup.py'), 'pytest')


def test_colcon_installs_where_ros_looks(workspace):
    installed = workspace / 'install' / 'psdyn_ros'
    for name in EXECUTABLES:
        assert os.access(installed / 'lib' / 'psdyn_ros' / name, os.X_OK), name
    assert (installed / 'share' / 'ament_index' / 'resource_index' / 'packages' / 'psdyn_ros').is_file()
    share = installed / 'share' / 'psdyn_ros'
    assert (share / 'package.xml').read_bytes() == (ROOT / 'package.xml').read_bytes()
    for folder, pattern in (('urdf', '*.urdf'), ('urdf/ros2_control', '*.urdf'), ('launch', '*.launch.py'),
                            ('config', '*.yaml'), ('config/ros2_control', '*.yaml')):
        here = {path.name: path.read_bytes() for path in (ROOT / folder).glob(pattern)}
        there = {path.name: path.read_bytes() for path in (share / folder).glob(pattern)}
        assert here and there == here, folder


def test_colcon_installs_every_file_of_the_package(workspace):
    installed, = (workspace / 'install').glob('psdyn_ros/lib/python3.*/site-packages/psdyn_ros')
    built_from = workspace / 'src' / 'psdyn_ros' / 'psdyn_ros'
    here = {path.relative_to(built_from) for path in built_from.rglob('*') if path.is_file()}
    assert {path for path in here if not (installed / path).is_file()} == set()


def test_sourced_workspace_finds_its_own_files(workspace, sourced):
    """Installed code reads the installed machines, with the source tree out of sight."""
    script = 'from psdyn_ros.model import locate; print(locate.__file__, locate.find_machine("hiab_xs031"))'
    code, machine = map(Path, output(workspace, sourced, sys.executable, '-c', script).split())
    installed = (workspace / 'install' / 'psdyn_ros').resolve()
    assert installed in code.resolve().parents
    assert machine.resolve() == installed / 'share' / 'psdyn_ros' / 'urdf' / 'hiab_xs031.urdf'


def test_sourced_workspace_runs_psdyn(workspace, sourced):
    psdyn = workspace / 'install' / 'psdyn_ros' / 'lib' / 'psdyn_ros' / 'psdyn'
    assert output(workspace, sourced, psdyn, '--version').strip() == f'psdyn {manifest().version}'


# --- pip


@pytest.mark.long
def test_wheel_carries_the_shared_files(source, tmp_path):
    """What `pip install` without ROS puts under <prefix>/share/psdyn_ros."""
    output(tmp_path, os.environ, sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--no-build-isolation',
           '--use-pep517', source)
    wheel, = tmp_path.glob('psdyn_ros-*.whl')
    assert wheel.name.startswith(f'psdyn_ros-{manifest().version}-')
    names = set(ZipFile(wheel).namelist())
    for path in [*ROOT.glob('urdf/**/*.urdf'), *ROOT.glob('launch/*.launch.py'), *ROOT.glob('config/**/*.yaml')]:
        shared = f'psdyn_ros-{manifest().version}.data/data/share/psdyn_ros/{path.relative_to(ROOT)}'
        assert shared in names


@pytest.mark.parametrize('module', EXECUTABLES.values(), ids=EXECUTABLES)
def test_executable_has_its_function(module):
    assert callable(importlib.import_module(module).main)


def test_executables_are_those_of_setup_py():
    declared = re.findall(r"'(\w+) = ([\w.]+):main'", (ROOT / 'setup.py').read_text())
    assert dict(declared) == EXECUTABLES


# --- package.xml and requirements/ against the code


def test_manifest_is_valid():
    package = manifest()  # raises for an e-mail that is not valid
    assert package.package_format == 3
    assert package.get_build_type() == 'ament_python'
    assert package.licenses == ['Apache-2.0']
    assert re.fullmatch(r'[\w.+-]+@[\w-]+(\.[\w-]+)+', package.maintainers[0].email)


def test_manifest_has_no_key_that_ubuntu_24_04_cannot_install():
    assert 'python3-numba' not in {depend.name for depend in manifest().exec_depends}


@pytest.mark.long
def test_every_import_is_declared():
    imported = third_party_imports('psdyn_ros') | third_party_imports('launch')
    declared = {depend.name for depend in manifest().exec_depends}
    assert {KEYS.get(name, name) for name in imported - NO_KEY} - declared == set()


@pytest.mark.parametrize('pinned', thorough(['run', 'oldest'], 1))
def test_every_import_is_pinned(pinned):
    names = {canonicalize_name(pin.name) for pin in pins(pinned)}
    ros = {canonicalize_name(pin.name) for pin in pins('ros-jazzy')}
    assert EXTRA <= {canonicalize_name(pin.name) for pin in pins('dev')}
    for module in third_party_imports('psdyn_ros') - NOT_ON_PYPI - EXTRA:
        name = {'yaml': 'pyyaml'}.get(module, canonicalize_name(module))
        assert name in names or f'ros-{name}' in ros, module


def test_setup_py_asks_for_what_is_pinned():
    metadata = importlib.import_module('importlib.metadata').requires('psdyn_ros')
    required = {canonicalize_name(one.name) for one in map(Requirement, metadata) if 'extra' not in str(one.marker)}
    assert required <= {canonicalize_name(pin.name) for pin in pins('run')}
    assert required >= {'numpy', 'numba', 'rosbags'}


@pytest.mark.parametrize('python', ['3.10', '3.11', '3.12', '3.13', '3.14'])
@pytest.mark.parametrize('stage', [('run', 'dev'), ('oldest', 'dev')], ids=['dev', 'oldest'])
def test_exactly_one_version_is_pinned(stage, python):
    """On every supported Python; and no list contradicts another."""
    versions = {}
    for name in (*stage, 'constraints', 'pinocchio', 'ros-jazzy'):
        for pin in pins(name):
            assert re.fullmatch(r'==[\w.]+', str(pin.specifier)), pin
            if pin.marker is None or pin.marker.evaluate({'python_version': python}):
                assert versions.setdefault(canonicalize_name(pin.name), pin.specifier) == pin.specifier, pin
    for name in {canonicalize_name(pin.name) for pin in pins(stage[0])}:
        assert name in versions
