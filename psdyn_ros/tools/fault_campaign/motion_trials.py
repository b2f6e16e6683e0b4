"""What the true machine does after one fault: speed, travel and spool, on either plant, at any rate, in every state.

    python3 -m psdyn_ros.tools.fault_campaign.motion_trials [--seeds N] [--first N] [--plants P ...] [--rates HZ ...]
        [--levels L ...] [--workers N] [--only TEXT] [--short] [--seconds S] [--output FILE] [--sound MINUTES]
        [--machine NAME]

The state that the controller reaches counts for nothing here.
"""

import argparse
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from ...control.reference.trajectory import TrajectoryError
from ...control.safety.fault_table import State
from ...control.safety.state_machine import SafetyError
from ...model.errors import PsdynError
from ..studies.tracking_runs import CORNERS, CRANE, EXACT, crane, mistaken
from . import fault_report
from .bench import MOTION_LEVELS, PLANTS, RATES, Bench, make_machine
from .fault_trials import OPERATOR, enable_at_rest, prepare
from .lies import cases

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
FASTER = 1.1                # times the speed at the fault that is allowed
SLOW = 0.02                 # m/s or rad/s that is allowed anyway
FULL = 0.95                 # of the spool, which counts as full
FULL_S = 0.02               # s of that against the reference
REST = 0.01                 # m/s or rad/s, at which an axis counts as at rest
EXTRA_TRAVEL = 0.02         # m or rad beyond v^2 / (2 a)
WATCHED = 1.0               # s beyond the time of a stop
SETTLED = 0.2               # s at rest in SAFE, after which nothing more will come
SOUND = 'machine', 'seeds', 'plants', 'rates', 'levels', 'short'     # arguments of sound runs
PARTS = 8                   # into which the faults of a plant, level and rate are divided, so that all get their share


class MotionTrial(NamedTuple):
    """What came of one fault; of the worst axis each."""

    group: str
    name: str
    plant: str
    level: str
    rate: float
    state: str
    seed: int
    before: float      # m/s or rad/s at the fault
    speed: float      # the largest after it, of the axis that was the farthest beyond what it may have
    allowed: float      # that it may have
    spool: float      # the largest, of 1
    full: float      # s of full spool against the reference
    rest: float | None      # s from the beginning of the stop to rest; None: no stop
    travel: float
    """m or rad beyond v^2 / (2 a) after the beginning of the stop, negative where it is shorter."""
    distance: float      # m or rad from where it was at the fault, of the stop or from the reference
    detected: float | None      # s from the fault to the stop
    end: str
    reason: str
    missed: tuple      # texts: which bounds were broken

    @property
    def good(self):
        return not self.missed

    def text(self):
        """One line: where it was, what was missed, and what the controller said."""
        return (f'{self.group}: {self.name}, {self.plant}, {self.level}, {self.rate:g} Hz, {self.state}, seed '
                f'{self.seed}: {"; ".join(self.missed)}; {self.end} {self.reason}')


class _Over(Exception):
    """Leaves an injection without what it does when its fault is taken away."""


def run_motion(machine, plant, injection, state, seed, healthy):
    """Return the `MotionTrial` of an injection in a `State`; healthy: what `healthy_speeds` returns for it."""
    bench, failures = Bench(machine, seed, injection.amend, **injection.options), []
    begin, bench.motion_watched = 0, True
    try:
        prepare(bench, state)
        begin = len(bench.path) - 1
        with injection.bring(bench):
            if state in (STANDBY, SAFE):
                bench.turns(OPERATOR)
                _operate(bench, state)
            _watch(bench)
            raise _Over
    except _Over:
        pass
    except PsdynError as error:
        failures.append(f'{type(error).__name__}: {error}')
    except Exception as error:
        failures.append(f'exception {type(error).__name__}: {error}')
    where = injection.group, injection.name, plant, machine.kind, machine.rate, state.name, seed
    return _verdict(bench, begin, failures, where, healthy)


def healthy_speeds(machine, state, seed, sound=None):
    """Return (N, dof) the largest speeds so far without a fault, from where it would begin.

    sound  as of the `Injection`
    """
    bench = Bench(machine, seed)
    prepare(bench, state)
    begin = len(bench.path) - 1
    if state in (STANDBY, SAFE):
        bench.turns(OPERATOR)
        _operate(bench, state)
    if sound:
        sound(bench)
    _watch(bench)
    return np.maximum.accumulate(np.abs([point.xd for point in bench.path[begin:]]))


def _operate(bench, state):
    """What an operator does who sees nothing of the fault; what is refused is no failure."""
    try:
        if state is SAFE:
            bench.reset()
            bench.turns(OPERATOR)
        bench.enable()
        bench.turns(OPERATOR)
        bench.follow(bench.motion(1.0, 0.5))
    except (SafetyError, TrajectoryError):
        pass


