"""Linear systems about a state: against differences of the motion and of what is measured, and against simulation."""

from functools import cache, partial

import numpy as np
import pytest
from conftest import thorough
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from support.comparison import error
from support.general_machines import general_machine
from support.machines import load, near_start
from support.paths import ROOT
from support.witnesses.extended import differences
from test_external_forces import conservative, dissipative

import psdyn_ros
from psdyn_ros import ShapeError, UnknownNameError
from psdyn_ros.api.analysis.equilibrium import displaced_position
from psdyn_ros.api.analysis.linearization import coordinate_names, linearize
from psdyn_ros.simulation.external_forces import ExternalForces
from psdyn_ros.simulation.offline import simulate

NAMES = ('hiab_xs031', 'four_bar', 'five_bar', 'pkm_2pur2rpu', 'excavator', 'balloon')
WITH_FORCES = ('hiab_xs031', 'four_bar', 'excavator', 'balloon')
STEP = 2e-4      # [m, rad, N]


@cache
def machine(name):
    return psdyn_ros.load(str(ROOT / 'urdf' / f'{name}.urdf'), allow_unphysical=name == 'balloon')


@cache
def floating_crank():
    made = general_machine(np.random.default_rng(5), ('five_bar', 'triangle'), floating=True, redundant=True)
    return load(made)


def manipulator(name):
    return floating_crank() if name == 'floating' else machine(name)


def scale(m):
    """Return the size of what moves little: the PKM is a tenth of a metre high."""
    return 0.1 if m.total_mass < 1.0 else 1.0


def state_near_start(m, rng):
    x = near_start(m, rng, 0.02 * scale(m))
    return x, rng.uniform(-0.5, 0.5, m.dof), rng.normal(size=len(m.actuators)) * m.total_mass


@pytest.mark.parametrize('name', thorough([*NAMES, 'floating'], ('hiab_xs031', 'five_bar', 'balloon')))
def test_states_and_outputs_against_differences(name, rng):
    """Springs and dampers on every joint, a wrench on a link; positions, rates and accelerations of every joint."""
    m = manipulator(name)
    x, xd, f = state_near_start(m, rng)
    n, joints = m.dof, m.joints
    numbers = dict(zip(joints, rng.normal(size=(len(joints), 2)) * (30, 10) * scale(m)**2))
    wrenches = {m.links[-1]: rng.normal(size=(2, 3)) * 5}

    def outside(x, xd):
        _, q, qd, _ = m.joint_state(x, xd)
        return {'wrenches': wrenches,
                'joint_efforts': {name: float(numbers[name] @ row) for name, *row in zip(joints, q, qd)}}

    def accelerations(dx, dxd, df):
        x_, xd_ = displaced_position(m, x, dx), xd + dxd
        return m.forward_dynamics(x_, xd_, f + df, **outside(x_, xd_))

    def measured(dx, dxd, df):
        x_, xd_ = displaced_position(m, x, dx), xd + dxd
        return np.concatenate(m.joint_state(x_, xd_, accelerations(dx, dxd, df))[1:])

    turned = passive_of_triangles(m)
    outputs = [f'{joint}/{quantity}' for quantity in ('position', 'velocity', 'acceleration') for joint in joints]
    kept = [row for row, output in enumerate(outputs)
            if not (output.endswith('acceleration') and output.rpartition('/')[0] in turned)]
    s = m.linearize(x, xd, f, joint_slopes=numbers, outputs=[outputs[row] for row in kept], **outside(x, xd))
    none, idle, step = np.zeros(n), np.zeros(len(f)), STEP * np.sqrt(scale(m))
    for first, second, of_x, of_xd, of_f in (
            (s.A[n:], s.B[n:], *parts(accelerations, none, idle, step)),
            (s.C, s.D, *(part[kept] for part in parts(measured, none, idle, step)))):
        assert error(first[:, :n], of_x) < 1e-8
        assert error(first[:, n:], of_xd) < 1e-8
        assert error(second, of_f) < 1e-8
    assert np.array_equal(s.A[:n, n:], np.eye(n)) and not s.B[:n].any()
    np.testing.assert_allclose(s.xdd, accelerations(none, none, idle), rtol=1e-9, atol=1e-9)


def parts(function, none, idle, step):
    rows = len(function(none, none, idle))
    by_effort = differences(lambda d: function(none, none, d), idle.size, step) if idle.size else np.zeros((rows, 0))
    return (differences(lambda d: function(d, none, idle), none.size, step),
            differences(lambda d: function(none, d, idle), none.size, step),
            by_effort)


def passive_of_triangles(m):
    """Return the joints that turn with a cylinder of a module."""
    return [joint.name for module in m.machine.modules if module.triangle
            for joint in (module.triangle.boom, module.triangle.barrel)]


