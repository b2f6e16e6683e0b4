"""
S. K. Saha, W. Schiehlen, "Recursive kinematics and dynamics for parallel structured closed-loop multibody systems".

The paper's Figs. 5 to 8 (four-bar) and 10 to 13 (five-bar): inverse dynamics along the cycloid (35).
"""
import numpy as np
from scipy.optimize import minimize_scalar

from ...formulations import denoc
from .bars import FIVE_BAR_MODES, FOUR_BAR_MODES, T, case, five_bar_path, four_bar_path, whole_turns_off
from .findings import REFERENCE
from .plotting import label
from .saha_motion import five_bar_forced, five_bar_free, four_bar_forced, four_bar_free, stability

TITLE = 'Saha & Schiehlen: DeNOC of closed loops'
TIMES = np.linspace(0, T, 201)
INSTANTS = (0.0, 5.0, 10.0, 15.0, 20.0)


# --- four-bar, Figs. 5 and 6


def four_bar_numbers(findings):
    for mode in FOUR_BAR_MODES:
        rows = {row['t']: row for row in case('four_bar', mode)['inverse_dynamics']}
        path = four_bar_path(mode)
        for t in INSTANTS:
            findings.equal('four-bar', f'{mode}: tau1 at {t:g} s [N m]', path.at(t)[3], rows[t]['tau1'], form='.5f')
        for t in (0.0, 10.0, 20.0):
            findings.equal('four-bar', f'{mode}: theta1..3 at {t:g} s [rad]', path.at(t)[0][0][:3], rows[t]['theta'],
                           form='.5f')
        findings.equal('four-bar', f'{mode}: rates at 10 s [rad/s]', path.at(10.0)[1][0][:3], rows[10.0]['rate'],
                       form='.5f')
        findings.equal('four-bar', f'{mode}: accelerations at 5 s [rad/s^2]', path.at(5.0)[2][0][:3], rows[5.0]['acc'],
                       form='.5f')
        for variant in 'ab':
            findings.below('four-bar', f'{mode}, variant ({variant}): worst of angles, rates, accelerations, torque, '
                           'inertia at 21 instants', _four_bar_error(mode, variant, rows.values()), 1e-12)
    for mode, sign, what, value, instant, window in (
            ('open', -1, 'largest', 8.6445, 3.3, (2, 5)), ('open', 1, 'smallest', -0.8754, 19.73, (18, 20)),
            ('crossed', -1, 'largest', 10.860, 7.2, (5, 9))):
        path = four_bar_path(mode)
        peak = minimize_scalar(lambda t, path=path, sign=sign: sign * path.at(t)[3][0], window, (*window,),
                               method='bounded', options={'xatol': 1e-7})
        digits = 3 if mode == 'crossed' else 4
        findings.equal('four-bar', f'{mode}: {what} tau1 [N m]', sign * peak.fun, value, form=f'.{digits}f')
        findings.equal('four-bar', f'{mode}: instant of the {what} tau1 [s]', peak.x, instant,
                       form='.2f' if instant == 19.73 else '.1f')


def _four_bar_error(mode, variant, rows):
    path, worst = four_bar_path(mode, variant), 0.0
    for row in rows:
        *motion, tau = path.at(row['t'])
        inertia = denoc.generalized_inertia(denoc.configure(path.mechanism, path.theta))
        pairs = [(tau, row['tau1']), (inertia, row['inertia'])]
        for values, key in zip(motion, ('theta', 'rate', 'acc')):
            angles = values[0][:3] if variant == 'a' else _relative(values, key)
            difference = np.subtract(angles, row[key])
            pairs.append((whole_turns_off(difference) if key == 'theta' else difference, 0.0))
        worst = max(worst, *(np.abs(np.subtract(comp, ref)).max() for comp, ref in pairs))
    return worst


