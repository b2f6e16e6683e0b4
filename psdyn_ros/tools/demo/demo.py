"""`psdyn demo`: a machine simulated and controlled by two real ROS processes, and what came of it.

The same reference runs twice, under computed torque and under the baseline, each time with new processes.
Everything that was said is recorded; the tables and the report are made from the recordings.
"""

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

from ...api.load import load
from ...control.laws.computed_torque import check_actuation
from ...control.safety.fault_table import State
from ...kernels.runtime.compiler import compiled
from ...model.errors import ActuationError, ModelError
from ...model.joint_positions import joint_positions
from ...model.locate import find_config, find_machine
from ...model.text_file import read_text
from ...nodes import EXECUTABLES
from ...nodes.messages.conversions import stamp_to_ns, trajectory_to_msg
from ...simulation.plant import RUNNING
from ...validation.bags.recording import TOPICS, Topics, read_bag
from ...validation.metrics.tracking import track, units
from ...validation.report import page
from . import free_response, rig_demo
from .demo_safety import WIDEST_LADDER, declared_safety, safety_text
from .demonstration import DURATION, demonstration
from .parameter_file import read_parameters
from .recorder import Recorder
from .session import REACTION, ControlState, DemoError, PlantState, StoppedError, Waiting, graph, stop, terminable

SUCCESS, FAILED = 0, 1
VALVE, EFFORT = 'valve', 'effort'       # levels: what the controller commands
JUDGED = {VALVE: 'valve_computed_torque', EFFORT: 'computed_torque'}
BASELINE = {VALVE: 'valve_pid', EFFORT: 'pd_gravity'}
NAMES = {'computed_torque': 'computed torque', 'pd_gravity': 'PD + constant gravity',
         'valve_computed_torque': 'computed torque on valves', 'valve_pid': 'PID + velocity feedforward on valves'}
RATE = 500.0                # Hz, where the configuration of the machine says nothing else
BANDWIDTH = 15.0            # rad/s, of computed torque, so too
BASELINE_BANDWIDTH = 6.0    # rad/s: beyond it diag(M) and a sampled state make the baseline chatter
START_UP = 300.0            # s for the nodes to come up; a first run compiles for half a minute
TTL = 0.1                   # s, of commands; a busy computer may stall a process for some hundredths of a second
OVERRUNS = 0.2              # of the cycles of a second that may come too late, for the same reason
TRIES = 5                   # of a run that the controller ends, or in which it had no time, also for that reason
STALL = 0.03                # s without a command, in a run that does not count for that
UNANSWERED = 0.01           # of the states, the same
SLOWED = 60.0               # s more for a motion that was slowed down after all
REST = 0.3                  # s that are recorded after the motion
# what is judged is where the machine is, not what its sensors say
JUDGED_TOPICS = Topics(states='/simulator/ground_truth')
RECORDED = {TOPICS.states: JointState, JUDGED_TOPICS.states: JointState, TOPICS.commands: JointState,
            TOPICS.reference: JointTrajectory, TOPICS.statistics: Float64MultiArray}
SETTINGS = ('level', 'duration', 'bandwidth', 'baseline_bandwidth', 'travel')    # of `demo` in a configuration


class Setup(NamedTuple):
    """What is demonstrated.

    level       VALVE or EFFORT
    machine     path of its URDF
    urdf        its text
    simulator   parameters of the node, without those that the demonstration adds
    controller  so too
    safety      path of the safety declaration of the machine, or None
    duration    s of motion
    bandwidths  law -> rad/s
    travel      {coordinate: m or rad}, see `demonstration`
    """

    level: str
    machine: str
    urdf: str
    simulator: dict
    controller: dict
    safety: str | None
    duration: float
    bandwidths: dict
    travel: dict


