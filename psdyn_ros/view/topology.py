"""Which joints a loop holds together, what each joint is for, and which link is the tool."""

from typing import NamedTuple

import numpy as np

from .poses import from_base_to_tips

ACTUATED, PASSIVE, DEPENDENT, FIXED, FLOATING = 'actuated', 'passive', 'dependent', 'fixed', 'floating'
MIN_LEGS = 2        # closures on a link from which it is a platform that legs carry


class Topology(NamedTuple):
    """How the parts of a machine hang together.

    joints  joints of the tree, each after the one that carries its parent link
    roles   {joint: ACTUATED, PASSIVE (moves freely), DEPENDENT (follows others by a loop), FIXED or FLOATING}
    loops   {closure: tuple of the movable joints that it holds together}
    moved   {link: set of the coordinates that move it}
    """

    joints: tuple
    roles: dict
    loops: dict
    moved: dict


def topology(manipulator):
    """Return the `Topology` of a `Manipulator`."""
    description = manipulator.machine.description
    joints = tuple(from_base_to_tips(description))
    above = dict.fromkeys(description.links, ())
    for joint in joints:
        above[joint.child] = above[joint.parent] + ((joint.name,) if joint.name in manipulator.joints else ())
    loops = {name: tuple(joint.name for joint in joints
                         if (joint.name in above[closure.parent]) != (joint.name in above[closure.child]))
             for name, closure in description.closures.items()}
    held = _held_together(loops.values())
    coordinates = {name: {name} & set(manipulator.coordinates) for name in manipulator.joints}
    for group in held:
        coordinates.update(dict.fromkeys(group, group & set(manipulator.coordinates)))
    moved = {link: set().union(*(coordinates[name] for name in names)) for link, names in above.items()}
    return Topology(joints, {joint.name: _role(manipulator, joint) for joint in joints}, loops, moved)


def tool_of(manipulator, poses, points):
    """Return (link, point (3,) in its axes) of the tool, whose path is drawn; None where there is nothing to choose.

    It is what most coordinates move; of several on the body that most legs carry, that has a frame without a mass, the
    heaviest one, and what is farthest from the root link.

    poses   {link: (4, 4)}
    points  {link: (3,) point in its axes} of what is drawn; frames that are fixed to a body, without a mass, are added
    """
    description, moved = manipulator.machine.description, topology(manipulator).moved
    body, mass, legs = {link: link for link in description.links}, {}, {}
    frames = {}
    for joint in from_base_to_tips(description):
        if joint.type == FIXED:
            body[joint.child] = body[joint.parent]
            if description.links[joint.child].inertial is None:
                frames[joint.child] = np.zeros(3)
    for name, link in description.links.items():
        mass[body[name]] = mass.get(body[name], 0.0) + (link.inertial.mass if link.inertial else 0.0)
    for closure in description.closures.values():
        for link in (closure.parent, closure.child):
            legs[body[link]] = legs.get(body[link], 0) + 1
    points, framed = frames | points, {body[link] for link in frames}

    def rank(link):
        on = body[link]
        carried = legs.get(on, 0)
        place = poses[link] @ (*points[link], 1.0)
        return (len(moved[link]), carried if carried >= MIN_LEGS else 0, on in framed, mass[on],
                float((place[:3] ** 2).sum()))

    tool = max(points, key=rank, default=None)
    return tool and (tool, points[tool])


def _held_together(loops):
    """Return disjoint sets of joints: loops that share a joint are in one."""
    found = []
    for loop in map(set, loops):
        joined = loop.union(*(group for group in found if group & loop))
        found = [group for group in found if not group & loop] + [joined]
    return found


def _role(manipulator, joint):
    if joint.type in (FIXED, FLOATING):
        return joint.type
    if joint.name in manipulator.actuators:
        return ACTUATED
    return PASSIVE if joint.name in manipulator.coordinates else DEPENDENT
