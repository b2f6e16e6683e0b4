"""The safety objects, changed in one place at a time: a sample of what `scripts/mutation.py` does in full."""

import importlib.util
import subprocess
import sys
import warnings

import pytest
from conftest import THOROUGH
from support.paths import ROOT

SCRIPT = ROOT / 'scripts' / 'mutation.py'


@pytest.fixture(scope='module')
def mutation():
    spec = importlib.util.spec_from_file_location('mutation', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def changes(mutation):
    return {name: {mutant.change: mutant for mutant in mutation.mutants(name)} for name in mutation.TESTS}


@pytest.mark.long
def test_a_sample_of_changes_is_noticed(request):
    seed = request.config.getoption('hypothesis_seed')
    count = '15' if THOROUGH else '5'
    run = subprocess.run([sys.executable, str(SCRIPT), '--sample', count, '--seed', str(seed)], capture_output=True,
                         text=True, timeout=200)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f'{count} mutants, 0 survivors that nobody argued' in run.stdout


@pytest.mark.parametrize('module, change', [
    # bound, comparison, arithmetic
    ('kernels.control.output_gate', '-limit[i] <= command[i] <= limit[i] -> -limit[i] < command[i] <= limit[i]'),
    ('kernels.control.output_gate', 'change > step -> change <= step'),
    ('kernels.control.output_gate', 'command[i] - last[i] -> command[i] + last[i]'),
    ('control.safety.output_gate', 'interface in most -> interface not in most'),
    ('control.safety.output_gate', 'stamp != now -> stamp == now'),
    ('control.safety.output_gate', 'max -> min'),
    ('control.safety.output_gate', 'return self._last.copy() -> return'),
    ('control.safety.output_gate', 'self._last[:] = out -> pass'),                         # removed statement
    ('control.safety.output_ramp', 'return not 0 <= now - self._started < self._duration -> return'),
    ('control.safety.output_ramp',
     'not 0 <= now - self._started < self._duration -> 0 <= now - self._started < self._duration'),
    ('control.safety.output_ramp', '1.0 -> 2.0'),                                                  # constant
    ('control.safety.state_machine', 'self._moving and (not hold) -> self._moving or not hold'),   # boolean
    ('control.safety.state_machine', 'State.SAFE if stop else State.STANDBY -> State.STANDBY if stop else State.SAFE'),
    ('control.safety.state_machine', 'True -> False'),
])
def test_each_kind_of_change_is_tried(changes, module, change):
    assert change in changes[module]


def test_texts_that_only_explain_are_left_alone(changes):
    for of_module in changes.values():
        assert not [change for change in of_module if 'Return' in change or 'ns of the steady clock' in change]


def test_every_change_is_a_module(mutation):
    found = mutation.mutants('control.safety.output_gate')
    assert len({mutant.source for mutant in found}) == len(found) > 80
    for mutant in found:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', SyntaxWarning)
            compile(mutant.source, 'mutant', 'exec')


def test_what_is_argued_exists(mutation):
    known = {mutant.key for module in mutation.TESTS for mutant in mutation.mutants(module)}
    assert mutation.ARGUED.keys() <= known
    assert all(len(reason) > 20 for reason in mutation.ARGUED.values())
