"""Free and forced motion of the bars of Saha and Schiehlen, Figs. 7, 8, 12, 13, and why the forced ones diverge."""
import numpy as np
from scipy.integrate import RK45, solve_ivp
from scipy.optimize import brentq

from ...formulations import denoc, legs
from ...model.errors import PsdynError
from .bars import (
    FIVE_BAR_MODES,
    FOUR_BAR_MODES,
    T,
    case,
    energy,
    five_bar_path,
    four_bar_path,
    largest_energy,
    potential,
)
from .findings import PAPER, REFERENCE
from .plotting import BLACK, COLORS, label

STEP = 0.2      # [s] of the paper's integrator
LOST = {'four-bar': 0.02, 'five-bar': 0.05}     # [rad] beyond which a run has left its reference
ASTRAY = 2.0        # [rad] from the reference, beyond which nothing is of interest
IN_LINE = 0.005     # sine of the angle between the outer links of the five-bar at which a run ends
TOLERANCES = (1e-4, 1e-6, 1e-9)


def integrate(mechanism, start, control, end, **options):
    """Return scipy's solution from y = start under control(t, configuration, theta, thetadot)."""
    options = dict(method='DOP853', rtol=1e-11, atol=1e-11) | options
    return solve_ivp(lambda t, y: denoc.state_rate(mechanism, y, lambda *state: control(t, *state)), (0, end), start,
                     **options)


def no_torque(t, configuration, theta, thetadot):
    return np.zeros_like(thetadot)


# --- free motion


def four_bar_free(findings):
    axes = findings.plate('saha_fig7', 'Saha & Schiehlen, Fig. 7: four-bar released at a crank angle of 90 degrees; '
                          'dots: independent computation', 2, 2, (10, 6.5))
    for column, mode in zip(axes.T, FOUR_BAR_MODES):
        ref, mechanism = case('four_bar', mode)['free_fall'], legs.four_bar()
        theta = legs.close(mechanism, legs.four_bar_mode(mode), np.array([ref['theta1_0']]))
        run = integrate(mechanism, np.append(theta[0], 0.0), no_torque, 4.0, events=lambda t, y: y[-1],
                        dense_output=True)
        half, period = run.t_events[0][run.t_events[0] > 0.1][:2]
        far = run.sol(half)[0]
        by_energy = _period_by_energy(mechanism, theta, far)
        table = 'four-bar free'
        findings.equal(table, f'{mode}: period, integrated against quadrature of the energy [s]', period, by_energy,
                       form='.7f', bound=1e-7)
        findings.differs(table, f'{mode}: period, file [s]', period, ref['period'], form='.7f', source=REFERENCE)
        findings.equal(table, f'{mode}: far turning point of the crank [rad]', far, ref['theta1_far_turning_point'],
                       form='.6f', bound=1e-6)
        samples = {row['t']: row for row in ref['samples']}
        if mode == 'open':
            for t in (0.5, 1.0, 2.0):
                findings.equal(table, f'{mode}: theta1({t:g} s) [rad]', run.sol(t)[0], samples[t]['theta1'],
                               form='.6f', bound=1e-6)
        worst = max(abs(run.sol(t % period)[0] - row['theta1']) for t, row in samples.items())
        findings.below(table, f'{mode}: worst theta1 of {len(samples)} instants over 10 s [rad]', worst, 1e-6)
        drift = np.ptp([energy(mechanism, y) for y in run.y.T]) / largest_energy(mechanism)
        findings.below(table, f'{mode}: drift of energy over 4 s, relative', drift, 1e-9)
        times = np.linspace(0, 4, 401)
        y = run.sol(times)
        for joint in range(3):
            column[0].plot(times, y[joint], label=rf'$\theta_{joint + 1}$')
        column[0].plot([t for t in samples if t <= 4], [row['theta1'] for t, row in samples.items() if t <= 4], 'o',
                       color=BLACK, ms=3)
        column[1].plot(times, y[-1], label=r'$\dot\theta_1$')
        label(column[0], f'{mode}: angles [rad]')
        label(column[1], 'crank rate [rad/s]', 'time [s]')


