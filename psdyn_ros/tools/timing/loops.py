"""Loops whose time `psdyn latency` takes, each a process of its own: one that only sleeps, one that only echoes, ours.

    python -m psdyn_ros.tools.timing.loops null|echo|controller --ros-args ...
    python -m psdyn_ros.tools.timing.loops burn

The latter only keeps a processor busy, as a load for the others. Those run a `ControlLoop` on the executor of nodes,
under the same real-time conditions, and answer two services:

    ~/run     std_srvs/SetBool   whether the loop runs; while it does not, it takes no processor time
    ~/record  std_srvs/SetBool   true: forget what was recorded; false: the records as JSON

`null` runs without the executor while it records, for the seconds of its parameter `slice`.
"""

import json
import sys
import time

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from ...model.units import SECOND
from ...nodes.controller.cycle_statistics import CycleRecords
from ...nodes.controller.loop import ControlLoop, SteadyClock
from ...nodes.controller.node import Controller
from ...nodes.messages import conversions
from ...nodes.runtime import executor, parameters, realtime
from ...nodes.runtime.lifecycle import ManagedNode
from ...nodes.runtime.parameters import Parameter
from ...nodes.runtime.qos import LATEST, SENSOR_DATA

IDLE = 0.2                      # s that a loop that does not run waits for a callback
SETTLING = 20                   # cycles after a request to record that do not count: they still feel the request
PARAMETERS = (
    Parameter('rate', 500.0, 'Hz of the loop', 1.0, 5000.0),
    Parameter('trigger', 'timer', 'as that of the controller', choices=('state', 'timer')),
    Parameter('slice', 2.0, 's that the loop that only sleeps does so', 0.01, 3600.0),
    Parameter('actuators', 'a, b, c, d', 'names in the messages of the loop that echoes'),
    *parameters.REALTIME,
)


class Null:
    """Sleeps from one deadline to the next."""

    def __init__(self, node):
        p = parameters.declare(node, PARAMETERS)
        self.loop = ControlLoop(round(SECOND / p.rate), lambda now, dt: None)
        self._slice = p.slice
        self._done = None           # the records of the last slice
        self.measures = realtime.achieve(p.realtime, p.priority, p.cpus)

    def turn(self):
        """Do all of a slice, once for each of the records."""
        if self._done is self.loop.records:
            return IDLE
        self._done = self.loop.records
        self.loop.restart()
        end = time.monotonic() + self._slice
        while time.monotonic() < end:
            SteadyClock.sleep_until(time.monotonic_ns() + round(self.loop.turn() * SECOND))
        return IDLE


class Echo:
    """Answers the newest state, in each cycle, with a command made beforehand; references are taken and not read."""

    def __init__(self, node):
        p = parameters.declare(node, PARAMETERS)
        names = [name.strip() for name in p.actuators.split(',')]
        self.loop = ControlLoop(round(SECOND / p.rate), self._answer, p.trigger)
        self._command = conversions.JointStateWriter(names, ('effort',)).message
        self._publish = node.create_publisher(JointState, '~/joint_commands', LATEST).publish
        self._state, self._requests = None, p.trigger == 'state'
        node.create_subscription(JointState, 'joint_states', self._take, SENSOR_DATA)
        for topic in ('~/point', '~/joint_trajectory'):
            node.create_subscription(JointTrajectory, topic, lambda data: None, LATEST, raw=True)
        self.turn = self.loop.turn
        self.measures = realtime.achieve(p.realtime, p.priority, p.cpus)

    def _take(self, msg):
        began = time.monotonic_ns()
        self._state = msg
        if self._requests:
            self.loop.request(began)

    def _answer(self, now, dt):
        if self._state is None:
            return
        stamp = self._state.header.stamp
        self._command.header.stamp = stamp
        before = time.monotonic_ns()
        self._publish(self._command)
        self.loop.published(age=time.time_ns() - conversions.stamp_to_ns(stamp),
                            publishing=time.monotonic_ns() - before)


class OnDemand:
    """Lets the work of a node take its turns only while it is asked to, and tells what was recorded.

    work     with `loop` (a ControlLoop), `turn`, and `measures`, the real-time conditions achieved
    running  whether it runs before anybody asks
    """

    def __init__(self, node, work, running=False):
        self._work, self._running = work, running
        self._settled = None        # number of cycles from which on they are recorded anew
        node.create_service(SetBool, '~/run', self._run)
        node.create_service(SetBool, '~/record', self._record)

    def turn(self):
        """That of the work, while it runs."""
        if not self._running:
            return IDLE
        if self._settled is not None and self._work.loop.records.cycles >= self._settled:
            self._begin()
        return self._work.turn()

    def may_end(self):
        """Whether the work may end; it has its turns until then."""
        self._running = True
        return getattr(self._work, 'may_end', lambda: True)()

    def end(self, failure):
        """As the work ends."""
        end = getattr(self._work, 'end', None)
        if end is not None:
            end(failure)

    def _begin(self):
        loop, self._settled = self._work.loop, None
        loop.records = CycleRecords(loop.period)

    def _run(self, request, response):
        self._running = request.data
        if self._work.loop is not None:
            self._work.loop.restart()
        response.success = True
        return response

    def _record(self, request, response):
        loop = self._work.loop
        if request.data and self._running:
            self._settled = loop.records.cycles + SETTLING
        elif request.data:
            self._begin()
        else:
            response.message = json.dumps({**loop.records.as_dict(),
                                           'measures': [measure._asdict() for measure in self._work.measures]})
        response.success = True
        return response


def burn():
    """Keep a processor busy until the process is ended."""
    while True:
        sum(range(1000))


def main(args=None):
    """Run the loop that is named first; the exit code of the process."""
    arguments = sys.argv[1:] if args is None else args
    kind, rest = arguments[0], [sys.argv[0], *arguments[1:]]
    if kind == 'burn':
        burn()
    if kind == 'controller':
        return executor.run(kind, lambda node: OnDemand(node, Controller(node), running=True), rest, ManagedNode)
    return executor.run(kind, lambda node: OnDemand(node, {'null': Null, 'echo': Echo}[kind](node)), rest)


if __name__ == '__main__':
    sys.exit(main())
