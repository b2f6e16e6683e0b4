"""Recognise a loop as a linear-actuator triangle, and choose how it is assembled.

A triangle is a boom that turns about B on a base body, a barrel that turns about C on the same body, a rod that
slides in the barrel, and a pin T, the rod eye, that joins rod and boom.  Its pins may be anywhere: on links fixed
to the base body, off the boom line, off the cylinder axis, at any height along the parallel axes.
"""
import math
from dataclasses import dataclass

import numpy as np

from ..errors import AssemblyModeError, LoopClosureError, LoopError, NoTriangleError
from ..short_repr import short_repr
from .description import Closure, Joint, Pose
from .tree import Body

AXIS_TOLERANCE = 1e-4       # [rad] and [m]: rounded rpy values of exporters
STROKES = 1001              # at which the limits of boom and barrel are looked at, ends between them by halving
HALVINGS = 40
ROUNDING_TOLERANCE = 1e-9   # a deviation below it is rounding and gives no warning


@dataclass(frozen=True, eq=False)
class Triangle:
    """A loop in the frames of the URDF; kernel frames come later (`machine`)."""

    closure: Closure
    base: Body
    boom: Joint
    boom_pose: Pose                 # joint frame in the base body
    boom_body: Body
    barrel: Joint
    barrel_pose: Pose
    barrel_body: Body
    rod: Joint
    rod_pose: Pose                  # joint frame in the barrel body
    rod_body: Body
    cylinder: np.ndarray            # (3, 3): barrel link axes -> cylinder axes (x stroke, z pins)
    barrel_sign: float              # +1 when the barrel's axis has the direction of the boom's
    boom_eye: np.ndarray            # (3,) T in the boom body
    L: float
    L1: float
    x0: float
    e: float
    warnings: tuple

    __repr__ = short_repr

    @property
    def name(self):
        return self.closure.name

    @property
    def joint_names(self):
        return self.boom.name, self.barrel.name, self.rod.name

    def reach(self, side):
        """Return the strokes (lower, upper) between which the triangle closes with sign(x + x0) = side."""
        longest = self.L + self.L1
        if longest <= abs(self.e):
            return math.nan, math.nan
        far = math.sqrt(longest ** 2 - self.e ** 2)
        near = math.sqrt(max((self.L - self.L1) ** 2 - self.e ** 2, 0.0))
        return (near - self.x0, far - self.x0) if side > 0 else (-far - self.x0, -near - self.x0)

    def angles(self, x, mode):
        """Return (q, q1) of boom and cylinder against C -> B at the strokes x, for the assembly mode +1 or -1.

        q1 is the direction of the stroke axis from barrel to eye, which a reversed rod's coordinate x opposes.
        """
        rho = np.asarray(x) + self.x0
        s = np.hypot(rho, self.e)
        cos_q = np.clip((s ** 2 - self.L ** 2 - self.L1 ** 2) / (2 * self.L * self.L1), -1.0, 1.0)
        q = mode * np.arccos(cos_q)
        q1 = np.arctan2(self.L1 * np.sin(q), self.L + self.L1 * cos_q) - np.arctan2(np.sign(rho) * self.e, np.abs(rho))
        return q, q1


def find_triangle(entries, owner, closure):
    """Return the `Triangle` that `closure` closes; LoopError names the kind of another loop.

    entries: {movable joint: (Joint, Pose in its body, Body it moves)}; owner: {link: Body}.
    """
    where = f"constraint '{closure.name}' (line {closure.line})"
    if closure.type not in ('revolute', 'spherical'):
        raise NoTriangleError(f"{where}: a closure of type '{closure.type}'; a rod eye is 'revolute'")
    ends = [(owner[closure.parent], closure.parent, closure.parent_origin, closure.parent_axis),
            (owner[closure.child], closure.child, closure.child_origin, closure.child_axis)]
    for rod_end, boom_end in (ends, ends[::-1]):
        found = _legs(entries, rod_end[0], boom_end[0])
        if found:
            return _triangle(where, closure, rod_end, boom_end, *found)
    raise NoTriangleError(
        f"{where}: the loop {_route(ends[0][0])} | {_route(ends[1][0])} is not a linear-actuator triangle "
        '(base body - revolute boom; base body - revolute barrel - prismatic rod; pin between rod and boom)')


def _legs(entries, rod_body, boom_body):
    barrel_body = rod_body.parent
    if barrel_body is None or boom_body.parent is None or barrel_body.parent is not boom_body.parent:
        return None
    if boom_body is barrel_body:
        return None
    rod, barrel, boom = (entries[body.joint] for body in (rod_body, barrel_body, boom_body))
    kinds = rod[0].type, barrel[0].type, boom[0].type
    turning = ('revolute', 'continuous')
    return (rod, barrel, boom) if kinds[0] == 'prismatic' and kinds[1] in turning and kinds[2] in turning else None


