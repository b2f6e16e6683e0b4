"""Corrected files: what was identified is in them, what it was stands beside it, and nothing else has changed."""

import re

import numpy as np
import pytest
from support.machines import URDF

import psdyn_ros
from psdyn_ros.model.errors import ModelError
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.mechanism.description import Inertial
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.validation.identification.corrected_model import corrected_hydraulics, corrected_urdf, write_corrected
from psdyn_ros.validation.identification.identified import (
    BodyEstimate,
    FrictionEstimate,
    HeldOut,
    Identification,
    SpeedForce,
)
from psdyn_ros.validation.report.identification_report import bodies_table, friction_table

CRANE = (URDF / 'hiab_xs031.urdf').read_text()
ACTUATORS = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
OIL = find_config('hiab_xs031_hydraulics.yaml')
PAYLOAD = Inertial(200.0, np.array([1.5, -0.15, -0.02]), np.diag([8.0, 6.0, 5.0]))
ERRORS = np.full(10, 0.125)

SMALL = '''<robot name="arm">
  <link name="base"/>
  <joint name="swing" type="continuous">
    <parent link="base"/><child link="bar"/><axis xyz="0 1 0"/>
    {dynamics}
  </joint>
  <!-- > "not a tag -->
  <link name="bar"{bar}
</robot>
'''
INERTIAL = '<inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
DRIVEN = ('<ros2_control name="c" type="system"><joint name="swing"><command_interface name="effort"/></joint>'
          '</ros2_control>')


def friction(name, coulomb, viscous, was=(4000.0, 3000.0), unit='m/s', error=12.0):
    forces = tuple(SpeedForce(speed, coulomb + viscous * speed, error, was[0] + was[1] * speed)
                   for speed in (0.03, 0.065, 0.1))
    return FrictionEstimate(name, unit, 30.0, *was, coulomb, viscous, 20.0, 400.0, forces)


def unmoved(name):
    return FrictionEstimate(name, 'm/s', 0.0, 4000.0, 3000.0, None, None, None, None, ())


def found(bodies=(), seals=(), payload=False, source='night.mcap'):
    held = HeldOut(ACTUATORS, 15, *np.ones((7, 4)), 9.0, (), (), 2.0, None)
    return Identification('crane', source, payload, tuple(bodies), tuple(seals), (), (), 0.01, held, 'a filter', 60.0,
                          1000, 0)


def payload_on(link, description, payload=PAYLOAD):
    return BodyEstimate(link, description.links[link].inertial, payload, ERRORS, ERRORS, np.ones(10), True)


def uncommented(text):
    return re.sub(r'<!--.*?-->', '', text, flags=re.S)


def test_no_payload_on_a_link_without_mass_changes_nothing():
    body = payload_on('tcp', psdyn_ros.load(CRANE).machine.description, Inertial(0.0, np.zeros(3), np.zeros((3, 3))))
    assert corrected_urdf(CRANE, found([body], payload=True)) == CRANE


def test_a_payload_is_added_to_its_link_and_nothing_else_changes():
    machine = psdyn_ros.load(CRANE)
    body = payload_on('telescope_link', machine.machine.description)
    text = corrected_urdf(CRANE, found([body], payload=True))
    corrected = psdyn_ros.load(text)
    laden = machine.with_payload('telescope_link', PAYLOAD.mass, PAYLOAD.com, PAYLOAD.inertia)
    x, motion = machine.initial_position, 0.1 * np.ones((2, 4))
    assert corrected.inverse_dynamics(x, *motion) == pytest.approx(laden.inverse_dynamics(x, *motion), rel=1e-12)
    assert 'was mass 576.919369 kg, centre of mass 1.44432313 -0.128823319 -0.0128705539 m' in text
    assert 'Standard errors: mass 0.125 kg' in text and 'from night.mcap' in text
    # text that was there is there, but for one element
    before = CRANE.split('<mass value="576.91936922"/>')
    assert text.startswith(before[0][:before[0].rindex('<inertial>')])
    assert text.endswith(before[1].partition('</inertial>')[2])


