"""A reference that shows what a machine can do: every coordinate out and back at a realistic speed."""

import numpy as np

from ...control.reference.reference import ReferenceMotion
from ...control.reference.reference_limits import ReferenceLimits
from ...control.reference.segments import PEAK
from ...control.reference.trajectory import TrajectoryError, Waypoints
from ...model.errors import PsdynError, UnknownNameError, did_you_mean
from ...model.parameters.hydraulics import EFFORT

DURATION = 10.0             # s
RANGE_SHARE = 0.36          # of the range between its limits that a coordinate travels at most
SPEED_SHARE = 0.5           # of its rated speed that it reaches at most
STEPS = ((0.05, 0.45, 0.50, 0.90), (0.05, 0.40, 0.50, 0.85), (0.10, 0.40, 0.55, 0.90))
# of the duration: when a coordinate leaves, arrives, leaves again and is back; the coordinates take turns with these
SMALLER = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)
# shares of the motion, of which the first that is possible is taken
EFFORT_SHARE = 0.9          # of the limit of an actuator that the motion needs at most; the rest is for the errors
LOOKS = 200                 # instants at which efforts are looked at
ROUNDS = 100                # of making the motion of one coordinate smaller
STEPS_DOWN = (0.5, 0.98)    # of which each makes it smaller by a factor in here


def demonstration(manipulator, duration=DURATION, travel=None, declaration=None, say=None, pause=0.0):
    """`Waypoints` of a motion of all coordinates, passive ones aside, that ends where it starts, the initial position.

    Each goes towards the middle of its range and back, from rest to rest on quintics. A shorter motion goes less far,
    not faster; a coordinate whose motion needs more than `EFFORT_SHARE` of the limit of an actuator goes less far, and
    all do where loops do not follow, or another limit would be broken.

    travel       {coordinate: m or rad it goes at most, negative to go down}; the rest goes as far as range and speed
                 allow
    declaration  `SafetyDeclaration` whose limits of references and of efforts are kept too; None: those of the URDF
    say          called with a sentence for each coordinate that goes less far than range, speed and `travel` would let
                 it
    pause        s for which all stand still where they are farthest, and at the end, beside `duration`

    Raises TrajectoryError, UnknownNameError.
    """
    m, travel = manipulator.driven_machine, dict(travel or {})
    for name in travel:
        if name not in m.coordinates:
            raise UnknownNameError(
                f"travel of '{name}': no coordinate of '{m.name}'{did_you_mean(name, m.coordinates)}")
    schedule = [[duration * step for step in STEPS[i % len(STEPS)]] for i in range(m.dof)]
    schedule = [[leave, arrive, turn + pause, back + pause] for leave, arrive, turn, back in schedule]
    end = duration + 2.0 * pause
    far = [_travel(m, i, arrive - leave, travel.get(m.coordinates[i]))
           for i, (leave, arrive, _, _) in enumerate(schedule)]
    times = np.unique(np.concatenate([[0.0, end], *schedule]))
    unit, looks = (_out_and_back(at, far, schedule) for at in (times, np.linspace(0.0, end, LOOKS)))
    limits = ReferenceLimits() if declaration is None else ReferenceLimits.declared(declaration)
    allowed = _allowed_efforts(m, declaration)
    obstacle = None
    for share in SMALLER:
        try:
            shares, tired = _within_efforts(m, share * looks, allowed)
            motion = share * shares * unit
            motion[0] += m.initial_position
            waypoints = Waypoints(m.coordinates, times, *motion)
            reference = ReferenceMotion(m, limits)
            reference.hold(m.initial_position)
            reference.follow(waypoints, 0.0)
        except PsdynError as error:
            obstacle = obstacle or error
        else:
            if say is not None:
                _report_findings(say, m.coordinates, share, shares, np.abs(far), tired, obstacle)
            return waypoints
    raise TrajectoryError(f"'{m.name}' cannot move out of its initial position and back: {obstacle}")


