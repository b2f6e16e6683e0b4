"""Cycles that are rehearsed just before they are due, and requests that are looked for, on a clock made of numbers."""

import pytest
from support.loop_clocks import PERIOD, Clock, Cycles


@pytest.fixture
def clock():
    return Clock()


class Rehearsals:
    """So many ns each; the ns from the beginning and from the end of each to the next cycle."""

    def __init__(self, clock, took, trigger, **options):
        self.clock, self.took, self.began = clock, took, []
        self.done = True        # whether there was anything to rehearse
        self.cycles = Cycles(clock, trigger=trigger, rehearse=self, **options)
        self.loop = self.cycles.loop

    def __call__(self):
        self.began.append(self.clock.ns)
        self.clock.ns += self.took
        return self.done

    def ahead(self):
        """Of each rehearsal, ns to the cycle that it was for."""
        return [min(now - began for now, _ in self.cycles.done if now > began) for began in self.began]


def test_a_rehearsal_ends_just_before_each_deadline(clock):
    rehearsals = Rehearsals(clock, 90_000, 'timer')
    cycles = rehearsals.cycles
    cycles.spin(100 * PERIOD)
    ahead = rehearsals.ahead()
    assert len(ahead) == rehearsals.loop.records.rehearsals >= 98
    assert all(90_000 <= one <= 400_000 for one in ahead) and 285_000 <= ahead[-1] <= 295_000    # what it takes, known
    assert len(clock.spun) >= 60 and all(0 < one <= 300_000 for one in clock.spun)
    assert {start % PERIOD for start in cycles.starts()} == {0}
    assert len(rehearsals.began) <= len(cycles.done)        # no more than one for each


def test_a_rehearsal_that_takes_too_long_is_left_out_and_tried_again(clock):
    rehearsals = Rehearsals(clock, 500_000, 'timer')
    cycles = rehearsals.cycles
    cycles.spin(1000 * PERIOD)
    late = [start % PERIOD for start in cycles.starts() if start % PERIOD]
    assert 1 <= len(late) == len(rehearsals.began) <= 12 and cycles.loop.records.missed == 0
    rehearsals.took = 50_000
    cycles.spin(1000 * PERIOD)
    assert len(rehearsals.began) >= 200 and cycles.starts()[-1] % PERIOD == 0


def test_a_rehearsal_is_over_before_the_request_that_is_expected(clock):
    rehearsals = Rehearsals(clock, 90_000, 'state')
    cycles, loop = rehearsals.cycles, rehearsals.loop
    due = clock.ns + PERIOD

    def states():
        nonlocal due
        if clock.ns >= due:
            loop.request(due)
            due += PERIOD

    for _ in range(500):
        wait = round(loop.turn() * 1e9)
        clock.ns = min(clock.ns + max(wait, 1), max(due, clock.ns + 1))
        states()
    ahead = rehearsals.ahead()
    assert len(cycles.done) >= 100 and len(ahead) >= len(cycles.done) - 5
    assert all(285_000 <= one <= 600_000 for one in ahead)
    assert {now % PERIOD for now, _ in cycles.done} == {due % PERIOD}       # none was kept waiting


def test_after_a_pause_nothing_is_rehearsed_until_there_was_a_cycle(clock):
    rehearsals = Rehearsals(clock, 90_000, 'state')
    loop = rehearsals.loop
    loop.turn()
    loop.request(clock.ns)
    loop.turn()
    loop.restart()
    clock.ns += PERIOD
    loop.turn()
    assert rehearsals.began == []


def test_one_rehearsal_that_was_held_up_keeps_no_other_from_its_cycle(clock):
    rehearsals = Rehearsals(clock, 90_000, 'timer')
    rehearsals.cycles.spin(200 * PERIOD)
    rehearsals.took = 1_900_000
    rehearsals.cycles.spin(PERIOD)
    rehearsals.took, before = 90_000, len(rehearsals.began)
    rehearsals.cycles.spin(100 * PERIOD)
    assert len(rehearsals.began) - before >= 98


