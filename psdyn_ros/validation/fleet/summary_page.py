"""The page about many bags, and the same as text, JSON and CSV."""

import csv
import json
import math
import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ...model.errors import shorten
from ..metrics import INVALID, PASS
from ..metrics.metrics import FIGURES, plain
from ..metrics.verdict import Check
from ..report.figure_style import BLACK, BLUE, DPI, VERMILLION
from ..report.page import Head, as_text, write_page
from .outcomes import KINDS, PAGES, counts, excess, kind_of, worst_check

VERSION = 1                 # of the layout of summary.json
ROWS = 60                   # bags in the picture
WIDEST = 4.0                # times a tolerance at which colours end, either way
DARK = 0.45                 # share of a tolerance up to which colours are dark
COLORS = LinearSegmentedColormap.from_list('tolerance', (BLUE, '#ffffff', VERMILLION))
MACHINE = 'machine'         # what is judged of no actuator
HEADER = 'bag', 'verdict', 'length [s]', 'worst figure', 'likely cause, or why'
# figures of actuators that are judged unless the settings say otherwise
OF_ACTUATORS = tuple(one.name for one in FIGURES if one.of_actuators and math.isfinite(one.tolerance.default))


class _Row(NamedTuple):
    """A bag in the table of the page."""

    name: str
    link: str
    cells: tuple
    text: str


def summary(fleet):
    """The verdict, a row for each bag, and why some are unusable, as lines of text."""
    rows = [('bag', 'verdict', 'worst figure'),
            *((shown(one.bag), KINDS[kind_of(one)], _worst(one)) for one in fleet.outcomes)]
    lines = [fleet.text, '', as_text(rows), '']
    lines += [f'{shown(one.bag)}: {one.text}' for one in fleet.outcomes if one.verdict == INVALID]
    lines += [f'{shown(one.bag)}: {one.cause}' for one in fleet.outcomes if one.cause]
    return '\n'.join(lines).rstrip()