def test_a_link_without_inertial_and_one_that_closes_itself_are_given_one():
    machine = psdyn_ros.load(CRANE)
    text = corrected_urdf(CRANE, found([payload_on('tcp', machine.machine.description)], payload=True))
    assert 'had no inertial' in text
    assert psdyn_ros.load(text).total_mass == pytest.approx(machine.total_mass + 200.0)
    assert '<link name="tcp">' in uncommented(text)


def test_links_of_which_the_recording_tells_nothing_stay():
    description = psdyn_ros.load(CRANE).machine.description
    own = description.links['pillar'].inertial
    silent = BodyEstimate('pillar', own, Inertial(1.0, own.com, own.inertia), ERRORS, ERRORS, np.zeros(10), False)
    assert corrected_urdf(CRANE, found([silent])) == CRANE


@pytest.mark.parametrize('dynamics', ['', '<dynamics damping="2.5" friction="1.5"/>',
                                      '<dynamics friction="1.5" damping="2.5" ></dynamics>'])
def test_friction_of_a_joint_without_hydraulics_goes_into_the_urdf(dynamics):
    text = SMALL.format(dynamics=dynamics, bar=f'>{INERTIAL}</link>{DRIVEN}')
    seal = friction('swing', 7.0, 4.0, was=(1.5, 2.5), unit='rad/s', error=0.1)
    corrected = corrected_urdf(text, found(seals=[seal]))
    joint = psdyn_ros.load(corrected).machine.description.joints['swing']
    assert (joint.friction, joint.damping) == pytest.approx((7.0, 4.0))
    assert 'was damping 2.5, friction 1.5' in corrected and 'standard error 0.1 N m' in corrected
    assert 'viscous part alone is not identifiable' in corrected
    assert uncommented(corrected).count('<dynamics') == 1
    assert '<!-- > "not a tag -->' in corrected


def test_names_of_recordings_do_not_break_comments():
    text = SMALL.format(dynamics='', bar=f'>{INERTIAL}</link>{DRIVEN}')
    seal = friction('swing', 7.0, 4.0, was=(0.0, 0.0), unit='rad/s', error=0.1)
    corrected = corrected_urdf(text, found(seals=[seal], source='a --> <robot>\n--b'))
    assert psdyn_ros.load(corrected).machine.description.joints['swing'].friction == 7.0


def test_friction_that_is_none_is_not_declared():
    text = SMALL.format(dynamics='', bar=f'>{INERTIAL}</link>{DRIVEN}')
    seal = friction('swing', 0.05, 0.0, was=(0.0, 0.0), unit='rad/s', error=0.1)
    assert corrected_urdf(text, found(seals=[seal])) == text


def test_friction_of_cylinders_goes_into_the_hydraulics_though_they_share_an_anchor():
    with open(OIL) as file:
        text = file.read()
    seals = [unmoved('slew'), friction('lift_cylinder', 4100.0, 2900.0), friction('tilt_cylinder', 3500.0, 3500.0),
             unmoved('telescope')]
    corrected = corrected_hydraulics(text, found(seals=seals), ACTUATORS)
    before, after = (read_hydraulics(one, ACTUATORS) for one in (text, corrected))
    values = {name: (one.friction.coulomb, one.friction.viscous) for name, one in after.cylinders.items()}
    assert values == {'lift_cylinder': (4100.0, 2900.0), 'tilt_cylinder': (3500.0, 3500.0),
                      'telescope': (4000.0, 3000.0)}        # which was an alias of the first
    for name in values:
        one, other = before.cylinders[name], after.cylinders[name]
        assert one.friction.presliding == other.friction.presliding and one.valve == other.valve
    assert corrected.count('was coulomb 4000, viscous 3000') == 2 and corrected.count('standard error 12 N') == 2
    assert corrected.startswith(text[:text.index('    friction:')])


@pytest.mark.parametrize('old', ['friction: {coulomb: 4000.0, viscous: 3000}',
                                 'friction:\n      viscous: 3000.0 # old\n      coulomb: 4e3\n',
                                 "'friction' : { viscous: 3e3 , coulomb: 4000 }"])
