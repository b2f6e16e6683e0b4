"""`psdyn demo`: a machine simulated and controlled by two real ROS processes, and what came of it.

The same reference runs twice, under computed torque and under the baseline, each time with new processes.
Everything that was said is recorded; the tables and the report are made from the recordings.
"""

import argparse
import os
import platform
import shutil
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from tqdm import tqdm
from trajectory_msgs.msg import JointTrajectory

from ..api.load import load
from ..control.demonstration import DURATION, demonstration
from ..kernels.compiler import compiled
from ..model.errors import PsdynError
from ..model.locate import find_machine
from ..model.xml_reader import read_text
from ..simulation.plant import RUNNING
from ..validation import report
from ..validation.bags import TOPICS, read_bag
from ..validation.tracking import track, units
from .conversions import stamp_to_ns, trajectory_to_msg
from .executor import INTERNAL, SUCCESS, UNUSABLE, make_executor
from .processes import NodeProcesses, environment, exported, free_domain
from .recorder import Recorder

FAILED, INTERRUPTED = 1, 130
JUDGED, BASELINE = 'computed_torque', 'pd_gravity'
NAMES = {JUDGED: 'computed torque', BASELINE: 'PD + constant gravity'}
RATE = 500.0                # Hz
BANDWIDTH = 15.0            # rad/s, of computed torque
BASELINE_BANDWIDTH = 6.0    # rad/s: beyond it diag(M) and a sampled state make the baseline chatter
START_UP = 120.0            # s for the nodes to come up; a first run compiles for half a minute
REACTION = 5.0              # s for a trajectory to be taken up
STATE_TIMEOUT = 0.2         # s; a busy computer may stall a process for a tenth of a second
REST = 0.3                  # s that are recorded after the motion
TURN = 0.05                 # s between two looks at how far the nodes are
RECORDED = {TOPICS.states: JointState, TOPICS.commands: JointState, TOPICS.reference: JointTrajectory,
            TOPICS.statistics: Float64MultiArray}


class DemoError(PsdynError):
    """The nodes did not do what they were started for."""


def run(machine='hiab_xs031', output_dir='demo_output', *, duration=DURATION, bandwidth=BANDWIDTH,
        baseline_bandwidth=BASELINE_BANDWIDTH, rate=RATE):
    """Run the demonstration; returns the exit code of `psdyn demo`.

    machine             URDF file, or the name of a machine of the package
    output_dir          folder for the bags, the figures and report.html
    duration            s of motion
    bandwidth           rad/s, of computed torque
    baseline_bandwidth  rad/s, of PD with constant gravity
    rate                Hz, of the plant and of the controller
    """
    try:
        with _terminable():
            return _run(find_machine(machine), Path(output_dir), duration,
                        {JUDGED: bandwidth, BASELINE: baseline_bandwidth}, rate)
    except KeyboardInterrupt:
        print('\nstopped; both nodes have ended', file=sys.stderr)
        return INTERRUPTED
    except PsdynError as error:
        print(f'psdyn demo: {error}', file=sys.stderr)
        return UNUSABLE
    except Exception:
        traceback.print_exc()
        return INTERNAL


def _run(machine, output, duration, bandwidths, rate):
    if not 0.5 <= duration <= 600.0:
        raise DemoError(f'duration {duration:g} s: expected 0.5 to 600')
    urdf = read_text(machine)
    manipulator = load(urdf)
    waypoints = demonstration(manipulator, duration)
    output.mkdir(parents=True, exist_ok=True)
    print(f'{manipulator.name}: {manipulator.dof} actuators, {manipulator.total_mass:.2f} kg; '
          f'{duration:g} s of motion under each of {", ".join(NAMES.values())}', flush=True)
    runs = []
    for law, bandwidth in bandwidths.items():
        bag = output / law
        _record(bag, law, urdf, waypoints, rate, bandwidth)
        recording = read_bag(bag)
        runs.append(report.Run(NAMES[law], recording, track(recording, units(manipulator))))
    summary = report.Summary(manipulator.name, *runs, duration=_motion_time(waypoints),
                             travel=np.ptp(waypoints.positions, axis=0),
                             facts=_facts(machine, manipulator, duration, bandwidths, rate, output))
    path = report.write_report(output, summary, manipulator, urdf)
    print(f'\n{report.as_text(report.tracking_table(summary))}\n\n{report.as_text(report.timing_table(summary))}\n')
    print(f'{summary.verdict}\nreport: {path}')
    return FAILED if summary.reason else SUCCESS


