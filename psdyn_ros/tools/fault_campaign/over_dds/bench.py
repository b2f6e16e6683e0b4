"""A simulator and one controller after another as processes, and a node of our own that watches and asks them.

The plant is the hydraulic crane under valve commands; its watchdog gives the safe output when commands are older than
`ttl`. Every controller has a name of its own, so that one can be started while another one is at work.
"""

import time
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from ....api.load import load
from ....control.reference.trajectory import Waypoints
from ....control.safety.fault_table import State
from ....model.errors import PsdynError
from ....model.locate import find_config, find_machine
from ....model.text_file import read_text
from ....model.units import SECOND
from ....nodes.messages.conversions import stamp_to_ns, trajectory_to_msg
from ...demo.demo_safety import safety_text
from ...demo.parameter_file import write_parameters

MACHINE = 'hiab_xs031'
RATE = 500.0            # Hz
TTL = 0.1               # s; on a computer that does something else too
TURN = 0.005            # s
START_UP = 300.0        # s; a first run compiles
PATIENCE = 20.0         # s for anything else
ANSWER = 3.0            # s for the answer of a service, before it is asked again
SPEED_SHARE = 0.3       # of the rated speed, peak of the motions
# transport -> variables of all processes beside those of their domain; rmw_fastrtps adds shared memory with LOCALHOST
LOOPBACK, SHARED_MEMORY = 'loopback', 'shared_memory'
TRANSPORTS = {LOOPBACK: ('fastdds_loopback_short_lease.xml', {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT'}),
              SHARED_MEMORY: ('fastdds_short_lease.xml', {})}
COMMANDS = '/simulator/joint_commands'


def environment(transport):
    """{variable: value} of all processes, where they talk by this one of TRANSPORTS."""
    profile, variables = TRANSPORTS[transport]
    return {'FASTRTPS_DEFAULT_PROFILES_FILE': find_config(profile), **variables}


class WireError(PsdynError):
    """The processes did not do what a trial needs."""


class ControllerProcess:
    """A controller process, and what it said last.

    number  of this controller; its node is controller_<number>
    module  that is run
    """

    def __init__(self, bench, number, *arguments, module='psdyn_ros.nodes.controller.node'):
        self.name = f'controller_{number}'
        self._bench = bench
        node = bench.node
        self.process = bench.nodes.start(
            self.name, module, '--ros-args', '--params-file', str(bench.controller_parameters),
            '-r', f'__node:={self.name}', '-r', f'~/joint_commands:={COMMANDS}', *arguments)
        self.state, self.reported = None, []        # the latter since somebody forgot it
        self.states = set()
        self._entities = [
            node.create_subscription(Float64MultiArray, f'/{self.name}/state', self._keep, 10)]
        self.reference = node.create_publisher(JointTrajectory, f'/{self.name}/joint_trajectory', 1)
        self._clients = {
            'change_state': node.create_client(ChangeState, f'/{self.name}/change_state'),
            'enable': node.create_client(SetBool, f'/{self.name}/enable')}

    def _keep(self, msg):
        self.state = State(int(msg.data[0]))
        self.reported.append(self.state)
        self.states.add(self.state)

    @property
    def is_up(self):
        return self._clients['change_state'].service_is_ready()

    @property
    def lifecycle(self):
        """What its diagnostics say of it."""
        status = self._bench.reports.get(f'{self.name}: control')
        return {pair.key: pair.value for pair in status.values}.get('lifecycle') if status else None

    def _ask(self, what, request, granted):
        """Ask again and again until `granted()`; an answer may be lost while client and service find each other."""
        def ask():
            response = self._bench.ask(self._clients[what], request, ANSWER)
            return response is not None and response.success or granted()
        self._bench.until(ask, PATIENCE, f'{self.name}: {what}')

    def configure(self):
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        self._ask('change_state', request, lambda: self.lifecycle in ('inactive', 'active'))

    def activate(self):
        """A state has to come before, and a dead process to be forgotten."""
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVATE))
        self._ask('change_state', request, lambda: self.lifecycle == 'active')

    def enable(self):
        self._ask('enable', SetBool.Request(data=True), lambda: self.state == State.HOLD)
        self._bench.until(lambda: self.state == State.HOLD, PATIENCE, f'{self.name} to hold')

    def follow(self, waypoints):
        """Publish a reference, again and again until it is followed."""
        def ask():
            if self.state in (State.STOPPING, State.SAFE):
                raise WireError(f'{self.name} stopped by itself:\n{self._bench.said(self.name)}')
            self.reference.publish(trajectory_to_msg(waypoints))
            return self._bench.within(lambda: self.state in (State.RUN, State.DEGRADED), 0.5)
        self._bench.until(lambda: self.reference.get_subscription_count(), PATIENCE, f'{self.name} to listen')
        self._bench.until(ask, PATIENCE, f'{self.name} to follow')

    def end(self):
        """Kill it where it still runs, and forget it; once."""
        if not self._entities:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        node = self._bench.node
        while self._entities:
            node.destroy_subscription(self._entities.pop())
        node.destroy_publisher(self.reference)
        for client in self._clients.values():
            node.destroy_client(client)


