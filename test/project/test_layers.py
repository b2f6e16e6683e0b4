"""Data flows one way: model -> kernels -> assembly -> api -> simulation, control, validation -> nodes -> tools, cli."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from support.paths import ROOT

PACKAGE = ROOT / 'psdyn_ros'

# folder: (folders of the package that it may import, third-party packages or None for any but ROS)
LAYERS = {
    'kernels': (set(), {'numba', 'numpy'}),
    'model': ({'kernels.algebra.spatial', 'kernels.rigid_body.records', 'kernels.loops.records'},
              {'numpy', 'yaml', 'defusedxml', 'xacro'}),
    'assembly': ({'kernels', 'model'}, {'numpy'}),
    'view': ({'model'}, {'numpy', 'trimesh'}),
    'api': ({'assembly', 'model', 'kernels', 'view'}, {'numpy', 'pandas', 'tf_transformations', 'transforms3d'}),
    'simulation': ({'api', 'assembly', 'kernels', 'model'}, None),
    'control': ({'api', 'assembly', 'kernels', 'model'}, None),
    'validation': ({'api', 'assembly', 'kernels', 'simulation', 'model', 'view'}, None),
    'formulations': ({'model'}, {'numpy'}),
    'nodes': ({'api', 'assembly', 'kernels', 'model', 'simulation', 'control', 'validation', 'view'}, None),
    'tools': ({'api', 'assembly', 'kernels', 'model', 'formulations', 'simulation', 'control', 'validation', 'nodes',
               'view'}, None),
}
# rooms that may import rclpy and messages; files in other rooms of tools may not, nor the rest of the package
ROS_ROOMS = ('nodes', 'tools.demo', 'tools.operator', 'tools.recordings', 'tools.timing',
             'tools.fault_campaign.over_dds')
NEED_ROS = (*ROS_ROOMS, 'tools.fault_campaign.campaign')
# room of a layer, '' for the files in its folder: rooms of the layer that it may import
ROOMS = {
    'kernels': {
        '': set(),
        'runtime': set(),
        'algebra': {'runtime'},
        'loops': {'algebra', 'runtime'},
        'rigid_body': {'loops', 'algebra', 'runtime'},
        'derivatives': {'rigid_body', 'loops', 'algebra', 'runtime'},
        'motion': {'rigid_body', 'loops', 'algebra', 'runtime'},
        'hydraulics': {'rigid_body', 'loops', 'algebra', 'runtime'},
        'control': {'hydraulics', 'rigid_body', 'loops', 'algebra', 'runtime'},
    },
    'model': {'': set(), 'mechanism': {''}, 'parameters': {'mechanism', ''}},
    'api': {'results': set(), '': {'results'}, 'analysis': {'results', ''}, 'hydraulics': {'analysis', 'results', ''},
            'motion': {'results', ''}},
    'formulations': {'': set(), 'titop': set(), 'adapters': {'titop', ''}},
    'simulation': {'sensors': set(), '': {'sensors'}},
    'control': {
        '': {'core', 'laws', 'reference', 'monitors', 'safety', 'offline'},
        'monitors': set(),
        'safety': {'monitors'},
        'reference': {'monitors', 'safety'},
        'laws': {'reference', 'monitors'},
        'core': {'laws', 'reference', 'monitors', 'safety'},
        'offline': {'laws', 'reference', 'monitors'},
    },
    'validation': {
        'bags': set(),
        'signals': {'bags'},
        'metrics': {'signals', 'bags'},
        'identification': {'metrics', 'signals', 'bags'},
        'diagnosis': {'identification', 'metrics', 'signals', 'bags'},
        'report': {'diagnosis', 'identification', 'metrics', 'signals', 'bags'},
        '': {'report', 'diagnosis', 'identification', 'metrics', 'signals', 'bags'},
        'fleet': {'', 'report', 'metrics', 'bags'},
    },
    'nodes': {
        '': {'runtime'},
        'runtime': set(),
        'messages': {'runtime'},
        'controller': {'runtime', 'messages'},
        'simulator': {'runtime', 'messages'},
        'observers': {'runtime', 'messages'},
    },
    'tools': {
        '': set(),
        'demo': {''},
        'operator': {'demo'},
        'recordings': {'demo', 'studies'},
        'timing': {'demo'},
        'fault_campaign': {'timing', 'demo', 'studies'},
        'studies': set(),
        'charts': set(),
        'fuzzing': set(),
        'papers': set(),
    },
}
# the class that users call brings the rooms of its layer together
FACADES = ('api/manipulator.py',)
MAX_FILES = 16      # .py files in a folder
KINDS = {'REVOLUTE', 'PRISMATIC', 'LOOP', 'FREE'}
KNOW_KINDS = ('kernels/rigid_body/joints.py', 'kernels/rigid_body/records.py', 'kernels/derivatives/joints.py',
              'model/mechanism/')
# files whose `kind` is that of a constraint or of a dyad, not of a module
OTHER_KINDS = ('kernels/loops/', 'kernels/derivatives/clusters.py', 'assembly/dyads.py', 'assembly/elimination.py',
               'assembly/parallelograms.py')
KERNELS = {'kernel', 'inner', 'entry', 'batch_entry'}
EVERYTHING = {'cli', '__init__'}
ROS = re.compile(r'(rclpy|rcl_interfaces|builtin_interfaces|launch\w*|ament_\w+|tf2_\w+|rosidl\w*|ros2\w+|rpyutils|'
                 r'\w+_msgs|\w+_srvs)$')

SOURCES = sorted(PACKAGE.rglob('*.py'))
EXISTING = set(SOURCES)
TEXTS = [path for folder in ('psdyn_ros', 'test', 'bench', 'scripts', 'launch') for path in
         sorted((ROOT / folder).rglob('*.py')) if '.build' not in path.parts]


@cache
def parsed(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def found_in(paths, find):
    """Return what `find` finds, by file, where it finds anything."""
    found = {str(path.relative_to(ROOT)): find(path) for path in paths}
    return {name: what for name, what in found.items() if what}


def package_of(path):
    return ['psdyn_ros', *path.relative_to(PACKAGE).parts[:-1]]


def layer_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix('.py')


def is_in(name, rooms):
    """Whether a module of the package, or a room, is in one of these rooms."""
    return any(f'{name}.'.startswith(f'{room}.') for room in rooms)


def statements(tree, types):
    """Yield the statements of a tree; types: also those for annotations only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            if types or getattr(getattr(node, 'test', None), 'id', '') != 'TYPE_CHECKING':
                yield node
                yield from statements(node, types)


