"""Figures of a validation."""

import numpy as np

from ..metrics.metrics import EFFORT
from . import validation_tables as tables
from .figure_style import BLACK, BLUE, GREEN, VERMILLION, finish, in_kilo, panel, panels, some_panels
from .validation_tables import FORCE, SHARE

SINCE = 'since the start of the bag'
DECADES = 5                 # of a spectrum that are shown below its largest value
ZOOM = 20.0                 # s that are shown larger
MILLI = 1e3                 # mm, mrad


def figures(found):
    """file name -> (title, Figure) of everything that the report shows."""
    axes = [axis for axis in range(len(found.metrics.actuators)) if found.metrics.effort(axis).count]
    if not axes:
        return {}
    shown = {'efforts.png': ('Efforts', _efforts(found, axes)),
             'errors.png': ('Errors over time', _errors(found, axes))}
    if tables.redundant(found):
        shown['closure.png'] = 'Closure of redundant joints', _closure(found)
    shown['spectrum.png'] = 'Spectrum of the errors', _spectrum(found, axes)
    shown['friction.png'] = 'Friction', _friction(found, axes)
    if found.metrics.figure['energy'].balance().spans:
        shown['energy.png'] = 'Energy balance', _energy(found)
    if found.simulation:
        shown['simulation.png'] = 'Errors of simulations', _simulation(found)
    return shown


def curves(found):
    """What the curves that zoom show, for JSON: s, and labels with measured and predicted efforts; None of none."""
    axes = [axis for axis in range(len(found.metrics.actuators)) if found.metrics.effort(axis).count]
    t, measured = found.traces.lines('effort', found.channels.period)
    _, predicted = found.traces.lines('effort_id', found.channels.period)
    there = np.isfinite(t)
    if not axes or not there.any():
        return None
    # a gap has no time of its own, and is between those beside it
    t = np.interp(np.arange(len(t)), np.flatnonzero(there), t[there])
    units = tables.actuator_units(found)

    def rounded(values):
        return [float(f'{value:.5g}') if np.isfinite(value) else None for value in values.tolist()]
    return {'t': np.round(t, 4).tolist(), 'curves': [
        {'label': f'{found.metrics.actuators[axis]} [{FORCE[units[axis]]}]', 'measured': rounded(measured[:, axis]),
         'predicted': rounded(predicted[:, axis])} for axis in axes]}


def _label(found, axis, largest):
    """(factor, 'name [unit]')."""
    factor, unit = in_kilo(largest, FORCE[tables.actuator_units(found)[axis]])
    return factor, f'{found.metrics.actuators[axis]} [{unit}]'


def _efforts(found, axes):
    """All of the recording, and where it is long also the part with the largest errors."""
    whole = found.traces.lines('effort', found.channels.period)[0]
    long = np.nanmax(whole) - np.nanmin(whole) > 3.0 * ZOOM
    figure, grid = panels(12, 2.4 * len(axes), len(axes), 1 + long, sharex='col', width_ratios=(3, 2) if long else None)
    worst = _worst(found, axes)
    for axis, row in zip(axes, grid):
        factor, label = _label(found, axis, np.nanmax(np.abs(found.traces['effort'][:, axis])))
        for one, span in zip(row, ((-np.inf, np.inf), (worst - 0.5 * ZOOM, worst + 0.5 * ZOOM))):
            _effort(found, axis, one, factor, span)
        row[0].set_ylabel(label)
    grid[0][0].legend(fontsize=9, ncols=3, loc='upper right')
    grid[0][0].set_title('efforts of the actuators, measured and by the model')
    if long:
        grid[0][1].set_title(f'{ZOOM:g} s with the largest errors')
    finish(grid, SINCE)
    return figure


def _effort(found, axis, one, factor, span):
    """Efforts of an actuator between two times."""
    for name, text, style in (
            ('effort', 'measured', {'color': BLACK, 'linewidth': 3.0, 'alpha': 0.3}),
            ('effort_id', 'predicted', {'color': BLUE, 'linewidth': 1.1}),
            ('effort_id_frictionless', 'predicted without friction',
             {'color': VERMILLION, 'linewidth': 1.1, 'linestyle': ':'})):
        t, values = found.traces.lines(name, found.channels.period)
        shown = ~((t < span[0]) | (t > span[1]))
        one.plot(t[shown], factor * values[shown, axis], label=text, **style)
    one.margins(y=0.25)


def _worst(found, axes):
    """s since the start of the bag at which errors are largest for what the actuator does."""
    with np.errstate(invalid='ignore', divide='ignore'):
        share = np.array([found.metrics.per_bin(EFFORT, axis)[:, 0] / found.metrics.scale(EFFORT, axis)
                          for axis in axes])
    return float(found.metrics.seconds[np.argmax(np.nan_to_num(share).max(axis=0))])


def _errors(found, axes):
    figure, grid = panels(12, 2.2 * len(axes), len(axes), 1, sharex=True)
    for axis, one in zip(axes, grid[:, 0]):
        factor, label = _label(found, axis, largest_error(found, axis))
        plot_errors(one, found, axis, factor)
        one.set_ylabel(label)
        one.margins(y=0.25)
    grid[0][0].legend(fontsize=9, ncols=3, loc='upper right')
    grid[0][0].set_title('measured - predicted')
    finish(grid, SINCE)
    return figure


def largest_error(found, axis):
    """Return the largest rms error of an actuator, or its tolerance where that is larger."""
    return np.nanmax([_bound(found, axis), np.nanmax(found.metrics.per_bin(EFFORT, axis)[:, 0], initial=0.0)])


