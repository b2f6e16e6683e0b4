"""Positions of rest: closed forms, minima of the potential energy found by another method, and named failures."""

from functools import cache

import numpy as np
import pytest
from conftest import thorough
from scipy.optimize import minimize, minimize_scalar
from support import urdf_text as urdf
from support.general_machines import general_machine
from support.machines import load
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import ShapeError, UnknownNameError, UnreachableStrokeError
from psdyn_ros.api.analysis.equilibrium import EquilibriumError, displaced_position, equilibrium
from psdyn_ros.simulation.external_forces import ExternalForces
from psdyn_ros.simulation.offline import simulate

CROSSED = {'coupler': -1.3648281656841457, 'rocker': 2.288972884144962}


@cache
def machine(name):
    return psdyn_ros.load(str(ROOT / 'urdf' / f'{name}.urdf'), allow_unphysical=name == 'balloon')


@cache
def pendulum(damping=0.0, floating=False):
    """2 kg at 0.5 m below a horizontal axis, which is at the base or, at 0.3 m, on a floating body of 4 kg."""
    parts = [urdf.link('base_link', *((4.0, (0, 0, 0), np.eye(3)) if floating else ())),
             urdf.joint('hinge', 'revolute', 'base_link', 'bob', (0, 0, -0.3 * floating), (0, 0, 0), (0, 1, 0), (-9, 9),
                        (damping, 0.0)),
             urdf.link('bob', 2.0, (0, 0, -0.5), 0.1 * np.eye(3)),
             urdf.control('pendulum', ['hinge'], [], {'hinge': 0})]
    if floating:
        parts += ['<link name="world"/>', '<joint name="free" type="floating"><parent link="world"/>'
                  '<child link="base_link"/></joint>']
    return psdyn_ros.load(urdf.robot('pendulum', parts))


def springs(m, stiffness, damping=0.0):
    """Return springs on all coordinates that are relaxed where the machine starts."""
    start = m.initial_position[m.nx - len(m.coordinates):]
    specs = {f'spring {joint}': {'type': 'joint_spring', 'joint': joint, 'stiffness': float(k), 'rest': float(rest)}
             for joint, k, rest in zip(m.coordinates, np.broadcast_to(stiffness, len(start)), start)}
    if damping:
        specs |= {f'damper {joint}': {'type': 'joint_damper', 'joint': joint, 'linear': damping}
                  for joint in m.coordinates}
    return ExternalForces(m, specs)


def potential(m, forces, x):
    return m.energy(x, np.zeros(m.dof))[1] + (forces.energy(x) if forces else 0.0)


@pytest.mark.parametrize('start, settle, angle, stability', [
    (0.4, False, 0.0, 'stable'), (2.9, False, np.pi, 'unstable'), (2.9, True, 0.0, 'stable'),
    (np.pi, True, 2 * np.pi, 'stable'), (-1.8, True, 0.0, 'stable')])
def test_pendulum(start, settle, angle, stability):
    m = pendulum()
    rest = m.equilibrium([start], [0.0], settle=settle)
    if start == np.pi and rest.x[0] < 1.0:
        angle = 0.0     # either side will do
    assert rest.x[0] == pytest.approx(angle, abs=1e-9)
    assert (rest.stability, rest.free, rest.held) == (stability, ('hinge',), {})
    stiffness = 2.0 * 9.81 * 0.5 * np.cos(angle)
    assert rest.stiffness == pytest.approx(np.array([[stiffness]]))
    frequency = np.emath.sqrt(-stiffness / (0.1 + 2.0 * 0.25))
    np.testing.assert_allclose(np.sort_complex(rest.eigenvalues), np.sort_complex([frequency, -frequency]), atol=1e-9)
    assert rest.residual < 1e-9 and 0 < rest.iterations < 40
    np.testing.assert_array_equal(rest.f, [0.0])


def test_pendulum_under_a_torque_with_a_damper():
    m = pendulum(damping=1.2)
    rest = m.equilibrium([0.0], [4.905])
    assert rest.x[0] == pytest.approx(np.arcsin(-0.5) if rest.x[0] < 0 else np.arcsin(0.5), abs=1e-12)
    assert rest.stability == 'stable'
    np.testing.assert_allclose(rest.eigenvalues.sum(), -1.2 / 0.6, rtol=1e-12)
    with pytest.raises(EquilibriumError, match="'pendulum' found in .* N or N m are missing on 'hinge' at hinge") as e:
        m.equilibrium([0.3], [9.82])
    assert e.value.residual == pytest.approx(0.01, rel=1e-3) and abs(np.sin(e.value.x[0])) == pytest.approx(1, abs=1e-3)


