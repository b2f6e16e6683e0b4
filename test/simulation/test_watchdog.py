"""Watchdog of the actuators: freshness on any clock, against its definition on random histories; what it refuses."""

import re

import numpy as np
import pytest
from conftest import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from psdyn_ros.model.errors import DuplicateNameError, ModelError, ShapeError
from psdyn_ros.simulation.watchdog import Watchdog

MS = 1_000_000
NAMES = ('slew', 'lift_cylinder', 'telescope')
FIRST = np.array([True, False, False])


def test_what_was_never_fed_is_expired_at_any_time():
    watchdog = Watchdog(NAMES, 0.02)
    for now in (0, -5 * MS, 10**18):
        assert watchdog.expired(now).all()
    assert watchdog.reactions() == {}


def test_a_command_is_fresh_up_to_its_ttl_and_not_a_nanosecond_longer():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 7)
    assert not watchdog.expired(7 + 20 * MS).any()
    assert watchdog.expired(8 + 20 * MS).all()


def test_each_name_has_its_own_age_and_ttl():
    watchdog = Watchdog(NAMES, {'slew': 0.01, 'telescope': 0.03, 'lift_cylinder': 0.02})
    watchdog.feed(None, 0)
    assert watchdog.expired(15 * MS).tolist() == [True, False, False]
    watchdog.feed(FIRST, 15 * MS)
    assert watchdog.expired(22 * MS).tolist() == [False, True, False]
    assert watchdog.expired(31 * MS).tolist() == [True, True, True]


def test_the_first_instant_of_expiry_is_kept_for_reaction_times():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 100)
    for now in (20 * MS, 21 * MS, 40 * MS):
        watchdog.expired(now)
    assert watchdog.reactions() == dict.fromkeys(NAMES, 21 * MS - 100)
    watchdog.feed(FIRST, 41 * MS)
    assert set(watchdog.reactions()) == set(NAMES[1:])


def test_a_clock_that_goes_back_makes_nothing_fresh():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 1000 * MS)
    assert watchdog.expired(999 * MS).all()
    assert watchdog.expired(1001 * MS).all(), 'expired once, and not fed since'
    watchdog.feed(FIRST, 500 * MS)
    assert watchdog.expired(501 * MS).tolist() == [False, True, True]


def test_a_late_feed_of_an_old_time_does_not_count_as_a_fresh_one():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 100 * MS)
    watchdog.feed(None, 70 * MS)
    assert watchdog.expired(100 * MS).all()


def test_a_look_ahead_leaves_no_trace():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 0)
    assert watchdog.expires_by(21 * MS).all()
    assert not watchdog.expired(20 * MS).any()
    assert watchdog.reactions() == {}


def test_reset_forgets_every_command():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 0)
    watchdog.reset()
    assert watchdog.expired(0).all()
    assert watchdog.reactions() == {}


def test_the_answer_is_not_the_inside():
    watchdog = Watchdog(NAMES, 0.02)
    watchdog.feed(None, 0)
    watchdog.expired(0)[:] = True
    assert not watchdog.expired(0).any()


@pytest.mark.parametrize('ttl, message', [
    (0, "ttl of 'slew' is 0; expected seconds above 0 and up to 3600"),
    (-0.02, "ttl of 'slew' is -0.02; expected"), (float('nan'), "ttl of 'slew' is nan"),
    (float('inf'), "ttl of 'slew' is inf"), ('soon', "ttl of 'slew' is 'soon'"), (None, "ttl of 'slew' is None"),
    (True, "ttl of 'slew' is True"), ({'slew': 0.1, 'telescope': 0.1}, "ttl of 'lift_cylinder' is missing"),
    (dict.fromkeys((*NAMES, 'telescop'), 0.1), "ttl of 'telescop': no such actuator; did you mean 'telescope'?"),
])
def test_bad_ttls_are_refused(ttl, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        Watchdog(NAMES, ttl)


@pytest.mark.parametrize('mask', [[True], [0, 1, 0], np.zeros((1, 3), bool), np.array([0.0, 1.0, np.nan])])
def test_bad_masks_are_refused(mask):
    with pytest.raises(ShapeError, match=r'watchdog: mask has shape .*; expected \(3,\) of bool, one for each of slew'):
        Watchdog(NAMES, 0.02).feed(mask, 0)


def test_bad_names_are_refused():
    with pytest.raises(DuplicateNameError, match="watchdog: 'a' is there twice"):
        Watchdog(['a', 'b', 'a'], 0.02)


class WatchdogMachine(RuleBasedStateMachine):
    """Any order of feeding and asking, on a clock that goes where it likes, against the definition of freshness."""

    instants = st.integers(-60, 60).map(lambda t: t * MS // 2)
    masks = st.lists(st.booleans(), min_size=3, max_size=3).map(np.array)

    @initialize(ttls=st.lists(st.integers(1, 30), min_size=3, max_size=3))
    def start(self, ttls):
        self.ttls = [ttl * MS for ttl in ttls]
        self.watchdog = Watchdog(NAMES, {name: ttl / 1e3 for name, ttl in zip(NAMES, ttls)})
        self.fed = [None] * 3
        self.asked = [[], [], []]       # at which instants, since the last feed

    @rule(mask=masks, now=instants)
    def feed(self, mask, now):
        self.watchdog.feed(mask, now)
        for i in np.flatnonzero(mask):
            self.fed[i], self.asked[i] = now, []

    @rule(now=instants)
    def ask(self, now):
        expired = self.watchdog.expired(now)
        for i in range(3):
            self.asked[i].append(now)
            assert expired[i] == self.stale(i)

    @rule(then=instants)
    def look_ahead(self, then):
        expired = self.watchdog.expires_by(then)
        assert expired.tolist() == [self.stale(i, then) for i in range(3)]

    @rule()
    def reset(self):
        self.watchdog.reset()
        self.fed, self.asked = [None] * 3, [[], [], []]

    @rule()
    def reactions(self):
        late = {}
        for i, name in enumerate(NAMES):
            bad = [now for now in self.asked[i] if self.fed[i] is not None and self.outside(i, now)]
            if bad:
                late[name] = bad[0] - self.fed[i]
        assert self.watchdog.reactions() == late

    def outside(self, i, now):
        return not self.fed[i] <= now <= self.fed[i] + self.ttls[i]

    def stale(self, i, *more):
        return self.fed[i] is None or any(self.outside(i, now) for now in (*self.asked[i], *more))


TestWatchdogMachine = WatchdogMachine.TestCase
TestWatchdogMachine.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
