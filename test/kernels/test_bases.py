"""Bases that float: the rigid body of the textbooks, momentum, orientation; and bases that are moved."""

import numpy as np
import pytest
from support import urdf_text as urdf
from support.comparison import error
from support.general_machines import general_machine, general_state
from support.machines import random_state, tree
from support.witnesses.general_oracle import GeneralOracle

import psdyn_ros
from psdyn_ros import BaseDrive, BaseMotion
from psdyn_ros.api.orientation import rotation

MASS, COM = 4.0, np.array((0.1, -0.2, 0.05))
TURN = urdf.rotation((0.4, -0.3, 0.8))  # of the principal axes
PRINCIPAL = np.array((0.3, 0.5, 0.7))
ARM = ['four_bar', 'slide', 'spatial_spherical']


def body(principal=PRINCIPAL, com=COM, turn=TURN, joint_pose=((0, 0, 0), (0, 0, 0)), gravity=(0.0, 0.0, -9.81)):
    """One rigid body that floats; its principal moments are about its centre of mass."""
    xml = urdf.robot('body', [
        urdf.link('world'), urdf.link('hull', MASS, com, turn @ np.diag(principal) @ turn.T),
        urdf.joint('free', 'floating', 'world', 'hull', *joint_pose)])
    return psdyn_ros.load(xml, actuated=[], gravity=gravity)


def arm(rng, gravity=None, kinds=ARM, friction=True):
    """A floating machine, its engine and a state."""
    machine = general_machine(rng, kinds, floating=True, friction=friction)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
    m = psdyn_ros.load(machine.xml, gravity=machine.gravity if gravity is None else gravity, coordinates=coordinates)
    return machine, m, general_state(machine, oracle, rng)


def random_quaternion(rng):
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def momentum(m, x, xd):
    """Return linear and angular momentum (6,) about the inertial origin, link by link."""
    total = np.zeros(6)
    for name, link in m.machine.description.links.items():
        if link.inertial:
            pose, twist = m.link_pose(x, name), m.link_twist(x, xd, name)
            R, w = pose[:3, :3], twist[3:]
            p = link.inertial.mass * R @ (twist[:3] + np.cross(w, link.inertial.com))
            total[:3] += p
            total[3:] += R @ link.inertial.inertia @ w + np.cross(pose[:3, 3] + R @ link.inertial.com, p)
    return total


def march(m, x, xd, f, step, steps, stiffness=0.0):
    integrator = m.integrator(step, stiffness=stiffness)
    x, xd = x.copy(), xd.copy()
    for _ in range(steps):
        assert integrator.step(x, xd, f) == 0
    return x, xd


def test_newton_and_euler(rng):
    """m (v_c' + w x v_c) = F + m g and I w' + w x I w = M about the centre of mass, in body axes."""
    m, inertia = body(), TURN @ np.diag(PRINCIPAL) @ TURN.T
    for _ in range(5):
        x, xd, wrench = np.concatenate((rng.normal(size=3), random_quaternion(rng))), rng.normal(size=6), rng.normal(
            size=(2, 3)) * 30
        v, w = np.split(xd, 2)
        dw = np.linalg.solve(inertia, wrench[1] - np.cross(COM, wrench[0]) - np.cross(w, inertia @ w))
        dv = wrench[0] / MASS + rotation(x[3:]).T @ (0, 0, -9.81)
        dv -= np.cross(w, v + np.cross(w, COM)) + np.cross(dw, COM)
        assert error(m.forward_dynamics(x, xd, [], wrenches={'hull': wrench}), [*dv, *dw]) < 1e-12
        assert np.abs(m.generalized_forces(x, xd, [*dv, *dw], wrenches={'hull': wrench})).max() < 1e-11


def test_a_symmetric_top_turns_as_in_the_textbook():
    """Torque-free: its axis goes around the momentum at |L| / I1, its body turns on it at (1 - I3 / I1) w3."""
    I1, I3 = 0.5, 0.8
    m = body((I1, I1, I3), com=np.zeros(3), turn=np.eye(3), gravity=(0, 0, 0))
    w = np.array((0.9, 0.0, 2.0))
    x, xd, time = m.initial_position, np.array((0.3, -0.2, 0.1, *w)), 2.0
    L = np.array((I1, I1, I3)) * w
    ahead, rate = march(m, x, xd, np.zeros(0), 1e-3, 2000)
    axis = urdf.turn(L / np.linalg.norm(L), np.linalg.norm(L) / I1 * time)[:3, :3]
    spin = urdf.turn((0, 0, 1), (1 - I3 / I1) * w[2] * time)[:3, :3]
    assert error(rotation(ahead[3:]), axis @ spin) < 1e-10
    assert error(rate[3:], spin.T @ w) < 1e-10
    assert error(ahead[:3], xd[:3] * time) < 1e-10  # the centre of mass does not know of it


