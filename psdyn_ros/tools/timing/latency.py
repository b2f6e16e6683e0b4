"""`psdyn latency`: how punctual and how quick our control cycle is, beside loops that do nothing, in the same minutes.

A loop that only sleeps, a loop that echoes messages, and the controller of the crane on its valves, each a process of
its own with the same executor, real-time conditions and messages, take turns of two seconds, round after round. What
they record is merged; `latency_report` judges and shows it. C's `cyclictest` takes turns too, where it is installed.
"""

import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from ...api.load import load
from ...control.reference.trajectory import Waypoints
from ...control.safety.fault_table import State
from ...model.errors import ModelError, PsdynError
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import read_hydraulics
from ...model.units import SECOND
from ...nodes.controller.cycle_statistics import CycleRecords
from ...nodes.messages.conversions import trajectory_to_msg
from ...nodes.runtime.realtime import ENFORCE, OFF, PRIORITY, TRY, achieve, check
from ..demo.session import graph, terminable
from . import report as latency_report
from .conditions import Meanwhile, conditions
from .cyclictest import Cyclictest
from .flood import RATES as FLOODS
from .flood import READY
from .source import Source, standing

MACHINE = 'hiab_xs031'
NULL, ECHO, CONTROLLER = KINDS = 'null', 'echo', 'controller'
RATES = (500.0, 1000.0)
TIMER, STATE = TRIGGERS = 'timer', 'state'
SLICE = 2.0             # s of a turn
WARM_UP = 0.3           # s of it before, that do not count
START_UP = 300.0        # s for a process to answer that still configures itself; a first run compiles
PATIENCE = 60.0         # s for a service to answer
WAIT = 0.02             # s that nothing may come while no loop is served
DURATION = 60.0         # s of the motion to where the machine is
TRY_AGAIN = 0.1         # s between two looks at whether the controller follows
ASK_AGAIN = 3.0        # s that it may take to check the trajectory


class LatencyError(PsdynError):
    """The loops could not be measured."""


class Subject(NamedTuple):
    """A loop under measurement."""

    kind: str
    rate: float
    trigger: str

    @property
    def name(self):
        """Of its node."""
        return f'{self.kind}_{self.rate:g}_{self.trigger}'.replace('.', '_')


def subjects(rates, triggers):
    """Every loop of a run: null loops have timers only."""
    return [Subject(kind, rate, trigger) for rate in rates for trigger in triggers for kind in KINDS
            if kind != NULL or trigger == TIMER]


class Result(NamedTuple):
    """What was measured of one loop.

    records   `CycleRecords` of all its turns
    source    those of the process that sends it states
    sent      messages with states
    received  messages with commands
    report    real-time conditions it achieved, as dictionaries
    """

    records: CycleRecords
    source: CycleRecords
    sent: int = 0
    received: int = 0
    report: tuple = ()


