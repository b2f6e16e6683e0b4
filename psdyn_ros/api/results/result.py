"""Base of all results: unpacks as a tuple, prints in a few lines with units, turns into a dictionary or a table.

    rest = crane.equilibrium(x)
    print(rest)                         # ten lines at most
    rest.to_dict()['x']                 # {'slew': 0.0, 'lift_cylinder': 0.21, ...}
    rest.to_frame()                     # pandas: one row per joint
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...model.units import number_text

if TYPE_CHECKING:
    import pandas

MAX_SHOWN = 8               # entries of a vector that are printed


class Axis(NamedTuple):
    """Names of the entries of a vector, and their units."""

    names: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """Fields of a result; it unpacks in their order, and is indexed by number, as a tuple."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """{field: keys in `axes` of its last dimensions}; dimensions before these are rows."""
    UNITS: ClassVar[Mapping[str, str]] = {}
    """{field: unit of its numbers}, of fields that are not in AXES."""
    INDEX: ClassVar[str] = ''
    """Field (N,) that is the index of `to_frame`, such as the time; '' for the numbers of the rows."""

    axes: Mapping[str, Axis] = field(default_factory=dict, kw_only=True)
    """Names and units along dimensions of the fields."""

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, each.name) for each in fields(self) if each.name != 'axes')

    def __len__(self) -> int:
        return len(fields(self)) - 1

    def __getitem__(self, key: Any) -> Any:
        return tuple(self)[key]

    def __repr__(self) -> str:
        return '\n'.join((type(self).__name__, *(f'  {name}: {self._text(name, value)}'
                                                  for name, value in self._fields())))

    def to_dict(self) -> dict[str, Any]:
        """Return {field: value}; vectors whose entries have names are {name: number}, rows of them {name: (N,)}."""
        return {name: _by_name(value, self._axes_of(name)) for name, value in self._fields()}

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas.DataFrame: a row per state where there are rows, else per name; columns <field>/<name>.

        Numbers alone and texts are left out.  Raises ImportError without pandas.
        """
        arrays: dict[str, Any] = {name: value for name, value in self._fields() if isinstance(value, np.ndarray)}
        rows = self.INDEX or any(array.ndim > len(self._axes_of(name)) > 0 for name, array in arrays.items())
        if not rows:
            return self._frame_by_name(arrays)
        count = len(arrays[self.INDEX]) if self.INDEX else max(
            len(array) for name, array in arrays.items() if array.ndim > len(self._axes_of(name)) > 0)
        columns: dict[str, Any] = {}
        for name, array in arrays.items():
            axes = self._axes_of(name)
            if array.ndim == len(axes) + 1 and len(array) == count and name != self.INDEX:
                for place in product(*(range(len(axis.names)) for axis in axes)):
                    label = '/'.join((name, *(axis.names[k] for axis, k in zip(axes, place))))
                    where = (slice(None), *place)
                    columns[label] = array[where]
        frame = import_pandas().DataFrame(columns)
        return frame.set_index(import_pandas().Index(arrays[self.INDEX], name=self.INDEX)) if self.INDEX else frame

    def _frame_by_name(self, arrays: Mapping[str, Any]) -> pandas.DataFrame:
        columns: dict[str, dict[str, Any]] = {}
        for name, array in arrays.items():
            axes = self._axes_of(name)
            if len(axes) == 1:
                columns[name] = dict(zip(axes[0].names, array))
            elif len(axes) == 2:
                for k, column in enumerate(axes[1].names):
                    columns[f'{name}/{column}'] = dict(zip(axes[0].names, array[:, k]))
        order = dict.fromkeys(row for column in columns.values() for row in column)
        return import_pandas().DataFrame(columns, index=list(order))

    def _fields(self) -> Iterator[tuple[str, Any]]:
        return ((each.name, getattr(self, each.name)) for each in fields(self) if each.name != 'axes')

    def _axes_of(self, name: str) -> tuple[Axis, ...]:
        found = tuple(self.axes.get(key) for key in self.AXES.get(name, ()))
        value = np.shape(getattr(self, name))
        known = tuple(axis for axis in found if axis is not None)
        fits = len(known) == len(found) <= len(value) and all(
            size == len(axis.names) for size, axis in zip(value[len(value) - len(known):], known))
        return known if fits else ()

    def _text(self, name: str, value: Any) -> str:
        axes, unit = self._axes_of(name), self.UNITS.get(name, '')
        if isinstance(value, Mapping):
            return _listed(f'{key} {number_text(one)}' if isinstance(one, float) else str(key)
                           for key, one in value.items())
        if isinstance(value, tuple) and all(isinstance(one, str) for one in value):
            return _listed(value)
        if isinstance(value, (str, bool)) or value is None:
            return str(value)
        array = np.asarray(value)
        if array.dtype.kind not in 'fiubc':
            return f'{len(array)} entries' if array.ndim else str(value)
        if array.ndim == 1 and axes:
            scale = np.abs(array[np.isfinite(array)]).max(initial=0.0)
            return _listed(f'{entry} {number_text(number, scale)} {of}'.rstrip()
                           for entry, of, number in zip(*axes[0], array.tolist()))
        if not array.size:
            return 'none'
        if array.ndim == 0 or (array.ndim == 1 and array.size <= MAX_SHOWN):
            scale = np.abs(array[np.isfinite(array)]).max(initial=0.0)
            return ' '.join((*(number_text(number, scale) for number in array.ravel().tolist()), unit)).rstrip()
        return self._summary(array, axes, unit)

    @staticmethod
    def _summary(array: np.ndarray, axes: tuple[Axis, ...], unit: str) -> str:
        """Return shape, range and names of an array that is too large to be printed."""
        known = array[np.isfinite(array)]
        span = f', {number_text(known.min())} to {number_text(known.max())} {unit}'.rstrip() \
            if known.size and array.dtype.kind in 'fiu' else ''
        # entries of a matrix have units that are neither those of its rows nor of its columns
        names = f' of {_listed(f"{name} [{of}]" if of else name for name, of in zip(*axes[0]))}' \
            if len(axes) == 1 else ''
        return f'{array.shape}{span}{names}'


def import_pandas() -> Any:
    """Return the module pandas; raise ImportError that says what needs it."""
    try:
        import pandas
    except ImportError:
        raise ImportError('to_frame needs pandas: pip install pandas') from None
    return pandas


def _listed(texts: Any) -> str:
    texts = list(texts)
    more = f', ... {len(texts)} in all' if len(texts) > MAX_SHOWN else ''
    return ', '.join(texts[:MAX_SHOWN]) + more if texts else 'none'


def _by_name(value: Any, axes: tuple[Axis, ...]) -> Any:
    if not axes:
        return value
    array = np.asarray(value)
    before = array.ndim - len(axes)
    return {name: _by_name(part, axes[1:]) if len(axes) > 1 else part.item() if np.ndim(part) == 0 else part
            for name, part in zip(axes[0].names, np.moveaxis(array, before, 0))}
