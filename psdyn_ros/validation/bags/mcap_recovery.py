"""MCAP files that are cut off or damaged: what can be read of them, and what is lost."""

from io import BytesIO
from typing import NamedTuple

import numpy as np

from ...model.errors import shorten
from .mcap_chunks import (
    CHANNEL,
    CHUNK_HEAD,
    MAX_RECORD,
    PLAIN,
    RECORD,
    SCHEMA,
    Damage,
    Span,
    decompressed,
    message_rows,
    record_starts,
)

MESSAGE_BEGINS = 31             # bytes from the begin of a message's record to the message
MAX_PLAIN = 1 << 20             # bytes of records outside of chunks that are read at once
MAX_CHANNELS = 1 << 16
MAX_SCHEMA = 1 << 18            # characters
READABLE = {'cdr'}
UNREADABLE = 'unreadable'


class Lost(NamedTuple):
    """What a bag lacks that was once in it.

    bytes     of the files that could not be read
    messages  that were in them, None where nothing says how many
    text      why, in words
    """

    bytes: int
    messages: int
    text: str


class Channel(NamedTuple):
    """A topic of one file.

    schema   text of the definition of its messages, '' where there is none
    dialect  of that text: 'ros2msg' or 'ros2idl'
    """

    topic: str
    msgtype: str
    schema: str
    dialect: str


class McapIndex(NamedTuple):
    """What an MCAP file holds: channels {number: Channel}, spans in the order of the file, and `Lost` or None."""

    channels: dict
    spans: tuple
    lost: Lost


class _Measured:
    """A file that is never asked for more than there is, and knows where its last two reads began."""

    def __init__(self, file, most):
        self._file, self._most = file, most
        self.position = 0
        self.reads = (0, 0), (0, 0)     # (where, how many bytes) of the last read but one and the last

    def read(self, size):
        """At most `size` bytes, at most as many as a record may have."""
        if size > self._most:
            raise Damage(f'a field of {size} bytes; expected {self._most} at most')
        data = self._file.read(size)
        if len(data) < size:
            raise Damage('the end of the file within a record' if data else 'the end of the file without a footer')
        self.reads = self.reads[1], (self.position, size)
        self.position += size
        return data


def scan(file):
    """The `McapIndex` of an open file, record by record from its start as far as it can be followed.

    Chunks that are whole but do not decompress to what was written are left out.
    """
    import mcap.records as records
    from mcap.exceptions import McapError, RecordLengthLimitExceeded
    from mcap.stream_reader import CRCValidationError, StreamReader

    file.seek(0)
    stream = _Measured(file, MAX_RECORD)
    found = _Found()
    good, reason = 0, ''
    end = file.seek(0, 2)
    file.seek(0)

    def readable():
        """Yield records; those that are too large are passed over, and are damage."""
        nonlocal good
        started = False
        while True:
            reader = StreamReader(stream, skip_magic=started, emit_chunks=True, validate_crcs=True,
                                  record_size_limit=MAX_RECORD)
            started = True
            try:
                yield from reader.records
                return
            except RecordLengthLimitExceeded:
                file.seek(good)
                _, length = RECORD.unpack(file.read(RECORD.size))
                if good + RECORD.size + length > end:
                    raise
                found.too_large(length)
                good = stream.position = file.seek(good + RECORD.size + length)

    try:
        for record in readable():
            if isinstance(record, records.Chunk):
                found.chunk(record, stream.reads)
            elif isinstance(record, records.Message):
                found.plain(record, stream.reads[1])
            elif isinstance(record, records.Schema):
                found.schema(record)
            elif isinstance(record, records.Channel):
                found.channel(record)
            elif isinstance(record, records.DataEnd):
                found.ended = True
            elif isinstance(record, records.Statistics):
                found.written = record.message_count
            good = stream.position
    except CRCValidationError as error:
        reason = f'a wrong checksum ({shorten(str(error))})'
    except (McapError, Damage) as error:
        reason = shorten(str(error)) or type(error).__name__
    # a field that is no number or text where one should be
    except (ValueError, OverflowError, KeyError, MemoryError) as error:
        reason = f'a record that cannot be read ({type(error).__name__})'
    found.flush()
    return McapIndex(found.channels, tuple(found.spans), found.lost(good, end, reason))


