"""How far `psdyn validate`, `compare` and `identify` can be trusted: judged on bags of the second plant.

    python3 -m psdyn_ros.tools.studies.calibration_study [--output DIR] [--motions N] [--seeds N] [--first N]
                                                         [--short] [--processes N] [--keep DIR] [--minutes N]

writes DIR/calibration.md and DIR/images/calibration_*.png, and prints the same tables; exit code 1 where a bound is
missed. Bags come in random order, so that a run that is ended early has some of every kind; with --keep the next one
goes on where it ended.
"""

import hashlib
import math
import pickle
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import count, groupby, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ...model.text_file import read_text
from ...nodes.runtime.realtime import one_thread_for_algebra
from ...validation.identify import identify_bag
from ...validation.metrics import FAIL
from ...validation.metrics.comparison import SAME, compare, worst
from ...validation.validate import validate
from .calibration_page import draw_causes, draw_delays, page
from .calibration_runs import (
    CASES,
    HEALTHY,
    HYDRAULICS,
    LAYOUTS,
    PAYLOAD,
    URDF,
    Layout,
    Motion,
    crane,
    machine_text,
    oil,
    run_motion,
    write,
)
from .study_command import finish, study_parser

MOTIONS, SEEDS = 20, 10
SECONDS, LONG = 30.0, 50.0      # of a bag, and of one that is identified
SHOWN = LAYOUTS[0], LAYOUTS[3], LAYOUTS[5]      # of bags with something wrong
SHORT_CASES = HEALTHY, 'payload 30 kg more', 'offset of 3 bar at the tilt', 'pressures 8 ms late'
MAX_FAILED = 0.005              # share of healthy bags
MAX_DIFFERENT = 0.01            # share of comparisons of a machine with itself
LEAST_NAMED, LEAST_NEAR = 0.95, 0.9
LEAST_BOTH = 0.8                # of pairs of causes
COVERED = 0.9, 0.99             # of intervals of 95 %
MAX_MASS = 0.005                # error of the payload, relative
MAX_OFF = 1.5                   # factor of its stated error from the spread of its errors
IDENTIFIED_SEEDS = 2            # draws of noise of each motion for the payload
TAIL = 0.05                     # chance with which a share that meets its bound is called missed


DELAYS = 'Intervals of delays (95 %) that have the truth'
DELAYS_OF_OTHERS = f'{DELAYS}, of bags with something wrong'


class Task(NamedTuple):
    """One bag: number of the motion, of the noise, `Layout`, name of the case, s."""

    motion: int
    seed: int
    layout: Layout
    case: str = HEALTHY
    seconds: float = SECONDS


class Outcome(NamedTuple):
    """What `validate` said of a bag."""

    task: Task
    verdict: str
    text: str
    delays: tuple
    """((seconds, low, high), ...), each interval once."""
    causes: tuple
    """((kind, about, estimate, error), ...), the likeliest first."""

    @property
    def named(self):
        """Whether the first cause is the right one."""
        case = CASES[self.task.case]
        return bool(self.causes) and self.causes[0][0] == case.kind and case.about in self.causes[0][1]

    @property
    def off(self):
        """(2,) standard errors by which both causes of a pair are off, NaN of what is not named: not among the first
        two."""
        case = CASES[self.task.case]
        found = [[(one[2] - size) / one[3] for one in self.causes[:2] if one[0] == kind and about in one[1]]
                 for kind, about, size in ((case.kind, case.about, case.size), case.also)]
        return np.array([one[0] if one else math.nan for one in found])

    @property
    def deviation(self):
        """Standard errors by which the estimate of the first cause is off, where it is the right one; else NaN."""
        if not self.named:
            return math.nan
        estimate, error = self.causes[0][2:]
        return (estimate - CASES[self.task.case].size) / error


class Identified(NamedTuple):
    """A payload: error and standard error [kg]."""

    error: float
    stated: float


class Row(NamedTuple):
    """A row of a table: what was asked, how many of how many, the bound in words, and what that shows.

    within  whether the share that was counted is within the bound
    missed  whether it is further outside than chance explains
    """

    what: str
    count: int
    of: int
    bound: str
    within: bool
    missed: bool

    @property
    def share(self):
        """`count` / `of`."""
        return self.count / self.of if self.of else math.nan


