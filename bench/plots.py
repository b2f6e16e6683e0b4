"""The figures: the crane as bars, the chains as log-log lines."""

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)

from bench.comparison import OURS  # noqa: E402

COLOURS = {
    OURS: '#d62728',
    'Pinocchio constraintDynamics': '#1f4e79',
    'Pinocchio lcaba': '#4a90c4',
    'Pinocchio closure + CRBA': '#7fb8de',
    'Pinocchio closure + RNEA': '#1f4e79',
    'MuJoCo mj_forward': '#6b8e23',
    'MuJoCo mj_inverse (open tree)': '#6b8e23',
}
GROUPS = (('forward', 'native'), ('inverse', 'native'), ('forward', 'python'), ('inverse', 'python'))
TITLES = {'forward': 'forward dynamics', 'inverse': 'inverse dynamics',
          'native': 'native loop', 'python': 'called from Python'}


def draw(results, folder):
    """Write crane.png and chains.png for the parts that were run; returns their names."""
    written = []
    for name, figure in (('crane', _crane), ('chains', _chains)):
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
        group = sorted(group, key=lambda r: -r['best_us'])
        bars = axis.barh([r['engine'] for r in group], [r['best_us'] for r in group],
                         color=[COLOURS[r['engine']] for r in group], height=0.7)
        axis.bar_label(bars, [_bar_text(r) for r in group], padding=4, fontsize=9)
        axis.set_title(f'{TITLES[task]}, {TITLES[mode]}', fontsize=10, loc='left')
        axis.spines[['top', 'right']].set_visible(False)
        axis.tick_params(labelsize=9)
        axis.margins(x=0.22)
    figure.supxlabel(
        'us per state, best round (in brackets: times as long as psdyn_ros, median of the rounds)', fontsize=10)
    figure.suptitle('4-DoF crane with two closed loops')
    return figure


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
