"""The page and the picture of the study of tracking."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from .tracking_runs import CYLINDERS, PERIOD, PID, TORQUE

BLUE, ORANGE, GRAY = '#0072B2', '#D55E00', '#dddddd'
NAMES = {TORQUE: 'computed torque', PID: 'PID'}
CONDITIONS = '''# How well the cylinders of the crane follow

Written by `python3 -m psdyn_ros.tools.studies.tracking_study`, {count} simulated motions; nothing here was measured on
a machine.

* HIAB XS 031 with its hydraulics (`config/hiab_xs031_hydraulics.yaml`), plant at 1 ms with 2 sub-steps, control at
  500 Hz, a command {delay:g} ms after its measurement, stamps used.
* Plain sensors: strokes 0.1 mm quantum and 0.02 mm noise, pressures 0.06 bar quantum and 0.5 bar rms noise, rates
  1 mm/s rms noise.
* Computed torque: law `valve_computed_torque`. PID: law `valve_pid`, with velocity feedforward (of the load of the
  initial position, each direction by itself) and dead-band compensation. Gains of both are the defaults, which were
  chosen on the reference `demonstration` alone; those of PID so that all of them times 2 are still stable there, and
  with 100 kg more or less. Elsewhere its margin is less, and it is not made weaker for that.
* Corners: the model of the law has inertia 0.9 or 1.1, areas 0.95 or 1.1, valves 0.97 or 1.05 of the plant's, friction
  0.9 or 1.1. Stribeck: seals of the plant have 2 kN of static friction more than Coulomb's, gone at 5 mm/s, and turn
  round within 1 mm/s; the law does not know.
* Swing at rest: standard deviation of the error in the last of 3 s after the end of the reference.
* Slewing is at force level: its errors are not in the table.
'''


def page(rows, shares, count, picture):
    """The page as markdown.

    rows     of `judged`; shares {reference: (3,) of the force available that the cylinders need}
    count    of simulated motions; picture  its path seen from the page
    """
    lines = [CONDITIONS.format(count=count, delay=1e3 * PERIOD), '| reference | largest force of what there is |',
             '|---|---|']
    for name, share in shares.items():
        lines.append(f'| {name} | {" / ".join(f"{100 * part:.0f}" for part in share)} % |')
    for name in shares:
        lines += ['', f'## {name}', '', f'| | {" | ".join(CYLINDERS)} | bound | |', '|---|' + '---|' * 5]
        for row in rows:
            if row.reference == name:
                verdict = '' if not row.bound else 'pass' if row.met else '**missed**'
                values = ' | '.join(f'{value:.3g}' for value in row.values)
                lines.append(f'| {row.what} | {values} | {row.bound} | {verdict} |')
    lines += ['', f'![Errors of both laws, and their rms in the corners]({picture})', '']
    return '\n'.join(lines)


def draw(path, errors, corners, in_corners):
    """Write the picture: errors over time, and rms in the corners.

    errors      {law: (N, 3) [m]} with an exact model
    in_corners  {law: [(3,)] [m]}, one for each of `corners`
    """
    figure = Figure(figsize=(11.0, 7.0), dpi=110, layout='constrained')
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 3)
    figure.suptitle('Crane on valves, plain sensors, 2 ms late: exact model (above), corners of wrong models (below)',
                    fontsize=11)
    colors = {TORQUE: BLUE, PID: ORANGE}
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
        for one in (above, below):
            one.grid(True, axis='both' if one is above else 'y', color=GRAY, linewidth=0.6)
            one.set_axisbelow(True)
    axes[0, 0].set_ylabel('error [mm]')
    axes[1, 0].set_ylabel('rms error [mm]')
    axes[0, 0].legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={'Software': None})
