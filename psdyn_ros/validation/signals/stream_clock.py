"""Stamps of one topic as they come: which of them go on, which are astray, and when time began again."""

from ...model.errors import PsdynError
from ...model.units import SECOND

LEAP = SECOND               # ns from one stamp to the next, either way, beyond which it is astray
AGREE = 5                   # messages in a row that make what was astray the time that counts


class StampError(PsdynError):
    """A message whose stamp cannot be used."""


class RepeatedStampError(StampError):
    """A message with the stamp of the one before, as of a simulator that waits for an answer."""


class StreamClock:
    """Tells a message that is astray from a clock that jumped, as at the begin of every round of a bag in a loop.

    leap  ns, of topics whose messages come that rarely more than `LEAP`
    last  ns, of the last stamp that was taken, None before it
    """

    def __init__(self, leap=LEAP):
        self.leap, self.last = leap, None
        self._astray = []

    def take(self, stamp):
        """Take a stamp [ns]; whether time began again, earlier than it was.

        Raises StampError where the message is not to be used: it is no later than the one before, or astray; of those
        that are, `AGREE` in a row that go on from each other are believed.
        """
        if stamp <= 0:
            raise StampError('its stamp is zero' if stamp == 0 else f'its stamp is {stamp / SECOND:.6g} s')
        last = stamp if self.last is None else self.last
        step = stamp - last
        if 0 < step <= self.leap or self.last is None:
            self.last = stamp
            self._astray.clear()
            return False
        if step == 0:
            raise RepeatedStampError('its stamp is that of the last one')
        if -self.leap <= step < 0:
            raise StampError(f'its stamp is {-step / SECOND:.3g} s before that of the last one')
        if self._astray and not 0 < stamp - self._astray[-1] <= self.leap:
            self._astray.clear()
        self._astray.append(stamp)
        if len(self._astray) < AGREE:
            raise StampError(f'its stamp is {abs(step) / SECOND:.6g} s {"after" if step > 0 else "before"} that of the '
                             'last one')
        self.last = stamp
        self._astray.clear()
        return step < 0
