"""Numbers that were computed again, each beside the one it should be, and the figures that show them."""
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .plotting import Plate

DATA = Path(__file__).parent / 'data'
PAPER, REFERENCE = 'paper', 'reference'
PASS, FAIL, EXPLAINED = 'ok', 'FAIL', 'explained'


def stored(name):
    """Return the contents of data/<name>.json: numbers of independent computations."""
    return json.loads((DATA / f'{name}.json').read_text(encoding='utf-8'))


class Entry(NamedTuple):
    """
    One line of a table.

    quantity: name with unit; ours, reference: (k,) numbers, reference None where there is none;
    source: where the reference is from, PAPER (printed there) or REFERENCE (independent computation, data/);
    bound: the largest difference, or for an error the largest value; None where the two are known to differ.
    form: format of the numbers; error: `ours` is itself an error, which only has to be below the bound.
    """

    quantity: str
    ours: np.ndarray
    reference: np.ndarray | None
    source: str
    bound: float | None
    form: str
    error: bool = False

    @property
    def difference(self):
        """Largest difference to the reference, NaN for errors and where there is none."""
        if self.error or self.reference is None:
            return np.nan
        return float(np.abs(self.ours - self.reference).max())

    @property
    def verdict(self):
        if self.bound is None:
            return EXPLAINED
        value = float(np.abs(self.ours).max()) if self.error else self.difference
        return PASS if value <= self.bound else FAIL

    def text(self, values):
        """Return numbers as the tables show them."""
        if values is None:
            return ''
        shown = ', '.join(_positive_zero(format(value, self.form)) for value in values)
        return f'({shown})' if len(values) > 1 else shown


class Findings:
    """What one paper came to: tables of entries and figures, both by name."""

    def __init__(self):
        self.tables = {}
        self.plates = {}

    def equal(self, table, quantity, ours, reference, *, form='.6f', bound=None, source=REFERENCE):
        """Add numbers that have to be the reference's; by default to the decimals that `form` shows."""
        if bound is None:
            bound = 1.01 * 0.5 * 10.0 ** -int(form[1:-1])
        self._add(table, Entry(quantity, _row(ours), _row(reference), source, bound, form))

    def below(self, table, quantity, ours, bound, *, reference=None, source='', form='.1e'):
        """Add an error that has to be below a bound; the reference is the error that the paper reports."""
        reference = None if reference is None else _row(reference)
        self._add(table, Entry(quantity, _row(ours), reference, source, bound, form, error=True))

    def differs(self, table, quantity, ours, reference, *, form='.6g', source=PAPER):
        """Add numbers that are known to differ from the reference, for a reason that the page tells."""
        self._add(table, Entry(quantity, _row(ours), _row(reference), source, None, form))

    def plate(self, name, title, *shape, **options):
        """Return the axes (rows, columns) of a new figure, `shape` its rows, columns and size in inches."""
        self.plates[name] = Plate(title, *shape, **options)
        return self.plates[name].axes

    @property
    def entries(self):
        """Every entry as (table, Entry)."""
        return [(table, entry) for table, rows in self.tables.items() for entry in rows]

    def _add(self, table, entry):
        rows = self.tables.setdefault(table, [])
        if any(row.quantity == entry.quantity for row in rows):
            raise ValueError(f"'{entry.quantity}' is in table '{table}' already")
        rows.append(entry)


def _row(values):
    return np.atleast_1d(np.asarray(values, float)).ravel()


def _positive_zero(text):
    """'-0.000' -> '0.000': the sign of a rounding error."""
    return text.removeprefix('-') if text.startswith('-') and not text.strip('-0.') else text
