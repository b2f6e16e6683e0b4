"""The table of faults: each of them is there, and its bounds follow what a machine declares."""

import re
from pathlib import Path

import pytest
from support.control.safety_declarations import contents, declaration

import psdyn_ros
from psdyn_ros.control.monitors.check import Check
from psdyn_ros.control.monitors.checks import CHECKS
from psdyn_ros.control.safety.fault_table import CONDITIONS, DETECTORS, ROWS, Demand, State
from psdyn_ros.model.parameters import safety as model

PACKAGE = Path(psdyn_ros.__file__).parent
# a reference that is refused has its condition in the class of its error
REPORTED = {'ControlCore': [PACKAGE / 'control' / 'core'],
            'node': [PACKAGE / 'nodes', PACKAGE / 'control' / 'reference']}


def sources(*folders):
    return ''.join(path.read_text() for folder in folders for path in folder.rglob('*.py'))


def test_every_row_has_exactly_one_detector():
    named = [row.name for rows in DETECTORS.values() for row in rows]
    assert sorted(named) == sorted(CONDITIONS) and len(named) == len(set(named))
    assert DETECTORS.keys() - {check.__name__ for check in CHECKS} == {'SafetyStates', 'ControlCore', 'node', 'refused'}


def test_every_check_of_the_controller_is_among_its_checks():
    modules = {check.__module__ for check in CHECKS}
    assert {check for check in Check.__subclasses__() if check.__module__ in modules} == set(CHECKS)
    found = {f'psdyn_ros.control.monitors.{path.stem}' for path in (PACKAGE / 'control' / 'monitors').glob('*.py')
             if '(Check):' in path.read_text()}
    assert found == modules and all(check.rows for check in CHECKS)


@pytest.mark.parametrize('row', [row for detector in REPORTED for row in DETECTORS[detector]], ids=lambda row: row.name)
def test_conditions_without_a_check_are_reported_by_their_detector(row):
    detector, = (detector for detector in REPORTED if row in DETECTORS[detector])
    assert f"'{row.name}'" in sources(*REPORTED[detector])


@pytest.mark.parametrize('row', DETECTORS['refused'], ids=lambda row: row.name)
def test_what_is_refused_before_is_reported_by_nobody(row):
    for folder in (PACKAGE / 'control' / 'core', PACKAGE / 'control' / 'monitors', PACKAGE / 'nodes'):
        assert f"'{row.name}'" not in sources(folder)


def test_the_table_has_every_fault_and_each_condition_once():
    numbers = *range(1, 34), *range(36, 45)
    assert list(dict.fromkeys(row.id for row in ROWS)) == [f'F{number:02d}' for number in numbers]
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
    assert CONDITIONS['state_frozen'].bound(d, 0.002) == pytest.approx(0.112 + 0.25 * 0.05 / 0.02)
    assert CONDITIONS['tracking'].bound(d, 0.002) == pytest.approx(0.004)
    assert CONDITIONS['output_rejected'].bound(d, 0.002) == 0.0
    assert CONDITIONS['conflicting_commands'].bound(d, 0.002) == pytest.approx(1.002)
    for row in ROWS:
        stated = getattr(model.Timeouts(), row.timeout, None) or getattr(model.Plausibility(), row.timeout or 'x', None)
        assert (stated is None) is (row.timeout in ('', 'freeze_bound'))
        assert stated is None or stated == row.bound_s


def test_only_what_is_trusted_is_used_for_a_stop():
    assert CONDITIONS['tracking'].demand == Demand(State.STOPPING, True)
    for name in ('state_silent', 'state_jump', 'state_frozen', 'velocity_residual', 'closure_residual'):
        assert CONDITIONS[name].demand == Demand(State.STOPPING, False)
