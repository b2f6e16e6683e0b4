"""Hints of where loops are closed: they save time, and never change an answer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import seeded_generator, thorough
from support.comparison import error
from support.general_machines import GeneralState, general_machine
from support.loop_kinds import KINDS
from support.machines import builder_of, load
from support.parallel_robots import delta_robot, stewart_platform
from support.paths import ROOT, TESTS

from psdyn_ros import NonFiniteError, ShapeError, UnknownNameError
from psdyn_ros.kernels.loops.closure import MAX_CERTAIN_JUMP, close_machine
from psdyn_ros.kernels.runtime.compiler import compiled

CLUSTERED = [kind for kind in KINDS if kind not in ('turn', 'slide', 'spin', 'triangle')]
SPATIAL = [kind for kind in CLUSTERED if kind.startswith(('spatial', 'r'))] + ['parallel', 'slider_crank']
ROUNDING = 1e-12
STATES = 25 if compiled else 3


def drawn(rng, kind):
    """Draw a machine of a kind of module, or of several."""
    machine = general_machine(rng, [kind] if isinstance(kind, str) else kind)
    return load(machine, coordinates=None if machine.coordinates == machine.actuators else machine.coordinates)


def closed(handle, x, xd, hint=None):
    """Return (status, {name: values}) of closing, from a hint where one is given."""
    loops = handle.arrays.loops
    if hint is not None:
        loops.hint[:] = hint
    status = close_machine(handle.tree, handle.loops, x, xd)
    return status, {'q': loops.work['q'].copy(), 'qd': loops.work['qd'].copy(), 'g': loops.work['g'].copy(),
                    'G': loops.G.copy()}


def handles(m):
    """Return a handle without hints, and one that starts from the last closed position."""
    plain, hinted = m.handle(), m.handle()
    hinted.start_from_last()
    return plain, hinted


def check_same(plain, hinted, x, xd, hint=None):
    """Compare closing with and without a hint; return the status and the closed q."""
    status, expected = closed(plain, x, xd)
    other, found = closed(hinted, x, xd, hint)
    assert other == status
    if status == 0:
        for name, values in expected.items():
            # derivatives lose the digits that the conditioning of the pose costs
            bound = ROUNDING if name == 'q' else 1e-11 * (1.0 + abs(values).max())
            assert abs(found[name] - values).max() < bound, name
    return status, expected['q']


def other_modes(m, x, q, rng):
    """Return closed positions of cluster 0 at x in other assembly modes, as Newton's method finds them."""
    builder, found = builder_of(m), []
    builder.clusters['orientation_checks'], part = 0, builder.slice(0)
    dependent = builder.cluster_joints['independent'][part] < 0
    for _ in range(4 * STATES):
        start = q[part] + np.where(dependent, rng.uniform(-2.0, 2.0, part.stop - part.start), 0.0)
        status, other, *_ = builder.close(0, start)
        if status == 0 and abs(other - q[part]).max() > 1e-6:
            found.append(np.concatenate((other, q[part.stop:])))
    return found


@pytest.mark.parametrize('kind', thorough(CLUSTERED, ('five_bar', 'six_link', 'rusr', 'parallel')))
def test_hints_of_any_kind_change_nothing(kind, rng):
    """Those of the step before, rough and wrong ones, nonsense, and other assembly modes."""
    m = drawn(rng, kind)
    plain, hinted = handles(m)
    x, closing = m.initial_position, 0
    for _ in range(STATES):
        x = x + rng.uniform(-0.05, 0.05, m.nx)
        xd = rng.normal(size=m.dof)
        status, q = check_same(plain, hinted, x, xd)
        if status != 0:
            x = m.initial_position
            continue
        closing += 1
        check_same(plain, hinted, x, xd, q)
        for size in (1e-9, 1e-4, 0.05, 0.5, 3.0, 1e3):
            check_same(plain, hinted, x, xd, q + rng.uniform(-size, size, q.shape))
        check_same(plain, hinted, x, xd, q + 2.0 * np.pi * rng.integers(-2, 3, q.shape))
        for nonsense in (np.nan, np.inf, -np.inf, 1e300):
            check_same(plain, hinted, x, xd, nonsense)
            check_same(plain, hinted, x, xd, np.where(rng.random(q.shape) < 0.3, nonsense, q))
        for other in other_modes(m, x, q, rng)[:3]:
            check_same(plain, hinted, x, xd, other)
    assert closing > STATES // 3


