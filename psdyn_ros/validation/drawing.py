"""A machine as seen from its side, drawn from the visual shapes of its URDF."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from ..model.urdf import rotation_from_rpy
from ..model.xml_reader import parse

ROUND = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
PLAIN = (0.6, 0.6, 0.6, 1.0)


class Shape(NamedTuple):
    """A convex body of a link.

    link    name
    points  (k, 3) in link axes, the body is their convex hull
    color   r g b a
    """

    link: str
    points: np.ndarray
    color: tuple


def shapes_of(urdf):
    """The boxes, cylinders and spheres of a URDF text; meshes are left out."""
    robot = parse(urdf)
    colors = {material.get('name'): _numbers(material.find('color').get('rgba'))
              for material in robot.iter('material') if material.find('color') is not None}
    return [Shape(link.get('name'), points, colors.get(_material(visual), PLAIN))
            for link in robot.iter('link') for visual in link.iter('visual')
            if (points := _points(visual)) is not None]


def draw(axes, manipulator, shapes, x, alpha=1.0):
    """Draw the machine at actuator position x (n,) on matplotlib axes, as its side view.

    The view is along the horizontal, across the plane that holds the far end of the machine: slewing does not show.
    """
    poses = {link: manipulator.link_pose(x, link) for link in {shape.link for shape in shapes}}
    heading = _heading(poses)
    for shape in shapes:
        pose = poses[shape.link]
        seen = side_view(shape.points @ pose[:3, :3].T + pose[:3, 3], heading)
        outline = seen[ConvexHull(seen).vertices]
        axes.fill(outline[:, 0], outline[:, 1], facecolor=shape.color[:3], alpha=alpha * shape.color[3],
                  edgecolor='black', linewidth=0.4)


def side_view(points, heading):
    """(k, 2) reach and height of points (k, 3) in the vertical plane of this heading."""
    return np.column_stack([points[:, 0] * np.cos(heading) + points[:, 1] * np.sin(heading), points[:, 2]])


def _heading(poses):
    reach, far = max((np.hypot(*pose[:2, 3]), link) for link, pose in poses.items())
    return np.arctan2(poses[far][1, 3], poses[far][0, 3]) if reach > 0.0 else 0.0


def _points(visual):
    """(k, 3) corners of a visual in link axes, or None for what is not drawn."""
    geometry = visual.find('geometry')
    shape = next(iter(geometry), None) if geometry is not None else None
    kind = None if shape is None else shape.tag
    if kind == 'box':
        corners = 0.5 * _numbers(shape.get('size')) * np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    elif kind == 'cylinder':
        half, radius = 0.5 * float(shape.get('length')), float(shape.get('radius'))
        ring = radius * np.column_stack([np.cos(ROUND), np.sin(ROUND)])
        corners = np.vstack([np.column_stack([ring, np.full(ROUND.size, z)]) for z in (-half, half)])
    elif kind == 'sphere':
        turns = np.linspace(0.0, np.pi, 9)[:, None]
        corners = float(shape.get('radius')) * np.stack(
            np.broadcast_arrays(np.sin(turns) * np.cos(ROUND), np.sin(turns) * np.sin(ROUND), np.cos(turns)),
            axis=-1).reshape(-1, 3)
    else:
        return None
    origin = visual.find('origin')
    if origin is None:
        return corners
    rotation = rotation_from_rpy(_numbers(origin.get('rpy', '0 0 0')))
    return corners @ rotation.T + _numbers(origin.get('xyz', '0 0 0'))


def _material(visual):
    material = visual.find('material')
    return None if material is None else material.get('name')


def _numbers(text):
    return np.array(text.split(), dtype=float)
