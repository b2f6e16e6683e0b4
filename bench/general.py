"""Machines with loops of any kind against Pinocchio, and what one more loop module costs."""

import numpy as np

import psdyn_ros
from bench import general_machines, machines, ours, pinocchio_peer
from bench.comparison import OURS, Result, Row, measured, native, python, relative_error
from bench.native import Unavailable
from bench.timing import Case, interleave

BATCH = 'psdyn_ros, one call for all states'
HINTED = 'psdyn_ros, told where its loops are closed'
DYNAMICS = 'Pinocchio constraintDynamics'
LCABA = 'Pinocchio lcaba'
RATES = 'Pinocchio rates by K + RNEA'
STATES = 256
VERIFIED = 1  # states of a chain: with 320 joints dense numpy takes seconds for each
TRIANGLE, FOUR_BAR, SIX_LINK = 'cylinder triangles', 'four-bars', 'six-links'  # the kinds of chains
NAMES = 'five_bar', 'pkm_2pur2rpu', 'excavator', 'delta_robot', 'stewart_platform', 'rssr'


def compare(name, rounds, slot):
    """Verify and time every engine on one machine of urdf/; results by task and mode, ours first."""
    machine = general_machines.read(name)
    states = general_machines.random_states(machine, STATES)
    rows, missing = _rows(machine, states)
    return measured(rows, _reference(machine, states), rounds, slot) + missing


def _reference(machine, s, few=None):
    """Answers of dense numpy, for the first `few` states."""
    dense = pinocchio_peer.AnyLoops(machine)
    return {'forward': np.array([dense.forward(*row) for row in zip(s.q[:few], s.xd, s.tau)]),
            'inverse': np.array([dense.inverse(*row) for row in zip(s.q[:few], s.xd, s.xdd)])}


def _rows(machine, s):
    def of_coordinates(acceleration):
        return acceleration[:, machine.coordinates]

    own, tree, coordinates = ours.Engine(machine.manipulator), (s.q, s.v, s.tau), (s.q, s.xd, s.xdd)
    pinocchio = pinocchio_peer.FromPython(machine)
    hinted = ours.HintedEngine(machine.manipulator)
    from_hints = s.x, s.xd, s.f, hinted.closed(s.x)
    positions = hinted.positions(s.x)
    rows = [
        native('forward', OURS, own.native_forward, (s.x, s.xd, s.f)),
        native('forward', HINTED, hinted.native_forward, from_hints),
        native('inverse', OURS, own.native_inverse, (s.x, s.xd, s.xdd)),
        python('forward', OURS, own.forward, (s.x, s.xd, s.f)),
        python('forward', HINTED, hinted.forward_from, (s.x, s.xd, s.f, positions)),
        _batch('forward', own.forward, (s.x, s.xd, s.f)),
        python('forward', DYNAMICS, pinocchio.constraint_dynamics, tree, of_coordinates),
        python('forward', LCABA, pinocchio.lcaba, tree, of_coordinates),
        python('inverse', OURS, own.inverse, (s.x, s.xd, s.xdd)),
        python('inverse', HINTED, hinted.inverse_from, (s.x, s.xd, s.xdd, positions)),
        _batch('inverse', own.inverse, (s.x, s.xd, s.xdd)),
    ]
    try:
        n = pinocchio_peer.Native(machine)
    except Unavailable as reason:
        return rows, [Result('forward', 'native', 'Pinocchio', note=str(reason))]
    return rows + [
        native('forward', DYNAMICS, n.constraint_dynamics, tree, of_coordinates),
        native('forward', LCABA, n.lcaba, tree, of_coordinates),
        native('inverse', RATES, n.closed_inverse, coordinates, shape=(machine.dof,)),
    ], []


def _batch(task, function, inputs):
    def call():
        return function(*inputs)

    return Row(task, 'python', BATCH, call, call)


def modules(sizes, rounds, slot):
    """Time per module of forward and inverse dynamics in chains of three kinds of loops, native loops.

    All sizes and kinds are timed in one interleaved run.
    """
    cases, errors = [], {}
    for kind in (TRIANGLE, FOUR_BAR, SIX_LINK):
        for count in sizes:
            for key, run, states, error in _chain(kind, count):
                cases.append(Case(key, run, states))
                errors[key] = error
    times = interleave(cases, rounds, slot)
    records = []
    for (kind, task, engine, count), value in times.items():
        per_module = value.rounds / count
        first = times[kind, task, engine, sizes[1]].rounds / sizes[1]
        records.append({
            'kind': kind, 'task': task, 'engine': engine, 'modules': count, 'median_us': value.median,
            'us_per_module': float(np.median(per_module)), 'against': sizes[1],
            'growth': float(np.median(per_module / first)),
            'ratio': value.ratio_to(times[kind, task, OURS, count]),
            'error': errors[kind, task, engine, count]})
    return records


def _chain(kind, count):
    """(key, run, states, error) for the engines that can be run on one chain; ours first."""
    states = max(8, 256 // count)
    if kind == TRIANGLE:
        machine = machines.chain(count)
        s = machines.random_states(machine, states)
        own, columns = ours.Engine(psdyn_ros.load(machine.xml)), machine.actuated
        reference = pinocchio_peer.reference(machine, s)
    else:
        machine = general_machines.chain(
            general_machines.FOUR_BAR if kind == FOUR_BAR else general_machines.SIX_LINK, count)
        s = general_machines.random_states(machine, states)
        own, columns = ours.Engine(machine.manipulator), machine.coordinates
        reference = _reference(machine, s, VERIFIED)
    rows = [native('forward', OURS, own.native_forward, (s.x, s.xd, s.f)),
            native('inverse', OURS, own.native_inverse, (s.x, s.xd, s.xdd))]
    try:
        n = pinocchio_peer.Native(machine)
        rows += [native('forward', engine, function, (s.q, s.v, s.tau), lambda a: a[:, columns])
                 for engine, function in ((DYNAMICS, n.constraint_dynamics), (LCABA, n.lcaba))]
    except Unavailable:
        pass
    return [((kind, row.task, row.engine, count), row.run, states,
             relative_error(row.answer()[:VERIFIED], reference[row.task][:VERIFIED])) for row in rows]
