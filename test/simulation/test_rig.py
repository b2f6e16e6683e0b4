"""A cylinder on a rig that imposes the motion of its rod, alone and in the place of the machine's own."""

from collections import deque

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.api.hydraulics.statics import frictionless, oil_stiffness
from psdyn_ros.kernels.hydraulics.records import QUANTITIES
from psdyn_ros.model.errors import ModelError, StateError
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.rig import HORIZON, CylinderRig

CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
H = 1e-3
NET, FRICTION = QUANTITIES.index('net_force'), QUANTITIES.index('friction_force')


def command(t):
    """Steps of the lift, a sine of the tilt, a step of the telescope; no torque of the slew."""
    lift = 0.25 * (0.2 < t < 1.0) - 0.25 * (1.2 < t < 1.6)
    return np.array([0.0, lift, 0.2 * np.sin(3.0 * t), 0.3 * (0.5 < t < 1.2)])


@pytest.fixture(scope='module')
def whole(crane, hydraulics):
    """{cylinder: rows of time, position, velocity, acceleration, force, pressures} of the machine in one piece."""
    plant = HydraulicPlant(crane, hydraulics, period=H)
    rows = {name: [] for name in CYLINDERS}
    for _ in range(2000):
        for number, name in enumerate(CYLINDERS):
            rows[name].append((plant.time, *plant.load_motion(name), plant.telemetry[number, NET],
                               *plant.telemetry[number, :2]))
        plant.step(command(plant.time), H)
    assert not plant.fault
    return {name: np.array(values) for name, values in rows.items()}


@pytest.fixture
def rig(crane, hydraulics):
    return CylinderRig(crane, hydraulics, 'lift_cylinder', period=H)


def still(rig, seconds, position=0.2):
    """Impose rest for so long."""
    for _ in range(round(seconds / H)):
        rig.impose(rig.time, position, 0.0, 0.0)
        rig.step()


# --- alone


@pytest.mark.parametrize('name', CYLINDERS)
def test_the_same_motion_gives_the_force_of_the_cylinder_in_the_machine(crane, hydraulics, whole, name):
    rig, rows, axis = CylinderRig(crane, hydraulics, name, period=H), whole[name], crane.actuators.index(name)
    rig.reset(rows[0, 1], force=rows[0, 4])
    answers = []
    for time, position, velocity, acceleration, *_ in rows:
        answers.append((rig.position, rig.force, *rig.pressures))
        rig.impose(time, position, velocity, acceleration)
        rig.step(command(time)[axis])
    off = np.abs(np.array(answers) - rows[:, [1, 4, 5, 6]])
    assert np.ptp(rows[:, 1]) > 0.05 and np.ptp(rows[:, 4]) > 3e4 * (name != 'telescope')
    assert off[:, 0].max() < 2e-5
    assert (off[:, 2:].max(axis=0) < 5e-4 * 19e6).all()
    # the slope of friction at rest is 8e5 N s/m: some tenths of a mm/s count
    assert np.sqrt(np.mean(off[:, 1] ** 2)) < 250.0


def test_a_push_on_a_closed_cylinder_meets_the_stiffness_of_the_oil(rig):
    rig.reset(0.2, force=20e3)
    assert rig.force == pytest.approx(20e3)
    still(rig, 0.1)
    assert rig.force == pytest.approx(20e3, abs=1.0) and rig.position == pytest.approx(0.2, abs=1e-12)
    still(rig, 0.5, 0.2001)
    assert rig.position == pytest.approx(0.2001, abs=1e-9) and abs(rig.velocity) < 1e-9
    stiffness = oil_stiffness(rig._record[0], 0.20005)
    assert rig.force - 20e3 == pytest.approx(-1e-4 * stiffness, rel=1e-3)
    still(rig, 0.5)
    assert rig.force == pytest.approx(20e3, abs=2.0)