def test_what_is_not_rehearsed_teaches_nothing(clock):
    rehearsals = Rehearsals(clock, 90_000, 'timer')
    rehearsals.cycles.spin(200 * PERIOD)
    rehearsals.took, rehearsals.done = 1_000, False
    rehearsals.cycles.spin(200 * PERIOD)
    rehearsals.took, rehearsals.done, before = 90_000, True, len(rehearsals.began)
    rehearsals.cycles.spin(100 * PERIOD)
    assert all(280_000 <= one <= 295_000 for one in rehearsals.ahead()[before:])


class Parts:
    """Two parts of a rehearsal that take so many ns each; (which, when) of each is kept."""

    def __init__(self, clock, took):
        self.clock, self.took, self.done = clock, took, []
        self.all = lambda: self._do('first'), lambda: self._do('second')

    def _do(self, which):
        self.done.append((which, self.clock.ns))
        self.clock.ns += self.took


def test_parts_of_a_rehearsal_are_repeated_by_turns_until_shortly_before_the_deadline(clock):
    parts = Parts(clock, 25_000)
    rehearsals = Rehearsals(clock, 90_000, 'timer', parts=parts.all)
    cycles = rehearsals.cycles
    cycles.spin(100 * PERIOD)
    assert {start % PERIOD for start in cycles.starts()} == {0} and len(parts.done) >= 2 * 90
    assert [which for which, _ in parts.done[:4]] == ['first', 'second', 'first', 'second']
    ahead = [min(now - at for now, _ in cycles.done if now > at) for _, at in parts.done]
    assert all(40_000 < one <= 300_000 for one in ahead)
    rehearsals.done, before = False, len(parts.done)
    cycles.spin(10 * PERIOD)
    assert len(parts.done) == before        # where there is nothing to rehearse no part of it is


class Look:
    """Finds a state each period, from `first` on, `late` ns after it was sent."""

    def __init__(self, clock, first):
        self.clock, self.due, self.late, self.loop, self.found, self.looks = clock, first, 0, None, [], 0

    def __call__(self):
        self.looks += 1
        if self.clock.ns >= self.due + self.late:
            self.found.append(self.clock.ns - self.due)
            self.due += PERIOD
            self.loop.request(self.clock.ns)


def test_a_request_that_is_expected_is_looked_for_without_a_sleep(clock):
    parts, look = Parts(clock, 25_000), Look(clock, clock.ns + PERIOD)
    rehearsals = Rehearsals(clock, 90_000, 'state', parts=parts.all, look=look)
    cycles, loop = rehearsals.cycles, rehearsals.loop
    look.loop = loop

    def by_the_executor():      # which sees the message 70 us later
        if clock.ns >= look.due + look.late + 70_000:
            look()
    loop.turn()
    for _ in range(400):
        wait = round(loop.turn() * 1e9)
        clock.ns = min(clock.ns + max(wait, 1), max(look.due + look.late + 70_000, clock.ns + 1))
        by_the_executor()
    assert len(cycles.done) >= 100 and loop.records.missed == 0
    settled = look.found[10:]
    assert all(0 <= one <= 25_000 for one in settled) and len(rehearsals.began) >= len(cycles.done) - 2


def test_a_request_that_does_not_come_is_not_looked_for_any_longer(clock):
    parts, look = Parts(clock, 25_000), Look(clock, clock.ns + PERIOD)
    rehearsals = Rehearsals(clock, 90_000, 'state', parts=parts.all, look=look)
    look.loop, loop = rehearsals.loop, rehearsals.loop
    loop.turn()
    loop.request(clock.ns)
    began, look.late = clock.ns, 10 * PERIOD
    for _ in range(3):
        clock.ns += round(loop.turn() * 1e9)
    assert look.looks and clock.ns <= began + 1.5 * PERIOD + 200_000
    assert max(at for _, at in parts.done) < began + PERIOD + 100_000
    assert len(rehearsals.cycles.done) >= 1
