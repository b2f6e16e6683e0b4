"""The force-level plant as a two-port block: a base that is moved, wrenches on its links, what it does to its base."""

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF

import psdyn_ros
from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.api.orientation import quaternion
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.base_motion import BaseTracker
from psdyn_ros.simulation.external_forces import ExternalForces
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import FAULT, HELD, RUNNING, Plant

PERIOD = 0.002
GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope='module', params=['hiab_xs031', 'excavator'])
def machine(request):
    return psdyn_ros.load(URDF / f'{request.param}.urdf')


def test_it_stands_on_its_weight(machine):
    plant = Plant(machine, period=PERIOD)
    support = plant.base_wrench()
    weight = machine.total_mass * 9.81
    assert support[:3] == pytest.approx([0.0, 0.0, weight], rel=1e-9, abs=1e-6 * weight)
    assert plant.safe.all() and plant.held == machine.actuators and not plant.xdd.any()


def test_a_base_that_falls_carries_nothing_and_the_brakes_give_nothing(machine):
    plant = Plant(machine, period=PERIOD)
    plant.set_environment(BaseMotion(acceleration=(0.0, 0.0, -9.81, 0.0, 0.0, 0.0)))
    assert plant.base_wrench() == pytest.approx(np.zeros(6), abs=1e-7 * machine.total_mass)
    assert plant.force == pytest.approx(np.zeros(plant.force.size), abs=1e-6 * machine.total_mass)
    plant.step(None, 0.1)
    assert plant.state == HELD
    plant.set_environment()
    assert plant.force == pytest.approx(machine.gravity_forces(plant.x))


def test_it_moves_as_the_forward_dynamics_says_on_a_moving_base_under_wrenches(machine, rng):
    link = machine.links[-1]
    tilt = np.append(np.sin(0.1) * np.array([0.6, 0.8, 0.0]), np.cos(0.1))
    base = BaseMotion(tilt, rng.uniform(-0.5, 0.5, 6), rng.uniform(-2.0, 2.0, 6))
    wrenches = {link: (rng.uniform(-100.0, 100.0, 3), rng.uniform(-20.0, 20.0, 3))}
    plant = Plant(machine, period=1e-7, substeps=1)
    plant.set_environment(base, wrenches)
    force = machine.inverse_dynamics(plant.x, 0 * plant.xd, rng.uniform(-1.0, 1.0, plant.xd.size))
    force = np.clip(force, -machine.limits.effort, machine.limits.effort)
    expected = machine.forward_dynamics(plant.x, plant.xd, force, base=base, wrenches=wrenches)
    plant.step(force, 1e-7)
    assert plant.state == RUNNING
    assert plant.xd / 1e-7 == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(expected).max())
    assert plant.xdd == pytest.approx(machine.forward_dynamics(plant.x, plant.xd, plant.force, base=base,
                                                               wrenches=wrenches), rel=1e-9)


def test_what_holds_the_base_up_is_the_rate_of_momentum_less_weight(crane, rng):
    """By momenta of the bodies, differentiated: an independent sum over all links."""
    plant = Plant(crane, period=1e-4)
    force = crane.gravity_forces(plant.x) + [400.0, 3000.0, -1500.0, 300.0]
    bodies = {name: link.inertial for name, link in crane.machine.description.links.items() if link.inertial}

    def momentum():
        total = np.zeros(3)
        for link, inertial in bodies.items():
            twist = crane.link_twist(plant.x, plant.xd, link)
            turn = crane.link_pose(plant.x, link)[:3, :3]
            total += inertial.mass * turn @ (twist[:3] + np.cross(twist[3:], inertial.com))
        return total

    plant.step(force, 0.05)
    before = momentum()
    plant.step(force, 1e-4)
    support = plant.base_wrench()[:3]
    plant.step(force, 1e-4)
    rate = (momentum() - before) / 2e-4
    assert support == pytest.approx(rate - crane.total_mass * GRAVITY, rel=1e-5, abs=1e-2)


