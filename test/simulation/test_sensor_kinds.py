"""Inertial measurement units and load pins: finite differences, Newton, and the way through file, fault and bag."""

import numpy as np
import pytest
from support.bags.recorded_motion import crane
from support.machines import URDF

import psdyn_ros
from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.api.orientation import rotation
from psdyn_ros.model.errors import DuplicateNameError, ModelError, UnknownNameError
from psdyn_ros.model.parameters import sensors as parameters
from psdyn_ros.model.parameters.sensors import Sensor, read_sensors
from psdyn_ros.simulation.faults import FaultInjector, read_fault
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.simulation.sensors import kinds
from psdyn_ros.simulation.sensors.kinds import channels_of, mountable
from psdyn_ros.simulation.sensors.plant_sensors import PlantSensors
from psdyn_ros.simulation.study import Study
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag

STEP = 1e-3                 # s of finite differences, fourth order
G = crane().gravity
FILE = """
default: {acceleration: {noise: 0.01}}
mounted: {imu: [telescope_link], load_pin: [telescope]}
links: {telescope_link: {acceleration: {bias: 0.5}, angular_velocity: {bias: 0.1}}}
joints: {telescope: {pin_force: {bias: 20}}}
"""


def moving(m, rng):
    """(x, xd, xdd) near the initial position."""
    return (m.initial_position, *(scale * rng.uniform(-1.0, 1.0, m.dof) for scale in (0.3, 1.0)))


def path(m, x, xd, xdd):
    """Function of time that returns positions with these rates and accelerations at 0."""
    return lambda t: x + t * xd + 0.5 * t * t * xdd


def derivatives(f):
    """(f', f'') at 0 of a function of time, by central differences of fourth order."""
    below, low, here, high, above = (f(k * STEP) for k in range(-2, 3))
    return ((below - 8.0 * low + 8.0 * high - above) / (12.0 * STEP),
            (-below + 16.0 * low - 30.0 * here + 16.0 * high - above) / (12.0 * STEP ** 2))


def sensed(pose):
    """(angular velocity, specific force) in link axes of a function of time that returns poses (4, 4) in the world."""
    rate, bend = derivatives(pose)
    turn = pose(0.0)[:3, :3]
    spin = turn.T @ rate[:3, :3]
    return np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), turn.T @ (bend[:3, 3] - G)


@pytest.mark.parametrize('name', ['hiab_xs031', 'five_bar'])
def test_inertial_sensor_reads_finite_differences_of_the_pose(name, rng):
    m = crane() if name == 'hiab_xs031' else psdyn_ros.load(str(URDF / f'{name}.urdf'))
    state = moving(m, rng)
    for link in m.links:
        twist, force = m.link_motion(*state, link)
        spin, expected = sensed(lambda t, link=link: m.link_pose(path(m, *state)(t), link))
        np.testing.assert_allclose(twist[3:], spin, atol=1e-6, err_msg=link)
        np.testing.assert_allclose(force, expected, atol=1e-4, err_msg=link)


def test_inertial_sensor_on_a_moving_base_feels_the_base(rng):
    m, state = crane(), moving(crane(), rng)
    q = np.array([0.1, -0.2, 0.05, 1.0])
    turn = rotation(q / np.linalg.norm(q))
    twist, bend = rng.uniform(-0.5, 0.5, (2, 6))

    def base(t):
        """Pose with this velocity and acceleration at 0; the angular velocity is constant in base axes."""
        angle = np.linalg.norm(twist[3:]) * t
        axis = twist[3:] / np.linalg.norm(twist[3:])
        pose = np.eye(4)
        pose[:3, :3] = turn @ rotation([*(np.sin(0.5 * angle) * axis), np.cos(0.5 * angle)])
        pose[:3, 3] = turn @ (twist[:3] * t + 0.5 * t * t * bend[:3])
        return pose

    motion = BaseMotion(q, twist, [*bend[:3], 0.0, 0.0, 0.0])
    for link in m.links:
        found, force = m.link_motion(*state, link, base=motion)
        spin, expected = sensed(lambda t, link=link: base(t) @ m.link_pose(path(m, *state)(t), link))
        np.testing.assert_allclose(found[3:], spin, atol=1e-6, err_msg=link)
        np.testing.assert_allclose(force, expected, atol=1e-4, err_msg=link)


