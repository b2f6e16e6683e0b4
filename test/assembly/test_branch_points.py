"""Parallelograms through their change points, branch points of other loops, and dead points of spatial ones."""

import re
import time

import numpy as np
import pytest
from support.branch_machines import ALIGNED, GRAVITY, linkage, spherical_platform, with_arm
from support.machines import builder_of
from test_general_closing import planar

import psdyn_ros
from psdyn_ros import PsdynError, TogglePointError, UnreachableStrokeError
from psdyn_ros.api.analysis.derivatives import generalized_forces_derivatives
from psdyn_ros.api.analysis.report import check_report
from psdyn_ros.simulation.offline import SimulationError, simulate

PARALLELOGRAM = (0.5, 1.0, 0.5, 1.0)
# sides and mode of loops that may go on in two ways where the crank lies on the ground line
BRANCHING = {
    'antiparallelogram': (PARALLELOGRAM, -1.0),
    'neutral': ((0.4, 0.9, 0.6, 0.7), 1.0),         # shortest and longest side together are as long as the others
    'kite': ((0.5, 0.5, 1.0, 1.0), 1.0),
}
# strokes about the change point, and at it
AROUND = ALIGNED + np.array((-0.2, -1e-2, -1e-4, -1e-6, -1e-8, 0.0, 1e-8, 1e-6, 1e-4, 1e-2, 0.15))


def machine(sides, mode=1.0, **options):
    xml, initial = linkage(sides, mode=mode, **options)
    return psdyn_ros.load(xml, gravity=GRAVITY, initial=initial)


def joints(m, *state):
    names, *rows = m.joint_state(*state)
    return [dict(zip(names, row)) for row in rows if row is not None]


@pytest.mark.parametrize('options, closed_form', [
    ({}, True), ({'closure': 'spherical'}, True), ({'closure': 'universal'}, False), ({'eye': 'coupler'}, False)])
def test_parallelogram_in_a_cluster_passes_its_change_point(options, closed_form):
    """Its sides stay parallel, exactly, and nothing jumps: positions, rates, accelerations, forces, derivatives."""
    m = machine(PARALLELOGRAM, **options)
    assert not m.machine.warnings and bool(m.machine.loops.clusters['dyads'][0]) == closed_form
    strokes = AROUND
    if options.get('eye') == 'coupler':     # the stroke at which the crank lies on the ground line is another there
        strokes = np.hypot(0.8, 1.2) + AROUND - ALIGNED
    forces = []
    for x in strokes:
        q, qd, qdd = joints(m, [x], [0.2], [0.3])
        for row, tolerance in ((q, 1e-12), (qd, 1e-11), (qdd, 1e-10)):
            assert row['follower'] == pytest.approx(row['crank'], abs=tolerance)
            assert row['coupler'] == pytest.approx(-row['crank'], abs=tolerance)
        force, = m.gravity_forces([x])
        slope, = generalized_forces_derivatives(m, [x], [0.2], [0.3])[0][0]
        ends = [m.generalized_forces([x + h], [0.2], [0.3])[0] for h in (1e-6, -1e-6)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)
        # virtual work
        potential = [m.energy([x + h], [0.0])[1] for h in (1e-5, -1e-5)]
        assert force == pytest.approx((potential[0] - potential[1]) / 2e-5, rel=1e-6)
        forces.append(force)
    assert abs(np.diff(forces)[1:-1]).max() < 0.2 * abs(forces[0])
    assert abs(np.diff(forces)[2:8]).max() < 1e-2 * abs(forces[0])


def test_parallelogram_by_its_measured_joints_and_in_the_report():
    m = machine(PARALLELOGRAM)
    crank = joints(m, [ALIGNED + 1e-7])[0]['crank']
    x, _, residual = m.joint_map(('follower', 'coupler')).state([crank, -crank])
    assert x[0] == pytest.approx(ALIGNED + 1e-7, abs=1e-12) and residual < 1e-12
    report = check_report(m)
    assert '  parallelogram: pins crank, coupler, pin, follower; it remains one' in report
    assert 'constraints: 10 equations for 5 joints, 6 of them redundant' in report
    worst = float(re.search(r'closed poses of its range at least (\S+),', report)[1])
    assert worst > 1e-2


