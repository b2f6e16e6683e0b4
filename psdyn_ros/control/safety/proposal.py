"""A complete safety file for a machine, with values from its own limits: where commissioning may begin."""

import math
from dataclasses import asdict

import numpy as np
import yaml

from ...model.errors import ModelError
from ...model.parameters.safety import Plausibility, Timeouts, recommended, recommended_stop_time

FORCE_SHARE, LARGEST_SHARE = 0.5, 0.8   # of the force that the weight leaves, for a deceleration; and at most
SLOWEST, SOONEST = 2.0, 0.3     # s from the rated speed to rest
FULL = 0.02                 # s in which a command goes from nothing to all
TOLERANCE_SPAN, TOLERANCE_TIME = 0.04, 0.1      # tracking tolerance: share of the span, and s at the rated speed
WIDEST_SPAN = 10.0          # m, rad
MARGIN, WIDEST_MARGIN = 0.02, 0.05      # soft margin: share of the span; m, rad
HEADER = """\
# Proposed safety declaration of '{name}', SI units: each number follows from the limits of the URDF{oil}.
# Deceleration: half of the force that the weight leaves at the initial position, or from the rated speed to rest in 2 s
# where that takes up to 80 % of it. Look at every line before it is used;
# 'brake' leaves an actuator out of the messages, so that the watchdog of its receiver has to hold the load.
# What each parameter means and allows: python3 -m psdyn_ros.model.parameters.safety
"""


def proposed_safety(manipulator, hydraulics=None):
    """Return YAML text of a safety declaration for a machine, with `Hydraulics` for its cylinders or without.

    Raises ModelError with every actuator whose limits say too little, or that cannot hold the machine where it starts.
    """
    m = manipulator.driven_machine
    lacking = [name for name, lower, upper, speed, effort in zip(m.actuators, *m.limits)
               if not (lower < upper and 0.0 < speed < math.inf and 0.0 < effort < math.inf)]
    if lacking:
        raise ModelError(f"'{m.name}': no safety file can be proposed, since position, velocity or effort of "
                         f'{", ".join(lacking)} is not limited; expected <limit> with all of them')
    forces = _forces(m, hydraulics)
    possible = [LARGEST_SHARE * _possible(m, forces, i) for i in range(len(forces))]
    weak = [name for name, most in zip(m.actuators, possible) if most == 0.0]
    if weak:
        raise ModelError(f"'{m.name}': no safety file can be proposed, since {', '.join(weak)} cannot hold the machine "
                         'at its initial position; expected more effort, or another initial_value')
    decelerations = [min(float(np.clip(FORCE_SHARE / LARGEST_SHARE * most, speed / SLOWEST, speed / SOONEST)), most)
                     for most, speed in zip(possible, m.limits.velocity)]
    supply = hydraulics.supply.pressure if hydraulics else None
    actuators = {name: _actuator(*row, supply) for name, *row in zip(m.actuators, *m.limits, decelerations, possible)}
    tolerance = min(one['tracking_tolerance'] for one in actuators.values())
    stop_time = recommended_stop_time(decelerations, m.limits.velocity)
    contents = {'timeouts': asdict(Timeouts()), 'stop_time': _rounded(stop_time),
                'plausibility': {**asdict(Plausibility()), 'start_tolerance': _rounded(0.5 * tolerance)},
                'actuators': actuators}
    oil = f' and of {hydraulics.where}' if hydraulics else ''
    return HEADER.format(name=m.name, oil=oil) + yaml.safe_dump(contents, sort_keys=False)


def _forces(m, hydraulics):
    """(actuators,) N, N m at most: those of the URDF, and of the supply pressure on the smaller area."""
    forces = np.array(m.limits.effort, dtype=float)
    for i, name in enumerate(m.actuators):
        cylinder = hydraulics.cylinders.get(name) if hydraulics else None
        if cylinder is not None:
            forces[i] = min(forces[i], hydraulics.supply.pressure * min(cylinder.area_a, cylinder.area_b))
    return forces


def _possible(m, forces, i):
    """Acceleration [m/s^2, rad/s^2] that an actuator has against weight and inertia at the initial position."""
    name = m.actuators[i]
    if name not in m.coordinates:
        return math.inf
    row, x, rest = m.coordinates.index(name), m.initial_position, np.zeros(m.dof)
    unit = np.eye(m.dof)[row]
    weight = m.inverse_dynamics(x, rest, rest)
    inertia = m.inverse_dynamics(x, rest, unit) - weight
    return max(float(forces[i] - abs(weight[i])), 0.0) / max(abs(float(inertia[i])), 1e-9)


def _actuator(lower, upper, speed, effort, deceleration, possible, supply):
    """Return the block of one actuator; possible: acceleration at most."""
    span = min(float(upper - lower), WIDEST_SPAN)
    rates = {'valve': 1.0 / FULL, 'velocity': speed / FULL, 'effort': effort / FULL}
    if supply is not None:
        rates['pressure'] = supply / FULL
    numbers = {
        'deceleration': deceleration, **recommended(deceleration, float(speed), possible),
        'tracking_tolerance': min(TOLERANCE_SPAN * span, TOLERANCE_TIME * speed, 1.0),
        'soft_margin': min(MARGIN * span, WIDEST_MARGIN)}
    return {'safe_output': {'valve': 'neutral', 'velocity': 'neutral', 'effort': 'brake', 'pressure': 'brake'},
            **{name: _rounded(value) for name, value in numbers.items()},
            'command_rate': {name: _rounded(value) for name, value in rates.items()}}


def _rounded(value):
    return float(f'{float(value):.2g}')