def imports(tree, package, types=True):
    """Yield (line, absolute name) of every import of a module, also of those inside functions."""
    for node in statements(tree, types):
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
            if not is_in('.'.join(package[1:]), ROS_ROOMS):
                wrong.append(f'line {line}: {name} belongs to nodes/')
        elif third_party is not None and parts[0] not in third_party and parts[0] not in sys.stdlib_module_names:
            wrong.append(f'line {line}: {layer} imports {name}')
    return wrong


def test_no_arrow_points_backwards():
    assert {layer_of(path) for path in SOURCES} <= LAYERS.keys() | EVERYTHING
    assert found_in(SOURCES, lambda path: broken_arrows(layer_of(path), parsed(path), package_of(path))) == {}


@pytest.mark.parametrize('layer, text', [
    ('kernels', 'from ..model.errors import LoopError'), ('kernels', 'import scipy'), ('kernels', 'import rclpy'),
    ('model', 'from ..api import load'), ('model', 'from ..kernels.rigid_body.forward import solve'),
    ('model', 'def f():\n    from ..api.load import load'), ('api', 'from ..control.reference import Reference'),
    ('api', 'from .. import nodes'), ('control', 'from ..simulation.plant import Plant'), ('control', 'import rclpy'),
    ('simulation', 'from sensor_msgs.msg import JointState'), ('validation', 'from ..control import reference'),
    ('validation', 'import psdyn_ros.tools.demo.demo'), ('formulations', 'from ..kernels.algebra import spatial'),
    ('cli', 'import rclpy'), ('nodes', 'from ..tools.demo import session'),
    ('tools', 'import rclpy'),
    ('tools', 'from ..cli import main'), ('__init__', 'from std_srvs.srv import Trigger'), ('api', 'import launch'),
])
def test_the_test_finds_arrows_that_point_backwards(layer, text):
    package = ['psdyn_ros'] + [layer] * (layer != '__init__')
    assert len(broken_arrows(layer, ast.parse(text), package)) == 1


