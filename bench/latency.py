"""Message-to-command latency of the controller beside a bare rclpy echo node; `python -m bench.latency`.

Both are processes of their own, with the same executor, message types and QoS: a JointState with all joints
of the crane comes in, a JointState of the actuators and a Float64MultiArray go out. The echo node computes
nothing. They are asked in turns, one message at a time, and the time runs until the JointState is back in
this process: two hops over DDS.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

import psdyn_ros
from psdyn_ros.control.reference.trajectory import Waypoints
from psdyn_ros.model.locate import find_config
from psdyn_ros.nodes.messages import conversions
from psdyn_ros.nodes.runtime import executor
from psdyn_ros.nodes.runtime.qos import LATEST, RELIABLE, SENSOR_DATA
from psdyn_ros.tools.demo.demo_safety import WIDEST_LADDER, safety_text
from psdyn_ros.tools.demo.session import graph

URDF = Path(__file__).parents[1] / 'urdf' / 'hiab_xs031.urdf'
RATE = 500.0            # Hz of messages, to both nodes together
WARM_UP = 300           # rounds that do not count
TARGET = 1.3            # ratio of the medians
PATIENCE = 60.0         # s for a node to answer for the first time
LOST = 0.1              # s after which an answer counts as lost
SHORT = 0.005           # s, the same before the first one
NODES = ('controller', 'echo')


class Echo:
    """Answers every state with ready-made commands."""

    def __init__(self, node):
        machine = psdyn_ros.load(URDF)
        self._named = conversions.JointStateWriter(machine.actuators, ('effort',)).message
        self._ordered = conversions.LabelledArrayWriter(machine.actuators).message
        self._publish_named = node.create_publisher(JointState, '~/joint_commands', LATEST).publish
        self._publish_ordered = node.create_publisher(Float64MultiArray, '~/commands', LATEST).publish
        node.create_subscription(JointState, 'joint_states', self._answer, SENSOR_DATA)

    def _answer(self, msg):
        self._named.header.stamp = msg.header.stamp
        self._publish_named(self._named)
        self._publish_ordered(self._ordered)


class Asker:
    """Sends states to one node and times its answers.

    name   of the node
    state  JointStateWriter of the message
    """

    def __init__(self, node, name, state):
        self._node, self._state = node, state
        self._publish = node.create_publisher(JointState, f'/{name}/joint_states', RELIABLE).publish
        self._stamp = self._returned = None
        self.seconds, self.lost = [], 0
        node.create_subscription(JointState, f'/{name}/joint_commands', self._on_answer, LATEST)
        node.create_subscription(Float64MultiArray, f'/{name}/commands', lambda msg: None, LATEST)

    def ask(self, spin_once, patience):
        """Send a state and wait for its answer; seconds, or None when none came."""
        self._returned, self._stamp = None, self._node.get_clock().now().nanoseconds
        message = self._state.stamp(self._stamp)
        sent = time.perf_counter_ns()
        self._publish(message)
        deadline = time.monotonic() + patience
        while self._returned is None and time.monotonic() < deadline:
            spin_once(timeout_sec=0.02)
        return None if self._returned is None else (self._returned - sent) * 1e-9

    def _on_answer(self, msg):
        if conversions.stamp_to_ns(msg.header.stamp) == self._stamp:
            self._returned = time.perf_counter_ns()


def measure(rounds, folder):
    """Latencies in s, by name of the node, of so many rounds; and answers lost."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = psdyn_ros.load(URDF)
    names, position, velocity, _ = machine.joint_state(machine.initial_position, np.zeros(machine.dof))
    state = conversions.JointStateWriter(names)
    state.position[:], state.velocity[:] = position, velocity
    parameters, safety = folder / 'controller.yaml', folder / 'safety.yaml'
    safety.write_text(safety_text(machine, find_config(f'{machine.name}_safety.yaml'), ladder=WIDEST_LADDER))
    parameters.write_text(json.dumps({'controller': {'ros__parameters': {
        'robot_description': URDF.read_text(), 'rate': RATE / len(NODES), 'safety': str(safety), 'autostart': True,
        'emergency_stop': 'none', 'overrun_share': 1.0}}}))
    with graph(folder) as (nodes, node, spin_once):
        nodes.start('controller', 'psdyn_ros.nodes.controller.node', '--ros-args', '--params-file', str(parameters),
                    '-r', 'joint_states:=/controller/joint_states')
        nodes.start('echo', 'bench.latency', '--echo', '--ros-args', '-r', 'joint_states:=/echo/joint_states')
        askers = [Asker(node, name, state) for name in NODES]
        enabling = _Enabling(node)
        _await_both(askers, nodes, spin_once, enabling)
        trajectories = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        _await(trajectories.get_subscription_count, nodes, spin_once)
        trajectories.publish(conversions.trajectory_to_msg(
            Waypoints(machine.actuators, [3600.0], [machine.initial_position])))
        deadline = time.monotonic()
        for k in range(WARM_UP + rounds):
            # each at a steady rate: a state that comes before half a period is over waits for that
            for asker in askers:
                seconds = asker.ask(spin_once, LOST)
                if seconds is None:
                    enabling.turn()
                    asker.lost += k >= WARM_UP
                elif k >= WARM_UP:
                    asker.seconds.append(seconds)
                deadline = max(deadline + 1.0 / RATE, time.monotonic())
                while (left := deadline - time.monotonic()) > 0.0:
                    spin_once(timeout_sec=left)
    return {name: np.array(asker.seconds) for name, asker in zip(NODES, askers)}, sum(asker.lost for asker in askers)


