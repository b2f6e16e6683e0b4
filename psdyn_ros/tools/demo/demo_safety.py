"""The safety declaration under which a demonstration runs: that of the machine, for a busy computer; or one made up."""

import copy
import math

import yaml

from ...control.core.assembly import ControllerConfig
from ...model.parameters.hydraulics import read_hydraulics
from ...model.parameters.safety import recommended
from ...model.text_file import read_text

# s; a desktop stalls a process for some hundredths of a second now and then, a controller of a machine must not
TIMEOUTS = {'degraded_misses': 10, 'stopping': 0.06, 'safe': 0.15}
# that may be declared
WIDEST_TIMEOUTS = {'degraded_misses': 20, 'stopping': 0.18, 'safe': 0.2, 'emergency_stop': 0.2}
MAX_TEXT = 256 * 1024
STOP = 2.5              # s in which a machine of somebody else stops from its rated speed; who knows its inertia
FULL = 0.02             # s in which its commands go from nothing to all
SHARE = 0.1             # of its range by which an actuator of it may be off its reference
WIDEST = 0.9            # of its range, for a law that is meant to be weak
MARGIN = 0.01           # of its range before its limits
SWING = 1.0             # m, rad and m/s, rad/s that a state of such a law may be off what was expected
SPEEDS = {'overspeed': 2.0, 'speed_share': 1.0}     # the widest that may be declared
MAX_EFFORT = 1e7        # N, N m where the URDF limits nothing


def safety_text(manipulator, declared=None, *, weak=False, timeouts=TIMEOUTS):
    """YAML text of a declaration.

    declared  path of that of the machine; None: nobody has declared anything, brakes hold what is not commanded
    weak      whether the machine may be anywhere, and swing, since its law does not follow well
    timeouts  those that are not as declared
    """
    contents = yaml.safe_load(read_text(declared, MAX_TEXT)) if declared else _made_up(manipulator)
    contents['timeouts'] = {**contents.get('timeouts', {}), **timeouts}
    # what stood once, under an anchor, may become different things
    actuators = contents['actuators'] = {name: copy.deepcopy(one) for name, one in contents['actuators'].items()}
    if weak:
        believed = contents['plausibility'] = {**contents.get('plausibility', {})}
        # after a stall it swings beyond its rated speed, which is no fault of a sensor
        believed.update(SPEEDS, velocity_residual=SWING, jump_margin=SWING)
        for name, span, speed in zip(manipulator.actuators, _spans(manipulator), manipulator.limits.velocity):
            actuators[name]['tracking_tolerance'] = min(WIDEST * span, 1.0)
            actuators[name]['standstill_speed'] = WIDEST * _rated(speed)
    return yaml.safe_dump(contents)


def declared_safety(manipulator, declared=None, hydraulics=None, interfaces=None):
    """The `SafetyDeclaration` of that text, whose limits a reference has to keep.

    declared    as above
    hydraulics  path of those whose valves are commanded; None: efforts are
    interfaces  {actuator: interface} of those that are commanded otherwise
    """
    oil = read_hydraulics(hydraulics, manipulator.actuators) if hydraulics else None
    return ControllerConfig.of_machine(manipulator, oil, safety=safety_text(manipulator, declared),
                                       interfaces=interfaces).declaration


def _spans(manipulator):
    return [min(float(upper - lower), 10.0) for lower, upper in zip(*manipulator.limits[:2])]


def _rated(speed):
    return float(speed) if math.isfinite(speed) else 1.0


def _made_up(manipulator):
    actuators = {}
    limits = manipulator.limits
    for name, span, speed, effort in zip(manipulator.actuators, _spans(manipulator), limits.velocity, limits.effort):
        effort = float(effort) if math.isfinite(effort) else MAX_EFFORT
        speed = _rated(speed)
        actuators[name] = {
            'safe_output': {'valve': 'neutral', 'velocity': 'neutral', 'effort': 'brake', 'pressure': 'brake'},
            'deceleration': speed / STOP, 'tracking_tolerance': min(SHARE * span, 1.0),
            **recommended(speed / STOP, speed),
            'command_rate': {'valve': 1.0 / FULL, 'velocity': speed / FULL, 'effort': effort / FULL,
                             'pressure': 1e9},
            'command_limit': {'effort': effort}, 'soft_margin': MARGIN * span}
    tolerance = min([0.02, *(one['tracking_tolerance'] for one in actuators.values())])
    return {'stop_time': 1.2 * STOP, 'plausibility': {'start_tolerance': tolerance}, 'actuators': actuators}
