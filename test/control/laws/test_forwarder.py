"""The forwarder's crane: a telescope by a chain, a grapple on free pins, all on oil."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from psdyn_ros.control import ControllerConfig, assemble, follow
from psdyn_ros.formulations.adapters import Mechanism, call_witnesses
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.tools.demo.demonstration import demonstration

TRAVEL = {'slew': 0.5, 'lift_cylinder': 0.08, 'jib_cylinder': 0.06, 'telescope': 0.4, 'rotator': 0.5}


@cache
def config():
    found = ControllerConfig.from_files(find_machine('forwarder'), find_config('forwarder_hydraulics.yaml'),
                                        safety=find_config('forwarder_safety.yaml'))
    return replace(found, swing_shaper='none', swing_damping=0.0)       # which leave the reference for the load


def test_the_chain_doubles_the_way_of_the_telescope():
    m = config().machine
    x = m.initial_position.copy()
    x[m.coordinates.index('telescope')] = 0.2
    near, far = m.link_pose(x, 'jib_link'), m.link_pose(x, 'stage_2_link')
    x[m.coordinates.index('telescope')] = 0.7
    moved = m.link_pose(x, 'stage_2_link')[:3, 3] - far[:3, 3]
    assert moved == pytest.approx(2 * 0.5 * near[:3, 0], abs=1e-12) and m.passive_joints == ('tip_pitch', 'tip_roll')


def test_the_grapple_hangs_at_rest_where_the_machine_starts():
    m = config().machine
    rest = m.generalized_forces(m.initial_position, np.zeros(m.dof), np.zeros(m.dof))
    assert rest[[m.coordinates.index(name) for name in m.passive_joints]] == pytest.approx(0.0, abs=1e-3)


def test_the_natural_orthogonal_complement_agrees(rng):
    m = config().machine
    mechanism = Mechanism(m.machine.description, m.coordinates, m.actuators, (0.0, 0.0, -9.81))
    start = dict(zip(*m.joint_state(m.initial_position)[:2]))
    for _ in range(5):
        x = m.initial_position + rng.uniform(-0.04, 0.04, m.dof)
        xd, xdd = rng.normal(size=(2, m.dof))
        posture = mechanism.posture(x, start)
        noc = call_witnesses(mechanism, posture)[0].dynamics
        np.testing.assert_allclose(m.generalized_forces(x, xd, xdd), noc.inverse(posture, xd, xdd, {}), rtol=1e-9,
                                   atol=1e-6)


@pytest.mark.long
def test_all_of_it_follows_on_oil():
    c = config()
    plant = HydraulicPlant(c.machine, c.hydraulics, period=c.period)
    record = follow(assemble(c), plant, demonstration(c.machine, 10.0, TRAVEL), 11.0)
    rows = np.isfinite(record.desired[:, 0, 0])
    rms = np.sqrt(np.mean((record.desired[rows, 0] - record.x[rows, :5]) ** 2, axis=0))
    assert record.reasons == () and not plant.fault and np.ptp(record.x[:, 0]) > 0.45
    assert (rms < (5e-4, 3e-4, 5e-4, 3e-4, 5e-4)).all(), dict(zip(c.machine.actuators, rms))