class Bench:
    """The processes of a run, and turns on them.

    folder   of their parameters and logs
    options  seconds, rates, triggers, realtime, priority, cpus
    """

    def __init__(self, folder, options, nodes, node, spin_once):
        self._folder, self._options, self._nodes = folder, options, nodes
        self._node, self._spin_once = node, spin_once
        manipulator = load(MACHINE)
        hydraulics = read_hydraulics(find_config(f'{MACHINE}_hydraulics.yaml'), manipulator.actuators)
        self._machine = standing(manipulator, hydraulics)
        self._trajectory = trajectory_to_msg(
            Waypoints(manipulator.coordinates, [DURATION], [manipulator.initial_position]))
        self._subjects = subjects(options.rates, options.triggers)
        self._sources, self._clients, self._floods, self.results = {}, {}, {}, {}
        for subject in self._subjects:
            self._start(subject)

    def _start(self, subject):
        machine, name = self._machine.manipulator, subject.name
        parameters = {'rate': subject.rate, 'trigger': subject.trigger, 'realtime': self._options.realtime,
                      'priority': self._options.priority, 'cpus': self._options.cpus}
        if subject.kind == CONTROLLER:
            parameters |= {
                'robot_description': find_machine(MACHINE), 'law': 'valve_computed_torque',
                'hydraulics': find_config(f'{MACHINE}_hydraulics.yaml'),
                'safety': find_config(f'{MACHINE}_safety.yaml'), 'autostart': True,
                'pressure_topic': f'/{name}/pressures'}
        else:
            parameters |= {'slice': SLICE, 'actuators': ', '.join(machine.actuators)}
        file = self._folder / f'{name}.yaml'
        file.write_text(json.dumps({name: {'ros__parameters': parameters}}))
        self._nodes.start(name, 'psdyn_ros.tools.timing.loops', subject.kind, '--ros-args', '--params-file', str(file),
                          '-r', f'__node:={name}', '-r', f'joint_states:=/{name}/joint_states',
                          '-r', f'/diagnostics:=/{name}/diagnostics')
        period = round(SECOND / subject.rate)
        self.results[subject] = Result(CycleRecords(period), CycleRecords(period))
        if subject.kind != NULL:
            self._sources[subject] = Source(self._node, name, self._machine, subject.rate)
        if subject.kind == CONTROLLER:
            self._clients[subject, 'trajectory'] = self._node.create_publisher(
                JointTrajectory, f'/{name}/joint_trajectory', 1)
            self._clients[subject, 'enable'] = self._node.create_client(SetBool, f'/{name}/enable')
            self._clients[subject, 'reset'] = self._node.create_client(Trigger, f'/{name}/reset')
        for service in ('run', 'record'):
            self._clients[subject, service] = self._node.create_client(SetBool, f'/{name}/{service}')

    def ready(self):
        """Wait until every process answers."""
        waiting = [client for (_, what), client in self._clients.items() if what in ('run', 'record')]
        self._until(lambda: all(client.service_is_ready() for client in waiting), START_UP, 'the loops to be there')
        if self._options.flood:
            for subject in self._sources:
                log = f'flood_of_{subject.name}'
                self._floods[subject] = self._nodes.start(log, 'psdyn_ros.tools.timing.flood', self._options.flood,
                                                          subject.name, str(SLICE))
                self._until(lambda log=log: READY in self._nodes.log(log).read_text(), PATIENCE, f'{log} to begin')

    def turn(self, subject):
        """Let one loop work and record for a slice."""
        source = self._sources.get(subject)
        if source is None:
            self._call(subject, 'record', True)
            self._call(subject, 'run', True)
            self._through(SLICE)
        else:
            source.loop.restart()
            self._call(subject, 'run', True, source)
            if subject.kind == CONTROLLER:
                self._set_in_motion(subject, source)
            self._through(WARM_UP, source)
            self._call(subject, 'record', True, source)
            source.loop.records = CycleRecords(source.loop.period)
            sent, received = source.sent, source.received
            if subject in self._floods:
                self._floods[subject].send_signal(signal.SIGUSR1)
            self._through(SLICE, source)
        recorded = json.loads(self._call(subject, 'record', False, source).message)
        result = self.results[subject]
        result.records.merge(recorded)
        if source is not None:
            result.source.merge(source.loop.records.as_dict())
            result = result._replace(sent=result.sent + source.sent - sent,
                                     received=result.received + source.received - received)
        self._call(subject, 'run', False, source)
        self.results[subject] = result._replace(report=recorded['measures'])

    def _set_in_motion(self, subject, source):
        """Let the controller follow a trajectory to where it is; whatever its sub-state is, it gets what leads on."""
        source.forget_state()
        deadline, asked = time.monotonic() + START_UP, 0.0
        while (state := source.state) is not State.RUN:
            if state is State.SAFE:
                self._call(subject, 'reset', None, source)
            elif state is State.STANDBY:
                self._call(subject, 'enable', True, source)
            elif state is State.HOLD and time.monotonic() - asked > ASK_AGAIN:
                asked = time.monotonic()
                self._clients[subject, 'trajectory'].publish(self._trajectory)
            self._through(TRY_AGAIN, source)
            if time.monotonic() > deadline:
                raise LatencyError(f'{subject.name} does not follow: {"inactive" if state is None else state.name}; '
                                   f'{self._last_words(subject.name)}')

    def _call(self, subject, service, value, source=None):
        """The response of a service of a loop, that gets its states meanwhile."""
        request = Trigger.Request() if value is None else SetBool.Request(data=value)
        future = self._clients[subject, service].call_async(request)
        patience = START_UP if service == 'run' else PATIENCE
        self._until(future.done, patience, f'{subject.name} to answer {service}', source)
        return future.result()

    def _through(self, seconds, source=None):
        end = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= end, seconds + PATIENCE, '', source)

    def _until(self, condition, seconds, what, source=None):
        deadline = time.monotonic() + seconds
        turn = (lambda: WAIT) if source is None else source.loop.turn
        while not condition():
            self._spin_once(timeout_sec=turn())
            if ended := self._nodes.ended():
                raise LatencyError(f'{ended[0]} ended by itself: {self._last_words(ended[0])}')
            if time.monotonic() > deadline:
                raise LatencyError(f'waited {seconds:g} s for {what}; what it said is in {self._folder}')

    def _last_words(self, name):
        return ' / '.join(self._nodes.log(name).read_text(errors='replace').splitlines()[-5:])


