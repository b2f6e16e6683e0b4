"""What a newcomer has to read stays as small as it is."""

import importlib.util

import pytest
from conftest import thorough
from support.paths import ROOT

MODULES = {'computed_torque': 23, 'valve_computed_torque': 25}     # from state to command; 25 are the most


@pytest.fixture(scope='module')
def figures():
    spec = importlib.util.spec_from_file_location('newcomer_figures', ROOT / 'scripts' / 'newcomer_figures.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_do_not_grow(figures):
    every = list(figures.functions())
    assert len(every) > 2000
    assert max(one.lines for one in every) <= figures.MAX_LINES
    many = [one for one in every if one.parameters > figures.MAX_PARAMETERS]
    # functions of the API and of validation with keywords that have defaults
    assert {one.place.split()[1] for one in many} == {
        'equilibrium', 'hybrid_dynamics', 'hybrid_dynamics_derivatives', 'linearize', 'validate', 'validate_many'}
    assert max(one.parameters for one in many) <= 13 and max(one.positional for one in many) <= 4


def test_lines_are_counted_as_git_has_them(figures):
    outside, tests = figures.lines()
    assert 20_000 < outside < 52_650 and 20_000 < tests < 56_750


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('law', thorough([*MODULES], ['valve_computed_torque']))
def test_modules_from_state_to_command(figures, law):
    pytest.importorskip('rclpy', reason='the controller is a node')
    found = figures.modules_of_path(law)
    assert {'nodes/controller/subscribers.py', 'control/core/core.py', 'kernels',
            'nodes/controller/publishers.py'} <= set(found)
    assert len(found) <= MODULES[law], found


def test_every_door_is_shown_by_a_test(figures):
    assert all(len(list((ROOT / 'test').rglob(test))) == 1 for _, test in figures.DOORS.values())
