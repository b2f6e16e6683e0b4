"""Masses, inertias and other numbers that no machine has."""

import re

import numpy as np
import pytest
from support.machines import hiab
from support.one_loop import edit, one_loop

import psdyn_ros
from psdyn_ros import InertiaError, ModelError

XML = one_loop(initial=('boom',), losses=((1, 2), (3, 4), (5, 6), (7, 8))).xml
MASS = '<mass value="12.0"/>'
NUMBERS = re.compile(r'(\w+)="([-+.\de ]+)"')


def link(name, mass, moments, com='0 0 0'):
    inertia = 'ixy="0" ixz="0" iyz="0" ' + ' '.join(f'i{axis}{axis}="{value}"' for axis, value in zip('xyz', moments))
    return (f'<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia {inertia}/>'
            '</inertial></link>')


def turning(*links, kind='revolute'):
    """A chain of links that all turn about (or slide along) the same axis."""
    names = ['a', *re.findall(r'<link name="(\w+)"', ''.join(links))]
    joints = ''.join(f'<joint name="on_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
                     '<axis xyz="0 0 1"/></joint>' for parent, child in zip(names, names[1:]))
    control = ''.join(f'<joint name="on_{name}"><command_interface name="effort"/></joint>' for name in names[1:])
    return f'<robot name="r"><link name="a"/>{"".join(links)}{joints}<ros2_control>{control}</ros2_control></robot>'


@pytest.mark.parametrize('value, error, words', [
    ('nan', ModelError, "value='nan' is not 1 finite number"),
    ('inf', ModelError, "value='inf' is not 1 finite number"),
    ('-1e-3', InertiaError, 'mass -0.001 kg is negative'),
    ('0', InertiaError, 'zero mass on a moving link'),
    ('-0.0', InertiaError, 'zero mass on a moving link'),
    ('heavy', ModelError, "value='heavy' is not 1 number"),
    ('1,5', ModelError, "value='1,5' is not 1 number"),
    ('1 2', ModelError, "value='1 2' is not 1 finite number"),
    ('', ModelError, "value='' is not 1 finite number"),
])
def test_masses(value, error, words):
    with pytest.raises(error, match=rf"link 'rod_link' \(line \d+\): {words}"):
        psdyn_ros.load(edit(XML, (MASS, f'<mass value="{value}"/>')))


@pytest.mark.parametrize('new, words', [('', '<inertial> has no <mass>'),
                                        ('<mass/>', "attribute 'value' of <mass> is missing")])
def test_missing_mass(new, words):
    with pytest.raises(ModelError, match=rf"link 'rod_link' \(line \d+\): {words}"):
        psdyn_ros.load(edit(XML, (MASS, new)))


def test_missing_inertia():
    with pytest.raises(ModelError, match=r"link 'rod_link' \(line \d+\): <inertial> has no <inertia>"):
        psdyn_ros.load(re.sub(f'({MASS})<inertia .*?/>', r'\1', XML))


@pytest.mark.parametrize('name', ['ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'])
def test_missing_moment_of_inertia(name):
    xml = re.sub(f'({MASS}<inertia .*?){name}="[^"]*"', r'\1', XML)
    with pytest.raises(ModelError, match=rf"link 'rod_link' \(line \d+\): attribute '{name}' of <inertia> is missing"):
        psdyn_ros.load(xml)


def test_moving_link_without_inertial():
    xml = re.sub('(<link name="rod_link">)<inertial>.*?</inertial>', r'\1', XML)
    with pytest.raises(InertiaError, match=r"link 'rod_link' \(line \d+\), moved by joint 'cylinder', has no mass"):
        psdyn_ros.load(xml)


def test_the_mass_may_be_on_a_link_that_is_fixed_to_the_moving_one():
    body = re.search('<link name="rod_link">(<inertial>.*?</inertial>)', XML)[1]
    mount = ('<link name="flange">' + body + '</link><joint name="mount" type="fixed"><parent link="rod_link"/>'
             '<child link="flange"/></joint></robot>')
    moved = edit(XML, (body, ''), ('</robot>', mount))
    assert psdyn_ros.load(moved).gravity_forces([0.3]) == psdyn_ros.load(XML).gravity_forces([0.3])


def test_zero_mass_is_fine_where_nothing_moves():
    xml = edit(XML, ('<mass value="100.0"/>', '<mass value="0"/>'),
               ('ixx="5.0" iyy="3.0" izz="5.0"', 'ixx="0" iyy="0" izz="0"'))
    assert psdyn_ros.load(xml).total_mass == 97.0


@pytest.mark.parametrize('bad', ['nan', 'inf', 'x', ''])
def test_every_number_must_be_finite(bad):
    numbers = list(NUMBERS.finditer(XML))
    assert len(numbers) > 60
    for match in numbers:
        words = match[2].split()
        text = ' '.join([*words[:-1], bad]) if bad else ''
        said = rf"line \d+\): {match[1]}='{re.escape(text)}' is not {len(words)} (finite )?number"
        with pytest.raises(ModelError, match=said):
            psdyn_ros.load(XML[:match.start(2)] + text + XML[match.end(2):])


