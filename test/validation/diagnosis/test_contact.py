"""A force on the tool for a while, and causes that cannot be."""

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import thorough
from hypothesis import given
from hypothesis import strategies as st
from support.bags.diagnosis_cases import PERIOD, WRONG, diagnosed, port_areas, recorded
from support.bags.recorded_motion import crane, oil

from psdyn_ros.validation.diagnosis.cause_messages import word
from psdyn_ros.validation.diagnosis.corrections import Corrections
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.signals.filters import SavitzkyGolay


def pushed(block, force, first, last):
    """The block with a force [N] on the tool from first to last [s]: efforts by the Jacobian, which no correction
    uses."""
    acts, machine = (block.t >= first) & (block.t < last), crane()
    x = np.ascontiguousarray(block.positions[:, [block.joints.index(name) for name in machine.coordinates]])
    more = -np.einsum('nij,i->nj', machine.jacobian(x, 'tcp')[:, :3], force)
    pressures = block.pressures.copy()
    pressures[:, :, 0] += acts[:, None] * more[:, 1:] / port_areas(oil())[:, 0]
    return replace(block, effort=block.effort + acts[:, None] * more, pressures=pressures)


def assert_near(cause, size, rel=0.0):
    assert cause.estimate == pytest.approx(size, abs=3.0 * cause.error, rel=rel), cause.text


@pytest.mark.parametrize('force, first, last', [((0.0, 0.0, -2000.0), 15.0, 20.0), ((300.0, 0.0, 200.0), 4.0, 9.0)])
def test_force_on_the_tool_for_a_while_is_named_with_its_time(force, first, last):
    (cause, *_), diagnosis = diagnosed(pushed(recorded(), force, first, last))
    assert (cause.kind, cause.about) == ('contact_force', 'tcp'), diagnosis.text
    assert_near(cause, np.linalg.norm(force), rel=0.01)
    assert f'from {first:.0f} to {last:.0f} s' in cause.text and 'touched' in cause.next
    parts = re.search(r's, \((.*)\) N', cause.text)[1]
    assert [float(one.split()[0]) for one in parts.split(',')] == pytest.approx(force, abs=0.05 * cause.estimate)


@pytest.mark.parametrize('wrong', ['payload', 'friction', 'base_tilt', 'sensor_offset'])
@pytest.mark.parametrize('force, begin, leads', thorough([(1500.0, 10.3, True), (250.0, 17.4, False)], 1, several=True))
def test_a_force_for_a_while_and_what_is_wrong_all_the_time_are_fitted_together(wrong, force, begin, leads):
    causes, diagnosis = diagnosed(pushed(recorded(wrong), (0.0, 0.0, -force), begin, begin + 5.0))
    by_kind, (_, size) = {cause.kind: cause for cause in causes[:2]}, WRONG[wrong]
    assert set(by_kind) == {wrong, 'contact_force'}, diagnosis.text
    assert_near(by_kind['contact_force'], force)
    assert_near(by_kind[wrong], size)
    assert by_kind['contact_force'].error < 0.1 * force and by_kind[wrong].error < 0.1 * size
    if wrong == 'payload':
        assert (causes[0].kind == 'contact_force') == leads
    assert 'with that' in causes[0].text and 'left with what comes first' in causes[1].text


@pytest.mark.parametrize('exchanged', [(0, 1, 2), (1,)])
def test_exchanged_ports_of_all_cylinders_are_named_together(exchanged):
    block = recorded(plain=True)
    pressures = block.pressures.copy()
    pressures[:, exchanged] = pressures[:, exchanged, ::-1]
    effort = np.column_stack((block.effort[:, 0], (pressures * port_areas(oil())).sum(axis=2)))
    (cause, *_), _ = diagnosed(replace(block, effort=effort, pressures=pressures))
    names = list(oil().cylinders)
    assert (cause.kind, cause.about) == ('ports', "' and '".join(names[k] for k in exchanged)), cause.text
    assert cause.share > 0.98 and cause.estimate == pytest.approx(1.0, abs=0.01)


@given(kind=st.sampled_from(['payload', 'friction', 'sensor_offset', 'sensor_drift', 'encoder_offset',
                             'encoder_scale']), value=st.floats(-3.0, 3.0),
       error=st.floats(1e-3, 0.3), axis=st.integers(1, 3), believed=st.booleans())
def test_no_cause_is_what_cannot_be(kind, value, error, axis, believed):
    """A mass or friction below zero, a pressure beyond the supply, an encoder beyond the ends of its joint."""
    corrections = Corrections(Predictor(crane(), oil(), SavitzkyGolay(PERIOD)))
    corrections.by_pressure[:], corrections.believed[:], corrections.seconds = True, believed, 10.0
    corrections.encoders = dict(enumerate(crane().coordinates))
    corrections.seen = np.array([0.8, 0.2]) @ [crane().limits.lower, crane().limits.upper] + [[0.0], [0.1]]
    name, cylinder, most = crane().actuators[axis], oil().cylinders[crane().actuators[axis]], oil().supply.pressure
    scale = {'payload': corrections.body.mass, 'sensor_offset': most * cylinder.area_a,
             'sensor_drift': most * cylinder.area_a / 10.0}.get(kind, 1.0)
    theta = scale * np.array([value, 0.0, 0.0, 0.0] if kind == 'payload' else [value])
    found = word(kind, name, theta, (scale * error) ** 2 * np.eye(len(theta)), corrections=corrections,
                 hydraulics=oil(), axis=axis)
    if kind == 'payload':
        assert found.possible == (value + 1.0 > -3.0 * error)
    elif kind == 'friction':
        assert found.possible == (value + 1.0 > -3.0 * error if believed else value > 0.0)
        assert not found.possible or found.estimate >= 0.0 and ' -' not in found.text
    elif kind in ('sensor_offset', 'sensor_drift'):
        assert found.possible == (abs(value) < 1.0)
        assert ('port B' in found.text) == (abs(value) < cylinder.area_b / cylinder.area_a)
    elif found.possible:
        low, high = corrections.seen[:, axis] * (1.0 - value) if 'scale' in kind else corrections.seen[:, axis] - value
        margin = 0.011 * (crane().limits.upper - crane().limits.lower)[axis]
        assert crane().limits.lower[axis] - margin <= low and high <= crane().limits.upper[axis] + margin
