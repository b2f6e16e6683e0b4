"""One cylinder-driven loop as URDF text, with a knob for everything that a test wants to bend."""

from math import acos, asin, atan2, cos, pi, sin, sqrt

import numpy as np

from . import urdf_text as urdf
from .machines import Machine

SINGULAR = asin(0.2)  # states of `span` keep |sin q| >= 0.2
BOOM = np.array(((1.0, 0.2, 0.1), (0.2, 8.0, 0.3), (0.1, 0.3, 8.0)))
BARREL = np.array(((0.1, 0.01, 0.02), (0.01, 0.8, 0.0), (0.02, 0.0, 0.8)))
ROD = np.diag((0.02, 0.3, 0.3))


def one_loop(*, L=1.1, L1=0.45, x0=0.9, e=0.0, stroke=0.3, mode=-1, boom_sign=1, barrel_sign=1, rod_sign=1,
             eye_sign=1, swapped=False, turning='revolute', pin='revolute', spaced=True, losses=(None,) * 4,
             boom_rpy=(0, 0, 0), barrel_rpy=(0, 0, 0), stroke_tilt=0.0, eye_rpy=(0, 0, 0),
             boom_eye_rpy=(0, 0, 0.4), gap=0.0, initial=('cylinder', 'boom', 'barrel'), limits=None):
    """
    Return a `Machine` of one loop on a base that is skewed in space.

    L, L1, x0, e: the triangle; the rod eye is at (x0 + stroke, e) in the cylinder frame. `stroke` and `mode`
    are those of the declared initial position, of which `initial` names what the URDF says.
    boom_sign, barrel_sign, rod_sign, eye_sign: direction of the joint axes, rod_sign -1: positive retracts.
    swapped: the constraint's parent is the boom. boom_rpy ... gap: errors that take the axes off parallel.
    losses: (damping, friction) of cylinder, boom, barrel, eye. limits: {joint: (lower, upper)}.
    """
    plane = urdf.pose((0.2, -0.3, 0.4), (0.3, -0.5, 0.8)) if spaced else np.eye(4)
    rho = x0 + stroke
    q = mode * acos((rho**2 + e**2 - L**2 - L1**2) / (2 * L * L1))
    q1 = atan2(L1 * sin(q), L + L1 * cos(q)) - atan2(e, rho)
    start = {'cylinder': rod_sign * stroke, 'boom': boom_sign * q, 'barrel': barrel_sign * q1}
    ends = [sqrt(max(L**2 + L1**2 + 2 * L * L1 * cos(angle) - e**2, 0.01)) - x0 for angle in (pi - SINGULAR, SINGULAR)]
    span = tuple(sorted(rod_sign * end for end in ends))
    limits = {'boom': (-7, 7), 'barrel': (-7, 7), 'cylinder': span, **(limits or {})}

    def joint(name, kind, parent, child, pose, axis, loss):
        return urdf.joint(name, kind, parent, child, *urdf.xyz_rpy(pose), axis, limits[name], loss)

    boom_at = plane @ urdf.pose((L, 0, 0.05), boom_rpy)
    barrel_at = plane @ urdf.pose((0, 0, 0), barrel_rpy)
    slide = (rod_sign * cos(stroke_tilt), 0, rod_sign * sin(stroke_tilt))
    rod_eye = ('rod_link', (0.4, e, 0.02), eye_rpy, (0, 0, eye_sign))
    boom_eye = ('boom_link', (L1, 0, -0.03 + gap), boom_eye_rpy, (0, 0, 1))
    eye = urdf.constraint('eye', *((boom_eye, rod_eye) if swapped else (rod_eye, boom_eye)), losses[3])
    elements = [
        urdf.link('base_link', 100, (0.1, 0.2, 0.3), np.diag((5.0, 3.0, 5.0))),
        joint('barrel', turning, 'base_link', 'barrel_link', barrel_at, (0, 0, barrel_sign), losses[2]),
        urdf.link('barrel_link', 25, (0.3, 0.02, 0.01), BARREL),
        joint('cylinder', 'prismatic', 'barrel_link', 'rod_link', urdf.pose((x0 - 0.4, 0, 0), (0, 0, 0)), slide,
              losses[0]),
        urdf.link('rod_link', 12, (0.1, 0.01, -0.02), ROD),
        joint('boom', turning, 'base_link', 'boom_link', boom_at, (0, 0, boom_sign), losses[1]),
        urdf.link('boom_link', 60, (0.4, 0.05, -0.02), BOOM),
        eye.replace('type="revolute"', f'type="{pin}"')]
    declared = {name: value for name, value in start.items() if name in initial}
    control = urdf.control('one_loop', ['cylinder'], ['barrel', 'boom'], declared)
    return Machine(urdf.robot('one_loop', elements + [control]), ('cylinder',), {'cylinder': span}, start)


def edit(xml, *changes):
    """Return the text with each (old, new) replaced once; a change that finds nothing is a mistake of the test."""
    for old, new in changes:
        assert old in xml, old
        xml = xml.replace(old, new, 1)
    return xml
