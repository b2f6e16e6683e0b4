"""The machines of urdf/: sizes, initial positions, limits, configuration, and what is known of each.

test_papers compares them with the reference numbers, test_dynamics with the independent engine.
"""

from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from conftest import thorough
from support.paths import ROOT
from support.reference import reference
from support.witnesses.general_oracle import GeneralOracle, read_control

import psdyn_ros
from psdyn_ros.model.locate import find_machine, machine_names
from psdyn_ros.simulation.external_forces import ExternalForces

MASSES = {'four_bar': 9.5, 'five_bar': 7.7, 'pkm_2pur2rpu': 0.34386, 'balloon': 16.0, 'excavator': 20937.0}
FREEDOM = {'four_bar': (1, 1), 'five_bar': (2, 2), 'pkm_2pur2rpu': (3, 4), 'balloon': (9, 0), 'excavator': (4, 5)}
DRIVEN = [name for name, (_, actuators) in FREEDOM.items() if actuators]
UNPHYSICAL = ('balloon',)
# joints of the oracle's x, where its own choice is less well conditioned
CHOSEN = {'pkm_2pur2rpu': ('slider_1', 'slider_2', 'leg_3'),
          'excavator': ('swing', 'boom_cylinder_left', 'arm_cylinder', 'bucket_cylinder')}
BARS = {'four_bar': ('coupler', 'rocker'), 'five_bar': ('elbow_1', 'elbow_2')}


def text_of(name):
    return (ROOT / 'urdf' / f'{name}.urdf').read_text()


@cache
def machine(name, **options):
    return psdyn_ros.load(find_machine(name), allow_unphysical=name in UNPHYSICAL, **options)


@cache
def engine(name):
    return GeneralOracle(text_of(name), coordinates=CHOSEN.get(name))


def test_every_machine_is_listed_here():
    assert set(machine_names()) >= MASSES.keys() and MASSES.keys() == FREEDOM.keys()


@pytest.mark.parametrize('name', thorough([*MASSES], 2))
def test_size_of_the_machines(name):
    m = machine(name)
    assert (m.dof, len(m.actuators)) == FREEDOM[name]
    assert m.total_mass == pytest.approx(MASSES[name], rel=1e-12)


@pytest.mark.parametrize('name', MASSES)
def test_declared_initial_positions_close_every_loop(name):
    declared = read_control(ElementTree.fromstring(text_of(name)))[1]
    o, m = engine(name), machine(name)
    assert declared.keys() == set(o.joints)
    q = np.concatenate(([0.0] * 6, [1.0], [declared[joint] for joint in o.joints]))
    assert np.abs(o._gaps(q)).max(initial=0.0) < 1e-14
    names, position, _, _ = m.joint_state(m.initial_position)
    np.testing.assert_allclose(position, [declared[joint] for joint in names], atol=1e-13)


@pytest.mark.parametrize('name', MASSES)
def test_initial_positions_are_within_the_limits(name):
    declared = read_control(ElementTree.fromstring(text_of(name)))[1]
    for joint, position in declared.items():
        limits = machine(name).machine.description.joints[joint]
        assert limits.lower < position < limits.upper, joint


@pytest.mark.parametrize('name', MASSES)
def test_every_machine_has_its_configuration(name):
    nodes = yaml.safe_load((ROOT / 'config' / f'{name}.yaml').read_text())
    assert {'/**/simulator', '/**/controller', '/**/demo'} >= nodes.keys() >= {'/**/simulator'}
    assert ('/**/controller' in nodes) == (name in DRIVEN)
    for node in nodes.values():
        assert node['ros__parameters'].get('allow_unphysical', False) == (name in UNPHYSICAL)


@pytest.mark.parametrize('name', BARS)
def test_the_header_names_the_start_of_the_other_assembly_mode(name):
    header = ' '.join(text_of(name).split('-->')[0].split())
    given = header.split('initial={')[1].split('}')[0]
    other = {pair.split(':')[0].strip().strip("'"): float(pair.split(':')[1]) for pair in given.split(',')}
    assert other.keys() == set(BARS[name])
    row = reference(f'{name}_inverse_dynamics')['cases'][1]['inverse_dynamics'][0]
    below = row['theta'][1:] if 'theta' in row else row['theta2']
    np.testing.assert_allclose(list(other.values()), below, atol=1e-12)


def test_pkm_starts_where_the_sliders_and_legs_are_a_mirror_image():
    m = machine('pkm_2pur2rpu')
    x = m.initial_position
    force = m.gravity_forces(x)
    assert force[2] == pytest.approx(force[3], abs=1e-12)
    assert dict(zip(m.coordinates, x))['slider_1'] == pytest.approx(-dict(zip(m.coordinates, x))['slider_2'], abs=1e-15)


@cache
def balloon():
    m = machine('balloon')
    return m, ExternalForces(m, ROOT / 'config' / 'balloon.yaml')


