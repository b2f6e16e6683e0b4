"""The motion of a recorded machine as a page that plays it back."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..model.errors import MeasurementError
from ..model.units import SECOND
from ..view import Motion, machine_page, page
from ..view.motion import frames, nearest, signals
from ..view.page import PLAYBACK
from .bags.bulk_decoder import Decoder
from .bags.recording import BagError
from .bags.source import open_bag
from .signals.blocks import blocks
from .signals.topic_readers import rows_stamps
from .signals.topics import find_topics

MAX_SECONDS = 300.0         # s of a recording that is played beside a report
MAX_LAG = 0.1               # s that a reference may lie from the frame that shows it
DESCRIPTION = '/robot_description'
HEADER = 8                  # bytes of a serialised text before its first character: dialect and length


class Recorded(NamedTuple):
    """A bag as a page shows it.

    motion     `Motion`, None where no state is in the bag
    sentences  tuple of what is wrong with the bag, or is not shown of it
    """

    motion: Motion
    sentences: tuple


def playback_html(manipulator, motion, *, title=None, hydraulics=None, topics=None):
    """Return the text of a page that plays a motion back: a `Motion`, or the path of a bag.

    hydraulics and topics as `recorded_motion` takes them.
    """
    sentences = ()
    if not isinstance(motion, Motion):
        motion, sentences = recorded_motion(motion, manipulator, hydraulics=hydraulics, topics=topics)
    return machine_page(manipulator, motion, title=title, messages=sentences)


def recorded_motion(bag, manipulator, *, hydraulics=None, topics=None):
    """Return the `Recorded` motion of a bag; of a bag of another machine, or without states, only sentences.

    hydraulics  `Hydraulics`, by which pressures become forces, or None
    topics      as `validate` takes them

    Raises BagError where the bag cannot be read at all.
    """
    with open_bag(bag) as source:
        try:
            channels = find_topics(source, manipulator, topics)
            parts = [(block, block.core) for block in blocks(source, channels, manipulator, hydraulics)]
        except BagError as error:
            return Recorded(None, (f'no motion is shown: {error}', *_damage(source)))
        names = hydraulics.cylinders if hydraulics else ()
        time, x, effort, pressures = (_column(parts, name) for name in ('t', 'x', 'effort', 'pressures'))
        rows = frames(time)
        time, x, effort = time[rows], x[rows], effort[rows]
        joints = np.array([manipulator.joint_state(row)[1] for row in x])
        pressures = None if pressures is None else {
            name: pressures[rows, k] for k, name in enumerate(names) if np.isfinite(pressures[:, k]).any()}
        reference = _reference(source, channels, manipulator, time) if channels.reference else None
        effort = effort if np.isfinite(effort).any() else None
        shift = time[0]
        motion = Motion(time - shift, joints, reference=reference, effort=effort, pressures=pressures or None,
                        signals=signals(manipulator, joints, reference, effort, pressures))
        return Recorded(motion, _damage(source))


def write_playback(folder, bag, manipulator, *, hydraulics=None, topics=None, file=PLAYBACK):
    """Write the page that plays a bag back into a folder; return its `Playback`.

    None where no motion can be shown, or the bag is longer than `MAX_SECONDS`.

    hydraulics and topics as `recorded_motion` takes them.
    """
    with open_bag(bag) as source:
        if source.end_ns - source.start_ns > MAX_SECONDS * SECOND:
            return None
    motion, sentences = recorded_motion(bag, manipulator, hydraulics=hydraulics, topics=topics)
    return motion and page.write_playback(folder, manipulator, motion, file=file, messages=sentences)


def description_in(bag):
    """Return the URDF text on /robot_description of a bag; BagError where there is none."""
    with open_bag(bag) as source:
        if any(topic.name == DESCRIPTION and topic.count for topic in source.topics):
            for packet in source.packets((DESCRIPTION,)):
                start = int(packet.start[0])
                raw = bytes(memoryview(packet.data)[start:start + int(packet.size[0])])
                order = 'little' if raw[1:2] == b'\x01' else 'big'
                length = int.from_bytes(raw[4:HEADER], order)
                text = raw[HEADER:HEADER + length].rstrip(b'\0').decode('utf-8', 'replace').strip()
                if text:
                    return text
    raise BagError(f"bag '{bag}' has no {DESCRIPTION}: which machine is it of? Give --urdf FILE or NAME")


def _column(parts, name):
    """Return the rows of the cores of all blocks; None where no block has them."""
    columns = [(getattr(block, name), core) for block, core in parts]
    if all(values is None for values, _ in columns):
        return None
    shape = next(values.shape[1:] for values, _ in columns if values is not None)
    return np.concatenate([np.full((len(range(*core.indices(len(block.t)))), *shape), np.nan) if values is None
                           else values[core] for (values, core), (block, _) in zip(columns, parts)])


def _reference(source, channels, manipulator, time):
    """Return positions (n, joints) of the reference nearest to `time` (n,) [s], NaN where there is none; or None."""
    decoder, found = Decoder(source.topics[source.number(channels.reference)].msgtype), []
    for packet in source.packets((channels.reference,)):
        for rows in decoder.decode(packet):
            stamps = rows_stamps(rows) if channels.by_stamp else rows.received
            if stamps is not None and 'position' in rows.values:
                found.append((rows.names, stamps, rows.values['position']))
    if not found:
        return None
    names = found[0][0]
    known = tuple(name for name in names if name in manipulator.joints)
    stamps, values = (np.concatenate(column) for column in zip(*(kept for other, *kept in found if other == names)))
    order = np.argsort(stamps, kind='stable')
    offset = channels.offsets.get(channels.states[0], 0) if channels.by_stamp else 0
    seconds = (stamps[order] + offset - source.start_ns) / SECOND
    rows = nearest(seconds, time)
    wanted = values[order][rows][:, [names.index(name) for name in known]]
    wanted[np.abs(seconds[rows] - time) > MAX_LAG] = np.nan
    try:
        x = manipulator.joint_map(known).states(wanted)[0]
    except MeasurementError:        # a reference of too few joints
        return None
    return np.array([manipulator.joint_state(row)[1] if np.isfinite(row).all()
                     else np.full(len(manipulator.joints), np.nan) for row in x])


def _damage(source):
    """Return sentences about what could not be read of a bag."""
    lost = (f'the bag is not whole, the rest is shown: {source.lost.text}',) if source.lost else ()
    return lost + ((source.invalid,) if source.invalid else ())


def is_bag(path):
    """Return whether a path is a bag: a folder, or a file that ends as one."""
    path = Path(path)
    return path.is_dir() or path.suffix in ('.mcap', '.db3', '.sqlite3')
