"""`psdyn check --witness`: wrong models are told apart, states are drawn as they should be, the command says so."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.machines import chain, hiab
from support.one_loop import one_loop
from support.witnesses.witness_bench import (
    DENOC,
    NOC,
    PAZ,
    TIGHT,
    TITOP,
    examine,
    general,
    load,
    mechanism_of,
    posture_of,
)

from psdyn_ros.formulations.adapters import Mechanism, Witness, call_witnesses
from psdyn_ros.formulations.cross_check import BOUND, QUANTITIES, compare, witness_report
from psdyn_ros.model.errors import LoopClosureError, StateError
from psdyn_ros.model.mechanism.description import Pose

# --- wrong models


def _heavier(description, link):
    inertial = description.links[link].inertial
    return _with_link(description, link, mass=inertial.mass * 1.000001)


def _with_link(description, link, **changes):
    links = dict(description.links)
    links[link] = replace(links[link], inertial=replace(links[link].inertial, **changes))
    return replace(description, links=links)


def _with_joint(description, joint, **changes):
    return replace(description, joints={**description.joints, joint: replace(description.joints[joint], **changes)})


def _shift_eye(description):
    closure = description.closures['tilt_eye']
    moved = Pose(closure.parent_origin.rotation, closure.parent_origin.position + (1e-6, 0, 0))
    return replace(description, closures={**description.closures, 'tilt_eye': replace(closure, parent_origin=moved)})


def _with_damping(description, joint, more):
    return _with_joint(description, joint, damping=description.joints[joint].damping + more)


def _with_friction(description, joint, more):
    return _with_joint(description, joint, friction=description.joints[joint].friction + more)


def _with_center(description, link, way):
    return _with_link(description, link, com=description.links[link].inertial.com + way)


WRONG = {
    'mass of a link by a millionth': lambda d: _heavier(d, 'lift_boom_link'),
    'mass of a rod by a millionth': lambda d: _heavier(d, 'tilt_rod_link'),
    'centre of mass by 0.01 mm': lambda d: _with_center(d, 'telescope_link', 1e-5),
    'inertia of a barrel by a gram metre squared': lambda d: _with_link(
        d, 'lift_barrel_link', inertia=d.links['lift_barrel_link'].inertial.inertia + 1e-3 * np.eye(3)),
    'damping of a passive joint': lambda d: _with_damping(d, 'lift_barrel', 0.01),
    'friction of a driven joint': lambda d: _with_friction(d, 'slew', 0.01),
    'place of a rod eye by a micrometre': _shift_eye,
}


@pytest.mark.parametrize('what', WRONG)
def test_every_formulation_tells_a_wrong_model_apart(what):
    manipulator = load(hiab())
    result = examine(manipulator, WRONG[what](manipulator.machine.description))
    assert not result.agree
    for name in (NOC, TITOP, PAZ):
        assert max(result.worst[name, quantity].value for quantity in QUANTITIES) > 10 * BOUND, name
    if 'eye' in what:
        assert result.worst['loops', 'positions'].value > BOUND


@pytest.mark.parametrize('culprit', [NOC, TITOP, DENOC, PAZ])
def test_the_formulation_that_is_wrong_is_named(culprit):
    """One of four works with another mass: it alone disagrees."""
    manipulator = load(one_loop())
    healthy = mechanism_of(manipulator)
    sick = mechanism_of(manipulator, _heavier(manipulator.machine.description, 'boom_link'))
    posture = posture_of(manipulator, healthy)
    witnesses = [witness if witness.name != culprit else other for witness, other in
                 zip(call_witnesses(healthy, posture), call_witnesses(sick, posture))]
    result = compare(manipulator, healthy, witnesses, 3, 0)
    assert not result.agree and result.largest[0][0] == culprit
    for (name, _), worst in result.worst.items():
        assert name == culprit or worst.value < TIGHT
    assert f', {culprit}, ' in witness_report('one_loop', result)


class _Broken:
    """A witness that answers as it is told."""

    def __init__(self, answer):
        self.answer = answer

    def _give(self, *_):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    inverse = forward = mass_matrix = _give


@pytest.mark.parametrize('answer', [np.array([np.nan]), np.zeros(2), StateError('a singular pose')], ids=str)
def test_no_answer_is_no_agreement(answer):
    manipulator = load(one_loop())
    result = compare(manipulator, mechanism_of(manipulator), [Witness('broken', _Broken(answer), '')], 2, 0)
    assert not result.agree and result.largest[1].value == np.inf
    assert ('a singular pose' in witness_report('one_loop', result)) == isinstance(answer, StateError)


def test_a_state_that_only_the_recursion_closes_is_no_agreement():
    manipulator = load(one_loop())

    class Stiff(Mechanism):
        def posture(self, x, guess):
            if x[0] > manipulator.initial_position[0]:
                raise LoopClosureError('out of reach')
            return super().posture(x, guess)

    m = manipulator
    mechanism = Stiff(m.machine.description, m.coordinates, m.actuators, m.gravity)
    result = compare(m, mechanism, call_witnesses(mechanism, posture_of(m, mechanism)), 20, 0)
    assert not result.agree and result.largest[0] == ('loops', 'positions')
    assert '(LoopClosureError: out of reach)' in witness_report('one_loop', result)
    assert result.size(NOC, 'forward') < TIGHT          # where it does close


@pytest.mark.parametrize('kind', ['planar_fixed', 'spatial_prismatic'])
@pytest.mark.parametrize('turned', [np.diag((1.0, -1, -1)), np.diag((-1.0, 1, -1)), np.eye(3)[[1, 2, 0]]], ids=str)
def test_frames_turned_by_right_angles_are_not_closed(kind, turned, rng):
    """Each of their axes may be normal to one of the others and still the frames do not coincide."""
    manipulator = general(rng, [kind])
    description = manipulator.machine.description
    (name, closure), = description.closures.items()
    origin = Pose(closure.child_origin.rotation @ turned, closure.child_origin.position)
    wrong = replace(description, closures={name: replace(closure, child_origin=origin)})
    assert posture_of(manipulator, mechanism_of(manipulator)).q.size
    with pytest.raises(LoopClosureError, match='close up to a gap'):
        posture_of(manipulator, mechanism_of(manipulator, wrong))


def test_a_pin_that_turned_over_is_no_agreement():
    manipulator = m = load(one_loop())

    class Turning(Mechanism):
        def senses(self, posture):
            return super().senses(posture) * (1 if posture.q[self.joints.index('cylinder')] <= 0.3 else -1)

    mechanism = Turning(m.machine.description, m.coordinates, m.actuators, m.gravity)
    result = compare(m, mechanism, call_witnesses(mechanism, posture_of(manipulator, mechanism)), 20, 0)
    assert not result.agree and 'a pin is the other way round' in result.largest[1].error


def test_limits_that_no_pose_keeps():
    manipulator = load(one_loop(initial=('cylinder', 'boom'), limits={'barrel': (2.0, 2.1)}))
    with pytest.raises(StateError, match="'one_loop': none of 200 random positions is within all joint limits"):
        examine(manipulator)


# --- states


def test_states_are_inside_the_limits_of_all_joints():
    manipulator = load(chain(3, 'LLR', assembly='limits'))
    joints = manipulator.machine.description.joints
    mechanism = mechanism_of(manipulator)
    drawn = []

    class Spy(_Broken):
        def inverse(self, posture, xd, xdd, wrenches):
            drawn.append(dict(zip(mechanism.joints, posture.q)))
            return np.zeros(3)

    compare(manipulator, mechanism, [Witness('spy', Spy(np.zeros(3)), '')], 20, 4)
    assert len(drawn) == 20
    for q in drawn:
        for name, value in q.items():
            turn = 0.0 if joints[name].type == 'prismatic' else 2 * np.pi
            assert any(joints[name].lower - 1e-9 <= value + k * turn <= joints[name].upper + 1e-9 for k in (-1, 0, 1))
    strokes = np.array([[q[name] for name in manipulator.actuators] for q in drawn])
    assert (np.ptp(strokes, axis=0) > 0.3 * (manipulator.limits.upper - manipulator.limits.lower)).all()


def test_a_state_depends_on_seed_and_number_only():
    manipulator = load(hiab(lift_only=True))
    first, again, other = (examine(manipulator, states=n, seed=seed) for n, seed in ((4, 7), (4, 7), (4, 8)))
    assert witness_report('lift', first) == witness_report('lift', again) != witness_report('lift', other)
    longer = examine(manipulator, states=9, seed=7)
    for key, worst in first.worst.items():
        assert longer.worst[key].value >= worst.value


# --- command line


def test_command_on_the_crane(psdyn):
    code, out, errors = psdyn('check', '--witness', 'hiab_xs031', '--states', 4, '--seed', 5)
    assert (code, errors) == (0, '')
    assert out.startswith("Witnesses of 'hiab_xs031': largest disagreement with the recursion")
    assert 'on 4 random states of seed 5' in out
    for name in (NOC, TITOP, PAZ):
        sizes = re.search(rf'^  {re.escape(name)} +(\S+) +(\S+) +(\S+)$', out, re.MULTILINE).groups()
        assert all(0 <= float(size) < TIGHT for size in sizes)
    assert re.search(rf'^  {re.escape(DENOC)} +does not apply: no body that all loops share', out, re.MULTILINE)
    assert re.search(r'^Largest: \S+, .*, at state [0-3] of seed 5$', out, re.MULTILINE)
    assert re.search(r'^  x = \[[^,]+, [^,]+, [^,]+, [^,]+\]$', out, re.MULTILINE)
    assert out.endswith('The formulations agree (bound 1e-09)\n')


def test_command_on_a_file_with_options(psdyn, tmp_path):
    path = tmp_path / 'loop.urdf'
    path.write_text(one_loop(initial=('cylinder',)).xml)
    results = [psdyn('check', path, '--witness', '--states', 2, '--initial', f'boom={sign}1.2', '--gravity', 1, 2, 3)
               for sign in ('', '-')]
    assert [code for code, *_ in results] == [0, 0]
    assert results[0][1] != results[1][1]


def test_command_fails_on_disagreement(psdyn, monkeypatch):
    monkeypatch.setattr('psdyn_ros.formulations.adapters.Mechanism', lambda description, *rest: Mechanism(
        _heavier(description, 'lift_boom_link'), *rest))
    code, out, _ = psdyn('check', '--witness', 'hiab_xs031', '--states', 2)
    assert code == 1
    assert out.endswith('The formulations DISAGREE (bound 1e-09)\n')


@pytest.mark.parametrize('arguments, words', [
    (('--states', 0), 'argument --states: 0: expected 1 or more'), (('--states', 'many'), 'argument --states'),
    (('--seed', 'x'), 'argument --seed'), (('--seed', -1), 'argument --seed: -1: expected 0 or more')])
def test_command_refuses_bad_numbers(psdyn, arguments, words):
    code, _, errors = psdyn('check', 'hiab_xs031', '--witness', *arguments)
    assert code == 2 and words in errors
