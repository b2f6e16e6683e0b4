"""Draw the machines of urdf/ at their initial position: `python scripts/draw_machines.py [NAME ...]`.

Writes docs/images/<name>.png.  White dots are the pins and crosses that <constraint> elements close.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from scipy.spatial import ConvexHull

matplotlib.use('Agg')

from matplotlib import pyplot  # noqa: E402
from matplotlib.collections import PolyCollection  # noqa: E402

from psdyn_ros.api.load import load  # noqa: E402
from psdyn_ros.validation.report.machine_drawing import shapes_of  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
LIGHT = np.array([-0.35, -0.75, 1.0]) / np.linalg.norm([-0.35, -0.75, 1.0])
FLAT = (0.0, 0.0)
TURNED = (18.0, 10.0)
# azimuth and elevation of the viewer in degrees; 0, 0 looks along y, x to the right
VIEWS = {'four_bar': FLAT, 'five_bar': FLAT, 'pkm_2pur2rpu': (35.0, 24.0), 'balloon': TURNED, 'excavator': TURNED,
         'forwarder': TURNED}
UNPHYSICAL = ('balloon',)


def draw_machine(name):
    """Draw one machine; return the path of the picture."""
    urdf = ROOT / 'urdf' / f'{name}.urdf'
    manipulator = load(str(urdf), allow_unphysical=name in UNPHYSICAL)
    x, view = manipulator.initial_position, _view(*VIEWS[name])
    figure, axes = pyplot.subplots(figsize=(8, 6))
    shapes = [(shape, _placed(manipulator.link_pose(x, shape.link), shape.points)) for shape in
              shapes_of(manipulator.machine.description)]
    for shape, points in sorted(shapes, key=lambda pair: (pair[1] @ view[2]).mean()):
        _draw(axes, points, view, np.array(shape.color[:3]))
    pins = [_placed(manipulator.link_pose(x, closure.parent), closure.parent_origin.position) @ view[:2].T
            for closure in manipulator.machine.description.closures.values()]
    if pins:
        axes.plot(*np.array(pins).T, 'o', color='white', markeredgecolor='black', markersize=5)
    axes.set_aspect('equal')
    axes.autoscale_view()
    axes.set_xlabel('m')
    axes.set_ylabel('m')
    axes.grid(color='0.93')
    axes.set_axisbelow(True)
    axes.set_title(f'{manipulator.name}: ' + ', '.join((
        _count(manipulator.dof, 'DoF', 'DoF'), _count(len(manipulator.actuators), 'actuator'),
        _count(len(pins), 'closure'), f'{round(manipulator.total_mass, 3):g} kg')), fontsize=10)
    path = ROOT / 'docs' / 'images' / f'{name}.png'
    figure.savefig(path, dpi=100, bbox_inches='tight')
    pyplot.close(figure)
    return path


def _count(number, one, many=None):
    return f'{number} {one if number == 1 else many or one + "s"}'


def _view(azimuth, elevation):
    """Return (3, 3): right, up, and towards the viewer, in world axes."""
    a, e = np.radians([azimuth, elevation])
    right = np.array([np.cos(a), np.sin(a), 0.0])
    towards = np.array([np.sin(a) * np.cos(e), -np.cos(a) * np.cos(e), np.sin(e)])
    return np.array([right, np.cross(towards, right), towards])


def _placed(pose, points):
    return points @ pose[:3, :3].T + pose[:3, 3]


def _draw(axes, points, view, color):
    """Draw a convex body: the faces that the viewer sees, shaded, and its outline."""
    hull = ConvexHull(points)
    seen = hull.equations[:, :3] @ view[2] > 1e-9
    shade = 0.62 + 0.38 * np.clip(hull.equations[seen, :3] @ LIGHT, 0.0, 1.0)
    colors = np.clip(shade[:, None] * color, 0.0, 1.0)
    flat = points @ view[:2].T
    axes.add_collection(PolyCollection(flat[hull.simplices[seen]], facecolors=colors, edgecolors=colors,
                                       linewidths=0.3))
    outline = flat[ConvexHull(flat).vertices]
    axes.add_collection(PolyCollection([outline], facecolors='none', edgecolors='black', linewidths=0.5))
    axes.update_datalim(outline)


def main():
    """Draw the machines named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('names', nargs='*', metavar='NAME', help=f'of: {", ".join(VIEWS)}; all by default')
    names = parser.parse_args().names or list(VIEWS)
    for name in names:
        if name not in VIEWS:
            parser.error(f"no machine '{name}'; there are: {', '.join(VIEWS)}")
        print(draw_machine(name).relative_to(ROOT))


if __name__ == '__main__':
    main()
