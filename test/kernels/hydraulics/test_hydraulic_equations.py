"""Equations of cylinders, valves, friction and supply: against the witness, and their slopes against differences."""
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from support.hydraulics.hydraulic_cases import BAR, crane, plain_axes, plain_cylinder, plain_supply
from support.witnesses import hydraulic_witness as witness

from psdyn_ros.kernels.hydraulics import elimination, friction
from psdyn_ros.kernels.hydraulics import equations as hydraulics
from psdyn_ros.kernels.hydraulics.elimination import SLOPES
from psdyn_ros.kernels.hydraulics.records import MEASURED_FORCE, MEASURED_PRESSURE
from psdyn_ros.kernels.hydraulics.rosenbrock import GAMMA

STATES = 60         # drawn states of a property


def drawn(low, high):
    return st.floats(low, high, allow_nan=False).map(lambda value: round(value, 6))


@st.composite
def cylinders(draw):
    """A cylinder or motor with every option on or off, and its fluid (6,)."""
    c = plain_cylinder(0, 0.08, 0.045, 0.59, draw(drawn(1e-4, 3e-3)), 100.0)
    c['gain'] *= np.array([draw(drawn(0.5, 1.5)) for _ in range(4)])
    if draw(st.booleans()):
        c['air'], c['wall'], c['hose'], c['hose_a'], c['hose_b'] = 0.01, 31e9, 0.6e9, 0.5e-4, 0.6e-4
    c['overlap_up'], c['overlap_down'] = draw(st.sampled_from([(0.0, 0.0), (0.05, 0.1)]))
    c['jump'], c['stuck'] = draw(st.booleans()), draw(st.sampled_from([0, 0, 0, 1]))
    c['command'], c['offset'] = draw(drawn(-1.5, 1.5)), draw(drawn(-0.02, 0.02))
    c['compensated'], c['sharing'] = draw(st.sampled_from([(0, 0), (1, 0), (0, 1)]))
    c['check'], c['regenerative'] = draw(st.booleans()), draw(st.booleans())
    c['sensed'] = draw(drawn(10.0, 200.0)) * BAR
    c['leak'], c['relief'], c['relief_gain'] = 1e-12, 230 * BAR, 1e-9
    c['drain'], c['start'] = draw(st.sampled_from([0.0, 2e-12])), draw(st.sampled_from([0.0, -0.2]))
    c['motor'] = draw(st.sampled_from([0, 0, 1]))
    c['holding'] = draw(st.booleans()), draw(st.booleans())
    c['cushion_a'], c['cushion_b'] = draw(st.sampled_from([(0.0, 0.0), (0.05, 0.04)]))
    fluid = np.array([draw(drawn(-0.9, 300.0)) * BAR, draw(drawn(-0.9, 300.0)) * BAR, draw(drawn(-1.05, 1.05)),
                      draw(drawn(-30.0, 30.0)), draw(drawn(0.0, 1.0)), draw(drawn(0.0, 1.0))])
    return c, fluid


strokes = st.one_of(drawn(0.0, 0.06), drawn(0.0, 0.59), drawn(0.54, 0.59))
lines = drawn(5.0, 200.0).map(lambda p: p * BAR)


@settings(max_examples=examples(STATES))
@given(cylinders(), strokes, drawn(-0.5, 0.5), lines)
def test_rates_of_a_cylinder_are_those_of_the_witness(case, x, v, line):
    c, fluid = case
    rate = np.empty(6)
    taken = hydraulics.cylinder_rates(c, x, v, fluid, line, 10 * BAR, rate)
    expected, asked = witness.fluid_rates(c, x, v, fluid, line, 10 * BAR)
    assert rate == pytest.approx(expected, rel=1e-10, abs=1e-9)
    assert taken == pytest.approx(asked, rel=1e-10, abs=1e-18)
    assert hydraulics.chamber_flows(c, x, fluid, line, 10 * BAR) == pytest.approx(
        witness.port_flows(c, x, fluid, line, 10 * BAR), rel=1e-10, abs=1e-18)


