"""A node of the test among nodes that run as processes of their own; everything waits by polling with a deadline."""

import os
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import psdyn_ros
from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.units import SECOND
from psdyn_ros.nodes import EXECUTABLES
from psdyn_ros.nodes.messages.conversions import stamp_to_ns
from psdyn_ros.tools.demo.demo_safety import WIDEST_TIMEOUTS, safety_text
from psdyn_ros.tools.demo.machine_run import PAUSE
from psdyn_ros.tools.demo.processes import NodeProcesses, exported
from psdyn_ros.tools.demo.session import own_node

from ..machines import URDF
from ..paths import TESTS

CATCH_UP = 0.05         # s, parameter max_catch_up of the simulator
START_UP = 240.0        # s; a first run compiles
TURN = 0.01             # s that the test waits for a message at a time
SIMULATED = '-p', 'use_sim_time:=true', '-r', '/clock:=clock'       # arguments of a node on the clock of its namespace
# of a simulator that makes this clock; slowly, so that a stall of the computer is short on it, and none is made up for
SLOW_CLOCK = ('-p', 'publish_clock:=true', '-r', '/clock:=clock', '-p', 'real_time_factor:=0.2', '-p',
              'max_catch_up:=0.0')
STOPPED = State.STOPPING, State.SAFE
FOUND = 0.1             # s after which a service that is ready knows its client, too
ANSWER = 5.0            # s after which a service is asked again, as tools of an operator do


def trajectory(joints, positions, seconds=1):
    """A `JointTrajectory` of one point."""
    point = JointTrajectoryPoint(positions=list(map(float, positions)))
    point.time_from_start.sec = seconds
    return JointTrajectory(joint_names=list(joints), points=[point])


def away(state, joints, positions):
    """Largest distance of these joints in a `JointState` from positions."""
    now = dict(zip(state.name, state.position))
    return max(abs(position - now[name]) for name, position in zip(joints, positions))


