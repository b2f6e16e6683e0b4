"""All Jacobians of forward dynamics against Pinocchio's, each judged by finite differences of the dynamics.

Two machines: the crane, whose loops Pinocchio differentiates with `computeConstraintDynamicsDerivatives` (after
`constraintDynamics`, which it asks for), and the crane with its pins taken out, a plain tree of eight joints, for
`computeABADerivatives`. Ours also includes forward dynamics. Pinocchio's answer for the crane is in the joints of the
tree; that it still has to be carried to the actuators is not timed.
"""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pinocchio as pin

import psdyn_ros
from bench import machines, ours, pinocchio_peer
from bench.comparison import OURS, Row, native, python, same
from bench.derivatives import forward_derivatives_loop
from bench.native import Unavailable
from bench.timing import Case, interleave
from psdyn_ros.api.analysis.derivatives import forward_dynamics_derivatives

STATES = 64
# fourth-order central differences: steps in x [m, rad], xd [m/s, rad/s] and f [N, N m]
STEPS = 2e-4, 1e-2, 10.0
CONSTRAINED = 'Pinocchio computeConstraintDynamicsDerivatives'
TREE = 'Pinocchio computeABADerivatives'
ACCURATE = 1e-8  # what the differences are good for
NAMES = 'dxdd/dx', 'dxdd/dxd', 'dxdd/df'


def compare(rounds, slot):
    """Results as records, machine by machine and mode by mode, ours first."""
    return [record for part in (_crane, _tree) for record in _measured(*part(), rounds, slot)]


def _crane():
    machine = machines.crane()
    s = machines.random_states(machine, STATES)
    # a rate v of the tree is G(x) xd, each of one actuator, and the drift g = dv/dx xd
    v_x = machines.close(machine, s.x, s.xd, np.zeros_like(s.xd))[2] / s.xd[:, machine.owner]

    def of_actuators(jacobians):
        by_q, by_v, by_tau = (jacobians[:, k][:, machine.actuated] for k in range(3))
        x, xd = (np.zeros((STATES, machine.dof, machine.dof)) for _ in range(2))
        for k, owner in enumerate(machine.owner):
            x[:, :, owner] += by_q[:, :, k] * s.G[:, None, k] + by_v[:, :, k] * v_x[:, None, k]
            xd[:, :, owner] += by_v[:, :, k] * s.G[:, None, k]
        return np.stack((x, xd, by_tau[:, :, machine.actuated]), 1)

    def dynamics(x, xd, f):
        q, v, a, G = machines.close(machine, x, xd, np.zeros_like(xd))
        moved = machines.States(x, xd, xd, f, q, v, a, G, f)
        return pinocchio_peer.reference(machine, moved)['forward']

    state, on_tree = (s.x, s.xd, s.f), (s.q, s.v, s.tau)
    peer = pinocchio_peer.FromPython(machine).constraint_derivatives
    rows = [*_ours(psdyn_ros.load(machine.xml), state), python('', CONSTRAINED, peer, on_tree, of_actuators),
            *_native(machine, CONSTRAINED, 'constraint_derivatives', on_tree, of_actuators)]
    return 'crane', rows, _differences(dynamics, *state)


def _tree():
    with_pins = machines.crane()
    robot = ElementTree.fromstring(with_pins.xml)
    for closure in robot.findall('constraint'):
        robot.remove(closure)
    names = list(with_pins.tree.names)[1:]
    xml = ElementTree.tostring(robot, 'unicode')
    manipulator = psdyn_ros.load(xml, actuated=names)
    tree = with_pins.tree
    machine = machines.Machine('tree', xml, tree, (), (), np.arange(tree.nv), np.arange(tree.nv))
    s = machines.random_states(with_pins, STATES)
    random, data = np.random.default_rng(2), tree.createData()
    tau = np.array([pin.rnea(tree, data, q, v, random.uniform(-0.5, 0.5, tree.nv)) for q, v in zip(s.q, s.v)])
    state = s.q, s.v, tau

    def symmetric(jacobians):
        minv = np.triu(jacobians[:, 2])
        jacobians[:, 2] = minv + np.swapaxes(np.triu(minv, 1), 1, 2)
        return jacobians

    def dynamics(q, v, tau):
        return np.array([pin.aba(tree, data, *row) for row in zip(q, v, tau)])

    peer = pinocchio_peer.FromPython(machine).aba_derivatives
    rows = [*_ours(manipulator, state), python('', TREE, peer, state, symmetric),
            *_native(machine, TREE, 'aba_derivatives', state, same)]
    return 'its tree, without pins', rows, _differences(dynamics, *state)


def _ours(manipulator, state):
    n = manipulator.dof
    D, by_f = np.empty((STATES, 3, n, n)), np.empty((STATES, n, n))

    def run():
        ours.none_failed(forward_derivatives_loop(*manipulator.derivative_buffers, *state, D, by_f))

    def answer():
        run()
        return np.stack((D[:, 0], D[:, 1], by_f), axis=1)

    def call(x, xd, f):
        return forward_dynamics_derivatives(manipulator, x, xd, f)

    return [Row('', 'native', OURS, run, answer), python('', OURS, call, state)]


def _native(machine, engine, name, state, of_answer):
    """The row of a native loop, none where it cannot be built here."""
    try:
        function = getattr(pinocchio_peer.Native(machine), name)
    except Unavailable:
        return []
    nv = state[0].shape[1]
    return [native('', engine, function, state, lambda columns: of_answer(np.swapaxes(columns, 2, 3)), (3, nv, nv))]


def _differences(dynamics, *state):
    """d xdd/dx, d xdd/dxd, d xdd/df (N, 3, n, n) by the five-point rule."""
    n = state[0].shape[1]
    out = np.empty((STATES, 3, n, n))
    for which, h in enumerate(STEPS):
        for column in range(n):
            total = 0.0
            for weight, step in ((8.0, h), (-8.0, -h), (-1.0, 2 * h), (1.0, -2 * h)):
                moved = [each.copy() for each in state]
                moved[which][:, column] += step
                total = total + weight * dynamics(*moved)
            out[:, which, :, column] = total / (12.0 * h)
    return out


def _measured(name, rows, reference, rounds, slot):
    records = []
    for mode in ('native', 'python'):
        group = [row for row in rows if row.mode == mode]
        answers = {row.engine: row.answer() for row in group}
        times = interleave([Case(row.engine, row.run, STATES) for row in group], rounds, slot)
        for row in group:
            mine, errors = times[row.engine], _errors(answers[row.engine], reference)
            records.append({
                'machine': name, 'mode': mode, 'engine': row.engine, 'median_us': mine.median, 'best_us': mine.best,
                'ratio': mine.ratio_to(times[OURS]), **errors})
    return records


def _errors(answer, reference):
    """Largest error of each Jacobian over all states, and the columns with errors beyond those of differences."""
    scale = 1.0 + np.abs(reference).max(axis=(0, 2, 3))
    errors = np.abs(answer - reference).max(axis=(0, 2)) / scale[:, None]
    wrong = [f'column {column + 1} of {NAMES[which]} WRONG' for which, column in np.argwhere(errors > ACCURATE)]
    return {'error': float(errors.max()), 'columns': errors.tolist(), 'verdict': ', '.join(wrong) or 'exact'}
