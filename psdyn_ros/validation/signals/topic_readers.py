"""The channels of a machine while its bag goes by: messages into tracks, tracks into rows of a grid."""

import numpy as np

from ...model.units import ATMOSPHERE, SECOND
from ..bags.bulk_decoder import ARRAY, Decoder, Rows
from ..bags.recording import BagError
from .clock_drift import ClockSteps
from .machine_tracks import MachineTracks
from .resampling import BRIDGED, Track
from .topics import PRESSURES, array_pressures, rows_stamps

TOGETHER = 4096             # instants that are sampled at once
STRAY, SPREAD = SECOND, 10  # a stamp is absurd that is off by more than 1 s and 10 times the usual
JOINT_FIELDS = {'position', 'velocity', 'effort'}
CUT = BRIDGED + 1.0         # periods that are left out after a step of the clock, so that a gap is there
COMMAND_FIELDS = ('effort', 'velocity', 'position')     # of JointState, later ones count more


class ChannelStreams:
    """Reads a bag once, and samples what it says of a machine.

    period  ns between instants
    """

    def __init__(self, source, channels, manipulator, hydraulics, quality, delays):
        self._source, self._channels, self._quality = source, channels, quality
        self._machine = MachineTracks(channels.joints, manipulator.actuators, hydraulics,
                                      round(channels.period * SECOND))
        unknown = sorted(delays.keys() - set(channels.topics))
        if unknown:
            raise BagError(f"no delay is known of topic '{unknown[0]}'; there are: {', '.join(channels.topics)}")
        self._delays = {topic: round(delay * SECOND) for topic, delay in delays.items()}
        self._numbers = {source.number(topic): topic for topic in channels.topics}
        self._decoders = {number: Decoder(source.topics[number].msgtype) for number in self._numbers}
        self._offset = channels.offsets.get(channels.states[0], 0) if channels.by_stamp else 0
        self._drift = self._offset      # latest of the states, for topics without stamps
        self._clocks = {topic: ClockSteps() for topic in channels.topics}
        self.sample = self._machine.sample
        self._make_tracks()

    @property
    def period(self):
        """ns between instants."""
        return self._machine.period

    def _make_tracks(self):
        channels, machine, joints = self._channels, self._machine, self._channels.joints
        self._readers = {topic: [] for topic in channels.topics}
        for topic in channels.states:
            names = [name for name in joints if name in channels.labels[topic]]
            track = self._track(topic, 2 * len(names))
            machine.positions.append((track, [joints.index(name) for name in names]))
            self._readers[topic].append((track, _joint_columns(names, ('position',), ('velocity',))))
        # columns of tracks in which a number that is not finite spoils a message
        self._vital = {track: len(columns) for track, columns in machine.positions}
        if channels.efforts:
            machine.effort = self._track(channels.efforts, len(machine.actuators))
            self._readers[channels.efforts].append((machine.effort, _joint_columns(machine.actuators, ('effort',))))
        if machine.cylinders and channels.telemetry:
            track = self._track(channels.telemetry, 2 * len(machine.cylinders))
            machine.pressures.append((track, slice(0, 2 * len(machine.cylinders))))
            self._readers[channels.telemetry].append((track, _array_pressures(machine.cylinders)))
        for (cylinder, port), topic in channels.ports.items():
            if cylinder in machine.cylinders:
                column = 2 * machine.cylinders.index(cylinder) + 'ab'.index(port)
                track = self._track(topic, 1)
                machine.pressures.append((track, slice(column, column + 1)))
                self._readers[topic].append((track, lambda rows: rows.values['pressure'] - ATMOSPHERE))
        if channels.commands:
            machine.command = self._track(channels.commands, len(machine.actuators), held=True)
            kind = self._source.topics[self._source.number(channels.commands)].msgtype
            self._readers[channels.commands].append((machine.command, _array_command(machine.actuators)
                                                     if kind == ARRAY
                                                     else _joint_columns(machine.actuators, COMMAND_FIELDS)))
        self._vital.update((track, track.values.shape[1]) for track, _ in machine.pressures)

    def _track(self, topic, columns, held=False):
        period = self._channels.periods.get(topic)
        return Track(columns, period * SECOND if period == period else float(self.period), held)

    def grids(self):
        """Yield (instants (n,) ns since the start of the bag, whether they go on where the last ended)."""
        machine = self._machine
        for packet in self._source.packets(self._channels.topics):
            self._take(packet)
            if machine.waiting >= TOGETHER * self.period:
                yield from machine.grid(machine.ready)
        if len(machine.main.times):
            yield from machine.grid(machine.main.last + 1)
        if self._quality is not None:
            start = self._source.start_ns
            self._quality.finish(
                self._source, {topic: max((track.late for track, _ in readers), default=0)
                               for topic, readers in self._readers.items()},
                {topic: [((when - start) / SECOND, size / SECOND) for when, size in clock.set_back]
                 for topic, clock in self._clocks.items()})

    def _take(self, packet):
        """Decode a packet and add its rows to the tracks."""
        for number, topic in self._numbers.items():
            chosen = packet.topic == number
            if not chosen.any():
                continue
            decoder = self._decoders[number]
            bad = decoder.bad
            found = one_order(decoder.decode(packet if chosen.all() else packet.rows(chosen)))
            self._source.bad += decoder.bad - bad
            if found:
                self._add(topic, found)

    def _add(self, topic, found):
        received = np.concatenate([rows.received for rows in found])
        order = np.argsort(np.concatenate([rows.places for rows in found]))
        times, sane, cut = self._times(topic, found, received, order)
        if self._quality is not None:
            self._quality.rows(topic, found, times)
        whole = sane
        for track, columns in self._readers[topic]:
            groups = [columns(rows) for rows in found]
            if track in self._vital:
                whole = whole & np.concatenate([_finite(values[:, :self._vital[track]]) for values in groups])
            values = np.concatenate(groups)
            # a message about other joints says nothing; as a command it says that there is none
            used = sane & ~cut if track.held else sane & ~cut & np.isfinite(values).any(axis=1)
            track.add(times[order][used[order]], values[order][used[order]])
        self._source.bad += int(len(whole) - whole.sum())

    def _times(self, topic, found, received, order):
        """(ns since the start of the bag, whether the stamp is sane, whether it is left out for a gap) of rows.

        order  of rows as they were received
        """
        stamps = [rows_stamps(rows) for rows in found] if self._channels.by_stamp else [None]
        cut, sane = np.zeros((2, len(received)), dtype=bool)
        if any(one is None for one in stamps):
            times, sane = received - (self._drift - self._offset), ~sane
        else:
            stamps, states = np.concatenate(stamps), topic == self._channels.states[0]
            stamps[order], steps = self._clocks[topic].add(received[order], stamps[order])
            for piece in filter(len, np.split(order, [first for first, _ in steps])):
                behind = received[piece] - stamps[piece]
                middle = np.median(behind)
                away = np.abs(behind - middle)
                sane[piece] = away <= max(STRAY, SPREAD * np.median(away))
                if states:
                    self._drift = int(middle)
            for first, shift in steps if states else ():
                if shift:   # known to the jitter of receipts only, which no filter may bridge
                    cut[order[first:]] |= stamps[order[first:]] < stamps[order[first]] + CUT * self.period
            times = stamps + self._offset
        return times - self._source.start_ns - self._delays.get(topic, 0), sane, cut


