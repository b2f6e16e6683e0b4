"""Loops that are no linear-actuator triangle, do not close, or close in two ways."""

import re
from math import pi

import numpy as np
import pytest
from support.one_loop import edit, one_loop
from support.witnesses.general_oracle import GeneralOracle

import psdyn_ros
from psdyn_ros import AssemblyModeError, LoopClosureError, LoopError, ModelError

MACHINE = one_loop()
XML = MACHINE.xml
STATE = [0.25], [0.3], [0.7]
BODY = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1.2" iyz="0" izz="1.3"/></inertial>'


def gap_of_the_eye(manipulator, x):
    """Return the distance between rod eye and boom eye [m]."""
    closure = manipulator.machine.description.closures['eye']
    a, b = (manipulator.link_pose(x, link) @ (*origin.position, 1.0) for link, origin in (
        (closure.parent, closure.parent_origin), (closure.child, closure.child_origin)))
    return np.linalg.norm(a - b)


# what takes an axis off parallel by an angle (or a length): the knob, the words of the message
DEVIATIONS = [
    (lambda d: {'boom_rpy': (d, 0, 0)}, "the axis of barrel 'barrel' is off parallel to the boom axis", 'rad'),
    (lambda d: {'barrel_rpy': (0, d, 0)}, "the axis of barrel 'barrel' is off parallel to the boom axis", 'rad'),
    (lambda d: {'stroke_tilt': d}, "the stroke of 'cylinder' leaves the plane of the loop", 'rad'),
    (lambda d: {'eye_rpy': (0, d, 0)}, 'the pin axis on the rod is off parallel to the boom axis', 'rad'),
    (lambda d: {'boom_eye_rpy': (d, 0, 0)}, 'the pin axis on the boom is off parallel to the boom axis', 'rad'),
    (lambda d: {'gap': -d}, 'rod eye and boom eye are apart along the pin', 'm'),
]


@pytest.mark.parametrize('knob, words, unit', DEVIATIONS)
@pytest.mark.parametrize('amount', [1.1e-4, 0.02, 1.2])
def test_axes_out_of_tolerance(knob, words, unit, amount):
    expected = rf"constraint 'eye' \(line \d+\): {words} by ([-.e\d]+) {unit}; at most 0.0001 {unit} is tolerated"
    with pytest.raises(LoopError, match=expected) as caught:
        psdyn_ros.load(one_loop(**knob(amount)).xml)
    said = float(re.search(expected, str(caught.value))[1])
    assert said == pytest.approx(amount if unit == 'm' else np.sin(amount), rel=0.01)


@pytest.mark.parametrize('knob, words, unit', DEVIATIONS)
@pytest.mark.parametrize('amount', [2e-9, 1e-6, 0.9e-4])
def test_axes_within_tolerance_are_projected_with_a_warning(knob, words, unit, amount):
    manipulator = psdyn_ros.load(one_loop(**knob(amount)).xml)
    warning, = manipulator.machine.warnings
    assert re.search(rf"constraint 'eye' \(line \d+\): {words} by [-.e\d]+ {unit}; projected", warning)
    for x in np.linspace(*MACHINE.span['cylinder'], 9):
        assert gap_of_the_eye(manipulator, [x]) < 2 * amount + 1e-14
    exact = psdyn_ros.load(XML).inverse_dynamics(*STATE)
    assert abs(manipulator.inverse_dynamics(*STATE) - exact) < 1e-2 * amount / 1e-6 + 1e-9 * abs(exact)


@pytest.mark.parametrize('knob', [knob for knob, _, _ in DEVIATIONS])
def test_rounding_is_no_deviation(knob):
    manipulator = psdyn_ros.load(one_loop(**knob(2e-10)).xml)
    assert manipulator.machine.warnings == ()
    assert gap_of_the_eye(manipulator, [0.3]) < 1e-9


def test_the_axis_of_a_spherical_eye_does_not_matter():
    assert psdyn_ros.load(one_loop(pin='spherical', eye_rpy=(0.5, 1, 2)).xml).machine.warnings == ()


