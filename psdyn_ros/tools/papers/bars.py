"""The four-bar and the five-bar of Saha and Schiehlen on their trajectories."""
import numpy as np

from ...formulations import denoc, legs
from .findings import stored

T = 20.0
FOUR_BAR_ENDS = np.deg2rad(((30.0,), (90.0,)))
FIVE_BAR_ENDS = np.deg2rad(((30.0, 30.0), (90.0, 70.3)))
FOUR_BAR_MODES = ('open', 'crossed')
FIVE_BAR_MODES = {'above': 'C above', 'below': 'C below'}


def case(name, mode):
    """Return the record of a file for an assembly mode, of which the first is 'open' or 'above'."""
    return stored(f'{name}_inverse_dynamics')['cases'][mode not in ('open', 'above')]


class Path:
    """A mechanism along the trajectory (35), asked at times that rise or jump."""

    def __init__(self, mechanism, theta, ends):
        self.mechanism, self.theta, self.ends = mechanism, theta, ends

    def at(self, t):
        """Return theta, rates, accelerations, each a tuple of an array per leg, and tau (n,) at time t."""
        path = denoc.trajectory(t, T, *self.ends)
        self.theta = legs.close(self.mechanism, self.theta, path.theta)
        configuration = denoc.configure(self.mechanism, self.theta)
        motion = denoc.rates(configuration, path.thetadot)
        joints, _ = denoc.accelerations(configuration, motion, path.thetadd)
        return self.theta, motion.theta, joints, denoc.inverse_dynamics(configuration, path.thetadot, path.thetadd)

    def over(self, times):
        """Return joint positions, rates, accelerations (times, joints) and tau (times, n)."""
        rows = [self.at(t) for t in times]
        return (*(np.array([np.concatenate(row[i]) for row in rows]) for i in range(3)),
                np.array([row[3] for row in rows]))


def four_bar_path(mode, variant='a'):
    return Path(legs.four_bar(variant), legs.four_bar_mode(mode, variant), FOUR_BAR_ENDS)


def five_bar_path(mode):
    return Path(legs.five_bar(), legs.five_bar_mode(mode), FIVE_BAR_ENDS)


def whole_turns_off(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


def energy(mechanism, y):
    """Return the energy [J] of the state y of `denoc.state_rate`."""
    n = len(mechanism.actuated)
    theta = legs.close(mechanism, np.split(y[:-n], np.cumsum([len(leg.links) for leg in mechanism.legs])[:-1]))
    inertia = denoc.generalized_inertia(denoc.configure(mechanism, theta))
    return 0.5 * y[-n:] @ inertia @ y[-n:] + potential(mechanism, theta)


def potential(mechanism, theta):
    """Return the energy of gravity [J], zero where all mass centres are at the height of the ground."""
    total = 0.0
    for leg, position in zip(mechanism.legs, theta):
        pose = legs.leg_pose(leg, position)
        for link, O, R in zip(leg.links, pose.O, pose.R):
            total -= link.mass * mechanism.gravity @ (O + R @ link.center)
    return total


def largest_energy(mechanism):
    """Return weight times 1 m [J], against which a drift of energy is small."""
    return np.linalg.norm(mechanism.gravity) * sum(link.mass for leg in mechanism.legs for link in leg.links)
