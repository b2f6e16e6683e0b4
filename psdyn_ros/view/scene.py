"""A machine as numbers that the page understands: tree, loops, shapes, bodies."""

import numpy as np

from .poses import from_base_to_tips, link_poses
from .shapes import middle, pose_row, shapes_of
from .topology import tool_of

TURN = 2.0 * np.pi      # a slider of a joint without limits goes half of it either way


def scene(manipulator, x=None):
    """Return (scene, {name: array}) of a `Manipulator` at x (nx,), or at its initial position.

    The scene is a dict for JSON; arrays of meshes are beside it.
    """
    description = manipulator.machine.description
    x = manipulator.initial_position if x is None else np.asarray(x, dtype=float)
    links = {name: k for k, name in enumerate(description.links)}
    joints = from_base_to_tips(description)
    shapes, sentences = shapes_of(description)
    arrays, drawn = {}, []
    for link, some in shapes.items():
        for shape in some:
            if shape['form'] == 'mesh':
                shape['mesh'] = len(arrays) // 2
                arrays[f'vertices {shape["mesh"]}'] = shape.pop('vertices')
                arrays[f'triangles {shape["mesh"]}'] = shape.pop('triangles')
            drawn.append({'link': links[link], **shape})
    positions = manipulator.joint_state(x)[1]
    position = dict(zip(manipulator.joints, positions.tolist()))
    allocation = len(manipulator.actuators) >= len(manipulator.coordinates) > 0
    return {
        'name': manipulator.name,
        'links': list(links),
        'joints': [{'name': joint.name, 'type': joint.type, 'parent': links[joint.parent], 'child': links[joint.child],
                    'origin': pose_row(joint.origin.rotation, joint.origin.position),
                    'axis': None if joint.axis is None else joint.axis.tolist(),
                    'row': manipulator.joints.index(joint.name) if joint.name in position else -1} for joint in joints],
        'closures': [_closure(closure, links) for closure in description.closures.values()],
        'names': list(manipulator.joints),
        'position': list(position.values()),
        'base': x[:7].tolist() if manipulator.floating else None,
        'sliders': [_slider(manipulator, description.joints[name], position[name]) for name in manipulator.coordinates],
        'limits': [[_finite(description.joints[name].lower), _finite(description.joints[name].upper)]
                   for name in manipulator.joints],
        'actuators': [_actuator(manipulator, name, links) for name in manipulator.actuators],
        'weights': manipulator.allocation.weights.tolist() if allocation else None,
        'bodies': [{'link': links[name], 'mass': link.inertial.mass, 'com': link.inertial.com.tolist()}
                   for name, link in description.links.items() if link.inertial is not None],
        'gravity': manipulator.gravity.tolist(),
        'shapes': drawn,
        'tool': _tool(manipulator, shapes, positions, x[None, :7] if manipulator.floating else None, links),
        'messages': sentences,
    }, arrays


def _finite(value):
    return float(value) if np.isfinite(value) else None


def _slider(manipulator, joint, position):
    low, high = joint.lower, joint.upper
    room = 0.5 * TURN if joint.type != 'prismatic' else 1.0
    return {'name': joint.name, 'row': manipulator.joints.index(joint.name),
            'unit': 'm' if joint.type == 'prismatic' else 'rad', 'actuated': joint.name in manipulator.actuators,
            'lower': float(low) if np.isfinite(low) else position - room,
            'upper': float(high) if np.isfinite(high) else position + room}


def _closure(closure, links):
    """Return the scalar equations of a closure: u . (p_b - p_a) and u . w, u fixed in link a, w in link b."""
    turn_a, turn_b = closure.parent_origin.rotation, closure.child_origin.rotation
    x, y, z = turn_a.T
    axis_a, axis_b = turn_a @ closure.parent_axis, turn_b @ closure.child_axis
    across = _across(axis_a)
    aligned = [(x, turn_b[:, 1]), (y, turn_b[:, 2]), (z, turn_b[:, 0])]
    directions = {'revolute': [(u, axis_b) for u in across], 'universal': [(axis_a, axis_b)], 'spherical': [],
                  'fixed': aligned, 'prismatic': aligned}[closure.type]
    positions = across if closure.type == 'prismatic' else (x, y, z)
    return {'name': closure.name, 'a': links[closure.parent], 'b': links[closure.child],
            'pa': closure.parent_origin.position.tolist(), 'pb': closure.child_origin.position.tolist(),
            'positions': [u.tolist() for u in positions],
            'directions': [[u.tolist(), w.tolist()] for u, w in directions]}


def _across(normal):
    """Return two unit vectors across a unit vector."""
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


def _actuator(manipulator, name, links):
    """Return an actuator and the links that it colors: of a cylinder [rod, barrel], else what it turns.

    Where a machine has cylinders, other actuators color nothing.
    """
    joints = manipulator.machine.description.joints
    joint, slides = joints[name], {one for one in manipulator.actuators if joints[one].type == 'prismatic'}
    closures = manipulator.machine.description.closures.values()
    pinned = {side for closure in closures for side in (closure.parent, closure.child)}
    alone = sum(other.parent == joint.parent for other in joints.values()) == 1
    is_barrel = name in slides and alone and joint.parent not in pinned
    limit = manipulator.limits.effort[manipulator.actuators.index(name)]
    return {'name': name, 'row': manipulator.joints.index(name), 'unit': 'N' if name in slides else 'N m',
            'links': [links[joint.child]] + [links[joint.parent]] * is_barrel, 'colored': name in slides or not slides,
            'limit': float(limit) if 0.0 < limit < np.inf else None}


def _tool(manipulator, shapes, joints, base, links):
    """Return the point whose path is drawn, None where there is none."""
    poses = {name: rows[0] for name, rows in link_poses(manipulator, joints[None], base).items()}
    tool = tool_of(manipulator, poses, {name: middle(some[-1]) for name, some in shapes.items() if some})
    return tool and {'link': links[tool[0]], 'point': tool[1].tolist()}
