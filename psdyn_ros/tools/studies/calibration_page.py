"""The page and the pictures of the calibration."""

import math

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ...validation.report.figure_style import BLACK, BLUE, DPI, GREEN, VERMILLION
from .calibration_runs import CASES, HEALTHY, PAYLOAD

MAX_SHOWN = 6.0             # standard errors
COLOURS = BLUE, VERMILLION, GREEN
HEAD = '''# How far verdicts can be trusted

Written by `make calibration`; nothing here was measured on a machine.

`psdyn validate`, `compare` and `identify` are tried on bags of a plant that shares no equation with them
(`psdyn_ros/tools/studies/second_plant`: joint space by virtual power, cylinders with bristle friction, another
integrator): the HIAB XS 031 on its hydraulics with {payload:g} kg at its tool, every axis to random places and back.
What is wrong is either changed in what was measured, or the model is another one than the machine.

* {bags} bags of {motions} motions of 30 s (seeds {first} to {last}), {healthy} of them healthy; each has sensor noise
  of its own.
* Sensors are those of `config/hiab_xs031_sensors.yaml`, or exact. Topics: `array`, one labelled array of all chamber
  pressures; `ports`, a FluidPressure topic for each port, sampled one after the other; `effort`, `JointState.effort`
  alone. Rates are of the joint states, then of the pressures.
* *Too few*: outside the bound, but by no more than chance explains in 1 of 20 studies. Of n bags without a failure,
  the share that fails may still be 3/n.

'''
PART = '''**Only a part was run**, drawn at random: {} of {} bags for causes and delays, {} of {} comparisons, {} of {}
bags for the payload. `make calibration` runs all of them.

'''
CAUSES = '''![Deviations of estimates in standard errors]({picture})

*Every bag with something wrong: by how many of its own standard errors the estimate of the first cause is off, where it
is the right cause; crosses at the right edge are bags in which another cause came first.*

'''
DELAYS = '''![Delays of healthy bags with their intervals]({picture})

*Delays that were found in healthy bags, with their intervals of 95 %; the truth is 0.*

'''
OFF = """## By how many of its standard errors the estimate is off

A mean far from zero is a bias; a spread above 1 is a stated error that is too small. The last columns are how many
intervals of 68 and of 95 % have the truth, of +- 1 and +- 1.96 standard errors.

| | bags | mean | spread | 68 % | 95 % |
|---|---|---|---|---|---|
"""
DELAY_ERRORS = """## Errors of delays of healthy bags [ms]

| | delays | mean | rms | within 0.3 ms |
|---|---|---|---|---|
"""
LIMITS = '''## What this does not say

* The second plant is still a rigid crane on the hydraulics that the model declares: bending, play and oil that warms up
  are in neither.
* Every case has one thing wrong, or two.
* Sensors have noise and steps. Gains that are off act as a payload does in part, and no recording tells them from it.
* Where an actuator stands, creeps or has just turned round, its friction may be anything up to its level, and says
  nothing of the model; a machine that only creeps is not judged beyond that.
'''


def word(row):
    """What a `Row` shows of its bound."""
    return 'met' if row.within else '**missed**' if row.missed else 'too few'


def page(tables, results):
    """The page as markdown.

    tables   of `judged`
    results  `Results`
    """
    tasks = [one.task for one in results.outcomes]
    motions = sorted({task.motion for task in tasks})
    parts = [HEAD.format(payload=PAYLOAD, bags=len(tasks), motions=len(motions), first=motions[0], last=motions[-1],
                         healthy=sum(task.case == HEALTHY for task in tasks))]
    counts = [len(one) for one in (results.outcomes, results.comparisons, results.identified)]
    if any(count < planned for count, planned in zip(counts, results.planned)):
        parts.append(PART.format(*(number for pair in zip(counts, results.planned) for number in pair)))
    for title, rows in tables.items():
        if not any(row.of for row in rows):
            continue
        parts.append(f'## {title}\n\n| | bags | share | bound | |\n|---|---|---|---|---|\n')
        parts += [f'| {row.what} | {row.count} of {row.of} | {_percent(row.share)} | {row.bound} | '
                  f'{word(row)} |\n' for row in rows if row.of]
        parts.append('\n')
        if title.startswith('Its estimate'):
            parts.append(CAUSES.format(picture='images/calibration_causes.png'))
            parts.append(_off(results.outcomes))
        if title.endswith('that have the truth'):
            parts.append(DELAYS.format(picture='images/calibration_delays.png'))
            parts.append(_delays(results.outcomes))
    errors = np.array(results.identified).reshape(-1, 2)
    if len(errors):
        parts.append(f'Errors of the payload: {errors[:, 0].std():.2g} kg rms about a mean of '
                     f'{errors[:, 0].mean():+.2g} kg, stated {np.median(errors[:, 1]):.2g} kg. What gains and offsets '
                     'of sensors would change is stated apart.\n\n')
    wrong = _mistaken(results.outcomes)
    if wrong:
        parts.append('## What came first instead\n\n| wrong | first cause | bags |\n|---|---|---|\n')
        parts += [f'| {name} | {cause} | {count} |\n' for (name, cause), count in sorted(wrong.items())]
        parts.append('\n')
    return ''.join([*parts, LIMITS])


