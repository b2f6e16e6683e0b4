"""The half of the fault campaign that runs over DDS: processes that are killed, and attacks that are counted."""

import re
from collections import Counter

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros.tools.fault_campaign import campaign  # noqa: E402
from psdyn_ros.tools.fault_campaign.over_dds import attacks, kills  # noqa: E402


@pytest.mark.long
@pytest.mark.dds
def test_controllers_are_killed_or_hold_a_command_up_and_nothing_moves_afterwards(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(kills, 'STOPS', (kills.HELD_UP,))
    monkeypatch.setattr(kills, 'STOP_EVERY', 2)
    for _ in range(3):      # one that a stall of the computer ends before its signal is replaced by one of the other
        page = tmp_path / 'page.md'
        options = campaign.Options(cycles=2, processes=False, attacks=False, quiet=True, output=page)
        assert campaign.run(options) == campaign.GOOD, capfd.readouterr().out
        assert '2 processes killed or stopped' in capfd.readouterr().out
        refused = re.search(rf'\| {kills.HELD_UP} \| 1 \| (SAFE|STOPPING) 1 \| (\d+) \|', page.read_text())
        if refused and kills.KILLED in page.read_text():
            break
    assert int(refused[2]) >= 1, 'the receiver refuses a command that comes late'


@pytest.mark.long
@pytest.mark.dds
def test_every_attack_over_dds_is_counted_as_its_condition(tmp_path):
    page = tmp_path / 'page.md'
    # slots that are missed under a flood make it BAD on a busy computer
    assert campaign.run(campaign.Options(cycles=1, processes=False, quiet=True, output=page)) <= campaign.BAD
    text = page.read_text()
    found = Counter(line.split(' | ')[2] for line in text[text.index('## Attacks'):].splitlines()[1:]
                    if line.startswith('| F'))
    due = Counter(condition if counted else '' for condition, _, counted in (*attacks.ATTACKS, *attacks.CLOCK_ATTACKS))
    assert found == due + Counter({'': 2})      # and two lines of all commands


def test_the_command_refuses_counts_that_are_none():
    with pytest.raises(SystemExit) as refused:
        campaign.main(['--cycles', '0'])
    assert refused.value.code == 2
