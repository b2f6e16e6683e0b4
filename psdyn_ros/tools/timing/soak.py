"""The crane on its valves, simulated and controlled by two processes for hours: does anything grow, slip or drift?

    python3 -m psdyn_ros.tools.timing.soak --hours 8 --json soak.json

The demonstration is followed again and again. Faults of the controller are counted, reset, and the machine is enabled
again. Reported are the memory of both processes and how fast it grows, open files, missed slots, rejected messages, and
the largest tracking error in the first and in the last motion. 1 when memory grows faster than 1 MiB/h after the first
tenth of the time, when files stay open, when a fault came, or when the last motion is worse than the first by half.
"""

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from ...api.load import load
from ...control.safety.fault_table import State
from ...model.errors import PsdynError
from ...model.locate import find_config, find_machine
from ...nodes import EXECUTABLES
from ...nodes.controller.cycle_statistics import STATISTICS
from ...nodes.messages.conversions import trajectory_to_msg
from ...nodes.runtime.executor import UNUSABLE
from ...nodes.runtime.realtime import LEVELS, resident_memory
from ..demo.demo_safety import safety_text
from ..demo.demonstration import demonstration
from ..demo.session import Waiting, graph, terminable
from .conditions import Meanwhile, conditions

MACHINE = 'hiab_xs031'
INTERRUPTED = 130
NODES = 'simulator', 'controller'
START_UP = 300.0        # s
GROWTH = 1.0            # MiB/h that memory may grow
SETTLED = 0.1           # of the time, after which growth counts
WORSE = 1.5             # times the tracking error of the first motion
FILES = 4               # more open files than after settling
SAMPLES = 400           # at most, of memory and files
LEAST = 0.25            # s between two of them
TTL = 0.1               # s, of commands, and
OVERRUNS = 0.2          # of the cycles of a second: a desktop is busy at times
ERROR = 'tracking error [share of its tolerance]'


class Sample(NamedTuple):
    """Of one process."""

    seconds: float
    memory: float
    """MiB in RAM."""
    files: int


class Soak:
    """What goes on over so many seconds.

    processes  {name of a node: number of its process}
    wait       `Waiting`
    motion     s, of each
    """

    def __init__(self, node, processes, wait, seconds, motion):
        self._node, self._processes, self._wait, self._seconds = node, processes, wait, seconds
        manipulator = load(MACHINE)
        self._reference = trajectory_to_msg(demonstration(manipulator, motion))
        self.samples = {name: [] for name in NODES}
        self.motions = []           # largest tracking error of each that was completed, share of its tolerance
        self.faults = []            # texts
        self.statistics, self.rejected = {}, 0
        self._state, self._error, self._reason = None, 0.0, ''
        self._publisher = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        node.create_subscription(Float64MultiArray, '/controller/state', self._keep_state, 1, raw=True)
        node.create_subscription(Float64MultiArray, '/controller/statistics', self._keep_statistics, 1)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._keep_diagnostics, 10)

    def run(self):
        """Keep the machine in motion until the time is over."""
        wait = self._wait
        wait.until(lambda: self._state is not None, START_UP, 'starting both nodes')
        began = time.monotonic()
        period = max(LEAST, self._seconds / SAMPLES)
        due, state = 0.0, None
        while (elapsed := time.monotonic() - began) < self._seconds:
            if elapsed >= due:
                self._sample(elapsed)
                due = elapsed + period
            before, state = state, self.state
            if state is State.SAFE:
                if before is not State.SAFE:
                    self.faults.append(f'{elapsed:.0f} s: {self._reason}')
                wait.called(self._node, Trigger, '/controller/reset', Trigger.Request(), 'reset')
            elif state is State.STANDBY:
                wait.called(self._node, SetBool, '/controller/enable', SetBool.Request(data=True), 'enable')
            elif state is State.HOLD:
                if before in (State.RUN, State.DEGRADED):
                    self.motions.append(self._error)
                self._error = 0.0
                self._publisher.publish(self._reference)
            wait.turn('in motion')

    @property
    def state(self):
        """The sub-state that the controller was last in."""
        return State(int(deserialize_message(self._state, Float64MultiArray).data[0]))

    def _keep_state(self, raw):
        self._state = raw

    def _keep_statistics(self, msg):
        self.statistics = dict(zip(STATISTICS, msg.data))

    def _keep_diagnostics(self, msg):
        for status in msg.status:
            if status.name == 'controller: control':
                values = {pair.key: pair.value for pair in status.values}
                self._reason = status.message
                self._error = max(self._error, float(values.get(ERROR, 0.0)))
                self.rejected = int(values.get('rejected messages', 0))

    def _sample(self, elapsed):
        for name, process in self._processes.items():
            self.samples[name].append(Sample(elapsed, resident_memory(process) / 2**20, _files(process)))


def _files(process):
    try:
        return len(os.listdir(f'/proc/{process}/fd'))
    except OSError:
        return 0


def growth(samples, seconds):
    """(MiB/h by least squares after settling, open files more at the end than after settling)."""
    settled = [sample for sample in samples if sample.seconds >= SETTLED * seconds]
    if len(settled) < 3:
        return math.nan, 0
    slope = np.polyfit([sample.seconds / 3600.0 for sample in settled], [sample.memory for sample in settled], 1)[0]
    return float(slope), settled[-1].files - settled[0].files


