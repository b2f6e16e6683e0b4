"""Triangles in every attitude and handedness against the independent engine: dynamics, joints, poses, energy."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.comparison import error
from support.machines import random_state
from support.one_loop import edit, one_loop
from support.witnesses.general_oracle import GeneralOracle

import psdyn_ros

LOSSY = ((120, 40), (30, 20), (10, 5), (8, 4))
NONE = (None,) * 4


def both(options):
    """Return machine, manipulator and oracle; the oracle reads the same joints in words that Pinocchio takes."""
    machine, plain = one_loop(**options), {**options, 'turning': 'revolute', 'pin': 'revolute'}
    return machine, psdyn_ros.load(machine.xml), GeneralOracle(one_loop(**plain).xml)


def check(options, rng):
    machine, manipulator, oracle = both(options)
    s = random_state(machine, rng)
    # of one actuator, inertia and weight may cancel: each rounds by itself
    parts = 1 + abs(oracle.mass_matrix(s.x)[0] @ s.xdd) + abs(oracle.bias_forces(s.x, s.xd)[0])
    assert abs(manipulator.inverse_dynamics(*s[:3]) - oracle.inverse_dynamics(*s[:3])) < 1e-12 * parts
    assert error(manipulator.forward_dynamics(s.x, s.xd, s.f), oracle.forward_dynamics(s.x, s.xd, s.f)) < 1e-12
    assert error(np.array(manipulator.energy(s.x, s.xd)), np.array(oracle.energy(s.x, s.xd))) < 1e-12
    names, *computed = manipulator.joint_state(*s[:3])
    others, *reference = oracle.joint_state(*s[:3])
    order = [names.index(name) for name in others]
    for ours, theirs in zip(computed, reference):
        assert error(ours[order], theirs) < 1e-12
    for link in manipulator.links:
        assert error(manipulator.link_pose(s.x, link), oracle.link_pose(s.x, link)) < 1e-12


@pytest.mark.parametrize('rod_sign', [1, -1])
@pytest.mark.parametrize('options', [{}, {'e': 0.15}, {'turning': 'continuous'}, {'pin': 'spherical'}], ids=str)
def test_only_what_is_unusual_is_warned_of(options, rod_sign):
    warnings = psdyn_ros.load(one_loop(rod_sign=rod_sign, **options).xml).machine.warnings
    assert len(warnings) == (rod_sign == -1)
    assert all("a positive force on 'cylinder' retracts" in warning for warning in warnings)


signs = st.sampled_from((-1, 1))
SIDES = {'L': 1.1, 'L1': 0.45, 'e': 0.0, 'x0': 0.9}
PLAIN = dict(mode=-1, boom_sign=1, barrel_sign=1, rod_sign=1, eye_sign=1, swapped=False, pin='revolute',
             turning='revolute', losses=NONE, seed=1)
REVERSED = PLAIN | dict(mode=1, boom_sign=-1, barrel_sign=-1, rod_sign=-1, eye_sign=-1, losses=LOSSY)


@example(**SIDES, **PLAIN)
@example(**SIDES, **REVERSED)
@example(**SIDES | {'e': 0.68, 'x0': 0.4}, **PLAIN)
@example(**SIDES | {'L': 0.8, 'L1': 0.8}, **PLAIN | {'turning': 'continuous'})
@example(**SIDES | {'L': 0.4, 'L1': 1.2, 'e': 0.3}, **REVERSED | {'swapped': True, 'pin': 'spherical'})
@given(L=st.floats(0.3, 1.5), L1=st.floats(0.3, 1.5), e=st.floats(-0.2, 0.2), x0=st.floats(-1, 2), mode=signs,
       boom_sign=signs, barrel_sign=signs, rod_sign=signs, eye_sign=signs, swapped=st.booleans(),
       pin=st.sampled_from(('revolute', 'spherical')), turning=st.sampled_from(('revolute', 'continuous')),
       losses=st.sampled_from((NONE, LOSSY)), seed=st.integers(0, 2**32 - 1))
def test_any_triangle_agrees_with_the_engine(L, L1, e, x0, seed, **options):
    """Offsets e put the rod eye off the stroke axis through the barrel pin."""
    stroke = np.sqrt(L**2 + L1**2 - e**2) - x0        # the boom stands across
    check(dict(L=L, L1=L1, e=e, x0=x0, stroke=stroke, **options), np.random.default_rng(seed))


@pytest.mark.parametrize('e', [0.0, 0.3, 0.68])
def test_closure_over_the_whole_stroke(e):
    """1e-14 m between rod eye and boom eye."""
    machine = one_loop(e=e, x0=0.4)
    manipulator = psdyn_ros.load(machine.xml)
    low, high = manipulator.machine.modules[0].assembly.reach
    for x in np.linspace(low + 1e-6, high - 1e-6, 101):
        rod, boom = manipulator.link_pose([x], 'rod_link'), manipulator.link_pose([x], 'boom_link')
        assert np.linalg.norm(rod @ (0.4, e, 0.02, 1.0) - boom @ (0.45, 0.0, -0.03, 1.0)) < 1e-14


@pytest.mark.parametrize('rod_sign', [-1, 1])
@pytest.mark.parametrize('e', [0.0, 0.3])
def test_reach_ends_at_the_toggle_points(e, rod_sign):
    manipulator = psdyn_ros.load(one_loop(e=e, rod_sign=rod_sign).xml)
    low, high = manipulator.machine.modules[0].assembly.reach
    ends = [np.sqrt(length**2 - e**2) - 0.9 for length in (1.1 - 0.45, 1.1 + 0.45)]
    assert (low, high) == pytest.approx(tuple(sorted(rod_sign * end for end in ends)))
    for within in (low + 1e-6, high - 1e-6):
        assert np.isfinite(manipulator.gravity_forces([within]))
    for beyond in (low - 1e-6, high + 1e-6):
        with pytest.raises(psdyn_ros.UnreachableStrokeError):
            manipulator.gravity_forces([beyond])


def test_an_offset_beyond_the_difference_of_the_sides_never_folds_flat():
    # the stroke axis passes outside the smallest circle, so that the rod may pass the barrel pin: x + x0 = 0
    manipulator = psdyn_ros.load(one_loop(e=0.68, x0=0.4).xml)
    assert manipulator.machine.modules[0].assembly.reach[0] == -0.4


def test_a_limit_on_one_side_only_chooses_the_side_of_the_barrel_pin():
    """A rod eye may stand on either side of the barrel pin; the limits of the rod say on which."""
    through = one_loop(x0=0.0, stroke=1.2, rod_sign=-1)
    assert psdyn_ros.load(through.xml).machine.modules[0].assembly.side == -1
    unlimited = edit(through.xml, (f'lower="{through.span["cylinder"][0]!r}"', 'lower="-9.0"'),
                     (f'upper="{through.span["cylinder"][1]!r}"', 'upper="9.0"'))
    manipulator = psdyn_ros.load(unlimited)
    s = [-1.3], [0.2], [0.4]
    assert error(manipulator.inverse_dynamics(*s), GeneralOracle(through.xml).inverse_dynamics(*s)) < 1e-12


@pytest.mark.parametrize('rod_sign', [1, -1])
@pytest.mark.parametrize('joint, half', [('boom', 0.05), ('barrel', 0.004)])
def test_limits_of_boom_and_barrel_bound_the_stroke(joint, half, rod_sign):
    start = one_loop(rod_sign=rod_sign).initial
    limits = {joint: (start[joint] - half, start[joint] + half)}
    m = psdyn_ros.load(one_loop(rod_sign=rod_sign, limits=limits).xml)
    warning, = (text for text in m.machine.warnings if 'narrowed' in text)
    assert "joint 'cylinder' (line " in warning and "by the limits of 'boom' and 'barrel'" in warning
    low, high = m.limits.lower[0], m.limits.upper[0]
    assert low < start['cylinder'] < high
    reached = m.joint_state(np.linspace(low, high, 50)[:, None])[1][:, m.joints.index(joint)] - start[joint]
    assert abs(reached).max() == pytest.approx(half, abs=2e-6)
    assert abs(m.joint_state(m.random_positions(50, 1))[1][:, m.joints.index(joint)] - start[joint]).max() < half + 2e-6


def test_start_beyond_a_limit_of_the_boom_is_refused():
    boom = one_loop().initial['boom']
    with pytest.raises(psdyn_ros.ModelError, match="initial position of 'cylinder' .within the limits of 'boom' and"):
        psdyn_ros.load(one_loop(initial=('cylinder', 'barrel'), limits={'boom': (boom + 0.1, boom + 0.3)}).xml)
