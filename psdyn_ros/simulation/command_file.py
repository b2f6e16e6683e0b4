"""Commands of a plant over time, from a CSV or YAML file, for runs without a controller.

CSV: a header `time,<actuator>,...`, then one row for each change; an empty field leaves the actuator as it was.
YAML: a list of mappings, `- {time: 0.5, lift_cylinder: 0.3}`.

A command counts until the next one; `nan` (CSV: `nan`, YAML: `.nan`) takes it back, so that the actuator goes to its
safe output.  Units are those of the actuator's command mode.  At the level of forces, without hydraulics, brakes hold
all actuators or none, so each row commands all of them or takes all commands back.
"""

import csv
import io
import math
from pathlib import Path

import numpy as np

from ..model.errors import ModelError, did_you_mean
from ..model.text_file import read_text
from ..model.yaml_file import plain_contents

MAX_BYTES = 64 * 1024 * 1024
TIME = 'time'
LATEST = 1e6            # s since the start; stamps of clocks are beyond it


class CommandTable:
    """Commands that change at certain times.

    times   (N,) s, increasing
    values  (N, actuators), NaN: none
    """

    def __init__(self, times, values):
        self.times, self.values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)

    def at(self, time):
        """The commands (actuators,) that count at this time; NaN where there is none."""
        row = int(np.searchsorted(self.times, time + 1e-9, side='right')) - 1
        return self.values[row] if row >= 0 else np.full(self.values.shape[1], np.nan)

    def next_change(self, time):
        """s at which they change next; inf after the last change."""
        row = int(np.searchsorted(self.times, time + 1e-9, side='right'))
        return float(self.times[row]) if row < self.times.size else math.inf


def read_commands(path, actuators, *, all_or_none=False, openings=()):
    """Return the `CommandTable` of a file; raise ModelError that names file, line and actuator.

    all_or_none  refuse commands of some actuators only, as of a plant at the level of forces
    openings     names of actuators whose commands are openings of valves, -1 to 1
    """
    text = read_text(path, MAX_BYTES)
    entries = _from_yaml(path, text) if Path(path).suffix in ('.yaml', '.yml') else _from_csv(path, text, actuators)
    times, rows = [], []
    row = np.full(len(actuators), np.nan)
    for where, entry in entries:
        if TIME not in entry:
            raise ModelError(f"{where}: no '{TIME}'")
        time = _number(f"{where}: '{TIME}'", entry.pop(TIME))
        if not math.isfinite(time) or time < 0.0 or (times and time <= times[-1]):
            raise ModelError(f'{where}: time {time:g}; expected a finite one' + (f' after {times[-1]:g}' if times else
                                                                                  ' from 0 on'))
        if time > LATEST:
            raise ModelError(f'{where}: time {time:.10g}: epoch stamps? expected seconds since the start, up to '
                             f'{LATEST:g}')
        for name, value in entry.items():
            if name not in actuators:
                raise ModelError(f"{where}: '{name}': no such actuator{did_you_mean(str(name), actuators)}")
            number = _number(f"{where}: '{name}'", value)
            if math.isinf(number):
                raise ModelError(f"{where}: '{name}' is infinite; expected a number, or nan for no command")
            if name in openings and abs(number) > 1.0:
                raise ModelError(f"{where}: '{name}' is {number:g}; expected an opening of its valve, -1 to 1")
            row[actuators.index(name)] = number
        missing = [name for name, number in zip(actuators, row) if math.isnan(number)]
        if all_or_none and 0 < len(missing) < len(actuators):
            raise ModelError(f"{where}: no command of {', '.join(missing)}; without hydraulics expected one of every "
                             'actuator, or nan for all')
        times.append(time)
        rows.append(row.copy())
    if not times:
        raise ModelError(f"command file '{path}': no commands")
    return CommandTable(times, rows)


def _from_csv(path, text, actuators):
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    header = next(([name.strip() for name in cells] for cells in rows if not _skipped(cells)), [])
    if header and TIME not in header:
        hint = "; columns are separated by ',', not by ';'" if any(';' in name for name in header) else ''
        raise ModelError(f"command file '{path}', line {rows.line_num}: no '{TIME}' in the header "
                         f'{",".join(header):.200}{hint}')
    if len(set(header)) < len(header):
        raise ModelError(f"command file '{path}': a column stands twice in its header {','.join(header):.200}")
    for name in header:
        if name not in ('', TIME, *actuators):
            raise ModelError(f"command file '{path}', line {rows.line_num}: '{name}': no such actuator"
                             f'{did_you_mean(name, actuators)}')
    for cells in rows:
        if _skipped(cells):
            continue
        where = f"command file '{path}', line {rows.line_num}"
        if len(cells) != len(header):
            raise ModelError(f'{where}: {len(cells)} fields; expected {len(header)} ({",".join(header):.200})')
        yield where, {name: cell for name, cell in zip(header, cells) if cell.strip()}


def _skipped(cells):
    return not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith('#')


def _from_yaml(path, text):
    entries = plain_contents(f"command file '{path}'", text)
    if not isinstance(entries, list):
        raise ModelError(f"command file '{path}': {entries!r:.80}; expected a list of {{time: s, actuator: command}}")
    for k, entry in enumerate(entries):
        where = f"command file '{path}', entry {k + 1}"
        if not isinstance(entry, dict):
            raise ModelError(f'{where}: {entry!r:.80}; expected a mapping such as {{time: 0.5, lift_cylinder: 0.3}}')
        yield where, dict(entry)


def _number(what, value):
    try:
        if isinstance(value, bool):
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise ModelError(f'{what} is {value!r:.80}; expected a number') from None
