"""The demonstration of a cylinder on a test rig: a simulator without it, and a rig, against the whole machine."""

import math

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...api.hydraulics.statics import hydraulic_records
from ...kernels.hydraulics.records import PA
from ...model.errors import ModelError, did_you_mean
from ...model.parameters.hydraulics import read_hydraulics
from ...nodes.messages.conversions import ns_to_stamp, stamp_to_ns
from ...simulation.plant import RUNNING
from ...validation.bags.recording import TOPICS, joint_series, read_messages, telemetry_series
from ...validation.bags.simulated_bag import STATES, TELEMETRY
from ...validation.report import split
from .parameter_file import write_parameters
from .recorder import Recorder
from .session import PlantState, Waiting, graph, stop

START_UP = 300.0        # s for the nodes to come up; a first run compiles
PATIENCE = 60.0         # s for that, in lock-step on a busy computer
SETTLE = 1.0            # s at neutral valves before the motion begins
TTL = 0.2               # s; a busy computer may stall a process for a tenth of a second
SHARE = 0.05            # of its range that a cylinder shall travel
DROP = 3.5e6            # Pa across an open edge, as a rule
MOST = 0.2              # spool
SLACK = 100_000         # ns by which stamps of one instant may differ
OTHER_SUPPLY = '; its cylinders share a pump of limited flow, and the rig has a supply of its own'
COMMANDS, TRUTH = '/demo/joint_commands', '/simulator/ground_truth'


def run(setup, manipulator, output, cylinder, real_time, computer):
    """Record and judge both machines; returns (`Split`, path of the report).

    setup      `demo.Setup` at the level of valves
    cylinder   the one on the rig
    real_time  whether all processes run on the clock; else in lock-step, which gives the same on a busy computer
    computer   facts about it
    """
    hydraulics = read_hydraulics(setup.simulator['hydraulics'], manipulator.actuators)
    if cylinder not in hydraulics.cylinders:
        raise ModelError(f"cylinder '{cylinder}': no such cylinder{did_you_mean(cylinder, hydraulics.cylinders)}")
    commands = _Commands(manipulator, hydraulics, setup.duration)
    output.mkdir(parents=True, exist_ok=True)
    recordings = [_record(output / name, setup, commands, on_rig, real_time)
                  for name, on_rig in (('whole', None), ('split', cylinder))]
    facts = {
        'machine': f'{setup.machine}, {setup.simulator["hydraulics"]}',
        'commands': f'sines of {setup.duration / 2.0:g} s on all valves, no feedback of position',
        'processes': 'simulator and rig, each a process of its own, over DDS, '
                     + ('in real time' if real_time else 'in lock-step'),
        'rate': f"{setup.simulator['rate']:g} Hz",
        **computer,
        'recordings': ', '.join(str(output / name) for name in ('whole', 'split')) + ' (MCAP)',
    }
    bounds = split.REAL_TIME if real_time else split.LOCK_STEP
    but = OTHER_SUPPLY if math.isfinite(hydraulics.supply.max_flow) and len(hydraulics.cylinders) > 1 else ''
    result = split.compare(manipulator, cylinder, *recordings, setup.duration, bounds, facts)._replace(but=but)
    return result, split.write_report(output, result)


class _Commands:
    """Valve commands that move every cylinder towards the middle of its range and back; other actuators rest."""

    def __init__(self, manipulator, hydraulics, duration):
        self._time = 0.5 * duration
        _, cylinders, _ = hydraulic_records(manipulator, hydraulics)
        limits, names = manipulator.limits, list(manipulator.actuators)
        _, position, *_ = manipulator.joint_state(manipulator.initial_position)
        self._opening, self._dead = np.full(len(names), math.nan), np.zeros(len(names))
        for c in cylinders:
            i = c['axis']
            x = position[manipulator.joints.index(names[i])]
            middle = 0.5 * (limits.lower[i] + limits.upper[i])
            travel = SHARE * (limits.upper[i] - limits.lower[i])
            flow = c['gain'][PA] * math.sqrt(DROP)
            opening = min(MOST, travel * c['area_a'] * math.pi / (flow * self._time))
            self._opening[i] = math.copysign(opening, middle - x)
            self._dead[i] = 0.0 if c['jump'] else max(c['overlap_up'], c['overlap_down'])
        self._cylinders = np.isfinite(self._opening)
        self.message = JointState(name=names, effort=np.where(self._cylinders, math.nan, 0.0).tolist())

    def at(self, time):
        """The message for this time [s] since the beginning; neutral before and after."""
        wave = math.sin(2.0 * math.pi * time / self._time) if 0.0 < time < 2.0 * self._time else 0.0
        wanted = self._opening * wave
        valve = wanted * (1.0 - self._dead) + np.sign(wanted) * self._dead
        self.message.position = np.where(self._cylinders, valve, math.nan).tolist()
        return self.message


