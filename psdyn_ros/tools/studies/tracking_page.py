"""The page and the picture of the study of tracking."""

import numpy as np

from ...validation.report.figure_style import BLUE, VERMILLION, panels
from . import PAGES
from .tracking_runs import CYLINDERS, PERIOD, PID, TORQUE

NAMES = {TORQUE: 'computed torque', PID: 'PID'}


def page(rows, shares, count, picture):
    """The page as markdown.

    rows     of `judged`; shares {reference: (3,) of the force available that the cylinders need}
    count    of simulated motions; picture  its path seen from the page
    """
    return PAGES.get_template('tracking.md.j2').render(
        rows=rows, count=count, picture=picture, delay=f'{1e3 * PERIOD:g}', cylinders=CYLINDERS,
        shares={name: ' / '.join(f'{100 * part:.0f}' for part in share) for name, share in shares.items()})


def draw(path, errors, corners, in_corners):
    """Write the picture: errors over time, and rms in the corners.

    errors      {law: (N, 3) [m]} with an exact model
    in_corners  {law: [(3,)] [m]}, one for each of `corners`
    """
    figure, axes = panels(11.0, 7.0, 2, 3)
    figure.suptitle('Crane on valves, plain sensors, 2 ms late: exact model (above), corners of wrong models (below)',
                    fontsize=11)
    colors = {TORQUE: BLUE, PID: VERMILLION}
    for i, name in enumerate(CYLINDERS):
        above, below = axes[0, i], axes[1, i]
        for law in (PID, TORQUE):
            times = PERIOD * np.arange(1, len(errors[law]) + 1)
            above.plot(times, 1e3 * errors[law][:, i], color=colors[law], linewidth=1.0, label=NAMES[law])
        above.set_title(name, fontsize=10)
        above.set_xlabel('time [s]')
        at = np.arange(len(corners))
        for shift, law in ((-0.2, PID), (0.2, TORQUE)):
            below.bar(at + shift, [1e3 * values[i] for values in in_corners[law]], 0.4, color=colors[law],
                      label=NAMES[law])
        below.set_xticks(at, [f'{c.inertia:g}\n{c.areas:g}\n{c.valves:g}\n{c.friction:g}' for c in corners], fontsize=7)
        below.set_xlabel('inertia, areas, valves, friction of the model', fontsize=8)
    axes[0, 0].set_ylabel('error [mm]')
    axes[1, 0].set_ylabel('rms error [mm]')
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={'Software': None})
