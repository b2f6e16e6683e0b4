"""All joints from a sufficient subset of measured ones, and which of them contradicts the others."""

import itertools

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF, columns, moving

import psdyn_ros
from psdyn_ros.control.offline.state_completion import Contradiction, LoopState

LOW = {'elbow_1': -1.1504558472410755, 'elbow_2': -2.6118557488308576}
MACHINES = ('hiab_xs031', 'excavator', 'five_bar', 'four_bar', 'pkm_2pur2rpu')
NAN = float('nan')


@pytest.fixture(scope='module')
def machines():
    return {name: psdyn_ros.load(URDF / f'{name}.urdf') for name in MACHINES}


@pytest.fixture(scope='module')
def crane(machines):
    return machines['hiab_xs031']


# the completion


@pytest.mark.parametrize('lift, tilt', list(itertools.product(
    (('lift_cylinder',), ('lift_boom',), ('lift_barrel', 'lift_boom')),
    (('tilt_cylinder',), ('tilt_boom',), ('tilt_boom', 'tilt_cylinder', 'tilt_barrel')))))
def test_any_sufficient_subset_of_the_crane_gives_all_joints(crane, lift, tilt, rng):
    x, xd, q, qd = moving(crane, rng)
    names = rng.permutation(['telescope', *lift, 'slew', *tilt]).tolist()
    rows = columns(crane, names)
    found = LoopState(crane, 1e-6).complete(names, q[rows], qd[rows])
    assert found.position == pytest.approx(q, abs=1e-9) and found.velocity == pytest.approx(qd, abs=1e-9)
    assert found.x == pytest.approx(x, abs=1e-9) and found.xd == pytest.approx(xd, abs=1e-9)
    assert found.rates == '' and found.residual < 1e-9


@pytest.mark.parametrize('name, names', thorough([
    ('excavator', ('swing', 'boom', 'arm', 'bucket')),
    ('excavator', ('bucket_cylinder', 'arm_cylinder', 'boom', 'swing')), ('five_bar', ('elbow_1', 'shoulder_1')),
    ('four_bar', ('rocker',)), ('pkm_2pur2rpu', ('leg_4', 'slider_1', 'leg_3'))], 3, several=True))
def test_any_sufficient_subset_of_other_machines_gives_all_joints(machines, name, names, rng):
    m = machines[name]
    _, _, q, qd = moving(m, rng)
    rows = columns(m, names)
    found = LoopState(m, 1e-6).complete(names, q[rows], qd[rows])
    assert found.position == pytest.approx(q, abs=1e-7) and found.velocity == pytest.approx(qd, abs=1e-6)


def test_the_assembly_mode_is_that_of_the_machine():
    low = psdyn_ros.load(URDF / 'five_bar.urdf', initial=LOW)
    high = psdyn_ros.load(URDF / 'five_bar.urdf')
    shoulders = low.joint_state(low.initial_position)[1][columns(low, ('shoulder_1', 'shoulder_2'))]
    elbows = [LoopState(m, 1e-6).complete(('shoulder_1', 'shoulder_2'), shoulders).position[m.joints.index('elbow_1')]
              for m in (low, high)]
    assert elbows[0] == pytest.approx(LOW['elbow_1']) and elbows[1] > 0.0


def test_what_is_nan_is_not_measured_and_foreign_names_are_passed_over(crane, rng):
    x, _, q, qd = moving(crane, rng)
    position = q.copy()
    position[columns(crane, ('lift_cylinder', 'tilt_barrel', 'tilt_cylinder'))] = NAN
    loops = LoopState(crane, 1e-6)
    found = loops.complete([*crane.joints, 'grapple'], [*position, 1.0], [*qd, 1.0])
    assert found.x == pytest.approx(x, abs=1e-9) and found.velocity == pytest.approx(qd, abs=1e-9)
    position[crane.joints.index('tilt_boom')] = NAN
    with pytest.raises(psdyn_ros.MeasurementError, match="do not fix 'tilt_cylinder' .*of loop 'tilt_eye'; name it"):
        loops.complete(crane.joints, position, qd)


@pytest.mark.parametrize('name, rated', [
    ('hiab_xs031', ('slew', 'lift_boom', 'tilt_boom', 'telescope')),
    ('hiab_xs031', ('slew', 'lift_barrel', 'tilt_cylinder', 'telescope')),
    ('excavator', ('swing', 'boom_cylinder_right', 'arm', 'rocker')), ('five_bar', ('elbow_1', 'elbow_2'))])
def test_rates_may_be_measured_of_other_joints_than_positions(machines, name, rated, rng):
    m = machines[name]
    _, _, q, qd = moving(m, rng)
    position, velocity = np.full((2, len(m.joints)), NAN)
    position[columns(m, m.coordinates)] = q[columns(m, m.coordinates)]
    velocity[columns(m, rated)] = qd[columns(m, rated)]
    found = LoopState(m, 1e-6).complete(m.joints, position, velocity)
    assert found.velocity == pytest.approx(qd, abs=1e-6) and found.rates == ''


def test_rates_that_do_not_fix_the_machine_are_none_and_the_reason_is_told(crane, rng):
    _, _, q, qd = moving(crane, rng)
    loops, velocity = LoopState(crane, 1e-6), qd.copy()
    velocity[columns(crane, ('lift_cylinder', 'lift_boom', 'lift_barrel'))] = NAN
    found = loops.complete(crane.joints, q, velocity)
    assert found.velocity is None and found.xd is None and "do not fix that of 'lift_cylinder'" in found.rates
    assert found.position == pytest.approx(q)
    assert loops.complete(crane.joints, q).rates == 'no velocities are measured'
    velocity[:] = NAN
    velocity[crane.joints.index('slew')] = 0.1      # fewer than degrees of freedom
    assert 'do not fix that of' in loops.complete(crane.joints, q, velocity).rates


