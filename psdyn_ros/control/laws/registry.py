"""Every control law by its name, made from a machine and what it is to command."""

import numpy as np

from ...model.errors import ModelError, UnknownNameError, did_you_mean
from .computed_torque import LAWS as FORCE_LAWS
from .valve_computed_torque import ValveControl
from .valve_gains import EFFORT_BANDWIDTH, INTEGRAL_SHARE
from .valve_pid import ValvePid

VALVE_LAWS = {'valve_computed_torque': ValveControl, 'valve_pid': ValvePid}
LAWS = {**FORCE_LAWS, **VALVE_LAWS}


def make_law(name, manipulator, hydraulics=None, tiers=None, period=None, **options):
    """Return the law of this name.

    name        one of `LAWS`
    hydraulics  `Hydraulics` of the machine; laws on valves need it
    tiers       {actuator: tier} or (actuators,), see `ControlLaw`
    period      s, between updates; laws on valves need it
    options     of the law. Laws at force level take `bandwidth` [rad/s] w instead of gains: w^2, 2 w, and
                `INTEGRAL_SHARE` w^3 where a period is given; 15 by default

    Raises UnknownNameError, ModelError, ActuationError.
    """
    if name not in LAWS:
        raise UnknownNameError(f"law '{name}': expected one of {', '.join(LAWS)}{did_you_mean(str(name), LAWS)}")
    kind = LAWS[name]
    if name in VALVE_LAWS:
        for what, value in (('hydraulics', hydraulics), ('period', period)):
            if value is None:
                raise ModelError(f"law '{name}': it needs {what}")
        return kind(manipulator, hydraulics, period, tiers=tiers, **options)
    full, w = np.ones(manipulator.dof), options.pop('bandwidth', EFFORT_BANDWIDTH)
    integral = INTEGRAL_SHARE * w**3 * full if name == 'computed_torque' and period else None
    gains = {'stiffness': w**2 * full, 'damping': 2.0 * w * full, 'integral': integral}
    gains.update({gain: options.pop(gain) for gain in tuple(gains) if gain in options})
    return kind(manipulator, **gains, hydraulics=hydraulics, period=period, tiers=tiers, **options)