def _record(bag, law, urdf, waypoints, rate, bandwidth):
    """Let both nodes run the waypoints under one law, and write what they say into a bag."""
    logs = bag.parent / 'log' / law
    logs.mkdir(parents=True, exist_ok=True)
    parameters = logs / 'parameters.yaml'
    common = {'robot_description': urdf, 'rate': float(rate)}
    parameters.write_text(yaml.safe_dump({
        'simulator': {'ros__parameters': {**common, 'report_rate': 5.0}},
        'controller': {'ros__parameters': {**common, 'law': law, 'bandwidth': float(bandwidth),
                                           'state_timeout': STATE_TIMEOUT}}}))
    domain = free_domain()
    with exported(environment(domain, logs)), NodeProcesses(logs) as nodes, _node(domain) as (node, spin_once):
        recorder, plant = Recorder(node, RECORDED), _PlantState(node)
        reference = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        for name in ('simulator', 'controller'):
            nodes.start(name, f'psdyn_ros.nodes.{name}', '--ros-args', '--params-file', str(parameters),
                        '-r', '/simulator/joint_commands:=/controller/joint_commands')
        wait = _Waiting(nodes, spin_once)
        wait.until(lambda: recorder.heard(TOPICS.states, TOPICS.commands, TOPICS.reference)
                   and reference.get_subscription_count() and plant.summary == RUNNING,
                   START_UP, f'{NAMES[law]}: starting both nodes')
        recorder.clear()
        reference.publish(trajectory_to_msg(waypoints))
        wait.until(lambda: _moves(recorder.last(TOPICS.reference)), REACTION + waypoints.times[1],
                   f'{NAMES[law]}: waiting for the motion to begin')
        began = stamp_to_ns(recorder.last(TOPICS.reference).header.stamp)
        wait.through(lambda: (stamp_to_ns(recorder.last(TOPICS.reference).header.stamp) - began) * 1e-9,
                     _motion_time(waypoints) + REST, NAMES[law])
        wait.until(lambda: recorder.heard(TOPICS.statistics), REACTION, f'{NAMES[law]}: waiting for the statistics')
        codes = nodes.stop()
        if any(codes.values()):
            raise DemoError(f'exit codes of the nodes: {codes}; what they said is in {logs}')
    if bag.exists():
        shutil.rmtree(bag)
    recorder.write(bag)


class _PlantState:
    """What the simulator last said of its plant."""

    def __init__(self, node):
        self.summary = None
        node.create_subscription(DiagnosticArray, '/diagnostics', self._keep, 10)

    def _keep(self, msg):
        for status in msg.status:
            if status.name == 'simulator: plant':
                self.summary = status.message