@pytest.mark.parametrize('name', WITH_FORCES)
def test_external_forces_tell_exact_slopes(name, rng):
    m = machine(name)
    specs = conservative(name) | dissipative(name)
    specs['follower'] = {'type': 'constant_force', 'link': specs['weight']['link'], 'force': [3, 4, 5], 'axes': 'link'}
    for key in specs:
        forces = ExternalForces(m, {key: specs[key]})
        x, xd, f = state_near_start(m, rng)

        def accelerations(dx, dxd, forces=forces, x=x, xd=xd, f=f):
            there = displaced_position(m, x, dx), xd + dxd
            return m.forward_dynamics(*there, f, **forces(*there)._asdict())

        s = linearize(m, x, xd, f, **forces.slopes(x, xd)._asdict())
        by_x = differences(partial(accelerations, dxd=0.0), m.dof, STEP)
        by_xd = differences(partial(accelerations, np.zeros(m.dof)), m.dof, STEP)
        assert error(s.A[m.dof:, :m.dof], by_x) < 1e-8 and error(s.A[m.dof:, m.dof:], by_xd) < 1e-8, key


def test_slopes_of_forces_on_one_link_add_up(rng):
    m = machine('four_bar')
    specs = conservative('four_bar') | dissipative('four_bar')
    x, xd, _ = state_near_start(m, rng)
    one_by_one = [ExternalForces(m, {key: spec}).slopes(x, xd) for key, spec in specs.items()]
    together = ExternalForces(m, specs).slopes(x, xd)
    for which in ('joint_slopes', 'wrench_slopes'):
        for name, (by_x, by_xd) in getattr(together, which).items():
            each = [getattr(one, which)[name] for one in one_by_one if name in getattr(one, which)]
            np.testing.assert_allclose(by_x, sum(np.asarray(pair[0]) for pair in each), atol=1e-9)
            np.testing.assert_allclose(by_xd, sum(np.asarray(pair[1]) for pair in each), atol=1e-9)


def deviation(m, x, xd, there, there_xd):
    """Return (dx, dxd) from x, xd to another state, dx of a floating base in the axes of x."""
    dx = there - x
    if m.floating:
        turn = Rotation.from_quat(x[3:7])
        base = np.concatenate((turn.inv().apply(there[:3] - x[:3]), (turn.inv() * Rotation.from_quat(there[3:7]))
                               .as_rotvec()))
        dx = np.concatenate((base, dx[7:]))
    return np.concatenate((dx, there_xd - xd))


@pytest.mark.parametrize('name', ['hiab_xs031', 'five_bar', 'floating', 'balloon'])
def test_small_deviations_from_a_motion(name, rng):
    """Also of a base that flies and turns: its deviation is seen from axes that turn with it."""
    m = manipulator(name)
    x, xd, f = state_near_start(m, rng)
    n, h, small = m.dof, 2e-4, 1e-4
    s = m.linearize(x, xd, f)

    def after(change):
        run = simulate(m, displaced_position(m, x, change[:n]), xd + change[n:], [0.0, h, 2 * h], effort=f)
        return run.x[1:], run.xd[1:]

    plain = after(np.zeros(2 * n))
    for change in rng.normal(size=(3, 2 * n)):
        ahead, back = after(small * change), after(-small * change)
        first, second = (0.5 * (deviation(m, *(row[k] for row in plain), *(row[k] for row in ahead))
                                - deviation(m, *(row[k] for row in plain), *(row[k] for row in back)))
                         for k in (0, 1))
        rate = (4 * first - second - 3 * small * change) / (2 * h * small)
        assert error(rate, s.A @ change) < 1e-4 * max(1.0, np.abs(s.A).max())