@pytest.mark.parametrize('layer, text', [
    ('model', 'from ..kernels.rigid_body.records import MODULE'), ('model', 'from .errors import LoopError'),
    ('api', 'import os'),
    ('nodes', 'import rclpy'), ('nodes', 'from ..control.reference.reference import ReferenceMotion'),
    ('nodes', 'from ..api import load'), ('cli', 'from ..tools.demo.demo import run'),
    ('tools', 'from ..nodes.runtime import executor'), ('validation', 'import matplotlib'),
    ('control', 'import scipy.linalg'),
])
def test_the_test_allows_what_the_design_allows(layer, text):
    package = ['psdyn_ros'] + [layer] * (layer != '__init__')
    assert broken_arrows(layer, ast.parse(text), package) == []


def files_imported(path):
    """Return the files of the package that a file imports when it runs, also in its functions."""
    found = set()
    for _, name in imports(parsed(path), package_of(path), types=False):
        parts = name.split('.')[1:]
        for end in (len(parts), len(parts) - 1):
            file = PACKAGE.joinpath(*parts[:end]).with_suffix('.py')
            if end > 0 and file in EXISTING:
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


def room_of(path):
    """Return (layer, room) of a file in a folder of the package; the room is '' for files beside the rooms."""
    layer, *rooms = path.relative_to(PACKAGE).parts[:-1]
    return layer, rooms[0] if rooms else ''


def wrong_rooms(layer, room, tree, package):
    """Return what a file in a room of a layer imports of that layer and may not."""
    wrong = []
    for line, name in imports(tree, package):
        _, first, *parts = [*name.split('.'), '']
        if first == layer:
            other = parts[0] if (PACKAGE / layer / parts[0]).is_dir() else ''
            if other not in {room} | ROOMS[layer][room]:
                wrong.append(f'line {line}: {layer}/{room} imports {name}')
    return wrong


IN_ROOMS = [path for path in SOURCES if layer_of(path) in ROOMS and path.parent != PACKAGE]


def test_rooms_import_only_those_below():
    assert {room_of(path) for path in IN_ROOMS} <= {(layer, room) for layer in ROOMS for room in ROOMS[layer]}
    paths = [path for path in IN_ROOMS if path.relative_to(PACKAGE).as_posix() not in FACADES]
    assert found_in(paths, lambda path: wrong_rooms(*room_of(path), parsed(path), package_of(path))) == {}


@pytest.mark.parametrize('layer, room, text', [
    ('kernels', 'runtime', 'from ..algebra.linear import cholesky'),
    ('kernels', 'algebra', 'from ..loops.records import ROW'),
    ('kernels', 'loops', 'from ..rigid_body.records import MODULE'),
    ('kernels', 'rigid_body', 'from ..derivatives.body import BODY'),
    ('kernels', 'derivatives', 'from ..hydraulics.records import FLUID'),
    ('kernels', 'hydraulics', 'from ..control import allocation'),
    ('control', 'monitors', 'from ..safety.output_gate import OutputGate'),
    ('control', 'laws', 'def f():\n    from ..core.core import ControlCore'),
    ('nodes', 'observers', 'from ..controller.node import Controller'),
    ('nodes', 'runtime', 'from ..messages import conversions'),
    ('validation', 'bags', 'from ..validate import validate'),
    ('validation', 'metrics', 'from psdyn_ros.validation.report.page import as_text'),
    ('simulation', 'sensors', 'from .. import plant'),
    ('tools', 'demo', 'from ..timing.conditions import conditions'),
])
def test_the_test_finds_rooms_that_are_above(layer, room, text):
    assert len(wrong_rooms(layer, room, ast.parse(text), ['psdyn_ros', layer, room])) == 1


@pytest.mark.parametrize('layer, room, text', [
    ('control', 'core', 'from ..safety.fault_table import ROWS'), ('control', 'core', 'from .inputs import Inputs'),
    ('validation', 'fleet', 'from ..validate import validate'),
    ('nodes', 'controller', 'from ..runtime import realtime'),
    ('control', 'laws', 'from ...kernels.control import valve_control'),
])
def test_the_test_allows_rooms_that_are_below(layer, room, text):
    assert wrong_rooms(layer, room, ast.parse(text), ['psdyn_ros', layer, room]) == []


@pytest.mark.parametrize('layer', ROOMS)
def test_the_table_of_rooms_is_that_of_the_folders_and_has_no_circle(layer):
    folders = {path.parent.name for path in (PACKAGE / layer).glob('*/__init__.py')}
    assert ROOMS[layer].keys() - {''} == folders
    left = dict(ROOMS[layer])
    while free := [room for room, others in left.items() if not others & left.keys()]:
        for room in free:
            del left[room]
    assert left == {}