def test_limits_out_of_reach():
    words = (r"loop 'eye' \(line \d+\): cannot close anywhere: it needs cylinder between -0.25 and 0.65 m, its limits "
             'are 0.7 to 2 m')
    with pytest.raises(LoopClosureError, match=words):
        psdyn_ros.load(one_loop(initial=('boom',), limits={'cylinder': (0.7, 2.0)}).xml)


def test_eye_too_far_off_the_stroke_axis():
    xml = edit(XML, ('<parent_origin xyz="0.4 0.0 0.02"', '<parent_origin xyz="0.4 1.6 0.02"'))
    with pytest.raises(LoopClosureError, match=r'cannot close anywhere: .* 1.6 m off the stroke axis.* 1.1 \+ 0.45 m'):
        psdyn_ros.load(xml)


def test_triangles_without_a_side():
    xml = edit(XML, ('<child_origin xyz="0.45 0.0', '<child_origin xyz="0.0 0.0'))
    with pytest.raises(LoopClosureError, match='no triangle: barrel pin to boom pin 1.1 m, boom pin to eye 0 m'):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('x', [-0.26, 0.65, 2.0, 1e9])
def test_initial_position_at_which_the_loop_does_not_close(x):
    xml = one_loop(limits={'cylinder': (-1.0, 2e9)}).xml
    words = rf"loop 'eye' \(line \d+\): does not close at the initial position cylinder = {re.escape(f'{x:.6g}')} m; "
    with pytest.raises(LoopClosureError, match=words + 'it closes between -0.25 and 0.65 m'):
        psdyn_ros.load(xml, initial={'cylinder': x})
    with pytest.raises(LoopClosureError, match=words):
        psdyn_ros.load(xml, initial={'cylinder': x, 'boom': -1.0})
    with pytest.raises(LoopClosureError, match=words):
        psdyn_ros.load(re.sub(r'("cylinder">.*?initial_value">)[-.\de]+', rf'\g<1>{x}', xml, count=1, flags=re.S))


def test_limits_that_admit_no_closed_position():
    xml = one_loop(initial=('cylinder',), limits={'boom': (3.0, 3.1)}).xml
    with pytest.raises(LoopClosureError, match='limits of its joints admit no closed position; the loop closes with '
                                               r'boom \+1.543 rad or boom -1.543 rad'):
        psdyn_ros.load(xml)


def test_ambiguous_assembly_mode_lists_both():
    words = (r"loop 'eye' \(line \d+\): two assembly modes, boom \+1.543 rad or boom -1.543 rad; choose by "
             r'load\(initial={joint: position}\), an initial_value in <ros2_control>, or joint limits that admit one')
    with pytest.raises(AssemblyModeError, match=words):
        psdyn_ros.load(one_loop(initial=('cylinder',)).xml)
    with pytest.raises(AssemblyModeError, match=r'boom [+-]\d.\d+ to [+-]\d.\d+ rad or boom'):
        psdyn_ros.load(one_loop(initial=()).xml)


@pytest.mark.parametrize('mode', [-1, 1])
@pytest.mark.parametrize('e', [0.0, 0.2])
@pytest.mark.parametrize('way', ['boom', 'barrel', 'both', 'initial_value boom', 'initial_value barrel', 'limits boom',
                                 'limits barrel'])
def test_each_way_to_choose_the_assembly_mode(way, mode, e):
    machine = one_loop(mode=mode, e=e)
    boom, barrel = machine.initial['boom'], machine.initial['barrel']
    silent, initial = one_loop(mode=mode, e=e, initial=('cylinder',)).xml, None
    if way.startswith('initial_value'):
        silent = one_loop(mode=mode, e=e, initial=(way.split()[1],)).xml
    elif way.startswith('limits'):
        joint = way.split()[1]
        around = machine.initial[joint]
        limits = {'boom': tuple(sorted((0.0, mode * pi))), 'barrel': (around - 0.05, around + 0.05)}
        silent = one_loop(mode=mode, e=e, initial=('cylinder',), limits={joint: limits[joint]}).xml
    else:
        # rough values will do
        initial = {'boom': boom + 0.2, 'barrel': barrel - 0.02}
        initial = {key: value for key, value in initial.items() if way in (key, 'both')}
    manipulator = psdyn_ros.load(silent, initial=initial)
    assert manipulator.machine.modules[0].assembly.mode == mode
    expected = GeneralOracle(machine.xml).inverse_dynamics(*STATE)
    assert manipulator.inverse_dynamics(*STATE) == pytest.approx(expected, rel=1e-12)


