"""A short campaign of mutated bags, which PASSes of them are wrong, and that it finds what crashes, hangs or dies."""

import os
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.tools.fuzzing import mutated_bags
from psdyn_ros.tools.fuzzing import verdict as mutation_verdict
from psdyn_ros.tools.fuzzing.mutated_bags import CRASH, HANG, campaign, main
from psdyn_ros.tools.fuzzing.mutations import (
    STATES,
    TELEMETRY,
    Mutation,
    Mutator,
    data_end,
    record_edges,
    write_mcap,
    write_sqlite,
)
from psdyn_ros.tools.fuzzing.verdict import OUTCOMES, honest, judge, true_messages, wrong_pass
from psdyn_ros.validation.bags.bulk_decoder import JOINT_STATE, type_store
from psdyn_ros.validation.bags.mcap_chunks import MESSAGE
from psdyn_ros.validation.bags.source import open_bag

SEED = int(os.environ['PSDYN_SEED']) % 2 ** 31


def test_no_verdict_crashes_hangs_or_passes_wrongly():
    report = campaign(56, seed=SEED)
    assert report.failures == [] and report.wrong_passes == []
    assert sum(report.outcomes.values()) == 56 and len({kind for kind, _ in report.outcomes}) == 14
    # what is spoilt a little is read, what is spoilt more is told
    assert {outcome for _, outcome in report.outcomes} >= {'pass', 'pass of a part', 'invalid', 'refused'}
    assert report.memory < 300 << 20 and report.slowest < 10.0


# which passes are wrong


@pytest.fixture(scope='module')
def machine():
    manipulator = load(find_machine('hiab_xs031'))
    return manipulator, read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), manipulator.actuators)


@pytest.fixture(scope='module')
def messages(machine):
    return true_messages(*machine)


@pytest.fixture(scope='module')
def truth(machine, messages, tmp_path_factory):
    path = tmp_path_factory.mktemp('honest') / 'bag.mcap'
    write_mcap(path, messages)
    return honest(path, messages, machine)


def verdict_on(folder, messages, machine, truth, never_pass=False, sealed=False, cut=None):
    write_mcap(folder / 'bag.mcap', messages)
    if cut is not None:
        data = (folder / 'bag.mcap').read_bytes()
        (folder / 'bag.mcap').write_bytes(data[:int(cut * len(data))])
    return judge(Mutation('made', folder / 'bag.mcap', never_pass, sealed), machine, truth)


def moved(messages, by, every=1):
    """The messages with positions of every so many joint states moved by so much [m, rad]."""
    store, kind = type_store(), JOINT_STATE
    out, count = [], 0
    for topic, received, data in messages:
        if topic == STATES:
            count += 1
            if count % every == 0:
                message = store.deserialize_cdr(data, kind)
                data = bytes(store.serialize_cdr(replace(message, position=message.position + by), kind))
        out.append((topic, received, data))
    return out


def test_the_honest_bag_passes_and_that_is_right(messages, machine, truth, tmp_path):
    assert verdict_on(tmp_path, messages, machine, truth, sealed=True) == ('pass', '')
    assert truth.messages == Counter(messages) and truth.messages.total() == len(messages)
    with pytest.raises(ValueError, match='honest bag does not pass'):
        write_mcap(tmp_path / 'bag.mcap', moved(messages, 0.05))
        honest(tmp_path / 'bag.mcap', messages, machine)


def test_nobody_may_pass_what_cannot_be_whole(messages, machine, truth, tmp_path):
    assert verdict_on(tmp_path, messages, machine, truth, never_pass=True) == ('pass', 'nobody may call it whole')


def test_a_loss_that_is_told_is_right_and_one_that_is_not_is_wrong(messages, machine, truth, tmp_path):
    assert verdict_on(tmp_path, messages, machine, truth, never_pass=True, sealed=True, cut=0.8) == (
        'pass of a part', '')
    outcome, why = verdict_on(tmp_path, messages[:300] + messages[301:], machine, truth)
    assert (outcome, why) == ('pass', '499 messages were used of 500, and nothing tells')


