"""Loop closures from YAML, for a URDF that must not be touched."""

import re
from math import cos, sin

import numpy as np
import pytest
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import DuplicateNameError, ModelError
from psdyn_ros.model.mechanism.urdf import read

XML = one_loop().xml
OPEN = re.sub('<constraint.*</constraint>', '', XML, flags=re.S)
LOOPS = '''\
# the rod eye
loops:
  - name: eye
    type: revolute
    parent: {link: rod_link, xyz: [0.4, 0, 0.02], rpy: [0, 0, 0], axis: [0, 0, 1]}
    child:
      link: boom_link
      xyz: 0.45 0 -0.03
      rpy: [0, 0, 0.4]
      axis: [0, 0, 1]
'''
STATE = [0.25], [0.3], [0.7]


@pytest.fixture
def load(tmp_path):
    """Load the machine without its constraint, with a loops file of the text given."""
    def load(text, xml=OPEN):
        path = tmp_path / 'loops.yaml'
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return psdyn_ros.load(xml, loops_file=path)
    return load


def test_same_machine_as_with_a_constraint(load):
    assert load(LOOPS).inverse_dynamics(*STATE) == psdyn_ros.load(XML).inverse_dynamics(*STATE)


def test_what_may_be_left_out(load):
    short = LOOPS.replace('    type: revolute\n', '').replace(' rpy: [0, 0, 0],', '')
    assert load(short).inverse_dynamics(*STATE) == psdyn_ros.load(XML).inverse_dynamics(*STATE)


def test_quaternion_and_roll_pitch_yaw_give_the_same_frame(tmp_path):
    path = tmp_path / 'loops.yaml'
    path.write_text(LOOPS.replace('rpy: [0, 0, 0.4]', f'quat_xyzw: [0, 0, {2 * sin(0.2)}, {2 * cos(0.2)}]'))
    turned = read(OPEN, path).closures['eye'].child_origin.rotation
    path.write_text(LOOPS)
    np.testing.assert_allclose(turned, read(OPEN, path).closures['eye'].child_origin.rotation, atol=1e-15)


def test_friction_of_the_pin(load):
    lossy = one_loop(losses=(None, None, None, (3, 5))).xml
    text = LOOPS + '    dynamics: {damping: 3, friction: 5}\n'
    assert load(text).inverse_dynamics(*STATE) == psdyn_ros.load(lossy).inverse_dynamics(*STATE)


def test_path_as_text(load, tmp_path):
    load(LOOPS)
    assert psdyn_ros.load(OPEN, loops_file=str(tmp_path / 'loops.yaml')).dof == 1


def test_without_the_file_the_machine_is_another():
    manipulator = psdyn_ros.load(OPEN)
    assert (manipulator.dof, len(manipulator.actuators)) == (3, 1)


def test_duplicate_of_a_constraint_in_the_urdf(load):
    with pytest.raises(DuplicateNameError,
                       match=r"constraint 'eye' \(line 3 of '.*loops.yaml'\) was declared before \(line \d+\)"):
        load(LOOPS, XML)


def test_duplicate_within_the_file(load):
    words = r"constraint 'eye' \(line 11 of .*before \(line 3 of '.*loops.yaml'\)"
    with pytest.raises(DuplicateNameError, match=words):
        load(LOOPS + LOOPS.split('loops:\n')[1])


