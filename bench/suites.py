"""The parts of the benchmark; each returns plain data for the tables, the JSON file and the plots."""

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace

import numpy as np

import psdyn_ros
from bench import derivatives as own_derivatives
from bench import general as general_loops
from bench import general_machines, machines, ours
from bench import hydraulics as hydraulic_crane
from bench import jacobians as peer_jacobians
from bench.comparison import compare
from bench.timing import Case, interleave

STATES, BATCH = 256, 20000      # different states of a batch; a batch repeats them
LONGEST = 500      # loops of the longest chain that is read from a URDF; longer ones repeat its records


def crane(effort):
    """4-DoF crane, all engines."""
    return [_record(result) for result in compare(machines.crane(), 1024, effort.rounds, effort.slot)]


def chains(effort):
    """Chains of loop modules, all engines."""
    return [
        {'loops': loops, **_record(result)}
        for loops in effort.loops
        for result in compare(machines.chain(loops), _states(loops), _fewer(effort), effort.slot)]


def batch(effort):
    """Batch of 20,000 states of each machine in one call, against one core's native loop."""
    crane = machines.crane()
    engines = {'crane': (ours.Engine(psdyn_ros.load(crane.xml)), machines.random_states(crane, STATES))}
    for name in general_loops.NAMES:
        machine = general_machines.read(name)
        engines[name] = ours.Engine(machine.manipulator), general_machines.random_states(machine, STATES)
    records = []
    for name, (engine, states) in engines.items():
        x, xd, xdd, f = (np.resize(rows, (BATCH, rows.shape[1]))
                         for rows in (states.x, states.xd, states.xdd, states.f))
        answers = np.empty_like(xd)
        tasks = {'forward': (engine.native_forward, engine.forward, (x, xd, f)),
                 'inverse': (engine.native_inverse, engine.inverse, (x, xd, xdd))}
        for task, (loop, call, inputs) in tasks.items():
            cases = [Case('native', lambda run=loop, inputs=inputs, out=answers: run(*inputs, out), BATCH),
                     Case('batch', lambda call=call, inputs=inputs: call(*inputs), BATCH)]
            times = interleave(cases, _fewer(effort), effort.slot)
            records.append({
                'machine': name, 'task': task, 'native_us': times['native'].median, 'batch_us': times['batch'].median,
                'ratio': times['batch'].ratio_to(times['native']), 'cores': len(os.sched_getaffinity(0)),
                'load': os.getloadavg()[0]})
    return records


def cost(effort):
    """Cost of a loop module as chains grow, native loop."""
    tasks = {'forward': [], 'inverse': []}
    for loops in effort.our_loops:
        machine = machines.chain(min(loops, LONGEST))
        states = machines.random_states(machine, _states(loops))
        engine = ours.Engine(psdyn_ros.load(machine.xml))
        engine.lengthen(loops)
        x, xd, xdd, f = (np.resize(column.T, (loops, len(states.x))).T.copy()
                         for column in (states.x, states.xd, states.xdd, states.f))
        for task, loop, last in (('forward', engine.native_forward, f), ('inverse', engine.native_inverse, xdd)):
            inputs = (x, xd, last, np.empty_like(x))
            tasks[task].append(Case(loops, lambda loop=loop, inputs=inputs: loop(*inputs), len(x)))
    records = []
    for task, cases in tasks.items():
        times = interleave(cases, effort.rounds, effort.slot)
        per_module = {loops: times[loops].rounds / loops for loops in effort.our_loops}
        records += [
            {'task': task, 'loops': loops, 'us': times[loops].median,
             'us_per_module': float(np.median(values)),
             'against_8': float(np.median(values / per_module[8]))}
            for loops, values in per_module.items()]
    return records


def general(effort):
    """Machines with loops of any kind, against Pinocchio; its constraintDynamics is given closed joint positions."""
    return [{'machine': name, **_record(result)} for name in general_loops.NAMES
            for result in general_loops.compare(name, _fewer(effort), effort.slot)]


