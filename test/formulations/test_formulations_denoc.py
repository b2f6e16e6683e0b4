"""Saha & Schiehlen: feedback, closure and refusals of the bars of the paper; test_papers has their numbers."""

import numpy as np
import pytest
from support.comparison import error

from psdyn_ros.formulations import denoc, legs
from psdyn_ros.model.errors import LoopClosureError
from psdyn_ros.tools.papers.bars import FOUR_BAR_ENDS, T
from psdyn_ros.tools.papers.saha_motion import integrate

# --- feedback (37)


def test_feedback_decays_as_a_critically_damped_oscillator():
    mechanism, theta = legs.four_bar(), legs.four_bar_mode('open')
    desired = denoc.trajectory(0.0, T, *FOUR_BAR_ENDS)
    start = legs.close(mechanism, theta, desired.theta + 0.1)
    run = integrate(mechanism, np.append(start[0], 0.0), lambda t, *state: denoc.feedback(*state, desired), 3.0)
    assert run.y[0, -1] - desired.theta[0] == pytest.approx(0.1 * 4 * np.exp(-3), rel=1e-8)


# --- closure


def test_closure_keeps_the_assembly_mode_over_full_turns():
    mechanism = legs.four_bar()
    for mode in ('open', 'crossed'):
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
