"""Bags as they should not be: small honest ones, and everything that may be wrong with them."""

import os
import shutil
import sqlite3
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ...model.units import SECOND
from ...validation.bags.bulk_decoder import ARRAY, JOINT_STATE, type_store
from ...validation.bags.files import METADATA
from ...validation.bags.mcap_chunks import CHUNK, FOOTER, MAGIC, RECORD

STATES, TELEMETRY = '/joint_states', '/simulator/hydraulic_telemetry'
MESSAGES = 250              # on each topic of an honest bag
BEGIN = 1_700_000_000 * SECOND
CHUNK_SIZE = 16_384         # bytes
QUANTITIES = ('pressure_a', 'pressure_b', 'stamp')
BOMB = 300 << 20            # bytes


@dataclass(frozen=True)
class Mutation:
    """A bag that is not as it should be.

    kind        what was done to it
    path        folder
    never_pass  whether nobody may call it good and whole
    sealed      whether checksums, made before the mutation, cover all its messages
    """

    kind: str
    path: Path
    never_pass: bool
    sealed: bool


@cache
def _definition(kind):
    return type_store().generate_msgdef(kind, ros_version=2)[0].encode()


def write_mcap(path, messages, compression='zstd', chunked=True, kinds=None, schemas=None):
    """Write messages into an MCAP file with small chunks; kinds {topic: type}, schemas {type: text} replace others."""
    from mcap.writer import CompressionType, Writer

    kinds = {STATES: JOINT_STATE, TELEMETRY: ARRAY, **(kinds or {})}
    with path.open('wb') as file:
        writer = Writer(file, chunk_size=CHUNK_SIZE, use_chunking=chunked, compression={
            'zstd': CompressionType.ZSTD, 'lz4': CompressionType.LZ4, '': CompressionType.NONE}[compression])
        writer.start(profile='ros2', library='')
        channels = {}
        for topic, received, data in messages:
            if topic not in channels:
                kind = kinds.get(topic, JOINT_STATE)
                text = (schemas or {}).get(kind)
                schema = writer.register_schema(kind, 'ros2msg', _definition(kind) if text is None else text)
                channels[topic] = writer.register_channel(topic, 'cdr', schema)
            writer.add_message(channels[topic], received, data, received)
        writer.finish()


