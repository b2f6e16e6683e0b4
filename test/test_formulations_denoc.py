"""Saha & Schiehlen: the bars of the paper in both assembly modes, and their motion under torques and feedback."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.comparison import error
from support.reference import reference

from psdyn_ros.formulations import denoc, legs
from psdyn_ros.model.errors import LoopClosureError

T = 20.0
FOUR_BAR_ENDS = np.deg2rad(((30.0,), (90.0,)))
FIVE_BAR_ENDS = np.deg2rad(((30.0, 30.0), (90.0, 70.3)))


def reference_case(name, mode):
    """The record of a JSON file for an assembly mode: the first is 'open' or 'above'."""
    cases = reference(f'{name}_inverse_dynamics')['cases']
    return cases[('open', 'above').count(mode) == 0]


def no_torque(configuration, theta, thetadot):
    return np.zeros_like(thetadot)


def integrate(mechanism, start, control, end, **options):
    options = dict(method='DOP853', rtol=1e-11, atol=1e-11) | options
    return solve_ivp(lambda t, y: denoc.state_rate(mechanism, y, lambda *state: control(t, *state)), (0, end), start,
                     **options)


# --- four-bar


@pytest.mark.parametrize('variant', ['a', 'b'])
@pytest.mark.parametrize('mode', ['open', 'crossed'])
def test_four_bar_along_the_trajectory(variant, mode):
    mechanism, theta = legs.four_bar(variant), legs.four_bar_mode(mode, variant)
    for ref in reference_case('four_bar', mode)['inverse_dynamics']:
        path = denoc.trajectory(ref['t'], T, *FOUR_BAR_ENDS)
        theta = legs.close(mechanism, theta, path.theta)
        configuration = denoc.configure(mechanism, theta)
        motion = denoc.rates(configuration, path.thetadot)
        joints, _ = denoc.accelerations(configuration, motion, path.thetadd)
        for values, key in ((theta, 'theta'), (motion.theta, 'rate'), (joints, 'acc')):
            assert error(relative_angles(variant, values, key), ref[key]) < 1e-12, key
        tau = denoc.inverse_dynamics(configuration, path.thetadot, path.thetadd)
        assert error(tau, [ref['tau1']]) < 1e-12
        assert error(denoc.generalized_inertia(configuration), [[ref['inertia']]]) < 1e-13
        assert error(denoc.bias(configuration, path.thetadot), [ref['bias']]) < 1e-12
        assert error(denoc.forward_dynamics(configuration, path.thetadot, tau), path.thetadd) < 1e-13


def relative_angles(variant, of_legs, key):
    """theta_1..3, their rates or accelerations, of the one leg that the paper counts."""
    if variant == 'a':
        return of_legs[0][:3]
    (crank, coupler), (rocker, _) = of_legs
    third = rocker - crank - coupler - (np.pi if key == 'theta' else 0.0)
    return crank, coupler, whole_turns_off(third) if key == 'theta' else third


def whole_turns_off(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


TORQUES = {'open': (8.63437, 8.60422, 6.13188, 0.56344, -0.87486),
           'crossed': (10.16163, 10.58401, 9.98253, 5.86078, 4.67963)}


@pytest.mark.parametrize('mode', TORQUES)
def test_four_bar_torques(mode):
    mechanism, theta = legs.four_bar(), legs.four_bar_mode(mode)
    for t, ref in zip((0, 5, 10, 15, 20), TORQUES[mode]):
        path = denoc.trajectory(t, T, *FOUR_BAR_ENDS)
        theta = legs.close(mechanism, theta, path.theta)
        tau = denoc.inverse_dynamics(denoc.configure(mechanism, theta), path.thetadot, path.thetadd)
        assert abs(tau[0] - ref) < 5.1e-6


@pytest.mark.parametrize('mode', TORQUES)
def test_four_bar_swings_freely(mode):
    ref = reference_case('four_bar', mode)['free_fall']
    mechanism = legs.four_bar()
    theta = legs.close(mechanism, legs.four_bar_mode(mode), np.array([ref['theta1_0']]))
    start = np.append(theta[0], 0.0)

    def at_rest(t, y):
        return y[-1]

    run = integrate(mechanism, start, lambda t, *state: no_torque(*state), 3.7, events=at_rest, dense_output=True)
    half, period = run.t_events[0][run.t_events[0] > 0.1][:2]
    assert abs(period - 2 * half) < 1e-7
    assert abs(run.sol(half)[0] - ref['theta1_far_turning_point']) < 1e-7
    for sample in ref['samples']:  # 10 s; a period that is off by 1e-5 s would show in the last ones
        theta_1, rate = run.sol(sample['t'] % period)[[0, -1]]
        assert abs(theta_1 - sample['theta1']) < 1e-6
        assert abs(rate - sample['rate1']) < 1e-5
    # the file's instants are grid points at which the rate has changed its sign
    assert abs(half - ref['half_period']) < 1e-4
    assert abs(period - ref['period']) < 1e-4
    assert np.ptp([energy(mechanism, y) for y in run.y.T]) < 1e-10 * weight(mechanism)


def test_four_bar_follows_its_torque_the_longer_the_smaller_the_tolerance():
    """The motion is unstable after 3.3 s: the run leaves the reference, when is a matter of the integrator."""
    mechanism = legs.four_bar()

    def left(t, y):
        return abs(y[0] - denoc.trajectory(t, T, *FOUR_BAR_ENDS).theta[0]) - 0.02
    left.terminal = True

    start = np.append(legs.four_bar_mode('open')[0], 0.0)
    tolerances = (1e-4, 1e-6, 1e-9)
    runs = [integrate(mechanism, start, torque_of(mechanism, legs.four_bar_mode('open'), FOUR_BAR_ENDS), T,
                      method='RK45', rtol=tolerance, atol=tolerance, events=left) for tolerance in tolerances]
    times = [run.t[-1] for run in runs]
    assert all(run.status == 1 for run in runs)
    assert error(times, (5.5, 7.9, 9.5)) < 0.05


def torque_of(mechanism, theta_0, ends):
    """The torque of the inverse dynamics along the trajectory (35), whatever the state is."""
    last = [theta_0]

    def torque(t, *state):
        path = denoc.trajectory(t, T, *ends)
        last[0] = legs.close(mechanism, last[0], path.theta)
        return denoc.inverse_dynamics(denoc.configure(mechanism, last[0]), path.thetadot, path.thetadd)
    return torque


def energy(mechanism, y):
    """Kinetic energy by the inertia matrix, potential by the mass centres."""
    n = len(mechanism.actuated)
    theta = legs.close(mechanism, np.split(y[:-n], np.cumsum([len(leg.links) for leg in mechanism.legs])[:-1]))
    kinetic = 0.5 * y[-n:] @ denoc.generalized_inertia(denoc.configure(mechanism, theta)) @ y[-n:]
    for leg, position in zip(mechanism.legs, theta):
        pose = legs.leg_pose(leg, position)
        for link, O, R in zip(leg.links, pose.O, pose.R):
            kinetic -= link.mass * mechanism.gravity @ (O + R @ link.center)
    return kinetic


def weight(mechanism):
    return np.linalg.norm(mechanism.gravity) * sum(link.mass for leg in mechanism.legs for link in leg.links)


# --- five-bar


@pytest.mark.parametrize('mode', ['above', 'below'])
def test_five_bar_along_the_trajectory(mode):
    mechanism, theta = legs.five_bar(), legs.five_bar_mode(mode)
    for ref in reference_case('five_bar', mode)['inverse_dynamics']:
        path = denoc.trajectory(ref['t'], T, *FIVE_BAR_ENDS)
        theta = legs.close(mechanism, theta, path.theta)
        configuration = denoc.configure(mechanism, theta)
        motion = denoc.rates(configuration, path.thetadot)
        joints, _ = denoc.accelerations(configuration, motion, path.thetadd)
        for i in (1, 2):
            for values, key in ((motion.theta, 'rate'), (joints, 'acc')):
                assert error([leg[i - 1] for leg in values], ref[f'{key}{i}']) < 1e-12
            assert np.abs(whole_turns_off([leg[i - 1] for leg in theta] - np.array(ref[f'theta{i}']))).max() < 1e-13
        assert error(theta[1][2], ref['theta3_leg2']) < 1e-13
        assert error(configuration.legs[0].pose.E[:2], ref['point_C']) < 1e-14
        tau = denoc.inverse_dynamics(configuration, path.thetadot, path.thetadd)
        assert error(tau, ref['tau']) < 1e-12
        assert error(denoc.generalized_inertia(configuration), ref['gim']) < 1e-13
        assert error(denoc.forward_dynamics(configuration, path.thetadot, tau), path.thetadd) < 1e-13


FIVE_BAR = {'above': (((12.53058, 16.30537), (11.37106, 16.03932), (4.95044, 13.99072), (-2.69462, 11.03474),
                       (-4.41722, 10.30776)), ((0.56510, 0.10405), (0.10405, 1.12771))),
            'below': (((15.33422, 13.03445), (14.89177, 12.14482), (11.26058, 7.50856), (5.63565, 2.25065),
                       (4.23724, 1.05042)), ((0.97748, 0.06499), (0.06499, 0.65756)))}


@pytest.mark.parametrize('mode', FIVE_BAR)
def test_five_bar_torques(mode):
    mechanism, theta = legs.five_bar(), legs.five_bar_mode(mode)
    torques, inertia = FIVE_BAR[mode]
    assert np.abs(denoc.generalized_inertia(denoc.configure(mechanism, theta)) - inertia).max() < 5.1e-6
    for t, ref in zip((0, 5, 10, 15, 20), torques):
        path = denoc.trajectory(t, T, *FIVE_BAR_ENDS)
        theta = legs.close(mechanism, theta, path.theta)
        tau = denoc.inverse_dynamics(denoc.configure(mechanism, theta), path.thetadot, path.thetadd)
        assert np.abs(tau - ref).max() < 5.1e-6


@pytest.mark.parametrize('mode, time', [('below', 1.33295), ('above', 0.48239)])
def test_five_bar_falls_into_its_singular_pose(mode, time):
    """
    The outer links come into line.

    The sine of their angle crosses zero at a finite rate, so the instant is extrapolated; the file's is that of 1e-4.
    """
    ref = reference_case('five_bar', mode)['free_fall']
    mechanism = legs.five_bar()
    theta = legs.close(mechanism, legs.five_bar_mode(mode), np.array(ref['theta1_0']))

    def out_of_line(y):
        return abs(np.sin(y[1] + y[0] - y[2] - y[3]))

    def near(t, y):
        return out_of_line(y) - 0.005
    near.terminal = True

    run = integrate(mechanism, np.concatenate((*theta, (0.0, 0.0))), lambda t, *state: no_torque(*state), 2.0,
                    events=near, dense_output=True)
    for sample in ref['samples']:
        y = run.sol(sample['t'])
        assert error(y[[0, 2]], sample['theta1']) < 1e-8
        assert error(y[-2:], sample['rate1']) < 1e-7
    times = np.linspace(run.t[-1] - 0.005, run.t[-1], 6)
    instant = np.polynomial.Polynomial.fit([out_of_line(run.sol(t)) for t in times], times, 4)
    assert abs(instant(1e-4) - ref['singular_at_s']) < 1e-8
    assert abs(instant(0.0) - time) < 2e-5
    assert np.ptp([energy(mechanism, y) for y in run.y.T]) < 1e-8 * weight(mechanism)


# --- feedback (37)


@pytest.mark.parametrize('mechanism, theta, ends', [
    (legs.four_bar(), legs.four_bar_mode('open'), FOUR_BAR_ENDS),
    (legs.four_bar('b'), legs.four_bar_mode('crossed', 'b'), FOUR_BAR_ENDS),
    (legs.five_bar(), legs.five_bar_mode('above'), FIVE_BAR_ENDS),
    (legs.five_bar(), legs.five_bar_mode('below'), FIVE_BAR_ENDS)],
    ids=['four-bar a', 'four-bar b', 'five-bar above', 'five-bar below'])
def test_feedback_follows_the_trajectory(mechanism, theta, ends):
    n = len(mechanism.actuated)

    def control(t, configuration, theta, thetadot):
        return denoc.feedback(configuration, theta, thetadot, denoc.trajectory(t, T, *ends))

    run = integrate(mechanism, np.concatenate((*theta, np.zeros(n))), control, T, rtol=1e-9, atol=1e-9)
    actuated = [0, 2][:n]
    for t, y in zip(run.t, run.y.T):
        assert np.abs(y[actuated] - denoc.trajectory(t, T, *ends).theta).max() < 1e-6


def test_feedback_decays_as_a_critically_damped_oscillator():
    mechanism, theta = legs.four_bar(), legs.four_bar_mode('open')
    desired = denoc.trajectory(0.0, T, *FOUR_BAR_ENDS)
    start = legs.close(mechanism, theta, desired.theta + 0.1)
    run = integrate(mechanism, np.append(start[0], 0.0), lambda t, *state: denoc.feedback(*state, desired), 3.0)
    assert run.y[0, -1] - desired.theta[0] == pytest.approx(0.1 * 4 * np.exp(-3), rel=1e-8)


# --- closure


def test_closure_keeps_the_assembly_mode_over_full_turns():
    mechanism = legs.four_bar()
    for mode in TORQUES:
        theta = first = legs.four_bar_mode(mode)
        for turn in (1, 2):
            theta = legs.close(mechanism, theta, np.array([np.pi / 6 + 2 * np.pi * turn]))
            assert error(np.sin(theta[0]), np.sin(first[0])) < 1e-13
            assert error(np.cos(theta[0]), np.cos(first[0])) < 1e-13
    mechanism = legs.five_bar()
    theta = legs.close(mechanism, legs.five_bar_mode('above'), np.array((1.2, 0.9)))
    back = legs.close(mechanism, theta, np.deg2rad((30.0, 30.0)))
    assert error(np.concatenate(back), np.concatenate(legs.five_bar_mode('above'))) < 1e-13


def test_closed_legs_meet(rng):
    mechanism, theta = legs.five_bar(), legs.five_bar_mode('below')
    for _ in range(10):
        theta = legs.close(mechanism, theta, rng.uniform(0.4, 1.4, 2))
        first, second = (legs.leg_pose(leg, position) for leg, position in zip(mechanism.legs, theta))
        assert error(first.E, second.E) < 1e-15
        assert error(first.R_E, second.R_E) < 1e-15


def test_legs_that_cannot_meet_are_refused():
    with pytest.raises(LoopClosureError, match='do not close'):
        legs.close(legs.five_bar(), legs.five_bar_mode('above'), np.array((np.pi, 0.0)))


def test_singular_pose_is_refused():
    """Both outer links in line: E moves across them while the cranks stand still."""
    crank = np.arccos(0.36 / 2.28)  # elbows at a distance of 1.1 + 0.8 m
    line = np.arctan2(-0.6 * np.sin(crank), 1.9 - 0.6 * np.cos(crank))
    theta = (np.array((crank, line - crank)), np.array((0.0, line + np.pi, -np.pi)))
    with pytest.raises(denoc.SingularPoseError, match='actuated joints stand still'):
        denoc.configure(legs.five_bar(), theta)


def test_passive_joints_that_move_alike_are_refused():
    links = (legs.rod((0, 0), 0.5, 1.0), legs.rod((0.5, 0), 0.0, 1.0), legs.rod((0, 0), 0.5, 1.0))
    leg = legs.Leg(links, 1, np.array((0.5, 0.0, 0.0)), np.eye(3))
    with pytest.raises(denoc.SingularPoseError, match='Joint 2'):
        denoc.project_leg(leg, np.array((0.1, 0.2, 0.3)))


def test_trajectory_against_differences():
    h = 1e-3
    for t in (0.5, 7.0, 19.0):
        points = [denoc.trajectory(t + step * h, T, *FIVE_BAR_ENDS) for step in (-1, 1)]
        here = denoc.trajectory(t, T, *FIVE_BAR_ENDS)
        assert error((points[1].theta - points[0].theta) / (2 * h), here.thetadot) < 1e-8
        assert error((points[1].thetadot - points[0].thetadot) / (2 * h), here.thetadd) < 1e-8
    for t, end in zip((0.0, T), FIVE_BAR_ENDS):
        assert error(denoc.trajectory(t, T, *FIVE_BAR_ENDS), (end, (0, 0), (0, 0))) < 1e-15