def test_momentum_and_energy_of_a_tumbling_body(rng):
    m = body(gravity=(0, 0, 0))
    x, xd = m.initial_position, rng.normal(size=6)
    before, energy = momentum(m, x, xd), sum(m.energy(x, xd))
    x, xd = march(m, x, xd, np.zeros(0), 2e-3, 1000)
    assert error(momentum(m, x, xd), before) < 1e-9
    assert sum(m.energy(x, xd)) == pytest.approx(energy, rel=1e-10)
    assert np.linalg.norm(x[3:]) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize('rpy', [(0, 0, 0), (0.7, -0.4, 2.0)])
def test_gravity_is_that_of_the_world(rpy, rng):
    """Whatever the orientation, and wherever the floating joint stands in the world."""
    g = np.array((1.0, 2.0, -9.0))
    m = body(joint_pose=((0.3, 0.2, 0.1), rpy), gravity=g)
    for _ in range(5):
        x = np.concatenate((rng.normal(size=3), random_quaternion(rng)))
        pose = m.link_pose(x, 'hull')
        assert error(pose, urdf.pose((0.3, 0.2, 0.1), rpy) @ homogeneous(x)) < 1e-14
        xdd = m.forward_dynamics(x, np.zeros(6), [])
        assert error(pose[:3, :3] @ xdd[:3], g) < 1e-13
        assert np.abs(xdd[3:]).max() < 1e-12
        assert m.energy(x, np.zeros(6))[1] == pytest.approx(-MASS * g @ (pose[:3, :3] @ COM + pose[:3, 3]))


def homogeneous(x):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation(x[3:7]), x[:3]
    return pose


def test_a_thrown_body_falls_on_a_parabola(rng):
    m = body()
    x, xd = np.concatenate((rng.normal(size=3), random_quaternion(rng))), rng.normal(size=6) * 3
    R = rotation(x[3:])
    start, v = x[:3] + R @ COM, R @ (xd[:3] + np.cross(xd[3:], COM))
    x, xd = march(m, x, xd, np.zeros(0), 1e-3, 500)
    assert error(x[:3] + rotation(x[3:]) @ COM, start + 0.5 * v + 0.125 * np.array((0, 0, -9.81))) < 1e-10


def test_no_orientation_is_singular():
    """A steady pitch through 90 degrees, and beyond, is as steady as any."""
    m = body(com=np.zeros(3), turn=np.eye(3), gravity=(0, 0, 0))
    x, xd = m.initial_position, np.array((0, 0, 0, 0, np.pi, 0))
    integrator = m.integrator(0.01)
    for k in range(1, 201):
        assert integrator.step(x, xd, np.zeros(0)) == 0
        assert error(rotation(x[3:]), urdf.turn((0, 1, 0), 0.01 * k * np.pi)[:3, :3]) < 1e-8
        assert np.abs(m.forward_dynamics(x, xd, [])).max() < 1e-13
    up = np.array((0, 0, 0, 0, np.sqrt(0.5), 0, np.sqrt(0.5)))
    assert error(m.link_pose(up, 'hull')[:3, 0], (0, 0, -1)) < 1e-15


def test_norm_and_sign_of_the_quaternion_do_not_matter(rng):
    _, m, s = arm(rng)
    expected = m.forward_dynamics(s.x, s.xd, s.f), m.link_pose(s.x, m.links[-1]), m.energy(s.x, s.xd)
    for factor in (-1.0, 7.0, 1e-3):
        x = s.x.copy()
        x[3:7] *= factor
        found = m.forward_dynamics(x, s.xd, s.f), m.link_pose(x, m.links[-1]), m.energy(x, s.xd)
        assert all(error(a, b) < 1e-12 for a, b in zip(found, expected))


def test_a_floating_arm_keeps_its_momentum(rng):
    """Without gravity, whatever its actuators do; friction, as stiff as it is, would need smaller steps."""
    _, m, s = arm(rng, gravity=(0, 0, 0), friction=False)
    before = momentum(m, s.x, s.xd)
    R = rotation(s.x[3:7])
    by_mass = m.mass_matrix(s.x)[:6] @ s.xd  # in base axes, about its origin
    p, L = R @ by_mass[:3], R @ by_mass[3:]
    assert error([*p, *(L + np.cross(s.x[:3], p))], before) < 1e-12
    x, xd = march(m, s.x, 0.2 * s.xd, 0.05 * s.f, 5e-4, 100)
    assert error(xd, 0.2 * s.xd) > 1e-3  # it did move
    assert error(momentum(m, x, xd), 0.2 * before) < 1e-8


