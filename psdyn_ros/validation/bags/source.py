"""Bags, MCAP or SQLite, whole or damaged, as streams of serialised messages in the order of the time of receipt.

Nothing here grows with the bag but its index, of some hundred bytes for each chunk.
"""

from contextlib import closing
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...model.errors import shorten
from ...model.units import SECOND
from .files import BY_URI, EACH_MESSAGE, WHOLE_FILE, Decompressed, Linked, find_files
from .mcap_chunks import MAX_RECORD, Damage, Packet, decompressed, join, message_rows, read_span
from .mcap_index import mcap_index
from .mcap_recovery import UNREADABLE, Channel, Lost
from .recording import BagError

DAY = 86_400 * SECOND
MAX_ABSURD = 0.01           # share of absurd messages beyond which no verdict holds
ROWS = 4096                 # messages that are read from a database at once
LATEST = np.iinfo(np.int64).max
LOOK_AHEAD = 8              # chunks whose messages may be earlier than those of the one before
MAX_WAITING = 32 << 20      # bytes of messages that wait for earlier ones


class TopicInfo(NamedTuple):
    """A topic of a bag: its name, type of message, and how many there are (as the index says)."""

    name: str
    msgtype: str
    count: int


def open_bag(path):
    """Return the `BagSource` of a folder, or of a single MCAP or SQLite file; BagError where it cannot be read.

    To be used in a `with` statement.
    """
    return BagSource(find_files(path))


