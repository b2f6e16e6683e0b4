"""Paz & Mattila as printed: quantities of the loop, moving bases, and pin forces by planar Newton-Euler."""

import numpy as np
import pytest
from support.comparison import error
from support.reference import reference

from psdyn_ros.formulations import paz_mattila as paz
from psdyn_ros.model.errors import LoopClosureError
from psdyn_ros.tools.papers.paz import module_of

GRAVITY = {'paz_one_loop_415kg': (-9.81, 0.0, 0.0), 'paz_four_dof_1063kg': (0.0, 0.0, -9.81)}
PAZ = list(GRAVITY)


def read(name):
    data = reference(name)
    return data, [module_of(record) for record in data['parameters']], -np.array(GRAVITY[name] + (0, 0, 0))


# --- reference numbers


@pytest.mark.parametrize('force', [0.0, 5000.0])
def test_reference_quantities_of_the_loop(force):
    data, modules, nudot_0 = read(PAZ[0])
    ref = data['intermediate_t1'][f'f={force:.0f}']
    comp = paz.forward_dynamics(modules, ref['x'], ref['xd'], [force], nudot_0)
    (kin,), (art,) = comp.kinematics, comp.articulated
    assert error(kin.K_bar, ref['K_bar_corrected']) < 1e-14
    for value, key in ((kin.angles, 'q_q1_q2'), (kin.k, 'k1_to_k6'), (art.alpha, 'alpha'), (art.psi, 'psi'),
                       (art.delta, 'delta'), (art.M_A, 'M_Bc_A'), (art.p_A, 'p_Bc_A'), (comp.xdd, 'xdd')):
        assert error(value, ref[key]) < 1e-13, key


# --- random chains


def random_chain(rng, word):
    return [random_loop(rng) if letter == 'L' else random_joint(rng, letter) for letter in word]


def random_loop(rng, planar=False):
    """A loop on a base that is skewed in space; `planar` puts every centre of mass into its plane."""
    L, L1, Lc, Lc0 = rng.uniform((0.8, 0.3, 0.2, 0.2), (1.3, 0.6, 0.5, 0.5))
    T_B3 = np.eye(4) if planar else random_pose(rng)
    T_E = paz.displacement(paz.S_X, 1.0) if planar else random_pose(rng)
    inertias = (random_inertia(rng, planar) for _ in range(5))
    return paz.LoopModule(L, L1, Lc, Lc0, T_B3 @ paz.displacement(paz.S_X, L), T_B3, T_E, *inertias)


def random_joint(rng, letter):
    axis = rng.normal(size=3)
    s = np.zeros(6)
    s[slice(3, 6) if letter == 'R' else slice(0, 3)] = axis / np.linalg.norm(axis)
    return paz.SerialModule(s, random_pose(rng), random_pose(rng), *(random_inertia(rng) for _ in range(3)))