def _relative(of_legs, key):
    """theta_1..3 of the one leg that the paper counts, or their rates, from the two legs of variant (b)."""
    (crank, coupler), (rocker, _) = of_legs
    return crank, coupler, rocker - crank - coupler - (np.pi if key == 'theta' else 0.0)


def figures_5_and_6(findings):
    curves = {mode: four_bar_path(mode).over(TIMES) for mode in FOUR_BAR_MODES}
    axes = findings.plate('saha_fig5', 'Saha & Schiehlen, Fig. 5: four-bar, angles, rates and accelerations; solid '
                          'lines coupler above (open), dashed below (crossed)', 3, 1, (8, 8.5))[:, 0]
    names = ('angle [rad]', 'rate [rad/s]', 'acceleration [rad/s^2]')
    for row, k, name in zip(axes, range(3), names):
        for joint in range(3):
            line, = row.plot(TIMES, curves['open'][k][:, joint], label=rf'$\theta_{joint + 1}$')
            row.plot(TIMES, curves['crossed'][k][:, joint], '--', color=line.get_color())
        label(row, name)
    axes[-1].set_xlabel('time [s]')
    row = findings.plate('saha_fig6', 'Saha & Schiehlen, Fig. 6: four-bar, crank torque along the trajectory '
                         '(circles: independent computation)')[0, 0]
    for mode, (*_, tau) in curves.items():
        line, = row.plot(TIMES, tau[:, 0], label=mode)
        rows = case('four_bar', mode)['inverse_dynamics']
        row.plot([r['t'] for r in rows], [r['tau1'] for r in rows], 'o', mfc='none', ms=4, color=line.get_color())
    label(row, 'torque [N m]', 'time [s]')


# --- five-bar, Figs. 10 and 11


def five_bar_numbers(findings):
    for mode, words in FIVE_BAR_MODES.items():
        rows = {row['t']: row for row in case('five_bar', mode)['inverse_dynamics']}
        path = five_bar_path(mode)
        for t in INSTANTS:
            findings.equal('five-bar', f'{words}: torques of legs 1, 2 at {t:g} s [N m]', path.at(t)[3],
                           rows[t]['tau'], form='.5f')
        path.at(0.0)
        gim = denoc.generalized_inertia(denoc.configure(path.mechanism, path.theta))
        findings.equal('five-bar', f'{words}: GIM at 0 s: i11, i12, i22 [kg m^2]', gim[np.triu_indices(2)],
                       np.array(rows[0.0]['gim'])[np.triu_indices(2)], form='.5f')
        worst = 0.0
        for t, row in rows.items():
            theta, rate, acceleration, tau = path.at(t)
            configuration = denoc.configure(path.mechanism, theta)
            pairs = [(tau, row['tau']), (denoc.generalized_inertia(configuration), row['gim']),
                     (configuration.legs[0].pose.E[:2], row['point_C'])]
            for i in (0, 1):
                pairs += [(whole_turns_off(theta[leg][i] - row[f'theta{i + 1}'][leg]), 0.0) for leg in (0, 1)]
                pairs += [([leg[i] for leg in rate], row[f'rate{i + 1}']),
                          ([leg[i] for leg in acceleration], row[f'acc{i + 1}'])]
            worst = max(worst, *(np.abs(np.subtract(comp, ref)).max() for comp, ref in pairs))
        findings.below('five-bar', f'{words}: worst of angles, rates, accelerations, torques, GIM at 21 instants',
                       worst, 1e-12)