def run(machine='hiab_xs031', output_dir='demo_output', *, level=None, rig=None, real_time=False, config=None,
        assembly=None, duration=None, bandwidth=None, baseline_bandwidth=None, rate=None):
    """Run the demonstration; return 0, or 1 where its verdict is a failure.

    A machine that cannot be controlled, for want of actuators, shows its free response. What is None is as the
    configuration of the machine says.

    machine             URDF file, or the name of a machine of the package, which brings its configuration
    output_dir          folder for the bags, the figures and report.html
    level               what the controller commands: 'valve' or 'effort'; None: as the
                        configuration says, else valves where the machine has hydraulics
    rig                 a cylinder that is put on a test rig, and compared with the whole machine; None: no rig
    real_time           whether machine and rig run on the clock rather than in lock-step
    config              ROS parameter file of both nodes, and of `demo`
    assembly            'JOINT=POSITION' texts that pick another assembly mode
    duration            s of motion
    bandwidth           rad/s, of computed torque
    baseline_bandwidth  rad/s, of PD with constant gravity
    rate                Hz, of the plant and of the controller
    """
    given = {'duration': duration, 'bandwidth': bandwidth, 'baseline_bandwidth': baseline_bandwidth, 'rate': rate,
             'assembly': None if assembly is None else ' '.join(assembly)}
    with terminable():
        setup = _setup(machine, VALVE if rig else level, config,
                       {name: value for name, value in given.items() if value is not None})
        return _run(setup, Path(output_dir), rig, real_time)


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
    level = _set_level(level or configured['demo'].get('level'), machine if of_package else None, configured)
    safety = configured['controller'].pop('safety', None) or (find_config(f'{machine}_safety.yaml') if of_package
                                                              else None)
    duration, travel = _number('duration', settings), settings.get('travel', {})
    if not 0.5 <= duration <= 600.0:
        raise DemoError(f'duration {duration:g} s: expected 0.5 to 600')
    if not isinstance(travel, dict):
        raise DemoError(f'travel is {travel!r:.80}; expected a mapping of coordinates to m or rad')
    return Setup(level, path, read_text(path), configured['simulator'], configured['controller'], safety, duration,
                 {JUDGED[level]: _number('bandwidth', settings),
                  BASELINE[level]: _number('baseline_bandwidth', settings)},
                 {name: _number(name, travel) for name in travel})


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
        raise DemoError(f"level '{VALVE}': no hydraulics are known of this machine; expected the parameter "
                        "'hydraulics' of 'simulator' in --config")
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
        return float(values[name])
    except (TypeError, ValueError):
        raise DemoError(f'{name} is {values[name]!r:.80}; expected a number') from None


def _run(setup, output, rig, real_time):
    manipulator = load(setup.urdf, allow_unphysical=setup.simulator.get('allow_unphysical', False),
                       initial=joint_positions(setup.simulator.get('assembly', ''), 'assembly'))
    if rig:
        result, path = rig_demo.run(setup, manipulator, output, rig, real_time, _computer())
        print(f'\n{page.as_text(result.table())}\n\n{result.verdict}\nreport: {path}')
        return FAILED if result.reason else SUCCESS
    obstacle = None
    try:
        check_actuation(manipulator)
    except ActuationError as error:
        obstacle = error
    if obstacle:
        print(f'{obstacle}; instead its free response over {setup.duration:g} s', flush=True)
        summary, path = free_response.run(setup, manipulator, output, _computer())
        print(f'\n{page.as_text(summary.table())}\n')
    else:
        summary, path = _track(setup, manipulator, output)
        print(f'\n{page.as_text(page.tracking_table(summary))}\n\n{page.as_text(page.timing_table(summary))}\n')
    print(f'{summary.verdict}\nreport: {path}')
    return FAILED if summary.reason else SUCCESS


