"""A reference that shows what a machine can do: every coordinate out and back at a realistic speed."""

import numpy as np

from ..model.errors import PsdynError, UnknownNameError, did_you_mean
from .reference import ReferenceMotion
from .trajectory import TrajectoryError, Waypoints

DURATION = 10.0             # s
RANGE_SHARE = 0.36          # of the range between its limits that a coordinate travels at most
SPEED_SHARE = 0.5           # of its rated speed that it reaches at most
PEAK = 1.875                # peak speed of a quintic from rest to rest, in units of its mean speed
STEPS = ((0.05, 0.45, 0.50, 0.90), (0.05, 0.40, 0.50, 0.85), (0.10, 0.40, 0.55, 0.90))
# of the duration: when a coordinate leaves, arrives, leaves again and is back; the coordinates take turns with these
SMALLER = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)    # shares of the motion, of which the first that is possible is taken


def demonstration(manipulator, duration=DURATION, travel=None):
    """`Waypoints` of a motion of all coordinates that ends where it starts, the initial position.

    Each goes towards the middle of its range and back, from rest to rest on quintics. A shorter motion goes
    less far, not faster; where loops do not follow, or another actuator would leave its limits, all go less far.

    travel  {coordinate: m or rad it goes at most, negative to go down}; the rest goes as far as range and speed tell
    Raises TrajectoryError, UnknownNameError.
    """
    m, travel = manipulator, dict(travel or {})
    for name in travel:
        if name not in m.coordinates:
            raise UnknownNameError(
                f"travel of '{name}': no coordinate of '{m.name}'{did_you_mean(name, m.coordinates)}")
    schedule = [[duration * step for step in STEPS[i % len(STEPS)]] for i in range(m.dof)]
    times = np.unique(np.concatenate([[0.0, duration], *schedule]))
    unit = np.zeros((3, times.size, m.dof))
    for i, (leave, arrive, turn, back) in enumerate(schedule):
        far = _travel(m, i, arrive - leave, travel.get(m.coordinates[i]))
        unit[:, :, i] = (_rest_to_rest((times - leave) / (arrive - leave), far, arrive - leave)
                         + _rest_to_rest((times - turn) / (back - turn), -far, back - turn))
    obstacle = None
    for share in SMALLER:
        motion = share * unit
        motion[0] += m.initial_position
        waypoints = Waypoints(m.coordinates, times, *motion)
        reference = ReferenceMotion(m)
        reference.hold(m.initial_position)
        try:
            reference.follow(waypoints, 0.0)
        except PsdynError as error:
            obstacle = error
        else:
            return waypoints
    raise TrajectoryError(f"'{m.name}' cannot move out of its initial position and back: {obstacle}")


def _travel(manipulator, i, seconds, declared):
    """How far coordinate i goes in so many seconds, positive or negative."""
    limits, start = manipulator.coordinate_limits, manipulator.initial_position[i]
    fastest = SPEED_SHARE * limits.velocity[i] * seconds / PEAK
    if declared is not None:
        return float(np.clip(declared, -fastest, fastest))
    far = min(RANGE_SHARE * (limits.upper[i] - limits.lower[i]), fastest)
    if not np.isfinite(far):
        raise TrajectoryError(f'{manipulator.coordinates[i]} declares neither its limits nor its speed: '
                              'there is no saying how far it may go')
    return far if start <= 0.5 * (limits.upper[i] + limits.lower[i]) else -far


def _rest_to_rest(s, travel, seconds):
    """Position, velocity, acceleration (3, N) of a quintic from 0 to `travel` while s goes from 0 to 1."""
    s = np.clip(s, 0.0, 1.0)
    return travel * np.array([s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
                              30.0 * s**2 * (1.0 - s)**2 / seconds,
                              60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / seconds**2])