def test_a_motion_that_comes_late_and_seldom_is_carried_on(rig):
    """Every 4 ms, 3 ms late: the rod is within 3 um, and the oil has lost nothing at the end."""
    rig.reset(0.2, force=20e3)
    w, stroke, worst = 2 * np.pi, 0.002, 0.0
    for k in range(2000):
        t = k * H
        if k % 4 == 0:
            s = t - 3 * H
            rig.impose(s, 0.2 + stroke * (1 - np.cos(w * s)) * (s > 0), stroke * w * np.sin(w * s) * (s > 0),
                       stroke * w * w * np.cos(w * s) * (s > 0))
        worst = max(worst, abs(rig.position - 0.2 - stroke * (1 - np.cos(w * t))))
        rig.step()
    assert worst < 3e-6
    still(rig, 0.5)
    assert rig.force == pytest.approx(20e3, abs=20.0)


def test_without_a_motion_the_rod_stands_still_and_says_so(rig):
    rig.reset(0.2)
    assert rig.stale
    rig.step()
    assert rig.position == 0.2
    rig.impose(rig.time, 0.2, 0.05, 0.0)
    assert not rig.stale
    for _ in range(300):
        rig.step()
    assert rig.stale and abs(rig.velocity) < 1e-9
    assert rig.position == pytest.approx(0.2 + 0.05 * HORIZON, abs=1e-6)


def test_a_spool_moves_the_force_until_the_supply_has_no_more(rig):
    rig.reset(0.2, force=10e3)
    for _ in range(2000):
        rig.impose(rig.time, 0.2, 0.0, 0.0)
        rig.step(5.0)
    a, b = rig.pressures
    assert rig.spool == pytest.approx(1.0, abs=1e-6)
    assert (a, b) == pytest.approx((19e6, 1e6), rel=1e-3)
    assert rig.force == pytest.approx(19e6 * rig._record['area_a'][0] - 1e6 * rig._record['area_b'][0], rel=1e-3)
    assert rig.telemetry[QUANTITIES.index('valve_command')] == 1.0


@pytest.mark.parametrize('make, error, words', [
    (lambda m, h: CylinderRig(m, h, 'lift_cylindre', period=H), ModelError, "did you mean 'lift_cylinder'"),
    (lambda m, h: CylinderRig(m, h, 'slew', period=H), ModelError, "'slew': no such cylinder"),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H, bandwidth=600.0), ModelError, 'at most 500 rad/s'),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H).reset(2.0), StateError, 'not within its stroke'),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H).reset(0.2, force=1e6), StateError, 'needs 1e\\+06 N'),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H).impose(0.0, 0.2, np.nan, 0.0), StateError, 'nan m/s'),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H).impose(0.0, -0.2, 0.0, 0.0), StateError, '-0.2 m'),
    (lambda m, h: CylinderRig(m, h, 'telescope', period=H).step(np.inf), StateError, 'command inf'),
])
def test_what_a_rig_cannot_do_is_refused(crane, hydraulics, make, error, words):
    with pytest.raises(error, match=words):
        make(crane, hydraulics)


# --- in the place of the machine's own cylinder


@pytest.mark.parametrize('there, back, bound', thorough([(1, 1, 1e-4), (1, 2, 2e-4), (4, 4, 5e-4)], 1, several=True))
@pytest.mark.parametrize('name, measured', thorough([
    ('lift_cylinder', 'force'), ('telescope', 'pressures'), ('tilt_cylinder', 'force'),
    ('lift_cylinder', 'pressures')], 2, several=True))
def test_the_split_machine_follows_the_whole_one(crane, hydraulics, whole, name, measured, there, back, bound):
    """Load motion goes out `there` periods late, what was measured comes back `back` periods late."""
    plant, rig = HydraulicPlant(crane, hydraulics, period=H), CylinderRig(crane, hydraulics, name, period=H)
    axis = crane.actuators.index(name)
    rig.reset(plant.load_motion(name)[0], force=plant.force[axis])
    motions, answers, worst = deque(), deque(), 0.0
    for k in range(2000):
        for cylinder in CYLINDERS:
            worst = max(worst, abs(plant.load_motion(cylinder)[0] - whole[cylinder][k, 1]))
        motions.append((plant.time, *plant.load_motion(name)))
        if len(motions) > there:
            rig.impose(*motions.popleft())
        rig.step(command(plant.time)[axis])
        answers.append((rig.time, {measured: getattr(rig, measured)}))
        if len(answers) > back:
            stamp, answer = answers.popleft()
            plant.measure_cylinder(name, **answer, stamp=stamp)
        others = command(plant.time)
        others[axis] = np.nan
        plant.step(others, H)
    assert not plant.fault and not plant.frozen
    assert worst < bound