def judge(soak, seconds):
    """(rows of text, why it failed or '')."""
    rows, failures = [], []
    for name, samples in soak.samples.items():
        slope, files = growth(samples, seconds)
        memory = [sample.memory for sample in samples] or [0.0]
        rows.append((f'memory of the {name}', f'{memory[0]:.1f} to {memory[-1]:.1f} MiB, {slope:+.2f} MiB/h'))
        rows.append((f'open files of the {name}', f'{files:+d}'))
        # a short run cannot tell a slope: what a process asks for at the beginning looks like one
        if seconds >= 3600.0 and not slope <= GROWTH:
            failures.append(f'the memory of the {name} grows by {slope:.2f} MiB/h')
        if files > FILES:
            failures.append(f'the {name} opened {files} files')
    found = soak.statistics
    slots = found.get('cycles', 0.0) + found.get('missed', 0.0)
    rows += [('missed slots', f'{found.get("missed", 0.0):.0f} of {slots:.0f}, '
              f'{found.get("longest_missed", 0.0):.0f} in a row at most'),
             ('execution p50, p99, p99.9', ', '.join(f'{1e6 * found.get(key, 0.0):.0f}' for key in (
                 'p50', 'p99', 'p99.9')) + ' µs'),
             ('rejected messages', f'{soak.rejected}'), ('motions', f'{len(soak.motions)}')]
    if soak.motions:
        first, last = soak.motions[0], soak.motions[-1]
        rows.append(('largest tracking error', f'{first:.3f} of its tolerance in the first motion, {last:.3f} in the '
                     'last one'))
        if last > WORSE * first:
            failures.append(f'the tracking error went from {first:.3f} to {last:.3f} of its tolerance')
    else:
        failures.append('no motion was completed')
    rows += [('fault', text) for text in soak.faults]
    failures += [f'{len(soak.faults)} faults'] * bool(soak.faults)
    return rows, '; '.join(failures)


def run(seconds, motion=10.0, rate=500.0, realtime='off', json_path=None):
    """Run for so long, print what came of it; 1 where it failed."""
    folder = Path(tempfile.mkdtemp(prefix='psdyn_soak_'))
    meanwhile, hydraulics = Meanwhile(), find_config(f'{MACHINE}_hydraulics.yaml')
    safety = folder / 'safety.yaml'
    safety.write_text(safety_text(load(MACHINE), find_config(f'{MACHINE}_safety.yaml')))
    shared = {'robot_description': find_machine(MACHINE), 'hydraulics': hydraulics, 'rate': rate, 'report_rate': 5.0}
    parameters = folder / 'parameters.yaml'
    parameters.write_text(json.dumps({
        'simulator': {'ros__parameters': {**shared, 'ttl': TTL, 'sensors': find_config(f'{MACHINE}_sensors.yaml')}},
        'controller': {'ros__parameters': {
            **shared, 'law': 'valve_computed_torque', 'safety': str(safety), 'autostart': True,
            'emergency_stop': 'none', 'overrun_share': OVERRUNS, 'realtime': realtime}}}))
    with terminable(), graph(folder) as (nodes, node, spin_once):
        processes = {name: nodes.start(
            name, EXECUTABLES[name], '--ros-args', '--params-file', str(parameters),
            '-r', '/simulator/joint_commands:=/controller/joint_commands').pid for name in NODES}
        soak = Soak(node, processes, Waiting(nodes, spin_once), seconds, motion)
        soak.run()
        facts = conditions() | meanwhile.report()
        codes = nodes.stop()
    rows, failure = judge(soak, seconds)
    if any(codes.values()):
        failure = '; '.join(filter(None, [failure, f'exit codes {codes}']))
    table = [*facts.items(), *rows]
    width = max(len(what) for what, _ in table)
    print('\n'.join(f'{what:<{width}}  {text}' for what, text in table))
    print(f'FAIL: {failure}; what the nodes said is in {folder}' if failure else 'PASS')
    if not failure:
        shutil.rmtree(folder)
    if json_path:
        Path(json_path).write_text(json.dumps({
            'seconds': seconds, 'conditions': facts, 'result': dict(rows), 'failure': failure,
            'statistics': soak.statistics, 'motions': soak.motions, 'faults': soak.faults,
            'samples': {name: [list(sample) for sample in samples] for name, samples in soak.samples.items()}},
            indent=1) + '\n')
    return int(bool(failure))


def main(args=None):
    """Read the command line and run; the exit code."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.tools.timing.soak', description=__doc__.splitlines()[0])
    parser.add_argument('--hours', type=float, default=8.0)
    parser.add_argument('--motion', type=float, default=10.0, metavar='S', help='length of each motion (10)')
    parser.add_argument('--rate', type=float, default=500.0, metavar='HZ', help='of both nodes (500)')
    parser.add_argument('--realtime', choices=LEVELS, default='off', help='of the controller (off)')
    parser.add_argument('--json', metavar='FILE', help='everything, with memory over time')
    options = parser.parse_args(args)
    if not (options.hours > 0.0 and math.isfinite(options.hours)):
        parser.error(f'--hours {options.hours:g}: expected a positive number')
    try:
        return run(3600.0 * options.hours, options.motion, options.rate, options.realtime, options.json)
    except PsdynError as error:
        print(f'soak: {error}', file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == '__main__':
    sys.exit(main())
