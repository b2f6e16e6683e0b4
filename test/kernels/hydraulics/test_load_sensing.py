"""Load sensing, flow sharing and regeneration: identities of flows, margin and ratio, and a slow twin of the solver."""
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.hydraulics.hydraulic_cases import BAR, crane
from support.witnesses import hydraulic_witness as witness

from psdyn_ros.api.hydraulics.statics import pump_areas

MARGIN, LAG = 20 * BAR, 0.03
OPENING = np.array([0.3, -0.2, 0.5])


def sensing(flow=1e-3, sharing=True, x=(0.0, 0.20, 0.20, 0.20)):
    """The crane on a load-sensing pump that stands by."""
    rig = crane(x)
    supply, c = rig.supply, rig.cylinders
    supply['limited'] = supply['sensing'] = 1
    supply['margin'], supply['lag'], supply['flow'] = MARGIN, LAG, flow
    c['check'], c['sharing'], c['compensated'] = 1, sharing, not sharing
    c['margin'] = MARGIN if sharing else 10 * BAR
    rig.pressure[:] = supply['return_pressure'] + MARGIN
    return rig


def fed(telemetry, opening=OPENING):
    """Flows into the ports that are fed."""
    return np.where(opening > 0.0, telemetry[:, 2], telemetry[:, 3])


def settled(rig, opening=OPENING, seconds=1.0, viscous=1e5):
    """Telemetry once the modes of the machine on its oil have faded, with friction that damps them."""
    rig.cylinders['command'], rig.axes['viscous'] = opening, viscous
    rig.run(round(1e3 * seconds))
    return rig.observe()[2].copy()


@pytest.mark.parametrize('seed', range(4))
def test_rates_are_those_of_the_witness(seed):
    rng, rig = np.random.default_rng(seed), sensing(flow=(2e-4, 2e-3)[seed % 2])
    rig.cylinders['sharing'], rig.cylinders['compensated'] = [1, 0, 1], [0, 1, 0]
    rig.cylinders['regenerative'] = [0, 0, 1]
    rig.xd[:] = rng.uniform(-0.2, 0.2, 4)
    rig.fluid[:, :2] = rng.uniform(30, 150, (3, 2)) * BAR
    rig.fluid[:, 2] = rng.uniform(-1, 1, 3) * (1.0, 1e-3, 1.0)
    rig.fluid[2, 2] = abs(rig.fluid[2, 2])
    rig.pressure[:] = rng.uniform(60, 180) * BAR
    _, _, found, _, line = rig.integrator.unpack(rig.integrator.rates(rig.row))
    tank, pump, taken = rig.supply['return_pressure'][0], rig.pressure[0], 0.0
    load = witness.sensed_load(rig.cylinders, rig.fluid, tank)
    rig.cylinders['sensed'] = load
    for c, fluid, rates in zip(rig.cylinders, rig.fluid, found):
        expected, flow = witness.fluid_rates(c, rig.x[c['axis']], rig.xd[c['axis']], fluid, pump, tank)
        assert rates == pytest.approx(expected, rel=1e-9, abs=1e-6)
        taken += flow
    assert line[0] == pytest.approx(witness.sensing_line_rate(rig.supply[0], pump, load, taken), rel=1e-9)
    assert rig.observe()[2][:, 9] == pytest.approx(load)


@pytest.mark.parametrize('flow, regenerative', [(2e-3, 0), (3e-4, 0), (2e-3, 1)])
def test_motion_is_that_of_a_variable_step_solver(flow, regenerative):
    def moved():
        rig = sensing(flow)
        rig.cylinders['command'], rig.cylinders['regenerative'][2] = OPENING, regenerative
        return rig

    rig, twin = moved(), moved()
    rows = rig.run(250)
    found = solve_ivp(lambda t, u: twin.integrator.rates(u), (0.0, 0.25), twin.row, method='LSODA', rtol=1e-8,
                      atol=1e-10 + 1e-9 * np.abs(rows).max(axis=0), t_eval=np.linspace(0.0, 0.25, 6))
    for row, exact in zip(rows[::50], found.y.T):
        x, _, fluid, _, line = rig.integrator.unpack(row - exact)
        assert abs(x).max() < 5e-5      # m
        assert max(abs(fluid[:, :2]).max(), abs(line[0])) < 0.005 * rig.supply['pressure'][0]
    assert np.ptp(rows[:, 3]) > 5e-3


