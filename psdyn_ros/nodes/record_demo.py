"""`psdyn record-demo`: bags of a machine that is as its model says, and of others that are not.

Simulator and controller run as two processes over DDS, once for each case. The bag has the strokes of the cylinders and
the angles of their booms; the controller is led by the angles, which are passed on to it.
"""

import argparse
import math
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import yaml
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from tqdm import tqdm
from trajectory_msgs.msg import JointTrajectory

from ..api.load import load
from ..api.manipulator import Manipulator
from ..control.fault_table import State
from ..control.random_moves import random_moves
from ..model.errors import ModelError, PsdynError, did_you_mean
from ..model.hydraulics import read_hydraulics
from ..model.locate import find_config, find_machine
from ..model.xml_reader import read_text
from ..simulation.sensors import checked_seed
from ..validation import report
from ..validation.simulated_bag import STATES, TELEMETRY, TRUTH
from .conversions import SECOND, JointStateWriter, ns_to_stamp, trajectory_to_msg
from .demo_safety import WIDEST_LADDER, safety_text
from .executor import INTERNAL, SUCCESS, UNUSABLE
from .processes import NodeProcesses, environment, exported, free_domain
from .record_cases import (
    CASES,
    DURATION,
    HYDRAULICS,
    MEASURED,
    MODEL,
    PASSED_ON,
    PLAIN,
    RANGES,
    SEED,
    SENSORS,
    SPEEDS,
    add_arguments,
    cases_text,
    checked_cases,
    faults,
    machine_urdf,
    model_urdf,
)
from .recorder import Recorder
from .session import REACTION, ControlState, DemoError, StoppedError, Waiting, own_node, stop, terminable

INTERRUPTED = 130
MACHINE = 'hiab_xs031'
RATE = 500.0
PERIOD = round(SECOND / RATE)       # ns
SHORTEST, LONGEST = 5.0, 3600.0
LEAD = {True: 4.0, False: 15.0}     # s of the plant's time before the motion, in lock-step and in real time
NOTICE = 1.0                        # s before the motion at which it is announced: no fault of the start is left
HALT = 0.1                          # s before the end at which the controller may hold the machine already
REST = 0.5                          # s that are recorded before and after it
START_UP = 300.0                    # s for the nodes to come up; a first run compiles
STALL = 60.0                        # s in which at least a period has to go by
SLOWED = 60.0                       # s more for a motion that was slowed down after all, in real time
TTL = 0.1                           # s, of commands
SKEW = 0.1                          # s
OVERRUNS = 0.2                      # of the cycles of a second that may come too late
TRIES = 5                           # of a run that the controller ends: it does when time stands still for 0.2 s
PATIENCE = 2.0                      # s for periods by hand
HASTE = 50                          # periods by hand at a time
NUDGES = 20                         # periods by hand until the nodes drive each other
# m/s^2 that the pump can give beside the weight of the payload
DECELERATIONS = {'lift_cylinder': 0.35, 'tilt_cylinder': 0.35}
CONTROLLED_BY = '/encoders'
TRUE_TELEMETRY = '/simulator/ground_truth/hydraulic_telemetry'
COMMANDS, REFERENCE, STATE = '/controller/joint_commands', '/controller/reference', '/controller/state'
RECORDED = {STATES: JointState, TELEMETRY: Float64MultiArray, COMMANDS: JointState, REFERENCE: JointTrajectory,
            STATE: Float64MultiArray, TRUTH: JointState, TRUE_TELEMETRY: Float64MultiArray}


class Setup(NamedTuple):
    """What all cases have in common.

    output      folder
    urdf        text of the bare machine
    model       `Manipulator` with its payload
    hydraulics  path
    safety      path of the safety declaration of the machine
    sensors     path of their errors, or None
    duration    s of motion
    lock_step   whether time goes by as fast as the nodes answer each other; else they run on the clock
    seed        of motion and sensors
    """

    output: Path
    urdf: str
    model: Manipulator
    hydraulics: str
    safety: str
    sensors: str | None
    duration: float
    lock_step: bool
    seed: int