@settings(max_examples=examples(STATES))
@given(cylinders(), strokes, lines)
def test_slopes_of_the_flows_are_their_differences(case, x, line):
    c, fluid = case
    w = np.zeros(1, SLOPES)[0]
    tank = 10 * BAR
    elimination.set_slopes(c, w, 0.0, x, fluid, np.zeros(6), (line, 0.0, tank))

    def flows(index, step):
        state, pressure = fluid.copy(), line
        if index is None:
            pressure += step
        else:
            state[index] += step
        return np.array(hydraulics.chamber_flows(c, x, state, pressure, tank)[:2])

    def slope(index, step):
        sides = [(flows(index, step) - flows(index, 0.0)) / step, (flows(index, 0.0) - flows(index, -step)) / step]
        return sides

    def is_between(value, sides, scale):
        low, high = min(sides), max(sides)
        assert low - 1e-4 * scale <= value <= high + 1e-4 * scale

    by_spool, by_line = slope(2, 1e-7), slope(None, 1.0)
    for port in range(2):
        if w['feeding'] >= 0:            # a closed spool counts with the opening that it goes to
            back = w['back_by_spool'] if port == 0 else 0.0
            is_between(w['by_spool'][port] - back, [side[port] for side in by_spool], 1e-3)
        by_pressure = slope(port, 1.0)
        own = w['by_port'][port] + w['back'] + elimination.guard_slope(c, fluid[port], fluid[port], tank)
        is_between(-own, [side[port] for side in by_pressure], 1e-9)
        by_holding = slope(4 + port, 1e-7)
        is_between(w['by_holding'][port], [side[port] for side in by_holding], 1e-3)
        if w['feeding'] == port:
            is_between(w['by_line'][port], [side[port] for side in by_line], 1e-9)


@st.composite
def axes(draw):
    b = plain_axes(1)[0]
    b['coulomb'], b['viscous'], b['slip'] = draw(drawn(100.0, 5e3)), draw(drawn(0.0, 5e3)), draw(drawn(1e-3, 1e-2))
    b['stribeck'], b['stribeck_velocity'] = draw(drawn(0.0, 2e3)), draw(drawn(5e-3, 0.1))
    b['bristle'], b['bristle_damping'] = draw(st.sampled_from([(0.0, 0.0), (8e6, 2e4)]))
    b['lower'], b['upper'] = 0.0, 0.5
    if draw(st.booleans()):
        b['braked'], b['brake_position'], b['brake_force'] = 1, 0.2, 5e3
        b['brake_stiffness'], b['brake_damping'] = 1e7, 1e5
    return b


@settings(max_examples=examples(STATES))
@given(axes(), st.one_of(drawn(-1e-3, 0.501), drawn(-1e-3, 1e-3)), st.one_of(drawn(-0.3, 0.3), drawn(-0.01, 0.01)),
       drawn(-5e-4, 5e-4))
def test_forces_of_an_axis_are_those_of_the_witness(b, q, v, z):
    lost, rate = friction.friction_of(b, v, z)
    assert (lost, rate) == pytest.approx(witness.friction(b, v, z), rel=1e-12, abs=1e-12)
    assert friction.holding_force(b, q, v) - lost == pytest.approx(witness.axis_force(b, q, v, z, 0.0)[0], rel=1e-12,
                                                                   abs=1e-9)


@settings(max_examples=examples(STATES))
@given(axes(), drawn(-1e-3, 0.501), drawn(-0.3, 0.3))
def test_slopes_of_friction_and_stops_are_their_differences(b, q, v):
    step = 1e-8
    difference = (friction.sliding_friction(b, v + step) - friction.sliding_friction(b, v - step)) / (2 * step)
    assert friction.sliding_friction_slope(b, v) == pytest.approx(difference, rel=1e-5, abs=1.0)
    k, d = friction.holding_slopes(b, q, v, q, v)
    depth = max(-q, q - 0.5)
    pushing = depth > 0.0 and 1.0 + (v if q > 0.5 else -v) > 0.0
    if abs(depth) > 1e-6 and (depth < 0.0 or pushing):
        by_position = friction.holding_force(b, q - step, v) - friction.holding_force(b, q + step, v)
        by_velocity = friction.holding_force(b, q, v - step) - friction.holding_force(b, q, v + step)
        assert k == pytest.approx(by_position / (2 * step), rel=1e-4, abs=10.0)
        assert d == pytest.approx(by_velocity / (2 * step), rel=1e-4, abs=10.0)


