"""The controller, in which something goes wrong that should not, some cycles after it was enabled."""

import sys

from psdyn_ros.nodes.controller import node, publishers

CYCLES = 50


def failing(tell):
    cycles = 0

    def state(self, output, core):
        nonlocal cycles
        tell(self, output, core)
        cycles += core.states.enabled
        if cycles > CYCLES:
            raise RuntimeError('as the test wants it')
    return state


if __name__ == '__main__':
    publishers.ControllerOutputs.state = failing(publishers.ControllerOutputs.state)
    sys.exit(node.main())