def test_crane_on_springs_and_dampers_moves_as_its_linear_system():
    m = machine('hiab_xs031')
    x = m.initial_position
    forces = ExternalForces(m, {
        f'{kind} {joint}': {'type': f'joint_{kind}', 'joint': joint, **numbers}
        for joint, start, k, c in zip(m.coordinates, x, (1e5, 4e6, 4e6, 1e5), (2e4, 2e5, 1e5, 1e4))
        for kind, numbers in (('spring', {'stiffness': k, 'rest': float(start)}), ('damper', {'linear': c}))})
    rest = m.equilibrium(x, np.zeros(4), external=forces)
    s = m.linearize(rest.x, np.zeros(4), np.zeros(4), outputs=['lift_boom/position', 'slew/velocity'],
                    **forces.slopes(rest.x, np.zeros(4))._asdict())
    np.testing.assert_allclose(np.sort_complex(s.eigenvalues), np.sort_complex(rest.eigenvalues), rtol=1e-8, atol=1e-8)
    assert s.eigenvalues.real.max() < 0.0 and (np.diff(s.eigenvalues.real) <= 0.0).all()
    start = 1e-5 * np.array([1.0, -0.3, 0.5, 0.8, 2.0, 1.0, -1.0, 0.7])
    times = np.linspace(0.0, 0.5, 6)
    run = simulate(m, rest.x + start[:4], start[4:], times, external=forces)
    lift, place = m.joint_state(rest.x)[1][m.joints.index('lift_boom')], m.joints.index('lift_boom')
    for t, x, xd in zip(times, run.x, run.xd):
        linear = expm(s.A * t) @ start
        np.testing.assert_allclose(np.concatenate((x - rest.x, xd)), linear, atol=2e-8)
        measured = [m.joint_state(x)[1][place] - lift, xd[0]]
        np.testing.assert_allclose(measured, s.C @ linear, atol=2e-8)


def test_base_that_is_driven_keeps_its_motion(rng):
    m = floating_crank()
    x, xd, f = state_near_start(m, rng)
    drive = psdyn_ros.BaseDrive((1, 1, 0, 1, 1, 0), rng.normal(size=6))
    s = m.linearize(x, xd, f, base=drive)
    driven, n = [0, 1, 3, 4], m.dof
    assert not s.A[n:][driven].any() and not s.B[n:][driven].any()
    np.testing.assert_allclose(s.xdd[driven], drive.acceleration[driven], rtol=1e-12)
    # wrenches that follow the state act on what is free
    link = m.links[-1]
    wrenches, slopes = {link: np.zeros((2, 3))}, {link: rng.normal(size=(2, 6, n))}

    def accelerations(d):
        w = slopes[link][0] @ d
        return m.forward_dynamics(displaced_position(m, x, d), xd, f, base=drive, wrenches={link: (w[:3], w[3:])})

    s = m.linearize(x, xd, f, base=drive, wrenches=wrenches, wrench_slopes=slopes)
    assert error(s.A[n:, :n], differences(accelerations, n, STEP)) < 1e-8


def test_names():
    m = machine('balloon')
    base = ('base_x', 'base_y', 'base_z', 'base_rx', 'base_ry', 'base_rz')
    assert coordinate_names(m) == (*base, 'slider', 'pendulum_1', 'pendulum_2')
    x = m.initial_position
    s = m.linearize(x, np.zeros(9), np.zeros(0))
    assert s.states == s.outputs and s.states[0] == 'base_x/position' and s.states[-1] == 'pendulum_2/velocity'
    assert np.array_equal(s.C, np.eye(18)) and s.D.shape == (18, 0) and s.inputs == ()
    s = m.linearize(x, np.zeros(9), np.zeros(0), outputs='base_ry/acceleration')
    assert s.outputs == ('base_ry/acceleration',)
    assert machine('excavator').linearize(machine('excavator').initial_position, np.zeros(4), np.zeros(5)).inputs == (
        'swing/effort', 'boom_cylinder_left/effort', 'boom_cylinder_right/effort', 'arm_cylinder/effort',
        'bucket_cylinder/effort')


def test_errors():
    m = machine('hiab_xs031')
    x, rest = m.initial_position, np.zeros(4)
    for output, words in (('lift_bom/position', "no such joint 'lift_bom'; did you mean 'lift_boom'"),
                          ('lift_boom/speed', 'no such quantity; there are'), ('slew', "expected <joint>/position"),
                          ('base_x/position', "no such joint 'base_x'"),
                          ('lift_boom/acceleration', 'turned by a cylinder')):
        with pytest.raises(UnknownNameError, match=words):
            m.linearize(x, rest, rest, outputs=[output])
    with pytest.raises(UnknownNameError, match="wrench_slopes of 'lift_boom_link', on which wrenches has none"):
        m.linearize(x, rest, rest, wrench_slopes={'lift_boom_link': np.zeros((2, 6, 4))})
    with pytest.raises(ShapeError, match="slopes of the wrench on 'lift_boom_link'"):
        m.linearize(x, rest, rest, wrenches={'lift_boom_link': np.zeros((2, 3))}, wrench_slopes={'lift_boom_link': 5})
    with pytest.raises(ShapeError, match='one state|shapes'):
        m.linearize(np.tile(x, (2, 1)), np.zeros((2, 4)), np.zeros((2, 4)))
    bar = machine('five_bar')
    with pytest.raises(psdyn_ros.UnreachableStrokeError, match="loop 'pin_c'"):
        bar.linearize([2.6, 0.3], np.zeros(2), np.zeros(2))
