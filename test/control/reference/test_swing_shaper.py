"""Input shapers: what they leave of a swing, shaped curves beside delayed samples, hanging loads that come to rest."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.api.load import load
from psdyn_ros.control import ControllerConfig, Waypoints, assemble, follow
from psdyn_ros.control.laws.payload_model import LoadModel
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.swing_shaper import EI, TOLERATED, ZV, ZVD, SwingShaping, combined, shaped, shaper
from psdyn_ros.control.reference.trajectory import UnreachableError, cubic_curve
from psdyn_ros.model.errors import UnknownNameError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.plant import Plant

W, ZETA = 2.3, 0.01
URDF, SAFETY = find_machine('loader_crane'), find_config('loader_crane_safety.yaml')
SECONDS = 2.0


def left(one, frequency=W, damping=ZETA):
    """Swing that impulses with these shares leave, as a share of that of a single one at the time of the last."""
    pole = frequency * (-damping + 1j * np.sqrt(1.0 - damping**2))
    return abs(np.sum(one.shares * np.exp(-pole * one.delays))) * np.exp(-damping * frequency * one.delays[-1])


@pytest.mark.parametrize('kind', [ZV, ZVD])
def test_zv_and_zvd_leave_no_swing(kind):
    one = shaper(kind, W, ZETA)
    assert one.shares.sum() == pytest.approx(1.0) and (one.shares > 0.0).all() and one.delays[0] == 0.0
    assert left(one) < 1e-12


def test_zvd_does_not_feel_a_small_error_of_the_frequency():
    off = 0.02
    assert left(shaper(ZV, W, ZETA), W * (1.0 + off)) > 0.02
    assert left(shaper(ZVD, W, ZETA), W * (1.0 + off)) < 0.002


def test_ei_leaves_what_is_tolerated_within_a_wider_band():
    one = shaper(EI, W)
    assert left(one, W, 0.0) == pytest.approx(TOLERATED)
    band = W * np.linspace(0.81, 1.19, 50)
    assert max(left(one, w, 0.0) for w in band) <= TOLERATED * 1.01
    assert max(left(shaper(ZVD, W), w, 0.0) for w in band) > 1.5 * TOLERATED


def test_two_modes_need_two_shapers():
    both = combined(shaper(ZVD, W), shaper(ZVD, 1.7 * W))
    assert both.shares.sum() == pytest.approx(1.0) and (np.diff(both.delays) >= 0.0).all()
    assert left(both, W, 0.0) < 1e-12 and left(both, 1.7 * W, 0.0) < 1e-12


def test_modes_that_swing_alike_share_one_shaper():
    found = SwingShaping(lambda x: (np.array((W, 1.01 * W)), np.array((0.0, 0.0))))(None)
    assert found.shares.size == 3 and left(found, 1.005 * W, 0.0) < 1e-12
    assert SwingShaping(lambda x: ((W, 2.0 * W), (0.0, 0.0)))(None).shares.size == 9
    assert SwingShaping(lambda x: ((W,), (0.9,)))(None) is None       # it does not swing
    assert SwingShaping(lambda x: ((W,), (0.0,)), 'none')(None) is None


def test_unknown_shaper_is_an_error():
    with pytest.raises(UnknownNameError, match="swing_shaper 'zdv'; did you mean 'zv"):
        SwingShaping(None, 'zdv')
    with pytest.raises(UnknownNameError, match="shaper 'none'"):
        shaper('none', W)


def test_shaped_curve_is_the_sum_of_delayed_ones():
    rng = np.random.default_rng(0)
    curve = cubic_curve(np.array((0.0, 0.7, 1.1, 2.5)), rng.standard_normal((4, 3)), np.zeros(3))
    one = shaper(ZVD, W, 0.1)
    found, segments = shaped(curve, one)
    assert found.end == pytest.approx(2.5 + one.delays[-1]) and segments[0] == 0 and segments[-1] == 2
    for t in np.concatenate((rng.uniform(0.0, found.end + 1.0, 200), found.times)):
        expected = np.zeros((3, 3))
        for share, delay in zip(one.shares, one.delays):
            moved = t - delay
            part = np.array(curve.sample(moved))
            part[1:] *= 0.0 <= moved < curve.end
            expected += share * part
        sample = found.sample(t)
        np.testing.assert_allclose(sample[:2], expected[:2], atol=1e-9)


# references


@cache
def config():
    return ControllerConfig.from_files(URDF, safety=SAFETY)


def reference_motion():
    m = config().machine.driven_machine
    reference = ReferenceMotion(m)
    reference.shaping = SwingShaping(LoadModel(config().machine).passive.modes)
    reference.hold(m.initial_position)
    return m, reference


def test_motion_from_rest_is_shaped_and_one_in_motion_is_not():
    m, reference = reference_motion()
    zero, goal = np.zeros((2, 4)), m.initial_position + (0.3, 0.0, 0.0, 0.0)
    reference.follow(Waypoints(m.coordinates, [0.0, 1.0], [m.initial_position, goal], zero, zero), 0.0)
    period = 2.0 * np.pi / 2.273
    assert reference.end == pytest.approx(1.0 + period, rel=0.01)
    reference.sample(0.5)
    reference.follow(Waypoints(m.coordinates, [2.0], [m.initial_position], zero[:1], zero[:1]), 0.5)
    assert reference.end == pytest.approx(2.5)


def test_refusal_of_a_shaped_motion_names_the_point_that_came():
    m, reference = reference_motion()
    x, zero = m.initial_position, np.zeros((3, 4))
    points = [x, x + (0.1, 0.0, 0.0, 0.0), x + (0.1, 0.0, 0.0, 0.7)]
    with pytest.raises(UnreachableError, match='point 2: on the way to it, at 2.000 s, the trajectory') as error:
        reference.follow(Waypoints(m.coordinates, [0.0, 1.0, 2.0], points, zero, zero), 0.0)
    assert error.value.point == 2


# loads


@cache
def residual(kind, length=1.0):
    """Largest angle [rad] of the load from the vertical after a motion; length: share of the rope in the model."""
    m, text = config().machine, Path(URDF).read_text()
    for old in ('0 -1.464286 0', '0 -1.65 0'):
        assert f'xyz="{old}"' in text
        text = text.replace(f'xyz="{old}"', f'xyz="0 {length * float(old.split()[1])} 0"')
    c = replace(config(), machine=load(text), swing_shaper=kind, passive_states='measured', swing_damping=0.0)
    plant, zero = Plant(m, period=c.period, command_timeout=0.02), np.zeros((2, 4))
    start = m.initial_position[:4]
    goal = start + (0.4, 0.1, -0.1, 0.3)
    record = follow(assemble(c), plant, Waypoints(m.coordinates[:4], [0.0, SECONDS], [start, goal], zero, zero),
                    SECONDS + 7.0)
    ended = record.x[record.time > SECONDS + 3.2]
    assert record.reasons == () and np.abs(ended[:, :4] - goal).max() < 2e-3
    down = [m.link_pose(x, 'hook')[2, 1] for x in ended[::10]]      # cosine of that angle
    return float(np.arccos(np.clip(down, -1.0, 1.0)).max())


@pytest.mark.parametrize('kind, share', thorough([('zvd', 0.05), ('ei', 0.07)], 1, several=True))
def test_shaped_motion_leaves_a_twentieth_of_the_swing(kind, share):
    unshaped = residual('none')
    assert unshaped > 0.2
    assert residual(kind) < share * unshaped


@pytest.mark.long
@pytest.mark.parametrize('length', [0.8, 1.2])
def test_wrong_length_leaves_a_fifth_of_the_swing_at_most(length):
    assert residual('zvd', length) < 0.2 * residual('none')


def test_modes_are_those_of_the_linearization():
    m = config().machine
    passive = LoadModel(m).passive
    x = m.initial_position + (0.5, 0.05, 0.1, 0.2, 0.0, 0.0)
    frequencies, ratios = passive.modes(x[:4])
    values = m.equilibrium(x, fixed=m.coordinates[:4]).eigenvalues
    expected = values[values.imag > 0.0]
    np.testing.assert_allclose(np.sort(frequencies), np.sort(abs(expected)), rtol=1e-4)
    np.testing.assert_allclose(np.sort(ratios), np.sort(-expected.real / abs(expected)), rtol=1e-3)