def _route(body):
    names = []
    while body.joint is not None and len(names) < 6:
        names.append(body.joint)
        body = body.parent
    return ' - '.join(reversed(names)) or 'base'


def _triangle(where, closure, rod_end, boom_end, rod, barrel, boom):
    (rod, rod_pose, rod_body), (barrel, barrel_pose, barrel_body), (boom, boom_pose, boom_body) = rod, barrel, boom
    warnings = []

    def parallel(what, a, b):
        _tolerate(where, warnings, f'{what} is off parallel to the boom axis', np.linalg.norm(np.cross(a, b)), 'rad')

    z = boom_pose.rotation @ boom.axis
    barrel_axis = barrel_pose.rotation @ barrel.axis
    parallel(f"the axis of barrel '{barrel.name}'", z, barrel_axis)
    sign = math.copysign(1.0, z @ barrel_axis)
    z_barrel = sign * barrel.axis
    stroke = rod_pose.rotation @ rod.axis
    tilt = stroke @ z_barrel
    _tolerate(where, warnings, f"the stroke of '{rod.name}' leaves the plane of the loop", abs(tilt), 'rad')
    x = stroke - tilt * z_barrel
    x /= np.linalg.norm(x)
    cylinder = np.array([x, np.cross(z_barrel, x), z_barrel])

    _, link, origin, axis = rod_end
    eye = rod_body.links[link] @ origin
    eye_in_barrel = rod_pose @ eye
    if closure.type == 'revolute':
        parallel('the pin axis on the rod', z_barrel, eye_in_barrel.rotation @ axis)
    x0, e, eye_height = cylinder @ eye_in_barrel.position
    _, link, origin, axis = boom_end
    boom_eye = boom_body.links[link] @ origin
    if closure.type == 'revolute':
        parallel('the pin axis on the boom', boom.axis, boom_eye.rotation @ axis)

    side = boom_pose.position - barrel_pose.position        # C -> B
    height = z @ side
    L = np.linalg.norm(side - height * z)
    boom_height = boom.axis @ boom_eye.position
    L1 = np.linalg.norm(boom_eye.position - boom_height * boom.axis)
    gap = abs(height + boom_height - eye_height)
    _tolerate(where, warnings, 'rod eye and boom eye are apart along the pin', gap, 'm')
    if min(L, L1) < 1e-6:
        raise LoopClosureError(f'{where}: no triangle: barrel pin to boom pin {L:.3g} m, boom pin to eye {L1:.3g} m')
    return Triangle(closure, boom_body.parent, boom, boom_pose, boom_body, barrel, barrel_pose, barrel_body, rod,
                    rod_pose, rod_body, cylinder, sign, boom_eye.position, float(L), float(L1), float(x0), float(e),
                    tuple(warnings))


def _tolerate(where, warnings, what, amount, unit):
    if amount > AXIS_TOLERANCE:
        raise LoopError(f'{where}: {what} by {amount:.3g} {unit}; at most {AXIS_TOLERANCE:g} {unit} is tolerated')
    if amount > ROUNDING_TOLERANCE:
        warnings.append(f'{where}: {what} by {amount:.2g} {unit}; projected')


@dataclass(frozen=True)
class Assembly:
    """How a triangle is put together: sign of sin q, sign of x + x0, and the strokes at which it closes."""

    mode: float
    side: float
    reach: tuple


def choose_assembly(triangle, zeros, hints):
    """Return the `Assembly` of a triangle.

    zeros: joint positions of boom and barrel when boom and stroke axis point along C -> B.
    hints: {joint: position}, the first source that names passive joints of the loop; without one the joint limits
    must admit one mode only.
    """
    where = f"loop '{triangle.name}' (line {triangle.closure.line})"
    side, reach = _choose_side(where, triangle, hints)
    given = hints.get(triangle.rod.name)
    if given is not None:
        check_initial(triangle, reach, given)
    low, high = max(reach[0], triangle.rod.lower), min(reach[1], triangle.rod.upper)
    strokes = np.array([given]) if given is not None else np.linspace(low, high, 129)
    distances, lines = {}, []
    for mode in (1.0, -1.0):
        boom, barrel = _positions(triangle, strokes, mode, side, zeros)
        distances[mode] = _distance(triangle, hints, boom, barrel)
        lines.append(f"{triangle.boom.name} {wrap(boom[0]):+.3f} to {wrap(boom[-1]):+.3f} rad"
                     if boom.size > 1 else f'{triangle.boom.name} {wrap(boom[0]):+.3f} rad')
        if distances[mode] is None and not _within_limits(triangle, boom, barrel).any():
            distances[mode] = math.inf
    known = {mode: 0.0 if distance is None else distance for mode, distance in distances.items()}
    best, other = sorted(known, key=known.get)
    if math.isinf(known[best]):
        raise LoopClosureError(f'{where}: the limits of its joints admit no closed position; the loop closes with '
                               f"{lines[0]} or {lines[1]}")
    if known[other] - known[best] < 1e-9:
        raise AssemblyModeError(
            f'{where}: two assembly modes, {lines[0]} or {lines[1]}; choose by load(initial={{joint: position}}), an '
            'initial_value in <ros2_control>, or joint limits that admit one'
            + ''.join(f'; {joint.unit_doubt}' for joint in (triangle.boom, triangle.barrel) if joint.unit_doubt))
    return Assembly(best, side, reach)