def carried(m, joint):
    """Links beyond a joint of the tree."""
    joints, found = m.machine.description.joints, [m.machine.description.joints[joint].child]
    for link in found:
        found += [one.child for one in joints.values() if one.parent == link]
    return found


@pytest.mark.parametrize('joint', crane().serial_joints)
def test_load_of_a_joint_is_the_rate_of_momentum_of_what_it_carries(joint, rng):
    """Newton and Euler: sums over all bodies beyond the joint, about its origin, by finite differences."""
    m, state = crane(), moving(crane(), rng)
    child, links = m.machine.description.joints[joint].child, m.machine.description.links
    bodies = [(name, links[name].inertial) for name in carried(m, joint) if links[name].inertial]
    pose = m.link_pose(state[0], child)
    force, moment = np.zeros(3), np.zeros(3)
    for name, body in bodies:
        def of(t, name=name):
            return m.link_pose(path(m, *state)(t), name)

        def centre(t, body=body):
            return of(t)[:3, :3] @ body.com + of(t)[:3, 3]

        def spin(t, name=name, body=body):
            x, xd = path(m, *state)(t), state[1] + t * state[2]
            turn = of(t)[:3, :3]
            return turn @ body.inertia @ m.link_twist(x, xd, name)[3:]

        pull = body.mass * (derivatives(centre)[1] - G)
        force += pull
        moment += derivatives(spin)[0] + np.cross(centre(0.0) - pose[:3, 3], pull)
    found = m.joint_wrench(*state, joint)
    scale = np.abs(found).max()
    np.testing.assert_allclose(found[:3], pose[:3, :3].T @ force, atol=1e-5 * scale)
    np.testing.assert_allclose(found[3:], pose[:3, :3].T @ moment, atol=1e-5 * scale)


def test_load_pin_at_rest_carries_weight_and_an_external_force():
    m, zero = crane(), np.zeros(crane().dof)
    links = m.machine.description.links
    mass = sum(links[name].inertial.mass for name in carried(m, 'telescope') if links[name].inertial)
    turn = m.link_pose(m.initial_position, 'telescope_link')[:3, :3]
    found = m.joint_wrench(m.initial_position, zero, zero, 'telescope')
    np.testing.assert_allclose(found[:3], -turn.T @ (mass * G), rtol=1e-9)
    pulled = m.joint_wrench(m.initial_position, zero, zero, 'telescope',
                            wrenches={'telescope_link': ((100.0, 20.0, -30.0), (0.0, 0.0, 0.0))})
    np.testing.assert_allclose(pulled[:3], found[:3] - [100.0, 20.0, -30.0], atol=1e-9)


def test_a_joint_of_a_loop_carries_no_load_of_its_own():
    m, zero = crane(), np.zeros(crane().dof)
    assert set(m.serial_joints) == {'slew', 'telescope'}
    for joint in ('lift_boom', 'lift_cylinder', 'telescop'):
        with pytest.raises(UnknownNameError, match=f"joint '{joint}': no joint of .* that carries its load alone"):
            m.joint_wrench(m.initial_position, zero, zero, joint)


# sensors


def test_every_kind_of_channel_can_be_read_and_every_mounted_sensor_has_a_message():
    assert kinds.KINDS.keys() == parameters.KINDS.keys()
    assert kinds.MESSAGES.keys() == set(parameters.SENSORS)
    for kind, row in parameters.KINDS.items():
        assert bool(kinds.KINDS[kind].field) == bool(row.sensor)