def test_no_folder_is_crowded():
    counts = Counter(path.parent.relative_to(ROOT) for path in [*SOURCES, *(ROOT / 'test').rglob('*.py')])
    assert {str(folder): count for folder, count in counts.items() if count > MAX_FILES} == {}


def argument_count(function):
    a = function.args
    return len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)


def is_kernel(function):
    return any(isinstance(each, ast.Name) and each.id in KERNELS for each in function.decorator_list)


def kernels_of(path):
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef) and is_kernel(node)]


def test_kernels_have_at_most_eight_arguments():
    assert found_in(KERNEL_FILES, lambda path: [each.name for each in kernels_of(path) if argument_count(each) > 8]) \
        == {}


def test_all_kernels_are_found():
    assert sum(len(kernels_of(path)) for path in KERNEL_FILES) > 300
    assert argument_count(ast.parse('def f(a, /, b, *c, d, **e): pass').body[0]) == 5


def knows_kinds(tree, name):
    """Return where a file outside the core asks for the kind of a machine or module; name: of it in the package."""
    found = []
    for node in ast.walk(tree):
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


def test_only_the_core_knows_kinds_of_machines_and_modules():
    assert found_in(SOURCES, lambda path: knows_kinds(parsed(path), path.relative_to(PACKAGE).as_posix())) == {}


@pytest.mark.parametrize('name, text, count', [
    ('control/laws/base.py', 'if self.m.machine.general:\n    pass', 1),
    ('kernels/rigid_body/joints.py', 'machine.general', 1),
    ('api/kinematics.py', "modules[k]['kind'] == PRISMATIC", 1), ('kernels/rigid_body/joints.py', "b['kind']", 0),
    ('control/monitors/singularity.py', 'from ..kernels.rigid_body.records import LINK, LOOP', 1),
    ('kernels/loops/dyads.py', "d['kind']", 0), ('api/a.py', 'general = machine.generality', 0),
])
def test_the_test_finds_callers_that_ask_for_kinds(name, text, count):
    assert len(knows_kinds(ast.parse(text), name)) == count


def test_orientation_mathematics_has_one_door():
    doors = [path.relative_to(PACKAGE) for path in SOURCES for _, name in imports(parsed(path), [])
             if name.split('.')[0] in ('tf_transformations', 'transforms3d')]
    assert set(doors) == {Path('api/orientation.py')}


def test_quality_of_service_has_one_file():
    files = [path.relative_to(PACKAGE) for path in SOURCES for node in ast.walk(parsed(path))
             if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'QoSProfile']
    assert set(files) == {Path('nodes/runtime/qos.py')}


WITHOUT_ROS = '''
import importlib, pkgutil, re, sys

class NoRos:
    def find_spec(self, name, path=None, target=None):
        if re.match(r"(rclpy|rcl_interfaces|builtin_interfaces|launch\\w*|tf2_\\w+|\\w+_msgs|\\w+_srvs)(\\.|$)", name):
            raise ImportError(f"{name} is asked for")

sys.meta_path.insert(0, NoRos())
import psdyn_ros
need = tuple(f"psdyn_ros.{room}." for room in sys.argv[1].split(","))
names = [info.name for info in pkgutil.walk_packages(psdyn_ros.__path__, "psdyn_ros.")
         if not f"{info.name}.".startswith(need) and not info.name.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
'''


def test_everything_else_imports_without_ros():
    run = subprocess.run([sys.executable, '-c', WITHOUT_ROS, ','.join(NEED_ROS)], cwd=ROOT,
                         capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    modules = ['.'.join(path.relative_to(PACKAGE).with_suffix('').parts) for path in SOURCES]
    expected = sum(not is_in(name, NEED_ROS) and name not in ('__init__', 'cli.__main__') for name in modules)
    assert int(run.stdout) == expected


def test_files_are_short_and_named_for_what_they_hold():
    assert found_in(TEXTS, lambda path: len(path.read_text().splitlines()) > 500) == {}
    assert found_in(TEXTS, lambda path: path.name in ('utils.py', 'common.py', 'helpers.py', 'misc.py')) == {}


def test_ruff_is_content():
    if importlib.util.find_spec('ruff') is None:
        pytest.skip('ruff is not installed')
    run = subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', '.'], cwd=ROOT, capture_output=True,
                         text=True, timeout=240)
    assert run.returncode == 0, run.stdout