@pytest.mark.parametrize('old, new, words', [
    ('link: rod_link', 'link: rod_lin', r"link 'rod_lin' in constraint 'eye' \(line 3 of .*did you mean 'rod_link'"),
    ('[0.4, 0, 0.02]', '[0.4, 0]', r"constraint 'eye' \(line 3 of .*: xyz='0.4 0' is not 3 finite number"),
    ('[0.4, 0, 0.02]', '[0.4, 0, .nan]', r"constraint 'eye' .*: xyz='0.4 0 .nan' is not 3 number"),
    ('[0.4, 0, 0.02]', '[0.4, 0, nan]', r"constraint 'eye' .*: xyz='0.4 0 nan' is not 3 finite number"),
    ('[0.4, 0, 0.02]', '[0.4, 0, [1]]', r"loops.yaml' \(line 5\): expected a text, a number, or a list of numbers"),
    ('rpy: [0, 0, 0.4]', 'quat_xyzw: [0, 0, 0, 0]', "constraint 'eye' .*: quat_xyzw='0 0 0 0' is zero"),
    ('rpy: [0, 0, 0.4]', 'rpy: [0, 0, 0.4]\n      quat_xyzw: [0, 0, 0, 1]', 'child_origin> has rpy and quat_xyzw'),
    ('[0.4, 0, 0.02]', '[0.4, 0, 1_0]', "xyz='0.4 0 1_0' is not 3 number"),
    ('[0.4, 0, 0.02]', '{x: 1}', r"loops.yaml' \(line 5\): expected a text, a number, or a list of numbers"),
    ('axis: [0, 0, 1]}', 'axis: [0, 0, 0]}', "constraint 'eye' .*: the axis has no direction"),
    (', axis: [0, 0, 1]}', '}', 'off parallel'),        # the default axis of URDF is x
    ('type: revolute', 'type: weld', "constraint 'eye' .*: type 'weld' is not known"),
    ('type: revolute', 'type: fixed', "loop 'eye' leaves its 3 joints no freedom"),
    ('type: revolute', 'typ: revolute', r"\(line 4\): 'typ' is not known; did you mean 'type'"),
    ('xyz: [0.4', 'xzy: [0.4', r"\(line 5\): 'xzy' is not known; did you mean 'xyz'"),
    ('- name: eye', '- nam: eye', r"\(line 3\): 'nam' is not known; did you mean 'name'"),
    ('name: eye\n    type', 'type', r"\(line 3\): 'name' is missing; expected name, parent, child, \[type\]"),
    ('link: rod_link, ', '', r"\(line 5\): 'link' is missing; expected link"),
    ('name: eye', 'name: ""', r'<constraint> \(line 3 of .*\) has no name'),
    ('type: revolute', 'type: revolute\n    type: fixed', r"\(line 5\): 'type' is there twice"),
    ('{link: rod_link, xyz: [0.4, 0, 0.02], rpy: [0, 0, 0], axis: [0, 0, 1]}', 'rod_link',
     r'\(line 5\): expected a mapping of link, \[xyz\]'),
    ('    type: revolute', '    dynamics: {damping: -1}', r"constraint 'eye' .*damping=-1 .*must not be negative"),
    ('    type: revolute', '    dynamics: [1, 2]', r'\(line 4\): expected a mapping of \[damping\], \[friction\]'),
    ('    type: revolute', '    dynamics: {damping: 2001-99-99}', "damping='2001-99-99' is not 1 number"),
    ('loops:', 'lops:', r"\(line 2\): 'lops' is not known; did you mean 'loops'"),
])
def test_broken_entries(old, new, words, load):
    assert old in LOOPS
    with pytest.raises(ModelError, match=words):
        load(LOOPS.replace(old, new, 1))


@pytest.mark.parametrize('text, words', [
    ('', r'loops.yaml. \(line 1\): expected a mapping of loops'),
    ('loops: 5', 'line 1.: expected a list of loops'),
    ('loops:', 'line 1.: expected a list of loops'),
    ('loops: {a: b}', 'line 1.: expected a list of loops'),
    ('- name: eye', r'line 1.: expected a mapping of loops'),
    ('loops: [eye]', 'line 1.: expected a mapping of name, parent, child'),
    ('loops: [', 'is not YAML'),
    ('loops: *nothing', 'is not YAML: .*undefined alias'),
    ('a: b: c', 'is not YAML'),
    ('\tloops: []', 'is not YAML'),
    ('loops: []\n---\nloops: []', 'is not YAML'),
    ('? [a]\n: b', 'expected a name'),
    ('? {a: b}\n: b', 'expected a name'),
    ('loops: ' + '[' * 5000, 'is not YAML'),
    ('{' * 5000, 'is not YAML'),
    ('loops: !!python/object/apply:os.system ["true"]', 'YAML tag'),
])
def test_broken_yaml(text, words, load):
    with pytest.raises(ModelError, match=words):
        load(text)


def test_no_loops_are_none(load):
    assert load('loops: []', XML).dof == 1


def test_bombs_of_aliases_do_not_go_off(load):
    bomb = 'a: &a [x, x, x, x, x, x, x, x, x]\n' + ''.join(
        f'{name}: &{name} [{", ".join([f"*{before}"] * 9)}]\n'
        for before, name in zip('abcdefghijklm', 'bcdefghijklmn'))
    with pytest.raises(ModelError, match="'a' is not known"):
        load(bomb)
    nested = LOOPS.replace('xyz: 0.45 0 -0.03', 'xyz: &a [1, 1]\n      rpy: &b [*a, *a]').replace(
        '      rpy: [0, 0, 0.4]\n', '')
    with pytest.raises(ModelError, match='expected a text, a number, or a list of numbers'):
        load(nested)


@pytest.mark.parametrize('content', [b'\xff\xfe', LOOPS.encode('utf-16'), b'\x00' * 9])
def test_other_encodings(content, load):
    with pytest.raises(ModelError, match='UTF-8|not YAML'):
        load(content)


def test_large_files_are_refused(load):
    with pytest.raises(ModelError, match='at most 1048576 are read'):
        load(LOOPS + '#' * 2**20)


@pytest.mark.parametrize('path', ['missing.yaml', '.', 5, b'\xff'])
def test_files_that_cannot_be_read(path):
    with pytest.raises(ModelError, match='cannot read'):
        psdyn_ros.load(OPEN, loops_file=path)
