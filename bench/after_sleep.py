"""What a call of the control law and of the output gate costs in a loop that sleeps; `python -m bench.after_sleep`.

Beside them, and in turns with them, one of Python that does nothing and one of compiled code that does nothing, each
between the same two looks at the clock: what lies below those is not in the hands of whoever writes the law. The loop
sleeps, then rehearses on another core as the controller does, and makes one timed call at its deadline.
"""

import argparse
import functools
import sys
import time

import numpy as np

from psdyn_ros.control.reference.trajectory import Waypoints
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.nodes.runtime import realtime
from psdyn_ros.tools.fault_campaign.bench import Bench, make_machine

PERIOD = 1_000_000      # ns of the loop
REHEARSAL = 350_000     # ns before a deadline, when it wakes up
LAST = 40_000           # ns before a deadline, within which no rehearsal begins
STEP = 2_000_000        # ns from one state to the next
PRESSURE = 1e7          # Pa in all chambers
BACK_TO_BACK = 'back to back'


@entry
def nothing(places):
    """Return 0; compiled as the law is, with the one argument that it mainly has."""
    return 0


class Core:
    """A core of the crane on its valves that holds still on an endless reference, cycle by cycle."""

    def __init__(self):
        self.core = core = Bench(make_machine('valve', 'hiab_xs031'), seed=1).core
        m = core.manipulator
        self._x, self._still = m.initial_position, np.zeros(m.dof)
        self._pressures = np.full((len(core.law.cylinders), 2), PRESSURE)
        self._now = STEP
        for _ in range(100):
            self.cycle()
        core.activate(self._now, self._now)
        self.cycle()
        core.enable(self._now)
        candidate = core.consider(Waypoints(m.coordinates, [1e6], [self._x]))
        while not candidate.advance(1.0):
            pass
        core.accept(candidate, self._now)
        for _ in range(100):
            self.cycle()

    def cycle(self):
        """Take a state, and answer it."""
        core, now = self.core, self._now + STEP
        self._now = now
        core.take_emergency_stop(False, now)
        core.take_pressures(now, now, now, self._pressures, 2.0 * PRESSURE)
        core.take_state(now, now, now, self._x.copy(), self._still.copy())
        core.cycle(now, now)

    def law_call(self):
        """A call of the compiled law, as the last cycle made it."""
        law, calls = self.core.law, []
        kernel, law.kernel = law.kernel, lambda *given: calls.append(given) or 0
        self.cycle()
        law.kernel = kernel
        return functools.partial(kernel, *calls[0])


def measure(cycles):
    """{what: {'back to back' or 'after a sleep': (cycles,) ns}}."""
    ours, other = Core(), Core()
    gate, command = ours.core.gate, np.zeros(len(ours.core.gate.actuators))
    calls = {'Python that does nothing': lambda: None,
             'compiled code that does nothing': functools.partial(nothing, np.zeros((1, 2), dtype=np.int64)),
             'law, compiled': ours.law_call(), 'output gate': lambda: gate.pass_(command, 1, 1, 0.002)}
    for call in calls.values():
        call()
    print('\n'.join(map(str, realtime.achieve(realtime.TRY))))
    found = {what: {BACK_TO_BACK: _back_to_back(call, cycles), 'after a sleep': []} for what, call in calls.items()}
    clock, deadline = time.monotonic_ns, time.monotonic_ns() + PERIOD
    for _ in range(cycles):
        for what, call in calls.items():
            deadline = max(deadline, clock()) + PERIOD
            time.sleep((deadline - REHEARSAL - clock()) * 1e-9)
            while deadline - clock() > LAST:
                other.cycle()
            while clock() < deadline:
                pass
            found[what]['after a sleep'].append(_timed(call))
    return found


def _back_to_back(call, cycles):
    return [_timed(call) for _ in range(cycles)]


def _timed(call):
    began = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - began


def table(found):
    """Markdown."""
    lines = ['| call | when | p50 [µs] | p90 | p99 | p99.9 |', f'|{"---|" * 6}']
    for what, times in found.items():
        for when, ns in times.items():
            cells = ' | '.join(f'{value / 1e3:.1f}' for value in np.percentile(ns, (50, 90, 99, 99.9)))
            lines.append(f'| {what} | {when} | {cells} |')
    return '\n'.join(lines)


def main(arguments=None):
    """Measure and print; returns 0."""
    parser = argparse.ArgumentParser(prog='python -m bench.after_sleep', description=__doc__.splitlines()[0])
    parser.add_argument('--cycles', type=int, default=5000, help='of each call (5000)')
    print(table(measure(parser.parse_args(arguments).cycles)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
