"""Truncated and damaged MCAP files: what is whole is read, what is lost is said, and nothing grows without bound."""

import struct

import numpy as np
import pytest
from support.bags import bag_cases as cases
from support.bags.recorded_motion import crane, oil

from psdyn_ros.tools.fuzzing import mutations as making
from psdyn_ros.tools.fuzzing.verdict import true_messages
from psdyn_ros.validation.bags.mcap_chunks import CHUNK, MAGIC, MESSAGE, RECORD
from psdyn_ros.validation.bags.mcap_recovery import scan
from psdyn_ros.validation.bags.recording import BagError
from psdyn_ros.validation.bags.source import open_bag

TOPICS = (making.STATES, making.TELEMETRY)
KINDS = {'zstd': ('zstd', True), 'lz4': ('lz4', True), 'plain': ('', True), 'unchunked': ('', False)}


@pytest.fixture(scope='module')
def messages():
    return true_messages(crane(), oil())


@pytest.fixture(params=KINDS)
def written(request, tmp_path, messages):
    compression, chunked = KINDS[request.param]
    making.write_mcap(tmp_path / 'whole.mcap', messages, compression, chunked)
    return (tmp_path / 'whole.mcap').read_bytes()


def read(path):
    with open_bag(path) as source:
        topics = [topic.name for topic in source.topics if topic.name in TOPICS]
        return list(source.messages(topics)), source.lost


def records(data):
    """(offset, code, end) of the records of an MCAP file."""
    edges = making.record_edges(data)
    return [(first, data[first], last) for first, last in zip(edges[:-1], edges[1:])]


@pytest.mark.long
def test_truncated_at_every_edge(tmp_path, messages, written):
    """Before, at and after the end of every record: all messages of the records that are whole, in order."""
    path, edges = tmp_path / 'cut.mcap', making.record_edges(written)
    full = {}       # edge -> messages before it
    with (tmp_path / 'whole.mcap').open('rb') as file:
        spans = scan(file).spans
    for edge in edges:
        full[edge] = sum(sum(span.counts.values()) for span in spans
                         if span.compression is not None and span.first + span.size <= edge)
        full[edge] += sum(code == 5 and last <= edge for _, code, last in records(written))
    for k, edge in enumerate(edges[::3] if len(edges) > 200 else edges):
        for by in (-1, 0, 1):
            path.write_bytes(written[:edge + by])
            whole = max((count for at, count in full.items() if at <= edge + by), default=0)
            if not whole:
                with pytest.raises(BagError):
                    read(path)
                continue
            got, lost = read(path)
            assert got == messages[:whole], (k, by)
            if edge + by >= len(written):
                assert lost is None
            else:
                assert lost.text and 0 <= lost.bytes <= edge + by


