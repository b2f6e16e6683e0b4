"""A motion that shows a validation much of a machine: every coordinate to random places, one after the other."""

import numpy as np

from .demonstration import PEAK, rest_to_rest
from .trajectory import Waypoints

SHORTEST = 0.3              # of the range, of a move
PAUSE = 0.4                 # s between two moves at most
LEAST = 0.8                 # s, of the last move


def random_moves(manipulator, ranges, speeds, duration, seed, start=None):
    """`Waypoints` that lead each coordinate by itself, from rest to rest on quintics.

    ranges  {coordinate: (lowest, highest)} m or rad, of all coordinates
    speeds  {coordinate: (slowest, fastest)} m/s or rad/s, of the peaks of its moves
    seed    the same one, the same motion
    start   (dof,) where it begins; None: at the initial position
    """
    rng = np.random.default_rng(seed)
    start = manipulator.initial_position if start is None else np.asarray(start, dtype=float)
    moves = [_moves(position, ranges[name], speeds[name], duration, rng)
             for name, position in zip(manipulator.coordinates, start)]
    times = np.unique(np.concatenate([[0.0, duration], *[one[:2] for axis in moves for one in axis]]))
    values = np.zeros((3, times.size, manipulator.dof))
    values[0] = start
    for column, axis in enumerate(moves):
        for leave, arrive, travel in axis:
            values[:, :, column] += rest_to_rest((times - leave) / (arrive - leave), travel, arrive - leave)
    return Waypoints(manipulator.coordinates, times, *values)


def _moves(position, between, speeds, duration, rng):
    """[(when it leaves, when it arrives, how far it goes)] of a coordinate."""
    low, high = between
    found, time = [], rng.uniform(0.0, PAUSE)
    while duration - time > LEAST:
        target = rng.uniform(low, high)
        if abs(target - position) < SHORTEST * (high - low):
            continue
        seconds = PEAK * abs(target - position) / rng.uniform(*speeds)
        if time + seconds > duration:
            target = position + (target - position) * ((duration - time) / seconds)
            seconds = duration - time
        # rounded, so that no two waypoints are nearly the same
        leave, arrive = round(time, 3), round(time + seconds, 3)
        found.append((leave, arrive, target - position))
        position, time = target, arrive + rng.uniform(0.0, PAUSE)
    return found