def balloon_state(row):
    return (np.array([*row['position_B'], *row['quat_xyzw'], row['p'], row['theta1'], row['theta2']]),
            np.array([*row['v_body'], *row['omega_body'], row['pd'], row['theta1d'], row['theta2d']]))


def test_balloon_has_the_energy_of_the_reference_and_keeps_its_momentum():
    (m, forces), data = balloon(), reference('balloon')
    for row in data['rows']:
        x, xd = balloon_state(row)
        assert sum(m.energy(x, xd)) + forces.energy(x) == pytest.approx(row['energy'], abs=1e-8)
        # buoyancy carries the weight: masses on their links, velocities of their centres, in the world
        momentum = np.zeros(3)
        for link, mass, com in (('balloon', 10, 0), ('slider_link', 1, 0), ('pendulum_1_link', 2, -1.2),
                                ('pendulum_2_link', 3, -1.6)):
            twist = m.link_twist(x, xd, link)
            momentum += mass * m.link_pose(x, link)[:3, :3] @ (twist[:3] + np.cross(twist[3:], (0, com, 0)))
        assert np.abs(momentum).max() < 1e-8


def test_excavator_twin_cylinders_share_the_boom():
    m = machine('excavator')
    x = m.initial_position
    force = dict(zip(m.actuators, m.gravity_forces(x)))
    assert force['boom_cylinder_left'] == pytest.approx(force['boom_cylinder_right'], rel=1e-12)
    assert 5e4 < force['boom_cylinder_left'] < 2e5
    names, position, _, _ = m.joint_state(x)
    strokes = dict(zip(names, position))
    assert strokes['boom_cylinder_left'] == pytest.approx(strokes['boom_cylinder_right'], abs=1e-12)
    # whatever one pushes more the other may pull, and nothing moves
    f = m.gravity_forces(x) + np.array([0, 5e4, -5e4, 0, 0])
    assert np.abs(m.forward_dynamics(x, np.zeros(4), f)).max() < 1e-9


def test_excavator_reaches_all_strokes_within_the_limits_of_its_joints():
    m = machine('excavator')
    joints = [m.machine.description.joints[joint] for joint in m.joints]
    limits, seen = m.coordinate_limits, []
    for share in np.linspace(0.0, 1.0, 15):
        x = limits.lower + share * (limits.upper - limits.lower)
        seen.append(m.joint_state(x)[1])
    for joint, values in zip(joints, np.array(seen).T):
        assert joint.lower - 1e-9 <= values.min() and values.max() <= joint.upper + 1e-9, joint.name
    travel = dict(zip(m.joints, np.degrees(np.ptp(seen, axis=0))))
    assert 100 < travel['boom'] < 110 and 105 < travel['arm'] < 120 and 160 < travel['bucket'] < 175


def test_excavator_bucket_follows_its_four_bar():
    m = machine('excavator')
    x = m.initial_position
    for stroke in np.linspace(0.0, 1.04, 9):
        x[m.coordinates.index('bucket_cylinder')] = stroke
        pins = {link: m.link_pose(x, link) for link in ('arm_link', 'rocker_link', 'coupler_link', 'bucket_link')}
        far = (pins['coupler_link'] @ [0.6, 0, 0, 1])[:3]
        ear = (pins['bucket_link'] @ [-0.0816, 0.4629, 0, 1])[:3]
        assert np.abs(far - ear).max() < 1e-12
        assert np.linalg.norm(pins['rocker_link'][:3, 3] - pins['coupler_link'][:3, 3]) == pytest.approx(0.62)
        cylinder = (pins['arm_link'] @ [0.42, 0.62, 0, 1])[:3] - pins['coupler_link'][:3, 3]
        assert np.linalg.norm(cylinder) == pytest.approx(1.62 + stroke, abs=1e-12)


def test_excavator_masses_are_of_its_class():
    links = machine('excavator').machine.description.links
    weigh = {name: link.inertial.mass for name, link in links.items() if link.inertial}
    for name, low, high in (('upper_link', 9e3, 1e4), ('boom_link', 1.5e3, 2e3), ('arm_link', 800, 1000),
                            ('bucket_link', 600, 800)):
        assert low <= weigh[name] <= high
    for cylinder in ('boom_left', 'boom_right', 'arm', 'bucket'):
        kind, _, side = cylinder.partition('_')
        both = [f'{kind}_{part}' + (f'_{side}' if side else '') + '_link' for part in ('barrel', 'rod')]
        assert 100 <= sum(weigh[name] for name in both) <= 220
    inertia = links['upper_link'].inertial.inertia
    assert np.abs(inertia[np.triu_indices(3, 1)]).min() > 10.0


def test_pictures_of_the_machines_exist():
    for name in MASSES:
        assert (ROOT / 'docs' / 'images' / f'{name}.png').stat().st_size > 10_000
