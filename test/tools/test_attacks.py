"""What the campaign over DDS says of attacks, from counts that no process gave."""

from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros.tools.fault_campaign.over_dds import attacks  # noqa: E402
from psdyn_ros.tools.fault_campaign.over_dds.attacks import ECHO, Slots  # noqa: E402


@pytest.mark.parametrize('ours, echo, code, words', [
    (Slots(1000, 0, 0), Slots(1000, 0, 0), None, ''),
    (Slots(990, 10, 4), Slots(1000, 0, 0), None, ''),                   # four stalls may be chance
    (Slots(990, 10, 5), Slots(1000, 0, 0), None, 'missed slots: 1.000 % in 5 stalls; required: not above the echo'),
    (Slots(900, 100, 50), Slots(890, 110, 20), None, ''),               # fewer slots than the echo
    (Slots(-990, 0, 0), Slots(1000, 0, 0), None, 'cycles of the controller or the echo were not reported'),
    (Slots(990, 10, 5), Slots(1000, 0, 0), 1, 'the process ended under a flood'),
])
def test_a_flood_is_a_problem_where_more_slots_are_missed_than_the_echo_misses_by_chance(
        monkeypatch, ours, echo, code, words):
    found = {'controller_1': (100, Slots(999, 1, 1), ours), ECHO: (100, Slots(500, 0, 0), echo)}
    monkeypatch.setattr(attacks, '_under_flood', lambda bench, name, kind: found[name])
    controller = SimpleNamespace(name='controller_1', states=set(), process=SimpleNamespace(poll=lambda: code))
    attack = attacks._flooded(None, controller, 'F33', 'a flood', 'small')
    assert attack.problem.startswith(words) and bool(attack.problem) == bool(words)
    assert (attack.missed, len(attack.shares), attack.shares[0]) == (ours.missed, 4, 0.001)