def one_order(found):
    """Return `Rows` of a packet; those about the same joints, in whatever order of names, are one, in its order."""
    groups = {}
    for rows in found:
        # columns of other messages have no names of their own
        by_name = JOINT_FIELDS & rows.values.keys() and all(
            values.shape[1] == len(rows.names) for values in rows.values.values())
        key = (tuple(sorted(rows.names)), rows.stamps is None, tuple(sorted(rows.values))) if by_name else id(rows)
        groups.setdefault(key, []).append(rows)
    return [same[0] if len(same) == 1 else _joined(same) for same in groups.values()]


def _joined(found):
    first = found[0]
    places, received = (np.concatenate(part) for part in zip(*((rows.places, rows.received) for rows in found)))
    order = np.argsort(places)
    columns = [[rows.names.index(name) for name in first.names] for rows in found]
    return Rows(first.names, places[order], received[order],
                None if first.stamps is None else np.concatenate([rows.stamps for rows in found])[order],
                {field: np.concatenate([rows.values[field][:, column] for rows, column in zip(found, columns)])[order]
                 for field in first.values})


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
    columns = {(name, label): 2 * k + port for k, name in enumerate(cylinders) for port, label in enumerate(PRESSURES)}

    def read(rows):
        out = np.full((len(rows.received), len(columns)), np.nan)
        for name, label, values in array_pressures(rows):
            if (name, label) in columns:
                out[:, columns[name, label]] = values
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
