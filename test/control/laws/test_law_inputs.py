"""What a law is told: payload, motion of the base, what to freeze and to feed forward, where errors are taken."""


import numpy as np
import pytest
from support.control.law_loop import tracked
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.laws.computed_torque import ForceGains
from psdyn_ros.control.laws.registry import make_law
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.tools.studies.tracking_runs import PERIOD, REFERENCES, crane, oil, plant_for

EFFORT, VALVE, VELOCITY = 'effort', 'valve', 'velocity'
START = np.array([0.0, 0.2, 0.2, 0.2])
STILL = np.zeros(4)
CHAMBERS = np.full((3, 2), 60e5)

LAW_NAMES = ('computed_torque', 'pd_gravity', 'valve_computed_torque', 'valve_pid')


def law_at_rest(name, interfaces=(EFFORT,) * 4, **options):
    law = make_law(name, crane(), oil(), interfaces, PERIOD, **options)
    law.hold(START)
    return law


def commands(law, count, begin=0, x=START, xd=STILL):
    return np.array([law.update((begin + k) * PERIOD, x, xd, CHAMBERS) for k in range(count)])


@pytest.mark.parametrize('name', LAW_NAMES)
def test_a_payload_is_taken_in_gradually_and_then_wholly(name):
    law = law_at_rest(name)
    load = 'tcp', 150.0, np.array([0.0, 0.1, 0.0]), 2.0 * np.eye(3)
    before = commands(law, 3)[-1]
    law.set_payload(*load)
    after = np.vstack([before, commands(law, 300, 3)])
    expected = crane().with_payload(*load).gravity_forces(START)
    assert after[-1] == pytest.approx(expected, rel=1e-9)
    whole = np.abs(expected - before)
    assert (np.abs(np.diff(after, axis=0)).max(axis=0) <= 1.001 * whole * PERIOD / 0.5 + 1e-6).all()
    assert law.holding(START) == pytest.approx(expected, rel=1e-9)
    law.set_payload('tcp', 0.0, np.zeros(3), np.zeros((3, 3)))
    assert commands(law, 300, 400)[-1] == pytest.approx(before, rel=1e-9)


def test_payloads_on_two_links_add_up_and_one_on_the_base_weighs_nothing():
    law = law_at_rest('computed_torque')
    loads = [('tcp', 100.0, np.zeros(3), np.eye(3)),
             ('lift_rod_link', 20.0, np.array([0.1, 0.0, 0.0]), 0.1 * np.eye(3)),
             ('base_link', 500.0, np.zeros(3), np.eye(3))]
    machine = crane()
    for load in loads:
        law.set_payload(*load)
        machine = machine.with_payload(*load)
    assert commands(law, 300)[-1] == pytest.approx(machine.gravity_forces(START), rel=1e-9)


@pytest.mark.parametrize('link, mass, inertia, error', [
    ('tpc', 1.0, np.eye(3), "did you mean 'tcp'"), ('tcp', -1.0, np.eye(3), 'negative'),
    ('tcp', 1.0, np.diag([1.0, 1.0, 9.0]), 'exceeds the sum'), ('tcp', np.nan, np.eye(3), 'mass')])
def test_a_payload_that_cannot_be_changes_nothing(link, mass, inertia, error):
    law = law_at_rest('computed_torque')
    before = commands(law, 3)[-1]
    with pytest.raises(psdyn_ros.PsdynError, match=error):
        law.set_payload(link, mass, np.zeros(3), inertia)
    assert commands(law, 10, 3)[-1] == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize('name', ['computed_torque', 'valve_computed_torque'])
def test_a_motion_of_the_base_is_believed_without_a_jump(name):
    law = law_at_rest(name)
    base = psdyn_ros.BaseMotion(orientation=(0.1, 0.05, 0.0, 0.99), twist=(0.1, 0.0, 0.0, 0.0, 0.2, 0.1),
                                acceleration=(0.5, -0.3, 0.4, 0.1, 0.0, 0.2))
    before = commands(law, 3)[-1]
    law.set_base(base)
    after = np.vstack([before, commands(law, 200, 3)])
    expected = crane().inverse_dynamics(START, STILL, STILL, base=base)
    assert after[-1] == pytest.approx(expected, rel=1e-9)
    assert np.abs(after[1] - before).max() <= 0.1 * np.abs(expected - before).max()
    law.set_base(None)
    assert commands(law, 200, 300)[-1] == pytest.approx(before, rel=1e-9)


