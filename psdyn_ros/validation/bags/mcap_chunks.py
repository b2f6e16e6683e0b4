"""Chunks of MCAP files: found, decompressed within bounds, checked, and taken apart into rows of messages."""

import struct
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

import numpy as np

from .recording import BagError

MAGIC = b'\x89MCAP0\r\n'
MAX_RECORD = 64 << 20           # bytes that a record which is read may have
MAX_CHUNK = 256 << 20           # bytes of a chunk decompressed
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, ATTACHMENT = 1, 2, 3, 4, 5, 6, 9
PLAIN = None                    # in place of a compression: records outside of chunks
RECORD = struct.Struct('<BQ')
CHUNK_HEAD = struct.Struct('<QQQII')    # first and last log time, size decompressed, its CRC, length of 'compression'
FOOTER_AND_MAGIC = 9 + 20 + 8
MESSAGE_HEAD = np.dtype([('channel', '<u2'), ('sequence', '<u4'), ('logged', '<u8'), ('published', '<u8')])


class Damage(Exception):
    """A chunk or record that is not as it was written."""


@dataclass(frozen=True, slots=True)
class Packet:
    """Messages, serialised, one after another in time.

    data      bytes of all of them, and others
    topic     (n,) numbers of their topics
    received  (n,) ns
    start     (n,) where in `data` each begins
    size      (n,) bytes of each
    """

    data: bytes
    topic: np.ndarray
    received: np.ndarray
    start: np.ndarray
    size: np.ndarray

    def __len__(self):
        return len(self.topic)

    def rows(self, chosen):
        """The packet with these of its messages, a mask or their order."""
        return Packet(self.data, self.topic[chosen], self.received[chosen], self.start[chosen], self.size[chosen])

    def message(self, row):
        """The bytes of one message."""
        return bytes(self.data[self.start[row]:self.start[row] + self.size[row]])


class Span(NamedTuple):
    """Part of a file with messages: a chunk, or records outside of chunks.

    first        byte of its data
    size         bytes of them, as they are in the file
    full         bytes decompressed
    compression  '', 'zstd', 'lz4', or PLAIN
    crc          of the data decompressed; 0: unknown
    start        ns, log time of its first message
    end          ns, of its last
    counts       channel -> messages
    """

    first: int
    size: int
    full: int
    compression: str
    crc: int
    start: int
    end: int
    counts: dict


def chunk_span(file, offset, length, counts):
    """The `Span` of the chunk record that begins at an offset of an open file; Damage."""
    file.seek(offset + RECORD.size)
    head = file.read(CHUNK_HEAD.size + 16)
    if len(head) < CHUNK_HEAD.size + 8:
        raise Damage('a chunk without a head')
    start, end, full, crc, characters = CHUNK_HEAD.unpack_from(head)
    if characters > 8:
        raise Damage(f'a chunk compressed by something of {characters} characters')
    compression = head[CHUNK_HEAD.size:CHUNK_HEAD.size + characters].decode('ascii', 'replace')
    first = offset + RECORD.size + CHUNK_HEAD.size + characters
    file.seek(first)
    size, = struct.unpack('<Q', file.read(8).ljust(8, b'\xff'))
    if first + 8 + size > offset + RECORD.size + length:
        raise Damage('a chunk that is longer than its record')
    return Span(first + 8, size, full, compression, crc, start, end, counts)


def decompressed(data, compression, full, crc):
    """The data of a chunk, whose size decompressed must be as declared and at most MAX_CHUNK; Damage."""
    if full > MAX_CHUNK:
        raise Damage(f'a chunk of {full} bytes decompressed; expected {MAX_CHUNK} at most')
    if compression == 'zstd':
        data = _from_zstd(data, full)
    elif compression == 'lz4':
        data = _from_lz4(data, full)
    elif compression:
        raise Damage(f"a chunk compressed by '{compression}'; expected zstd or lz4")
    if len(data) != full:
        raise Damage(f'a chunk of {len(data)} bytes that is declared to have {full}')
    if crc and zlib.crc32(data) != crc:
        raise Damage('a chunk with a wrong checksum')
    return data


def _from_zstd(data, most):
    import zstandard

    if not data and not most:
        return b''
    try:
        declared = zstandard.get_frame_parameters(data).content_size
        if declared != zstandard.CONTENTSIZE_UNKNOWN and declared > most:
            raise Damage(f'a chunk that decompresses to {declared} bytes; declared are {most}')
        return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompress(data, max_output_size=max(most, 1))
    except zstandard.ZstdError as error:
        raise Damage(f'a chunk that cannot be decompressed: {error}') from None


def _from_lz4(data, most):
    import lz4.frame

    reader = lz4.frame.LZ4FrameDecompressor()
    try:
        return reader.decompress(data, max_length=most + 1) if data else b''
    except (RuntimeError, EOFError) as error:
        raise Damage(f'a chunk that cannot be decompressed: {error}') from None


