"""What must be refused or passed over while the motion that is going on goes on, output for output."""

import math
import time
from typing import NamedTuple

import numpy as np

from ...api.load import load
from ...control.reference.trajectory import Waypoints
from ...control.safety.fault_table import CONDITIONS, CORE, State
from ...model.errors import PsdynError
from ...model.locate import find_machine
from ...model.units import MILLISECOND
from .bench import Bench
from .fault_trials import Trial, prepare

RUN, DEGRADED, HOLD = State.RUN, State.DEGRADED, State.HOLD
UNDER_LAW = RUN, HOLD, DEGRADED
COMPARED = 60               # outputs that must be those of a run in which nothing was attempted
CONFIGURED_IN = 1.0         # s for a description to be refused; 0.1 where it is hostile
HOSTILE_IN = 0.1


class Attempt(NamedTuple):
    """Something that must not change the motion.

    act  function of (bench, random numbers of its own) -> what went wrong, or ''
    """

    condition: str
    name: str
    act: object
    states: tuple = UNDER_LAW


ATTEMPTS = []


def attempt(condition, **how):
    """Register a function as an attempt on this condition."""
    def register(function):
        ATTEMPTS.append(Attempt(condition, function.__name__.strip('_'), function, **how))
        return function
    return register


def run_attempt(machine, one, state, seed):
    """Return the `Trial` of an attempt in a `State`: one run with it, one without it."""
    failures, outputs = [], []
    for tried in (True, False):
        bench = Bench(machine, seed)
        prepare(bench, state)
        if tried:
            counted = bench.core.states.counts[one.condition]
            problem = one.act(bench, np.random.default_rng([seed, 1]))
            # a reference that is refused is counted by the node
            if not problem and CONDITIONS[one.condition] in CORE and bench.core.states.counts[one.condition] == counted:
                problem = 'it was not counted'
            failures += [problem] if problem else []
            judge = bench.judge
        outputs.append(np.array([_turn(bench) for _ in range(COMPARED)]))
    if not np.array_equal(*outputs, equal_nan=True):
        failures.append(f'the outputs after it differ from those without it by up to '
                        f'{np.nanmax(np.abs(outputs[0] - outputs[1])):.3g}')
    bound = CONDITIONS[one.condition].bound_cycles
    return Trial(one.condition, one.name, machine.level, state.name, seed, None if failures else 0, bound, judge.cycles,
                 judge.unsafe, judge.fastest, judge.summary(), tuple(failures))


def _turn(bench):
    output = bench.turn()
    return np.full(len(bench.declaration.actuators), np.inf) if output is None else output.command


def _refused(act, *arguments, condition=''):
    """'' where it raises a PsdynError, as it must; a reference is refused as the node reports it, with a condition."""
    try:
        act(*arguments)
    except PsdynError as error:
        found = getattr(error, 'condition', 'reference_malformed')
        return '' if condition in ('', found) else f'refused as {found}, not as {condition}: {error}'
    except Exception as error:
        return f'raises {type(error).__name__}: {error}; expected a PsdynError'
    return 'accepted; expected a refusal'


def _motion(bench, rng):
    """[times, positions] of a harmless motion from where the reference is."""
    here = np.array(bench.law.desired[0])
    return [np.array([0.5, 1.0, 1.5]), here + 0.01 * rng.uniform(-1.0, 1.0, (3, here.size))]


def _spoilt_reference(condition, name, spoil):
    """Register a reference that `spoil` (times, positions, rng, bench) -> (joints, times, positions, ...) spoils."""
    def act(bench, rng):
        def hand_over():
            bench.follow(Waypoints(*spoil(*_motion(bench, rng), rng, bench)))
        return _refused(hand_over, condition=condition)
    ATTEMPTS.append(Attempt(condition, name, act))


def _names(bench):
    return bench.machine.manipulator.coordinates


def _put(values, value, rng):
    values = values.copy()
    values.flat[rng.integers(values.size)] = value
    return values


_spoilt_reference('reference_malformed', 'nan_in_a_point', lambda t, x, rng, b: (
    _names(b), t, _put(x, rng.choice([math.nan, math.inf, -math.inf]), rng)))
_spoilt_reference('reference_malformed', 'nan_in_a_time', lambda t, x, rng, b: (
    _names(b), _put(t, rng.choice([math.nan, math.inf]), rng), x))
_spoilt_reference('reference_malformed', 'nan_in_a_velocity', lambda t, x, rng, b: (
    _names(b), t, x, _put(np.zeros_like(x), math.nan, rng)))
