"""Faults by schedule and at run time: when they are in force, on what, and against a model on random histories."""

import dataclasses
import itertools
import math
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from psdyn_ros.model.errors import ModelError, StateError, UnknownNameError
from psdyn_ros.model.parameters.faults import CYLINDER, KINDS, MODEL, OIL, PAYLOAD, SENSOR, SUPPLY
from psdyn_ros.simulation import disturbances
from psdyn_ros.simulation.faults import Event, Fault, FaultInjector, read_faults
from psdyn_ros.simulation.sensors.bank import SensorBank

CHANNELS = ('lift.position', 'lift.pressure_a', 'tilt.position')
STATES = 'joint_states'


class Machine:
    """A plant that only remembers what is wrong with it."""

    cylinders = ('lift', 'tilt')
    manipulator = SimpleNamespace(links=('boom', 'hook'))

    def __init__(self):
        self.wrong = {}

    def disturb(self, target, quantity, value):
        self.wrong[target, quantity] = value

    def undisturb(self, target, quantity):
        del self.wrong[target, quantity]


def machine(schedule=(), seed=0):
    """(injector, bank of sensors, plant)."""
    bank, plant = SensorBank(CHANNELS, None, 1e-3, 0), Machine()
    return FaultInjector(bank, plant, schedule, seed), bank, plant


def sent(injector, times):
    """What is published of a message at each time, named by its index."""
    rows = []
    for index, time in enumerate(times):
        injector.update(time)
        rows.append(injector.message(index))
    return rows


def test_a_schedule_is_kept_to_the_step():
    injector, bank, plant = machine([
        Fault('bias', 'lift.position', 0.5, start=0.002, duration=0.003), Fault('spool_stuck', 'tilt', start=0.004),
        Fault('inertia', 'model', 0.9)])
    log = []
    for step in range(8):
        injector.update(step * 1e-3)
        log.append((bank.sample(step, np.zeros(3))[0][0], ('tilt', 'spool_stuck') in plant.wrong, len(injector.active)))
    assert log == [(0, False, 1), (0, False, 1), (0.5, False, 2), (0.5, False, 2), (0.5, True, 3), (0, True, 2),
                   (0, True, 2), (0, True, 2)]
    assert plant.wrong == {('tilt', 'spool_stuck'): 1.0, ('model', 'inertia'): 0.9}
    assert injector.active == ('inertia of model (0.9)', 'spool_stuck of tilt (1)')


def test_what_began_and_ended_is_told_with_its_time():
    bias, nan = Fault('bias', 'lift.position', 0.5, 0.002, 0.003), Fault('nan', 'tilt.position', None, 0.003)
    injector, _, _ = machine([nan, bias])
    for step in range(8):
        injector.update(step * 1e-3)
    injector.clear()
    assert [(round(time * 1e3), fault.kind, on) for time, fault, on in injector.events] == [
        (2, 'bias', True), (3, 'nan', True), (5, 'bias', False), (7, 'nan', False)]
    assert isinstance(injector.events[0], Event)
    for _ in range(3000):
        injector.inject(bias)
        injector.update(injector.events[-1].time + 0.01)
        injector.clear()
    assert len(injector.events) == 1000, 'the list of events does not grow for ever'


def test_a_fault_is_never_shorter_than_a_step():
    injector, _, plant = machine([Fault('spool_stuck', 'lift', start=0.0042, duration=1e-4)])
    seen = []
    for time in (0.0, 0.004, 0.005, 0.006):
        injector.update(time)
        seen.append(bool(plant.wrong))
    assert seen == [False, False, True, False]


def test_a_payload_is_put_on_and_dropped():
    injector, _, plant = machine([Fault('payload', 'hook', [200.0, 0.25], 1.0, 2.0)])
    injector.update(1.0)
    assert plant.wrong == {('payload', 'hook'): (200.0, 0.25, 0.0, 0.0)}
    injector.update(3.0)
    assert plant.wrong == {}


def test_of_two_faults_of_a_kind_on_a_target_the_later_counts_until_it_ends():
    injector, _, plant = machine([
        Fault('leakage', 'lift', 1e-12, 0.0, 10.0), Fault('leakage', 'lift', 2e-12, 1.0, 1.0),
        Fault('leakage', 'lift', 3e-12, 1.5, 2.0), Fault('leakage', 'tilt', 9e-12, 0.0, 1.2)])
    seen = []
    for time in (0.0, 1.0, 1.5, 2.0, 3.4, 3.5, 10.0):
        injector.update(time)
        seen.append(plant.wrong.get(('lift', 'leakage')))
    assert seen == [1e-12, 2e-12, 3e-12, 3e-12, 3e-12, 1e-12, None]