class WireBench:
    """Starts the simulator; `start_controller` starts controllers for it.

    node, spin_once  our own, in the domain of the processes
    nodes            `NodeProcesses`
    folder           for parameters and logs
    ttl              s
    simulated_time   whether the simulator makes simulated time
    """

    def __init__(self, node, spin_once, nodes, folder, *, ttl=TTL, simulated_time=False):
        self.node, self._spin_once, self.nodes, self.folder, self.ttl = node, spin_once, nodes, Path(folder), ttl
        self.machine = load(MACHINE)
        self._columns = None
        self.safe, self.stamp = None, 0         # (cylinders,) at the safe output; ns of that
        self.position, self.truth_stamp = None, 0       # (coordinates,) true; ns of that
        self.first_safe = None                  # ns of the first telemetry with all at the safe output, see `watch`
        self._after = None
        self.reports = {}
        self.number = self.abandoned = 0        # controllers in all, and those that stopped before their signal
        self._write_parameters(simulated_time)
        node.create_subscription(Float64MultiArray, '/simulator/ground_truth/hydraulic_telemetry', self._on_telemetry,
                                 10)
        node.create_subscription(JointState, '/simulator/ground_truth', self._on_truth, 10)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        self.simulator = nodes.start(
            'simulator', 'psdyn_ros.nodes.simulator.node', '--ros-args', '--params-file',
            str(self.folder / 'simulator.yaml'))
        self.until(lambda: self.position is not None and self.safe is not None, START_UP, 'the simulator to come up')

    def _write_parameters(self, simulated_time):
        hydraulics, description = find_config(f'{MACHINE}_hydraulics.yaml'), read_text(find_machine(MACHINE))
        (self.folder / 'safety.yaml').write_text(safety_text(self.machine, find_config(f'{MACHINE}_safety.yaml')))
        self.controller_parameters = self.folder / 'controller.yaml'
        shared = {'robot_description': description, 'hydraulics': hydraulics, 'rate': RATE}
        # names of controllers are not known yet
        write_parameters(self.controller_parameters, **{'/**': {
            **shared, 'law': 'valve_computed_torque', 'safety': str(self.folder / 'safety.yaml'), 'autostart': False,
            'emergency_stop': 'none', 'overrun_share': 0.2, 'report_rate': 5.0}})
        write_parameters(self.folder / 'simulator.yaml', simulator={
            **shared, 'ttl': self.ttl, 'report_rate': 5.0, 'publish_clock': simulated_time})

    def start_controller(self, *arguments, **named):
        """The next controller, as a process that was just started; arguments as of `ControllerProcess`."""
        self.number += 1
        return ControllerProcess(self, self.number, *arguments, **named)

    # what they say

    def _on_telemetry(self, msg):
        if self._columns is None:
            labels = msg.layout.dim[1].label.split(',')
            self._columns = labels.index('safe'), labels.index('stamp'), len(labels)
        safe, stamp, width = self._columns
        values = np.frombuffer(msg.data).reshape(-1, width)
        self.safe, self.stamp = values[:, safe] > 0.5, int(values[0, stamp] * SECOND)
        if self._after is not None and self.first_safe is None and self.stamp > self._after and self.safe.all():
            self.first_safe = self.stamp

    def _on_truth(self, msg):
        positions = dict(zip(msg.name, msg.position))
        self.position = np.array([positions[name] for name in self.machine.coordinates])
        self.truth_stamp = stamp_to_ns(msg.header.stamp)

    def _on_diagnostics(self, msg):
        for status in msg.status:
            self.reports[status.name] = status

    def rejected(self):
        """How many messages of commands the simulator refused, as it last said."""
        return sum(int(pair.value) for status in self.reports.values() if status.name.startswith('simulator')
                   for pair in status.values if pair.key == 'rejected joint_commands')

    def watch(self, after):
        """Note the first telemetry stamped after this ns in which everything is at its safe output."""
        self.first_safe, self._after = None, after

    def said(self, name):
        """The end of what a process wrote."""
        return '\n'.join(self.nodes.log(name).read_text(errors='replace').splitlines()[-8:])

    # waiting

    def turn(self):
        self._spin_once(timeout_sec=TURN)

    def through(self, seconds):
        """Serve our node for so long, and often enough to have heard the last, whatever stalled us."""
        deadline, turns = time.monotonic() + seconds, 0
        while time.monotonic() < deadline or turns < seconds / TURN:
            self.turn()
            turns += 1

    def within(self, condition, seconds):
        """Serve our node until the condition holds, at most so long; whether it holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.turn()
        return True

    def until(self, condition, seconds, what):
        """Like `within`, but WireError where it does not come to hold."""
        if self.simulator_ended() or not self.within(condition, seconds):
            words = '\n'.join(f'{name}: {self.said(name)}' for name in self.nodes.names()[-3:])
            raise WireError(f'waited {seconds:g} s for {what}\n{words}')

    def simulator_ended(self):
        process = getattr(self, 'simulator', None)
        return process is not None and process.poll() is not None

    def ask(self, client, request, seconds=PATIENCE):
        """The response of a service; None where none came within so many seconds."""
        self.until(client.service_is_ready, PATIENCE, client.srv_name)
        future = client.call_async(request)
        if self.within(future.done, seconds):
            return future.result()
        client.remove_pending_request(future)
        return None

    def motion(self, rng, seconds=3.0):
        """`Waypoints` of a random motion of all coordinates from where the machine is, towards the middle of ranges."""
        m = self.machine
        limits, here = m.coordinate_limits, self.position
        middle = np.where(np.isfinite(limits.lower + limits.upper), 0.5 * (limits.lower + limits.upper), 0.0)
        far = SPEED_SHARE * limits.velocity * seconds / 1.875 * rng.uniform(0.5, 1.0, m.dof)
        away = rng.choice([-1.0, 1.0], m.dof)
        span = np.where(np.isfinite(limits.upper - limits.lower), limits.upper - limits.lower, 1.0)
        outside = np.abs(here - middle) > 0.15 * span
        way = np.where(outside, np.sign(middle - here), away)
        target = here + way * np.minimum(far, 0.2 * span)
        zero = np.zeros((2, m.dof))
        return Waypoints(m.coordinates, [0.0, seconds], [here, target], zero, zero)
