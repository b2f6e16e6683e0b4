"""The page about two recordings, and the same as text and JSON."""

import json
import math
from pathlib import Path

from ..metrics.comparison import BETTER, COMPARED, SAME, WORSE
from ..metrics.figure import FACTORS
from ..metrics.metrics import FIGURES, plain
from ..metrics.tracking import units
from .figure_style import BLACK, GREEN, VERMILLION, finish, in_kilo, panels
from .page import Head, as_text, write_page
from .validation_figures import SINCE, largest_error, plot_errors
from .validation_tables import FORCE

VERSION = 1                 # of the layout of comparison.json
COLORS = {SAME: BLACK, WORSE: VERMILLION, BETTER: GREEN}
# figure: factor and unit of what is drawn; efforts as shares of their range
DRAWN = {name: (FACTORS.get(one.unit, 1.0), '% of range' if one.of_range else one.unit)
         for name, one in COMPARED.items()}
SHOWN = {'known': (100.0, '%'), **{one.compared or one.name: (FACTORS.get(one.unit, 1.0), one.unit)
                                   for one in FIGURES if not one.of_range}}


def summary(comparison):
    """The verdict and the tables as lines of text."""
    lines = [comparison.text, *(f'partial input: {text}' for text in comparison.partial)]
    if comparison.changes:
        lines += ['', as_text(changes_table(comparison))]
    simulated = list(simulation_table(comparison))
    if len(simulated) > 1:
        lines += ['', 'errors of simulations under measured efforts, which are not judged', as_text(simulated)]
    return '\n'.join([*lines, '', *(f'{label}: {text}' for label, text in _facts(comparison).items())])


def changes_table(comparison):
    """Rows of text, the header first."""
    yield 'what', 'figure', 'unit', 'first', 'second', 'change', 'between', 'verdict'
    forces = units(comparison.first.manipulator, comparison.first.metrics.actuators)
    for one in comparison.changes:
        factor, unit = SHOWN.get(one.figure, (1.0, FORCE[forces.get(one.actuator, 'm')]))
        low, high = (factor * value for value in one.change[1:])
        yield (one.actuator, one.figure, unit, f'{factor * one.first:.4g}', f'{factor * one.second:.4g}',
               f'{factor * one.change.estimate:+.3g}', '' if math.isnan(low) else f'{low:+.3g} to {high:+.3g}',
               one.verdict.upper() if one.verdict != SAME else SAME)


def simulation_table(comparison):
    """Rows of text, the header first: errors of simulations of both recordings."""
    names = comparison.first.metrics.coordinates
    yield 'simulated [s]', *names
    of_unit = units(comparison.first.manipulator, names)
    second = {one.seconds: one for one in comparison.second.simulation}
    for one in comparison.first.simulation:
        if one.seconds in second:
            yield (f'{one.seconds:g}', *(
                f'{1e3 * before:.3g}, {1e3 * after:.3g} m{of_unit[name]}'
                for name, before, after in zip(names, one.position, second[one.seconds].position)))


def document(comparison):
    """All of it as what JSON can hold, SI units; what is not known is None."""
    return plain({
        'version': VERSION, 'verdict': comparison.verdict, 'exit_code': comparison.exit_code, 'text': comparison.text,
        'partial': comparison.partial, 'changes': [change.as_dict() for change in comparison.changes],
        **{name: {'bag': str(found.bag), 'verdict': found.verdict.verdict, 'exit_code': found.verdict.exit_code,
                  'duration': found.duration, 'usable': found.metrics.rows * found.channels.period,
                  'simulation': [error._asdict() for error in found.simulation]}
           for name, found in (('first', comparison.first), ('second', comparison.second))}})


def _facts(comparison):
    facts = {'model': comparison.first.manipulator.name, 'tolerances': comparison.first.settings.where}
    for name, found in (('first', comparison.first), ('second', comparison.second)):
        facts[name] = f'{found.bag}, {found.duration:.1f} s: {found.verdict.verdict} by itself'
    return facts


