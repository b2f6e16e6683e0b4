"""A simulator and a controller from their start to standing by: in lock-step they drive each other, or on the clock."""

import math
import time

import yaml
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from tqdm import tqdm
from trajectory_msgs.msg import JointTrajectory

from ...control.safety.fault_table import State
from ...model.units import SECOND
from ...nodes import EXECUTABLES
from ...nodes.messages.conversions import JointStateWriter, ns_to_stamp, stamp_to_ns, trajectory_to_msg
from ...validation.bags.recording import TOPICS
from .demo_safety import WIDEST_TIMEOUTS, safety_text
from .session import REACTION, ControlState, DemoError, StoppedError, Waiting

ENCODERS = '/encoders'      # topic of the states that the controller gets
RATE_OF_REPORTS = 5.0       # Hz
OVERRUNS = 0.2              # of the cycles of a second that may come too late on the clock: a desktop stalls processes
SKEW = 0.1                  # s; pressures come on their own way, and may be ahead of the states, which carry the time
PAUSE = 60.0                # s that simulated time may stand still while the computer is busy
START_UP = 300.0            # s for the nodes to come up; a first run compiles
STALL = 60.0                # s in which time has to go by
SLOWED = 60.0               # s of the plant's time more for a motion that was slowed down after all
NOTICE = 1.0                # s of it before a motion at which it is announced, by default
LEISURE = 0.01              # s between two states while the controller checks a motion
PATIENCE = 2.0              # s for some periods by hand
HASTE_NS = 100_000_000      # of the plant's time by hand at a time: no stop where the controller stalls meanwhile
SETTLED = 4                 # turns until nothing by hand is under way
NUDGES = 20                 # times that the nodes are asked to drive each other
DRIVING = 20_000_000        # ns that have to go by for that to be so


def declaration(manipulator, safety, lock_step, weak=False):
    """Return the contents of a safety declaration for such a run on a busy computer; arguments as `safety_text`."""
    timeouts = {**WIDEST_TIMEOUTS, 'simulated_pause': PAUSE} if lock_step else WIDEST_TIMEOUTS
    contents = yaml.safe_load(safety_text(manipulator, safety, weak=weak, timeouts=timeouts))
    contents.setdefault('plausibility', {})['clock_skew'] = SKEW
    return contents


def controller_parameters(lock_step):
    """Return the parameters of the controller that such a run needs."""
    # in lock-step no state may be lost: nobody would repeat it
    every = {f'qos_overrides.{ENCODERS}.subscription.{policy}': value
             for policy, value in (('reliability', 'reliable'), ('depth', 100))}
    return {'autostart': True, 'emergency_stop': 'none', 'overrun_share': OVERRUNS, 'report_rate': RATE_OF_REPORTS,
            'use_sim_time': lock_step, **every}


class Encoders:
    """Reads the time from what was measured, and passes states on to the controller, in lock-step with /clock.

    The simulator does not publish /clock: it would be ahead of the states that are passed on.

    joints     names of those that are passed on; None: in lock-step all of them, else the controller listens to the
               simulator
    """

    def __init__(self, node, joints, lock_step):
        self.topic = ENCODERS if joints or lock_step else TOPICS.states     # what the controller has to listen to
        self._joints, self._columns = joints, None
        self._writer = JointStateWriter(joints, ('position', 'velocity')) if joints else None
        self._publish = node.create_publisher(JointState, ENCODERS, 10).publish if joints or lock_step else None
        self._clock = Clock()
        self._publish_clock = node.create_publisher(Clock, '/clock', 10).publish if lock_step else None
        self.stamp = 0      # ns, of the last state
        self.delay = 0.0    # s by which it is held back, in lock-step

    def pass_on(self, data):
        """Take a serialised JointState."""
        msg = deserialize_message(data, JointState)
        self.stamp = stamp_to_ns(msg.header.stamp)
        if self.delay and self._publish_clock is not None:
            time.sleep(self.delay)
        if self._publish_clock is not None:
            self._clock.clock = msg.header.stamp
            self._publish_clock(self._clock)
        if self._publish is not None:
            self._publish(data if self._joints is None else self._selected(msg))

    def _selected(self, msg):
        writer = self._writer
        if self._columns is None:
            self._columns = [list(msg.name).index(joint) for joint in self._joints]
        for row, column in enumerate(self._columns):
            writer.position[row], writer.velocity[row] = msg.position[column], msg.velocity[column]
        return writer.stamp(self.stamp)