def _period_by_energy(mechanism, theta, far):
    """Twice the integral of dtheta / rate between the turning points; the rate is that of constant energy."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    start, top = theta[0][0], potential(mechanism, theta)

    def above(crank):
        return potential(mechanism, legs.close(mechanism, theta, np.array([crank]))) - top
    # an error of the turning point would enter by its square root
    far = brentq(above, far - 1e-3, far + 1e-3, xtol=1e-15)
    middle, reach, total = (start + far) / 2, (far - start) / 2, 0.0
    # theta = middle + reach sin(phi): the integrand is smooth where the rate vanishes
    for phi, weight in zip(0.5 * np.pi * nodes, 0.5 * np.pi * weights):
        theta = legs.close(mechanism, theta, np.array([middle + reach * np.sin(phi)]))
        inertia = denoc.generalized_inertia(denoc.configure(mechanism, theta))[0, 0]
        rate = np.sqrt(2 * (top - potential(mechanism, theta)) / inertia)
        total += weight * abs(reach) * np.cos(phi) / rate
    return 2 * total


def out_of_line(y):
    """Sine of the angle between the outer links of the five-bar."""
    return abs(np.sin(y[1] + y[0] - y[2] - y[3]))


def nearly_in_line(t, y):
    return out_of_line(y) - IN_LINE


nearly_in_line.terminal = True


def five_bar_free(findings):
    axes = findings.plate('saha_fig12', 'Saha & Schiehlen, Fig. 12: five-bar released at 80 and 70 degrees, until its '
                          'outer links come into line (dotted line); dots: independent computation', 1, 2, (10, 4.2),
                          sharex=False)[0]
    for row, (mode, words) in zip(axes, FIVE_BAR_MODES.items()):
        ref, mechanism = case('five_bar', mode)['free_fall'], legs.five_bar()
        theta = legs.close(mechanism, legs.five_bar_mode(mode), np.array(ref['theta1_0']))
        run = integrate(mechanism, np.concatenate((*theta, (0.0, 0.0))), no_torque, 2.0, events=nearly_in_line,
                        dense_output=True)
        # the sine crosses zero at a finite rate, the equations end there: extrapolated from the last 5 ms
        last = np.linspace(run.t[-1] - 0.005, run.t[-1], 6)
        instant = np.polynomial.Polynomial.fit([out_of_line(run.sol(t)) for t in last], last, 4)
        table = 'five-bar free'
        findings.equal(table, f'{words}: outer links in line up to a sine of 1e-4 [s]', instant(1e-4),
                       ref['singular_at_s'], form='.7f', bound=1e-8)
        findings.differs(table, f'{words}: outer links in line [s]', instant(0.0), ref['singular_at_s'], form='.7f',
                         source=REFERENCE)
        if mode == 'below':
            findings.differs(table, f'{words}: outer links in line, paper [s]', instant(0.0), 1.4, form='.2f')
        samples = ref['samples']
        worst = max(np.abs(run.sol(sample['t'])[[0, 2]] - sample['theta1']).max() for sample in samples)
        findings.below(table, f'{words}: worst crank angle of {len(samples)} instants [rad]', worst, 1e-8)
        drift = np.ptp([energy(mechanism, y) for y in run.y.T]) / largest_energy(mechanism)
        findings.below(table, f'{words}: drift of energy until then, relative', drift, 1e-8)
        times = np.linspace(0, run.t[-1], 400)
        for joint, (i, leg) in enumerate(((1, 1), (2, 1), (1, 2), (2, 2))):
            row.plot(times, run.sol(times)[joint], label=rf'$\theta_{i}^{{({leg})}}$')
        for i, color in ((0, COLORS[0]), (1, COLORS[2])):
            row.plot([sample['t'] for sample in samples], [sample['theta1'][i] for sample in samples], 'o', ms=3,
                     color=color)
        row.axvline(instant(0.0), color=BLACK, linewidth=1, linestyle=':')
        label(row, f'{words}: angles [rad]', 'time [s]')


# --- forced motion


def torque_of(path):
    """The torque of the inverse dynamics along the path, whatever the state is."""
    return lambda t, *state: path.at(t)[3]


def tracking(mechanism, path, times, y):
    """Return the largest error of the actuated joints (times,) [rad]."""
    actuated = [0, 2][:len(mechanism.actuated)]
    desired = np.array([denoc.trajectory(t, T, *path.ends).theta for t in times])
    return np.abs(np.asarray(y)[actuated].T - desired).max(axis=1)


def open_loop(path, tolerance, end=12.0):
    """
    Return times and states of RK45 under the torques alone, up to `end`.

    It stops where the legs no longer close, the outer links of the five-bar come into line, or the run is astray.
    """
    mechanism, torque = path.mechanism, torque_of(path)
    solver = RK45(lambda t, y: denoc.state_rate(mechanism, y, lambda *state: torque(t, *state)), 0.0, _start(path), end,
                  rtol=tolerance, atol=tolerance)
    times, states = [0.0], [solver.y]
    try:
        while solver.status == 'running' and (len(mechanism.legs) == 1 or out_of_line(solver.y) > IN_LINE):
            solver.step()
            between = np.linspace(solver.t_old, solver.t, 11)[1:]
            times.extend(between)
            states.extend(solver.dense_output()(between).T)
            if tracking(mechanism, path, times[-1:], solver.y[:, None]) > ASTRAY:
                break
    except PsdynError:
        pass    # what there is shows how far it came
    return np.array(times), np.array(states).T


def _start(path):
    return np.concatenate((*path.theta, np.zeros(len(path.mechanism.actuated))))


def adams(path, step=STEP, end=12.0):
    """
    Return times and states of Adams-Bashforth-Moulton of order 4 at a fixed step, started by Runge-Kutta.

    One prediction, one correction.  It stops where the legs no longer close or the run is astray.
    """
    torque = torque_of(path)

    def f(t, y):
        return denoc.state_rate(path.mechanism, y, lambda *state: torque(t, *state))
    t, y = 0.0, _start(path)
    times, states, rates = [t], [y], [f(t, y)]
    try:
        while t < end - step / 2:
            if len(rates) < 4:
                k1 = rates[-1]
                k2 = f(t + step / 2, y + step / 2 * k1)
                k3 = f(t + step / 2, y + step / 2 * k2)
                y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + f(t + step, y + step * k3))
            else:
                predicted = y + step / 24 * np.dot((-9, 37, -59, 55), rates[-4:])
                y = y + step / 24 * (9 * f(t + step, predicted) + np.dot((1, -5, 19), rates[-3:]))
            t += step
            rates.append(f(t, y))
            times.append(t)
            states.append(y)
            if tracking(path.mechanism, path, times[-1:], y[:, None]) > ASTRAY:
                break
    except PsdynError:
        pass
    return np.array(times), np.array(states).T


def _first(times, condition):
    return float(times[np.argmax(condition)]) if condition.any() else None


def feedback_run(path):
    """Return scipy's solution over the trajectory under the feedback (37)."""
    def control(t, configuration, theta, thetadot):
        return denoc.feedback(configuration, theta, thetadot, denoc.trajectory(t, T, *path.ends))
    return integrate(path.mechanism, _start(path), control, T, rtol=1e-9, atol=1e-9, dense_output=True)