def test_what_no_checksum_covers_may_differ_by_what_no_figure_shows(messages, machine, truth, tmp_path):
    assert verdict_on(tmp_path, moved(messages, 1e-9, every=50), machine, truth) == ('pass', '')
    outcome, why = verdict_on(tmp_path, moved(messages, 1e-9, every=50), machine, truth, sealed=True)
    assert outcome == 'pass' and why == '5 messages were never recorded, and checksums say so'
    outcome, why = verdict_on(tmp_path, moved(messages, 2e-3), machine, truth)
    assert outcome == 'pass' and 'of the honest bag' in why
    assert verdict_on(tmp_path, moved(messages, 0.05), machine, truth) == ('fail', '')


def test_a_pass_of_a_part_must_not_rest_on_what_was_never_recorded(messages, machine, truth, tmp_path):
    spoilt = moved(messages, 1e-9, every=50)
    assert verdict_on(tmp_path, spoilt, machine, truth, cut=0.8) == ('pass of a part', '')
    outcome, why = verdict_on(tmp_path, spoilt, machine, truth, sealed=True, cut=0.8)
    assert outcome == 'pass of a part' and 'checksums say so' in why


def test_what_fails_or_is_unusable_is_no_pass():
    failed = SimpleNamespace(verdict=SimpleNamespace(verdict='FAIL', exit_code=1))
    assert wrong_pass(Mutation('made', None, True, True), failed, None) == ''


# what the campaign finds


def _trusting(mutation, machine, truth):
    return OUTCOMES[0], 'nobody may call it whole' if mutation.never_pass else ''


def _crashing(mutation, machine, truth):
    raise IndexError('beyond')


def _dying(mutation, machine, truth):
    if 'sqlite' in mutation.kind:
        os.kill(os.getpid(), signal.SIGKILL)
    return OUTCOMES[0], ''


def _hanging(mutation, machine, truth):
    while True:
        time.sleep(0.01 if mutation.kind == 'cut' else 0.0)


def _greedy(mutation, machine, truth):
    np.ones(1 << 28)
    return OUTCOMES[0], ''


def test_readers_that_believe_anything_are_found():
    report = campaign(28, judge=_trusting)
    kinds = {kind for _, kind, _ in report.wrong_passes}
    assert {'metadata', 'link', 'bomb', 'wrong_schema', 'cut'} <= kinds
    assert report.failures == [] and len(report.wrong_passes) < 28


@pytest.mark.parametrize('judge, text', [(_crashing, 'IndexError: beyond'), (_greedy, 'MemoryError')])
def test_readers_that_crash_are_found(judge, text):
    report = campaign(3, judge=judge)
    assert len(report.failures) == 3 and all(text in failure[2] for failure in report.failures)


def test_a_reader_that_dies_is_found_and_the_campaign_goes_on():
    report = campaign(14, judge=_dying)
    assert [kind for _, kind, _ in report.failures] == ['flipped_bits_in_sqlite', 'cut_sqlite']
    assert 'ended with -9' in report.failures[0][2]
    assert report.outcomes['removed_bytes', OUTCOMES[0]] == 1 and sum(report.outcomes.values()) == 14
    assert report.outcomes['cut_sqlite', CRASH] == 1


@pytest.mark.long
def test_readers_that_hang_busy_or_asleep_are_found(monkeypatch):
    monkeypatch.setattr(mutated_bags, 'PATIENCE', 0.2)
    report = campaign(2, judge=_hanging)
    assert report.outcomes == {('cut_at_an_edge', HANG): 1, ('cut', HANG): 1}


@pytest.mark.long
def test_a_process_that_says_nothing_is_ended(monkeypatch):
    monkeypatch.setattr(mutated_bags, 'SILENCE', 5.0)
    report = campaign(1, judge=_hanging)
    assert [text for *_, text in report.failures] == ['the process ended with -9']


def test_the_command_prints_counts_and_the_bound(capsys):
    assert main(['--count', '14', '--seed', '3']) == 0
    text = capsys.readouterr().out
    assert '0 crashes or hangs, 0 wrong passes' in text and 'below 0.21' in text and 'wrong_schema' in text


def test_the_same_seed_gives_the_same_bags(messages, tmp_path):
    first, second = (Mutator(tmp_path / name, messages, 5) for name in 'ab')
    for number in range(28):
        a, b = first.make(number), second.make(number)
        assert a.kind == b.kind and a.never_pass == b.never_pass
        for file in a.path.iterdir():
            other = b.path / file.name
            assert file.is_symlink() == other.is_symlink()
            if not file.is_symlink() and file.suffix == '.mcap':
                assert file.read_bytes() == other.read_bytes(), (number, a.kind)


