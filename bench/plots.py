"""The figures: machines as bars, chains as log-log lines."""

from itertools import product

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)

from bench.comparison import OURS  # noqa: E402
from bench.general import BATCH, DYNAMICS, FOUR_BAR, HINTED, LCABA, RATES, SIX_LINK, TRIANGLE  # noqa: E402
from bench.jacobians import CONSTRAINED, TREE  # noqa: E402

COLOURS = {
    OURS: '#d62728',
    'Pinocchio constraintDynamics': '#1f4e79',
    'Pinocchio lcaba': '#4a90c4',
    'Pinocchio closure + CRBA': '#7fb8de',
    'Pinocchio closure + RNEA': '#1f4e79',
    'MuJoCo mj_forward': '#6b8e23',
    'MuJoCo mj_inverse (open tree)': '#6b8e23',
}
MORE_COLOURS = {**COLOURS, BATCH: '#f0a0a0', HINTED: '#b03030', RATES: '#7fb8de', CONSTRAINED: '#1f4e79',
                TREE: '#1f4e79'}
KINDS = {TRIANGLE: '#d62728', FOUR_BAR: '#e8873a', SIX_LINK: '#8c564b'}
GROUPS = (('forward', 'native'), ('inverse', 'native'), ('forward', 'python'), ('inverse', 'python'))
TITLES = {'forward': 'forward dynamics', 'inverse': 'inverse dynamics',
          'native': 'native loop', 'python': 'called from Python'}
BAR_LABEL = 'us per state, best round (in brackets: times as long as psdyn_ros, median of the rounds)'


def draw(results, folder):
    """Write a PNG for each of the FIGURES whose part was run; returns their names."""
    written = []
    for name, figure in FIGURES.items():
        if name in results:
            drawn = figure(results[name])
            drawn.savefig(folder / f'{name}.png', dpi=110)
            plt.close(drawn)
            written.append(f'{name}.png')
    return written


def _crane(records):
    groups = [[r for r in records if (r['task'], r['mode']) == group and r['best_us']] for group in GROUPS]
    figure, axes = plt.subplots(
        len(GROUPS), 1, figsize=(8, 6.5), sharex=True, layout='constrained',
        height_ratios=[len(group) for group in groups])
    for axis, group, (task, mode) in zip(axes, groups, GROUPS):
        _bars(axis, sorted(group, key=lambda r: -r['best_us']), f'{TITLES[task]}, {TITLES[mode]}')
    figure.supxlabel(BAR_LABEL, fontsize=10)
    figure.suptitle('4-DoF crane with two closed loops')
    return figure


def _bars(axis, group, title, room=0.22):
    """One bar for each engine, the first at the bottom."""
    bars = axis.barh([r['engine'] for r in group], [r['best_us'] for r in group],
                     color=[MORE_COLOURS[r['engine']] for r in group], height=0.7)
    axis.bar_label(bars, [_bar_text(r) for r in group], padding=4, fontsize=9)
    axis.set_title(title, fontsize=10, loc='left')
    axis.spines[['top', 'right']].set_visible(False)
    axis.tick_params(labelsize=9)
    axis.margins(x=room)


def _bar_text(record):
    times = '' if record['engine'] == OURS else f'  ({record["ratio"]:.1f} x)'
    accuracy = '' if record['verdict'] == 'exact' else f', {record["verdict"]}: error {record["error"]:.0e}'
    return f'{record["best_us"]:.2f}{times}{accuracy}'


def _chains(records):
    figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), sharex=True, sharey=True, layout='constrained')
    for axis, (task, mode) in zip(axes.flat, GROUPS):
        for engine, colour in COLOURS.items():
            line = [r for r in records
                    if (r['task'], r['mode'], r['engine']) == (task, mode, engine) and r['best_us']]
            if line:
                axis.loglog([r['loops'] for r in line], [r['best_us'] for r in line], 'o-', ms=4,
                            color=colour, label=engine, lw=2.5 if engine == OURS else 1.5)
        axis.set_title(f'{TITLES[task]}, {TITLES[mode]}', fontsize=10, loc='left')
        axis.grid(True, which='major', alpha=0.3)
        axis.legend(fontsize=8, frameon=False, loc='upper left')
        sizes = sorted({r['loops'] for r in records})
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
    for axis in axes[-1]:
        axis.set_xlabel('loop modules')
    for axis in axes[:, 0]:
        axis.set_ylabel('us per state, best round')
    figure.suptitle('Chains of cylinder-driven loops')
    return figure


def _general(records):
    names = list(dict.fromkeys(r['machine'] for r in records))
    groups = GROUPS[:3]
    figure, axes = plt.subplots(len(groups), len(names), figsize=(19, 7), sharex='col', sharey='row',
                                layout='constrained', height_ratios=(3, 2, 4))
    for row, (task, mode) in zip(axes, groups):
        for axis, name in zip(row, names):
            group = [r for r in records if (r['machine'], r['task'], r['mode']) == (name, task, mode) and r['best_us']]
            _bars(axis, sorted(group, key=lambda r: (r['engine'] == BATCH, r['engine'] == OURS)),
                  f'{name}\n{task}, {TITLES[mode]}', room=0.5)
    figure.supxlabel(BAR_LABEL, fontsize=10)
    figure.suptitle('Dynamics of machines with loops of any kind; Pinocchio is given positions that close them')
    return figure


def _modules(records):
    figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout='constrained')
    for axis, task in zip(axes, ('forward', 'inverse')):
        for (kind, colour), (engine, style) in product(KINDS.items(), ((OURS, 'o-'), (DYNAMICS, 's--'), (LCABA, '^:'))):
            line = [r for r in records if (r['kind'], r['task'], r['engine']) == (kind, task, engine)]
            if line:
                axis.loglog([r['modules'] for r in line], [r['us_per_module'] for r in line], style, ms=4,
                            color=colour, label=f'{kind}: {engine}', lw=2 if engine == OURS else 1.2)
        sizes = sorted({r['modules'] for r in records})
        axis.set_xticks(sizes, [str(size) for size in sizes])
        axis.minorticks_off()
        axis.set_title(f'{TITLES[task]}, native loop', fontsize=10, loc='left')
        axis.set_xlabel('modules in the chain')
        axis.grid(True, which='major', alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc='outside lower center', ncols=3, fontsize=8, frameon=False)
    axes[0].set_ylabel('us per module, median')
    figure.suptitle('Cost of one module in chains of loops')
    return figure


def _jacobians(records):
    groups = [(machine, mode) for machine in dict.fromkeys(r['machine'] for r in records)
              for mode in ('native', 'python')]
    figure, axes = plt.subplots(len(groups), 1, figsize=(13, 5.5), sharex=True, layout='constrained')
    for axis, (machine, mode) in zip(axes, groups):
        group = [r for r in records if (r['machine'], r['mode']) == (machine, mode)]
        _bars(axis, group[::-1], f'{machine}, {TITLES[mode]}', room=0.8)
    figure.supxlabel(BAR_LABEL, fontsize=10)
    figure.suptitle('Forward dynamics with all its derivatives')
    return figure


FIGURES = {'crane': _crane, 'chains': _chains, 'general': _general, 'modules': _modules, 'jacobians': _jacobians}
