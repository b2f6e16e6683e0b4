"""Content of a URDF that the reader does not understand: refused with the nearest known name, or reported."""

import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.one_loop import edit, one_loop

import psdyn_ros
from psdyn_ros import ModelError, XmlError
from psdyn_ros.model.locate import find_machine, machine_names
from psdyn_ros.model.mechanism.urdf import read

XML = one_loop().xml
XML_11 = edit(XML, ('<robot ', '<robot version="1.1" '))
FORCE = psdyn_ros.load(XML).gravity_forces([0.3])


def line_of(xml, text):
    return xml[:xml.index(text)].count('\n') + 1


def with_quaternion(xml, scale):
    """Return the text with the orientation of every origin as a quaternion of norm `scale`."""
    def exchanged(match):
        quaternion = scale * Rotation.from_euler('xyz', [float(word) for word in match[1].split()]).as_quat()
        return f'quat_xyzw="{" ".join(map(repr, quaternion.tolist()))}"'
    return re.sub('rpy="([^"]*)"', exchanged, xml)


@pytest.mark.parametrize('scale', [1.0, -1.0, 0.3, 1e4])
def test_quaternions_are_read_and_normalised(scale):
    xml = one_loop(boom_rpy=(0, 0, 0.3), barrel_rpy=(0, 0, -0.2), boom_eye_rpy=(0, 0, 0.7), initial=('boom',)).xml
    turned = edit(xml, ('rpy="0.0 0.0 0.0"', 'rpy="0.3 0.4 -0.5"'))          # of the base's centre of mass
    by_quaternion = read(with_quaternion(edit(turned, ('<robot ', '<robot version="1.1" ')), scale))
    by_rpy = read(turned)
    for name, joint in by_rpy.joints.items():
        np.testing.assert_allclose(by_quaternion.joints[name].origin.matrix(), joint.origin.matrix(), atol=1e-14)
    for name, link in by_rpy.links.items():
        np.testing.assert_allclose(by_quaternion.links[name].inertial.inertia, link.inertial.inertia, atol=1e-13)
    np.testing.assert_allclose(by_quaternion.closures['eye'].child_origin.matrix(),
                               by_rpy.closures['eye'].child_origin.matrix(), atol=1e-14)


@pytest.mark.parametrize('quaternion, words', [
    ('0 0 0 0', "quat_xyzw='0 0 0 0' is zero, which is no orientation"),
    ('0 0 1e-300 0', 'is zero, which is no orientation'),
    ('0 0 nan 1', 'is not 4 finite number'),
    ('0 0 1', 'is not 4 finite number'),
    ('0 0 1e200 1', r'is beyond 1e\+15'),
    ('0 0 0 1" rpy="0 0 0', '<origin> has rpy and quat_xyzw; expected one of them'),
])
def test_quaternions_that_are_no_orientation(quaternion, words):
    xml = re.sub('(<link name="rod_link">.*?)rpy="[^"]*"', rf'\1quat_xyzw="{quaternion}"', XML_11)
    with pytest.raises(ModelError, match=rf"link 'rod_link' \(line \d+\): .*{words}"):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('version', ['', 'version="1.0" '])
def test_quaternions_need_the_version_in_which_ros_reads_them(version):
    xml = edit(with_quaternion(XML, 1.0), ('<robot ', f'<robot {version}'))
    with pytest.raises(ModelError, match=r"line \d+: attribute 'quat_xyzw' of <origin> .* is of URDF 1.1, and ROS ign"):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('version', ['2.0', '1', 'one', ''])
def test_unknown_versions(version):
    with pytest.raises(ModelError, match=rf"line 1: <robot> has version='{version}'; there are: 1.0, 1.1, 1.2"):
        psdyn_ros.load(edit(XML, ('<robot ', f'<robot version="{version}" ')))


