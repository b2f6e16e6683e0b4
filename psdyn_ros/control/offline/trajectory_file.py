"""Trajectories in YAML files, in the form of trajectory_msgs/JointTrajectory as ROS tools print and read them.

    ros2 topic echo --once /topic > FILE
    ros2 topic pub --once /topic trajectory_msgs/msg/JointTrajectory "$(cat FILE)"
"""

import yaml

from ...model.errors import ModelError, did_you_mean, shorten
from ...model.text_file import read_text
from ...model.units import SECOND
from ...model.yaml_file import plain_contents
from ..reference.trajectory import MAX_WAYPOINTS, TrajectoryError, Waypoints

MAX_BYTES = 16 * 1024 * 1024
NAMES, POINTS, TIME = 'joint_names', 'points', 'time_from_start'
RATES = ('positions', 'velocities', 'accelerations')
EFFORT = 'effort'
KEYS = {'': ('header', NAMES, POINTS), 'point': (*RATES, EFFORT, TIME), TIME: ('sec', 'nanosec')}


def read_trajectory(path):
    """The `Waypoints` of a file; efforts and header are passed over. Raises ModelError that names file and point."""
    where = f"trajectory '{path}'"
    contents = mapping_of(where, plain_contents(where, read_text(path, MAX_BYTES)), KEYS[''])
    for key in (NAMES, POINTS):
        if not isinstance(contents.get(key), list):
            raise ModelError(f"{where}: '{key}' is {shorten(repr(contents.get(key)))}; expected a list")
    names, points = contents[NAMES], contents[POINTS]
    if not all(isinstance(name, str) for name in names):
        raise ModelError(f"{where}: '{NAMES}' are {shorten(repr(names))}; expected names")
    if len(points) > MAX_WAYPOINTS:
        raise ModelError(f'{where} has {len(points)} points; expected at most {MAX_WAYPOINTS}')
    times, rows = [], {field: [] for field in RATES}
    for k, point in enumerate(points):
        point = mapping_of(f'{where}: point {k}', point, KEYS['point'])
        times.append(_seconds(f'{where}: point {k}', point.get(TIME, {})))
        for field, values in rows.items():
            values.append(_numbers(f"{where}: point {k}: '{field}'", point.get(field, []), len(names)))
    given = {field: values if any(values) else None for field, values in rows.items()}
    for field, values in given.items():
        if field == RATES[0] and values is None or values is not None and not all(values):
            bare = next((k for k, row in enumerate(values or ()) if not row), 0)
            raise ModelError(f'{where}: point {bare} has no {field}')
    try:
        return Waypoints(tuple(names), times, **given)
    except TrajectoryError as error:
        raise ModelError(f'{where}: {error}') from error


def trajectory_text(waypoints, efforts=None):
    """The text of such a file: waypoints, and efforts (N, joints) where they are given; its stamp means now."""
    points = []
    for k, seconds in enumerate(waypoints.times):
        point = {field: getattr(waypoints, field)[k].tolist() for field in RATES
                 if getattr(waypoints, field) is not None}
        if efforts is not None:
            point[EFFORT] = efforts[k].tolist()
        sec, nanosec = divmod(round(seconds * SECOND), SECOND)
        points.append({**point, TIME: {'sec': sec, 'nanosec': nanosec}})
    return yaml.dump({NAMES: list(waypoints.joints), POINTS: points}, Dumper=DUMPER, sort_keys=False,
                     default_flow_style=None, width=1000)


def mapping_of(where, value, keys):
    """The value, a mapping without others than these keys."""
    if not isinstance(value, dict):
        raise ModelError(f'{where} is {shorten(repr(value))}; expected a mapping with {", ".join(keys)}')
    for key in value:
        if key not in keys:
            raise ModelError(f"{where}: '{shorten(str(key))}' is not known{did_you_mean(str(key), keys)}")
    return value


def _numbers(where, values, count):
    if not isinstance(values, list) or not all(isinstance(value, (int, float)) and not isinstance(value, bool)
                                               for value in values):
        raise ModelError(f'{where} is {shorten(repr(values))}; expected numbers')
    if len(values) not in (0, count):
        raise ModelError(f'{where} has {len(values)} entries for {count} joints')
    return values


def _seconds(where, value):
    parts = [mapping_of(f'{where}: {TIME}', value, KEYS[TIME]).get(key, 0) for key in KEYS[TIME]]
    if not all(type(part) is int and abs(part) < 2**31 for part in parts):
        raise ModelError(f'{where}: {TIME} is {shorten(repr(value))}; expected whole numbers')
    return (parts[0] * SECOND + parts[1]) / SECOND


DUMPER = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)      # in C ten times as fast