def test_what_is_lost_is_said(tmp_path, messages, written):
    """Half of the file, with metadata that say how many messages there were."""
    (tmp_path / 'bag').mkdir()
    (tmp_path / 'bag' / 'bag.mcap').write_bytes(written[:len(written) // 2])
    making.describe(tmp_path / 'bag', ['bag.mcap'])
    got, lost = read(tmp_path / 'bag')
    assert 0.2 * len(messages) < len(got) < 0.8 * len(messages) and got == messages[:len(got)]
    assert lost.messages == len(messages) - len(got)
    assert 0 <= lost.bytes < 20_000
    assert f'of {len(written) // 2} bytes' in lost.text and 'the end of the file' in lost.text


def test_whole_messages_that_were_cut_out_are_told(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages, '', chunked=False)
    data = (tmp_path / 'a.mcap').read_bytes()
    first, _, last = [record for record in records(data) if record[1] == MESSAGE][100]
    (tmp_path / 'a.mcap').write_bytes(data[:first] + data[last:])
    got, lost = read(tmp_path / 'a.mcap')
    assert got == messages[:100] + messages[101:]
    assert f'{len(messages)} messages were written, and {len(messages) - 1} are there' in lost.text


@pytest.mark.parametrize('compression', ['zstd', 'lz4', ''])
@pytest.mark.parametrize('indexed', [True, False])
def test_a_damaged_chunk_costs_that_chunk_only(tmp_path, messages, compression, indexed):
    making.write_mcap(tmp_path / 'a.mcap', messages, compression)
    data = bytearray((tmp_path / 'a.mcap').read_bytes())
    chunks = [(first, last) for first, code, last in records(bytes(data)) if code == CHUNK]
    first, last = chunks[2]
    data[(first + last) // 2] ^= 4
    (tmp_path / 'a.mcap').write_bytes(data if indexed else data[:-30])
    got, lost = read(tmp_path / 'a.mcap')
    missing = len(messages) - len(got)
    assert 10 < missing < 100
    at = next(k for k, pair in enumerate(zip(got, messages)) if pair[0] != pair[1])
    assert got == messages[:at] + messages[at + missing:]
    assert last - first - 100 < lost.bytes < last - first + 100 and 'chunk' in lost.text
    if indexed:
        assert lost.messages == missing


@pytest.mark.parametrize('size', [0, 1, 2 ** 31, 2 ** 63, 2 ** 64 - 1])
def test_an_index_that_lies_is_not_believed(tmp_path, messages, size):
    making.write_mcap(tmp_path / 'a.mcap', messages)
    data = bytearray((tmp_path / 'a.mcap').read_bytes())
    indexes = [first for first, code, _ in records(bytes(data)) if code == 8]
    struct.pack_into('<Q', data, indexes[1] + RECORD.size + 16, size)     # where the chunk is said to begin
    (tmp_path / 'a.mcap').write_bytes(data)
    assert read(tmp_path / 'a.mcap') == (messages, None)


def test_a_file_without_an_index_lacks_nothing(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages)
    data = bytearray((tmp_path / 'a.mcap').read_bytes())
    end = next(first for first, code, _ in records(bytes(data)) if code == 15)
    footer = RECORD.pack(2, 20) + bytes(20) + MAGIC
    (tmp_path / 'a.mcap').write_bytes(data[:end] + RECORD.pack(15, 4) + bytes(4) + footer)
    assert read(tmp_path / 'a.mcap') == (messages, None)


def chunk_of(packed, name, declared):
    head = struct.pack('<QQQII', making.BEGIN, making.BEGIN, declared, 0, len(name)) + name.encode()
    return RECORD.pack(CHUNK, len(head) + 8 + len(packed)) + head + struct.pack('<Q', len(packed)) + packed


@pytest.mark.parametrize('name', ['zstd', 'lz4'])
@pytest.mark.parametrize('declared, reason', [(making.BOMB, 'at most'), (1000, '')])
def test_bombs_do_not_go_off(tmp_path, messages, name, declared, reason):
    """In front of honest chunks, which are read."""
    import tracemalloc

    making.write_mcap(tmp_path / 'a.mcap', messages)
    data = (tmp_path / 'a.mcap').read_bytes()
    after_header = making.record_edges(data)[1]
    bomb = chunk_of(making.bombs()[name], name, declared)
    (tmp_path / 'a.mcap').write_bytes(data[:after_header] + bomb + data[after_header:])
    tracemalloc.start()
    try:
        got, lost = read(tmp_path / 'a.mcap')
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert got == messages
    assert '1 of its chunks' in lost.text and reason in lost.text


def test_a_record_beyond_the_limit_ends_what_can_be_followed(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages, '', False)
    data = (tmp_path / 'a.mcap').read_bytes()
    middle = making.record_edges(data)[200]
    (tmp_path / 'a.mcap').write_bytes(data[:middle] + RECORD.pack(5, 65 << 20) + data[middle:])
    got, lost = read(tmp_path / 'a.mcap')
    assert got == messages[:len(got)] and len(got) > 100
    assert 'exceeds limit' in lost.text and abs(lost.bytes - (len(data) + RECORD.size - middle)) < 100


def test_of_a_file_of_another_profile_nothing_is_read(tmp_path, messages):
    making.write_mcap(tmp_path / 'a.mcap', messages)
    data = (tmp_path / 'a.mcap').read_bytes()
    (tmp_path / 'a.mcap').write_bytes(data.replace(b'ros2\x00', b'ros1\x00', 1))
    with pytest.raises(BagError, match="profile 'ros1'"):
        read(tmp_path / 'a.mcap')


def test_a_damaged_database_gives_what_comes_before_the_damage(tmp_path):
    long = [(making.TELEMETRY, making.BEGIN + k, cases.labelled(np.full(3000, k), 'abc', 1000 * ['x']))
            for k in range(40)]
    making.write_sqlite(tmp_path / 'bag', long)
    data = bytearray((tmp_path / 'bag' / 'bag.db3').read_bytes())
    page = 4096 * (data.index(np.full(100, 25.0).tobytes()) // 4096 + 2)
    data[page:page + 4096] = b'\xff' * 4096
    (tmp_path / 'bag' / 'bag.db3').write_bytes(data)
    got, lost = read(tmp_path / 'bag')
    assert got == long[:25]
    assert 'is damaged' in lost.text and lost.messages == 15


def test_a_database_whose_tables_are_damaged_is_refused(tmp_path, messages):
    making.write_sqlite(tmp_path / 'bag', messages)
    data = bytearray((tmp_path / 'bag' / 'bag.db3').read_bytes())
    page = 4096 * (len(data) // 4096 // 2)
    data[page:page + 4096] = b'\xff' * 4096
    (tmp_path / 'bag' / 'bag.db3').write_bytes(data)
    with pytest.raises(BagError, match='is no SQLite bag'):
        read(tmp_path / 'bag')
