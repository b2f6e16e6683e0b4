"""The linear regressor against inverse dynamics, base parameters against their own definition, inertias that exist."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.machines import URDF

import psdyn_ros
from psdyn_ros.api.batch import actuator_states
from psdyn_ros.model.errors import ActuationError, StateError, UnknownNameError
from psdyn_ros.model.mechanism.description import IDENTITY, Inertial
from psdyn_ros.model.mechanism.tree import rigid_parameters
from psdyn_ros.validation.identification.base_parameters import base_structure
from psdyn_ros.validation.identification.physical_inertia import declared_body, is_physical, unknown_body
from psdyn_ros.validation.identification.regressor import Regressor, parameters_of

MACHINES = {'hiab_xs031': 0.05, 'hiab_xs031_lift': 0.05, 'four_bar': 0.1, 'five_bar': 0.05, 'excavator': 0.02}


def loaded(name):
    return psdyn_ros.load(URDF / f'{name}.urdf')


def states(machine, reach, count=40, seed=1):
    rng = np.random.default_rng(seed)
    return (machine.initial_position + reach * rng.uniform(-1.0, 1.0, (count, machine.dof)),
            *rng.standard_normal((2, count, machine.dof)))


@pytest.mark.parametrize('name', MACHINES)
def test_it_is_inverse_dynamics_to_rounding(name):
    machine = loaded(name)
    motion = states(machine, MACHINES[name])
    regressor = Regressor(machine)
    efforts = machine.generalized_forces(*motion)
    predicted = regressor(*motion) @ regressor.declared
    assert np.abs(predicted - regressor.believed(*motion)).max() <= 1e-12 * np.abs(efforts).max()
    assert np.allclose(regressor.believed(*motion), efforts, rtol=1e-12)        # no friction is declared


def test_columns_of_a_link_are_what_a_payload_on_it_adds():
    machine = loaded('hiab_xs031')
    motion = states(machine, 0.05)
    for link in ('pillar', 'lift_barrel_link', 'tilt_rod_link', 'tilt_boom_link', 'tcp'):
        payload = Inertial(150.0, np.array([0.4, -0.2, 0.1]), np.diag([3.0, 4.0, 5.0]) + 0.3)
        laden = machine.with_payload(link, payload.mass, payload.com, payload.inertia)
        added = laden.inverse_dynamics(*motion) - machine.inverse_dynamics(*motion)
        assert Regressor(machine, [link])(*motion) @ parameters_of(payload) == pytest.approx(added, abs=1e-8)


def test_columns_at_rest_are_those_under_another_gravity():
    machine, gravity = loaded('hiab_xs031'), np.array([1.0, -0.5, -2.0])
    other = psdyn_ros.load(URDF / 'hiab_xs031.urdf', gravity=gravity)
    x, still = states(machine, 0.05)[0], np.zeros((40, machine.dof))
    regressor = Regressor(machine)
    usual = regressor(x, still, still)
    assert regressor.at_rest(x, gravity) == pytest.approx(Regressor(other)(x, still, still), abs=1e-9)
    assert (regressor(x, still, still) == usual).all()


def test_rates_and_maps_of_actuators_that_are_not_the_coordinates():
    machine = loaded('excavator')
    x, xd, xdd = states(machine, 0.02, 5)
    regressor = Regressor(machine)
    maps = regressor.maps(x)
    assert maps.shape == (5, 5, 4)
    assert regressor.rates(x, xd) == pytest.approx(np.einsum('nac,nc->na', maps, xd))
    f = machine.inverse_dynamics(x, xd, xdd)
    assert np.einsum('nac,na->nc', maps, f) == pytest.approx(regressor.believed(x, xd, xdd))


def test_rows_of_actuators_are_each_as_alone_and_open_loops_are_nan():
    machine = loaded('excavator')
    x, xd, xdd = states(machine, 0.02, 5)
    x[3] += 10.0
    positions, rates, maps = actuator_states(machine, x, xd)
    assert np.isnan(positions[3]).all() and np.isnan(rates[3]).all() and np.isnan(maps[3]).all()
    for k in (0, 1, 2, 4):
        names, q, qd, _ = machine.joint_state(x[k], xd[k])
        columns = [names.index(name) for name in machine.actuators]
        assert positions[k] == pytest.approx(q[columns], abs=1e-12) and rates[k] == pytest.approx(qd[columns])
        assert maps[k] == pytest.approx(machine.actuator_map(x[k]), abs=1e-12)
    good = [0, 1, 2, 4]
    tilted = psdyn_ros.BaseMotion(orientation=(0.1, 0.0, 0.0, 1.0))
    for base in (None, tilted):
        together = machine.inverse_dynamics(x[good], xd[good], xdd[good], base=base)
        alone = [machine.inverse_dynamics(x[k], xd[k], xdd[k], base=base) for k in good]
        assert together == pytest.approx(np.array(alone), rel=1e-12)
    with pytest.raises(StateError):
        machine.inverse_dynamics(x, xd, xdd)


def test_efforts_that_no_limits_allow_are_refused_in_rows_too():
    machine = loaded('excavator')
    x, xd, xdd = states(machine, 0.02, 3)
    machine.allocation.set_limits({'arm_cylinder': 1.0})
    with pytest.raises(ActuationError, match='arm_cylinder'):
        machine.inverse_dynamics(x, xd, xdd)
    machine.allocation.set_limits({'boom_cylinder_left': 1e3})
    efforts = machine.inverse_dynamics(x, xd, xdd)
    assert (np.abs(efforts[:, machine.actuators.index('boom_cylinder_left')]) <= 1e3 * (1 + 1e-9)).all()
    assert efforts == pytest.approx(np.array([machine.inverse_dynamics(*row) for row in zip(x, xd, xdd)]))


def test_what_has_no_columns_is_named():
    machine = loaded('hiab_xs031')
    with pytest.raises(UnknownNameError, match="'base_link' of 'hiab_xs031' does not move"):
        Regressor(machine, ['base_link'])
    with pytest.raises(UnknownNameError, match="did you mean 'tilt_boom_link'"):
        Regressor(machine, ['tilt_bom_link'])
    with pytest.raises(ActuationError, match='floats'):
        Regressor(psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True))


@pytest.mark.parametrize('name', ['hiab_xs031', 'four_bar'])
def test_efforts_tell_the_base_parameters_and_nothing_else(name):
    machine = loaded(name)
    regressor = Regressor(machine)
    structure = base_structure(regressor)
    Y = regressor(*states(machine, MACHINES[name], seed=7)).reshape(-1, len(regressor.columns))
    independent = structure.independent
    # efforts from the combinations alone
    combined = Y[:, independent] @ structure.of(regressor.declared)
    assert combined == pytest.approx(Y @ regressor.declared, rel=1e-7, abs=1e-7 * np.abs(combined).max())
    norms = np.linalg.norm(Y, axis=0)
    there = norms > 1e-9 * norms.max()
    assert np.linalg.matrix_rank(Y[:, there] / norms[there], tol=1e-8) == len(independent)
    named = ' '.join(structure.names)
    assert all(regressor.columns[k] in named for k in (*structure.independent, *structure.dependent))


def test_a_pillar_on_a_vertical_axis_tells_one_number():
    structure = base_structure(Regressor(loaded('hiab_xs031'), ['pillar']))
    assert structure.names == ('pillar iyy',) and len(structure.independent) == 1 and len(structure.dependent) == 0


# inertias that a body can have


def test_a_body_as_declared_has_the_declared_parameters():
    for link in loaded('hiab_xs031').machine.description.links.values():
        if link.inertial is None or not link.inertial.mass:
            continue
        body = declared_body(link.inertial)
        assert body.parameters(np.zeros(10)) == pytest.approx(rigid_parameters(IDENTITY, link.inertial), rel=2e-3,
                                                              abs=2e-3)
        assert is_physical(body.inertial(np.zeros(10)))


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.floats(-6.0, 6.0), min_size=10, max_size=10), st.booleans())
def test_no_numbers_lead_to_a_body_that_cannot_be(eta, payload):
    eta = np.array(eta)
    body = unknown_body([1.0, 0.2, 0.0], 300.0) if payload else declared_body(
        Inertial(40.0, np.array([0.5, 0.1, 0.0]), np.diag([1.0, 5.0, 5.5])))
    inertial = body.inertial(eta)
    if inertial.mass > 1e-6:
        assert is_physical(inertial)
    assert body.parameters(eta) == pytest.approx(parameters_of(inertial), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize('seed', range(3))
def test_derivatives_of_bodies(seed):
    body = unknown_body([1.0, 0.2, 0.0], 300.0)
    eta, step = np.random.default_rng(seed).standard_normal(10), 1e-6
    for function, exact in ((body.parameters, body.jacobian(eta)), (body.quantities, body.slopes(eta))):
        numeric = np.array([function(eta + step * unit) - function(eta - step * unit)
                            for unit in np.eye(10)]).T / (2.0 * step)
        assert exact == pytest.approx(numeric, rel=1e-6, abs=1e-6 * np.abs(numeric).max())


def test_an_inertia_that_cannot_be_becomes_the_nearest_that_can():
    impossible = Inertial(10.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    assert not is_physical(impossible)
    body = declared_body(impossible).inertial(np.zeros(10))
    assert is_physical(body) and body.mass == 10.0
    assert np.diag(body.inertia) == pytest.approx([1.0, 1.0, 3.0], abs=1.1)
