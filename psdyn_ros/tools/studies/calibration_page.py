"""The page and the pictures of the calibration."""

import math

import numpy as np

from ...validation.report.figure_style import BLACK, BLUE, GREEN, VERMILLION, panel
from . import PAGES
from .calibration_runs import CASES, HEALTHY, PAYLOAD

MAX_SHOWN = 6.0             # standard errors
COLOURS = BLUE, VERMILLION, GREEN


def word(row):
    """What a `Row` shows of its bound."""
    return 'met' if row.within else '**missed**' if row.missed else 'too few'


def page(tables, results):
    """The page as markdown.

    tables   of `judged`
    results  `Results`
    """
    tasks = [one.task for one in results.outcomes]
    deviations, delays = {}, {}
    for one in results.outcomes:
        if not math.isnan(one.deviation) and not CASES[one.task.case].also:
            deviations.setdefault(one.task.case, []).append(one.deviation)
        if one.task.case == HEALTHY and one.delays:
            delays.setdefault(one.task.layout.name, []).extend(1e3 * delay[0] for delay in one.delays)
    deviations['all of them'] = [one for off in deviations.values() for one in off]
    counts = [len(one) for one in (results.outcomes, results.comparisons, results.identified)]
    errors = np.array(results.identified).reshape(-1, 2)
    return PAGES.get_template('calibration.md.j2').render(
        payload=f'{PAYLOAD:g}', tasks=tasks, motions=sorted({task.motion for task in tasks}), tables=tables,
        healthy=sum(task.case == HEALTHY for task in tasks), counts=counts, planned=results.planned,
        partial=any(count < planned for count, planned in zip(counts, results.planned)), percent=_percent, word=word,
        deviations={name: np.array(off) for name, off in deviations.items()}, masses=errors[:, 0],
        delays={name: np.array(off) for name, off in delays.items()}, abs=np.abs,
        stated=np.median(errors[:, 1]) if len(errors) else math.nan,
        mistaken=sorted(_mistaken(results.outcomes).items()))


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
    figure, axes = panel(12.0, 1.6 + 0.36 * len(names))
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
    figure, axes = panel(12.0, 4.2)
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
