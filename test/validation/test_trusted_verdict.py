"""What a verdict says beside PASS and FAIL: too little motion, clear causes, units, and what `identify` refuses."""

import json
from itertools import count

import numpy as np
import pytest
from conftest import thorough
from support.bags.bag_cases import state_messages, write
from support.bags.recorded_motion import crane, exact_block, oil, write_swinging

from psdyn_ros.api.load import load
from psdyn_ros.cli import main
from psdyn_ros.model.locate import find_machine
from psdyn_ros.validation.identify import IdentificationError, identify_bag
from psdyn_ros.validation.metrics import FAIL, INVALID, PASS, UNDECIDED
from psdyn_ros.validation.metrics.verdict import CLEAR
from psdyn_ros.validation.validate import validate

SECONDS = 24.0
OFFSET_PA = 1e5


def offset_of_tilt(pressures):
    pressures[1, 0] += OFFSET_PA


def in_bar(pressures):
    pressures *= 1e-5


def exchanged_at_lift(pressures):
    pressures[0] = pressures[0, ::-1].copy()


def exchanged_lift_and_tilt(pressures):
    pressures[:2] = pressures[1::-1].copy()


def dead_at_lift(pressures):
    pressures[0] = 0.0


CASES = {'healthy': {}, 'offset': {'change': offset_of_tilt}, 'bar': {'change': in_bar},
         'exchanged': {'change': exchanged_at_lift}, 'names': {'change': exchanged_lift_and_tilt}, 'late': {'late': 2},
         'dead': {'change': dead_at_lift}}


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp('trusted')
    return {name: write_swinging(folder / f'{name}.mcap', seconds=SECONDS, **what) for name, what in CASES.items()}


def crane_bag(path, change, seconds=12.0):
    """Joint states of the crane with exact efforts; change: function that spoils x, xd and efforts (N, 4)."""
    block = exact_block(seconds, recorded_velocity=True)
    columns = [np.array(one) for one in (block.x, block.xd, block.effort)]
    change(*columns)
    return write(path, state_messages(crane(), block.t, *columns, names=crane().actuators))


def boom_bag(path, moving):
    """10 s of the boom, which moves between 2 s and 2 s + `moving`, and an effort that is a fifth too large."""
    boom = load(find_machine('hiab_xs031_lift'))
    t = 0.01 * np.arange(1000)
    phase = np.clip((t - 2.0) / max(moving, 1e-9), 0.0, 1.0)
    rate = np.where((phase > 0.0) & (phase < 1.0), 2.0 * np.pi / max(moving, 1e-9), 0.0)
    x = boom.initial_position + 0.02 * (1.0 - np.cos(2.0 * np.pi * phase))[:, None]
    xd = (0.02 * rate * np.sin(2.0 * np.pi * phase))[:, None]
    xdd = (0.02 * rate ** 2 * np.cos(2.0 * np.pi * phase))[:, None]
    return write(path, state_messages(boom, t, x, xd, 1.2 * boom.inverse_dynamics(x, xd, xdd), names=boom.actuators))


@pytest.mark.parametrize('moving', thorough([0.0, 3.0], 1))
def test_recording_with_next_to_no_motion_cannot_tell(tmp_path, capsys, moving):
    bag = boom_bag(tmp_path / 'boom.mcap', moving)
    assert main(['validate', str(bag), '--urdf', 'hiab_xs031_lift', '--output', str(tmp_path / 'page')]) == 3
    assert f'{UNDECIDED}: this recording cannot tell' in capsys.readouterr().out
    said = json.loads((tmp_path / 'page' / 'validation.json').read_text())
    assert said['verdict'] == UNDECIDED and said['causes'] == [] and 'cannot tell' in said['causes_text']


def test_recording_with_enough_motion_tells(tmp_path):
    verdict = validate(boom_bag(tmp_path / 'boom.mcap', 6.0), 'hiab_xs031_lift').verdict
    assert verdict.verdict == FAIL and verdict.exit_code == 1


def test_healthy_recording_passes_without_but(bags):
    found = validate(bags['healthy'], 'hiab_xs031')
    assert found.verdict.text == f'{PASS}: every figure is within its tolerance'


