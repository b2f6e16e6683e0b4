"""The hydraulic crane: what a step costs and where, and a work cycle against scipy and against Runge-Kutta."""

import time

import numpy as np
from scipy.integrate import solve_ivp

import psdyn_ros
from bench.machines import ROOT
from bench.timing import Case, interleave
from psdyn_ros.api.hydraulics.integrator import HydraulicIntegrator
from psdyn_ros.api.hydraulics.statics import equilibrium_state, hydraulic_records
from psdyn_ros.kernels.hydraulics.entry import State, step, unpack
from psdyn_ros.kernels.hydraulics.rosenbrock import rates
from psdyn_ros.kernels.rigid_body.entry import forward_checked
from psdyn_ros.kernels.rigid_body.mass_matrix import mass_matrix
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

PERIOD = 1e-3
STEPS = 200         # of a timed run, after which it starts again
SUBSTEPS = (1, 2, 4)
BAR = 1e5
# (duration [s], command of lift, tilt and telescope)
CYCLE = ((0.2, (0.0, 0.0, 0.0)), (0.8, (0.35, 0.3, 0.5)), (0.4, (0.0, 0.0, 0.0)), (0.8, (-0.3, -0.2, -0.5)),
         (0.8, (0.2, -0.4, 0.8)))
OURS = 'coupled step'


@entry
def step_loop(tree, loops, s, start, state, xdd, h, substeps, count):
    unpack(s, start, state)
    failures = 0
    for _ in range(count):
        failures += step(tree, loops, s, state, xdd, h, substeps) != 0
    return failures


@entry
def rates_loop(tree, loops, s, n, U, F, count):
    failures = 0
    for _ in range(count):
        failures += rates(tree, loops, s, n, U, F) != 0
    return failures


@entry
def forward_loop(tree, loops, x, xd, f, xdd, count):
    failures = 0
    for _ in range(count):
        failures += forward_checked(tree, loops, x, xd, f, xdd) != 0
    return failures


@entry
def mass_loop(tree, loops, x, M, count):
    failures = 0
    for _ in range(count):
        failures += mass_matrix(tree, loops, x, M) != 0
    return failures


@entry
def runge_kutta_loop(tree, loops, s, n, U, h, count, scratch):
    """Advance a state row by the classical explicit method on the rates of the coupled step."""
    stage, F, total, failures = scratch[0], scratch[1], scratch[2], 0
    for _ in range(count):
        for j in range(U.shape[0]):
            stage[j], total[j] = U[j], U[j]
        for part in range(4):
            failures += rates(tree, loops, s, n, stage, F) != 0
            weight = h / 6.0 if part == 0 or part == 3 else h / 3.0
            ahead = h if part == 2 else 0.5 * h
            for j in range(U.shape[0]):
                total[j] += weight * F[j]
                stage[j] = U[j] + ahead * F[j]
        for j in range(U.shape[0]):
            U[j] = total[j]
    return failures


class Rig:
    """The crane on its declared hydraulics, balanced, its slew braked."""

    def __init__(self, substeps=2):
        m = psdyn_ros.load(str(ROOT / 'urdf' / 'hiab_xs031.urdf'))
        hydraulics = read_hydraulics(ROOT / 'config' / 'hiab_xs031_hydraulics.yaml', m.actuators)
        self.manipulator, records = m, hydraulic_records(m, hydraulics)
        self.axes, self.cylinders, self.supply = records
        self.axes['braked'][0], self.axes['brake_stiffness'][0], self.axes['brake_damping'][0] = 1, 1e7, 1e6
        self.integrator = HydraulicIntegrator(m, *records, PERIOD, substeps)
        x = np.array([0.0, 0.2, 0.2, 0.2])
        fluid, bristles, pressure = equilibrium_state(m, hydraulics, *records, x)[:3]
        self.state = x, np.zeros(m.dof), np.array(fluid), np.array(bristles), np.array(pressure)
        self.xdd = np.zeros(m.dof)

    def row(self):
        return self.integrator.pack(*self.state)

    def advance(self, steps):
        for _ in range(steps):
            none_failed(self.integrator.step(*self.state, self.xdd))


def none_failed(failures):
    if failures:
        raise RuntimeError(f'{failures} steps were refused by the kernel')