class _Found:
    """What a scan has come by."""

    def __init__(self):
        self.channels, self.spans = {}, []
        self.ended = False
        self.written = 0           # messages, by the statistics of the file
        self._schemas = {}
        self._plain = None          # [first byte, end, start, end, counts] of the records outside of chunks
        self._damaged = []          # (bytes, why) of chunks and records

    def schema(self, record):
        """Keep the definition of a kind of message."""
        if len(self._schemas) < MAX_CHANNELS:
            self._schemas[record.id] = record

    def channel(self, record):
        """Keep what a channel is about; the first definition stands."""
        schema = self._schemas.get(record.schema_id)
        name, text, dialect = ('', '', '') if schema is None else (
            schema.name, schema.data[:MAX_SCHEMA].decode('utf-8', 'replace'), schema.encoding)
        if record.message_encoding not in READABLE:
            dialect = UNREADABLE
        self.channels.setdefault(record.id, Channel(record.topic, name, text, dialect))

    def chunk(self, record, reads):
        """Look into a chunk."""
        self.flush()
        size = len(record.data)
        first = next((where for where, count in reads if count == size), 0)
        try:
            data = decompressed(record.data, record.compression, record.uncompressed_size, record.uncompressed_crc)
            self._definitions(data)
            rows = message_rows(data, {channel: channel for channel in self.channels})
        except Damage as damage:
            self._damaged.append((RECORD.size + CHUNK_HEAD.size + 8 + size, str(damage)))
            return
        if len(rows):
            counts = {channel: int(count) for channel, count in zip(*np.unique(rows.topic, return_counts=True))}
            self.spans.append(Span(first, size, record.uncompressed_size, record.compression, record.uncompressed_crc,
                                   int(rows.received[0]), int(rows.received[-1]), counts))

    def too_large(self, length):
        """Note a record that is passed over."""
        self.flush()
        self._damaged.append((RECORD.size + length, f'a record of {length} bytes; expected {MAX_RECORD} at most'))

    def _definitions(self, data):
        """Take schemas and channels from within a chunk."""
        import mcap.records as records
        from mcap.data_stream import ReadDataStream
        from mcap.exceptions import McapError

        for code, kind, keep in ((SCHEMA, records.Schema, self.schema), (CHANNEL, records.Channel, self.channel)):
            for start, length in record_starts(data, code):
                try:
                    keep(kind.read(ReadDataStream(BytesIO(data[start:start + length]))))
                except (McapError, ValueError, OverflowError, MemoryError, ArithmeticError) as error:
                    raise Damage(f'a definition that cannot be read ({type(error).__name__})') from None

    def plain(self, record, read):
        """Keep a message outside of chunks, of which the last read was the contents."""
        where, size = read
        if size != len(record.data):
            return
        first, end, log = where - MESSAGE_BEGINS, where + size, record.log_time
        if self._plain and end - self._plain[0] > MAX_PLAIN:
            self.flush()
        if self._plain is None:
            self._plain = [first, end, log, log, {}]
        span = self._plain
        span[1], span[2], span[3] = end, min(span[2], log), max(span[3], log)
        span[4][record.channel_id] = span[4].get(record.channel_id, 0) + 1

    def flush(self):
        """End the span of records outside of chunks."""
        if self._plain:
            first, end, start, last, counts = self._plain
            self.spans.append(Span(first, end - first, end - first, PLAIN, 0, start, last, counts))
            self._plain = None

    def lost(self, good, size, reason):
        """The `Lost` of a file of `size` bytes that could be followed up to `good`; None where nothing is lost."""
        said, amount = [], 0
        # an index that is damaged takes no messages with it
        if reason and not self.ended:
            amount += size - good
            said.append(f'it could be followed for {good} of {size} bytes, up to {reason}')
        elif reason:
            said.append(f'its index could not be read, for {reason}')
        strays = sum(span.counts.pop(channel) for span in self.spans for channel in span.counts.keys() - self.channels)
        if strays:
            said.append(f'{strays} messages are of channels that nothing defines')
        if self._damaged:
            amount += sum(count for count, _ in self._damaged)
            said.append(f'{len(self._damaged)} of its chunks or large records cannot be used, the first for '
                        f'{self._damaged[0][1]}')
        there = sum(sum(span.counts.values()) for span in self.spans)
        if self.written > there and not said:
            said.append(f'{self.written} messages were written, and {there} are there')
        return Lost(amount, None, '; '.join(said)) if said else None

