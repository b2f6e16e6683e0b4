"""The report of a validation: a page that needs no other file, its pictures as PNG, tables as JSON and CSV."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from . import validation_tables as tables
from .figure_style import BLACK, BLUE, DPI, GREEN, VERMILLION, finish
from .metrics import EFFORT
from .predicted_bag import LAYOUT, write_layout
from .report import KILO, write_page
from .validation_tables import FORCE

SINCE = 'since the start of the bag'
DECADES = 5                 # of a spectrum that are shown below its largest value


class _Page(NamedTuple):
    """What the template says on top."""

    verdict: str
    reason: str
    facts: dict


def write_outputs(folder, found):
    """Write report.html, PNGs, validation.json and CSV files of a `Validation` into a folder; returns the page's path.

    Raises OSError where that is not possible.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables.write_tables(folder, found)
    write_layout(folder / LAYOUT, found.metrics.actuators)
    verdict = found.verdict
    page = _Page(verdict.text, '; '.join(verdict.reasons), tables.facts(found))
    return write_page(
        folder, 'validation.html.j2', figures(found), page, f'{found.manipulator.name}: model against recording',
        metrics=list(tables.metrics_table(found)), regimes=list(tables.regimes_table(found)),
        checks=list(tables.checks_table(found)), simulation=list(tables.simulation_table(found)),
        partial=verdict.partial, causes=found.causes, causes_text=found.causes_text, findings=found.quality.findings())


def figures(found):
    """file name -> (title, Figure) of everything that the report shows."""
    axes = [axis for axis in range(len(found.metrics.actuators)) if found.metrics.metrics(EFFORT, axis).count]
    if not axes:
        return {}
    shown = {'efforts.png': ('Efforts', _efforts(found, axes)),
             'errors.png': ('Errors over time', _errors(found, axes)),
             'friction.png': ('Friction', _friction(found, axes)),
             'spectrum.png': ('Spectrum of the errors', _spectrum(found, axes))}
    return shown


def _label(found, axis, largest):
    """(factor, 'name [unit]')."""
    factor = 1e-3 if largest > KILO else 1.0
    unit = FORCE[tables.actuator_units(found)[axis]]
    return factor, f"{found.metrics.actuators[axis]} [{'k' if factor < 1.0 else ''}{unit}]"


def _efforts(found, axes):
    figure = Figure(figsize=(12, 2.4 * len(axes)), dpi=DPI, layout='constrained')
    grid = figure.subplots(len(axes), 1, sharex=True, squeeze=False)
    period = found.channels.period
    for axis, one in zip(axes, grid[:, 0]):
        t, measured = found.traces.lines('effort', period)
        factor, label = _label(found, axis, np.nanmax(np.abs(measured[:, axis])))
        one.plot(t, factor * measured[:, axis], color=BLACK, linewidth=3.0, alpha=0.3, label='measured')
        for name, text, color, style in (
                ('effort_id', 'predicted', BLUE, '-'),
                ('effort_id_frictionless', 'predicted without friction', VERMILLION, ':')):
            one.plot(t, factor * found.traces.lines(name, period)[1][:, axis], color=color, linewidth=1.1,
                     linestyle=style, label=text)
        one.set_ylabel(label)
        one.margins(y=0.2)
    grid[0][0].legend(fontsize=9, ncols=3)
    grid[0][0].set_title('efforts of the actuators, measured and by the model')
    finish(grid, SINCE)
    return figure


def _errors(found, axes):
    metrics = found.metrics
    closure = metrics.closure_residual()
    figure = Figure(figsize=(12, 2.2 * (len(axes) + bool(closure[2]))), dpi=DPI, layout='constrained')
    grid = figure.subplots(len(axes) + bool(closure[2]), 1, sharex=True, squeeze=False)
    t = metrics.seconds
    for axis, one in zip(axes, grid[:, 0]):
        rmse, bias, _ = metrics.per_bin(EFFORT, axis).T
        bound = found.settings.actuators[metrics.actuators[axis]].nrmse * metrics.scale(EFFORT, axis)
        factor, label = _label(found, axis, max(np.nanmax(rmse), bound))
        one.plot(t, factor * rmse, color=BLUE, linewidth=1.3, label=f'rms of {metrics.width:g} s')
        one.plot(t, factor * bias, color=VERMILLION, linewidth=1.0, label='mean')
        one.axhline(factor * bound, color=BLACK, linewidth=0.9, linestyle='--', label='tolerance of the rms of all')
        one.axhline(0.0, color=BLACK, linewidth=0.6)
        one.set_ylabel(label)
    if closure[2]:
        grid[-1][0].plot(t, 1e3 * closure[3], color=GREEN, linewidth=1.3)
        grid[-1][0].set_ylabel('closure [mm]')
    grid[0][0].legend(fontsize=9, ncols=3)
    grid[0][0].set_title('measured - predicted')
    finish(grid, SINCE)
    return figure


def _friction(found, axes):
    """What is measured beyond the model without friction, over velocity."""
    columns = min(len(axes), 2)
    rows = -(-len(axes) // columns)
    figure = Figure(figsize=(6.0 * columns, 3.2 * rows), dpi=DPI, layout='constrained')
    grid = figure.subplots(rows, columns, squeeze=False)
    bare, v = found.traces['effort_id_frictionless'], found.traces['v']
    for axis, one in zip(axes, grid.flat):
        rest = found.traces['effort'][:, axis] - bare[:, axis]
        rubbing = found.traces['effort_id'][:, axis] - bare[:, axis]
        factor, label = _label(found, axis, np.nanmax(np.abs(rest)))
        one.plot(v[:, axis], factor * rest, '.', color=BLUE, markersize=1.5, alpha=0.5, label='measured')
        order = np.argsort(v[:, axis])
        one.plot(v[order, axis], factor * rubbing[order], color=VERMILLION, linewidth=1.2, label='model')
        one.set_ylabel(label)
        one.grid(True, color='#dddddd', linewidth=0.6)
        unit = tables.actuator_units(found)[axis]
        one.set_xlabel(f'velocity [{unit}/s]')
    for one in list(grid.flat)[len(axes):]:
        one.set_visible(False)
    grid[0][0].legend(fontsize=9, markerscale=6)
    figure.suptitle('measured effort less what the model needs without friction')
    return figure


def _spectrum(found, axes):
    frequencies, density = found.metrics.spectrum.density()
    figure = Figure(figsize=(12, 4), dpi=DPI, layout='constrained')
    one = figure.subplots()
    shown = frequencies > 0.0
    for axis, style in zip(axes, [(color, line) for line in ('-', '--') for color in (BLUE, VERMILLION, GREEN, BLACK)]):
        if np.isfinite(density[:, axis]).any():
            one.loglog(frequencies[shown], np.sqrt(density[shown, axis]), color=style[0], linestyle=style[1],
                       linewidth=1.2, label=found.metrics.actuators[axis])
    if one.get_lines():
        top = max(line.get_ydata().max() for line in one.get_lines())
        if top > 0.0:
            one.set_ylim(top * 10.0 ** -DECADES, 3.0 * top)
        one.axvline(found.predictor.filter.cutoff(), color=BLACK, linewidth=0.9, linestyle=':', label='cut-off')
        one.legend(fontsize=9)
    one.set_xlabel('frequency [Hz]')
    one.set_ylabel('N/√Hz or N m/√Hz')
    one.grid(True, which='both', color='#eeeeee', linewidth=0.5)
    one.set_title('amplitude density of measured - predicted efforts')
    return figure
