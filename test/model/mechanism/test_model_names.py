"""Names that do not exist, exist twice, or do not form one tree; each message names thing, line and nearest name."""

import re

import pytest
from support.one_loop import edit, one_loop

import psdyn_ros
from psdyn_ros import DuplicateNameError, ModelError, TreeError, UnknownNameError

XML = one_loop().xml
LINK = ('<link name="{}"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1.2" izz="1.3" ixy="0" ixz="0" iyz="0"/></inertial></link>')


def joint(name, parent, child, kind='revolute'):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/></joint>'


def robot(*elements):
    return '<robot name="r">\n' + '\n'.join(elements) + '\n</robot>'


def serial(*joints, links='abc'):
    """A robot of the links a, b, c whose joints are all actuated."""
    names = re.findall(r'<joint name="(\w+)" type="revolute"', ''.join(joints))
    control = ''.join(f'<joint name="{name}"><command_interface name="effort"/></joint>' for name in names)
    return robot(*map(LINK.format, links), *joints, f'<ros2_control>{control}</ros2_control>')


def line_of(xml, text):
    return xml[:xml.index(text)].count('\n') + 1


def test_the_robot_of_these_tests_is_sound():
    assert psdyn_ros.load(serial(joint('j1', 'a', 'b'), joint('j2', 'b', 'c'))).actuators == ('j1', 'j2')


@pytest.mark.parametrize('old, new, kind, thing', [
    ('<parent link="barrel_link"/>', '<parent link="barel_link"/>', 'joint', 'cylinder'),
    ('<child link="rod_link"/>', '<child link="barel_link"/>', 'joint', 'cylinder'),
    ('<parent link="rod_link"/>', '<parent link="barel_link"/>', 'constraint', 'eye'),
    ('<child link="boom_link"/>', '<child link="barel_link"/>', 'joint', 'boom'),
])
def test_unknown_link(old, new, kind, thing):
    xml = edit(XML, (old, new))
    expected = (f"link 'barel_link' in {kind} '{thing}' (line {line_of(xml, new)}): no such link; "
                "did you mean 'barrel_link'?")
    with pytest.raises(UnknownNameError, match=re.escape(expected)):
        psdyn_ros.load(xml)


def test_unknown_link_like_no_other_lists_what_exists():
    with pytest.raises(UnknownNameError, match='there are: barrel_link, base_link, boom_link, rod_link'):
        psdyn_ros.load(edit(XML, ('<parent link="barrel_link"/>', '<parent link="zzz"/>')))


def test_unknown_joint_in_ros2_control():
    xml = edit(XML, ('<joint name="boom"><state', '<joint name="bom"><state'))
    line = line_of(xml, '<joint name="bom">')
    with pytest.raises(UnknownNameError, match=rf"joint 'bom' in <ros2_control> \(line {line}\): no such joint; "
                                               "did you mean 'boom'"):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('options', [{'actuated': ['cylindr']}, {'actuated': 'cylindr'}, {'initial': {'cylindr': 0.1}}])
def test_unknown_joint_in_an_argument(options):
    with pytest.raises(UnknownNameError, match="'cylindr': no such joint; did you mean 'cylinder'"):
        psdyn_ros.load(XML, **options)


@pytest.mark.parametrize('actuated', [[5], [None], [['cylinder']], 5])
def test_actuated_that_are_no_names(actuated):
    with pytest.raises(ModelError, match='actuated'):
        psdyn_ros.load(XML, actuated=actuated)


def test_initial_of_a_fixed_joint():
    xml = serial(joint('j1', 'a', 'b'), joint('mount', 'b', 'c', 'fixed'))
    with pytest.raises(UnknownNameError, match="initial position of 'mount'"):
        psdyn_ros.load(xml, initial={'mount': 0.0})


@pytest.mark.parametrize('initial', [{'boom': float('nan')}, {'boom': float('inf')}, {'boom': '1'}, {'boom': None},
                                     ['boom'], 'boom', 5])
def test_initial_that_is_no_position(initial):
    with pytest.raises(ModelError, match='initial.*expected'):
        psdyn_ros.load(XML, initial=initial)


@pytest.mark.parametrize('tag, name', [('link', 'rod_link'), ('joint', 'boom'), ('constraint', 'eye')])
def test_duplicate_names(tag, name):
    start = XML.index(f'<{tag} name="{name}"')
    twin = XML[start:XML.index(f'</{tag}>', start)] + f'</{tag}>\n'
    xml = edit(XML, ('<ros2_control', twin + '<ros2_control'))
    first, second = line_of(xml, twin[:30]), line_of(xml, '<ros2_control') - 1
    expected = f"{tag} '{name}' (line {second}) was declared before (line {first})"
    with pytest.raises(DuplicateNameError, match=re.escape(expected)):
        psdyn_ros.load(xml)