@pytest.mark.parametrize('bad', ['nan', 'inf', '-inf', 'home', '1 2'])
def test_initial_value_must_be_finite(bad):
    xml = re.sub(r'(initial_value">)[-.\de]+', rf'\g<1>{bad}', XML)
    with pytest.raises(ModelError, match=rf"<ros2_control> joint 'boom' \(line \d+\): initial_value='{bad}' is not 1"):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('moments, words', [
    ((1.0, 1.0, -0.1), r'inertia has a negative principal moment \(-0.1 kg m\^2\)'),
    ((1.0, 2.0, 3.1), r'principal moments 1, 2, 3.1 kg m\^2: the largest exceeds the sum of the others'),
])
def test_impossible_inertia(moments, words):
    old = 'ixx="0.02" iyy="0.3" izz="0.3"'
    xml = edit(XML, (old, 'ixx="{}" iyy="{}" izz="{}"'.format(*moments)))
    with pytest.raises(InertiaError, match=rf"link 'rod_link' \(line \d+\): {words}.*; allow_unphysical=True accepts"):
        psdyn_ros.load(xml)
    unphysical = psdyn_ros.load(xml, allow_unphysical=True)
    warning, = unphysical.machine.warnings
    assert re.search(rf"link 'rod_link' \(line \d+\): {words}", warning)
    s = [0.3], [1.0], [2.0]
    assert np.isfinite(unphysical.inverse_dynamics(*s)).all()
    assert unphysical.inverse_dynamics(*s) != psdyn_ros.load(XML).inverse_dynamics(*s)


def test_impossible_inertia_by_its_products():
    xml = edit(XML, ('ixx="0.02" iyy="0.3" izz="0.3" ixy="0.0"', 'ixx="0.02" iyy="0.3" izz="0.3" ixy="0.2"'))
    with pytest.raises(InertiaError, match='negative principal moment'):
        psdyn_ros.load(xml)


def test_flat_and_slender_bodies_are_possible():
    for moments in ((1.0, 2.0, 3.0), (0.0, 1.0, 1.0)):       # a lamina, a needle
        assert psdyn_ros.load(turning(link('b', 1, moments, com='1 0 0'))).dof == 1


def test_allow_unphysical_does_not_accept_what_cannot_be_computed():
    for bad in ('nan', '-1'):
        with pytest.raises(ModelError):
            psdyn_ros.load(edit(XML, (MASS, f'<mass value="{bad}"/>')), allow_unphysical=True)


def test_inertia_without_mass():
    mounted = link('c', 0, (1, 1, 1)) + ('<joint name="m" type="fixed"><parent link="a"/><child link="c"/></joint>')
    with pytest.raises(InertiaError, match='inertia without mass'):
        psdyn_ros.load(edit(turning(link('b', 1, (1, 1, 1))), ('</robot>', mounted + '</robot>')))


def test_point_mass_on_its_own_axis():
    with pytest.raises(InertiaError, match=r"link 'b' \(line 1\) has no inertia about the axis of its joint 'on_b'"):
        psdyn_ros.load(turning(link('b', 1, (0, 0, 0), com='0 0 1')))
    assert psdyn_ros.load(turning(link('b', 1, (0, 0, 0), com='0.01 0 1'))).dof == 1


def test_inner_links_without_inertia():
    # the outer link turns freely about the same axis, so that nothing resists the inner one
    xml = turning(link('b', 1, (0, 0, 0)), link('c', 1, (1, 1, 1)))
    with pytest.raises(InertiaError, match="'on_b' moves bodies without any inertia"):
        psdyn_ros.load(xml)
    assert psdyn_ros.load(turning(link('b', 1, (1, 1, 1)), link('c', 1, (1, 1, 1)))).dof == 2


def test_massless_links_are_fine_when_what_they_carry_has_mass():
    xml = turning(link('b', 0, (0, 0, 0)), link('c', 1, (1, 1, 1)))
    crossed = edit(xml, ('<axis xyz="0 0 1"/>', '<axis xyz="1 0 0"/>'))
    with pytest.raises(InertiaError, match='zero mass'):
        psdyn_ros.load(crossed)
    assert psdyn_ros.load(crossed, allow_unphysical=True).dof == 2
    with pytest.raises(InertiaError, match='without any inertia'):
        psdyn_ros.load(turning(link('b', 0, (0, 0, 0)), kind='prismatic'), allow_unphysical=True)


