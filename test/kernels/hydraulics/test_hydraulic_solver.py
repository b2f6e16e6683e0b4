"""The coupled step of mechanism and hydraulics at 1 ms against scipy's Radau on the same rates."""
import numpy as np
import pytest
from conftest import thorough
from scipy.integrate import solve_ivp
from support.hydraulics.hydraulic_cases import BAR, CRANE, START, Rig, crane, excavator

pytestmark = pytest.mark.slow

HOLD = (0.0, 0.0, 0.0)
# (duration [s], commands of lift, tilt and telescope)
CYCLE = [(0.5, HOLD), (1.5, (0.35, 0.3, 0.5)), (0.7, HOLD), (1.3, (-0.3, 0.2, -0.5)), (0.8, (0.2, -0.5, 0.8)),
         (1.2, (0.0, 0.1, -0.3)), (1.0, (-0.35, -0.3, 0.4)), (0.6, (0.4, 0.4, -1.0)), (1.0, (0.0, -0.2, 0.0)),
         (1.4, HOLD)]
INTO_THE_STOP = [(0.2, HOLD), (1.6, (0.0, 0.0, -1.0)), (0.3, HOLD), (0.3, (0.0, 0.0, 1.0))]


def radau(rig, duration, row, rtol=1e-8):
    """Rows of the state each period, by Radau on `HydraulicIntegrator.rates`."""
    scale, start = np.ones(row.size), 2 * rig.manipulator.dof
    for k in range(len(rig.cylinders)):
        scale[start + 6 * k:start + 6 * k + 2] = BAR
    scale[-1] = BAR
    steps = 1e-7 * np.eye(row.size)

    def rates(_, u):
        return rig.integrator.rates(u * scale) / scale

    def jacobian(t, u):
        here = rates(t, u)
        return np.array([(rates(t, u + step) - here) / 1e-7 for step in steps]).T

    times = rig.integrator.step_size * np.arange(1, round(duration / rig.integrator.step_size) + 1)
    solution = solve_ivp(rates, (0.0, times[-1]), row / scale, 'Radau', times, jac=jacobian, rtol=rtol,
                         atol=0.1 * rtol)
    assert solution.success, solution.message
    return solution.y.T * scale


def by_radau(rig, segments, **tolerance):
    """Rows of the state at each period of a row of commands, by Radau."""
    rows = [rig.row[None]]
    for duration, command in segments:
        rig.cylinders['command'] = command
        rows.append(radau(rig, duration, rows[-1][-1], **tolerance))
    return np.concatenate(rows)


def by_steps(rig, segments):
    """The same by the coupled step."""
    rows = [rig.row[None]]
    for duration, command in segments:
        rig.cylinders['command'] = command
        rows.append(rig.run(round(duration / rig.integrator.step_size))[1:])
    return np.concatenate(rows)


def errors(rig, rows, reference):
    """Largest difference of coordinates [mm], and of pressures [% of supply]."""
    difference = abs(rows - reference).max(axis=0)
    strokes = difference[:rig.manipulator.dof].max() * 1e3
    pressures = rig.integrator.unpack(difference)[2][:, :2].max()
    return strokes, pressures / rig.supply['pressure'][0] * 100


def small_volumes(rig):
    rig.cylinders['dead_a'] = rig.cylinders['dead_b'] = 1e-4


def steep_friction(rig):
    rig.axes['slip'] = 1e-3


def cushioned(rig):
    rig.cylinders['cushion_a'] = rig.cylinders['cushion_b'] = 0.04
    rig.cylinders['relief'], rig.cylinders['relief_gain'] = 250 * BAR, 1e-9


def every_option(rig):
    """Overlap that the valve jumps, compensated edges, a limited pump, air, walls and hoses, holding, LuGre."""
    c = rig.cylinders
    c['overlap_up'], c['overlap_down'], c['jump'], c['compensated'] = 0.05, 0.08, 1, 1
    c['air'], c['wall'], c['hose'], c['hose_a'], c['hose_b'] = 0.005, 31e9, 0.6e9, 1e-3, 1e-3
    c['bulk'], c['leak'] = 1.5e9, 1e-13
    c['holding'][:, 0] = 1
    rig.supply['limited'] = 1
    rig.axes['bristle'][1:], rig.axes['bristle_damping'][1:], rig.axes['stribeck'][1:] = 8e6, 2e4, 1000.0


