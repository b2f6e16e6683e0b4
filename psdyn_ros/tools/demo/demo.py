"""`psdyn demo`: a machine simulated and controlled by two ROS processes, recorded and judged.

The same reference runs twice, under computed torque and under the baseline, or with and without a swing shaper where a
load hangs, each time with new processes, in lock-step or on the clock. Tables and report are made from the recordings,
of a run that ended early too.
"""

import itertools
import math
import os
import platform
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ...api.compilation import HYDRAULIC, HYDRAULIC_LOOPS
from ...api.load import load
from ...control.laws.computed_torque import check_actuation
from ...kernels.runtime.compiler import cache_is_warm, compiled
from ...model.errors import ActuationError, ModelError
from ...model.joint_positions import joint_positions
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import read_hydraulics
from ...model.text_file import read_text
from ...model.units import SECOND
from ...validation.bags.recording import TOPICS, BagError, Topics, check_unused, read_bag
from ...validation.metrics.tracking import track, units
from ...validation.playback import write_playback
from ...validation.report import page
from . import free_response, hanging, rig_demo
from .demo_safety import declared_safety
from .demonstration import DURATION, demonstration, through
from .machine_run import NOTICE, RATE_OF_REPORTS, Encoders, MachineRun, controller_parameters, declaration
from .parameter_file import read_parameters, write_parameters
from .recorder import Recorder
from .scene import SCENE, scene_messages
from .session import DemoError, StoppedError, graph, stop, terminable

SUCCESS, FAILED = 0, 1
VALVE, EFFORT = 'valve', 'effort'       # levels: what the controller commands
JUDGED = {VALVE: 'valve_computed_torque', EFFORT: 'computed_torque'}
BASELINE = {VALVE: 'valve_pid', EFFORT: 'pd_gravity'}
NAMES = {'computed_torque': 'computed torque', 'pd_gravity': 'PD + constant gravity',
         'valve_computed_torque': 'computed torque on valves', 'valve_pid': 'PID + velocity feedforward on valves'}
OUTPUT = 'demo_output'
RATE = 500.0                # Hz, where the configuration of the machine says nothing else
BANDWIDTH = 15.0            # rad/s, of computed torque, so too
BASELINE_BANDWIDTH = 6.0    # rad/s: beyond it diag(M) and a sampled state make the baseline chatter
TTL = 0.1                   # s, of commands; a busy computer may stall a process for some hundredths of a second
STALL = 0.03                # s without a command that are reported
LEAD = 1.5                  # s of the machine's time at rest before the motion is announced
REST = 0.3                  # s that are recorded before and after the motion
# what is judged is where the machine is, not what its sensors say
JUDGED_TOPICS = Topics(states='/simulator/ground_truth')
RECORDED = {TOPICS.states: JointState, JUDGED_TOPICS.states: JointState, TOPICS.commands: JointState,
            TOPICS.reference: JointTrajectory, TOPICS.statistics: Float64MultiArray}
SETTINGS = ('level', 'duration', 'bandwidth', 'baseline_bandwidth', 'travel', 'way')    # of `demo` in a configuration


class Setup(NamedTuple):
    """What is demonstrated.

    level       VALVE or EFFORT
    runs        name -> parameters of the controller of this run, the judged run first; the second one is compared
    names       name of a run -> what the report calls it
    machine     path of its URDF
    urdf        its text
    simulator   parameters of the node, without those that the demonstration adds
    controller  so too
    safety      path of the safety declaration of the machine, or None
    duration    s of motion
    travel      {coordinate: m or rad}, see `demonstration`
    way         {name of a point: {coordinate: m or rad}}, see `through`; {}: every coordinate goes out and back
    """

    level: str
    runs: dict
    names: dict
    machine: str
    urdf: str
    simulator: dict
    controller: dict
    safety: str | None
    duration: float
    travel: dict
    way: dict


