"""Named external forces: against energy, power, hand-worked cases; and every way to ask for them wrongly."""

import re

import numpy as np
import pytest
from support.cases import moved
from support.machines import near_start
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.model.errors import DuplicateNameError, ModelError, UnknownNameError
from psdyn_ros.model.parameters import external_forces as model
from psdyn_ros.model.parameters.parameter_blocks import NUMBER, VECTOR, declared
from psdyn_ros.simulation.external_forces import ExternalForces

NAMES = ('hiab_xs031', 'four_bar', 'excavator', 'balloon')
MACHINES = {name: psdyn_ros.load(str(ROOT / 'urdf' / f'{name}.urdf'), allow_unphysical=True) for name in NAMES}
# a link to pull at, another, the ground, a joint without actuator
PARTS = {'hiab_xs031': ('telescope_link', 'lift_boom_link', 'base_link', 'lift_boom'),
         'four_bar': ('coupler_link', 'rocker_link', 'base_link', 'rocker'),
         'excavator': ('bucket_link', 'boom_rod_left_link', 'base_link', 'coupler'),
         'balloon': ('pendulum_2_link', 'balloon', 'world', 'pendulum_1')}


def conservative(name):
    link, other, ground, joint = PARTS[name]
    return {
        'weight': {'type': 'constant_force', 'link': link, 'force': [10, -20, 30], 'point': [0.1, -0.2, 0.3]},
        'coil': {'type': 'joint_spring', 'joint': joint, 'stiffness': 40, 'rest': 0.3},
        'tie': {'type': 'spring_damper', 'link': link, 'other_link': other, 'other_point': [0.3, 0.1, 0],
                'stiffness': 25, 'rest_length': 0.1},
        'anchor': {'type': 'spring_damper', 'link': other, 'point': [0, 0.2, 0], 'other_link': ground,
                   'other_point': [-3, 0, 5], 'stiffness': 15, 'rest_length': 0.4, 'tension_only': True}}


def dissipative(name):
    link, other, ground, joint = PARTS[name]
    return {
        'brake': {'type': 'joint_damper', 'joint': joint, 'linear': 3, 'quadratic': 2},
        'dashpot': {'type': 'spring_damper', 'link': other, 'other_link': ground, 'other_point': [1, 2, 3],
                    'stiffness': 0, 'damping': 12},
        'water': {'type': 'drag', 'link': link, 'point': [0.1, 0.4, 0], 'linear': 2, 'quadratic': 5, 'angular': 3}}


def state_near_start(manipulator, rng):
    return near_start(manipulator, rng, 0.05), rng.uniform(-1, 1, manipulator.dof)


def efforts_on_coordinates(manipulator, x, xd, forces):
    zero = np.zeros(manipulator.dof)
    return (manipulator.generalized_forces(x, xd, zero)
            - manipulator.generalized_forces(x, xd, zero, **forces(x, xd)._asdict()))


