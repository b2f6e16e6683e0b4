"""Validation message by message: the same as of a bag, what is refused, what is forgotten, the force from outside."""

from dataclasses import replace

import numpy as np
import pytest
from support.bags.bag_cases import joint_state, labelled, write
from support.bags.recorded_motion import PERIOD, crane, exact_block, oil, swinging, with_pressures
from support.machines import URDF

import psdyn_ros
from psdyn_ros.model.errors import MeasurementError, ModelError, NonFiniteError, ShapeError, UnknownNameError
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.live import LiveValidator
from psdyn_ros.validation.metrics.metrics import EFFORT, MetricsAccumulator, capacities
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.metrics.rolling import ERROR, OK, WARN
from psdyn_ros.validation.metrics.tolerances import read_settings
from psdyn_ros.validation.signals.blocks import blocks
from psdyn_ros.validation.signals.stream_clock import AGREE, StampError
from psdyn_ros.validation.signals.topics import find_topics

BOOMS = ('telescope', 'slew', 'tilt_boom', 'lift_boom')
LIFT, TILT = 1, 2
NAN = float('nan')


def stamps_of(t, begin=BEGIN):
    return (begin + np.rint(np.asarray(t) * SECOND).astype(np.int64)).tolist()


def feed(live, t, x, xd, effort, *, names=None, begin=BEGIN, pressures=None):
    """Give a motion of the actuators to a validator, state by state; the steps that come of it."""
    names, steps = list(crane().actuators if names is None else names), []
    for k, stamp in enumerate(stamps_of(t, begin)):
        live.state(stamp, names, x[k], () if xd is None else xd[k], () if effort is None else effort[k])
        if pressures is not None:
            live.pressures(stamp, pressures[k])
        steps += live.advance()
    return steps


def healthy(seconds=6.0, **options):
    """(t, x, xd, effort) of the crane that moves as its model says."""
    block = exact_block(seconds, **options)
    return block.t, block.x, block.xd, block.effort.copy()


def gathered(steps, name):
    return np.concatenate([getattr(step.prediction, name)[step.prediction.core] for step in steps])


def levels(live):
    return [one.level for one in live.metrics.figures()]


# the same numbers as of a bag


@pytest.mark.parametrize('velocity', [True, False])
def test_predictions_are_those_of_a_bag_with_the_same_messages(tmp_path, velocity, rng):
    """Boom angles with jitter, pressures at another rate and with a gap."""
    t, x, xd, effort = healthy(5.0)
    t = t[::2] + rng.uniform(-2e-4, 2e-4, len(t[::2]))
    rows = [crane().joint_state(*row)[1:3] for row in zip(x[::2], xd[::2])]
    columns = [crane().joints.index(name) for name in BOOMS]
    q, qd = (np.array([row[k][columns] for row in rows]) for k in (0, 1))
    slew = [[NAN, one, NAN, NAN] for one in effort[::2, 0]]
    at = np.flatnonzero((np.arange(len(x)) % 3 == 0) & ~((np.arange(len(x)) > 1200) & (np.arange(len(x)) < 1300)))
    pressures, when = with_pressures(effort)[at], stamps_of(PERIOD * at)
    labels = tuple(oil().cylinders), ('pressure_a', 'pressure_b', 'stamp')
    states = [(STATES, stamp, joint_state(stamp, BOOMS, q[k], qd[k] if velocity else (), slew[k]))
              for k, stamp in enumerate(stamps_of(t))]
    telemetry = [(TELEMETRY, stamp, labelled(np.column_stack((pressures[k], np.full(3, stamp / SECOND))), *labels))
                 for k, stamp in enumerate(when)]
    bag = write(tmp_path / 'bag.mcap', states, telemetry)
    with open_bag(bag) as source:
        channels = find_topics(source, crane())
        predictor = Predictor(crane(), oil(), read_settings(None, crane().actuators).filter.make(channels.period))
        (offline,) = [predictor.predict(block) for block in blocks(source, channels, crane(), oil())]

    live, steps, waiting = LiveValidator(crane(), oil(), period=channels.period), [], 0
    for k, stamp in enumerate(stamps_of(t)):
        while waiting < len(when) and when[waiting] <= stamp:
            # as exact as a stamp in seconds is
            live.pressures(round(when[waiting] / SECOND * SECOND), pressures[waiting])
            waiting += 1
        live.state(stamp, list(BOOMS), q[k], qd[k] if velocity else (), slew[k])
        steps += live.advance()
    count = len(gathered(steps, 't'))
    assert count > 0.9 * (offline.core.stop - offline.core.start) and len(steps) > 40
    rows = slice(offline.core.start, offline.core.start + count)
    for name in ('x', 'xd', 'xdd', 'effort', 'effort_rate', 'effort_id', 'effort_id_frictionless', 'xdd_fd'):
        expected, found = getattr(offline, name)[rows], gathered(steps, name)
        assert np.array_equal(np.isnan(expected), np.isnan(found)), name
        # at the ends of a gap of efforts the filter sees further in a bag
        near = np.isfinite(expected).all(axis=1)
        near &= np.abs(gathered(steps, 't') - 2.5) > 0.5
        assert near.sum() > 0.7 * count
        assert found[near] == pytest.approx(expected[near], rel=1e-9, abs=1e-9 * np.nanmax(np.abs(expected))), name
    stamps = np.concatenate([step.stamps for step in steps])
    assert np.ptp(np.diff(stamps)) <= 1 and abs(stamps[0] - stamps_of(t)[0] - 0.1 * SECOND) < 2 * SECOND * PERIOD