@pytest.mark.parametrize('sharing', [True, False])
def test_the_line_keeps_its_margin_above_the_highest_load(sharing):
    rig = sensing(2e-3, sharing)
    telemetry = settled(rig)
    load = np.where(OPENING > 0.0, telemetry[:, 0], telemetry[:, 1])
    assert telemetry[:, 9] == pytest.approx(load.max(), rel=1e-3)
    assert rig.pressure[0] - telemetry[0, 9] == pytest.approx(MARGIN, rel=0.02)
    # what is fed is displaced, but for what compresses
    assert telemetry[[0, 2], 2] == pytest.approx((rig.xd[1:] * rig.cylinders['area_a'])[[0, 2]], rel=0.02)


def test_the_line_comes_to_standby_when_valves_shut_and_never_beyond_its_setting():
    rig = sensing(2e-3)
    settled(rig)
    settled(rig, np.zeros(3), 10 * LAG + 0.1)
    assert rig.pressure[0] == pytest.approx(rig.supply['return_pressure'][0] + MARGIN, rel=1e-3)
    rig.fluid[:, 0] = rig.supply['pressure'][0]
    rig.cylinders['command'] = 0.3
    assert rig.run(300)[:, -1].max() <= rig.supply['pressure'][0] * (1 + 1e-9)


def test_flow_sharing_keeps_the_ratio_where_the_pump_gives_too_little():
    gain = np.array([c['gain'][0] for c in crane().cylinders]) * abs(OPENING)
    flows = {}
    for sharing in (True, False):
        for flow in (2e-3, 3e-4):
            rig = sensing(flow, sharing)
            flows[sharing, flow] = fed(settled(rig))
            if flow == 3e-4:        # all of it is taken
                assert flows[sharing, flow].sum() == pytest.approx(flow, rel=0.02)
                assert rig.pressure[0] < rig.supply['sensed'][0] + 0.9 * MARGIN
    for flow in (2e-3, 3e-4):
        assert flows[True, flow] / flows[True, flow].sum() == pytest.approx(gain / gain.sum(), rel=1e-3)
    assert flows[True, 2e-3].sum() > 3.5e-4     # it was too much for the small pump
    # without it the heaviest load gets the least
    alone = flows[False, 3e-4] / flows[False, 3e-4].sum()
    assert alone[0] < 0.8 * gain[0] / gain.sum()


def test_a_regenerative_valve_takes_the_difference_of_the_areas_from_the_pump():
    rig = sensing(2e-3)
    c = rig.cylinders[2]
    c['regenerative'], c['dead_a'], c['dead_b'] = 1, 2e-4, 2e-4     # small chambers are steady soon
    c['gain'][3] *= 3.0
    telemetry = settled(rig, np.array([0.0, 0.0, 0.3]), 1.5, 1e4)[2]
    metered = telemetry[2] + telemetry[3]       # what chamber B gives to A is not the pump's
    assert metered == pytest.approx(0.3 * c['gain'][0] * np.sqrt(MARGIN), rel=0.01)
    assert metered == pytest.approx((c['area_a'] - c['area_b']) * rig.xd[3], rel=0.02)
    assert metered == pytest.approx(pump_areas(rig.cylinders)[0, 2] * rig.xd[3], rel=0.02)
    assert telemetry[1] > telemetry[0] > rig.supply['return_pressure'][0]


def test_load_checks_keep_a_load_from_sinking_before_the_line_has_risen():
    lost = {}
    for check in (0, 1):
        rig, flows = sensing(2e-3), []
        rig.cylinders['check'] = check
        rig.cylinders['command'] = 0.2, 0.0, 0.0
        rig.run(200, lambda k, rig=rig, flows=flows: flows.append(rig.observe()[2][0, 2]))
        lost[check] = -1e-3 * np.minimum(flows, 0.0).sum()
    assert lost[1] == 0.0 and lost[0] > 1e-6      # m^3
