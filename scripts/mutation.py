#!/usr/bin/env python3
"""Change the safety objects in one place at a time, and see whether their tests notice.

Sub-states, output gate and output ramp are what stands between a wrong computation and a machine, so that each line of
them must matter to some test; kernels run as plain Python. A mutant differs from the source by one comparison, bound,
boolean, sign or arithmetic operator, constant, returned value, removed statement, or exchanged branch; texts within
formatted messages and docstrings are left alone. It is killed where a test fails or takes too long. Survivors are
printed with line and change; those that cannot be told from the source by any test are argued in ARGUED.

    python3 scripts/mutation.py                  # all of them, some minutes
    python3 scripts/mutation.py --sample 15      # as many, drawn with --seed

Each mutant runs in a process of its own, forked before the changed module and its tests were imported.

Libraries do less here: mutmut 3 leaves out decorated functions, so the whole kernel of the output gate; cosmic-ray
edits the source tree in place and starts pytest for each of its 851 mutants, 3 to 5 s each, where a fork takes 0.7 s.
"""

import argparse
import ast
import copy
import importlib
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = 'psdyn_ros'
TEST_FOLDER = ROOT / 'test' / 'control' / 'safety'
STATES, GATE, RAMP = 'control.safety.state_machine', 'control.safety.output_gate', 'control.safety.output_ramp'
TESTS = {STATES: ('test_safety_states.py', 'test_safety_stops.py', 'test_safety_sequences.py'),
         **dict.fromkeys((GATE, RAMP, 'kernels.control.output_gate'), ('test_output_gate.py',))}
MAX_SECONDS = 60        # s that the tests of a mutant may take
KILLED, SURVIVED = 'killed', 'survived'

# (module, function and line of source, change): why no test can tell it from the source
STOP = 'read while STOPPING only, which `_stop` alone begins, and that sets it'
MOVING = 'read while enabled only, and `enable` sets it'
SLOTS = ("__slots__ = ('row', 'asks', 'result', 'open', 'latched', 'acknowledged', 'good_since', 'demand', 'text', "
         "'count')")
ARGUED = {
    (STATES, f'_Condition: {SLOTS}', f'{SLOTS} -> pass'): 'the same attributes, which only take more memory',
    (STATES, '__init__: self.good_since = None', 'None -> 0'): 'read where it is open, before which a failure sets it; '
    'or at that failure, to clear `acknowledged`, which is not set yet',
    (STATES, '__init__: self._started = 0', 'self._started = 0 -> pass'): STOP,
    (STATES, '__init__: self._started = 0', '0 -> 1'): STOP,
    (STATES, '__init__: self._rest = False', 'self._rest = False -> pass'): STOP,
    (STATES, '__init__: self._rest = False', 'False -> True'): STOP,
    (STATES, '__init__: self._moving = False', 'self._moving = False -> pass'): MOVING,
    (STATES, '__init__: self._moving = False', 'False -> True'): MOVING,
    (GATE, 'safe: def safe(self, holding=None, closing=None):', 'None -> 0'): 'no array to hold with; nothing to add',
    (RAMP, '__init__: self._started = 0', '0 -> 1'): 'no time lies within a duration of zero',
}

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
             ast.Pow: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}
FUNCTIONS = {'min': 'max', 'max': 'min', 'any': 'all', 'all': 'any', 'floor': 'ceil', 'ceil': 'floor'}
REMOVED = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Delete, ast.Expr, ast.If, ast.For, ast.Return)


class Mutant(NamedTuple):
    """One change of one module; `text` takes the place of the bytes from `start` to `end`."""

    module: str
    line: int
    change: str
    """'before -> after' of the smallest piece of source around it."""
    where: str
    """Function, and the line of source on which that begins."""
    start: int
    end: int
    text: str

    @property
    def source(self):
        source = _path(self.module).read_bytes()
        return source[:self.start] + self.text.encode() + source[self.end:]

    @property
    def key(self):
        """As in ARGUED."""
        return self.module, self.where, self.change

    def __str__(self):
        return f'{self.module}:{self.line}: {self.change}'


def mutants(module):
    """Return the `Mutant`s of a module of the package, each of them once."""
    source = _path(module).read_bytes()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = {}
    for function, node in _places(ast.parse(source)):
        line = source[lines[node.lineno - 1]:lines[node.lineno]].decode().partition('#')[0].strip()
        start, end = lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
        for replacement in _replacements(node):
            change = f'{_line(node)} -> {_line(replacement)}'
            text = ast.unparse(replacement)
            text = text.replace('\n', '\n' + ' ' * node.col_offset) if isinstance(node, ast.stmt) else f'({text})'
            found[start, end, text] = Mutant(module, node.lineno, change, f'{function}: {line}', start, end, text)
    return list(found.values())


def _path(module):
    return ROOT.joinpath(PACKAGE, *module.split('.')).with_suffix('.py')


def _places(parent, function=''):
    """Yield (name of the function or class, node) of all below a node that may be changed."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)) or _is_text(node):
            continue
        if isinstance(node, (ast.expr, ast.stmt)):
            yield function, node
        yield from _places(node, getattr(node, 'name', function))


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _line(node):
    return ' '.join(ast.unparse(node).split('\n')[:2]).replace('  ', '')


def _replacements(node):
    """Yield what may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1:]])
    elif isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        for i in range(len(node.values)):
            left = node.values[:i] + node.values[i + 1:]
            yield left[0] if len(left) == 1 else _with(node, values=left)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.BinOp):
        yield _with(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Constant):
        yield from (_with(node, value=value) for value in _other_values(node.value))
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, (ast.Name, ast.Attribute)) and _called(node) in FUNCTIONS:
        yield _with(node, **{'id' if isinstance(node, ast.Name) else 'attr': FUNCTIONS[_called(node)]})
    if isinstance(node, ast.If):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test)) if not node.orelse else \
            _with(node, body=node.orelse, orelse=node.body)
    if isinstance(node, ast.Return) and node.value is not None:
        yield _with(node, value=None)
    if isinstance(node, REMOVED):
        yield ast.copy_location(ast.Pass(), node)