def test_every_edge_is_cut_at(messages, tmp_path):
    mutator = Mutator(tmp_path / 'a', messages, 0)
    whole = mutator.seeds['zstd'].read_bytes()
    edges = record_edges(whole)
    seen = {mutator.make(14 * k).path.joinpath('bag.mcap').stat().st_size for k in range(3 * len(edges))}
    assert seen == {edge + by for edge in edges for by in (-1, 0, 1)} - {len(whole)} | (
        {len(whole)} if edges[-1] + 1 >= len(whole) else set())
    assert data_end(whole) in edges and edges[-1] + 8 == len(whole)


# what campaigns have found


def test_a_summary_that_its_checksum_contradicts_is_not_believed(messages, tmp_path):
    path = tmp_path / 'bag.mcap'
    write_mcap(path, messages)
    data = bytearray(path.read_bytes())
    at = data.rindex(STATES.encode())       # of the channels in the summary
    data[at + 3] ^= 1
    path.write_bytes(data)
    with open_bag(path) as source:
        assert {topic.name for topic in source.topics} == {STATES, TELEMETRY}
        assert source.lost is None          # all messages are there


def test_messages_of_channels_that_nothing_defines_are_told(messages, tmp_path):
    path = tmp_path / 'bag.mcap'
    write_mcap(path, messages, compression='', chunked=False)
    data = bytearray(path.read_bytes())
    at = next(offset for offset in record_edges(bytes(data)) if data[offset] == MESSAGE)
    data[at + 9] ^= 64                      # the number of its channel
    path.write_bytes(data)
    with open_bag(path) as source:
        assert '1 messages are of channels that nothing defines' in source.lost.text
        assert sum(topic.count for topic in source.topics) == len(messages) - 1


def test_rows_of_no_topic_are_told(messages, tmp_path):
    write_sqlite(tmp_path / 'bag', messages)
    with closing(sqlite3.connect(tmp_path / 'bag' / 'bag.db3')) as database:
        database.execute('UPDATE messages SET topic_id = 77 WHERE id = 20')
        database.commit()
    with open_bag(tmp_path / 'bag') as source:
        assert source.lost.messages == 1 and "1 rows of 'bag.db3' are of no topic" in source.lost.text


@pytest.mark.parametrize('field, joint, by, text', [
    ('position', 'tilt_boom', 0.02, 'tilt_boom.position: 1 of 250 values stick out by up to 0.0'),
    ('velocity', 'lift_cylinder', 0.2, 'lift_cylinder.velocity: 1 of 250 values stick out by up to 0.2'),
    ('effort', 'slew', 6e3, 'slew.effort: 1 of 250 values stick out by up to ')])
def test_values_that_stick_out_are_told(field, joint, by, text, messages, machine, tmp_path):
    store, kind = type_store(), JOINT_STATE
    out = list(messages)
    topic, received, data = out[200]
    message = store.deserialize_cdr(data, kind)
    values = getattr(message, field).copy()
    values[message.name.index(joint)] += by
    out[200] = topic, received, bytes(store.serialize_cdr(replace(message, **{field: values}), kind))
    write_mcap(tmp_path / 'bag.mcap', out)
    found = mutation_verdict.validate(tmp_path / 'bag.mcap', machine[0], hydraulics=machine[1],
                                      config=mutation_verdict.CONFIG)
    assert found.verdict.exit_code == 3 and any(part.startswith(text) for part in found.verdict.partial)


def test_messages_out_of_order_are_told(messages, machine, tmp_path):
    out = list(messages)
    out[200], out[202] = ((one[0], other[1], one[2]) for one, other in ((out[202], out[200]), (out[200], out[202])))
    write_mcap(tmp_path / 'bag.mcap', out)
    found = mutation_verdict.validate(tmp_path / 'bag.mcap', machine[0], hydraulics=machine[1],
                                      config=mutation_verdict.CONFIG)
    assert found.verdict.exit_code == 3 and f'{STATES}: 1 messages are not later' in found.verdict.partial[0]