def write_comparison(folder, comparison, playbacks):
    """Write report.html, its pictures and comparison.json into a folder; returns the path of the page.

    playbacks  `Playback` of the first and of the second recording, each may be None

    Raises OSError where that is not possible.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(comparison), indent=1, allow_nan=False)
    (folder / 'comparison.json').write_text(text + '\n', encoding='utf-8')
    page = Head(comparison.text, comparison.text if comparison.exit_code in (1, 2) else '', _facts(comparison))
    changes = list(changes_table(comparison)) if comparison.changes else []
    return write_page(folder, 'compare.html.j2', figures(comparison), page,
                      f'{comparison.first.manipulator.name}: two recordings', partial=comparison.partial,
                      changes=changes, simulation=list(simulation_table(comparison)),
                      playbacks=dict(zip(('The first motion in 3-D', 'The second motion in 3-D'), playbacks)))


def figures(comparison):
    """file name -> (title, Figure) of everything that the page shows."""
    axes = [axis for axis in range(len(comparison.first.metrics.actuators))
            if any(found.metrics.effort(axis).count for found in (comparison.first, comparison.second))]
    drawn = [change for change in comparison.changes if change.figure in DRAWN]
    shown = {'changes.png': ('Changes and their intervals', _forest(drawn))} if drawn else {}
    if axes:
        shown['errors.png'] = 'Errors over time', _errors(comparison, axes)
    return shown


def _forest(changes):
    """Every change with its interval, and the band in which changes are of no interest."""
    columns = [figure for figure in DRAWN if any(change.figure == figure for change in changes)]
    names = list(dict.fromkeys(change.actuator for change in changes))
    figure, (grid,) = panels(2.0 + 3.1 * len(columns), 1.3 + 0.45 * len(names), 1, len(columns), 'x', sharey=True)
    for axes, column in zip(grid, columns):
        factor, unit = DRAWN[column]
        for change in (change for change in changes if change.figure == column):
            row, by = names.index(change.actuator), factor / change.scale
            axes.fill_betweenx([row - 0.4, row + 0.4], -by * change.least, by * change.least, color='#dddddd')
            low, middle, high = (by * value for value in (change.change.low, change.change.estimate,
                                                          change.change.high))
            color = COLORS[change.verdict]
            axes.plot([low, high], [row, row], color=color, linewidth=2.0, solid_capstyle='butt')
            axes.plot(middle, row, 'o' if change.verdict == SAME else 'D', color=color, markersize=6)
        axes.axvline(0.0, color=BLACK, linewidth=0.8)
        axes.set_title(column)
        axes.set_xlabel(f'change [{unit}]')
        axes.margins(x=0.1)
    grid[0].set_yticks(range(len(names)), labels=names, parse_math=False)
    grid[0].set_ylim(len(names) - 0.4, -0.6)
    for verdict in (WORSE, BETTER, SAME):
        grid[0].plot([], [], 'o' if verdict == SAME else 'D', color=COLORS[verdict], label=verdict)
    grid[0].fill_betweenx([], [], [], color='#dddddd', label='too small to mention')
    figure.legend(*grid[0].get_legend_handles_labels(), loc='outside lower center', ncols=4, fontsize=9)
    return figure


def _errors(comparison, axes):
    both = comparison.first, comparison.second
    forces = units(comparison.first.manipulator, comparison.first.metrics.actuators)
    figure, grid = panels(12, 2.2 * len(axes), len(axes), 2, sharex='col', sharey='row')
    for row, axis in zip(grid, axes):
        name = comparison.first.metrics.actuators[axis]
        factor, unit = in_kilo(max(largest_error(found, axis) for found in both), FORCE[forces[name]])
        for one, found in zip(row, both):
            plot_errors(one, found, axis, factor)
        row[0].set_ylabel(f'{name} [{unit}]')
    for one, which in zip(grid[0], ('first', 'second')):
        one.set_title(f'{which} recording, measured - predicted')
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc='outside lower center', ncols=3, fontsize=9)
    finish(grid, SINCE)
    return figure