@pytest.mark.parametrize('old, new, words', [
    ('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0 0 0"/>', r"joint 'barrel' \(line \d+\): the axis has no direction"),
    ('<axis xyz="0.0 0.0 1.0"/>', '<axis/>', r"joint 'barrel' \(line \d+\): attribute 'xyz' of <axis> is missing"),
    ('effort="1e6"', 'effort="-1e6"', r"joint 'barrel' \(line \d+\): limit effort=-1e\+06 must not be negative"),
    ('velocity="10"', 'velocity="-10"', r"joint 'barrel' \(line \d+\): limit velocity=-10 must not be negative"),
    ('lower="-7.0" upper="7.0"', 'lower="1"', r"joint 'barrel' \(line \d+\): limit lower=1 is above upper=0"),
    ('lower="-7.0"', 'lower="8.0"', r"joint 'barrel' \(line \d+\): limit lower=8 is above upper=7"),
    ('damping="5.0"', 'damping="-5.0"', r"joint 'barrel' \(line \d+\): <dynamics> damping=-5 .* negative"),
    ('friction="8.0"', 'friction="-8.0"', r"constraint 'eye' \(line \d+\): <dynamics> .*friction=-8 .* negative"),
])
def test_numbers_that_make_no_sense(old, new, words):
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(edit(XML, (old, new)))


def test_the_axis_of_a_fixed_joint_does_not_matter():
    mount = '<joint name="tcp_mount" type="fixed">'
    xml = edit(hiab().xml, (mount, mount + '<axis xyz="0 0 0"/>'))
    assert psdyn_ros.load(xml).machine.warnings == ()


def test_crossed_limits_of_a_continuous_joint():
    xml = edit(one_loop(turning='continuous').xml, ('lower="-7.0"', 'lower="8.0"'))
    with pytest.raises(ModelError, match='limit lower=8 is above upper=7'):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('text', ['1_0', '1_000', '0x10', '1e', '1e_3', '1d3', '+-1', '1.2.3', '\u0661', '\uff11', '1f',
                                  '1,0', 'True', '--1', 'infinit', '.'])
def test_numbers_are_plain_decimals(text):
    with pytest.raises(ModelError, match=rf"link 'rod_link' .*value='{re.escape(text)}' is not 1 number"):
        psdyn_ros.load(edit(XML, (MASS, f'<mass value="{text}"/>')))


@pytest.mark.parametrize('text', ['Infinity', 'INF', '+inf', '-nan', 'NaN', '1e999'])
def test_spellings_of_infinity_and_nan(text):
    with pytest.raises(ModelError, match=rf"value='{re.escape(text)}' is not 1 (finite )?number"):
        psdyn_ros.load(edit(XML, (MASS, f'<mass value="{text}"/>')))


@pytest.mark.parametrize('text', ['12', '+12.', '1.2e1', '1.2E+01', '120e-1', ' 12\n', '0012'])
def test_spellings_of_one_number(text):
    xml = edit(XML, (MASS, f'<mass value="{text}"/>'))
    assert psdyn_ros.load(xml).gravity_forces([0.3]) == psdyn_ros.load(XML).gravity_forces([0.3])


@pytest.mark.parametrize('old, new, words', [
    (MASS, '<mass value="1e308"/>', r"link 'rod_link' \(line \d+\): value='1e308' is beyond 1e\+09"),
    (MASS, '<mass value="1.1e9"/>', r"value='1.1e9' is beyond 1e\+09, the largest that is computed"),
    ('ixy="0.0"', 'ixy="-1e16"', r"ixy='-1e16' is beyond 1e\+15"),
    ('xyz="0.1 0.01 -0.02"', 'xyz="0 -2e6 0"', r"link 'rod_link' .*xyz='0 -2e6 0' is beyond 1e\+06"),
    ('rpy="0.0 0.0 0.0"', 'rpy="0 0 1e200"', r"rpy='0 0 1e200' is beyond 1e\+15"),
    ('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0 0 1e200"/>', r"joint 'barrel' .*xyz='0 0 1e200' is beyond 1e\+15"),
    ('damping="5.0"', 'damping="1e300"', r"joint 'barrel' .*damping='1e300' is beyond 1e\+15"),
])
def test_numbers_whose_products_overflow(old, new, words):
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(edit(XML, (old, new)), allow_unphysical=True)


def test_limits_may_be_as_large_as_exporters_write_them():
    xml = edit(XML, ('lower="-7.0" upper="7.0" effort="1e6" velocity="10"',
                     'lower="-1.79e308" upper="1.79e308" effort="1e308" velocity="1e16"'))
    assert psdyn_ros.load(xml).gravity_forces([0.3]) == psdyn_ros.load(XML).gravity_forces([0.3])


def test_axes_need_not_be_unit_vectors():
    xml = edit(XML, ('<axis xyz="0.0 0.0 1.0"/>', '<axis xyz="0 0 40"/>'))
    assert psdyn_ros.load(xml).gravity_forces([0.3]) == psdyn_ros.load(XML).gravity_forces([0.3])


def test_placeholder_inertias_are_warned_of():
    xml = edit(XML, ('ixx="0.02" iyy="0.3" izz="0.3"', 'ixx="1" iyy="1" izz="1"'))
    assert any('rod_link' in warning and 'placeholder' in warning for warning in psdyn_ros.load(xml).machine.warnings)
    assert psdyn_ros.load(XML).machine.warnings == ()
