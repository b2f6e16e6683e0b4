"""What others on the graph may do to a controller while it moves a machine: other publishers, floods, parameters, the
clock."""

import math
import signal
import sys
import time
from typing import NamedTuple

import numpy as np
import rclpy
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

from ....control.safety.fault_table import CONDITIONS, State
from ....model.units import SECOND
from ....nodes.messages.conversions import ns_to_stamp
from ....nodes.runtime.qos import LATCHED
from ...timing.flood import RATES, READY, Flood
from ...timing.report import missed_slots
from .bench import COMMANDS, WireError

MOTION = 8.0            # s, longer than any attack
LASTS = 2.0             # s of an attack
STORM = 0.01            # s between two sets of parameters
REPORTED = 2.0          # s within which a node says again how many slots it missed
ECHO = 'echo'
# s until a conflicting publisher is found and diagnostics say so: a poll a second, 0.2 s of diagnostics; discovery
FOUND = 1.0 + 0.2 + 0.5
NOT_STOPPED = f'the controller did not find it and stop within {FOUND:g} s'
TRIES = 5
NAN = math.nan
GOING_ON = {State.RUN, State.DEGRADED, State.HOLD}


class Attack(NamedTuple):
    """What came of one."""

    what: str
    trials: int      # messages, sets, or jumps
    states: tuple      # names of the states that the controller was in meanwhile
    seconds: float | None      # until the reaction; None: none was due, or it did not come
    bound: float | None
    missed: int      # slots without a cycle, as the controller counts them
    problem: str      # '' where it went as it must
    shares: tuple | None = None
    """Of the slots that were missed: by it right before and under the attack, and so by a bare echo loop under the same
    right after; None: nobody looked."""
    row: str = ''      # number of the fault
    counted: str = ''      # condition of the fault table that the controller counted meanwhile


class Slots(NamedTuple):
    """What became of the slots of a loop: cycles, or missed ones, which come in stalls."""

    cycles: int
    missed: int
    stalls: int

    def since(self, before):
        """What came after those."""
        return Slots(*(now - then for now, then in zip(self, before)))

    @property
    def share(self):
        """Of all slots those that were missed."""
        return self.missed / max(self.cycles + self.missed, 1)


class CommandWatch:
    """Every command on the wire: finite and in range."""

    def __init__(self, bench):
        limits = dict(zip(bench.machine.actuators, bench.machine.limits.effort))
        self._limits, self.messages, self.unsafe = limits, 0, []
        bench.node.create_subscription(JointState, COMMANDS, self._look, 10)
        self.paused = False         # while we publish there ourselves

    def _look(self, msg):
        if self.paused:
            return
        self.messages += 1
        for values, limit in ((msg.position, lambda name: 1.0), (msg.effort, self._limits.get)):
            for name, value in zip(msg.name, values):
                # NaN says that the other field is meant
                if math.isinf(value) or abs(value) > limit(name) * (1.0 + 1e-9):
                    self.unsafe.append(f'{name}: {value}')


# (condition that the controller has to count, function, whether it is counted), of the first ones and on the clock
ATTACKS, CLOCK_ATTACKS = [], []


def attack(condition, among=ATTACKS, counted=True):
    """Register a function as an attack of this condition of the fault table."""
    def register(function):
        among.append((condition, function, counted))
        return function
    return register


def run(bench, watch, rng, progress=lambda text: None):
    """Yield an `Attack` for each on a `WireBench`."""
    # commands that nobody receives would cost it nothing
    bench.node.create_subscription(JointState, f'/{ECHO}/joint_commands', lambda msg: None, 10)
    bench.nodes.start(ECHO, 'psdyn_ros.tools.fault_campaign.over_dds.flooded_echo', '--ros-args', '-r',
                      f'__node:={ECHO}', '-p', 'trigger:=state')
    bench.until(lambda: f'{ECHO}: control' in bench.reports, 60.0, f'{ECHO} to come up')
    yield from _run(ATTACKS, bench, watch, rng, progress)


def run_clock(bench, watch, rng, progress=lambda text: None):
    """Yield an `Attack` for each on the clock; the simulator makes simulated time, the controller runs on it."""
    yield from _run(CLOCK_ATTACKS, bench, watch, rng, progress, '-p', 'use_sim_time:=true')


