"""Data flows one way: urdf -> model -> kernels -> assembly -> api -> simulation, control, validation -> nodes, cli."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / 'psdyn_ros'

# folder: (folders of the package that it may import, third-party packages or None for any but ROS)
LAYERS = {
    'kernels': (set(), {'numba', 'numpy'}),
    'model': ({'kernels.algebra.spatial', 'kernels.rigid_body.records', 'kernels.loops.records'},
              {'numpy', 'yaml', 'defusedxml', 'xacro'}),
    'assembly': ({'kernels', 'model'}, {'numpy'}),
    'api': ({'assembly', 'model', 'kernels'}, {'numpy', 'tf_transformations', 'transforms3d'}),
    'simulation': ({'api', 'assembly', 'kernels', 'model'}, None),
    'control': ({'api', 'assembly', 'kernels', 'model'}, None),
    'validation': ({'api', 'assembly', 'kernels', 'simulation', 'model'}, None),
    'formulations': ({'model'}, {'numpy'}),
    'campaign': ({'api', 'kernels', 'model', 'simulation', 'control', 'validation'}, None),
    'tools': ({'api', 'kernels', 'model', 'formulations', 'simulation', 'control', 'validation'}, None),
}
# room of kernels/: rooms that it may import
ROOMS = {
    'runtime': set(),
    'algebra': {'runtime'},
    'loops': {'algebra', 'runtime'},
    'rigid_body': {'loops', 'algebra', 'runtime'},
    'derivatives': {'rigid_body', 'loops', 'algebra', 'runtime'},
    'hydraulics': {'rigid_body', 'loops', 'algebra', 'runtime'},
    'control': {'hydraulics', 'rigid_body', 'loops', 'algebra', 'runtime'},
}
KINDS = {'REVOLUTE', 'PRISMATIC', 'LOOP', 'FREE'}
KNOW_KINDS = ('kernels/rigid_body/joints.py', 'kernels/rigid_body/records.py', 'kernels/derivatives/joints.py',
              'model/mechanism/')
# files whose `kind` is that of a constraint or of a dyad, not of a module
OTHER_KINDS = ('kernels/loops/', 'kernels/derivatives/clusters.py', 'assembly/dyads.py', 'assembly/elimination.py',
               'assembly/parallelograms.py')
KERNELS = {'kernel', 'inner', 'entry', 'batch_entry'}
EVERYTHING = {'nodes', 'cli', '__init__'}
ROS = re.compile(r'(rclpy|rcl_interfaces|builtin_interfaces|launch\w*|ament_\w+|tf2_\w+|rosidl\w*|ros2\w+|rpyutils|'
                 r'\w+_msgs|\w+_srvs)$')

SOURCES = sorted(PACKAGE.rglob('*.py'))
TEXTS = [path for folder in ('psdyn_ros', 'test', 'bench', 'scripts', 'launch') for path in
         sorted((ROOT / folder).rglob('*.py')) if '.build' not in path.parts]


def layer_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix('.py')


def imports(tree, package):
    """Yield (line, absolute name) of every import of a module, also of those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            prefix = '.'.join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f'{prefix}.{alias.name}') for alias in node.names)


def broken_arrows(layer, tree, package):
    """Return what a file of `layer` imports and may not."""
    if layer in EVERYTHING:
        allowed, third_party = None, None
    else:
        allowed, third_party = LAYERS[layer]
    wrong = []
    for line, name in imports(tree, package):
        parts = name.split('.')
        if parts[0] == 'psdyn_ros':
            if layer not in EVERYTHING and parts[1:2] != [layer] \
                    and not any('.'.join(parts[1:end]) in allowed for end in (2, 3, 4)):
                wrong.append(f'line {line}: {layer} imports {name}')
        elif ROS.match(parts[0]):
            if layer != 'nodes':
                wrong.append(f'line {line}: {name} belongs to nodes/')
        elif third_party is not None and parts[0] not in third_party and parts[0] not in sys.stdlib_module_names:
            wrong.append(f'line {line}: {layer} imports {name}')
    return wrong


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_arrow_points_backwards(path):
    package = ['psdyn_ros', *path.relative_to(PACKAGE).parts[:-1]]
    assert layer_of(path) in LAYERS.keys() | EVERYTHING, 'a folder that the table of layers does not know'
    assert broken_arrows(layer_of(path), ast.parse(path.read_text()), package) == []