class Graph:
    """Publishes, subscribes, starts nodes in a namespace, and waits for what they say."""

    def __init__(self, node, spin_once, processes, namespace, folder):
        self.node, self.processes, self.namespace, self.folder = node, processes, namespace, Path(folder)
        self._spin_once = spin_once
        self._clients = {}      # service -> client; an answer to one that was just made may be lost
        self.reports = {}       # status of the diagnostics -> the last one
        self.stops = self.provoked = 0      # of the controller: counted, and announced by `provoke`
        self._sub_state = None
        self.listen(DiagnosticArray, 'diagnostics', self._keep_report)

    def start(self, name, *arguments, module=None):
        """Run the executable `module` of the package, else that of this name, in the namespace, its diagnostics too."""
        return self._run(name, EXECUTABLES[module or name], *arguments)

    def _run(self, name, module, *arguments):
        return self.processes.start(
            name, module, '--ros-args', '-r', f'__ns:={self.namespace}',
            '-r', f'/diagnostics:={self.namespace}/diagnostics', '-p', 'report_rate:=20.0', *arguments)

    def simulate(self, *arguments):
        """Run a simulator on a slow clock that the controller of this namespace commands; return the list of states."""
        self.start('simulator', *SLOW_CLOCK, '-r', f'~/joint_commands:={self.namespace}/controller/joint_commands',
                   *arguments)
        return self.listen(JointState, 'joint_states')

    def start_controller(self, *arguments, machine='hiab_xs031', change=None, module=EXECUTABLES['controller']):
        """Run the controller of a machine of the package in simulated time; it becomes active by itself.

        change  function that changes the safety declaration, a dictionary
        module  what to run in the place of the controller, also of these tests
        """
        urdf, safety = URDF / f'{machine}.urdf', self.declare_safety(machine, change)
        return self.start_simulated('-p', f'robot_description:={urdf}', '-p', f'safety:={safety}',
                                    '-p', 'autostart:=true', '-p', 'emergency_stop:=none', *arguments, module=module)

    def start_simulated(self, *arguments, module=EXECUTABLES['controller']):
        """Run a controller on the clock of its namespace, which a stall of the computer does not stop."""
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get('PYTHONPATH')]))
        self.listen(Float64MultiArray, 'controller/state', self._count_stops)
        with exported({'PYTHONPATH': path}):
            return self._run('controller', module, *SIMULATED, '-p', 'overrun_share:=1.0', *arguments)

    def declare_safety(self, machine='hiab_xs031', change=None):
        """Path of a safety declaration for a busy computer.

        No lock-step: while the controller stalls the clock of the simulator, or of a test, goes on, and so do states,
        so that a stall uses up the shipped timeouts. They are as wide as a machine may declare; `stops` counts what
        they do not cover. The clock may stand still, as it does while the simulator stalls.
        """
        urdf, safety = URDF / f'{machine}.urdf', self.folder / f'{machine}_safety.yaml'
        declared = find_config(f'{machine}_safety.yaml')
        timeouts = {**WIDEST_TIMEOUTS, 'simulated_pause': PAUSE}
        declaration = yaml.safe_load(safety_text(psdyn_ros.load(urdf), declared, timeouts=timeouts))
        declaration['probation'] = 0.1
        if change is not None:
            change(declaration)
        safety.write_text(yaml.safe_dump(declaration))
        return safety

    def _count_stops(self, message):
        before, self._sub_state = self._sub_state, State(int(message.data[0]))
        self.stops += self._sub_state in STOPPED and before not in (None, State.STANDBY, *STOPPED)

    def provoke(self):
        """Announce a stop that the test is about to cause; at the end no other stops may have been counted."""
        self.provoked += 1

    def hold(self):
        """Let the controller hold its machine, also after a stop."""
        def held():
            if self.call(SetBool, 'controller/enable', SetBool.Request(data=True)).success:
                return True
            self.call(Trigger, 'controller/reset', Trigger.Request())
            return False

        self.until(held, START_UP)
        self.until(lambda: self._sub_state not in (None, State.STANDBY), START_UP)

    def stop(self, *names):
        """End all processes in this order, else the last one first; return their exit codes by name.

        They are served meanwhile, as they may need to come to rest.
        """
        stops = self.stops
        for name in names or reversed(self.processes.names()):
            self.processes.signal(name)
        self.until(lambda: len(self.processes.ended()) == len(self.processes.names()), 20.0)
        self.stops = stops      # a controller that ends stops its machine
        return self.processes.stop()

    def said(self, name):
        """What a process wrote so far."""
        return self.processes.log(name).read_text(errors='replace')

    def publisher(self, kind, topic, qos=10):
        return self.node.create_publisher(kind, f'{self.namespace}/{topic}', qos)

    def listen(self, kind, topic, callback=None, qos=100):
        """Subscribe; without a callback returns the list that messages are appended to."""
        messages = []
        self.node.create_subscription(kind, f'{self.namespace}/{topic}', callback or messages.append, qos)
        return messages

    def until(self, condition, seconds=10.0, each=None):
        """Spin until the condition holds, doing `each` in every turn; its value."""
        deadline = time.monotonic() + seconds
        while True:
            if each is not None:
                each()
            self._spin_once(timeout_sec=TURN)
            value = condition()
            if value:
                return value
            assert time.monotonic() < deadline, (
                f'nothing within {seconds} s; diagnostics: {self.reports}; '
                + '; '.join(f'{name} said: {self.said(name)[-1000:]}' for name in self.processes.names()))

    def through(self, seconds):
        """Spin for so long, and as often as without a stall."""
        deadline, turns = time.monotonic() + seconds, 0
        while time.monotonic() < deadline or turns < seconds / TURN:
            self._spin_once(timeout_sec=TURN)
            turns += 1

    def until_quiet(self, *streams, seconds=0.2):
        """Spin until none of these lists of messages has grown for so long; a busy computer delivers late."""
        def quiet():
            before = [len(messages) for messages in streams]
            self.through(seconds)
            return before == [len(messages) for messages in streams]

        self.until(quiet)

    def call(self, kind, service, request, each=None):
        """The response of a service; `each` is done in every turn meanwhile."""
        client = self._clients.get(service)
        if client is None:
            client = self._clients[service] = self.node.create_client(kind, f'{self.namespace}/{service}')
        if not client.service_is_ready():
            self.until(client.service_is_ready, START_UP, each)
            self.through(FOUND)
        asked, again = [client.call_async(request)], time.monotonic() + ANSWER

        def answered():
            if len(asked) == 1 and time.monotonic() > again:
                warnings.warn(f'{service}: no answer for {ANSWER} s, asked again', stacklevel=3)    # in the summary
                asked.append(client.call_async(request))
            return next((future for future in asked if future.done()), None)

        return self.until(answered, 3.0 * ANSWER, each).result()

    def report(self, part):
        """(level, summary, values) of the last diagnostics of a part such as 'controller: control'."""
        status = self.reports.get(part, DiagnosticStatus())
        return status.level, status.message, {pair.key: pair.value for pair in status.values}

    def assert_on_grid(self, states, period):
        """Stamps of a simulator are whole periods [s] apart, but where a stall of the computer lost time."""
        stamps = np.array([stamp_to_ns(msg.header.stamp) for msg in states])
        steps = np.diff(stamps) / (period * SECOND)
        assert (steps > 0).all()
        off = steps[np.abs(steps - np.round(steps)) > 1e-6]
        # it makes up for shorter ones
        assert (off * period > CATCH_UP).all()
        if off.size:
            self.until(lambda: float(self.report('simulator: plant')[2].get('lost time [s]', 0.0)) > 0.0)

    def _keep_report(self, msg):
        for status in msg.status:
            self.reports[status.name.removeprefix(f'{self.namespace[1:]}/')] = status


@contextmanager
def graph(folder, namespace):
    """A `Graph` in the domain of this test run."""
    with own_node(name='witness') as (node, spin_once), NodeProcesses(folder) as processes:
        made = Graph(node, spin_once, processes, namespace, folder)
        yield made
        assert made.stops == made.provoked, f'the controller stopped {made.stops} times, {made.provoked} on purpose'