def run(machine='hiab_xs031', output_dir=None, *, level=None, rig=None, real_time=False, config=None,
        **settings):
    """Run the demonstration; return 0, or 1 where its verdict is a failure.

    A machine that cannot be controlled, for want of actuators, shows its free response. What is None is as the
    configuration of the machine says.

    machine     URDF file, or the name of a machine of the package, which brings its configuration
    output_dir  new folder for the bags, the figures and report.html; None: demo_output, or with the first number that
                is free where there is one
    level       what the controller commands: 'valve' or 'effort'; None: as the configuration says, else valves where
                the machine has hydraulics
    rig         a cylinder that is put on a test rig, and compared with the whole machine; None: no rig
    real_time   whether all nodes run on the clock rather than in lock-step, in which no message is lost or late however
                busy the computer is
    config      ROS parameter file of both nodes, and of `demo`
    settings    before those that the configuration has for `demo`: duration [s] of motion; bandwidth [rad/s] of
                computed torque, baseline_bandwidth of PD with constant gravity; rate [Hz] of plant and controller;
                hydraulics, safety, sensors: YAML files; assembly: 'JOINT=POSITION ...' of another assembly mode
    """
    with terminable():
        setup = _setup(machine, VALVE if rig else level, config,
                       {name: value for name, value in settings.items() if value is not None})
        output = _unused() if output_dir is None else Path(output_dir)
        check_unused(output)
        return _run(setup, output, rig, real_time)


def _unused():
    """The path demo_output, else demo_output_2 or the next one that is not there."""
    paths = (Path(OUTPUT + (f'_{number}' if number > 1 else '')) for number in itertools.count(1))
    return next(path for path in paths if not path.exists())


def _setup(machine, level, config, given):
    """The `Setup` of a machine, its configuration, and what was said on the command line."""
    path, of_package = find_machine(machine), not Path(machine).is_file()
    if config is None and of_package:
        config = find_config(f'{machine}.yaml')
    configured = read_parameters(config, ('simulator', 'controller', 'demo')) if config else \
        {'simulator': {}, 'controller': {}, 'demo': {}}
    for name in configured['demo']:
        if name not in SETTINGS:
            raise ModelError(f"parameter file '{config}': 'demo' has no parameter '{name}'; there are: "
                             f'{", ".join(SETTINGS)}')
    settings = {'duration': DURATION, 'baseline_bandwidth': BASELINE_BANDWIDTH,
                'bandwidth': configured['controller'].get('bandwidth', BANDWIDTH), **configured['demo'], **given}
    for node in ('simulator', 'controller'):
        configured[node] = {'rate': RATE, **configured[node], **{name: given[name] for name in ('rate', 'assembly')
                                                                 if name in given}}
        configured[node]['rate'] = _number('rate', configured[node])
        if configured[node]['rate'] <= 0.0:
            raise DemoError(f'rate {configured[node]["rate"]:g} Hz: expected more than 0')
    for node, what in (('simulator', 'hydraulics'), ('simulator', 'sensors'), ('controller', 'safety')):
        if what in given:
            if not Path(given[what]).is_file():
                raise ModelError(f"--{what} '{given[what]}': no such file")
            configured[node][what] = given[what]
    level = _set_level(level or configured['demo'].get('level'), machine if of_package else None, configured)
    safety = configured['controller'].pop('safety', None) or (find_config(f'{machine}_safety.yaml') if of_package
                                                              else None)
    duration, travel = _number('duration', settings), settings.get('travel', {})
    if not 0.5 <= duration <= 600.0:
        raise DemoError(f'duration {duration:g} s: expected 0.5 to 600')
    if not isinstance(travel, dict):
        raise DemoError(f'travel is {travel!r:.80}; expected a mapping of coordinates to m or rad')
    way = settings.get('way', {})
    if not isinstance(way, dict) or not all(isinstance(point, dict) for point in way.values()):
        raise DemoError(f'way is {way!r:.80}; expected a mapping of points, each a mapping of coordinates to m or rad')
    # a bandwidth that was declared for the machine, or that of the package for its own machine on valves
    tuned = 'baseline_bandwidth' in {**configured['demo'], **given} or (level == VALVE and of_package)
    laws = JUDGED[level], BASELINE[level]
    names = dict(zip(laws, (NAMES[laws[0]], NAMES[laws[1]] + ('' if tuned else ', untuned'))))
    runs = {law: {'law': law, 'bandwidth': _number(name, settings)}
            for law, name in zip(laws, ('bandwidth', 'baseline_bandwidth'))}
    return Setup(level, runs, names, path, read_text(path), configured['simulator'], configured['controller'], safety,
                 duration, {name: _number(name, travel) for name in travel},
                 {point: {name: _number(name, positions) for name in positions} for point, positions in way.items()})


