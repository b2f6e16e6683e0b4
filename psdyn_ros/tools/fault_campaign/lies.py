"""Sensors that lie and laws that fail: the motion is the verdict, whatever the controller makes of them."""

from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ...control.safety.fault_table import State
from ...model.units import BAR
from .bench import INTERFACE
from .injections import INJECTIONS

ENCODER_DRIFT = 0.04        # m/s or rad/s
PRESSURE_DRIFT = 20.0 * BAR     # Pa/s
STEPS = 0.005, 0.015, 0.05      # m or rad
SCALES = 0.9, 1.1           # of the motion since the fault
DELAY = 0.05                # s by which a law is late
GROWTH = 0.2                # of the command limit per second
VALVE = 'valve',
LEVELS = 'effort', *VALVE


@dataclass(frozen=True)
class Lie:
    """As an `Injection`, in every state; `group` is what lies."""

    group: str
    name: str
    bring: object
    levels: tuple = LEVELS
    states: tuple = tuple(State)
    amend: object = None
    options: dict = field(default_factory=dict)
    sound: object = None


LIES = []


def _lies(group, name, hook, make, levels=LEVELS, once=(False,)):
    """Register a lie, once and lasting as `once` says.

    hook  of the bench, that spoils
    make  function of (bench, value) -> function of (value, s since then) -> value; called with the first one
    """
    for one in once:
        def bring(bench, one=one):
            begun = []

            def spoil(value):
                if not begun:
                    begun.extend((make(bench, value), bench.now))
                elif one:
                    return value
                return begun[0](value, 1e-9 * (bench.now - begun[1]))
            with bench.spoilt(**{hook: spoil}):
                yield
        LIES.append(Lie(group, name + ', once' * one, contextmanager(bring), levels))


# pressures: what is handed over is ((cylinders, 2), supply)


def _one_pressure(change):
    """Lie of one chamber; change: function of (value, s since then, first value) -> value."""
    def make(bench, first):
        at = int(bench.fault_rng.integers(first[0].size))

        def spoil(pressures, since):
            values = np.array(pressures[0])
            values.flat[at] = change(values.flat[at], since, first[0].flat[at])
            return values, pressures[1]
        return spoil
    return make


def _all_pressures(change):
    """Lie of all chambers; change: function of the values."""
    return lambda bench, first: lambda pressures, since: (change(np.array(pressures[0])), pressures[1])


def _supply(change):
    """Lie of the supply; change: function of (value, s since then, first value) -> value."""
    return lambda bench, first: lambda pressures, since: (pressures[0], change(pressures[1], since, first[1]))


BOTH = False, True
SLOWLY_WRONG = {'stuck': lambda value, since, first: first,
                'rising': lambda value, since, first: value + PRESSURE_DRIFT * since,
                'falling': lambda value, since, first: value - PRESSURE_DRIFT * since}
for _name, _change in {
        '-250 bar': lambda value, since, first: -250.0 * BAR, '600 bar': lambda value, since, first: 600.0 * BAR,
        '20 bar more': lambda value, since, first: value + 20.0 * BAR,
        '60 bar more': lambda value, since, first: value + 60.0 * BAR,
        '20 bar less': lambda value, since, first: value - 20.0 * BAR,
        '60 bar less': lambda value, since, first: value - 60.0 * BAR,
        'zero': lambda value, since, first: 0.0, 'half': lambda value, since, first: 0.5 * value,
        'half as much again': lambda value, since, first: 1.5 * value,
        'in bar': lambda value, since, first: value / BAR}.items():
    _lies('pressures', f'a pressure {_name}', 'spoil_pressures', _one_pressure(_change), VALVE, BOTH)
for _name, _change in SLOWLY_WRONG.items():
    _lies('pressures', f'a pressure {_name}', 'spoil_pressures', _one_pressure(_change), VALVE)
for _name, _change in {'chambers swapped': lambda values: values[:, ::-1].copy(),
                       'cylinders swapped': lambda values: values[::-1].copy(),
                       'pressures in bar': lambda values: values / BAR}.items():
    _lies('pressures', _name, 'spoil_pressures', _all_pressures(_change), VALVE, BOTH)
for _name, _change in {
        'zero': lambda value, since, first: 0.0, 'half': lambda value, since, first: 0.5 * value,
        '20 bar more': lambda value, since, first: value + 20.0 * BAR}.items():
    _lies('supply', f'the supply {_name}', 'spoil_pressures', _supply(_change), VALVE, BOTH)
for _name, _change in SLOWLY_WRONG.items():
    _lies('supply', f'the supply {_name}', 'spoil_pressures', _supply(_change), VALVE)


# encoders: what is handed over is a `MeasuredState`