def test_a_hanging_load_is_felt_by_actuators_and_base(crane):
    link = crane.links[-1]
    plant = Plant(crane, period=PERIOD)
    alone, force = plant.base_wrench(), plant.force.copy()
    turn = crane.link_pose(plant.x, link)[:3, :3]
    plant.set_environment(wrenches={link: (turn.T @ [0.0, 0.0, -981.0], np.zeros(3))})
    assert (plant.base_wrench() - alone)[:3] == pytest.approx([0.0, 0.0, 981.0], abs=1e-6)
    assert plant.force == pytest.approx(crane.inverse_dynamics(
        plant.x, plant.xd, plant.xd, wrenches={link: (turn.T @ [0.0, 0.0, -981.0], np.zeros(3))}))
    assert np.abs(plant.force - force).max() > 1000.0


def test_a_wrench_stays_where_it_acts_while_the_machine_moves(crane):
    """A force on a rod, constant in its axes: the work it does is that of its own displacement."""
    link = 'lift_rod_link'
    plant = Plant(crane, period=1e-3, command_timeout=10.0)
    wrenches = {link: ((300.0, 200.0, 400.0), (0.0, 0.0, 0.0))}
    plant.set_environment(wrenches=wrenches)
    force = crane.gravity_forces(plant.x) + [0.0, 2500.0, -500.0, 100.0]
    start, work, before = sum(crane.energy(plant.x, plant.xd)), 0.0, 0.0
    x = plant.x.copy()
    for _ in range(300):
        plant.step(force, 1e-3)
        power = wrenches[link][0] @ crane.link_twist(plant.x, plant.xd, link)[:3]
        work += 0.5e-3 * (before + power)
        before = power
    gained = sum(crane.energy(plant.x, plant.xd)) - start
    assert abs(work) > 1.0
    assert gained == pytest.approx(force @ (plant.x - x) + work, rel=1e-4)


def test_what_cannot_be_moved_is_refused():
    balloon = psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True)
    with pytest.raises(psdyn_ros.StateError, match='cannot be moved: it floats'):
        Plant(balloon, period=PERIOD).set_environment(BaseMotion())
    crane = psdyn_ros.load(URDF / 'hiab_xs031.urdf')
    forces = ExternalForces(crane, {'rope': {'type': 'joint_spring', 'joint': 'slew', 'stiffness': 10.0}})
    plant = Plant(crane, period=PERIOD, external_forces=forces)
    with pytest.raises(psdyn_ros.StateError, match='base at rest'):
        plant.set_environment(BaseMotion())
    oil = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators)
    for one in (plant, HydraulicPlant(crane, oil, period=PERIOD)):
        with pytest.raises(psdyn_ros.UnknownNameError, match='grapple'):
            one.set_environment(wrenches={'grapple': (np.zeros(3), np.zeros(3))})
        one.step(None, PERIOD)
    with pytest.raises(psdyn_ros.ShapeError, match=r'\(2, 6\)'):
        crane.integrator(1e-3).set_environment(np.zeros((3, 6)))


def test_wrenches_add_to_external_forces(crane):
    link = crane.links[-1]
    force = {'type': 'constant_force', 'link': link, 'force': [0.0, 0.0, -300.0], 'axes': 'link'}
    both = Plant(crane, period=PERIOD, external_forces=ExternalForces(crane, {'load': force}))
    both.set_environment(wrenches={link: ((0.0, 0.0, -200.0), (0.0, 0.0, 0.0))})
    one = Plant(crane, period=PERIOD)
    one.set_environment(wrenches={link: ((0.0, 0.0, -500.0), (0.0, 0.0, 0.0))})
    effort = crane.gravity_forces(one.x)
    for plant in (both, one):
        plant.step(effort, 0.05)
    assert both.x == pytest.approx(one.x, abs=1e-9)
    assert both.base_wrench() == pytest.approx(one.base_wrench(), rel=1e-6, abs=1e-3)


def test_a_plant_goes_on_from_its_snapshot_to_the_bit(crane):
    plant, other = Plant(crane, period=PERIOD), Plant(crane, period=PERIOD)
    force = crane.gravity_forces(plant.x) + [400.0, 3000.0, -1500.0, 300.0]
    plant.step(force, 0.1)
    other.restore(plant.snapshot())
    for one in (plant, other):
        one.step(None, 0.3)
        one.step(None, 0.3)     # the brakes come on within
    assert other.x.tolist() == plant.x.tolist() and other.force.tolist() == plant.force.tolist()
    assert other.time == plant.time and other.state == plant.state == HELD
    plant.fault = 'broken'
    other.restore(plant.snapshot())
    assert plant.state == FAULT and other.state == HELD
    with pytest.raises(psdyn_ros.ModelError, match='snapshot of a machine with actuators a'):
        plant.restore({'actuators': ['a']})


