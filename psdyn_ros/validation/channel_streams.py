"""The channels of a machine while its bag goes by: messages into tracks, tracks into rows of a grid."""

import numpy as np

from .bags import SECOND, BagError
from .channels import PRESSURES, array_columns, rows_stamps
from .message_layouts import ARRAY, Decoder
from .tracks import BRIDGED, Track

ATMOSPHERE = 101325.0       # Pa, between gauge pressures and those of FluidPressure
TOGETHER = 4096             # instants that are sampled at once
PATIENCE = 2 * SECOND       # ns that a topic may lag behind the states before it is missing
STRAY, SPREAD = SECOND, 10  # a stamp is absurd that is off by more than 1 s and 10 times the usual
COMMAND_FIELDS = ('effort', 'velocity', 'position')     # of JointState, later ones count more


class ChannelStreams:
    """Reads a bag once, and samples what it says of a machine.

    period  ns between instants
    """

    def __init__(self, source, channels, manipulator, hydraulics, quality, delays):
        self._source, self._channels, self._quality = source, channels, quality
        self._actuators = tuple(manipulator.actuators)
        self._cylinders = tuple(hydraulics.cylinders) if hydraulics else ()
        self._areas = [(one.area_a, one.area_b) for one in hydraulics.cylinders.values()] if hydraulics else []
        self.period = round(channels.period * SECOND)
        unknown = sorted(delays.keys() - set(channels.topics))
        if unknown:
            raise BagError(f"no delay is known of topic '{unknown[0]}'; there are: {', '.join(channels.topics)}")
        self._delays = {topic: round(delay * SECOND) for topic, delay in delays.items()}
        self._numbers = {source.number(topic): topic for topic in channels.topics}
        self._decoders = {number: Decoder(source.topics[number].msgtype) for number in self._numbers}
        self._offset = channels.offsets.get(channels.states[0], 0) if channels.by_stamp else 0
        self._drift = self._offset      # latest of the states, for topics without stamps
        self._make_tracks()

    def _make_tracks(self):
        channels, joints = self._channels, self._channels.joints
        self._position, self._readers = {}, {topic: [] for topic in channels.topics}
        for topic in channels.states:
            names = [name for name in joints if name in channels.labels[topic]]
            track = self._track(topic, 2 * len(names))
            self._position[topic] = track, [joints.index(name) for name in names]
            self._readers[topic].append((track, _joint_columns(names, ('position',), ('velocity',))))
        # columns of tracks in which a number that is not finite spoils a message
        self._vital = {track: len(columns) for track, columns in self._position.values()}
        self._main = self._position[channels.states[0]][0]
        self._effort = self._command = None
        if channels.efforts:
            self._effort = self._track(channels.efforts, len(self._actuators))
            self._readers[channels.efforts].append((self._effort, _joint_columns(self._actuators, ('effort',))))
        self._pressures = {}
        if self._cylinders and channels.telemetry:
            track = self._track(channels.telemetry, 2 * len(self._cylinders))
            self._pressures[channels.telemetry] = track, slice(0, 2 * len(self._cylinders))
            self._readers[channels.telemetry].append((track, _array_pressures(self._cylinders)))
        for (cylinder, port), topic in channels.ports.items():
            if cylinder in self._cylinders:
                column = 2 * self._cylinders.index(cylinder) + 'ab'.index(port)
                track = self._track(topic, 1)
                self._pressures[topic] = track, slice(column, column + 1)
                self._readers[topic].append((track, lambda rows: rows.values['pressure'] - ATMOSPHERE))
        if channels.commands:
            self._command = self._track(channels.commands, len(self._actuators), held=True)
            kind = self._source.topics[self._source.number(channels.commands)].msgtype
            self._readers[channels.commands].append((self._command, _array_command(self._actuators) if kind == ARRAY
                                                     else _joint_columns(self._actuators, COMMAND_FIELDS)))
        self._vital.update((track, track.values.shape[1]) for track, _ in self._pressures.values())
        self._tracks = list(dict.fromkeys(track for readers in self._readers.values() for track, _ in readers))

    def _track(self, topic, columns, held=False):
        period = self._channels.periods.get(topic)
        return Track(columns, period * SECOND if period == period else float(self.period), held)

    def grids(self):
        """Yield (instants (n,) ns since the start of the bag, whether they go on where the last ended)."""
        cursor = None
        for packet in self._source.packets(self._channels.topics):
            self._take(packet)
            if len(self._main.times) and self._main.last - self._begin(cursor) >= TOGETHER * self.period:
                for instants, connected in self._grid(cursor, self._ready()):
                    cursor = int(instants[-1]) + self.period
                    yield instants, connected
                self._forget(cursor)
        if len(self._main.times):
            yield from self._grid(cursor, self._main.last + 1)
        if self._quality is not None:
            self._quality.finish(self._source, {topic: max((track.late for track, _ in readers), default=0)
                                                for topic, readers in self._readers.items()})

    def _begin(self, cursor):
        return int(self._main.times[0]) if cursor is None else cursor

    def _ready(self):
        """ns before which no topic is expected to say more."""
        latest = self._main.last
        others = [track.last for track in self._tracks if track.last is not None]
        # the last interval waits for its fourth neighbour
        return max(min(others), latest - PATIENCE) - 2 * self.period

    def _grid(self, cursor, until):
        """Instants from the cursor on, before a time; they begin anew with the stamp after each gap."""
        times = self._main.times
        pieces = np.flatnonzero(np.diff(times) > BRIDGED * self.period) + 1
        for piece in np.split(times, pieces):
            first, last = int(piece[0]), min(int(piece[-1]), until - 1)
            begin = first if cursor is None or cursor < first else cursor
            if last >= begin:
                instants = np.arange(begin, last + 1, self.period)
                yield instants, begin == cursor
                cursor = int(instants[-1]) + self.period

    def _forget(self, cursor):
        if cursor is not None:
            for track in self._tracks:
                track.forget(cursor - 2 * self.period)

    def _take(self, packet):
        """Decode a packet and add its rows to the tracks."""
        for number, topic in self._numbers.items():
            chosen = packet.topic == number
            if not chosen.any():
                continue
            decoder = self._decoders[number]
            bad = decoder.bad
            found = list(decoder.decode(packet if chosen.all() else packet.rows(chosen)))
            self._source.bad += decoder.bad - bad
            if found:
                self._add(topic, found)

    def _add(self, topic, found):
        received = np.concatenate([rows.received for rows in found])
        times, sane = self._times(topic, found, received)
        if self._quality is not None:
            self._quality.rows(topic, found, times)
        order = np.argsort(received, kind='stable') if len(found) > 1 else slice(None)
        whole = sane
        for track, columns in self._readers[topic]:
            groups = [columns(rows) for rows in found]
            if track in self._vital:
                whole = whole & np.concatenate([_finite(values[:, :self._vital[track]]) for values in groups])
            values = np.concatenate(groups)
            track.add(times[order][sane[order]], values[order][sane[order]])
        self._source.bad += int(len(whole) - whole.sum())

    def _times(self, topic, found, received):
        """(ns since the start of the bag, whether the stamp is sane) of rows."""
        stamps = [rows_stamps(rows) for rows in found] if self._channels.by_stamp else [None]
        if any(one is None for one in stamps):
            times, sane = received - (self._drift - self._offset), np.ones(len(received), dtype=bool)
        else:
            stamps = np.concatenate(stamps)
            behind = received - stamps
            middle = np.median(behind)
            away = np.abs(behind - middle)
            sane = away <= max(STRAY, SPREAD * np.median(away))
            times = stamps + self._offset
            if topic == self._channels.states[0]:
                self._drift = int(middle)
        return times - self._source.start_ns - self._delays.get(topic, 0), sane

    def sample(self, instants):
        """{positions, velocities (n, joints), effort, pressures, command} at instants, None where there are none."""
        joints = len(self._channels.joints)
        positions, velocities = np.full((2, len(instants), joints), np.nan)
        for track, columns in self._position.values():
            values = track.sample(instants)
            positions[:, columns], velocities[:, columns] = values[:, :len(columns)], values[:, len(columns):]
        effort = (np.full((len(instants), len(self._actuators)), np.nan) if self._effort is None
                  else self._effort.sample(instants))
        pressures = None
        if self._pressures:
            pressures = np.full((len(instants), 2 * len(self._cylinders)), np.nan)
            for track, columns in self._pressures.values():
                pressures[:, columns] = track.sample(instants)
            pressures = pressures.reshape(len(instants), -1, 2)
            for k, (name, (area_a, area_b)) in enumerate(zip(self._cylinders, self._areas)):
                force = area_a * pressures[:, k, 0] - area_b * pressures[:, k, 1]
                # a cylinder whose pressures nobody records is measured otherwise, or not at all
                if np.isfinite(force).any():
                    effort[:, self._actuators.index(name)] = force
        command = None if self._command is None else self._command.sample(instants)
        return {'positions': positions, 'velocities': velocities, 'effort': effort, 'pressures': pressures,
                'command': command}