def test_figures_are_those_of_the_metrics_of_a_bag():
    t, x, xd, effort = healthy(8.0)
    effort[:, LIFT] += 900.0
    live = LiveValidator(crane(), oil(), period=PERIOD, window=100.0)
    steps = feed(live, t, x, xd, effort)
    predictor = Predictor(crane(), oil())
    metrics = MetricsAccumulator(crane(), predictor.mechanism, capacities(crane(), oil()))
    for step in steps:
        # what friction explains is shown live, and only left out of what is judged
        found = step.prediction
        metrics.add(replace(found, effort_near=found.effort_id, held=np.zeros_like(found.held)))
    for axis, one in enumerate(live.metrics.figures()):
        expected = metrics.metrics(EFFORT, axis)
        assert (one.rms, one.bias, one.scale) == pytest.approx((expected.rmse, expected.bias, expected.scale))
        assert one.nrmse == pytest.approx(expected.nrmse) and one.seconds == pytest.approx(expected.count * PERIOD)


# verdict


@pytest.mark.long
@pytest.mark.parametrize('axis, share, expected', [(TILT, 0.0, OK), (TILT, 0.9, WARN), (TILT, 1.1, ERROR),
                                                   (LIFT, 1.5, ERROR)])      # friction may hide some of it
def test_an_offset_is_told_of_the_actuator_that_has_it(axis, share, expected):
    t, x, xd, effort = healthy(8.0)
    live = LiveValidator(crane(), oil(), period=PERIOD, window=5.0)
    effort[:, axis] += share * 0.03 * np.ptp(effort[:, axis])
    feed(live, t[:2000], x[:2000], xd[:2000], effort[:2000])
    # what is small for an actuator is none before a window went by
    assert axis != TILT or levels(live)[axis] != ERROR
    feed(live, t[2000:], x[2000:], xd[2000:], effort[2000:])
    found = levels(live)
    assert found.pop(axis) == expected and found == [OK] * 3
    one = live.metrics.figures()[axis]
    assert ('bias' in one.summary) == (expected != OK) and ('at most 3%' in one.summary) == (expected != OK)


def test_pressures_count_more_than_efforts_of_the_message_and_only_where_there_are_any():
    t, x, xd, effort = healthy(4.0)
    wrong = effort.copy()
    wrong[:, 1:] *= 2.0
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t, x, xd, wrong, pressures=with_pressures(effort))
    assert levels(live) == [OK] * 4
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t, x, xd, wrong)
    assert levels(live) == [OK] + [ERROR] * 3
    # where pressures stay away for a while, those of the message do not take their place
    live, pressures = LiveValidator(crane(), oil(), period=PERIOD, window=1.0), with_pressures(effort)
    feed(live, t[:1000], x[:1000], xd[:1000], wrong[:1000], pressures=pressures[:1000])
    feed(live, t[1000:], x[1000:], xd[1000:], wrong[1000:])
    assert levels(live) == [OK] + [WARN] * 3
    live = LiveValidator(crane(), oil(), period=PERIOD, by_pressures=True)
    feed(live, t, x, xd, wrong)
    assert levels(live) == [OK] * 4 and 'its effort is not known' in live.metrics.figures()[LIFT].summary


