"""`psdyn record-demo`: bags of a machine that is as its model says, and of others that are not.

Simulator and controller run as two processes over DDS, once for each case. The bag has the strokes of the cylinders and
the angles of their booms; the controller is led by the angles, which are passed on to it.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import yaml
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ...api.load import load
from ...api.manipulator import Manipulator
from ...model.errors import ModelError, did_you_mean
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import read_hydraulics
from ...model.text_file import read_text
from ...model.units import SECOND
from ...simulation.sensors.bank import checked_seed
from ...validation.bags.recording import check_unused
from ...validation.bags.simulated_bag import STATES, TELEMETRY, TRUTH
from ...validation.report import page
from ..demo.machine_run import Encoders, MachineRun, controller_parameters, declaration
from ..demo.parameter_file import write_parameters
from ..demo.recorder import Recorder
from ..demo.session import DemoError, graph, stop, terminable
from ..studies.loaded_crane import RANGES, SPEEDS, random_moves
from .cases import (
    CASES,
    DURATION,
    HYDRAULICS,
    MEASURED,
    MODEL,
    PASSED_ON,
    PLAIN,
    SEED,
    SENSORS,
    cases_text,
    checked_cases,
    faults,
    machine_urdf,
    model_urdf,
)

MACHINE = 'hiab_xs031'
RATE = 500.0
PERIOD = round(SECOND / RATE)       # ns
MIN_DURATION_S, MAX_DURATION_S = 5.0, 3600.0
LEAD = {True: 2.5, False: 15.0}     # s of the plant's time before the motion, in lock-step and in real time
REST = 0.5                          # s that are recorded before and after it
APPROACH = 0.4                      # s to its begin from where the machine is held, by sensors with noise
TTL = 0.1                           # s, of commands
# m/s^2 that the pump can give beside the weight of the payload
DECELERATIONS = {'lift_cylinder': 0.35, 'tilt_cylinder': 0.35}
TRUE_TELEMETRY = '/simulator/ground_truth/hydraulic_telemetry'
COMMANDS, REFERENCE, STATE = '/controller/joint_commands', '/controller/reference', '/controller/state'
RECORDED = {STATES: JointState, TELEMETRY: Float64MultiArray, COMMANDS: JointState, REFERENCE: JointTrajectory,
            STATE: Float64MultiArray, TRUTH: JointState, TRUE_TELEMETRY: Float64MultiArray}
OF_PLANT = STATES, TELEMETRY, TRUTH, TRUE_TELEMETRY


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

    output     folder, made where it does not exist, without bags of these cases. It gets machine.urdf and
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
    if not (MIN_DURATION_S <= duration <= MAX_DURATION_S):
        raise ModelError(f'duration {duration:g} s: expected {MIN_DURATION_S:g} to {MAX_DURATION_S:g}')
    seed = checked_seed(seed)
    output = Path(output)
    urdf = read_text(find_machine(MACHINE))
    hydraulics = output / HYDRAULICS
    model = {output / MODEL: model_urdf(urdf), hydraulics: read_text(find_config(f'{MACHINE}_hydraulics.yaml'))}
    for path in (*(output / case for case in cases),
                 *(path for path, text in model.items() if path.exists() and path.read_bytes() != text.encode())):
        check_unused(path)
    output.mkdir(parents=True, exist_ok=True)
    for path, text in model.items():
        path.write_text(text)
    setup = Setup(output, urdf, load(model_urdf(urdf)), str(hydraulics), find_config(f'{MACHINE}_safety.yaml'),
                  find_config(f'{MACHINE}_sensors.yaml') if sensors == PLAIN else None, duration, lock_step, seed)
    print(f'{setup.model.name}: {duration:g} s of motion, {sensors} sensors, seed {seed}, '
          f'{"in lock-step" if lock_step else "in real time"}', flush=True)
    facts = {'sensors': sensors, 'seconds': duration, 'rate': RATE, 'seed': seed, 'lock_step': lock_step}
    bags, listed = {}, output / 'cases.yaml'
    for case in cases:
        bags[case] = _run(case, setup)
        before = listed.read_text() if listed.exists() else ''
        listed.write_text(cases_text([case], facts, before))
    return bags


def _run(case, setup):
    """Return the bag of a case."""
    logs = setup.output / 'log' / case
    logs.mkdir(parents=True, exist_ok=True)
    parameters = _write_parameters(case, setup, logs)
    with graph(logs) as (nodes, node, spin_once):
        encoders = Encoders(node, PASSED_ON, setup.lock_step)
        recorder = Recorder(node, RECORDED, (lambda: encoders.stamp) if setup.lock_step else time.time_ns,
                            {STATES: encoders.pass_on})
        run = MachineRun(nodes, parameters, node, spin_once, encoders, setup.lock_step, PERIOD, case)
        begin = run.hold() + round(LEAD[setup.lock_step] * SECOND)
        end = begin + round(setup.duration * SECOND)
        moves = random_moves(setup.model, RANGES, SPEEDS, setup.duration, setup.seed)
        moves = replace(moves, times=moves.times + APPROACH)
        run.follow(moves, begin - round(APPROACH * SECOND))
        run.rest(end + round(REST * SECOND))
        ended = encoders.stamp
        run.stand_by()
        stop(nodes, logs)
    bag = setup.output / case
    counts = recorder.write(bag, begin - round(REST * SECOND), ended, compressed=True)
    expected = (ended - begin) // PERIOD + round(REST * RATE) + 1
    lost = {topic: expected - counts[topic] for topic in OF_PLANT if counts[topic] < expected}
    if setup.lock_step and lost:
        raise DemoError(f'{case}: messages were lost: {lost}')
    return bag


def _write_parameters(case, setup, logs):
    """The path of the parameter file of both nodes."""
    safety, schedule = logs / 'safety.yaml', logs / 'faults.yaml'
    declared = declaration(setup.model, setup.safety, setup.lock_step)
    for name, deceleration in DECELERATIONS.items():
        declared['actuators'][name]['deceleration'] = deceleration
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
    controller = {**common, 'robot_description': model_urdf(setup.urdf), 'law': 'valve_computed_torque',
                  'safety': str(safety), **controller_parameters(setup.lock_step)}
    return write_parameters(logs / 'parameters.yaml', simulator=simulator, controller=controller)


def run(output, *, cases=tuple(CASES), duration=DURATION, lock_step=True, sensors=PLAIN, seed=SEED):
    """Record as `record` does, and print how to validate the bags."""
    with terminable():
        bags = record(output, cases=cases, duration=duration, lock_step=lock_step, sensors=sensors, seed=seed)
    print(_summary(Path(output), bags))


def _summary(output, bags):
    rows = [('case', 'verdict', 'first cause', 'about', 'what was done')]
    rows += [(case, CASES[case].verdict, CASES[case].kind or '-', CASES[case].about or '-', CASES[case].what)
             for case in bags]
    commands = [f'psdyn validate {bag} --urdf {output / MODEL} --hydraulics {output / HYDRAULICS}'
                for bag in bags.values()]
    return '\n'.join(['', page.as_text(rows), '', *commands])