def _forced(findings, name, modes, make, reported, number):
    """One row of axes per mode: angles with and without feedback, and how far they are from the reference."""
    bound, table = LOST[name], f'{name} forced'
    axes = findings.plate(f'saha_fig{number}', f'Saha & Schiehlen, Fig. {number}: {name} under the torques of its '
                          'inverse dynamics, alone and with the feedback law (37)', len(modes), 2,
                          (10, 3.4 * len(modes)))
    for row, (mode, words, expected) in zip(axes, modes):
        path = make(mode)
        actuated = [0, 2][:len(path.mechanism.actuated)]
        times = np.linspace(0, T, 401)
        desired = np.array([denoc.trajectory(t, T, *path.ends).theta for t in times])
        for k in range(len(actuated)):
            row[0].plot(times, desired[:, k], color=BLACK, linewidth=4, alpha=0.25, label=None if k else 'reference')
        instants = []
        for color, tolerance in zip(COLORS, TOLERANCES):
            t, y = open_loop(make(mode), tolerance)
            error = tracking(path.mechanism, path, t, y)
            instant = _first(t, error > bound)
            instants.append(t[-1] if instant is None else instant)
            if tolerance in expected:
                findings.differs(table, f'{words}: RK45 at {tolerance:.0e} leaves by {bound} rad [s]', instants[-1],
                                 expected[tolerance], form='.1f', source=REFERENCE)
            for k, joint in enumerate(actuated):
                row[0].plot(t, y[joint], color=color, label=None if k else f'RK45, {tolerance:.0e}')
            row[1].semilogy(t[1:], error[1:], color=color)
        findings.equal(table, f'{words}: leaves later the smaller the tolerance (1: yes)',
                       instants == sorted(instants), 1, form='.0f', source='')
        t, y = adams(make(mode))
        error = tracking(path.mechanism, path, t, y)
        for k, joint in enumerate(actuated):
            row[0].plot(t, y[joint], '.-', color=COLORS[3], label=None if k else f'Adams, step {STEP} s')
        row[1].semilogy(t[1:], error[1:], '.-', color=COLORS[3])
        instant = _first(t, error > bound)
        findings.differs(table, f'{words}: Adams of order 4, step {STEP} s, leaves by {bound} rad [s]',
                         t[-1] if instant is None else instant, reported, form='.2f', source=PAPER)
        run = feedback_run(make(mode))
        error = tracking(path.mechanism, path, times, run.sol(times))
        findings.below(table, f'{words}: with feedback (37), largest error over 20 s [rad]', error.max(), 1e-6)
        for k, joint in enumerate(actuated):
            row[0].plot(times, run.sol(times)[joint], '--', color=COLORS[4], label=None if k else 'feedback (37)')
        row[1].semilogy(times[1:], error[1:], '--', color=COLORS[4])
        row[1].axhline(bound, color=BLACK, linewidth=0.8, linestyle=':')
        margin = 0.35
        row[0].set_ylim(desired.min() - margin, desired.max() + margin)
        row[1].set_ylim(1e-13, 10)
        label(row[0], f'{words}: crank angle [rad]', 'time [s]', columns=3)
        label(row[1], 'largest error [rad]', 'time [s]')