def _run(attacks, bench, watch, rng, progress, *arguments):
    for condition, act, due in attacks:
        progress(act.__name__.strip('_').replace('_', ' '))
        controller = _moving(bench, rng, *arguments)
        try:
            before = _count(bench, controller, condition)
            found = act(bench, watch, controller, rng)
            _wait_for_report(bench, controller.name)
            counted = _count(bench, controller, condition) > before
            problem = found.problem or ('' if counted is due else f'{condition}: counted is {counted}, expected {due}')
            yield found._replace(row=CONDITIONS[condition].id, problem=problem, counted=condition if counted else '')
        finally:
            controller.end()


def _moving(bench, rng, *arguments):
    """A controller that moves the machine; one that a stall of the computer stops before is replaced."""
    for _ in range(TRIES - 1):
        controller = bench.start_controller(*arguments)
        try:
            return _brought_to_move(bench, controller, rng)
        except WireError:
            bench.abandoned += 1
            controller.end()
    return _brought_to_move(bench, bench.start_controller(*arguments), rng)


def _brought_to_move(bench, controller, rng):
    bench.until(lambda: controller.is_up, 60.0, f'{controller.name} to come up')
    controller.configure()
    controller.activate()
    controller.enable()
    controller.follow(bench.motion(rng, MOTION))
    bench.until(lambda: not bench.safe.any(), 10.0, 'the receiver to obey')
    bench.through(0.5)
    if controller.state not in GOING_ON:
        raise WireError(f'{controller.name} stopped by itself:\n{bench.said(controller.name)}')
    controller.states.clear()
    return controller


def _missed(bench, name):
    """Slots without a cycle so far, as the node says in diagnostics."""
    return _slots(bench, name).missed


def _wait_for_report(bench, name):
    """Wait for the next diagnostics of a node."""
    bench.reports.pop(f'{name}: control', None)
    bench.within(lambda: f'{name}: control' in bench.reports, REPORTED)


def _slots(bench, name):
    """`Slots` so far."""
    _wait_for_report(bench, name)
    found = _figures(bench, name)
    return Slots(*(int(found.get(key, 0)) for key in ('cycles', 'missed slots', 'stalls')))


def _figures(bench, name):
    """{what: figure} of the node in the last diagnostics."""
    status = bench.reports.get(f'{name}: control')
    return {pair.key: pair.value for pair in status.values} if status else {}


def _count(bench, controller, condition):
    """How often the controller has reported a condition, as it says in diagnostics."""
    return int(_figures(bench, controller.name).get(f'count: {condition}', 0))


def _names(controller):
    return tuple(sorted(state.name for state in controller.states))


def _going_on(controller, what):
    if controller.process.poll() is not None:
        return f'the process ended under {what}'
    stopped = controller.states - GOING_ON
    return f'{", ".join(state.name for state in stopped)} under {what}' if stopped else ''


def _storm(machine, rng):
    """A set of parameters that must be refused, or that changes nothing."""
    gain = f'gains.{machine.actuators[1]}.stiffness'
    double, text, truth = ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_STRING, ParameterType.PARAMETER_BOOL
    return (
        (gain, ParameterValue(type=double, double_value=float(rng.choice([NAN, math.inf, -1.0, 1e300])))),
        (gain, ParameterValue(type=text, string_value='stiff')),
        ('rate', ParameterValue(type=double, double_value=float(rng.choice([NAN, 100.0, -1.0])))),
        ('safety', ParameterValue(type=text, string_value='/dev/null')),
        ('use_sim_time', ParameterValue(type=truth, bool_value=True)),
        ('emergency_stop', ParameterValue(type=text, string_value='none')),
        ('no_such_parameter', ParameterValue(type=double, double_value=1.0)),
    )


@attack('parameter_rejected')
def _parameter_storm(bench, watch, controller, rng):
    client = bench.node.create_client(SetParameters, f'/{controller.name}/set_parameters')
    bench.until(client.service_is_ready, 10.0, 'parameter services')
    before, sent, futures = _missed(bench, controller.name), 0, []
    end = time.monotonic() + LASTS
    while time.monotonic() < end:
        choices = _storm(bench.machine, rng)
        name, value = choices[rng.integers(len(choices))]
        futures.append(client.call_async(SetParameters.Request(parameters=[Parameter(name=name, value=value)])))
        sent += 1
        bench.through(STORM)
    bench.within(lambda: all(future.done() for future in futures), 5.0)
    accepted = sum(result.successful for future in futures if future.done() for result in future.result().results)
    bench.through(0.3)
    bench.node.destroy_client(client)
    problem = _going_on(controller, 'a parameter storm') or (f'{accepted} sets were accepted' if accepted else '')
    return Attack(f'sets of bad parameters at {1 / STORM:.0f} Hz', sent, _names(controller), None, None,
                  _missed(bench, controller.name) - before, problem)


