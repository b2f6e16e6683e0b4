"""Validates mutated bags, in processes with bounded memory, and counts what comes of them.

    python3 -m psdyn_ros.tools.fuzzing.mutated_bags --count 5000

Which PASSes are wrong says `verdict`.
"""

import argparse
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from ...api.load import load
from ...model.locate import find_config
from ...model.parameters.hydraulics import read_hydraulics
from ...validation.bags.source import open_bag
from ...validation.report.page import as_text
from .mutations import Mutator, bombs, write_mcap
from .verdict import honest, judge, true_messages

MACHINE = 'hiab_xs031'
MEMORY = 600 << 20          # bytes of address space that reading a bag may take
PATIENCE = 20               # s of a processor for one bag, and
ASLEEP = 10.0               # times as long at all, since other programs may keep the processor
SILENCE = 400.0             # s without a word of a process, after which it is ended: it hangs before or after a bag
CRASH, HANG = 'crash', 'hang'


class Hang(BaseException):
    """A bag that is read for too long."""


@dataclass
class Report:
    """What came of a campaign.

    outcomes      {(kind of mutation, outcome): how many}
    failures      (number, kind, traceback) of crashes and hangs
    wrong_passes  (number, kind, why) of verdicts that are too good
    memory        bytes, the most that a process grew by
    slowest       s, of one bag
    """

    outcomes: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)
    wrong_passes: list = field(default_factory=list)
    memory: int = 0
    slowest: float = 0.0

    def table(self):
        """Rows of text, the header first."""
        names = sorted({outcome for _, outcome in self.outcomes})
        yield 'mutation', *names
        for kind in sorted({kind for kind, _ in self.outcomes}):
            yield kind, *(str(self.outcomes[kind, name]) for name in names)
        yield 'all', *(str(sum(n for (_, one), n in self.outcomes.items() if one == name)) for name in names)


def campaign(count, seed=0, judge=judge, first=0, progress=None):
    """Judge `count` mutated bags; returns a `Report`.

    judge     function of (`Mutation`, (manipulator, hydraulics), `Honest`) that returns an outcome, and why that is
              wrong or ''; it raises nothing
    progress  function of the number of bags that are done, or None
    """
    manipulator = load(MACHINE)
    machine = manipulator, read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), manipulator.actuators)
    bombs()     # made once, for all processes, as is what is imported and compiled on first use
    messages, report, done = true_messages(*machine), Report(), first
    with tempfile.TemporaryDirectory(prefix='psdyn_bags_') as folder:
        seed_bag = Path(folder) / 'honest.mcap'
        write_mcap(seed_bag, messages)
        truth = honest(seed_bag, messages, machine)
        task = _Task(machine, truth, messages, seed, judge)
        while done < first + count:
            done = _one_process(task, report, Path(folder) / f'from_{done}', done, first + count, progress)
    return report


class _Task(NamedTuple):
    """What bags are judged by: arguments of `judge`, what they are made of, the seed."""

    machine: tuple
    truth: object
    messages: object
    seed: int
    judge: object


def _one_process(task, report, folder, first, last, progress):
    """Judge bags in a process until all are, or it dies; returns the number of the next."""
    context = multiprocessing.get_context('fork')
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(task, there, folder, first, last))
    process.start()
    there.close()
    number, kind = first, 'start'
    try:
        while True:
            if not here.poll(SILENCE):
                process.kill()
            what, *values = here.recv()
            if what == 'begin':
                number, kind = values
                continue
            outcome, wrong, seconds, memory, text = values
            report.outcomes[kind, outcome] += 1
            report.slowest, report.memory = max(report.slowest, seconds), max(report.memory, memory)
            if outcome in (CRASH, HANG):
                report.failures.append((number, kind, text))
            if wrong:
                report.wrong_passes.append((number, kind, wrong))
            number += 1
            if progress:
                progress(number - first)
    except EOFError:
        process.join()
    if number < last:
        report.outcomes[kind, CRASH] += 1
        report.failures.append((number, kind, f'the process ended with {process.exitcode}'))
        number += 1
    return number


def _child(task, pipe, folder, first, last):
    mutator = Mutator(folder, task.messages, [task.seed, first])
    open_bag(mutator.seeds['sqlite']).close()       # imports
    before = peak_memory()
    taken = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, resource.RLIM_INFINITY))
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _give_up)
    for number in range(first, last):
        pipe.send(('begin', number, mutator.kind(number)))
        mutation = mutator.make(number)
        started, wrong, text = time.perf_counter(), '', ''
        _set_timers(PATIENCE)
        try:
            outcome, wrong = task.judge(mutation, task.machine, task.truth)
        except Hang:
            outcome, text = HANG, traceback.format_exc()
        except Exception:
            outcome, text = CRASH, traceback.format_exc()
        _set_timers(0.0)
        grown = peak_memory() - before
        pipe.send(('end', outcome, wrong, time.perf_counter() - started, grown, text))
    pipe.close()


def peak_memory():
    """Largest resident memory [bytes] of this process so far; `getrusage` counts that of its parent in."""
    status = Path('/proc/self/status').read_text()
    return int(status.split('VmHWM:')[1].split()[0]) * 1024


def _processor_time():
    """s of this process and those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _set_timers(seconds):
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, ASLEEP * seconds)


def _give_up(*_):
    raise Hang(f'not read within {PATIENCE} s')


def main(arguments=None):
    """Run a campaign and print what came of it; returns 0 if nothing crashed, hung or passed wrongly, else 1."""
    parser = argparse.ArgumentParser(description='Validates mutated bags and counts what comes of them.')
    parser.add_argument('--count', type=int, default=5000, help='how many bags')
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args(arguments)
    started, used = time.perf_counter(), _processor_time()
    with tqdm(total=options.count, unit='bag', disable=None, leave=False) as bar:
        report = campaign(options.count, options.seed, progress=lambda _: bar.update())
    print(as_text(report.table()))
    for number, kind, text in report.failures[:10]:
        print(f'\nbag {number} ({kind}):\n{text}')
    for number, kind, why in report.wrong_passes[:10]:
        print(f'\nbag {number} ({kind}) passes wrongly: {why}')
    print(f'{options.count} bags in {time.perf_counter() - started:.0f} s ({_processor_time() - used:.0f} s of a '
          f'processor), seed {options.seed}: {len(report.failures)} crashes or hangs, {len(report.wrong_passes)} wrong '
          f'passes; the slowest took {report.slowest:.2f} s, memory grew by {report.memory / 2 ** 20:.0f} MiB at most')
    if not report.failures:
        print(f'none failed in {options.count} trials: the rate of failures is below {3 / options.count:.2g} (95 %)')
    return 1 if report.failures or report.wrong_passes else 0


if __name__ == '__main__':
    sys.exit(main())