def shown(path):
    """A path as text that any encoding of Unicode takes: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode('utf-8', 'backslashreplace')


def document(fleet):
    """All of it as what JSON can hold, SI units; what is not known is None."""
    return plain({
        'version': VERSION, 'machine': fleet.machine, 'exit_code': fleet.exit_code, 'text': fleet.text,
        'error': fleet.error, 'bags': [_entry(fleet, one) for one in fleet.outcomes]})


def _entry(fleet, one):
    found = one.document
    report = shown(fleet.reports[one.bag]) if found and one.bag in fleet.reports else None
    return {'bag': shown(one.bag), 'report': report,
            'verdict': one.verdict, 'exit_code': one.exit_code, 'text': one.text, 'cause': one.cause,
            'partial': found.get('partial', []), 'duration': found.get('duration'), 'usable': found.get('usable'),
            'worst': worst_check(one), 'actuators': _actuators(one)}


def _actuators(one):
    """{actuator: {figure: value}} of what was judged."""
    found = {}
    for check in one.document.get('checks', ()):
        if check['figure'] in OF_ACTUATORS:
            found.setdefault(check['about'], {})[check['figure']] = check['value']
    return found


def _worst(one):
    check = worst_check(one)
    return Check(**{name: np.nan if value is None else value for name, value in check.items()}).text if check else ''


def write_fleet(folder, fleet):
    """Write index.html, its picture, summary.json and summary.csv into a folder; returns the path of the page.

    Raises OSError where that is not possible.
    """
    folder = Path(folder)
    content = document(fleet)
    (folder / PAGES[1]).write_text(json.dumps(content, indent=1, allow_nan=False) + '\n', encoding='utf-8')
    _write_csv(folder / PAGES[2], content)
    facts = {'model': fleet.machine, 'tolerances': fleet.tolerances, 'bags': counts(fleet.outcomes)}
    page = Head(fleet.text, '' if fleet.verdict == PASS else fleet.text, facts)
    return write_page(folder, 'fleet.html.j2', figures(fleet), page,
                      f'{fleet.machine}: model against {len(fleet.outcomes)} recordings', file=PAGES[0], header=HEADER,
                      rows=[_row(fleet, one) for one in fleet.outcomes])


def _row(fleet, one):
    found = one.document
    link = f'{quote(os.fsencode(fleet.reports[one.bag]))}/report.html' if found and one.bag in fleet.reports else ''
    length = f'{found["duration"]:.1f}' if found else ''
    why = one.cause or (one.text if one.verdict == INVALID else '; '.join(found.get('partial', ())))
    return _Row(shown(one.bag), link, (KINDS[kind_of(one)], length, _worst(one)), why)


def _write_csv(path, content):
    names = list(dict.fromkeys(name for bag in content['bags'] for name in bag['actuators']))
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file)
        writer.writerow(('bag', 'report', 'verdict', 'exit_code', 'duration', 'usable',
                         *(f'{name}.{figure}' for name in names for figure in OF_ACTUATORS), 'text', 'cause'))
        for bag in content['bags']:
            writer.writerow(['' if value is None else value for value in (
                bag['bag'], bag['report'], bag['verdict'], bag['exit_code'], bag['duration'], bag['usable'],
                *(bag['actuators'].get(name, {}).get(figure) for name in names for figure in OF_ACTUATORS),
                bag['text'], bag['cause'])])


def figures(fleet):
    """file name -> (title, Figure): how much of its tolerance every actuator takes in every bag."""
    rows = [one for one in fleet.outcomes if one.document][:ROWS]
    if not rows:
        return {}
    columns = list(dict.fromkeys(name for one in rows for name in _shares(one)))
    shares = np.array([[_shares(one).get(name, np.nan) for name in columns] for one in rows])
    labels = [shorten(shown(fleet.reports.get(one.bag, one.bag))) for one in rows]
    figure = Figure(figsize=(2.5 + 1.4 * len(columns) + 0.07 * max(map(len, labels)), 1.2 + 0.32 * len(rows)), dpi=DPI,
                    layout='constrained')
    axes = figure.subplots()
    colored = axes.imshow(np.log2(np.clip(shares, 1.0 / WIDEST, WIDEST)), cmap=COLORS, aspect='auto',
                          vmin=-np.log2(WIDEST), vmax=np.log2(WIDEST))
    axes.set_facecolor('#dddddd')
    for (row, column), share in np.ndenumerate(shares):
        if not np.isnan(share):
            text = f'{share:.2f}' if share < 10.0 else f'{share:.0f}'
            axes.text(column, row, text, ha='center', va='center', fontsize=9,
                      fontweight='bold' if share > 1.0 else 'normal', color=BLACK if share > DARK else 'white')
    axes.hlines(np.arange(1, len(rows)) - 0.5, -0.5, len(columns) - 0.5, color='white', linewidth=1.0)
    axes.vlines(np.arange(1, len(columns)) - 0.5, -0.5, len(rows) - 0.5, color='white', linewidth=1.0)
    # names may have what would be read as a formula
    axes.set_xticks(range(len(columns)), labels=columns, parse_math=False)
    axes.set_yticks(range(len(rows)), labels=labels, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    bar = figure.colorbar(colored, ax=axes, ticks=np.log2([1.0 / WIDEST, 1.0, WIDEST]))
    bar.ax.set_yticklabels([f'≤ {1.0 / WIDEST:g}', '1: tolerance', f'≥ {WIDEST:g}'])
    shown_of = f', {len(rows)} of {len(fleet.outcomes)} bags' if len(rows) < len(fleet.outcomes) else ''
    return {PAGES[3]: (f'Shares of tolerances that are taken{shown_of}', figure)}


def _shares(one):
    """{actuator, or MACHINE: the largest share that its figures take of their tolerances}."""
    judged = one.document['actuators']
    found = {}
    for check in one.document['checks']:
        name = check['about'] if check['about'] in judged else MACHINE
        found[name] = max(found.get(name, 0.0), excess(check))
    return found