class MachineRun:
    """Both nodes, from their start to standing by again.

    nodes       `NodeProcesses`; both are started with
    parameters  path of the parameter file of both
    node        of this process
    spin_once   function that serves it
    encoders    `Encoders`
    lock_step   whether they are in lock-step
    period      ns
    what        it is, for messages
    """

    def __init__(self, nodes, parameters, node, spin_once, encoders, lock_step, period, what):
        for name, renamed in (('simulator', f'/simulator/joint_commands:={TOPICS.commands}'),
                              ('controller', f'joint_states:={encoders.topic}')):
            nodes.start(name, EXECUTABLES[name], '--ros-args', '--params-file', str(parameters), '-r', renamed)
        wait = Waiting(nodes, spin_once)
        self._node, self._wait, self._encoders, self._lock_step, self._what = node, wait, encoders, lock_step, what
        self._period_ns, self._control = period, ControlState(node)
        self._motions = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        self._step = node.create_client(Trigger, '/simulator/step')
        self._left, self._asked = 0, -math.inf      # periods to do by hand, s when the first of them was asked for
        self._cycles = 0        # of the controller before them

    def hold(self):
        """Let the controller hold the machine; returns the stamp [ns] of the plant's time zero."""
        encoders, control = self._encoders, self._control
        self._until(lambda: encoders.stamp, START_UP, 'starting both nodes')
        if not self._lock_step:
            self._until(lambda: control.active, START_UP, 'starting the controller')
            self._call(Trigger, '/simulator/reset')
            origin = encoders.stamp
            self._wait.held(self._node, f'{self._what}: enabling')
            return origin
        # nobody commands the machine yet: periods are done by hand
        self._call(SetBool, '/simulator/pause', data=True)
        self._until(self._step.service_is_ready, REACTION, 'waiting for the simulator')
        self._until(lambda: self._periods() and control.active, START_UP, 'starting the controller')
        self._until(lambda: self._periods() and self._enabled(), START_UP, 'enabling')
        self._left = 0
        for _ in range(SETTLED):
            self._wait.turn(self._what)
        self._call(Trigger, '/simulator/reset')
        origin = encoders.stamp + self._period_ns
        self._drive()
        return origin

    def _enabled(self):
        """Enable the controller, after a reset where it has stopped before on a busy computer."""
        enabled = self._call(SetBool, '/controller/enable', data=True).success
        if not enabled:
            self._call(Trigger, '/controller/reset')
        return enabled

    def _drive(self):
        """Let both nodes drive each other."""
        for _ in range(NUDGES):
            self._call(SetBool, '/simulator/pause', data=False)
            before, deadline = self._encoders.stamp, time.monotonic() + 1.0
            while time.monotonic() < deadline and self._control.check():
                self._wait.turn(self._what)
                if self._encoders.stamp > before + DRIVING:
                    return
            self._call(SetBool, '/simulator/pause', data=True)
            self._call(Trigger, '/simulator/step')
        raise StoppedError(f'simulator and controller do not answer each other: {self._control.reason}')

    def _periods(self):
        """Let some time go by once the controller is up, which believes nothing before its probation is over."""
        now, control = time.monotonic(), self._control
        answered = not control.active or control.cycles > self._cycles
        # the answer to a first request may get lost
        if control.reason and (answered and not self._left or now > self._asked + PATIENCE):
            self._left, self._asked, self._cycles = HASTE_NS // self._period_ns, now, control.cycles
            self._period()
        return True

    def _period(self, *_):
        if self._left:
            self._left -= 1
            self._step.call_async(Trigger.Request()).add_done_callback(self._period)

    def follow(self, waypoints, begin, notice=NOTICE):
        """Let the machine follow `Waypoints` from a stamp on.

        notice  s of the machine's time before it at which they are announced; the controller checks them in that time

        Raises StoppedError where the controller stops the machine, DemoError where it does not take the waypoints.
        """
        self._until(self._motions.get_subscription_count, REACTION, 'waiting for the controller')
        late = self._encoders.stamp - begin + round(notice * SECOND)
        if late > 0:
            raise DemoError(f'{self._what}: ready to move {late / SECOND:.1f} s too late: {self._control.reason}')
        self._through(begin - round(notice * SECOND), 'waiting for its time', lambda: False)
        self._announce(waypoints, begin)
        self._through(begin + round(waypoints.times[-1] * SECOND), 'moving', lambda: self._control.state == State.HOLD)

    def _announce(self, waypoints, begin):
        """Send a motion, and give the controller the time to check it."""
        control, encoders = self._control, self._encoders
        message = trajectory_to_msg(waypoints)
        ns_to_stamp(begin, message.header.stamp)
        encoders.delay = LEISURE        # it checks while nothing else is to be done
        self._motions.publish(message)
        self._until(lambda: control.check() and (control.state != State.HOLD or encoders.stamp >= begin), STALL,
                    'waiting for the motion to be accepted')
        encoders.delay = 0.0
        if control.state == State.HOLD:
            raise DemoError(f'{self._what}: the controller did not accept the motion: {control.reason}')

    def rest(self, stamp):
        """Let the controller hold the machine until a stamp, and until a motion that was slowed down is over."""
        last = stamp + round(SLOWED * SECOND)
        self._through(stamp, 'at rest', lambda: False)
        self._through(last, 'coming to rest', lambda: self._control.state == State.HOLD)

    def stand_by(self):
        """Let the controller leave the machine to its valves and brakes."""
        self._call(SetBool, '/controller/enable', data=False)
        self._until(lambda: self._control.state == State.STANDBY, REACTION, 'standing by')

    def _through(self, stamp, what, over):
        """Wait for a stamp, and show how time goes by, or until something is over."""
        encoders, last, deadline = self._encoders, -1, 0.0
        seconds = max((stamp - encoders.stamp) / SECOND, 0.0)
        with tqdm(total=seconds, desc=f'{self._what}: {what}', unit='s', disable=None, leave=False,
                  bar_format='{desc}: {bar} {n:.1f} of {total:.1f} s') as bar:
            while encoders.stamp < stamp and self._control.check() and not over():
                if encoders.stamp > last:
                    last, deadline = encoders.stamp, time.monotonic() + STALL
                bar.update(seconds - (stamp - last) / SECOND - bar.n)
                if time.monotonic() > deadline:
                    raise DemoError(f'{self._what}: {what}: no time goes by: {self._control.reason}')
                self._wait.turn(self._what)

    def _until(self, condition, seconds, what):
        self._wait.until(condition, seconds, f'{self._what}: {what}')

    def _call(self, kind, service, **fields):
        return self._wait.called(self._node, kind, service, kind.Request(**fields), f'{self._what}: {service}')