def test_an_argument_overrules_the_urdf_and_the_urdf_overrules_limits():
    boom = MACHINE.initial['boom']
    other = psdyn_ros.load(XML, initial={'boom': -boom})
    assert other.joint_state(other.initial_position)[1][other.joints.index('boom')] == pytest.approx(-boom)
    # the limits alone admit the other mode only
    xml = one_loop(initial=('cylinder', 'barrel'), limits={'boom': (0.0, pi)}).xml
    assert psdyn_ros.load(xml).machine.modules[0].assembly.mode == -1


@pytest.mark.parametrize('joint, position', [('boom', -1.54), ('boom', 0.5), ('cylinder', 0.31), ('barrel', -1e3)])
def test_initial_positions_outside_the_limits(joint, position):
    limits = {'boom': (-1.0, 0.4), 'cylinder': (0.1, 0.3), 'barrel': (-7, 7)}
    low, high = limits[joint]
    words = rf"initial position of '{joint}' {{}} is {position:g}; its limits \(line \d+\) are {low:g} to {high:g}"
    xml = one_loop(initial=(), limits=limits).xml
    with pytest.raises(ModelError, match=words.format(r'in load\(initial=...\)')):
        psdyn_ros.load(xml, initial={joint: position})
    state = f'<joint name="{joint}"><state_interface name="position">'
    if joint == 'cylinder':
        state = state.replace('<state', '<command_interface name="effort"/><state')
    value = f'<param name="initial_value">{position}</param>'
    with pytest.raises(ModelError, match=words.format('in <ros2_control>')):
        psdyn_ros.load(edit(xml, (state, state + value)))


def test_initial_stroke_outside_its_limits_by_the_angle_of_the_boom():
    xml = one_loop(initial=('boom',), limits={'cylinder': (0.1, 0.25)}).xml
    words = r"initial position of 'cylinder' \(which follows from 'boom'\) is 0.3; its limits .* are 0.1 to 0.25"
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(xml)


def test_initial_position_at_a_rounded_limit():
    xml = one_loop(initial=('boom',), limits={'cylinder': (0.1, 0.3)}).xml
    assert psdyn_ros.load(xml, initial={'cylinder': 0.3 + 5e-7}).initial_position == [0.3 + 5e-7]


def test_initial_strokes_decide_nothing_but_the_initial_position():
    manipulator = psdyn_ros.load(XML, initial={'cylinder': 0.1})
    assert manipulator.initial_position == [0.1]
    assert manipulator.machine.modules[0].assembly.mode == -1


def test_initial_boom_angle_gives_the_initial_stroke():
    manipulator = psdyn_ros.load(one_loop(initial=()).xml, initial={'boom': MACHINE.initial['boom']})
    assert manipulator.initial_position == pytest.approx([0.3], abs=1e-14)


def test_whole_turns_of_an_initial_angle_do_not_matter():
    manipulator = psdyn_ros.load(one_loop(turning='continuous', initial=()).xml,
                                 initial={'boom': MACHINE.initial['boom'] + 4 * pi})
    assert manipulator.initial_position == pytest.approx([0.3])
    names, position, _, _ = manipulator.joint_state([0.3])
    assert position[names.index('boom')] == pytest.approx(MACHINE.initial['boom'] + 4 * pi)


@pytest.mark.parametrize('kind', ['fixed', 'universal', 'prismatic'])
def test_rod_eyes_that_are_no_pin_leave_no_freedom(kind):
    """A fixed eye holds the turn about the pin too, a prismatic one holds it and lets the eyes part along the pin."""
    with pytest.raises(LoopError, match="loop 'eye' leaves its 3 joints no freedom" if kind != 'universal' else
                       r"loop 'eye': does not close near its initial position; the smallest residual found is 1 \("):
        psdyn_ros.load(one_loop(pin=kind).xml)


def test_a_universal_eye_across_the_pin_is_as_good_as_a_pin():
    manipulator = psdyn_ros.load(edit(one_loop(pin='universal').xml, ('child_axis xyz="0.0 0.0 1.0"',
                                                                      'child_axis xyz="1.0 0.0 0.0"')))
    assert manipulator.inverse_dynamics(*STATE) == pytest.approx(psdyn_ros.load(XML).inverse_dynamics(*STATE))