def test_duplicate_joint_in_ros2_control():
    xml = edit(XML, ('<joint name="boom"><state', '<joint name="barrel"><state'))
    with pytest.raises(DuplicateNameError, match=r"<ros2_control> joint 'barrel' \(line \d+\) was declared before"):
        psdyn_ros.load(xml)


def test_duplicate_joint_in_two_ros2_control_tags():
    second = '<ros2_control><joint name="cylinder"><command_interface name="effort"/></joint></ros2_control>'
    with pytest.raises(DuplicateNameError, match="joint 'cylinder'"):
        psdyn_ros.load(edit(XML, ('</robot>', second + '</robot>')))


def test_constraint_and_loop_joint_share_their_names():
    alias = ('<loop_joint name="eye"><link1 link="rod_link"/><link2 link="boom_link"/><axis xyz="0 0 1"/></loop_joint>')
    with pytest.raises(DuplicateNameError, match="loop_joint 'eye'"):
        psdyn_ros.load(edit(XML, ('</robot>', alias + '</robot>')))


@pytest.mark.parametrize('tag', ['link', 'joint', 'constraint'])
@pytest.mark.parametrize('name', ['', 'name=""'])
def test_things_without_a_name(tag, name):
    xml = edit(XML, ('</robot>', f'\n<{tag} {name}/></robot>'))
    with pytest.raises(ModelError, match=rf'<{tag}> \(line \d+\) has no name'):
        psdyn_ros.load(xml)


def test_interface_without_a_name():
    with pytest.raises(ModelError, match='joint has no name'):
        psdyn_ros.load(edit(XML, ('<joint name="boom"><state', '<joint><state')))


@pytest.mark.parametrize('tag', ['parent', 'child'])
@pytest.mark.parametrize('new', ['', '<{}/>', '<{} link=""/>'])
def test_joint_without_a_side(tag, new):
    link = {'parent': 'barrel_link', 'child': 'rod_link'}[tag]
    with pytest.raises(ModelError, match=rf"joint 'cylinder' \(line \d+\): <{tag} link=\"...\"/> is missing"):
        psdyn_ros.load(edit(XML, (f'<{tag} link="{link}"/>', new.format(tag))))


@pytest.mark.parametrize('joints, words', [
    ((), "has 3 roots: a, b, c"),
    ((joint('j1', 'a', 'b'),), "has 2 roots: a, c"),
    ((joint('j1', 'a', 'b'), joint('j2', 'b', 'c'), joint('j3', 'c', 'a')), 'no root: the joints form a ring'),
    ((joint('j1', 'b', 'c'), joint('j2', 'c', 'b')), "link '[bc]' is not connected to the root 'a': .* form a ring"),
    ((joint('j1', 'a', 'b'), joint('j2', 'c', 'c')), "link 'c' is not connected to the root 'a': .* form a ring"),
    ((joint('j1', 'a', 'b'), joint('j2', 'a', 'c'), joint('j3', 'b', 'c')),
     r"link 'c' is the child of two joints, 'j2' and 'j3' \(line 7\); close loops by <constraint>"),
])
def test_joints_that_are_no_tree(joints, words):
    with pytest.raises(TreeError, match=words):
        psdyn_ros.load(serial(*joints))


@pytest.mark.parametrize('xml', ['<robot/>', '<robot name="empty"></robot>', '<robot name="empty">text</robot>'])
def test_robot_without_links(xml):
    with pytest.raises(TreeError, match='has no links'):
        psdyn_ros.load(xml)


def test_robot_that_cannot_move():
    with pytest.raises(psdyn_ros.ActuationError, match='no joint with a command interface'):
        psdyn_ros.load(robot(LINK.format('a')))


@pytest.mark.parametrize('kind', ['planar', 'ball', 'Revolute', ''])
def test_unsupported_joint_types(kind):
    words = rf"joint 'boom' \(line \d+\): type '{kind}' is not supported; there are: revolute, continuous, prismatic"
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(edit(XML, ('<joint name="boom" type="revolute">', f'<joint name="boom" type="{kind}">')))


def test_joint_without_a_type():
    with pytest.raises(ModelError, match="joint 'boom' .*type 'None' is not supported"):
        psdyn_ros.load(edit(XML, ('<joint name="boom" type="revolute">', '<joint name="boom">')))