def _one_encoder(change):
    """Lie of one axis; change: function of (x, xd, s since then, first x, +-1) -> x, xd."""
    def make(bench, first):
        i, sign = int(bench.fault_rng.integers(first.x.size)), bench.fault_rng.choice([-1.0, 1.0])

        def spoil(msg, since):
            x, xd = msg.x.copy(), msg.xd.copy()
            x[i], xd[i] = change(x[i], xd[i], since, first.x[i], sign)
            return msg._replace(x=x, xd=xd)
        return spoil
    return make


def _two_encoders(*fields):
    """Lie of two axes, whose fields are swapped."""
    def make(bench, first):
        order = np.arange(first.x.size)
        i, k = bench.fault_rng.choice(order.size, 2, replace=False)
        order[[i, k]] = k, i
        return lambda msg, since: msg._replace(**{field: getattr(msg, field)[order] for field in fields})
    return make


for _name, _change in {
        'drifts': lambda x, xd, since, first, sign: (x + sign * ENCODER_DRIFT * since, xd),
        'drifts, its velocity too': lambda x, xd, since, first, sign: (x + sign * ENCODER_DRIFT * since,
                                                                       xd + sign * ENCODER_DRIFT),
        'stuck': lambda x, xd, since, first, sign: (first, 0.0),
        'stuck, its velocity not': lambda x, xd, since, first, sign: (first, xd)}.items():
    _lies('encoder', f'an encoder {_name}', 'spoil_state', _one_encoder(_change))
for _step in STEPS:
    _lies('encoder', f'an encoder {1e3 * _step:g} mm or mrad off', 'spoil_state', _one_encoder(
        lambda x, xd, since, first, sign, step=_step: (x + sign * step, xd)), LEVELS, BOTH)
for _factor in (-1.0, 0.0, 0.5, 2.0):
    _lies('encoder', f'a velocity times {_factor:g}', 'spoil_state', _one_encoder(
        lambda x, xd, since, first, sign, factor=_factor: (x, factor * xd)))
for _factor in SCALES:
    _lies('encoder', f'an encoder times {_factor:g}', 'spoil_state', _one_encoder(
        lambda x, xd, since, first, sign, factor=_factor: (first + factor * (x - first), factor * xd)))
_lies('encoder', 'two encoders swapped', 'spoil_state', _two_encoders('x', 'xd'))
_lies('encoder', 'two velocities swapped', 'spoil_state', _two_encoders('xd'))


# laws: what is handed over is a command


def _law_fails(name, make, levels=LEVELS):
    """Register a failing law; make: function of bench -> function of (command, s since then) -> command."""
    @contextmanager
    def bring(bench):
        fails, begun = make(bench), bench.now
        with bench.law_spoilt(lambda command: fails(np.array(command), 1e-9 * (bench.now - begun))):
            yield
    LIES.append(Lie('law', name, bring, levels))


def _on_one(change):
    """One actuator; change: function of (value, limit, +-1, s since then, rate of the reference) -> value."""
    def make(bench):
        limit = bench.declaration.command_limit
        i, sign = int(bench.fault_rng.integers(limit.size)), bench.fault_rng.choice([-1.0, 1.0])

        def fails(command, since):
            command[i] = change(command[i], limit[i], sign, since, bench.desired[1][i])
            return command
        return fails
    return make


def _backwards(value, limit, sign, since, rate):
    return limit * (-np.sign(rate) if rate else sign)


def _frozen(bench):
    last = []

    def fails(command, since):
        last.append(command)
        return last[0].copy()
    return fails


def _delayed(bench):
    queue = deque(maxlen=round(DELAY / bench.period) + 1)

    def fails(command, since):
        queue.append(command)
        return queue[0].copy()
    return fails


_law_fails('full', _on_one(lambda value, limit, sign, since, rate: sign * limit))
_law_fails('full, backwards', _on_one(_backwards))
_law_fails('growing offset', _on_one(lambda value, limit, sign, since, rate: value + sign * GROWTH * since * limit))
for _name, _factor in (('negated', -1.0), ('zero', 0.0), ('half gain', 0.5), ('double gain', 2.0)):
    _law_fails(_name, lambda bench, factor=_factor: lambda command, since: factor * command, VALVE)
_law_fails('frozen', _frozen)
_law_fails('50 ms late', _delayed)


# all faults of which the motion is watched


def cases(level, only='', short=False):
    """Yield (injection, state) of a level, whose group or name has the text `only`.

    short  whether of one state each, which turns from fault to fault
    """
    levels = {level, INTERFACE.get(level, level)}
    for turn, one in enumerate((*LIES, *INJECTIONS)):
        if levels & set(one.levels) and only in f'{one.group}: {one.name}':
            states = tuple(one.states)
            for state in (states[turn % len(states)],) if short else states:
                yield one, state
