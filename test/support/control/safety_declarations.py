"""A safety declaration with one actuator of each interface and each kind of safe output; no machine is needed."""

import numpy as np
import yaml

from psdyn_ros import Limits
from psdyn_ros.model.parameters.safety import read_safety

PERIOD = 0.002
T = 2_000_000           # ns, the same
MS = 1_000_000          # ns
ACTUATORS = ('slew', 'lift', 'tilt', 'telescope')
INTERFACES = ('effort', 'valve', 'pressure', 'velocity')
LIMITS = Limits(*np.array([[-3.0, 3.0, 0.6, 3e4], [0.0, 0.5, 0.3, 9e4], [0.0, 0.6, 0.4, 9e4], [0.0, 1.1, 0.3, 4e4]]).T)
SUPPLY = 19e6           # Pa


def contents():
    """Return what the file says, to be changed."""
    return {
        'timeouts': {'stopping': 0.02, 'safe': 0.1},
        'stop_time': 0.5,
        'probation': 1.0,
        'actuators': {
            'slew': {'safe_output': {'effort': 3000.0}, 'deceleration': 2.0, 'acceleration': 2.0, 'jerk': 40.0,
                     'standstill_speed': 0.02,
                     'tracking_tolerance': 0.05,
                     'command_rate': {'effort': 1e6}},
            'lift': {'safe_output': {'valve': 'neutral'}, 'deceleration': 1.0, 'acceleration': 2.0, 'jerk': 40.0,
                     'standstill_speed': 0.02,
                     'tracking_tolerance': 0.02,
                     'command_rate': {'valve': 50.0}},
            'tilt': {'safe_output': {'pressure': 'gravity'}, 'deceleration': 1.0, 'acceleration': 2.0, 'jerk': 40.0,
                     'standstill_speed': 0.02,
                     'tracking_tolerance': 0.02,
                     'command_rate': {'pressure': 1e9}, 'command_limit': {'pressure': 1.5e7}},
            'telescope': {'safe_output': {'velocity': 'brake'}, 'deceleration': 1.0, 'acceleration': 2.0, 'jerk': 40.0,
                     'standstill_speed': 0.02,
                     'tracking_tolerance': 0.02,
                          'command_rate': {'velocity': 5.0}},
        },
    }


def declaration(changed=None, limits=LIMITS):
    """Return the `SafetyDeclaration` of `changed`, or of the contents above."""
    return read_safety(yaml.safe_dump(changed or contents()), ACTUATORS, INTERFACES, limits, SUPPLY)
