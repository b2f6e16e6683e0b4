"""A machine and its motion as seen from the side."""

from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from ...view import shapes as visuals
from ...view.poses import from_base_to_tips, link_poses
from ...view.topology import tool_of
from .figure_style import BLACK, GREEN, PURPLE, panel

ROUND = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
RING = np.column_stack([np.cos(ROUND), np.sin(ROUND), np.zeros(ROUND.size)])
UPRIGHT = 0.999             # cosine of the angle to the vertical up to which an axis is vertical
MAX_GHOSTS = 4              # poses beside the first one
MAX_INSTANTS = 500          # of a motion that are looked at
# share of the size of the picture by which some body of the first ghost, and of every further one, is elsewhere than in
# all other poses
FIRST_APART, APART = 0.04, 0.17
EARLIER = 0.95              # of the largest difference that an earlier pose must have to be drawn instead
LABEL = np.array([0.085, 0.04])     # width and height of a time written in the picture, of its size
AROUND = np.column_stack([np.cos(ROUND[::2]), np.sin(ROUND[::2])])
GAPS = 0.03, 0.09           # between a time and its point, of that size


class Shape(NamedTuple):
    """A body that is drawn as its convex hull.

    link    name
    points  (k, 3) in link axes
    color   r g b a
    middle  (3,) in link axes
    """

    link: str
    points: np.ndarray
    color: tuple
    middle: np.ndarray


def shapes_of(description):
    """Return the list of `Shape` of a `Description`; bars stand for links without visuals."""
    found, _ = visuals.shapes_of(description)
    return [Shape(link, _points(shape), tuple(shape['color']), visuals.middle(shape))
            for link, some in found.items() for shape in some]


class View:
    """From where a machine is seen.

    One that slews is seen across the vertical plane that slews with it, so that slewing does not show, but what stands
    still is seen across the x axis; any other machine is seen across the horizontal axis along which it is largest at
    its initial position.
    """

    def __init__(self, manipulator):
        description = manipulator.machine.description
        start = _start(manipulator)
        self._first = _slewing_link(manipulator, start)
        self._standing = _standing(description)
        self.slews = self._first is not None
        places = np.array([pose[0, :2, 3] for pose in start.values()])
        self._along_y = not self.slews and np.ptp(places[:, 1]) > 1.01 * np.ptp(places[:, 0])
        if self.slews:
            far = max(start.values(), key=lambda pose: np.hypot(*pose[0, :2, 3]))[0]
            self._zero = np.arctan2(far[1, 3], far[0, 3]) - _azimuth(start[self._first])[0]
        self.title = 'from the side' + ('; slewing taken out' if self.slews else '')
        self.across = 'reach [m]' if self.slews else f"{'y' if self._along_y else 'x'} [m]"

    def seen(self, link, points, poses):
        """Return (n, k, 3) reach, height and distance from the viewer of points (k, 3) of a link.

        poses  {link: (n, 4, 4)} of all links
        """
        pose = poses[link]
        world = points @ pose[:, :3, :3].swapaxes(1, 2) + pose[:, None, :3, 3]
        heading = np.full((len(pose), 1), 0.5 * np.pi if self._along_y else 0.0)
        if self.slews and link not in self._standing:
            heading[:, 0] = self._zero + _azimuth(poses[self._first])
        c, s = np.cos(heading), np.sin(heading)
        x, y, z = np.moveaxis(world, 2, 0)
        return np.stack([c * x + s * y, z, c * y - s * x], axis=2)


def draw(axes, shapes, view, poses, alpha=1.0):
    """Draw shapes on matplotlib axes, as seen from a `View`, at the first of the poses {link: (n, 4, 4)}."""
    seen = [(view.seen(shape.link, shape.points, poses)[0], shape.color) for shape in shapes]
    for points, color in sorted(seen, key=lambda pair: pair[0][:, 2].min(), reverse=True):
        outline = _outline(points[:, :2])
        axes.fill(*outline.T, facecolor=color[:3], alpha=alpha * color[3], edgecolor='black', linewidth=0.4)