def _finite(values):
    """(n,) whether rows of like messages are finite; columns that none of them has do not count."""
    good = np.isfinite(values)
    return (good | ~good.any(axis=0)).all(axis=1)


def _joint_columns(names, *groups):
    """A function of `Rows` that gives (n, len(groups) len(names)): of each group the last field that is finite."""
    names = tuple(names)

    def read(rows):
        there = [(k, rows.names.index(name)) for k, name in enumerate(names) if name in rows.names]
        out = np.full((len(rows.received), len(groups) * len(names)), np.nan)
        if not there:
            return out
        to, of = np.array(there).T
        for number, group in enumerate(groups):
            for field in group:
                if field in rows.values:
                    values = rows.values[field][:, of]
                    part = out[:, number * len(names) + to]
                    out[:, number * len(names) + to] = np.where(np.isfinite(values), values, part)
        return out
    return read


def _array_pressures(cylinders):
    """A function of `Rows` of a labelled array that gives (n, 2 cylinders)."""
    def read(rows):
        out = np.full((len(rows.received), 2 * len(cylinders)), np.nan)
        quantities, data = array_columns(rows.names), rows.values.get('data')
        if data is None or not set(PRESSURES) <= quantities.keys():
            return out
        things, width = rows.names[0].split(','), len(rows.names[1].split(','))
        if data.shape[1] != len(things) * width:
            return out
        for k, name in enumerate(cylinders):
            if name in things:
                for port, label in enumerate(PRESSURES):
                    out[:, 2 * k + port] = data[:, things.index(name) * width + quantities[label]]
        return out
    return read


def _array_command(actuators):
    """A function of `Rows` of an array without labels, one entry for each actuator in their order."""
    def read(rows):
        data = rows.values.get('data')
        if data is None or data.shape[1] != len(actuators):
            return np.full((len(rows.received), len(actuators)), np.nan)
        return data
    return read