def cost(rounds, slot):
    """Return records of a step of 1 ms and of its parts [us]; a part counts all its calls in a sub-step."""
    rigs = {substeps: Rig(substeps) for substeps in SUBSTEPS}
    cases = []
    for substeps, rig in rigs.items():
        rig.cylinders['command'] = 0.35, 0.3, 0.5
        rig.advance(300)        # valves open, all in motion
        start, starts = rig.row(), [array.copy() for array in rig.state]
        h = PERIOD / substeps

        def native(rig=rig, start=start, h=h, substeps=substeps):
            none_failed(step_loop(*rig.integrator.arguments, start, State(*rig.state), rig.xdd, h, substeps, STEPS))

        def python(rig=rig, starts=starts):
            for array, values in zip(rig.state, starts):
                array[:] = values
            rig.advance(STEPS)

        cases += [Case(('native', substeps), native, STEPS), Case(('python', substeps), python, STEPS)]
    rig = rigs[2]
    arguments = tree, loops, _ = rig.integrator.arguments
    U, n, f = rig.row(), rig.manipulator.dof, np.zeros(rig.manipulator.dof)
    F, M = np.empty_like(U), np.empty((n, n))
    x, xd = U[:n].copy(), U[n:2 * n].copy()
    cases += [
        Case('forward', lambda: none_failed(forward_loop(tree, loops, x, xd, f, f.copy(), STEPS)), STEPS),
        Case('mass', lambda: none_failed(mass_loop(tree, loops, x, M, STEPS)), STEPS),
        Case('rates', lambda: none_failed(rates_loop(*arguments, n, U, F, STEPS)), STEPS)]
    times = interleave(cases, rounds, slot)
    records = [{'part': f'step of 1 ms, {substeps} sub-steps, {mode}', 'median_us': times[mode, substeps].median,
                'best_us': times[mode, substeps].best, 'mode': mode, 'substeps': substeps}
               for mode in ('native', 'python') for substeps in SUBSTEPS]
    one = times['native', 2].rounds / 2
    parts = {'mechanism, twice': 2 * times['forward'].rounds, 'mass matrix': times['mass'].rounds,
             'hydraulics, twice': 2 * (times['rates'].rounds - times['forward'].rounds)}
    parts['slopes and solve'] = one - sum(parts.values())
    return records + [{'part': f'of a sub-step: {name}', 'median_us': float(np.median(values)),
                       'best_us': float(values.min()), 'mode': 'split', 'substeps': 1}
                      for name, values in (('all', one), *parts.items())]


def _jacobian(rate, size):
    steps = 1e-7 * np.eye(size)
    return lambda t, u: np.array([(rate(t, u + step) - rate(t, u)) / 1e-7 for step in steps]).T


def _by_scipy(rig, method, rtol):
    """Return (seconds, rows) of the cycle."""
    scale = rig.integrator.pack(*(np.ones_like(part) for part in rig.state[:2]),
                                np.tile([BAR, BAR, 1, 1, 1, 1], (len(rig.cylinders), 1)), np.ones(len(rig.axes)), [BAR])

    def rate(_, u):
        return rig.integrator.rates(u * scale) / scale

    rows, start = [rig.row()[None]], time.perf_counter()
    for duration, command in CYCLE:
        rig.cylinders['command'] = command
        times = PERIOD * np.arange(1, round(duration / PERIOD) + 1)
        found = solve_ivp(rate, (0.0, times[-1]), rows[-1][-1] / scale, method, times, rtol=rtol, atol=0.1 * rtol,
                          jac=_jacobian(rate, scale.size))
        rows.append(found.y.T * scale)
    return time.perf_counter() - start, np.concatenate(rows)


def _by_runge_kutta(rig, substeps):
    arguments, n, U = rig.integrator.arguments, rig.manipulator.dof, rig.row()
    scratch = np.zeros((3, U.size))
    return _timed(rig, lambda: runge_kutta_loop(*arguments, n, U, PERIOD / substeps, substeps, scratch), U.copy)


def _by_steps(rig):
    return _timed(rig, lambda: rig.advance(1), rig.row)


def _timed(rig, step, row):
    """Return (seconds, rows) of the cycle by steps of PERIOD."""
    rows, spent = [row()], 0.0
    for duration, command in CYCLE:
        rig.cylinders['command'] = command
        for _ in range(round(duration / PERIOD)):
            start = time.perf_counter()
            step()
            spent += time.perf_counter() - start
            rows.append(row())
    return spent, np.array(rows)


def cycle(repeats):
    """Return records of a 3 s work cycle with hard spool steps: time, error of strokes and pressures, sub-steps.

    scipy's methods get the same rates and the loosest tolerance of 1e-3, 1e-4, ... that is as accurate as the coupled
    step; Runge-Kutta, compiled as well, as many sub-steps as that takes, up to 32.
    """
    rig = Rig()
    seconds = sum(duration for duration, _ in CYCLE)
    reference = _by_scipy(rig, 'Radau', 1e-10)[1]

    def judged(name, run, settings):
        spent, rows = zip(*(run() for _ in range(repeats)))
        error = abs(rows[0] - reference).max(axis=0)
        parts = rig.integrator.unpack(error)
        return {'method': name, 'settings': settings, 's': float(np.median(spent)),
                'faster': seconds / float(np.median(spent)), 'strokes_mm': float(1e3 * parts[0].max()),
                'pressures_percent': float(100 * parts[2][:, :2].max() / rig.supply['pressure'][0])}

    records = [judged(OURS, lambda substeps=substeps: _by_steps(Rig(substeps)), f'{substeps} sub-steps')
               for substeps in (2, 4)]
    aim = records[0]

    def as_good(record):
        return record['strokes_mm'] <= aim['strokes_mm'] and record['pressures_percent'] <= aim['pressures_percent']

    for substeps in (1, 2, 4, 8, 16, 32):
        with np.errstate(all='ignore'):
            record = judged('Runge-Kutta 4, compiled', lambda n=substeps: _by_runge_kutta(Rig(), n),
                            f'{substeps} sub-steps')
        if as_good(record):
            break
    records.append(record)
    for method in ('Radau', 'BDF'):
        for rtol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
            record = judged(f'scipy {method}', lambda m=method, r=rtol: _by_scipy(Rig(), m, r), f'rtol {rtol:g}')
            if as_good(record):
                break
        records.append(record)
    return records