class _Waiting:
    """Serves our own node while the others work, and notices when one of them ends."""

    def __init__(self, nodes, spin_once):
        self._nodes, self._spin_once = nodes, spin_once

    def until(self, condition, seconds, what):
        """Wait until the condition holds; DemoError when it does not within so many seconds."""
        print(what, flush=True)
        deadline = time.monotonic() + seconds
        while not condition():
            self._turn(what)
            if time.monotonic() > deadline:
                raise DemoError(f'{what}: nothing within {seconds:g} s{self._last_words()}')

    def through(self, elapsed, seconds, what):
        """Wait until elapsed() has reached so many seconds of the machine's time, and show that they go by."""
        deadline = time.monotonic() + seconds + REACTION
        with tqdm(total=seconds, desc=what, unit='s', disable=None, leave=False,
                  bar_format='{desc}: {bar} {n:.1f} of {total:.1f} s') as bar:
            while (now := elapsed()) < seconds:
                bar.update(now - bar.n)
                self._turn(what)
                if time.monotonic() > deadline:
                    break       # the report says how far the recording goes

    def _turn(self, what):
        deadline = time.monotonic() + TURN
        while (left := deadline - time.monotonic()) > 0.0:
            self._spin_once(timeout_sec=left)
        ended = self._nodes.ended()
        if ended:
            raise DemoError(f'{what}: {ended[0]} ended by itself{self._last_words(*ended)}')

    def _last_words(self, *names):
        lines = []
        for name in names or ('simulator', 'controller'):
            tail = self._nodes.log(name).read_text(errors='replace').splitlines()[-5:]
            lines += [f'  {name}: {line}' for line in tail]
        return '\n' + '\n'.join(lines) if lines else ''


@contextmanager
def _node(domain):
    """(node, spin_once) of this process on a ROS domain, without touching its signal handlers."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node('demo', context=context)
        executor = make_executor(context)
        executor.add_node(node)
        yield node, executor.spin_once
        executor.shutdown()
        node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)


@contextmanager
def _terminable():
    """SIGTERM and a closed terminal end the demonstration as Ctrl-C does, so that no node is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _moves(reference):
    return reference is not None and any(reference.points[0].velocities)


def _motion_time(waypoints):
    """s from the first motion of any joint to the last waypoint."""
    first = np.flatnonzero(np.diff(waypoints.positions, axis=0).any(axis=1))[0]
    return float(waypoints.times[-1] - waypoints.times[first])


def _facts(machine, manipulator, duration, bandwidths, rate, output):
    """What the report says about the conditions."""
    return {
        'machine': f'{machine}, {manipulator.dof} actuators, {manipulator.total_mass:.2f} kg',
        'reference': f'{duration:g} s, every actuator out and back, from rest to rest on quintics',
        'gains': 'Kp = w^2, Kd = 2 w with ' + ', '.join(f'w = {w:g} rad/s for {NAMES[law]}'
                                                        for law, w in bandwidths.items()),
        'rate': f'{rate:g} Hz; the controller computes on each state message (trigger: state)',
        'processes': 'simulator and controller, each a process of its own, over DDS; model and plant are the same',
        'computer': f'{os.cpu_count()} cores, {platform.system()} {platform.release()}, '
                    f'Python {platform.python_version()}, NumPy {np.__version__}, '
                    f'{"compiled with Numba" if compiled else "without Numba"}',
        'recordings': ', '.join(str(output / law) for law in bandwidths) + ' (MCAP)',
        'begun': time.strftime('%Y-%m-%d %H:%M:%S %z'),
    }


def main(args=None):
    """Run the demonstration from the command line."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.nodes.demo', description=run.__doc__.splitlines()[0])
    parser.add_argument('--machine', default='hiab_xs031',
                        help='URDF file, or the name of a machine of the package (default: %(default)s)')
    parser.add_argument('--output', default='demo_output', help='folder of the results (default: %(default)s)')
    parser.add_argument('--duration', type=float, default=DURATION, help='s of motion (default: %(default)s)')
    parser.add_argument('--bandwidth', type=float, default=BANDWIDTH,
                        help='rad/s of computed torque (default: %(default)s)')
    parser.add_argument('--baseline-bandwidth', type=float, default=BASELINE_BANDWIDTH,
                        help='rad/s of PD with constant gravity (default: %(default)s)')
    parser.add_argument('--rate', type=float, default=RATE, help='Hz (default: %(default)s)')
    options = parser.parse_args(args)
    return run(options.machine, options.output, duration=options.duration, bandwidth=options.bandwidth,
               baseline_bandwidth=options.baseline_bandwidth, rate=options.rate)


if __name__ == '__main__':
    sys.exit(main())
