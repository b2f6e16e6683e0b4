"""
Wang, Belzile, Angeles, Li: dynamics of a redundantly actuated 2PUR-2RPU machine by the natural orthogonal complement.

The paper's Figs. 4 to 10: platform and actuators along the helix of the tool, and the actuator forces of smallest norm.
"""
from dataclasses import replace

import numpy as np

from ...formulations import noc
from .findings import PAPER, REFERENCE, stored
from .plotting import BLACK, COLORS, label

TITLE = 'Wang et al.: redundantly actuated 2PUR-2RPU machine'
MACHINE = noc.Machine()
TIMES = np.linspace(0, 10, 201)
INSTANTS = (0.0, 2.5, 5.0, 7.5, 10.0)
FLOPS = {'theta': 19 * 4, 'g': 33, 'k': 74, 'T': 90, 'Tdot': 7 * 18, 'I': 7 * 72, 'C': 7 * 145, 'gamma': 7 * 18,
         'tau': 18, 'tau_a0': 63}     # the paper's cost table


def curves():
    """Return {name: (times, k)} of everything along the trajectory."""
    rows = {name: [] for name in ('x', 'xd', 'xdd', 'tau', 'q', 'qd', 'qdd', 'tau_a')}
    for t in TIMES:
        _, x, xd, xdd = noc.trajectory(MACHINE, t)
        A, A_dot = noc.actuator_jacobian(MACHINE, x), noc.rate_along(noc.actuator_jacobian, MACHINE, x, xd)
        tau = noc.generalized_force(MACHINE, x, xd, xdd)
        for name, value in (('x', x), ('xd', xd), ('xdd', xdd), ('tau', tau),
                            ('q', noc.actuator_positions(MACHINE, x)), ('qd', A @ xd),
                            ('qdd', A @ xdd + A_dot @ xd), ('tau_a', noc.minimum_norm(A, tau))):
            rows[name].append(value)
    return {name: np.array(values) for name, values in rows.items()}


def table_of_the_motion(findings):
    rows = {row['t']: row for row in stored('pkm_2pur2rpu')['rows']}
    for t in INSTANTS:
        _, x, xd, xdd = noc.trajectory(MACHINE, t)
        tau = noc.generalized_force(MACHINE, x, xd, xdd)
        A = noc.actuator_jacobian(MACHINE, x)
        ref = rows[t]
        findings.equal('motion', f'alpha, beta, zeta at {t:g} s [rad, rad, m]', x, ref['x'])
        findings.equal('motion', f'q1..q4 at {t:g} s [mm]', 1e3 * noc.actuator_positions(MACHINE, x),
                       1e3 * np.array(ref['q']), form='.4f')
        findings.equal('motion', f'tau at {t:g} s [N m, N m, N]', tau, ref['tau'])
        findings.equal('motion', f'tau_a0 at {t:g} s [N]', noc.minimum_norm(A, tau), ref['tau_a0'])
    _, _, xd, xdd = noc.trajectory(MACHINE, 2.5)
    findings.equal('motion', 'rates of alpha, beta, zeta at 2.5 s [rad/s, rad/s, m/s]', xd, rows[2.5]['xd'])
    findings.equal('motion', 'accelerations of alpha, beta, zeta at 2.5 s [rad/s^2, rad/s^2, m/s^2]', xdd,
                   rows[2.5]['xdd'])
    worst = dict.fromkeys(('x', 'xd', 'q', 'qd', 'inertia', 'tau', 'tau_a0'), 0.0)
    differenced = dict.fromkeys(('xdd', 'qdd'), 0.0)
    for t, ref in rows.items():
        _, x, xd, xdd = noc.trajectory(MACHINE, t)
        A, A_dot = noc.actuator_jacobian(MACHINE, x), noc.rate_along(noc.actuator_jacobian, MACHINE, x, xd)
        # the file's forces belong to the file's accelerations, which are differences
        tau = noc.generalized_force(MACHINE, x, xd, np.array(ref['xdd']))
        comp = {'x': x, 'xd': xd, 'q': noc.actuator_positions(MACHINE, x), 'qd': A @ xd,
                'inertia': noc.generalized_inertia(MACHINE, x), 'tau': tau, 'tau_a0': noc.minimum_norm(A, tau),
                'xdd': xdd, 'qdd': A @ xdd + A_dot @ xd}
        for kind in (worst, differenced):
            for key in kind:
                kind[key] = max(kind[key], np.abs(comp[key] - np.array(ref[key])).max())
    findings.below('motion', f'worst of x, xd, q, qd, I, tau, tau_a0 at {len(rows)} instants', max(worst.values()),
                   1e-11)
    findings.below('motion', f'worst of xdd, qdd at {len(rows)} instants (the file has differences)',
                   max(differenced.values()), 2e-8)
    for t, ref in ((0.0, 27.2), (10.0, 21.9)):
        findings.equal('motion', f'condition number of A at {t:g} s',
                       np.linalg.cond(noc.actuator_jacobian(MACHINE, noc.trajectory(MACHINE, t).x)), ref, form='.1f')