def rooted(machine):
    """The machine on a fixed base."""
    xml = machine.xml.replace('<link name="world"/>', '')
    return xml[:xml.index('<joint name="float"')] + xml[xml.index('<link name="base_link"'):]


def test_a_driven_base_is_a_base_in_motion(rng):
    """All six coordinates driven: the machine on a fixed base that moves as prescribed."""
    machine, floating, s = arm(rng)
    coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
    fixed = psdyn_ros.load(rooted(machine), gravity=machine.gravity, coordinates=coordinates)
    (v, w), rate = np.split(s.xd[:6], 2), s.xdd[:6]
    motion = BaseMotion(s.x[3:7], s.xd[:6], rate + (*np.cross(w, v), 0, 0, 0))  # classical
    drive, wrenches = BaseDrive(acceleration=rate), {floating.links[-1]: rng.normal(size=(2, 3)) * 30}
    joints, joint = (s.x[7:], s.xd[6:], s.xdd[6:]), {'wrenches': wrenches}
    xdd = floating.forward_dynamics(s.x, s.xd, s.f, base=drive, **joint)
    assert error(xdd[:6], rate) < 1e-13
    assert error(xdd[6:], fixed.forward_dynamics(*joints[:2], s.f, base=motion, **joint)) < 1e-11
    assert error(floating.inverse_dynamics(s.x, s.xd, s.xdd, **joint),
                 fixed.inverse_dynamics(*joints, base=motion, **joint)) < 1e-11
    assert error(floating.base_wrench(s.x, s.xd, s.xdd, **joint),
                 fixed.base_wrench(*joints, base=motion, **joint)) < 1e-11
    for link in fixed.links:
        for free, driven in zip(floating.link_motion(s.x, s.xd, s.xdd, link),
                                fixed.link_motion(*joints, link, base=motion)):
            assert error(free, driven) < 1e-11
    for name in fixed.serial_joints:
        assert error(floating.joint_wrench(s.x, s.xd, s.xdd, name, **joint),
                     fixed.joint_wrench(*joints, name, base=motion, **joint)) < 1e-11


@pytest.mark.parametrize('driven', [(1, 1, 1, 0, 0, 0), (0, 0, 1, 1, 1, 0), (0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 0, 0)])
def test_a_base_may_be_driven_in_part(driven, rng):
    """What is free feels no wrench, what is driven goes as told, forward and inverse."""
    _, m, s = arm(rng)
    driven = np.array(driven, dtype=bool)
    drive, around = BaseDrive(driven, s.xdd[:6]), {'wrenches': {'base_link': rng.normal(size=(2, 3)) * 20},
                                                   'joint_efforts': {m.joints[-1]: 12.0}}
    xdd = m.forward_dynamics(s.x, s.xd, s.f, base=drive, **around)
    assert error(xdd[:6][driven], s.xdd[:6][driven]) < 1e-12
    needed = m.generalized_forces(s.x, s.xd, xdd, **around)
    scale = 1 + np.abs(s.f).max()
    assert np.abs(needed[:6][~driven]).max(initial=0.0) < 1e-11 * scale
    assert error(needed[6:], (m.actuator_map(s.x).T @ s.f)[6:]) < 1e-11
    assert error(m.base_wrench(s.x, s.xd, xdd, wrenches=around['wrenches']), needed[:6]) < 1e-12
    # inverse: accelerations of what is free are found, whatever stands in their place
    wanted = xdd.copy()
    wanted[:6][~driven] = 99.0
    assert error(m.generalized_forces(s.x, s.xd, wanted, base=drive, **around), needed) < 1e-10
    assert error(m.inverse_dynamics(s.x, s.xd, wanted, base=drive, **around),
                 m.inverse_dynamics(s.x, s.xd, xdd, **around)) < 1e-10
    felt = m.base_wrench(s.x, s.xd, wanted, base=drive, wrenches=around['wrenches'])
    assert np.abs(felt[~driven]).max(initial=0.0) < 1e-10 * scale


def test_a_resting_base_carries_the_weight(rng):
    machine, m, s = arm(rng)
    zero, R = np.zeros(m.dof), rotation(s.x[3:7])
    f, moment = np.split(m.base_wrench(s.x, zero, zero), 2)
    weight = m.total_mass * np.array(machine.gravity)
    assert error(R @ f, -weight) < 1e-12
    links = {name: link.inertial for name, link in m.machine.description.links.items() if link.inertial}
    com = sum(inertial.mass * (m.link_pose(s.x, name) @ (*inertial.com, 1))[:3] for name, inertial in links.items())
    assert error(R @ moment, np.cross(com / m.total_mass - s.x[:3], -weight)) < 1e-12


