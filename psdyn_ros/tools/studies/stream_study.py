"""Streamed points on the crane: how far the machine is off the motion that somebody streams, by rate, stamps, contents.

`python3 -m psdyn_ros.tools.studies.stream_study` prints the table of docs/how-to/streaming.md; it takes some minutes.
"""

import argparse
import sys
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from ...control import ClosedLoop, State, TrajectoryError, assemble
from ...control.closed_loop import STAMPS as CLOCK
from ...model.locate import find_config, find_machine
from ...model.units import SECOND
from .second_plant import SecondPlant, Sensors
from .tracking_runs import CRANE, PERIOD, TORQUE, closed_loop, configured, crane, plant_for

START = np.array([0.0, 0.25, 0.25, 0.40])
SINES = ((0.10, 0.9), (0.03, 1.7), (0.012, 2.9))   # shares of REACH, rad/s
REACH = np.array([2.0, 1.0, 1.0, 1.2])             # rad, m
RUN_UP = 2.0                                        # s
JITTER, LOSS = 0.3, 0.02                            # of a period, of the points
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
    delay: float = 0.0      # s, `ControllerConfig.stream_delay`
    timeout: float = 0.1    # s, `timeouts: stream`
    second: bool = False    # whether on the second plant


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
    """Of one run: largest rms error [m] of a cylinder against the motion streamed; what happened."""

    rms: float
    jerk: float             # m/s^3, largest of the reference that the law is given
    refused: int
    stopped: float          # s at which the controller stopped; inf: never
    said: str               # why, or why it refused the first point


def loop_of(case):
    """`ClosedLoop` of a case, which holds at START."""
    config = configured(TORQUE, stream_delay=case.delay)
    declared = config.declaration
    core = assemble(replace(config, declaration=replace(declared, timeouts=replace(declared.timeouts,
                                                                                   stream=case.timeout))))
    if case.second:
        return ClosedLoop(core, SecondPlant(
            find_machine(CRANE), find_config(f'{CRANE}_hydraulics.yaml'), sensors=Sensors(),
            position=dict(zip(crane().coordinates, START)))).start()
    return closed_loop(core, plant_for(START), late=0)


def run(case):
    """`Result` of a case."""
    loop, points, refusals = loop_of(case), deque(sent(case, np.random.default_rng(SEED))), []
    begin, first = loop.time, loop.slot
    for _ in range(round(case.seconds / PERIOD)):
        newest = None
        while points and begin + points[0][0] <= loop.time + PERIOD:
            newest = points.popleft()
        if newest:
            _, stamp, rows = newest
            try:
                loop.core.take_point(0 if stamp is None else CLOCK + round((begin + stamp) * SECOND), loop.now, *rows)
            except TrajectoryError as error:
                refusals.append(f'{loop.time - begin:.3f}: {error}')
        loop.cycle()
        if loop.output.state >= State.STOPPING:
            break
    record, rows = loop.recording(), loop.core.law.cylinders['axis']
    wanted = [motion(t - begin - case.delay)[0] for t in record.time[first:]]
    errors = (record.x[first:] - wanted)[:, rows]
    jerk = np.abs(np.diff(record.desired[first:, 2, rows], axis=0)).max() / PERIOD
    stopped = loop.time - begin if loop.output.state >= State.STOPPING else np.inf
    return Result(float(np.sqrt(np.mean(errors**2, axis=0)).max()), float(jerk), len(refusals), stopped,
                  '; '.join([*loop.core.states.reasons.values(), *refusals[:1]]))


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
                             else f'stop after {found.stopped:.1f} s: {found.said}')
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