def _watch(bench):
    """Turns until nothing more will come."""
    still = 0
    for _ in range(round((bench.declaration.stop_time + WATCHED) / bench.period)):
        bench.turn()
        point = bench.path[-1]
        still = still + 1 if point.state == SAFE and np.abs(point.xd).max() < 0.1 * REST else 0
        if still * bench.period > SETTLED:
            return


def _verdict(bench, begin, failures, where, healthy):
    path, period = bench.path[begin:], bench.period
    time, x, xd, spool, reference, state = (np.array(column) for column in zip(*path))
    speed, before, asked = np.abs(xd), np.abs(xd[0]), np.abs(np.nan_to_num(reference[:, 1]))
    usual = healthy[np.minimum(np.arange(len(path)), len(healthy) - 1)]
    allowed = np.maximum(FASTER * np.maximum(before, np.maximum(usual, np.maximum.accumulate(asked))), SLOW)
    beyond = speed - allowed
    at, axis = np.unravel_index(beyond.argmax(), beyond.shape)
    missed = list(failures)
    if beyond.max() > 0.0:
        missed.append(f'speed {speed[at, axis]:.3g}, at most {allowed[at, axis]:.3g}')
    full = _full(bench, spool, reference[:, 1]) * period
    if full > FULL_S + 1e-9:
        missed.append(f'full spool against the reference for {1e3 * full:.0f} ms')
    stops = np.flatnonzero(state >= STOPPING)
    off = np.nan_to_num(np.abs(x - reference[:, 0])).max()
    rest, travel, detected, distance, reasons = None, -EXTRA_TRAVEL, None, off, bench.core.states.reasons
    # in SAFE it begins at rest; a stop is what follows when it was reset
    stops = stops[stops >= (state != SAFE).argmax()] if state[0] == SAFE else stops
    if stops.size and (state != SAFE).any():
        stop = stops[0]
        detected = float(time[stop] - time[0])
        moving = np.flatnonzero((speed[stop:] > REST).any(axis=1))
        rest = period * float(moving[-1] + 1 if moving.size else 0)
        if rest > bench.declaration.stop_time:
            missed.append(f'at rest after {rest:.2f} s')
        way = np.abs(x[stop:] - x[stop]).max(axis=0)
        travel = float((way - 0.5 * speed[stop] ** 2 / bench.declaration.deceleration).max())
        distance = float(way.max())
        if travel > EXTRA_TRAVEL:
            missed.append(f'{1e3 * travel:.0f} mm or mrad more than v^2 / (2 a)')
    return MotionTrial(*where, float(before[axis]), float(speed[at, axis]), float(allowed[at, axis]),
                       float(np.abs(spool).max(initial=0.0)), full, rest, travel, float(distance), detected,
                       State(state[-1]).name, '; '.join(reasons.values())[:120], tuple(missed))


def _full(bench, spool, rates):
    """Most turns of full spool of a cylinder against its reference, or with none, all together."""
    if not spool.size:
        return 0
    columns = [int(c['axis']) for c in bench.law.cylinders]
    against = spool * np.nan_to_num(rates[:, columns]) <= 0.0
    return int((against & (np.abs(spool) > FULL)).sum(axis=0).max())


def jobs(seeds, *, machine=CRANE, plants=PLANTS, rates=RATES, levels=MOTION_LEVELS, only='', short=False):
    """Return [arguments] of the parts into which the trials are divided, one of each plant, level and rate in turn.

    seeds    of each
    only     part of "group: name" of the faults
    short    as of `cases`
    """
    return [(machine, plant, rate, level, seed, part, only, short)
            for seed, part, plant, rate, level in product(seeds, range(PARTS), plants, rates, levels)]


def run(jobs, workers=1, seconds=math.inf):
    """Yield every `MotionTrial` of `jobs`, in so many processes; seconds: after which no trial begins."""
    until = time.time() + seconds
    if workers == 1:
        for job in jobs:
            yield from _run_part(job, until)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context('spawn')) as pool:
        for done in as_completed([pool.submit(_run_part, job, until) for job in jobs]):
            yield from done.result()


_machine = cache(make_machine)


@cache
def _healthy(level, name, plant, rate, state, seed, sound):
    return healthy_speeds(_machine(level, name, plant, rate), state, seed, sound)


def _run_part(job, until):
    """[`MotionTrial`] of one of `jobs`, until a time [s]."""
    (name, plant, rate, level, seed, part, only, short), trials = job, []
    for injection, state in list(cases(level, only, short))[part::PARTS]:
        if time.time() >= until:
            break
        machine = _machine(level, name, plant, rate)
        healthy = _healthy(level, name, plant, rate, state, seed, injection.sound)
        trials.append(run_motion(machine, plant, injection, state, seed, healthy))
    return trials


