"""The table of faults: each of them is there, and its bounds follow what a machine declares."""

import re
from pathlib import Path

import pytest
from support.control.safety_declarations import contents, declaration

import psdyn_ros
from psdyn_ros.control.safety.fault_table import CONDITIONS, ROWS, Demand, State
from psdyn_ros.model.parameters import safety as model

PACKAGE = Path(psdyn_ros.__file__).parent
# refused before a controller runs, or answered by the receiver of its commands
WITHOUT_DETECTOR = {'left_running', 'no_state_at_start', 'impossible_inertia', 'broken_description',
                    'hostile_description', 'controller_dead'}


@pytest.mark.parametrize('row', [row for row in ROWS if row.name not in WITHOUT_DETECTOR], ids=lambda row: row.name)
def test_each_condition_is_reported_by_the_controller_itself(row):
    sources = (path for room in ('control', 'nodes') for path in (PACKAGE / room).rglob('*.py')
               if path.name != 'fault_table.py')
    assert any(f"'{row.name}'" in source.read_text() for source in sources)


def test_the_table_has_every_fault_and_each_condition_once():
    assert list(dict.fromkeys(row.id for row in ROWS)) == [f'F{number:02d}' for number in (*range(1, 34), 36)]
    assert len(CONDITIONS) == len(ROWS)
    for row in ROWS:
        assert re.fullmatch('[a-z_]+', row.name)
        assert row.detects
        assert row.output
        assert row.latched is (row.demand is not None and row.demand.state >= State.STOPPING)
        assert row.demand is None or row.demand.state >= State.DEGRADED


def test_bounds_follow_the_declaration():
    changed = contents()
    changed['timeouts']['stopping'] = 0.03
    d = declaration({**changed, 'plausibility': {'freeze_time': 0.11}})
    assert CONDITIONS['state_silent'].bound(d, 0.002) == pytest.approx(0.032)
    assert CONDITIONS['state_frozen'].bound(d, 0.002) == pytest.approx(0.112)
    assert CONDITIONS['tracking'].bound(d, 0.002) == pytest.approx(0.004)
    assert CONDITIONS['output_rejected'].bound(d, 0.002) == 0.0
    assert CONDITIONS['rival_commands'].bound(d, 0.002) == pytest.approx(1.002)
    for row in ROWS:
        stated = getattr(model.Timeouts(), row.timeout, None) or getattr(model.Plausibility(), row.timeout or 'x', None)
        assert (stated is None) is (row.timeout == '')
        assert stated is None or stated == row.bound_s


def test_only_what_is_trusted_is_used_for_a_stop():
    assert CONDITIONS['tracking'].demand == Demand(State.STOPPING, True)
    for name in ('state_silent', 'state_jump', 'state_frozen', 'velocity_residual', 'closure_residual'):
        assert CONDITIONS[name].demand == Demand(State.STOPPING, False)