@pytest.mark.parametrize('layer, text', [
    ('kernels', 'from ..model.errors import LoopError'), ('kernels', 'import scipy'), ('kernels', 'import rclpy'),
    ('model', 'from ..api import load'), ('model', 'from ..kernels.rigid_body.forward import forward'),
    ('model', 'def f():\n    from ..api.load import load'), ('api', 'from ..control.reference import Reference'),
    ('api', 'from .. import nodes'), ('control', 'from ..simulation.plant import Plant'), ('control', 'import rclpy'),
    ('simulation', 'from sensor_msgs.msg import JointState'), ('validation', 'from ..control import reference'),
    ('validation', 'import psdyn_ros.tools.demo.demo'), ('formulations', 'from ..kernels.algebra import spatial'),
    ('cli', 'import rclpy'), ('__init__', 'from std_srvs.srv import Trigger'), ('api', 'import launch'),
])
def test_the_test_finds_arrows_that_point_backwards(layer, text):
    package = ['psdyn_ros'] + [layer] * (layer not in EVERYTHING)
    assert len(broken_arrows(layer, ast.parse(text), package)) == 1


@pytest.mark.parametrize('layer, text', [
    ('model', 'from ..kernels.rigid_body.records import MODULE'), ('model', 'from .errors import LoopError'),
    ('api', 'import os'),
    ('nodes', 'import rclpy'), ('nodes', 'from ..control.reference import Reference'), ('nodes', 'from .. import load'),
    ('cli', 'from .nodes.demo import run'), ('validation', 'import matplotlib'), ('control', 'import scipy.linalg'),
])
def test_the_test_allows_what_the_design_allows(layer, text):
    package = ['psdyn_ros'] + [layer] * (layer not in EVERYTHING)
    assert broken_arrows(layer, ast.parse(text), package) == []


def files_imported(path):
    """Return the files of the package that a file imports when it is imported itself."""
    package = ['psdyn_ros', *path.relative_to(PACKAGE).parts[:-1]]
    found, later = set(), set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            later.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in later:
            for _, name in imports(ast.Module([node], []), package):
                parts = name.split('.')[1:]
                for end in (len(parts), len(parts) - 1):
                    file = PACKAGE.joinpath(*parts[:end]).with_suffix('.py')
                    if end > 0 and file.is_file():
                        found.add(file)
                        break
    return found


def test_no_circle_among_files():
    targets = {path: files_imported(path) for path in SOURCES}
    while free := [path for path, files in targets.items() if not files & targets.keys()]:
        for path in free:
            del targets[path]
    assert {str(path.relative_to(PACKAGE)): sorted(str(file.relative_to(PACKAGE)) for file in files & targets.keys())
            for path, files in targets.items()} == {}


KERNEL_FILES = [path for path in SOURCES if layer_of(path) == 'kernels']


def wrong_rooms(room, tree, package):
    """Return what a file in a room of kernels/ imports and may not."""
    rooms = [(line, name.split('.')[2]) for line, name in imports(tree, package)
             if name.startswith('psdyn_ros.kernels.')]
    return [f'line {line}: {room} imports {other}' for line, other in rooms if other not in {room} | ROOMS[room]]


@pytest.mark.parametrize('path', [path for path in KERNEL_FILES if path.parent.name != 'kernels'],
                         ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_of_kernels_import_only_those_below(path):
    room = path.parent.name
    assert wrong_rooms(room, ast.parse(path.read_text()), ['psdyn_ros', 'kernels', room]) == []


@pytest.mark.parametrize('room, text', [
    ('runtime', 'from ..algebra.linear import cholesky'), ('algebra', 'from ..loops.records import ROW'),
    ('loops', 'from ..rigid_body.records import MODULE'), ('rigid_body', 'from ..derivatives.body import BODY'),
    ('derivatives', 'from ..hydraulics.records import FLUID'), ('hydraulics', 'from ..control import allocation'),
])
def test_the_test_finds_rooms_that_are_above(room, text):
    assert len(wrong_rooms(room, ast.parse(text), ['psdyn_ros', 'kernels', room])) == 1


def test_every_room_of_kernels_is_listed():
    assert {path.parent.name for path in KERNEL_FILES if path.parent.name != 'kernels'} == ROOMS.keys()


def argument_count(function):
    a = function.args
    return len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)


