"""The index of an MCAP file: by rosbags where it is whole, by following the records from the start where it is not."""

from ...model.errors import shorten
from .mcap_chunks import Damage, chunk_span, is_whole, profile
from .mcap_recovery import MAX_SCHEMA, READABLE, UNREADABLE, Channel, McapIndex, scan
from .recording import BagError

EMPTY_PROFILE = ('', 'ros2')
DIALECTS = {'MSG': 'ros2msg', 'IDL': 'ros2idl'}


def mcap_index(file):
    """The `McapIndex` of an open MCAP file; BagError where it is none, or not of ROS 2."""
    written = profile(file)
    if written not in EMPTY_PROFILE:
        raise BagError(f"'{file.name}' has messages of profile '{shorten(written)}'; expected 'ros2'")
    chunks = is_whole(file)
    index = _by_rosbags(file, chunks) if chunks is not None else None
    return index or scan(file)


def _by_rosbags(file, chunks):
    """The index as it stands in the file, None where it does not fit the file."""
    from rosbags.rosbag2 import Reader

    try:
        with Reader(file.name) as reader:
            storage = reader.storage
            listed = {chunk.chunk_start_offset: chunk for chunk in storage.chunks}
            if sorted(listed) != chunks or not storage.statistics or not storage.schemas:
                return None
            channels = {one.id: Channel(one.topic, one.msgtype, one.msgdef.data[:MAX_SCHEMA],
                                        DIALECTS.get(one.msgdef.format.name, '')
                                        if one.ext.serialization_format in READABLE else UNREADABLE)
                        for one in reader.connections}
            counts = {offset: dict(listed[offset].channel_count) for offset in chunks}
            lengths = {offset: listed[offset].chunk_length - 9 for offset in chunks}
            total, times = storage.statistics.message_count, storage.statistics.channel_message_counts
    # whatever rosbags makes of a damaged index: the records themselves are the witness
    except Exception:
        return None
    try:
        spans = tuple(chunk_span(file, offset, lengths[offset], counts[offset]) for offset in chunks)
    except Damage:
        return None
    known = sum(sum(span.counts.values()) for span in spans)
    if known != total or sum(times.values()) != total or not all(
            channel in channels and count >= 0 for span in spans for channel, count in span.counts.items()):
        return None
    return McapIndex(channels, spans, None)
