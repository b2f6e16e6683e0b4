"""Many recordings of one kind of machine, each validated by itself, in parallel, and a page about all of them."""

import os
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ...api.load import load
from ...model.errors import ModelError
from ...model.locate import find_config, find_machine
from ...model.text_file import read_text
from ..bags.folders import find_bags, report_names
from ..metrics import EXIT_CODES, FAIL, INVALID, PASS, UNDECIDED
from ..metrics.tolerances import read_settings
from ..validate import read_model
from .outcomes import KINDS, PAGES, counts, excess, kind_of, worst_check
from .process_pool import ClusterLost, Setup, run_here, unusable


@dataclass(frozen=True)
class Fleet:
    """What came of many bags.

    machine     name
    tolerances  where they are from
    outcomes    tuple of `Outcome` without their files, the worst first
    reports     {bag: name of the folder of its report}, {} where none were asked for
    error       why not all were validated, '' where they were
    """

    machine: str
    tolerances: str
    outcomes: tuple
    reports: dict
    error: str = ''

    @property
    def exit_code(self):
        """2 where not all were validated, else that of the worst bag: 1 before 2, before 3, before 0."""
        if self.error:
            return EXIT_CODES[INVALID]
        return min(map(kind_of, self.outcomes), key=list(KINDS).index)[1]

    @property
    def verdict(self):
        """FAIL or INVALID where any bag is; else PASS, unless all are UNDECIDED."""
        if self.error:
            return INVALID
        kinds = {one.verdict for one in self.outcomes}
        return next(verdict for verdict in (FAIL, INVALID, PASS, UNDECIDED) if verdict in kinds)

    @property
    def text(self):
        """One sentence."""
        return (f'{self.verdict}: of {len(self.outcomes)} bags {counts(self.outcomes)}'
                + (f'; {self.error}' if self.error else ''))


def validate_many(bags, urdf, *, hydraulics=None, config=None, output=None, initial=None, workers=None, scheduler=None,
                  quiet=True, **options):
    """Validate each of many bags in a process of its own; returns a `Fleet`.

    bags        paths of bags, and of folders in which they are looked for, see `find_bags`
    urdf, hydraulics, config, initial  as `validate` takes them, files or names
    output      folder for index.html, its picture, summary.json and summary.csv, and one folder for each bag with what
                `validate` writes, but for the bag of predictions; None writes nothing
    workers     processes at once, None: as many as there are processors
    scheduler   address of a Dask scheduler, whose workers see the bags under the same paths; None: processes here
    quiet       no progress bar
    options     further arguments of `validate`

    A bag that cannot be read, or whose process dies, is an `Outcome` that says so.  Raises ModelError for files that do
    not fit and where there are no bags, ClusterLost where there is no cluster; one that is lost later is `Fleet.error`.
    """
    if workers is not None and workers < 1:
        raise ModelError(f'{workers} workers: expected 1 or more')
    bags = find_bags(bags)
    if not bags:
        raise ModelError('no bags to validate')
    # the bags of predictions of a fleet are as large as what was recorded
    options = {**options, 'predicted_rate': None}
    setup, machine = _setup(urdf, hydraulics, config, initial, options, output is not None)
    reports = report_names(bags, PAGES) if output is not None else {}
    if output is not None:
        Path(output).mkdir(parents=True, exist_ok=True)
    if scheduler is None:
        running = run_here(bags, setup, min(workers or _processors(), len(bags)))
    else:
        from .dask_workers import run_on_cluster
        running = run_on_cluster(bags, setup, scheduler)
    outcomes, error = [], ''
    try:
        for outcome in tqdm(running, total=len(bags), unit='bag', disable=True if quiet else None, leave=False):
            outcomes.append(_kept(outcome, output, reports))
    except ClusterLost as lost:
        if not outcomes:
            raise
        error = str(lost)
        done = {one.bag for one in outcomes}
        outcomes += [unusable(bag, f'not validated: {error}') for bag in bags if bag not in done]
    finally:
        running.close()
    fleet = Fleet(machine, setup.settings.where, tuple(sorted(outcomes, key=_rank)), reports, error)
    if output is not None:
        from .summary_page import write_fleet
        write_fleet(output, fleet)
    return fleet


def _setup(urdf, hydraulics, config, initial, options, report):
    """(`Setup`, name of the machine) of files, which are read here once."""
    text = read_text(find_machine(urdf))
    options = {**options, 'hydraulics_optional': hydraulics is None}
    manipulator = load(text, initial=initial)
    if hydraulics is None and not Path(urdf).is_file():
        hydraulics = find_config(f'{urdf}_hydraulics.yaml')
    _, hydraulics = read_model(manipulator, hydraulics)
    settings = read_settings(config, manipulator.actuators)
    return Setup(text, initial, hydraulics or '', settings, options, report), manipulator.name


def _processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1


def _kept(outcome, output, reports):
    """The outcome without its files, which are written."""
    if not outcome.files:
        return outcome
    try:
        folder = Path(output) / reports[outcome.bag]
        folder.mkdir(exist_ok=True)
        for name, content in outcome.files.items():
            (folder / Path(name).name).write_bytes(content)
    except OSError as error:
        return outcome._replace(files={}, text=f'{outcome.text}; its report cannot be written: {error}')
    return outcome._replace(files={})


def _rank(outcome):
    worst = worst_check(outcome)
    return list(KINDS).index(kind_of(outcome)), -(excess(worst) if worst else 0.0), outcome.bag
