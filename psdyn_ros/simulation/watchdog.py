"""The actuator's side of the watchdog contract: whose commands are fresh enough to be obeyed."""

import math
from collections.abc import Mapping

import numpy as np

from ..model.errors import DuplicateNameError, ModelError, ShapeError, UnknownNameError, did_you_mean, shorten
from ..model.units import SECOND

MOST = 3600.0               # s of a ttl


class Watchdog:
    """Ages of commands by name, on whatever clock the caller uses: a steady one, or simulated time.

    A command is fresh while its age is in [0, ttl].  What was never fed is expired; what was found expired stays so
    until it is fed again, so that a clock that goes back, or back and forth, makes nothing fresh.

    names  of the actuators
    ttl    s, one for all or {name: s} for each
    """

    def __init__(self, names, ttl):
        self.names = tuple(names)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise DuplicateNameError(f"watchdog: '{shorten(str(twice))}' is there twice")
        self.ttl = np.array([_ns(*one) for one in _each(self.names, ttl)], dtype=np.int64)    # (names,) ns
        self._fed = np.zeros(len(self.names), dtype=np.int64)
        self._noticed = np.zeros(len(self.names), dtype=np.int64)
        self._ever = np.zeros(len(self.names), dtype=bool)
        self._expired = np.ones(len(self.names), dtype=bool)

    def reset(self):
        """Nothing was ever fed."""
        self._ever[:] = False
        self._expired[:] = True

    def feed(self, mask, now):
        """Note that commands for mask (names,) came at now (ns); None: for all."""
        mask = slice(None) if mask is None else self._checked(mask)
        self._fed[mask] = now
        self._ever[mask] = True
        self._expired[mask] = False

    def expired(self, now):
        """Return a mask (names,) of those without a fresh command at now (ns), and remember it."""
        found = self.expires_by(now) & ~self._expired
        self._noticed[found] = now
        self._expired |= found
        return self._expired.copy()

    def expires_by(self, then):
        """Return a mask (names,) of those that will be expired at then (ns) if nothing comes; remembers nothing."""
        age = then - self._fed
        return self._expired | (age < 0) | (age > self.ttl)

    def ages(self, now):
        """Return ns (names,) since the last command of each at now (ns), -1 where there was none."""
        return np.where(self._ever, now - self._fed, -1)

    def reactions(self):
        """Return {name: ns from its last command to the first `expired` that said so} of those that ran out."""
        ran_out = self._expired & self._ever
        return {name: int(at - fed) for name, at, fed, out in
                zip(self.names, self._noticed, self._fed, ran_out) if out}

    def _checked(self, mask):
        mask = np.asarray(mask)
        if mask.shape != (len(self.names),) or mask.dtype != bool:
            raise ShapeError(f'watchdog: mask has shape {mask.shape} of {mask.dtype}; '
                             f'expected ({len(self.names)},) of bool, one for each of {", ".join(self.names)}')
        return mask


def _each(names, ttl):
    """Return (name, ttl) of each name in order."""
    if not isinstance(ttl, Mapping):
        return [(name, ttl) for name in names]
    for name in ttl:
        if name not in names:
            raise UnknownNameError(f"ttl of '{shorten(str(name))}': no such actuator{did_you_mean(name, names)}")
    for name in names:
        if name not in ttl:
            raise ModelError(f"ttl of '{name}' is missing")
    return [(name, ttl[name]) for name in names]


def _ns(name, ttl):
    try:
        seconds = math.nan if isinstance(ttl, bool) else float(ttl)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0.0 < seconds <= MOST:
        raise ModelError(f"ttl of '{name}' is {ttl!r:.80}; expected seconds above 0 and up to {MOST:g}")
    return max(1, round(seconds * SECOND))
