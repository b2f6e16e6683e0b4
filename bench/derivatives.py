"""All Jacobians of forward and of inverse dynamics: `python -m bench.derivatives` prints times beside forward dynamics.

`native` is a compiled loop around the kernels; the ratios to plain forward dynamics are of one interleaved run.
"""

import numpy as np

import psdyn_ros
from bench import machines, ours
from bench.effort import FULL
from bench.timing import Case, each_state, interleave
from psdyn_ros.api.analysis.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from psdyn_ros.kernels.derivatives.entry import forward_derivatives, inverse_derivatives
from psdyn_ros.kernels.runtime.compiler import entry


@entry
def forward_derivatives_loop(tree, loops, scratch, x, xd, f, D, by_f):
    failures = 0
    for k in range(x.shape[0]):
        failures += forward_derivatives(tree, loops, scratch, x[k], xd[k], f[k], D[k], by_f[k]) != 0
    return failures


@entry
def inverse_derivatives_loop(tree, loops, scratch, x, xd, xdd, f, D):
    failures = 0
    for k in range(x.shape[0]):
        failures += inverse_derivatives(tree, loops, scratch, x[k], xd[k], xdd[k], f[k], D[k]) != 0
    return failures


def derivatives(effort):
    """Derivatives of forward and inverse dynamics, all three Jacobians each."""
    return [record for machine in (machines.crane(), *(machines.chain(n) for n in (1, 4, 16)))
            for record in _compare(machine, effort)]


def _compare(machine, effort):
    states = machines.random_states(machine, 256)
    engine = ours.Engine(psdyn_ros.load(machine.xml))
    m, n = engine.manipulator, engine.manipulator.dof
    out, D, by_f = np.empty_like(states.x), np.empty((len(states.x), 3, n, n)), np.empty((len(states.x), n, n))

    def forward():
        ours.none_failed(forward_derivatives_loop(*m.derivative_buffers, states.x, states.xd, states.f, D, by_f))

    def inverse():
        ours.none_failed(inverse_derivatives_loop(*m.derivative_buffers, states.x, states.xd, states.xdd, out, D))

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
    for record in derivatives(FULL):
        print('{machine:16s} {dof:3d} DoF  {task:40s} {median_us:8.3f} us (best {best_us:8.3f})  '
              '{ratio_to_forward:6.2f} x forward'.format(**record))
