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
