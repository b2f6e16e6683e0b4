"""All engines on one machine: who computes what, the check of each answer, and the interleaved timing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import psdyn_ros
from bench import machines, mujoco_peer, ours, pinocchio_peer
from bench.native import Unavailable
from bench.timing import Case, each_state, interleave

OURS = 'psdyn_ros'
EXACT, CLOSE = 1e-9, 1e-2  # errors up to here are called exact, and close; larger ones wrong


@dataclass(frozen=True)
class Row:
    """One engine in one kind of call; `task` is forward or inverse, `mode` native or python."""

    task: str
    mode: str
    engine: str
    run: Callable[[], object]
    answer: Callable[[], np.ndarray]  # (N, dof), as ours


@dataclass(frozen=True)
class Result:
    """What a row gave; `note` says why there is nothing else."""

    task: str
    mode: str
    engine: str
    error: float | None = None  # ours: against dense numpy on Pinocchio's tree; the others: against ours
    median_us: float | None = None
    best_us: float | None = None
    ratio: float | None = None  # times as long as ours: the median over the rounds
    note: str = ''

    @property
    def verdict(self):
        if self.error is None:
            return ''
        return 'exact' if self.error <= EXACT else 'close' if self.error <= CLOSE else 'WRONG'


def compare(machine, count, rounds, slot):
    """Verify and time every engine on the same states; results by task and mode, ours first."""
    states = machines.random_states(machine, count)
    rows, missing = _rows(machine, states)
    return measured(rows, pinocchio_peer.reference(machine, states), rounds, slot) + missing


def relative_error(answer, reference):
    """The project's measure; an answer that is not a number counts as infinitely wrong."""
    if not np.isfinite(answer).all():
        return float('inf')
    return float(np.abs(answer - reference).max() / (1 + np.abs(reference).max()))


def measured(rows, reference, rounds, slot):
    """Results of rows; each has the answer of ours verified by `reference[task]` and is verified by ours."""
    results = []
    for task, mode in dict.fromkeys((row.task, row.mode) for row in rows):
        group = [row for row in rows if (row.task, row.mode) == (task, mode)]
        answers = {row.engine: row.answer() for row in group}
        times = interleave([Case(row.engine, row.run, len(answers[row.engine])) for row in group], rounds, slot)
        for row in group:
            judge = reference[task] if row.engine == OURS else answers[OURS]
            mine = times[row.engine]
            results.append(Result(
                task, mode, row.engine, relative_error(answers[row.engine], judge),
                mine.median, mine.best, mine.ratio_to(times[OURS])))
    return results


def _rows(machine, s):
    """Every row that can be run here, and the results that say why others cannot."""
    def of_actuators(acceleration):
        return acceleration[:, machine.actuated]

    def projected(tau):
        return machine.project(tau, s.G)

    actuators, tree = (s.x, s.xd, s.f), (s.q, s.v, s.tau)
    own = ours.Engine(psdyn_ros.load(machine.xml))
    rows = [
        native('forward', OURS, own.native_forward, actuators),
        native('inverse', OURS, own.native_inverse, (s.x, s.xd, s.xdd)),
        python('forward', OURS, own.forward, actuators),
        python('inverse', OURS, own.inverse, (s.x, s.xd, s.xdd)),
    ]
    pinocchio, mujoco = pinocchio_peer.FromPython(machine), mujoco_peer.Engine(machine)
    rows += [
        python('forward', 'Pinocchio constraintDynamics', pinocchio.constraint_dynamics, tree, of_actuators),
        python('forward', 'Pinocchio lcaba', pinocchio.lcaba, tree, of_actuators),
        python('forward', 'MuJoCo mj_forward', mujoco.forward, tree, of_actuators),
        python('inverse', 'Pinocchio closure + RNEA', pinocchio.inverse, (s.x, s.xd, s.xdd)),
        python('inverse', 'MuJoCo mj_inverse (open tree)', mujoco.inverse, (s.q, s.v, s.a), projected),
    ]
    missing = []
    try:
        n = pinocchio_peer.Native(machine)
        rows += [
            native('forward', 'Pinocchio constraintDynamics', n.constraint_dynamics, tree, of_actuators),
            native('forward', 'Pinocchio lcaba', n.lcaba, tree, of_actuators),
            native('forward', 'Pinocchio closure + CRBA', n.projected_forward, actuators),
            native('inverse', 'Pinocchio closure + RNEA', n.projected_inverse, (s.x, s.xd, s.xdd)),
        ]
    except Unavailable as reason:
        missing.append(Result('forward', 'native', 'Pinocchio', note=str(reason)))
    try:
        n = mujoco_peer.Native(machine)
        rows += [
            native('forward', 'MuJoCo mj_forward', n.forward, tree, of_actuators),
            native('inverse', 'MuJoCo mj_inverse (open tree)', n.inverse, (s.q, s.v, s.a), projected),
        ]
    except Unavailable as reason:
        missing.append(Result('forward', 'native', 'MuJoCo', note=str(reason)))
    return rows, missing


def same(answer):
    return answer


def native(task, engine, function, inputs, of_answer=same, shape=None):
    """The row of `function(*inputs, answers)`; answers are like the first input, or (N, *shape)."""
    answers = np.empty_like(inputs[0]) if shape is None else np.empty((len(inputs[0]), *shape))

    def run():
        function(*inputs, answers)

    def answer():
        run()
        return of_answer(answers).copy()

    return Row(task, 'native', engine, run, answer)


def python(task, engine, function, inputs, of_answer=same):
    """The row of a call for each state."""
    def answer():
        return of_answer(np.array([np.array(function(*row)) for row in zip(*inputs)]))

    return Row(task, 'python', engine, each_state(function, *inputs), answer)