def read_span(file, span):
    """The records of a span of an open file; Damage."""
    if span.size > MAX_RECORD:
        raise Damage(f'a record of {span.size} bytes; expected {MAX_RECORD} at most')
    file.seek(span.first)
    data = file.read(span.size)
    if len(data) != span.size:
        raise Damage(f'{len(data)} bytes where {span.size} should be')
    return data if span.compression is PLAIN else decompressed(data, span.compression, span.full, span.crc)


def record_starts(data, *codes):
    """Where in the data of a chunk records of these codes begin, and their lengths, a list of pairs; Damage."""
    found, position, end, unpack = [], 0, len(data) - RECORD.size, RECORD.unpack_from
    while position <= end:
        code, length = unpack(data, position)
        if code in codes:
            found.append((position + 9, length))
        position += 9 + length
    if position != len(data):
        raise Damage('records that do not end where their chunk ends')
    return found


def message_rows(data, topics):
    """The `Packet` of the records in `data`; topics: channel -> number of its topic, others are left out.  Damage."""
    places = np.array(record_starts(data, MESSAGE), dtype=np.int64).reshape(-1, 2)
    if len(places) and places[:, 1].min() < MESSAGE_HEAD.itemsize:
        raise Damage('a message without a head')
    head = gather(data, places[:, 0], MESSAGE_HEAD.itemsize).reshape(-1).view(MESSAGE_HEAD)
    number = np.full(1 << 16, -1, dtype=np.int64)
    number[list(topics)] = list(topics.values())
    topic = number[head['channel']]
    packet = Packet(data, topic, head['logged'].view(np.int64) if len(head) == 0 else head['logged'].astype(np.int64),
                    places[:, 0] + MESSAGE_HEAD.itemsize, places[:, 1] - MESSAGE_HEAD.itemsize)
    packet = packet.rows(topic >= 0) if len(topic) and topic.min() < 0 else packet
    if (np.diff(packet.received) < 0).any():
        packet = packet.rows(np.argsort(packet.received, kind='stable'))
    return packet


def gather(data, starts, size):
    """(n, size) bytes: those of `data` from each start on."""
    if not len(starts) or not size:
        return np.empty((len(starts), size), dtype=np.uint8)
    return np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, dtype=np.uint8), size)[starts]


def join(packets):
    """One packet of several, in the order of time, without what lies between their messages."""
    packets = [packet for packet in packets if len(packet)]
    if len(packets) == 1:
        return packets[0]
    if not packets:
        none = np.empty(0, dtype=np.int64)
        return Packet(b'', none, none, none, none)
    pieces = [packet.data[a:a + n] for packet in packets for a, n in zip(packet.start.tolist(), packet.size.tolist())]
    size = np.concatenate([packet.size for packet in packets])
    joined = Packet(b''.join(pieces), np.concatenate([packet.topic for packet in packets]),
                    np.concatenate([packet.received for packet in packets]), np.cumsum(size) - size, size)
    return joined.rows(np.argsort(joined.received, kind='stable'))


def is_whole(file):
    """Whether an MCAP file that is open has all its records, ends as it should, and all its messages are in chunks.

    Returns the offsets of its chunks, or None.
    """
    size = file.seek(0, 2)
    file.seek(0)
    if size < 2 * len(MAGIC) + RECORD.size or file.read(len(MAGIC)) != MAGIC:
        return None
    position, chunks = len(MAGIC), []
    while position + RECORD.size <= size:
        file.seek(position)
        code, length = RECORD.unpack(file.read(RECORD.size))
        if code in (0, MESSAGE) or position + RECORD.size + length > size or (
                code != ATTACHMENT and length > MAX_RECORD):
            return None
        if code == FOOTER:
            file.seek(-FOOTER_AND_MAGIC, 2)
            tail = file.read()
            summary, _, crc = struct.unpack_from('<QQI', tail, RECORD.size)
            whole = position == size - FOOTER_AND_MAGIC and tail.endswith(MAGIC) and 0 < summary < position
            return chunks if whole and _summary_fits(file, summary, position, crc) else None
        if code == CHUNK:
            chunks.append(position)
        position += RECORD.size + length
    return None


def _summary_fits(file, summary, footer, crc):
    """Whether the checksum of the summary, in the footer, is right; 0: there is none."""
    size = footer + RECORD.size + 16 - summary      # it covers the footer up to itself
    if not crc:
        return True
    if size > MAX_RECORD:
        return False
    file.seek(summary)
    return zlib.crc32(file.read(size)) == crc


def profile(file):
    """Profile that an open MCAP file was written with, such as 'ros2'; BagError where it is none."""
    file.seek(0)
    head = BytesIO(file.read(4096))
    if head.read(len(MAGIC)) != MAGIC:
        raise BagError(f"'{file.name}' is no MCAP file")
    code, _ = RECORD.unpack(head.read(RECORD.size).ljust(RECORD.size, b'\0'))
    length, = struct.unpack('<I', head.read(4).ljust(4, b'\0'))
    return head.read(min(length, 64)).decode('utf-8', 'replace') if code == HEADER else ''