def test_rates_that_contradict_each_other_are_reconciled_by_least_squares(crane):
    x, zero = crane.initial_position, np.zeros(4)
    _, q, _, _ = crane.joint_state(x, zero)
    position, velocity = np.full((2, 8), NAN)
    position[columns(crane, crane.actuators)] = x
    velocity[columns(crane, ('slew', 'telescope', 'tilt_cylinder'))] = 0.0
    velocity[columns(crane, ('lift_boom', 'lift_barrel'))] = 0.1, -0.02
    found = LoopState(crane, 1e-6).complete(crane.joints, position, velocity).velocity
    ratios = crane.joint_state(x, np.array([0.0, 1.0, 0.0, 0.0]))[2][columns(crane, ('lift_boom', 'lift_barrel'))]
    assert found[crane.joints.index('lift_cylinder')] == pytest.approx(ratios @ [0.1, -0.02] / (ratios @ ratios))


@pytest.mark.long
@pytest.mark.parametrize('name, joint', [
    ('hiab_xs031', 'lift_boom'), ('hiab_xs031', 'lift_cylinder'), ('hiab_xs031', 'tilt_barrel'),
    ('excavator', 'boom_cylinder_right'), ('excavator', 'arm'), ('excavator', 'rocker'), ('five_bar', 'shoulder_2')])
def test_of_contradicting_joints_the_wrong_one_is_named(machines, name, joint, rng):
    m = machines[name]
    _, _, q, _ = moving(m, rng)
    q[m.joints.index(joint)] += 0.05
    loops = LoopState(m, 0.005)
    with pytest.raises(Contradiction, match='contradict each other by 0.0[1-9]') as caught:
        loops.complete(m.joints, q)
    (found,) = loops.suspicions(m.joints, q)
    assert found.joints[0] == joint and found.rest < 1e-6
    assert found.residual == pytest.approx(caught.value.residual)
    assert found.residual == pytest.approx(loops.residuals(m.joints, q)[found.loop])


def test_of_two_joints_that_contradict_each_other_either_may_be_wrong(crane, rng):
    _, _, q, _ = moving(crane, rng)
    names = ('slew', 'lift_cylinder', 'lift_boom', 'tilt_boom', 'telescope')
    q[crane.joints.index('lift_boom')] += 0.05
    (found,) = LoopState(crane, 0.005).suspicions(names, q[columns(crane, names)])
    assert set(found.joints) == {'lift_cylinder', 'lift_boom'} and found.loop == 'lift_eye'


def test_two_wrong_joints_of_one_loop_are_explained_by_no_one(crane, rng):
    _, _, q, _ = moving(crane, rng)
    q[columns(crane, ('lift_boom', 'lift_barrel'))] += 0.1, -0.15
    (found,) = LoopState(crane, 0.005).suspicions(crane.joints, q)
    assert set(found.joints) == {'lift_cylinder', 'lift_boom', 'lift_barrel'} and np.isnan(found.rest)


def test_a_joint_that_lets_no_loop_close_is_named(crane, rng):
    _, _, q, _ = moving(crane, rng)
    q[crane.joints.index('tilt_cylinder')] = 5.0
    loops = LoopState(crane, 0.005)
    with pytest.raises(psdyn_ros.UnreachableStrokeError):
        loops.complete(crane.joints, q)
    (found,) = loops.suspicions(crane.joints, q)
    assert found.joints == ('tilt_cylinder',) and found.loop == '' and found.rest < 1e-9
    assert loops.suspicions(('slew',), [0.0]) == []         # too few joints are not a contradiction


def test_numbers_that_are_none_and_lists_that_do_not_fit_are_refused(crane, rng):
    _, _, q, _ = moving(crane, rng)
    loops = LoopState(crane, 0.005)
    with pytest.raises(psdyn_ros.ShapeError, match='7 values for 8 joints'):
        loops.complete(list(crane.joints), q[:-1])
    q[0] = np.inf
    with pytest.raises(psdyn_ros.NonFiniteError, match="'slew' is inf"):
        loops.complete(crane.joints, q)
    with pytest.raises(psdyn_ros.MeasurementError, match="do not fix 'slew'"):
        loops.complete((), ())


def test_margins_are_those_to_the_nearer_limit(crane, machines):
    limits = crane.limits
    x = limits.upper - [0.1, 0.02, 0.03, -0.01]
    assert list(LoopState(crane, 1e-6).margins(x).values()) == pytest.approx([0.1, 0.02, 0.03, -0.01])
    m = machines['excavator']
    assert tuple(LoopState(m, 1e-6).margins(m.initial_position)) == m.actuators


def test_a_sender_that_shuffles_what_it_measures_does_not_fill_the_memory(crane, rng):
    _, _, q, _ = moving(crane, rng)
    loops = LoopState(crane, 1e-6)
    others = columns(crane, ('lift_boom', 'lift_barrel', 'tilt_boom', 'tilt_barrel'))
    velocity = np.full(8, NAN)
    for lost in itertools.product((False, True), repeat=4):
        position = q.copy()
        position[np.array(others)[list(lost)]] = NAN
        for rated in range(4):
            velocity[:] = NAN
            velocity[columns(crane, ('slew', 'telescope', 'lift_boom', 'tilt_boom')[:rated])] = 0.0
            assert loops.complete(crane.joints, position, velocity).position == pytest.approx(q)
    assert len(loops._sets) <= 32