def _set_level(level, name, configured):
    """VALVE or EFFORT; gives both nodes the hydraulics and sensors that go with it.

    name  of a machine of the package, which may bring files of both; None for a URDF file
    """
    if level not in (None, VALVE, EFFORT):
        raise DemoError(f"level '{level}': expected {VALVE} or {EFFORT}")
    nodes = configured['simulator'], configured['controller']
    found = {}
    for what in ('hydraulics', 'sensors'):
        found[what] = next((node[what] for node in nodes if node.get(what)), None) or (
            find_config(f'{name}_{what}.yaml') if name else None)
        for node in nodes:
            node.pop(what, None)
    if level == VALVE and not found['hydraulics']:
        raise DemoError(f"level '{VALVE}': no hydraulics are known of this machine; expected --hydraulics, or "
                        "the parameter 'hydraulics' of 'simulator' in --config")
    if level == EFFORT or not found['hydraulics']:
        return EFFORT
    for node in nodes:
        node['hydraulics'] = found['hydraulics']
    configured['simulator'].setdefault('ttl', TTL)
    if found['sensors']:
        configured['simulator']['sensors'] = found['sensors']
    return VALVE


def _number(name, values):
    try:
        number = float(values[name])
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DemoError(f'{name} is {values[name]!r:.80}; expected a number')
    return number


def _run(setup, output, rig, real_time):
    manipulator = load(setup.urdf, allow_unphysical=setup.simulator.get('allow_unphysical', False),
                       initial=joint_positions(setup.simulator.get('assembly', ''), 'assembly'))
    if rig:
        result, path = rig_demo.run(setup, manipulator, output, rig, real_time, _computer())
        print(f'\n{page.as_text(result.table())}\n\n{result.verdict}\nreport: {path}')
        return FAILED if result.reason else SUCCESS
    computer, obstacle = _computer(), None
    try:
        check_actuation(manipulator)
    except ActuationError as error:
        obstacle = error
    if obstacle:
        print(f'{obstacle}; instead its free response over {setup.duration:g} s', flush=True)
        summary, path = free_response.run(setup, manipulator, output, computer)
        print(f'\n{page.as_text(summary.table())}\n')
    else:
        summary, path = _track(setup, manipulator, output, not real_time, computer)
        print(f'\n{page.as_text(page.tracking_table(summary))}\n\n{page.as_text(page.timing_table(summary))}\n')
    print(f'{summary.verdict}\nreport: {path}')
    return FAILED if summary.reason else SUCCESS


