"""The one door to orientation mathematics: tf_transformations where ROS has it, else transforms3d beneath it."""
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .arguments import Array

try:
    from tf_transformations import quaternion_from_matrix, quaternion_matrix
except ImportError:
    from transforms3d.quaternions import mat2quat, quat2mat

    def quaternion_matrix(quaternion: Array) -> Array:
        """Return the homogeneous rotation (4, 4) of a quaternion x y z w, as tf_transformations does."""
        x, y, z, w = quaternion
        matrix = np.eye(4)
        matrix[:3, :3] = quat2mat((w, x, y, z))
        return matrix

    def quaternion_from_matrix(matrix: Array) -> Array:
        """Return the quaternion x y z w of a homogeneous rotation (4, 4), as tf_transformations does."""
        return np.roll(mat2quat(matrix[:3, :3]), -1)


def rotation(quaternion: npt.ArrayLike) -> Array:
    """Return the rotation (3, 3), frame to parent, of a quaternion x y z w of any norm but zero."""
    return np.asarray(quaternion_matrix(np.asarray(quaternion, dtype=float)))[:3, :3]


def quaternion(turn: npt.ArrayLike) -> Array:
    """Return the quaternion x y z w (4,) of a rotation (3, 3), frame to parent."""
    matrix = np.eye(4)
    matrix[:3, :3] = turn
    return np.asarray(quaternion_from_matrix(matrix), dtype=float)