@pytest.mark.long
@pytest.mark.parametrize('kind', thorough(SPATIAL, ('spatial_universal', 'parallel')))
def test_hinted_paths_past_singular_poses(kind, rng):
    """Far over the range and back: the same position or the same error at every step, whatever was closed before."""
    m = drawn(rng, kind)
    plain, hinted = handles(m)
    direction, seen = rng.normal(size=m.nx), set()
    direction /= np.linalg.norm(direction)
    for distance in np.concatenate((np.linspace(0, 2.5, 8 * STATES), np.linspace(2.5, -2.5, 8 * STATES))):
        status, _ = check_same(plain, hinted, m.initial_position + distance * direction, rng.normal(size=m.dof))
        seen.add(status)
    assert 0 in seen


@pytest.mark.long
@pytest.mark.skipif(not compiled, reason='loading takes minutes')
@pytest.mark.parametrize('robot', thorough([delta_robot, stewart_platform], 1))
def test_hints_of_parallel_robots_change_nothing(robot, rng):
    m = load(robot())
    plain, hinted = handles(m)
    for _ in range(100):
        x, xd = m.initial_position + rng.uniform(-0.15, 0.15, m.nx), rng.normal(size=m.dof)
        status, q = check_same(plain, hinted, x, xd)
        assert status == 0
        check_same(plain, hinted, x, xd, q)
        check_same(plain, hinted, x + 1e-3, xd)
        check_same(plain, hinted, x, xd, q + rng.uniform(-0.1, 0.1, q.shape))
        for other in other_modes(m, x, q, rng)[:1]:
            check_same(plain, hinted, x, xd, other)