def modules(effort):
    """Cost of a module in chains of cylinder triangles (closed form), four-bars and six-links, native loop."""
    return general_loops.modules(effort.modules, _fewer(effort), effort.slot)


def jacobians(effort):
    """Derivatives of forward dynamics, all three Jacobians, against Pinocchio's; both judged by finite differences."""
    return peer_jacobians.compare(effort.rounds, effort.slot)


def derivatives(effort):
    """All Jacobians of forward and of inverse dynamics, ours, beside forward dynamics."""
    return own_derivatives.derivatives(replace(effort, rounds=_fewer(effort)))


def startup(effort):
    """Import, load and first calls of dynamics or of their derivatives, in fresh processes one after another [s]."""
    if not effort.cold:
        return [{'cache': 'warm', **record} for record in _first_calls(os.environ)]
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, PSDYN_CACHE_DIR=cache)
        return [{'cache': state, **record} for state in ('cold', 'warm') for record in _first_calls(environment)]


# In this order: kernels that two groups share are compiled for the first.
_GROUPS = {'closed form': ('hiab_xs031', 'dynamics'), 'any loops': ('five_bar', 'dynamics'),
           'derivatives, closed form': ('hiab_xs031', 'derivatives'),
           'derivatives, any loops': ('five_bar', 'derivatives')}
_FIRST_CALLS = """
import sys, time
start = time.perf_counter()
import numpy as np
import psdyn_ros
from psdyn_ros.api.analysis.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
imported = time.perf_counter()
m = psdyn_ros.load(sys.argv[1])
loaded = time.perf_counter()
x, zero, f = m.initial_position, np.zeros(m.dof), np.zeros(len(m.actuators))
if sys.argv[2] == 'dynamics':
    m.forward_dynamics(x, zero, f)
    m.inverse_dynamics(x, zero, zero)
else:
    forward_dynamics_derivatives(m, x, zero, f)
    inverse_dynamics_derivatives(m, x, zero, zero)
print(imported - start, loaded - imported, time.perf_counter() - loaded)
"""


def _first_calls(environment):
    records = []
    for group, (name, calls) in _GROUPS.items():
        command = [sys.executable, '-c', _FIRST_CALLS, str(machines.ROOT / 'urdf' / f'{name}.urdf'), calls]
        said = subprocess.check_output(command, cwd=machines.ROOT, env=environment, text=True)
        times = [float(word) for word in said.split()[-3:]]
        records.append({'kernels': group, **dict(zip(('import_s', 'load_s', 'first_calls_s'), times)),
                        'total_s': sum(times)})
    return records


def hydraulics(effort):
    """The crane on valves: cost of a step of 1 ms and of its parts, and a work cycle against scipy and Runge-Kutta."""
    return {'cost': hydraulic_crane.cost(effort.rounds, effort.slot),
            'cycle': hydraulic_crane.cycle(5 if effort.cold else 1)}


def closure(effort):
    """Closing error of the crane's pins over the stroke: our joint positions, Pinocchio's kinematics."""
    machine = machines.crane()
    tree = machine.tree
    low, high = (limit[machine.actuated] for limit in (tree.lowerPositionLimit, tree.upperPositionLimit))
    strokes = low + (high - low) * np.linspace(0, 1, effort.strokes)[:, None]
    positions = ours.Engine(psdyn_ros.load(machine.xml)).tree_positions(strokes, tree)
    return {'strokes': effort.strokes, 'largest_m': machines.closing_error(machine, positions)}


SUITES = {suite.__name__: suite for suite in (
    crane, chains, batch, cost, general, modules, jacobians, derivatives, hydraulics, startup, closure)}


def _fewer(effort):
    return max(5, effort.rounds // 3)


def _states(loops):
    """Enough states to hide the call from Python into a loop, few enough to stay in the cache."""
    return max(8, 1024 // loops)


def _record(result):
    return {**asdict(result), 'verdict': result.verdict}
