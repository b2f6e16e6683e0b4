"""Paz & Mattila: every reference number, by the package and by the independent engine."""

import numpy as np
import pytest
from support.comparison import error
from support.general_oracle import GeneralOracle
from support.machines import load, paz_machine
from support.reference import reference

PAZ = ['paz_one_loop_415kg', 'paz_four_dof_1063kg']


def joints_of(engine, *state):
    """Return position, velocity and acceleration of each joint by its name."""
    names, *values = engine.joint_state(*state)
    return dict(zip(names, np.transpose(values)))


@pytest.fixture(params=['package', 'engine'])
def make(request):
    """Return what turns a test machine into something that computes; both sides have the same methods."""
    if request.param == 'engine':
        return lambda machine: GeneralOracle(machine.xml, machine.gravity, machine.initial)
    return load


@pytest.mark.parametrize('name', PAZ)
def test_reference_trajectory(name, make):
    data, engine = reference(name), make(paz_machine(name))
    for ref in data['trajectory_inverse_dynamics']:
        comp = engine.inverse_dynamics(ref['x'], ref['xd'], ref['xdd'])
        assert error(comp, np.array(ref['f'])) < 1e-10  # the file's forces are good to 6e-11
        joints = joints_of(engine, ref['x'], ref['xd'], ref['xdd'])
        loops = [k for k, module in enumerate(data['parameters'], 1) if module['type'] == 'par']
        for k, (q, q1, _), ratios in zip(loops, ref['q_q1_q2'], ref['k1_to_k6']):
            xd, xdd = ref['xd'][k - 1], ref['xdd'][k - 1]
            k1, k2, _, k4, k5, _ = ratios
            assert error(joints[f'boom{k}'], np.array((q, k1 * xd, k4 + k1 * xdd))) < 1e-13
            assert error(joints[f'barrel{k}'], np.array((q1, k2 * xd, k5 + k2 * xdd))) < 1e-13


@pytest.mark.parametrize('name', PAZ)
def test_reference_accelerations(name, make):
    data, engine = reference(name), make(paz_machine(name))
    for ref in data['forward_dynamics']:
        comp = engine.forward_dynamics(ref['x'], ref['xd'], ref['f'])
        assert error(comp, np.array(ref['xdd'])) < 1e-13


def test_reference_recursion_quantities(make):
    """Alpha, psi, delta, M^A and p^A of the loop at t = 1 s, read off the whole machine without gravity."""
    data = reference(PAZ[0])
    machine = paz_machine(PAZ[0])
    engine = make(machine._replace(gravity=(0.0, 0.0, 0.0)))
    for ref in (value for key, value in data['intermediate_t1'].items() if key.startswith('f=')):
        x, xd = ref['x'], ref['xd']
        force = float(next(key for key, value in data['intermediate_t1'].items() if value is ref)[2:])
        assert error(engine.mass_matrix(x), [[ref['alpha']]]) < 1e-13
        assert error(engine.bias_forces(x, xd), [ref['delta']]) < 1e-13
        columns = []
        for unit in np.vstack((np.zeros(6), np.eye(6))):
            base = ((0, 0, 0, 1), np.zeros(6), unit)
            psi = engine.inverse_dynamics(x, xd, [0.0], base=base) - ref['delta']
            assert error(psi, [unit @ ref['psi']]) < 1e-12
            xdd = engine.forward_dynamics(x, xd, [force], base=base)
            columns.append(engine.base_wrench(x, xd, xdd, base=base))
        p, columns = columns[0], np.array(columns[1:])
        assert error(p, np.array(ref['p_Bc_A'])) < 1e-12
        assert error((columns - p).T, np.array(ref['M_Bc_A'])) < 1e-12


@pytest.mark.parametrize('t, force', [(0.0, 7578.789634), (2.5, 7696.612240), (7.5, 7457.042727)])
def test_published_forces_one_loop(t, force, make):
    w = 2 * np.pi / 10
    x, xd, xdd = 0.25 + 0.025 * np.sin(w * t), 0.025 * w * np.cos(w * t), -0.025 * w**2 * np.sin(w * t)
    comp = make(paz_machine(PAZ[0])).inverse_dynamics([x], [xd], [xdd])
    assert comp == pytest.approx([force], abs=1e-6)


@pytest.mark.parametrize('t, forces', [
    (0.0, (104.267261, 27960.248268, -375.836065, -1583.022428)),
    (1.0, (-208.574972, 29951.461215, 1526.446326, -1569.744205)),
    (3.0, (-354.267903, 29112.478720, 188.202433, -1542.634581))])
def test_published_forces_four_dof(t, forces, make):
    centre, amplitude = np.array((0, 0.25, 0.25, 0.5)), np.array((0.3, 0.05, 0.05, 0.1))
    w = 2 * np.pi / 10 * np.array((1, 1, 2, 2))
    x, xd = centre + amplitude * np.sin(w * t), amplitude * w * np.cos(w * t)
    comp = make(paz_machine(PAZ[1])).inverse_dynamics(x, xd, -amplitude * w**2 * np.sin(w * t))
    assert comp == pytest.approx(forces, abs=1e-6)


def test_published_accelerations(make):
    one, four = make(paz_machine(PAZ[0])), make(paz_machine(PAZ[1]))
    x, xd = [0.25], [0.025 * 2 * np.pi / 10]
    assert one.forward_dynamics(x, xd, [0.0]) == pytest.approx([-2.31149628], abs=1e-8)
    assert one.forward_dynamics(x, xd, [1000.0]) == pytest.approx([-2.00650084], abs=1e-8)
    w = 2 * np.pi / 10 * np.array((1, 1, 2, 2))
    amplitude = np.array((0.3, 0.05, 0.05, 0.1))
    x, xd = np.array((0, 0.25, 0.25, 0.5)) + amplitude * np.sin(w), amplitude * w * np.cos(w)
    assert four.forward_dynamics(x, xd, np.zeros(4)) == pytest.approx(
        [-0.01204794, -1.95437318, 1.70541313, -1.73127829], abs=1e-8)
