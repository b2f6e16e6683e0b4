"""A reference that shows what a machine can do: every actuator out and back at a realistic speed."""

import numpy as np

from .trajectory import TrajectoryError, Waypoints

DURATION = 10.0             # s
RANGE_SHARE = 0.36          # of the range between its limits that an actuator travels at most
SPEED_SHARE = 0.5           # of its rated speed that it reaches at most
PEAK = 1.875                # peak speed of a quintic from rest to rest, in units of its mean speed
STEPS = ((0.05, 0.45, 0.50, 0.90), (0.05, 0.40, 0.50, 0.85), (0.10, 0.40, 0.55, 0.90))
# of the duration: when an actuator leaves, arrives, leaves again and is back; the actuators take turns with these


def demonstration(manipulator, duration=DURATION):
    """`Waypoints` of a motion of all actuators that ends where it starts, the initial position.

    Each goes towards the middle of its range and back, from rest to rest on quintics. A shorter motion goes
    less far, not faster.
    """
    limits, start = manipulator.limits, manipulator.initial_position
    schedule = [[duration * step for step in STEPS[i % len(STEPS)]] for i in range(manipulator.dof)]
    times = np.unique(np.concatenate([[0.0, duration], *schedule]))
    motion = np.zeros((3, times.size, manipulator.dof))
    for i, (leave, arrive, turn, back) in enumerate(schedule):
        travel = min(RANGE_SHARE * (limits.upper[i] - limits.lower[i]),
                     SPEED_SHARE * limits.velocity[i] * (arrive - leave) / PEAK)
        if not np.isfinite(travel):
            raise TrajectoryError(f'{manipulator.actuators[i]} declares neither its limits nor its speed: '
                                  'there is no saying how far it may go')
        travel = travel if start[i] <= 0.5 * (limits.upper[i] + limits.lower[i]) else -travel
        out = _rest_to_rest((times - leave) / (arrive - leave), travel, arrive - leave)
        home = _rest_to_rest((times - turn) / (back - turn), -travel, back - turn)
        motion[:, :, i] = out + home
    motion[0] += start
    return Waypoints(manipulator.actuators, times, *motion)


def _rest_to_rest(s, travel, seconds):
    """Position, velocity, acceleration (3, N) of a quintic from 0 to `travel` while s goes from 0 to 1."""
    s = np.clip(s, 0.0, 1.0)
    return travel * np.array([s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
                              30.0 * s**2 * (1.0 - s)**2 / seconds,
                              60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / seconds**2])