def _track(setup, manipulator, output, lock_step, computer):
    """Let both laws follow the demonstration; returns (report.Summary, path of the report)."""
    shortened, began = [], time.monotonic()
    hydraulics = setup.simulator['hydraulics'] if setup.level == VALVE else None
    declared = declared_safety(manipulator, setup.safety, hydraulics, setup.controller.get('output'))
    hangs, pause = manipulator.underactuated, 0.0
    if hangs:
        setup = hanging.compared(setup)
        pause = hanging.pause(manipulator, setup)
    if setup.way:
        waypoints = through(manipulator, setup.way, setup.duration, declared, pause)
    else:
        waypoints = demonstration(manipulator, setup.duration, setup.travel, declared, shortened.append, pause)
    output.mkdir(parents=True, exist_ok=True)
    laws = ', '.join(setup.names.values())
    print(f'{manipulator.name}: {len(manipulator.actuators)} actuators, {manipulator.total_mass:.2f} kg; '
          f'{setup.duration:g} s of motion under each of {laws}', flush=True)
    for sentence in shortened:
        print(f'in {setup.duration:g} s {sentence}', flush=True)
    judged, baseline = (_run_law(name, setup, manipulator, waypoints, output / name, lock_step) for name in setup.runs)
    facts = _facts(setup, manipulator, output, lock_step) | computer
    facts['took'] = f'{time.monotonic() - began:.0f} s'
    if shortened:
        facts['shortened'] = '; '.join(shortened)
    if not lock_step:
        facts['stalls'] = '; '.join(_stalls(run, setup) for run in (judged, baseline) if run.recording is not None)
    if judged.recording is None:
        raise DemoError(f'{judged.law}: {judged.stopped}; logs are in {output / "log"}')
    swings = hanging.swings(manipulator, (judged, baseline)) if hangs else ()
    summary = page.Summary(manipulator.name, judged, baseline, duration=_motion_time(waypoints),
                           travel=np.ptp(waypoints.positions, axis=0), facts=facts, swings=swings)
    oil = read_hydraulics(hydraulics, manipulator.actuators) if hydraulics else None
    playback = write_playback(output, output / next(iter(setup.runs)), manipulator, hydraulics=oil)
    other = None
    if len(swings) > 1:
        other = write_playback(output, output / list(setup.runs)[1], manipulator, hydraulics=oil,
                               file=f'{hanging.UNSHAPED}.html')
    return summary, page.write_report(output, summary, manipulator, playback, other)


def _run_law(run, setup, manipulator, waypoints, bag, lock_step):
    """The `page.Run` of a run; without a recording where the machine did not move before the run ended."""
    name = setup.names[run]
    try:
        _record(bag, run, setup, manipulator, waypoints, lock_step)
        stopped = ''
    except StoppedError as error:
        stopped = f'the controller stopped the machine: {error}'
        print(f'{name}: {stopped}', flush=True)
    except DemoError as error:
        if run == next(iter(setup.runs)):
            raise
        print(f'{name}: {error}', flush=True)
        return page.Run(name, None, None, str(error))
    recording = read_bag(bag, JUDGED_TOPICS)
    try:
        return page.Run(name, recording, track(recording, units(manipulator.driven_machine)), stopped)
    except BagError:
        if not stopped:
            raise
        return page.Run(name, None, None, stopped)


def _stalls(run, setup):
    """Sentence on the states of a run that were not answered by a command."""
    silent, unanswered = _silence(run.recording.commands.stamps, setup.simulator['rate'])
    text = f'{run.law}: {unanswered:.1%} of the states unanswered, for up to {silent * 1e3:.0f} ms'
    return text + (': the computer was busy, figures are worse than the law' if silent > STALL else '')


def _silence(stamps, rate):
    """(longest time between two answered states [s], share of the states that were not), by the commands' stamps."""
    answered = np.unique(stamps)
    states = 1e-9 * float(answered[-1] - answered[0]) * rate + 1.0
    return 1e-9 * float(np.diff(answered).max()), max(0.0, 1.0 - answered.size / states)