def figures_10_and_11(findings):
    curves = {mode: five_bar_path(mode).over(TIMES) for mode in FIVE_BAR_MODES}
    axes = findings.plate('saha_fig10', 'Saha & Schiehlen, Fig. 10: five-bar, joint angles; solid lines C above the '
                          'elbows, dashed below', 1, 2, (9.5, 4.2))[0]
    for row, leg, joints in zip(axes, (1, 2), ((0, 1), (2, 3, 4))):
        for i, joint in enumerate(joints, 1):
            line, = row.plot(TIMES, curves['above'][0][:, joint], label=rf'$\theta_{i}^{{({leg})}}$')
            row.plot(TIMES, curves['below'][0][:, joint], '--', color=line.get_color())
        label(row, f'angles of leg {leg} [rad]', 'time [s]')
    axes = findings.plate('saha_fig11', 'Saha & Schiehlen, Fig. 11: five-bar, torques along the trajectory (circles: '
                          'independent computation)', 1, 2, (9.5, 4.2))[0]
    for row, (mode, words) in zip(axes, FIVE_BAR_MODES.items()):
        rows = case('five_bar', mode)['inverse_dynamics']
        for leg in (0, 1):
            line, = row.plot(TIMES, curves[mode][3][:, leg], label=f'{words}, leg {leg + 1}')
            row.plot([r['t'] for r in rows], [r['tau'][leg] for r in rows], 'o', mfc='none', ms=4,
                     color=line.get_color())
        label(row, 'torque [N m]', 'time [s]')


# --- the factors as printed


def factors(findings):
    """N = Nl Nc Nd against the recursions, and Nc (16c) as printed, without the left factor P_i."""
    for name, path in (('four-bar (b)', four_bar_path('open', 'b')), ('five-bar', five_bar_path('above'))):
        path.at(7.0)
        thetadot = denoc.trajectory(7.0, T, *path.ends).thetadot
        configuration = denoc.configure(path.mechanism, path.theta)
        motion, factor = denoc.rates(configuration, thetadot), denoc.denoc_factors(configuration)
        t = np.concatenate([motion.t[leg][body] for leg, body in factor.order])
        M = np.zeros((t.size, t.size))
        for i, (leg, body) in enumerate(factor.order):
            M[6 * i:6 * i + 6, 6 * i:6 * i + 6] = configuration.legs[leg].M[body]
        gim = denoc.generalized_inertia(configuration)
        printed = factor._replace(N_c=_printed_N_c(configuration, factor.order))
        for words, (N_l, N_c, N_d, _) in (('corrected', factor), ('as printed', printed)):
            N = N_l @ N_c @ N_d
            values = {'twists of the bodies': (N @ thetadot, t), "GIM by N'MN": (N.T @ M @ N, gim)}
            for what, (comp, ref) in values.items():
                error = np.abs(comp - ref).max() / np.abs(ref).max()
                if words == 'corrected':
                    findings.below('factors', f'{name}, Nc {words}: error of the {what}, relative', error, 1e-12)
                else:
                    findings.differs('factors', f'{name}, Nc {words}: error of the {what}, relative', error, 0.0,
                                     form='.3f', source=REFERENCE)


def _printed_N_c(configuration, order):
    """Block rows i != k without P_i; the rest as in `denoc.denoc_factors`."""
    actuated = configuration.mechanism.actuated
    N_c = np.zeros((6 * len(order), 6 * len(actuated)))
    for row, (l, i) in enumerate(order):
        leg = configuration.legs[l]
        for column, j in enumerate(actuated):
            block = np.eye(6) * (l == j) if i == leg.k else configuration.A_bar[column].copy()
            if i != leg.k and leg.k is not None and i < leg.k and l == j:
                block -= leg.A_e[leg.k]
            N_c[6 * row:6 * row + 6, 6 * column:6 * column + 6] = block
    return N_c


STEPS = (('four-bar, inverse dynamics', four_bar_numbers, False), ('Figs. 5 and 6', figures_5_and_6, True),
         ('five-bar, inverse dynamics', five_bar_numbers, False), ('Figs. 10 and 11', figures_10_and_11, True),
         ('factors', factors, False), ('Fig. 7, free four-bar', four_bar_free, True),
         ('Fig. 12, free five-bar', five_bar_free, False), ('stability', stability, False),
         ('Fig. 8, forced four-bar', four_bar_forced, True), ('Fig. 13, forced five-bar', five_bar_forced, True))
