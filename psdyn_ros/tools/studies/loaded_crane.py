"""The crane hiab_xs031 with a load at its tool, and a motion of it: every coordinate to random places and back.

What example recordings and the calibration have in common.
"""

import numpy as np

from ...control.reference.segments import EXPONENTS, PEAK, QUINTIC
from ...control.reference.trajectory import Waypoints

PAYLOAD_LINK = 'payload'
PAYLOAD = 200.0                     # kg
COM = 0.1, -0.15, 0.0               # m, of it from the tool
GYRATION = 0.12                     # m
# m or rad between which coordinates move; m/s or rad/s of the peaks of their moves, since friction is asked for at 30
# to 100 mm/s
RANGES = {'slew': (-0.8, 0.8), 'lift_cylinder': (0.08, 0.28), 'tilt_cylinder': (0.12, 0.36), 'telescope': (0.1, 0.5)}
SPEEDS = {'slew': (0.35, 0.5), 'lift_cylinder': (0.06, 0.1), 'tilt_cylinder': (0.06, 0.1), 'telescope': (0.06, 0.1)}
MIN_TRAVEL = 0.3              # of the range, of a move
PAUSES, PAUSE = 0.2, 0.4    # share of moves after which it pauses, s at most
LEAST = 0.8                 # s, of the last move


def payload_urdf(urdf, mass, com=COM):
    """URDF text with a payload [kg] whose centre of mass is at `com` [m] from the tool."""
    inertia, place = repr(mass * GYRATION**2), ' '.join(map(str, com))
    return _with(urdf, f'  <link name="{PAYLOAD_LINK}">\n    <inertial>\n      <origin xyz="{place}"/>\n'
                       f'      <mass value="{mass:g}"/>\n      <inertia ixx="{inertia}" iyy="{inertia}" '
                       f'izz="{inertia}" ixy="0" ixz="0" iyz="0"/>\n    </inertial>\n  </link>\n'
                       f'  <joint name="{PAYLOAD_LINK}_mount" type="fixed">\n    <parent link="tcp"/>\n'
                       f'    <child link="{PAYLOAD_LINK}"/>\n  </joint>\n')


def tilted_urdf(urdf, roll, pitch):
    """URDF text on ground that slopes [rad]."""
    return _with(urdf, '  <link name="ground"/>\n  <joint name="ground_mount" type="fixed">\n'
                       '    <parent link="ground"/>\n    <child link="base_link"/>\n'
                       f'    <origin rpy="{roll!r} {pitch!r} 0"/>\n  </joint>\n')


def _with(urdf, more):
    head, end, tail = urdf.rpartition('</robot>')
    return head + more + end + tail


def random_moves(manipulator, ranges, speeds, duration, seed, start=None):
    """`Waypoints` from rest to rest, each coordinate by itself.

    It turns round under acceleration, as on a sine, so that friction changes its sign at once, and rests now and then.

    ranges  {coordinate: (lowest, highest)} m or rad, of all coordinates
    speeds  {coordinate: (slowest, fastest)} m/s or rad/s, of the peaks of its moves
    seed    the same one, the same motion
    start   (dof,) where it begins; None: at the initial position
    """
    rng = np.random.default_rng(seed)
    start = manipulator.initial_position if start is None else np.asarray(start, dtype=float)
    axes = [_moves(position, ranges[name], speeds[name], duration, rng)
            for name, position in zip(manipulator.coordinates, start)]
    times = np.unique(np.concatenate([[0.0, duration], *[axis[0] for axis in axes]]))
    values = np.stack([_sampled(times, *axis) for axis in axes], axis=-1)
    values[1:, -1] = 0.0    # but for rounding
    return Waypoints(manipulator.coordinates, times, *values)


def _moves(position, between, speeds, duration, rng):
    """(times, positions, accelerations), each (N,), at which a coordinate is not in motion."""
    low, high = between
    points, up = [(0.0, position)], bool(rng.integers(2)) if low < position < high else position <= low
    time = rng.uniform(0.0, PAUSE)
    while duration - time > LEAST:
        points.append((time, position))
        room = (high - position) if up else (position - low)
        travel = max(rng.uniform(0.0, 1.0) * room, min(MIN_TRAVEL * (high - low), room))
        seconds = PEAK * travel / rng.uniform(*speeds)
        if time + seconds > duration:
            travel *= (duration - time) / seconds
            seconds = duration - time
        position += travel if up else -travel
        # rounded, so that no two waypoints are nearly the same
        time = round(time + seconds, 3)
        points.append((time, position))
        up = not up
        if rng.random() < PAUSES:
            time = round(time + rng.uniform(0.0, PAUSE), 3)
    times, first = np.unique(np.round([one[0] for one in points] + [duration], 3), return_index=True)
    positions = np.array([one[1] for one in points] + [position])[first]
    return times, positions, _turns(times, positions)


def _turns(times, positions):
    """(N,) accelerations of a coordinate that turns round: the smaller one of the two half sines that meet there."""
    travel = np.diff(positions)
    half_sine = 0.5 * np.pi ** 2 * travel / np.diff(times) ** 2
    before, after = -half_sine[:-1], half_sine[1:]
    turns = np.where(before * after > 0.0, np.sign(after) * np.minimum(np.abs(before), np.abs(after)), 0.0)
    return np.concatenate(([0.0], turns, [0.0]))


def _sampled(times, knots, positions, accelerations):
    """(3, N) position, velocity, acceleration at times of quintics between knots at which it is not in motion."""
    segment = np.clip(np.searchsorted(knots, times, side='right') - 1, 0, len(knots) - 2)
    seconds = np.diff(knots)[segment]
    share, still = (times - knots[segment]) / seconds, np.zeros(len(times))
    ends = np.stack([positions[segment], still, accelerations[segment] * seconds ** 2,
                     positions[segment + 1], still, accelerations[segment + 1] * seconds ** 2])
    powers = QUINTIC @ ends                                                     # (6, N)
    slopes = powers[1:] * EXPONENTS[1:, None]
    curves = slopes[1:] * EXPONENTS[1:-1, None]
    return np.stack([_polynomial(powers, share), _polynomial(slopes, share) / seconds,
                     _polynomial(curves, share) / seconds ** 2])


def _polynomial(coefficients, x):
    return (coefficients * x ** np.arange(len(coefficients))[:, None]).sum(axis=0)