@pytest.mark.parametrize('xmlns', ['', ' xmlns:xacro="http://www.ros.org/wiki/xacro"'])
@pytest.mark.parametrize('old, new', [
    ('<link name="rod_link">', '\n<xacro:boom length="3"/><link name="rod_link">'),
    ('<link name="rod_link">', '<link name="rod_link">\n<xacro:cylinder_inertial m="3"/>'),
    ('</robot>', '<gazebo>\n<xacro:if value="1"/></gazebo></robot>'),
])
def test_xacro_elements_that_are_not_expanded(old, new, xmlns):
    xml = edit(XML, ('<robot ', f'<robot{xmlns} '), (old, new))
    tag = re.search(r'<xacro:\w+', new)[0]
    words = rf'line {line_of(xml, tag)}: {tag}> is xacro that is not expanded; load the .xacro file, or what `xacro '
    with pytest.raises(XmlError, match=words):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('text', ['${prefix}rod_link', '$(arg prefix)rod_link'])
def test_xacro_expressions_that_are_not_expanded(text):
    xml = XML.replace('rod_link', text)
    with pytest.raises(XmlError, match=rf"line \d+: \w+='{re.escape(text)}' is xacro that is not expanded"):
        psdyn_ros.load(xml)


def test_the_namespace_that_xacro_leaves_behind_is_fine():
    m = psdyn_ros.load(edit(XML, ('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" xmlns="urn:urdf" ')))
    assert m.gravity_forces([0.3]) == FORCE and m.machine.warnings == ()


@pytest.mark.parametrize('known, wrong', [
    ('link', 'Link'), ('link', 'lnk'), ('joint', 'jiont'), ('joint', 'JOINT'), ('constraint', 'constrain'),
    ('ros2_control', 'ros2control'), ('inertial', 'inerital'), ('origin', 'orign'), ('mass', 'mas'),
    ('inertia', 'intertia'), ('limit', 'limits'), ('axis', 'axes'), ('dynamics', 'dynamic'), ('parent', 'parents'),
    ('parent_origin', 'parent_orign'), ('child_axis', 'childaxis'), ('command_interface', 'comand_interface'),
    ('state_interface', 'state_interfaces'),
])
def test_misspelt_elements(known, wrong):
    xml = re.sub(rf'(</?){known}(?=[ />])', rf'\1{wrong}', one_loop(losses=((1, 2),) * 4).xml)
    line = line_of(xml, f'<{wrong}')
    with pytest.raises(ModelError, match=rf"line {line}: <{wrong}> in .* is not known; did you mean '{known}'\?"):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('old, new, known', [
    ('ixx=', 'ixxx=', 'ixx'), ('ixx=', 'Ixx=', 'ixx'), ('iyz=', 'izy=', 'iyz'),
    ('<mass value=', '<mass vale=', 'value'), ('xyz="0.1', 'xzy="0.1', 'xyz'), ('rpy=', 'ryp=', 'rpy'),
    ('rpy=', 'quat_wxyz=', 'quat_xyzw'), ('lower=', 'lowr=', 'lower'), ('effort=', 'efort=', 'effort'),
    ('velocity=', 'velocty=', 'velocity'), ('damping=', 'dampning=', 'damping'), ('friction=', 'fricton=', 'friction'),
    ('link="', 'lnk="', 'link'), (' type="revolute"', ' typ="revolute"', 'type'), ('<axis xyz=', '<axis xzy=', 'xyz'),
])
def test_misspelt_attributes(old, new, known):
    xml = edit(one_loop(losses=((1, 2),) * 4).xml, (old, new))
    wrong = re.search(r'(\w+)="', new + '"')[1]
    line = line_of(xml, new)
    words = rf"line {line}: attribute '{wrong}' of .* is not known; did you mean '{known}'"
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('old, new, words', [
    ('<link name="rod_link">', '<link name="rod_link"><mass value="5"/>',
     "<mass> in link 'rod_link' is not read; it belongs in <inertial>"),
    ('<link name="rod_link">', '<link name="rod_link"><origin xyz="1 0 0"/>',
     "<origin> in link 'rod_link' is not read; it belongs in <inertial> or <joint>"),
    ('<link name="rod_link">', '<link name="rod_link"><link name="inner"/>',
     "<link> in link 'rod_link' is not read; it belongs in <robot>"),
    ('<mass ', '<axis xyz="1 0 0"/><mass ', "<axis> in <inertial> of link 'base_link' is not read; it belongs in "
     '<joint> or <loop_joint>'),
])
def test_misplaced_elements_are_reported(old, new, words):
    xml = edit(XML, (old, new))
    m = psdyn_ros.load(xml)
    assert m.machine.warnings == (f'line {line_of(xml, new)}: {words}',) and m.gravity_forces([0.3]) == FORCE


