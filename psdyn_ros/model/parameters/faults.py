"""
Faults of sensors, messages and the machine, and YAML schedules of them.

    faults:
      - {kind: spike, target: telescope.position, value: [0.01, 5], start: 2, duration: 3}
      - {kind: delay, target: joint_states, value: 0.005}
      - {kind: spool_stuck, target: lift_cylinder, start: 4.5, duration: 0.2}
      - {kind: payload, target: telescope_link, value: [200, 0.25, 0, 0], start: 6}

`python3 -m psdyn_ros.model.parameters.faults` prints the table of kinds.
"""
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace

import numpy as np

from ..errors import ModelError, UnknownNameError, check_name, did_you_mean, shorten
from ..yaml_file import YamlFile, checked_length, open_declaration, plain
from .parameter_blocks import NUMBER, Parameter, checked_number

SENSOR, MESSAGE, CYLINDER, SUPPLY, OIL, PAYLOAD, MODEL = (
    'sensor', 'message', 'cylinder', 'supply', 'oil', 'payload', 'model')
WHAT = {SENSOR: 'channel of a sensor', MESSAGE: 'message', CYLINDER: 'cylinder', SUPPLY: 'supply', OIL: 'oil',
        PAYLOAD: 'link', MODEL: 'model'}
SECTION = 'faults'
MAX_TIME_S = 1e6


@dataclass(frozen=True)
class FaultKind:
    """What a kind of fault does, what it may befall, and the numbers of its value."""

    name: str
    domain: str
    description: str
    numbers: tuple = ()


def _number(name, description, low, high, default=MISSING):
    return Parameter(name, NUMBER, description, default, low, high)


def _share(what):
    return _number('share', f'of the messages that are {what}', 0.0, 1.0, 1.0)


def _factor(low, high):
    return _number('factor', 'on what is declared', low, high)


DELAY = _number('delay', 's more', 0.0, 1.0)
KINDS = (
    FaultKind('dropout', SENSOR, 'no new values come'),
    FaultKind('freeze', SENSOR, 'the value stays what it is, with fresh stamps'),
    FaultKind('nan', SENSOR, 'the value is not a number'),
    FaultKind('spike', SENSOR, 'single values are off, up or down', (
        _number('amplitude', 'unit of the channel', -1e9, 1e9),
        _number('rate', 'Hz, how often in the mean', 0.0, 1e6, 1.0))),
    FaultKind('bias', SENSOR, 'a constant is added', (_number('bias', 'unit of the channel', -1e9, 1e9),)),
    FaultKind('drift', SENSOR, 'what grows with time is added', (
        _number('slope', 'unit of the channel / s', -1e9, 1e9),)),
    FaultKind('gain', SENSOR, 'the value is scaled', (_number('factor', 'on the true value', -10.0, 10.0),)),
    FaultKind('noise', SENSOR, 'more noise', (_number('noise', 'unit of the channel, rms', 0.0, 1e9),)),
    FaultKind('delay', SENSOR, 'values come later', (DELAY,)),
    FaultKind('dropout', MESSAGE, 'messages are lost', (_share('lost'),)),
    FaultKind('delay', MESSAGE, 'messages come later, in order', (DELAY,)),
    FaultKind('out_of_order', MESSAGE, 'messages come after the next one', (_share('kept back'),)),
    FaultKind('duplicate', MESSAGE, 'messages come twice', (_share('repeated'),)),
    FaultKind('spool_stuck', CYLINDER, 'the spool stays where it is', (
        _number('stuck', '1: it is, 0: it is not', 0.0, 1.0, 1.0),)),
    FaultKind('spool_slow', CYLINDER, 'natural frequency and slew limit of the spool are scaled', (
        _factor(0.01, 1.0),)),
    FaultKind('spool_offset', CYLINDER, "the spool's zero is off", (
        _number('offset', 'share of its travel', -1.0, 1.0),)),
    FaultKind('leakage', CYLINDER, 'the piston leaks more', (_number('leakage', 'm^3/(s Pa) more', 0.0, 1e-8),)),
    FaultKind('pressure', SUPPLY, 'the pump gives another pressure', (_factor(0.0, 2.0),)),
    FaultKind('flow', SUPPLY, 'the pump gives another flow at most', (_factor(0.0, 2.0),)),
    FaultKind('margin', SUPPLY, 'load sensing keeps another margin', (_factor(0.0, 2.0),)),
    FaultKind('temperature', OIL, 'warmer or colder oil: viscosity, bulk modulus', (
        _number('temperature', 'deg C', -40.0, 120.0),)),
    FaultKind('payload', PAYLOAD, 'the link carries a mass more; it is dropped where the fault ends', (
        _number('mass', 'kg', 0.0, 1e5),
        *(_number(axis, 'm, of its centre in link axes', -1e3, 1e3, 0.0) for axis in 'xyz'))),
    FaultKind('inertia', MODEL, 'all masses and inertias of the machine are scaled', (_factor(0.1, 10.0),)),
    FaultKind('areas', MODEL, 'areas of all cylinders are scaled', (_factor(0.5, 2.0),)),
    FaultKind('valves', MODEL, 'flow gains of all valves are scaled', (_factor(0.1, 10.0),)),
    FaultKind('friction', MODEL, 'friction of all actuators is scaled', (_factor(0.0, 10.0),)),
)
NAMES = tuple(dict.fromkeys(kind.name for kind in KINDS))
START = _number('start', 's', 0.0, MAX_TIME_S, 0.0)
DURATION = _number('duration', 's; absent: until it is cleared', 0.0, MAX_TIME_S, math.inf)
KEYS = ('kind', 'target', 'value', 'start', 'duration')