class Results(NamedTuple):
    """Of `compute`: [Outcome], [(what, verdict of a comparison)], [Identified]; and of each how many were asked for."""

    outcomes: list
    comparisons: list
    identified: list
    planned: tuple = (0, 0, 0)


def motion_of(folder, seed):
    """The `Motion` kept in a folder; it is run where it is not there."""
    path = Path(folder) / f'motion_{seed}.npz'
    if not path.exists():
        part = path.with_suffix('.part.npz')
        np.savez(part, **run_motion(seed, LONG)._asdict())
        part.rename(path)
    with np.load(path) as kept:
        return Motion(**kept)


def validated(task, folder):
    """The `Validation` of the bag of a task; folder: of motions."""
    case = CASES[task.case]
    text, hydraulics = case.model() if case.model else (machine_text(), oil())
    with tempfile.TemporaryDirectory(prefix='psdyn_calibration_') as place:
        bag = write(Path(place) / 'bag', motion_of(folder, task.motion), task.layout, case, task.seed, task.seconds)
        return validate(bag, crane(text), hydraulics=hydraulics)


def outcome_of(task, folder):
    """The `Outcome` of a task."""
    found = validated(task, folder)
    delays = {(float(one.seconds), float(one.low), float(one.high)) for one in found.delays.values()
              if math.isfinite(one.high - one.low)}
    return Outcome(task, found.verdict.verdict, found.verdict.text, tuple(sorted(delays)),
                   tuple((one.kind, one.about, one.estimate, one.error) for one in found.causes))


def compared(first, second, folder):
    """The verdict of a comparison of two bags."""
    return worst(compare(validated(first, folder), validated(second, folder)))


def identified(task, folder):
    """The `Identified` payload of a bag, of which the model knows nothing."""
    with tempfile.TemporaryDirectory(prefix='psdyn_calibration_') as place:
        bag = write(Path(place) / 'bag', motion_of(folder, task.motion), task.layout, CASES[HEALTHY], task.seed)
        found, _, _ = identify_bag(bag, crane(read_text(URDF)), hydraulics=HYDRAULICS, payload_link='tcp')
    body, = found.bodies
    return Identified(body.found.mass - PAYLOAD, float(body.errors[0]))


def tasks_of(motions, seeds, layouts, cases):
    """[Task]: healthy bags of every layout, and every case on every motion in one layout of each kind that shows it.

    motions  their numbers

    No two bags have the same noise, or one draw would count for many.
    """
    found = [(motion, layout, HEALTHY) for motion in motions for _ in range(seeds) for layout in layouts]
    found += [(motion, layout, name) for motion in motions for name in cases if name != HEALTHY
              for layout in SHOWN if layout.pressures in CASES[name].layouts]
    return [Task(motion, seed, layout, name) for seed, (motion, layout, name) in enumerate(found, motions[0])]


def compute(tasks, keep, processes=2, progress=True, seconds=math.inf):
    """The `Results` of tasks.

    keep     folder of motions and of what was found in each bag
    seconds  after which no bag is begun any more
    """
    motions = sorted({task.motion for task in tasks})
    seeds = count(1 + max(task.seed for task in tasks))
    end = time.monotonic() + seconds

    def plain(motion):
        return Task(motion, next(seeds), LAYOUTS[0])
    pairs = {('the same motion', motion): (plain(motion), plain(motion)) for motion in motions}
    pairs.update((('other motions', motion), (plain(motion), plain(other)))
                 for motion, other in zip(motions, motions[1:]))
    jobs = [(outcome_of, task) for task in tasks] + [(compared, *pair) for pair in pairs.values()]
    jobs += [(identified, plain(motion)) for motion in motions for _ in range(IDENTIFIED_SEEDS)]
    order = random.Random(0).sample(range(len(jobs)), len(jobs))
    results = Path(keep) / f'results_{source_digest()}'
    results.mkdir(exist_ok=True)
    with ProcessPoolExecutor(processes, initializer=one_thread_for_algebra) as pool:
        options = {'file': sys.stderr, 'disable': not progress, 'unit': 'bag'}
        list(tqdm(pool.map(motion_of, [keep] * len(motions), motions), total=len(motions), desc='motions', **options))
        done = pool.map(_kept, (jobs[k] for k in order), repeat(keep), repeat(results), repeat(end))
        found = dict(zip(order, tqdm(done, total=len(jobs), desc='bags', **options)))
    rest = len(tasks) + len(pairs)
    outcomes, verdicts, payloads = ([found[k] for k in part] for part in (
        range(len(tasks)), range(len(tasks), rest), range(rest, len(jobs))))
    return Results([one for one in outcomes if one], [(what, one) for (what, _), one in zip(pairs, verdicts) if one],
                   [one for one in payloads if one], (len(outcomes), len(verdicts), len(payloads)))


