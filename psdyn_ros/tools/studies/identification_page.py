"""The page and the picture of the study of identification."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ...validation.identification.identified import SPEEDS
from ...validation.report.figure_style import BLACK, BLUE, DPI, GREEN, VERMILLION
from .identification_runs import CARRIER, COM, MASS, SECONDS, friction_truth
from .tracking_runs import CYLINDERS

LIMIT = '#999999'
HEAD = '''# What a recording tells of payload and friction

Written by `python3 -m psdyn_ros.tools.studies.identification_study`; nothing here was measured on a machine.

* HIAB XS 031 on its hydraulics, {seconds:g} s under the valve controller, which keeps every axis moving both ways at up
  to 0.4 rad/s and 100 to 160 mm/s. It carries {mass:g} kg at ({com}) m in axes of `{carrier}`, of which
  neither the controller nor `identify` knows. Motions: {motions}.
* Sensors: exact; plain, with strokes of 0.1 mm quantum and 0.02 mm noise and pressures of 0.06 bar quantum and 0.5 bar
  rms noise; the same with every pressure sensor off by an offset of 0.5 bar, a gain error of 0.5 %, or both, up or down
  at random. Draws for each motion: {draws}, one where there is no noise.
* Errors are relative, the largest of all motions and draws, for friction also of the three cylinders. *Stated* is the
  median of the standard errors that come with the estimates, *covered* the share of truths within two of them, which
  shall be at least 90 %.

| sensors | | largest error | rms | stated | covered | bound | |
|---|---|---|---|---|---|---|---|
'''
NOTES = '''
![Errors with two standard errors, against the bounds]({picture})

*Every identification: its error, and two standard errors as it states them; dashed, the bounds.*

Sensors are trusted to 0.5 bar and 0.5 %, and are taken for exact where the recording is likelier by far that way.
Standard errors are those of the estimate that was chosen. A recording does not see gains that are off as a payload is,
so what usual errors of sensors would change is stated beside the payload. Friction is stated as a force at a speed; its
viscous part alone is not identifiable.
'''
TOPICS = '''
## Over topics

Healthy recordings of `psdyn record-demo`, simulator and controller in processes of their own; the model lacks the
payload, of which nothing is known.

| sensors | recording | payload | error | stated | largest error of friction | stated there |
|---|---|---|---|---|---|---|
'''
LIMITS = '''
## What it takes, and what cannot be identified

* Motion of every axis, both ways, at 30 to 100 mm/s: below four times the slip velocity of its friction an actuator
  says nothing of what it rubs, and an instant counts for a coordinate only while all its actuators slide.
* Links of which the motion tells little, such as barrels, stay as they were believed, and are marked so.
* Cylinders side by side, such as those of the boom of the excavator, share their friction as nobody can tell; their
  sum is what is known. It is said of each that the recording does not tell it.
* Efforts that are measured as such (`JointState.effort`) are trusted to 0.5 % of their size and of the largest. From
  30 s at 50 Hz a payload of 400 kg on the bucket of the excavator (20.9 t) is found within 1 kg, and stated to 3 kg.
* An error of sensors is distinguished from weight only where poses differ.
'''


def page(rows, motions, draws, picture, recordings=()):
    """The page as markdown.

    rows        of `judged`
    picture     its path seen from the page
    recordings  `OverTopics`
    """
    lines = [HEAD.format(seconds=SECONDS, mass=MASS, com=', '.join(f'{one:g}' for one in COM), carrier=CARRIER,
                         motions=motions, draws=draws).rstrip('\n')]
    for row in rows:
        factor, unit, bound = (1e3, ' mm', '') if '[m]' in row.what else (100.0, ' %', '')
        if row.bound is not None:
            bound = f'{100 * row.bound:g} %'
        verdict = 'pass' if row.met else '**missed**'
        lines.append(f'| {row.condition} | {row.what.removesuffix(" [m]")} | {factor * row.worst:.2g}{unit} | '
                     f'{factor * row.rms:.2g}{unit} | {factor * row.stated:.2g}{unit} | {row.covered:.0%} | {bound} | '
                     f'{verdict} |')
    lines.append(NOTES.format(picture=picture).rstrip('\n'))
    if recordings:
        lines.append(TOPICS.rstrip('\n'))
        lines += [_over_topics(one) for one in recordings]
    return '\n'.join([*lines, LIMITS])


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
    figure = Figure(figsize=(12.0, 3.4 + 2.2), dpi=DPI, layout='constrained')
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(conditions), sharey=False)
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
            axes.grid(True, axis='y', color='#dddddd', linewidth=0.6)
            axes.tick_params(labelsize=8)
            axes.set_axisbelow(True)
    grid[0, 0].set_ylabel('error of the mass [%]')
    grid[1, 0].set_ylabel(f'of friction at {1e3 * SPEEDS[len(SPEEDS) // 2]:.0f} mm/s [%]')
    figure.legend(*grid[1, 0].get_legend_handles_labels(), loc='outside lower center', ncols=len(CYLINDERS), fontsize=8,
                  frameon=False)
    figure.savefig(path, metadata={'Software': None})