def _with(node, **fields):
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return ast.fix_missing_locations(other)


def _called(node):
    return node.id if isinstance(node, ast.Name) else node.attr


def _other_values(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value - 1] if value != 0 else [1]
    if isinstance(value, str):
        return [f'{value}?']
    return [0] if value is None else []


class _Finder:
    """Gives a module from a text in the place of its file."""

    def __init__(self, mutant):
        self._name, self._source = f'{PACKAGE}.{mutant.module}', mutant.source
        warnings.simplefilter('ignore', SyntaxWarning)      # of comparisons by identity

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name == self._name else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self._source, f'<mutant of {self._name}>', 'exec'), module.__dict__)


class _Quick:
    """A plugin of pytest: Hypothesis need not look for the smallest example, and remembers none."""

    @staticmethod
    def pytest_collection(session):
        import hypothesis
        hypothesis.settings.register_profile('mutation', hypothesis.settings.get_profile('thorough'), database=None,
                                             derandomize=True, phases=[hypothesis.Phase.generate])
        hypothesis.settings.load_profile('mutation')


def start(mutant, folder):
    """Start the tests of a mutant; return the id of the process."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(MAX_SECONDS)
        said = os.open(os.path.join(folder, f'{os.getpid()}.txt'), os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        assert f'{PACKAGE}.{mutant.module}' not in sys.modules
        sys.meta_path.insert(0, _Finder(mutant))
        import pytest
        os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'      # none is needed, and looking for them takes time
        code = pytest.main(['-x', '-q', '--assert=plain', '-p', 'no:cacheprovider', '--rootdir', str(ROOT),
                            *(str(TEST_FOLDER / name) for name in TESTS[mutant.module])], plugins=[_Quick()])
    finally:
        os._exit(int(code))


def judge(chosen, jobs, tell):
    """Run the tests of the mutants, `jobs` at once; return {mutant: KILLED or SURVIVED} and call tell of each."""
    verdicts, running, waiting = {}, {}, list(reversed(chosen))
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                mutant = waiting.pop()
                running[start(mutant, folder)] = mutant
            pid, status = os.wait()
            mutant = running.pop(pid)
            verdicts[mutant] = SURVIVED if status == 0 else KILLED
            tell(mutant, verdicts[mutant])
    return verdicts


def warm_up():
    """Import what all tests need, but none of the modules that are changed."""
    sys.path[:0] = [str(ROOT), str(ROOT / 'test')]
    # kernels as they are written, and all random examples
    os.environ.update(NUMBA_DISABLE_JIT='1', PSDYN_THOROUGH='1')
    for name in ('numpy', 'pytest', 'hypothesis.stateful', 'hypothesis.extra.numpy',
                 f'{PACKAGE}.control.safety.fault_table', f'{PACKAGE}.model.parameters.safety'):
        importlib.import_module(name)
    # `control` imports all of its rooms: they are imported anew with the change
    for name in [name for name in sys.modules if f'{name}.'.startswith(f'{PACKAGE}.control.')]:
        del sys.modules[name]
    for module in TESTS:
        sys.modules.pop(f'{PACKAGE}.{module}', None)


def main(arguments=None):
    """Return 0 where every mutant was killed, or is argued."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--sample', type=int, help='how many mutants, drawn at random; all of them by default')
    parser.add_argument('--seed', type=int, default=11, help='of the drawing')
    parser.add_argument('--module', choices=TESTS, action='append', help='all of them by default')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes at once')
    options = parser.parse_args(arguments)
    modules = options.module or list(TESTS)
    every = [mutant for module in modules for mutant in mutants(module)]
    if options.sample is not None:
        every = [mutant for mutant in every if mutant.key not in ARGUED]
        every = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    warm_up()
    began = time.monotonic()

    def tell(mutant, verdict):
        if verdict == SURVIVED and mutant.key not in ARGUED:
            print(f'survived: {mutant}', flush=True)

    unchanged = [Mutant(module, 0, 'unchanged', '', 0, 0, '') for module in modules]
    if KILLED in judge(unchanged, options.jobs, lambda *_: None).values():
        print('the tests fail without any change; nothing can be said of mutants')
        return 2
    verdicts = judge(every, options.jobs, tell)
    survivors = {mutant.key for mutant, verdict in verdicts.items() if verdict == SURVIVED}
    left = survivors - ARGUED.keys()
    for module in modules:
        of_module = [verdict for mutant, verdict in verdicts.items() if mutant.module == module]
        print(f'{module}: {of_module.count(KILLED)} of {len(of_module)} killed')
    for key in sorted(survivors & ARGUED.keys()):
        print(f'argued: {key[0]}: {key[2]}: {ARGUED[key]}')
    unused = [key for key in ARGUED if key not in survivors and key[0] in modules and options.sample is None]
    for key in unused:
        print(f'argued, but it is killed or there is no such change: {key[0]}: {key[1]}: {key[2]}')
    print(f'{len(verdicts)} mutants, {len(left)} survivors that nobody argued, {time.monotonic() - began:.0f} s')
    return 1 if left or unused else 0


if __name__ == '__main__':
    sys.exit(main())
