"""Floods of a controller or an echo with messages that nobody needs, from a process of their own.

    python -m psdyn_ros.tools.timing.flood small|large|wrong NODE SECONDS

It prints READY once the node is found, and then floods for so many seconds on each SIGUSR1, until it is ended.
"""

import signal
import sys
import time

import rclpy
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...model.units import MEBIBYTE

READY = 'ready'
RATES = {'small': 10_000.0, 'large': 50.0, 'wrong': 100.0}      # Hz asked for
DISCOVERY = {'small': 5.0, 'large': 5.0, 'wrong': 0.5}          # s; another type on a topic is never matched
CHECKED = 100           # messages between two looks at the clock, while it is behind


class Flood:
    """Publishes on a topic of the node of this name: points, trajectories of 1 MiB, or another type.

    kind  a key of RATES
    """

    def __init__(self, node, kind, name):
        self._rate = RATES[kind]
        if kind == 'wrong':
            self._message = String(data='x' * 1000)
        else:
            self._message = JointTrajectory(joint_names=['x' * MEBIBYTE] if kind == 'large' else ['slew'],
                                            points=[JointTrajectoryPoint(positions=[0.0])])
        topic = 'point' if kind == 'small' else 'joint_trajectory'
        publisher = node.create_publisher(type(self._message), f'/{name}/{topic}', 1)
        self._publish = publisher.publish
        deadline = time.monotonic() + DISCOVERY[kind]
        while not publisher.get_subscription_count() and time.monotonic() < deadline:
            time.sleep(0.01)

    def burst(self, seconds):
        """Publish for so many seconds; return how many messages that were."""
        began, sent = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds:
            while sent < elapsed * self._rate:
                self._publish(self._message)
                sent += 1
                if sent % CHECKED == 0 and time.monotonic() - began > seconds:
                    break
            time.sleep(max(1e-4, sent / self._rate - elapsed))
        return sent


def main(args=None):
    """Flood on each signal; never returns."""
    kind, name, seconds = sys.argv[1:] if args is None else args
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGUSR1,))
    rclpy.init()
    flood = Flood(rclpy.create_node(f'flood_of_{name}'), kind, name)
    print(READY, flush=True)
    while True:
        signal.sigwait((signal.SIGUSR1,))
        print(flood.burst(float(seconds)), flush=True)


if __name__ == '__main__':
    main()
