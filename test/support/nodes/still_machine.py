"""A machine at rest in the place of a real one, in lock-step with its controller on a clock of its own.

A state is published when the one before was answered, so that a stall of the computer stops the clock too. A state
that is not answered within PATIENCE is followed by the next one: a controller may be starting or inactive.
"""

import threading
import time

from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import Bool, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from psdyn_ros.nodes.messages import conversions
from psdyn_ros.nodes.messages.pressures import ATMOSPHERE

PERIOD = 2_000_000      # ns of the clock between two states
PAUSE = 0.003           # s that the machine sleeps after an answer
PATIENCE = 0.03         # s that it waits for one
TICK = 1_000            # ns between a state and one that the test makes


class StillMachine:
    """Publishes states, and pressures where it has cylinders, from a thread; keeps what the controller answers.

    graph      `Graph` in which the controller is
    machine    the Manipulator, at its initial position
    pressures  {cylinder: (a, b)} Pa gauge; None: none
    telemetry  function of (pressures, s) that makes the message of them; None: one topic for each port, oil/...
    """

    def __init__(self, graph, machine, pressures=None, telemetry=None):
        self.graph, self.pressures, self._make = graph, pressures, telemetry
        self.names, self.position, _, _ = machine.joint_state(machine.initial_position)
        self.states = graph.publisher(JointState, 'joint_states')
        self.trajectories = graph.publisher(JointTrajectory, 'controller/joint_trajectory')
        self.commands = graph.listen(JointState, 'controller/joint_commands')
        self.arrays = graph.listen(Float64MultiArray, 'controller/commands')
        self.references = graph.listen(JointTrajectory, 'controller/reference')
        graph.listen(Float64MultiArray, 'controller/state', lambda message: self._answered.set(), 1)
        self._clock = graph.publisher(Clock, 'clock', 1)
        self._lock, self._time, self._answered = threading.Lock(), PERIOD, threading.Event()
        self.telemetry, self._ports = None, {}
        if telemetry is not None:
            self.telemetry = graph.publisher(Float64MultiArray, 'simulator/hydraulic_telemetry')
        elif pressures is not None:
            self._ports = {(name, port): graph.publisher(FluidPressure, f'oil/{name}/{port}')
                           for name in pressures for port in 'ab'}
        self.stops = graph.publisher(Bool, 'controller/emergency_stop', 1)
        self.pressed = None                     # what the emergency stop says; None: nothing
        self.speaking = threading.Event()       # whether it says anything
        self.oil_speaks = True                  # whether pressures are among it
        self.last = 0                           # ns, stamp of the last state
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)

    def __enter__(self):
        self.speaking.set()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        self._thread.join()

    def _speak(self):
        while not self._ending.is_set():
            with self._lock:
                self._time += PERIOD
            clock = Clock()
            conversions.ns_to_stamp(self._time, clock.clock)
            self._clock.publish(clock)
            if self.speaking.is_set():
                self._answered.clear()
                self.send()
                self._answered.wait(PATIENCE)
            time.sleep(PAUSE)

    def now(self):
        """Return ns of the clock."""
        return self._time

    def message(self):
        """A good state of now, with a stamp that no other one has."""
        with self._lock:
            self._time += TICK
            now = self._time
        zero = [0.0] * len(self.names)
        msg = JointState(name=list(self.names), position=self.position.tolist(), velocity=zero, effort=zero)
        conversions.ns_to_stamp(now, msg.header.stamp)
        return msg

    def send(self):
        """Say once how things are."""
        if self.pressed is not None:
            self.stops.publish(Bool(data=self.pressed))
        if self.oil_speaks and self.telemetry is not None:
            self.telemetry.publish(self._make(self.pressures, self.now() * 1e-9))
        for (name, port), publisher in self._ports.items() if self.oil_speaks else ():
            msg = FluidPressure(fluid_pressure=self.pressures[name]['ab'.index(port)] + ATMOSPHERE)
            conversions.ns_to_stamp(self.now(), msg.header.stamp)
            publisher.publish(msg)
        msg = self.message()
        self.states.publish(msg)
        self.last = conversions.stamp_to_ns(msg.header.stamp)

    def held(self):
        """Let the controller hold it, whatever happened before; the next command."""
        self.speaking.set()
        self.oil_speaks = True
        self.graph.hold()
        del self.commands[:]
        return self.graph.until(lambda: self.commands and self.commands[-1])

    def rejected(self, topic):
        """How many messages of a topic the controller has rejected."""
        return int(self.graph.report('controller: control')[2].get(f'rejected {topic}', 0))
