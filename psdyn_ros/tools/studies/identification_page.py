"""The page and the picture of the study of identification."""

import numpy as np

from ...validation.identification.identified import SPEEDS
from ...validation.report.figure_style import BLACK, BLUE, GREEN, VERMILLION, panels
from . import PAGES
from .identification_runs import CARRIER, COM, MASS, SECONDS, friction_truth
from .tracking_runs import CYLINDERS

LIMIT = '#999999'


def page(rows, motions, draws, picture, recordings=()):
    """The page as markdown.

    rows        of `judged`
    picture     its path seen from the page
    recordings  `OverTopics`
    """
    lines = []
    for row in rows:
        factor, unit, bound = (1e3, ' mm', '') if '[m]' in row.what else (100.0, ' %', '')
        if row.bound is not None:
            bound = f'{100 * row.bound:g} %'
        verdict = 'pass' if row.met else '**missed**'
        lines.append(f'| {row.condition} | {row.what.removesuffix(" [m]")} | {factor * row.worst:.2g}{unit} | '
                     f'{factor * row.rms:.2g}{unit} | {factor * row.stated:.2g}{unit} | {row.covered:.0%} | {bound} | '
                     f'{verdict} |')
    return PAGES.get_template('identification.md.j2').render(
        seconds=f'{SECONDS:g}', mass=f'{MASS:g}', com=', '.join(f'{one:g}' for one in COM), carrier=CARRIER,
        motions=motions, draws=draws, lines=lines, picture=picture, recordings=list(map(_over_topics, recordings)))


def _over_topics(one):
    off, stated = np.abs(one.friction[0]) / one.truth, one.friction[1] / one.truth
    worst = np.unravel_index(off.argmax(), off.shape)
    cells = (one.sensors, f'{one.seconds:.0f} s', f'{one.true_mass:g} kg',
             *(f'{100.0 * part:.2g} %' for part in (one.mass[0] / one.true_mass, one.mass[1] / one.true_mass,
                                                    off[worst], stated[worst])))
    return f'| {" | ".join(cells)} |'


def draw(path, results, conditions):
    """Write the picture: errors of mass and friction of every identification, with two standard errors.

    results  {name of the condition: [Outcome]}
    """
    figure, grid = panels(12.0, 5.6, 2, len(conditions), 'y')
    colors = dict(zip(CYLINDERS, (BLUE, VERMILLION, GREEN)))
    for column, condition in enumerate(conditions):
        found = results[condition.name]
        above, below = grid[:, column]
        mass = 100.0 * np.array([one.mass for one in found]) / MASS
        above.errorbar(np.arange(len(found)), mass[:, 0], 2.0 * mass[:, 1], fmt='.', color=BLUE, ecolor='#9ecae1',
                       elinewidth=1.0, markersize=4)
        above.set_title(condition.name, fontsize=10)
        above.set_xlabel('identification', fontsize=8)
        middle = len(SPEEDS) // 2
        for k, name in enumerate(CYLINDERS):
            truth = float(friction_truth(name, SPEEDS[middle]))
            rows = np.array([one.friction[:, k, middle] for one in found]) * 100.0 / truth
            below.errorbar(np.arange(len(found)) + 0.25 * (k - 1), rows[:, 0], 2.0 * rows[:, 1], fmt='.',
                           color=colors[name], elinewidth=0.6, markersize=3, label=name, alpha=0.8)
        below.set_xlabel('identification', fontsize=8)
        for axes, bound in ((above, condition.mass), (below, condition.friction)):
            if bound is not None:
                for way in (-1.0, 1.0):
                    axes.axhline(way * 100.0 * bound, color=BLACK, linestyle='--', linewidth=0.9)
            axes.axhline(0.0, color=LIMIT, linewidth=0.6)
            axes.tick_params(labelsize=8)
    grid[0, 0].set_ylabel('error of the mass [%]')
    grid[1, 0].set_ylabel(f'of friction at {1e3 * SPEEDS[len(SPEEDS) // 2]:.0f} mm/s [%]')
    figure.legend(*grid[1, 0].get_legend_handles_labels(), loc='outside lower center', ncols=len(CYLINDERS), fontsize=8,
                  frameon=False)
    figure.savefig(path, metadata={'Software': None})
