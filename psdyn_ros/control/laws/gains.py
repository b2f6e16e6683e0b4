"""Gains of a law: a dataclass whose fields are arrays, with what a user has to know of each."""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from ...model.errors import ModelError

# what each entry of a gain belongs to: all coordinates, all actuators, those with a cylinder, those without
COORDINATES, ACTUATORS, CYLINDERS, OTHERS = 'coordinates', 'actuators', 'cylinders', 'others'


def gain(unit, description, of=ACTUATORS, high=1e4):
    """Return a field of a dataclass of gains, from 0 to high; of: as COORDINATES, ACTUATORS, CYLINDERS, OTHERS."""
    return field(metadata={'unit': unit, 'description': description, 'of': of, 'high': high})


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
    """Raise ModelError unless every gain of a dataclass is (count,), and neither negative nor above its bound."""
    for one in fields(gains):
        value, high = np.asarray(getattr(gains, one.name), dtype=float), one.metadata['high']
        if value.shape != (count,) or not ((value >= 0.0) & (value <= high)).all():
            raise ModelError(f'gains {one.name} = {value.tolist()!s:.120}: expected {count} numbers from 0 to {high:g}')
