"""Checks of declared hydraulics against the mechanism: actuators, strokes, loops, efforts, friction."""
import math

from ...model.errors import ActuationError, LoopError, ModelError, PsdynError, check_name
from ...model.parameters.hydraulics import Friction

MAX_EFFORT_RATIO = 1.01         # of an effort limit to the force of supply pressure and area: both are rounded
TOGGLE_TOLERANCE_M = 1e-7       # of a toggle point


def check_hydraulics(manipulator, hydraulics):
    """Return warnings (tuple of texts) on hydraulics that fit a machine; raise a ModelError where they do not."""
    declared = {**hydraulics.cylinders, **hydraulics.axes}
    for name, one in declared.items():
        check_name(name, manipulator.actuators, f"{one.where}: '{manipulator.name}' has no such actuator",
                   ActuationError)
        friction_of(manipulator, hydraulics, name)
    missing = [name for name in manipulator.actuators if name not in declared]
    if missing:
        raise ActuationError(f"{hydraulics.where}: nothing for {', '.join(missing)} of '{manipulator.name}'; expected "
                             "every actuator in 'cylinders', 'racks', 'motors' or 'axes'")
    warnings = []
    limits = manipulator.limits
    for number, name in enumerate(manipulator.actuators):
        if name in hydraulics.cylinders:
            cylinder = hydraulics.cylinders[name]
            joint = manipulator.machine.description.joints[name]
            _check_stroke(cylinder, joint)
            warnings += _check_closure(manipulator, cylinder, joint)
            warnings += _check_effort(hydraulics.supply, cylinder, float(limits.effort[number]))
    return tuple(warnings)


def _check_stroke(drive, joint):
    if joint.type not in drive.joint_types:
        raise ActuationError(f'{drive.where}: the joint (line {joint.line}) is {joint.type}; a {drive.kind} drives a '
                             f"{drive.joint_types[0]} joint, another actuator belongs in 'axes'")
    start, end = drive.reach
    low, high = (limit if math.isfinite(limit) else rated
                 for limit, rated in ((joint.lower, start), (joint.upper, end)))
    if low < start - 1e-9 or high > end + 1e-9:
        unit = drive.unit
        raise ModelError(f'{drive.where}: the limits of the joint (line {joint.line}), {low:g} to {high:g} {unit}, are '
                         f"not within 'stroke', {start:g} to {end:g} {unit}")


def _check_closure(manipulator, drive, joint):
    """Refuse limits at which the loop of a drive does not close; return a warning where its stroke does not."""
    start, end = drive.reach
    reach = None if math.isinf(end) else _reach(manipulator, joint.name, drive)
    if reach is None:
        return []
    unit, low, high = drive.unit, max(joint.lower, start), min(joint.upper, end)
    if not reach[0] < low or not high < reach[1]:
        raise LoopError(
            f"{drive.where}: the joint's limits, {low:g} to {high:g} {unit}, reach beyond a toggle point of its loop, "
            f'which closes between {reach[0]:.6g} and {reach[1]:.6g} {unit}; expected limits that keep off it')
    if reach[0] < start and end < reach[1]:
        return []
    toggle = reach[1] if end >= reach[1] else reach[0]
    return [f"{drive.where}: 'stroke', {start:g} to {end:g} {unit}, is longer than its loop allows, which has a "
            f'toggle point at {toggle:.6g} {unit}; the limits of the joint, {low:g} to {high:g} {unit}, keep off it']


def _reach(manipulator, name, cylinder):
    """Return the positions (low, high) between which the loop of a cylinder closes; None: it is in none.

    An end beyond the stroke may be infinite.
    """
    machine = manipulator.machine
    module = next((module for module in machine.modules if module.name == name), None)
    if module is not None and module.triangle:
        if module.assembly.side < 0.0:
            raise LoopError(f"{cylinder.where}: the axis of the joint points from the rod eye to the barrel, so that "
                            'its position grows as the cylinder retracts; expected the opposite axis')
        return module.assembly.reach
    row = next((row for row, cluster in enumerate(machine.clusters) if name in cluster.joints), None)
    if row is None or machine.loops.clusters['freedom'][row] != 1:
        return None         # how far it closes is up to other joints
    return _reach_by_closing(manipulator, name, cylinder, machine.clusters[row].joints)


def _reach_by_closing(manipulator, name, cylinder, cluster_joints):
    """Return the reach of a cylinder whose loop has one degree of freedom, by bisection from the initial position."""
    others = [joint for joint in manipulator.coordinates if joint not in cluster_joints]
    position = dict(zip(*manipulator.joint_state(manipulator.initial_position)[:2]))
    joint_map = manipulator.joint_map((name, *others))

    def closes(stroke):
        try:
            joint_map.state([stroke, *(position[joint] for joint in others)])
        except PsdynError:
            return False
        return True

    ends = []
    for beyond, end in zip((-math.inf, math.inf), cylinder.reach):
        inside = position[name]
        if closes(end):
            end = beyond
        while abs(end - inside) > TOGGLE_TOLERANCE_M and math.isfinite(end):
            middle = 0.5 * (inside + end)
            inside, end = (middle, end) if closes(middle) else (inside, middle)
        ends.append(end)
    return tuple(ends)


def _check_effort(supply, cylinder, limit):
    push, _ = supply.largest_forces(cylinder)
    if not math.isfinite(limit) or limit <= MAX_EFFORT_RATIO * push:
        return []
    unit = cylinder.effort_unit
    return [f'{cylinder.where}: the effort limit of the joint, {limit:g} {unit}, is more than supply pressure and area '
            f'give, {push:.6g} {unit}']


def friction_of(manipulator, hydraulics, actuator):
    """Return the `Friction` of an actuator: as hydraulics declare it, else that of the URDF.

    Raises ModelError where both do.
    """
    joint = manipulator.machine.description.joints[actuator]
    declared = hydraulics.cylinders.get(actuator) or hydraulics.axes[actuator]
    if declared.friction is None:
        return Friction(coulomb=joint.friction, viscous=joint.damping)
    if joint.damping or joint.friction:
        raise ModelError(
            f"{declared.where}: 'friction' is given, and the URDF gives joint '{actuator}' (line {joint.line}) "
            f'<dynamics damping="{joint.damping:g}" friction="{joint.friction:g}"/> too; expected one of the two')
    return declared.friction
