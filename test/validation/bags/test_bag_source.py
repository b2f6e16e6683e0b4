"""Bags as streams: every format gives back what was written, in bounded memory, and nothing leaves the folder."""

import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from support.bags import bag_cases as cases
from support.bags.recorded_motion import crane, oil

from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing import mutations as making
from psdyn_ros.tools.fuzzing.mutated_bags import peak_memory
from psdyn_ros.tools.fuzzing.verdict import true_messages
from psdyn_ros.validation.bags.bulk_decoder import ARRAY, FIELDS, JOINT_STATE, PRESSURE, TRAJECTORY, Decoder, type_store
from psdyn_ros.validation.bags.files import METADATA
from psdyn_ros.validation.bags.mcap_chunks import RECORD, Packet
from psdyn_ros.validation.bags.mcap_index import mcap_index
from psdyn_ros.validation.bags.mcap_recovery import scan
from psdyn_ros.validation.bags.recording import BagError, write_bag
from psdyn_ros.validation.bags.source import open_bag

TOPICS = (making.STATES, making.TELEMETRY)


@pytest.fixture(scope='module')
def messages():
    return true_messages(crane(), oil())


def contents(path):
    with open_bag(path) as source:
        return list(source.messages(TOPICS)), source.lost


def file_compressed(folder, file, storage):
    import zstandard

    folder.mkdir()
    name = f'{file.name}.zstd'
    (folder / name).write_bytes(zstandard.ZstdCompressor().compress(file.read_bytes()))
    making.describe(folder, [name], storage, compression_mode='FILE', compression_format='zstd')
    return folder


def messages_compressed(folder, messages):
    import zstandard

    folder.mkdir()
    packer = zstandard.ZstdCompressor()
    making.write_mcap(folder / 'a.mcap', [(topic, when, packer.compress(data)) for topic, when, data in messages])
    making.describe(folder, ['a.mcap'], compression_mode='MESSAGE', compression_format='zstd')
    return folder


FORMATS = {
    'mcap': lambda path, messages: making.write_mcap(path / 'a.mcap', messages, '') or path / 'a.mcap',
    'mcap zstd': lambda path, messages: making.write_mcap(path / 'a.mcap', messages) or path / 'a.mcap',
    'mcap lz4': lambda path, messages: making.write_mcap(path / 'a.mcap', messages, 'lz4') or path / 'a.mcap',
    'mcap without chunks': lambda path, messages: making.write_mcap(path / 'a.mcap', messages, '', False) or path,
    'mcap by rosbags': lambda path, messages: write_bag(
        path / 'bag', messages, {making.STATES: JOINT_STATE, making.TELEMETRY: ARRAY}) or path / 'bag',
    'mcap, file compressed': lambda path, messages: making.write_mcap(path / 'a.mcap', messages) or file_compressed(
        path / 'bag', path / 'a.mcap', 'mcap'),
    'mcap, messages compressed': lambda path, messages: messages_compressed(path / 'bag', messages),
    'sqlite': lambda path, messages: making.write_sqlite(path / 'bag', messages) or path / 'bag',
    'sqlite, messages compressed': lambda path, messages: making.write_sqlite(
        path / 'bag', messages, True) or path / 'bag',
    'sqlite, file compressed': lambda path, messages: making.write_sqlite(path / 'one', messages) or file_compressed(
        path / 'bag', path / 'one' / 'one.db3', 'sqlite3'),
}


@pytest.mark.parametrize('kind', FORMATS)
def test_every_format_gives_back_what_was_written(tmp_path, messages, kind):
    path = FORMATS[kind](tmp_path, messages)
    read, lost = contents(path)
    assert read == messages
    assert lost is None
    with open_bag(path) as source:
        assert [(topic.name, topic.msgtype, topic.count) for topic in source.topics] == [
            (making.STATES, JOINT_STATE, making.MESSAGES), (making.TELEMETRY, ARRAY, making.MESSAGES)]
        assert source.start_ns == messages[0][1] and abs(source.end_ns - messages[-1][1]) <= 1
        assert len(list(source.messages((making.STATES,)))) == making.MESSAGES
        assert source.progress == 1.0 and source.invalid == ''


def test_rosbags_reads_the_same(tmp_path, messages):
    """The reference reader on the same file."""
    from rosbags.rosbag2 import Reader

    making.write_mcap(tmp_path / 'a.mcap', messages)
    with Reader(tmp_path / 'a.mcap') as reader:
        expected = [(connection.topic, received, bytes(data)) for connection, received, data in reader.messages()]
    assert contents(tmp_path / 'a.mcap')[0] == expected