@dataclass(frozen=True)
class Fault:
    """One fault.

    kind      one of NAMES
    target    what it befalls: a channel '<joint>.<quantity>', a message, a cylinder, a link, 'supply', 'oil', 'model'
    value     number, or numbers; None where the kind needs none
    start     s of simulated time, or from when it is injected
    duration  s; a fault lasts for one step at least
    where     file and line, for messages
    """

    kind: str
    target: str
    value: object = None
    start: float = 0.0
    duration: float = math.inf
    where: str = field(default='', compare=False)

    def __str__(self):
        numbers = ', '.join(f'{number:g}' for number in np.atleast_1d(self.value)) if self.value is not None else ''
        return f'{self.kind} of {self.target}' + (f' ({numbers})' if numbers else '')


def read_faults(source):
    """Return the `Fault`s of a YAML file, or of YAML text, which has more than one line.

    Targets are checked by `placed`, once the machine is known.  Raises ModelError, UnknownNameError or
    DuplicateNameError that name the file, its line and the key.
    """
    file = open_declaration('faults', source)
    return [_read(file, node) for node in file.items(file.section(SECTION), 'faults')]


def read_fault(text):
    """Return the `Fault` of the YAML text of one, such as '{kind: nan, target: telescope.position}'."""
    if not isinstance(text, str):
        raise ModelError(f'fault {text!r:.80}: expected YAML text')
    file = YamlFile('fault', shorten(text), checked_length('faults', text))
    return _read(file, file.root)


def _read(file, node):
    given = {name: plain(file.where(key), value) for name, (key, value) in file.parts(node, KEYS[:2], KEYS[2:]).items()}
    return checked_fault(Fault(**given, where=file.where(node)))


def checked_fault(fault):
    """Return the fault with its numbers as floats, its value as a tuple of them in the order of its kind, or raise."""
    where = _where(fault)
    for key in ('kind', 'target'):
        text = getattr(fault, key)
        if not isinstance(text, str) or not text:
            raise ModelError(f"{where}: '{key}' is {text!r:.80}; expected a name")
    check_name(fault.kind, NAMES, f"{where}: there is no kind of fault '{shorten(fault.kind)}'", ModelError)
    start = checked_number(START, f"{where}: 'start'", fault.start)
    lasting = isinstance(fault.duration, float) and fault.duration == math.inf
    duration = math.inf if lasting else checked_number(DURATION, f"{where}: 'duration'", fault.duration)
    kinds = [kind for kind in KINDS if kind.name == fault.kind]
    if len({kind.numbers for kind in kinds}) == 1:      # otherwise the kind depends on the target
        fault = replace(fault, value=_value(kinds[0], where, fault.value))
    return replace(fault, start=start, duration=duration)


def placed(fault, targets):
    """Return (the checked fault, its `FaultKind`) on a machine, or raise.

    targets: {domain: names of what may fail there}, of SENSOR, MESSAGE, ...
    """
    fault = checked_fault(fault)
    where = _where(fault)
    kinds = [kind for kind in KINDS if kind.name == fault.kind]
    for kind in kinds:
        if fault.target in targets.get(kind.domain, ()):
            return replace(fault, value=_value(kind, where, fault.value)), kind
    names = [name for kind in kinds for name in targets.get(kind.domain, ())]
    raise UnknownNameError(f"{where}: '{fault.kind}' of '{shorten(fault.target)}': no such "
                           f'{" or ".join(WHAT[kind.domain] for kind in kinds)}{did_you_mean(fault.target, names)}')


def _where(fault):
    return fault.where or 'fault'


def _value(kind, where, value):
    """Return the tuple of numbers of a value."""
    where = f"{where}: 'value' of '{kind.name}'"
    if value is None:
        given = []
    elif isinstance(value, (str, Mapping)) or not hasattr(value, '__len__'):
        given = [value]
    else:
        given = list(value)
    required = sum(number.required for number in kind.numbers)
    if not required <= len(given) <= len(kind.numbers):
        raise ModelError(f'{where} is {value!r:.80}; expected {_expected(kind.numbers)}')
    return tuple(checked_number(number, f"{where}: '{number.name}'", one) for number, one in zip(kind.numbers, given)
                 ) + tuple(number.default for number in kind.numbers[len(given):])


def _expected(numbers):
    if not numbers:
        return 'none'
    return ', '.join(f'{n.name} ({n.description}'
                     + (')' if n.required else f'; {n.default:g} where absent)') for n in numbers)


def tables():
    """Yield the kinds of faults as Markdown."""
    yield '| kind | target | what happens | value |'
    yield '|---|---|---|---|'
    for kind in KINDS:
        value = '; '.join(f'`{n.name}`, {n.description}, {n.low:g} to {n.high:g}'
                          + ('' if n.required else f', `{n.default:g}` where absent') for n in kind.numbers)
        yield f'| `{kind.name}` | {WHAT[kind.domain]} | {kind.description} | {value or "none"} |'


if __name__ == '__main__':
    print('\n'.join(tables()))
