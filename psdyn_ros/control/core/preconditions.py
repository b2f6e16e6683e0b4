"""What speaks against putting a machine under control."""

import math

import numpy as np

from ...model.troubleshooting import MOVED_AT_REST, NO_LIMITS, NO_SUPPLY, NOT_AT_REST, TOO_HEAVY
from ...model.units import BAR
from ..monitors.actuator_motion import ActuatorMotion

LEAST_SUPPLY = 0.1      # of the setting of the supply, below which the pump does not run


def activation_blockers(manipulator, declaration, inputs):
    """[why] a machine cannot be taken under the law where it is; empty where it can."""
    found, limit = inputs.missing(), declaration.plausibility
    x, state = inputs.state_check.x, inputs.state_check
    for name, lower, upper, speed, most in zip(
            manipulator.actuators, *manipulator.limits[:3], declaration.command_limit):
        if not (lower < upper and 0.0 < speed < math.inf and 0.0 < most < math.inf):
            found.append(NO_LIMITS.text.format(name=name, lower=f'{lower:g}', upper=f'{upper:g}', speed=f'{speed:g}',
                                               most=f'{most:g}'))
    if x is None:
        return found
    limits = manipulator.coordinate_limits
    for name, position, lower, upper in zip(manipulator.coordinates, x.tolist(), limits.lower, limits.upper):
        if not lower - limit.start_tolerance <= position <= upper + limit.start_tolerance:
            found.append(f"F14: '{name}' is at {position:.5g}, outside of [{lower:.5g}, {upper:.5g}]")
    if not state.residual <= limit.closure_tolerance:
        found.append(f'F12: measured joints of a loop disagree by {state.residual * 1e3:.3g} mm, at most '
                     f'{limit.closure_tolerance * 1e3:g} mm')
    share = state.disagreement()
    if share > 0.5:
        found.append(f'F11: positions and velocities disagree by {100.0 * share:.0f} % of what is allowed; '
                     'at most 50 % to begin with')
    return found


def motion_blockers(manipulator, declaration, inputs):
    """[why] a machine is not at rest: actuators beyond their standstill speed, with that speed; empty where it is."""
    x, xd = inputs.state_check.x, inputs.state_check.xd
    if x is None:
        return []
    rates = ActuatorMotion(manipulator).rates(x, xd)
    return [NOT_AT_REST.text.format(name=name, rate=f'{rate:.3g}', most=f'{most:.3g}')
            for name, rate, most in zip(manipulator.actuators, rates.tolist(), declaration.standstill_speed.tolist())
            if not abs(rate) <= most]


def displacement_blockers(inputs):
    """[why] a machine is not where it was, though nothing moved it; empty where it is."""
    return [f'F08: {MOVED_AT_REST.text.format(name=name, before=f"{before:.5g}", now=f"{now:.5g}")}'
            for name, before, now in inputs.state_check.displaced()]


def load_blockers(law, inputs):
    """[why] the load that a `ControlLaw` believes in cannot be held; empty where it can, or is not known."""
    x = inputs.state_check.x
    if x is None or law.load.passive is not None:
        return []
    return [TOO_HEAVY.text.format(name=name, effort=f'{effort:.4g}', most=f'{most:.4g}') for name, effort, most in zip(
        law.manipulator.actuators, np.abs(law.load.holding_efforts(x)).tolist(), law.holding_limits.tolist())
        if effort > most]


def force_blockers(check, inputs):
    """[why] the pressures that are measured do not hold the load; check: `ForceCheck`. Empty where they do."""
    x, pressures = inputs.state_check.x, inputs.pressures
    return [] if not check.required or x is None or pressures is None else check.at_rest(x, pressures)


def supply_blockers(law, inputs):
    """[why] the measured supply cannot move the machine under a `ControlLaw`; empty where it can, or is not known."""
    setting, measured = law.supply_setting, inputs.supply
    if setting is None or measured is None or measured >= LEAST_SUPPLY * setting:
        return []
    return [NO_SUPPLY.text.format(measured=f'{measured / BAR:.3g}', setting=f'{setting / BAR:.3g}')]