def test_a_freeze_within_a_freeze_does_not_thaw():
    injector, bank, _ = machine([Fault('freeze', 'lift.position', None, 0.002, 0.01),
                                 Fault('freeze', 'lift.position', None, 0.004, 0.002)])
    values = []
    for step in range(15):
        injector.update(step * 1e-3)
        values.append(bank.sample(step, [step, 0, 0])[0][0])
    assert values == [0, 1, *[1] * 10, 12, 13, 14]


def test_faults_are_injected_from_now_on_as_text_or_as_a_fault():
    injector, bank, plant = machine()
    injector.update(7.0)
    injector.inject('{kind: bias, target: tilt.position, value: -1e-3, duration: 2}')
    injector.inject(Fault('pressure', 'supply', 0.6, start=1.0))
    assert injector.active == ()
    injector.update(7.0)
    assert bank.faults == {('tilt.position', 'bias'): (-1e-3,)}
    injector.update(8.0)
    assert plant.wrong == {('supply', 'pressure'): 0.6}
    injector.update(9.0)
    assert injector.active == ('pressure of supply (0.6)',)


def test_clear_ends_everything_and_what_was_to_come():
    injector, bank, plant = machine([Fault('nan', 'lift.position'), Fault('flow', 'supply', 0.5, start=2.0),
                                     Fault('delay', STATES, 0.5)])
    sent(injector, [0.0, 0.1])
    injector.clear()
    assert (injector.active, bank.faults, plant.wrong) == ((), {}, {})
    assert sent(injector, [2.0, 3.0]) == [[0], [1]], 'messages under way are lost'
    assert plant.wrong == {}


def test_clear_loses_a_message_that_waits_for_the_next():
    injector, _, _ = machine([Fault('out_of_order', STATES)])
    assert sent(injector, [0.0]) == [[]]
    injector.clear()
    assert sent(injector, [0.1, 0.2]) == [[0], [1]]


def test_reset_begins_the_schedule_anew():
    injector, bank, plant = machine([Fault('nan', 'lift.position', None, 1.0, 1.0), Fault('dropout', STATES, 0.5)], 4)
    times = np.arange(0.0, 3.0, 0.01)
    first, events = sent(injector, times), list(injector.events)
    injector.inject(Fault('temperature', 'oil', 80.0))
    injector.update(3.0)
    injector.reset()
    assert (injector.active, bank.faults, plant.wrong, list(injector.events)) == ((), {}, {}, [])
    assert sent(injector, times) == first
    assert list(injector.events) == events
    assert plant.wrong == {}, 'what was injected is forgotten'


def test_without_faults_messages_go_through_as_they_are():
    injector, _, _ = machine()
    assert sent(injector, [0.0, 0.1, 0.2]) == [[0], [1], [2]]


def test_lost_messages():
    injector, _, _ = machine([Fault('dropout', STATES, None, 0.2, 0.3)])
    assert sent(injector, np.arange(8) * 0.1) == [[0], [1], [], [], [], [5], [6], [7]]


@pytest.mark.parametrize('kind', ['dropout', 'duplicate', 'out_of_order'])
def test_a_share_of_messages_is_kept_to_and_seeded(kind):
    n, share = 20_000, 0.02

    def order(seed):
        return [index for row in sent(machine([Fault(kind, STATES, share)], seed)[0], np.arange(n) * 1e-3)
                for index in row]

    found = order(1)
    times = Counter(Counter(found).values())        # how many came once, twice
    swapped = sum(later < earlier for earlier, later in itertools.pairwise(found))
    befallen = {'dropout': n - times[1], 'duplicate': times[2], 'out_of_order': swapped}[kind]
    assert abs(befallen - n * share) < 5 * math.sqrt(n * share)
    assert sum(times.values()) >= n - 1 - befallen * (kind == 'dropout'), 'but for one that waits for the next'
    assert set(times) <= ({1, 2} if kind == 'duplicate' else {1})
    assert kind == 'out_of_order' or found == sorted(found)
    assert order(1) == found
    assert order(2) != found


def test_messages_that_are_out_of_order_change_places():
    injector, _, _ = machine([Fault('out_of_order', STATES, None, 0.1, 0.5)])
    assert sent(injector, np.arange(9) * 0.1) == [[0], [], [2, 1], [], [4, 3], [], [6, 5], [7], [8]]


def test_duplicates_follow_at_once():
    injector, _, _ = machine([Fault('duplicate', STATES, None, 0.1, 0.2)])
    assert sent(injector, np.arange(4) * 0.1) == [[0], [1, 1], [2, 2], [3]]