def random_pose(rng):
    T = paz.displacement(random_joint_axis(rng), rng.uniform(-3, 3))
    T[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return T


def random_joint_axis(rng):
    axis = rng.normal(size=3)
    return np.concatenate((np.zeros(3), axis / np.linalg.norm(axis)))


def random_inertia(rng, planar=False):
    B = rng.normal(size=(3, 3))
    centre = rng.uniform(-0.5, 0.5, 3)
    I_c = B @ B.T + np.eye(3)
    if planar:
        centre[2] = 0.0
        I_c[2, :2] = I_c[:2, 2] = 0.0
    return paz.spatial_inertia(rng.uniform(10, 100), centre, I_c)


def random_state(rng, modules):
    x = [random_stroke(rng, module) if isinstance(module, paz.LoopModule) else rng.uniform(-1, 1)
         for module in modules]
    return np.array(x), *rng.uniform(-1, 1, (2, len(modules)))


def random_stroke(rng, module):
    q = -rng.uniform(0.6, 2.5)
    return np.sqrt(module.L**2 + module.L1**2 + 2 * module.L * module.L1 * np.cos(q)) - module.Lc - module.Lc0


CHAINS = ('L', 'R', 'P', 'LL', 'RLLP', 'LRLPL', 'PRL', 'LLLL')




def closed_angles(module, x):
    """Angles q, q1 and their derivatives to x, from the gap between rod tip and moving link."""
    s = x + module.Lc + module.Lc0
    q = -np.arccos((s.real**2 - module.L**2 - module.L1**2) / (2 * module.L * module.L1))
    y = np.array((q, np.arctan2(module.L1 * np.sin(q), module.L + module.L1 * np.cos(q))), complex)
    for _ in range(3):
        gap = (module.L + module.L1 * np.cos(y[0]) - s * np.cos(y[1]), module.L1 * np.sin(y[0]) - s * np.sin(y[1]))
        K = np.array(((-module.L1 * np.sin(y[0]), s * np.sin(y[1])), (module.L1 * np.cos(y[0]), -s * np.cos(y[1]))))
        y = y - np.linalg.solve(K, gap)
    return y, np.linalg.solve(K, (np.cos(y[1]), np.sin(y[1])))


@pytest.mark.parametrize('word', CHAINS)
def test_round_trip_on_a_moving_base(word, rng):
    for _ in range(10):
        modules = random_chain(rng, word)
        x, xd, xdd = random_state(rng, modules)
        nu_0, nudot_0 = rng.normal(size=(2, 6))
        inverse = paz.inverse_dynamics(modules, x, xd, xdd, nudot_0, nu_0)
        forward = paz.forward_dynamics(modules, x, xd, inverse.f, nudot_0, nu_0)
        assert error(forward.xdd, xdd) < 1e-12
        first = forward.articulated[0]
        assert error(first.M_A @ nudot_0 + first.p_A, inverse.F_0) < 1e-11
        for art in forward.articulated:
            assert error(art.M_A, art.M_A.T) < 1e-13
            assert np.linalg.eigvalsh(0.5 * (art.M_A + art.M_A.T)).min() > 0


def test_chain_on_an_accelerating_base_is_one_with_more_modules(rng):
    """A base that is moved by a joint in front of it feels and gives the same forces."""
    modules = random_chain(rng, 'RPLRL')
    x, xd, xdd = random_state(rng, modules)
    whole = paz.inverse_dynamics(modules, x, xd, xdd, np.zeros(6))
    nudot = modules[0].accelerations(whole.kinematics[0], xdd[0], np.zeros(6))[-1]
    nudot = modules[1].accelerations(whole.kinematics[1], xdd[1], nudot)[-1]
    part = paz.inverse_dynamics(modules[2:], x[2:], xd[2:], xdd[2:], nudot, whole.kinematics[1].nu_E)
    assert error(part.f, whole.f[2:]) < 1e-14


def test_first_row_of_K_is_the_projection_of_virtual_work(rng):
    """s_x' K_i = J_i', so that f = xi1' F~_B1 + xi4' F^_B3 + xi7' F^_B4 in all six components."""
    for _ in range(20):
        module = random_loop(rng)
        kin = module.kinematics(random_stroke(rng, module), rng.normal(), rng.normal(size=6))
        for K, J in zip(kin.K, (kin.xi1, kin.xi4, kin.xi7)):
            assert error(paz.S_X @ K, J) < 1e-13


# --- kinematics


def test_rates_of_the_angles_against_differences(rng):
    for _ in range(10):
        module = random_loop(rng)
        x, xd = random_stroke(rng, module), rng.uniform(-1, 1)
        h = 1e-5
        k, up, down = (np.array(module.ratios(x + step, xd)) for step in (0, h, -h))
        angles = [np.array(module.angles(x + step)) for step in (h, -h)]
        assert error((angles[0] - angles[1]) / (2 * h), k[:3]) < 1e-7
        assert error((up - down)[:3] / (2 * h) * xd**2, k[3:]) < 1e-7
        q, q1, q2 = module.angles(x)
        assert q == pytest.approx(q1 + q2, abs=1e-14)
        assert k[0] == pytest.approx(-1 / (module.L1 * np.sin(q2)), rel=1e-12)
        assert k[1] == pytest.approx(-1 / (np.tan(q2) * (x + module.Lc + module.Lc0)), rel=1e-12)


@pytest.mark.parametrize('s', [0.3, 0.649, 1.551, 2.0])
def test_a_stroke_that_does_not_close_is_refused(s):
    _, (module,), nudot_0 = read(PAZ[0])  # sides of 1.1 and 0.45 m
    with pytest.raises(LoopClosureError, match='does not close'):
        paz.forward_dynamics([module], [s - module.Lc - module.Lc0], [0.0], [0.0], nudot_0)


# --- internal wrenches


def statics_of(module, x, F1, F3, F4):
    """F_P, F_B4, F_B3 in the plane from the 7 x 7 system; the wrenches are those of the bodies."""
    (m1,), (fx3, fy3, m3), (fx4, fy4, m4) = (paz.XI @ F1)[2:], paz.XI @ F3, paz.XI @ F4
    return np.linalg.solve(module.statics_matrix(x), (m1, -fx4, -fy4, -m4, -m3, -fx3, -fy3))


@pytest.mark.parametrize('planar', [True, False])
def test_K_matrices_solve_the_statics(planar, rng):
    for _ in range(20):
        module = random_loop(rng, planar)
        x = random_stroke(rng, module)
        kin = module.kinematics(x, 0.0, np.zeros(6))
        q2 = kin.angles[2]
        assert error(np.linalg.det(module.statics_matrix(x)),
                     -module.L1 * np.sin(q2) * (x + module.Lc + module.Lc0)) < 1e-13
        F = rng.normal(size=(3, 6))
        comp = kin.K_bar @ (F @ paz.XI.T).ravel()
        assert error(comp, statics_of(module, x, *F)[2:5]) < 1e-13


def at(point, force):
    """A planar force at a point as (fx, fy, m) about the origin."""
    return np.array((force[0], force[1], point[0] * force[1] - point[1] * force[0]))


def plane_turn(angle):
    return np.array(((np.cos(angle), -np.sin(angle)), (np.sin(angle), np.cos(angle))))


def body_wrench(M, origin, angle, rate, acceleration, origin_acceleration):
    """(fx, fy, m) about the origin of Bc that moves a planar body, by Newton and Euler."""
    m = M[0, 0]
    centre = plane_turn(angle) @ ((M[1, 5] / m), -M[0, 5] / m)
    I_c = M[5, 5] - m * centre @ centre
    a = origin_acceleration + acceleration * np.array((-centre[1], centre[0])) - rate**2 * centre
    return at(origin + centre, m * a) + (0, 0, I_c * acceleration)


def newton_euler(module, x, xd, xdd, gravity):
    """Pin forces in axes of Bc: at B1 and B3 on the bodies, at T on the moving link, and of B3 on the rod at B4."""
    L, L1, s, B4 = module.L, module.L1, x + module.Lc + module.Lc0, x + module.Lc0
    (q, q1), k = (y.real for y in closed_angles(module, x + 0j))
    up, n = plane_turn(q1) @ (1, 0), plane_turn(q1) @ (0, 1)
    qd, q1d = k * xd
    K = np.array(((-L1 * np.sin(q), s * np.sin(q1)), (L1 * np.cos(q), -s * np.cos(q1))))
    tip = L1 * qd**2 * plane_turn(q) @ (1, 0) - s * q1d**2 * up + 2 * xd * q1d * n
    qdd, q1dd = np.linalg.solve(K, tip + xdd * up)
    still, pin_1, origin_4 = -gravity, np.array((L, 0.0)), B4 * up
    a_B4 = still + (xdd - B4 * q1d**2) * up + (B4 * q1dd + 2 * xd * q1d) * n
    E = module.T_E[:2, 3]
    E_world = plane_turn(q) @ E
    a_E = still + qdd * np.array((-E_world[1], E_world[0])) - qd**2 * E_world
    wanted = (body_wrench(module.M_B1, pin_1, q, qd, qdd, still)
              + body_wrench(module.M_E, pin_1 + E_world, q, qd, qdd, a_E),
              body_wrench(module.M_B3, np.zeros(2), q1, q1d, q1dd, still),
              body_wrench(module.M_B4, origin_4, q1, q1d, q1dd, a_B4))
    # unknowns: force on moving link at B1 (2) and T (2), on cylinder at B3 (2), on rod at B4 (2) and moment (1)
    A = np.zeros((9, 9))
    for i, unit in enumerate(np.eye(2)):
        A[0:3, i], A[0:3, 2 + i] = at(pin_1, unit), at(s * up, unit)
        A[3:6, 4 + i], A[3:6, 6 + i] = at(np.zeros(2), unit), -at(origin_4, unit)
        A[6:9, 6 + i], A[6:9, 2 + i] = at(origin_4, unit), -at(s * up, unit)
    A[5, 8], A[8, 8] = -1.0, 1.0
    f1, fT, f3, f4, (m4,) = np.split(np.linalg.solve(A, np.concatenate(wanted)), (2, 4, 6, 8))
    return plane_turn(q).T @ f1, plane_turn(q1).T @ f3, np.append(plane_turn(q1).T @ f4, m4), plane_turn(q1).T @ fT


def test_pin_forces_against_newton_euler(rng):
    for _ in range(20):
        module = random_loop(rng, planar=True)
        (x,), (xd,), (xdd,) = random_state(rng, [module])
        gravity = rng.normal(size=2) * 9.81
        comp = paz.inverse_dynamics([module], [x], [xd], [xdd], np.array((*-gravity, 0, 0, 0, 0))).wrenches[0]
        F_B1, F_B3, F_B4, F_P = newton_euler(module, x, xd, xdd, gravity)
        for value, ref in ((comp.F_B1, (*F_B1, 0)), (comp.F_B3, (*F_B3, 0)), (comp.F_B4, F_B4), (comp.F_P, (*F_P, 0))):
            assert error(paz.XI @ value, ref) < 1e-12
            assert not value[2:5].any()
        assert comp.f == pytest.approx(F_B4[0], rel=1e-12)