def test_efforts_that_hold_a_position():
    for name in ('hiab_xs031', 'four_bar', 'five_bar', 'pkm_2pur2rpu', 'excavator'):
        m = machine(name)
        rest = m.equilibrium(m.initial_position)
        np.testing.assert_allclose(rest.f, m.gravity_forces(m.initial_position), rtol=1e-12, atol=1e-10)
        assert np.array_equal(rest.x, m.initial_position) and rest.free == () and rest.iterations == 0
        assert rest.eigenvalues.size == 0 and rest.held.keys() == set(m.coordinates)
        assert max(map(abs, rest.held.values())) < 1e-9 * (1.0 + np.abs(rest.f).max())
        # and where no actuator helps, they are on what holds the coordinates
        held = m.equilibrium(m.initial_position, np.zeros(len(m.actuators)), fixed=m.coordinates).held
        np.testing.assert_allclose(list(held.values()), m.generalized_forces(
            m.initial_position, np.zeros(m.dof), np.zeros(m.dof)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('mode', [None, CROSSED], ids=['open', 'crossed'])
def test_four_bar_rests_at_the_minimum_of_its_potential_energy(mode):
    m = psdyn_ros.load(str(ROOT / 'urdf' / 'four_bar.urdf'), initial=mode)
    for start in (0.5, 2.0, 3.0, 4.0):
        rest = m.equilibrium([start], [0.0], settle=True)
        lowest = minimize_scalar(lambda crank: potential(m, None, np.array([crank])),
                                 bounds=rest.x[0] + np.array([-1.0, 1.5]), method='bounded', options={'xatol': 1e-10})
        assert rest.x[0] == pytest.approx(lowest.x, abs=1e-7)
        assert rest.stability == 'stable'
        curvature = m.inverse_dynamics_derivatives(rest.x, np.zeros(1), np.zeros(1)).df_dx
        np.testing.assert_allclose(rest.stiffness, curvature, rtol=1e-12)
    # small swings about it have the frequency that is told
    period = 2 * np.pi / rest.eigenvalues[0].imag * np.sign(rest.eigenvalues[0].imag)
    run = simulate(m, rest.x + 1e-4, [0.0], [0.0, period])
    np.testing.assert_allclose(run.x[-1] - rest.x, 1e-4, rtol=1e-3)


@pytest.mark.parametrize('name, stiffness', [('hiab_xs031', (1e5, 4e6, 4e6, 1e5)), ('excavator', (1e6, 4e6, 4e6, 4e6)),
                                             ('pkm_2pur2rpu', 400.0), ('five_bar', 60.0)])
@pytest.mark.parametrize('settle', [False, True])
def test_machines_sag_on_springs_to_the_minimum_of_the_energy(name, stiffness, settle):
    m = machine(name)
    forces = springs(m, stiffness)
    x = m.initial_position
    rest = m.equilibrium(x, np.zeros(len(m.actuators)), external=forces, settle=settle)
    scale = np.sqrt(np.broadcast_to(stiffness, m.dof))
    lowest = minimize(lambda y: potential(m, forces, x + y / scale), np.zeros(m.dof), method='BFGS',
                      jac=lambda y: m.generalized_forces(x + y / scale, 0 * y, 0 * y, joint_efforts=forces(
                          x + y / scale, 0 * y).joint_efforts) / scale, options={'gtol': 1e-9})
    np.testing.assert_allclose(rest.x, x + lowest.x / scale, atol=1e-8)
    assert rest.stability == 'stable' and rest.iterations < 15
    np.testing.assert_allclose(rest.stiffness, rest.stiffness.T, atol=1e-9 * np.abs(rest.stiffness).max())
    # the sag holds: springs carry what gravity asks for
    needed = m.generalized_forces(rest.x, np.zeros(m.dof), np.zeros(m.dof))
    np.testing.assert_allclose(stiffness * (x - rest.x), needed, atol=1e-8 * (1 + np.abs(needed).max()))


def test_balloon_hangs_upright_with_its_pendulums_down():
    m = machine('balloon')
    forces = ExternalForces(m, ROOT / 'config' / 'balloon.yaml')
    start = m.initial_position
    upside = m.equilibrium(start, external=forces)
    assert upside.stability == 'unstable' and upside.residual < 1e-9
    rest = m.equilibrium(start, external=forces, settle=True)
    # it may drift in any direction and turn about the vertical
    assert rest.stability == 'neutral' and len(rest.free) == 9
    assert (np.linalg.svd(rest.stiffness, compute_uv=False) > 1e-6).sum() == 5
    assert rest.eigenvalues.real.max() < 1e-6 and (rest.eigenvalues.real < -1e-5).sum() == 10
    upright = m.machine.floating.rotation.T @ m.link_pose(rest.x, 'balloon')[:3, :3]
    np.testing.assert_allclose(upright[:, 1], [0, 1, 0], atol=1e-9)
    np.testing.assert_allclose(rest.x[7:], 0.0, atol=1e-9)
    # the lowest energy of the reference, after 20 s and still falling, is just above
    assert -224.0 < potential(m, forces, rest.x) < -222.455745
    # a function without slopes comes to the same place
    plain = m.equilibrium(start, external=lambda x, xd: forces(x, xd), settle=True)
    assert potential(m, forces, plain.x) == pytest.approx(potential(m, forces, rest.x), abs=1e-9)
    np.testing.assert_allclose(np.sort(np.abs(plain.eigenvalues)), np.sort(np.abs(rest.eigenvalues)), atol=1e-4)


def test_balloon_held_at_its_base():
    m = machine('balloon')
    forces = ExternalForces(m, ROOT / 'config' / 'balloon.yaml')
    x = m.initial_position
    for settle, fixed, base in ((True, 'base', None), (True, (), psdyn_ros.BaseDrive()), (False, 'base', None)):
        rest = m.equilibrium(x, external=forces, fixed=fixed, base=base, settle=settle)
        assert np.array_equal(rest.x[:7], x[:7]) and rest.free == m.coordinates
        assert rest.stability == ('stable' if settle else 'unstable')
        np.testing.assert_allclose(np.sin(rest.x[7:]), 0.0, atol=1e-9)
        np.testing.assert_allclose(list(rest.held.values()), 0.0, atol=1e-9)     # buoyancy carries it, upright
    # accelerated sideways the pendulums hang askew by atan(a / g)
    rest = m.equilibrium(x, external=forces, base=psdyn_ros.BaseDrive(acceleration=(4.0, 0, 0, 0, 0, 0)),
                         fixed='slider', settle=True)
    turned = rest.x[8:].cumsum()
    np.testing.assert_allclose(np.tan(turned), -4.0 / 9.81, rtol=1e-9)


def test_actuated_joints_stay_while_the_base_settles():
    """A floating body on four ropes, its pendulum held askew: it leans until its weight hangs below the ropes."""
    m = pendulum(floating=True)
    forces = ExternalForces(m, {'lift': {'type': 'constant_force', 'link': 'base_link', 'point': [0, 0, 0.4],
                                         'force': [0, 0, 6 * 9.81]}})
    x = np.array([0, 0, 0, 0, 0, 0, 1.0, 0.7])
    rest = m.equilibrium(x, external=forces, settle=True)
    assert rest.x[7] == 0.7 and rest.held.keys() == {'hinge'} and len(rest.free) == 6
    turn = m.link_pose(rest.x, 'base_link')[:3, :3]
    center = 2.0 / 6.0 * (m.link_pose(rest.x, 'bob') @ [0, 0, -0.5, 1])[:3] + 4.0 / 6.0 * rest.x[:3]
    np.testing.assert_allclose((center - rest.x[:3] - turn @ [0, 0, 0.4])[:2], 0.0, atol=1e-9)
    free = m.equilibrium(rest.x, np.zeros(1), external=forces, fixed='hinge')
    assert free.held['hinge'] == pytest.approx(rest.f[0], abs=1e-9) and abs(rest.f[0]) > 1.0
    assert rest.held['hinge'] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize('floating', thorough([True, False], 1))
def test_eigenvalues_are_those_of_the_linear_system(floating, rng):
    made = general_machine(rng, ('five_bar', 'triangle'), floating=floating)
    m = load(made)
    stiff = springs(m, 40.0 * 9.81 * m.total_mass, 5.0 * m.total_mass)
    base = {'fixed': 'base', 'base': psdyn_ros.BaseDrive()} if floating else {}
    rest = m.equilibrium(m.initial_position, np.zeros(len(m.actuators)), external=stiff, **base)
    none = np.zeros(m.dof)
    s = m.linearize(rest.x, none, np.zeros(len(m.actuators)), base=base.get('base'),
                    **stiff.slopes(rest.x, none)._asdict())
    np.testing.assert_allclose(s.xdd, 0.0, atol=1e-8)
    free = np.r_[6 * floating:m.dof]
    A = s.A[np.ix_(np.r_[free, m.dof + free], np.r_[free, m.dof + free])]
    scale = np.abs(rest.eigenvalues).max()
    np.testing.assert_allclose(np.sort_complex(rest.eigenvalues), np.sort_complex(np.linalg.eigvals(A)),
                               atol=1e-7 * scale)


def test_follower_force_is_judged_by_eigenvalues():
    """A push along the far link of a double pendulum: its stiffness is positive where it flutters already."""
    parts = [urdf.link('base_link')]
    for name, parent, z in (('first', 'base_link', 0), ('second', 'first_link', -1)):
        parts += [urdf.joint(name, 'revolute', parent, f'{name}_link', (0, 0, z), (0, 0, 0), (0, 1, 0), (-3, 3)),
                  urdf.link(f'{name}_link', 1.0, (0, 0, -1), 1e-6 * np.eye(3))]
    m = psdyn_ros.load(urdf.robot('column', [*parts, urdf.control('column', ['first', 'second'], [], {})]),
                       gravity=(0, 0, 0))
    stability = []
    for push in (0.5, 5.0):
        forces = ExternalForces(m, {
            'push': {'type': 'constant_force', 'link': 'second_link', 'point': [0, 0, -1], 'force': [0, 0, push],
                     'axes': 'link'},
            **{name: {'type': 'joint_spring', 'joint': name, 'stiffness': 1.0} for name in m.coordinates},
            **{f'rub {name}': {'type': 'joint_damper', 'joint': name, 'linear': 0.05} for name in m.coordinates}})
        rest = m.equilibrium([0.05, -0.02], np.zeros(2), external=forces)
        np.testing.assert_allclose(rest.x, 0.0, atol=1e-9)
        assert abs(rest.stiffness - rest.stiffness.T).max() > 0.1
        assert np.linalg.det(rest.stiffness) > 0.0
        stability.append(rest.stability)
    assert stability == ['stable', 'unstable']


def test_moved_is_the_displacement_in_body_axes(rng):
    m = machine('balloon')
    x = m.initial_position
    x[:7] = rng.normal(size=7)
    x[3:7] /= np.linalg.norm(x[3:7])
    change, h = rng.normal(size=9), 1e-3
    run = simulate(m, x, change, [0.0, 1.0], base=psdyn_ros.BaseDrive())     # the base keeps its twist
    turned = displaced_position(m, x, np.r_[0, 0, 0, change[3:6], 0, 0, 0])
    np.testing.assert_allclose(turned[3:7], run.x[-1, 3:7], atol=1e-10)
    rate = (displaced_position(m, x, h * change) - displaced_position(m, x, -h * change))[:3] / (2 * h)
    turn = m.machine.floating.rotation.T @ m.link_pose(x, 'balloon')[:3, :3]
    np.testing.assert_allclose(rate, turn @ change[:3], atol=1e-9)
    np.testing.assert_allclose(displaced_position(m, x, np.zeros(9)), x, rtol=1e-14)


def test_limits_are_kept():
    m = machine('excavator')
    with pytest.raises(EquilibriumError, match='at the limit of .*arm_cylinder') as caught:
        equilibrium(m, m.initial_position, np.zeros(5))
    limits = m.coordinate_limits
    assert (caught.value.x >= limits.lower).all() and (caught.value.x <= limits.upper).all()
    assert caught.value.residual > 1e4


def test_a_fall_into_a_singular_pose_is_told():
    m = machine('five_bar')
    with pytest.raises(EquilibriumError, match="further on, loop 'pin_c'") as caught:
        m.equilibrium(m.initial_position, np.zeros(2), settle=True)
    assert isinstance(caught.value.__cause__, psdyn_ros.PsdynError)


def test_errors():
    m, rest = machine('hiab_xs031'), np.zeros(4)
    x = m.initial_position
    with pytest.raises(UnknownNameError, match="no coordinate 'slw'; did you mean 'slew'"):
        m.equilibrium(x, rest, fixed='slw')
    with pytest.raises(UnknownNameError, match="no coordinate 'base'"):
        m.equilibrium(x, rest, fixed=['base'])
    with pytest.raises(UnknownNameError, match="external returns 'force'"):
        m.equilibrium(x, rest, external=lambda x, xd: {'force': {}})
    with pytest.raises(ShapeError, match='x has shape'):
        m.equilibrium(x[:3], rest)
    with pytest.raises(ShapeError, match='f has shape'):
        m.equilibrium(x, rest[:2])
    with pytest.raises(UnreachableStrokeError, match='lift_cylinder = 2 m'):
        m.equilibrium([0.0, 2.0, 0.3, 0.0], rest, fixed=m.coordinates)
