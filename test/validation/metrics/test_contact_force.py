"""The force on a link that explains what actuators give beyond their model, as far as it shows in them."""

import math

import numpy as np
import pytest
from conftest import thorough
from support.bags.recorded_motion import crane
from support.machines import URDF

import psdyn_ros
from psdyn_ros.validation.metrics.contact_force import ContactForce, outermost_link

NAN = float('nan')


@pytest.mark.parametrize('name, link', thorough([
    ('hiab_xs031', 'tcp'), ('five_bar', None), ('pkm_2pur2rpu', None), ('excavator', None), ('four_bar', None)], 2,
    several=True))
def test_a_force_on_a_link_is_found_as_far_as_it_shows(name, link, rng):
    m = psdyn_ros.load(URDF / f'{name}.urdf')
    assert link is None or outermost_link(m) == link
    link, x, still = outermost_link(m), m.initial_position, np.zeros(m.dof)
    force = rng.normal(0.0, 500.0, 3)
    excess = m.inverse_dynamics(x, still, still, wrenches={link: (force, np.zeros(3))}) \
        - m.inverse_dynamics(x, still, still)
    found = ContactForce(m, link, m.limits.effort).estimate(x, excess, np.full(len(excess), 2.0))
    hidden = found.unobservable
    assert len(hidden) == max(0, 3 - m.dof) and hidden @ hidden.T == pytest.approx(np.eye(len(hidden)))
    assert found.force + hidden.T @ (hidden @ force) == pytest.approx(force, abs=1e-6)
    assert np.isinf(found.deviation).any() == bool(len(hidden))


def test_the_deviation_of_a_force_is_that_of_many_tries(rng):
    x, sigma = crane().initial_position, np.array([20.0, 90.0, 40.0, 10.0])
    contact = ContactForce(crane(), 'tcp', crane().limits.effort)
    tries = np.array([contact.estimate(x, sigma * rng.normal(size=4), sigma).force for _ in range(400)])
    assert tries.std(axis=0) == pytest.approx(contact.estimate(x, sigma, sigma).deviation, rel=0.2)


def test_an_effort_that_is_unknown_hides_the_direction_that_it_alone_shows():
    x, still, force = crane().initial_position, np.zeros(4), np.array([200.0, -100.0, 300.0])
    excess = crane().inverse_dynamics(x, still, still, wrenches={'tcp': (force, np.zeros(3))}) \
        - crane().inverse_dynamics(x, still, still)
    contact = ContactForce(crane(), 'tcp', crane().limits.effort)
    found = contact.estimate(x, np.array([NAN, *excess[1:]]), np.ones(4))
    assert found.unobservable == pytest.approx(np.array([[0.0, 0.0, 1.0]]), abs=1e-9)    # across the booms
    assert found.force == pytest.approx([200.0, -100.0, 0.0], abs=1e-6) and math.isinf(found.deviation[2])
    assert contact.estimate(x, np.full(4, NAN), np.ones(4)) is None
