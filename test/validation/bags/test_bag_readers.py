"""Bags that are odd and not wrong: names in changing order, one huge message, names of files, and what is no file."""

import os

import numpy as np
import pytest
from support.bags.bag_cases import joint_state, motion, state_messages, write
from support.bags.recorded_motion import crane, write_swinging

from psdyn_ros.cli import main
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY, write_sqlite
from psdyn_ros.validation.bags import mcap_chunks, mcap_recovery, source
from psdyn_ros.validation.bags.recording import BagError
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.signals.blocks import blocks
from psdyn_ros.validation.signals.quality import Quality
from psdyn_ros.validation.signals.topics import find_topics


def read(path):
    """(x (n, dof) of all blocks, `Quality`) of a bag of the crane."""
    with open_bag(path) as opened:
        channels = find_topics(opened, crane(), {})
        quality = Quality(channels, crane())
        found = list(blocks(opened, channels, crane(), quality=quality))
    return np.vstack([block.x[block.core] for block in found]), quality


def test_changing_order_of_names_loses_nothing(tmp_path):
    t, position, velocity = motion(crane(), 600, 0.01)
    names, rng = np.array(crane().joints), np.random.default_rng(5)
    plain = write(tmp_path / 'plain.mcap', state_messages(crane(), t, position, velocity))
    mixed = []
    for seconds, row, rates in zip(t, position, velocity):
        order, ns = rng.permutation(len(names)), BEGIN + round(seconds * 1e9)
        mixed.append((STATES, ns + 100_000, joint_state(ns, names[order], row[order], rates[order])))
    expected, _ = read(plain)
    x, quality = read(write(tmp_path / 'mixed.mcap', mixed))
    np.testing.assert_allclose(x, expected, atol=1e-12)
    assert quality.topics[STATES].messages == 600 and quality.topics[STATES].out_of_order == 0
    assert not quality.findings()


def test_messages_that_were_received_at_one_time_keep_their_order(tmp_path):
    t, position, velocity = motion(crane(), 600, 0.01)
    names, messages = np.array(crane().joints), []
    for k, (seconds, row, rates) in enumerate(zip(t, position, velocity)):
        # laid out in two ways, and ten of them are received together
        order, ns = np.arange(len(names))[::(-1) ** k], BEGIN + round(seconds * 1e9)
        received = BEGIN + round(t[k // 10 * 10 + 9] * 1e9)
        messages.append((STATES, received, joint_state(ns, names[order], row[order], rates[order])))
    _, quality = read(write(tmp_path / 'together.mcap', messages))
    assert quality.topics[STATES].messages == 600
    assert quality.topics[STATES].out_of_order == quality.late[STATES] == 0


@pytest.mark.parametrize('chunked', [True, False])
def test_huge_message_hides_nothing_but_itself(tmp_path, monkeypatch, chunked):
    for module in (mcap_chunks, mcap_recovery, source):
        monkeypatch.setattr(module, 'MAX_RECORD', 1 << 19)
    t, position, velocity = motion(crane(), 600, 0.01)
    states = state_messages(crane(), t, position, velocity)
    huge = [(TELEMETRY, BEGIN + 3_000_000_000, bytes(1 << 20))]
    path = write(tmp_path / 'huge.mcap', states, huge, compression='', chunked=chunked)
    with open_bag(path) as opened:
        found = [message for _, _, message in opened.messages([STATES])]
        assert 'a record of ' in opened.lost.text and 'bytes; expected 524288 at most' in opened.lost.text
    there = {message for _, _, message in states}
    # of a chunk with the huge message what is beside it is lost, too
    assert set(found) <= there and len(found) >= (500 if chunked else 600)


@pytest.mark.parametrize('folder, name', [('a', '50%20full.mcap'), ('100%', 'bag.mcap')])
def test_signs_of_uris_in_names_are_read(tmp_path, folder, name):
    path = tmp_path / folder / name
    path.parent.mkdir()
    write_swinging(path, seconds=3.0)
    with open_bag(path) as opened:
        assert len(list(opened.messages([STATES]))) == 300


@pytest.mark.parametrize('folder, name', [('b', '50%20full#1?.db3'), ('100%', 'plain.db3')])
def test_database_with_signs_of_uris_in_its_path_is_read(tmp_path, folder, name):
    path = tmp_path / folder / name
    path.parent.mkdir()
    t, position, velocity = motion(crane(), 100, 0.01)
    write_sqlite(tmp_path / 'bag', state_messages(crane(), t, position, velocity))
    (tmp_path / 'bag' / 'bag.db3').rename(path)
    with open_bag(path) as opened:
        assert len(list(opened.messages([STATES]))) == 100


def test_fifo_and_device_are_named(tmp_path, capsys):
    os.mkfifo(tmp_path / 'pipe.mcap')
    for path, kind in ((tmp_path / 'pipe.mcap', 'a FIFO'), ('/dev/zero', 'a device')):
        with pytest.raises(BagError, match=f'is {kind}; expected a folder'):
            open_bag(path)
        assert main(['validate', str(path), '--urdf', 'hiab_xs031_lift']) == 2
        assert f'is {kind}' in capsys.readouterr().err
