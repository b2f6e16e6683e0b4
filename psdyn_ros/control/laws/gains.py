"""Gains of a law: a dataclass whose fields are arrays, with what a user has to know of each."""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from ...model.errors import ModelError

# what each entry of a gain belongs to: all coordinates, all actuators, those with a cylinder, those without
COORDINATES, ACTUATORS, CYLINDERS, OTHERS = 'coordinates', 'actuators', 'cylinders', 'others'


def gain(unit, description, of=ACTUATORS, high=1e4, low=0.0):
    """Return a field of a dataclass of gains, from low to high; of: as COORDINATES, ACTUATORS, CYLINDERS, OTHERS."""
    return field(metadata={'unit': unit, 'description': description, 'of': of, 'high': high, 'low': low})


@dataclass(frozen=True)
class NoGains:
    """Gains of a law that has none."""


def gain_entries(law):
    """Yield (joint, row, field) of each number among the gains of a law, joint by joint."""
    m, table = law.manipulator, fields(law.gains)
    cylinders = () if law.hydraulics is None else law.hydraulics.cylinders
    for names, of_coordinates in ((m.coordinates, True), (m.actuators, False)):
        for row, name in enumerate(names):
            for one in table:
                of = one.metadata['of']
                if of_coordinates is (of == COORDINATES) and (
                        of in (COORDINATES, ACTUATORS) or (of == CYLINDERS) is (name in cylinders)):
                    yield name, row, one


def with_entries(gains, entries, values):
    """Return gains in which the entries, as of `gain_entries`, have these values."""
    changed = {one.name: np.array(getattr(gains, one.name), dtype=float) for one in fields(gains)}
    for (_, row, one), value in zip(entries, values, strict=True):
        changed[one.name][row] = value
    return replace(gains, **changed)


def check_gains(gains, count):
    """Raise ModelError unless every gain of a dataclass is (count,), and within its range."""
    for one in fields(gains):
        value = np.asarray(getattr(gains, one.name), dtype=float)
        low, high = one.metadata['low'], one.metadata['high']
        if value.shape != (count,) or not ((value >= low) & (value <= high)).all():
            raise ModelError(f'gains {one.name} = {value.tolist()!s:.120}: expected {count} numbers from {low:g} to '
                             f'{high:g}')


def error_limits(p, d, lag):
    """Return the largest p, d and i with which x'' = -(p x + d x' + i int x) dies out, acting lag [s] late.

    Enough by the criterion of Nyquist where the lag is a pure delay.  Without a lag i < p d is left of it.
    """
    p, d, lag = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (p, d, lag)))
    with np.errstate(divide='ignore', invalid='ignore'):
        most_d = np.where(lag > 0.0, 1.0 / lag, np.inf)
        most_p = np.where(lag > 0.0, d * (1.0 - 0.5 * np.minimum(d * lag, 1.0)) / lag, np.inf)
        most_i = p * d * (1.0 - np.where(p > 0.0, np.minimum(p / most_p, 1.0), 0.0))
    return most_p, most_d, most_i


def rejection(names, gains, present, bounds):
    """Return why gains of these names are not stable, with the limit; '' where they are.

    present  gains in use: of those that break a bound together, one that changes is named first
    bounds   (field, judged, least, most), the last three each (names,)
    """
    changed = {one.name for one in fields(gains)
               if not np.array_equal(getattr(gains, one.name), getattr(present, one.name))}
    for one, *rows in sorted(bounds, key=lambda bound: bound[0] not in changed):
        for name, value, counts, least, most in zip(names, getattr(gains, one), *rows):
            if counts and value > most * (1.0 + 1e-9):
                return (f'gains.{name}.{one} {value:.4g} is more than lag, mode and the other gains leave for a stable '
                        f'loop: at most {most:.4g}')
            if counts and value < least * (1.0 - 1e-9):
                return f'gains.{name}.{one} {value:.4g} is too slow for the other gains: at least {least:.4g}'
    return ''
