"""When control cycles happen, and what is done between them, on clocks made of numbers."""

import pytest
from support.control.loop_clocks import PERIOD, Clock, Cycles

from psdyn_ros.nodes.controller.loop import (
    MAX_CALLBACKS,
    MAX_CHORE_DELAY_NS,
    MAX_LOG_LINES,
    ControlLoop,
    DeferredLog,
    SteadyClock,
)


@pytest.fixture
def clock():
    return Clock()


def test_cycles_begin_at_absolute_deadlines_whatever_they_take(clock):
    cycles = Cycles(clock)
    for took in (0, 300_000, 1_900_000, 5):
        cycles.took = took
        cycles.spin(3 * PERIOD)
    starts = cycles.starts()
    assert starts == [PERIOD * k for k in range(len(starts))] and len(starts) >= 12
    assert [dt for _, dt in cycles.done] == [0.002] * len(starts)
    assert (cycles.loop.records.missed, cycles.loop.records.overruns) == (0, 0)


def test_lateness_does_not_add_up(clock):
    cycles = Cycles(clock)
    cycles.spin(PERIOD)
    clock.late = 130_000
    cycles.spin(20 * PERIOD)
    late = [start % PERIOD for start in cycles.starts()[2:]]
    assert late == [130_000] * len(late) and len(late) >= 18
    assert cycles.loop.records.histograms['lateness'].greatest == 0          # not sorted in yet
    cycles.loop.records.fold()
    assert cycles.loop.records.histograms['lateness'].greatest == 130_000


def test_slots_missed_in_a_stall_are_skipped_and_counted_each(clock):
    cycles = Cycles(clock)
    cycles.spin(4 * PERIOD)
    before, last = len(cycles.done), cycles.done[-1][0]
    clock.ns = last + 5 * PERIOD + 700_000      # slots 1 to 4 have passed, 5 is late by 0.7 ms
    cycles.spin(3 * PERIOD)
    starts = [now - last for now, _ in cycles.done[before:]]
    assert starts[:3] == [5 * PERIOD + 700_000, 6 * PERIOD, 7 * PERIOD]
    assert cycles.done[before][1] == pytest.approx(0.0107)
    records = cycles.loop.records
    assert (records.missed, records.longest_missed, records.stalls, records.overruns) == (4, 4, 1, 1)
    records.fold()
    lateness = records.histograms['lateness']
    assert lateness.count == records.cycles + records.missed
    assert lateness.greatest == 4 * PERIOD + 700_000


def test_a_cycle_longer_than_the_period_keeps_the_phase(clock):
    cycles = Cycles(clock)
    cycles.took = 2_500_000
    cycles.spin(10 * PERIOD)
    starts = cycles.starts()
    assert starts[:4] == [0, 2_500_000, 5_000_000, 7_500_000]       # each in the slot after, late
    assert cycles.loop.records.overruns == len(starts)
    cycles.took = 0
    cycles.spin(10 * PERIOD)
    assert cycles.starts()[-1] % PERIOD == 0