def motion_picture(manipulator, motion, title, marked=(), marking=''):
    """Return the Figure of a `Motion`: the machine at its start, ghosts where it differs most, the path of its tool.

    marked   links that stand out at the start
    marking  what the legend says of them
    """
    shapes, view = shapes_of(manipulator.machine.description), View(manipulator)
    rows = np.unique(np.linspace(0, len(motion.time) - 1, MAX_INSTANTS).astype(int))
    time = motion.time[rows]
    poses = link_poses(manipulator, motion.joints[rows], None if motion.base is None else motion.base[rows])
    middles = np.stack([view.seen(shape.link, shape.middle[None], poses)[:, 0, :2] for shape in shapes], axis=1)
    corners = np.concatenate([view.seen(shape.link, shape.points, poses)[..., :2].reshape(-1, 2) for shape in shapes])
    low, size = corners.min(axis=0), np.maximum(np.ptp(corners, axis=0), 1e-3)
    moving = np.ptp(middles, axis=0).max(axis=1) > 1e-6 * size.max()
    chosen = _instants(middles[:, moving], size.max())
    figure, axes = panel(9, min(max(9 * size[1] / size[0] + 1, 4), 10))
    for k in chosen[:0:-1]:
        draw(axes, [shape for shape, moves in zip(shapes, moving) if moves], view, _at(poses, k), 0.22)
    draw(axes, shapes, view, _at(poses, 0))
    link, point = tool_of(manipulator, {name: pose[0] for name, pose in poses.items()},
                          {shape.link: shape.middle for shape in shapes})
    path = view.seen(link, point[None], poses)[:, 0, :2]
    axes.plot(*path.T, color=PURPLE, linewidth=1.2, label='path of the tool')
    _mark(axes, shapes, view, _at(poses, 0), marked, marking)
    frame = np.array([low, low + size]) + 0.06 * size.max() * np.array([[-1.0], [1.0]])
    _write_times(axes, path, chosen, time, frame, size.max())
    axes.set_aspect('equal')
    axes.set_xlim(frame[:, 0])
    axes.set_ylim(frame[:, 1])
    axes.legend(fontsize=9)
    axes.set_title(f'{title}, {view.title}')
    axes.set_xlabel(view.across)
    axes.set_ylabel('height [m]')
    return figure


def _mark(axes, shapes, view, poses, marked, marking):
    """Outline links in the picture; one without a shape has a ring at its origin."""
    for link in marked:
        outlines = [_outline(view.seen(link, shape.points, poses)[0][:, :2]) for shape in shapes if shape.link == link]
        for outline, color, width in ((one, *pen) for pen in (('white', 5.0), (GREEN, 2.5)) for one in outlines):
            axes.fill(*outline.T, facecolor='none', edgecolor=color, linewidth=width)
        if not outlines:
            axes.plot(*view.seen(link, np.zeros((1, 3)), poses)[0, 0, :2], 'o', markerfacecolor='none',
                      markeredgecolor=GREEN, markersize=18, markeredgewidth=2.5)
    if marked:
        axes.plot([], [], 's', markerfacecolor='none', markeredgecolor=GREEN, markeredgewidth=2.5, label=marking)


def _instants(middles, size):
    """Return the rows that are drawn of places (n, shapes, 2): the first, and those that differ most."""
    chosen = [0]
    while len(chosen) <= MAX_GHOSTS and middles.shape[1]:
        difference = np.min([np.linalg.norm(middles - middles[k], axis=2).max(axis=1) for k in chosen], axis=0)
        if difference.max() < (APART if len(chosen) > 1 else FIRST_APART) * size:
            break
        # a motion that comes back is drawn on its way out
        chosen.append(int(np.argmax(difference > EARLIER * difference.max())))
    return sorted(chosen)


