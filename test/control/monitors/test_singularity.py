"""The distance of a machine from the positions in which its loops lose their grip."""

import gc
import weakref
from functools import cache

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF, chain

import psdyn_ros
from psdyn_ros.control.monitors.singularity import toggle_gauge, toggle_measure

GENERAL = ['four_bar', 'five_bar', 'pkm_2pur2rpu', 'excavator']


@pytest.fixture(scope='module')
def machine():
    return cache(lambda name: psdyn_ros.load(URDF / f'{name}.urdf', allow_unphysical=True))


def lever(m, x, row, boom):
    """|dx/dq| of a boom by central differences of its angle."""
    h = 1e-6
    step = h * np.eye(m.dof)[row]
    column = m.joints.index(boom)
    return 2.0 * h / abs(m.joint_state(x + step)[1][column] - m.joint_state(x - step)[1][column])


@pytest.mark.parametrize('actuator, boom', [('lift_cylinder', 'lift_boom'), ('tilt_cylinder', 'tilt_boom')])
def test_of_a_triangle_it_is_the_lever_by_finite_differences_over_the_longest(machine, actuator, boom):
    m = machine('hiab_xs031')
    row = m.actuators.index(actuator)
    strokes = np.linspace(m.limits.lower[row], m.limits.upper[row], 400)
    levers = np.array([lever(m, np.where(np.arange(m.dof) == row, s, m.initial_position), row, boom)
                       for s in strokes])
    best = levers.max()
    other = 1.0
    for s, expected in zip(strokes[::20], levers[::20] / best):
        x = m.initial_position
        x[row] = s
        measure, name = toggle_measure(m, x)
        if name == actuator:
            assert measure == pytest.approx(expected, rel=1e-4)
        else:
            assert measure <= expected * (1.0 + 1e-4)
            other = min(other, measure)
    assert other > 0.95


def test_random_triangles_with_offsets():
    for seed in range(8):
        m = psdyn_ros.load(chain(seed, 'L').xml)
        triangle, scale = m.machine.modules[0].triangle, None
        low, high = m.machine.modules[0].assembly.reach
        for s in np.linspace(max(low, m.limits.lower[0]), min(high, m.limits.upper[0]), 14)[1:-1]:
            measure, worst = toggle_measure(m, np.array([s]))
            if worst:
                ratio = lever(m, np.array([s]), 0, triangle.boom.name) / measure
                scale = scale or ratio
                assert ratio == pytest.approx(scale, rel=1e-4) and worst == m.actuators[0]
        assert scale


def test_it_goes_to_zero_at_the_toggle_point_and_stays_there_beyond(machine):
    m = machine('hiab_xs031')
    row = m.actuators.index('lift_cylinder')
    low, high = next(module for module in m.machine.modules if module.name == 'lift_cylinder').assembly.reach
    x = m.initial_position
    measures = []
    for away in (1e-2, 1e-3, 1e-4, 1e-6, 0.0, -1e-3):
        x[row] = high - away
        measure, name = toggle_measure(m, x)
        assert name == 'lift_cylinder'
        measures.append(measure)
    assert measures[:4] == sorted(measures[:4], reverse=True)
    assert measures[3] < 3e-3 and measures[4] < 1e-6 and measures[5] == 0.0
    # the lever grows with the root of the distance
    assert measures[1] / measures[2] == pytest.approx(np.sqrt(10.0), rel=0.02)


def test_a_number_that_is_none_is_no_good_position(machine):
    m = machine('hiab_xs031')
    x = m.initial_position
    x[1] = np.nan
    measure, name = toggle_measure(m, x)
    assert (measure, name) == (0.0, 'lift_cylinder')
    assert toggle_gauge(m).rows(x[None])[0].tolist() == [0.0]


def test_rows_are_the_same_one_by_one(machine, rng):
    for name in ('hiab_xs031', 'five_bar'):
        m = machine(name)
        x = m.initial_position + rng.uniform(-0.05, 0.05, (10, m.dof))
        measures, names = toggle_gauge(m).rows(x)
        assert [(float(a), b) for a, b in zip(measures, names)] == \
            [(pytest.approx(a), b) for a, b in map(toggle_gauge(m), x)]


@pytest.mark.parametrize('name', thorough([*GENERAL], 2))
def test_of_other_loops_it_is_between_nothing_and_the_best(machine, name):
    m = machine(name)
    measure, actuator = toggle_measure(m, m.initial_position)
    assert 0.3 < measure <= 1.0
    assert actuator in m.actuators


def test_a_five_bar_that_stretches_its_legs_is_singular(machine):
    """The elbows fold onto the line between the tips: the closure Jacobian by finite differences loses its rank."""
    m = machine('five_bar')
    x, last, spread = m.initial_position, 1.0, 0.0
    while True:
        spread += 0.01
        try:
            dependent = np.array([m.joint_state(x + [spread + h, -spread])[1] for h in (-1e-6, 1e-6)])
        except psdyn_ros.PsdynError:
            break
        measure, _ = toggle_measure(m, x + [spread, -spread])
        gain = np.abs(np.diff(dependent, axis=0)).max() / 2e-6
        last = measure
    assert last < 0.15 and gain > 5.0
    assert toggle_measure(m, x + [spread + 0.1, -spread - 0.1])[0] == 0.0


def test_a_machine_without_loops_is_never_singular():
    m = psdyn_ros.load(chain(3, 'RP').xml)
    assert toggle_measure(m, m.initial_position) == (1.0, '')
    measures, names = toggle_gauge(m).rows(np.zeros((3, 2)))
    assert measures.tolist() == [1.0] * 3 and names == [''] * 3


def test_a_gauge_goes_with_its_machine():
    m = psdyn_ros.load(URDF / 'four_bar.urdf')
    toggle_measure(m, m.initial_position)
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None