def _record(bag, name, setup, manipulator, waypoints, lock_step):
    """Let both nodes run the waypoints in one run, and record them in a bag, also where that ends early.

    Raises StoppedError, when the bag is written, where the controller stopped the machine; DemoError.
    """
    logs = bag.parent / 'log' / name
    logs.mkdir(parents=True, exist_ok=True)
    parameters = _write_parameters(name, setup, manipulator, logs, lock_step)
    topics = RECORDED | ({TOPICS.telemetry: Float64MultiArray} if setup.level == VALVE else {})
    stopped = None
    if setup.level == VALVE and compiled and not cache_is_warm(HYDRAULIC_LOOPS if manipulator.machine.iterates
                                                               else HYDRAULIC):
        print(f'{setup.names[name]}: both nodes compile the kernels of oil and control first, once; this takes minutes',
              flush=True)
    with graph(logs) as (nodes, node, spin_once):
        encoders = Encoders(node, None, lock_step)
        recorder = Recorder(node, topics, (lambda: encoders.stamp) if lock_step else time.time_ns,
                            {TOPICS.states: encoders.pass_on})
        run = MachineRun(nodes, parameters, node, spin_once, encoders, lock_step,
                         round(SECOND / setup.simulator['rate']), setup.names[name])
        origin = run.hold()
        notice = hanging.NOTICE if manipulator.underactuated else NOTICE
        begin = (origin if lock_step else encoders.stamp) + round((LEAD + notice) * SECOND)
        try:
            run.follow(waypoints, begin, notice)
            run.rest(begin + round((waypoints.times[-1] + REST) * SECOND))
            ended = encoders.stamp
            run.stand_by()
        except StoppedError as error:
            stopped, ended = error, encoders.stamp
        stop(nodes, logs)
    begin -= round(REST * SECOND)
    scene = scene_messages(manipulator, setup.urdf, begin, recorder.between(JUDGED_TOPICS.states, begin, ended))
    recorder.write(bag, begin, ended, more=scene, types=SCENE)
    if stopped is not None:
        raise stopped


def _write_parameters(name, setup, manipulator, logs, lock_step):
    """The path of the parameter file of both nodes in a run."""
    chosen = setup.runs[name]
    safety, weak = logs / 'safety.yaml', chosen['law'] in BASELINE.values()
    safety.write_text(yaml.safe_dump(declaration(manipulator, setup.safety, lock_step, weak)))
    controller = {**setup.controller, 'robot_description': setup.urdf, **chosen, 'safety': str(safety),
                  **controller_parameters(lock_step)}
    if weak:
        controller.pop('gains', None)       # they are those of the other law
    simulator = {**setup.simulator, 'robot_description': setup.urdf, 'report_rate': RATE_OF_REPORTS,
                 'step_on_command': lock_step}
    return write_parameters(logs / 'parameters.yaml', simulator=simulator, controller=controller)


def _motion_time(waypoints):
    """s from the first motion of any joint to the last waypoint."""
    first = np.flatnonzero(np.diff(waypoints.positions, axis=0).any(axis=1))[0]
    return float(waypoints.times[-1] - waypoints.times[first])


def _facts(setup, manipulator, output, lock_step):
    """What the report says about the conditions."""
    m = manipulator
    rates = {setup.simulator['rate'], setup.controller['rate']}
    return {
        'machine': f'{setup.machine}, {m.dof} degrees of freedom, {len(m.actuators)} actuators, {m.total_mass:.2f} kg',
        'reference': f'{setup.duration:g} s, {", ".join(setup.way) or "every coordinate out"} and back, from rest to '
                     'rest on quintics',
        **_level_facts(setup),
        'rate': f'{", ".join(f"{rate:g}" for rate in sorted(rates))} Hz; the controller computes on each state message '
                '(trigger: state)',
        'processes': 'simulator and controller, each a process of its own, over DDS, '
                     + ('in lock-step' if lock_step else 'in real time') + '; model and plant are the same',
        'recordings': ', '.join(str(output / name) for name in setup.runs) + ' (MCAP)',
    }


def _level_facts(setup):
    if setup.level == EFFORT:
        return {'gains': 'Kp = w^2, Kd = 2 w with ' + ', '.join(
            f'w = {run["bandwidth"]:g} rad/s for {setup.names[name]}' for name, run in setup.runs.items())}
    return {
        'hydraulics': setup.simulator['hydraulics'],
        'sensors': setup.simulator.get('sensors', 'exact'),
        'errors': 'of the true positions, not of what the sensors say',
    }


def _computer():
    return {
        'begun': time.strftime('%Y-%m-%d %H:%M:%S %z'),
        'computer': f'{os.cpu_count()} cores, {platform.system()} {platform.release()}, '
                    f'Python {platform.python_version()}, NumPy {np.__version__}, '
                    f'{"compiled with Numba" if compiled else "without Numba"}',
    }
