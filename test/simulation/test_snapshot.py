"""Plants as files: they go on to the bit, and a step that failed fails again."""


import numpy as np
import pytest
from support.machines import URDF
from support.paths import CONFIG

import psdyn_ros
from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation import snapshot
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import FAULT, Plant


@pytest.fixture(scope='module')
def five_bar():
    return psdyn_ros.load(URDF / 'five_bar.urdf')


def broken(five_bar):
    """A plant that was driven through the stretched pose of its loop, where it cannot go on."""
    plant = Plant(five_bar, period=0.002, substeps=1, command_timeout=10.0)
    plant.set_environment(wrenches={five_bar.links[-1]: ((0.0, 0.0, -1.0), (0.0, 0.0, 0.0))})
    for _ in range(20_000):
        plant.step(np.array([40.0, -40.0]), 0.002)
        if plant.fault:
            return plant
    raise AssertionError('the five-bar went on')


@pytest.mark.long
def test_the_step_that_failed_fails_again_from_its_file(five_bar, tmp_path, capsys):
    plant = broken(five_bar)
    path = tmp_path / 'fault.npz'
    machine = snapshot.Machine((URDF / 'five_bar.urdf').read_text())
    snapshot.write_snapshot(path, plant, machine, wrenches={five_bar.links[-1]: ((0.0, 0.0, -1.0), (0.0, 0.0, 0.0))},
                            seed=5, notes={'faults': 'none'})
    before = snapshot.restore(path)
    assert before.x.tolist() == plant.x.tolist() and before.state != FAULT
    assert snapshot.replay(path).fault.split(':')[1] == plant.fault.split(':')[1]
    assert snapshot.main([str(path)]) == 0
    assert 'again: the motion cannot be integrated' in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ['fault.npz']


def test_a_hydraulic_plant_goes_on_from_its_file_to_the_bit_and_fails_again(tmp_path):
    crane = psdyn_ros.load(URDF / 'hiab_xs031.urdf')
    hydraulics = read_hydraulics(CONFIG / 'hiab_xs031_hydraulics.yaml', crane.actuators)
    plant = HydraulicPlant(crane, hydraulics, period=0.002, ttl=0.2, modes={'tilt_cylinder': 'effort'}, seed=9)
    command = np.array([500.0, 0.2, float(plant.force[2]), -0.1])
    plant.disturb('oil', 'temperature', 10.0)
    around = {'base': BaseMotion(twist=(0.0, 0.0, 0.0, 0.05, 0.0, 0.0)),
              'wrenches': {'tcp': ((10.0, 0.0, -300.0), (0.0, 5.0, 0.0))}}
    plant.set_environment(**around)
    for _ in range(50):
        plant.step(command, 0.002)
    machine = snapshot.Machine((URDF / 'hiab_xs031.urdf').read_text(),
                               hydraulics=(CONFIG / 'hiab_xs031_hydraulics.yaml').read_text())
    path = tmp_path / 'healthy.npz'
    snapshot.write_snapshot(path, plant, machine, **around)
    again = snapshot.replay(path, 20)
    for _ in range(20):
        plant.step(None, 0.002)
    assert again.x.tolist() == plant.x.tolist() and again.fluid.tolist() == plant.fluid.tolist()
    assert again.time == plant.time
    wrenches = {'tcp': ((1e12, 0.0, 1e12), (0.0, 0.0, 0.0))}
    plant.set_environment(wrenches=wrenches)
    for _ in range(100):
        x = plant.x.copy()
        plant.step(command, 0.002)
        if plant.fault:
            break
    assert plant.state == FAULT and np.isfinite(plant.x).all() and plant.x.tolist() == x.tolist()
    snapshot.write_snapshot(path, plant, machine, wrenches=wrenches)
    assert snapshot.replay(path).fault == plant.fault


def test_a_file_that_is_no_snapshot_is_named(tmp_path, capsys):
    odd = tmp_path / 'odd.npz'
    for contents in (b'', b'nothing', b'PK\x03\x04broken'):
        odd.write_bytes(contents)
        with pytest.raises(psdyn_ros.ModelError, match='odd.npz'):
            snapshot.restore(odd)
    np.savez(odd, about=np.array('{"format": "other", "state": {}}'))
    with pytest.raises(psdyn_ros.ModelError, match="'other'"):
        snapshot.restore(odd)
    np.savez(odd, about=np.array(['x'], dtype=object))
    with pytest.raises(psdyn_ros.ModelError, match='odd.npz'):
        snapshot.restore(odd)
    np.savez(odd, about=np.array('{"format": "psdyn_ros plant snapshot 1", "state": {}, "machine": {}}'))
    with pytest.raises(psdyn_ros.ModelError, match='not whole'):
        snapshot.restore(odd)
    assert snapshot.main([str(tmp_path / 'none.npz')]) == 2
    assert 'none.npz' in capsys.readouterr().err
