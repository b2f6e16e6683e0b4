"""What is wrong with a measured signal by itself: values that are not finite, stand still, stick out or are clipped."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FROZEN = 0.1                # s of the same bits from which a signal may be frozen
FEWEST = 20                 # samples of it
MAX_SPANS = 64              # that are kept, the longest
NOISY = 0.5                 # share of samples that must differ from the one before, to look for noise in them
REPEATS = 0.01              # share of samples that are the same as one neighbour, from which it is quantised
MOVED, SPEED = 1e-3, 5e-3   # m or rad, and m/s or rad/s on average, that a frozen joint would have moved
ENOUGH = 0.01               # m or rad, by its peer, however long it took
STEPS = 10                  # and steps of the resolution
OUTSTANDING = 20.0          # times the usual second difference that a spike has
UNDONE = 0.8                # share of a jump that the next one undoes, from which two sources alternate
CLIPPED = 5                 # samples in a row at the very end of the range
LEAST_CLIPPED = 20          # samples in all
APPROACH = 512              # samples before a run that are kept
LEAST_APPROACH = 4, 16      # samples, and steps of a quantised signal, in which it is seen whether one slows down
STEADY = 1.75, 2.5           # ratio of the ways to a value in twice a time and in that time; of one that stops, 4


@dataclass(frozen=True)
class Span:
    """A stretch of time, s since the start of the bag."""

    start: float
    end: float


class _Run(NamedTuple):
    """Equal values one after another: from when to when [s], what, how far it moved meanwhile by its velocities, from
    where to where its peer went, and the samples before."""

    start: float
    end: float
    count: int
    value: float
    moved: float
    peer: tuple
    before: np.ndarray


def usual_step(off):
    """The usual size of differences between samples and the middle of their neighbours."""
    return 1.4826 * float(np.median(np.abs(off)))


def sticking_out(values, off, usual, floor):
    """(n - 2,) whether samples but the first and last are spikes; off (n - 2,) from the middle of their neighbours."""
    rise = np.diff(values)
    found = (np.abs(off) > max(OUTSTANDING * usual, floor)) & (rise[:-1] * rise[1:] < 0)
    # its neighbours stand out too, but on one side of them only
    return found & (np.minimum(np.abs(rise[:-1]), np.abs(rise[1:])) > 0.5 * np.abs(off))


class Spikes:
    """Samples of a signal that both neighbours contradict, of which nothing else is asked.

    floor  difference from its neighbours that is never a spike, in the unit of the signal

    samples, spikes, largest_spike  as those of `SignalQuality`
    """

    def __init__(self, floor):
        self._floor, self._tail, self._usual = floor, np.empty(0), None
        self.samples, self.spikes, self.largest_spike = 0, 0, 0.0

    def add(self, values):
        """Add samples (n,); those that are not finite do not count."""
        values = values[np.isfinite(values)]
        self.samples += len(values)
        values = np.concatenate((self._tail, values))
        if len(values) > 2:
            off = values[1:-1] - 0.5 * (values[:-2] + values[2:])
            if len(off) >= FEWEST or self._usual is None:
                self._usual = usual_step(off)
            found = np.abs(off[sticking_out(values, off, self._usual, self._floor)])
            self.spikes += len(found)
            self.largest_spike = max(self.largest_spike, float(found.max(initial=0.0)))
        self._tail = values[-2:]


class Alternation:
    """Whether a signal jumps to and fro from sample to sample, as that of two publishers does.

    floor  jump that is none, in the unit of the signal
    """

    def __init__(self, floor):
        self._floor, self._tail = floor, np.empty(0)
        self._count, self._products, self._squares = 0, 0.0, 0.0

    def add(self, values):
        """Add samples (n,); those that are not finite do not count."""
        values = np.concatenate((self._tail, values[np.isfinite(values)]))
        jumps = np.diff(values)
        if len(jumps) > 1:
            self._count += len(jumps) - 1
            self._products += float(jumps[1:] @ jumps[:-1])
            self._squares += float(jumps[1:] @ jumps[1:])
        self._tail = values[-2:]

    @property
    def size(self):
        """Root mean square of the jumps."""
        return float(np.sqrt(self._squares / max(self._count, 1)))

    @property
    def seen(self):
        """Whether nearly every jump is undone by the next; of noise half of each is."""
        return self._count >= FEWEST and self.size > self._floor and self._products < -UNDONE * self._squares


class SignalQuality:
    """One signal while it goes by.

    floor    difference from its neighbours that is never a spike, in the unit of the signal
    follows  function of the position of a peer that gives the one that this signal must have then, or None
    """

    def __init__(self, floor, follows=None):
        self._follows, self._spikes = follows, Spikes(floor)
        self.samples = self.missing = 0
        self._skipped = 0                   # samples left out of the tail
        self.low, self.high = np.inf, -np.inf
        self._pieces = np.zeros(2, dtype=int)   # that say whether there is noise, and of them those that say so
        self._tail = np.empty((4, 0))       # times, values, moved, peer of the last run, and two samples before
        self._before = np.empty(0)          # samples before those
        self._runs = []
        self._step = 0.0                    # smallest change, of a quantised signal

    def add(self, times, values, moved=None, peer=None):
        """Add samples: times (n,) s, values (n,).

        Other witnesses of whether it moved: how far it came since the start, by its velocity (n,), and the position of
        what cannot move without it (n,).
        """
        moved, peer = (np.zeros(len(values)) if one is None else np.nan_to_num(one) for one in (moved, peer))
        finite = np.isfinite(values)
        self.samples += len(values)
        self.missing += int(len(values) - finite.sum())
        if not finite.all():
            times, values, moved, peer = times[finite], values[finite], moved[finite], peer[finite]
        if not len(values):
            return
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        samples = np.concatenate((self._tail, [times, values, moved, peer]), axis=1)
        self._spikes.add(values)
        self._look_for_noise(values)
        self._find_runs(samples)

    @property
    def spikes(self):
        """Samples that both neighbours contradict."""
        return self._spikes.spikes

    @property
    def largest_spike(self):
        """By how much the worst of them does."""
        return self._spikes.largest_spike

    def _look_for_noise(self, values):
        """Note whether samples scatter, such that never two are the same by chance."""
        rise = np.diff(values)
        changing = rise[rise != 0]
        if len(changing) < max(FEWEST, NOISY * len(rise)):
            return
        steps = changing / np.abs(changing).min()
        # what is computed from a quantised signal has no steps of one size, but repeats now and then
        still = rise == 0
        repeats = (still[1:-1] & ~still[:-2] & ~still[2:]).sum()
        quantised = np.abs(steps - np.rint(steps)).max() < 1e-3 or repeats > REPEATS * len(rise)
        # of a smooth signal each difference is far smaller than that before
        second, third = np.diff(changing), np.diff(changing, 2)
        self._step = max(self._step, float(np.abs(changing).min())) if quantised else self._step
        self._pieces += 1, not quantised and np.median(np.abs(third)) > np.median(np.abs(second))

    def _find_runs(self, samples):
        values = samples[1]
        changes = np.flatnonzero(values[1:] != values[:-1]) + 1
        starts = np.concatenate(([0], changes))
        ends = np.concatenate((changes, [len(values)]))
        counts = ends - starts
        for k in np.flatnonzero((counts >= CLIPPED)[:-1]).tolist():
            self._keep(samples, starts[k], ends[k])
        begin = int(starts[-1])
        keep = max(begin - 2, 0)
        run = len(values) - begin
        if run > FEWEST:
            # of a long run its begin, its end and where it should have been farthest are enough
            farthest = begin + np.concatenate((samples[2:, begin:].argmin(axis=1), samples[2:, begin:].argmax(axis=1)))
            kept = np.unique(np.r_[keep:begin + 1, farthest, len(values) - FEWEST:len(values)])
            self._skipped += len(values) - keep - len(kept)
        else:
            kept = np.r_[keep:len(values)]
        self._tail = samples[:, kept]
        self._before = np.concatenate((self._before, values[:keep]))[-APPROACH:]

    def _keep(self, samples, first, last):
        """Note a run of equal values that has ended, or ends with the recording."""
        times, values, moved, peer = samples
        count = int(last - first) + self._skipped
        self._skipped = 0
        self._runs.append(_Run(float(times[first]), float(times[last - 1]), count, float(values[first]),
                               float(np.ptp(moved[first:last])),
                               (float(peer[first:last].min()), float(peer[first:last].max())),
                               np.concatenate((self._before, values[:first]))[-APPROACH:]))
        if len(self._runs) > 2 * MAX_SPANS:
            # at rest nothing moves, however long
            self._runs.sort(key=lambda run: (
                max(run.moved, abs(run.peer[1] - run.peer[0])) < MOVED, run.start - run.end))
            del self._runs[MAX_SPANS:]

    def finish(self):
        """No more samples come."""
        if self._tail.shape[1] > 1:
            values = self._tail[1]
            starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
            if len(values) - starts[-1] >= CLIPPED:
                self._keep(self._tail, int(starts[-1]), len(values))
        self._tail = np.empty((4, 0))

    @property
    def noisy(self):
        """Whether it scatters, so that the same bits again and again are no rest."""
        return bool(2 * self._pieces[1] > self._pieces[0])

    @property
    def frozen(self):
        """`Span`s of the same bits, while another witness says that it moved, or of a signal that never repeats."""
        spans = self.saturated
        return [span for run in sorted(self._runs) if run.end - run.start >= FROZEN and run.count >= FEWEST
                and (self.noisy or self._should_have_moved(run)) and (span := Span(run.start, run.end)) not in spans]

    def _should_have_moved(self, run):
        by_peer = abs(self._follows(run.peer[1]) - self._follows(run.peer[0])) if self._follows else 0.0
        least, by_speed = max(MOVED, STEPS * self._step), SPEED * (run.end - run.start)
        # velocities that are off add up, positions do not
        return run.moved > max(least, by_speed) or by_peer > max(least, min(by_speed, ENOUGH))

    @property
    def saturated(self):
        """`Span`s at the very end of the range of a signal, which it reached at speed or among noise."""
        clipped = [run for run in sorted(self._runs) if self._clips(run)]
        spans, total = [Span(run.start, run.end) for run in clipped], sum(run.count for run in clipped)
        return spans if total >= LEAST_CLIPPED and len(spans) > 1 else []

    def _clips(self, run):
        return run.value in (self.low, self.high) and self.low < self.high and (self.noisy or _stops_abruptly(run))


def _stops_abruptly(run):
    """Whether a signal came to the value of a `_Run` without slowing down, as one does that goes on and is clipped.

    One that turns round or comes to rest there slows down first, and its readings repeat in steps of its resolution.
    """
    steps = np.abs(np.diff(run.before))
    moving = steps[steps > 0.0]
    if not len(moving):
        return False
    counts = moving / max(moving.min(), 1e-12 * moving.max())       # turned bits may leave next to nothing
    quantised = len(moving) < len(steps) or np.abs(counts - np.rint(counts)).max() < 1e-3
    way = np.abs(run.before[::-1] - run.value)
    least, least_steps = LEAST_APPROACH
    enough = np.flatnonzero(way[least - 1:] >= (least_steps * moving.min() if quantised else 0.0))
    if not len(enough) or 2 * (first := int(enough[0]) + least) > len(way):
        return False
    return bool(STEADY[0] * way[first - 1] < way[2 * first - 1] < STEADY[1] * way[first - 1])