def test_a_machine_with_general_loops_is_told_the_same():
    excavator = psdyn_ros.load(URDF / 'excavator.urdf')
    law = make_law('computed_torque', excavator, None, None, PERIOD)
    x, still = excavator.initial_position, np.zeros(4)
    law.hold(x)
    base = psdyn_ros.BaseMotion(acceleration=(0.5, 0.2, 0.0, 0.0, 0.0, 0.0))
    payload = excavator.links[-1], 300.0, np.zeros(3), np.eye(3)
    law.set_base(base)
    law.set_payload(*payload)
    for k in range(300):
        command = law.update(k * PERIOD, x, still)
    expected = excavator.with_payload(*payload).inverse_dynamics(x, still, still, base=base)
    assert command == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('name', ['computed_torque', 'valve_computed_torque', 'valve_pid'])
def test_integrals_grow_with_an_error_and_stand_still_when_told(name):
    law = law_at_rest(name)
    off = START - [0.0, 1e-3, 0.0, 0.0]
    first = commands(law, 200, x=off)
    grown = first[-1] - first[100]
    assert grown[1] > 0.0
    law.freeze([False, True, False, False])
    frozen = commands(law, 100, 200, x=off)
    assert frozen[-1] == pytest.approx(frozen[0], rel=1e-9)
    law.freeze(False)
    assert (commands(law, 100, 300, x=off)[-1] - frozen[-1])[1] > 0.9 * grown[1]


@pytest.mark.parametrize('name', ['computed_torque', 'valve_computed_torque'])
def test_an_integral_does_not_grow_while_the_force_is_clipped(name):
    law = law_at_rest(name)
    commands(law, 500, x=START - [0.0, 0.15, 0.0, 0.0])
    assert law.saturations[1] > 400
    # once the rate of the step is forgotten
    assert commands(law, 100, 501)[-1][1] == pytest.approx(crane().gravity_forces(START)[1], rel=0.05)


def test_the_weight_is_carried_and_the_motion_fed_forward_as_far_as_it_is_told():
    law = law_at_rest('valve_computed_torque', (EFFORT, VALVE, VALVE, VALVE))
    law.reference.follow(REFERENCES['demonstration'](), 0.0)
    seen = {}
    for scale in (0.0, 0.5, 1.0):
        law.feedforward_scale = scale
        law.update(1.5, START, STILL, CHAMBERS)
        x, xd, xdd = (np.array(row) for row in law.reference.ahead(1.5 + law._act + law.lag))
        rubbing = law.axes['coulomb'] * np.tanh(scale * xd / law.axes['slip']) + law.axes['viscous'] * scale * xd
        seen[scale] = law.predicted_efforts
        expected = crane().inverse_dynamics(x, scale * xd, scale * xdd) + rubbing
        assert seen[scale] == pytest.approx(expected, rel=1e-3, abs=2.0)
    assert np.abs(seen[1.0] - seen[0.0])[1:].min() > 500.0


def test_friction_follows_the_reference_and_not_what_is_measured():
    law = law_at_rest('computed_torque')
    law.set_gains(ForceGains(*np.zeros((3, 4))))
    rates = np.array([0.0, 0.02, -0.02, 0.02])
    assert law.update(0.0, START, rates) == pytest.approx(crane().inverse_dynamics(START, rates, STILL))
    law.reference.follow(REFERENCES['demonstration'](), 0.0)
    x, xd, xdd = (np.array(row) for row in law.reference.ahead(2.0))
    x2, xd2, xdd2 = (np.array(row) for row in law.reference.ahead(2.0 + 0.5 * PERIOD))
    rubbing = law.axes['coulomb'] * np.tanh(xd2 / law.axes['slip']) + law.axes['viscous'] * xd2
    assert (np.abs(rubbing[1:]) > 4000.0).all()
    assert law.update(2.0, x, STILL) == pytest.approx(crane().inverse_dynamics(x, STILL, xdd2) + rubbing, rel=1e-9)


