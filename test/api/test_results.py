"""Results print in ten lines with units, and turn into dictionaries and tables with the names of joints."""

import inspect
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.cases import made

import psdyn_ros
from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.model.units import number_text
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.offline import simulate
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.validation.compare_bags import Comparison
from psdyn_ros.validation.identification.identified import Identification
from psdyn_ros.validation.validate import Validation

CRANE = made('crane').m
X = CRANE.initial_position
REST = np.zeros(4)
ROWS = np.tile(X, (5, 1))


def results():
    """Return {name: a result of the crane}."""
    m, hold = CRANE, CRANE.gravity_forces(X)
    return {
        'limits': m.limits, 'coordinate limits': m.coordinate_limits,
        'hybrid': m.hybrid_dynamics(X, REST, efforts=dict.fromkeys(m.coordinates, 0.0)),
        'hybrid rows': m.hybrid_dynamics(ROWS, 0.0 * ROWS, efforts=dict.fromkeys(m.coordinates, 0.0)),
        'forward derivatives': m.forward_dynamics_derivatives(X, REST, hold),
        'inverse derivatives': m.inverse_dynamics_derivatives(X, REST, REST),
        'hybrid derivatives': m.hybrid_dynamics_derivatives(X, REST, efforts=dict.fromkeys(m.coordinates, 0.0)),
        'linearization': m.linearize(X, REST, hold), 'equilibrium': m.equilibrium(X),
        'free equilibrium': m.equilibrium(X, hold), 'workspace': m.workspace('tcp', samples=200),
        'load chart': m.load_chart('tcp', nodes=(4, 4)), 'allocated': m.allocation.share(np.eye(4), hold),
        'motion': simulate(m, X, REST, np.linspace(0.0, 0.1, 50), effort=hold),
        'floating': made('floating crane').m.equilibrium(made('floating crane').m.initial_position, fixed='base'),
    }


RESULTS = results()


@pytest.mark.parametrize('name', RESULTS)
def test_a_result_prints_in_at_most_eleven_short_lines(name):
    text = repr(RESULTS[name])
    lines = text.splitlines()
    assert lines[0] == type(RESULTS[name]).__name__ and len(lines) <= 11 and max(map(len, lines)) < 220
    assert 'array(' not in text and '\n\n' not in text


def test_printed_numbers_carry_names_and_units():
    text = repr(CRANE.limits)
    assert 'lower: slew -3 rad, lift_cylinder 0 m' in text and 'effort: slew 30000 N m, lift_cylinder 92100 N' in text
    assert 'velocity: slew 0.6 rad/s' in text
    text = repr(RESULTS['motion'])
    assert 'x: (50, 4), 0 to 0.3 of slew [rad], lift_cylinder [m]' in text and 'loops: lift_eye, tilt_eye' in text
    assert 'x: base_x ' in repr(RESULTS['floating'])


@pytest.mark.parametrize('name', RESULTS)
def test_a_result_unpacks_indexes_and_pickles_as_a_tuple(name):
    result = RESULTS[name]
    values = tuple(result)
    assert len(result) == len(values) and result[0] is values[0] and result[-1] is values[-1]
    assert [*result[:2]] == [*values[:2]] or result[:2][0] is values[0]
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)
    with pytest.raises(AttributeError):
        result.x = 1.0


def test_to_dict_has_vectors_by_name():
    rest = RESULTS['equilibrium'].to_dict()
    assert rest['x'] == dict(zip(CRANE.coordinates, X.tolist())) and rest['stability'] == 'stable'
    assert CRANE.gravity_forces(rest['x']).tolist() == list(rest['f'].values())
    rows = RESULTS['hybrid rows'].to_dict()['accelerations']
    assert list(rows) == list(CRANE.coordinates) and rows['slew'].shape == (5,)
    slope = RESULTS['forward derivatives'].to_dict()['dxdd_df']
    assert slope['slew']['telescope'] == RESULTS['forward derivatives'].dxdd_df[0, 3]
    assert CRANE.limits.of('telescope') == {'lower': 0.0, 'upper': 1.1, 'velocity': 0.3, 'effort': 36000.0}
    with pytest.raises(ValueError, match="^limits of 'telescop': no such joint; did you mean 'telescope'"):
        CRANE.limits.of('telescop')


def test_limits_of_actuators_and_of_coordinates_are_by_their_names():
    m = made('own_coordinates').m
    assert m.actuators != m.coordinates
    assert list(m.limits.to_dict()['upper']) == list(m.actuators)
    assert list(m.coordinate_limits.to_dict()['upper']) == list(m.coordinates)