@pytest.mark.parametrize('taking', [1_000, 150_000, 900_000])
def test_a_flood_of_callbacks_delays_a_cycle_by_one_of_them_at_most(clock, taking):
    cycles = Cycles(clock)
    served = []

    def callback():
        clock.ns += taking
        served.append(clock.ns)

    cycles.spin(50 * PERIOD, callback)
    starts = cycles.starts()
    assert max(start % PERIOD for start in starts) <= taking
    assert [start // PERIOD for start in starts] == list(range(len(starts)))
    assert cycles.loop.records.missed == 0
    # the callbacks are served all the same, no more of them than agreed
    assert len(starts) <= len(served) <= MAX_CALLBACKS * len(starts)


def test_callbacks_are_served_even_when_every_cycle_overruns(clock):
    cycles = Cycles(clock)
    cycles.took = 3 * PERIOD
    served = []

    def callback():
        clock.ns += 100_000
        served.append(1)

    cycles.spin(60 * PERIOD, callback)
    assert len(served) == len(cycles.done)


def test_a_restart_misses_nothing(clock):
    cycles = Cycles(clock)
    cycles.spin(4 * PERIOD)
    clock.ns += 400 * PERIOD + 1234
    cycles.loop.restart()
    cycles.spin(4 * PERIOD)
    assert cycles.loop.records.missed == 0
    assert cycles.done[5][1] == 0.002


def test_on_request_a_cycle_follows_at_once(clock):
    cycles = Cycles(clock, trigger='state')
    cycles.loop.turn()
    for _ in range(5):
        clock.ns += PERIOD - 100_000
        began = clock.ns - 40_000           # what it takes to read the message
        cycles.loop.request(began)
        cycles.loop.turn()
        assert cycles.done[-1][0] == began
    records = cycles.loop.records
    records.fold()
    assert records.cycles == 5 and records.missed == 0
    assert records.histograms['execution'].greatest == 140_000
    assert records.histograms['lateness'].count == 0        # nothing was due


def test_without_a_request_a_cycle_comes_after_one_and_a_half_periods(clock):
    cycles = Cycles(clock, trigger='state')
    cycles.loop.turn()
    cycles.loop.request(clock.ns)
    assert cycles.loop.turn() <= 1.5 * PERIOD / 1e9
    cycles.spin(10 * PERIOD)
    gaps = [b - a for a, b in zip(cycles.starts(), cycles.starts()[1:])]
    assert min(gaps) >= 1.5 * PERIOD and max(gaps) <= 1.5 * PERIOD + cycles.took + 2
    # the state comes again: the slots between the two states were missed
    cycles.loop.request(clock.ns)
    clock.ns += PERIOD
    cycles.loop.turn()
    assert cycles.loop.records.missed in (9, 10)


def test_more_requests_than_agreed_do_not_make_more_cycles(clock):
    cycles = Cycles(clock, trigger='state')

    def flood():
        clock.ns += 50_000
        cycles.loop.request(clock.ns)

    cycles.spin(100 * PERIOD, flood)
    gaps = [b - a for a, b in zip(cycles.starts(), cycles.starts()[1:])]
    assert min(gaps) >= 0.5 * PERIOD and max(gaps) <= 0.5 * PERIOD + 200_000


def test_chores_are_done_only_where_there_is_room_for_them(clock):
    cycles = Cycles(clock)
    done = []

    def chore():
        done.append(clock.ns)
        clock.ns += 400_000

    cycles.loop.chore(chore, 0.01)
    cycles.spin(100 * PERIOD)
    assert 15 <= len(done) <= 20
    assert cycles.loop.records.missed == cycles.loop.records.overruns == 0
    assert max(start % PERIOD for start in cycles.starts()) == 0
    # cycles that leave no room for it
    cycles.took, before = PERIOD - 500_000, len(done)
    cycles.spin(100 * PERIOD)
    assert len(done) <= before + 1
    assert max(start % PERIOD for start in cycles.starts()) == 0


@pytest.mark.parametrize('rate', [20, 50, 100, 200])
@pytest.mark.parametrize('trigger', ['timer', 'state'])
def test_every_chore_has_its_turn_beside_those_that_are_always_due(clock, rate, trigger):
    """The log is flushed each 10 ms and a trajectory is checked in every cycle, at any rate of the cycles."""
    period = 10**9 // rate
    cycles = Cycles(clock, period, trigger=trigger)
    chores = {'report': 1.0, 'statistics': 1.0, 'look around': 1.0, 'flush': 0.01, 'trajectory': 0.0}
    done = {name: [] for name in chores}
    for name, seconds in chores.items():
        cycles.loop.chore(lambda name=name: done[name].append(clock.ns), seconds)
    due = clock.ns + period

    def states():
        nonlocal due
        if trigger == 'state' and clock.ns >= due:
            due += period
            cycles.loop.request(clock.ns)

    end = clock.ns + 20 * 10**9
    while clock.ns < end:
        wait = round(cycles.loop.turn() * 1e9)
        clock.ns += min(wait, max(due - clock.ns, 0)) if trigger == 'state' else wait
        states()
    count = len(cycles.done)
    assert count >= 0.99 * 20 * rate and cycles.loop.records.missed == 0
    assert len(done['trajectory']) >= 0.95 * count
    assert len(done['flush']) >= 0.95 * min(count, 2000)
    assert all(len(done[name]) >= 18 for name in ('report', 'statistics', 'look around'))


def test_a_chore_can_be_hastened_but_not_beyond_what_is_agreed(clock):
    cycles = Cycles(clock)
    done = []
    chore = cycles.loop.chore(lambda: done.append(clock.ns), 1.0)
    cycles.spin(100 * PERIOD)
    assert not done
    chore.hasten(25 * PERIOD)
    cycles.spin(2 * PERIOD)
    assert len(done) == 1
    cycles.spin(100 * PERIOD, lambda: chore.hasten(25 * PERIOD))
    gaps = [second - first for first, second in zip(done, done[1:])]
    assert len(gaps) in (3, 4) and min(gaps) >= 25 * PERIOD


def test_a_chore_that_waited_too_long_is_done_and_told(clock):
    cycles = Cycles(clock)
    done = []
    cycles.loop.chore(lambda: done.append(clock.ns), 0.01)
    cycles.took = PERIOD - 250_000
    cycles.spin(MAX_CHORE_DELAY_NS // 2)
    assert done == []
    cycles.spin(2 * MAX_CHORE_DELAY_NS)
    assert done


def test_a_chore_of_little_patience_has_its_turn_where_cycles_leave_no_room(clock):
    cycles = Cycles(clock)
    slices, reports = [], []
    cycles.loop.chore(lambda: slices.append(clock.ns), 0.0, 4 * PERIOD)
    cycles.loop.chore(lambda: reports.append(clock.ns), 0.1)
    cycles.took = PERIOD - 250_000
    cycles.spin(50 * PERIOD)
    gaps = [second - first for first, second in zip(slices, slices[1:])]
    assert len(gaps) >= 9 and max(gaps) <= 5 * PERIOD and reports == []


def test_a_chore_that_took_long_once_is_done_again(clock):
    cycles = Cycles(clock)
    done = []

    def chore():
        clock.ns += 100_000 if done else 3 * PERIOD
        done.append(clock.ns)

    cycles.loop.chore(chore, 0.0)
    cycles.spin(3000 * PERIOD)
    assert len(done) > 1900


def test_what_a_cycle_tells_of_itself_is_in_the_records(clock):
    def cycle(now, dt):
        clock.ns += 80_000
        loop.published(age=700_000, publishing=30_000, computation=50_000)
        clock.ns += PERIOD          # tells others

    loop = ControlLoop(PERIOD, cycle, clock=clock)
    loop.turn()
    loop.records.fold()
    greatest = {name: histogram.greatest for name, histogram in loop.records.histograms.items()}
    assert loop.records.overruns == 1
    assert greatest == {'execution': 80_000, 'lateness': 0, 'age': 700_000, 'publishing': 30_000, 'computation': 50_000}


def test_room_before_the_next_cycle(clock):
    cycles = Cycles(clock)
    assert cycles.loop.has_room(10**12)         # nothing is due
    cycles.loop.turn()
    assert cycles.loop.has_room(1_600_000) and not cycles.loop.has_room(1_800_000)


def test_the_steady_clock_sleeps_until_its_deadline():
    deadline = SteadyClock.now() + 3_000_000
    SteadyClock.sleep_until(deadline)
    assert SteadyClock.now() >= deadline
    SteadyClock.sleep_until(deadline - 10**12)      # has passed


def test_a_deferred_log_writes_later_and_keeps_its_size():
    lines = []
    log = DeferredLog(lambda level, text: lines.append(f'{level}: {text}'))
    for k in range(MAX_LOG_LINES + 3):
        log('info', k)
    assert lines == [] and log.lost == 3
    log.flush()
    assert lines == ['warning: 3 lines of the log are lost: too many at once']
    log.flush()
    assert lines[1:] == ['info: 3']
    log.flush_all()
    log.flush()
    assert lines[1:] == [f'info: {k}' for k in range(3, MAX_LOG_LINES + 3)]