@pytest.mark.parametrize('v', [0.1, 0.03, 0.004, 0.0, -0.05])
def test_the_slope_of_friction_is_steep_where_it_catches_and_a_chord_where_motion_goes_on(v):
    b = plain_axes(1)[0]
    b['coulomb'] = 4000.0
    steepest, h = b['coulomb'] / b['slip'], 1e-3
    caught = friction.sliding_slope(b, v, h, -150.0, 20.0)
    assert caught <= steepest
    if abs(v) < b['slip']:
        assert caught == pytest.approx(steepest)
    end = -50.0 * (h + v / -150.0) if v * (v - 0.15) < 0.0 else v - 0.15
    chord = (friction.sliding_friction(b, end) - friction.sliding_friction(b, v)) / (end - v)
    assert friction.sliding_slope(b, v, h, -150.0, -50.0) == pytest.approx(chord)


def test_a_compensated_edge_gives_the_same_flow_at_any_load():
    c = plain_cylinder(0, 0.08, 0.045, 0.59, 3e-3, 100.0)
    c['compensated'] = 1
    flows = [hydraulics.chamber_flows(c, 0.3, np.array([p * BAR, 0, 0.5, 0, 0, 0]), 190 * BAR, 0.0)[0]
             for p in (20.0, 60.0, 100.0, 140.0)]
    assert np.ptp(flows) < 1e-3 * flows[0]
    assert flows[0] == pytest.approx(0.5 * c['gain'][0] * np.sqrt(c['margin']), rel=0.02)


def test_a_valve_that_jumps_its_dead_band_opens_with_the_command():
    c = plain_cylinder(0, 0.08, 0.045, 0.59, 3e-3, 100.0)
    c['overlap_up'], c['overlap_down'], c['jump'] = 0.05, 0.1, 1
    for c['command'] in (-1.0, -0.3, -1e-4, 0.0, 1e-4, 0.3, 1.0):
        assert hydraulics.opening(c, hydraulics.spool_target(c))[0] == pytest.approx(c['command'])


def test_a_slew_limit_above_the_rate_of_the_spool_changes_nothing_and_one_below_holds():
    """A unit step of omega = 2 pi 30 Hz, zeta = 0.707 is at most omega exp(-pi / 4) = 86 1/s fast."""
    def stepped(slew):
        c = plain_cylinder(0, 0.08, 0.045, 0.59, 3e-3, 100.0)
        c['omega'], c['zeta'], c['slew'], c['command'] = 2 * np.pi * 30, np.sqrt(0.5), slew, 1.0
        return solve_ivp(lambda t, u: hydraulics.spool_rates(c, *u), (0.0, 0.3), (0.0, 0.0), rtol=1e-9, atol=1e-9,
                         t_eval=np.linspace(0.0, 0.3, 301)).y

    free, loose, tight = stepped(1e5), stepped(100.0), stepped(10.0)
    assert free[1].max() == pytest.approx(60 * np.pi * np.exp(-np.pi / 4), rel=1e-2)
    np.testing.assert_allclose(loose, free, atol=1e-6)
    assert 9.99 < tight[1].max() <= 10.0 + 1e-6
    np.testing.assert_allclose(tight[0, 10:80], np.arange(10, 80) * 1e-2, atol=0.02)
    assert tight[0, -1] == pytest.approx(1.0, abs=1e-6)


def test_a_cushion_lets_oil_in_freely_and_out_slowly():
    c = plain_cylinder(0, 0.08, 0.045, 0.59, 3e-3, 100.0)
    c['cushion_a'] = 0.05
    out = np.array([100 * BAR, 10 * BAR, -1.0, 0, 0, 0])
    flows = [-hydraulics.chamber_flows(c, x, out, 190 * BAR, 10 * BAR)[0] for x in (0.06, 0.05, 0.025, 0.0)]
    assert flows[0] == flows[1] > flows[2] > flows[3]
    assert flows[3] == pytest.approx(c['cushion_gain'] * hydraulics.root(90 * BAR, c['linear']), rel=2e-3)
    inward = np.array([10 * BAR, 10 * BAR, 1.0, 0, 0, 0])
    assert (hydraulics.chamber_flows(c, 0.0, inward, 190 * BAR, 10 * BAR)
            == hydraulics.chamber_flows(c, 0.1, inward, 190 * BAR, 10 * BAR))