@pytest.mark.parametrize('name', RESULTS)
def test_every_result_makes_a_table(name):
    pytest.importorskip('pandas')
    assert RESULTS[name].to_frame().size > 0


def test_tables_have_times_or_joints_as_rows():
    pytest.importorskip('pandas')
    motion = RESULTS['motion'].to_frame()
    assert motion.index.name == 'times' and motion.index[-1] == 0.1 and len(motion) == 50
    assert motion['x/lift_cylinder'].iloc[0] == X[1] and 'kinetic' in motion and 'closure/lift_eye' in motion
    rest = RESULTS['equilibrium'].to_frame()
    assert list(rest.index) == list(CRANE.coordinates) and rest['x']['telescope'] == X[3]
    slopes = RESULTS['linearization'].to_frame()
    assert slopes['A/slew/velocity']['slew/position'] == 1.0
    chart = RESULTS['load chart'].to_frame()
    assert chart.index.name == 'height' and chart.columns.name == 'reach' and chart.shape == (4, 4)


def test_a_table_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'pandas', None)
    with pytest.raises(ImportError, match='^to_frame needs pandas: pip install pandas$'):
        CRANE.limits.to_frame()


@pytest.mark.parametrize('value, scale, text', [
    (-3.904e-34, 1.0, '0'), (-0.0, 1.0, '0'), (1e-9, 1e4, '0'), (1e-6, 1.0, '1e-06'), (48930.62, 1.0, '48930'),
    (1234567.0, 1.0, '1235000'), (-0.12346, 1.0, '-0.1235'), (2.1e8, 1.0, '2.1e+08')])
def test_rounding_prints_as_zero(value, scale, text):
    assert number_text(value, scale) == text


def reached(thing, seen, depth):
    """Yield every object of the package that a user reaches from one by its public attributes, and in collections."""
    if depth == 0 or id(thing) in seen or isinstance(thing, (type, np.ndarray)) or inspect.isroutine(thing):
        return
    seen[id(thing)] = thing     # kept, so that no other object gets its id
    if isinstance(thing, (tuple, list)) and not hasattr(thing, '_fields'):
        parts = list(thing)[:3]
    elif isinstance(thing, dict):
        parts = list(thing.values())[:3]
    elif type(thing).__module__.startswith('psdyn_ros'):
        yield thing
        parts = [getattr(thing, name, None) for name in dir(thing) if not name.startswith('_')]
    else:
        parts = []
    for part in parts:
        yield from reached(part, seen, depth - 1)


def machines_and_plants():
    """Yield (name, object) from which users reach others."""
    five_bar = psdyn_ros.load('five_bar')
    oil = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), CRANE.actuators)
    yield from {'crane': CRANE, 'five-bar': five_bar, 'hydraulics': oil, 'base': BaseMotion(),
                'plant': Plant(CRANE, period=0.01), 'oil plant': HydraulicPlant(CRANE, oil, period=0.01),
                'safety': read_safety(find_config('hiab_xs031_safety.yaml'), CRANE.actuators, ('valve',) * 4,
                                      CRANE.limits),
                'map': CRANE.joint_map(CRANE.actuators), 'bound map': CRANE.joint_map(CRANE.actuators).bind(),
                'integrator': five_bar.integrator(0.01)}.items()


@pytest.mark.parametrize('thing', [pytest.param(thing, id=name) for name, thing in machines_and_plants()])
def test_whatever_a_user_reaches_prints_in_400_characters(thing):
    found = list(reached(thing, {}, 6))
    assert found[0] is thing
    assert [(type(one).__name__, len(repr(one))) for one in found if len(repr(one)) > 400] == []
    assert not any(' object at 0x' in repr(one) for one in found[:1])


def test_a_machine_and_validations_print_in_one_line():
    text = repr(CRANE.machine)
    assert '\n' not in text and len(text) < 200 and "'hiab" in text and 'telescope' in text
    verdict = SimpleNamespace(text='PASS')
    found = SimpleNamespace(bag='run_1', duration=12.0, verdict=verdict)
    assert Validation.__repr__(found) == 'Validation of run_1, 12.0 s: PASS'
    identified = SimpleNamespace(machine='crane', source='run_1', seconds=12.0, verdict='PASS')
    assert Identification.__repr__(identified) == 'Identification of crane from run_1, 12.0 s: PASS'
    both = SimpleNamespace(first=found, second=found, text='SAME')
    assert Comparison.__repr__(both) == 'Comparison of run_1 and run_1: SAME'