def _await_both(askers, nodes, spin_once, enabling):
    for asker in askers[::-1]:      # the controller last: its states must not stop coming
        def answered(asker=asker):
            enabling.turn()
            return asker.ask(spin_once, SHORT)
        _await(answered, nodes, spin_once)


class _Enabling:
    """Lets the controller hold its machine, whatever it was stopped by before."""

    def __init__(self, node):
        self._enable = node.create_client(SetBool, '/controller/enable')
        self._reset = node.create_client(Trigger, '/controller/reset')
        self._future = None

    def turn(self):
        """Ask again, if the last request was answered."""
        if not self._enable.service_is_ready() or (self._future is not None and not self._future.done()):
            return
        refused = self._future is not None and not self._future.result().success
        self._future = (self._reset.call_async(Trigger.Request()) if refused
                        else self._enable.call_async(SetBool.Request(data=True)))


def _await(condition, nodes, spin_once):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        spin_once(timeout_sec=SHORT)
        if nodes.ended() or time.monotonic() > deadline:
            raise RuntimeError(f'no answer; ended: {nodes.ended()}, see {nodes.log("controller").parent}')


def main(args=None):
    """Measure, print a table and write latency.json; 1 when the controller misses the target."""
    parser = argparse.ArgumentParser(prog='python -m bench.latency', description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=3000, help='messages to each node (default: %(default)s)')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results', help='folder of the JSON')
    options = parser.parse_args(args)
    latencies, lost = measure(options.rounds, options.out / 'latency_log')
    figures = {name: dict(zip(('p50', 'p90', 'p99', 'p99.9'), np.percentile(seconds, (50, 90, 99, 99.9)).tolist()))
               for name, seconds in latencies.items()}
    ratio = figures['controller']['p50'] / figures['echo']['p50']
    print(f'{"node":12}{"p50 [us]":>10}{"p90":>8}{"p99":>8}{"p99.9":>8}')
    for name, row in figures.items():
        print(f'{name:12}{1e6 * row["p50"]:10.0f}' + ''.join(f'{1e6 * row[p]:8.0f}' for p in ('p90', 'p99', 'p99.9')))
    print(f'ratio of the medians {ratio:.2f} (target: at most {TARGET}), lost answers {lost}')
    (options.out / 'latency.json').write_text(json.dumps(
        {'seconds': figures, 'ratio': ratio, 'target': TARGET, 'rounds': options.rounds, 'lost': lost},
        indent=1) + '\n')
    return int(ratio > TARGET)


if __name__ == '__main__':
    sys.exit(executor.run('echo', Echo) if '--echo' in sys.argv else main())