def four_bar_forced(findings):
    _forced(findings, 'four-bar', (('open', 'open', {1e-4: 5.5, 1e-6: 7.9, 1e-9: 9.5}), ('crossed', 'crossed', {})),
            four_bar_path, 2.25, 8)
    # an initial error of 0.1 rad at rest decays as (1 + t) exp(-t)
    mechanism, desired = legs.four_bar(), denoc.trajectory(0.0, T, *four_bar_path('open').ends)
    start = legs.close(mechanism, legs.four_bar_mode('open'), desired.theta + 0.1)
    run = integrate(mechanism, np.append(start[0], 0.0), lambda t, *state: denoc.feedback(*state, desired), 3.0)
    findings.equal('four-bar forced', 'open: error after 3 s under feedback (37), 0.1 rad at first [rad]',
                   run.y[0, -1] - desired.theta[0], 0.1 * 4 * np.exp(-3), form='.8f')


def five_bar_forced(findings):
    _forced(findings, 'five-bar', (('above', 'C above', {1e-6: 2.8, 1e-9: 3.9}), ('below', 'C below', {})),
            five_bar_path, 3.2, 13)


# --- stability of the forced motion


def growth(path, t):
    """Return the eigenvalues [1/s] of the motion linearised about the trajectory at time t, largest real part first."""
    theta, *_, tau = path.at(t)
    desired = denoc.trajectory(t, T, *path.ends)
    n = len(path.mechanism.actuated)

    def acceleration(position, rate):
        closed = legs.close(path.mechanism, theta, position)
        return denoc.forward_dynamics(denoc.configure(path.mechanism, closed), rate, tau)
    A, h = np.zeros((2 * n, 2 * n)), 1e-5
    A[:n, n:] = np.eye(n)
    for i, unit in enumerate(np.eye(n) * h):
        for column, moves in ((i, (unit, 0 * unit)), (n + i, (0 * unit, unit))):
            up, down = (acceleration(desired.theta + sign * moves[0], desired.thetadot + sign * moves[1])
                        for sign in (1, -1))
            A[n:, column] = (up - down) / (2 * h)
    return np.array(sorted(np.linalg.eigvals(A), key=lambda value: -value.real))


def stability(findings):
    table = 'stability'
    for t, rate in ((5.0, 2.2), (10.0, 4.8), (15.0, 5.2), (20.0, 5.2)):
        findings.equal(table, f'four-bar open: growth at {t:g} s [1/s]', growth(four_bar_path('open'), t)[0].real,
                       rate, form='.1f')
    path = four_bar_path('open')
    instant = brentq(lambda t: _stiffness(path, t), 2.0, 5.0, xtol=1e-4)
    findings.equal(table, 'four-bar open: the crank no longer oscillates from [s]', instant, 3.27, form='.2f')
    findings.equal(table, 'five-bar, C above: growth at 0 s, both modes [1/s]',
                   growth(five_bar_path('above'), 0.0)[:2].real, (5.21, 2.50), form='.2f')
    findings.equal(table, 'five-bar, C below: growth at 0 s [1/s]', growth(five_bar_path('below'), 0.0)[0].real, 3.39,
                   form='.2f')


def _stiffness(path, t):
    """Discriminant of the characteristic polynomial: negative where the motion oscillates."""
    first, second = growth(path, t)
    return ((first - second) ** 2).real