class BagSource:
    """A bag that is open.

    path, format   'mcap' or 'sqlite3'
    topics         tuple of `TopicInfo`, sorted by name
    start_ns       when the first message was received
    end_ns         the last, as far as the index says
    lost           `Lost` where the bag is not whole, or None; more may turn up while it is read
    received       messages that `packets` read last time from the start to where it is
    absurd         of them, those received more than a day from the ones before, which are left out
    bad            of them, those that decoders could not use; decoders count here
    progress       share of the bag that is behind, 0 to 1
    """

    def __init__(self, files):
        self.path, self.format = files.path, files.format
        self._files = files
        self._unpacked = Decompressed() if files.compression == WHOLE_FILE else None
        self._linked, self._links = None, {}        # paths that SQLite would misread -> links to them
        self._lost = {}             # part of the bag -> Lost
        self.received = self.absurd = self.bad = 0
        self.progress = 0.0
        try:
            self._parts = [self._open(number) for number in range(len(files.files))]
            if all(part is None for part in self._parts):
                raise BagError(f"bag '{self.path}' cannot be read: {self.lost.text}")
            self._number_topics()
            self._find_times()
        except BaseException:
            self.close()
            raise

    def _open(self, number):
        """What opens one file, or None where that is damaged and others may not be."""
        part = _McapPart if self.format == 'mcap' else _SqlitePart
        try:
            return part(self, number)
        except BagError as error:
            path = self._files.files[number]
            if len(self._files.files) == 1:
                raise
            self._lost[number] = Lost(path.stat().st_size, None, f"'{path.name}' cannot be read: {error}")
            return None

    def file(self, number):
        """The path of a file of the bag, decompressed where it was compressed as a whole."""
        path = self._files.files[number]
        if self._unpacked:
            return self._unpacked.file(path, '.mcap' if self.format == 'mcap' else '.db3')
        if self.format != 'mcap' and BY_URI & set(str(path.resolve())):
            self._linked = self._linked or Linked()
            if path not in self._links:
                self._links[path] = self._linked.file(path, path.suffix)
            return self._links[path]
        return path

    def _number_topics(self):
        kinds, counts, self.schemas, twice = {}, {}, {}, set()
        for part in filter(None, self._parts):
            for key, channel in part.channels.items():
                kind = '' if channel.dialect == UNREADABLE else channel.msgtype
                if kinds.setdefault(channel.topic, kind) != kind:
                    twice.add(channel.topic)
                counts[channel.topic] = counts.get(channel.topic, 0) + part.counts.get(key, 0)
                self.schemas.setdefault(channel.topic, channel)
        for topic in twice:
            kinds[topic] = ''       # two types on one topic: neither can be relied on
        self.topics = tuple(TopicInfo(topic, kinds[topic], counts[topic]) for topic in sorted(kinds))
        self._number = {topic.name: number for number, topic in enumerate(self.topics)}

    def _find_times(self):
        if not any(topic.count for topic in self.topics):
            raise BagError(f"bag '{self.path}' is empty: no messages" + (f'; {self.lost.text}' if self.lost else ''))
        first = next(self.packets([topic.name for topic in self.topics]), None)
        if first is None:
            raise BagError(f"bag '{self.path}' has no message that can be read"
                           + (f'; {self.lost.text}' if self.lost else ''))
        self.start_ns = self.end_ns = int(first.received[0])
        for end in sorted(part.end for part in self._parts if part):
            if 0 <= end - self.end_ns <= 365 * DAY:
                self.end_ns = end

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close the files and remove what was decompressed."""
        for part in filter(None, getattr(self, '_parts', ())):
            part.close()
        for temporary in (self._unpacked, self._linked):
            if temporary:
                temporary.close()

    @property
    def lost(self):
        """`Lost`, or None where nothing is known to be lost."""
        if not self._lost:
            return None
        there = sum(topic.count for topic in self.topics) if hasattr(self, 'topics') else 0
        known = [lost.messages for lost in self._lost.values()]
        promised = self._files.messages
        messages = sum(known) if None not in known else None if promised is None else max(promised - there, 0)
        return Lost(sum(lost.bytes for lost in self._lost.values()), messages,
                    '; '.join(lost.text for lost in self._lost.values()))

    @property
    def invalid(self):
        """Why no verdict about what was read so far would hold, '' where one would."""
        wrong = self.absurd + self.bad
        if wrong > MAX_ABSURD * max(self.received, 1):
            return (f'{wrong} of {self.received} messages are unusable ({self.absurd} received at absurd times, '
                    f'{self.bad} without a usable stamp or content); at most {MAX_ABSURD:.0%} may be')
        return ''

    def note_loss(self, key, lost):
        """Add to what is lost; the same key twice counts once."""
        self._lost[key] = lost

    def number(self, topic):
        """The number of a topic in the packets; BagError where there is none."""
        if topic not in self._number:
            raise BagError(f"bag '{self.path}' has no topic '{topic}'; it has:\n{self.listing()}")
        return self._number[topic]

    def listing(self):
        """What is in the bag, a line for each topic."""
        return '\n'.join(f'  {shorten(topic.name)}  {shorten(topic.msgtype) or "of a type that cannot be read"}  '
                         f'{topic.count} messages' for topic in self.topics[:50]) or '  nothing'

    def packets(self, topics):
        """Yield `Packet`s of messages on these topics, each in the order of time and after the one before it.

        Where parts of the bag overlap by more than MAX_WAITING bytes, they follow each other as recorded.
        """
        wanted = {topic: self.number(topic) for topic in topics}
        self.received = self.absurd = self.bad = 0
        last = None
        for packet in self._ordered(wanted):
            self.received += len(packet)
            if last is None:
                last = int(np.partition(packet.received, len(packet) // 2)[len(packet) // 2])
            sane = np.abs(packet.received - last) <= DAY
            if not sane.all():
                self.absurd += int(len(sane) - sane.sum())
                packet = packet.rows(sane)
            if len(packet):
                last = int(packet.received[-1])
                yield packet

    def _ordered(self, wanted):
        """Packets in the order of time, absurd times included."""
        waiting = join([])
        total = max(sum(part.weight for part in self._parts if part), 1)
        behind = 0
        for part in filter(None, self._parts):
            for packet, until, share in part.packets({key: wanted[channel.topic] for key, channel
                                                      in part.channels.items() if channel.topic in wanted}):
                self.progress = min((behind + share * part.weight) / total, 1.0)
                if len(waiting):
                    packet = join([waiting, packet])
                early = packet.received < until
                if early.all() or len(packet.data) > MAX_WAITING:
                    waiting = join([])
                elif early.any():
                    waiting, packet = _compact(packet.rows(~early)), packet.rows(early)
                else:
                    waiting = packet
                    continue
                if len(packet):
                    yield packet
            behind += part.weight
        if len(waiting):
            yield waiting
        self.progress = 1.0

    def messages(self, topics):
        """Yield (topic, ns when it was received, serialised message) in the order of time; bytes are copies."""
        for packet in self.packets(topics):
            for row, (number, received) in enumerate(zip(packet.topic.tolist(), packet.received.tolist())):
                yield self.topics[number].name, received, packet.message(row)


def _compact(packet):
    """The packet without the chunk that it came from."""
    pieces = [packet.message(row) for row in range(len(packet))]
    return Packet(b''.join(pieces), packet.topic, packet.received, np.cumsum(packet.size) - packet.size, packet.size)


class _McapPart:
    """One MCAP file of a bag."""

    def __init__(self, source, number):
        self._source, self._number = source, number
        with source.file(number).open('rb') as file:
            self.weight = max(file.seek(0, 2), 1)
            index = mcap_index(file)
        self.channels, self._spans = index.channels, index.spans
        self.counts = {}
        for span in self._spans:
            for channel, count in span.counts.items():
                self.counts[channel] = self.counts.get(channel, 0) + count
        starts = sorted(span.start for span in self._spans)
        # one absurd time at either end says nothing about the rest
        middle = starts[len(starts) // 2] if starts else 0
        self.end = max((span.end for span in self._spans if abs(span.end - middle) < 365 * DAY), default=middle)
        if index.lost:
            source.note_loss(number, index.lost)

    def close(self):
        """Nothing stays open between two readings."""

    def packets(self, wanted):
        """Yield (`Packet`, time before which nothing follows, share of the file that is behind)."""
        spans = [span for span in self._spans if not wanted.keys().isdisjoint(span.counts)]
        if not spans:
            return
        with self._source.file(self._number).open('rb') as file:
            for k, span in enumerate(spans):
                try:
                    packet = message_rows(read_span(file, span), wanted)
                    if self._source._files.compression == EACH_MESSAGE:
                        packet = _unpacked_rows(packet, self._source)
                except (Damage, OSError, MemoryError) as damage:
                    count = sum(span.counts.values())
                    self._source.note_loss((self._number, span.first), Lost(
                        span.size, count, f'chunk at byte {span.first} ({count} messages) cannot be used: {damage}'))
                    continue
                until = min((later.start for later in spans[k + 1:k + 1 + LOOK_AHEAD]), default=LATEST)
                yield packet, until, (span.first + span.size) / self.weight


class _SqlitePart:
    """One SQLite file of a bag."""

    def __init__(self, source, number):
        self._source, self._number = source, number
        with self._reader() as reader:
            connections = list(reader.connections)
            self.channels = {one.id: Channel(one.topic, one.msgtype, one.msgdef.data, _dialect(one))
                             for one in connections}
            self.counts = {one.id: int(one.msgcount) for one in connections}
            self.end = int(reader.end_time)
            rows, = next(reader.storage.dbconn.cursor().execute('SELECT count(*) FROM messages'))
        strays = rows - sum(self.counts.values())
        if strays:
            source.note_loss((number, 'strays'), Lost(0, abs(strays), f"{abs(strays)} rows of "
                                                      f"'{source.file(number).name}' are of no topic"))
        self.weight = max(sum(self.counts.values()), 1)

    def _reader(self):
        from rosbags.rosbag2 import Reader

        path = self._source.file(self._number)
        try:
            reader = Reader(path)
            reader.open()
        # a damaged database fails in as many ways as there are
        except Exception as error:
            raise BagError(f"'{path}' is no SQLite bag: {shorten(str(error))}") from None
        return closing(reader)

    def close(self):
        """Nothing stays open between two readings."""

    def packets(self, wanted):
        """Yield (`Packet`, time before which nothing follows, share of the file that is behind)."""
        if not wanted:
            return
        unpack = _unpacked_message if self._source._files.compression == EACH_MESSAGE else bytes
        behind = 0
        with self._reader() as reader:
            rows = _Rows(reader.messages([one for one in reader.connections if one.id in wanted]), wanted, unpack)
            while True:
                topic, received, data = rows.take(ROWS)
                behind += len(topic)
                if rows.failure:
                    count = max(self.weight - behind, 0)
                    self._source.note_loss((self._number, 'rows'), Lost(0, count, (
                        f"'{self._source.file(self._number).name}' is damaged ({rows.failure}); about {count} messages "
                        'could not be read')))
                self._source.bad += rows.bad
                self._source.received += rows.bad
                if topic:
                    size = np.array([len(one) for one in data], dtype=np.int64)
                    yield (Packet(b''.join(data), np.array(topic, dtype=np.int64), np.array(received, dtype=np.int64),
                                  np.cumsum(size) - size, size), LATEST, min(behind / self.weight, 1.0))
                if rows.ended:
                    return


class _Rows:
    """Rows of a database, those left out that are no messages."""

    def __init__(self, messages, wanted, unpack):
        self._messages, self._wanted, self._unpack = messages, wanted, unpack
        self.ended, self.failure, self.bad = False, '', 0

    def take(self, most):
        """(numbers of topics, ns, messages) of the next rows."""
        topic, received, data = [], [], []
        self.bad = taken = 0
        try:
            for connection, when, message in islice(self._messages, most):
                taken += 1
                if not isinstance(when, int) or not isinstance(message, bytes) or len(message) > MAX_RECORD:
                    self.bad += 1
                    continue
                try:
                    data.append(self._unpack(message))
                except Damage:
                    self.bad += 1
                    continue
                topic.append(self._wanted[connection.id])
                received.append(when)
        # rosbags hands on what the library of the database raises, and what comes of rows that are none
        except Exception as error:
            self.ended, self.failure = True, shorten(str(error)) or type(error).__name__
        self.ended = self.ended or taken < most
        return topic, received, data


def _dialect(connection):
    if connection.ext.serialization_format != 'cdr':
        return UNREADABLE
    return {'MSG': 'ros2msg', 'IDL': 'ros2idl'}.get(connection.msgdef.format.name, '')


def _unpacked_rows(packet, source):
    """A `Packet` of messages that were compressed one by one; the source counts those that were not."""
    data, good = [], np.ones(len(packet), dtype=bool)
    for k, (first, size) in enumerate(zip(packet.start.tolist(), packet.size.tolist())):
        try:
            data.append(_unpacked_message(packet.data[first:first + size]))
        except Damage:
            good[k] = False
    source.bad += int(len(good) - good.sum())
    source.received += int(len(good) - good.sum())
    size = np.array([len(one) for one in data], dtype=np.int64)
    return Packet(b''.join(data), packet.topic[good], packet.received[good], np.cumsum(size) - size, size)


def _unpacked_message(message):
    import zstandard

    try:
        size = zstandard.get_frame_parameters(message).content_size
        if size in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR):
            return zstandard.ZstdDecompressor().decompress(message, max_output_size=1 << 20)
    except zstandard.ZstdError as error:
        raise Damage(str(error)) from None
    if size > MAX_RECORD:
        raise Damage(f'a message of {size} bytes')
    return decompressed(message, 'zstd', size, 0)
