"""The page of an identification: what was found with its standard errors, and pictures of it."""


import numpy as np

from ..identification.identified import IDENTIFIED_SHARE
from .figure_style import BLACK, BLUE, VERMILLION, finish, in_kilo, panel, panels, some_panels
from .page import MOTION, Head, write_page

TOP = 1.2                   # of the fastest speed at which friction is stated, to which it is drawn
BREAK = 2.0                 # times the usual distance of samples, from which a line is interrupted


def write_report(folder, found, playback=None):
    """Write identification.html and its pictures of an `Identification` into a folder that exists; the page's path.

    playback  `Playback` of the recording, or None
    """
    held = found.held_out
    facts = {'machine': found.machine, 'recording': found.source, 'used': f'{found.seconds:.1f} s, {found.equations} '
             'equations', 'filter': found.filter, 'held out': f'{held.seconds} s'}
    head = Head(found.verdict, '' if found.passed else found.verdict, facts)
    return write_page(
        folder, 'identification.html.j2', figures(found), head,
        f'{found.machine}: identified from a recording', file='identification.html', payload=found.payload,
        bodies=list(bodies_table(found)), friction=list(friction_table(found)), held_out=list(held_out_table(found)),
        base=list(base_table(found)), sensors=list(sensors_table(found)), partial=found.partial,
        findings=found.findings, playbacks={MOTION: playback})


def bodies_table(found):
    """Rows of text, the header first."""
    yield 'link', 'mass [kg]', 'was [kg]', 'x [m]', 'y [m]', 'z [m]'
    for body in found.bodies:
        was = '' if body.payload or body.declared is None else f'{body.declared.mass:.2f}'
        mass = _with_error(abs(body.found.mass), body.errors[0], body.identified[0], 2)
        yield (body.name, mass + (' less than the model' if body.payload and body.found.mass < 0.0 else ''), was,
               *(_with_error(value, error, identified, 3) for value, error, identified in
                 zip(body.found.com, body.errors[1:4], body.identified[1:4])))


def _with_error(value, error, identified, digits):
    return f'{value:.{digits}f} ± {error:.{digits}f}' + ('' if identified >= IDENTIFIED_SHARE else ' (belief)')


def friction_table(found):
    """Rows of text, the header first."""
    yield 'actuator', 'moved [s]', 'speed', 'found', 'standard error', 'was', ''
    for one in found.friction:
        force = 'N' if one.unit == 'm/s' else 'N m'
        if not one.forces:
            why = 'not identified: what fits best is below zero' if one.impossible else 'moved too little'
            yield one.name, f'{one.moved:.1f}', *('',) * 4, why
        for at in one.forces:
            yield (one.name, f'{one.moved:.1f}', f'{at.speed:g} {one.unit}', f'{at.force:.5g} {force}',
                   f'{at.error:.2g} {force}', f'{at.believed:.5g} {force}', '' if one.identified else 'not identified')


def held_out_table(found):
    """Rows of text, the header first."""
    yield 'coordinate', 'rms of the effort', 'error as believed', 'as identified', 'where fitted'
    held = found.held_out
    for k, name in enumerate(held.coordinates):
        if held.rows[k]:
            yield name, *(f'{values[k]:.4g}' for values in (held.usual, held.before, held.after, held.trained))


def base_table(found):
    """Rows of text, the header first."""
    yield 'parameter', 'found', 'standard error', 'was'
    for one in found.base:
        if one.identified:
            yield one.name, f'{one.found:.5g}', f'{one.error:.2g}', f'{one.believed:.5g}'


def sensors_table(found):
    """Rows of text, the header first: those beyond two standard errors."""
    yield 'actuator', 'error of its sensors', 'value', 'standard error'
    for one in found.sensors:
        if abs(one.value) > 2.0 * one.error:
            yield one.name, one.what, f'{one.value:.3g}', f'{one.error:.2g}'


def figures(found):
    """file name -> (title, Figure) of everything that the page shows."""
    shown = {'held_out.png': ('Efforts where they were held out', _efforts(found))}
    rubbing = [one for one in found.friction if one.forces]
    if rubbing:
        shown['identified_friction.png'] = 'Friction', _friction(rubbing)
    if not found.payload:
        shown['masses.png'] = 'Masses', _masses(found)
    return shown


