"""
Legs that meet in one end effector or end on the ground: description, pose, and the closure that the papers leave out.

All vectors are in the axes of the ground unless something else is said; the axes of all bodies of a leg are parallel
to the ground's when its joints are at zero.  Joint positions `theta` are a tuple of one array (m,) [rad or m] per leg.
Joints and bodies count from 1 in the formulas and in `Leg.k`, from 0 in arrays.  SI units.

The machines at the end are those of S. K. Saha, W. Schiehlen, "Recursive kinematics and dynamics for parallel
structured closed-loop multibody systems".
"""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model.errors import LoopClosureError
from .screws import hat

CLOSED = 1e-9     # gap [m and rad] that is left where Newton's method has converged to a closed pose
CONVERGED = 1e-13  # last step [rad or m]
LONGEST_STEP = 0.2  # of Newton's method
CONTINUATION = 0.05  # of the actuated joints between two solutions
MAX_STEPS = 50


@dataclass(frozen=True, eq=False)
class Link:
    """
    A joint and the body that it moves.

    offset (3,) [m]: from the origin of the body before to the joint at zero, in axes of the body before.  In axes of
    the body: axis (3,), a unit vector; mass [kg]; center (3,) [m] from the joint; inertia (3, 3) [kg m^2] about it.
    """

    offset: np.ndarray
    axis: np.ndarray
    mass: float
    center: np.ndarray
    inertia: np.ndarray
    prismatic: bool = False


@dataclass(frozen=True, eq=False)
class Leg:
    """
    A chain of links from the ground, joint k of which is actuated (from 1; None: all are passive).

    tip (3,) [m], tip_axes (3, 3): place and axes of the end effector E in those of the last body.
    """

    links: tuple
    k: int | None
    tip: np.ndarray
    tip_axes: np.ndarray


@dataclass(frozen=True, eq=False)
class Mechanism:
    """
    Legs that share the end effector, with as many actuated joints as degrees of freedom.

    ground_end (4, 4): the pose that E is fixed in, for legs that end on the ground; None where E moves.
    """

    legs: tuple
    gravity: np.ndarray
    ground_end: np.ndarray | None = None

    @property
    def actuated(self):
        """The legs (index from 0) that have an actuated joint, in the order of thetadot and tau."""
        return tuple(l for l, leg in enumerate(self.legs) if leg.k is not None)


class LegPose(NamedTuple):
    """A leg in the axes of the ground."""

    O: np.ndarray
    """(m, 3), origins of the bodies, fixed to them at their joints."""
    R: np.ndarray
    """(m, 3, 3), axes of the bodies."""
    e: np.ndarray
    """(m, 3), joint axes."""
    E: np.ndarray
    """(3,), end effector."""
    R_E: np.ndarray
    """(3, 3), its axes."""


def leg_pose(leg, theta):
    """Return the `LegPose` at joint positions theta (m,)."""
    point, turned, O, R, e = np.zeros(3), np.eye(3), [], [], []
    for link, position in zip(leg.links, theta):
        axis, offset = np.asarray(link.axis), np.asarray(link.offset)
        point = point + turned @ (offset + position * axis if link.prismatic else offset)
        if not link.prismatic:
            K = hat(axis)
            turned = turned @ (np.eye(3) + np.sin(position) * K + (1 - np.cos(position)) * K @ K)
        O.append(point)
        R.append(turned)
        e.append(turned @ axis)
    return LegPose(np.array(O), np.array(R), np.array(e), point + turned @ leg.tip, turned @ leg.tip_axes)


def actuated_positions(mechanism, theta):
    """Return the positions (n,) of the actuated joints."""
    return np.array([theta[l][mechanism.legs[l].k - 1] for l in mechanism.actuated])


def close(mechanism, theta, actuated=None):
    """
    Return joint positions in which all legs are closed, in the assembly mode of theta.

    theta is closed or nearly so.  The actuated joints stay, or go to `actuated` (n,) in small steps, each of which is
    closed by Newton's method in the passive joints before the next.
    """
    theta = tuple(np.array(leg, float) for leg in theta)
    if actuated is None:
        return _newton(mechanism, theta)
    start = actuated_positions(mechanism, theta)
    steps = max(1, int(np.ceil(np.abs(np.asarray(actuated) - start).max() / CONTINUATION)))
    for fraction in np.linspace(0, 1, steps + 1)[1:]:
        for l, position in zip(mechanism.actuated, start + fraction * (actuated - start)):
            theta[l][mechanism.legs[l].k - 1] = position
        theta = _newton(mechanism, theta)
    return theta


def _newton(mechanism, theta):
    passive = [np.array([i for i in range(len(leg.links)) if i + 1 != leg.k]) for leg in mechanism.legs]
    for _ in range(MAX_STEPS):
        gap, K = _gap(mechanism, theta, passive)
        step = np.linalg.lstsq(K, -gap, rcond=None)[0]
        largest = np.abs(step).max()
        step *= min(1.0, LONGEST_STEP / max(largest, LONGEST_STEP))
        theta = tuple(position.copy() for position in theta)
        for position, joints, part in zip(theta, passive, np.split(step, np.cumsum([len(i) for i in passive])[:-1])):
            position[joints] += part
        if largest < CONVERGED:
            break
    left = np.abs(_gap(mechanism, theta, passive)[0]).max()
    if not left < CLOSED:
        raise LoopClosureError(f'The legs do not close: a gap of {left:.3g} is left after {MAX_STEPS} steps.')
    return theta