def test_delayed_messages_keep_their_order_and_none_is_lost():
    injector, _, _ = machine([Fault('delay', STATES, 0.25, 0.1, 0.3)])
    assert sent(injector, np.arange(9) * 0.1) == [[0], [], [], [], [1], [2], [3, 4, 5, 6], [7], [8]]


def test_a_plant_without_disturbances_and_no_sensors_have_no_faults_but_those_of_messages():
    injector = FaultInjector(None, object())
    injector.inject(Fault('dropout', STATES))
    for fault in (Fault('nan', 'lift.position'), Fault('spool_stuck', 'lift'), Fault('pressure', 'supply', 0.5),
                  Fault('payload', 'boom', [1.0])):
        with pytest.raises(UnknownNameError, match='; there are none'):
            injector.inject(fault)


def test_ranges_are_those_of_the_plant():
    ranges = {CYLINDER: disturbances.CYLINDER_FAULTS, **disturbances.OTHER_FAULTS}
    for domain in (CYLINDER, SUPPLY, OIL, MODEL):
        table = {kind.name: (kind.numbers[0].low, kind.numbers[0].high) for kind in KINDS if kind.domain == domain}
        assert table == ranges[domain]
    (payload,) = (kind for kind in KINDS if kind.domain == PAYLOAD)
    assert payload.numbers[0].high == disturbances.MAX_PAYLOAD


def test_every_kind_of_fault_of_a_sensor_is_one_of_the_bank():
    for kind in (kind for kind in KINDS if kind.domain == SENSOR):
        injector, bank, _ = machine([Fault(kind.name, 'lift.position', [number.high for number in kind.numbers])])
        injector.update(0.0)
        healthy = True
        for step in range(20):
            values, stamps, fresh = bank.sample(step, [math.sin(step), 0.0, 0.0])
            healthy &= bool(fresh[0]) and values[0] == math.sin(step)
        assert not healthy, kind.name
        injector.clear()
        assert bank.faults == {}


def test_time_goes_on():
    injector, _, _ = machine()
    injector.update(2.0)
    injector.update(2.0)
    for time in (1.9, math.nan, -math.inf):
        with pytest.raises(StateError, match='faults: time .* after 2 s; expected a later one, or a reset before'):
            injector.update(time)
    injector.reset()
    injector.update(0.0)


@pytest.mark.parametrize('fault, error, message', [
    (Fault('bias', 'lift.postion', 1.0), UnknownNameError,
     "fault: 'bias' of 'lift.postion': no such channel of a sensor; did you mean 'lift.position'?"),
    (Fault('spool_stuck', 'left'), UnknownNameError, "'spool_stuck' of 'left': no such cylinder; did you mean 'lift'?"),
    (Fault('payload', 'hok', [1]), UnknownNameError, "'payload' of 'hok': no such link; did you mean 'hook'?"),
    (Fault('dropout', 'joint_state'), UnknownNameError,
     "no such channel of a sensor or message; did you mean 'joint_states'?"),
    (Fault('pressure', 'oil', 1.0), UnknownNameError, "'pressure' of 'oil': no such supply; there are: supply"),
    (Fault('presure', 'supply', 1.0), ModelError, "there is no kind of fault 'presure'; did you mean 'pressure'?"),
    (Fault('dropout', STATES, 1.5), ModelError, "'value' of 'dropout': 'share' is 1.5; expected 0 to 1"),
    (Fault('dropout', 'lift.position', 0.5), ModelError, "'value' of 'dropout' is 0.5; expected none"),
    (Fault('payload', 'hook', [1, 2, 3, 4, 5]), ModelError, 'expected mass (kg), x (m, of its centre in link axes; 0 '),
    (Fault('nan', 'lift.position', start=-1.0), ModelError, "'start' is -1; expected 0 to 1e+06 (s)"),
    (Fault('nan', 'lift.position', duration=math.nan), ModelError, "'duration' is nan; expected a finite number"),
    (Fault('nan', 'lift.position', duration=-math.inf), ModelError, "'duration' is -inf; expected a finite number"),
    (Fault(3, 'lift'), ModelError, "fault: 'kind' is 3; expected a name"),
    (Fault('nan', ['lift']), ModelError, "fault: 'target' is ['lift']; expected a name"),
])
def test_bad_faults_are_refused_at_once_and_change_nothing(fault, error, message):
    injector, bank, plant = machine()
    with pytest.raises(error, match=re.escape(message)):
        injector.inject(fault)
    with pytest.raises(error, match=re.escape(message)):
        machine([fault])
    injector.update(10.0)
    assert (injector.active, bank.faults, plant.wrong) == ((), {}, {})


