"""What a stepped hydraulic machine must do whatever its numbers: rest, keep energy, share its pump, hold its load."""
import os

import numpy as np
import pytest
import scipy.linalg
from support import urdf_text as urdf
from support.hydraulics.hydraulic_cases import BAR, crane, excavator, plain_axes, plain_supply

import psdyn_ros
from psdyn_ros.api.hydraulics.integrator import HydraulicIntegrator
from psdyn_ros.kernels.hydraulics.records import CYLINDER, FORCE
from psdyn_ros.kernels.runtime.status import EMPTY, INFINITE, Status, decode
from psdyn_ros.model.errors import (
    ActuationError,
    NonFiniteError,
    ShapeError,
    StateError,
    TogglePointError,
    UnreachableStrokeError,
)
from psdyn_ros.simulation.offline import gap


def sign_changes(values):
    """How often each column changes its sign."""
    signs = np.sign(values)
    return (signs[1:] * signs[:-1] < 0).sum(axis=0)


def runge_kutta(rig, steps, h):
    """Rows of the state by the explicit classical method, which knows nothing of stiffness."""
    rows, rates = [rig.row], rig.integrator.rates
    for _ in range(steps):
        u = rows[-1]
        a = rates(u)
        b = rates(u + 0.5 * h * a)
        c = rates(u + 0.5 * h * b)
        rows.append(u + h / 6 * (a + 2 * b + 2 * c + rates(u + h * c)))
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize('slip', [5e-3, 1e-3])
def test_standing_still_it_neither_chatters_nor_drifts(slip):
    rig = crane()
    rig.axes['slip'] = slip
    rows, rates = [rig.x.copy()], []

    def look(_):
        rows.append(rig.x.copy())
        rates.append(rig.xd.copy())

    rig.run(10_000, look)
    assert np.ptp(rows, axis=0).max() < 5e-6
    assert abs(np.array(rates)).max() < 1e-6
    assert sign_changes(np.array(rates)).max() < 50


