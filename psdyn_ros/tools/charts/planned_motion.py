"""A planned motion as a picture and a table: what it uses of each limit."""
import csv

import numpy as np

from ...control.offline.time_optimal import opening_loss
from ...validation.report.figure_style import BLACK, BLUE, VERMILLION, finish, panels

PER_MINUTE = 6e4        # l/min of m^3/s


def draw(motion, limits, path, title):
    """Write the picture of a `PlannedMotion` within `PathLimits` to a file: speeds, efforts and flow with limits."""
    names = motion.axes['f'].names
    rows = len(names) + np.isfinite(limits.flow)
    figure, grid = panels(12.0, 2.3 * rows, rows, 2, sharex=True)
    lost_up, lost_down = opening_loss(limits, motion.rate)
    for k, name in enumerate(names):
        speed, effort = grid[k]
        _plot(speed, motion.time, motion.rate[:, k], -limits.rate[k], limits.rate[k])
        _plot(effort, motion.time, 1e-3 * motion.f[:, k], 1e-3 * (limits.lower[k] + lost_down[:, k]),
              1e-3 * (limits.upper[k] - lost_up[:, k]))
        turns = motion.axes['f'].units[k] == 'N m'
        speed.set_ylabel(f"{name}\n[{'rad/s' if turns else 'm/s'}]")
        effort.set_ylabel(f"[{'kN m' if turns else 'kN'}]")
    grid[0][0].set_title('speed')
    grid[0][1].set_title('effort')
    if np.isfinite(limits.flow):
        _plot(grid[-1][0], motion.time, PER_MINUTE * motion.flow, 0.0, PER_MINUTE * limits.flow)
        grid[-1][0].set_ylabel('flow of the pump\n[l/min]')
        _shares(grid[-1][1], motion)
    figure.suptitle(f'{title}; limits dashed')
    finish(grid, since='since the start')
    figure.savefig(path)


def _plot(axes, time, values, lower, upper):
    axes.plot(time, values, color=BLUE, linewidth=1.5)
    for limit in (lower, upper):
        limit = np.broadcast_to(limit, time.shape)
        if np.isfinite(limit).all():
            axes.plot(time, limit, color=VERMILLION, linewidth=1.0, linestyle='--')


def _shares(axes, motion):
    """Draw which share of its limits the motion uses."""
    axes.plot(motion.time, 100.0 * motion.use.max(axis=1), color=BLACK, linewidth=1.2)
    axes.set_ylabel('largest use of\nany limit [%]')
    axes.set_ylim(0.0, 110.0)


def write_table(motion, path):
    """Write the instants as CSV: time, positions, speeds, accelerations, efforts, flow of the pump."""
    columns = ('position', 'x'), ('velocity', 'xd'), ('acceleration', 'xdd'), ('effort', 'f')
    with open(path, 'w', newline='', encoding='utf-8') as file:
        table = csv.writer(file)
        table.writerow(['time_s', *(f'{name}.{what}' for what, axis in columns for name in motion.axes[axis].names),
                        'flow_m3_s'])
        for row in np.column_stack([motion.time, motion.x, motion.xd, motion.xdd, motion.f, motion.flow]):
            table.writerow([f'{value:.9g}' for value in row])
