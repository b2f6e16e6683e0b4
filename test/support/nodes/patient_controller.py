"""The controller, with longer timeouts than may be declared for a machine: no stall of a busy computer reaches them."""

import sys
from dataclasses import replace

from psdyn_ros.model.parameters.safety import Timeouts
from psdyn_ros.nodes.controller import node, setup

TIMEOUTS = Timeouts(degraded_misses=500, stopping=1.5, safe=2.0, stream=1.5, emergency_stop=2.0)


def patient(read):
    def read_safety(*arguments, **named):
        return replace(read(*arguments, **named), timeouts=TIMEOUTS)
    return read_safety


setup.read_safety = patient(setup.read_safety)

if __name__ == '__main__':
    sys.exit(node.main())