@pytest.mark.parametrize('text, message', [
    ('{kind: nan}', "fault '{kind: nan}' (line 1): 'target' is missing"),
    ('{target: lift}', "'kind' is missing"), ('nan', 'expected a mapping'), ('', 'expected a mapping'),
    ('{kind: nan, target: lift.position', 'is not YAML'),
    ('{kind: nan, tagret: lift.position}', "'tagret' is not known; did you mean 'target'?"),
    ('{kind: nan, target: lift.position, duration: .inf}', "'duration' is '.inf'; expected a finite number (s; absent"),
])
def test_bad_texts_are_refused_and_change_nothing(text, message):
    injector, bank, _ = machine()
    with pytest.raises(ModelError, match=re.escape(message)):
        injector.inject(text)
    injector.update(1.0)
    assert bank.faults == {}


def test_a_line_of_a_schedule_is_named_when_the_machine_is_known():
    schedule = read_faults('faults:\n  - {kind: nan, target: lift.position}\n  - {kind: nan, target: lfit.position}\n')
    with pytest.raises(UnknownNameError, match=re.escape("faults file 'text' (line 3): 'nan' of 'lfit.position': no")):
        machine(schedule)


@pytest.mark.parametrize('seed', [-1, 0.5, 'a', None])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ModelError, match='seed is .*; expected a whole number from 0 to'):
        machine(seed=seed)


class InjectorMachine(RuleBasedStateMachine):
    """Any order of injecting, clearing and time, against a list of what was asked for."""

    kinds = st.sampled_from([('bias', 'lift.position'), ('bias', 'tilt.position'), ('delay', 'lift.position'),
                             ('leakage', 'lift'), ('leakage', 'tilt'), ('flow', 'supply'), ('duplicate', STATES)])
    levels = st.sampled_from([0.0, 2.5e-9, 5e-9, 1e-8])
    times = st.integers(0, 20).map(lambda k: k * 0.25)

    @initialize(planned=st.lists(st.tuples(kinds, levels, times, times), max_size=4))
    def start(self, planned):
        self.planned = [Fault(*kind, value, start, duration) for kind, value, start, duration in planned]
        self.injector, self.bank, self.plant = machine(self.planned)
        self.begin()

    def begin(self):
        self.now, self.updated = 0.0, False
        # [fault, absolute start, time at which it began or None]
        self.asked = [[fault, fault.start, None] for fault in self.planned]
        self.asked.sort(key=lambda entry: entry[1])

    @rule(kind=kinds, value=levels, start=times, duration=st.one_of(times, st.just(math.inf)))
    def inject(self, kind, value, start, duration):
        fault = Fault(*kind, value, start, duration)
        self.injector.inject(fault)
        self.asked.append([fault, self.now + start, None])
        self.asked.sort(key=lambda entry: entry[1])

    @rule(ahead=times)
    def update(self, ahead):
        self.now += ahead
        self.injector.update(self.now)
        # over: it has been in force, and its end has passed
        self.asked = [entry for entry in self.asked
                      if entry[2] is None or entry[1] + entry[0].duration > self.now]
        for entry in self.asked:
            if entry[2] is None and entry[1] <= self.now:
                entry[2] = self.now

    @rule()
    def clear(self):
        self.injector.clear()
        self.asked = []

    @rule()
    def reset(self):
        self.injector.reset()
        self.begin()

    @rule()
    def publish(self):
        copies = self.ruling().get(('duplicate', STATES))
        item = object()
        assert self.injector.message(item) in ([[item]] if copies is None or copies == 0.0 else [[item], [item, item]])

    def ruling(self):
        """{(kind, target): value} of the fault that began last."""
        begun = [entry for entry in self.asked if entry[2] is not None]
        begun.sort(key=lambda entry: entry[2])      # stable: of those that began together, by their start
        return {(fault.kind, fault.target): fault.value for fault, _, _ in begun}

    @invariant()
    def what_is_in_force_is_what_was_asked_for(self):
        if not hasattr(self, 'asked'):
            return
        found = {(kind, channel): value for (channel, kind), (value,) in self.bank.faults.items()}
        found.update({(quantity, target): value for (target, quantity), value in self.plant.wrong.items()})
        expected = self.ruling()
        expected.pop(('duplicate', STATES), None)
        assert found == expected
        begun = Counter(str(fault) for fault, _, since in self.asked if since is not None)
        assert Counter(self.injector.active) == begun


TestInjectorMachine = InjectorMachine.TestCase
TestInjectorMachine.settings = settings(max_examples=examples(150), stateful_step_count=30, deadline=None)


def test_a_fault_does_not_change_once_made():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Fault('nan', 'lift.position').kind = 'bias'