def law(findings):
    """Law (B-1) and the cost table, of which the paper prints numbers."""
    T, c = 10.0, 2 * np.pi / (2 + np.pi)
    findings.equal('law', 'phi(T) [rad]', noc.progress(T, T)[0], 2 * np.pi, source=PAPER)
    findings.equal('law', 'largest rate of phi, 4 pi / T [rad/s]', noc.progress(T / 2, T)[1], 4 * np.pi / T,
                   source=PAPER)
    findings.equal('law', 'largest acceleration of phi, 8 pi c / T^2 [rad/s^2]', noc.progress(T / 4, T)[2],
                   8 * np.pi * c / T**2, source=PAPER)
    jump = max(np.abs(np.subtract(*(noc.progress(knot * T / 8 + step, T) for step in (-1e-13, 1e-13)))).max()
               for knot in (1, 3, 4, 5, 7))
    findings.below('law', 'largest jump of phi and its rates at a knot', jump, 1e-12)
    findings.equal('law', "operations, sum of the paper's cost table", sum(FLOPS.values()), 2125, form='.0f',
                   source=PAPER)


def minimum_norm(findings):
    """tau_a0 = pinv(A') tau beats every other solution, and does not need A'A."""
    rng = np.random.default_rng(11)
    scale, excess, share = np.linspace(-0.5, 0.5, 101), [], []
    errors = dict.fromkeys(("A' tau_a0 - tau", 'tau_a0 - lstsq', 'tau_a0 - pinv', 'tau_a0 in the null space'), 0.0)
    shortest = np.inf
    for t in TIMES[::4]:
        _, x, xd, xdd = noc.trajectory(MACHINE, t)
        A, tau = noc.actuator_jacobian(MACHINE, x), noc.generalized_force(MACHINE, x, xd, xdd)
        comp, preload = noc.minimum_norm(A, tau), np.linalg.svd(A.T)[2][-1]
        size = np.linalg.norm(comp)
        for name, value in (("A' tau_a0 - tau", A.T @ comp - tau),
                            ('tau_a0 - lstsq', comp - np.linalg.lstsq(A.T, tau, rcond=None)[0]),
                            ('tau_a0 - pinv', comp - np.linalg.pinv(A.T) @ tau),
                            ('tau_a0 in the null space', comp @ preload)):
            errors[name] = max(errors[name], np.abs(value).max() / size)
        others = comp + np.outer(rng.choice((-1, 1), 20) * rng.uniform(0.1, 1, 20), preload)
        shortest = min(shortest, *(np.linalg.norm(others, axis=1) / size))
        excess.append([np.linalg.norm(comp + s * preload) for s in scale])
        share.append(np.abs(A.T @ (comp + 0.5 * preload) - tau).max())
    for name, value in errors.items():
        findings.below('minimum norm', f'{name}, relative, worst of {len(excess)} instants', value, 1e-12)
    findings.below('minimum norm', 'a preload of 0.5 N in the null space changes tau by', max(share), 1e-12)
    findings.below('minimum norm', 'norm of tau_a0 over the smallest norm of 1020 other solutions', 1 / shortest, 1.0,
                   form='.4f')
    row = findings.plate('wang_minimum_norm', 'Norm of the actuator forces when a preload in the null space of A\' is '
                         'added: same force on the platform, larger norm')[0, 0]
    for values, t in zip(excess[::10], TIMES[::40]):
        row.plot(scale, values, label=f't = {t:g} s')
    row.axvline(0, color=BLACK, linewidth=0.8, linestyle=':')
    label(row, 'norm of tau_a [N]', 'preload added to tau_a0 [N]')


# --- as printed


def printed_shaping(machine, x):
    """Return T (7, 6, 3) with the signs of T3, T4 and T7 as the paper prints them."""
    T = noc.twist_shaping_matrices(machine, x)
    T[2, 1:3, 1] *= -1
    T[3, 1:3, 1:] *= -1
    g, k, ratio = noc.geometry(machine, x).g, noc.geometry(machine, x).k, machine.l_c / machine.l
    slope = g['22'] / g['21']
    T[3, 3, 1], T[3, 3, 2] = -(1 + ratio) * k['21'] * slope + k['22'], -(1 + ratio) * slope
    sa, ca, sb, cb = np.sin(x[0]), np.cos(x[0]), np.sin(x[1]), np.cos(x[1])
    T[6, 3:, 0] = 0
    T[6, 3:, 2] = sb, -sa * cb, ca * cb
    return T