def test_efforts_that_come_late_are_a_delay():
    t, x, xd, effort = healthy(8.0)
    late = np.vstack((np.repeat(effort[:1], 8, axis=0), effort[:-8]))
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t, x, xd, late)
    for one in live.metrics.figures()[1:]:
        assert one.delay == pytest.approx(8 * PERIOD, rel=0.1) and 'delay' in one.summary and one.level == ERROR
    live = LiveValidator(crane(), oil(), read_settings('actuator: {delay: 0.02}\n', crane().actuators), period=PERIOD)
    feed(live, t, x, xd, late)
    assert OK in levels(live) and not any('delay' in one.summary for one in live.metrics.figures())


def test_what_is_older_than_the_window_is_forgotten():
    t, x, xd, effort = healthy(9.0)
    effort[t < 4.0, TILT] += 5000.0
    live, seen = LiveValidator(crane(), oil(), period=PERIOD, window=3.0), []
    for part in np.array_split(np.arange(len(t)), 9):
        feed(live, t[part], x[part], xd[part], effort[part])
        seen.append(live.metrics.figures()[TILT].level)
    assert ERROR in seen[2:5] and seen[-1] == OK
    assert live.metrics.seconds <= 3.0 + 0.3


def test_a_verdict_waits_for_the_seconds_that_it_needs():
    t, x, xd, effort = healthy(2.0)
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t, x, xd, effort)
    assert levels(live) == [WARN] * 4 and 'not judged yet' in live.metrics.figures()[0].summary


def test_an_effort_that_is_not_known_is_not_judged():
    t, x, xd, effort = healthy(4.0)
    effort[:, 0] = NAN
    effort[t > 2.0, LIFT] = NAN
    live = LiveValidator(crane(), oil(), period=PERIOD, window=1.0)
    feed(live, t, x, xd, effort)
    slew, lift, tilt, _ = live.metrics.figures()
    assert slew.level == OK and 'its effort is not known' in slew.summary
    assert lift.level == WARN and 'any more' in lift.summary and tilt.level == OK


def test_friction_may_hold_what_stands_and_nothing_more():
    t = PERIOD * np.arange(2000)
    x = np.repeat(crane().initial_position[np.newaxis], len(t), axis=0)
    gravity = np.repeat(crane().gravity_forces(x[0])[np.newaxis], len(t), axis=0)
    friction = Predictor(crane(), oil()).friction(x[:1], x[:1], x[:1], np.full((1, 4), 0.01), x[:1])[0]
    for share, expected in ((0.95, OK), (-0.95, OK), (1.8, ERROR)):
        live = LiveValidator(crane(), oil(), period=PERIOD)
        feed(live, t, x, 0.0 * x, gravity + share * friction * [0.0, 0.0, 1.0, 0.0])
        assert [one.level for one in live.metrics.figures()] == [OK, OK, expected, OK]
        assert live.metrics.figures()[TILT].standing == 1.0


def test_redundant_joints_that_disagree_are_in_the_closure():
    t, x, xd, effort = healthy(1.0)
    names = (*crane().actuators, 'lift_boom')
    column = crane().joints.index('lift_boom')
    q = np.column_stack((x, [crane().joint_state(row)[1][column] + 0.05 for row in x]))
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t, q, None, None, names=names)
    closure, = live.metrics.machine_checks()
    assert closure.figure == 'closure' and 0.005 < closure.value < 0.1 and not closure.passed


# time


def test_the_period_is_the_median_between_states(rng):
    t, x, xd, effort = healthy(3.0)
    live = LiveValidator(crane(), oil())
    steps = feed(live, t + rng.uniform(-3e-4, 3e-4, len(t)), x, xd, effort)
    assert steps[-1].prediction.period == pytest.approx(PERIOD, rel=0.1) and levels(live)[1:] != [ERROR] * 3


def test_a_bag_in_a_loop_begins_anew_every_time():
    t, x, xd, effort = healthy(3.0)
    pressures, live, ends = with_pressures(effort), LiveValidator(crane(), oil(), period=PERIOD), []
    for lap in range(3):
        for k, stamp in enumerate(stamps_of(t)):
            for take, values in ((live.state, (list(crane().actuators), x[k], xd[k], effort[k])),
                                 (live.pressures, (pressures[k],))):
                try:
                    take(stamp, *values)
                except StampError as error:
                    assert lap and k < AGREE and 'before that of the last one' in str(error)
            for step in live.advance():
                ends.append(step.stamps[-1])
        assert live.restarts == lap and levels(live) == [OK] * 4
    assert (np.diff(ends) < 0).sum() == 2