@pytest.mark.long
@pytest.mark.parametrize('case', thorough([
    (None, CYCLE, 2, 0.02, 0.1), (steep_friction, CYCLE, 2, 0.1, 0.5), (small_volumes, CYCLE, 2, 0.1, 0.5),
    (None, INTO_THE_STOP, 2, 0.1, 0.5), (small_volumes, INTO_THE_STOP, 4, 0.1, 0.5),
    (cushioned, INTO_THE_STOP, 2, 0.1, 0.5), (every_option, CYCLE[:4], 2, 0.1, 0.5),
], [(None, CYCLE, 2, 0.02, 0.1), (small_volumes, INTO_THE_STOP, 4, 0.1, 0.5), (every_option, CYCLE[:4], 2, 0.1, 0.5)]),
    ids=['cycle', 'cycle, slip 1 mm/s', 'cycle, 0.1 litre', 'stop', 'stop, 0.1 litre', 'cushion', 'every option'])
def test_hard_spool_steps_agree_with_radau(case):
    change, segments, substeps, strokes, pressures = case
    rig, reference = crane(change=change, substeps=substeps), crane(change=change)
    if segments is INTO_THE_STOP:
        for each in (rig, reference):
            each.x[3] = 0.25
            each.balance()
    found = errors(rig, by_steps(rig, segments), by_radau(reference, segments))
    assert found[0] < strokes and found[1] < pressures


def test_free_fall_on_closed_valves_agrees_with_radau():
    rigs = crane(), crane()
    for rig in rigs:
        rig.fluid[:, 0] -= (40 * BAR, 30 * BAR, 20 * BAR)
    rows, reference = by_steps(rigs[0], [(1.0, HOLD)]), by_radau(rigs[1], [(1.0, HOLD)])
    assert np.ptp(reference[:, 1:4], axis=0).min() > 1e-4
    found = errors(rigs[0], rows, reference)
    assert found[0] < 0.02 and found[1] < 0.1


def test_a_dropped_payload_agrees_with_radau():
    rows = []
    for run in (by_steps, by_radau):
        rig = crane()
        laden = rig.manipulator.with_payload('tcp', 250.0, (0.0, 0.0, 0.0), 5.0 * np.eye(3))
        first = run(Rig(laden, rig.axes, rig.cylinders, rig.supply, START), [(0.05, HOLD)])
        rig.take(first[-1])
        rows.append(np.concatenate((first, run(rig, [(0.8, HOLD)]))))
    assert np.ptp(rows[1][:, 1]) > 2e-3
    found = errors(rig, *rows)
    assert found[0] < 0.02 and found[1] < 0.1


@pytest.mark.long
@pytest.mark.parametrize('change', [None, every_option])
def test_halving_the_step_quarters_the_error(change):
    segments = [(0.1, (0.15, -0.12, 0.1)), (0.05, (0.1, 0.0, -0.05))]
    reference = by_radau(crane(change=change), segments, rtol=1e-11)[-1]
    found = []
    for substeps in (4, 32):
        rig = crane(change=change, substeps=substeps)
        found.append(errors(rig, by_steps(rig, segments)[-1:], reference[None]))
    # where in a step a corner falls makes single halvings better or worse than their mean
    assert min(np.divide(*found)) ** (1.0 / 3.0) > 3.3


def test_strokes_of_the_crane_are_those_of_its_data_sheet():
    rig = crane()
    for c, (bore, rod, stroke, dead, litres, _) in zip(rig.cylinders, CRANE.values()):
        assert c['area_a'] - c['area_b'] == pytest.approx(np.pi / 4 * rod**2)
        assert 4 * c['area_a'] / np.pi == pytest.approx(bore**2)
        assert c['gain'] * np.sqrt(70 * BAR) * 60e3 == pytest.approx(litres)
        assert (c['stroke'], c['dead_a']) == (stroke, dead)


@pytest.mark.long
def test_the_excavator_agrees_with_radau():
    segments = [(0.2, (0.4, 0.4, -0.3, 0.3)), (0.1, (0.0, 0.0, 0.0, 0.0))]
    rig, reference = excavator(), excavator()
    found = errors(rig, by_steps(rig, segments), by_radau(reference, segments))
    assert found[0] < 0.1 and found[1] < 0.5