@pytest.mark.parametrize('drive', [MEASURED_FORCE, MEASURED_PRESSURE])
def test_a_measured_cylinder_acts_as_measured_and_its_oil_stands(drive):
    rig = crane()
    rig.fluid[0] = 120 * BAR, 30 * BAR, 0.5, 1.0, 0.0, 0.0
    rig.axes[1]['drive'], rig.axes[1]['effort'], rig.xd[1] = drive, 4e4, 0.05
    _, force, telemetry = rig.observe()
    c, lost = rig.cylinders[0], witness.friction(rig.axes[1], 0.05, 0.0)[0]
    expected = 4e4 if drive == MEASURED_FORCE else 120 * BAR * c['area_a'] - 30 * BAR * c['area_b'] - lost
    assert force[1] == pytest.approx(expected)
    assert telemetry[0, 2:4].tolist() == [0.0, 0.0]
    assert not rig.integrator.unpack(rig.integrator.rates(rig.row))[2][0].any()


def full_rates(rig, row):
    """All rates of a rig by the witness and the checked forward dynamics; forces of the actuators."""
    x, xd, fluid, bristles, pressure = rig.integrator.unpack(row)
    supply = rig.supply[0]
    line = pressure[0] if supply['limited'] else supply['pressure']
    fluids, taken, forces, bends = [], 0.0, [], []
    for c, oil in zip(rig.cylinders, fluid):
        rate, flow = witness.fluid_rates(c, x[c['axis']], xd[c['axis']], oil, line, supply['return_pressure'])
        fluids.append(rate)
        taken += flow
    for i, b in enumerate(rig.axes):
        k = b['cylinder']
        drive = b['effort'] if k < 0 else (rig.cylinders[k]['area_a'] * fluid[k, 0]
                                           - rig.cylinders[k]['area_b'] * fluid[k, 1])
        force, bend = witness.axis_force(b, x[i], xd[i], bristles[i], drive)
        forces.append(force)
        bends.append(bend)
    gap = (witness.pump_flow(supply, line) - taken) / supply['capacity'] if supply['limited'] else 0.0
    xdd = rig.manipulator.forward_dynamics(x, xd, forces)
    return rig.integrator.pack(xd, xdd, fluids, bends, [gap]), np.array(forces)


def disturbed(seed, lugre=False):
    """A crane in a state where everything moves, the supply limited."""
    rng, rig = np.random.default_rng(seed), crane()
    rig.supply['limited'] = 1
    rig.pressure[:] = rng.uniform(182, 188) * BAR
    rig.x[1:] = rng.uniform(0.15, 0.4, 3)
    rig.xd[:] = rng.uniform(-0.3, 0.3, 4)
    rig.fluid[:, :2] = rng.uniform(30, 150, (3, 2)) * BAR
    rig.fluid[:, 2:4] = rng.uniform(-1, 1, (3, 2)) * (0.8, 2.0)
    rig.cylinders['command'] = rig.fluid[:, 2] + rng.uniform(-0.3, 0.3, 3)
    rig.cylinders['leak'] = 1e-12
    rig.cylinders['holding'][0] = 1, 0
    rig.cylinders['holding_setting'] = rig.fluid[0, 0] + 4.0 * rig.fluid[0, 1] - 10 * BAR
    rig.fluid[0, 4] = 0.4
    if lugre:
        rig.axes['bristle'][1:], rig.axes['bristle_damping'][1:], rig.axes['stribeck_velocity'] = 8e6, 2e3, 0.0
        rig.bristles[1:] = rng.uniform(0.0, 4e-4, 3) * np.sign(rig.xd[1:])
    return rig