@pytest.mark.long
def test_feedback_in_joint_space_gives_the_joints_the_accelerations_it_asks_for(rng):
    law = law_at_rest('computed_torque', space='joint', bandwidth=3.0, integral=np.zeros(4))
    law.axes['coulomb'] = law.axes['viscous'] = 0.0
    machine, joints = crane(), ('slew', 'lift_boom', 'tilt_boom', 'telescope')
    columns = [machine.joints.index(name) for name in joints]
    x, xd = START + rng.uniform(-0.01, 0.01, 4), rng.uniform(-0.02, 0.02, 4)
    force = law.update(0.0, x, xd)
    xdd = machine.forward_dynamics(x, xd, force)
    q, qd, qdd = (row[columns] for row in machine.joint_state(x, xd, xdd)[1:])
    wanted = machine.joint_state(START)[1][columns] - q
    assert qdd == pytest.approx(9.0 * wanted - 6.0 * qd, rel=1e-6, abs=1e-9)


@pytest.mark.long
def test_joints_of_general_loops_have_to_be_named(rng):
    five_bar = psdyn_ros.load(URDF / 'five_bar.urdf')
    with pytest.raises(psdyn_ros.ModelError, match='expected `joints`, 2 of'):
        make_law('computed_torque', five_bar, space='joint')
    with pytest.raises(psdyn_ros.ModelError, match="space 'joints': expected one of actuator, joint; did you mean 'j"):
        make_law('computed_torque', five_bar, space='joints')
    named = tuple(name for name in five_bar.joints if name not in five_bar.coordinates)[:2]
    law = make_law('computed_torque', five_bar, bandwidth=3.0, space='joint', joints=named)
    x, xd = five_bar.initial_position + 1e-3, np.array([0.02, -0.01])
    law.hold(five_bar.initial_position)
    xdd = five_bar.forward_dynamics(x, xd, law.update(0.0, x, xd))
    columns = [five_bar.joints.index(name) for name in named]
    q, qd, qdd = (row[columns] for row in five_bar.joint_state(x, xd, xdd)[1:])
    wanted = five_bar.joint_state(five_bar.initial_position)[1][columns] - q
    assert qdd == pytest.approx(9.0 * wanted - 6.0 * qd, rel=1e-5, abs=1e-7)


# on the plant


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize('what', ['payload', 'base'])
def test_what_changes_on_the_way_costs_less_where_the_law_is_told(what):
    worst, load = {}, ('tcp', 100.0, np.zeros(3), np.eye(3))
    machine = crane().with_payload(*load) if what == 'payload' else crane()
    for told in (True, False):
        law = make_law('valve_computed_torque', crane(), oil(), None, PERIOD)
        law.hold(START)
        law.reference.follow(REFERENCES['demonstration'](), 0.0)
        plant = HydraulicPlant(machine, oil(), period=1e-3, position=START)
        off = []
        for k in range(1750):
            t = k * PERIOD
            share = np.clip(t - 1.0, 0.0, 1.0)
            if what == 'payload' and told and k == 60:      # when the force at rest was already measured
                law.set_payload(*load)
            if what == 'base' and k % 5 == 0:       # the ground gives way, and comes up again
                base = psdyn_ros.BaseMotion(acceleration=(0.0, 0.0, -1.5 * np.sin(np.pi * share), 0.0, 0.0, 0.0))
                plant.set_environment(base=base)
                if told:
                    law.set_base(base)
            plant.step(law.update(t, plant.x.copy(), plant.xd.copy(), plant.fluid[:, :2].copy()), PERIOD)
            off.append(plant.x - law.reference.ahead(t + PERIOD)[0])
        worst[told] = 1e3 * np.sqrt(np.mean(np.array(off)[:, 1:]**2, axis=0))
    assert (worst[True] < worst[False]).all()
    assert np.linalg.norm(worst[True]) <= 0.65 * np.linalg.norm(worst[False])


@pytest.mark.long
@pytest.mark.slow
def test_the_integral_takes_away_what_a_wrong_model_leaves():
    found = {}
    for integral in (None, np.zeros(4)):
        options = {} if integral is None else {'integral': integral}
        law = make_law('computed_torque', crane(0.9), oil(), None, PERIOD, bandwidth=20.0, **options)
        plant = plant_for(START, modes=dict(zip(crane().actuators, law.interfaces)))
        errors = tracked(law, plant, REFERENCES['demonstration'](), 4.0)
        found[integral is None] = 1e3 * np.sqrt(np.mean(errors**2, axis=0))[1:]
    assert (found[True] <= 0.4 * found[False]).all()