def _off(outcomes):
    """The table of deviations of estimates."""
    found = {}
    for one in outcomes:
        if not math.isnan(one.deviation) and not CASES[one.task.case].also:
            found.setdefault(one.task.case, []).append(one.deviation)
    found['all of them'] = [one for off in found.values() for one in off]
    return ''.join([OFF, *(f'| {name} | {len(off)} | {np.mean(off):+.2f} | {np.std(off):.2f} | '
                           f'{_percent(np.mean(np.abs(off) <= 1.0))} | {_percent(np.mean(np.abs(off) <= 1.96))} |\n'
                           for name, off in found.items() if off), '\n'])


def _delays(outcomes):
    """The table of delays of healthy bags, whose truth is 0."""
    found = {}
    for one in outcomes:
        if one.task.case == HEALTHY:
            found.setdefault(one.task.layout.name, []).extend(1e3 * delay[0] for delay in one.delays)
    return ''.join([DELAY_ERRORS, *(
        f'| {name} | {len(off)} | {np.mean(off):+.3f} | {np.sqrt(np.mean(np.square(off))):.3f} | '
        f'{_percent(np.mean(np.abs(off) <= 0.3))} |\n' for name, off in found.items() if off), '\n'])


def _percent(share):
    return '' if math.isnan(share) else f'{100.0 * share:.3g} %'


def _mistaken(outcomes):
    """{(case, first cause): bags}; of healthy bags those that fail."""
    found = {}
    for one in outcomes:
        case = CASES[one.task.case]
        if case.kind and not case.also and not one.named:
            kind, about = one.causes[0][:2] if one.causes else ('none', '')
            key = one.task.case, f'{kind} {about}'.strip()
            found[key] = found.get(key, 0) + 1
    return found


def draw_causes(path, outcomes):
    """Write the picture of deviations; outcomes: [Outcome] of bags with something wrong."""
    names = list(dict.fromkeys(one.task.case for one in outcomes))
    kinds = list(dict.fromkeys(one.task.layout.pressures for one in outcomes))
    figure, axes = _figure(12.0, 1.6 + 0.36 * len(names))
    axes.axvspan(-2.0, 2.0, color='#e8eef5', zorder=0)
    axes.axvline(0.0, color=BLACK, linewidth=0.8)
    for color, kind in zip(COLOURS, kinds):
        chosen = [one for one in outcomes if one.task.layout.pressures == kind]
        rows = np.array([names.index(one.task.case) for one in chosen]) + 0.22 * (kinds.index(kind) - 1)
        off = np.array([one.deviation for one in chosen])
        known = np.isfinite(off)
        axes.plot(np.clip(off[known], -MAX_SHOWN, MAX_SHOWN), rows[known], '.', color=color, markersize=5,
                  label=kind, alpha=0.7)
        axes.plot(np.full((~known).sum(), MAX_SHOWN + 0.4), rows[~known], 'x', color=color, markersize=5)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(-MAX_SHOWN - 0.3, MAX_SHOWN + 0.8)
    axes.set_xlabel('(estimate - truth) / stated standard error')
    axes.legend(fontsize=9, frameon=False, ncols=len(kinds), loc='upper left', bbox_to_anchor=(0.0, 1.0 + 0.6 / len(
        names)))
    figure.savefig(path, metadata={'Software': None})


def draw_delays(path, outcomes):
    """Write the picture of delays; outcomes: [Outcome] of healthy bags with delays."""
    layouts = list(dict.fromkeys(one.task.layout for one in outcomes))
    figure, axes = _figure(12.0, 4.2)
    for k, layout in enumerate(layouts):
        found = 1e3 * np.array(sorted(one for bag in outcomes if bag.task.layout == layout for one in bag.delays))
        at = k + np.linspace(-0.35, 0.35, len(found)) if len(found) > 1 else np.array([float(k)])
        missed = (found[:, 1] > 0.0) | (found[:, 2] < 0.0)
        for chosen, color in ((~missed, BLUE), (missed, VERMILLION)):
            axes.errorbar(at[chosen], found[chosen, 0], (found[chosen, 0] - found[chosen, 1],
                                                         found[chosen, 2] - found[chosen, 0]), fmt='.', color=color,
                          elinewidth=0.7, markersize=3)
    axes.axhline(0.0, color=BLACK, linewidth=0.8)
    axes.set_xticks(range(len(layouts)), [layout.name for layout in layouts], fontsize=9)
    axes.set_ylabel('delay [ms]')
    figure.savefig(path, metadata={'Software': None})


def _figure(width, height):
    figure = Figure(figsize=(width, height), dpi=DPI, layout='constrained')
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.grid(True, color='#dddddd', linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes
