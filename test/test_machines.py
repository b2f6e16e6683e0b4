"""The random machines keep their promises: closed, clear of toggle points, in both modes, repeatable."""

import numpy as np
import pytest
from support.general_oracle import GeneralOracle
from support.machines import chain, random_state, tree

SEEDS = range(12)


def sin_q(oracle, x, loop):
    """Return sin q of a loop about the axis of its rod eye, from the places of its pins."""
    c, b = (oracle.link_pose(x, f'{loop}_{part}_link')[:3, 3] for part in ('barrel', 'boom'))
    eye = oracle.data.oMf[oracle.model.getFrameId(f'{loop}_eye/parent')]
    across, lever, axis = b - c, eye.translation - b, eye.rotation[:, 2]
    across, lever = (v - v @ axis * axis for v in (across, lever))
    return axis @ np.cross(across, lever) / np.linalg.norm(across) / np.linalg.norm(lever)


@pytest.mark.parametrize('seed', SEEDS)
@pytest.mark.parametrize('make', [chain, tree])
def test_loops_close_and_stay_clear_of_toggle_points(make, seed, rng):
    machine = make(seed, 5)
    oracle = GeneralOracle(machine.xml, machine.gravity)
    assert oracle.closure([machine.initial[name] for name in machine.actuators]) < 5e-15
    loops = [name.removesuffix('_cylinder') for name in machine.actuators if name.endswith('_cylinder')]
    x = random_state(machine, rng).x
    ends = np.array([machine.span[name] for name in machine.actuators]).T
    for loop in loops:
        assert abs(sin_q(oracle, x, loop)) >= 0.2
        for end in ends:
            assert abs(sin_q(oracle, end, loop)) == pytest.approx(0.2, abs=1e-9)


def test_both_assembly_modes_and_all_kinds_of_mounting_occur():
    machines = [chain(seed, 'L') for seed in SEEDS]
    assert {sin_q(GeneralOracle(m.xml), [m.initial['m1_cylinder']], 'm1') > 0 for m in machines} == {True, False}
    for bracket in ('m1_barrel_bracket', 'm1_boom_bracket'):
        assert {bracket in machine.xml for machine in machines} == {True, False}


def test_limits_declare_the_same_machine():
    """Only limits and initial values differ between the two ways to declare the assembly mode."""
    declared, limited = chain(3, 'LL'), chain(3, 'LL', assembly='limits')
    assert 'initial_value' in declared.xml and 'initial_value' not in limited.xml
    assert limited.initial == declared.initial and limited.span == declared.span


def test_trees_branch_from_cylinders_on_request():
    for branches in (False, True):
        machines = [tree(seed, 'LLLLL', cylinder_branches=branches) for seed in SEEDS]
        assert any('<parent link="m1_rod_link"/><child' in machine.xml for machine in machines) == branches


def test_same_seed_same_machine():
    assert chain(5, 6) == chain(5, 6)
    assert chain(5, 6).xml != chain(6, 6).xml


def test_friction_is_on_every_joint_and_pin():
    xml = chain(1, 'RLP', friction=True).xml
    moving = xml.count('type="revolute"') + xml.count('type="prismatic"')  # pins are of type revolute too
    assert xml.count('<dynamics') == moving
    assert '<dynamics' not in chain(1, 'RLP').xml
