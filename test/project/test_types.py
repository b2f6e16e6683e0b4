"""Types of what users call: every public name is annotated, mypy agrees, and so does a user's program."""

import importlib
import importlib.util
import inspect
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.api.allocation import Allocation
from psdyn_ros.api.integrator import Integrator
from psdyn_ros.api.joint_map import BoundMap, JointMap
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant

MODULES = {
    'psdyn_ros': None, 'psdyn_ros.control': None,
    'psdyn_ros.simulation.offline': ('simulate', 'Motion', 'SimulationError'),
    'psdyn_ros.control.offline.time_optimal': ('limits_of', 'plan', 'Plan', 'PathLimits'),
    'psdyn_ros.control.offline.planned_motion': ('plan_motion', 'PlannedMotion'),
    'psdyn_ros.control.offline.way_file': ('read_way',),
    'psdyn_ros.validation.validate': ('validate', 'Validation', 'read_model'),
    'psdyn_ros.validation.compare_bags': ('compare_bags', 'Comparison'),
    'psdyn_ros.validation.identify': ('identify', 'identify_bag'),
    'psdyn_ros.api.analysis.equilibrium': ('Equilibrium', 'EquilibriumError'),
    'psdyn_ros.api.analysis.linearization': ('Linearization',),
    'psdyn_ros.api.motion.load_chart': ('LoadChart',), 'psdyn_ros.api.motion.workspace': ('Workspace',),
    'psdyn_ros.model.locate': ('machine_names', 'find_machine', 'find_config'),
}
CLASSES = (Allocation, Integrator, JointMap, BoundMap, HydraulicPlant, Plant)


def public():
    """Yield (name, object) of every public name."""
    for module, names in MODULES.items():
        loaded = importlib.import_module(module)
        for name in names or loaded.__all__:
            yield f'{module}.{name}', getattr(loaded, name)
    yield from ((each.__qualname__, each) for each in CLASSES)


def unannotated(name, thing):
    """Return the parameters and results without a type of a function, or of the public methods of a class."""
    if inspect.isclass(thing):
        found = []
        for attribute, member in vars(thing).items():
            member = member.fget if isinstance(member, property) else getattr(member, '__func__', member)
            shown = not attribute.startswith('_') or attribute == '__init__'
            if shown and inspect.isfunction(member) and member.__module__.startswith('psdyn_ros'):
                found += unannotated(f'{name}.{attribute}', member)
        return found
    if not inspect.isfunction(thing):
        return []
    signature = inspect.signature(thing)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name in ('self', 'cls'):
        parameters = parameters[1:]
    missing = [f'{name}({each.name})' for each in parameters if each.annotation is each.empty]
    return missing + [f'{name} ->'] * (signature.return_annotation is signature.empty)


@pytest.mark.parametrize('name, thing', list(public()), ids=[name for name, _ in public()])
def test_public_names_are_annotated(name, thing):
    assert unannotated(name, thing) == []


def test_the_test_finds_what_is_not_annotated():
    class Example:
        def __init__(self, a: int) -> None: ...
        def call(self, b, *, c: int = 0): ...
        @property
        def value(self): ...
    Example.__init__.__module__ = Example.call.__module__ = Example.value.fget.__module__ = 'psdyn_ros.example'
    assert unannotated('Example', Example) == ['Example.call(b)', 'Example.call ->', 'Example.value ->']


def mypy(*arguments):
    if importlib.util.find_spec('mypy') is None:
        pytest.skip('mypy is not installed')
    if np.lib.NumpyVersion(np.__version__) < '2.0.0':
        pytest.skip("mypy reads NumPy's own types, and those of NumPy 1 are others")
    run = subprocess.run([sys.executable, '-m', 'mypy', *arguments], cwd=ROOT, capture_output=True, text=True,
                         timeout=500)
    return run.returncode, run.stdout


@pytest.mark.long
def test_mypy_is_content():
    code, text = mypy()
    assert code == 0, text


PROGRAM = '''
import numpy as np
import psdyn_ros

crane = psdyn_ros.load('crane.urdf')
x = dict.fromkeys(crane.coordinates, 0.0)
f = crane.gravity_forces(x)
total: float = crane.total_mass
rest = crane.equilibrium(crane.initial_position, f)
names: tuple[str, ...] = rest.free
pose: np.ndarray = crane.link_pose([0.0, 0.1, 0.2, 0.3], 'tcp')
loaded: psdyn_ros.Manipulator = crane.with_payload('tcp', 70.0)
lower: np.ndarray = crane.limits.lower
bag = psdyn_ros.read_bag('run')
'''
# lines that are wrong, and the code of mypy's error in each
WRONG = {"crane.with_payload('tcp', 'heavy')": 'arg-type', 'crane.gravity_force(x)': 'attr-defined',
         'rest.free + 1': 'operator', 'crane.jacobian(x)': 'call-arg', 'y: str = crane.total_mass': 'assignment',
         'bag.joints.names + 1': 'operator'}


USER_PROGRAM = ROOT / 'test' / 'project' / 'user_program.py'


def test_strict_mypy_finds_errors_in_programs_of_users_and_no_others(tmp_path):
    examples = sorted((ROOT / 'examples').glob('*.py'))
    assert len(examples) > 10
    wrong = tmp_path / 'wrong.py'
    wrong.write_text(PROGRAM + '\n'.join(WRONG))
    _, text = mypy('--config-file', '', '--strict', '--follow-imports=silent', '--ignore-missing-imports',
                   str(wrong), str(USER_PROGRAM), *map(str, examples))
    found = re.findall(r'([^/\n]+):(\d+): error: .*\[([\w-]+)\]$', text, re.MULTILINE)
    first = PROGRAM.count('\n') + 1
    assert found == [('wrong.py', str(line), code) for line, code in enumerate(WRONG.values(), first)], text


def test_the_typed_program_runs(capsys):
    assert runpy.run_path(str(USER_PROGRAM))['main'](None) == 0
    assert ' kg ' in capsys.readouterr().out


def test_the_marker_of_types_is_installed():
    assert (ROOT / 'psdyn_ros' / 'py.typed').is_file() and "'py.typed'" in (ROOT / 'setup.py').read_text()


def test_the_version_is_that_of_the_manifest():
    from importlib.metadata import version
    assert psdyn_ros.__version__ == version('psdyn_ros')
