"""YAML schedules of faults: what they say, and every way to get them wrong."""

import math
import re

import pytest
import yaml
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from psdyn_ros.model.errors import DuplicateNameError, ModelError, PsdynError, UnknownNameError
from psdyn_ros.model.parameters import faults as model
from psdyn_ros.model.parameters.faults import (
    KINDS,
    MESSAGE,
    NAMES,
    PAYLOAD,
    SENSOR,
    Fault,
    placed,
    read_fault,
    read_faults,
)

TARGETS = {SENSOR: ('lift.position',), MESSAGE: ('joint_states',), PAYLOAD: ('hook',)}
SCHEDULE = '''# what goes wrong
faults:
  - {kind: spike, target: lift.position, value: [0.01, 5], start: 2, duration: 3}
  - {kind: delay, target: joint_states, value: 5e-3}
  - kind: payload
    target: hook
    value: [200, 0.25, 0, 0]
    start: 6
'''
READ = [Fault('spike', 'lift.position', (0.01, 5.0), 2.0, 3.0), Fault('delay', 'joint_states', (0.005,)),
        Fault('payload', 'hook', (200.0, 0.25, 0.0, 0.0), 6.0)]


@pytest.mark.parametrize('text', [SCHEDULE, '/**/simulator:\n  ros__parameters:\n' + re.sub(
    '^', '    ', SCHEDULE, flags=re.MULTILINE)])
def test_a_schedule_says_what_goes_wrong_and_when(text, tmp_path):
    assert read_faults(text) == READ
    path = tmp_path / 'faults.yaml'
    path.write_text(text)
    assert read_faults(path) == read_faults(str(path)) == READ
    assert read_faults(path)[1].where == f"faults file '{path}' (line {6 if 'ros__' in text else 4})"


def test_an_empty_schedule_has_no_faults():
    assert read_faults('faults: []\n\n') == []


def test_one_fault_is_read_from_a_line():
    assert read_fault('{kind: nan, target: lift.position, start: 0.5}') == Fault('nan', 'lift.position', (), 0.5)
    assert read_fault('kind: gain\ntarget: lift.position\nvalue: 1.1\n').value == (1.1,)


def test_what_is_left_out_has_its_default():
    assert read_fault('{kind: spike, target: a.position, value: 2}').value == (2.0, 1.0)
    assert read_fault('{kind: payload, target: hook, value: [20]}').value == (20.0, 0.0, 0.0, 0.0)
    assert read_fault('{kind: out_of_order, target: joint_states}').value == (1.0,)
    fault = read_fault('{kind: spool_stuck, target: lift}')
    assert (fault.value, fault.start, fault.duration) == ((1.0,), 0.0, math.inf)


def test_the_target_tells_which_dropout_it_is():
    lost, kind = placed(read_fault('{kind: dropout, target: joint_states, value: 0.1}'), TARGETS)
    assert (lost.value, kind.domain) == ((0.1,), MESSAGE)
    silent, kind = placed(read_fault('{kind: dropout, target: lift.position}'), TARGETS)
    assert (silent.value, kind.domain) == ((), SENSOR)


def test_names_for_diagnostics():
    assert [str(fault) for fault in READ] == ['spike of lift.position (0.01, 5)', 'delay of joint_states (0.005)',
                                              'payload of hook (200, 0.25, 0, 0)']
    assert str(read_fault('{kind: nan, target: lift.position}')) == 'nan of lift.position'