def test_one_absurd_stamp_does_not_stop_the_others():
    t, x, xd, effort = healthy(3.0)
    live, names = LiveValidator(crane(), oil(), period=PERIOD), list(crane().actuators)
    feed(live, t[:700], x[:700], xd[:700], effort[:700])
    with pytest.raises(StampError):
        live.state(BEGIN + 10 ** 6 * SECOND, names, x[0])
    feed(live, t[700:], x[700:], xd[700:], effort[700:])
    assert live.restarts == 0 and live.metrics.coverage == pytest.approx(1.0)


def test_gaps_are_not_bridged():
    t, x, xd, effort = healthy(6.0)
    there = (t < 2.0) | (t > 2.8)
    live = LiveValidator(crane(), oil(), period=PERIOD)
    steps = feed(live, t[there], x[there], xd[there], effort[there])
    found = gathered(steps, 't')
    # what the filter cannot know next to the gap is missing, too
    assert not ((found > 1.91) & (found < 2.89)).any() and found[-1] > 5.0
    assert live.metrics.coverage < 0.85 and levels(live) == [OK] * 4
    expected = Predictor(crane(), oil()).predict(exact_block(6.0)).effort_id[np.rint(found / PERIOD).astype(int)]
    away = np.abs(found - 2.4) > 0.7
    assert gathered(steps, 'effort_id')[away] == pytest.approx(expected[away], abs=1.0)


def test_states_that_come_more_slowly_begin_anew():
    t, x, xd, effort = healthy(9.0)
    live = LiveValidator(crane(), oil())
    feed(live, t[:1000], x[:1000], xd[:1000], effort[:1000])
    steps = feed(live, t[1000::10], x[1000::10], xd[1000::10], effort[1000::10])
    assert live.restarts == 1 and steps[-1].prediction.period == pytest.approx(10 * PERIOD)


def test_pressures_that_stop_make_efforts_unknown_and_predictions_go_on():
    t, x, xd, effort = healthy(4.0)
    live, pressures = LiveValidator(crane(), oil(), period=PERIOD, window=1.0), with_pressures(effort)
    feed(live, t[:1000], x[:1000], xd[:1000], None, pressures=pressures[:1000])
    assert live.pressure_age == 0 and np.isfinite(live.metrics.excess()[1:]).all()
    feed(live, t[1000:], x[1000:], xd[1000:], None)
    assert live.pressure_age > SECOND and not np.isfinite(live.metrics.excess()).any() and live.behind < 1.0


@pytest.mark.long
def test_memory_does_not_grow():
    t, x, xd, effort = healthy(3.0)
    live, sizes = LiveValidator(crane(), oil(), period=PERIOD, window=2.0), []
    for lap in range(6):
        feed(live, t, x, xd, effort, begin=BEGIN + lap * 3 * SECOND, pressures=with_pressures(effort))
        sizes.append(sum(len(track.times) for track in live._tracks.tracks())
                     + len(live._cutter._columns['t']) + live.metrics.bins.count)
    assert max(sizes[1:]) <= 1.1 * sizes[1] < 3000
    # nor while nothing can be predicted, since the period is not known
    live = LiveValidator(crane(), oil())
    for k in range(20000):
        live.pressures(BEGIN + k, np.zeros((3, 2)))
    assert len(live._pressures) < 17000


# what is refused


def test_messages_that_cannot_be_used_are_named():
    live, names, x = LiveValidator(crane(), oil()), list(crane().actuators), crane().initial_position.tolist()
    stamp = iter(range(BEGIN, BEGIN + SECOND, 10 ** 6))
    for given, error, says in (
            ((names, x[:3]), ShapeError, 'position has 3 entries for 4 names'),
            ((names, x, [0.0]), ShapeError, 'velocity has 1 entries'),
            ((names, x, (), [0.0]), ShapeError, 'effort has 1 entries'),
            ((names, [NAN, *x[1:]]), NonFiniteError, "position of 'slew' is nan"),
            (([names[0]] * 4, x), MeasurementError, "'slew' is named more than once"),
            ((names[:3], x[:3]), MeasurementError, 'telescope'),
            ((['slew', 'lift_cilinder', 'tilt_cylinder', 'telescope'], x), MeasurementError,
             "not of 'hiab_xs031': 'lift_cilinder'; did you mean 'lift_cylinder'")):
        with pytest.raises(error, match=says.replace('?', r'\?')):
            live.state(next(stamp), *given)
    live.state(next(stamp), names, x)
    for values, error in ((np.zeros((2, 2)), ShapeError), (np.full((3, 2), NAN), NonFiniteError)):
        with pytest.raises(error):
            live.pressures(next(stamp), values)
    with pytest.raises(StampError, match='is zero'):
        live.state(0, names, x)
    assert live.advance() == []