def _track(setup, manipulator, output):
    """Let both laws follow the demonstration; returns (report.Summary, path of the report)."""
    shortened = []
    hydraulics = setup.simulator['hydraulics'] if setup.level == VALVE else None
    declaration = declared_safety(manipulator, setup.safety, hydraulics, setup.controller.get('output'))
    waypoints = demonstration(manipulator, setup.duration, setup.travel, declaration, shortened.append)
    output.mkdir(parents=True, exist_ok=True)
    laws = ', '.join(NAMES[law] for law in setup.bandwidths)
    print(f'{manipulator.name}: {len(manipulator.actuators)} actuators, {manipulator.total_mass:.2f} kg; '
          f'{setup.duration:g} s of motion under each of {laws}', flush=True)
    for sentence in shortened:
        print(f'in {setup.duration:g} s {sentence}', flush=True)
    repeated = []
    runs = [_run_law(law, setup, manipulator, waypoints, output, repeated) for law in setup.bandwidths]
    facts = _facts(setup, manipulator, output)
    told = {'shortened': shortened, 'runs done again': repeated}
    facts |= {what: '; '.join(sentences) for what, sentences in told.items() if sentences}
    summary = page.Summary(manipulator.name, *runs, duration=_motion_time(waypoints),
                             travel=np.ptp(waypoints.positions, axis=0), facts=facts)
    return summary, page.write_report(output, summary, manipulator, setup.urdf)


def _run_law(law, setup, manipulator, waypoints, output, repeated):
    """The `page.Run` of a law; why it had to be done again is said, and appended to `repeated`.

    A computer that stalls lets the controller stop, which is what it is for, or the machine go without commands for a
    while, or again and again. None of this says anything of the law; otherwise the first result counts.
    """
    bag = output / law
    for left in reversed(range(TRIES)):
        try:
            _record(bag, law, setup, manipulator, waypoints)
        except StoppedError as error:
            if not left:
                raise StoppedError(f'{NAMES[law]}: the controller stopped the machine: {error}; what it said is in '
                                   f'{output / "log" / law}') from error
            why = f'the controller stopped the machine, perhaps since the computer is busy: {error}'
        else:
            recording = read_bag(bag, JUDGED_TOPICS)
            tracking = track(recording, units(manipulator))
            silent, unanswered = _silence(recording.commands.stamps, setup.simulator['rate'])
            if (not left or tracking.passed or law not in JUDGED.values()
                    or (silent < STALL and unanswered < UNANSWERED)):
                return page.Run(NAMES[law], recording, tracking)
            why = (f'off its bounds in a run in which {unanswered:.1%} of the states were not answered by a command, '
                   f'for up to {silent * 1e3:.0f} ms')
        repeated.append(f'{NAMES[law]}: {why}')
        print(f'{repeated[-1]}; once more', flush=True)


def _silence(stamps, rate):
    """(longest time between two answered states [s], share of the states that were not), by the commands' stamps."""
    answered = np.unique(stamps)
    states = 1e-9 * float(answered[-1] - answered[0]) * rate + 1.0
    return 1e-9 * float(np.diff(answered).max()), max(0.0, 1.0 - answered.size / states)