def _efforts(found):
    trace, names = found.held_out.trace, found.held_out.coordinates
    axes = [k for k in range(len(names)) if found.held_out.rows[k]]
    figure, grid = panels(12, 2.4 * max(len(axes), 1), max(len(axes), 1), 2, width_ratios=(2, 1), sharex='col')
    # stretches that were held out are not joined to each other
    gaps = np.flatnonzero(np.diff(trace.t) > BREAK * np.median(np.diff(trace.t))) + 1 if len(trace.t) > 1 else []
    t, measured, believed, identified, counts = (
        np.insert(np.asarray(values, dtype=float), gaps, np.nan, axis=0)
        for values in (trace.t, trace.measured, trace.believed, trace.identified, trace.counts))
    judged = np.where(counts == 1.0, measured, np.nan)
    units = {one.name: 'N' if one.unit == 'm/s' else 'N m' for one in found.friction}
    for row, k in enumerate(axes):
        left, right = grid[row]
        factor, unit = in_kilo(np.nanmax(np.abs(measured[:, k]), initial=0.0), units.get(names[k], 'N, N m'))
        left.plot(t, factor * measured[:, k], color=BLACK, linewidth=3.5, alpha=0.3, label='measured')
        left.plot(t, factor * believed[:, k], color=VERMILLION, linewidth=1.1, linestyle=':', label='as believed')
        left.plot(t, factor * identified[:, k], color=BLUE, linewidth=1.1, label='as identified')
        left.set_ylabel(f'{names[k]}\n[{unit}]')
        for values, color, style in ((believed, VERMILLION, ':'), (identified, BLUE, '-')):
            right.plot(t, factor * (judged - values)[:, k], color=color, linestyle=style, linewidth=1.0)
    grid[0][0].set_title('efforts on the coordinates')
    grid[0][1].set_title('measured - model, where it slides')
    grid[0][0].legend(fontsize=9, ncols=3)
    finish(grid, 'since the start of the bag')
    return figure


def _friction(rubbing):
    figure, grid = some_panels(len(rubbing), 2, 6.0, 3.2)
    for one, axes in zip(rubbing, grid.flat):
        speeds = np.array([at.speed for at in one.forces])
        factor, unit = in_kilo(max(abs(at.force) for at in one.forces), 'N' if one.unit == 'm/s' else 'N m')
        v = np.linspace(0.5 * speeds[0], TOP * speeds[-1], 50)
        axes.plot(v, factor * (one.coulomb + one.viscous * v), color=BLUE, linewidth=1.0)
        axes.errorbar(speeds, [factor * at.force for at in one.forces], [2.0 * factor * at.error for at in one.forces],
                      fmt='o', color=BLUE, capsize=4, label='found, ± 2 standard errors')
        axes.plot(v, factor * (one.was_coulomb + one.was_viscous * v), color=VERMILLION, linestyle='--', linewidth=1.2,
                  label='believed')
        axes.set_title(one.name + ('' if one.identified else ': this recording does not tell it'), fontsize=10)
        axes.set_xlabel(f'speed [{one.unit}]')
        axes.set_ylabel(f'friction [{unit}]')
        axes.set_xlim(0.0, v[-1])
        axes.margins(y=0.3)
    grid[0][0].legend(fontsize=9)
    return figure


def _masses(found):
    figure, axes = panel(12, 1.0 + 0.4 * len(found.bodies))
    at = np.arange(len(found.bodies))[::-1]
    axes.errorbar([body.found.mass for body in found.bodies], at, xerr=[2.0 * body.errors[0] for body in found.bodies],
                  fmt='o', color=BLUE, capsize=4, label='found, ± 2 standard errors')
    declared = [np.nan if body.declared is None else body.declared.mass for body in found.bodies]
    axes.plot(declared, at, 'D', color=VERMILLION, markerfacecolor='none', label='believed')
    axes.set_yticks(at, [body.name for body in found.bodies])
    axes.set_xlabel('mass [kg]')
    axes.legend(fontsize=9)
    return figure