@pytest.mark.parametrize('seed, lugre', [(1, False), (2, False), (3, True)])
def test_all_rates_of_the_crane_are_those_of_the_witness(seed, lugre):
    rig = disturbed(seed, lugre)
    expected, forces = full_rates(rig, rig.row)
    rates = rig.integrator.rates(rig.row)
    assert rates == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert rig.observe()[1] == pytest.approx(forces)


def dense_jacobian(rig, row):
    """J (state, state) by differences of the witness, with mechanism and chamber volumes held."""
    parts = rig.integrator.unpack(np.arange(row.size))
    M, J = rig.manipulator.mass_matrix(rig.x), np.zeros((row.size, row.size))
    sizes = rig.integrator.pack(np.full(4, 1e-8), np.full(4, 1e-8), np.tile([10, 10, 1e-6, 1e-4, 1e-6, 1e-6], (3, 1)),
                                np.full(4, 1e-9), [10.0])
    for j in range(row.size):
        step = np.where(np.arange(row.size) == j, sizes, 0.0)
        sides = [full_rates(rig, row + step), full_rates(rig, row - step)]
        column = (sides[0][0] - sides[1][0]) / (2 * sizes[j])
        column[parts[1].astype(int)] = np.linalg.solve(M, (sides[0][1] - sides[1][1]) / (2 * sizes[j]))
        if j in parts[0]:
            column[parts[2].astype(int).ravel()] = 0.0
            column[-1] = 0.0
        J[:, j] = column
    return J


def first_stage(rig, h):
    """(k1 - f(u), the same by dense algebra) of a step h."""
    start = rig.row
    f, J = rig.integrator.rates(start), dense_jacobian(rig, start)
    expected = np.linalg.solve(np.eye(start.size) - GAMMA * h * J, f) - f
    rig.integrator.step_size, rig.integrator.substeps = h, 1
    assert rig.integrator.step(*rig.state, rig.xdd) == 0
    return rig.integrator.coupled.states[2] - f, expected, f


@pytest.mark.parametrize('seed, lugre', [(1, False), (2, False), (3, True), (4, True)])
def test_the_elimination_solves_the_whole_linear_system(seed, lugre):
    change, expected, f = first_stage(disturbed(seed, lugre), 1e-6)
    told = abs(expected) > 1e-7 * abs(f)
    assert change[told] == pytest.approx(expected[told], rel=1e-3)


@pytest.mark.parametrize('command', [(0.5, -0.4, 0.6), (-0.3, 0.5, -0.5)])
def test_the_elimination_couples_everything_in_a_long_step(command):
    """The same where every product in the elimination counts: oil as stiff as the step is short, all of it linear."""
    rig = crane()
    rig.supply['limited'], rig.supply['capacity'], rig.supply['droop'] = 1, 2e-18, 1e6 * BAR
    rig.pressure[:] = 140 * BAR
    rig.cylinders['linear'], rig.cylinders['bulk'], rig.cylinders['suction'] = 1e6 * BAR, 8e14, 0.0
    rig.cylinders['leak'] = 1e-13
    rig.axes['coulomb'], rig.axes['viscous'] = 0.0, 2e7
    rig.fluid[:, :2] = (80 * BAR, 60 * BAR)
    rig.fluid[:, 2] = rig.cylinders['command'] = command
    rig.xd[1:] = 0.01, -0.02, 0.03
    change, expected, f = first_stage(rig, 1e-5)
    assert abs(expected[-1]) > 0.1 * abs(f[-1])
    for part, true in zip(rig.integrator.unpack(change)[1:3], rig.integrator.unpack(expected)[1:3]):
        assert part[..., :2] == pytest.approx(true[..., :2], rel=2e-3, abs=1e-4 * abs(true).max())
    assert change[-1] == pytest.approx(expected[-1], rel=1e-3)


def test_pump_gives_no_more_than_its_flow():
    supply = plain_supply()[0]
    pressures = np.linspace(150, 200, 11) * BAR
    given_flows = [hydraulics.pump_flow(supply, p) for p in pressures]
    assert given_flows == pytest.approx([witness.pump_flow(supply, p) for p in pressures])
    assert max(given_flows) == supply['flow'] and min(given_flows) == 0.0
