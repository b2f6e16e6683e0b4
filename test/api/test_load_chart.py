"""Workspace and load chart: samples inside the stated extremes; a cylinder exactly at its limit at every node."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import thorough
from support.cases import made
from support.comparison import error
from support.paths import CONFIG, ROOT

import psdyn_ros
from psdyn_ros import ActuationError, ModelError, StateError
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

POINT = (0.0, 0.05, -0.1)


@cache
def machine(name):
    return psdyn_ros.load(str(ROOT / 'urdf' / f'{name}.urdf'))


@cache
def hydraulics(name):
    return read_hydraulics(CONFIG / f'{name}_hydraulics.yaml', machine(name).actuators)


@cache
def chart(name, pressure=None):
    return machine(name).load_chart('tcp', point=POINT, hydraulics=hydraulics(name),
                                    pressure=pressure, nodes=(10, 10))


@pytest.mark.parametrize('name', thorough(['hiab_xs031', 'excavator'], 1))
def test_actuator_is_exactly_at_its_limit_under_the_mass_of_the_chart(name):
    """Inverse dynamics with the weight as a wrench, and of a machine with the mass as a payload."""
    m, found = machine(name), chart(name)
    link, rest = 'tcp', np.zeros(m.dof)
    nodes = np.argwhere(np.isfinite(found.mass))
    assert len(nodes) > 20
    for i, j in nodes[::3]:
        x, mass, row = found.x[i, j], found.mass[i, j], found.limiting[i, j]
        pose = m.link_pose(x, link)
        weight = pose[:3, :3].T @ (mass * m.gravity)
        f = m.inverse_dynamics(x, rest, rest, wrenches={link: (weight, np.cross(POINT, weight))})
        limit = found.upper[row] if f[row] > 0.0 else found.lower[row]
        assert abs(f[row] / limit - 1.0) < 1e-9
        assert (f <= found.upper * (1.0 + 1e-9)).all() and (f >= found.lower * (1.0 + 1e-9)).all()
        at = pose[:3, :3] @ POINT + pose[:3, 3]
        assert np.hypot(*at[:2]) == pytest.approx(found.reach[j], abs=1e-5)
        assert at[2] == pytest.approx(found.height[i], abs=1e-5)
    i, j = nodes[len(nodes) // 2]
    loaded = m.with_payload(link, found.mass[i, j], POINT, np.zeros((3, 3)))
    f = loaded.inverse_dynamics(found.x[i, j], rest, rest)
    row = found.limiting[i, j]
    assert abs(f[row] / (found.upper[row] if f[row] > 0.0 else found.lower[row]) - 1.0) < 1e-9


@pytest.mark.parametrize('name, link, hung', thorough([
    ('loader_crane', 'tcp', 'load'), ('forwarder', 'stage_2_link', 'grapple_link')], 1, several=True))
def test_load_hangs_beside_the_mass_of_the_chart(name, link, hung):
    """At the stable position of rest that `equilibrium` finds for a machine with the mass as a payload."""
    m = machine(name)
    found = m.load_chart(link, hydraulics=hydraulics(name), nodes=(6, 6))
    nodes = np.argwhere(np.isfinite(found.mass))
    driven = [joint not in m.passive_joints for joint in m.coordinates]
    assert len(nodes) > 8
    for i, j in nodes[::4]:
        x, row = m.initial_position.copy(), found.limiting[i, j]
        x[driven] = found.x[i, j]
        loaded = m.with_payload(link, found.mass[i, j], np.zeros(3), np.zeros((3, 3)))
        rest = loaded.equilibrium(x, settle=True)
        f = loaded.gravity_forces(rest.x)
        assert rest.stability != 'unstable'
        assert abs(f[row] / (found.upper[row] if f[row] > 0.0 else found.lower[row]) - 1.0) < 1e-6
    with pytest.raises(ModelError, match=f"'{hung}' hangs from passive joints; expected '{link}'"):
        m.load_chart(hung)


def test_capacity_falls_with_the_pressure_and_with_the_reach():
    low, high = chart('hiab_xs031', 8e6), chart('hiab_xs031')
    both = np.isfinite(low.mass) & np.isfinite(high.mass)
    assert both.any() and (low.mass[both] < 1.02 * high.mass[both]).all()
    assert np.nanmean(low.mass[both] / high.mass[both]) < 0.8
    capacity = high.capacity()
    capacity = capacity[np.isfinite(capacity)]
    assert capacity[-1] < 0.7 * capacity.max()


def test_mass_that_nothing_limits_names_no_actuator():
    """A slide along the ground: its actuator carries no weight."""
    m = psdyn_ros.load('''<robot name="slide"><link name="base"/><link name="a"><inertial><mass value="5"/>
      <inertia ixx="1" iyy="1" izz="1.2" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="prismatic">
      <parent link="base"/><child link="a"/><limit lower="-1" upper="1" velocity="1" effort="9"/></joint>
      </robot>''', actuated=['j'])
    found = m.load_chart('a', nodes=(2, 2))
    assert (found.mass[np.isfinite(found.x[:, :, 0])] == np.inf).all() and np.isfinite(found.x).any()
    assert (found.limiting == -1).all()


def test_limits_are_areas_times_pressure():
    m, supply = machine('hiab_xs031'), hydraulics('hiab_xs031').supply
    found, lift = chart('hiab_xs031', 5e6), hydraulics('hiab_xs031').cylinders['lift_cylinder']
    row = m.actuators.index('lift_cylinder')
    assert error(found.upper[row], 5e6 * lift.area_a - supply.return_pressure * lift.area_b) < 1e-12
    assert error(found.lower[row], supply.return_pressure * lift.area_a - 5e6 * lift.area_b) < 1e-12


def test_regenerative_valve_pushes_with_the_difference_of_the_areas():
    """The piston with the pump pressure in both chambers, force by force; pulling is as with any valve."""
    m, oil = machine('hiab_xs031'), hydraulics('hiab_xs031')
    lift = oil.cylinders['lift_cylinder']
    regenerative = replace(lift, valve=replace(lift.valve, regenerative=True))
    found = m.load_chart('tcp', hydraulics=replace(oil, cylinders={**oil.cylinders, 'lift_cylinder': regenerative}),
                         pressure=5e6, nodes=(2, 2))
    row = m.actuators.index('lift_cylinder')
    assert error(found.upper[row], 5e6 * lift.area_a - 5e6 * lift.area_b) < 1e-12
    assert found.lower[row] == chart('hiab_xs031', 5e6).lower[row]


@pytest.mark.parametrize('name', thorough(['hiab_xs031', 'excavator', 'five_bar', 'pkm_2pur2rpu'], 1))
def test_workspace_contains_random_positions(name, rng):
    m = machine(name)
    link, found = 'tcp', m.workspace('tcp', samples=2000)
    assert len(found.positions) == len(found.x) > 50
    for x, position in zip(found.x[::40], found.positions[::40]):
        assert error(m.link_pose(x, link)[:3, 3], position) < 1e-12
    assert (found.positions >= found.lower - 1e-6).all() and (found.positions <= found.upper + 1e-6).all()
    distances = np.hypot(*found.positions.T[:2])
    assert found.reach[0] <= distances.min() + 1e-9 and found.reach[1] >= distances.max() - 1e-6
    assert found.height[0] <= found.positions[:, 2].min() + 1e-6
    assert found.height[1] >= found.positions[:, 2].max() - 1e-6


def test_longest_reach_of_the_crane_is_that_of_many_more_samples():
    m = machine('hiab_xs031')
    few, many = (m.workspace('tcp', samples=count).reach[1] for count in (500, 8000))
    assert few == pytest.approx(many, rel=1e-6)


@pytest.mark.parametrize('name, options, kind, message', [
    ('hiab_xs031', {'pressure': 2e7}, StateError, 'give the hydraulics too'),
    ('hiab_xs031', {'hydraulics': True, 'pressure': 0.0}, StateError, 'more than the return pressure'),
    ('hiab_xs031', {'nodes': (1, 5)}, StateError, 'two or more'),
    ('under_actuated', {}, ActuationError, 'actuators for')])
def test_what_does_not_fit_is_named(name, options, kind, message):
    m = made(name).m if name == 'under_actuated' else machine(name)
    options = {key: hydraulics(name) if value is True else value for key, value in options.items()}
    with pytest.raises(kind, match=message):
        m.load_chart(m.links[-1], **options)