@pytest.mark.parametrize('new, home', [
    ('<limit lower="0" upper="1"/>', '<joint>'), ('<axis xyz="0 0 1"/>', '<joint> or <loop_joint>'),
    ('<link1 link="rod_link"/>', '<loop_joint>'), ('<origin xyz="0 0 1"/>', '<inertial> or <joint>')])
def test_misplaced_elements_of_closures(new, home):
    words = rf"line \d+: {new.split()[0]}> in constraint 'eye' is not read; it belongs in {home}$"
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(edit(XML, ('</constraint>', new + '</constraint>')))


@pytest.mark.parametrize('name', ['inital_value', 'initial-value', 'Initial_Value', 'initialvalue'])
def test_misspelt_initial_value(name):
    words = rf"<ros2_control> joint 'cylinder' \(line \d+\): <param name='{name}'> is not known; did you mean 'initial_"
    with pytest.raises(ModelError, match=words):
        psdyn_ros.load(edit(XML, ('"initial_value"', f'"{name}"')))


@pytest.mark.parametrize('name', ['initial_velocity', 'min', 'max', 'offset'])
def test_other_parameters_of_an_interface_are_those_of_the_hardware(name):
    other = f'<param name="{name}">0.3</param>'
    m = psdyn_ros.load(edit(XML, ('<state_interface name="position">', '<state_interface name="position">' + other)))
    assert m.machine.warnings == () and m.gravity_forces([0.3]) == FORCE


@pytest.mark.parametrize('old, new, words', [
    ('<link name="rod_link">', '<link name="rod_link"><inertial/>', "a second <inertial> in link 'rod_link'"),
    ('<parent link="barrel_link"/>', '<parent link="barrel_link"/><parent link="base_link"/>',
     "a second <parent> in joint 'cylinder'; the first is in line 5"),
    ('<mass ', '<mass value="3"/><mass ', 'a second <mass> in <inertial> of link'),
])
def test_repeated_elements(old, new, words):
    xml = edit(XML, (old, new))
    with pytest.raises(ModelError, match=rf'line {line_of(xml, new)}: .*{words}'):
        psdyn_ros.load(xml)


@pytest.mark.parametrize('old, new, words', [
    ('<link name="rod_link">', '<link name="rod_link"><contact/>',
     "<contact> in link 'rod_link' is not known and not read; there are: collision, inertial, visual"),
    ('</robot>', '<RefLink/></robot>', '<RefLink> in <robot> is not known and not read'),
    ('</robot>', '<plugin/></robot>', '<plugin> in <robot> is not known and not read'),
    ('</robot>', '<materials/></robot>', "<materials> in <robot> is not known and not read; did you mean 'material'"),
    ('</robot>', '<drake:ball_constraint/></robot>', '<drake:ball_constraint> in <robot> is an extension that is not '),
    ('<limit ', '<limit gear_velocity="9" ', "attribute 'gear_velocity' of <limit> of joint 'barrel' is not known and"),
    ('</inertial>', '</inertial><inertials/>', "<inertials> in link 'base_link' is not known and not read"),
    ('<mass ', '<density value="3"/><mass ', "<density> in <inertial> of link 'base_link' is not known"),
    ('<mass ', '<mass unit="kg" ', "attribute 'unit' of <mass> of <inertial> of link 'base_link' is not known"),
    ('<limit ', '<limit max="3" ', "attribute 'max' of <limit> of joint 'barrel' is not known and not read"),
    ('<robot ', '<robot author="me" ', "attribute 'author' of <robot> is not known and not read"),
])
def test_unknown_content_is_reported(old, new, words):
    xml = edit(XML, (old, new))
    m = psdyn_ros.load(xml)
    warning, = m.machine.warnings
    assert re.match(rf'line {line_of(xml, new)}: {words}', warning)
    assert m.gravity_forces([0.3]) == FORCE


