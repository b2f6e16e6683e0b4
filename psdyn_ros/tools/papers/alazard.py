"""
D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems.

The paper's Fig. 17: nine responses of a balloon with a slider and a double pendulum; and the loop closure block.
"""
import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from ...formulations import denoc, legs
from ...formulations.titop import Body, LoopClosure, Network, Prismatic, Revolute
from .findings import stored
from .plotting import BLACK, COLORS, label

TITLE = 'Alazard et al.: non-linear TITOP, balloon of 9 DoF'
NONE = np.zeros((3, 3))
OUTPUTS = ('x [m]', 'y [m]', 'z [m]', 'psi [rad]', 'theta [rad]', 'phi [rad]', 'p [m]', 'theta1 [rad]', 'theta2 [rad]')
INSTANTS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


class Balloon:
    """The balloon of Table 1, with spring, dampers and buoyancy; what the paper leaves out is in data/balloon.json."""

    def __init__(self, damped=True):
        p = stored('balloon')['parameters']
        self.masses, self.ours = p['m'], p['ours']
        m, z = p['m'], (0, 0, 1)
        network = Network()
        network.add(Body('balloon', m[0], p['J_B'], ports={'C': np.negative(p['CB'])}),
                    Prismatic('slider', p['t_axis'], m[1], NONE, ports={'C': (0, 0, 0)}),
                    Revolute('pendulum1', z, m[2], NONE, p['SP1'], {'C': p['SP1']}),
                    Revolute('pendulum2', z, m[3], NONE, p['P1P2']))
        for pair in (('slider.P', 'balloon.C'), ('pendulum1.P', 'slider.C'), ('pendulum2.P', 'pendulum1.C')):
            network.connect(*pair)
        self.system = network.assemble(p['g'])
        self.start = self.system.state(joint_positions={'pendulum1': np.radians(p['theta1_0_deg']),
                                                        'pendulum2': np.radians(p['theta2_0_deg'])})
        d_s, d_1, d_2 = (self.ours[name] * damped for name in ('d_s', 'd_p1', 'd_p2'))
        k = self.ours['k']
        self.lift = -sum(m) * self.system.gravity
        self.inputs = ({'slider': lambda t, p, pd: -k * p - d_s * pd, 'pendulum1': lambda t, q, qd: -d_1 * qd,
                        'pendulum2': lambda t, q, qd: -d_2 * qd},
                       {'balloon.P': lambda t, B: np.append(B.rotation.T @ self.lift, np.zeros(3))})

    def fly(self, times, tolerance=1e-11):
        """Return the states at times [s] from the initial state."""
        run = solve_ivp(self.system.state_derivative, (0, times[-1]), self.system.pack(self.start), 'DOP853', times,
                        args=self.inputs, rtol=tolerance, atol=tolerance / 10)
        return [self.system.unpack(y) for y in run.y.T]

    def energy(self, state):
        """Return the energy [J]: kinetic, of gravity, of buoyancy and of the spring."""
        return (sum(self.system.energy(state)) - self.lift @ state.position
                + 0.5 * self.ours['k'] * state.joint_positions[0] ** 2)


def outputs(position, quaternion, joint_positions):
    """Return the nine outputs (9,): position of B, ZYX angles psi, theta, phi of the balloon, p, theta1, theta2."""
    return np.concatenate((position, Rotation.from_quat(quaternion).as_euler('ZYX'), joint_positions))


def row_outputs(row):
    return np.array((*row['position_B'], *row['euler_zyx_psi_theta_phi'], row['p'], row['theta1'], row['theta2']))


def initial_accelerations(findings):
    balloon = Balloon()
    solution = balloon.system.solve(balloon.start, 0.0, *balloon.inputs)
    ref = stored('balloon')['initial_acceleration_dual_body_frame']
    findings.equal('start', "x'dot_B: linear [m/s^2]", solution.base_acceleration[:3], ref[:3])
    findings.equal('start', "x'dot_B: angular [rad/s^2]", solution.base_acceleration[3:], ref[3:6])
    findings.equal('start', 'slider [m/s^2], pendulums [rad/s^2]', solution.joint_accelerations, ref[6:])