def is_kernel(function):
    return any(isinstance(each, ast.Name) and each.id in KERNELS for each in function.decorator_list)


@pytest.mark.parametrize('path', KERNEL_FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_kernels_have_at_most_eight_arguments(path):
    functions = [node for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.FunctionDef) and is_kernel(node)]
    assert {each.name: argument_count(each) for each in functions if argument_count(each) > 8} == {}


def test_all_kernels_are_found():
    functions = [node for path in KERNEL_FILES for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.FunctionDef)]
    assert sum(map(is_kernel, functions)) > 300
    assert argument_count(ast.parse('def f(a, /, b, *c, d, **e): pass').body[0]) == 5


def knows_kinds(text, name):
    """Return where a file outside the core asks for the kind of a machine or module; name: of it in the package."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr == 'general' and ast.unparse(node.value).endswith('machine'):
            found.append(f'line {node.lineno}: {ast.unparse(node)}')
        elif name.startswith(KNOW_KINDS):
            continue
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 'kind' \
                and not name.startswith(OTHER_KINDS):
            found.append(f'line {node.lineno}: {ast.unparse(node)}')
        elif isinstance(node, ast.ImportFrom) and (node.module or '').endswith('rigid_body.records'):
            found += [f'line {node.lineno}: {alias.name}' for alias in node.names if alias.name in KINDS]
    return found


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_core_knows_kinds_of_machines_and_modules(path):
    assert knows_kinds(path.read_text(), path.relative_to(PACKAGE).as_posix()) == []


@pytest.mark.parametrize('name, text, count', [
    ('control/laws/base.py', 'if self.m.machine.general:\n    pass', 1),
    ('kernels/rigid_body/joints.py', 'machine.general', 1),
    ('api/kinematics.py', "modules[k]['kind'] == PRISMATIC", 1), ('kernels/rigid_body/joints.py', "b['kind']", 0),
    ('control/monitors/singularity.py', 'from ..kernels.rigid_body.records import LINK, LOOP', 1),
    ('kernels/loops/dyads.py', "d['kind']", 0), ('api/a.py', 'general = machine.generality', 0),
])
def test_the_test_finds_callers_that_ask_for_kinds(name, text, count):
    assert len(knows_kinds(text, name)) == count


def test_orientation_mathematics_has_one_door():
    doors = [path.relative_to(PACKAGE) for path in SOURCES for _, name in imports(ast.parse(path.read_text()), [])
             if name.split('.')[0] in ('tf_transformations', 'transforms3d')]
    assert set(doors) == {Path('api/orientation.py')}


WITHOUT_ROS = '''
import importlib, pkgutil, re, sys

class NoRos:
    def find_spec(self, name, path=None, target=None):
        if re.match(r"(rclpy|rcl_interfaces|builtin_interfaces|launch\\w*|tf2_\\w+|\\w+_msgs|\\w+_srvs)(\\.|$)", name):
            raise ImportError(f"{name} is asked for")

sys.meta_path.insert(0, NoRos())
import psdyn_ros
names = [info.name for info in pkgutil.walk_packages(psdyn_ros.__path__, "psdyn_ros.") if ".nodes" not in info.name]
for name in names:
    importlib.import_module(name)
print(len(names))
'''


def test_everything_outside_nodes_imports_without_ros():
    run = subprocess.run([sys.executable, '-c', WITHOUT_ROS], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    expected = sum(layer_of(path) != 'nodes' for path in SOURCES) - 1       # the package itself is no submodule
    assert int(run.stdout) == expected


@pytest.mark.parametrize('path', TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short_and_named_for_what_they_hold(path):
    assert len(path.read_text().splitlines()) <= 500
    assert path.name not in ('utils.py', 'common.py', 'helpers.py', 'misc.py')


def test_ruff_is_content():
    if importlib.util.find_spec('ruff') is None:
        pytest.skip('ruff is not installed')
    run = subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', '.'], cwd=ROOT, capture_output=True,
                         text=True, timeout=240)
    assert run.returncode == 0, run.stdout
