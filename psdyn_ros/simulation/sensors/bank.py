"""Sensors between a plant and whoever reads it: noise, quantum, bias, gain error, delay and rate of each channel."""

import math
import numbers

import numpy as np

from ...model.errors import DuplicateNameError, ModelError, ShapeError, StateError, shorten
from ...model.parameters.faults import DELAY, SENSOR, Fault, placed
from ...model.parameters.sensors import SensorSettings

BLOCK = 64          # random numbers of each channel drawn at a time
ROUNDING = 1e-6     # of an interval between samples
MAX_STEPS = 1e15      # steps between samples


class SensorBank:
    """
    Any number of channels, sampled together once in each step of the plant.

    A value is there when its delay has passed since it was taken; one that was taken between two steps is on the
    straight line between them.  Before its first sample the plant is taken to have stood still.  The noise of a channel
    depends on the seed and its name alone.

    channels  names as of `channels_of`, such as 'lift_cylinder.pressure_a'
    settings  `SensorSettings`; None: all are exact
    period    s, of a step
    seed      whole number
    """

    def __init__(self, channels, settings, period, seed=0):
        self.channels = tuple(channels)
        if len(set(self.channels)) < len(self.channels):
            twice = next(name for name in self.channels if self.channels.count(name) > 1)
            raise DuplicateNameError(f"sensors: channel '{shorten(str(twice))}' is there twice")
        if not 0.0 < period < math.inf:
            raise ModelError(f'sensors: period is {period!r:.80}; expected seconds above 0')
        self.period, self.seed = float(period), checked_seed(seed)
        self._index = {name: i for i, name in enumerate(self.channels)}
        sensors = [(settings or SensorSettings()).of(name) for name in self.channels]
        self._noise, self._quantum, self._bias, gain, delay, rate = (
            np.array([getattr(sensor, name) for sensor in sensors], dtype=float)
            for name in ('noise', 'quantum', 'bias', 'gain_error', 'delay', 'rate'))
        self._gain = 1.0 + gain
        self._delay = np.round(delay / self.period, 9)      # steps, as all times from here on
        with np.errstate(divide='ignore'):
            interval = np.minimum(1.0 / (rate * self.period), MAX_STEPS)
        self._rated = np.flatnonzero((interval > 1.0) & (rate > 0.0))
        self._interval = interval[self._rated]
        self._has_rate = np.isin(np.arange(rate.size), self._rated)
        self._sample = np.zeros(self._rated.size)           # how many intervals after step 0 the last one was taken
        size = len(self.channels)
        self._faults = {}               # (channel, kind) -> numbers
        self._spikes = {}               # index -> (amplitude, probability in a sample, generator)
        longest = (delay.max(initial=0.0) + DELAY.high) / self.period
        self._length = math.ceil(longest) + 2
        # each row stands there twice, so that the last `length` rows are always in one piece
        self._ring = np.zeros((2 * self._length, size))
        self._flat = self._ring.reshape(-1)
        self._columns = np.arange(size)
        self._normal, self._error = np.zeros((2, BLOCK, size))
        self._values, self._held, self._work, self._other = np.zeros((4, size))
        self._stamps, self._taken, self._drift, self._fraction = np.zeros((4, size))
        self._rows, self._back = np.zeros((2, size), dtype=np.intp)
        self._fresh = np.zeros(size, dtype=bool)
        self._quantised = self._quantum > 0.0
        self._divisor = np.where(self._quantised, self._quantum, 1.0)
        self._apply()
        self.reset()

    def reset(self):
        """Begin again with the very same sequence of errors; faults that are set stay."""
        self._step = None
        self._count = 0
        self._generators = [_generator(self.seed, name) for name in self.channels]
        for channel, kind in self._faults:
            if kind == 'spike':
                self._spike(channel)
        self._held[:] = np.nan
        self._stamps[:] = -np.inf
        self._sample[:] = -np.inf
        self._next = -math.inf      # step before which no channel with a rate has anything
        self._drift[:] = 0.0

    def sample(self, step, true):
        """
        Return (values, stamps, fresh), each (channels,), of what has been measured by a step.

        step    whole number, never smaller than the last one; steps left out lie on a straight line
        true    (channels,) in the plant now
        values  the latest; NaN before the first
        stamps  steps at which they were taken, not always whole ones; -inf before the first
        fresh   which are new since the last call; the same step again has nothing new

        The arrays are those of the bank: the next call writes on them.
        """
        elapsed = self._record(step, true)
        if elapsed == 0:
            self._fresh[:] = False
            return self._values, self._stamps, self._fresh
        self._take(step)
        self._disturb(elapsed)
        if self._frozen is not None:
            # what is frozen from the start freezes at its first value
            np.copyto(self._held, self._work, where=self._fresh & (~self._frozen | np.isnan(self._held)))
        elif self._timed:
            np.copyto(self._held, self._work, where=self._fresh)
        else:
            self._held[:] = self._work
        self._values[:] = self._held
        if self._nan is not None:
            self._values[self._nan] = np.nan
        return self._values, self._stamps, self._fresh

    def _record(self, step, true):
        """Put what is true into the ring; the steps since the last sample."""
        true = np.asarray(true, dtype=float)
        if true.shape != self._work.shape:
            raise ShapeError(f'sensors: true values have shape {true.shape}; expected {self._work.shape}')
        ring, length = self._ring, self._length
        if self._step is None:
            ring[:] = true
            self._step = step
            return 1
        elapsed = step - self._step
        if elapsed < 0:
            raise StateError(f'sensors: step {step} after step {self._step}; expected a later one, or a reset before')
        if elapsed > 1:
            back = np.arange(1, min(elapsed, length))
            last = ring[self._step % length].copy()
            between = true + (last - true) * (back / elapsed)[:, None]
            rows = (step - back) % length
            ring[rows] = ring[rows + length] = between
        row = step % length
        ring[row] = ring[row + length] = true
        self._step = step
        return elapsed

    def _take(self, step):
        """Fill `work` with the true values of when they were taken, and say which are fresh."""
        stamps, fresh, work, row = self._stamps, self._fresh, self._work, step % self._length + self._length
        if not self._timed:
            work[:] = self._ring[row]
            stamps.fill(step)
            fresh.fill(True)
            return
        taken = np.subtract(float(step), self._late, out=self._taken)
        if self._rated.size:
            self._on_grid(step)
        np.greater(taken, stamps, out=fresh)
        if self._dead is not None:
            fresh[self._dead] = False
        np.copyto(stamps, taken, where=fresh)
        size = work.size
        np.add(self._back, row * size, out=self._rows)
        self._flat.take(self._rows, out=work, mode='clip')
        if self._fractional:
            self._rows -= size
            older = self._flat.take(self._rows, out=self._other, mode='clip')
            older -= work
            older *= self._fraction
            work += older

    def _on_grid(self, step):
        """Set the instants of channels with a rate: a multiple of their interval where one is due, else the last."""
        rated, taken = self._rated, self._taken
        late = taken[rated] if step >= self._next else None
        np.copyto(taken, self._stamps, where=self._has_rate)
        if late is None:
            return
        sample = np.floor(late / self._interval + ROUNDING)
        due = sample > self._sample
        self._sample[due] = sample[due]
        instants = np.minimum(sample * self._interval, late)[due]
        columns = rated[due]
        # where steps were left out, no further back than the ring reaches
        taken[columns] = np.maximum(instants, step - self._length + 2)
        self._aim(columns, step - taken[columns])
        self._next = math.floor(((self._sample + 1.0 - ROUNDING) * self._interval + self._late[rated]).min())

    def _aim(self, columns, age):
        """Let these columns be read where they were `age` steps ago."""
        whole = np.floor(age)
        self._back[columns] = columns - whole.astype(np.intp) * self._work.size
        self._fraction[columns] = age - whole

    def _disturb(self, elapsed):
        """Make readings of the true values in `work`."""
        work, other = self._work, self._other
        row = self._count % BLOCK
        if row == 0:
            for i, generator in enumerate(self._generators):
                self._normal[:, i] = generator.standard_normal(BLOCK)
            self._weigh()
        self._count += 1
        work *= self._scale
        work += self._error[row]
        if self._drifting:
            self._drift += self._slope * (elapsed * self.period)
            work += self._drift
        for i, (amplitude, probability, generator) in self._spikes.items():
            chance = generator.random()
            if chance < probability:
                work[i] += amplitude if chance < 0.5 * probability else -amplitude
        np.divide(work, self._divisor, out=other)
        np.rint(other, out=other)
        other *= self._divisor
        np.copyto(work, other, where=self._quantised)

    def _weigh(self):
        """Make errors of the normal numbers at hand."""
        np.multiply(self._normal, self._rms, out=self._error)
        self._error += self._offset

    def set_fault(self, channel, kind, value=None):
        """Let a fault of a channel begin, or give it another value; kinds and values as `faults.py` has them.

        A drift starts at zero when it begins.  Raises ModelError or UnknownNameError.
        """
        fault, _ = placed(Fault(kind, channel, value), {SENSOR: self.channels})
        self._faults[channel, kind] = fault.value
        if kind == 'spike':
            self._spike(channel)
        self._apply()

    def clear_fault(self, channel, kind):
        """Let a fault end, where there is one."""
        if self._faults.pop((channel, kind), None) is None:
            return
        index = self._index[channel]
        if kind == 'spike':
            del self._spikes[index]
        if kind == 'drift':
            self._drift[index] = 0.0
        self._apply()

    def clear_faults(self):
        """Let all faults end."""
        for channel, kind in list(self._faults):
            self.clear_fault(channel, kind)

    @property
    def faults(self):
        """{(channel, kind): numbers} of what is set."""
        return dict(self._faults)

    def _spike(self, channel):
        index = self._index[channel]
        amplitude, rate = self._faults[channel, 'spike']
        interval = dict(zip(self._rated, self._interval)).get(index, 1.0)
        probability = -math.expm1(-rate * self.period * interval)
        self._spikes[index] = amplitude, probability, _generator(self.seed, channel, 'spike')

    def _apply(self):
        """Bring what `sample` uses in line with the faults."""
        size = len(self.channels)
        values = {kind: np.full(size, start) for kind, start in
                  (('bias', 0.0), ('drift', 0.0), ('gain', 1.0), ('noise', 0.0), ('delay', 0.0))}
        flags = {kind: np.zeros(size, dtype=bool) for kind in ('dropout', 'freeze', 'nan')}
        for (channel, kind), given in self._faults.items():
            if kind in values:
                values[kind][self._index[channel]] = given[0]
            elif kind in flags:
                flags[kind][self._index[channel]] = True
        self._scale, self._offset = self._gain * values['gain'], self._bias + values['bias']
        self._rms = np.hypot(self._noise, values['noise'])
        self._slope = values['drift']
        self._drifting = bool(self._slope.any())
        self._late = self._delay + np.round(values['delay'] / self.period, 9)
        self._aim(self._columns, self._late)
        self._fractional = bool(self._fraction.any() or self._rated.size)
        self._dead, self._frozen, self._nan = (flags[kind] if flags[kind].any() else None
                                               for kind in ('dropout', 'freeze', 'nan'))
        self._next = -math.inf
        self._timed = bool(self._late.any() or self._rated.size or self._dead is not None)
        self._weigh()


def checked_seed(seed):
    """Return a seed as int, or raise ModelError."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < 2**63:
        raise ModelError(f'seed is {seed!r:.80}; expected a whole number from 0 to 2^63 - 1')
    return int(seed)


def _generator(seed, *names):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple('.'.join(names).encode())))