@attack('clock_parameter')
def _clock_parameter(bench, watch, controller, rng):
    client = bench.node.create_client(SetParameters, f'/{controller.name}/set_parameters')
    truth = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=True)
    request = SetParameters.Request(parameters=[Parameter(name='use_sim_time', value=truth)])
    attack = _passed_over(bench, controller, 'clock_parameter', 'use_sim_time set by parameter',
                          lambda: bench.ask(client, request))
    bench.node.destroy_client(client)
    return attack


@attack('description_changed')
def _another_description(bench, watch, controller, rng):
    publisher = bench.node.create_publisher(String, '/robot_description', LATCHED)
    attack = _passed_over(bench, controller, 'description_changed', 'another robot_description, latched',
                          lambda: publisher.publish(String(data='<robot name="another"/>')))
    bench.node.destroy_publisher(publisher)
    return attack


def _passed_over(bench, controller, condition, what, act):
    """What the controller counts in diagnostics, and changes nothing."""
    before, began = _missed(bench, controller.name), time.monotonic()
    act()
    counted = bench.within(lambda: _count(bench, controller, condition), REPORTED)
    reaction = time.monotonic() - began
    bench.through(0.5)
    return Attack(what, 1, _names(controller), reaction if counted else None, REPORTED,
                  _missed(bench, controller.name) - before, _going_on(controller, what))


def _flooded(bench, controller, what, kind):
    """A flood from a process of its own, of the controller and then of a bare echo loop."""
    controller.states.clear()
    sent, *ours = _under_flood(bench, controller.name, kind)
    states = _names(controller)
    # it may stop the machine, by its timeouts, but never end or give bad commands
    problem = f'the process ended under {what}' if controller.process.poll() is not None else ''
    _, *echo = _under_flood(bench, ECHO, kind)
    check = missed_slots(ours[1], echo[1])
    if not problem and min(ours[1].cycles, echo[1].cycles) <= 0:
        problem = f'cycles of the controller or the echo were not reported under {what}'
    elif not problem and not check.passed:
        problem = f'{check.what}: {check.measured}; required: {check.required}'
    return Attack(what, sent, states, None, None, ours[1].missed, problem,
                  tuple(slots.share for slots in (*ours, *echo)))


def _under_flood(bench, name, kind):
    """(messages sent, `Slots` of the node of this name right before it, and meanwhile)."""
    before = _slots(bench, name)
    bench.through(LASTS)
    quiet = _slots(bench, name).since(before)
    log = f'flood_{kind}_{name}'
    flood = bench.nodes.start(log, 'psdyn_ros.tools.fault_campaign.over_dds.attacks', kind, name, str(LASTS))
    bench.within(lambda: READY in bench.said(log) or flood.poll() is not None, 30.0)    # its start is no flood
    before = _slots(bench, name)
    if flood.poll() is None:
        flood.send_signal(signal.SIGUSR1)
    bench.within(lambda: flood.poll() is not None, 30.0)
    if flood.poll() is None:
        flood.kill()
        flood.wait()
    sent = bench.said(log).split()
    return (int(sent[-1]) if sent and sent[-1].isdigit() else 0, quiet, _slots(bench, name).since(before))


@attack('flood')
def _small_flood(bench, watch, controller, rng):
    return _flooded(bench, controller, f'small messages, {RATES["small"]:.0f} Hz asked for', 'small')


@attack('flood')
def _large_flood(bench, watch, controller, rng):
    return _flooded(bench, controller, f'messages of 1 MiB, {RATES["large"]:.0f} Hz asked for', 'large')


@attack('flood', counted=False)
def _wrong_types(bench, watch, controller, rng):
    """Nothing of another type is delivered, so that there is nothing to count."""
    return _flooded(bench, controller, f'another message type on its topic, {RATES["wrong"]:.0f} Hz', 'wrong')


