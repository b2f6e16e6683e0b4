"""Stops of a reference: on its path, from a measured state, and the speed that a path is run at."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reference_motion import BOOMS, DECELERATION, assert_smooth, at, load, reference_of, run

from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints
from psdyn_ros.tools.demo.demonstration import demonstration


@pytest.fixture
def moving(crane):
    """The demonstration, followed from time 0 on, with the path that it takes if nothing comes between."""
    reference = reference_of(crane, deceleration=DECELERATION)
    reference.follow(demonstration(crane), 0.0)
    return reference


def distance_to(path, x):
    """Of a position from the nearest of a path (N, dof)."""
    return np.abs(path - x).max(axis=1).min()


@pytest.mark.parametrize('t', [0.6, 1.5, 2.4, 3.1, 4.4, 5.5, 6.5])
def test_a_running_reference_stops_on_its_path(crane, moving, t):
    path = run(moving, 0.0, 10.0)[1][:, 0]
    before = at(moving, t)
    moving.stop(t)
    assert at(moving, t)[:2] == pytest.approx(before[:2], abs=1e-12)
    assert moving.moving(t) and not moving.at_rest(t)
    assert moving.end - t < 1.2
    times, stop = run(moving, t, moving.end + 0.1)
    assert_smooth(stop, acceleration=np.maximum(DECELERATION, np.abs(before[2])))
    assert (np.abs(stop[times > t + 0.06, 2]) <= 1.03 * DECELERATION).all()
    assert max(distance_to(path, x) for x in stop[::10, 0]) < 1e-3
    assert moving.at_rest(times[-1]) and not moving.moving(times[-1]) and moving.progress(times[-1]) < 1.0
    assert not stop[-1, 1:].any()
    assert at(moving, 99.0)[0].tolist() == stop[-1, 0].tolist()


@pytest.mark.parametrize('halves', [False, True])
@pytest.mark.parametrize('t', [0.3, 0.5, 1.1, 1.7, 2.6, 3.4])
def test_a_stop_slows_down_as_hard_as_it_may_on_a_path_that_bends(crane, t, halves):
    """Here the path accelerates by more than three times what a stop may slow down with, and turns round in between."""
    reference, limit = reference_of(crane, deceleration=0.15, half_swing=0.1 * halves), 0.15
    reference.follow(demonstration(crane, 4.0), 0.0)
    path = run(reference, 0.0, 4.0)[1]
    assert np.abs(path[:, 2]).max() > 3.0 * limit
    before = at(reference, t)
    reference.stop(t)
    times, stop = run(reference, t, reference.end + 0.1)
    assert stop[0, :2] == pytest.approx(before[:2], abs=1e-12)
    assert max(distance_to(path[:, 0], x) for x in stop[::10, 0]) < 1e-3
    assert not stop[-1, 1:].any()
    # what slows down is no harder than it may be, or than the path itself does there
    nearest = [np.abs(path[:, 0] - x).max(axis=1).argmin() for x in stop[:, 0]]
    harder = np.maximum((1.15 if halves else 1.05) * limit, np.abs(path[nearest, 2]) + 0.25 * limit)
    slowing = stop[:, 2] * stop[:, 1] < 0.0
    assert (np.abs(stop[:, 2]) <= harder)[slowing].all()
    # and one axis does so, but while the stop is taken up, is given up, or waits for its other half
    used = (np.abs(stop[:, 2]) >= (0.5 if halves else 0.9) * limit).any(axis=1)
    fast = np.abs(stop[:, 1]).max(axis=1) > limit * (0.06 + 0.1 * halves)
    assert used[fast & (times > t + 0.2 + 0.1 * halves)].all()


def test_a_stop_does_not_leave_the_limits_where_the_path_slows_down_harder(crane):
    target = crane.initial_position.copy()
    target[1] = crane.limits.lower[1] + 0.02
    reference = reference_of(crane, deceleration=0.2)
    reference.follow(Waypoints(crane.actuators, [1.3], [target], [np.zeros(4)]), 0.0)
    t = 0.75
    x, v, a = at(reference, t)[:, 1]
    assert x - v**2 / (2.0 * 0.2) < crane.limits.lower[1] - 0.01
    hardest = np.abs(run(reference, 0.0, 1.3)[1][:, 2, 1]).max()
    reference.stop(t)
    assert at(reference, t)[:2, 1] == pytest.approx([x, v])
    _, stop = run(reference, t, 4.0)
    assert_smooth(stop)
    assert stop[:, 0, 1].min() >= crane.limits.lower[1] + 0.02 - 1e-9
    assert np.abs(stop[:, 2, 1]).max() <= hardest + 0.2
    assert reference.at_rest(4.0) and not stop[-1, 1:].any()


def test_a_stop_goes_on_as_it_is_and_forgets_what_waited(crane, moving):
    moving.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position]), 2.0, 2.2)
    moving.stop(2.0)
    end = moving.end
    expected = at(moving, 2.3)
    moving.stop(2.1)
    assert moving.end == end and at(moving, 2.3).tolist() == expected.tolist()
    moving.set_speed(0.1, 2.2)
    assert moving.end == end
    assert moving.at_rest(5.0) and at(moving, 5.0)[0] == pytest.approx(at(moving, end)[0])


def test_a_stop_in_halves_may_become_one_without(crane):
    """As where what is measured is lost: then an axis at force level must not coast for the sake of the oil."""
    ends = []
    for again in ((), (True,), (False,)):
        reference = reference_of(crane, half_swing=0.3)
        reference.set_speed(0.2, 0.0)
        reference.follow(demonstration(crane), 0.0)
        reference.stop(2.0)
        for halves in again:
            reference.stop(2.1, halves=halves)
        _, stop = run(reference, 2.0, 4.0)
        assert_smooth(stop)
        ends.append(reference.end)
    assert ends[1] == ends[0] > ends[2] + 0.1


def test_a_reference_at_rest_has_nothing_to_stop(crane):
    reference = reference_of(crane)
    reference.stop(1.0)
    assert reference.at_rest(1.0) and reference.end == -np.inf
    assert at(reference, 2.0)[0].tolist() == crane.initial_position.tolist()


def test_another_trajectory_may_begin_while_it_stops(crane, moving):
    moving.stop(2.0)
    before = at(moving, 2.2)
    assert np.abs(before[1]).max() > 0.005
    moving.follow(Waypoints(crane.actuators, [3.0], [crane.initial_position], [np.zeros(4)]), 2.2)
    assert at(moving, 2.2)[:2] == pytest.approx(before[:2], abs=1e-9)
    assert_smooth(run(moving, 2.2, 5.3)[1])
    assert at(moving, 5.3)[0] == pytest.approx(crane.initial_position)


STATE = st.tuples(*[st.floats(-1.0, 1.0)] * 4)


@settings(max_examples=examples(60))
@given(where=STATE, speed=STATE, share=st.floats(0.3, 3.0))
def test_a_stop_from_a_measured_state_is_bounded_and_ends_before_the_limits_where_it_can(where, speed, share):
    crane = load()
    limits, rates = crane.limits, share * DECELERATION
    reference = reference_of(crane, soft_margin=0.01)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    x, xd = middle + half * where, limits.velocity * speed
    reference.stop_from(3.0, x, xd, rates)
    assert at(reference, 3.0)[:2] == pytest.approx(np.array([x, xd]), abs=1e-12)
    end = reference.end
    assert end - 3.0 <= (np.abs(xd) / rates).max() + 0.11
    _, stop = run(reference, 3.0, end + 0.05, 0.004)
    assert_smooth(stop, 0.004, acceleration=rates)
    assert not stop[-1, 1:].any() and reference.at_rest(end)
    shortest = x + np.sign(xd) * xd**2 / (2.0 * rates)
    inside = (shortest >= limits.lower + 0.01) & (shortest <= limits.upper - 0.01)
    assert (stop[:, 0] >= limits.lower + 0.01 - 1e-9)[:, inside & (xd < 0.0)].all()
    assert (stop[:, 0] <= limits.upper - 0.01 + 1e-9)[:, inside & (xd > 0.0)].all()
    if not inside.all():            # no way is longer than the shortest one then
        beyond = ~inside & (xd != 0.0)
        assert stop[-1, 0][beyond] == pytest.approx(shortest[beyond], abs=1e-9)


def test_a_stop_needs_a_state_and_a_deceleration_that_are_ones(crane):
    reference = reference_of(crane)
    still = np.zeros(4)
    with pytest.raises(TrajectoryError, match='no stop starts from'):
        reference.stop_from(0.0, np.full(4, np.nan), still)
    with pytest.raises(TrajectoryError, match='positive'):
        reference.stop_from(0.0, still, still, [0.1, 0.0, 0.1, 0.1])
    assert reference.at_rest(0.0)


@pytest.mark.long
@pytest.mark.parametrize('name', ['excavator', 'pkm_2pur2rpu'])
def test_actuators_that_are_no_coordinates_keep_their_deceleration_too(name):
    m = load(name)
    reference = reference_of(m, deceleration=0.2)
    columns = [m.joints.index(actuator) for actuator in m.actuators]
    reference.stop_from(0.0, m.initial_position, np.full(m.dof, 0.03))
    for t in np.linspace(0.0, reference.end, 40)[:-1]:
        assert np.abs(m.joint_state(*at(reference, t))[3][columns]).max() <= 0.2 * 1.1
    reference.hold(m.initial_position)
    reference.follow(demonstration(m), 0.0)
    rates = m.joint_state(*at(reference, 2.0))[2][columns]
    reference.stop(2.0)
    assert reference.end - 2.0 < 2.0 * np.abs(rates).max() / 0.2 + 0.11
    assert not at(reference, reference.end)[1:].any()


# speed


@pytest.mark.parametrize('joints', [None, BOOMS])
def test_a_slower_path_is_the_same_path_with_the_rates_of_the_chain_rule(crane, joints):
    reference = reference_of(crane, deceleration=DECELERATION)
    if joints is None:
        reference.follow(demonstration(crane), 0.0)
    else:
        names, q, _, _ = crane.joint_state(crane.initial_position + 0.1)
        reference.follow(Waypoints(joints, [4.0], [[q[names.index(name)] for name in joints]]), 0.0)
    path = run(reference, 0.0, 10.0)[1][:, 0]
    reference.set_speed(0.5, 1.0)
    times, slow = run(reference, 1.0, 8.0)
    assert_smooth(slow)
    h = 1e-5
    for t in (1.01, 1.1, 1.4, 2.0, 3.3):
        before, here, after = (at(reference, s) for s in (t - h, t, t + h))
        assert (after[0] - before[0]) / (2.0 * h) == pytest.approx(here[1], abs=1e-7)
        assert (after[1] - before[1]) / (2.0 * h) == pytest.approx(here[2], abs=1e-5)
    assert max(distance_to(path, x) for x in slow[::40, 0]) < 1e-3
    assert reference.speed(3.0) == 0.5 == reference.speed_target


def test_the_end_moves_with_the_speed(crane):
    reference = reference_of(crane)
    reference.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.1]), 0.0)
    assert reference.end == 2.0 and reference.progress(0.5) == pytest.approx(0.25)
    reference.set_speed(0.5, 1.0)
    assert 2.9 < reference.end < 3.0
    assert reference.moving(2.5) and not reference.moving(reference.end)
    assert at(reference, reference.end)[0] == pytest.approx(crane.initial_position + 0.1)
    reference.set_speed(0.0, 1.5)
    assert reference.end == np.inf and reference.moving(1000.0) and not reference.at_rest(1000.0)
    assert np.abs(at(reference, 100.0)[1:]).max() == 0.0 and 0.5 < reference.progress(100.0) < 1.0
    reference.set_speed(1.0, 100.0)
    assert 100.0 < reference.end < 102.0
    assert reference.progress(reference.end) == pytest.approx(1.0)
    assert at(reference, reference.end + 1e-6)[0] == pytest.approx(crane.initial_position + 0.1)


def test_changes_of_the_speed_add_at_most_half_of_the_deceleration(crane, moving):
    fast = run(moving, 0.0, 10.0)[1][:, 2]
    for t, speed in [(1.0, 0.5), (1.7, 1.0), (2.5, 0.0), (3.5, 0.8), (3.6, 0.2), (3.7, 1.0)]:
        moving.set_speed(speed, t)
    _, path = run(moving, 0.0, 14.0)
    assert (np.abs(path[:, 2]).max(axis=0) <= np.abs(fast).max(axis=0) + 0.51 * DECELERATION).all()


def test_declared_accelerations_are_kept_where_the_speed_changes(crane):
    top = 0.15
    reference = reference_of(crane, deceleration=DECELERATION, acceleration=top)
    move = Waypoints(crane.actuators, [3.0], [crane.initial_position + [0.2, 0.1, 0.1, 0.1]], [np.zeros(4)])
    reference.follow(move, 0.0)
    reference.set_speed(0.3, 1.0)
    reference.set_speed(1.0, 2.5)
    _, path = run(reference, 0.0, 8.0)
    assert (np.abs(path[:, 2]) <= top + 0.1 * DECELERATION).all()


def test_the_way_ahead_knows_of_a_change_of_speed(crane, moving):
    moving.set_speed(0.5, 1.0)
    predicted = np.array([np.array(moving.ahead(t)) for t in (1.02, 1.3, 2.0)])
    assert predicted.tolist() == [at(moving, t).tolist() for t in (1.02, 1.3, 2.0)]


def test_a_trajectory_that_waits_takes_over_without_a_jump_whatever_the_speed_did(crane, moving):
    moving.follow(Waypoints(crane.actuators, [4.0], [crane.initial_position], [np.zeros(4)]), 2.0, 3.0)
    moving.set_speed(0.3, 2.4)
    _, path = run(moving, 2.0, 20.0)
    assert_smooth(path)
    assert not moving.abandoned
    assert path[-1, 0] == pytest.approx(crane.initial_position)


def test_a_trajectory_that_cannot_take_over_any_more_is_abandoned_and_the_machine_stops(crane):
    reference = reference_of(crane, deceleration=DECELERATION)
    far = crane.initial_position + [0.5, 0.1, 0.1, 0.2]
    reference.follow(Waypoints(crane.actuators, [4.0], [far], [np.zeros(4)]), 0.0)
    x = reference.ahead(3.0)[0] + [0.02, 0.0, 0.0, 0.0]
    reference.follow(Waypoints(crane.actuators, [0.2], [x]), 1.0, 3.0)
    reference.set_speed(0.2, 1.2)
    _, path = run(reference, 1.0, 6.0)
    assert_smooth(path)
    assert 'no way from the present motion' in reference.abandoned
    assert reference.at_rest(6.0)
    reference.follow(Waypoints(crane.actuators, [4.0], [far]), 6.0)
    assert reference.abandoned == ''


def test_a_speed_is_taken_by_what_begins_from_rest(crane):
    reference = reference_of(crane)
    reference.set_speed(0.5)
    reference.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05]), 1.0)
    assert reference.end == pytest.approx(5.0)
    assert reference.speed(1.0) == 0.5
    assert at(reference, 3.0)[0] == pytest.approx(crane.initial_position + 0.025)


@pytest.mark.parametrize('scale', [-0.1, 1.1, np.nan])
def test_a_speed_that_is_none_is_refused(moving, scale):
    with pytest.raises(TrajectoryError, match='expected 0 to 1'):
        moving.set_speed(scale, 1.0)
    assert moving.speed_target == 1.0
