"""The spanning tree of bodies and movable joints; links on fixed joints are merged into bodies."""
from dataclasses import dataclass, field

import numpy as np

from ..errors import InertiaError, TreeError
from ..short_repr import short_repr
from .description import IDENTITY


@dataclass(eq=False)
class Body:
    """Links that are rigid with each other, in the frame of `link`, the child link of `joint`."""

    link: str
    joint: str | None                               # movable joint that carries it, None for the base
    parent: 'Body | None'
    links: dict = field(default_factory=dict)       # link name -> Pose in the frame of `link`
    joints: list = field(default_factory=list)      # movable joints on this body: (Joint, Pose, Body)

    __repr__ = short_repr

    def path(self):
        """Return the bodies from this one to the base."""
        return [self] if self.parent is None else [self, *self.parent.path()]


def build_tree(description):
    """Return (base Body, {link name: Body}); raise when the joints are no tree or a body has no mass."""
    if not description.links:
        raise TreeError(f"'{description.name}' has no links")
    children, carried = {}, {}
    for joint in description.joints.values():
        if joint.child in carried:
            raise TreeError(f"link '{joint.child}' is the child of two joints, '{carried[joint.child].name}' and "
                            f"'{joint.name}' (line {joint.line}); close loops by <constraint>")
        carried[joint.child] = joint
        children.setdefault(joint.parent, []).append(joint)
    roots = [name for name in description.links if name not in carried]
    if len(roots) != 1:
        what = f"{len(roots)} roots: {', '.join(roots[:5])}" if roots else 'no root: the joints form a ring'
        raise TreeError(f"a machine has one root link; '{description.name}' has {what}")

    base = Body(roots[0], None, None)
    owner, todo = {}, [(base, roots[0], IDENTITY)]
    while todo:
        body, link, pose = todo.pop()
        body.links[link] = pose
        owner[link] = body
        for joint in children.get(link, ()):
            placed = pose @ joint.origin
            if joint.type == 'fixed':
                todo.append((body, joint.child, placed))
            else:
                child = Body(joint.child, joint.name, body)
                body.joints.append((joint, placed, child))
                todo.append((child, joint.child, IDENTITY))
    if len(owner) != len(description.links):
        lost = next(name for name in description.links if name not in owner)
        raise TreeError(f"link '{lost}' is not connected to the root '{roots[0]}': its joints form a ring")
    order = {name: row for row, name in enumerate(description.joints)}
    for body in dict.fromkeys(owner.values()):
        body.joints.sort(key=lambda entry: order[entry[0].name])
    _check_floating(description, base, roots[0])
    return base, owner


def _check_floating(description, base, root):
    """Refuse a floating joint anywhere but between a root without inertia and the only body on it."""
    for joint in description.joints.values():
        if joint.type != 'floating':
            continue
        where = f"floating joint '{joint.name}' (line {joint.line})"
        if [entry[0] for entry in base.joints] != [joint]:
            raise TreeError(f"{where}: a machine floats as a whole, so this must be the only joint on the root "
                            f"'{root}'; there is: {', '.join(entry[0].name for entry in base.joints)}")
        heavy = [name for name in base.links if description.links[name].inertial]
        if heavy:
            raise TreeError(f"{where}: its parent stands for the world and has no inertia; link '{heavy[0]}' has")


def check_inertia(description, body, in_loop):
    """Refuse inertias that no body can have, and moving bodies without mass; in loops other bodies may carry them."""
    for name in body.links:
        inertial = description.links[name].inertial
        if inertial is None:
            continue
        where = f"link '{name}' (line {description.links[name].line})"
        if inertial.mass == 0.0 and body.joint is not None and not in_loop:
            raise InertiaError(f'{where}: zero mass on a moving link')
        problem = inertia_problem(inertial)
        if problem:
            raise InertiaError(f'{where}: {problem}; allow_unphysical=True accepts it, as do '
                               'psdyn check and psdyn view with --allow-unphysical')
    if body.joint is not None and not in_loop and not any(
            description.links[name].inertial and description.links[name].inertial.mass > 0 for name in body.links):
        raise InertiaError(f"link '{body.link}' (line {description.links[body.link].line}), moved by joint "
                           f"'{body.joint}', has no mass, nor has any link fixed to it")


def inertia_problem(inertial):
    """Return why no body can have this inertia, or an empty string."""
    moments = np.linalg.eigvalsh(inertial.inertia)
    tolerance = 1e-6 * max(abs(moments).max(), 1e-12)
    if moments[0] < -tolerance:
        return f'inertia has a negative principal moment ({moments[0]:.4g} kg m^2)'
    if moments[0] + moments[1] < moments[2] - tolerance:
        return (f'principal moments {moments[0]:.4g}, {moments[1]:.4g}, {moments[2]:.4g} kg m^2: the largest '
                'exceeds the sum of the others, which no body can have')
    if inertial.mass == 0.0 and moments[2] > tolerance:
        return 'inertia without mass'
    return ''


def radius_of_gyration(inertial):
    """Return the largest radius of gyration [m] of an `Inertial` with a mass about its centre of mass."""
    return float(np.sqrt(np.linalg.eigvalsh(inertial.inertia)[-1].clip(0.0) / inertial.mass))


def machine_size(description):
    """Return a length that no two frames or centres of mass are apart: all joints stretched out in a line."""
    size = sum(np.linalg.norm(joint.origin.position) + (joint.upper - joint.lower if joint.type == 'prismatic' else 0.0)
               for joint in description.joints.values())
    return size + 2.0 * max((np.linalg.norm(link.inertial.com) for link in description.links.values()
                             if link.inertial), default=0.0)


def looks_like_placeholder(inertial):
    """Return True for inertias that are rarely measured: unit or equal round moments about all axes."""
    xx, yy, zz = np.diag(inertial.inertia)
    off = inertial.inertia - np.diag((xx, yy, zz))
    return xx == yy == zz and not off.any() and float(f'{xx:.0e}') == xx


def rigid_parameters(pose, inertial):
    """Return the 10 numbers (m, m c, I about the origin) of `inertial` seen from a frame in which it has `pose`."""
    com = pose.apply(inertial.com)
    about_com = pose.rotation @ inertial.inertia @ pose.rotation.T
    origin = about_com + inertial.mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.concatenate(([inertial.mass], inertial.mass * com,
                           origin[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]))


def body_parameters(description, body, pose):
    """Return the summed 10 numbers of all links of `body`, seen from a frame in which the body has `pose`."""
    total = np.zeros(10)
    for name, placed in body.links.items():
        inertial = description.links[name].inertial
        if inertial is not None:
            total += rigid_parameters(pose @ placed, inertial)
    return total