def test_any_way_of_writing_friction_is_replaced(old):
    with open(OIL) as file:
        text = file.read()
    text = re.sub(r'    friction: &friction\n(      .*\n)+', lambda _: f'    {old.rstrip()}\n', text)
    text = text.replace('    friction: *friction\n', '    friction: {coulomb: 10.0}\n')
    after = read_hydraulics(corrected_hydraulics(text, found(seals=[friction('lift_cylinder', 4100.0, 2900.0)]),
                                                 ACTUATORS), ACTUATORS)
    assert (after.cylinders['lift_cylinder'].friction.coulomb, after.cylinders['lift_cylinder'].friction.viscous) == (
        4100.0, 2900.0)
    assert after.cylinders['telescope'].friction.coulomb == 10.0


def test_friction_that_is_merged_in_from_elsewhere_is_refused():
    with open(OIL) as file:
        text = file.read()
    head, tail = text.split('  tilt_cylinder:\n')
    rest = tail[tail.index('  telescope:\n'):]
    merged = head.replace('  lift_cylinder:\n', '  lift_cylinder: &lift\n') + '  tilt_cylinder:\n    <<: *lift\n' + rest
    with pytest.raises(ModelError):
        corrected_hydraulics(merged, found(seals=[friction('tilt_cylinder', 4100.0, 2900.0)]), ACTUATORS)


def test_friction_below_zero_is_not_written():
    rising = friction('lift_cylinder', -50.0, 3000.0)
    assert rising.line == pytest.approx((0.0, (-50.0 + 3000.0 * 0.065) / 0.065))
    falling = friction('lift_cylinder', 4000.0, -2000.0)
    assert falling.line == pytest.approx((4000.0 - 2000.0 * 0.065, 0.0))


@pytest.mark.parametrize('level, slope', [(-4.0, 0.0), (-100.0, 0.0), (5.0, -200.0), (-30.0, 500.0)])
def test_friction_below_zero_is_not_stated(level, slope):
    one = friction('lift_cylinder', level, slope, was=(0.0, 0.0)).possible
    assert one.impossible == (min(level + slope * speed for speed in (0.03, 0.065, 0.1)) < -24.0)
    assert not re.search(r'-[0-9]', ' '.join(one.lines())) and bool(one.forces) != one.impossible
    assert one.impossible or min(one.coulomb, one.viscous, *(at.force for at in one.forces)) >= 0.0
    assert not any(cell.startswith('-') for row in friction_table(found(seals=[one])) for cell in row)


@pytest.mark.parametrize('mass', [-0.5, -30.0, -199.0])
def test_payload_below_zero_is_stated_as_less_than_the_model_has(mass):
    own = Inertial(100.0, np.zeros(3), np.eye(3)) if mass < -1.0 else None
    body = BodyEstimate('boom', own, Inertial(mass, np.zeros(3), mass * np.eye(3)), ERRORS, ERRORS, np.ones(10),
                        True).possible
    assert body.found.mass == (mass if mass == -30.0 else 0.0)
    shown = next(body.lines()) + ' '.join(list(bodies_table(found([body], payload=True)))[1])
    assert '-' not in shown.replace('+-', '') and shown.count('less than the') == 2 * (mass == -30.0)


def test_files_are_named_after_those_they_correct(tmp_path):
    machine = psdyn_ros.load(CRANE)
    hydraulics = read_hydraulics(OIL, machine.actuators)
    result = found([payload_on('telescope_link', machine.machine.description)], [friction('telescope', 4200.0, 2000.0)],
                   payload=True)
    paths = write_corrected(tmp_path, result, machine, 'hiab_xs031', hydraulics)
    assert [path.name for path in paths] == ['hiab_xs031_identified.urdf', 'hiab_xs031_hydraulics_identified.yaml']
    assert read_hydraulics(paths[1], ACTUATORS).cylinders['telescope'].friction.coulomb == 4200.0