def test_clear_cause_stands_beside_pass_in_page_terminal_and_json(bags, tmp_path, capsys):
    assert main(['validate', str(bags['offset']), '--urdf', 'hiab_xs031', '--output', str(tmp_path)]) == 0
    shown, said = capsys.readouterr().out, json.loads((tmp_path / 'validation.json').read_text())
    cause = said['causes'][0]
    assert (cause['kind'], cause['about']) == ('sensor_offset', 'tilt_cylinder') and cause['low'] >= CLEAR
    assert abs(cause['estimate'] - OFFSET_PA) <= 4.0 * cause['error']
    assert shown.startswith(f'{PASS}, but {cause["text"]}') and f'next: {cause["next"]}' in shown
    assert said['verdict'] == PASS and said['text'].startswith('PASS, but') and said['but'] == [cause['text']]
    page = (tmp_path / 'report.html').read_text()
    assert 'class="verdict amber"' in page and f'Next: {cause["next"]}'.replace("'", '&#39;') in page


def test_units_that_look_wrong_come_first_and_stop_causes(bags, capsys):
    assert main(['validate', str(bags['bar']), '--urdf', 'hiab_xs031']) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(f'{FAIL}: pressures: up to ') and 'in bar?' in shown.splitlines()[0]
    assert 'causes are looked for once they are right' in shown


def test_dead_sensors_come_first_and_stop_causes(bags, capsys):
    assert main(['validate', str(bags['dead']), '--urdf', 'hiab_xs031']) == 2
    shown = capsys.readouterr().out
    assert shown.startswith(f'{INVALID}: lift_cylinder.pressure: 0 and 0 Pa in every message, though it moves by ')
    assert 'causes are looked for once they are right' in shown
    with pytest.raises(IdentificationError, match='dead sensors'):
        identify_bag(bags['dead'], 'hiab_xs031')


def test_page_terminal_and_json_say_when_the_effort_was_wrong(tmp_path, capsys):
    row = count()

    def wrong_for_4_s(pressures):
        if 1000 <= next(row) < 1400:
            pressures[1, 0] += 5e6
    bag = write_swinging(tmp_path / 'a.mcap', seconds=SECONDS, change=wrong_for_4_s)
    assert main(['validate', str(bag), '--urdf', 'hiab_xs031', '--output', str(tmp_path / 'page')]) == 1
    shown, said = capsys.readouterr().out, json.loads((tmp_path / 'page' / 'validation.json').read_text())
    when, = said['when']
    (begin, end), = when['spans']
    assert when['actuator'] == 'tilt_cylinder' and abs(begin - 10.0) <= 1.0 and abs(end - 14.0) <= 1.0
    assert when['text'] in shown and when['text'] in (tmp_path / 'page' / 'report.html').read_text()
    assert sum(when['regimes'].values()) == pytest.approx(1.0)


def test_exchanged_ports_are_named_first(bags):
    found = validate(bags['exchanged'], 'hiab_xs031')
    assert found.verdict.verdict == FAIL
    assert (found.causes[0].kind, found.causes[0].about) == ('ports', 'lift_cylinder')
    assert found.causes[0].text.startswith("ports A and B of 'lift_cylinder' exchanged")


def test_exchanged_names_are_named_first(bags):
    found = validate(bags['names'], 'hiab_xs031')
    assert found.verdict.verdict == FAIL
    assert found.causes[0].kind == 'exchanged'
    assert found.causes[0].text.startswith("measurements of 'lift_cylinder' and 'tilt_cylinder' exchanged")


@pytest.mark.long
@pytest.mark.parametrize('name, says', thorough([
    ('names', "measurements of 'lift_cylinder' and 'tilt_cylinder' exchanged"),
    ('bar', 'pressures: up to .* in bar?'), ('exchanged', "ports A and B of 'lift_cylinder' exchanged")], 1,
    several=True))
def test_identify_refuses_what_is_no_parameter(bags, capsys, name, says):
    with pytest.raises(IdentificationError, match=says):
        identify_bag(bags[name], 'hiab_xs031')
    assert main(['identify', str(bags[name]), '--urdf', 'hiab_xs031']) == 2
    assert 'nothing is identified before that is right' in capsys.readouterr().err


def test_identify_refuses_a_force_for_a_while_beside_an_offset(tmp_path):
    """Rows of the block that is written, every fifth, and the force by the Jacobian."""
    block, row = exact_block(SECONDS), count(0, 5)

    def pushed(pressures):
        offset_of_tilt(pressures)
        k = next(row)
        if 10.0 <= block.t[k] < 13.0:
            pressures[:, 0] += 100.0 * crane().jacobian(block.x[k], 'tcp')[2, 1:] / [
                one.area_a for one in oil().cylinders.values()]
    bag = write_swinging(tmp_path / 'pushed.mcap', seconds=SECONDS, change=pushed)
    assert [one.kind for one in validate(bag, 'hiab_xs031').causes[:2]] == ['sensor_offset', 'contact_force']
    with pytest.raises(IdentificationError, match="a force on 'tcp' from 10 to 13 s"):
        identify_bag(bag, 'hiab_xs031')