def write_sqlite(folder, messages, each=False):
    """Write messages into a bag with an SQLite file, each compressed or not."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    writer = Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3)
    if each:
        writer.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
    with writer:
        channels = {topic: writer.add_connection(topic, kind, typestore=type_store())
                    for topic, kind in ((STATES, JOINT_STATE), (TELEMETRY, ARRAY))}
        for topic, received, data in messages:
            writer.write(channels[topic], received, data)


def describe(folder, files, storage='mcap', **information):
    """Write metadata that name files."""
    lines = ['rosbag2_bagfile_information:', '  version: 9', f'  storage_identifier: {storage}',
             '  relative_file_paths:', *(f'    - {file}' for file in files)]
    lines += [f'  {key}: {value}' for key, value in {'message_count': 2 * MESSAGES, **information}.items()]
    (folder / METADATA).write_text('\n'.join(lines) + '\n')


class Mutator:
    """Makes mutated bags in a folder, one after another; the same seed gives the same ones.

    messages  [(topic, ns received, serialised message)] on STATES and TELEMETRY, of the honest bags
    """

    def __init__(self, folder, messages, seed):
        self._folder, self._rng, self._messages = Path(folder), np.random.default_rng(seed), list(messages)
        self.seeds = self._make_seeds()
        self._edges = [(name, offset + by) for name, file in self.seeds.items() if name != 'sqlite'
                       for offset in record_edges(file.read_bytes()) for by in (-1, 0, 1)]
        self._next_edge = 0
        self._kinds = [self.cut_at_an_edge, self.cut, self.flipped_bits, self.overwritten, self.absurd_stamps,
                       self.wrong_schema, self.wrong_lengths, self.bomb, self.metadata, self.link,
                       self.messages_that_lie, self.flipped_bits_in_sqlite, self.cut_sqlite, self.removed_bytes]

    def _make_seeds(self):
        seeds = self._folder / 'seeds'
        seeds.mkdir(parents=True)
        for name, options in (('zstd', {}), ('lz4', {'compression': 'lz4'}), ('plain', {'compression': ''}),
                              ('unchunked', {'compression': '', 'chunked': False})):
            write_mcap(seeds / f'{name}.mcap', self._messages, **options)
        write_sqlite(seeds / 'sqlite', self._messages)
        names = 'zstd', 'lz4', 'plain', 'unchunked'
        return {**{name: seeds / f'{name}.mcap' for name in names}, 'sqlite': seeds / 'sqlite' / 'sqlite.db3'}

    def kind(self, number):
        """What is done to the bag of this number."""
        return self._kinds[number % len(self._kinds)].__name__

    def make(self, number):
        """Return the `Mutation` of this number; that of the one before is removed."""
        folder = self._folder / 'bag'
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        kind, self._sealed = self._kinds[number % len(self._kinds)], False
        never_pass = bool(kind(folder))
        return Mutation(kind.__name__, folder, never_pass, self._sealed)

    def _one_of(self, *choices):
        return choices[int(self._rng.integers(len(choices)))]

    def _pick(self):
        return self._seed(self._one_of('zstd', 'lz4', 'plain', 'unchunked'))

    def _seed(self, name):
        # the checksums of MCAP are those of chunks
        self._sealed = name in ('zstd', 'lz4', 'plain')
        return bytearray(self.seeds[name].read_bytes())

    def _put(self, folder, data, name='bag.mcap', described=None):
        (folder / name).write_bytes(data)
        if self._rng.integers(2) if described is None else described:
            describe(folder, [name])

    def cut_at_an_edge(self, folder):
        """A file that ends where a record begins or ends, a byte before or after."""
        name, length = self._edges[self._next_edge % len(self._edges)]
        self._next_edge += 1
        data = self._seed(name)
        self._put(folder, data[:length])
        return length < data_end(data)

    def cut(self, folder):
        """A file that ends anywhere."""
        data = self._pick()
        length = int(self._rng.integers(len(data)))
        self._put(folder, data[:length])
        return length < data_end(data)

    def flipped_bits(self, folder):
        """A file with 1 to 64 bits turned."""
        data = self._pick()
        _flip(data, self._rng)
        self._put(folder, data)

    def overwritten(self, folder):
        """A file with a stretch of noise."""
        data = self._pick()
        size = int(2 ** self._rng.uniform(3, 12))
        at = int(self._rng.integers(max(len(data) - size, 1)))
        data[at:at + size] = self._rng.bytes(size)
        self._put(folder, data)

    def removed_bytes(self, folder):
        """A file that lacks some bytes in its middle."""
        data = self._pick()
        at, size = int(self._rng.integers(len(data))), int(2 ** self._rng.uniform(0, 12))
        del data[at:at + size]
        self._put(folder, data)

    def absurd_stamps(self, folder):
        """Messages received at, or stamped with, times that cannot be."""
        share = self._one_of(0.005, 0.05, 0.5)
        messages, absurd = [], 0
        for topic, received, data in self._messages:
            if self._rng.random() < share:
                absurd += 1
                at = self._one_of(0, 1, 2 ** 62, 2 ** 64 - 1, BEGIN - 400 * 86_400 * SECOND)
                if self._rng.integers(2) or topic != STATES:
                    received = at
                else:
                    data = data[:4] + struct.pack('<II', *self._rng.integers(0, 2 ** 32, 2).tolist()) + data[12:]
            messages.append((topic, received, data))
        write_mcap(folder / 'bag.mcap', messages)
        # of half of them nothing says which half is right
        return 0.02 * len(messages) < absurd < 0.2 * len(messages)

    def wrong_schema(self, folder):
        """Definitions of messages that are not those of their types, or types that are not those of their topics."""
        which = int(self._rng.integers(5))
        kinds, schemas = {}, {}
        if which == 0:
            kinds = {STATES: ARRAY, TELEMETRY: JOINT_STATE}
        elif which == 1:
            text = _definition(JOINT_STATE)
            schemas = {JOINT_STATE: text.replace(b'float64', b'float32', 1), ARRAY: text}
        elif which == 2:
            schemas = {JOINT_STATE: self._rng.bytes(200), ARRAY: b'a' * 100_000}
        elif which == 3:
            kinds = {STATES: 'no_msgs/msg/Such', TELEMETRY: '../../etc/passwd'}
            schemas = dict.fromkeys(kinds.values(), b'float64 x\n')
        else:
            schemas = {JOINT_STATE: b'JointState deeper\n' * 50}
        write_mcap(folder / 'bag.mcap', self._messages, kinds=kinds, schemas=schemas)
        return True

    def wrong_lengths(self, folder):
        """Records that say they are longer or shorter than they are, with checksums that fit or none."""
        data = self._pick()
        edges = record_edges(bytes(data))[:-1]
        for _ in range(int(self._rng.integers(1, 4))):
            at = int(self._rng.choice(edges))
            length = self._one_of(0, 1, 2 ** 16, 2 ** 31, 2 ** 40, 2 ** 63, 2 ** 64 - 1)
            place = at + 1 if self._rng.integers(2) else at + int(self._rng.integers(9, 40))
            if place + 8 <= len(data):
                struct.pack_into('<Q', data, place, length)
        self._put(folder, data)

    def bomb(self, folder):
        """Chunks and files that decompress to far more than they have."""
        which = int(self._rng.integers(6))
        if which < 4:
            packed, declared = bombs()[('zstd', 'lz4')[which % 2]], (BOMB, 1000)[which // 2]
            data = MAGIC + _record(1, struct.pack('<I', 4) + b'ros2' + struct.pack('<I', 0))
            name = ('zstd', 'lz4')[which % 2].encode()
            chunk = struct.pack('<QQQII', BEGIN, BEGIN, declared, 0, len(name)) + name
            data += _record(CHUNK, chunk + struct.pack('<Q', len(packed)) + packed)
            self._put(folder, data)
        elif which == 4:
            (folder / 'bag.mcap.zstd').write_bytes(bombs()['zstd'])
            describe(folder, ['bag.mcap.zstd'], compression_mode='FILE', compression_format='zstd')
        else:
            write_sqlite(folder / 'bag', self._messages[:20])
            database = sqlite3.connect(folder / 'bag' / 'bag.db3')
            database.execute('UPDATE messages SET data = ?', (bombs()['zstd'],))
            database.commit()
            database.close()
            shutil.move(folder / 'bag' / 'bag.db3', folder / 'bag.db3')
            shutil.rmtree(folder / 'bag')
            describe(folder, ['bag.db3'], 'sqlite3', compression_mode='MESSAGE', compression_format='zstd')
        return True

    def metadata(self, folder):
        """Metadata that lie, leave the folder, or are none."""
        shutil.copy(self.seeds['zstd'], folder / 'bag.mcap')
        outside = self.seeds['plain']
        relative = os.path.relpath(outside, folder)
        texts = (relative, str(outside), '../bag/bag.mcap', '..', '.', '""', '/dev/zero', '/etc/passwd', '[1, 2]',
                 '!!python/object/apply:os.system ["true"]', 'bag.mcap?mode=rw', '"\\0"', 'bag.mcap\n    - gone.mcap')
        which = int(self._rng.integers(len(texts) + 5))
        if which < len(texts):
            describe(folder, [texts[which]])
        else:
            noise = (b'', self._rng.bytes(500), b'[' * 5000, _laughs(), b'rosbag2_bagfile_information: 3\n')
            (folder / METADATA).write_bytes(noise[which - len(texts)])
        return True

    def link(self, folder):
        """Files that are links out of the folder, to themselves, or to folders and devices."""
        target = self._one_of(self.seeds['plain'], 'bag.mcap', '/', '/dev/zero', '/etc/passwd')
        (folder / 'bag.mcap').symlink_to(target)
        if self._rng.integers(2):
            describe(folder, ['bag.mcap'])
        return True

    def messages_that_lie(self, folder):
        """Serialised messages that are not what they should be; chunks and checksums are right."""
        share, messages = self._one_of(0.005, 0.05, 1.0), []
        for topic, received, data in self._messages:
            if self._rng.random() < share:
                data = self._lie(bytearray(data))
            messages.append((topic, received, bytes(data)))
        write_mcap(folder / 'bag.mcap', messages, compression=self._one_of('zstd', ''))

    def _lie(self, data):
        which = int(self._rng.integers(6))
        if which == 0:
            return data[:int(self._rng.integers(len(data)))]
        if which == 1:
            _flip(data, self._rng)
        elif which == 2:
            struct.pack_into('<I', data, 4 * int(self._rng.integers(1, len(data) // 4)), 0xffffffff)
        elif which == 3:
            return bytearray()
        elif which == 4:
            data[1] = 0     # the other order of bytes
        else:
            data[-8:] = struct.pack('<d', self._one_of(np.nan, np.inf, 1e308, -1e308))
        return data

    def flipped_bits_in_sqlite(self, folder):
        """A database with 1 to 64 bits turned."""
        data = bytearray(self.seeds['sqlite'].read_bytes())
        _flip(data, self._rng)
        (folder / 'bag.db3').write_bytes(data)

    def cut_sqlite(self, folder):
        """A database that ends anywhere, or lacks a page."""
        data = bytearray(self.seeds['sqlite'].read_bytes())
        if self._rng.integers(2):
            del data[int(self._rng.integers(len(data))):]
        else:
            page = 4096 * int(self._rng.integers(len(data) // 4096))
            data[page:page + 4096] = bytes(4096)
        (folder / 'bag.db3').write_bytes(data)


def record_edges(data):
    """Offsets in an MCAP file at which records begin, and that at which the last one ends."""
    edges, position = [], len(MAGIC)
    while position + RECORD.size <= len(data):
        edges.append(position)
        code, length = RECORD.unpack_from(data, position)
        position += RECORD.size + length
        if code == FOOTER:
            break
    return [*edges, position]


def data_end(data):
    """Offset in an MCAP file at which its last message, or chunk of messages, ends."""
    end = 0
    edges = record_edges(bytes(data))
    for first, last in zip(edges[:-1], edges[1:]):
        if data[first] in (5, CHUNK):
            end = last
    return end


@cache
def bombs():
    """{'zstd', 'lz4': BOMB zeros compressed}."""
    import lz4.frame
    import zstandard

    piece = bytes(1 << 20)
    zstd, lz4_ = zstandard.ZstdCompressor(level=1).compressobj(), lz4.frame.LZ4FrameCompressor()
    packed = SimpleNamespace(zstd=[], lz4=[lz4_.begin()])
    for _ in range(BOMB >> 20):
        packed.zstd.append(zstd.compress(piece))
        packed.lz4.append(lz4_.compress(piece))
    return {'zstd': b''.join([*packed.zstd, zstd.flush()]), 'lz4': b''.join([*packed.lz4, lz4_.flush()])}


def _record(code, contents):
    return RECORD.pack(code, len(contents)) + contents


def _flip(data, rng):
    for _ in range(int(2 ** rng.uniform(0, 6))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))


def _laughs():
    lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    lines += [f'a{k}: &a{k} [{", ".join([f"*a{k - 1}"] * 10)}]' for k in range(1, 12)]
    return ('\n'.join(lines) + '\nrosbag2_bagfile_information: *a11\n').encode()
