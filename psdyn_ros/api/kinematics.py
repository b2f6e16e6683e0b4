"""Where links are and how fast they move, from the scratch that a velocity sweep leaves behind."""
import numpy as np

from ..kernels.rigid_body.records import BARREL, LINK, PRISMATIC, ROD


def displacement(mods, place, z):
    """Return by how much a link's body is displaced (3,) in its kernel frame: a slide along z, a stroke along x."""
    if place.module < 0:
        return np.zeros(3)
    record = mods[place.module]
    amount = z[record['coordinate']]
    if place.body == ROD:
        return np.array([amount, 0.0, 0.0])
    if place.body == LINK and record['kind'] == PRISMATIC:
        return np.array([0.0, 0.0, amount])
    return np.zeros(3)


def pose_in_base(mods, work, place, z):
    """Return (rotation, position) of a link in the base frame; z: coordinates, or positions of all modules."""
    rotation, position = place.pose.rotation, place.pose.position + displacement(mods, place, z)
    k, body = place.module, place.body
    while k >= 0:
        b, u = mods[k], work[k]
        if body == LINK:
            turn, origin = _about_z(u['c'], u['s']), np.zeros(3)
        else:
            turn, origin = _about_z(u['c1'], u['s1']), b['pin']
        standing = _about_z(*b['azimuth']) @ _about_x(*b['twist']) if b['turned'] else _about_x(*b['twist'])
        rotation = standing @ turn @ rotation
        position = standing @ (turn @ position + origin) + b['placement']
        body, k = int(b['on']), int(b['parent'])
        if k >= 0:
            position = position + _slide(mods[k], work[k], body)
    return rotation, position


def _slide(b, u, body):
    if body == LINK:
        return np.array([0.0, 0.0, u['slide'] if b['kind'] == PRISMATIC else 0.0])
    return np.array([0.0 if body == BARREL else u['stroke'], 0.0, 0.0])


def twist_of_link(mods, work, env, place, z):
    """Return the twist (v, w) (6,) of a link's origin in link axes."""
    if place.module < 0:
        v, w = env[0, :3], env[0, 3:]
    else:
        u = work[place.module]
        twist = u['velocity'] if place.body == LINK else u['cylinder_velocity']
        v, w = twist[:3].copy(), twist[3:]
        if place.body == ROD:
            v[0] += u['stroke_rate']
    origin = place.pose.position + displacement(mods, place, z)
    return np.concatenate((place.pose.rotation.T @ (v + np.cross(w, origin)), place.pose.rotation.T @ w))


def _about_z(c, s):
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _about_x(c, s):
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