@pytest.mark.parametrize('kind', thorough(SPATIAL, ('parallel',)))
def test_newton_finds_the_root_from_convergence_distances(kind, rng):
    """From anywhere within the distance and the jump up to which a hint is used, at tabulated poses."""
    m = drawn(rng, kind)
    builder, loops = builder_of(m), m.machine.loops
    c, cluster_joints = loops.clusters[0], loops.cluster_joints
    order = sorted(np.flatnonzero(cluster_joints['independent'] < 0), key=lambda j: cluster_joints['column'][j])
    for pose in range(0, int(c['poses']), max(1, int(c['poses']) // STATES)):
        q = loops.poses[pose]
        diagonal = abs(np.diag(np.linalg.qr(builder.jacobian(0, q)[1][:, order], 'r')))
        trusted = loops.trust[pose] * diagonal.min() / diagonal.max()
        assert trusted > 0.0
        away = rng.normal(size=len(order))
        start = q.copy()
        start[order] += 0.999 * away * min(trusted / np.linalg.norm(away), MAX_CERTAIN_JUMP / abs(away).max())
        status, found, *_ = builder.close(0, start)
        assert status == 0
        assert abs(found - q).max() < 1e-9


@pytest.mark.long
def test_hints_on_the_other_branch_next_to_singular_poses(rng):
    """Where two solutions meet, closer to each other than to what the table predicts."""
    others = 0
    for kind in SPATIAL:
        m = drawn(rng, kind)
        for _ in range(8):
            others += check_next_to_dead_point(m, rng.normal(size=m.nx))
    assert others > 20


def check_next_to_dead_point(m, direction):
    """Hint at the second solution of cluster 0 on the way to where none is left; return how often there was one."""
    (plain, hinted), builder, still, others = handles(m), builder_of(m), np.zeros(m.dof), 0
    inside, outside = m.initial_position, m.initial_position + 4.0 * direction / np.linalg.norm(direction)
    if closed(plain, outside, still)[0] == 0:
        return 0
    for _ in range(40):
        middle = 0.5 * (inside + outside)
        closes = closed(plain, middle, still)[0] == 0
        inside, outside = (middle, outside) if closes else (inside, middle)
    for share in 10.0 ** -np.arange(1.0, 7.0, 0.5):
        x = inside + share * (m.initial_position - inside)
        status, expected = closed(plain, x, still)
        _, end = closed(plain, inside, still)
        # as far beyond the dead point as the solution is before it
        mirrored = np.where(builder.cluster_joints['independent'] < 0, 2.0 * end['q'] - expected['q'], expected['q'])
        second, other, *_ = builder.close(0, mirrored)
        if status == second == 0 and 1e-6 < abs(other - expected['q']).max() < 0.2:
            others += 1
            found, values = closed(hinted, x, still, other)
            assert found == 0
            # positions lose digits here; the other solution is much farther away
            assert abs(values['q'] - expected['q']).max() < 1e-3 * abs(other - expected['q']).max()
    return others


CALLS = {
    'forward_dynamics': lambda m, s, **around: m.forward_dynamics(s.x, s.xd, s.f, **around),
    'generalized_forces': lambda m, s, **around: m.generalized_forces(s.x, s.xd, s.xdd, **around),
    'inverse_dynamics': lambda m, s, **around: m.inverse_dynamics(s.x, s.xd, s.xdd, **around),
    'hybrid_dynamics': lambda m, s, **around: m.hybrid_dynamics(
        s.x, s.xd, accelerations=dict(zip(m.coordinates, np.moveaxis(s.xdd, -1, 0))), **around).efforts}


@pytest.fixture(scope='module')
def two_loops():
    """Return (machine, x, q, other): positions of all joints closed at x, and of cluster 0 in another assembly mode."""
    rng = seeded_generator('two loops')
    m = drawn(rng, ['slider_crank', 'spatial_prismatic', 'turn'])
    x, handle = m.initial_position + rng.uniform(-0.02, 0.02, m.nx), m.handle()
    status, values = closed(handle, x, np.zeros(m.dof))
    assert status == 0
    other, *_ = next(filter(None, (other_modes(m, x, values['q'], rng) for _ in range(20))))
    names, q, *_ = m.joint_state(x)
    return m, x, dict(zip(names, q)), dict(zip((name for each in m.machine.clusters for name in each.joints), other))


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('rows', [(), (3,)], ids=['state', 'rows'])
@pytest.mark.parametrize('loaded', thorough([True, False], 1), ids=['with efforts', 'alone'])
def test_positions_change_no_answer(two_loops, call, rows, loaded, rng):
    """Exact ones, those of one loop or none, rough ones, nonsense, and another assembly mode."""
    m, x, exact, other = two_loops
    s = GeneralState(x + rng.uniform(-1e-3, 1e-3, (*rows, m.nx)), *rng.normal(size=(2, *rows, m.dof)),
                     rng.normal(size=(*rows, len(m.actuators))))
    around = {'joint_efforts': {m.joints[0]: 3.0}} if loaded else {}
    expected, loop = CALLS[call](m, s, **around), m.machine.clusters[0]
    for positions in (exact, {name: exact[name] for name in loop.joints}, {}, other,
                      {name: position + 0.05 for name, position in exact.items()}, dict.fromkeys(exact, 1e6),
                      m.joint_state(x)[1], m.joint_state(x)[1].tolist(), np.zeros(len(m.joints), int)):
        assert error(CALLS[call](m, s, positions=positions, **around), expected) < ROUNDING


@pytest.mark.parametrize('call', CALLS)
def test_rows_in_any_order_have_the_answers_of_single_states(two_loops, call, rng):
    """Next to each other and far apart, where the row before is no hint."""
    m, x, *_ = two_loops
    steps = np.concatenate((np.linspace(0.0, 0.3, 6), rng.uniform(-0.3, 0.3, 6)))
    s = GeneralState(x + steps[:, None], *rng.normal(size=(2, 12, m.dof)), rng.normal(size=(12, len(m.actuators))))
    single = np.array([CALLS[call](m, GeneralState(*row)) for row in zip(s.x, s.xd, s.xdd, s.f)])
    assert error(CALLS[call](m, s), single) < ROUNDING


def test_positions_are_checked(rng):
    m = drawn(rng, ['slider_crank', 'turn'])
    x, still, f = m.initial_position, np.zeros(m.dof), np.zeros(len(m.actuators))
    cluster, = m.machine.clusters
    first, *others = cluster.joints
    for positions, kind, words in (
            ([0.1], ShapeError, f'positions has shape (1,); expected ({len(m.joints)},)'),
            (np.zeros((1, len(m.joints))), ShapeError, f'positions has shape (1, {len(m.joints)})'),
            ('crank', ShapeError, 'positions is not an array of numbers'),
            (np.full(len(m.joints), np.nan), NonFiniteError, 'positions = [nan'),
            (np.full(len(m.joints), -np.inf), NonFiniteError, 'positions = [-inf'),
            ({'crnk': 0.1}, UnknownNameError, "joint 'crnk': no movable joint"),
            ({first: np.nan}, NonFiniteError, f"position of '{first}'"),
            ({first: [0.1, 0.2]}, ShapeError, f"position of '{first}'"),
            ({first: 0.1}, ShapeError, f"positions of loop '{cluster.name}' without {', '.join(others)}")):
        for call, last in ((m.forward_dynamics, f), (m.generalized_forces, still)):
            with pytest.raises(kind, match=re.escape(words)):
                call(x, still, last, positions=positions)


def test_positions_of_known_names_are_checked_again(rng):
    m = drawn(rng, ['slider_crank', 'turn'])
    x, still, f = m.initial_position, np.zeros(m.dof), np.zeros(len(m.actuators))
    names, q, *_ = m.joint_state(x)
    exact = dict(zip(names, q))
    m.forward_dynamics(x, still, f, positions=exact)
    for value, kind in ((np.nan, NonFiniteError), (np.inf, NonFiniteError), ([0.1, 0.2], ShapeError),
                        ('0.1', ShapeError), (None, ShapeError)):
        for call, last in ((m.forward_dynamics, f), (m.generalized_forces, still)):
            with pytest.raises(kind, match=f"position of '{names[0]}'"):
                call(x, still, last, positions={**exact, names[0]: value})
    whole = m.forward_dynamics(x, still, f, positions=dict.fromkeys(exact, 0))
    assert error(whole, m.forward_dynamics(x, still, f)) < ROUNDING


COUNT = """
import numpy as np
from psdyn_ros.api.inputs import environment_at
from psdyn_ros.kernels.loops import newton
from test_loop_hints import closed, drawn, handles

residuals, calls = newton.residuals, []
newton.residuals = lambda *arguments: calls.append(0) or residuals(*arguments)


def count(handle, x, hint=None):
    calls.clear()
    assert closed(handle, x, np.zeros(1), hint)[0] == 0
    return len(calls)


m = drawn(np.random.default_rng(5), 'slider_crank')
(plain, hinted), x = handles(m), m.initial_position + 0.1234
without = count(plain, x)
q = plain.arrays.loops.work['q']
print(without, count(hinted, x, q), count(hinted, x + 1e-6), count(hinted, x, np.nan))
names, q, *_ = m.joint_state(x)
print(count(environment_at(m, x, positions=dict(zip(names, q))).handle, x))
calls.clear()
m.forward_dynamics(np.tile(x, (3, 1)), np.zeros((3, 1)), np.zeros((3, 1)))
print(len(calls))
"""


@pytest.mark.long
def test_an_exact_hint_leaves_one_linearisation():
    """Counted where kernels are plain Python; one of a step before leaves two, one that is no number all.

    Positions that a user gives are such hints, and so is the row before in a batch.
    """
    path = os.pathsep.join(map(str, (TESTS, Path(__file__).parent)))
    environment = dict(os.environ, NUMBA_DISABLE_JIT='1', PYTHONPATH=path)
    done = subprocess.run([sys.executable, '-c', COUNT], capture_output=True, text=True, env=environment,
                          cwd=ROOT)
    without, exact, step, useless, repeated, rows = map(int, done.stdout.split())
    assert without == useless > 2, done
    assert exact == repeated == 1
    assert step <= 2
    assert rows == without + 2 * exact
