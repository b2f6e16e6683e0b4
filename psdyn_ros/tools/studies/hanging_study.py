"""How well the loader crane on valves deals with its hanging load: tracking, what is left of swing, active damping.

    python3 -m psdyn_ros.tools.studies.hanging_study [--output DIR] [--short] [--processes N]

writes DIR/hanging.md and prints it; exit code 1 where a bound is missed.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...control.laws.passive_states import ESTIMATED, MEASURED, RESTING
from ...control.reference.swing_shaper import EI, NONE, ZVD
from . import PAGES
from .hanging_runs import LATER, PENDULUMS, RELEASED, RIGHT, Case, Pendulum, run
from .study_command import finish, run_table, study_parser
from .tracking_runs import CORNERS

# m, rad of slew, lift, tilt, telescope, and s that they take
WAYS = (((0.4, 0.1, -0.1, 0.3), 2.0), ((0.8, 0.1, -0.1, 0.3), 3.0), ((0.4, 0.1, 0.1, 0.3), 4.0),
        ((0.0, 0.1, -0.1, 0.3), 2.5))
SWUNG = (3.0, 3.0)          # degrees
SHORT, LONG = Pendulum(length=0.8), Pendulum(length=1.2)
AFTER = 9.0                 # s after the end of a motion, its shaper included
PERIODS = 9.0               # s of a released load, more than three of its periods
EXACT, CORNER = 0.3e-3, 1.5e-3                      # m, rad
LEFT_EXACT, LEFT_TOLERANT, LEFT_WRONG, HALF, NO_MORE = 0.05, 0.07, 0.2, 0.5, 1.01


class Judged(NamedTuple):
    """A row of the table: what is asked, its value in words, the bound, and whether it is met."""

    what: str
    source: str
    value: str
    bound: str
    met: bool


def cases(short=False):
    """{(what, source): [Case]} of the whole study."""
    table, ways = {}, WAYS[:1] if short else WAYS
    for source in (MEASURED, ESTIMATED, RESTING):
        moves = [Case(way, moving, moving + 3.0, source) for way, moving in ways]
        table['exact', source] = moves
        corners = CORNERS[5:6] if short else CORNERS
        table['corners', source] = [replace(one, mismatch=corner) for one in moves for corner in corners]
    table['swung', MEASURED] = [replace(one, released=SWUNG) for one in table['exact', MEASURED]]
    for source in (MEASURED, ESTIMATED):
        moves = [Case(way, moving, moving + AFTER, source) for way, moving in ways]
        for shaper, pendulums in ((NONE, (RIGHT,)), (ZVD, (RIGHT,)), (EI, (RIGHT,)), ('wrong', (SHORT, LONG))):
            kind = ZVD if shaper == 'wrong' else shaper
            table[f'left {shaper}', source] = [replace(one, shaper=kind, pendulum=pendulum)
                                               for pendulum in pendulums for one in moves]
    for source in (MEASURED, ESTIMATED):
        table |= _released(short, source)
    return table


def _released(short, source):
    along, across = ((RELEASED, 0.0), (0.0, RELEASED))
    exact = [Case(seconds=PERIODS, source=source, released=angle, damped=True, late=LATER) for angle in (along, across)]
    corners, pendulums = (CORNERS[5:6], PENDULUMS[:1]) if short else (CORNERS, PENDULUMS)
    return {('released', source): exact,
            ('released, corners', source): [replace(one, mismatch=corner) for one in exact for corner in corners],
            ('released, pendulums', source): [replace(one, pendulum=wrong) for one in exact for wrong in pendulums]}


def judged(results):
    """[Judged] of what `run_table` gave, worst over the cases of a row."""
    rows = []
    for (what, source), found in results.items():
        sound = all(one.sound for one in found)
        if what in TRACKING:
            worst, (text, limit) = np.max([one.rms for one in found], axis=0), TRACKING[what]
            if source == RESTING:       # a model without the swing is wrong
                limit = CORNER
            rows.append(Judged(text, source, ' / '.join(f'{1e3 * one:.3g}' for one in worst), f'<= {1e3 * limit:g}',
                               sound and bool((worst <= limit).all())))
        elif what in LEFT:
            bare = [one.left for one in results['left none', source]]
            share = max(one.left / bare[k % len(bare)] for k, one in enumerate(found))
            rows.append(Judged(LEFT[what][0], source, f'{100.0 * share:.2g} %', f'<= {100.0 * LEFT[what][1]:g} %',
                               sound and share <= LEFT[what][1]))
        elif what in DAMPED:
            released = np.radians(RELEASED)
            second, most = (max(values) / released for values in (
                [one.largest(1) for one in found], [one.swing.max() for one in found]))
            rows.append(Judged(DAMPED[what], source, f'{100.0 * second:.2g} %, at most {100.0 * most:.4g} %',
                               f'<= {100.0 * HALF:g} %, {100.0 * NO_MORE:g} %',
                               sound and second <= HALF and most <= NO_MORE))
    return rows


TRACKING = {'exact': ('rms of slew / lift / tilt / telescope, exact model', EXACT),
            'corners': ('the same in the worst of eight corners', CORNER),
            'swung': ('exact model, load swings by 3 degrees at first', EXACT)}
LEFT = {f'left {ZVD}': ('left of the swing, shaper zvd, exact model', LEFT_EXACT),
        f'left {EI}': ('left of the swing, shaper ei, exact model', LEFT_TOLERANT),
        'left wrong': ('left of the swing, shaper zvd, rope 20 % longer or shorter in the model', LEFT_WRONG)}
DAMPED = {'released': 'released load, damped actively, exact model',
          'released, corners': 'the same in the worst of eight corners',
          'released, pendulums': 'the same with the worst of eight pendulums'}


def page(rows, count):
    """The page as markdown of rows of `judged`; count: of simulated motions."""
    return PAGES.get_template('hanging.md.j2').render(rows=rows, count=count, ways=len(WAYS), released=f'{RELEASED:g}')


def main(args=None):
    """Run the study; returns the exit code."""
    options = study_parser('hanging_study', __doc__, 'one move, one corner').parse_args(args)
    table = cases(options.short)
    rows = judged(run_table(run, table, options.processes, 'hanging load'))
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    text = page(rows, sum(map(len, table.values())))
    return finish(folder, 'hanging.md', text, [f'{row.what}, {row.source}' for row in rows if not row.met])


if __name__ == '__main__':
    sys.exit(main())