@pytest.mark.parametrize('name', NAMES)
def test_conservative_forces_put_in_what_their_energy_loses(name, rng):
    m = MACHINES[name]
    for force in ({key: value} for key, value in conservative(name).items()):
        forces = ExternalForces(m, force)
        x, xd = state_near_start(m, rng)
        h = 1e-5
        fall = (forces.energy(moved(x, -h * xd)) - forces.energy(moved(x, h * xd))) / (2 * h)
        power = forces.power(x, xd)
        assert abs(power) > 1e-3, 'this force does nothing here'
        np.testing.assert_allclose(power, fall, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(efforts_on_coordinates(m, x, xd, forces) @ xd, power, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('name', NAMES)
def test_dissipative_forces_take_power_and_have_no_energy(name, rng):
    m = MACHINES[name]
    for force in ({key: value} for key, value in dissipative(name).items()):
        forces = ExternalForces(m, force)
        x, xd = state_near_start(m, rng)
        power = forces.power(x, xd)
        assert power < -1e-6
        assert forces.energy(x) == 0.0
        np.testing.assert_allclose(efforts_on_coordinates(m, x, xd, forces) @ xd, power, rtol=1e-9, atol=1e-9)


class Post:
    """A stand-in for a manipulator: a ground and two bodies that do what x and xd say."""

    name, links, joints, dof = 'post', ('ground', 'box', 'ball'), ('hinge', 'slide'), 2

    def link_pose(self, x, link):
        pose = np.eye(4)
        if link == 'box':      # x axis up, at (1, 0, slide)
            pose[:3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
            pose[:3, 3] = 1, 0, x[1]
        if link == 'ball':
            pose[:3, 3] = 4, 0, 0
        return pose

    def link_twist(self, x, xd, link):
        # up along the world's z is -x of the box; it turns about its own x
        return np.array([-xd[1], 0, 0, xd[0], 0, 0]) if link == 'box' else np.zeros(6)

    def joint_state(self, x, xd=None, xdd=None):
        return self.joints, np.array(x, float), np.array(xd, float), None


POST = Post()
X, XD = np.array([0.5, 2.0]), np.array([3.0, -4.0])


def wrench(parameters, link='box', x=X, xd=XD):
    return np.concatenate(ExternalForces(POST, {'one': parameters})(x, xd).wrenches[link])


def test_a_constant_force_keeps_inertial_axes_or_turns_with_the_link():
    up = {'type': 'constant_force', 'link': 'box', 'force': [0, 0, 7], 'point': [0, 2, 0]}
    np.testing.assert_allclose(wrench(up), [-7, 0, 0, 0, 0, 14], atol=1e-15)
    np.testing.assert_allclose(wrench({**up, 'axes': 'link'}), [0, 0, 7, 14, 0, 0], atol=1e-15)
    assert ExternalForces(POST, {'one': up}).energy(X) == -14.0
    assert ExternalForces(POST, {'one': {**up, 'axes': 'link'}}).energy(X) == 0.0


def test_springs_and_dampers_of_joints_add_up():
    forces = ExternalForces(POST, {
        'spring': {'type': 'joint_spring', 'joint': 'slide', 'stiffness': 10, 'rest': 1.5},
        'damper': {'type': 'joint_damper', 'joint': 'slide', 'linear': 2, 'quadratic': 0.5},
        'hinge': {'type': 'joint_damper', 'joint': 'hinge', 'linear': 4}})
    wrenches, efforts = forces(X, XD)
    assert wrenches == {}
    assert efforts == {'slide': -10 * 0.5 + (2 + 0.5 * 4) * 4, 'hinge': -12.0}
    assert forces.energy(X) == 0.5 * 10 * 0.25
    assert forces.power(X, XD) == efforts['slide'] * -4 + efforts['hinge'] * 3
    assert forces.names == ('spring', 'damper', 'hinge')


def test_a_spring_between_points_pulls_both_ends_and_a_rope_never_pushes():
    tie = {'type': 'spring_damper', 'link': 'ground', 'other_link': 'ball', 'other_point': [0, 3, 0], 'stiffness': 10,
           'rest_length': 2}
    np.testing.assert_allclose(wrench(tie, 'ground'), [24, 18, 0, 0, 0, 0], atol=1e-12)         # 5 m long
    np.testing.assert_allclose(wrench(tie, 'ball'), [-24, -18, 0, 0, 0, 72], atol=1e-12)
    assert ExternalForces(POST, {'one': tie}).energy(X) == 45.0
    pushed = {**tie, 'rest_length': 9}
    np.testing.assert_allclose(wrench(pushed, 'ground'), [-32, -24, 0, 0, 0, 0], atol=1e-12)
    rope = ExternalForces(POST, {'one': {**pushed, 'tension_only': True}})
    assert rope(X, XD) == ({}, {})
    assert rope.energy(X) == 0.0


def test_a_damper_between_points_resists_the_rate_of_its_length():
    line = {'type': 'spring_damper', 'link': 'ground', 'point': [1, 0, 0], 'other_link': 'box', 'stiffness': 0,
            'damping': 2}
    np.testing.assert_allclose(wrench(line, 'ground'), [0, 0, -8, 0, 8, 0], atol=1e-12)        # shortens by 4 m/s
    quick = ExternalForces(POST, {'one': {**line, 'tension_only': True}})(X, XD).wrenches
    assert not np.concatenate(quick['ground']).any()       # a rope let go faster than its spring pulls


def test_ends_that_meet_have_no_direction():
    line = {'type': 'spring_damper', 'link': 'ground', 'point': [4, 0, 0], 'other_link': 'ball', 'stiffness': 5,
            'rest_length': 1, 'damping': 1}
    assert ExternalForces(POST, {'one': line})(X, XD) == ({}, {})


def test_drag_is_against_the_flow():
    drag = {'type': 'drag', 'link': 'box', 'point': [1, 0, 0], 'linear': 2, 'quadratic': 0.5, 'angular': 5}
    np.testing.assert_allclose(wrench(drag), [-16, 0, 0, -15, 0, 0], atol=1e-12)                # falls at 4 m/s
    np.testing.assert_allclose(wrench({**drag, 'flow': [0, 0, -4], 'angular': 0}), np.zeros(6), atol=1e-12)
    np.testing.assert_allclose(wrench({**drag, 'flow': [0, 0, -1], 'angular': 0, 'point': [0, 2, 0]}),
                               # 3 m/s relative, and 6 m/s from the rotation, along z of the box
                               [*(-(2 + 0.5 * np.sqrt(45)) * np.array([3, 0, 6])),
                                *(-(2 + 0.5 * np.sqrt(45)) * np.cross([0, 2, 0], [3, 0, 6]))], atol=1e-12)


FILE = '''
external_forces:
  buoyancy: {type: constant_force, link: box, force: [0, 0, 1e3]}
  rope:
    type: spring_damper
    link: ground
    other_link: ball
    stiffness: 10
    tension_only: true
'''
ROS_FILE = '''
/**/controller:
  ros__parameters: {rate: 500.0}
/**:
  simulator:
    ros__parameters:
      rate: 500.0
      external_forces:
        wind: {type: drag, link: box, quadratic: 0.5}
'''


def written(tmp_path, text):
    path = tmp_path / 'forces.yaml'
    path.write_text(text)
    return path


def test_a_file_of_its_own(tmp_path):
    forces = ExternalForces(POST, written(tmp_path, FILE))
    assert forces.names == ('buoyancy', 'rope')
    np.testing.assert_allclose(forces(X, XD).wrenches['box'], [[-1e3, 0, 0], [0, 0, 0]], atol=1e-9)
    np.testing.assert_allclose(forces(X, XD).wrenches['ground'][0], [40, 0, 0])


def test_a_parameter_file_of_ros(tmp_path):
    assert ExternalForces(POST, str(written(tmp_path, ROS_FILE))).names == ('wind',)


def test_dotted_names_as_ros_parameters_have():
    dotted = {'spring.type': 'joint_spring', 'spring.joint': 'slide', 'spring.stiffness': 10.0,
              'buoyancy.type': 'constant_force', 'buoyancy.link': 'box', 'buoyancy.force': np.array([0.0, 0.0, 1.0])}
    forces = ExternalForces(POST, dotted)
    assert forces.names == ('spring', 'buoyancy')
    assert forces(X, XD).joint_efforts == {'slide': -20.0}


GOOD = {'type': 'drag', 'link': 'box'}


@pytest.mark.parametrize('given, error, words', [
    ({'type': 'drg', 'link': 'box'}, ModelError, "there is no 'drg'; did you mean 'drag'"),
    ({'link': 'box'}, ModelError, "'type' is missing; there are: constant_force, joint_spring, "),
    ({'type': 'drag'}, ModelError, "'link' is missing .the link it acts on"),
    ({**GOOD, 'link': 'bx'}, UnknownNameError, "no such link 'bx' in 'post'; did you mean 'box'"),
    ({'type': 'joint_damper', 'joint': 'slider'}, UnknownNameError, "no such joint 'slider' in .* mean 'slide'"),
    ({**GOOD, 'quadratc': 1}, ModelError, "'quadratc' is no parameter of it; did you mean 'quadratic'"),
    ({**GOOD, 'linear': -1}, ModelError, "'linear' is -1; expected 0 to 1e.09 .N s/m"),
    ({**GOOD, 'linear': 'much'}, ModelError, "'linear' is 'much'; expected a finite number"),
    ({**GOOD, 'linear': float('nan')}, ModelError, "'linear' is nan; expected a finite number"),
    ({**GOOD, 'linear': True}, ModelError, "'linear' is True; expected a finite number"),
    ({**GOOD, 'linear': None}, ModelError, "'linear' is None; expected a finite number"),
    ({**GOOD, 'linear': 10 ** 400}, ModelError, "'linear' is 1000.*; expected a finite number"),
    ({**GOOD, 'point': [0, 1]}, ModelError, r"'point' is \[0, 1\]; expected a list of 3 numbers"),
    ({**GOOD, 'point': 'here'}, ModelError, "'point' is 'here'; expected a list of 3 numbers"),
    ({**GOOD, 'point': [0, 1, 'up']}, ModelError, "'point' is 'up'; expected a finite number"),
    ({**GOOD, 'link': 5}, ModelError, "'link' is 5; expected a name"),
    ({**GOOD, 'link': ''}, ModelError, "'link' is ''; expected a name"),
    ({'type': 'constant_force', 'link': 'box', 'force': [0, 0, 1], 'axes': 'intertial'}, ModelError,
     "'axes': there is no 'intertial'; did you mean 'inertial'"),
    ({'type': 'spring_damper', 'link': 'box', 'other_link': 'ball', 'stiffness': 1, 'tension_only': 'maybe'},
     ModelError, "'tension_only' is 'maybe'; expected true or false"),
    ('drag', ModelError, "external force 'one' is 'drag'; expected a mapping"),
], ids=str)
def test_wrong_parameters_are_named(given, error, words):
    with pytest.raises(error, match=words) as caught:
        ExternalForces(POST, {'one': given})
    assert "external force 'one'" in str(caught.value)


@pytest.mark.parametrize('text, error, words', [
    ('external_forces: {a: {type: drag, link: bx}}', UnknownNameError, r"\(line 1\): external force 'a': no such link"),
    ('external_forces:\n  a: {type: drag,\n      link: box, drag: 1}', ModelError, r"\(line 3\): .* 'drag' is no para"),
    ('external_forces:\n  a: {type: drag, link: box}\n  a: {type: drag, link: box}', DuplicateNameError,
     r"\(line 3\): 'a' is there twice"),
    ('external_forces: {a: {type: drag, type: drag}}', DuplicateNameError, "'type' is there twice"),
    ('external_forces: {a: {type: drag, link: {name: box}}}', ModelError, 'expected a text, a number, or a list'),
    ('external_forces: {a: {type: drag, link: box, point: [[0, 0, 0]]}}', ModelError, 'expected a text, a number'),
    ('external_forces: [a, b]', ModelError, r'\(line 1\): expected a mapping'),
    ('external_forces: {a: 5}', ModelError, 'expected a mapping'),
    ('external_forces: {[a]: {}}', ModelError, 'expected a name'),
    ('external_forces:\n', ModelError, 'expected a mapping'),
    ('external_forces: {}\nexternal: 1', ModelError, r"\(line 2\): 'external' is not known; did you mean 'external"),
    ('external_force: {}', ModelError, "no 'external_forces', .* did you mean 'external_force'"),
    ('n: {ros__parameters: {external_forces: {}}}\nm: {ros__parameters: {external_forces: {}}}', ModelError,
     'more than once: line 1 and line 2'),
    ('n: {ros__parameters: {rate: 5}}', ModelError, "no 'external_forces', neither at the top nor below"),
    ('&a {b: *a}', ModelError, "no 'external_forces'"),
    ('', ModelError, 'the file is empty or no mapping'),
    ('external_forces: {a: [}', ModelError, 'is not YAML'),
    ('[', ModelError, 'is not YAML'),
], ids=lambda value: str(value)[:50])
def test_wrong_files_are_named_with_their_line(tmp_path, text, error, words):
    path = written(tmp_path, text)
    with pytest.raises(error, match=words) as caught:
        ExternalForces(POST, path)
    assert str(path) in str(caught.value)


def test_no_file_and_no_mapping(tmp_path):
    with pytest.raises(ModelError, match='nowhere.yaml'):
        ExternalForces(POST, tmp_path / 'nowhere.yaml')
    with pytest.raises(ModelError, match='external forces 5: expected a YAML file or a mapping'):
        ExternalForces(POST, 5)


def test_no_forces_do_nothing():
    forces = ExternalForces(POST, {})
    assert (forces(X, XD), forces.energy(X), forces.names) == (({}, {}), 0.0, ())


def test_every_type_and_parameter_is_described():
    printed = '\n'.join(model.tables())
    for name, cls in model.TYPES.items():
        table = re.search(rf'### {name}\n(.*?)(?=###|\Z)', printed, re.DOTALL).group(1)
        assert cls.__doc__ in table
        for key, parameter in declared(cls).items():
            assert f'| `{key}` | {parameter.kind} |' in table
            assert parameter.description in table
            if parameter.kind in (NUMBER, VECTOR):
                assert np.isfinite([parameter.low, parameter.high]).all()
