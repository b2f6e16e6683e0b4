"""Time-optimal timing: against a linear program of HiGHS, inverse dynamics, a bang-bang motion in closed form."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix
from support.cases import made
from support.comparison import error
from support.paths import CONFIG, ROOT

import psdyn_ros
from psdyn_ros import ActuationError, ShapeError, StateError, UnreachableStrokeError
from psdyn_ros.control.offline.planned_motion import plan_motion
from psdyn_ros.control.offline.time_optimal import constraints_of, limits_of, path_curve, plan, spline
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

WAYS = np.array([[-0.8, 0.15, 0.15, 0.1], [0.2, 0.3, 0.25, 0.5], [0.9, 0.2, 0.4, 0.9]])
ACCELERATION = (0.6, 0.25, 0.3, 0.7)


@cache
def crane():
    return psdyn_ros.load(str(ROOT / 'urdf' / 'hiab_xs031.urdf'))


@cache
def limits(**options):
    return limits_of(crane(), read_hydraulics(CONFIG / 'hiab_xs031_hydraulics.yaml', crane().actuators),
                     acceleration=ACCELERATION, **options)


def time_by_highs(constraints, h):
    """Return the squared path speed (N,) that is largest at all nodes at once, by one linear program."""
    nodes, rows = constraints.gamma.shape
    A, bound = lil_matrix((nodes * rows, nodes)), np.full(nodes * rows, np.inf)
    for i in range(nodes - 1):
        for j in range(rows):
            # u = (w[i + 1] - w[i]) / 2 h
            k, slope = i * rows + j, constraints.alpha[i, j] / (2.0 * h)
            A[k, i], A[k, i + 1], bound[k] = constraints.beta[i, j] - slope, slope, constraints.gamma[i, j]
    for j in range(rows):       # the last u holds at the last node, which is at rest
        k = (nodes - 1) * rows + j
        A[k, nodes - 2], bound[k] = -constraints.alpha[-1, j] / (2.0 * h), constraints.gamma[-1, j]
    kept = np.isfinite(bound)
    largest = np.where(np.isfinite(constraints.largest), constraints.largest, 1e6)
    ends = [(0.0, 0.0 if i in (0, nodes - 1) else largest[i]) for i in range(nodes)]
    found = linprog(-np.ones(nodes), A.tocsr()[kept], bound[kept], bounds=ends, method='highs')
    assert found.status == 0, found.message
    return found.x


@pytest.mark.parametrize('share', [1.0, 0.35])
def test_speed_is_that_of_a_linear_program(share):
    """With all limits, and with a third of the pump's flow."""
    m, nodes = crane(), 120
    given = replace(limits(), flow=share * limits().flow)
    x, slope, bend = spline(path_curve(m, WAYS), nodes)
    w = time_by_highs(constraints_of(m, x, slope, bend, given), 1.0 / (nodes - 1))
    found = plan(m, WAYS, given, nodes=nodes)
    assert abs(found.speed ** 2 - w).max() < 1e-6 * w.max()


def test_efforts_rates_and_flow_are_within_the_limits_and_at_one():
    m, given = crane(), limits()
    found = plan(m, WAYS, given, nodes=300)
    f = m.inverse_dynamics(found.x, found.xd, found.xdd)
    flow = np.where(found.xd > 0.0, found.xd * given.area_out, -found.xd * given.area_in).sum(axis=1)
    shares = np.array([(f / np.where(f > 0.0, given.upper, given.lower)).max(axis=1)[:-1],
                       (abs(found.xd) / given.velocity).max(axis=1)[:-1], (flow / given.flow)[:-1],
                       (abs(found.xdd) / given.acceleration).max(axis=1)[:-1]])
    assert shares.max() < 1.0 + 1e-6
    # something limits it everywhere; full friction is kept free of what the efforts may use
    assert shares.max(axis=0).min() > 0.9


def test_last_node_is_within_the_limits():
    """The accelerations also where the path is steeper at its last node than before."""
    m, given = crane(), limits()
    free = replace(given, upper=np.full(4, np.inf), lower=np.full(4, -np.inf))
    for path in (WAYS, WAYS[::-1]):
        found = plan(m, path, free, nodes=30)
        assert (abs(found.xdd) / given.acceleration).max() < 1.0 + 1e-9
    found = plan(m, WAYS, given, nodes=30)
    f = m.inverse_dynamics(found.x, found.xd, found.xdd)[-1]
    assert (f <= given.upper).all() and (f >= given.lower).all()


