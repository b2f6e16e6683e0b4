"""Validates bags in processes of their own: one that dies, killed or out of memory, is one bag without a verdict.

A process takes one bag after the other, since it needs seconds to start; it ends when who started it does.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from ...model.errors import PsdynError, shorten
from ..metrics import EXIT_CODES, INVALID

# results are those of one thread, and processes do not stand in each other's way
ONE_THREAD = dict.fromkeys(('OPENBLAS_NUM_THREADS', 'OMP_NUM_THREADS', 'MKL_NUM_THREADS'), '1')
IDLE = 20.0                 # s that a process waits for a bag
KEPT = 'checks', 'partial', 'duration', 'usable'
START = ('import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.path[:] = {path!r}; '
         'from {module} import serve; serve()')


class ClusterLost(PsdynError):
    """A cluster that went away, or never was there."""


class Setup(NamedTuple):
    """What all bags are validated against; needs no file, so that it may travel.

    urdf        XML text
    initial     {joint: position}, see `load`
    hydraulics  `Hydraulics`, or '' for none
    settings    `tolerances.Settings`
    options     further keyword arguments of `validate`
    report      whether files are to be made
    """

    urdf: str
    initial: dict
    hydraulics: object
    settings: object
    options: dict
    report: bool


class Outcome(NamedTuple):
    """What came of one bag.

    bag        path as given
    verdict    PASS, FAIL or INVALID
    exit_code  0 pass, 1 fail, 2 unusable, 3 pass on partial input
    text       the verdict in one sentence
    cause      the likeliest cause in words, '' where none is known
    document   KEPT of validation.json, of `actuators` the names; {} where the bag could not be read
    files      {name: bytes} of the report
    """

    bag: str
    verdict: str
    exit_code: int
    text: str
    cause: str = ''
    document: dict = {}
    files: dict = {}


def unusable(bag, reason):
    """Return the `Outcome` of a bag that nothing can be said of."""
    return Outcome(bag, INVALID, EXIT_CODES[INVALID], f'{INVALID}: {reason}')


def run_here(bags, setup, workers):
    """Yield the `Outcome` of each bag as it comes, from at most `workers` processes at once.

    Processes end with the generator, whatever ends it.
    """
    processes = Processes()
    with ThreadPoolExecutor(workers) as threads:
        try:
            for done in as_completed([threads.submit(processes.run, bag, setup) for bag in bags]):
                yield done.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            processes.close()


class Processes:
    """Processes that wait for bags; safe to call from many threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._idle, self._closed = [], False
        self.busy = {}              # process -> bag

    def run(self, bag, setup):
        """Return the `Outcome` of a bag, from a process that is idle, or else a new one."""
        while True:
            try:
                with self._lock:
                    if self._closed:
                        return unusable(bag, 'the validation was ended')
                    used = bool(self._idle)
                    process = self._idle.pop() if used else _Process()
                    self.busy[process] = bag
            except OSError as error:
                return unusable(bag, f'no process could be started for it: {error}')
            outcome = process.ask(bag, setup)
            with self._lock:
                del self.busy[process]
                if outcome is not None and not self._closed:
                    self._idle.append(process)
                    return outcome
            code, reason = process.end()
            # a process that has waited for too long has gone by itself, and knows nothing of the bag
            if outcome is not None or code != 0 or not used:
                return outcome or unusable(bag, reason)

    def close(self):
        """End all processes, whatever they do."""
        with self._lock:
            self._closed = True
            for process in (*self._idle, *self.busy):
                process.kill()
            while self._idle:
                self._idle.pop().end()


class _Process:
    """A process that validates bags, one at a time."""

    def __init__(self):
        self._errors = tempfile.TemporaryFile()
        # what it leaves behind when it is killed goes with it
        self._folder = tempfile.TemporaryDirectory(prefix='psdyn_validation_')
        command = START.format(path=sys.path, module=__name__)
        self._process = subprocess.Popen(
            [sys.executable, '-c', command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env={**os.environ, **ONE_THREAD, 'TMPDIR': self._folder.name})
        self.pid = self._process.pid

    def ask(self, bag, setup):
        """Return the `Outcome` of a bag, or None where the process dies over it."""
        try:
            pickle.dump((bag, setup), self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def kill(self):
        """End it, whatever it does; another thread may wait for its answer."""
        self._process.kill()

    def end(self):
        """Let it end; returns (exit code, how it ended in words)."""
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except OSError:
                pass            # what it did not take is lost with it
        code = self._process.wait()
        self._folder.cleanup()
        with self._errors:
            self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - 4096, 0))
            lines = self._errors.read().decode(errors='replace').split('\n')
        last = next((line.strip() for line in reversed(lines) if line.strip()), '')
        if code < 0:
            how = f'was ended by {signal.Signals(-code).name}'
            how += ', as where there is too little memory' if code == -signal.SIGKILL else ''
        else:
            how = f'ended with exit code {code}'
        return code, f'the process that validated it {how}' + (f': {shorten(last)}' if last else '')


def serve():
    """Validate what comes on standard input, until that ends or nothing comes."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), 'wb')
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())       # what libraries print is no answer
    jobs = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    machines = {}
    while True:
        try:
            bag, setup = jobs.get(timeout=IDLE)
        except queue.Empty:
            os._exit(0)         # the listener cannot be asked to end
        pickle.dump(_outcome(bag, setup, machines), answers)
        answers.flush()


def _listen(jobs):
    """Hand jobs on; where whoever sends them is gone, everything ends."""
    while True:
        try:
            jobs.put(pickle.load(sys.stdin.buffer))
        except EOFError:
            os._exit(0)


def _outcome(bag, setup, machines):
    from ..report.validation_tables import document
    from ..validate import validate

    try:
        with tempfile.TemporaryDirectory(prefix='psdyn_report_') as folder:
            found = validate(bag, _machine(setup, machines), hydraulics=setup.hydraulics, config=setup.settings,
                             output=folder if setup.report else None, **setup.options)
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    except (PsdynError, OSError) as error:
        return unusable(bag, str(error))
    except Exception as error:      # one bag must not end the others, whatever is wrong with it or with us
        place = traceback.extract_tb(error.__traceback__)[-1]
        return unusable(bag, f'internal error at {Path(place.filename).name}:{place.lineno}: {type(error).__name__}: '
                             f'{shorten(str(error))}')
    verdict, whole = found.verdict, document(found)
    kept = {**{name: whole[name] for name in KEPT}, 'actuators': list(whole['actuators'])}
    return Outcome(bag, verdict.verdict, verdict.exit_code, verdict.text, found.causes[0].text if found.causes else '',
                   kept, files)


def _machine(setup, machines):
    """The `Manipulator` of a setup; {text: Manipulator} are at hand."""
    from ...api.load import load

    key = setup.urdf, repr(setup.initial)
    if key not in machines:
        machines.clear()
        machines[key] = load(setup.urdf, initial=setup.initial)
    return machines[key]