def false_stops(machine, seed, seconds):
    """Return [reason] of stops and refusals of a sound machine in so many s of motions that end or are stopped."""
    found, rng, worked, bench = [], np.random.default_rng([seed, 2]), 0.0, None
    while worked < seconds:
        if bench is None:
            bench = Bench(machine, int(rng.integers(2**32)))
            bench.turns(OPERATOR)
            bench.activate()
        states, began = bench.core.states, len(bench.path)
        if states.state is STANDBY:
            refusal = enable_at_rest(bench)
            if refusal:
                found.append(refusal)
                worked, bench = worked + (len(bench.path) - began) * bench.period, None
                continue
            bench.turns(OPERATOR)
        if states.state is HOLD:
            try:
                bench.follow(bench.motion())
            except TrajectoryError as error:
                found.append(f'a motion is refused: {error}')
                worked, bench = worked + (len(bench.path) - began) * bench.period, None
                continue
            bench.turns(rng.uniform(0.3, 3.5))
        what = rng.choice(['wait', 'cancel', 'disable'])
        if what != 'wait':
            getattr(bench.core, what)(bench.now)
        bench.turns(bench.declaration.stop_time + OPERATOR)
        while states.state in (RUN, DEGRADED, STOPPING):
            bench.turn()
        worked += (len(bench.path) - began) * bench.period
        if states.state is SAFE:
            found.append('; '.join(states.reasons.values()))
            bench = None        # a machine that fell has to be looked at
    return found


def with_wrong_model(machine, off):
    """Return a `Machine` whose law is wrong by a `Mismatch`; its plant is the same."""
    return machine._replace(whole=crane(off.inertia, name=machine.whole.name),
                            hydraulics=machine.hydraulics and mistaken(machine.hydraulics, off))


def sound_runs(minutes, seeds, plants, rates, levels, corners, name=CRANE):
    """Yield (where, [reason] of false stops) of so many minutes each; corners: `Mismatch` of the model of the law."""
    for plant, level, rate, off, seed in product(plants, levels, rates, corners, seeds):
        machine = with_wrong_model(_machine(level, name, plant, rate), off)
        yield f'{plant}, {level}, {rate:g} Hz, {off}, seed {seed}', false_stops(machine, seed, 60.0 * minutes)


def _print_sound(minutes, machine, seeds, plants, rates, levels, short):
    """Print the false stops of sound machines."""
    corners, runs, stops = (EXACT, *CORNERS[5:6]) if short else (EXACT, *CORNERS), 0, 0
    for where, found in sound_runs(minutes, seeds, plants, rates, levels, corners, machine):
        runs, stops = runs + 1, stops + len(found)
        for reason in found:
            print(f'{where}: {reason}', flush=True)
        print(f'{where}: {len(found)} false stops', flush=True)
    print(f'{stops} false stops in {runs} runs of {minutes:g} min')


def main(arguments=None):
    """Run trials and print what was missed."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.tools.fault_campaign.motion_trials',
                                     description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=1, metavar='N')
    parser.add_argument('--first', type=int, default=0, metavar='N')
    parser.add_argument('--machine', default=CRANE, metavar='NAME',
                        help='of the package, default: %(default)s; others need --plants package')
    parser.add_argument('--plants', nargs='+', choices=PLANTS, default=PLANTS)
    parser.add_argument('--levels', nargs='+', choices=MOTION_LEVELS, default=MOTION_LEVELS)
    parser.add_argument('--rates', nargs='+', type=float, default=RATES, metavar='HZ')
    parser.add_argument('--workers', type=int, default=1, metavar='N', help='processes')
    parser.add_argument('--only', default='', metavar='TEXT', help='part of "group: name"')
    parser.add_argument('--short', action='store_true', help='one state of each fault')
    parser.add_argument('--seconds', type=float, default=math.inf, metavar='S', help='after which no trial begins')
    parser.add_argument('--output', metavar='FILE', help='report of the campaign, whose part of motions is replaced')
    parser.add_argument('--sound', type=float, metavar='MINUTES', help='of work without a fault in place of trials, '
                        'of each plant, level, rate and wrong model; --short: of two models')
    given = vars(parser.parse_args(arguments))
    output, trials, began = given.pop('output'), [], time.time()
    if output and given['machine'] != CRANE:
        parser.error(f"--output with --machine {given['machine']}: the report is that of {CRANE}")
    first, minutes = given.pop('first'), given.pop('sound')
    given['seeds'] = range(first, first + given['seeds'])
    if minutes:
        return _print_sound(minutes, **{name: given[name] for name in SOUND})
    workers, seconds = given.pop('workers'), given.pop('seconds')
    for one in run(jobs(**given), workers, seconds):
        trials.append(one)
        if not one.good:
            print(one.text(), flush=True)
    print('\n'.join([*fault_report.coverage(trials), '', *fault_report.bounds_table(trials), '',
                     *fault_report.motion_table(trials)]))
    if output:
        when = time.strftime('%Y-%m-%d %H:%M %z', time.localtime(began))
        run_text = f'begun {when}, {time.time() - began:.0f} s' + ', one state of each fault' * given['short']
        print('report:', fault_report.write_motions(output, trials, run_text))


if __name__ == '__main__':
    main()