def test_rounded_parallelogram_is_closed_by_least_squares_and_warned_of():
    m = machine((0.5, 1.0, 0.500003, 1.00002))
    warning, = m.machine.warnings
    assert re.search(r"loop 'pin\+eye': closes only to \S+e-0[567] \(m or 1\), as rounded numbers do", warning)
    exact = machine(PARALLELOGRAM)
    for x in AROUND:
        assert m.gravity_forces([x]) == pytest.approx(exact.gravity_forces([x]), rel=1e-3)
        q = joints(m, [x])[0]
        assert q['follower'] == pytest.approx(q['crank'], abs=1e-3)


@pytest.mark.parametrize('name', BRANCHING)
def test_branch_point_is_warned_of_and_refused_at_the_crossing(name):
    m = machine(*BRANCHING[name])
    warning, = m.machine.warnings
    found = re.search(r"^loop 'pin\+eye': two branches of its closure meet at rod = (\S+), (\S+) from the initial "
                      'position; positions from there on are refused$', warning)
    assert float(found[1]) == pytest.approx(ALIGNED, abs=1e-5)
    assert float(found[2]) == pytest.approx(m.initial_position[0] - ALIGNED, rel=1e-2)
    assert f'1 warning(s):\n  {warning}' in check_report(m)
    before = m.gravity_forces([ALIGNED + 1e-2])
    assert m.gravity_forces([ALIGNED + 2e-5]) == pytest.approx(before, rel=0.05)
    words = (r"^loop 'pin\+eye': rod = (\S+) is at or beyond a point where two branches of its closure meet; it is "
             r'followed for rod above 1\.2369\d*$')
    for x in (ALIGNED, ALIGNED - 1e-6, ALIGNED - 1e-3, 1.0):
        for quantity in ('joint_state', 'mass_matrix', 'gravity_forces'):
            with pytest.raises(TogglePointError, match=words):
                getattr(m, quantity)([x])
    with pytest.raises(TogglePointError, match=r"loop 'pin\+eye' with crank = -0\.1: is at or beyond a point where "):
        m.joint_map(('crank',)).state([-0.1])


def test_branch_points_of_two_coordinates(rng):
    """At one stroke of the first cylinder whatever the second does; on a slant where others are the coordinates."""
    xml, initial = with_arm(*linkage(*BRANCHING['neutral'][:1]))
    m = psdyn_ros.load(xml, gravity=GRAVITY, initial=initial)
    assert re.search(r'two branches of its closure meet at rod = 1\.2369\d*, rod2 = ', m.machine.warnings[0])
    slanted = psdyn_ros.load(xml, gravity=GRAVITY, initial=initial, coordinates=['barrel2', 'rod2'])
    assert 'two branches of its closure meet at barrel2 = ' in slanted.machine.warnings[0]
    same = 0
    for _ in range(60):
        x = m.initial_position + rng.uniform((-0.15, -0.1), (0.05, 0.05))
        if x[0] < ALIGNED + 1e-5:
            continue
        try:
            q = joints(m, x)[0]
            assert q['crank'] > 0.0
            if q['arm'] > -0.05:    # beyond a dead point of the other coordinates
                continue
            other = joints(slanted, [q['barrel2'], q['rod2']])[0]
        except (TogglePointError, UnreachableStrokeError):
            continue
        same += 1
        assert all(abs(other[name] - q[name]) < 1e-9 for name in q)
    assert same > 5
    for x in ((ALIGNED, 1.03), (ALIGNED - 1e-3, 0.98), (1.0, 1.1)):
        with pytest.raises(TogglePointError, match='is at or beyond .*; it is followed for rod above 1.2369'):
            m.mass_matrix(x)


def test_nearly_neutral_linkage_is_followed_around_its_corner():
    """No two branches meet, though they come near: rates turn round within a degree, and energy tells the force."""
    m = machine((0.4, 0.9, 0.6, 0.7005))
    assert not m.machine.warnings
    for x in ALIGNED + np.linspace(-0.03, 0.03, 31):
        potential = [m.energy([x + h], [0.0])[1] for h in (1e-6, -1e-6)]
        assert m.gravity_forces([x])[0] == pytest.approx((potential[0] - potential[1]) / 2e-6, abs=0.5)


@pytest.mark.long
def test_simulation_ends_at_a_branch_point():
    m = machine(*BRANCHING['neutral'])
    with pytest.raises(SimulationError, match=r"ends at t = \S+ s: .*loop 'pin\+eye'.* rod = 1\.2369") as caught:
        simulate(m, m.initial_position, [0.0], np.linspace(0.0, 5.0, 501))
    motion = caught.value.motion
    assert motion.x[-1] == pytest.approx(ALIGNED, abs=1e-5)
    assert np.ptp(motion.energy[:-1]) < 1e-6 * np.ptp(motion.kinetic)


