"""Vectors by name: every call takes {name: number} where it takes an array, and names what does not fit."""

import numpy as np
import pytest
from support.cases import made
from support.comparison import error

import psdyn_ros
from psdyn_ros import NonFiniteError, ShapeError, StateError, UnknownNameError
from psdyn_ros.api.arguments import entry_names

MACHINES = ('crane', 'floating crane', 'shared')
# call: labels of the vectors that it takes
CALLS = {'forward_dynamics': ('x', 'xd', 'f'), 'inverse_dynamics': ('x', 'xd', 'xdd'),
         'generalized_forces': ('x', 'xd', 'xdd'), 'base_wrench': ('x', 'xd', 'xdd'), 'joint_state': ('x', 'xd', 'xdd'),
         'bias_forces': ('x', 'xd'), 'energy': ('x', 'xd'), 'mass_matrix': ('x',), 'gravity_forces': ('x',),
         'actuator_map': ('x',), 'forward_dynamics_derivatives': ('x', 'xd', 'f'),
         'inverse_dynamics_derivatives': ('x', 'xd', 'xdd'), 'linearize': ('x', 'xd', 'f'), 'environment': ('x',)}
BATCHED = ('forward_dynamics', 'inverse_dynamics', 'gravity_forces', 'energy', 'actuator_map')


@pytest.fixture(params=MACHINES)
def m(request):
    return made(request.param).m


@pytest.fixture
def s(request, m, rng):
    return made(request.node.callspec.params['m']).state(rng)


def named(m, label, values):
    """Return a vector or rows of them as {name: number or (N,)}, in another order than that of the array."""
    return dict(reversed([*zip(entry_names(m, label), np.moveaxis(values, -1, 0))]))


@pytest.mark.parametrize('call', CALLS)
def test_a_call_takes_vectors_by_name(m, s, call):
    labels = CALLS[call]
    expected = getattr(m, call)(*(getattr(s, label) for label in labels))
    found = getattr(m, call)(*(named(m, label, getattr(s, label)) for label in labels))
    for one, other in zip(found if isinstance(found, tuple) else [*found], expected if isinstance(expected, tuple)
                          else [*expected]):
        assert str(one) == str(other)


@pytest.mark.parametrize('call', BATCHED)
def test_columns_by_name_are_rows(m, s, call, rng):
    rows = {label: np.tile(getattr(s, label), (3, 1)) for label in CALLS[call]}
    for label, values in rows.items():
        if label != 'x':
            values *= rng.uniform(0.5, 1.0, values.shape)
    expected = getattr(m, call)(*rows.values())
    found = getattr(m, call)(*(named(m, label, values) for label, values in rows.items()))
    assert error(np.array(found), np.array(expected)) == 0.0


def test_a_number_beside_columns_counts_for_every_row(m, s):
    x = named(m, 'x', np.tile(s.x, (3, 1)))
    x[m.coordinates[0]] = float(s.x[m.nx - len(m.coordinates)])
    assert error(m.mass_matrix(x)[2], m.mass_matrix(s.x)) == 0.0


def test_base_stands_for_all_entries_of_a_floating_base(rng):
    m, s = made('floating crane').m, made('floating crane').state(rng)
    x = {'base': s.x[:7], **dict(zip(m.coordinates, s.x[7:]))}
    xd = {'base': s.xd[:6], **dict(zip(m.coordinates, s.xd[6:]))}
    assert error(m.bias_forces(x, xd), m.bias_forces(s.x, s.xd)) == 0.0
    with pytest.raises(ShapeError, match=r"^x of 'base' has shape \(6,\); expected \(7,\): base_x, .*, base_qw$"):
        m.bias_forces({**x, 'base': s.x[:6]}, xd)


def test_links_and_searches_take_vectors_by_name(rng):
    m = made('crane').m
    s = made('crane').state(rng)
    x, xd, xdd = (named(m, label, getattr(s, label)) for label in ('x', 'xd', 'xdd'))
    assert error(m.link_pose(x, 'tcp'), m.link_pose(s.x, 'tcp')) == 0.0
    assert error(m.link_twist(x, xd, 'tcp'), m.link_twist(s.x, s.xd, 'tcp')) == 0.0
    assert error(m.link_motion(x, xd, xdd, 'tcp')[1], m.link_motion(s.x, s.xd, s.xdd, 'tcp')[1]) == 0.0
    assert error(m.joint_wrench(x, xd, xdd, 'slew'), m.joint_wrench(s.x, s.xd, s.xdd, 'slew')) == 0.0
    assert error(m.jacobian_rate(x, xd, 'tcp'), m.jacobian_rate(s.x, s.xd, 'tcp')) == 0.0
    assert error(m.hybrid_dynamics(x, xd, efforts=dict.fromkeys(m.coordinates, 0.0)).accelerations,
                 m.forward_dynamics(s.x, s.xd, np.zeros(4))) < 1e-12
    target = m.link_pose(s.x, 'tcp')[:3, 3]
    assert error(m.inverse_kinematics('tcp', target, start=x), s.x) < 1e-6
    assert error(m.equilibrium(x, m.gravity_forces(x)).x, s.x) < 1e-6


