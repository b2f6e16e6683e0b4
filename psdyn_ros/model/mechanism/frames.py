"""Planar turns between kernel frames, by cosine and sine."""
import math

import numpy as np


def azimuth(direction):
    """Return the angle about z after which a turn about x alone takes z to `direction`."""
    if math.hypot(direction[0], direction[1]) < 1e-14:
        return 0.0
    return math.atan2(direction[0], -direction[1])


def about_z(c, s):
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def about_x(c, s):
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