def _record(bag, law, setup, manipulator, waypoints):
    """Let both nodes run the waypoints under one law, and write what they say into a bag."""
    logs = bag.parent / 'log' / law
    logs.mkdir(parents=True, exist_ok=True)
    parameters = logs / 'parameters.yaml'
    weak = law in BASELINE.values()
    safety = logs / 'safety.yaml'
    safety.write_text(safety_text(manipulator, setup.safety, weak=weak, ladder=WIDEST_LADDER))
    controller = {**setup.controller, 'robot_description': setup.urdf, 'law': law, 'bandwidth': setup.bandwidths[law],
                  'safety': str(safety), 'autostart': True, 'emergency_stop': 'none', 'overrun_share': OVERRUNS,
                  'report_rate': 5.0}
    if weak:
        controller.pop('gains', None)       # they are those of the other law
    parameters.write_text(yaml.safe_dump({
        'simulator': {'ros__parameters': {**setup.simulator, 'robot_description': setup.urdf, 'report_rate': 5.0}},
        'controller': {'ros__parameters': controller}}))
    with graph(logs) as (nodes, node, spin_once):
        topics = RECORDED | ({TOPICS.telemetry: Float64MultiArray} if setup.level == VALVE else {})
        recorder, plant, control = Recorder(node, topics), PlantState(node), ControlState(node)
        reference = node.create_publisher(JointTrajectory, '/controller/joint_trajectory', 1)
        for name in ('simulator', 'controller'):
            nodes.start(name, EXECUTABLES[name], '--ros-args', '--params-file', str(parameters),
                        '-r', '/simulator/joint_commands:=/controller/joint_commands')
        wait = Waiting(nodes, spin_once)
        wait.until(lambda: recorder.heard(JUDGED_TOPICS.states) and control.active, START_UP,
                   f'{NAMES[law]}: starting both nodes')
        wait.held(node, f'{NAMES[law]}: enabling')
        wait.until(lambda: control.check() and recorder.heard(TOPICS.commands, TOPICS.reference)
                   and reference.get_subscription_count() and plant.summary == RUNNING, REACTION,
                   f'{NAMES[law]}: waiting for the machine to be held')
        recorder.clear()
        reference.publish(trajectory_to_msg(waypoints))
        wait.until(lambda: control.check() and _moves(recorder.last(TOPICS.reference)), REACTION + waypoints.times[1],
                   f'{NAMES[law]}: waiting for the motion to begin')
        began = stamp_to_ns(recorder.last(TOPICS.reference).header.stamp)
        wait.through(lambda: control.check() and (stamp_to_ns(recorder.last(TOPICS.reference).header.stamp)
                                                  - began) * 1e-9, _motion_time(waypoints) + REST, NAMES[law])
        wait.until(lambda: control.check() and control.state == State.HOLD, SLOWED,
                   f'{NAMES[law]}: waiting for the motion to end')
        wait.until(lambda: recorder.heard(TOPICS.statistics), REACTION, f'{NAMES[law]}: waiting for the statistics')
        stop(nodes, logs)
    recorder.write(bag)


def _moves(reference):
    return reference is not None and any(reference.points[0].velocities)


def _motion_time(waypoints):
    """s from the first motion of any joint to the last waypoint."""
    first = np.flatnonzero(np.diff(waypoints.positions, axis=0).any(axis=1))[0]
    return float(waypoints.times[-1] - waypoints.times[first])


def _facts(setup, manipulator, output):
    """What the report says about the conditions."""
    m = manipulator
    rates = {setup.simulator['rate'], setup.controller['rate']}
    return {
        'machine': f'{setup.machine}, {m.dof} degrees of freedom, {len(m.actuators)} actuators, {m.total_mass:.2f} kg',
        'reference': f'{setup.duration:g} s, every coordinate out and back, from rest to rest on quintics',
        **_level_facts(setup),
        'rate': f'{", ".join(f"{rate:g}" for rate in sorted(rates))} Hz; the controller computes on each state message '
                '(trigger: state)',
        'processes': 'simulator and controller, each a process of its own, over DDS; model and plant are the same',
        **_computer(),
        'recordings': ', '.join(str(output / law) for law in setup.bandwidths) + ' (MCAP)',
    }


def _level_facts(setup):
    if setup.level == EFFORT:
        return {'gains': 'Kp = w^2, Kd = 2 w with ' + ', '.join(f'w = {w:g} rad/s for {NAMES[law]}'
                                                                for law, w in setup.bandwidths.items())}
    return {
        'hydraulics': setup.simulator['hydraulics'],
        'sensors': setup.simulator.get('sensors', 'exact'),
        'errors': 'of the true positions, not of what the sensors say',
    }


def _computer():
    return {
        'computer': f'{os.cpu_count()} cores, {platform.system()} {platform.release()}, '
                    f'Python {platform.python_version()}, NumPy {np.__version__}, '
                    f'{"compiled with Numba" if compiled else "without Numba"}',
        'begun': time.strftime('%Y-%m-%d %H:%M:%S %z'),
    }