def test_messages_of_overlapping_chunks_come_in_order(tmp_path, messages, rng):
    shuffled = [messages[k] for k in np.argsort(np.arange(len(messages)) + rng.uniform(0, 25, len(messages)))]
    assert [one[1] for one in shuffled] != [one[1] for one in messages]
    making.write_mcap(tmp_path / 'a.mcap', shuffled)
    assert contents(tmp_path / 'a.mcap')[0] == messages


def test_parts_of_a_folder_without_metadata_follow_by_number(tmp_path, messages):
    step = -(-len(messages) // 12)
    for k in range(12):
        making.write_mcap(tmp_path / f'drive_{k}.mcap', messages[k * step:(k + 1) * step])
    assert contents(tmp_path) == (messages, None)


def test_one_bad_part_costs_that_part_only(tmp_path, messages):
    making.write_mcap(tmp_path / 'drive_0.mcap', messages[:100])
    (tmp_path / 'drive_1.mcap').write_bytes(b'nothing')
    making.write_mcap(tmp_path / 'drive_2.mcap', messages[200:])
    read, lost = contents(tmp_path)
    assert read == messages[:100] + messages[200:]
    assert lost.bytes == 7 and 'drive_1.mcap' in lost.text


def test_the_index_of_a_whole_file_is_what_its_records_say(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages)
    with (tmp_path / 'a.mcap').open('rb') as file:
        by_rosbags, by_records = mcap_index(file), scan(file)
    assert by_rosbags == by_records and len(by_rosbags.spans) > 5


# --- a bag of 10 GiB


def with_hole(data, size):
    """(before, after) an attachment of `size` zeros at the end of the data of an MCAP file."""
    at = next(edge for edge in making.record_edges(data) if data[edge] == 15)
    tail = bytearray(data[at:])
    place = len(tail) - 8 - 20
    summary, offsets, _ = struct.unpack_from('<QQI', tail, place)
    struct.pack_into('<QQI', tail, place, summary + size + RECORD.size, offsets and offsets + size + RECORD.size, 0)
    return data[:at] + RECORD.pack(9, size), bytes(tail)


READ = '''
import sys
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.tools.fuzzing.mutated_bags import peak_memory
with open_bag(sys.argv[1]) as source:
    before = peak_memory()
    count = sum(len(packet) for packet in source.packets([topic.name for topic in source.topics]))
    print(count, source.lost is None, (peak_memory() - before) >> 20, peak_memory() >> 20)
'''


@pytest.mark.long
@pytest.mark.parametrize('cut', [0, 40])
def test_a_sparse_bag_of_10_gib_needs_no_more_memory(tmp_path, messages, cut):
    making.write_mcap(tmp_path / 'small.mcap', messages)
    head, tail = with_hole((tmp_path / 'small.mcap').read_bytes(), 10 << 30)
    path = tmp_path / 'large.mcap'
    with path.open('wb') as file:
        file.write(head)
        file.seek(10 << 30, os.SEEK_CUR)
        file.write(tail[:len(tail) - cut])
    run = subprocess.run([sys.executable, '-c', READ, str(path)], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    count, whole, grown, peak = run.stdout.split()
    assert int(count) == len(messages) and whole == str(cut == 0)
    assert int(grown) < 64 and int(peak) < 400      # MiB


def test_memory_does_not_grow_with_the_bag(tmp_path, messages):
    path = tmp_path / 'long.mcap'
    making.write_mcap(path, [(topic, k * 3 * SECOND + received, data) for k in range(60)
                             for topic, received, data in messages])
    with open_bag(path) as source:
        packets = source.packets(TOPICS)
        for _ in range(20):
            next(packets)
        before = peak_memory()
        assert sum(len(packet) for packet in packets) > 10_000
        assert peak_memory() - before < 4 << 20


# --- what is no bag, or one that attacks


def put(folder, messages, *names, **information):
    making.write_mcap(folder / 'bag.mcap', messages)
    making.describe(folder, names, **information)
    return folder


@pytest.mark.parametrize('name', ['../outside.mcap', '/etc/passwd', '..', 'deeper/../../outside.mcap', 'a/b.mcap'])
def test_metadata_do_not_leave_the_folder(tmp_path, messages, name):
    making.write_mcap(tmp_path / 'outside.mcap', messages)
    (tmp_path / 'bag').mkdir()
    with pytest.raises(BagError, match='leaves the folder'):
        open_bag(put(tmp_path / 'bag', messages, name))


@pytest.mark.parametrize('described', [True, False])
def test_links_do_not_leave_the_folder(tmp_path, messages, described):
    making.write_mcap(tmp_path / 'outside.mcap', messages)
    (tmp_path / 'bag').mkdir()
    (tmp_path / 'bag' / 'bag.mcap').symlink_to(tmp_path / 'outside.mcap')
    if described:
        making.describe(tmp_path / 'bag', ['bag.mcap'])
    with pytest.raises(BagError, match='link out of the folder'):
        open_bag(tmp_path / 'bag')


def test_a_link_within_the_folder_and_the_old_form_of_paths_are_followed(tmp_path, messages):
    folder = tmp_path / 'bag'
    folder.mkdir()
    put(folder, messages, 'bag/link.mcap')
    (folder / 'link.mcap').symlink_to('bag.mcap')
    assert contents(folder)[0] == messages


@pytest.mark.parametrize('text, reason', [
    ('[', 'is not YAML'), ('[' * 100_000, 'more than 100 lists'),
    ('a: 1', 'no rosbag2_bagfile_information'), ('rosbag2_bagfile_information: 3', 'that is a dict'),
    ('rosbag2_bagfile_information: !!python/object/apply:os.getcwd []', 'is not YAML'),
    ('rosbag2_bagfile_information: {storage_identifier: tape}', "storage 'tape'"),
    ('rosbag2_bagfile_information: {storage_identifier: mcap, relative_file_paths: []}', 'names 0 files'),
    ('rosbag2_bagfile_information: {storage_identifier: mcap, relative_file_paths: [3]}', 'expected text'),
    ('rosbag2_bagfile_information: {storage_identifier: mcap, relative_file_paths: [gone.mcap]}', 'does not exist'),
    ('x' * (5 << 20), 'more than'),
])
def test_bad_metadata_are_named(tmp_path, text, reason):
    (tmp_path / METADATA).write_text(text)
    with pytest.raises(BagError, match=reason):
        open_bag(tmp_path)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite'])
def test_an_empty_bag_is_said_to_be_empty(tmp_path, storage):
    if storage == 'mcap':
        making.write_mcap(tmp_path / 'a.mcap', [])
        path = tmp_path / 'a.mcap'
    else:
        path = tmp_path / 'bag'
        making.write_sqlite(path, [])
    with pytest.raises(BagError, match='is empty'):
        open_bag(path)


def test_what_is_no_bag(tmp_path):
    with pytest.raises(BagError, match='does not exist'):
        open_bag(tmp_path / 'none')
    with pytest.raises(BagError, match=r'neither metadata\.yaml nor files'):
        open_bag(tmp_path)
    for name, reason in (('a.mcap', 'is no MCAP file'), ('a.db3', 'is no SQLite bag'), ('a.txt', 'expected .mcap')):
        (tmp_path / name).write_bytes(b'something else')
        with pytest.raises(BagError, match=reason):
            open_bag(tmp_path / name)


def test_a_file_that_grows_without_bound_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr('psdyn_ros.validation.bags.files.MAX_GROWTH', 1 << 20)
    monkeypatch.setattr('psdyn_ros.validation.bags.files.MAX_RATIO', 10)
    (tmp_path / 'bag.mcap.zstd').write_bytes(making.bombs()['zstd'])
    making.describe(tmp_path, ['bag.mcap.zstd'], compression_mode='FILE', compression_format='zstd')
    with pytest.raises(BagError, match='grows beyond'):
        open_bag(tmp_path)


@pytest.mark.parametrize('share, verdict', [(200, False), (20, True)])
def test_absurd_times_are_left_out_and_counted(tmp_path, messages, share, verdict):
    spoilt = [(topic, 7 if k % share == share - 1 else received, data)
              for k, (topic, received, data) in enumerate(messages)]
    making.write_mcap(tmp_path / 'a.mcap', spoilt)
    with open_bag(tmp_path / 'a.mcap') as source:
        assert list(source.messages(TOPICS)) == [one for one in spoilt if one[1] != 7]
        assert source.absurd == len(messages) // share
        assert bool(source.invalid) == verdict
        assert source.start_ns == messages[0][1]


def test_an_unknown_topic_is_answered_with_those_that_are_there(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages)
    with open_bag(tmp_path / 'a.mcap') as source, pytest.raises(BagError, match=f"no topic '/x'.*\n.*{making.STATES}"):
        source.number('/x')


# --- the fast path of decoding is what rosbags makes of the same bytes


def random_messages(msgtype, rng):
    t = cases.TYPES
    for k in range(40):
        ns, n = int(rng.integers(2 ** 60)), int(rng.integers(1, 4))
        names = [f'joint_{i}' for i in rng.permutation(n)]
        arrays = [rng.standard_normal(n) if rng.integers(4) else np.empty(0) for _ in range(4)]
        if k % 7 == 3:
            arrays[0] = np.full(n, np.nan)
        head = cases.header(ns, 'x' * int(rng.integers(3)))
        if msgtype == JOINT_STATE:
            yield t[JOINT_STATE](header=head, name=names, position=arrays[0], velocity=arrays[1], effort=arrays[2])
        elif msgtype == PRESSURE:
            yield t[PRESSURE](header=head, fluid_pressure=float(rng.normal()), variance=float(k % 2))
        elif msgtype == ARRAY:
            layout = t['std_msgs/msg/MultiArrayLayout'](dim=[t['std_msgs/msg/MultiArrayDimension'](
                label=name, size=n, stride=n) for name in names], data_offset=0)
            yield t[ARRAY](layout=layout, data=arrays[0])
        else:
            point = t['trajectory_msgs/msg/JointTrajectoryPoint'](
                positions=arrays[0], velocities=arrays[1], accelerations=arrays[2], effort=arrays[3],
                time_from_start=t['builtin_interfaces/msg/Duration'](sec=0, nanosec=0))
            yield t[TRAJECTORY](header=head, joint_names=names, points=[point])


def packet_of(raw):
    size = np.array([len(one) for one in raw])
    return Packet(b''.join(raw), np.zeros(len(raw), dtype=np.int64), np.arange(len(raw)), np.cumsum(size) - size, size)


@pytest.mark.parametrize('msgtype', FIELDS)
def test_decoding_many_at_once_is_decoding_one_by_one(msgtype, rng):
    made = [message for message in random_messages(msgtype, rng) for _ in range(5)]
    # both orders of bytes, and each layout again and again
    raw = [bytes(type_store().serialize_cdr(message, msgtype, little_endian=k % 11 != 5))
           for k, message in enumerate(made)]
    decoder, seen = Decoder(msgtype), set()
    for rows in decoder.decode(packet_of(raw)):
        for i, k in enumerate(rows.received.tolist()):
            message = type_store().deserialize_cdr(raw[k], msgtype)
            seen.add(k)
            for field, path in FIELDS[msgtype].items():
                value = message
                for step in path:
                    value = value[step] if isinstance(step, int) else getattr(value, step)
                expected = np.atleast_1d(value)
                np.testing.assert_array_equal(rows.values.get(field, np.empty((i + 1, 0)))[i], expected)
            if msgtype == ARRAY:
                assert rows.stamps is None and rows.names == tuple(dim.label for dim in message.layout.dim)
            else:
                stamp = message.header.stamp
                assert rows.stamps[i] == stamp.sec * SECOND + stamp.nanosec
    assert seen == set(range(len(raw))) and decoder.bad == 0


def test_messages_alike_are_decoded_at_once(messages, monkeypatch):
    raw = [data for topic, _, data in messages if topic == making.STATES]
    decoder = Decoder(JOINT_STATE)
    list(decoder.decode(packet_of(raw[:1])))
    monkeypatch.setattr('psdyn_ros.validation.bags.bulk_decoder.alone', None)     # reading one by one would fail
    rows, = decoder.decode(packet_of(raw))
    assert len(rows.received) == len(raw) and decoder.bad == 0


def test_messages_that_contradict_themselves_are_counted():
    good = cases.joint_state(5, 'ab', (1.0, 2.0))
    wrong = [cases.joint_state(5, 'aa', (1.0, 2.0)), cases.joint_state(5, 'ab', (1.0,)), good[:-3], b'',
             good[:9] + b'\xff' * 8]
    decoder = Decoder(JOINT_STATE)
    rows, = decoder.decode(packet_of([*wrong, good]))
    assert decoder.bad == 5 and rows.received.tolist() == [5]


def test_the_temporary_copy_of_a_compressed_bag_is_removed(tmp_path, messages, monkeypatch):
    monkeypatch.setenv('TMPDIR', str(tmp_path / 'scratch'))
    monkeypatch.setattr('tempfile.tempdir', None)
    (tmp_path / 'scratch').mkdir()
    making.write_mcap(tmp_path / 'a.mcap', messages)
    folder = file_compressed(tmp_path / 'bag', tmp_path / 'a.mcap', 'mcap')
    with open_bag(folder) as source:
        assert list((tmp_path / 'scratch').iterdir())
        list(source.packets(TOPICS))
    assert not list((tmp_path / 'scratch').iterdir())
    shutil.rmtree(tmp_path / 'scratch')