def test_floating_joints_elsewhere_are_refused():
    """One on an arm, beside other joints, or under a heavy root; and a loop from a floating machine to the world."""
    hull, tip = urdf.link('hull', MASS, COM, np.eye(3)), urdf.link('tip', 1.0, (0, 0, 0), np.eye(3))
    free = urdf.joint('free', 'floating', 'world', 'hull', (0, 0, 0), (0, 0, 0))
    turn = urdf.joint('turn', 'revolute', 'hull', 'tip', (0, 0, 0), (0, 0, 0), (0, 0, 1), (-1, 1))

    def load(*elements):
        return psdyn_ros.load(urdf.robot('r', elements), actuated=[])
    with pytest.raises(psdyn_ros.TreeError, match="its parent stands for the world and has no inertia; link 'world'"):
        load(urdf.link('world', 1.0, (0, 0, 0), np.eye(3)), hull, free)
    with pytest.raises(psdyn_ros.TreeError, match=r"only joint on the root 'world'; there is: free, turn"):
        load(urdf.link('world'), hull, free, tip, turn.replace('link="hull"', 'link="world"'))
    with pytest.raises(psdyn_ros.TreeError, match=r"floating joint 'late' .* must be the only joint on the root"):
        load(urdf.link('world'), hull, free, tip, urdf.joint('late', 'floating', 'hull', 'tip', (0, 0, 0), (0, 0, 0)))
    ground = ('world', (0, 0, 0), (0, 0, 0), (0, 0, 1)), ('tip', (0, 0, 0), (0, 0, 0), (0, 0, 1))
    with pytest.raises(psdyn_ros.LoopError, match="loop 'tie' runs over the floating base 'hull' to 'world'"):
        load(urdf.link('world'), hull, free, tip, turn, urdf.constraint('tie', *ground))
    with pytest.raises(psdyn_ros.ActuationError, match="actuated joint 'free' is the floating base"):
        psdyn_ros.load(urdf.robot('r', [urdf.link('world'), hull, free]), actuated=['free'])


# a base that is moved


def test_acceleration_upwards_is_gravity(rng):
    """d'Alembert: a base that accelerates at a is a base in a field of -a."""
    machine = tree(2, 5)
    a = rng.normal(size=3)
    s = random_state(machine, rng)
    weightless = psdyn_ros.load(machine.xml, gravity=(0, 0, 0))
    for call, third in (('inverse_dynamics', s.xdd), ('forward_dynamics', s.f), ('base_wrench', s.xdd)):
        accelerated = getattr(weightless, call)(s.x, s.xd, third, base=BaseMotion(acceleration=(*a, 0, 0, 0)))
        expected = getattr(psdyn_ros.load(machine.xml, gravity=-a), call)(s.x, s.xd, third)
        assert accelerated == pytest.approx(expected, rel=1e-12, abs=1e-10)


def test_a_base_on_a_carousel(rng):
    """A base at r on a turning body: v = w x r, and its acceleration, the classical one, is that of the circle."""
    machine = tree(2, 5)
    r, w, turn = rng.normal(size=(3, 3))
    arm = '<link name="hub"/>' + urdf.joint('arm', 'fixed', 'hub', 'base_link', r, (0, 0, 0))
    mounted = psdyn_ros.load(machine.xml.replace('<link name="base_link"', arm + '<link name="base_link"', 1))
    manipulator = psdyn_ros.load(machine.xml)
    s = random_state(machine, rng)
    orientation = rng.normal(size=4)
    hub = BaseMotion(orientation, (0, 0, 0, *w), (0, 0, 0, *turn))
    base = BaseMotion(orientation, (*np.cross(w, r), *w), (*(np.cross(turn, r) + np.cross(w, np.cross(w, r))), *turn))
    assert manipulator.inverse_dynamics(*s[:3], base=base) == pytest.approx(
        mounted.inverse_dynamics(*s[:3], base=hub), rel=1e-11, abs=1e-9)
    on_base, on_hub = manipulator.base_wrench(*s[:3], base=base), mounted.base_wrench(*s[:3], base=hub)
    assert on_hub[:3] == pytest.approx(on_base[:3], rel=1e-11, abs=1e-9)
    assert on_hub[3:] == pytest.approx(on_base[3:] + np.cross(r, on_base[:3]), rel=1e-11, abs=1e-9)
