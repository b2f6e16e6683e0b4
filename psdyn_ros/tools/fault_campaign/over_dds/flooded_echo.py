"""The bare echo loop of `psdyn latency` with the topics that a controller can be flooded on: what a flood costs anyone.

    python -m psdyn_ros.tools.fault_campaign.over_dds.flooded_echo --ros-args -r __node:=echo

It answers states, receives points, trajectories and here also pressures by subscriptions like those of a controller
without reading them, and reports in diagnostics how many slots it missed in how many stalls.
"""

import sys

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Float64MultiArray

from ....nodes.messages import pressures
from ....nodes.runtime import executor
from ....nodes.runtime.qos import SENSOR_DATA
from ...timing.loops import Echo

REPORTS = 0.2       # s between them


class FloodedEcho(Echo):
    """Listens also to the pressures that a controller of valves listens to."""

    def __init__(self, node):
        super().__init__(node)
        node.create_subscription(Float64MultiArray, '/' + pressures.TOPICS[pressures.TELEMETRY], lambda data: None,
                                 SENSOR_DATA, raw=True)
        self._name = f'{node.get_name()}: control'
        self._report = node.create_publisher(DiagnosticArray, '/diagnostics', 10).publish
        self.loop.chore(self._publish_report, REPORTS)

    def _publish_report(self):
        records = self.loop.records
        values = {'cycles': records.cycles, 'missed slots': records.missed, 'stalls': records.stalls}
        self._report(DiagnosticArray(status=[DiagnosticStatus(
            name=self._name, values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])]))


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('echo', FloodedEcho, args)


if __name__ == '__main__':
    sys.exit(main())