@attack('conflicting_states')
def _conflicting_states(bench, watch, controller, rng):
    """A second source of states, that says something else: the controller stops."""
    before, m = _missed(bench, controller.name), bench.machine
    names, position, _, _ = m.joint_state(m.initial_position)
    nothing = [0.0] * len(names)
    publisher, sent, reaction = _publish_beside(bench, controller, 'conflicting_states', '/joint_states', dict(
        name=list(names), position=position.tolist(), velocity=nothing, effort=nothing))
    bench.node.destroy_publisher(publisher)
    problem = NOT_STOPPED if reaction is None else ''
    if controller.process.poll() is not None:
        problem = 'the process ended under a conflicting publisher of states'
    return Attack('a second publisher of states, 100 Hz', sent, _names(controller), reaction, FOUND,
                  _missed(bench, controller.name) - before, problem)


@attack('conflicting_commands')
def _conflicting_commands(bench, watch, controller, rng):
    """A second publisher of commands: the controller stops, the receiver refuses both."""
    watch.paused = True
    publisher, sent, reaction = _publish_beside(bench, controller, 'conflicting_commands', COMMANDS, dict(
        name=list(bench.machine.actuators), position=[NAN, 1.0, 1.0, 1.0], effort=[0.0, NAN, NAN, NAN]))
    refused = bench.within(lambda: bench.safe.all(), 3.0)
    bench.node.destroy_publisher(publisher)
    watch.paused = False
    problem = NOT_STOPPED if reaction is None else '' if refused else 'the receiver still obeys'
    return Attack('a second publisher of commands, 100 Hz', sent, _names(controller), reaction, FOUND,
                  0, problem)


def _stopped(bench, controller, condition):
    """Whether the controller stops, and has counted this condition: a busy computer may stop it before."""
    return controller.state in (State.STOPPING, State.SAFE) and _count(bench, controller, condition) > 0


def _publish_beside(bench, controller, condition, topic, values):
    """Publish a JointState at 100 Hz until the controller stops; return (publisher, messages, s until then or None)."""
    publisher, sent, began = bench.node.create_publisher(JointState, topic, 1), 0, time.monotonic()
    while time.monotonic() - began < FOUND:
        msg = JointState(**values)
        ns_to_stamp(time.time_ns(), msg.header.stamp)
        publisher.publish(msg)
        sent += 1
        bench.through(0.01)
        if _stopped(bench, controller, condition):
            return publisher, sent, time.monotonic() - began
    return publisher, sent, None


@attack('clock_paused', CLOCK_ATTACKS)
def _pause(bench, watch, controller, rng):
    client = bench.node.create_client(SetBool, '/simulator/pause')
    bench.ask(client, SetBool.Request(data=True))
    began = time.monotonic()
    held = bench.within(lambda: controller.state == State.HOLD, 2.0)
    reaction = time.monotonic() - began
    before = bench.position.copy()
    bench.ask(client, SetBool.Request(data=False))
    bench.through(0.7)
    bench.node.destroy_client(client)
    problem = '' if held else f'{_names(controller)} while simulated time stands still'
    stopped = controller.states & {State.STOPPING, State.SAFE}
    if stopped:
        problem = problem or f'{_names(controller)} after the pause, {np.abs(bench.position - before).max():.3g} away'
    return Attack('simulated time paused', 1, _names(controller), reaction if held else None, 0.5, 0, problem)


@attack('clock_reset', CLOCK_ATTACKS)
def _backwards(bench, watch, controller, rng):
    """Somebody else publishes a clock that is a second behind."""
    publisher = bench.node.create_publisher(Clock, '/clock', 10)
    bench.through(0.3)
    began, msg = time.monotonic(), Clock()
    ns_to_stamp(max(0, bench.truth_stamp - SECOND), msg.clock)

    def stopped_by_then():
        publisher.publish(msg)      # the simulator goes on telling the time in between
        return _stopped(bench, controller, 'clock_reset')
    stopped = bench.within(stopped_by_then, 2.0)
    reaction = time.monotonic() - began
    safe = bench.within(lambda: controller.state == State.SAFE, 3.0)
    bench.node.destroy_publisher(publisher)
    problem = '' if stopped and safe else f'{_names(controller)} after simulated time went back'
    return Attack('simulated time went back by 1 s', 1, _names(controller), reaction if stopped else None, 0.5,
                  0, problem)


def flood(kind, name, seconds):
    """Publish on topics of a controller as fast as asked for, on SIGUSR1; print how many messages that were."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1,))
    rclpy.init()
    node = rclpy.create_node('flood')
    burst = Flood(node, kind, name).burst
    print(READY, flush=True)
    signal.sigwait((signal.SIGUSR1,))
    print(burst(seconds))
    node.destroy_node()
    rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(flood(sys.argv[1], sys.argv[2], float(sys.argv[3])))