def _bound(found, axis):
    metrics = found.metrics
    return (found.settings.actuators[metrics.actuators[axis]].nrmse * metrics.scale(EFFORT, axis)
            / metrics.share_without_noise(axis))


def plot_errors(one, found, axis, factor):
    """Draw rms and mean of the errors of an actuator over time, and the tolerance."""
    t, (rmse, bias, _) = found.metrics.seconds, found.metrics.per_bin(EFFORT, axis).T
    one.plot(t, factor * rmse, color=BLUE, linewidth=1.3, label=f'rms of {found.metrics.width:g} s')
    one.plot(t, factor * bias, color=VERMILLION, linewidth=1.0, label='mean')
    one.axhline(factor * _bound(found, axis), color=BLACK, linewidth=0.9, linestyle='--',
                label='tolerance of the rms of all')
    one.axhline(0.0, color=BLACK, linewidth=0.6)


def _closure(found):
    """Disagreement of redundant joints over time."""
    closure = found.metrics.figure['closure']
    figure, grid = panels(12, 3)
    one = grid[0][0]
    one.plot(found.metrics.seconds, MILLI * closure.largest(), color=GREEN, linewidth=1.3,
             label=f'largest of {found.metrics.width:g} s')
    one.axhline(MILLI * closure.as_dict()['rms'], color=BLUE, linewidth=1.0, label='rms of all')
    one.axhline(MILLI * found.settings.machine.closure, color=BLACK, linewidth=0.9, linestyle='--',
                label='tolerance of the rms')
    one.set_ylim(bottom=0.0)
    one.set_ylabel('closure [mm]')
    one.set_title('how far redundant joints disagree about where a rod eye is')
    one.legend(fontsize=9, ncols=3, loc='upper right')
    one.margins(y=0.25)
    finish(grid, SINCE)
    return figure


def _energy(found):
    """Where the work of the actuators went."""
    balance, names = found.metrics.figure['energy'].balance(), found.metrics.actuators
    bars = [(f'work of {name}', value, BLUE) for name, value in zip(names, balance.actuators)]
    bars += [(f'friction of {name}', 0.0 - value, VERMILLION) for name, value in zip(names, balance.friction)]
    bars += [('motion and height', 0.0 - balance.mechanical, GREEN), ('unexplained', balance.unexplained, BLACK)]
    factor, unit = in_kilo(max(abs(value) for _, value, _ in bars), 'J')
    figure, one = panel(12, 1.2 + 0.32 * len(bars), 'x')
    places = np.arange(len(bars))[::-1]
    one.barh(places, [factor * value for _, value, _ in bars], color=[color for *_, color in bars], height=0.65)
    for place, (_, value, _) in zip(places, bars):
        one.annotate(f'{factor * value:.4g}', (factor * value, place), xytext=(4 if value >= 0.0 else -4, 0),
                     textcoords='offset points', va='center', ha='left' if value >= 0.0 else 'right', fontsize=9)
    one.set_yticks(places, [name for name, *_ in bars])
    one.axvline(0.0, color=BLACK, linewidth=0.8)
    one.margins(x=0.12)
    one.set_xlabel(f'energy [{unit}]')
    one.set_title('work of the actuators, where it went by the model, and what is left: '
                  f'{SHARE * balance.mismatch:.2g} % of the work in a second (rms)')
    return figure


def _simulation(found):
    """Errors of simulations from recorded states, beside how far the machine moved meanwhile."""
    names = found.metrics.coordinates
    units = tables.actuator_units(found, names)
    figure, grid = some_panels(len(names), 4, 12 / min(len(names), 4), 3.0, sharex=True)
    seconds = [error.seconds for error in found.simulation]
    for k, (one, name) in enumerate(zip(grid.flat, names)):
        for values, text, style in (
                ([error.still[k] for error in found.simulation], 'rms of how far it moved',
                 {'color': BLACK, 'linestyle': ':'}),
                ([error.position[k] for error in found.simulation], 'rms error', {'color': BLUE, 'marker': 'o'}),
                ([error.largest[k] for error in found.simulation], 'largest error',
                 {'color': VERMILLION, 'marker': 'v', 'linestyle': '--'})):
            if max(values) > 0.0:
                one.loglog(seconds, MILLI * np.array(values), label=text, linewidth=1.2, markersize=5, **style)
        one.set_title(f'{name} [m{units[k]}]', fontsize=10)
    for one in grid[-1]:
        one.set_xlabel('simulated [s]')
    grid[0][0].legend(fontsize=9)
    figure.suptitle('error of position of simulations under the measured efforts')
    return figure


def _friction(found, axes):
    """What is measured beyond the model without friction, over velocity."""
    figure, grid = some_panels(len(axes), 2, 6.0, 3.2)
    bare, v = found.traces['effort_id_frictionless'], found.traces['v']
    for axis, one in zip(axes, grid.flat):
        rest = found.traces['effort'][:, axis] - bare[:, axis]
        rubbing = found.traces['effort_id'][:, axis] - bare[:, axis]
        factor, label = _label(found, axis, np.nanmax(np.abs(rest)))
        one.plot(v[:, axis], factor * rest, '.', color=BLUE, markersize=1.5, alpha=0.5, label='measured')
        order = np.argsort(v[:, axis])
        one.plot(v[order, axis], factor * rubbing[order], color=VERMILLION, linewidth=1.2, label='model')
        one.set_ylabel(label)
        unit = tables.actuator_units(found)[axis]
        one.set_xlabel(f'velocity [{unit}/s]')
    grid[0][0].legend(fontsize=9, markerscale=6)
    figure.suptitle('measured effort less what the model needs without friction')
    return figure


def _spectrum(found, axes):
    frequencies, density = found.metrics.spectrum.density()
    figure, one = panel(12, 4)
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
