"""The formulations on URDFs: random machines of every kind agree with the recursion, or say why they do not apply."""

import ast
from pathlib import Path

import numpy as np
import pytest
from conftest import thorough
from support.general_machines import KINDS
from support.machines import URDF, chain, loop_chain, tree
from support.one_loop import one_loop
from support.witnesses.witness_bench import (
    DENOC,
    NOC,
    PAZ,
    TIGHT,
    TITOP,
    applying,
    examine,
    general,
    load,
    mechanism_of,
    posture_of,
)

import psdyn_ros
from psdyn_ros.formulations import noc
from psdyn_ros.formulations.adapters import FORMULATIONS
from psdyn_ros.formulations.adapters.mechanism import friction_effort
from psdyn_ros.formulations.cross_check import witness_report
from psdyn_ros.model.errors import LoopClosureError

# --- healthy machines


@pytest.mark.parametrize('first', thorough(range(0, 24, 6), 1))
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


@pytest.mark.parametrize('kind', thorough([*KINDS], ('five_bar', 'spatial_prismatic')))
def test_general_loops(kind, rng):
    result = examine(general(rng, [kind], friction=True), seed=int(rng.integers(2**32)))
    assert result.largest[1].value < TIGHT, witness_report(kind, result)


@pytest.mark.parametrize('options', [
    {'floating': True}, {'redundant': True}, {'under_actuated': True}, {'own_coordinates': True},
    {'floating': True, 'redundant': True, 'friction': True}], ids=lambda options: '-'.join(options))
def test_floating_bases_and_any_number_of_actuators(options, rng):
    for _ in range(2):
        manipulator = general(rng, ['slider_crank', 'four_bar', 'turn'], **options)
        result = examine(manipulator, seed=int(rng.integers(2**32)))
        assert result.largest[1].value < TIGHT, witness_report('machine', result)
        redundant = len(manipulator.actuators) > len(manipulator.coordinates)
        assert ((NOC, 'efforts of least norm') in result.worst) == redundant


MACHINES = {'hiab_xs031': {NOC, TITOP, PAZ}, 'hiab_xs031_lift': {NOC, TITOP, DENOC, PAZ},
            'four_bar': {NOC, TITOP, DENOC}, 'five_bar': {NOC, TITOP, DENOC}, 'pkm_2pur2rpu': {NOC, TITOP},
            'excavator': {NOC, TITOP}, 'balloon': {NOC, TITOP}}


@pytest.mark.parametrize('name', thorough([*MACHINES], 2))
def test_machines_of_the_package(name):
    result = examine(psdyn_ros.load(URDF / f'{name}.urdf', allow_unphysical=True), states=5)
    assert applying(result) == MACHINES[name]
    assert result.largest[1].value < TIGHT, witness_report(name, result)


# --- what the mechanism computes, without the package


def test_rates_of_the_linkage_are_those_of_the_position(rng):
    """G xd and its rate against differences of closed positions, for loops in space and a floating base."""
    h = 2e-4
    for kinds, floating in ((['spatial_universal'], False), (['six_link', 'rsur'], True)):
        manipulator = general(rng, kinds, floating=floating)
        mechanism = mechanism_of(manipulator)
        posture = posture_of(manipulator, mechanism)
        xd = np.zeros(mechanism.dof)
        xd[mechanism.free:] = rng.normal(size=mechanism.dof - mechanism.free)   # the base stays: x is a vector then
        guess, rate = dict(zip(mechanism.joints, posture.q)), np.zeros(len(manipulator.initial_position))
        rate[-len(mechanism.coordinates):] = xd[mechanism.free:]
        near = [mechanism.posture(manipulator.initial_position + step * h * rate, guess) for step in (-2, -1, 1, 2)]
        slope = np.dot((1, -8, 8, -1), [at.q for at in near]) / (12 * h)
        bend = np.dot((1, -8, 8, -1), [at.G @ xd for at in near]) / (12 * h)
        for comp, ref in ((slope, (posture.G @ xd)[mechanism.free:]), (bend, mechanism.bias_acceleration(posture, xd))):
            assert np.abs(comp - ref).max() < 1e-7 * (1 + np.abs(ref).max())


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
    floating = examine(general(rng, ['four_bar'], floating=True))
    assert floating.reasons[DENOC] == floating.reasons[PAZ] == 'the base floats'
    assert result.agree and floating.agree


def test_loops_that_only_the_recursion_closes_are_no_agreement():
    """It projects a pin that is off parallel by rounded angles; the formulations do not."""
    manipulator = load(one_loop(boom_rpy=(5e-5, 0, 0)))
    mechanism = mechanism_of(manipulator)
    with pytest.raises(LoopClosureError, match='close up to a gap of .*e-05 .* parallel to rounding'):
        posture_of(manipulator, mechanism)


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
    assert package / 'model' / 'mechanism' / 'tree.py' in seen
    assert {path.relative_to(package).parts[0] for path in seen} == {'formulations', 'model'}