_spoilt_reference('reference_malformed', 'an_absurd_position', lambda t, x, rng, b: (_names(b), t, _put(x, 1e300, rng)))
_spoilt_reference('reference_malformed', 'no_points', lambda t, x, rng, b: (_names(b), t[:0], x[:0]))
_spoilt_reference('reference_malformed', 'times_do_not_grow', lambda t, x, rng, b: (_names(b), t[[0, 2, 1]], x))
_spoilt_reference('reference_malformed', 'times_repeat', lambda t, x, rng, b: (_names(b), t[[0, 1, 1]], x))
_spoilt_reference('reference_malformed', 'joint_twice', lambda t, x, rng, b: ((_names(b)[0], *_names(b)[:-1]), t, x))
_spoilt_reference('reference_malformed', 'joint_missing', lambda t, x, rng, b: (_names(b)[:-1], t, x[:, :-1]))
_spoilt_reference('reference_malformed', 'unknown_joint', lambda t, x, rng, b: (('gripper', *_names(b)[1:]), t, x))
_spoilt_reference('reference_malformed', 'lengths_differ', lambda t, x, rng, b: (_names(b), t, x[:, :-1]))
_spoilt_reference('reference_unreachable', 'beyond_a_limit', lambda t, x, rng, b: (
    _names(b), t, _put(x, rng.choice([-1.0, 1.0]) * rng.uniform(5.0, 1e5), rng)))
_spoilt_reference('reference_unreachable', 'too_fast', lambda t, x, rng, b: (
    _names(b), [1e-3, 2e-3, 3e-3], x + np.array([[0.0], [0.1], [0.0]])))
_spoilt_reference('reference_rejected', 'starts_elsewhere', lambda t, x, rng, b: (_names(b), t - t[0], x + 0.5))


@attempt('reference_malformed')
def _in_the_past(bench, rng):
    # over, but begun after the controller was enabled
    late = Waypoints(_names(bench), [1e-3, 2e-3, 3e-3], _motion(bench, rng)[1])
    return _refused(bench.core.validate_trajectory, late, bench.ros_now - 10 * MILLISECOND,
                    condition='reference_malformed')


@attempt('load_rejected')
def _impossible_payload(bench, rng):
    link = 'telescope_link'
    for mass in rng.choice([math.nan, math.inf, -1.0, -1e9], 2, replace=False):
        problem = _refused(bench.core.set_payload, link, mass, np.zeros(3), np.zeros((3, 3)))
        if problem:
            return f'{mass} kg: {problem}'
    inertia = np.diag([1.0, 1.0, 5.0])
    return (_refused(bench.core.set_payload, 'no_such_link', 10.0, np.zeros(3), inertia)
            or _refused(bench.core.set_payload, link, 10.0, np.full(3, math.nan), inertia)
            or _refused(bench.core.set_payload, link, 10.0, np.zeros(3), inertia))


# descriptions, of which no core comes into being

def _replaced(old, new):
    return lambda text: text.replace(old, new, 1)


DESCRIPTIONS = (
    ('impossible_inertia', 'mass_negative', _replaced('<mass value="', '<mass value="-')),
    ('impossible_inertia', 'mass_nan', _replaced('<mass value="', '<mass value="nan" was="')),
    ('impossible_inertia', 'inertia_negative', _replaced('ixx="', 'ixx="-')),
    ('broken_description', 'cut_off', lambda text: text[:len(text) // 2]),
    ('broken_description', 'empty', lambda text: '<robot/>'),
    ('broken_description', 'no_such_parent', _replaced('<parent link="', '<parent link="absent_')),
    ('hostile_description', 'entity_bomb', lambda text: (
        '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">' + ''.join(
            f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
        + ']><robot name="&j;"/>')),
    ('hostile_description', 'external_entity',
     lambda text: '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>'),
    ('hostile_description', 'deep', lambda text: '<robot name="deep">' + '<a>' * 10_000 + '</a>' * 10_000 + '</robot>'),
    ('hostile_description', 'huge', lambda text: '<robot name="huge">' + ' ' * (9 << 20) + '</robot>'),
)


def run_description(condition, name, spoil, seed):
    """Return the `Trial` of a description that must be refused; its reaction is in ms."""
    with open(find_machine('hiab_xs031')) as file:
        text = spoil(file.read())
    began = time.perf_counter()
    problem = _refused(load, text)
    seconds = time.perf_counter() - began
    bound = HOSTILE_IN if condition == 'hostile_description' else CONFIGURED_IN
    return Trial(condition, name, 'load', 'ms', seed, math.ceil(seconds * 1e3), round(bound * 1e3), 0, 0, 0.0, {},
                 (problem,) if problem else ())
