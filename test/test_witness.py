"""The formulations as witnesses of a URDF: healthy machines agree, wrong models are told apart, the CLI says which."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from general_machines import KINDS, general_machine
from machines import URDF, chain, hiab, loop_chain, paz_machine, tree
from one_loop import one_loop

import psdyn_ros
from psdyn_ros import cli
from psdyn_ros.formulations import noc
from psdyn_ros.formulations.adapters import FORMULATIONS, Mechanism, Witness, call_witnesses
from psdyn_ros.formulations.adapters.mechanism import friction_effort
from psdyn_ros.model.description import Pose
from psdyn_ros.model.errors import LoopClosureError, StateError
from psdyn_ros.validation.witness import BOUND, QUANTITIES, compare, witness_report

NOC, TITOP, DENOC, PAZ = FORMULATIONS
TIGHT = 1e-10       # what healthy machines have to reach; BOUND is what users are told


def mechanism_of(manipulator, description=None):
    m = manipulator
    return Mechanism(description or m.machine.description, m.coordinates, m.actuators, m.gravity)


def posture_of(manipulator, mechanism, x=None):
    x = manipulator.initial_position if x is None else x
    names, q, *_ = manipulator.joint_state(x)
    return mechanism.posture(x, dict(zip(names, q)))


def examine(manipulator, description=None, states=3, seed=0):
    """Compare a manipulator with the witnesses of its own, or of another, description."""
    mechanism = mechanism_of(manipulator, description)
    witnesses = call_witnesses(mechanism, posture_of(manipulator, mechanism))
    return compare(manipulator, mechanism, witnesses, states, seed)


def applying(result):
    return {name for name, reason in result.reasons.items() if not reason}


def load(machine, **options):
    return psdyn_ros.load(machine.xml, gravity=machine.gravity, **options)


# --- healthy machines


@pytest.mark.parametrize('first', range(0, 24, 6))
def test_chains_and_trees_of_triangles_and_joints(first, rng):
    """Serial joints, loops, branches, things on cylinders; friction in every second."""
    seen = set()
    for seed in range(first, first + 6):
        grow = tree if seed % 3 == 2 else chain
        options = {'cylinder_branches': True} if grow is tree and seed % 2 else {}
        machine = grow(seed, 1 + seed % 6, friction=seed % 2 == 1, **options)
        result = examine(load(machine), seed=int(rng.integers(2**32)))
        assert result.largest[1].value < TIGHT, (seed, witness_report('machine', result))
        seen |= applying(result)
    assert {NOC, TITOP, PAZ} <= seen


@pytest.mark.parametrize('kinds', ['RPR', 'PPRRR', 'R'])
def test_every_formulation_does_open_chains(kinds):
    result = examine(load(chain(5, kinds, friction=True)))
    assert applying(result) == set(FORMULATIONS)
    assert result.largest[1].value < TIGHT


@pytest.mark.parametrize('options', [
    {}, {'mode': 1}, {'boom_sign': -1}, {'barrel_sign': -1}, {'swapped': True, 'eye_sign': -1}, {'pin': 'spherical'},
    {'losses': ((80, 40), (30, 20), (10, 5), (7, 3))}, {'pin': 'spherical', 'losses': ((8, 4), (3, 2), (1, 5), (7, 3))},
    {'mode': 1, 'boom_sign': -1, 'barrel_sign': -1, 'turning': 'continuous'}], ids=str)
def test_every_formulation_does_one_triangle(options):
    """Whichever way its axes point, whatever its pins lose: legs of DeNOC, a module of Paz & Mattila."""
    result = examine(load(one_loop(**options)), states=6)
    assert applying(result) == set(FORMULATIONS)
    assert result.largest[1].value < TIGHT


@pytest.mark.parametrize('kind', KINDS)
def test_general_loops(kind, rng):
    result = examine(_general(rng, [kind], friction=True), seed=int(rng.integers(2**32)))
    assert result.largest[1].value < TIGHT, witness_report(kind, result)


@pytest.mark.parametrize('options', [
    {'floating': True}, {'redundant': True}, {'under_actuated': True}, {'own_coordinates': True},
    {'floating': True, 'redundant': True, 'friction': True}], ids=lambda options: '-'.join(options))
def test_floating_bases_and_any_number_of_actuators(options, rng):
    for _ in range(2):
        manipulator = _general(rng, ['slider_crank', 'four_bar', 'turn'], **options)
        result = examine(manipulator, seed=int(rng.integers(2**32)))
        assert result.largest[1].value < TIGHT, witness_report('machine', result)
        redundant = len(manipulator.actuators) > len(manipulator.coordinates)
        assert ((NOC, 'efforts of least norm') in result.worst) == redundant


def _general(rng, kinds, **options):
    machine = general_machine(rng, kinds, **options)
    return load(machine, coordinates=machine.coordinates)


MACHINES = {'hiab_xs031': {NOC, TITOP, PAZ}, 'hiab_xs031_lift': {NOC, TITOP, DENOC, PAZ},
            'four_bar': {NOC, TITOP, DENOC}, 'five_bar': {NOC, TITOP, DENOC}, 'pkm_2pur2rpu': {NOC, TITOP},
            'excavator': {NOC, TITOP}, 'balloon': {NOC, TITOP}}


@pytest.mark.parametrize('name', MACHINES)
def test_machines_of_the_package(name):
    result = examine(psdyn_ros.load(URDF / f'{name}.urdf', allow_unphysical=True), states=5)
    assert applying(result) == MACHINES[name]
    assert result.largest[1].value < TIGHT, witness_report(name, result)


@pytest.mark.parametrize('name', ['paz_one_loop_415kg', 'paz_four_dof_1063kg'])
def test_machines_of_paz_and_mattila_as_urdf(name):
    result = examine(load(paz_machine(name)))
    assert PAZ in applying(result) and result.largest[1].value < TIGHT


# --- what the mechanism computes, without the package


def test_rates_of_the_linkage_are_those_of_the_position(rng):
    """G xd and its rate against differences of closed positions, for loops in space and a floating base."""
    h = 1e-3
    for kinds, floating in ((['spatial_universal'], False), (['six_link', 'rsur'], True)):
        manipulator = _general(rng, kinds, floating=floating)
        mechanism = mechanism_of(manipulator)
        posture = posture_of(manipulator, mechanism)
        xd = np.zeros(mechanism.dof)
        xd[mechanism.free:] = rng.normal(size=mechanism.dof - mechanism.free)   # the base stays: x is a vector then
        guess, rate = dict(zip(mechanism.joints, posture.q)), np.zeros(len(manipulator.initial_position))
        rate[-len(mechanism.coordinates):] = xd[mechanism.free:]
        near = [mechanism.posture(manipulator.initial_position + step * h * rate, guess) for step in (-2, -1, 1, 2)]
        slope = np.dot((1, -8, 8, -1), [at.q for at in near]) / (12 * h)
        bend = np.dot((1, -8, 8, -1), [at.G @ xd for at in near]) / (12 * h)
        assert np.abs(slope - (posture.G @ xd)[mechanism.free:]).max() < 1e-8
        assert np.abs(bend - mechanism.bias_acceleration(posture, xd)).max() < 1e-8


def test_power_of_the_general_complement_is_the_rate_of_energy(rng):
    """xd' C xd = xd' Idot xd / 2, which is the skew symmetry of Idot - 2 C along the motion."""
    manipulator = _general(rng, ['spatial_revolute'])
    mechanism = mechanism_of(manipulator)
    posture = posture_of(manipulator, mechanism)
    xd, h = rng.normal(size=mechanism.dof), 1e-4
    dynamics = FORMULATIONS[NOC](mechanism, posture)

    def energy_rate():
        guess, x = dict(zip(mechanism.joints, posture.q)), manipulator.initial_position
        near = [mechanism.posture(x + step * h * xd, guess) for step in (-2, -1, 1, 2)]
        return 0.5 * np.dot((1, -8, 8, -1), [xd @ dynamics.mass_matrix(at) @ xd for at in near]) / (12 * h)

    none = np.zeros(mechanism.dof)
    power = xd @ (dynamics.inverse(posture, xd, none, {}) - dynamics.inverse(posture, none, none, {}))
    assert power == pytest.approx(energy_rate(), rel=1e-8)


def test_least_norm_with_weights(rng):
    A, tau, weights = rng.normal(size=(6, 3)), rng.normal(size=3), rng.uniform(0.1, 10, 6)
    f = noc.minimum_norm(A, tau, weights)
    inner = np.linalg.svd(A.T)[2][3:]                   # efforts that move nothing
    assert np.abs(A.T @ f - tau).max() < 1e-13
    assert np.abs(inner @ (weights * f)).max() < 1e-12  # so the weighted norm is smallest
    assert np.abs(noc.minimum_norm(A, tau, np.full(6, 7.0)) - noc.minimum_norm(A, tau)).max() < 1e-13


def test_friction_of_a_spherical_pin_is_along_its_slip():
    assert friction_effort(np.zeros(3), 2.0, 5.0).tolist() == [0, 0, 0]
    effort = friction_effort(np.array((0.0, 3.0, 4.0)), 2.0, 5.0)
    assert effort == pytest.approx((0, 3 * (2 + 1), 4 * (2 + 1)), rel=1e-14)


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


def test_loops_that_only_the_recursion_closes_are_no_agreement():
    """It projects a pin that is off parallel by rounded angles; the formulations do not."""
    manipulator = load(one_loop(boom_rpy=(5e-5, 0, 0)))
    mechanism = mechanism_of(manipulator)
    with pytest.raises(LoopClosureError, match='close up to a gap of .*e-05 .* parallel to rounding'):
        posture_of(manipulator, mechanism)


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


def test_limits_that_no_pose_keeps():
    manipulator = load(one_loop(limits={'barrel': (2.0, 2.1)}))
    with pytest.raises(StateError, match="'one_loop': none of 200 random positions is within all joint limits"):
        examine(manipulator)


# --- reasons


@pytest.mark.parametrize('machine, reasons', [
    (loop_chain(2), {DENOC: 'no body that all loops share'}),
    (tree(2, 'RRR'), {PAZ: 'the chain branches at link'}),
    (one_loop(e=0.05), {PAZ: "loop 'eye': the rod eye is 0.05 m off the line"}),
    (one_loop(rod_sign=-1), {PAZ: 'the rod points away from its eye'}),
    (tree(3, 4, cylinder_branches=True, friction=True), {
        PAZ: 'stands on a cylinder', DENOC: 'no body that all loops share'})],
    ids=['two loops', 'branches', 'offset', 'reversed', 'on cylinders'])
def test_reasons_why_a_formulation_does_not_apply(machine, reasons):
    result = examine(load(machine))
    for name in FORMULATIONS:
        assert reasons.get(name, '') in result.reasons[name]
    assert applying(result) == set(FORMULATIONS) - set(reasons)
    assert result.largest[1].value < TIGHT


def test_reasons_of_general_machines(rng):
    five_bar = psdyn_ros.load(URDF / 'five_bar.urdf', actuated=['shoulder_1', 'elbow_1'])
    result = examine(five_bar)
    assert result.reasons[DENOC].startswith("2 actuated joints in the leg of 'fore_1_link'")
    assert result.reasons[PAZ] == "loop 'pin_c' is no triangle of boom, barrel and rod"
    floating = examine(_general(rng, ['four_bar'], floating=True))
    assert floating.reasons[DENOC] == floating.reasons[PAZ] == 'the base floats'
    assert result.agree and floating.agree


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


@pytest.fixture
def psdyn(capsys):
    load(one_loop())        # a first load may say that it compiles

    def run(*arguments):
        capsys.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        out, errors = capsys.readouterr()
        assert 'Traceback' not in errors
        return code, out, errors
    return run


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
    monkeypatch.setattr(cli, 'Mechanism', lambda description, *rest: Mechanism(
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


# --- independence


def test_formulations_reach_no_kernel_by_any_import():
    """Also not through the files of the model that they import."""
    package = Path(psdyn_ros.__file__).parent
    todo, seen = sorted((package / 'formulations').rglob('*.py')), set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                target = path.parents[node.level - 1].joinpath(*(node.module or '').split('.'))
                found = [target.with_suffix('.py'), target / '__init__.py',
                         *((target / alias.name).with_suffix('.py') for alias in node.names)]
                todo += [one for one in found if one.is_file()]
    assert package / 'model' / 'tree.py' in seen
    assert {path.relative_to(package).parts[0] for path in seen} == {'formulations', 'model'}
