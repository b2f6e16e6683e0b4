"""Likely causes of a residual: each thing that may be wrong is named first where it is what is wrong."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import thorough
from hypothesis import given
from hypothesis import strategies as st
from support.bags.diagnosis_cases import (
    DELAY,
    FROZEN,
    OFFSET,
    PERIOD,
    WRONG,
    believed,
    diagnosed,
    frozen_rows,
    recorded,
)
from support.bags.identification_cases import sines
from support.bags.recorded_motion import block_of, crane, demonstration, oil, swinging
from support.machines import URDF

import psdyn_ros
from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.model.mechanism.description import Inertial
from psdyn_ros.model.text_file import read_text
from psdyn_ros.tools.studies.identification_runs import cut
from psdyn_ros.tools.studies.loaded_crane import payload_urdf
from psdyn_ros.validation.diagnosis import diagnosis as diagnosis_module
from psdyn_ros.validation.diagnosis.cause_messages import REACH, shown, word
from psdyn_ros.validation.diagnosis.correction_fits import Equations
from psdyn_ros.validation.diagnosis.corrections import (
    ENCODERS,
    Corrections,
    body_of,
    moved_center,
    outermost,
    point_mass,
)
from psdyn_ros.validation.diagnosis.diagnosis import (
    MAX_CAUSES,
    Cause,
    Diagnosis,
    second_difference_power,
)
from psdyn_ros.validation.diagnosis.products import Products
from psdyn_ros.validation.diagnosis.topic_delays import TopicDelay
from psdyn_ros.validation.identification.regressor import COLUMNS, ROWS
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.signals.filters import Butterworth, SavitzkyGolay
from psdyn_ros.validation.signals.signal_quality import Span
from psdyn_ros.validation.signals.topics import Channels

# of what the estimates come to by noise in what they are fitted with, beside their standard errors; of a delay that is
# the noise of rates, which the search for delays before the pass does not suffer from
ALLOWANCE = {'payload': 0.01, 'friction': 0.005, 'area': 0.01, 'sensor_offset': 0.005, 'sensor_drift': 0.01,
             'delay': 0.3, 'base_tilt': 0.01, 'encoder_offset': 0.01}


# each of them alone


@pytest.mark.parametrize('plain', thorough([True, False], 1))
@pytest.mark.parametrize('wrong', WRONG)
def test_what_is_wrong_comes_first_with_how_much(wrong, plain):
    about, amount = WRONG[wrong]
    causes, diagnosis = diagnosed(recorded(wrong, plain=plain), hydraulics=believed(wrong))
    first = causes[0]
    assert (first.kind, first.about) == (wrong, about), diagnosis.text
    assert abs(first.estimate - amount) <= 4.0 * first.error + ALLOWANCE[wrong] * abs(amount), first
    assert 0.0 < first.low <= first.share <= first.high <= 1.0
    assert first.share > ((0.2 if wrong == 'delay' else 0.45) if plain else 0.97)
    assert 'would explain' in first.text and first.text in diagnosis.text
    assert list(causes[1:]) == sorted(causes[1:], key=lambda cause: -cause.share) and len(causes) <= MAX_CAUSES


def test_the_place_of_a_payload_and_the_way_a_base_is_tilted_are_said():
    payload = diagnosed(recorded('payload'))[0][0]
    carrier, tool = (crane().link_pose(crane().initial_position, link) for link in ('telescope_link', 'tcp'))
    place = np.linalg.solve(tool, carrier @ [1.5, -0.15, -0.02, 1.0])[:3]
    found = [float(number) for number in re.search(r'centre of mass \((.*?)\) m', payload.text)[1].split(', ')]
    assert found == pytest.approx(place, abs=0.1)
    assert re.search(r'tilted by (2\.9|3\.0)\d* \+- .* degrees \(.*about x, (2\.9|3\.0)\d* \+- .* about y\)',
                     diagnosed(recorded('base_tilt'))[0][0].text)


def test_moved_centre_of_mass_is_found_with_the_inertia_that_goes_with_it():
    t, x, xd, xdd = swinging(30.0, quicker=4.0)
    out, model = (psdyn_ros.load(payload_urdf(read_text(URDF / 'hiab_xs031.urdf'), 200.0, com))
                  for com in ((0.6, -0.15, 0.0), (0.1, -0.15, 0.0)))
    block = block_of(t, x, xd, out.inverse_dynamics(x, xd, xdd))
    (first, *_), _ = diagnosed(block, manipulator=model, hydraulics='')
    assert (first.kind, first.about) == ('center_of_mass', 'payload')
    assert first.estimate == pytest.approx(100.0, rel=3e-3)


def test_body_of_a_centre_of_mass_is_that_of_its_link_or_of_what_the_link_is_fixed_to():
    machine, laden = crane(), psdyn_ros.load(payload_urdf(read_text(URDF / 'hiab_xs031.urdf'), 200.0))
    own = machine.machine.description.links['telescope_link'].inertial
    body = body_of(machine, 'tcp')
    tool, carrier = (machine.link_pose(machine.initial_position, link) for link in ('tcp', 'telescope_link'))
    assert body.mass == own.mass and tool @ [*body.com, 1.0] == pytest.approx(carrier @ [*own.com, 1.0])
    assert np.linalg.eigvalsh(body.inertia) == pytest.approx(np.linalg.eigvalsh(own.inertia))
    assert (body_of(laden, 'payload').mass, body_of(laden, 'tcp').mass) == (200.0, pytest.approx(own.mass + 200.0))


@pytest.mark.parametrize('kind, axis, size', [('encoder_scale', 1, 0.05), ('encoder_offset', 2, 0.015)])
def test_larger_errors_of_encoders_are_found_as_large_as_they_are(kind, axis, size):
    block = recorded(plain=False, seconds=20.0)
    x, xd = block.x.copy(), block.xd.copy()
    if kind == 'encoder_offset':
        x[:, axis] += size
    else:
        x[:, axis] *= 1.0 + size
        xd[:, axis] *= 1.0 + size
    (first, *_), _ = diagnosed(replace(block, x=x, xd=xd, positions=x))
    assert (first.kind, first.about) == (kind, crane().actuators[axis])
    assert first.estimate == pytest.approx(size, rel=3e-3)


def test_a_healthy_machine_has_no_causes():
    for plain, seconds, seeds in ((False, 30.0, 1), (True, 30.0, 3), (True, 10.0, 5)):
        for seed in range(seeds):
            causes, diagnosis = diagnosed(recorded('', seconds, plain, seed))
            assert causes == () and 'nothing' in diagnosis.text, (seconds, seed, diagnosis.text)


@pytest.mark.long
def test_the_controlled_machine_is_diagnosed_as_the_formulas_are():
    assert diagnosed(demonstration(plain=True))[0] == ()
    causes, _ = diagnosed(demonstration(30.0, plain=True))
    assert causes[0].kind == 'payload' and causes[0].estimate == pytest.approx(30.0, abs=3.0 * causes[0].error)


@pytest.mark.parametrize('wrong', ['frozen', ''])
def test_a_frozen_encoder_is_seen_in_the_efforts_or_where_joints_disagree(wrong):
    block = recorded(wrong)
    rows = frozen_rows(block.t)
    block.residual[:] = 1e-4 * np.random.default_rng(1).random(len(block.t))
    if not wrong:
        block.residual[rows] += 3e-3
    frozen = SimpleNamespace(frozen=[Span(block.t[rows.start], block.t[rows.stop])])
    moving = SimpleNamespace(frozen=[])
    quality = SimpleNamespace(signals={'slew.position': moving, 'lift_cylinder.position': frozen,
                                       'lift_cylinder.effort': frozen})
    (first, *_), _ = diagnosed(block, quality=quality)
    assert (first.kind, first.about) == ('frozen_encoder', 'lift_cylinder')
    assert first.low > 0.9 and first.estimate == pytest.approx(FROZEN[1])
    assert ('disagreement' in first.text) == (not wrong)
    # what is called frozen while nothing is worse than elsewhere explains nothing
    assert diagnosed(recorded(), quality=quality)[0] == ()


# delays that were taken off


@pytest.mark.parametrize('taken', [DELAY, 0.003, -0.004])
def test_a_delay_that_was_taken_off_is_a_cause_all_the_same(taken):
    block = recorded('delay' if taken != DELAY else '', plain=False)
    if taken != DELAY:
        early = round(taken / PERIOD)
        pressures = np.roll(block.pressures, -early, axis=0)
        effort = np.column_stack((block.effort[:, 0], np.roll(block.effort[:, 1:], -early, axis=0)))
        block = replace(block, pressures=pressures, effort=effort, core=slice(200, len(block.t) - 200))
        taken = early * PERIOD
    found = {topic: TopicDelay(s, s - 1e-4, s + 1e-4, 1.0, 30, True, s, '') for topic, s in (('pressures', taken),
                                                                                         ('/commands', 0.1))}
    (first, *_), _ = diagnosed(block, delays=found)
    assert first.kind == 'delay' and first.estimate == pytest.approx(DELAY, rel=0.02)
    # what was taken off is what is named, unless there is a delay left
    assert (first.estimate, first.error) == (taken, found['pressures'].error) or taken != DELAY


def channels_of(**what):
    return Channels(('/joint_states',), crane().actuators, **what)


def test_topics_are_named_and_ports_may_be_late_one_by_one():
    block = recorded('delay', plain=False)
    (first, *_), _ = diagnosed(block, channels=channels_of(efforts='/joint_states', telemetry='/oil'))
    assert (first.kind, first.about) == ('delay', '/oil')
    ports = {(name, port): f'/{name}/{port}' for name in oil().cylinders for port in 'ab'}
    (first, *_), _ = diagnosed(block, channels=channels_of(efforts='/joint_states', ports=ports))
    assert (first.kind, first.about) == ('delay', 'chamber pressures')
    healthy = recorded(plain=False)
    block = replace(healthy, effort=np.where(np.arange(4) == 2, block.effort, healthy.effort))
    (first, *_), _ = diagnosed(block, channels=channels_of(efforts='/joint_states', ports=ports))
    assert (first.kind, first.about) == ('delay', '/tilt_cylinder/a')
    assert first.estimate == pytest.approx(DELAY, rel=0.02)


# what can and cannot be told


def test_causes_that_look_alike_in_a_recording_are_said_to():
    block = recorded('sensor_offset')
    still = np.repeat(block.x[:1], len(block.t), axis=0)
    healthy = Predictor(crane(), oil()).mechanism.inverse_dynamics(still, 0.0 * still, 0.0 * still)
    noise = 300.0 * np.random.default_rng(0).standard_normal(healthy.shape)
    effort = healthy + noise + np.array([0.0, 0.0, 5e3, 0.0])
    (first, *_), _ = diagnosed(replace(block, x=still, xd=0.0 * still, positions=still, effort=effort, pressures=None),
                               hydraulics='')
    assert 'this recording does not tell it from' in first.text and 'tilt_cylinder' in first.text


def test_causes_that_explain_next_to_nothing_are_not_listed(monkeypatch):
    block = recorded('payload')
    several = diagnosed(block)[0]
    monkeypatch.setattr(diagnosis_module, 'SHOWN_SHARE', several[0].share - 1e-9)
    assert len(several) > 1 and several[-1].share >= 5e-3
    assert [cause.share for cause in diagnosed(block)[0]] == [several[0].share]


def test_what_the_first_cause_leaves_has_a_cause_too():
    block, healthy = recorded('payload'), recorded()
    offset = recorded('sensor_offset')
    (first, *_), diagnosis = diagnosed(replace(block, effort=block.effort + offset.effort - healthy.effort,
                                               pressures=block.pressures + offset.pressures - healthy.pressures))
    assert {first.kind} <= {'payload', 'sensor_offset'}
    assert 'with that' in diagnosis.text and 'of what is left' in diagnosis.text
    other = 'an offset' if first.kind == 'payload' else 'a payload'
    assert other in diagnosis.text.split('with that')[1]


def test_two_causes_are_fitted_together():
    t, x, xd, xdd = swinging(30.0)
    machine = crane().with_payload('telescope_link', 30.0, [1.5, -0.15, -0.02], np.zeros((3, 3)))
    tilted = BaseMotion(orientation=(0.0, np.sin(0.025), 0.0, np.cos(0.025)))
    effort = machine.inverse_dynamics(x, xd, xdd, base=tilted)
    effort += 30.0 * np.random.default_rng(0).standard_normal(effort.shape)
    (first, second, *_), _ = diagnosed(block_of(t, x, xd, effort), hydraulics='')
    assert (first.kind, second.kind) == ('payload', 'base_tilt')
    assert first.estimate == pytest.approx(30.0, abs=3.0 * first.error) and first.error < 0.3
    assert second.estimate == pytest.approx(0.05, abs=3.0 * second.error) and second.error < 1e-3
    assert f'{second.text.split(" would")[0]} would explain' in first.text and 'of what is left' in second.text


def test_payloads_and_offsets_that_cannot_be_are_no_causes():
    causes, _ = diagnosed(recorded('encoder_offset', plain=False))
    for cause in causes:
        place = re.search(r'centre of mass \((.*?)\) m', cause.text)
        assert not place or np.linalg.norm([float(one) for one in place[1].split(', ')]) <= REACH
    reach = crane().coordinate_limits.upper - crane().coordinate_limits.lower
    assert all(abs(cause.estimate) < reach[crane().coordinates.index(cause.about)]
               for cause in causes if cause.kind == 'encoder_offset')


def test_a_short_recording_tells_nothing():
    causes, diagnosis = diagnosed(recorded('payload', 3.0))
    assert causes == () and 'too little' in diagnosis.text
    assert diagnosed()[0] == ()
    block = recorded('payload')
    causes, diagnosis = diagnosed(replace(block, effort=np.full_like(block.effort, np.nan)))
    assert causes == () and 'too little' in diagnosis.text


def test_an_effort_that_is_not_known_does_no_harm():
    block = recorded('sensor_offset')
    effort, pressures = block.effort.copy(), block.pressures.copy()
    effort[:, 0], effort[4000:6000, 2], pressures[4000:6000, 1] = np.nan, np.nan, np.nan
    (first, *_), _ = diagnosed(replace(block, effort=effort, pressures=pressures))
    assert first.kind == 'sensor_offset' and first.estimate == pytest.approx(OFFSET, rel=0.01)


@pytest.mark.parametrize('nonsense', [1e40, 1e140])
def test_numbers_that_are_nonsense_are_left_out(nonsense):
    block = recorded('payload')
    effort, rates = block.effort.copy(), block.xd.copy()
    effort[2000], rates[7000, 0], block.residual[9000] = nonsense, nonsense, nonsense
    (first, *_), _ = diagnosed(replace(block, effort=effort, xd=rates, t=block.t + 1e6))
    assert first.kind == 'payload' and first.estimate == pytest.approx(30.0, abs=4.0 * first.error)


# how a recording comes


def test_pieces_are_as_good_as_the_whole():
    block = recorded('payload')
    whole, _ = diagnosed(block)
    pieces = [replace(block, **{name: getattr(block, name)[first:first + 4400] for name in (
        't', 'x', 'xd', 'residual', 'effort', 'pressures', 'positions')}, core=slice(200 if first else 0, 4200))
        for first in range(0, len(block.t) - 200, 4000)]
    found, _ = diagnosed(*pieces)
    assert found[0].kind == 'payload'
    assert (found[0].share, found[0].estimate) == pytest.approx((whole[0].share, whole[0].estimate), rel=0.01)


@pytest.mark.long
def test_memory_does_not_grow_with_the_recording():
    block, predictor = recorded('sensor_drift', 10.0), Predictor(crane(), oil())
    diagnosis = Diagnosis(predictor)
    for k in range(20):
        part = recorded('', 10.0)
        pressures, effort = part.pressures.copy(), part.effort.copy()
        t = part.t + 60.0 * k
        pressures[:, 1, 0] += 1e3 * t
        effort[:, 2] += 1e3 * t * oil().cylinders['tilt_cylinder'].area_a
        late = replace(block, t=t, effort=effort, pressures=pressures)
        diagnosis.add(late, predictor.predict(late))
    first, *_ = diagnosis.causes()
    assert diagnosis.width == 4.0
    assert first.kind == 'sensor_drift' and first.estimate == pytest.approx(1e3, rel=0.01)


def test_boom_encoders_are_named_where_strokes_are_not_measured():
    healthy, machine = recorded(plain=False), crane()
    names, rows = machine.joint_state(healthy.x[0])[0], range(len(healthy.t))
    joints = ('slew', 'lift_boom', 'tilt_cylinder', 'telescope')
    columns = [names.index(joint) for joint in joints]
    positions = np.array([machine.joint_state(healthy.x[row])[1][columns] for row in rows])
    positions[:, 1] += np.radians(1.0)
    x = machine.joint_map(joints).states(positions)[0]
    (first, *_), _ = diagnosed(replace(healthy, x=x, positions=positions, joints=joints))
    assert (first.kind, first.about, first.unit) == ('encoder_offset', 'lift_boom', 'rad')
    assert first.estimate == pytest.approx(np.radians(1.0), rel=0.02) and 'degrees too much' in first.text


def test_friction_of_a_model_that_has_none_is_a_force():
    block = replace(recorded('', plain=False), pressures=None)
    found, diagnosis = diagnosed(block, hydraulics='')
    assert not diagnosis.corrections.believed[2]
    assert any(cause.kind == 'friction' and cause.unit == 'N' and 'where the model has none' in cause.text
               for cause in found)
    seal = oil().cylinders[found[0].about].friction
    assert found[0].kind == 'friction' and seal.coulomb < found[0].estimate < seal.coulomb + 0.2 * seal.viscous


@pytest.mark.long
@pytest.mark.parametrize('name, amplitude', [
    ('five_bar', 0.1), pytest.param('excavator', 0.05, marks=pytest.mark.long)])
def test_machines_with_other_loops_are_diagnosed_too(name, amplitude):
    machine = psdyn_ros.load(URDF / f'{name}.urdf')
    assert outermost(machine) == 'tcp'
    x, xd, xdd = sines(machine, 10.0, 0.02, amplitude)
    more = 0.1 * machine.total_mass
    laden = machine.with_payload('tcp', more, np.zeros(3), np.zeros((3, 3)))
    (first, *_), _ = diagnosed(*cut(machine, x, laden.inverse_dynamics(x, xd, xdd), 0.02), manipulator=machine,
                               hydraulics='')
    assert first.kind == 'payload' and first.estimate == pytest.approx(more, rel=0.01)
    effort = machine.inverse_dynamics(x, xd, xdd)
    effort[:, 0] += 0.05 * np.abs(effort[:, 0]).max()
    (first, *_), _ = diagnosed(*cut(machine, x, effort, 0.02), manipulator=machine, hydraulics='')
    assert (first.kind, first.about) == ('sensor_offset', machine.actuators[0])
    assert 'effort sensor' in first.next and 'pressure' not in first.next
    assert diagnosed(*cut(machine, x, machine.inverse_dynamics(x, xd, xdd), 0.02), manipulator=machine,
                     hydraulics='')[0] == ()


# words and numbers


def test_a_cause_goes_into_json():
    cause = Cause('frozen_encoder', 'slew', 0.9, 0.8, 1.0, 3.0, float('nan'), 's', 'text')
    assert json.loads(json.dumps(cause.as_dict(), allow_nan=False)) == {
        'kind': 'frozen_encoder', 'about': 'slew', 'share': 0.9, 'low': 0.8, 'high': 1.0, 'estimate': 3.0,
        'error': None, 'unit': 's', 'text': 'text', 'next': cause.next}
    assert "'slew' by hand" in cause.next


@pytest.mark.parametrize('value, error, text', [
    (31.23, 0.52, '31.23 +- 0.52'), (31.23, 2.4, '31.2 +- 2.4'), (1234.5, 321.0, '1234 +- 321'), (2.0, 0.0, '2'),
    (1.5, 1e-9, '1.500'), (0.0, 0.1, '0.00 +- 0.10'), (7.0, float('nan'), '7')])
def test_numbers_have_as_many_digits_as_their_errors_are_worth(value, error, text):
    assert shown(value, error) == text


def test_columns_are_what_the_residual_changes_by():
    """The columns of encoders against a model that is evaluated elsewhere."""
    block, predictor = recorded(plain=False), Predictor(crane(), oil())
    prediction = predictor.predict(block)
    corrections = Corrections(predictor)
    rows, e, columns = corrections(block, prediction)
    x, xd, xdd = (getattr(prediction, name)[rows] for name in ('x', 'xd', 'xdd'))
    step = 1e-4 * np.eye(4)[1]
    change = predictor.mechanism.inverse_dynamics(x, xd, xdd) - predictor.mechanism.inverse_dynamics(x + step, xd, xdd)
    encoder = columns[:, :, ENCODERS + 1]
    assert encoder == pytest.approx(change / 1e-4, rel=1e-3, abs=1e-3 * np.abs(change).max() / 1e-4)
    more = np.array([1.0, 1.0 + 1e-4, 1.0, 1.0])
    change = predictor.efforts(x, xd, xdd) - predictor.efforts(x * more, xd * more, xdd * more)
    scale = columns[:, :, corrections.scales + 1]
    assert scale == pytest.approx(change / 1e-4, rel=2e-3, abs=2e-3 * np.abs(change).max() / 1e-4)
    assert e.shape == columns.shape[:2] and np.nanmax(np.abs(e)) < 1e-3 * np.abs(prediction.effort).max()


vectors = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3).map(np.array)


@given(mass=st.floats(0.5, 100.0), place=vectors)
def test_the_inertia_of_a_point_follows_from_its_mass_and_its_moments(mass, place):
    h = mass * place
    inertia = (mass * (place @ place * np.eye(3) - np.outer(place, place)))[ROWS, COLUMNS]
    slopes = point_mass(mass, h)
    assert slopes @ [mass, *h] == pytest.approx(inertia, rel=1e-9, abs=1e-9)
    step = 1e-6 * mass
    for k, (dm, *dh) in enumerate(np.eye(4) * step):
        near = h + dh
        moved = ((near @ near * np.eye(3) - np.outer(near, near)) / (mass + dm))[ROWS, COLUMNS]
        assert (moved - inertia) / step == pytest.approx(slopes[:, k], rel=1e-4, abs=1e-4)


@given(mass=st.floats(0.5, 100.0), place=vectors, shift=vectors)
def test_the_inertia_of_a_moved_body_follows_from_the_shift(mass, place, shift):
    def inertia(at):
        return (mass * (at @ at * np.eye(3) - np.outer(at, at)))[ROWS, COLUMNS]
    moments = mass * shift
    slopes = moved_center(Inertial(mass, place, np.eye(3)), moments)
    assert slopes @ moments == pytest.approx(inertia(place + shift) - inertia(place), rel=1e-9, abs=1e-9 * mass)


def equations(seed, scale=1.0, weight=1.0, bins=40):
    """`Equations` of bins of two actuators: three columns and a residual of the first two and noise."""
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((bins, 2, 30, 3))
    e = 0.5 * columns[..., 0] - 0.2 * columns[..., 1] + 0.3 * rng.standard_normal((bins, 2, 30))
    rows = np.concatenate((e[..., None], columns * scale), axis=-1)
    products = np.swapaxes(rows, -1, -2) @ rows
    return Equations(Products.full(products), Products.full(0.0 * products), weight * np.ones(2), 1.0)


BOTH = np.array([[0, 1], [0, 1]])


@pytest.mark.parametrize('noisy', [0.3, 3.0])
def test_noise_that_residual_and_column_share_is_taken_off_where_it_is_not_most_of_the_column(noisy):
    rng = np.random.default_rng(2)
    true, noise = rng.standard_normal((400, 1, 30)), noisy * rng.standard_normal((400, 1, 30))
    rows, of_noise = (np.stack(pair, axis=-1) for pair in ((0.5 * true - 2.0 * noise, true + noise), (-2.0 * noise,
                                                                                                  noise)))
    products, shared = (Products.full(np.swapaxes(one, -1, -2) @ one) for one in (rows, of_noise))
    theta, covariance = Equations(products, shared, np.ones(1), 1.0).fit(np.array([[0]]))
    error = abs(theta[0] - 0.5)
    assert error <= 3.0 * np.sqrt(covariance[0, 0]) < 0.05 if noisy < 1.0 else error > 1.0


@given(seed=st.integers(0, 99), scale=st.floats(1e-6, 1e6), weight=st.floats(1e-9, 1e9))
def test_shares_do_not_depend_on_units(seed, scale, weight):
    one, other = equations(seed), equations(seed, scale, weight)
    assert other.share(BOTH) == pytest.approx(one.share(BOTH), rel=1e-6)
    assert other.fit(BOTH)[0] * scale == pytest.approx(one.fit(BOTH)[0], rel=1e-6)
    assert other.fit(BOTH)[1] * scale ** 2 == pytest.approx(one.fit(BOTH)[1], rel=1e-5, abs=1e-12)


@given(seed=st.integers(0, 999))
def test_shares_are_of_what_there_is_to_explain(seed):
    found = equations(seed)
    share, useless = found.share(BOTH), found.share(BOTH[:, :1] + 2)
    assert share.low <= share.estimate <= share.high <= 1.0 and share.estimate > 0.5
    assert useless.estimate < 0.05 and useless.low < 0.02
    assert found.likeness(BOTH, BOTH) == pytest.approx(1.0) and abs(found.likeness(BOTH[:, :1], BOTH[:, 1:])) < 0.3
    assert found.gain(BOTH[:, :1], BOTH).low > 0.0 > found.gain(BOTH, BOTH[:, :1]).high
    rest = found.of_rest(BOTH[:, :1], BOTH[:, 1:])
    assert rest.estimate == pytest.approx((share.estimate - found.share(BOTH[:, :1]).estimate)
                                          / (1.0 - found.share(BOTH[:, :1]).estimate), rel=1e-9)
    nothing = np.full((2, 1), -1)
    empty = Products.full(np.zeros((9, 2, 4, 4)))
    assert np.isnan(Equations(empty, empty, np.ones(2), 1.0).share(BOTH).estimate)
    assert found.share(nothing).estimate == 0.0 and found.fit(nothing)[0] == [0.0]


@pytest.mark.parametrize('smooth', [SavitzkyGolay(0.004), Butterworth(0.004)], ids=lambda one: one.name)
@pytest.mark.parametrize('order', [1, 2])
def test_power_of_second_differences_is_that_of_filtered_white_noise(rng, smooth, order):
    lag = 25
    e = smooth(rng.standard_normal(200_000), order)[1000:-1000]
    apart = e[2 * lag:] - 2.0 * e[lag:-lag] + e[:-2 * lag]
    assert second_difference_power(smooth, order, lag) == pytest.approx(np.mean(apart ** 2) / np.mean(e ** 2), rel=0.03)


def test_standard_errors_cover_the_truth():
    found = [equations(seed).fit(BOTH) for seed in range(200)]
    scores = np.array([(theta - [0.5, -0.2]) / np.sqrt(np.diagonal(covariance)) for theta, covariance in found])
    assert 0.8 < scores.std() < 1.4 and abs(scores.mean()) < 0.25


@pytest.mark.parametrize('bins', [8, 14, 40])
def test_intervals_of_few_stretches_cover_the_truth_as_often_as_those_of_many(bins):
    found = [equations(seed, bins=bins).fit(BOTH) for seed in range(300)]
    scores = np.array([(theta - [0.5, -0.2]) / np.sqrt(np.diagonal(covariance)) for theta, covariance in found])
    assert 0.925 < (np.abs(scores) <= 1.96).mean() < 0.985


@pytest.mark.parametrize('kind', ['center_of_mass', 'base_tilt'])
def test_errors_across_a_vector_do_not_make_it_longer(kind):
    """Mean over draws of its errors, against the truth and against the plain length."""
    rng, corrections = np.random.default_rng(4), SimpleNamespace(body=SimpleNamespace(mass=200.0))
    truth = np.array([0.5, 0.0, 0.0] if kind == 'center_of_mass' else [0.5, 0.0])
    covariance = np.diag([0.02, 0.1, 0.08][:len(truth)]) ** 2
    draws = rng.multivariate_normal(truth, covariance, 2000)
    found = np.mean([word(kind, 'tcp', one, covariance, corrections=corrections, hydraulics=None).estimate
                     for one in draws])
    plain = np.mean(np.linalg.norm(draws, axis=1))
    assert abs(found - 0.5) < 2e-3 < 4e-3 < plain - 0.5