@pytest.mark.parametrize('link', ['tcp', 'base_link', 'lift_rod'])
@pytest.mark.parametrize('name', ['crane', 'floating crane'])
def test_link_calls_of_rows_are_their_single_answers(name, link, rng):
    m = made(name).m
    if link not in m.links:
        link = m.links[-1]
    rows = [np.array(column) for column in zip(*(made(name).state(rng)[:3] for _ in range(4)))]
    twist, force = m.link_motion(*rows, link)
    pose, base = m.link_pose(rows[0], link), m.base_wrench(*rows)
    for k, (x, xd, xdd) in enumerate(zip(*rows)):
        assert error(pose[k], m.link_pose(x, link)) < 1e-13
        assert error(m.link_twist(rows[0], rows[1], link)[k], m.link_twist(x, xd, link)) == 0.0
        assert error(twist[k], m.link_motion(x, xd, xdd, link)[0]) == 0.0
        assert error(force[k], m.link_motion(x, xd, xdd, link)[1]) == 0.0
        assert error(base[k], m.base_wrench(x, xd, xdd)) == 0.0
        joint = m.serial_joints[0]
        assert error(m.joint_wrench(*rows, joint)[k], m.joint_wrench(x, xd, xdd, joint)) == 0.0


def test_a_pose_of_rows_names_the_row_that_does_not_close():
    m = made('crane').m
    x = np.tile(m.initial_position, (3, 1))
    x[2, 1] = 0.7
    with pytest.raises(ValueError, match="^row 2: loop 'lift_eye': stroke lift_cylinder = 0.7 m"):
        m.link_pose(x, 'tcp')


def test_unknown_and_missing_names_are_errors():
    m = made('crane').m
    x = dict(zip(m.coordinates, m.initial_position))
    with pytest.raises(UnknownNameError, match="^x of 'slw': no such coordinate of .*; did you mean 'slew'"):
        m.gravity_forces({**x, 'slw': 0.0})
    with pytest.raises(UnknownNameError, match="^x of 'lift_boom': it is no coordinate of .* but follows from them"):
        m.gravity_forces({**x, 'lift_boom': 0.0})
    with pytest.raises(UnknownNameError, match="^f of 'lift_boom': it is no actuator of"):
        m.forward_dynamics(x, dict.fromkeys(x, 0.0), {**x, 'lift_boom': 0.0})
    with pytest.raises(ShapeError, match="^x of .* has no value for tilt_cylinder, telescope; expected slew, lift_"):
        m.gravity_forces({name: x[name] for name in m.coordinates[:2]})
    with pytest.raises(ShapeError, match="^x of 'slew' is not an array of numbers: 'left'"):
        m.gravity_forces({**x, 'slew': 'left'})
    with pytest.raises(ShapeError, match=r"^x has values of shapes \{.*'slew': \(3,\).*\}; expected numbers"):
        m.gravity_forces({**x, 'slew': np.zeros(3), 'telescope': np.zeros(2)})
    with pytest.raises(NonFiniteError, match="^x of 'slew' is nan"):
        m.gravity_forces({**x, 'slew': np.nan})


def test_random_positions_are_within_limits_and_repeat_with_their_seed(m):
    x = m.random_positions(40, 7)
    assert x.shape == (40, m.nx) and np.array_equal(x, m.random_positions(40, 7))
    assert np.array_equal(x, m.random_positions(40, np.random.default_rng(7)))
    assert not np.array_equal(x, m.random_positions(40, 8)) and m.random_positions(0).shape == (0, m.nx)
    names, q, *_ = m.joint_state(x)             # every loop closes
    for limits, those in ((m.limits, m.actuators), (m.coordinate_limits, m.coordinates)):
        values = q[:, [names.index(name) for name in those]]
        assert (values >= limits.lower).all() and (values <= limits.upper).all()
    # spread over the whole range of each coordinate with limits
    first = m.nx - len(m.coordinates)
    width = m.coordinate_limits.upper - m.coordinate_limits.lower
    if m is made('crane').m:
        assert (np.ptp(x[:, first:], axis=0) > 0.6 * width).all()
    assert (x[:, :first] == m.initial_position[:first]).all()


def test_every_joint_of_a_cluster_keeps_its_limits():
    """Random positions, workspace and inverse kinematics keep those of joints that are no coordinates too."""
    m = psdyn_ros.load('pkm_2pur2rpu')
    description = m.machine.description.joints
    lower, upper = np.array([(description[name].lower, description[name].upper) for name in m.joints]).T
    link = 'tcp'

    def beyond(x):
        q = m.joint_state(x)[1]
        return np.maximum(q - upper, lower - q).max()

    assert beyond(m.random_positions(300, 0)) < 1e-9 and beyond(m.workspace(link).x) < 1e-9
    inside = m.random_positions(40, 3)
    for k, target in enumerate(m.link_pose(inside, link)):
        assert beyond(m.inverse_kinematics(link, target, start=inside[k - 1])) < 1e-6


