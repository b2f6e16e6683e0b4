"""Without Numba, or with its compiler switched off, everything still computes, and that is said once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support.machines import hiab, random_state, tree
from support.paths import ROOT

import psdyn_ros

ABSENT = '''
import sys

class NoNumba:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoNumba())
'''
COMPUTE = '''
import json, sys
import numpy as np
import psdyn_ros
assert not psdyn_ros.compiled
results = []
for case in json.load(sys.stdin):
    m = psdyn_ros.load(case["xml"], gravity=case["gravity"])
    x, xd, xdd, f = (np.array(row) for row in case["state"])
    base = psdyn_ros.BaseMotion((0.1, 0.2, 0.3, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (1, 2, 3, 4, 5, 6))
    wrenches = {m.links[-1]: ((1, 2, 3), (4, 5, 6))}
    names, q, qd, qdd = m.joint_state(x, xd, xdd)
    xi, vi = x.copy(), xd.copy()
    assert m.integrator(1e-3, substeps=2).step(xi, vi, f) == 0
    results.append([np.ravel(value).tolist() for value in (
        m.forward_dynamics(x, xd, f), m.inverse_dynamics(x, xd, xdd), m.mass_matrix(x), m.energy(x, xd),
        m.forward_dynamics([x, x], [xd, xd], [f, f]), m.inverse_dynamics([x, x], [xd, xd], [xdd, xdd]),
        m.inverse_dynamics(x, xd, xdd, base=base, wrenches=wrenches), m.base_wrench(x, xd, xdd, base=base),
        q, qd, qdd, *m.actuator_state(names, q, qd), m.link_pose(x, m.links[-1]),
        m.with_payload(m.links[-1], 10.0, (0, 0, 0.1), np.eye(3)).gravity_forces(x), xi, vi)])
    for wrong in (np.full(m.dof, np.nan), np.full(m.dof + 1, 0.1)):
        try:
            m.forward_dynamics(wrong, xd, f)
        except psdyn_ros.StateError as error:
            results.append(str(error))
json.dump(results, sys.stdout)
'''


@pytest.fixture(scope='module')
def cases():
    rng = np.random.default_rng(7)
    machines = [hiab(), tree(4, 6, cylinder_branches=True, friction=True)]
    return [{'xml': m.xml, 'gravity': m.gravity, 'state': [row.tolist() for row in random_state(m, rng)]}
            for m in machines]


def run(script, cases, **environment):
    """Run a script in a fresh interpreter; a warning of any kind is an error there."""
    done = subprocess.run([sys.executable, '-W', 'error', '-c', script], input=json.dumps(cases), cwd=ROOT, text=True,
                          capture_output=True, timeout=200, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope='module')
def switched_off(cases):
    return run(COMPUTE, cases, NUMBA_DISABLE_JIT='1')


@pytest.fixture(scope='module')
def absent(cases):
    return run(ABSENT + COMPUTE, cases, NUMBA_DISABLE_JIT='')


@pytest.mark.long
def test_it_is_said_once(switched_off, absent):
    for done in (switched_off, absent):
        assert done.stderr.count('\n') == 1
        assert done.stderr.startswith('psdyn_ros: Numba is missing or disabled: plain Python')
        assert 'pip install numba' in done.stderr


def test_both_ways_give_the_same_bits(switched_off, absent):
    assert switched_off.stdout == absent.stdout


@pytest.mark.jit
@pytest.mark.skipif(not psdyn_ros.compiled, reason='needs compiled kernels to compare with')
def test_compiled_kernels_give_the_same_numbers(cases, absent):
    """To rounding: the compiled code fuses multiplications with additions."""
    compiled = COMPUTE.replace('assert not psdyn_ros.compiled', 'assert psdyn_ros.compiled')
    expected = json.loads(run(compiled, cases, NUMBA_DISABLE_JIT='0').stdout)
    results = json.loads(absent.stdout)
    assert len(results) == len(expected) == 6
    for ours, theirs in zip(results, expected):
        if isinstance(ours, str):
            assert ours == theirs
            continue
        for a, b in zip(ours, theirs):
            a, b = np.array(a), np.array(b)
            assert a.shape == b.shape and np.abs(a - b).max() <= 1e-11 * (1 + np.abs(b).max())


def test_nothing_is_cached_and_nothing_of_numba_is_needed(tmp_path):
    cache = tmp_path / 'cache'
    script = ABSENT + '''
import psdyn_ros
from psdyn_ros.kernels.runtime import compiler
assert compiler.numba is None and compiler.CACHE_FOLDER is None and not compiler.cache_is_warm("loops")
assert "numba" not in sys.modules
'''
    run(script, [], PSDYN_CACHE_DIR=str(cache))
    assert not cache.exists()


def test_the_command_line_works_without_numba():
    script = ABSENT + 'from psdyn_ros.cli import main; sys.exit(main(["check", "urdf/hiab_xs031_lift.urdf"]))'
    done = run(script, [])
    assert 'hiab_xs031_lift: 1 DoF' in done.stdout and done.stderr.count('\n') == 1