def test_mounted_sensors_have_channels_errors_and_faults_by_name():
    plant = Plant(crane(), period=0.01)
    settings = read_sensors(FILE, channels_of(plant), mountable=mountable(plant))
    assert settings.of('telescope_link.acceleration_y') == Sensor(noise=0.01, bias=0.5)
    sensors = PlantSensors(plant, settings, 0)
    assert [one.frame for one in sensors.mounted] == ['telescope_link', 'telescope_link']
    faults = FaultInjector(sensors.bank, plant)
    faults.inject(read_fault('{kind: bias, target: telescope.pin_force_x, value: 300}'))
    faults.update(plant.time)
    plant.step(None, 0.01)
    sensors.sample(plant)
    readings, zero = sensors.readings(), np.zeros(4)
    twist, force = plant.manipulator.link_motion(plant.x, zero, zero, 'telescope_link')
    load = plant.manipulator.joint_wrench(plant.x, zero, zero, 'telescope')[:3]
    np.testing.assert_allclose(readings.mounted['angular_velocity', 'telescope_link'], twist[3:] + 0.1)
    np.testing.assert_allclose(readings.mounted['acceleration', 'telescope_link'], force + 0.5, atol=0.05)
    np.testing.assert_allclose(readings.mounted['pin_force', 'telescope'], load + [320.0, 20.0, 20.0])
    assert np.linalg.norm(force) == pytest.approx(-G[2])
    assert readings.position == pytest.approx(plant.manipulator.joint_state(plant.x)[1])


@pytest.mark.parametrize('text, error, message', [
    ('mounted: {imu: [telescope_lnk]}\n\n', UnknownNameError, "no imu can be on 'telescope_lnk'; did you mean"),
    ('mounted: {load_pin: [lift_boom]}\n\n', UnknownNameError, "no load_pin can be on 'lift_boom'"),
    ('mounted: {imu: telescope_link}\n\n', ModelError, 'expected a list of names'),
    ('mounted: {imu: [telescope_link, telescope_link]}\n\n', DuplicateNameError, 'has the imu twice'),
    ('mounted: {gyro: []}\n\n', ModelError, "'gyro' is not known; there are: imu, load_pin"),
    ('links: {telescope_link: {acceleration: {noise: 1}}}\n\n', UnknownNameError,
     "no link 'telescope_link' is measured"),
    ('mounted: {imu: [telescope_link]}\nlinks: {telescope_link: {position: {noise: 1}}}\n', ModelError,
     "'position' is not known")])
def test_files_of_mounted_sensors_are_read_strictly(text, error, message):
    plant = Plant(crane(), period=0.01)
    with pytest.raises(error, match=message):
        read_sensors(text, channels_of(plant), mountable=mountable(plant))


def test_a_bag_has_what_mounted_sensors_measured(tmp_path):
    from rosbags.highlevel import AnyReader
    plant = Plant(crane(), period=0.01)
    sensors = PlantSensors(plant, read_sensors(FILE, channels_of(plant), mountable=mountable(plant)), 0)
    commands = type('Held', (), {'next_change': lambda self, t: np.inf, 'at': lambda self, t: np.full(4, np.nan)})()
    written = []
    with SimulatedBag(tmp_path / 'bag', (), sensors.mounted) as bag:
        for readings in Study(plant, commands, sensors=sensors).run(0.05, 0.01):
            bag.write(plant, readings, readings)
            written.append(readings.mounted)
    with AnyReader([tmp_path / 'bag']) as reader:
        found = {topic: [reader.deserialize(data, connection.msgtype) for connection, _, data in reader.messages(
            [one for one in reader.connections if one.topic == topic])]
            for topic in ('/simulator/imu/telescope_link', '/simulator/load_pin/telescope')}
    for k, (imu, pin) in enumerate(zip(*found.values(), strict=True)):
        a, f = imu.linear_acceleration, pin.wrench.force
        np.testing.assert_array_equal([a.x, a.y, a.z], written[k]['acceleration', 'telescope_link'])
        np.testing.assert_array_equal([f.x, f.y, f.z], written[k]['pin_force', 'telescope'])
        assert imu.orientation_covariance[0] == -1.0 and imu.header.frame_id == 'telescope_link'
        assert imu.header.stamp.nanosec == pin.header.stamp.nanosec == k * 10_000_000
    assert len(written) == 6