def _write_times(axes, path, chosen, time, frame, size):
    """Write the times of the chosen rows beside their points of a path (n, 2), each where it covers least."""
    room, written = 0.5 * LABEL * size, []
    for k in chosen:
        centres = np.concatenate([path[k] + AROUND * (room + gap * size) for gap in GAPS])
        covered = [np.sum(np.all(abs(path - centre) < room, axis=1)) for centre in centres]
        crowd = [sum(np.all(abs(other - centre) < 2.0 * room) for other in written) for centre in centres]
        outside = [np.any((centre - room < frame[0]) | (centre + room > frame[1])) for centre in centres]
        centre = centres[np.lexsort((covered, crowd, outside))[0]]
        written.append(centre)
        axes.plot(*path[k], 'o', color=PURPLE, markersize=5)
        axes.annotate(f'{time[k]:.1f} s', path[k], centre, ha='center', va='center', fontsize=9, color=BLACK,
                      arrowprops={'arrowstyle': '-', 'color': PURPLE, 'linewidth': 0.6, 'shrinkB': 0},
                      bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.85, 'pad': 1.0})


def _at(poses, row):
    return {link: pose[row:row + 1] for link, pose in poses.items()}


def _start(manipulator):
    """Return {link: (1, 4, 4)} at the initial position."""
    x = manipulator.initial_position
    return link_poses(manipulator, manipulator.joint_state(x)[1][None], x[None, :7] if manipulator.floating else None)


def _standing(description):
    """Return the links that no joint moves."""
    moving = set()
    for joint in from_base_to_tips(description):
        if joint.type != 'fixed' or joint.parent in moving:
            moving.add(joint.child)
    return set(description.links) - moving


def _slewing_link(manipulator, start):
    """Return the link on a vertical joint that carries all that moves, None where there is none."""
    description = manipulator.machine.description
    standing = _standing(description)
    first = [joint for joint in description.joints.values() if joint.parent in standing and joint.child not in standing]
    if len(first) != 1 or first[0].type not in ('revolute', 'continuous') or len(manipulator.machine.joints) == 1:
        return None
    upright = abs(start[first[0].child][0, 2, :3] @ first[0].axis) > UPRIGHT
    return first[0].child if upright else None


def _azimuth(poses):
    """Return (n,) how far poses (n, 4, 4), whose turns are about the vertical, are turned [rad]."""
    return np.arctan2(poses[:, 1, 0] - poses[:, 0, 1], poses[:, 0, 0] + poses[:, 1, 1])


def _outline(points):
    """Return the corners of the convex hull of points (k, 2), which may lie in a line."""
    return points[ConvexHull(points, qhull_options='QJ Pp').vertices]


def _points(shape):
    """Return (k, 3) points in link axes whose convex hull is a shape."""
    form = shape['form']
    if form == 'mesh':
        vertices = shape['vertices'].astype(float)
        return vertices[ConvexHull(vertices, qhull_options='QJ Pp').vertices]
    if form == 'box':
        corners = 0.5 * np.array(shape['size']) * np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    elif form == 'cylinder':
        corners = np.vstack([shape['radius'] * RING + (0.0, 0.0, z) for z in _ends(shape)])
    else:
        ends = _ends(shape) if form == 'capsule' else (0.0,)
        corners = np.vstack([shape['radius'] * _ball() + (0.0, 0.0, z) for z in ends])
    pose = np.array(shape['pose']).reshape(3, 4)
    return corners @ pose[:, :3].T + pose[:, 3]


def _ends(shape):
    return -0.5 * shape['length'], 0.5 * shape['length']


def _ball():
    """Return points (k, 3) of the unit sphere."""
    turns = np.linspace(0.0, np.pi, 9)
    return np.concatenate([RING * np.sin(turn) + (0.0, 0.0, np.cos(turn)) for turn in turns])
