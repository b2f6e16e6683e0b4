"""scripts/compile_kernels.py: every kernel that waits for a first machine is compiled before tests start, once."""

import runpy

import pytest
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.kernels.runtime import compiler

SCRIPT = ROOT / 'scripts' / 'compile_kernels.py'


@pytest.fixture
def script(monkeypatch):
    """The names in the script, with processes that end at once with the codes in `script['codes']`."""
    names = runpy.run_path(str(SCRIPT))
    names['started'], names['codes'] = [], {}

    class Started:
        def __init__(self, command):
            self.job = command[-1]
            names['started'].append(self.job)

        def wait(self):
            return names['codes'].get(self.job, 0)

    monkeypatch.setattr(names['subprocess'], 'Popen', Started)
    return names


def run(script, warm, monkeypatch):
    """The exit code where only these groups of kernels are warm."""
    monkeypatch.setitem(script['main'].__globals__, 'cache_is_warm', lambda group: group in warm)
    monkeypatch.setitem(script['main'].__globals__, 'compiled', True)
    return script['main']([])


def test_a_warm_cache_starts_nothing(script, monkeypatch):
    assert run(script, script['GROUPS'], monkeypatch) == 0 and script['started'] == []


@pytest.mark.parametrize('missing', range(4))
def test_a_cold_group_starts_every_job_once(script, monkeypatch, missing):
    warm = set(script['GROUPS']) - {script['GROUPS'][missing]}
    assert run(script, warm, monkeypatch) == 0
    assert sorted(script['started']) == sorted(script['JOBS'])


def test_a_job_that_fails_ends_it_with_its_code(script, monkeypatch):
    first, second = script['ROUNDS']
    script['codes'][first[0]] = 3
    assert run(script, (), monkeypatch) == 3
    assert script['started'] == list(first)


@pytest.mark.skipif(not psdyn_ros.compiled, reason='needs compiled kernels')
@pytest.mark.jit
def test_the_jobs_complete_every_group(script):
    assert script['main'](list(script['JOBS'])) == 0
    assert all(compiler.cache_is_warm(group) for group in script['GROUPS'])
