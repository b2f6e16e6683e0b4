"""Streamed points on the crane: how far the machine is off the motion that somebody streams, by rate, stamps, contents.

`python3 -m psdyn_ros.tools.studies.stream_study` prints the table of docs/how-to/streaming.md; it takes some minutes.
"""

import argparse
import sys
from dataclasses import dataclass, replace

import numpy as np

from ...control.reference.trajectory import TrajectoryError
from .tracking_runs import PERIOD, TORQUE, PlainSensors, assembled_law, crane, oil, plant_for

START = np.array([0.0, 0.25, 0.25, 0.40])
SINES = ((0.10, 0.9), (0.03, 1.7), (0.012, 2.9))   # shares of REACH, rad/s
REACH = np.array([2.0, 1.0, 1.0, 1.2])             # rad, m
RUN_UP = 2.0                                        # s
JITTER, LOSS = 0.3, 0.02                            # of a period, of the points
STOP_ERROR = 0.02                                   # m or rad off its reference at which a controller stops (F20)
SEED = 3
NOW, NOMINAL, ZERO, AHEAD, LATE = 'now', 'nominal', 'zero', 'ahead', 'late'
STAMPS = {
    NOW: 'time of sending, of which the point is',
    NOMINAL: 'time of sending, point of the nominal time',
    ZERO: 'none: the time of the cycle that takes it',
    AHEAD: 'one period ahead',
    LATE: 'time of sending, a period late',
}
CONTENTS = ('x', 'x, xd', 'x, xd, xdd')


@dataclass(frozen=True)
class Case:
    """One run: rate [Hz] of the points, one of STAMPS, how many of x, xd, xdd a point has, seconds."""

    rate: float
    stamps: str = NOW
    rows: int = 3
    seconds: float = 60.0
    delay: float = 0.0      # s, of `ReferenceLimits`


def motion(t):
    """(3, dof) x, xd, xdd of a multi-sine that begins at rest; at START until time 0."""
    t = max(t, 0.0)
    if t < RUN_UP:      # time is run up smoothly
        s = t / RUN_UP
        warped, rate, bend = RUN_UP * s**3 * (1.0 - 0.5 * s), s * s * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s) / RUN_UP
    else:
        warped, rate, bend = t - 0.5 * RUN_UP, 1.0, 0.0
    x, v, a = 0.0, 0.0, 0.0
    for share, w in SINES:
        x += share * np.sin(w * warped)
        v += share * w * np.cos(w * warped)
        a -= share * w * w * np.sin(w * warped)
    return np.array([START + REACH * x, REACH * v * rate, REACH * (a * rate * rate + v * bend)])


def sent(case, rng):
    """[(s of arrival, stamp [s] or None, (rows, dof))] of the points that come through."""
    period, found = 1.0 / case.rate, []
    for k in range(round(case.seconds * case.rate)):
        nominal = k * period
        now = max(nominal + JITTER * period * rng.uniform(-1.0, 1.0), 0.0)
        if rng.random() < LOSS:
            continue
        of = {NOW: now, NOMINAL: nominal, ZERO: now, AHEAD: now + period, LATE: now}[case.stamps]
        stamp = {NOMINAL: now, ZERO: None}.get(case.stamps, of)
        found.append((now + (period if case.stamps == LATE else 0.0), stamp, motion(of)[:case.rows]))
    return found


@dataclass(frozen=True)
class Result:
    """Of one run: errors [m] of the cylinders against the motion streamed, rms and largest; what happened."""

    rms: float
    most: float
    tracking: float         # m, largest difference between machine and reference, rms
    jerk: float             # m/s^3, largest of the reference that the law is given
    refused: int
    stopped: float          # s at which it was off its reference too far, or the plant failed; inf: never
    refusal: str = ''


def run(case, reference_limits=None, sensors=None, trace=None):
    """`Result` of a case; trace: a list that gets (t, plant x, reference (3, dof)) of every cycle."""
    rng, sensors = np.random.default_rng(SEED), sensors or PlainSensors()
    plant, law = plant_for(START), assembled_law(TORQUE, crane(), oil())
    law.hold(START)
    law.reference.limits = replace(reference_limits or law.reference.limits, stream_delay=case.delay)
    points, k, refused, refusal, errors, off, jerk = sent(case, rng), 0, 0, '', [], [], 0.0
    last, stopped = None, np.inf
    for cycle in range(round(case.seconds / PERIOD)):
        t = cycle * PERIOD
        due = k
        while due < len(points) and points[due][0] <= t:
            due += 1
        if due > k:         # the newest of a cycle is taken
            _, stamp, rows = points[due - 1]
            k = due
            try:
                law.reference.stream(t if stamp is None else stamp, *rows, now=t)
            except TrajectoryError as error:
                refused, refusal = refused + 1, refusal or f'{t:.3f}: {error}'
        x, xd, pressures = sensors.read(plant)
        plant.step(law.update(t, x, xd, pressures), PERIOD)
        reference = np.array(law.reference.ahead(t + PERIOD))
        if last is not None:
            jerk = max(jerk, np.abs(reference[2] - last)[1:].max() / PERIOD)
        last = reference[2]
        if trace is not None:
            trace.append((t + PERIOD, plant.x.copy(), reference))
        errors.append(plant.x - motion(t + PERIOD - case.delay)[0])
        off.append(plant.x - reference[0])
        if plant.fault or np.abs(off[-1]).max() > STOP_ERROR:
            stopped = t
            break
    rows = law.cylinders['axis']
    errors, off = np.array(errors)[:, rows], np.array(off)[:, rows]
    return Result(float(np.sqrt(np.mean(errors**2, axis=0)).max()), float(np.abs(errors).max()),
                  float(np.sqrt(np.mean(off**2, axis=0)).max()), float(jerk), refused, stopped, refusal)


def table(rates, seconds):
    """Yield rows of Markdown: stamps, rate, then rms error and largest jerk for each of CONTENTS."""
    yield '| stamp | points per s | ' + ' | '.join(f'{contents} [mm], [m/s^3]' for contents in CONTENTS) + ' |'
    yield '|---|---|' + '---|' * len(CONTENTS)
    for stamps, text in STAMPS.items():
        for rate in rates:
            cells = []
            for rows in range(1, 4):
                found = run(Case(rate, stamps, rows, seconds))
                cells.append(f'{1e3 * found.rms:.2f}, {found.jerk:.0f}' if found.stopped == np.inf
                             else f'stop after {found.stopped:.1f} s')
            yield f'| {text} | {rate:g} | ' + ' | '.join(cells) + ' |'


def main(args=None):
    """Print the table; returns the exit code, 1 where a run stopped."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.tools.studies.stream_study',
                                     description=__doc__.split('\n')[0])
    parser.add_argument('--seconds', type=float, default=60.0, help='of each run (default: %(default)g)')
    parser.add_argument('--rates', type=float, nargs='+', default=[50.0, 100.0, 200.0, 500.0, 1000.0], help='Hz')
    options = parser.parse_args(args)
    stopped = False
    for row in table(options.rates, options.seconds):
        stopped |= 'stop after' in row
        print(row, flush=True)
    return int(stopped)


if __name__ == '__main__':
    sys.exit(main())