def record(output, *, cases=tuple(CASES), duration=DURATION, lock_step=True, sensors=PLAIN, seed=SEED):
    """Record bags of the crane on its valves; returns {case: path}.

    output     folder, made where it does not exist; bags of these cases in it are replaced. It gets machine.urdf and
               hydraulics.yaml, which are the model, and cases.yaml, which says what was done and should be found
    cases      names, of `CASES`
    duration   s of motion
    lock_step  whether stamps and times of receipt are simulated time, one period for each command, so that nothing
               depends on how busy the computer is; else the nodes run on the clock
    sensors    'plain' or 'noiseless'
    seed       of motion and sensors

    Raises PsdynError: DemoError where the nodes do not do what they should, StoppedError where the controller stopped
    the machine.
    """
    cases = checked_cases(cases)
    if sensors not in SENSORS:
        raise ModelError(f"there are no sensors '{sensors}'{did_you_mean(sensors, SENSORS)}")
    if not (SHORTEST <= duration <= LONGEST):
        raise ModelError(f'duration {duration:g} s: expected {SHORTEST:g} to {LONGEST:g}')
    seed = checked_seed(seed)
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    urdf = read_text(find_machine(MACHINE))
    (output / MODEL).write_text(model_urdf(urdf))
    hydraulics = output / HYDRAULICS
    hydraulics.write_text(Path(find_config(f'{MACHINE}_hydraulics.yaml')).read_text())
    setup = Setup(output, urdf, load(model_urdf(urdf)), str(hydraulics), find_config(f'{MACHINE}_safety.yaml'),
                  find_config(f'{MACHINE}_sensors.yaml') if sensors == PLAIN else None, duration, lock_step, seed)
    print(f'{setup.model.name}: {duration:g} s of motion, {sensors} sensors, seed {seed}, '
          f'{"in lock-step" if lock_step else "in real time"}', flush=True)
    bags = {case: _record_case(case, setup) for case in cases}
    facts = {'sensors': sensors, 'seconds': duration, 'rate': RATE, 'seed': seed, 'lock_step': lock_step}
    listed = output / 'cases.yaml'
    listed.write_text(cases_text(cases, facts, listed.read_text() if listed.exists() else ''))
    return bags


def _record_case(case, setup):
    """The bag of a case; where the controller stopped the machine it is done again."""
    for left in reversed(range(TRIES)):
        try:
            return _run(case, setup)
        except StoppedError as error:
            if not left:
                raise StoppedError(f'{case}: the controller stopped the machine: {error}; what it said is in '
                                   f'{_logs(case, setup)}') from error
            print(f'{case}: the controller stopped the machine: {error}; once more', flush=True)


def _logs(case, setup):
    return setup.output / 'log' / case