@pytest.mark.parametrize('n', [-1, 2.5, 'many', None])
def test_random_positions_refuses_a_count_that_is_none(n):
    with pytest.raises(ValueError, match='expected how many positions'):
        made('crane').m.random_positions(n)


def test_random_positions_says_when_hardly_any_closes(monkeypatch):
    from psdyn_ros.api.motion import samples
    monkeypatch.setattr(samples, 'within_stops', lambda m, x: np.zeros(len(x), bool))
    monkeypatch.setattr(samples, 'MAX_DRAWS', 2)
    with pytest.raises(ValueError, match="^0 of 128 random positions of .* are within its limits with all loops"):
        made('crane').m.random_positions(3, 1)


def test_a_point_mass_is_a_body_without_inertia(rng):
    m, com = made('crane').m, (0.1, 0.2, -0.3)
    s = made('crane').state(rng)
    loaded = m.with_payload('tcp', 70.0, com)
    assert loaded.total_mass == pytest.approx(m.total_mass + 70.0)
    # the weight at its point, by virtual work
    J = m.jacobian(s.x, 'tcp', point=com)[:3]
    assert error(loaded.gravity_forces(s.x) - m.gravity_forces(s.x), -70.0 * J.T @ m.gravity) < 1e-12
    assert error(loaded.mass_matrix(s.x), m.mass_matrix(s.x) + 70.0 * J.T @ J) < 1e-12
    at_origin = m.with_payload('tcp', 70.0)
    assert error(at_origin.mass_matrix(s.x), m.with_payload('tcp', 70.0, (0, 0, 0), np.zeros((3, 3))).mass_matrix(s.x)
                 ) == 0.0


@pytest.mark.parametrize('call', ['gravity_forces', 'bias_forces', 'energy', 'mass_matrix', 'joint_state',
                                  'base_wrench'])
def test_errors_of_rows_name_the_row_and_only_what_was_given(call):
    m, labels = made('crane').m, CALLS[call]
    rows = [np.tile(m.initial_position if label == 'x' else np.zeros(4), (3, 1)) for label in labels]
    rows[0][1, 1] = 0.7
    with pytest.raises(ValueError, match="row 1.*loop 'lift_eye'|loop 'lift_eye'.* row 1"):
        getattr(m, call)(*rows)
    with pytest.raises(ShapeError) as caught:
        getattr(m, call)(rows[0][:, :3], *rows[1:])
    shapes = {label: (3, 3 if label == 'x' else 4) for label in labels}
    assert str(caught.value).endswith(f'got shapes {shapes}')


def parts(m, result):
    return [part for part in (result if isinstance(result, tuple) else [result]) if part is not m.joints]


@pytest.mark.parametrize('call', ['gravity_forces', 'bias_forces', 'energy', 'mass_matrix', 'actuator_map',
                                  'joint_state', 'base_wrench'])
@pytest.mark.parametrize('n', [0, 1, 3])
def test_rows_of_a_call_are_its_single_answers(m, s, call, n, rng):
    state = [np.tile(getattr(s, label), (n, 1)) * (1.0 if label == 'x' else rng.uniform(0.5, 1.0, (n, 1)))
             for label in CALLS[call]]
    batch = parts(m, getattr(m, call)(*state))
    assert all(len(rows) == n for rows in batch)
    for row in range(n):
        for one, rows in zip(parts(m, getattr(m, call)(*(array[row] for array in state))), batch):
            assert error(rows[row], one) < 1e-13


@pytest.mark.parametrize('call, kind, words', [
    (lambda m: m.workspace('tcp', samples=0), StateError, 'samples = 0: expected how many positions are tried'),
    (lambda m: m.workspace('tcp', samples='a'), StateError, "samples = 'a': expected"),
    (lambda m: m.random_positions(1, 'a'), StateError, "rng = 'a': expected a generator, a seed"),
    (lambda m: m.random_positions(1, -5), StateError, 'rng = -5: expected'),
    (lambda m: m.forward_dynamics(m.initial_position, np.zeros(4), np.zeros(4), positions=[1.0, 2.0]), ShapeError,
     r'positions has shape \(2,\); expected \(8,\)'),
    (lambda m: m.inverse_dynamics(m.initial_position, np.zeros(4), np.zeros(4), positions='a'), ShapeError,
     'positions is not an array of numbers'),
    (lambda m: m.linearize(m.initial_position, np.zeros(4), np.zeros(4), outputs=['a']), UnknownNameError,
     "output 'a': expected <joint>/position, <joint>/velocity or <joint>/acceleration of slew, "),
    (lambda m: m.linearize(m.initial_position, np.zeros(4), np.zeros(4), outputs=['zzz/position']), UnknownNameError,
     "no such joint 'zzz'; there are: lift_barrel, lift_boom, lift_cylinder, slew, telescope, ")])
def test_arguments_that_are_none_are_refused_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call(made('crane').m)