def _record(bag, setup, commands, on_rig, real_time):
    """Let a machine run under the commands, whole or with a cylinder on a rig; returns a `SplitRecording`."""
    logs = bag.parent / 'log' / bag.name
    logs.mkdir(parents=True, exist_ok=True)
    common = {'robot_description': setup.urdf, 'hydraulics': setup.simulator['hydraulics'], 'ttl': TTL,
              'rate': setup.simulator['rate'], 'report_rate': 5.0}
    simulator = {key: value for key, value in {**setup.simulator, **common}.items() if key != 'sensors'}
    if not real_time:
        simulator['step_on_command'] = True
    parameters = write_parameters(logs / 'parameters.yaml', simulator=simulator, rig={
        **common, 'cylinder': on_rig or '', 'step_on_motion': not real_time})
    measured = f'/simulator/measured/{on_rig}'
    # what a recording of a machine has, for `psdyn validate`, beside what is true
    topics = {TRUTH: JointState, TOPICS.telemetry: Float64MultiArray, STATES: JointState, TELEMETRY: Float64MultiArray}
    topics |= {measured: JointState} if on_rig else {}
    with graph(logs) as (nodes, node, spin_once):
        recorder, plant = Recorder(node, topics), PlantState(node)
        driver = _Driver(node, commands, measured if on_rig and not real_time else None)
        arguments = '--ros-args', '--params-file', str(parameters)
        nodes.start('simulator', 'psdyn_ros.nodes.simulator.node', *arguments, '-r', f'~/joint_commands:={COMMANDS}')
        if on_rig:
            nodes.start('rig', 'psdyn_ros.nodes.observers.rig', *arguments, '-r', f'~/valve_commands:={COMMANDS}',
                        '-r', f'~/load_motion:=/simulator/load_motion/{on_rig}', '-r', f'~/measured:={measured}')
        wait = Waiting(nodes, spin_once)
        what = f'{on_rig} on the rig' if on_rig else 'the whole machine'
        wait.until(lambda: recorder.heard(*topics) and plant.summary == RUNNING, START_UP, f'{what}: starting')
        settled = driver.now + SETTLE
        wait.until(lambda: driver.now >= settled, PATIENCE, f'{what}: at rest')
        recorder.clear()
        plant.frozen = ''
        driver.begin()
        wait.through(lambda: driver.elapsed, setup.duration, what)
        stop(nodes, logs)
    recorder.write(bag)
    messages = read_messages(bag, topics)
    return split.SplitRecording(
        joint_series(messages, TRUTH), telemetry_series(messages[TOPICS.telemetry]),
        joint_series(messages, measured) if on_rig else None, driver.began, plant.frozen)


class _Driver:
    """Answers every state with the commands of its instant, so that both machines get the same at the same time.

    measured  topic of a rig in lock-step, whose answer to the same instant is waited for; None: none is
    """

    def __init__(self, node, commands, measured):
        self._commands, self._waits = commands, measured is not None
        self._stamp = self._answered = self._sent = -1      # ns, of the last state, measurement, command
        self.began = None                                   # ns, stamp of the state with which the motion begins
        self._publisher = node.create_publisher(JointState, COMMANDS, 1)
        node.create_subscription(JointState, TOPICS.states, self._on_state, 10)
        if self._waits:
            node.create_subscription(JointState, measured, self._on_measured, 10)

    @property
    def now(self):
        """s, stamp of the last state."""
        return 1e-9 * self._stamp

    def begin(self):
        """Let the motion begin at the last state."""
        self.began = self._stamp

    @property
    def elapsed(self):
        """s of the machine's time since the motion began."""
        return 1e-9 * (self._stamp - self.began)

    def _on_state(self, msg):
        stamp = stamp_to_ns(msg.header.stamp)
        if stamp == self._sent:     # the simulator says it again: no command reached it
            self._sent = -1
        self._stamp = stamp
        self._answer()

    def _on_measured(self, msg):
        self._answered = stamp_to_ns(msg.header.stamp)
        self._answer()

    def _answer(self):
        late = self._waits and 0 <= self._answered < self._stamp - SLACK
        if self._stamp in (-1, self._sent) or late:
            return
        message = self._commands.at(-1.0 if self.began is None else self.elapsed)
        ns_to_stamp(self._stamp, message.header.stamp)
        self._sent = self._stamp
        self._publisher.publish(message)