def test_the_joints_of_the_first_message_count_in_any_order_and_beside_others():
    t, x, xd, effort = healthy(3.0)
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t[:500], x[:500], xd[:500], effort[:500])
    order = [2, 0, 3, 1]
    feed(live, t[500:1000], x[500:1000, order], xd[500:1000, order], effort[500:1000, order],
         names=[crane().actuators[k] for k in order])
    more = np.column_stack((x[1000:], x[1000:, 0])), np.column_stack((xd[1000:], xd[1000:, 0]))
    feed(live, t[1000:], *more, np.column_stack((effort[1000:], effort[1000:, 0])),
         names=(*crane().actuators, 'bucket'))
    assert levels(live) == [OK] * 4 and live.joints == crane().actuators and live.restarts == 0


def test_other_joints_count_once_those_of_before_come_no_more():
    t, x, xd, effort = healthy(3.0)
    live = LiveValidator(crane(), oil(), period=PERIOD)
    feed(live, t[:500], x[:500], xd[:500], effort[:500])
    columns = [crane().joints.index(name) for name in BOOMS]
    q = np.array([crane().joint_state(row)[1][columns] for row in x])
    for k, stamp in enumerate(stamps_of(t[500:504]), 500):
        with pytest.raises(MeasurementError, match="lacks 'lift_cylinder', which was measured before"):
            live.state(stamp, list(BOOMS), q[k])
    feed(live, t[504:], q[504:], None, None, names=BOOMS)
    assert live.joints == BOOMS and live.restarts == 1 and live.metrics.seconds > 1.0


def test_states_in_which_no_loop_closes_are_a_trouble():
    t, x, xd, effort = healthy(6.0)
    live = LiveValidator(crane(), oil(), period=PERIOD, window=2.0)
    feed(live, t[:1000], x[:1000], xd[:1000], effort[:1000])
    assert not live.trouble
    feed(live, t[1000:], x[1000:] + [0.0, 9.0, 0.0, 0.0], xd[1000:], effort[1000:])
    assert 'nothing could be predicted for' in live.trouble and 'out of reach' in live.trouble
    assert levels(live) == [WARN] * 4       # what was known is forgotten


def test_machines_and_links_that_cannot_be_are_refused():
    with pytest.raises(ModelError, match='floating base'):
        LiveValidator(psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True))
    with pytest.raises(UnknownNameError, match='did you mean'):
        LiveValidator(crane(), contact_link='tpc')


# the force from outside


def test_a_load_that_the_model_does_not_know_pulls_the_tip_while_it_moves(rng):
    """A weight on the tip, efforts with noise; within three standard deviations nearly always."""
    t, x, xd, xdd = swinging(4.0)
    effort = exact_block(4.0).effort
    weight, noise = 400.0, np.array([5.0, 60.0, 60.0, 20.0])
    loaded = np.empty_like(effort)
    for k in range(len(t)):
        turn = crane().link_pose(x[k], 'tcp')[:3, :3]
        pull = {'tcp': (turn.T @ [0.0, 0.0, -weight], np.zeros(3))}
        loaded[k] = effort[k] + crane().inverse_dynamics(x[k], xd[k], xdd[k], wrenches=pull) \
            - crane().inverse_dynamics(x[k], xd[k], xdd[k])
    live, steps = LiveValidator(crane(), oil(), period=PERIOD), []
    steps = feed(live, t, x, xd, loaded + noise * rng.normal(size=loaded.shape))
    errors = []
    for step in steps[15:]:
        core = step.prediction.core
        turn = crane().link_pose(step.prediction.x[(core.start + core.stop) // 2], 'tcp')[:3, :3]
        found = turn @ step.force.force
        assert found == pytest.approx([0.0, 0.0, -weight], abs=0.2 * weight)
        errors.append(np.abs(step.force.force - turn.T @ [0.0, 0.0, -weight]) / step.force.deviation)
    assert (np.array(errors) <= 3.0).mean() > 0.8
