"""Delta robot, Stewart platform and RSSR against the independent engine."""

import numpy as np
import pytest
from conftest import thorough
from support.cases import Case
from support.general_machines import general_state
from support.machines import load
from support.parallel_robots import delta_robot, rssr, stewart_platform
from support.witnesses.general_oracle import GeneralOracle
from test_dynamics import CLOSE, disagreements, round_trip

ROBOTS = {'delta': (delta_robot(), 3, 18), 'stewart': (stewart_platform(), 6, 21), 'rssr': (rssr(), 1, 4)}


@pytest.mark.parametrize('name', thorough([*ROBOTS], 1))
def test_agrees_with_the_independent_engine(name, rng):
    machine, dof, joints = ROBOTS[name]
    case = Case(machine, GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates),
                load(machine))
    assert case.m.dof == case.oracle.dof == dof
    assert case.m.coordinates == case.m.actuators == machine.actuators
    assert len(case.m.joints) == joints
    for _ in range(3):
        s = general_state(machine, case.oracle, rng, reach=0.15)
        found = disagreements(case, s, rng)
        assert max(found.values()) < CLOSE, found
        round_trip(case.m, s)


@pytest.mark.long
@pytest.mark.parametrize('name', ('delta', 'stewart'))
def test_legs_are_eliminated_within_their_own_rows(name):
    """Two joints of each of five legs in three rows; five joints are left for the five rows that are left."""
    machine, *_ = ROBOTS[name]
    loops = load(machine).machine.loops
    c, = loops.clusters
    assert (c['rows'], c['joints'] - c['freedom']) == (15, 15)
    assert loops.columns['rows'].tolist() == [3, 2] * 5 + [5, 4, 3, 2, 1]
    owners = [set(loops.column_rows[b['row']:b['row'] + b['rows']] // 3) for b in loops.columns]
    assert all(len(owner) == 1 for owner in owners[:10])
    pivots = loops.column_rows[loops.columns['row']]
    assert sorted(pivots) == list(range(15))


@pytest.mark.long
def test_the_delta_robot_only_translates(rng):
    m = load(ROBOTS['delta'][0])
    level = m.link_pose(m.initial_position, 'platform')[:3, :3]
    for _ in range(10):
        pose = m.link_pose(m.initial_position + rng.uniform(-0.4, 0.4, 3), 'platform')
        assert np.abs(pose[:3, :3] - level).max() < 1e-12
