"""The coupled step of mechanism and hydraulics against scipy's Radau on the same rates, and against its own laws."""
import numpy as np
from hydraulic_cases import BAR, crane
from scipy.integrate import solve_ivp


def radau(rig, duration, row, rtol=1e-9):
    """Rows of the state each period, by Radau on `HydraulicIntegrator.rates`."""
    scale, start = np.ones(row.size), 2 * rig.manipulator.dof
    for k in range(len(rig.cylinders)):
        scale[start + 6 * k:start + 6 * k + 2] = BAR
    scale[-1] = BAR
    steps = 1e-7 * np.eye(row.size)

    def rates(_, u):
        return rig.integrator.rates(u * scale) / scale

    def jacobian(t, u):
        return np.array([(rates(t, u + step) - rates(t, u - step)) / 2e-7 for step in steps]).T

    times = rig.integrator.step_size * np.arange(1, round(duration / rig.integrator.step_size) + 1)
    solution = solve_ivp(rates, (0.0, times[-1]), row / scale, 'Radau', times, jac=jacobian, rtol=rtol, atol=1e-10)
    assert solution.success, solution.message
    return solution.y.T * scale


def by_radau(rig, segments):
    rows = [rig.row[None]]
    for duration, command in segments:
        rig.cylinders['command'] = command
        rows.append(radau(rig, duration, rows[-1][-1]))
    return np.concatenate(rows)


def by_steps(rig, segments):
    rows = [rig.row[None]]
    for duration, command in segments:
        rig.cylinders['command'] = command
        rows.append(rig.run(round(duration / rig.integrator.step_size))[1:])
    return np.concatenate(rows)


def errors(rig, rows, reference):
    """Largest difference of strokes [mm], of pressures [% of supply]."""
    difference = abs(rows - reference).max(axis=0)
    strokes = difference[:rig.manipulator.dof].max() * 1e3
    pressures = rig.integrator.unpack(difference)[2][:, :2].max()
    return strokes, pressures / rig.supply['pressure'][0] * 100


def test_spool_steps_agree_with_radau():
    segments = [(0.1, (0.5, -0.3, 0.4)), (0.1, (0.0, 0.0, 0.0)), (0.1, (-0.4, 0.6, -0.8))]
    rig = crane()
    strokes, pressures = errors(rig, by_steps(crane(), segments), by_radau(rig, segments))
    assert strokes < 0.02 and pressures < 0.1
