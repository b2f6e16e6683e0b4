"""How well a payload and friction are identified, and whether the standard errors that are stated hold.

    python3 -m psdyn_ros.tools.studies.identification_study [--output DIR] [--short] [--processes N]
        [--bags DIR [DIR ...]]

writes DIR/identification.md and DIR/images/identification_study.png, and prints the same tables; exit code 1 where a
bound is missed.  --bags: folders of `psdyn record-demo`, whose healthy recordings over topics are identified too, by a
model that lacks the payload.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from tqdm import tqdm

from ...api.load import load
from ...model.parameters.hydraulics import read_hydraulics
from ...validation.bags.recording import BagError
from ...validation.identification.identified import SPEEDS
from ...validation.identify import identify, identify_bag
from .identification_page import draw, page
from .identification_runs import CARRIER, COM, MASS, Sensors, crane_blocks, friction_truth, measured, record
from .study_command import finish, study_parser
from .tracking_runs import CRANE, CYLINDERS, crane, oil

MOTIONS = tuple(range(1, 5))        # seeds
TOOL, HEALTHY = 'tcp', 'healthy'    # of record-demo: link that carries the payload, and the case
DRAWS = 6                           # of the errors of sensors, for each motion
COVERED = 0.9                       # least share of truths within 2 standard errors
SPREAD = 2.0                        # standard errors


class Condition(NamedTuple):
    """Sensors, and how far off mass and friction may be with them, relative; None where nothing is asked."""

    name: str
    sensors: Sensors
    mass: float
    friction: float


CONDITIONS = (Condition('noiseless', Sensors(noise=0.0), 1e-3, 1e-2),
              Condition('plain: 0.1 mm, 0.5 bar', Sensors(), 1e-2, 3e-2),
              Condition('and offsets of 0.5 bar', Sensors(offset=5e4), 5e-2, 8e-2),
              Condition('and gains off by 0.5 %', Sensors(gain=5e-3), 5e-2, 8e-2),
              Condition('and both', Sensors(offset=5e4, gain=5e-3), None, None))


class Outcome(NamedTuple):
    """What one identification is off by, and the standard errors that it states.

    mass      kg, a pair of both
    com       (2, 3) m
    friction  (2, cylinders, SPEEDS) N
    passed    whether what was held out agrees
    """

    mass: tuple
    com: np.ndarray
    friction: np.ndarray
    passed: bool


class Judged(NamedTuple):
    """A row of the table: largest and rms relative error, median stated standard error, share of truths within
    `SPREAD` of them, the bound, and whether error and coverage are within theirs."""

    condition: str
    what: str
    worst: float
    rms: float
    stated: float
    covered: float
    bound: float
    met: bool


def outcome_of(found):
    """The `Outcome` of an `Identification` of the crane with its payload."""
    body, = found.bodies
    by_name = {item.name: item for item in found.friction}
    off = [[one.force - friction_truth(name, one.speed) for one in by_name[name].forces] for name in CYLINDERS]
    stated = [[one.error for one in by_name[name].forces] for name in CYLINDERS]
    return Outcome((body.found.mass - MASS, body.errors[0]), np.array([body.found.com - COM, body.errors[1:4]]),
                   np.array([off, stated]), found.held_out.passed)


def outcomes_of(motion, conditions, draws):
    """{name of the condition: [Outcome]} of one motion; without noise all draws are the same one."""
    recording, found = record(motion), {}
    for condition in conditions:
        several = range(draws) if condition.sensors != Sensors(noise=0.0) else range(1)
        found[condition.name] = [
            outcome_of(identify(crane_blocks(measured(recording, 100 * motion + draw_, condition.sensors)), crane(),
                                oil(), payload_link=CARRIER)) for draw_ in several]
    return found


def compute(motions, draws, processes=1, progress=True):
    """{name of the condition: [Outcome]} of all motions."""
    results = {condition.name: [] for condition in CONDITIONS}
    with ProcessPoolExecutor(processes) as pool:
        parts = pool.map(outcomes_of, motions, [CONDITIONS] * len(motions), [draws] * len(motions))
        for part in tqdm(parts, total=len(motions), file=sys.stderr, disable=not progress, desc='identification'):
            for name, found in part.items():
                results[name] += found
    return results


def judged(results):
    """[Judged] of what `compute` gave."""
    rows = []
    for condition in CONDITIONS:
        found = results[condition.name]
        mass = np.array([one.mass for one in found]) / MASS
        rows.append(_judged(condition.name, 'mass', mass[:, 0], mass[:, 1], condition.mass))
        com = np.array([one.com for one in found])
        rows.append(_judged(condition.name, 'centre of mass [m]', com[:, 0], com[:, 1], None))
        friction = np.array([one.friction for one in found])
        for row, speed in enumerate(SPEEDS):
            truth = np.array([friction_truth(name, speed) for name in CYLINDERS])
            off, stated = friction[:, 0, :, row] / truth, friction[:, 1, :, row] / truth
            rows.append(_judged(condition.name, f'friction at {1e3 * speed:.0f} mm/s', off, stated,
                                condition.friction))
    return rows


def _judged(condition, what, off, stated, bound):
    covered = float(np.mean(np.abs(off) <= SPREAD * stated))
    worst = float(np.abs(off).max())
    return Judged(condition, what, worst, float(np.sqrt(np.mean(off ** 2))), float(np.median(stated)), covered, bound,
                  (bound is None or worst <= bound) and covered >= COVERED)


class OverTopics(NamedTuple):
    """A recording over topics: its sensors, s, and what identification of the payload is off by.

    mass      kg, true; (error, standard error)
    friction  (2, cylinders, SPEEDS) N, errors and standard errors; `truth` (cylinders, SPEEDS) N
    """

    sensors: str
    seconds: float
    true_mass: float
    mass: tuple
    friction: np.ndarray
    truth: np.ndarray


def over_topics(folder):
    """The `OverTopics` of the healthy recording in a folder of `psdyn record-demo`."""
    folder = Path(folder)
    cases = yaml.safe_load((folder / 'cases.yaml').read_text(encoding='utf-8'))['cases']
    if HEALTHY not in cases:
        raise BagError(f"'{folder}' has no case '{HEALTHY}'; there are: {', '.join(cases)}")
    hydraulics = read_hydraulics(folder / 'hydraulics.yaml', crane().actuators)
    found, _, _ = identify_bag(folder / HEALTHY, CRANE, hydraulics=hydraulics, payload_link=TOOL)
    mass = load(folder / 'machine.urdf').total_mass - crane().total_mass
    by_name, off, stated, truth = {item.name: item for item in found.friction}, [], [], []
    for name in CYLINDERS:
        seal = hydraulics.cylinders[name].friction
        truth.append([seal.coulomb * np.tanh(speed / seal.slip_velocity) + seal.viscous * speed for speed in SPEEDS])
        off.append([one.force - true for one, true in zip(by_name[name].forces, truth[-1])])
        stated.append([one.error for one in by_name[name].forces])
    body, = found.bodies
    return OverTopics(cases[HEALTHY]['sensors'], found.seconds, mass, (body.found.mass - mass, body.errors[0]),
                      np.array([off, stated]), np.array(truth))


def main(args=None):
    """Run the study; returns the exit code."""
    parser = study_parser('identification_study', __doc__, 'one motion, two draws')
    parser.add_argument('--bags', nargs='+', default=[], metavar='DIR', help='folders of record-demo')
    options = parser.parse_args(args)
    motions, draws = (MOTIONS[:1], 2) if options.short else (MOTIONS, DRAWS)
    results = compute(motions, draws, options.processes)
    rows = judged(results)
    folder = Path(options.output)
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    draw(folder / 'images' / 'identification_study.png', results, CONDITIONS)
    text = page(rows, len(motions), draws, 'images/identification_study.png', list(map(over_topics, options.bags)))
    return finish(folder, 'identification.md', text, [f'{row.condition}: {row.what}' for row in rows if not row.met])


if __name__ == '__main__':
    sys.exit(main())