def through(manipulator, points, duration=DURATION, declaration=None, pause=0.0):
    """`Waypoints` of a motion from the initial position through points and back, from rest to rest on quintics.

    points  {name of the point: {coordinate: m or rad}}, in this order; what is not named stays where it is
    Others as of `demonstration`; all stand still for `pause` at each point and at the end.
    Raises TrajectoryError, UnknownNameError, and what a reference refuses.
    """
    m, rows = manipulator.driven_machine, [manipulator.driven_machine.initial_position]
    for point, positions in points.items():
        rows.append(rows[-1].copy())
        for name, value in positions.items():
            if name not in m.coordinates:
                raise UnknownNameError(f"point '{point}' of the way: no coordinate '{name}' of '{m.name}'"
                                       f'{did_you_mean(name, m.coordinates)}')
            rows[-1][m.coordinates.index(name)] = value
    rows = np.array([*rows, rows[0]])
    legs = (np.abs(np.diff(rows, axis=0)) / m.coordinate_limits.velocity).max(axis=1)
    if not (np.isfinite(legs).all() and (legs > 0.0).all()):
        raise TrajectoryError(f"way of '{m.name}': two points after each other are the same, or a speed is not limited")
    arrivals = np.cumsum(duration * legs / legs.sum()) + pause * np.arange(legs.size)
    stay = [0.0, pause] if pause else [0.0]
    times = np.concatenate(([0.0], np.add.outer(arrivals, stay).ravel()))
    rows = np.concatenate((rows[:1], np.repeat(rows[1:], len(stay), axis=0)))
    waypoints = Waypoints(m.coordinates, times, rows, np.zeros_like(rows), np.zeros_like(rows))
    reference = ReferenceMotion(m, ReferenceLimits() if declaration is None else ReferenceLimits.declared(declaration))
    reference.hold(m.initial_position)
    try:
        reference.follow(waypoints, 0.0)
    except PsdynError as error:
        raise TrajectoryError(f"way of '{m.name}', {', '.join(points)} and back, in {duration:g} s: {error}") from error
    return waypoints


def _report_findings(say, coordinates, share, shares, far, tired, obstacle):
    for name, own, way, actuator in zip(coordinates, shares, far, tired):
        if share * own < 1.0:
            reasons = [f'more takes {actuator} beyond {EFFORT_SHARE:.0%} of its effort'] if own < 1.0 else []
            reasons += [str(obstacle)] if share < 1.0 else []
            say(f'{name} goes {share * own * way:.3g} instead of {way:.3g}: {"; ".join(reasons)}')


def _out_and_back(times, far, schedule):
    """(3, N, dof) position, relative to the start, velocity and acceleration of all coordinates."""
    motion = np.zeros((3, len(times), len(far)))
    for i, (way, (leave, arrive, turn, back)) in enumerate(zip(far, schedule)):
        motion[:, :, i] = (rest_to_rest((times - leave) / (arrive - leave), way, arrive - leave)
                           + rest_to_rest((times - turn) / (back - turn), -way, back - turn))
    return motion


def _allowed_efforts(m, declaration):
    """(actuators,) that the motion may need; what the initial position takes is given in any case."""
    limits = np.array(m.limits.effort, dtype=float)
    if declaration is not None:
        forces = [interface == EFFORT for interface in declaration.interfaces]
        limits[forces] = np.minimum(limits, declaration.command_limit)[forces]
    if np.isinf(limits).all():
        return limits
    rest = np.zeros(m.dof)
    return np.maximum(EFFORT_SHARE * limits, (1.0 + 1e-6) * np.abs(m.inverse_dynamics(m.initial_position, rest, rest)))


def _within_efforts(m, motion, allowed):
    """Shares (dof,) of a motion (3, N, dof) that need no more than the efforts `allowed`, and why they are not 1.

    Again and again the coordinate whose acceleration adds most to the worst effort goes less far. The second result
    has for each the actuator that made it do so, or ''. Raises a PsdynError where loops do not follow, TrajectoryError
    where the motion needs too much at any size.
    """
    shares, tired = np.ones(m.dof), [''] * m.dof
    if np.isinf(allowed).all():
        return shares, tired
    for _ in range(ROUNDS):
        x, xd, xdd = shares * motion
        x = x + m.initial_position
        needed = np.array([m.inverse_dynamics(*state) for state in zip(x, xd, xdd)])
        instant, actuator = np.unravel_index(np.argmax(np.abs(needed) / allowed), needed.shape)
        worst, bound = needed[instant, actuator], allowed[actuator]
        if abs(worst) <= bound:
            return shares, tired
        without = np.array([m.inverse_dynamics(x[instant], xd[instant], np.where(own, 0.0, xdd[instant]))[actuator]
                            for own in np.eye(m.dof, dtype=bool)])
        saved = np.sign(worst) * (worst - without)
        i = int(saved.argmax())
        if saved[i] <= 0.0:
            break
        shares[i] *= np.clip((saved[i] - (abs(worst) - bound)) / saved[i], *STEPS_DOWN)
        tired[i] = m.actuators[actuator]
    raise TrajectoryError(f'{m.actuators[actuator]} needs {abs(worst):.3g}, {bound:.3g} are allowed')


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


def rest_to_rest(s, travel, seconds):
    """Position, velocity, acceleration (3, N) of a quintic from 0 to `travel` while s goes from 0 to 1."""
    s = np.clip(s, 0.0, 1.0)
    return travel * np.array([s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
                              30.0 * s**2 * (1.0 - s)**2 / seconds,
                              60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / seconds**2])