class Options(NamedTuple):
    """Of a run.

    seconds   in all
    rates     Hz
    realtime, priority, cpus  real-time conditions that every process asks for
    load      busy processes beside
    flood     what every loop but `null` is flooded with while it is measured, a key of `flood.RATES`; empty: nothing
    """

    seconds: float = 60.0
    rates: tuple = RATES
    triggers: tuple = (TIMER,)
    realtime: str = TRY
    priority: int = PRIORITY
    cpus: str = ''
    load: int = 0
    flood: str = ''


def measure(options, folder, say=print):
    """({(kind, rate, trigger): Result}, {condition: text}) of a run; the logs of its processes come into the folder."""
    natives = [Cyclictest(rate, options.priority if options.realtime != OFF else 0) for rate in options.rates]
    with terminable(), graph(folder) as (nodes, node, spin_once):
        say('starting the loops ...')
        bench = Bench(folder, options, nodes, node, spin_once)
        bench.ready()
        achieve(TRY if options.realtime == ENFORCE else options.realtime, options.priority)
        order = list(bench.results)
        rounds = max(1, round(options.seconds / (SLICE * len(order))))
        say(f'{rounds} rounds of {len(order)} loops, {SLICE:g} s each ...')
        for number in range(options.load):
            nodes.start(f'load_{number}', 'psdyn_ros.tools.timing.loops', 'burn')
        meanwhile = Meanwhile()
        for turn in range(rounds):
            for subject in order[turn % len(order):] + order[:turn % len(order)]:
                bench.turn(subject)
            for native in natives:
                native.turn(SLICE)
        facts = conditions() | meanwhile.report() | _facts(bench.results, natives, rounds) | {
            'load beside': f'{options.load} busy processes' if options.load else 'none of ours'}
        if options.flood:
            facts['flood'] = f'{options.flood}, {FLOODS[options.flood]:g} Hz asked for'
    return {tuple(subject): result for subject, result in bench.results.items()}, facts


def _facts(results, natives, rounds):
    facts = {'turns': f'{rounds} of {SLICE:g} s for each loop'}
    for kind in KINDS:
        for measure in next((result.report for subject, result in results.items() if subject.kind == kind), ()):
            if kind == CONTROLLER or not measure['achieved']:
                facts[f'{kind}: {measure["name"]}'] = ('yes, ' if measure['achieved'] else 'NO, ') + measure['detail']
    for native in natives:
        facts[f'cyclictest at {native.rate:g} Hz'] = native.reason or (
            f'{native.cycles} cycles, late by {1e6 * native.mean:.0f} µs in the mean, {1e6 * native.greatest:.0f} µs '
            'at most')
    sources = [result.source for subject, result in results.items() if subject.kind != NULL]
    late = max((source.histograms['lateness'].percentiles(99.9)[0] for source in sources), default=0.0)
    facts['states sent'] = (f'late by {1e6 * late:.0f} µs at p99.9 at most, '
                            f'{sum(source.missed for source in sources)} not sent')
    return facts


def run(options, json_path=None, picture_path=None, report_path=None):
    """Measure, print the table and write what is asked for; 1 when a requirement is missed."""
    for path in filter(None, (json_path, picture_path, report_path)):
        if not Path(path).resolve().parent.is_dir():
            raise ModelError(f"'{path}': no such folder")
    check(options.realtime, options.priority, options.cpus)
    folder = Path(tempfile.mkdtemp(prefix='psdyn_latency_'))
    results, facts = measure(options, folder)
    shutil.rmtree(folder)
    checks = list(latency_report.verdict(results))
    print('\n' + latency_report.as_terminal(results, facts, checks))
    if picture_path:
        latency_report.picture(results).savefig(picture_path)
    if json_path:
        Path(json_path).write_text(json.dumps(latency_report.as_json(results, facts, checks), indent=1) + '\n')
    if report_path:
        beside = os.path.relpath(picture_path, Path(report_path).parent) if picture_path else ''
        Path(report_path).write_text(latency_report.as_markdown(results, facts, checks, beside))
    return int(not all(check.passed for check in checks))