def check_initial(triangle, reach, x):
    """Raise when the triangle does not close at its initial stroke x, or is flat there."""
    if not min(x - reach[0], reach[1] - x) > ROUNDING_TOLERANCE * (reach[1] - reach[0]):
        raise LoopClosureError(
            f"loop '{triangle.name}' (line {triangle.closure.line}): does not close at the initial position "
            f'{triangle.rod.name} = {x:.6g} m; it closes between {reach[0]:.6g} and {reach[1]:.6g} m')


def strokes_within(triangle, assembly, zeros, start):
    """Return the strokes (lower, upper) of the rod's limits next to `start` at which boom and barrel are within theirs.

    zeros: as of `choose_assembly`.  None: there are none.
    """
    rod = triangle.rod
    strokes = np.linspace(max(rod.lower, assembly.reach[0]), min(rod.upper, assembly.reach[1]), STROKES)

    def within(strokes):
        return _within_limits(triangle, *_positions(triangle, strokes, assembly.mode, assembly.side, zeros))

    inside = within(strokes)
    if not inside.any():
        return None
    ends, nearest = [rod.lower, rod.upper], int(np.argmin(np.where(inside, abs(strokes - start), np.inf)))
    for end, beyond in enumerate((np.flatnonzero(~inside[:nearest])[-1:],
                                  nearest + np.flatnonzero(~inside[nearest:])[:1])):
        for row in beyond:
            good, bad = strokes[row + 1 - 2 * end], strokes[row]
            for _ in range(HALVINGS):
                middle = 0.5 * (good + bad)
                good, bad = (middle, bad) if within(np.array([middle])).all() else (good, middle)
            ends[end] = float(good)
    return ends[0], ends[1]


def _positions(triangle, strokes, mode, side, zeros):
    """Return the positions of boom and barrel, but for whole turns, at strokes for an assembly mode."""
    q, q1 = triangle.angles(strokes, mode)
    return zeros[0] + q, zeros[1] + triangle.barrel_sign * (q1 + (math.pi if side < 0 else 0.0))


def _choose_side(where, triangle, hints):
    fits = []
    for side in (1.0, -1.0):
        low, high = triangle.reach(side)
        if low < high and low < triangle.rod.upper and high > triangle.rod.lower:
            fits.append((side, (low, high)))
    if not fits:
        if triangle.L + triangle.L1 <= abs(triangle.e):
            raise LoopClosureError(
                f'{where}: cannot close anywhere: the rod eye is {abs(triangle.e):.6g} m off the stroke axis, and '
                f'barrel pin to boom pin to eye are only {triangle.L:.6g} + {triangle.L1:.6g} m')
        low, high = triangle.reach(1.0)
        raise LoopClosureError(
            f"{where}: cannot close anywhere: it needs {triangle.rod.name} between {low:.6g} and {high:.6g} m, its "
            f'limits are {triangle.rod.lower:.6g} to {triangle.rod.upper:.6g} m')
    given = hints.get(triangle.rod.name)
    if given is not None and len(fits) > 1 and fits[1][1][0] < given < fits[1][1][1]:
        return fits[1]
    return fits[0]


def _distance(triangle, hints, boom, barrel):
    total, hinted = np.zeros(boom.size), False
    for joint, angles in ((triangle.boom, boom), (triangle.barrel, barrel)):
        if joint.name in hints:
            total += np.abs(wrap(angles - hints[joint.name]))
            hinted = True
    return float(total.min()) if hinted else None


def _within_limits(triangle, boom, barrel):
    """Return where positions (n,) of boom and barrel, but for whole turns, are within their limits."""
    inside = np.ones(boom.size, dtype=bool)
    for joint, angles in ((triangle.boom, boom), (triangle.barrel, barrel)):
        if math.isfinite(joint.lower) and math.isfinite(joint.upper):
            # first turn of the angle that is not below the lower limit
            turned = joint.lower + np.mod(angles - joint.lower + 1e-6, 2 * math.pi) - 1e-6
            inside &= turned <= joint.upper + 1e-6
    return inside


def wrap(angle):
    """Return the angle in [-pi, pi)."""
    return np.mod(np.asarray(angle) + math.pi, 2 * math.pi) - math.pi
