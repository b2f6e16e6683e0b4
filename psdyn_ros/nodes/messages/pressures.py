"""Chamber pressures of cylinders out of messages, gauge."""

import math

import numpy as np
from sensor_msgs.msg import FluidPressure
from std_msgs.msg import Float64MultiArray

from ...model.errors import did_you_mean
from ...model.units import ATMOSPHERE, SECOND
from ..runtime.qos import SENSOR_DATA
from .conversions import MessageError, read_message, stamp_to_ns

MOST = 2e8                  # Pa: beyond it no gauge pressure is meant
WANTED = ('pressure_a', 'pressure_b', 'supply_pressure', 'stamp')     # columns of the telemetry
TELEMETRY, PORTS = 'telemetry', 'ports'
TOPICS = {TELEMETRY: 'simulator/hydraulic_telemetry', PORTS: 'simulator/pressure'}


class TelemetryReader:
    """A Float64MultiArray of cylinders x quantities, both named in the labels of its layout, to pressures.

    cylinders  names, in the order wanted
    """

    def __init__(self, cylinders):
        self._cylinders = tuple(cylinders)
        self._last = None, None     # labels, where the wanted entries are

    def read(self, message):
        """(stamp in ns, pressures (cylinders, 2), pressure of the supply), Pa gauge."""
        labels, (known, places) = tuple(dim.label for dim in message.layout.dim), self._last
        if labels != known:
            places = self._places(labels)
            self._last = labels, places
        places, shape = places
        data = message.data.tolist()
        if len(data) != shape[0] * shape[1]:
            raise MessageError(f'data has {len(data)} entries, expected {shape[0]} x {shape[1]} as labelled')
        # of so few numbers Python is quicker than NumPy
        chambers, supplies, stamps = ([data[i] for i in part] for part in places)
        if not math.isfinite(sum(chambers) + sum(supplies) + sum(stamps)):
            raise MessageError('pressures or their stamp are not finite')
        _check_range(min(*chambers, *supplies), max(*chambers, *supplies))
        # the oldest and the lowest of all that is said
        return round(min(stamps) * SECOND), np.array(chambers).reshape(-1, 2), min(supplies)

    def _places(self, labels):
        if len(labels) != 2:
            raise MessageError(f'layout has {len(labels)} dimensions, expected cylinders x quantities')
        rows, columns = (label.split(',') for label in labels)
        for names, wanted, what in ((rows, self._cylinders, 'cylinder'), (columns, WANTED, 'quantity')):
            for name in wanted:
                if names.count(name) != 1:
                    raise MessageError(f"{what} '{name}' is labelled {names.count(name)} times, expected once"
                                       f'{did_you_mean(name, [n for n in names if n != name])}')
        first = [rows.index(name) * len(columns) for name in self._cylinders]
        a, b, supply, stamp = (columns.index(name) for name in WANTED)
        places = [row + column for row in first for column in (a, b)], [row + supply for row in first], [
            row + stamp for row in first]
        return places, (len(rows), len(columns))


class PressureInputs:
    """Pressures of all cylinders, from one telemetry topic or from one topic for each port.

    cylinders   names, in the order of the rows of the values
    source      TELEMETRY or PORTS
    topic       of the telemetry, or what comes before /CYLINDER/a and /CYLINDER/b
    take        function of (stamp in ns, values (cylinders, 2), pressure of the supply or None), Pa gauge
    reject      function of the error of a message that cannot be used
    qos         of the subscriptions
    """

    def __init__(self, node, cylinders, source, topic, *, take, reject, qos=SENSOR_DATA):
        self._take, self._reject = take, reject
        topic = topic or TOPICS[source]
        if source == TELEMETRY:
            self._reader = TelemetryReader(cylinders)
            node.create_subscription(Float64MultiArray, topic, self._on_telemetry, qos, raw=True)
            return
        self._values = np.zeros((len(cylinders), 2))
        self._stamps = np.zeros((len(cylinders), 2), dtype=np.int64)
        self._taken = 0                  # ns, stamp of the values taken last
        for row, cylinder in enumerate(cylinders):
            for column, port in enumerate('ab'):
                node.create_subscription(FluidPressure, f'{topic}/{cylinder}/{port}', self._on_port(row, column), qos)

    def _on_telemetry(self, serialized):
        try:
            stamp, values, supply = self._reader.read(read_message(serialized, Float64MultiArray))
        except MessageError as error:
            self._reject(error)
        else:
            self._take(stamp, values, supply)

    def _on_port(self, row, column):
        def take(msg):
            gauge = msg.fluid_pressure - ATMOSPHERE
            try:
                if not math.isfinite(gauge):
                    raise MessageError('the pressure is not finite')
                _check_range(gauge, gauge)
            except MessageError as error:
                self._reject(error)
                return
            stamp = stamp_to_ns(msg.header.stamp)
            if stamp < self._stamps[row, column]:       # time went back: what other ports said is of before
                self._stamps[:], self._taken = 0, 0
            self._values[row, column], self._stamps[row, column] = gauge, stamp
            # together they are as old as the oldest of them, which is 0 until all have come
            oldest = int(self._stamps.min())
            if oldest > self._taken:
                self._taken = oldest
                self._take(oldest, self._values.copy(), None)
        return take


def _check_range(least, most):
    if least < -1.01 * ATMOSPHERE or most > MOST:
        raise MessageError(f'a gauge pressure between {least:.4g} and {most:.4g} Pa is absurd')
