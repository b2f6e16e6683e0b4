"""Bags written many messages at a time: those of a topic have the same layout, and only their numbers differ.

A message is serialised once with numbers that no other bytes look like; where these are, the numbers of a message go.
Of many instants the records are then rows of one array of bytes, which is ten times faster than message by message.
MCAP as in its specification: chunks with their index, a summary, and rosbag2's metadata.yaml beside it.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

from ...model.units import SECOND
from .bulk_decoder import type_store
from .files import METADATA
from .mcap_chunks import CHANNEL, CHUNK, CHUNK_HEAD, FOOTER, HEADER, MAGIC, MESSAGE, MESSAGE_HEAD, RECORD, SCHEMA

ENCAPSULATION = 4           # bytes before the first field of a serialised message
MESSAGE_INDEX, CHUNK_INDEX, STATISTICS, SUMMARY_OFFSET, DATA_END = 7, 8, 11, 14, 15
CHUNK_SIZE = 1 << 20        # bytes of messages, about
LEVEL = 1                   # of zstd: noise of sensors does not get smaller by trying harder
STEM = 'recording'


class Template:
    """Messages of a topic.

    make     function of arrays of float64 that returns the message, of the types of `type_store`
    sizes    of the arrays
    stamped  whether it begins with a header, whose stamp is the time of the message
    """

    def __init__(self, make, sizes, stamped=True):
        marks = [np.full(size, 1.0 + np.pi * 1e100 * (k + 1)) for k, size in enumerate(sizes)]
        message = make(*marks)
        self.msgtype, self.stamped = message.__msgtype__, stamped
        data = bytes(type_store().serialize_cdr(message, self.msgtype))
        self._places = [data.index(mark.tobytes()) if mark.size else 0 for mark in marks]
        self._data = np.frombuffer(data, dtype=np.uint8)

    def records(self, channel, ns, arrays):
        """Records (n, bytes) of MCAP messages at (n,) ns, with arrays (n, size) each."""
        head = np.zeros(len(ns), dtype=MESSAGE_HEAD)
        head['channel'], head['logged'], head['published'] = channel, ns, ns
        before = RECORD.size + MESSAGE_HEAD.itemsize
        out = np.empty((len(ns), before + self._data.size), dtype=np.uint8)
        out[:, :RECORD.size] = np.frombuffer(RECORD.pack(MESSAGE, out.shape[1] - RECORD.size), dtype=np.uint8)
        out[:, RECORD.size:before] = head.view(np.uint8).reshape(len(ns), -1)
        out[:, before:] = self._data
        if self.stamped:
            stamp = np.column_stack((ns // SECOND, ns % SECOND)).astype('<u4')
            first = before + ENCAPSULATION
            out[:, first:first + 8] = stamp.view(np.uint8)
        for place, array in zip(self._places, arrays, strict=True):
            array = np.ascontiguousarray(array, dtype='<f8')
            first = before + place
            out[:, first:first + 8 * array.shape[1]] = array.view(np.uint8)
        return out


class RowBag:
    """Writes an MCAP bag into the folder `path`, in place of the last one there; to be used in a `with` statement.

    topics    {topic: `Template`}
    compress  whether chunks are compressed
    count     messages so far
    """

    def __init__(self, path, topics, compress=True):
        self.path, self.count = Path(path), 0
        self._topics = dict(topics)
        self._compress = compress
        self._file, self._chunks = None, []
        self._counts = dict.fromkeys(self._topics, 0)
        self._first, self._last = None, 0

    def __enter__(self):
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / METADATA).unlink(missing_ok=True)
        self._file = (self.path / f'{STEM}.mcap').open('wb')
        self._file.write(MAGIC + _record(HEADER, _text('ros2') + _text('psdyn_ros')))
        self._file.write(self._declared())
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()
        if kind is not None:
            (self.path / f'{STEM}.mcap').unlink()

    def write(self, ns, values):
        """Write messages of all topics at (n,) ns, later than all before: {topic: arrays (n, size)}."""
        ns = np.asarray(ns, dtype=np.int64)
        records = [template.records(number, ns, values[topic])
                   for number, (topic, template) in enumerate(self._topics.items(), 1)]
        widths = [record.shape[1] for record in records]
        rows = max(CHUNK_SIZE // sum(widths), 1)
        together = np.concatenate(records, axis=1)
        for first in range(0, len(ns), rows):
            self._write_chunk(ns[first:first + rows], together[first:first + rows], widths)

    def _write_chunk(self, ns, rows, widths):
        data = rows.tobytes()
        packed, compression = data, ''
        if self._compress:
            import zstandard
            packed, compression = zstandard.ZstdCompressor(level=LEVEL).compress(data), 'zstd'
        begin, end = int(ns[0]), int(ns[-1])
        name = compression.encode()
        body = CHUNK_HEAD.pack(begin, end, len(data), zlib.crc32(data), len(name)) + name
        place = self._file.tell()
        self._file.write(RECORD.pack(CHUNK, len(body) + 8 + len(packed)) + body + struct.pack('<Q', len(packed)))
        self._file.write(packed)
        after = self._file.tell()
        offsets, within = [], 0
        starts = np.arange(len(ns), dtype=np.uint64) * np.uint64(rows.shape[1])
        for number, (topic, width) in enumerate(zip(self._topics, widths), 1):
            offsets.append((number, self._file.tell()))
            index = np.column_stack((ns.astype('<u8'), starts + np.uint64(within))).astype('<u8').tobytes()
            self._file.write(_record(MESSAGE_INDEX, struct.pack('<HI', number, len(index)) + index))
            self._counts[topic] += len(ns)
            within += width
        listed = b''.join(struct.pack('<HQ', *one) for one in offsets)
        self._chunks.append(_record(CHUNK_INDEX, (
            struct.pack('<QQQQI', begin, end, place, after - place, len(listed)) + listed
            + struct.pack('<Q', self._file.tell() - after) + _text(compression)
            + struct.pack('<QQ', len(packed), len(data)))))
        self.count += len(ns) * len(widths)
        self._first = begin if self._first is None else self._first
        self._last = end

    def _declared(self):
        """Records of schemas and channels."""
        kinds = list(dict.fromkeys(template.msgtype for template in self._topics.values()))
        out = b''
        for number, kind in enumerate(kinds, 1):
            text = type_store().generate_msgdef(kind, ros_version=2)[0]
            out += _record(SCHEMA, struct.pack('<H', number) + _text(kind) + _text('ros2msg') + _text(text))
        quality = _text('offered_qos_profiles') + _text('')
        for number, (topic, template) in enumerate(self._topics.items(), 1):
            out += _record(CHANNEL, (struct.pack('<HH', number, 1 + kinds.index(template.msgtype)) + _text(topic)
                                     + _text('cdr') + struct.pack('<I', len(quality)) + quality))
        return out

    def _finish(self):
        """Write the summary and metadata.yaml."""
        file, first = self._file, self._first or 0
        file.write(_record(DATA_END, struct.pack('<I', 0)))
        declared, start = self._declared(), file.tell()
        file.write(declared)
        index = file.tell()
        file.write(b''.join(self._chunks))
        statistics = file.tell()
        kinds = len({template.msgtype for template in self._topics.values()})
        counts = b''.join(struct.pack('<HQ', number, count) for number, count in enumerate(self._counts.values(), 1))
        file.write(_record(STATISTICS, struct.pack('<QHIIIIQQI', self.count, kinds, len(self._topics), 0, 0,
                                                   len(self._chunks), first, self._last, len(counts)) + counts))
        offsets = file.tell()
        for code, begin, end in ((CHUNK_INDEX, index, statistics), (STATISTICS, statistics, offsets)):
            if end > begin:
                file.write(_record(SUMMARY_OFFSET, struct.pack('<BQQ', code, begin, end - begin)))
        file.write(_record(FOOTER, struct.pack('<QQI', start, offsets, 0)) + MAGIC)
        (self.path / METADATA).write_text(self._metadata(first), encoding='utf-8')

    def _metadata(self, first):
        name = f'{STEM}.mcap'
        lines = ['rosbag2_bagfile_information:', '  version: 9', '  storage_identifier: mcap',
                 f'  duration: {{nanoseconds: {self._last - first}}}',
                 f'  starting_time: {{nanoseconds_since_epoch: {first}}}', f'  message_count: {self.count}',
                 '  topics_with_message_count:']
        for topic, template in self._topics.items():
            lines += ['    - topic_metadata:', f'        name: {topic}', f'        type: {template.msgtype}',
                      '        serialization_format: cdr', '        offered_qos_profiles: []',
                      f'        type_description_hash: {type_store().hash_rihs01(template.msgtype)}',
                      f'      message_count: {self._counts[topic]}']
        lines += ["  compression_format: ''", "  compression_mode: ''", '  relative_file_paths:', f'    - {name}',
                  '  files:', f'    - path: {name}', f'      starting_time: {{nanoseconds_since_epoch: {first}}}',
                  f'      duration: {{nanoseconds: {self._last - first}}}', f'      message_count: {self.count}',
                  '  custom_data: null', '  ros_distro: psdyn_ros']
        return '\n'.join(lines) + '\n'


def joint_states(names):
    """A `Template` of sensor_msgs/msg/JointState with position, velocity and effort of joints."""
    types = type_store().types

    def make(position, velocity, effort):
        return types['sensor_msgs/msg/JointState'](header=_header(types), name=list(names), position=position,
                                                   velocity=velocity, effort=effort)
    return Template(make, (len(names),) * 3)


def accelerations(names):
    """A `Template` of trajectory_msgs/msg/JointTrajectory of one point with accelerations."""
    types, nothing = type_store().types, np.zeros(0)

    def make(acceleration):
        point = types['trajectory_msgs/msg/JointTrajectoryPoint'](
            positions=nothing, velocities=nothing, accelerations=acceleration, effort=nothing,
            time_from_start=types['builtin_interfaces/msg/Duration'](sec=0, nanosec=0))
        return types['trajectory_msgs/msg/JointTrajectory'](header=_header(types), joint_names=list(names),
                                                            points=[point])
    return Template(make, (len(names),))


def labelled_array(rows, columns):
    """A `Template` of std_msgs/msg/Float64MultiArray of things x quantities, with their labels."""
    types, count = type_store().types, len(rows) * len(columns)
    dimension = types['std_msgs/msg/MultiArrayDimension']

    def make(data):
        layout = types['std_msgs/msg/MultiArrayLayout'](data_offset=0, dim=[
            dimension(label=','.join(rows), size=len(rows), stride=count),
            dimension(label=','.join(columns), size=len(columns), stride=len(columns))])
        return types['std_msgs/msg/Float64MultiArray'](layout=layout, data=data)
    return Template(make, (count,), stamped=False)


def _header(types):
    return types['std_msgs/msg/Header'](stamp=types['builtin_interfaces/msg/Time'](sec=0, nanosec=0), frame_id='')


def _record(code, body):
    return RECORD.pack(code, len(body)) + body


def _text(text):
    data = text.encode()
    return struct.pack('<I', len(data)) + data