def flight(findings):
    balloon, data = Balloon(), stored('balloon')
    rows = {row['t']: row for row in data['rows']}
    times = np.linspace(0, 20, 401)
    states = balloon.fly(times)
    values = np.array([outputs(state.position, state.quaternion, state.joint_positions) for state in states])
    at = {round(t, 6): i for i, t in enumerate(times)}
    energies = np.array([balloon.energy(state) for state in states])
    for t in INSTANTS:
        ref, comp = row_outputs(rows[t]), values[at[t]]
        findings.equal('responses', f'position of B at {t:g} s [m]', comp[:3], ref[:3], bound=1e-6)
        findings.equal('responses', f'psi, theta, phi at {t:g} s [rad]', comp[3:6], ref[3:6], bound=1e-6)
        findings.equal('responses', f'p [m], theta1, theta2 [rad] at {t:g} s', comp[6:], ref[6:], bound=1e-6)
        findings.equal('responses', f'energy at {t:g} s [J]', energies[at[t]], rows[t]['energy'], bound=1e-5)
    worst = np.max([np.abs(values[at[t]] - row_outputs(row)) for t, row in rows.items()], axis=0)
    for name, value in zip(OUTPUTS, worst):
        findings.below('responses', f'{name}: worst of {len(rows)} instants over 20 s', value, 1e-8)
    _invariants(findings, balloon, states, energies)
    axes = findings.plate('alazard_fig17', 'Alazard et al., Fig. 17: the nine responses of the balloon system '
                          '(circles: independent computation)', 3, 3, (12, 8)).ravel()
    for k, (row, name) in enumerate(zip(axes, OUTPUTS)):
        row.plot(times, values[:, k])
        row.plot(list(rows), [row_outputs(ref)[k] for ref in rows.values()], 'o', mfc='none', ms=3, color=BLACK)
        label(row, name, 'time [s]' if k > 5 else None)


def _invariants(findings, balloon, states, energies):
    """Buoyancy carries the weight: the centre of mass rests, nothing turns the whole about the vertical."""
    system, table = balloon.system, 'invariants'
    centres = np.array([system.center_of_mass(state) for state in states])
    findings.equal(table, 'centre of mass [m]', centres[0], (0.065118, -0.680697, 0))
    findings.below(table, 'its largest drift over 20 s [m]', np.abs(centres - centres[0]).max(), 1e-8)
    momenta = np.array([system.momentum(state) for state in states])
    findings.below(table, 'largest linear momentum [N s]', np.abs(momenta[:, :3]).max(), 1e-8)
    about_centre = momenta[:, 3:] - np.cross(centres, momenta[:, :3])
    findings.below(table, 'largest angular momentum about the vertical through it [N m s]',
                   np.abs(about_centre[:, 1]).max(), 1e-8)
    findings.below(table, 'largest rise of energy between two instants [J]', max(np.diff(energies).max(), 0.0), 1e-9)
    row = findings.plate('alazard_invariants', 'Balloon: energy with and without dampers, and what stays at rest', 1, 2,
                         (10, 4.2))[0]
    times = np.linspace(0, 20, len(states))
    row[0].plot(times, energies, label='with dampers')
    for values, name in ((np.abs(centres - centres[0]).max(axis=1), 'centre of mass [m]'),
                         (np.abs(momenta[:, :3]).max(axis=1), 'linear momentum [N s]'),
                         (np.abs(about_centre[:, 1]), 'angular momentum, vertical [N m s]')):
        row[1].semilogy(times[1:], np.where(values > 0, values, np.nan)[1:], '.', ms=2, label=name)
    label(row[1], 'deviation from rest', 'time [s]', columns=2)


def without_dampers(findings):
    balloon = Balloon(damped=False)
    times = np.linspace(0, 20, 201)
    states = balloon.fly(times, 1e-12)
    energies = np.array([balloon.energy(state) for state in states])
    findings.below('invariants', 'without dampers: drift of energy over 20 s, relative',
                   np.ptp(energies) / abs(energies[0]), 1e-9)
    if 'alazard_invariants' in findings.plates:
        axes = findings.plates['alazard_invariants'].axes[0, 0]
        axes.plot(times, energies, label='without')
        label(axes, 'energy [J]', 'time [s]')