@pytest.mark.parametrize('text, error, message', [
    ('fault: []\n', ModelError, "faults file 'text' has no 'faults', neither at the top nor below 'ros__parameters'"),
    ('faults:\n  kind: nan\n', ModelError,
     "faults file 'text' (line 2): expected a list of faults"),
    ('faults:\n  - nan\n', ModelError, "(line 2): expected a mapping"),
    ('faults: []\nseed: 4\n', ModelError, "(line 2): 'seed' is not known"),
    ('faults:\n  - {kind: nna, target: a}\n', ModelError,
     "(line 2): there is no kind of fault 'nna'; did you mean 'nan'?"),
    ('faults:\n  - {kind: nan}\n', ModelError, "(line 2): 'target' is missing"),
    ('faults:\n  - {target: a}\n', ModelError, "(line 2): 'kind' is missing"),
    ('faults:\n  - {kind: [nan], target: a}\n', ModelError, "(line 2): 'kind' is ['nan']; expected a name"),
    ('faults:\n  - {kind: nan, target: ""}\n', ModelError, "(line 2): 'target' is ''; expected a name"),
    ('faults:\n  - kind: nan\n    target: a\n    strat: 1\n', ModelError,
     "(line 4): 'strat' is not known; did you mean 'start'?"),
    ('faults:\n  - {kind: nan, target: a, start: -1}\n', ModelError, "'start' is -1; expected 0 to 1e+06 (s)"),
    ('faults:\n  - {kind: nan, target: a, start: .nan}\n', ModelError, "'start' is '.nan'; expected a finite number"),
    ('faults:\n  - {kind: nan, target: a, start: soon}\n', ModelError, "'start' is 'soon'; expected a finite number"),
    ('faults:\n  - {kind: nan, target: a, duration: -2}\n', ModelError, "'duration' is -2; expected 0 to 1e+06"),
    ('faults:\n  - {kind: nan, target: a, value: 1}\n', ModelError, "'value' of 'nan' is '1'; expected none"),
    ('faults:\n  - {kind: bias, target: a}\n', ModelError, "'value' of 'bias' is None; expected bias (unit of the"),
    ('faults:\n  - {kind: bias, target: a, value: [1, 2]}\n', ModelError,
     "'value' of 'bias' is ['1', '2']; expected bias"),
    ('faults:\n  - {kind: bias, target: a, value: {x: 1}}\n', ModelError,
     'expected a text, a number, or a list of numbers'),
    ('faults:\n  - {kind: bias, target: a, value: much}\n', ModelError, "'bias' is 'much'; expected a finite number"),
    ('faults:\n  - {kind: leakage, target: a, value: 1}\n', ModelError,
     "'leakage' is 1; expected 0 to 1e-08 (m^3/(s Pa)"),
    ('faults:\n  - {kind: temperature, target: oil, value: 500}\n', ModelError,
     "'temperature' is 500; expected -40 to 120"),
    ('faults:\n  - {kind: payload, target: a, value: [-1]}\n', ModelError, "'mass' is -1; expected 0 to 100000 (kg)"),
    ('faults:\n  - {kind: nan, target: a, kind: nan}\n', DuplicateNameError, "(line 2): 'kind' is there twice"),
    ('faults:\n  - {kind: nan, target: a\n', ModelError, "faults file 'text' is not YAML"),
    ('faults: !!python/tuple [1]\n\n', ModelError, 'YAML tag'),
    ('faults:\n  - {kind: bias, target: a, value: !!python/name:os.system 1}\n', ModelError, 'YAML tag'),
])
def test_bad_schedules_are_refused_with_their_line(text, error, message):
    with pytest.raises(error, match=re.escape(message)):
        read_faults(text)


@pytest.mark.parametrize('read, source, message', [
    (read_faults, None, 'faults None: expected a YAML file or YAML text'),
    (read_fault, 5, 'fault 5: expected YAML text'),
    (read_faults, 'no_such.yaml', "cannot read 'no_such.yaml'"),
    (read_faults, '\n' * 300_000, 'the faults have 300000 characters; at most 262144 are read'),
    (read_fault, ' ' * 300_000, 'the faults have 300000 characters; at most 262144 are read'),
])
def test_bad_sources_are_refused(read, source, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        read(source)


def test_targets_are_checked_once_the_machine_is_known():
    fault, _ = placed(READ[0], TARGETS)
    assert fault == READ[0]
    with pytest.raises(UnknownNameError, match="'spike' of 'joint_states': no such channel of a sensor; there are:"):
        placed(Fault('spike', 'joint_states', 1.0), TARGETS)


SCALARS = st.one_of(st.none(), st.booleans(), st.floats(), st.integers(-3, 3), st.text(max_size=4),
                    st.sampled_from(NAMES), st.sampled_from(['lift.position', 'joint_states', 'hook', 'faults']))
KEYS = st.one_of(st.sampled_from([*model.KEYS, 'faults', 'ros__parameters']), st.text(max_size=3))
ENTRIES = st.dictionaries(KEYS, st.one_of(SCALARS, st.lists(SCALARS, max_size=4)), max_size=6)
SENSIBLE = st.fixed_dictionaries({'kind': st.sampled_from(NAMES), 'target': SCALARS},
                                 optional={'value': st.one_of(st.floats(-2, 2), st.lists(st.floats(-2, 2), max_size=4)),
                                           'start': st.floats(-1, 9), 'duration': st.floats(-1, 9)})
TREES = st.one_of(st.fixed_dictionaries({'faults': st.lists(st.one_of(ENTRIES, SENSIBLE, SCALARS), max_size=3)}),
                  ENTRIES, st.lists(ENTRIES, max_size=2))


def usable(fault):
    """Whether every number of a fault is within what its kind allows."""
    kinds = [kind for kind in KINDS if kind.name == fault.kind]
    return fault.start >= 0 and fault.duration >= 0 and (len(kinds) > 1 or all(
        number.low <= value <= number.high for number, value in zip(kinds[0].numbers, fault.value, strict=True)))


@settings(max_examples=examples(400))
@given(TREES)
def test_any_tree_is_read_or_refused(tree):
    text = yaml.safe_dump(tree, allow_unicode=True) + '\n\n'
    for read in (read_faults, lambda text: [read_fault(text)]):
        try:
            faults = read(text)
        except PsdynError as error:
            assert 0 < len(str(error)) < 2000
        else:
            assert all(usable(fault) for fault in faults)
