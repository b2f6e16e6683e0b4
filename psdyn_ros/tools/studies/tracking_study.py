"""How well the crane's cylinders follow: computed torque on valves beside PID, exact and with wrong models.

    python3 -m psdyn_ros.tools.studies.tracking_study [--output DIR] [--short] [--processes N]

writes DIR/tracking.md and DIR/images/tracking_study.png, and prints the same table; exit code 1 where a bound is
missed.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .study_command import finish, run_table, study_parser
from .tracking_page import draw, page
from .tracking_runs import CORNERS, PID, REFERENCES, TORQUE, Case, load_share, rms, run, swing

TUNED_ON = 'demonstration'
REST = 3.0              # s after the reference in which a motion that is stable dies out
STRIBECK = 2e3          # N
PAYLOAD = 100.0         # kg
LATE = 3                # periods, the first whole number of them that is not less than 5 ms
STEADY = 1e-3           # m of a swing that may be left where gains are multiplied: seals hunt, a lost loop swings more
RMS_EXACT, MAX_EXACT = 0.3e-3, 1.5e-3               # m
RMS_CORNER, RMS_STRIBECK = 1.5e-3, 2e-3             # m
DELAY_COST = 1.5
LEAST_EXACT, LEAST_CORNER = 5.0, 2.0                # times better than PID


class Result(NamedTuple):
    """What came of a case: errors (N, 3), their rms, largest and what swings at the end, each (3,) [m]."""

    errors: np.ndarray
    rms: np.ndarray
    most: np.ndarray
    swing: np.ndarray


class Judged(NamedTuple):
    """A row of the table: what is asked, of each cylinder, the bound, and whether it is met."""

    reference: str
    what: str
    values: tuple
    bound: str
    met: bool


def cases(references, corners=CORNERS):
    """{(reference, what): [Case]} of the whole study."""
    table = {}
    for name in references:
        torque, pid = Case(TORQUE, name), Case(PID, name)
        table[name, 'exact'] = [torque]
        table[name, 'corners'] = [replace(torque, mismatch=corner) for corner in corners]
        table[name, 'Stribeck'] = [replace(torque, stribeck=STRIBECK)] + [
            replace(torque, mismatch=corner, stribeck=STRIBECK) for corner in corners]
        table[name, 'late'] = [replace(torque, late=LATE)]
        table[name, 'louder'] = [replace(torque, louder=1.5, rest=REST)]
        table[name, 'PID'] = [pid]
        table[name, 'PID corners'] = [replace(pid, mismatch=corner) for corner in corners]
        table[name, 'PID louder'] = [replace(pid, louder=2.0, rest=REST)]
        table[name, 'PID payload'] = [replace(pid, payload=mass, rest=REST) for mass in (PAYLOAD, -PAYLOAD)]
    return table


def result_of(case):
    """The `Result` of a case; NaN where the controller stopped."""
    errors = run(case)
    return Result(errors, rms(errors), np.abs(errors).max(axis=0), swing(errors))


def judged(results):
    """[Judged] of what `run_table` gave, worst over the cases of a row."""
    rows = []
    for name in dict.fromkeys(name for name, _ in results):
        got = {what: found for (other, what), found in results.items() if other == name}
        exact, pid = got['exact'][0], got['PID'][0]

        def add(what, values, limit, text, least=False, scale=1e3, name=name):
            met = not text or bool((values >= limit).all() if least else (values <= limit).all())
            rows.append(Judged(name, what, tuple(float(value) for value in scale * values), text, met))

        add('exact model, rms [mm]', exact.rms, RMS_EXACT, f'<= {1e3 * RMS_EXACT:g}')
        add('exact model, largest [mm]', exact.most, MAX_EXACT, f'<= {1e3 * MAX_EXACT:g}')
        add('worst corner, rms [mm]', _worst(got['corners'], 'rms'), RMS_CORNER, f'<= {1e3 * RMS_CORNER:g}')
        add('worst corner and exact, unmodelled Stribeck 2 kN, rms [mm]', _worst(got['Stribeck'], 'rms'), RMS_STRIBECK,
            f'<= {1e3 * RMS_STRIBECK:g}')
        add('delay 6 ms instead of 2 ms, times the rms', got['late'][0].rms / exact.rms, DELAY_COST,
            f'<= {DELAY_COST:g}', scale=1.0)
        add('all gains x 1.5, swing at rest [mm]', got['louder'][0].swing, STEADY, f'<= {1e3 * STEADY:g}')
        add('PID, exact, rms [mm]', pid.rms, np.inf, '')
        add('PID, worst corner, rms [mm]', _worst(got['PID corners'], 'rms'), np.inf, '')
        # where it was tuned; elsewhere modes are lower, and near the limit of a cylinder 100 kg are too much for it
        steady, text = (STEADY, f'<= {1e3 * STEADY:g}') if name == TUNED_ON else (np.inf, '')
        add('PID, all gains x 2, swing at rest [mm]', got['PID louder'][0].swing, steady, text)
        add('PID, +-100 kg, swing at rest [mm]', _worst(got['PID payload'], 'swing'), steady, text)
        add('PID rms / computed torque rms, exact', pid.rms / exact.rms, LEAST_EXACT, f'>= {LEAST_EXACT:g}', True, 1.0)
        ratios = [theirs.rms / ours.rms for theirs, ours in zip(got['PID corners'], got['corners'], strict=True)]
        add('the same, in the worst corner', np.min(ratios, axis=0), LEAST_CORNER, f'>= {LEAST_CORNER:g}', True, 1.0)
    return rows


def _worst(found, what):
    return np.max([getattr(result, what) for result in found], axis=0)


def main(args=None):
    """Run the study; returns the exit code."""
    options = study_parser('tracking_study', __doc__, 'the last reference, one corner').parse_args(args)
    references, corners = tuple(REFERENCES), CORNERS
    if options.short:
        references, corners = references[-1:], CORNERS[5:6]
    table = cases(references, corners)
    results = run_table(result_of, table, options.processes, 'tracking')
    rows = judged(results)
    folder = Path(options.output)
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    first = references[0]
    draw(folder / 'images' / 'tracking_study.png',
         {TORQUE: results[first, 'exact'][0].errors, PID: results[first, 'PID'][0].errors}, corners,
         {law: [result.rms for result in results[first, what]]
          for law, what in ((TORQUE, 'corners'), (PID, 'PID corners'))})
    shares = {name: load_share(REFERENCES[name]()) for name in references}
    text = page(rows, shares, sum(map(len, table.values())), 'images/tracking_study.png')
    return finish(folder, 'tracking.md', text, [f'{row.reference}: {row.what}' for row in rows if not row.met])


if __name__ == '__main__':
    sys.exit(main())
