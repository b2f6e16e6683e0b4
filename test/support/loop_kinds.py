"""
The kinds of modules that `general_machines` builds: how each is drawn, its mobility and what drives it.

Each function adds a module called `name` to a link of a builder and returns its mobility and its driving joints
(none: any of them).
"""

from functools import partial
from math import pi

import numpy as np

from . import urdf_text as urdf

HELD = {'revolute': 5, 'spherical': 3, 'universal': 4, 'prismatic': 5, 'fixed': 6}  # constraints of a closure


def serial(builder, name, parent, kind):
    builder.joint(f'{name}_joint', kind, parent, builder.near(parent), builder.unit())
    return 1, []


def four_bar(builder, name, parent, closure='revolute'):
    plane = _Plane(builder, name, parent)
    a, b, c, d = plane.quadrangle()
    crank = plane.pin('crank', parent, a)
    coupler = plane.pin('coupler', crank, b)
    rocker = plane.pin('rocker', parent, d)
    plane.close('close', coupler, rocker, c, closure)
    return 1, []


def five_bar(builder, name, parent):
    plane = _Plane(builder, name, parent)
    a, b, c, d = plane.quadrangle()
    left = plane.pin('left', plane.pin('left_crank', parent, a), b)
    right = plane.pin('right', plane.pin('right_crank', parent, d), d + plane.away(0.3, 0.6))
    plane.close('close', left, right, c)
    return 2, []


def parallelogram(builder, name, parent, cranks=2):
    """Three cranks are one too many, and fit all the same."""
    plane = _Plane(builder, name, parent)
    arm, pins = plane.away(0.3, 0.6), [plane.away(0.2, 0.8) for _ in range(cranks)]
    links = [plane.pin(f'crank{k}', parent, pin) for k, pin in enumerate(pins)]
    coupler = plane.pin('coupler', links[0], pins[0] + arm)
    for k in range(1, cranks):
        plane.close(f'close{k}', coupler, links[k], pins[k] + arm)
    return 1, []


def planar_fixed(builder, name, parent):
    """Four pins in a row whose last link is fixed to the parent: six constraints, three of them redundant."""
    plane, link = _Plane(builder, name, parent), parent
    for k, point in enumerate(plane.quadrangle()):
        link = plane.pin(f'pin{k}', link, point)
    plane.close('close', link, parent, plane.away(0.1, 0.5), 'fixed')
    return 1, []


def slider_crank(builder, name, parent):
    """The block slides on the parent by a prismatic closure in the plane."""
    plane = _Plane(builder, name, parent)
    a, b, c, _ = plane.quadrangle()
    rod = plane.pin('rod', plane.pin('crank', parent, a), b)
    block = plane.pin('block', rod, c)
    builder.close(f'{name}_close', 'prismatic', parent, block, plane.point(c), plane.direction(plane.away(1, 1)))
    return 1, []


def triangle(builder, name, parent, drive='boom'):
    """A cylinder triangle, driven at its boom."""
    plane = _Plane(builder, name, parent)
    a, _, c, d = plane.quadrangle()
    boom = plane.pin('boom', parent, d)
    plane.cylinder('', parent, boom, a, c)
    return 1, [f'{name}_{drive}']


def twin_cylinders(builder, name, parent):
    """Two cylinders lift one boom, side by side or elsewhere."""
    plane = _Plane(builder, name, parent)
    a, b, c, d = plane.quadrangle()
    boom = plane.pin('boom', parent, d)
    side_by_side = builder.rng.random() < 0.5
    plane.cylinder('_left', parent, boom, a, c)
    plane.cylinder('_right', parent, boom, *((a, c) if side_by_side else (b, c + plane.away(0.1, 0.2))))
    return 1, [f'{name}_rod_left', f'{name}_rod_right']


def six_link(builder, name, parent):
    """A bucket: a four-bar whose rocker is driven by a cylinder."""
    plane = _Plane(builder, name, parent)
    a, b, c, d = plane.quadrangle()
    rocker, bucket = plane.pin('rocker', parent, a), plane.pin('bucket', parent, d)
    plane.close('close', plane.pin('coupler', rocker, b), bucket, c)
    eye = b if builder.rng.random() < 0.5 else a + plane.away(0.2, 0.5)
    plane.cylinder('', parent, rocker, a + plane.away(0.7, 1.2), eye)
    return 1, [f'{name}_rod']


def knuckle(builder, name, parent):
    """Two booms and two cylinders, both from the parent: the second loop runs over the joint of the first."""
    plane = _Plane(builder, name, parent)
    a, b, c, d = plane.quadrangle()
    first = plane.pin('first', parent, a)
    second = plane.pin('second', first, b)
    plane.cylinder('_first', parent, first, d, a + 0.7 * (b - a) + plane.away(0.1, 0.2))
    plane.cylinder('_second', parent, second, d + plane.away(0.1, 0.4), c)
    return 2, [f'{name}_rod_first', f'{name}_rod_second']


def rusr(builder, name, parent, pins=2, closure='spherical'):
    """Crank, universal joint, coupler, spherical closure, rocker."""
    tip = builder.near(parent, 0.8)
    crank = builder.joint(f'{name}_crank', 'revolute', parent, builder.near(parent), builder.unit())
    coupler = _crossed(builder, f'{name}_cross', crank, builder.near(parent, 0.8), pins)
    rocker = builder.joint(f'{name}_rocker', builder.turning(), parent, builder.near(parent), builder.unit())
    builder.close(f'{name}_close', closure, coupler, rocker, tip, builder.unit())
    return 1, []


