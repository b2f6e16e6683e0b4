"""A short campaign of mutated bags, and that the campaign finds readers that crash, hang, die, or believe anything."""

import os
import signal
import time

import numpy as np
import pytest

from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_machine
from psdyn_ros.validation import mutated_bags
from psdyn_ros.validation.bag_mutations import Mutator, data_end, honest_messages, record_edges
from psdyn_ros.validation.mutated_bags import CRASH, HANG, WHOLE, campaign, main, read_through

CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')


def test_nothing_crashes_hangs_or_passes_wrongly():
    report = campaign(84, seed=int(os.environ['PSDYN_SEED']) % 2 ** 31)
    assert report.failures == [] and report.wrong_passes == []
    assert sum(report.outcomes.values()) == 84 and len({kind for kind, _ in report.outcomes}) == 14
    # what is spoilt a little is read, what is spoilt more is told
    assert {outcome for _, outcome in report.outcomes} == {'whole', 'partial', 'invalid', 'refused'}
    assert report.memory < 300 << 20 and report.slowest < 5.0


def _trusting(path, machine):
    return WHOLE


def _crashing(path, machine):
    if path.name == 'bag':
        raise IndexError('beyond')
    return read_through(path, machine)


def _dying(path, machine):
    if path.name == 'bag' and (path / 'bag.db3').exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return WHOLE


def _hanging(path, machine):
    while path.name == 'bag':
        time.sleep(0.01)
    return WHOLE


def _greedy(path, machine):
    if path.name == 'bag':
        np.ones(1 << 28)
    return WHOLE


def test_readers_that_believe_anything_are_found():
    report = campaign(28, judge=_trusting)
    kinds = {kind for _, kind in report.wrong_passes}
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
    assert report.outcomes['removed_bytes', WHOLE] == 1 and sum(report.outcomes.values()) == 14
    assert report.outcomes['cut_sqlite', CRASH] == 1


def test_a_reader_that_hangs_is_found(monkeypatch):
    monkeypatch.setattr(mutated_bags, 'PATIENCE', 1)
    report = campaign(1, judge=_hanging)
    assert sum(n for (_, outcome), n in report.outcomes.items() if outcome == HANG) == 1


def test_the_command_prints_counts_and_the_bound(capsys):
    assert main(['--count', '14', '--seed', '3']) == 0
    text = capsys.readouterr().out
    assert '0 crashes or hangs, 0 called whole' in text and 'below 0.21' in text and 'wrong_schema' in text


def test_the_same_seed_gives_the_same_bags(tmp_path):
    messages = honest_messages(load(find_machine('hiab_xs031')), CYLINDERS)
    first, second = (Mutator(tmp_path / name, messages, 5) for name in 'ab')
    for number in range(28):
        a, b = first.make(number), second.make(number)
        assert a.kind == b.kind and a.never_pass == b.never_pass
        for file in a.path.iterdir():
            other = b.path / file.name
            assert file.is_symlink() == other.is_symlink()
            if not file.is_symlink() and file.suffix == '.mcap':
                assert file.read_bytes() == other.read_bytes(), (number, a.kind)


def test_every_edge_is_cut_at(tmp_path):
    mutator = Mutator(tmp_path / 'a', honest_messages(load(find_machine('hiab_xs031')), CYLINDERS), 0)
    whole = mutator.seeds['zstd'].read_bytes()
    edges = record_edges(whole)
    seen = {mutator.make(14 * k).path.joinpath('bag.mcap').stat().st_size for k in range(3 * len(edges))}
    assert seen == {edge + by for edge in edges for by in (-1, 0, 1)} - {len(whole)} | (
        {len(whole)} if edges[-1] + 1 >= len(whole) else set())
    assert data_end(whole) in edges and edges[-1] + 8 == len(whole)