def _run(case, setup):
    logs = _logs(case, setup)
    logs.mkdir(parents=True, exist_ok=True)
    parameters = _write_parameters(case, setup, logs)
    domain = free_domain()
    with exported(environment(domain, logs)), NodeProcesses(logs) as nodes, own_node(domain) as (node, spin_once):
        encoders = _Encoders(node, PASSED_ON, setup.lock_step)
        recorder = Recorder(node, RECORDED, (lambda: encoders.stamp) if setup.lock_step else time.time_ns,
                            {STATES: encoders.pass_on})
        control = ControlState(node)
        reference = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        arguments = '--ros-args', '--params-file', str(parameters)
        for name, renamed in (('simulator', f'/simulator/joint_commands:={COMMANDS}'),
                              ('controller', f'joint_states:={CONTROLLED_BY}')):
            nodes.start(name, f'psdyn_ros.nodes.{name}', *arguments, '-r', renamed)
        run = _Run(case, node, Waiting(nodes, spin_once), encoders, control, setup)
        origin = run.hold()
        began = origin + round(LEAD[setup.lock_step] * SECOND)
        run.follow(reference, random_moves(setup.model, RANGES, SPEEDS, setup.duration, setup.seed), began)
        ended = encoders.stamp
        run.stand_by()
        stop(nodes, logs)
    bag = setup.output / case
    if bag.exists():
        shutil.rmtree(bag)
    counts = recorder.write(bag, began - round(REST * SECOND), ended, compressed=True)
    lost = {topic: lost for topic, count in counts.items()
            if (lost := (ended - began) // PERIOD + round(REST * RATE) + 1 - count) > 0}
    if setup.lock_step and lost:
        raise DemoError(f'{case}: messages were lost: {lost}')
    return bag


def _write_parameters(case, setup, logs):
    """The path of the parameter file of both nodes."""
    safety, parameters, schedule = logs / 'safety.yaml', logs / 'parameters.yaml', logs / 'faults.yaml'
    declared = yaml.safe_load(safety_text(setup.model, setup.safety, ladder=WIDEST_LADDER))
    for name, deceleration in DECELERATIONS.items():
        declared['actuators'][name]['deceleration'] = deceleration
    # pressures come on their own way, and may be ahead of the states, which say what time it is
    declared.setdefault('plausibility', {})['clock_skew'] = SKEW
    safety.write_text(yaml.safe_dump(declared))
    common = {'hydraulics': setup.hydraulics, 'rate': RATE, 'report_rate': 5.0}
    simulator = {**common, 'robot_description': machine_urdf(case, setup.urdf), 'ttl': TTL, 'seed': setup.seed,
                 'measured_joints': ' '.join(MEASURED), 'step_on_command': setup.lock_step}
    if setup.sensors:
        simulator['sensors'] = setup.sensors
    text = faults(case, list(read_hydraulics(setup.hydraulics, setup.model.actuators).cylinders),
                  LEAD[setup.lock_step], setup.duration)
    if text:
        schedule.write_text(text)
        simulator['faults'] = str(schedule)
    # in lock-step no state may be lost: nobody would say it again
    every = {f'qos_overrides.{CONTROLLED_BY}.subscription.{policy}': value
             for policy, value in (('reliability', 'reliable'), ('depth', 100))}
    controller = {**common, 'robot_description': model_urdf(setup.urdf), 'law': 'valve_computed_torque',
                  'safety': str(safety), 'autostart': True, 'emergency_stop': 'none', 'overrun_share': OVERRUNS,
                  'use_sim_time': setup.lock_step, **every}
    parameters.write_text(yaml.safe_dump({'simulator': {'ros__parameters': simulator},
                                          'controller': {'ros__parameters': controller}}))
    return parameters


class _Encoders:
    """Passes on what was measured of some joints, and knows the time by it, which in lock-step it tells on /clock.

    The simulator does not: a controller that heard of a time before the state of that time would answer without it.
    """

    def __init__(self, node, joints, lock_step):
        self._writer, self._joints = JointStateWriter(joints, ('position', 'velocity')), joints
        self._publish = node.create_publisher(JointState, CONTROLLED_BY, 10).publish
        self._clock, self._tell = Clock(), node.create_publisher(Clock, '/clock', 10).publish if lock_step else None
        self._columns = None
        self.stamp = 0      # ns, of the last state

    def pass_on(self, data):
        """Take a serialised JointState."""
        msg, writer = deserialize_message(data, JointState), self._writer
        if self._columns is None:
            self._columns = [list(msg.name).index(joint) for joint in self._joints]
        for row, column in enumerate(self._columns):
            writer.position[row], writer.velocity[row] = msg.position[column], msg.velocity[column]
        self.stamp = msg.header.stamp.sec * SECOND + msg.header.stamp.nanosec
        self._publish(writer.stamp(self.stamp))
        if self._tell is not None:
            self._clock.clock = msg.header.stamp
            self._tell(self._clock)


class _Run:
    """One run of both nodes, from their start to standing by again."""

    def __init__(self, case, node, wait, encoders, control, setup):
        self._case, self._node, self._wait = case, node, wait
        self._encoders, self._control, self._setup = encoders, control, setup
        self._step = node.create_client(Trigger, '/simulator/step')
        self._left, self._asked = 0, -math.inf      # periods to do by hand, s when the first of them was asked for

    def hold(self):
        """Let the controller hold the machine; returns the stamp [ns] of the plant's time zero."""
        case, wait, control, encoders = self._case, self._wait, self._control, self._encoders
        wait.until(lambda: encoders.stamp, START_UP, f'{case}: starting both nodes')
        if not self._setup.lock_step:
            wait.until(lambda: control.active, START_UP, f'{case}: starting the controller')
            self._call(Trigger, '/simulator/reset')
            origin = encoders.stamp
            wait.held(self._node, f'{case}: enabling')
            return origin
        # nobody commands the machine yet: periods are done by hand
        self._call(SetBool, '/simulator/pause', data=True)
        wait.until(self._step.service_is_ready, REACTION, f'{case}: waiting for the simulator')
        wait.until(lambda: self._periods() and control.active, START_UP, f'{case}: starting the controller')
        wait.until(lambda: self._periods() and self._enabled(), REACTION, f'{case}: enabling')
        for _ in range(NUDGES):
            self._call(SetBool, '/simulator/pause', data=False)
            before, deadline = encoders.stamp, time.monotonic() + 1.0
            while time.monotonic() < deadline and control.check():
                wait.turn(case)
                if encoders.stamp > before + 10 * PERIOD:
                    return PERIOD       # simulated time begins with one period
            self._call(SetBool, '/simulator/pause', data=True)
            self._call(Trigger, '/simulator/step')
        raise DemoError(f'{case}: simulator and controller do not answer each other: {control.reason}')

    def follow(self, publisher, waypoints, began):
        """Let the machine follow the waypoints from a stamp on, and rest."""
        case, wait, control = self._case, self._wait, self._control
        wait.until(publisher.get_subscription_count, REACTION, f'{case}: waiting for the controller')
        if self._encoders.stamp > began - round(NOTICE * SECOND):
            raise DemoError(f'{case}: the controller held the machine {(self._encoders.stamp - began) / SECOND:.1f} s '
                            'after the motion should have begun')
        wait.until(lambda: self._encoders.stamp > began - round(NOTICE * SECOND), STALL,
                   f'{case}: waiting for its time')
        message = trajectory_to_msg(waypoints)
        ns_to_stamp(began, message.header.stamp)
        publisher.publish(message)
        seconds = LEAD[self._setup.lock_step] + self._setup.duration + REST
        origin = began - round(LEAD[self._setup.lock_step] * SECOND)
        self._through(lambda: control.check() and (self._encoders.stamp - origin) / SECOND, seconds, began)

    def _through(self, elapsed, seconds, began):
        control, case, last, deadline = self._control, self._case, -1.0, 0.0
        moved = False
        with tqdm(total=seconds, desc=case, unit='s', disable=None, leave=False,
                  bar_format='{desc}: {bar} {n:.1f} of {total:.1f} s') as bar:
            while (now := elapsed()) < seconds or control.state != State.HOLD:
                bar.update(now - bar.n)
                if now > last:
                    last, deadline = now, time.monotonic() + STALL
                moved |= control.state == State.RUN
                if moved and control.state == State.HOLD and now < seconds - REST - HALT:
                    raise StoppedError(f'HOLD after {now:.1f} s of {seconds:.1f} s, perhaps since the computer is busy')
                if not moved and self._encoders.stamp > began + SECOND:
                    raise DemoError(f'{case}: the motion did not begin: {control.reason}')
                if time.monotonic() > deadline or now > seconds + SLOWED:
                    raise DemoError(f'{case}: after {now:.1f} s of {seconds:.1f} s nothing goes on: {control.reason}')
                self._wait.turn(case)

    def stand_by(self):
        """Let the controller leave the machine to its valves and brakes."""
        self._call(SetBool, '/controller/enable', data=False)
        self._wait.until(lambda: self._control.state == State.STANDBY, REACTION, f'{self._case}: standing by')

    def _periods(self):
        """Let time go by: quicker once the controller is up, which believes nothing before its probation is over."""
        now = time.monotonic()
        if not self._left or now > self._asked + PATIENCE:      # the answer to a first request may get lost
            self._left, self._asked = HASTE if self._control.reason else 1, now
            self._period()
        return True

    def _period(self, *_):
        if self._left:
            self._left -= 1
            self._step.call_async(Trigger.Request()).add_done_callback(self._period)

    def _enabled(self):
        return self._call(SetBool, '/controller/enable', data=True).success

    def _call(self, kind, service, **fields):
        return self._wait.called(self._node, kind, service, kind.Request(**fields), f'{self._case}: {service}')


def run(output, *, cases=tuple(CASES), duration=DURATION, lock_step=True, sensors=PLAIN, seed=SEED):
    """As `record`, from the command line: print what to do with the bags; returns the exit code."""
    try:
        with terminable():
            bags = record(output, cases=cases, duration=duration, lock_step=lock_step, sensors=sensors, seed=seed)
    except KeyboardInterrupt:
        print('\nstopped; the nodes have ended', file=sys.stderr)
        return INTERRUPTED
    except (PsdynError, OSError) as error:
        print(f'psdyn record-demo: {error}', file=sys.stderr)
        return UNUSABLE
    except Exception:
        traceback.print_exc()
        return INTERNAL
    print(_summary(Path(output), bags))
    return SUCCESS


def _summary(output, bags):
    rows = [('case', 'verdict', 'first cause', 'about', 'what was done')]
    rows += [(case, CASES[case].verdict, CASES[case].kind or '-', CASES[case].about or '-', CASES[case].what)
             for case in bags]
    commands = [f'psdyn validate {bag} --urdf {output / MODEL} --hydraulics {output / HYDRAULICS}'
                for bag in bags.values()]
    return '\n'.join(['', report.as_text(rows), '', *commands])


def run_options(options):
    """`run` as the options of `add_arguments` say."""
    return run(options.output, cases=options.cases, duration=options.duration, lock_step=options.lock_step,
               sensors=options.sensors, seed=options.seed)


def main(args=None):
    """Record from the command line."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.nodes.record_demo', description=__doc__.splitlines()[0])
    add_arguments(parser)
    return run_options(parser.parse_args(args))


if __name__ == '__main__':
    sys.exit(main())