def test_unknown_content_is_reported_once_with_its_number():
    warning, = psdyn_ros.load(XML.replace('<inertial>', '<contact/><contact/><inertial>')).machine.warnings
    assert re.match("line 2: <contact> in link 'base_link' is not known.*found 8 times", warning)


@pytest.mark.parametrize('content', [
    '<gazebo reference="boom_link"><limits/><mass/><inerital/></gazebo>', '<material name="red"><colour/></material>',
    '<transmission name="t"><joint name="nobody"/><actuator name="a"/></transmission>', '<sensor name="s"/>',
    '<link name="x"><visual><orign/></visual><collision><geom/></collision></link><joint name="j" type="fixed">'
    '<parent link="base_link"/><child link="x"/><calibration rising="0"/><safety_controller k_velocity="1"/></joint>',
    '<!-- <inerital/> <xacro:macro/> -->', '<?format 3?>', 'text'])
def test_content_for_other_tools_is_neither_refused_nor_reported(content):
    m = psdyn_ros.load(edit(XML, ('</robot>', content + '</robot>')))
    assert m.machine.warnings == () and m.gravity_forces([0.3]) == FORCE


def test_attributes_of_other_namespaces_are_passed_over():
    m = psdyn_ros.load(edit(XML, ('<limit ', '<limit drake:acceleration="5" ')))
    assert m.machine.warnings == () and m.gravity_forces([0.3]) == FORCE


@pytest.mark.parametrize('name', machine_names())
def test_all_of_the_machines_of_the_package_is_read(name):
    assert read(find_machine(name)).warnings == ()


@pytest.mark.parametrize('new', ['<joint name="boom" mimic="true"><state',
                                 '<joint name="boom"><param name="mimic">barrel</param><state'])
def test_mimic_in_ros2_control(new):
    with pytest.raises(ModelError, match=r"<ros2_control> joint 'boom' \(line \d+\): mimic without the same <mimic>"):
        psdyn_ros.load(edit(XML, ('<joint name="boom"><state', new)))


def closure(kind, content):
    eye = re.search('<constraint.*</constraint>', XML, re.S)[0]
    plain = re.sub('<(parent|child)_axis[^>]*>', '', eye).replace('"revolute"', f'"{kind}"')
    return read(XML.replace(eye, plain.replace('</constraint>', content + '</constraint>'))).closures['eye']


@pytest.mark.parametrize('kind', ['prismatic', 'fixed'])
@pytest.mark.parametrize('child', ['1 0 0', '0 0 -1', '0 0.001 1'])
def test_axes_of_an_aligning_closure_that_contradict(kind, child):
    words = rf"constraint 'eye' \(line \d+\): parent_axis 0 0 1 and child_axis .* differ; a '{kind}' closure aligns"
    with pytest.raises(ModelError, match=words):
        closure(kind, f'<parent_axis xyz="0 0 2"/><child_axis xyz="{child}"/>')


@pytest.mark.parametrize('content', ['<parent_axis xyz="0 3 0"/>', '<child_axis xyz="0 3 0"/>',
                                     '<parent_axis xyz="0 3 0"/><child_axis xyz="0 0.1 0.000001"/>'])
def test_one_axis_of_a_prismatic_closure_is_that_of_both_sides(content):
    found = closure('prismatic', content)
    np.testing.assert_allclose([found.parent_axis, found.child_axis], 2 * [[0, 1, 0]], atol=2e-5)