@pytest.mark.parametrize('method', ['DOP853', 'Radau'])
def test_simulation_ends_at_a_dead_point(method):
    """The rocker cannot go on, and the crank does: one coordinate too few. No integrator tries for ever."""
    m = psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a'), coordinates=['c'], gravity=GRAVITY)
    with pytest.raises(SimulationError, match=r"ends at t = 0\.24485\d* s: .*loop 'close'.* singular") as caught:
        simulate(m, m.initial_position, [0.0], np.linspace(0.0, 20.0, 2001), method=method,
                 **({'rtol': 1e-6} if method == 'Radau' else {}))
    motion = caught.value.motion
    assert motion.times[-1] == pytest.approx(0.24485, abs=1e-4)
    assert len(motion.times) == 26
    assert np.ptp(motion.energy[:-1]) < 1e-3 * np.ptp(motion.kinetic)


def test_simulation_has_a_bound_of_steps():
    m = machine(PARALLELOGRAM)
    with pytest.raises(SimulationError, match='7 steps of the integrator did not lead further.*nearest to a singular '
                                              r'pose, at rod = ') as caught:
        simulate(m, m.initial_position, [0.0], [0.0, 0.4], most_steps=7)
    assert 0.0 < caught.value.motion.times[-1] < 0.4


def test_simulation_has_a_bound_of_time():
    """A law that gets slower and slower: the motion until then is kept."""
    m = machine(PARALLELOGRAM)
    calls = []

    def slow(t, x, xd):
        calls.append(t)
        end = time.monotonic() + 0.001
        while time.monotonic() < end:
            pass
        return [0.0]
    with pytest.raises(SimulationError, match=r'[1-9]\d* steps of the integrator took 0\.1 s, the longest') as caught:
        simulate(m, m.initial_position, [0.0], [0.0, 0.4], effort=slow, most_seconds=0.1)
    assert len(calls) > 10
    assert 0.0 < caught.value.motion.times[-1] < 0.4


def straight_way(m, direction, end):
    """Return [(share, q)] of closed poses on the straight way from the initial position, by an own continuation."""
    builder, loops = builder_of(m), m.machine.loops
    cluster = loops.clusters[0]
    columns = [int(np.flatnonzero(loops.cluster_joints['independent'] == a)[0]) for a in range(cluster['freedom'])]
    way = direction[loops.cluster_joints['coordinate'][columns]]
    _, q, G, _ = builder.close(0, loops.poses[0, :cluster['joints']])
    share, step, poses = 0.0, 0.01, [(0.0, q)]
    while share < end and step > 1e-13:
        status, closed, slopes, _ = builder.close(0, q + step * G @ way)
        moved = step * abs(G @ way).max()
        if status == 0 and abs(closed - q - step * G @ way).max() < 0.1 * moved + 1e-12:
            share, q, G = share + step, closed, slopes
            poses.append((share, q))
            step = min(1.5 * step, 0.01)
        else:
            step *= 0.5
    return poses


@pytest.mark.long
def test_spherical_platform_is_on_its_branch_up_to_its_dead_points(rng):
    """Three loops in space: each position has the pose of the straight way, to 1e-9 rad before the way ends."""
    m = psdyn_ros.load(spherical_platform())
    names = m.machine.clusters[0].joints
    ended = 0
    for _ in range(12):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        # whole turns do not count: beyond half a turn of a joint the straight way is another
        half_turn = np.pi / abs(direction).max() - 0.02
        poses = straight_way(m, direction, min(half_turn, 3.0))
        end = poses[-1][0]
        dead = end < min(half_turn, 3.0)
        ended += dead
        for share, q in [*poses[:-1:10], *poses[-60:-1:5]]:
            if dead and end - share < 1e-9:
                continue
            position = joints(m, m.initial_position + share * direction)[0]
            away = np.array([position[name] for name in names]) - q
            away -= 2.0 * np.pi * np.round(away / (2.0 * np.pi))
            assert abs(away).max() < 1e-6, (direction, share, end)
        if dead:
            try:
                beyond = joints(m, m.initial_position + (end + 1e-4) * direction)[0]
            except UnreachableStrokeError as error:
                assert re.search(r"loop 'wrist1\+wrist2': does not close at motor", str(error))
            except PsdynError as error:
                assert isinstance(error, TogglePointError)
            else:       # a way around the dead point leads there
                assert abs(np.array([beyond[name] for name in names]) - poses[-1][1]).max() > 1e-3
    assert ended > 3