def force_by(shaping, machine, t):
    """Return tau (3,) along the trajectory at time t by Newton and Euler, from any twist-shaping matrices."""
    _, x, xd, xdd = noc.trajectory(machine, t)
    T, M = shaping(machine, x), noc.mass_matrices(machine, x)
    twist, rate = T @ xd, T @ xdd + noc.rate_along(shaping, machine, x, xd) @ xd
    wrench = (M @ rate[:, :, None])[:, :, 0]
    wrench[:, :3] += np.cross(twist[:, :3], (M[:, :3, :3] @ twist[:, :3, None])[:, :, 0])
    wrench[:, 3:] -= np.outer(machine.masses, machine.gravity)
    return np.einsum('ijk,ij->k', T, wrench)


def as_printed(findings):
    """What the misprints do to the torques, and the paper's numbering of the masses."""
    printed = {t: force_by(printed_shaping, MACHINE, t) for t in (2.5, 5.0)}
    corrected = {t: force_by(noc.twist_shaping_matrices, MACHINE, t) for t in (0.0, 2.5, 5.0)}
    findings.equal('as printed', 'tau at 2.5 s from T3, T4, T7 as printed [N m, N m, N]', printed[2.5],
                   (0.002157, 0.002630, 2.200888))
    for t in printed:
        findings.differs('as printed', f'tau at {t:g} s, printed against corrected [N m, N m, N]', printed[t],
                         corrected[t], form='.6f', source=REFERENCE)
    findings.equal('as printed', 'force along zeta at 5 s from T3, T4, T7 as printed [N]', printed[5.0][2], 2.244511)
    order = (0, 2, 1, 3, 4, 5, 6)
    mistaken = replace(MACHINE, masses=tuple(MACHINE.masses[i] for i in order),
                       inertias=tuple(MACHINE.inertias[i] for i in order))
    at_rest = force_by(noc.twist_shaping_matrices, mistaken, 0.0)
    findings.equal('as printed', 'tau at 0 s with masses in the paper\'s numbering [N m, N m, N]', at_rest,
                   (0, 0.002763, 2.180287))
    findings.differs('as printed', 'tau at 0 s, paper\'s numbering against order of the T\'s [N m, N m, N]',
                     at_rest, corrected[0.0], form='.6f', source=REFERENCE)


# --- figures


def figures(findings):
    values = curves()
    ref = stored('pkm_2pur2rpu')['rows']
    times = [row['t'] for row in ref]

    def line(row, name, k, text, factor=1.0, color=COLORS[0]):
        row.plot(TIMES, factor * values[name][:, k], color=color, label=text)
        key = {'tau_a': 'tau_a0'}.get(name, name)
        row.plot(times, [factor * r[key][k] for r in ref], 'o', mfc='none', ms=4, color=color)
    axes = findings.plate('wang_fig4_6', 'Wang et al., Figs. 4 to 6: platform coordinates, their rates, accelerations '
                          'and forces (circles: independent computation)', 4, 3, (12, 9))
    for column, k, name, unit, force in zip(axes.T, range(3), ('alpha', 'beta', 'zeta'), ('rad', 'rad', 'm'),
                                            ('N m', 'N m', 'N')):
        for row, key, text in zip(column, ('x', 'xd', 'xdd', 'tau'),
                                  (f'{name} [{unit}]', f'rate [{unit}/s]', f'acceleration [{unit}/s^2]',
                                   f'{"force" if k == 2 else "torque"} [{force}]')):
            line(row, key, k, None, color=COLORS[k])
            label(row, text)
        column[-1].set_xlabel('time [s]')
    axes = findings.plate('wang_fig7_9', 'Wang et al., Figs. 7 to 9: actuated joints, positions, rates and '
                          'accelerations (circles: independent computation)', 3, 1, (8.5, 9))[:, 0]
    for row, key, text, factor in zip(axes, ('q', 'qd', 'qdd'),
                                      ('position [mm]', 'rate [mm/s]', 'acceleration [mm/s^2]'), (1e3,) * 3):
        for k in range(4):
            line(row, key, k, f'q{k + 1}', factor, COLORS[k])
        label(row, text)
    axes[-1].set_xlabel('time [s]')
    row = findings.plate('wang_fig10', 'Wang et al., Fig. 10: actuator forces of smallest norm (circles: independent '
                         'computation)')[0, 0]
    for k in range(4):
        line(row, 'tau_a', k, f'actuator {k + 1}', color=COLORS[k])
    label(row, 'force [N]', 'time [s]')


STEPS = (('motion and forces', table_of_the_motion, False), ('law of the motion', law, False),
         ('minimum norm', minimum_norm, False), ('as printed', as_printed, False), ('Figs. 4 to 10', figures, True))
