"""What no sensor says, message by message: stamps that are astray, and numbers of any size."""

import numpy as np
import pytest
from support.bags.recorded_motion import PERIOD, crane, oil

from psdyn_ros.model.errors import PsdynError
from psdyn_ros.model.units import SECOND
from psdyn_ros.validation.live import LiveValidator
from psdyn_ros.validation.metrics.rolling import LEVELS
from psdyn_ros.validation.signals.stream_clock import AGREE, StampError, StreamClock


def test_stray_stamps_are_refused_and_change_nothing():
    clock = StreamClock()
    assert not clock.take(10 * SECOND)
    for stamp in (10 * SECOND, 10 * SECOND - 5, 2 * SECOND, 999 * SECOND, 0, -SECOND):
        with pytest.raises(StampError, match='stamp'):
            clock.take(stamp)
    assert not clock.take(10 * SECOND + 1) and clock.last == 10 * SECOND + 1
    back = [3 * SECOND + k for k in range(AGREE)]
    for stamp in back[:-1]:
        with pytest.raises(StampError, match='before that of the last'):
            clock.take(stamp)
    assert clock.take(back[-1]) and clock.last == back[-1]
    ahead = [90 * SECOND + k for k in range(AGREE)]
    for stamp in ahead[:-1]:
        with pytest.raises(StampError, match='after that of the last'):
            clock.take(stamp)
    assert not clock.take(ahead[-1])


def nonsense(rng, shape, about, spread, absurd):
    """Numbers near a value, a share of them absurd."""
    odd = np.array([0.0, -0.0, 1e300, -1e300, 1e-300, 1e9, np.nan, np.inf, -np.inf])
    return np.where(rng.random(shape) < absurd, rng.choice(odd, shape), about + spread * rng.normal(size=shape))


@pytest.mark.long
@pytest.mark.filterwarnings('ignore:.*(overflow|invalid value|divide).*:RuntimeWarning')
@pytest.mark.parametrize('period', [None, PERIOD])
def test_nothing_that_comes_ends_it(period, rng):
    """Refused by name, or judged; and nothing piles up."""
    names, x, refused, rows = crane().actuators, crane().initial_position, 0, 0
    for hydraulics in (oil(), None):
        live, now = LiveValidator(crane(), hydraulics, period=period, window=2.0), SECOND
        for _ in range(20):
            spread, absurd = 10.0 ** rng.uniform(-6, 0), rng.choice([0.0, 0.0, 0.01, 0.3])
            for _ in range(200):
                now += int(rng.choice([round(PERIOD * SECOND)] * 400 + [0, -SECOND, 3 * SECOND, 30_000_000]))
                given = rng.permutation(names)[:rng.choice([4, 4, 4, 3])].tolist()
                try:
                    live.state(now, given if rng.random() < absurd else list(names),
                               nonsense(rng, 4, x, spread, 0.1 * absurd), nonsense(rng, 4, 0.0, spread, absurd),
                               nonsense(rng, 4, 1e3, 1e3 * spread, absurd))
                    live.pressures(now, nonsense(rng, (3, 2), 5e6, 1e6 * spread, 0.1 * absurd))
                except PsdynError:
                    refused += 1
                for step in live.advance():
                    rows += len(step.stamps)
            if live.metrics is not None:
                assert all(one.level in LEVELS for one in live.metrics.figures())
        assert len(live._states) < 17000 and (live._tracks is None or len(live._tracks.main.times) < 5000)
    assert refused > 100 and rows > 100