def test_closures_of_unknown_type():
    with pytest.raises(ModelError, match="type 'weld' is not known; there are: revolute, fixed, spherical"):
        psdyn_ros.load(one_loop(pin='weld').xml)


def joint(name, kind, parent, child, x=0.0):
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{x} 0 0"/><axis xyz="{"1 0 0" if kind == "prismatic" else "0 0 1"}"/>'
            '<limit lower="-4" upper="4" effort="0" velocity="0"/></joint>')


def machine(joints, boom_end, eye, actuated):
    """A machine whose link 'c', the rod, is pinned 0.4 m from its origin to a point (x, y) of the link `boom_end`."""
    links = {name: '' for text in joints for name in re.findall('link="(\\w+)"', text)}
    return '\n'.join([
        '<robot name="r">', *(f'<link name="{name}">{BODY}</link>' for name in links), *joints,
        '<constraint name="pin" type="revolute"><parent link="c"/><parent_origin xyz="0.4 0 0"/><parent_axis '
        f'xyz="0 0 1"/><child link="{boom_end}"/><child_origin xyz="{eye[0]} {eye[1]} 0"/><child_axis xyz="0 0 1"/>'
        '</constraint>',
        '<ros2_control>', *(f'<joint name="{name}"><command_interface name="effort"/></joint>' for name in actuated),
        '</ros2_control></robot>'])


CYLINDER = [joint('barrel', 'revolute', 'base', 'b', 0.5), joint('rod', 'prismatic', 'b', 'c')]
NO_TRIANGLES = {
    'cylinder stands on the boom': machine(
        [joint('boom', 'revolute', 'base', 'a'), joint('barrel', 'revolute', 'a', 'b', 0.5), CYLINDER[1]],
        'base', (0.8, 0.6), ['rod']),
    'boom slides': machine([joint('boom', 'prismatic', 'base', 'a'), *CYLINDER], 'a', (0.3, 0.5), ['rod']),
    'boom on a later link': machine(
        [joint('lower', 'revolute', 'base', 'l'), joint('boom', 'revolute', 'l', 'a', 0.3), *CYLINDER],
        'a', (0.4, 0.3), ['lower', 'rod']),
}


@pytest.mark.parametrize('kind', NO_TRIANGLES)
def test_cylinders_that_are_no_triangle(kind, rng):
    xml = NO_TRIANGLES[kind]
    manipulator = psdyn_ros.load(xml, initial={'boom': 0.4, 'barrel': 1.2, 'rod': 0.3})
    x = manipulator.initial_position
    start = dict(zip(*manipulator.joint_state(x)[:2]))
    oracle = GeneralOracle(xml, initial=start, coordinates=manipulator.coordinates)
    x = x + rng.uniform(-0.05, 0.05, len(x))
    xd, xdd = rng.uniform(-1, 1, (2, len(x)))
    assert manipulator.inverse_dynamics(x, xd, xdd) == pytest.approx(oracle.inverse_dynamics(x, xd, xdd), rel=1e-10)


def test_a_rod_without_a_barrel_cannot_move():
    xml = machine([joint('boom', 'revolute', 'base', 'a'), joint('rod', 'prismatic', 'base', 'c')], 'a', (0.4, 0.3),
                  ['rod'])
    with pytest.raises(LoopError, match="loop 'pin' leaves its 2 joints no freedom"):
        psdyn_ros.load(xml)


def test_an_actuator_without_a_lever():
    """The rod is pinned to the base on the axis of the boom that carries the cylinder."""
    xml = machine([joint('boom', 'revolute', 'base', 'a'), joint('barrel', 'revolute', 'a', 'b', 0.5), CYLINDER[1]],
                  'base', (0.0, 0.0), ['rod'])
    with pytest.raises(psdyn_ros.ActuationError, match="the 1 actuators of 'r' move only 0 of its 1 degrees of freedom "
                                                       'at the initial position; rod moves nothing there'):
        psdyn_ros.load(xml)


