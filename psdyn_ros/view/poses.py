"""Poses of all links over a motion, from the positions of all joints."""

import numpy as np


def from_base_to_tips(description):
    """Return the joints of a description, each after the one that carries its parent link."""
    waiting, placed, found = list(description.joints.values()), set(description.links), []
    placed -= {joint.child for joint in waiting}
    while waiting:
        ready = [joint for joint in waiting if joint.parent in placed]
        found += ready
        placed |= {joint.child for joint in ready}
        waiting = [joint for joint in waiting if joint.child not in placed]
    return found


def link_poses(manipulator, joints, base=None):
    """Return {link: (n, 4, 4)} poses in the root link at n instants.

    joints  (n, joints) positions of all `Manipulator.joints`, loops closed
    base    (n, 7) position and quaternion x y z w of a floating base, None where it does not float
    """
    description = manipulator.machine.description
    joints = np.asarray(joints, dtype=float)
    columns = {name: joints[:, k] for k, name in enumerate(manipulator.joints)}
    moved = {joint.child for joint in description.joints.values()}
    poses = {name: np.tile(np.eye(4), (len(joints), 1, 1)) for name in description.links if name not in moved}
    for joint in from_base_to_tips(description):
        pose = poses[joint.parent] @ joint.origin.matrix()
        if joint.type == 'floating':
            pose = pose @ _of_base(np.asarray(base, dtype=float))
        elif joint.name in columns:
            pose = pose @ _of_joint(joint, columns[joint.name])
        poses[joint.child] = pose
    return poses


def _of_joint(joint, position):
    """Return (n, 4, 4) of a joint at positions (n,)."""
    poses = np.tile(np.eye(4), (len(position), 1, 1))
    if joint.type == 'prismatic':
        poses[:, :3, 3] = position[:, None] * joint.axis
        return poses
    x, y, z = joint.axis
    across = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    sine, versine = np.sin(position)[:, None, None], (1.0 - np.cos(position))[:, None, None]
    poses[:, :3, :3] += sine * across + versine * (across @ across)
    return poses


def _of_base(rows):
    """Return (n, 4, 4) of rows (n, 7) of position and quaternion x y z w."""
    v, w = rows[:, 3:6], rows[:, 6]
    across = np.zeros((len(rows), 3, 3))
    across[:, 0, 1], across[:, 0, 2], across[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    across -= across.swapaxes(1, 2)
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] += 2.0 * (w[:, None, None] * across + across @ across)
    poses[:, :3, 3] = rows[:, :3]
    return poses