def rsur(builder, name, parent):
    """Crank, spherical joint as three crossed pins, coupler, universal closure, rocker."""
    return rusr(builder, name, parent, 3, 'universal')


def _crossed(builder, name, link, point, pins):
    """Add pins through one point, each across the one before."""
    axis = builder.unit()
    for k in range(pins):
        link = builder.joint(f'{name}{k}', 'revolute', link, point, axis)
        axis = np.cross(axis, builder.unit())
    return link


def spatial(builder, name, parent, closure):
    """A loop of random joints in space, of mobility one or two."""
    freedom = int(builder.rng.integers(1, 3))
    total = HELD[closure] + freedom
    left = int(builder.rng.integers(1, total + 1))
    ends = _leg(builder, f'{name}_a', parent, left), _leg(builder, f'{name}_b', parent, total - left)
    builder.close(f'{name}_close', closure, *ends, builder.near(parent, 0.8), builder.unit())
    return freedom, []


def parallel(builder, name, parent):
    """A platform on three legs, each closure taking one freedom from it."""
    platform = _leg(builder, f'{name}_a', parent, 4)
    for leg in 'bc':
        end = _leg(builder, f'{name}_{leg}', parent, 2)
        builder.close(f'{name}_close_{leg}', 'spherical', platform, end, builder.near(parent, 0.8), builder.unit())
    return 2, []


def _leg(builder, name, link, joints):
    start = link
    for k in range(joints):
        kind = 'prismatic' if builder.rng.random() < 0.2 else builder.turning()
        link = builder.joint(f'{name}{k}', kind, link, builder.near(start, 0.8), builder.unit())
    return link


class _Plane:
    """A plane on a link, in which pins and cylinders are drawn by points (2,); pins may sit anywhere on their axis."""

    def __init__(self, builder, name, parent):
        self.builder, self.rng, self.name = builder, builder.rng, name
        self.pose = builder.pose[parent] @ urdf.pose(builder.short(0.4), builder.short(3))
        self.normal = self.pose[:3, 2]

    def quadrangle(self):
        """Draw corners a, b, c, d of a four-bar: a and d on the ground."""
        a, d = self.rng.uniform(-0.2, 0.2, 2), np.array((self.rng.uniform(0.7, 1.1), 0.0))
        b, c = (end + self.rng.uniform(0.3, 0.6) * urdf.direction(self.rng.uniform(0, 2 * pi)) for end in (a, d))
        turn = self.rng.uniform(-pi, pi)
        x, y = urdf.direction(turn), urdf.direction(turn + pi / 2)
        return [p[0] * x + p[1] * y for p in (a, b, c, d)]

    def away(self, low, high):
        return self.rng.uniform(low, high) * urdf.direction(self.rng.uniform(-pi, pi))

    def point(self, p):
        return urdf.apply(self.pose, (*p, self.rng.uniform(-0.2, 0.2)))

    def direction(self, p):
        return self.pose[:3, :3] @ (*p, 0.0)

    def pin(self, name, parent, p):
        axis = self.rng.choice((-1, 1)) * self.normal
        return self.builder.joint(f'{self.name}_{name}', self.builder.turning(), parent, self.point(p), axis)

    def close(self, name, a, b, p, kind='revolute'):
        self.builder.close(f'{self.name}_{name}', kind, a, b, self.point(p), self.normal)

    def cylinder(self, suffix, parent, boom, c, t):
        """Put a barrel pinned at c on a link, and its rod, pinned at t, on another."""
        barrel = self.pin(f'barrel{suffix}', parent, c)
        line = self.direction((t - c) / np.linalg.norm(t - c))
        rod = self.builder.joint(f'{self.name}_rod{suffix}', 'prismatic', barrel, self.point(c), line)
        self.close(f'eye{suffix}', rod, boom, t)


# name -> function that adds the module and returns its mobility and the joints that drive it
KINDS = {
    'turn': partial(serial, kind='revolute'),
    'slide': partial(serial, kind='prismatic'),
    'spin': partial(serial, kind='continuous'),
    'four_bar': four_bar,
    'four_bar_spherical': partial(four_bar, closure='spherical'),
    'four_bar_universal': partial(four_bar, closure='universal'),
    'five_bar': five_bar,
    'parallelogram': parallelogram,
    'three_cranks': partial(parallelogram, cranks=3),
    'planar_fixed': planar_fixed,
    'slider_crank': slider_crank,
    'triangle': partial(triangle, drive='rod'),
    'driven_boom': triangle,
    'twin_cylinders': twin_cylinders,
    'six_link': six_link,
    'knuckle': knuckle,
    'rusr': rusr,
    'rsur': rsur,
    'spatial_revolute': partial(spatial, closure='revolute'),
    'spatial_spherical': partial(spatial, closure='spherical'),
    'spatial_universal': partial(spatial, closure='universal'),
    'spatial_prismatic': partial(spatial, closure='prismatic'),
    'spatial_fixed': partial(spatial, closure='fixed'),
    'parallel': parallel,
}