# the motion of the base, from what is measured of it


def moved(time):
    """Orientation (3, 3), twist and classical acceleration in base axes of a base that turns and heaves."""
    angle, rate, gain = 0.3 * np.sin(time), 0.3 * np.cos(time), -0.3 * np.sin(time)
    turn = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    velocity, acceleration = (turn.T @ [np.sin(2 * time), 0.0, 0.5 * np.cos(time)],
                              turn.T @ [2.0 * np.cos(2 * time), 0.0, -0.5 * np.sin(time)])
    return turn, np.concatenate((velocity, [rate, 0, 0])), np.concatenate((acceleration, [gain, 0, 0]))


def felt(motion):
    """Specific force and angular motion, which is all that a machine feels of its base."""
    motion = BaseMotion(*motion)
    turn = psdyn_ros.api.orientation.rotation(motion.orientation)
    return np.concatenate((np.array(motion.acceleration[:3]) - turn.T @ GRAVITY, motion.twist[3:],
                           motion.acceleration[3:]))


@pytest.mark.parametrize('source', thorough(['twist', 'imu with orientation', 'acceleration', 'both', 'imu'], 2))
def test_what_a_machine_feels_of_its_base_follows_from_each_kind_of_message(source):
    tracker, h = BaseTracker(GRAVITY), 1e-3
    worst = 0.0
    # an acceleration alone says nothing of the velocity at the start
    tracker.twist(0.0, moved(0.0)[1])
    if source == 'acceleration':
        tracker.rest()
        tracker._twist = moved(0.0)[1]
    for k in range(3000):
        time = k * h
        turn, twist, acceleration = moved(time)
        if source in ('acceleration', 'both'):
            tracker.acceleration(time, acceleration)
        if source in ('twist', 'both'):
            tracker.twist(time, twist)
        if source.startswith('imu'):
            tracker.imu(time, twist[3:], acceleration[:3] - turn.T @ GRAVITY,
                        quaternion(turn) if 'orientation' in source else None)
        if k > 1:
            worst = max(worst, np.abs(felt(tracker.motion()) - felt((quaternion(turn), twist, acceleration))).max())
        tracker.advance(h)
    assert worst < 5e-3


def test_a_tilted_base_that_rests_is_seen_by_its_orientation(crane):
    tracker = BaseTracker(GRAVITY)
    for k in range(100):
        tracker.twist(k * 0.01, [0.0, 0.0, 0.0, 0.1, 0.0, 0.0])
        tracker.advance(0.01)
    tracker.rest()
    plant = Plant(crane, period=PERIOD)
    plant.set_environment(tracker.motion())
    assert plant.base_wrench()[:3] == pytest.approx(
        crane.total_mass * 9.81 * np.array([0.0, np.sin(0.1), np.cos(0.1)]), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize('spoil, says', [
    (lambda t: t.twist(0.0, [np.nan] * 6), 'not finite'),
    (lambda t: t.twist(0.0, [1e3] * 6), 'at most 100'),
    (lambda t: t.acceleration(0.0, [1e6] * 6), 'at most 1000'),
    (lambda t: t.imu(0.0, [0.0] * 3, [0.0] * 3, [0.0] * 4), 'no unit quaternion'),
    (lambda t: t.imu(0.0, [np.inf] * 3, [0.0] * 3), 'not finite'),
])
def test_an_absurd_motion_of_the_base_is_refused_and_changes_nothing(spoil, says):
    tracker = BaseTracker(GRAVITY)
    tracker.twist(0.0, [0.1] * 6)
    before = tracker.motion()
    with pytest.raises(psdyn_ros.StateError, match=says):
        spoil(tracker)
    assert tracker.motion() == before


def test_a_gap_in_the_messages_makes_no_acceleration():
    tracker = BaseTracker(GRAVITY)
    tracker.twist(0.0, np.zeros(6))
    tracker.twist(1.0, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert tracker.motion().acceleration == (0.0,) * 6
    tracker.reset()
    assert tracker.motion() == BaseMotion()