def twin(xml):
    """Return the machine with a second cylinder beside its cylinder."""
    second = xml[xml.index('<joint name="barrel"'):xml.index('<joint name="boom"')].replace('"barrel', '"twin_barrel')
    second = second.replace('"cylinder"', '"twin"').replace('"rod_link"', '"twin_rod"')
    eye = xml[xml.index('<constraint'):xml.index('<ros2_control')].replace('"eye"', '"twin_eye"')
    control = '<joint name="twin"><command_interface name="effort"/></joint></ros2_control>'
    return edit(xml, ('<ros2_control', second + eye.replace('rod_link', 'twin_rod') + '<ros2_control'),
                ('</ros2_control>', control))


def test_twin_cylinders_share_the_load():
    manipulator = psdyn_ros.load(twin(XML))
    assert manipulator.dof == 1 and manipulator.actuators == ('cylinder', 'twin')
    f = manipulator.inverse_dynamics(*STATE)
    assert f[0] == pytest.approx(f[1], rel=1e-12)
    oracle = GeneralOracle(twin(XML), coordinates=('cylinder',))
    assert f == pytest.approx(oracle.inverse_dynamics(*map(np.array, STATE)), rel=1e-11)


def test_the_same_loop_closed_twice():
    """As consistent as it is overconstrained."""
    eye = XML[XML.index('<constraint'):XML.index('<ros2_control')].replace('"eye"', '"second"')
    manipulator = psdyn_ros.load(edit(XML, ('<ros2_control', eye + '<ros2_control')))
    assert manipulator.inverse_dynamics(*STATE) == pytest.approx(psdyn_ros.load(XML).inverse_dynamics(*STATE))


@pytest.mark.parametrize('ends', [('rod_link', 'rod_link'), ('base_link', 'base_link')])
def test_closures_within_one_body(ends):
    xml = edit(XML, ('<parent link="rod_link"/>', f'<parent link="{ends[0]}"/>'))
    head, tail = xml.split('<parent_axis')
    xml = head + '<parent_axis' + edit(tail, ('<child link="boom_link"/>', f'<child link="{ends[1]}"/>'))
    with pytest.raises(LoopError, match=rf"links '{ends[0]}' and '{ends[1]}' are fixed to each other"):
        psdyn_ros.load(xml)


def test_loops_may_not_be_closed_by_a_second_parent():
    pin = ('<joint name="eye_joint" type="revolute"><parent link="rod_link"/><child link="boom_link"/></joint>')
    with pytest.raises(psdyn_ros.TreeError, match="link 'boom_link' is the child of two joints, 'boom' and 'eye_jo"):
        psdyn_ros.load(edit(XML, ('<ros2_control', pin + '<ros2_control')))


def as_loop_joint(*tags):
    """The constraint in its other spelling: two frames, one axis that both share."""
    frames = ('link="rod_link" xyz="0.4 0 0.02"', 'link="boom_link" xyz="0.45 0 -0.03" rpy="0 0 0.4"')
    ends = ''.join(f'<{tag} {frame}/>' for tag, frame in zip(tags, frames * 2))
    alias = f'<loop_joint name="eye" type="revolute">{ends}<axis xyz="0 0 1"/></loop_joint>'
    return re.sub('<constraint.*</constraint>', alias, XML, flags=re.S)


@pytest.mark.parametrize('tags', [('link1', 'link2'), ('link1', 'link1'), ('link2', 'link1')])
def test_loop_joint_is_an_alias(tags):
    manipulator = psdyn_ros.load(as_loop_joint(*tags))
    assert manipulator.inverse_dynamics(*STATE) == psdyn_ros.load(XML).inverse_dynamics(*STATE)


@pytest.mark.parametrize('tags', [(), ('link1',), ('link1', 'link2', 'link2')])
def test_loop_joint_needs_two_links(tags):
    with pytest.raises(ModelError, match=r"loop_joint 'eye' \(line \d+\): expected <link1 link=\"...\"/> and <link2"):
        psdyn_ros.load(as_loop_joint(*tags))


def test_constraint_without_a_side():
    with pytest.raises(ModelError, match=r"constraint 'eye' \(line \d+\): <parent link=\"...\"/> is missing"):
        psdyn_ros.load(edit(XML, ('<parent link="rod_link"/>', '')))