def source_digest():
    """Of the package: what another one has found is not kept."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    for path in sorted(root.rglob('*.py')):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _kept(job, motions, results, end):
    """What a job returns, from the folder `results` where it is there; None where time is over at `end` [s]."""
    path = results / f'{hashlib.sha256(repr((job[0].__name__, *job[1:])).encode()).hexdigest()[:20]}.pickle'
    if path.exists():
        return pickle.loads(path.read_bytes())
    if time.monotonic() > end:
        return None
    function, *arguments = job
    found = function(*arguments, motions)
    part = path.with_suffix('.part')
    part.write_bytes(pickle.dumps(found))
    part.rename(path)
    return found


# judged


def judged(results):
    """{title: [Row]} of what `compute` gave."""
    healthy = [one for one in results.outcomes if one.task.case == HEALTHY]
    wrong = [one for one in results.outcomes if one.task.case != HEALTHY]
    others, pairs = ([one for one in wrong if bool(CASES[one.task.case].also) == two] for two in (False, True))
    tables = {'Healthy bags that fail': [
        _at_most(layout.name, sum(one.verdict == FAIL for one in part), len(part), MAX_FAILED)
        for layout, part in _grouped(healthy, lambda one: one.task.layout)]}
    tables['First cause is the right one'] = [
        _at_least(name, sum(one.named for one in part), len(part), LEAST_NAMED)
        for name, part in _grouped(others, lambda one: one.task.case)]
    tables['Its estimate is within two standard errors'] = [
        _at_least(name, sum(abs(one.deviation) <= 2.0 for one in part if one.named), sum(one.named for one in part),
                  LEAST_NEAR) for name, part in _grouped(others, lambda one: one.task.case)]
    by_pair = _grouped(pairs, lambda one: one.task.case)
    tables['Of two causes both are named first'] = [
        _at_least(name, sum(bool(np.isfinite(one.off).all()) for one in part), len(part), LEAST_BOTH)
        for name, part in by_pair]
    tables['Both estimates of two are within three standard errors'] = [
        _at_least(name, sum(bool((np.abs(one.off) <= 3.0).all()) for one in part), len(part), LEAST_BOTH)
        for name, part in by_pair]
    for title, part in ((DELAYS, healthy), (DELAYS_OF_OTHERS, wrong)):
        tables[title] = [_within(layout.name, *_covered(bags)) for layout, bags in _grouped(
            [one for one in part if one.delays], lambda one: one.task.layout)]
    tables['Comparisons of a machine with itself that are not SAME'] = [
        _at_most(what, sum(verdict != SAME for _, verdict in part), len(part), MAX_DIFFERENT)
        for what, part in _grouped(results.comparisons, lambda one: one[0])]
    errors = np.array(results.identified).reshape(-1, 2)
    near = int((np.abs(errors[:, 0]) <= MAX_MASS * PAYLOAD).sum())
    off = stated_off(errors) if len(errors) else math.nan
    tables['Identified payload'] = [
        _at_least(f'within {100.0 * MAX_MASS:g} % of {PAYLOAD:g} kg', near, len(errors), 1.0),
        _at_least('within two of the stated errors', int((np.abs(errors[:, 0]) <= 2.0 * errors[:, 1]).sum()),
                  len(errors), LEAST_NEAR),
        Row(f'stated error within a factor of {MAX_OFF:g} of the rms error', int(1.0 / MAX_OFF <= off <= MAX_OFF),
            int(len(errors) > 0), 'yes', 1.0 / MAX_OFF <= off <= MAX_OFF, _off_by_more(off, len(errors)))]
    return tables


def stated_off(errors):
    """Stated error over the rms error of errors (n, 2)."""
    return float(np.sqrt(np.mean(errors[:, 1] ** 2) / np.mean(errors[:, 0] ** 2)))


def _off_by_more(off, count):
    """Whether a ratio of a stated error to that of `count` draws is further off than chance explains."""
    from scipy.stats import chi2

    if not count:
        return False
    # count times (rms / truth)^2 has that distribution
    least, most = np.sqrt(chi2.ppf((TAIL, 1.0 - TAIL), count) / count)
    return not 1.0 / (MAX_OFF * most) <= off <= MAX_OFF / least


def _grouped(items, key):
    """[(key, items)] in the order of their first."""
    order = {one: k for k, one in enumerate(dict.fromkeys(map(key, items)))}
    return [(one, list(part)) for one, part in groupby(sorted(items, key=lambda item: order[key(item)]), key)]


def _covered(outcomes):
    truths = [(CASES[one.task.case].late, interval) for one in outcomes for interval in one.delays]
    return sum(low <= truth <= high for truth, (_, low, high) in truths), len(truths)


def _at_most(what, count, of, share):
    return Row(what, count, of, f'<= {100.0 * share:g} %', count <= share * of, count > _likely(of, share)[1])


def _at_least(what, count, of, share):
    return Row(what, count, of, f'>= {100.0 * share:g} %', count >= share * of, count < _likely(of, share)[0])


def _within(what, count, of):
    low, high = COVERED
    # of few intervals all may have the truth
    most = max(high * of, _likely(of, high)[1])
    return Row(what, count, of, f'{100.0 * low:g} to {100.0 * high:g} %',
               low * of <= count <= most, not _likely(of, low)[0] <= count <= most)


def _likely(of, share):
    """Counts between which a share that is just met is found, each with the chance of TAIL beyond."""
    from scipy.stats import binom

    return int(binom.ppf(TAIL, of, share)), int(binom.ppf(1.0 - TAIL, of, share))


def main(args=None):
    """Run the study; returns the exit code."""
    parser = study_parser('calibration_study', __doc__, 'one motion, one seed, some layouts and causes')
    parser.add_argument('--motions', type=int, default=MOTIONS, help='of the plant (default: %(default)s)')
    parser.add_argument('--seeds', type=int, default=SEEDS, help='of noise of healthy bags (default: %(default)s)')
    parser.add_argument('--first', type=int, default=0,
                        help='number of the first motion, and of the first draw of noise (default: %(default)s)')
    parser.add_argument('--keep', metavar='DIR', help='folder in which motions and results are kept, and found again')
    parser.add_argument('--minutes', type=float, default=math.inf,
                        help='after which no bag is begun any more (default: no end)')
    options = parser.parse_args(args)
    motions, seeds, layouts, cases = options.motions, options.seeds, LAYOUTS, tuple(CASES)
    if options.short:
        motions, seeds, layouts, cases = 1, 1, LAYOUTS[1:2], SHORT_CASES
    tasks = tasks_of(range(options.first, options.first + motions), seeds, layouts, cases)
    with tempfile.TemporaryDirectory(prefix='psdyn_motions_') as scratch:
        keep = Path(options.keep or scratch)
        keep.mkdir(parents=True, exist_ok=True)
        results = compute(tasks, keep, options.processes, seconds=60.0 * options.minutes)
    tables = judged(results)
    folder = Path(options.output)
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    draw_causes(folder / 'images' / 'calibration_causes.png', [one for one in results.outcomes
                                                              if CASES[one.task.case].kind
                                                              and not CASES[one.task.case].also])
    draw_delays(folder / 'images' / 'calibration_delays.png', [one for one in results.outcomes if one.delays
                                                              and one.task.case == HEALTHY])
    text = page(tables, results)
    return finish(folder, 'calibration.md', text, [
        f'{title}: {row.what}: {row.count} of {row.of}, expected {row.bound}'
        for title, rows in tables.items() for row in rows if row.missed])


if __name__ == '__main__':
    sys.exit(main())
