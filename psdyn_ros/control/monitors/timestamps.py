"""One stream of stamped measurements: which of them are in order, and how old the last good one is."""

from ...model.units import SECOND

UNSTAMPED, OLD, FUTURE, ORDER = 'unstamped', 'old', 'future', 'order'


class MeasuredInput:
    """Stamps and age of an input.

    One that is refused does not make the input younger.

    what      it is called in texts, 'state'
    timeouts  of a `SafetyDeclaration`
    skew      ns that a stamp may lie in the future
    period    s between measurements
    """

    def __init__(self, what, timeouts, skew, period):
        self._what, self._skew = what, skew
        self._stale = timeouts.stopping_ns
        self._period = round(period * SECOND)
        self.stamp = 0          # ns, of the last accepted one; 0: none
        self._arrival = None    # ns on the clock of ages
        self._late = 0          # ns from its stamp to its arrival
        self.missed = 0         # measurements that should have come and did not
        self.in_disorder = 0    # in a row

    def forget(self):
        """Start anew: nothing was measured."""
        self.stamp, self._arrival, self.in_disorder = 0, None, 0

    def rebase(self, jump):
        """The clock of the stamps jumped by so many ns."""
        if self.stamp:
            self.stamp += jump

    def refuse(self, stamp, ros_now):
        """(kind, text) why a measurement with this stamp cannot be used; None where it can."""
        if stamp == 0:
            return UNSTAMPED, f'the {self._what} is not stamped'
        age = ros_now - stamp
        if age > self._stale:
            return OLD, f'the stamp of the {self._what} is {age / 1e6:.1f} ms old, at most {self._stale / 1e6:g} ms'
        if -age > self._skew:
            return FUTURE, (f'the stamp of the {self._what} lies {-age / 1e6:.1f} ms in the future, '
                            f'at most {self._skew / 1e6:g} ms')
        if stamp <= self.stamp:
            self.in_disorder += 1
            same = 'repeats' if stamp == self.stamp else f'is {(self.stamp - stamp) / 1e6:.3g} ms before'
            return ORDER, f'the stamp of the {self._what} {same} the one before'
        return None

    def accept(self, stamp, ros_now, clock):
        """Take note of a measurement that is used; clock: ns on the clock of ages."""
        if self.stamp:
            self.missed += max(0, (stamp - self.stamp + self._period // 2) // self._period - 1)
        self.stamp, self._arrival = stamp, clock
        self._late = max(0, ros_now - stamp)
        self.in_disorder = 0

    def age(self, clock):
        """ns since the last accepted one was measured; None where there is none."""
        return None if self._arrival is None else clock - self._arrival + self._late

    def silent(self, clock):
        """Whether nothing was accepted for the timeout after which the machine is stopped."""
        return self._arrival is None or clock - self._arrival > self._stale

    def silence(self, clock):
        """Text on how long nothing came."""
        if self._arrival is None:
            return f'no {self._what} came'
        return f'no {self._what} came for {(clock - self._arrival) / 1e6:.1f} ms'
