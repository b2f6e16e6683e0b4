"""
What a machine's builder declares about stopping it, from YAML: timeouts, checks of the measured state, and for each
actuator its safe output, how hard it may be slowed down, and the limits of its commands.

    timeouts: {stopping: 0.02, safe: 0.1}
    stop_time: 1.0
    actuators:
      lift_cylinder:
        safe_output: {valve: neutral, effort: brake}
        deceleration: 0.5
        tracking_tolerance: 0.02
        command_rate: {valve: 50.0, effort: 5.0e6}
        acceleration: 1.0
        jerk: 20.0
        standstill_speed: 0.02

SI units.  What is mandatory has no default; where it follows from the machine, a value is recommended.  Of what is
declared by interface, that of the interface in use must be there.
`python3 -m psdyn_ros.model.parameters.safety` prints all parameters.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from ..errors import ActuationError, ModelError, ShapeError, check_name, shorten
from ..units import SECOND
from ..yaml_file import open_declaration
from .hydraulics import EFFORT, PRESSURE, VALVE, VELOCITY
from .hydraulics import MODES as INTERFACES
from .parameter_blocks import block, declared, integer, markdown, number, read_blocks, read_fields, word_or_number

MAX_TIMEOUT_S = 0.2         # hard cap of every timeout
LONGEST_STOP = 10.0         # s
RELATIVE_TOLERANCE = 1e-9   # of two declared numbers that are compared
NEUTRAL, BRAKE, GRAVITY, NUMBER = 'neutral', 'brake', 'gravity', 'number'
KINDS = (NEUTRAL, BRAKE, GRAVITY)
UNITS = {VALVE: '1', PRESSURE: 'Pa', VELOCITY: 'm/s or rad/s', EFFORT: 'N or N m'}
START_TIME = 0.3            # s from rest to the rated speed, in what is recommended
JERK_TIME = 0.05            # s from no acceleration to all of it, in what is recommended
REST_TIME = 1.0             # s from the rated speed to rest, in what is recommended
UNRATED = 0.5               # m/s^2, rad/s^2 of a stop that is recommended where there is no rated speed
TIME_SHARE = 0.7            # of the stop time that slowing down takes, in what is recommended
STANDSTILL = 0.05           # share of the rated speed at which an actuator stands still, in what is recommended
HOLDS = (VALVE, VELOCITY)   # interfaces of which zero holds the load
STICKING = 0.25             # of the tracking tolerance that a reference may go while friction holds the machine
MEANING = {'acceleration': 'what a reference may have', 'jerk': 'what a reference may have',
           'standstill_speed': 'the speed above which enabling and reset are refused'}


def _in_ns(name):
    return property(lambda self: round(getattr(self, name) * SECOND), doc=f'{name} in ns')


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """How long an input may be missing; no timeout of a real machine may be longer than 0.2 s."""

    degraded_misses: int = integer('states missed in a row before the machine runs at reduced speed', 3, low=1, high=20)
    stopping: float = number('s without a state before the machine is stopped; a period after degraded_misses at least',
                             0.020, low=0.001, high=MAX_TIMEOUT_S)
    safe: float = number('s without a state before the safe output is given at once', 0.100, low=0.002,
                         high=MAX_TIMEOUT_S)
    stream: float = number('s without a streamed point before the machine stops and holds', 0.100, low=0.002,
                           high=MAX_TIMEOUT_S)
    emergency_stop: float = number('s without a message of the emergency stop before it counts as pressed', 0.100,
                                   low=0.002, high=MAX_TIMEOUT_S)
    simulated_pause: float = number('s that simulated time may stand still before the machine stops and holds; without '
                                    'use_sim_time it has no effect', 0.2, low=0.2, high=600.0)

    stopping_ns, safe_ns, stream_ns, emergency_stop_ns, simulated_pause_ns = map(
        _in_ns, ('stopping', 'safe', 'stream', 'emergency_stop', 'simulated_pause'))

    def at_period(self, period: float) -> Timeouts:
        """Return those of a control period [s]: `stopping` comes after a period at reduced speed at least.

        Raises ModelError where that is not before `safe`.
        """
        stopping = max(self.stopping, (self.degraded_misses + 1) * period)
        if stopping >= self.safe:
            raise ModelError(f"'degraded_misses' {self.degraded_misses} at a period of {period * 1e3:.3g} ms: a stop "
                             f"comes after {stopping * 1e3:.3g} ms without a state, not before 'safe', "
                             f'{self.safe * 1e3:.3g} ms; expected fewer misses, a faster cycle or a longer timeout')
        return replace(self, stopping=stopping)


@dataclass(frozen=True, kw_only=True)
class Plausibility:
    """What a measured state, or the start of a reference, must satisfy to be believed."""

    jump_margin: float = number('m or rad beyond what the velocity limit allows between two states', 0.002, low=1e-6,
                                high=1.0)
    freeze_time: float = number('s that a position may be bit-identical while it should move', 0.1, low=0.002,
                                high=MAX_TIMEOUT_S)
    freeze_speed: float = number('m/s or rad/s of the reference above which a position should move', 0.02, low=1e-6,
                                 high=10.0)
    velocity_window: float = number('s over which positions and velocities are held against each other; velocities may '
                                    'lag by half of it', 0.05, low=0.002, high=MAX_TIMEOUT_S)
    velocity_residual: float = number('m/s or rad/s by which they may disagree, and in 20 ms of which a position may '
                                      'drift, if that is more than 1.5 steps of its encoder; a velocity steps by twice '
                                      'that at most', 0.05, low=1e-6, high=10.0)
    clock_skew: float = number('s that a stamp may lie in the future', 0.005, low=0.0, high=MAX_TIMEOUT_S)
    start_tolerance: float = number('m or rad between the measured state and the start of a reference', 0.01, low=1e-6,
                                    high=1.0)
    closure_tolerance: float = number('m by which redundant joints of a loop may disagree', 0.005, low=1e-7, high=1.0)
    pressure_step: float = number('Pa by which a pressure may change at once, beyond what oil allows', 5e5, low=1e3,
                                  high=1e8)
    flow_residual: float = number('m/s by which a rod may go otherwise than the oil of its chambers lets it', 0.012,
                                  low=1e-6, high=10.0)
    flow_share: float = number('1, share of its speed that is added before the way gone tells better', 0.2, low=0.0,
                               high=1.0)
    force_share: float = number('1, force of a piston beyond that of the model, as a share of supply pressure times '
                                'area, from which the machine runs at reduced speed; it is stopped at twice that',
                                0.25, low=0.01, high=10.0)
    momentum_residual: float = number('m/s or rad/s by which the force on an axis may change its speed in 0.1 s, '
                                      'beyond what is measured; up to twice that where velocities are noisy',
                                      0.05, low=1e-6, high=10.0)
    overspeed: float = number('1, speed of an actuator as a share of its rated one from which it is stopped', 1.2,
                              low=1.01, high=2.0)
    speed_share: float = number('1, share of its rated speed by which an actuator, or the command of its valve, may be '
                                'off the speed of its reference', 0.3, low=0.01, high=1.0)
    sigma_slow: float = number('1, distance from a singularity (normalised transmission ratio) below which the '
                               'reference is slowed down', 0.15, low=0.0, high=1.0)
    sigma_stop: float = number('1, the same below which the machine stops and holds', 0.05, low=0.0, high=1.0)

    freeze_ns, clock_skew_ns = map(_in_ns, ('freeze_time', 'clock_skew'))


def _by_interface(name, doc, declare):
    """Return a block with a field for each interface; declare: (interface, unit) -> field."""
    fields = [(interface, object, declare(interface, UNITS[interface])) for interface in INTERFACES]
    return make_dataclass(name, fields, frozen=True, kw_only=True, namespace={'__doc__': doc})


SafeOutput = _by_interface(
    'SafeOutput', 'What is sent when nothing else may be: neutral (zero, which closes a valve), brake (the actuator is '
    'left out of the messages, so that the watchdog of its receiver acts), gravity (what held the load at the last '
    'valid position), or a number.',
    lambda interface, unit: word_or_number(f'of interface {interface}: a word, or a command [{unit}]', KINDS, None,
                                           low=-1e9, high=1e9))
CommandRate = _by_interface(
    'CommandRate', 'The most that a command may change in a second; the gate clamps what is faster.',
    lambda interface, unit: number(f'{unit} per s, of interface {interface}', None, low=1e-6, high=1e12))
CommandLimit = _by_interface(
    'CommandLimit', 'The largest command; absent: fully open, the limits of the URDF, the supply pressure.',
    lambda interface, unit: number(f'{unit}, of interface {interface}', None, low=1e-6, high=1e12))


@dataclass(frozen=True, kw_only=True)
class SafeActuator:
    """One actuator; what is declared by interface is mandatory for the interface in use."""

    safe_output: SafeOutput = block(SafeOutput, 'by interface; mandatory, since no command at all may drop the load')
    deceleration: float = number('m/s^2 or rad/s^2 of a controlled stop; mandatory', None, low=1e-3, high=1e3)
    tracking_tolerance: float = number('m or rad by which it may be off its reference before it is stopped', low=1e-6,
                                       high=1.0)
    command_rate: CommandRate = block(CommandRate, 'by interface')
    command_limit: CommandLimit | None = block(CommandLimit, 'by interface', None)
    acceleration: float = number('m/s^2 or rad/s^2 that a reference may have; mandatory, at least the deceleration',
                                 None, low=1e-3, high=1e6)
    jerk: float = number('m/s^3 or rad/s^3 that a reference may have; mandatory', None, low=1e-3, high=1e9)
    standstill_speed: float = number('m/s or rad/s above which enabling and reset are refused; mandatory', None,
                                     low=1e-6, high=10.0)
    soft_margin: float = number('m or rad before the limits of the joint in which outward commands are clamped', 0.005,
                                low=0.0, high=1.0)
    swing_deviation: float = number('m or rad that active damping may take it away from its reference by, where a load '
                                    'swings; 0: it does not', 0.0, low=0.0, high=1.0)


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """At the top of the file, beside the actuators."""

    stop_time: float = number('s in which a controlled stop must be over, then the safe output is given; mandatory',
                              None, low=0.05, high=LONGEST_STOP)
    probation: float = number('s that a condition must be good before it counts as healthy', 1.0, low=0.1, high=60.0)
    timeouts: Timeouts = block(Timeouts, 'how long an input may be missing', Timeouts())
    plausibility: Plausibility = block(Plausibility, 'what a measured state must satisfy', Plausibility())


@dataclass(frozen=True, kw_only=True, eq=False)
class SafetyDeclaration:
    """All of it; arrays are (actuators,), in the order of `actuators`, and read-only."""

    actuators: tuple
    interfaces: tuple                        # of INTERFACES
    timeouts: Timeouts
    plausibility: Plausibility
    stop_time: float                    # s
    probation: float                    # s
    safe_kind: tuple                    # NEUTRAL, BRAKE, GRAVITY or NUMBER
    safe_value: np.ndarray              # unit of the interface; NaN: left out (BRAKE), or known at run time (GRAVITY)
    deceleration: np.ndarray            # m/s^2 or rad/s^2
    tracking_tolerance: np.ndarray      # m or rad
    command_rate: np.ndarray            # unit of the interface per s
    command_limit: np.ndarray           # unit of the interface
    acceleration: np.ndarray            # m/s^2 or rad/s^2
    jerk: np.ndarray                    # m/s^3 or rad/s^3
    standstill_speed: np.ndarray        # m/s or rad/s
    soft_margin: np.ndarray             # m or rad
    swing_deviation: np.ndarray         # m or rad
    where: str = field(default='')

    def __repr__(self) -> str:
        return f'<SafetyDeclaration of {", ".join(self.actuators)}: {", ".join(self.interfaces)}>'

    stop_time_ns, probation_ns = map(_in_ns, ('stop_time', 'probation'))

    def of_coordinates(self, names, values, otherwise=math.inf):
        """Return values (n,) of coordinates by name from those (actuators,); `otherwise` of those that are none."""
        of_actuators = dict(zip(self.actuators, values))
        return np.array([of_actuators.get(name, otherwise) for name in names], dtype=float)

    @property
    def by_force(self):
        """(actuators,) bool: whether commands are efforts or pressures, which only the controller holds still."""
        return np.isin(self.interfaces, (EFFORT, PRESSURE))

    @property
    def freeze_travel(self):
        """(actuators,) m, rad that a reference goes before a position that is bit-identical is a fault."""
        return STICKING * self.tracking_tolerance

    @property
    def freeze_bound(self):
        """s until a frozen position is found, at the slowest reference that is judged."""
        p = self.plausibility
        return p.freeze_time + float(self.freeze_travel.max()) / p.freeze_speed


ARRAYS = ('deceleration', 'tracking_tolerance', 'acceleration', 'jerk', 'standstill_speed', 'soft_margin',
          'swing_deviation')


def read_safety(source: str | PathLike[str], actuators: Sequence[str], interfaces: Sequence[str], limits: Any,
                supply_pressure: float | None = None) -> SafetyDeclaration:
    """Return the `SafetyDeclaration` of a YAML file, or of YAML text, which has more than one line.

    actuators: names; each must be there once.  interfaces (actuators,): of INTERFACES, what a command of each is.
    limits: `Limits` of the actuators.  supply_pressure: Pa, the limit of commands of interface 'pressure' where none is
    declared.
    Raises ModelError, UnknownNameError, DuplicateNameError or ActuationError that name the file, its line, the actuator
    and the parameter.
    """
    actuators, interfaces = tuple(actuators), tuple(interfaces)
    _check_interfaces(actuators, interfaces)
    file = open_declaration('safety', source)
    nodes = file.parts(file.root, ('actuators',), tuple(declared(Stopping)))
    key, node = nodes.pop('actuators')
    found = read_blocks(SafeActuator, file, node, 'actuator', actuators)
    missing = [name for name in actuators if name not in found]
    if missing:
        raise ActuationError(f"{file.where(key)}: nothing for {', '.join(missing)}; expected every actuator, since "
                             'safe outputs have no default')
    where = str(file)
    stopping, places = read_fields(Stopping, file, nodes.values(), where)
    for block_name, low, high in (('timeouts', 'stopping', 'safe'), ('plausibility', 'sigma_stop', 'sigma_slow')):
        _check_order(getattr(stopping, block_name), places, block_name, low, high)
    rows = [_row(found[name], name, interface, i, limits, supply_pressure)
            for i, (name, interface) in enumerate(zip(actuators, interfaces))]
    if stopping.stop_time is None:
        value = recommended_stop_time([found[name][0].deceleration for name in actuators], limits.velocity)
        raise ModelError(f"{file.where(file.root)}: 'stop_time' is missing: a controlled stop must be over by then; "
                         f'recommended, from rated speeds and decelerations: {value:.2g}')
    names = ('safe_value', 'command_rate', 'command_limit')
    arrays = {name: _frozen([row[name] for row in rows]) for name in names}
    arrays |= {name: _frozen([getattr(found[actuator][0], name) for actuator in actuators]) for name in ARRAYS}
    return SafetyDeclaration(actuators=actuators, interfaces=interfaces, **vars(stopping), where=where,
                             safe_kind=tuple(row['safe_kind'] for row in rows), **arrays)


def _check_interfaces(actuators, interfaces):
    if len(actuators) != len(interfaces):
        raise ShapeError(f'{len(interfaces)} interfaces for {len(actuators)} actuators; expected one for each of '
                         f'{", ".join(actuators)}')
    for actuator, interface in zip(actuators, interfaces):
        check_name(interface, INTERFACES, f"interface of '{actuator}': there is no '{shorten(str(interface))}'",
                   ModelError)


def _check_order(values, places, block_name, low, high):
    if getattr(values, low) >= getattr(values, high):
        place = places.get(f'{block_name}.{low}') or places.of(f'{block_name}.{high}')
        raise ModelError(f"{place}: '{low}' {getattr(values, low):g} is not below '{high}' {getattr(values, high):g}")


def _row(found, name, interface, i, limits, supply_pressure):
    """Return what the arrays of the declaration hold of one actuator."""
    actuator, places = found

    def refuse(parameter, message):
        raise ModelError(f'{places.of(parameter)}: {message}')

    for each in INTERFACES:
        safe = getattr(actuator.safe_output, each)
        reason = _unsafe(each, safe)
        if reason:
            refuse(f'safe_output.{each}', f"'safe_output' of interface {each} is {safe}: {reason}")
    for block_name in ('safe_output', 'command_rate'):
        if getattr(getattr(actuator, block_name), interface) is None:
            refuse(block_name,
                   f"'{block_name}' says nothing of interface {interface}, which is in use; it has no default")
    safe, rate = getattr(actuator.safe_output, interface), getattr(actuator.command_rate, interface)
    most = {VALVE: 1.0, VELOCITY: float(limits.velocity[i]), EFFORT: float(limits.effort[i]),
            PRESSURE: math.inf if supply_pressure is None else float(supply_pressure)}[interface]
    limit = getattr(actuator.command_limit, interface) if actuator.command_limit else None
    if limit is None and not math.isfinite(most):
        refuse('command_limit',
               f"'command_limit' of interface {interface} is missing, and nothing else limits its commands")
    limit = most if limit is None else limit
    if limit > most * (1.0 + RELATIVE_TOLERANCE):
        refuse('command_limit', f"'command_limit' of interface {interface} is {limit:g}, more than the {most:g} "
                                f'{UNITS[interface]} that the actuator has')
    if not isinstance(safe, str) and abs(safe) > limit:
        refuse(f'safe_output.{interface}', f"'safe_output' of interface {interface} is {safe:g}, beyond the limit of "
                                           f'commands, {limit:g}')
    rated = float(limits.velocity[i])
    if actuator.deceleration is None:
        value = rated / REST_TIME if 0.0 < rated < math.inf else UNRATED
        refuse('deceleration', f"'deceleration' of '{name}' is missing: that of a controlled stop; recommended, "
                               f'from its rated speed: {value:.2g}')
    for parameter, value in recommended(actuator.deceleration, rated).items():
        if getattr(actuator, parameter) is None:
            refuse(parameter, f"'{parameter}' of '{name}' is missing: {MEANING[parameter]}; recommended, from its "
                              f'rated speed and its deceleration: {value:.2g}')
    if 0.0 < rated <= actuator.standstill_speed:
        refuse('standstill_speed', f"'standstill_speed' of '{name}' is {actuator.standstill_speed:g}, not below its "
                                   f'rated speed, {rated:g}: it would never act; recommended: {STANDSTILL * rated:.2g}')
    if actuator.acceleration < actuator.deceleration:
        refuse('acceleration', f"'acceleration' {actuator.acceleration:g} is less than 'deceleration' "
                               f'{actuator.deceleration:g}, which a stop has')
    span = float(limits.upper[i]) - float(limits.lower[i])
    if 2.0 * actuator.soft_margin >= span:
        refuse('soft_margin', f"'soft_margin' {actuator.soft_margin:g} leaves nothing of the {span:g} between the "
                              f"limits of joint '{name}'")
    if 2.0 * actuator.swing_deviation >= span:
        refuse('swing_deviation', f"'swing_deviation' {actuator.swing_deviation:g} leaves nothing of the {span:g} "
                                  f"between the limits of joint '{name}'")
    if actuator.tracking_tolerance >= span:
        refuse('tracking_tolerance', f"'tracking_tolerance' {actuator.tracking_tolerance:g} is all of the {span:g} "
                                     f"between the limits of joint '{name}': it would never act")
    kind, value = (safe, 0.0 if safe == NEUTRAL else math.nan) if isinstance(safe, str) else (NUMBER, safe)
    return {'safe_kind': kind, 'safe_value': value, 'command_rate': rate, 'command_limit': limit}


def recommended(deceleration, rated_speed, possible=math.inf):
    """Return {parameter: value} of the mandatory numbers that follow from the machine's own.

    A reference gets to the rated speed within START_TIME, by an acceleration that is possible, and takes that up within
    JERK_TIME.
    """
    speed = rated_speed if 0.0 < rated_speed < math.inf else 0.0
    acceleration = max(deceleration, min(speed / START_TIME, possible))
    return {'acceleration': acceleration, 'jerk': acceleration / JERK_TIME,
            'standstill_speed': STANDSTILL * (speed or deceleration)}


def recommended_stop_time(decelerations, rated_speeds):
    """Return s in which a stop of all actuators, each (actuators,), is over with room to spare."""
    slowest = max(float(speed) / deceleration if 0.0 < speed < math.inf else 0.0
                  for speed, deceleration in zip(rated_speeds, decelerations))
    return min(max(1.0, slowest / TIME_SHARE), LONGEST_STOP)


def _unsafe(interface, safe):
    """Return why a safe output is none, or ''."""
    if interface in HOLDS and safe == GRAVITY:
        return f"no effort is commanded there; expected '{NEUTRAL}' or '{BRAKE}'"
    if interface in HOLDS and isinstance(safe, float) and safe != 0.0:
        return f"the actuator would never stop; expected '{NEUTRAL}' or '{BRAKE}'"
    if interface not in HOLDS and safe == NEUTRAL:
        return f"without force the load would drop; expected '{BRAKE}', '{GRAVITY}' or a number that holds it"
    return ''


def _frozen(values):
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def tables():
    """Yield all parameters as Markdown."""
    yield from markdown('at the top', Stopping)
    yield from markdown('actuators: ACTUATOR', SafeActuator)


if __name__ == '__main__':
    print('\n'.join(tables()))
