"""All Jacobians of forward and of inverse dynamics: `python -m bench.derivatives` prints times beside forward dynamics.

`native` is a compiled loop around the kernels; the ratios to plain forward dynamics are of one interleaved run.
"""

import numpy as np

from bench import machines, ours
from bench.timing import Case, each_state, interleave
from psdyn_ros.api.analysis.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from psdyn_ros.kernels.derivatives.body import BODY
from psdyn_ros.kernels.derivatives.recursion import forward_derivatives, inverse_derivatives
from psdyn_ros.kernels.runtime.compiler import kernel


@kernel
def forward_derivatives_loop(mods, work, bodies, env, x, xd, f, xdd, by_x, by_xd, by_f, scratch):
    failures = 0
    for k in range(x.shape[0]):
        failures += forward_derivatives(
            mods, work, bodies, env, x[k], xd[k], f[k], xdd[k], by_x[k], by_xd[k], by_f[k], scratch) != 0
    return failures


@kernel
def inverse_derivatives_loop(mods, bodies, env, x, xd, xdd, f, by_x, by_xd, by_xdd):
    failures = 0
    for k in range(x.shape[0]):
        failures += inverse_derivatives(
            mods, bodies, env, x[k], xd[k], xdd[k], f[k], by_x[k], by_xd[k], by_xdd[k]) != 0
    return failures


def derivatives(effort):
    """Derivatives of forward and inverse dynamics, all three Jacobians each."""
    return [record for machine in (machines.crane(), *(machines.chain(n) for n in (1, 4, 16)))
            for record in _compare(machine, effort)]


def _compare(machine, effort):
    states = machines.random_states(machine, 256)
    engine = ours.Engine(machine)
    m, n = engine.manipulator, engine.manipulator.dof
    mods, work, env = m.records
    bodies, out, scratch = np.zeros(3 * n, BODY), np.empty_like(states.x), np.empty(n)
    jacobians = np.empty((3, len(states.x), n, n))

    def forward():
        assert forward_derivatives_loop(
            mods, work, bodies, env, states.x, states.xd, states.f, out, *jacobians, scratch) == 0

    def inverse():
        assert inverse_derivatives_loop(mods, bodies, env, states.x, states.xd, states.xdd, out, *jacobians) == 0

    few = slice(0, 32)
    tasks = {
        'forward dynamics, native': lambda: engine.native_forward(states.x, states.xd, states.f, out),
        'its derivatives, native': forward,
        'inverse dynamics, native': lambda: engine.native_inverse(states.x, states.xd, states.xdd, out),
        'their derivatives, native': inverse,
    }
    calls = {
        'derivatives of forward dynamics, Python': (forward_dynamics_derivatives, states.f),
        'derivatives of inverse dynamics, Python': (inverse_dynamics_derivatives, states.xdd),
    }
    cases = [Case(name, run, len(states.x)) for name, run in tasks.items()]
    cases += [
        Case(name, each_state(lambda *state, call=call: call(m, *state), states.x[few], states.xd[few], last[few]), 32)
        for name, (call, last) in calls.items()]
    times = interleave(cases, effort.rounds, effort.slot)
    plain = times['forward dynamics, native']
    return [{'machine': m.name, 'dof': n, 'task': name, 'median_us': value.median, 'best_us': value.best,
             'ratio_to_forward': value.ratio_to(plain)} for name, value in times.items()]


if __name__ == '__main__':
    from bench.suites import FULL

    for record in derivatives(FULL):
        print('{machine:16s} {dof:3d} DoF  {task:40s} {median_us:8.3f} us (best {best_us:8.3f})  '
              '{ratio_to_forward:6.2f} x forward'.format(**record))