@pytest.mark.long
def test_identify_takes_delays_off_and_says_so(bags):
    late, healthy = (identify_bag(bags[name], 'hiab_xs031', payload_link='telescope_link')[0]
                     for name in ('late', 'healthy'))
    said, = (text for text in late.findings if text.startswith('delay: '))
    assert 'taken off' in said and not any(text.startswith('delay: ') for text in healthy.findings)
    assert late.bodies[0].found.mass == pytest.approx(healthy.bodies[0].found.mass, abs=5.0)
    for one, other in zip(late.friction, healthy.friction):
        assert one.forces[1].force == pytest.approx(other.forces[1].force, abs=0.1 * abs(other.forces[1].force) + 20.0)


@pytest.mark.parametrize('value', [np.nan, 0.0])
def test_an_effort_that_says_nothing_makes_the_recording_partial(tmp_path, value):
    def change(x, xd, effort):
        effort[:, 2] = value
    found = validate(crane_bag(tmp_path / 'a.mcap', change), crane(), hydraulics=oil())
    assert found.verdict.verdict == PASS and found.verdict.exit_code == 3
    assert found.verdict.partial == ('tilt_cylinder: its effort is not measured',)


def half(x, xd, effort):
    xd *= 0.5


def turned(x, xd, effort):
    xd[:, 1] *= -1.0


def still(x, xd, effort):
    xd[:, 3] = 0.0


def others(x, xd, effort):
    xd[:, [0, 3]] = xd[:, [3, 0]]


@pytest.mark.parametrize('change, about, says', [
    (half, 'slew', 'it is 0.50 times the rate of its position'), (turned, 'lift_cylinder', 'the negative of it'),
    (still, 'telescope', 'it is zero all the time'), (others, 'telescope', 'the rate of its position')])
def test_velocities_that_contradict_their_positions_are_named_and_not_used(tmp_path, change, about, says):
    found = validate(crane_bag(tmp_path / 'a.mcap', change), crane(), hydraulics=oil())
    said = [one.text for one in found.quality.findings() if one.about == f'{about}.velocity']
    assert len(said) == 1 and says in said[0], said
    assert found.verdict.verdict == PASS and (change is still or said[0] in found.verdict.text)
    exact = validate(crane_bag(tmp_path / 'b.mcap', lambda *_: None), crane(), hydraulics=oil())
    assert not exact.verdict.but
    assert found.metrics.effort(0).rmse < exact.metrics.effort(0).rmse + 1e-3 * exact.metrics.effort(0).scale


@pytest.mark.parametrize('mirrored', [False, True])
def test_an_effort_or_a_position_of_the_wrong_sign_is_named(tmp_path, mirrored):
    def change(x, xd, effort):
        if mirrored:
            x[:, 3], xd[:, 3] = -x[:, 3], -xd[:, 3]
        else:
            effort[:, 1] *= -1.0
    verdict = validate(crane_bag(tmp_path / 'a.mcap', change), crane(), hydraulics=oil()).verdict
    assert verdict.verdict != PASS
    assert ('telescope.position: from' if mirrored else 'lift_cylinder.effort: it is -1 times') in verdict.reasons[0]
    assert ('of the wrong sign?' if mirrored else 'is its sign wrong') in verdict.reasons[0]


def test_of_a_frozen_encoder_that_comes_before_what_follows_from_it(tmp_path):
    def change(x, xd, effort):
        x[1500:3000, 2] = x[1500, 2]
    verdict = validate(crane_bag(tmp_path / 'a.mcap', change), crane(), hydraulics=oil()).verdict
    assert verdict.verdict == FAIL and any('tilt_cylinder.velocity' in one for one in verdict.reasons), verdict.reasons
    assert verdict.reasons[0].startswith('tilt_cylinder: frozen 3 s'), verdict.reasons


def test_a_joint_that_appears_late_is_named_with_its_span(tmp_path):
    def change(x, xd, effort):
        x[:len(x) // 3, 3] = np.nan
    verdict = validate(crane_bag(tmp_path / 'a.mcap', change), crane(), hydraulics=oil()).verdict
    assert verdict.exit_code == 3 and 'telescope is measured from 4 to 1' in verdict.partial[-1], verdict.partial
