"""A safety declaration held against the machine: does its safe output hold the load, and can it stop in time?"""
import numpy as np

from ...model.errors import ActuationError, ModelError
from ...model.parameters.hydraulics import BRAKE as RECEIVER_BRAKE
from ...model.parameters.safety import BRAKE, EFFORT, NEUTRAL, NUMBER, PRESSURE

HOLDING = 0.1           # of the limit of commands, by which a constant one may miss what holds the load
SINKING = 1e-3          # m/s at which a load may sink on a closed valve
ROUNDING = 1e-9         # relative


def check_safety(declaration, manipulator, hydraulics=None):
    """Raise a ModelError that gives every reason why a `SafetyDeclaration` is unsafe on a machine.

    hydraulics: `Hydraulics`, what the receivers of the commands drive; without it a constant pressure cannot be judged.
    The load is that at the initial position, where passive joints count as fixed.
    """
    hangs, manipulator = manipulator.underactuated, manipulator.driven_machine
    if declaration.actuators != tuple(manipulator.actuators):
        raise ActuationError(f"{declaration.where}: declared for {', '.join(declaration.actuators)}; "
                             f"'{manipulator.name}' has {', '.join(manipulator.actuators)}")
    x, rest = manipulator.initial_position, np.zeros(manipulator.dof)
    efforts = manipulator.inverse_dynamics(x, rest, rest)
    reasons = []
    for i, (name, interface) in enumerate(zip(declaration.actuators, declaration.interfaces)):
        cylinder = hydraulics.cylinders.get(name) if hydraulics else None
        found = [*_load(declaration, i, interface, float(efforts[i]), cylinder),
                 *_receiver(declaration.safe_kind[i], float(efforts[i]), hydraulics, name, cylinder),
                 *_time(declaration, i, float(manipulator.limits.velocity[i])),
                 *_tolerance(declaration, i),
                 *(() if hangs or not declaration.swing_deviation[i] else (
                     f"'swing_deviation' {declaration.swing_deviation[i]:g} without a joint that hangs freely",))]
        reasons += [f"actuator '{name}': {reason}" for reason in found]
    reasons += _deceleration(declaration, manipulator, x, efforts)
    if reasons:
        raise ModelError(f'{declaration.where}: {"; ".join(reasons)}')


def _load(declaration, i, interface, effort, cylinder):
    """Yield reasons why commands of an actuator do not hold its load."""
    if interface not in (EFFORT, PRESSURE):
        return
    kind, limit = declaration.safe_kind[i], float(declaration.command_limit[i])
    if interface == PRESSURE and cylinder is None:
        if kind == NUMBER:
            yield ('its safe output is a pressure, which cannot be held against the load without the hydraulics of a '
                   'cylinder')
        return
    holding, unit = (effort, 'N or N m') if interface == EFFORT else (effort / cylinder.area_a, 'Pa')
    if abs(holding) > limit:
        yield f'commands up to {limit:g} {unit} do not hold its load, which takes {holding:.6g} {unit}'
    value = float(declaration.safe_value[i])
    if kind == NUMBER and abs(value - holding) > HOLDING * limit:
        yield (f'its safe output of {value:g} {unit} does not hold its load, which takes {holding:.6g} {unit}, to '
               f'within {HOLDING:.0%} of the limit, {limit:g} {unit}')


def _receiver(kind, effort, hydraulics, name, cylinder):
    """Yield reasons why the receiver of the commands does not hold the load."""
    if hydraulics is None or kind not in (NEUTRAL, BRAKE):
        return
    if name not in hydraulics.safe_outputs:
        yield f"its safe output is '{kind}', but {hydraulics.where} says nothing of what then holds it"
    elif cylinder is not None and cylinder.safe_output != RECEIVER_BRAKE:
        sinking = cylinder.leakage * abs(effort) / cylinder.area_a ** 2
        if sinking > SINKING:
            yield (f"its safe output is '{kind}', but its receiver has no brake, and on its closed valve the load "
                   f'sinks by {sinking * 1e3:.3g} mm/s')


def _time(declaration, i, velocity):
    """Yield reasons why an actuator cannot be stopped within the stop time."""
    box = declaration.stop_time * (1.0 + ROUNDING)
    ramp = 2.0 * float(declaration.command_limit[i] / declaration.command_rate[i])
    if ramp > box:
        yield (f"'command_rate' {declaration.command_rate[i]:g} is too slow: from limit to limit takes {ramp:.3g} s "
               f"of 'stop_time' {declaration.stop_time:g} s")
    slowing = velocity / float(declaration.deceleration[i])
    if np.isfinite(velocity) and slowing > box:
        yield (f"'deceleration' {declaration.deceleration[i]:g} is too low: from {velocity:g} per s to rest takes "
               f"{slowing:.3g} s of 'stop_time' {declaration.stop_time:g} s")


def _tolerance(declaration, i):
    start, tracking = declaration.plausibility.start_tolerance, float(declaration.tracking_tolerance[i])
    if start > tracking:
        yield (f"'start_tolerance' {start:g} is more than its 'tracking_tolerance' {tracking:g}: a reference could be "
               'accepted that stops the machine at once')


def _deceleration(declaration, manipulator, x, efforts):
    """Return reasons why declared decelerations cannot be had: one coordinate at a time, at the initial position."""
    reasons, limit = [], np.asarray(manipulator.limits.effort, dtype=float)
    for row, name in enumerate(manipulator.coordinates):
        if name not in declaration.actuators:
            continue
        i = declaration.actuators.index(name)
        xdd = np.zeros(manipulator.dof)
        xdd[row] = declaration.deceleration[i]
        for way in (1.0, -1.0):
            needed = manipulator.inverse_dynamics(x, np.zeros(manipulator.dof), way * xdd)
            if abs(needed[i]) > max(limit[i], abs(efforts[i])):
                reasons.append(f"actuator '{name}': 'deceleration' {declaration.deceleration[i]:g} takes "
                               f'{needed[i]:.6g} N or N m, more than its limit {limit[i]:g}')
                break
    return reasons