def test_the_effort_of_the_split_machine_is_that_of_its_instant(crane, hydraulics):
    """Not of the middle of the step before, nor with a flow that is only a stiffness which changes along the stroke."""
    name, period = 'lift_cylinder', 2.0 * H
    plant = HydraulicPlant(crane, hydraulics, period=period)
    rig = CylinderRig(crane, hydraulics, name, period=period, bandwidth=200.0)
    axis, cylinder = crane.actuators.index(name), hydraulics.cylinders[name]
    friction = plant.cylinders.index(name), FRICTION
    rig.reset(plant.load_motion(name)[0], force=plant.force[axis])
    others, rows = np.array([0.0, np.nan, 0.0, 0.0]), []
    for _ in range(500):
        rig.impose(plant.time, *plant.load_motion(name))
        rig.step(0.25)
        plant.measure_cylinder(name, force=rig.force, stamp=rig.time)
        plant.step(others, period)
        pressure_a, pressure_b = rig.pressures
        net = plant.effort[axis] - plant.telemetry[friction]
        assert net == pytest.approx(plant.force[axis], abs=1e-6)
        rows.append((plant.x.copy(), plant.xd.copy(), net,
                     plant.effort[axis] - pressure_a * cylinder.area_a + pressure_b * cylinder.area_b))
    x, xd, net, off = (np.array(column) for column in zip(*rows))
    assert abs(np.mean(off[250:])) < 5.0
    # as positions and velocities say, which nobody can see the steps of the force in
    bare = frictionless(crane, hydraulics)
    needed = [bare.inverse_dynamics(x[k], xd[k], (xd[k + 1] - xd[k - 1]) / (2.0 * period))[axis]
              for k in range(250, 499)]
    assert abs(np.mean(net[250:499] - needed)) < 5.0


def test_a_measurement_after_a_long_time_without_any_gives_no_kick(crane, hydraulics):
    """What is not remembered of the load motion is computed."""
    plant = HydraulicPlant(crane, hydraulics, period=H)
    plant.step(np.zeros(4), 0.01)
    start, force = plant.load_motion('lift_cylinder')[0], plant.force[1]
    for _ in range(50):
        plant.measure_cylinder('lift_cylinder', force=force, stamp=plant.time - 0.005)
        plant.step(np.array([0.0, np.nan, 0.0, 0.0]), H)
    assert abs(plant.load_motion('lift_cylinder')[0] - start) < 2e-5


@pytest.mark.parametrize('name, measured', [('lift_cylinder', 'force'), ('telescope', 'pressures')])
def test_a_rig_that_falls_silent_in_full_motion_stops_its_rod(crane, hydraulics, name, measured):
    plant, rig = HydraulicPlant(crane, hydraulics, period=H), CylinderRig(crane, hydraulics, name, period=H)
    axis = crane.actuators.index(name)
    rig.reset(plant.load_motion(name)[0], force=plant.force[axis])
    others = np.zeros(4)
    others[axis] = np.nan
    for _ in range(800):
        rig.impose(plant.time, *plant.load_motion(name))
        rig.step(0.25)
        plant.measure_cylinder(name, **{measured: getattr(rig, measured)}, stamp=rig.time)
        plant.step(others, H)
    where, speed, _ = plant.load_motion(name)
    assert speed > 0.05
    for _ in range(1500):
        plant.step(others, H)
    assert f'no measurement for {round(plant.ttl * 1e3) + 1}' in plant.frozen[name] and not plant.fault
    stopped, speed, _ = plant.load_motion(name)
    assert abs(speed) < 2e-3 and abs(stopped - where) < 0.02