# --- the loop closure block, on the four-bar of Saha and Schiehlen


def rod(length, mass):
    return np.diag((0, 1, 1)) * mass * length**2 / 12


def cut_four_bar(kappa, damping, theta):
    """Return the system with its coupler cut in the middle and its state at theta of `legs.four_bar`."""
    (a, b, c, ground), (m1, m2, m3), z = (0.3, 1.0, 0.6, 1.0), (1.5, 5.0, 3.0), (0, 0, 1)
    half = rod(b / 2, m2 / 2)
    network = Network()
    network.add(Body('ground', 0, NONE, ports={'A': (0, 0, 0), 'D': (ground, 0, 0)}),
                Revolute('crank', z, m1, rod(a, m1), (a / 2, 0, 0), {'B': (a, 0, 0)}),
                Revolute('left', z, m2 / 2, half, (b / 4, 0, 0), {'cut': (b / 2, 0, 0)}),
                Revolute('rocker', z, m3, rod(c, m3), (c / 2, 0, 0), {'C': (c, 0, 0)}),
                Revolute('right', z, m2 / 2, half, (-b / 4, 0, 0), {'cut': (-b / 2, 0, 0)}),
                LoopClosure('coupler', kappa * np.eye(6), damping * np.eye(6)))
    for pair in (('crank.P', 'ground.A'), ('left.P', 'crank.B'), ('rocker.P', 'ground.D'), ('right.P', 'rocker.C'),
                 ('coupler.l', 'left.cut'), ('coupler.r', 'right.cut')):
        network.connect(*pair)
    system = network.assemble((0, -9.81, 0))
    crank, coupler, third = np.cumsum(theta[0][:3])
    return system, system.state(joint_positions={'crank': crank, 'left': theta[0][1], 'rocker': third + np.pi,
                                                 'right': coupler - third - np.pi})


def loop_closure(findings):
    """Free fall of the crank from 90 degrees: the compliant loop against the rigid one of the DeNOC recursion."""
    mechanism = legs.four_bar()
    theta = legs.close(mechanism, legs.four_bar_mode('open'), np.array([np.pi / 2]))
    times = np.linspace(0, 1, 41)
    options = dict(rtol=1e-11, atol=1e-12)
    rigid = solve_ivp(lambda t, y: denoc.state_rate(mechanism, y, lambda *state: np.zeros(1)), (0, 1),
                      np.append(theta[0], 0.0), 'DOP853', times, **options).y[0]
    row = findings.plate('alazard_closure', 'Loop closure block on the four-bar in free fall: error of the crank angle '
                         'against the rigid loop')[0, 0]
    for color, (kappa, damping, expected) in zip(COLORS, ((1e4, 1e2, (-1.5e-4, 1.4e-4, -9.3e-2)),
                                                          (1e5, 1e3, (-1.5e-5, 1.4e-5, -7.6e-3)),
                                                          (1e6, 1e3, (-1.5e-6, 1.5e-6, -5.6e-4)))):
        system, state = cut_four_bar(kappa, damping, theta)
        run = solve_ivp(system.state_derivative, (0, 1), system.pack(state), 'Radau', times,
                        args=(None, None, None, np.zeros(6)), rtol=1e-7, atol=1e-8)
        off = run.y[13] - rigid
        for t, value, ref in zip((0.25, 0.5, 1.0), off[[10, 20, 40]], expected):
            findings.equal('closure', f'K = {kappa:.0e}, D = {damping:.0e}: error at {t} s [rad]', value, ref,
                           form='.1e', bound=0.06 * abs(ref))
        row.semilogy(times[1:], np.abs(off[1:]), color=color, label=f'K = {kappa:.0e}, D = {damping:.0e}')
    label(row, '|error of theta1| [rad]', 'time [s]')


STEPS = (('initial accelerations', initial_accelerations, False), ('Fig. 17', flight, True),
         ('without dampers', without_dampers, True), ('loop closure', loop_closure, True))