@pytest.mark.slow
def test_an_explicit_method_never_comes_to_rest_and_stays_finite():
    fastest = []
    for explicit in (True, False):
        rig = crane()
        rig.axes['slip'] = 1e-3
        rig.fluid[:, 0] += 0.1 * BAR
        rows = runge_kutta(rig, 1000, 5e-4) if explicit else rig.run(500)
        assert np.isfinite(rows).all()
        fastest.append(abs(rig.integrator.unpack(rows)[1][len(rows) // 2:]).max())
    assert fastest[0] > 1e-3 and fastest[1] < 1e-5


def fluid_energy(rig, row):
    """Energy [J] of chambers of constant bulk modulus, V K (exp(p / K) - 1 - p / K)."""
    x, _, fluid, _, _ = rig.integrator.unpack(row)
    position = positions(rig, x)
    total = 0.0
    for c, oil in zip(rig.cylinders, fluid):
        q, K = position[c['axis']], c['bulk']
        for p, volume in ((oil[0], c['dead_a'] + c['area_a'] * q),
                          (oil[1], c['dead_b'] + c['area_b'] * (c['stroke'] - q))):
            total += volume * K * (np.expm1(p / K) - p / K)
    return total


def positions(rig, x):
    names, position, *_ = rig.manipulator.joint_state(x)
    return [position[names.index(name)] for name in rig.manipulator.actuators]


def energies(rig, rows):
    """(N, 3) kinetic, potential and fluid energy [J]."""
    n = rig.manipulator.dof
    return np.array([(*rig.manipulator.energy(row[:n].copy(), row[n:2 * n].copy()), fluid_energy(rig, row))
                     for row in rows])


def lossless(rig):
    for name in ('coulomb', 'viscous', 'stribeck', 'bristle'):
        rig.axes[name] = 0.0
    for name in ('leak', 'suction', 'relief_gain', 'air'):
        rig.cylinders[name] = 0.0
    rig.cylinders['wall'] = rig.cylinders['hose'] = np.inf
    rig.cylinders['holding'] = 0


@pytest.mark.slow
@pytest.mark.parametrize('machine, seconds, fall', [
    (crane, 2.0, (60 * BAR, 40 * BAR, 30 * BAR)), pytest.param(excavator, 0.5, 30 * BAR, marks=pytest.mark.long)])
def test_closed_and_lossless_it_keeps_its_energy_to_second_order(machine, seconds, fall):
    drift = []
    for substeps in (1, 2, 4):
        rig = machine(substeps=substeps, change=lossless)
        rig.fluid[:, 0] -= fall
        parts = energies(rig, rig.run(round(1000 * seconds)))
        exchanged = np.ptp(parts[:, 0]) + np.ptp(parts[:, 1])
        drift.append(abs(parts.sum(axis=1) - parts[0].sum()).max() / exchanged)
    assert drift[1] < 1e-3
    assert drift[0] / drift[1] > 3.0 and drift[1] / drift[2] > 3.0


@pytest.mark.slow
@pytest.mark.parametrize('mode', [0, 1, 2])
def test_closed_cylinders_ring_at_the_frequencies_of_the_coupled_eigenproblem(mode):
    rig = crane(change=lossless)
    c, x, moved = rig.cylinders, rig.x, slice(1, None)
    v_a, v_b = c['dead_a'] + c['area_a'] * x[moved], c['dead_b'] + c['area_b'] * (c['stroke'] - x[moved])
    gravity = [(rig.manipulator.gravity_forces(x + dx) - rig.manipulator.gravity_forces(x - dx)) / 2e-6
               for dx in 1e-6 * np.eye(4)]
    K = np.diag(c['bulk'] * (c['area_a']**2 / v_a + c['area_b']**2 / v_b)) + np.transpose(gravity)[moved, moved]
    M = rig.manipulator.mass_matrix(x)[moved, moved]
    squares, shapes = scipy.linalg.eigh(K, M)
    frequency = np.sqrt(squares[mode]) / (2 * np.pi)
    assert (1.3, 3.8, 19.0)[mode] < frequency < (2.0, 4.5, 22.0)[mode]
    push = 1e-5 * shapes[:, mode] / abs(shapes[:, mode]).max()
    x[moved] += push
    rig.fluid[:, 0] -= c['bulk'] * c['area_a'] / v_a * push
    rig.fluid[:, 1] += c['bulk'] * c['area_b'] / v_b * push
    rows = rig.run(round(4000 / frequency))
    swing = (rows[:, moved.start:4] - rows[:, moved.start:4].mean(axis=0)) @ M @ shapes[:, mode]
    k = np.flatnonzero((swing[1:] > 0) & (swing[:-1] <= 0))
    crossings = 1e-3 * (k - swing[k] / (swing[k + 1] - swing[k]))
    assert np.diff(crossings).mean() == pytest.approx(1.0 / frequency, rel=0.01)


def test_stored_energy_grows_no_faster_than_ports_feed_it():
    rig = crane()
    rig.cylinders['command'] = 0.5, -0.3, 0.6
    powers, feeding = [], []

    def look(k):
        if k == 300:
            rig.cylinders['command'] = -0.4, 0.5, -0.8
        _, _, telemetry = rig.observe()
        powers.append([sum(K * np.expm1(row[port] / K) * row[2 + port] for row, K in zip(
            telemetry, rig.cylinders['bulk'])) for port in (0, 1)])
        feeding.append(abs(telemetry[:, 2:4]).max())

    rows = rig.run(600, look)
    look(-1)
    energy = energies(rig, rows).sum(axis=1)
    powers = np.sum(powers, axis=1)
    work = np.concatenate(([0.0], np.cumsum(0.5e-3 * (powers[1:] + powers[:-1]))))
    surplus = energy - energy[0] - work
    assert max(feeding) > 1e-4 and np.ptp(energy) > 100.0
    # friction only takes
    assert np.diff(surplus).max() < 1e-3 * np.ptp(energy)
    assert surplus[-1] < -10.0


def test_cylinders_share_what_the_pump_gives():
    alone = []
    for share in (None, 0, 1, 2):
        rig = crane()
        rig.supply['limited'], rig.supply['flow'] = 1, 55.0 / 60e3
        rig.cylinders['command'] = 0.5 if share is None else np.where(np.arange(3) == share, 0.5, 0.0)
        used = []

        def look(_, rig=rig, used=used):
            used.append(rig.observe()[2][:, 2].copy())

        rig.run(500, look)
        fed = used[-1]
        if share is not None:
            alone.append(fed[share])
            continue
        together, flow = fed, rig.supply['flow'][0]
        assert fed.min() > 0.05 * flow and fed.sum() == pytest.approx(flow, rel=0.02)
        # what was taken is what the pump gave at most, and what the line had in store
        store = rig.supply['capacity'][0] * (rig.supply['pressure'][0] - rig.pressure[0])
        assert 1e-3 * np.sum(used) < 500e-3 * flow + store + 1e-6
    assert (together < alone).all()


def test_an_unlimited_supply_says_its_setting():
    rig = crane()
    rig.pressure[:] = 0.0
    rig.run(1)
    assert rig.pressure[0] == rig.supply['pressure'][0]


@pytest.mark.parametrize('valve', [False, True])
def test_a_load_holding_valve_holds_though_the_spool_is_stuck_open(valve):
    rig = crane((0.0, 0.3, 0.2, 0.5))
    lift = rig.cylinders[0:1]
    lift['holding'][:, 0] = valve
    lift['holding_setting'] = 200 * BAR
    lift['stuck'] = 1
    rig.fluid[0, 2] = -0.5
    rig.supply['pressure'] = rig.supply['return_pressure']      # the pump stands
    rig.fluid[0, 1] = 10 * BAR
    load = rig.manipulator.gravity_forces(rig.x)[1]
    rig.fluid[0, 0] = (load + rig.fluid[0, 1] * lift['area_b'][0]) / lift['area_a'][0]
    rows = rig.run(1000)
    fallen = rows[0, 1] - rows[-1, 1]
    assert fallen < 1e-4 if valve else fallen > 0.02
    if valve:
        # piloted from the other side it lets the load down
        rig.supply['pressure'] = 190 * BAR
        assert rows[-1, 1] - rig.run(1000)[-1, 1] > 0.02


@pytest.mark.slow
def test_bristles_give_way_elastically_below_the_breakaway_force_and_slide_above_it():
    rig = crane()
    axis, sigma = 3, 8e6
    rig.axes['drive'] = FORCE
    rig.axes['effort'] = rig.manipulator.gravity_forces(rig.x)
    rig.axes['bristle'][1:], rig.axes['bristle_damping'][1:], rig.axes['stribeck_velocity'] = sigma, 5e4, 0.05
    start, hold, reach = rig.x[axis], rig.axes['effort'][axis], 4000.0 / sigma

    def load(k):
        rig.axes['effort'][axis] = hold + min(2000.0, 4.0 * k)

    # the law in closed form: dz/dx = 1 - z / reach forwards, 1 + z / reach backwards
    rig.run(1000, load)
    assert rig.bristles[axis] == pytest.approx(0.5 * reach, rel=0.02)
    assert rig.x[axis] - start == pytest.approx(reach * np.log(2.0), rel=0.05)
    before = rig.x[axis]
    rig.run(2000)
    assert abs(rig.x[axis] - before) < 2e-6     # it creeps no further
    rig.run(1000, lambda k: load(500 - k if k < 500 else 0))
    assert rig.x[axis] - before == pytest.approx(-reach * np.log(1.5), rel=0.05)
    rig.axes['effort'][axis] = hold + 6000.0
    rig.run(300)
    assert rig.x[axis] - start > 0.02
    assert rig.bristles[axis] == pytest.approx(reach, rel=0.05)


@pytest.mark.long
@pytest.mark.slow
def test_loops_stay_closed_and_memory_flat_in_a_long_run():
    # an hour: PSDYN_SECONDS=3600
    rig = crane()
    step, state, xdd = rig.integrator.step, rig.state, rig.xdd
    sizes, worst = [], 0.0
    closures = rig.manipulator.machine.description.closures.values()
    for k in range(int(os.environ.get('PSDYN_SECONDS', 60))):
        rig.cylinders['command'] = 0.3 * np.sin(0.7 * k + np.arange(3))
        for _ in range(1000):
            assert step(*state, xdd) == 0
        sizes.append(resident_pages())
        worst = max(worst, *(gap(rig.manipulator, rig.x, closure) for closure in closures))
    assert np.ptp(rig.x) > 0.1 and worst <= 1e-12
    assert (sizes[-1] - sizes[10]) * os.sysconf('SC_PAGESIZE') < 1 << 20


def resident_pages():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1])


@pytest.mark.long
@pytest.mark.slow
def test_the_excavator_rests_and_its_twin_cylinders_share_alike():
    rig = excavator()
    rows = rig.run(1000)
    assert np.ptp(rows[:, :4], axis=0).max() < 2e-5
    rig.cylinders['command'] = 0.4, 0.4, -0.2, 0.2
    rig.run(500)
    _, force, _ = rig.observe()
    assert abs(rig.xd[1:]).min() > 0.01
    assert force[1] == pytest.approx(force[2], rel=1e-9)
    worst = max(gap(rig.manipulator, rig.x, closure)
                for closure in rig.manipulator.machine.description.closures.values())
    assert worst <= 1e-12


def test_external_wrenches_and_base_motion_act():
    rig = crane()
    env = np.zeros((2 + 3 * len(rig.manipulator.machine.modules), 6))
    env[:2] = rig.manipulator.environment(rig.x)
    rig.integrator.set_environment(env)
    same = rig.observe()[0].copy()
    env[1, 2] += 2.0
    rig.integrator.set_environment(env)
    assert abs(rig.observe()[0] - same).max() > 0.1
    with pytest.raises(ShapeError, match=r'\(2, 6\)'):
        rig.integrator.set_environment(np.zeros((3, 6)))
    with pytest.raises(NonFiniteError):
        rig.integrator.set_environment(np.full((2, 6), np.nan))


def test_divergence_is_told_and_the_last_good_state_kept():
    rig = crane()
    rig.axes['drive'][3], rig.axes['effort'][3] = FORCE, np.inf
    before = rig.row
    status = rig.integrator.step(*rig.state, rig.xdd)
    assert decode(status).code == INFINITE and rig.row.tolist() == before.tolist()
    assert isinstance(rig.integrator.error(status, rig.x), NonFiniteError)


def test_a_loop_that_comes_to_its_toggle_is_told():
    rig = crane((0.0, 0.55, 0.2, 0.2))
    rig.axes['upper'][1] = np.inf
    rig.axes['drive'] = FORCE
    rig.xd[1] = 1.0
    with pytest.raises((TogglePointError, UnreachableStrokeError), match='lift_cylinder'):
        rig.run(1000)
    assert 0.55 < rig.x[1] < 0.5533


def test_a_chamber_without_volume_is_told():
    rig = crane()
    rig.axes['lower'][3] = -np.inf
    rig.cylinders['dead_a'][2] = 1e-6
    rig.x[3] = -1e-3
    status = rig.integrator.step(*rig.state, rig.xdd)
    assert decode(status) == Status(EMPTY, 2)
    error = rig.integrator.error(status, rig.x)
    assert isinstance(error, StateError) and "'telescope'" in str(error)


def test_what_does_not_fit_is_refused():
    rig = crane()
    with pytest.raises(ShapeError, match='supply_pressure'):
        rig.integrator.step(rig.x, rig.xd, rig.fluid, rig.bristles, rig.pressure[0], rig.xdd)
    with pytest.raises(ShapeError):
        rig.integrator.step(rig.x.tolist(), *rig.state[1:], rig.xdd)
    with pytest.raises(ShapeError):
        rig.integrator.observe(*rig.state, rig.xdd, rig.force, rig.telemetry[:2])
    with pytest.raises(ShapeError, match='axes has 3 records'):
        HydraulicIntegrator(rig.manipulator, rig.axes[:3].copy(), rig.cylinders, rig.supply, 1e-3)
    with pytest.raises(ShapeError, match='supply'):
        HydraulicIntegrator(rig.manipulator, rig.axes, rig.cylinders, rig.supply[0], 1e-3)
    wrong = rig.cylinders.copy()
    wrong['axis'][0] = 2
    with pytest.raises(ShapeError, match='cylinder 0'):
        HydraulicIntegrator(rig.manipulator, rig.axes, wrong, rig.supply, 1e-3)
    with pytest.raises(StateError, match='substeps'):
        HydraulicIntegrator(rig.manipulator, rig.axes, rig.cylinders, rig.supply, 1e-3, 0)
    with pytest.raises(NonFiniteError):
        rig.integrator.rates(np.full(rig.integrator.state_size, np.nan))


def test_a_floating_base_is_refused():
    machine = psdyn_ros.load(urdf.robot('body', [
        urdf.link('world'), urdf.link('hull', 4.0, (0, 0, 0), np.eye(3)),
        urdf.joint('free', 'floating', 'world', 'hull', (0, 0, 0), (0, 0, 0))]), actuated=[])
    with pytest.raises(ActuationError, match='floating'):
        HydraulicIntegrator(machine, plain_axes(0), np.zeros(0, CYLINDER), plain_supply(), 1e-3)