@pytest.mark.parametrize('preload', [0.0, 2e4])
def test_excavator_with_two_cylinders_on_its_boom(preload):
    """Speeds and efforts of every actuator by `joint_state`, inverse dynamics and the allocation of the machine."""
    m = psdyn_ros.load('excavator')
    m.allocation.set_preload({'boom_cylinder_left': preload, 'boom_cylinder_right': -preload})
    oil = read_hydraulics(CONFIG / 'excavator_hydraulics.yaml', m.actuators)
    given = limits_of(m, oil, acceleration=np.full(m.dof, 0.8))
    path = m.initial_position + [[0.0] * 4, [0.5, 0.08, -0.06, 0.05], [1.0, 0.02, 0.05, -0.04]]
    found = plan(m, path, given, nodes=80)
    f = m.inverse_dynamics(found.x, found.xd, found.xdd)
    names, _, rates, _ = m.joint_state(found.x, found.xd)
    rate = rates[:, [names.index(name) for name in m.actuators]]
    lost = np.where(rate > 0.0, given.loss_out, given.loss_in) * rate ** 2
    flow = np.where(rate > 0.0, rate * given.area_out, -rate * given.area_in).sum(axis=1)
    used = [(np.where(f > 0.0, f / (given.upper - lost), f / (given.lower + lost)))[1:-1].max(axis=1),
            (abs(rate) / np.minimum(m.limits.velocity, given.rate))[1:-1].max(axis=1), (flow / given.flow)[1:-1],
            (abs(found.xdd) / given.acceleration)[1:-1].max(axis=1)]
    assert np.max(used) < 1.0 + 1e-6 and np.median(np.max(used, axis=0)) > 0.9
    motion = plan_motion(m, path, given)
    assert (motion.use <= 1.0).all() and error(motion.f, m.inverse_dynamics(motion.x, motion.xd, motion.xdd)) < 1e-9
    assert abs(motion.f[:, 1] - motion.f[:, 2] - 2.0 * preload).max() < 0.1 * abs(motion.f).max()


def test_straight_line_under_acceleration_alone_is_bang_bang():
    m, free = crane(), np.full(4, np.inf)
    ways = WAYS[:1] + [[0.0] * 4, [0.5, 0.0, 0.0, 0.0]]
    given = replace(limits(), velocity=free, lower=-free, upper=free, flow=np.inf)
    found = plan(m, ways, given, nodes=201)
    assert found.time[-1] == pytest.approx(2.0 * np.sqrt(0.5 / ACCELERATION[0]), rel=1e-3)


def test_times_are_those_of_the_rates(rng):
    found = plan(crane(), WAYS, limits(), nodes=400)
    moved = np.diff(found.x, axis=0)
    mean = 0.5 * (found.xd[1:] + found.xd[:-1]) * np.diff(found.time)[:, None]
    assert abs(moved - mean).max() < 1e-4 and (np.diff(found.time) > 0.0).all()
    assert not found.xd[[0, -1]].any()


@pytest.mark.parametrize('path, change, kind, message', [
    (WAYS[:, :3], {}, ShapeError, 'rows of 4'), (WAYS[[0, 0]], {}, StateError, 'are the same'),
    (WAYS, {'upper': np.full(4, 10.0)}, StateError, r'within the limits at [\d.]+ % of the path')])
def test_what_admits_no_motion_is_named(path, change, kind, message):
    with pytest.raises(kind, match=message):
        plan(crane(), path, replace(limits(), **change))


def test_path_through_a_dead_point_is_named():
    """Where both elbows of the five-bar are stretched."""
    m = made('five_bar').m
    where = r"loop 'pin_c' in row \d+: does not close at shoulder_1 = 1.3\d+, "
    with pytest.raises(UnreachableStrokeError, match=where):
        plan(m, m.initial_position + [[0.0, 0.0], [1.0, -1.0]], limits_of(m, acceleration=np.ones(2)))


def test_machine_with_a_floating_base_is_refused():
    m = made('floating crane').m
    with pytest.raises(ActuationError, match='fixed base'):
        plan(m, np.zeros((2, m.nx)), limits())
