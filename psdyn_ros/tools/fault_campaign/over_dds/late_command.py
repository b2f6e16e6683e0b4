"""The controller as the fault campaign wants it once: SIGUSR1 stops it, as SIGSTOP does, with a command in its hands.

The next command to move is computed when the process stops, and published when it goes on: by then it is late, and
nobody but its receiver can refuse it. A SIGSTOP at a random phase hits that moment too rarely to be seen.
"""

import os
import signal
import sys
import time

from ....nodes.controller import node as controller
from ....nodes.controller.publishers import ControllerOutputs

ALONE = 0.1         # s until the next command, which would take the place of one that nobody has taken yet


class LateOutputs(ControllerOutputs):
    """Those of the controller."""

    asked = False

    def commands(self, output):
        """Publish the commands of an `Output`; stop before that, once, when it was asked for."""
        held = LateOutputs.asked and output.valid
        if held:
            LateOutputs.asked = False
            os.kill(os.getpid(), signal.SIGSTOP)
        super().commands(output)
        if held:
            time.sleep(ALONE)

    @classmethod
    def ask(cls, number, frame):
        """Handler of the signal."""
        cls.asked = True


def main(args=None):
    """Run the node; returns the exit code of the process."""
    signal.signal(signal.SIGUSR1, LateOutputs.ask)
    controller.ControllerOutputs = LateOutputs
    return controller.main(args)


if __name__ == '__main__':
    sys.exit(main())