def _gap(mechanism, theta, passive):
    """Gaps (angular, linear) between each leg and the first, or the ground, and their derivatives to passive joints."""
    poses = [leg_pose(leg, position) for leg, position in zip(mechanism.legs, theta)]
    J = [np.array([np.concatenate((np.zeros(3), pose.e[i]) if leg.links[i].prismatic else
                                  (pose.e[i], hat(pose.e[i]) @ (pose.E - pose.O[i]))) for i in joints]).T
         for leg, pose, joints in zip(mechanism.legs, poses, passive)]
    if mechanism.ground_end is None:
        E, R_E, others = poses[0].E, poses[0].R_E, range(1, len(poses))
    else:
        E, R_E, others = mechanism.ground_end[:3, 3], mechanism.ground_end[:3, :3], range(len(poses))
    ends = np.cumsum([0] + [len(joints) for joints in passive])
    gap, K = np.zeros((len(others), 6)), np.zeros((len(others), 6, ends[-1]))
    for row, l in enumerate(others):
        spin = poses[l].R_E @ R_E.T
        gap[row, :3] = 0.5 * np.array((spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]))
        gap[row, 3:] = poses[l].E - E
        K[row, :, ends[l]:ends[l + 1]] = J[l]
        if mechanism.ground_end is None:
            K[row, :, :ends[1]] = -J[0]
    return gap.ravel(), K.reshape(-1, ends[-1])


# --- the machines of the paper, in the plane of x and y


def rod(start, length, mass):
    """Return a `Link` that turns about z at start (x, y) [m]: a slender rod of length [m] and mass [kg] along x."""
    across = mass * length**2 / 12
    return Link(np.array((*start, 0.0)), np.array((0.0, 0.0, 1.0)), mass, np.array((length / 2, 0.0, 0.0)),
                np.diag((0.0, across, across)))


def _planar_leg(k, tip, *links):
    return Leg(links, k, np.array((tip, 0.0, 0.0)), np.eye(3))


def four_bar(variant='a', a=(0.3, 1.0, 0.6, 1.0), m=(1.5, 5.0, 3.0), g=9.81):
    """
    Return the four-bar `Mechanism`, crank at the origin, ground along +x, gravity along -y.

    a: crank, coupler, rocker, ground [m]; m: crank, coupler, rocker [kg].  Variant 'a' is one leg of four joints that
    ends on the ground, theta_4 = -(theta_1 + theta_2 + theta_3); variant 'b' two legs that meet at the coupler: crank
    and coupler, and rocker with a joint at the coupler, which is passive.
    """
    gravity = np.array((0.0, -g, 0.0))
    crank, coupler = rod((0, 0), a[0], m[0]), rod((a[0], 0), a[1], m[1])
    if variant == 'a':
        end = np.eye(4)
        end[0, 3] = a[3]
        leg = _planar_leg(1, 0.0, crank, coupler, rod((a[1], 0), a[2], m[2]), rod((a[2], 0), 0.0, 0.0))
        return Mechanism((leg,), gravity, end)
    legs = (_planar_leg(1, a[1], crank, coupler),
            _planar_leg(None, 0.0, rod((a[3], 0), a[2], m[2]), rod((a[2], 0), 0.0, 0.0)))
    return Mechanism(legs, gravity)


def four_bar_mode(mode, variant='a'):
    """Return theta of the default four-bar at a crank angle of 30 degrees, 'open' (coupler above) or 'crossed'."""
    theta_1 = np.pi / 6
    theta_2, theta_3 = {'open': (-0.0822541, -2.2889729), 'crossed': (-1.3648282, 2.2889729)}[mode]
    if variant == 'a':
        return close(four_bar(), ((theta_1, theta_2, theta_3, -(theta_1 + theta_2 + theta_3)),))
    rocker = theta_1 + theta_2 + theta_3 + np.pi
    return close(four_bar('b'), ((theta_1, theta_2), (rocker, theta_1 + theta_2 - rocker)))


def five_bar(a=((0.6, 1.1), (0.7, 0.8)), a0=1.2, m=((3.0, 1.6), (2.0, 1.1)), g=9.81):
    """
    Return the five-bar `Mechanism`, bases at the origin and at (a0, 0), gravity along -y.

    a, m: lengths [m] and masses [kg] of the two links of each leg.  E is the end of the first leg; the second has a
    third joint there and a massless third body, theta_3 = (theta_1 + theta_2) of leg 1 less that of leg 2.
    """
    (a11, a12), (a21, a22) = a
    (m11, m12), (m21, m22) = m
    legs = (_planar_leg(1, a12, rod((0, 0), a11, m11), rod((a11, 0), a12, m12)),
            _planar_leg(1, 0.0, rod((a0, 0), a21, m21), rod((a21, 0), a22, m22), rod((a22, 0), 0.0, 0.0)))
    return Mechanism(legs, np.array((0.0, -g, 0.0)))


def five_bar_mode(mode):
    """Return theta of the default five-bar at crank angles of 30 degrees, E 'above' or 'below' the elbows."""
    theta_1 = np.pi / 6
    first, second = {'above': (0.1809433, 1.6423432), 'below': (-1.1504558, -2.6118557)}[mode]
    return close(five_bar(), ((theta_1, first), (theta_1, second, first - second)))
