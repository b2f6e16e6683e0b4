"""A machine as seen from its side, drawn from the visual shapes of its URDF."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from ...model.mechanism.urdf import rotation_from_rpy
from ...model.mechanism.xml_reader import parse

ROUND = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
PLAIN = (0.6, 0.6, 0.6, 1.0)
UPRIGHT = 0.999         # cosine of the angle to the vertical up to which an axis is vertical


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


class View:
    """From where a machine is seen.

    One that slews is seen across the vertical plane in which its far end lies, so that slewing does not show, but
    what stands still is seen across the x axis; any other machine is seen across the horizontal axis along which it is
    largest at its initial position.
    """

    def __init__(self, manipulator):
        start = manipulator.initial_position
        self.slews = _slews(manipulator)
        places = np.array([manipulator.link_pose(start, link)[:2, 3] for link in manipulator.links])
        self._along_y = not self.slews and np.ptp(places[:, 1]) > 1.01 * np.ptp(places[:, 0])
        self.title = 'from the side' + ('; slewing taken out' if self.slews else '')
        self.across = 'reach [m]' if self.slews else f"{'y' if self._along_y else 'x'} [m]"

    def heading(self, far):
        """Azimuth of the plane of the picture when the far end of the machine has this pose (4, 4)."""
        if self.slews:
            return np.arctan2(far[1, 3], far[0, 3])
        return 0.5 * np.pi if self._along_y else 0.0

    def points(self, shape, pose, heading):
        """(k, 3) reach, height and distance from the viewer of the points of a shape."""
        points = shape.points @ pose[:3, :3].T + pose[:3, 3]
        if self.slews and (pose == np.eye(4)).all():
            heading = 0.0
        c, s = np.cos(heading), np.sin(heading)
        return np.column_stack([c * points[:, 0] + s * points[:, 1], points[:, 2], c * points[:, 1] - s * points[:, 0]])


def _slews(manipulator):
    """Whether a joint turns about the vertical all that moves."""
    machine, start = manipulator.machine, manipulator.initial_position
    first = machine.description.joints[machine.joints[0]]
    if manipulator.floating or first.type not in ('revolute', 'continuous') or len(machine.joints) == 1:
        return False
    ground = {joint.parent for joint in machine.description.joints.values()} - {
        joint.child for joint in machine.description.joints.values()}
    moving = [joint for name, joint in machine.description.joints.items() if name in machine.joints]
    if sum(joint.parent in ground for joint in moving) > 1:
        return False
    return abs(manipulator.link_pose(start, first.child)[2, :3] @ first.axis) > UPRIGHT


def draw(axes, manipulator, shapes, x, alpha=1.0, view=None):
    """Draw the machine at position x (nx,) on matplotlib axes, as seen from a `View`; returns the middle (2,) of the
    last shape of its far end.
    """
    views, tip = _seen(manipulator, shapes, x, view or View(manipulator))
    for shape, seen in sorted(zip(shapes, views), key=lambda pair: pair[1][:, 2].min(), reverse=True):
        outline = seen[ConvexHull(seen[:, :2]).vertices]
        axes.fill(outline[:, 0], outline[:, 1], facecolor=shape.color[:3], alpha=alpha * shape.color[3],
                  edgecolor='black', linewidth=0.4)
    return tip


def middles(manipulator, shapes, x, view):
    """Where the middles (shapes, 2) of the shapes are in the picture at position x (nx,)."""
    return np.array([seen[:, :2].mean(axis=0) for seen in _seen(manipulator, shapes, x, view)[0]])


def _seen(manipulator, shapes, x, view):
    """(points of each shape as seen, middle of the last shape of the far end)."""
    poses = {link: manipulator.link_pose(x, link) for link in {shape.link for shape in shapes}}
    far = max(poses, key=lambda link: np.hypot(*poses[link][:2, 3]))
    heading = view.heading(poses[far])
    views = [view.points(shape, poses[shape.link], heading) for shape in shapes]
    return views, next(seen[:, :2].mean(axis=0) for shape, seen in zip(shapes[::-1], views[::-1]) if shape.link == far)


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
