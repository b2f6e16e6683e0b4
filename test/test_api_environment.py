"""Base motion and external wrenches: bad ones, and what they must be equal to."""

import numpy as np
import pytest
from support import urdf_text as urdf
from support.machines import hiab, random_state, tree

import psdyn_ros
from psdyn_ros import BaseMotion, NonFiniteError, ShapeError, StateError, UnknownNameError

CRANE = psdyn_ros.load(hiab().xml)
STATE = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, -0.2, 0.3, 0.1], [1.0, 2.0, 3.0, 4.0]])
CALLS = ['forward_dynamics', 'inverse_dynamics', 'base_wrench']
NAN = float('nan')


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('base, error, words', [
    (BaseMotion(orientation=(0, 0, 1)), ShapeError, r'base.orientation has shape \(3,\); expected \(4,\)'),
    (BaseMotion(orientation=np.eye(3)), ShapeError, r'base.orientation has shape \(3, 3\)'),
    (BaseMotion(orientation=(0, 0, 0, 0)), StateError, 'base.orientation = .* is no rotation; .* quaternion x y z w'),
    (BaseMotion(orientation=(0, 0, 0, 1e-9)), StateError, 'base.orientation = .* is no rotation'),
    (BaseMotion(orientation=(0, 0, 0, NAN)), NonFiniteError, 'base.orientation = .* is not finite'),
    (BaseMotion(twist=(1, 2, 3)), ShapeError, r'base.twist has shape \(3,\); expected \(6,\)'),
    (BaseMotion(twist=((1, 2, 3), (4, 5, 6))), ShapeError, r'base.twist has shape \(2, 3\)'),
    (BaseMotion(twist=(1, 2, 3, 4, 5, NAN)), NonFiniteError, 'base.twist = .* is not finite'),
    (BaseMotion(acceleration=5.0), ShapeError, r'base.acceleration has shape \(\)'),
    (BaseMotion(acceleration=(0, 0, 0, 0, 0, np.inf)), NonFiniteError, 'base.acceleration = .* is not finite'),
    (BaseMotion(twist='fast'), ShapeError, 'base.twist is not an array of numbers'),
    (BaseMotion(twist=None), ShapeError, 'base.twist is not an array of numbers'),
    (5, ShapeError, r'base=5: expected a BaseMotion\(orientation, twist, acceleration\)'),
    ((1, 2, 3, 4), ShapeError, r'base=\(1, 2, 3, 4\): expected a BaseMotion'),
    ({'twist': np.zeros(6)}, ShapeError, 'base.orientation is not an array of numbers'),
], ids=lambda value: str(value)[:40])
def test_bad_base_motions(call, base, error, words):
    with pytest.raises(error, match=words):
        getattr(CRANE, call)(*STATE, base=base)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('wrenches, error, words', [
    ({'tpc': ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'tpc': no such link in 'hiab_xs031'"),
    ({'slew': ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'slew': no such link"),
    ({None: ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'None': no such link"),
    ({'tcp': (0, 0, 1, 0, 0, 0)}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': 5}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': None}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': ((0, 0), (0, 0, 0))}, ShapeError, r"force on 'tcp' has shape \(2,\); expected \(3,\)"),
    ({'tcp': ((0, 0, 0), 4.0)}, ShapeError, r"moment on 'tcp' has shape \(\)"),
    ({'tcp': ((0, 0, NAN), (0, 0, 0))}, NonFiniteError, "force on 'tcp' = .* is not finite"),
    ({'tcp': ((0, 0, 0), (0, np.inf, 0))}, NonFiniteError, "moment on 'tcp' = .* is not finite"),
    ({'tcp': ('up', 'down')}, ShapeError, "force on 'tcp' is not an array of numbers"),
    ([('tcp', (0, 0, 1), (0, 0, 0))], ShapeError, r'wrenches=.*: expected {link: \(force, moment\)}'),
    ('tcp', ShapeError, 'wrenches=.*: expected'),
    (5, ShapeError, 'wrenches=5: expected'),
], ids=lambda value: str(value)[:40])
def test_bad_wrenches(call, wrenches, error, words):
    with pytest.raises(error, match=words):
        getattr(CRANE, call)(*STATE, wrenches=wrenches)
    if call != 'base_wrench':
        with pytest.raises(error, match=words):
            getattr(CRANE, call)(*(np.tile(row, (3, 1)) for row in STATE), wrenches=wrenches)


@pytest.mark.parametrize('call', CALLS)
def test_at_rest_and_untouched_are_the_defaults(call):
    expected = getattr(CRANE, call)(*STATE)
    assert getattr(CRANE, call)(*STATE, base=BaseMotion()) == pytest.approx(expected, rel=1e-14, abs=1e-11)
    assert (getattr(CRANE, call)(*STATE, wrenches={}) == expected).all()
    nothing = {link: (np.zeros(3), np.zeros(3)) for link in CRANE.links}
    assert getattr(CRANE, call)(*STATE, wrenches=nothing) == pytest.approx(expected, rel=1e-13, abs=1e-11)


def test_a_base_motion_may_be_a_plain_tuple_of_lists(rng):
    quaternion, twist, acceleration = rng.normal(size=4), rng.normal(size=6), rng.normal(size=6)
    expected = CRANE.inverse_dynamics(*STATE, base=BaseMotion(quaternion, twist, acceleration))
    for scale in (1.0, -2.5, 1e-3):        # of any norm; q and -q are the same rotation
        plain = ((scale * quaternion).tolist(), twist.tolist(), acceleration.tolist())
        assert CRANE.inverse_dynamics(*STATE, base=plain) == pytest.approx(expected, rel=1e-12, abs=1e-10)


def test_acceleration_upwards_is_gravity(rng):
    """d'Alembert: a base that accelerates at a is a base in a field of -a."""
    machine = tree(2, 5)
    a = rng.normal(size=3)
    s = random_state(machine, rng)
    weightless = psdyn_ros.load(machine.xml, gravity=(0, 0, 0))
    for call, third in (('inverse_dynamics', s.xdd), ('forward_dynamics', s.f), ('base_wrench', s.xdd)):
        accelerated = getattr(weightless, call)(s.x, s.xd, third, base=BaseMotion(acceleration=(*a, 0, 0, 0)))
        expected = getattr(psdyn_ros.load(machine.xml, gravity=-a), call)(s.x, s.xd, third)
        assert accelerated == pytest.approx(expected, rel=1e-12, abs=1e-10)


def test_a_tilted_base_turns_gravity(rng):
    s = random_state(hiab(), rng)
    quarter = BaseMotion(orientation=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))      # about x: base y is up
    tilted = psdyn_ros.load(hiab().xml, gravity=(0, -9.81, 0))
    assert CRANE.inverse_dynamics(*s[:3], base=quarter) == pytest.approx(tilted.inverse_dynamics(*s[:3]), rel=1e-12)


def test_uniform_motion_does_nothing(rng):
    s = random_state(hiab(), rng)
    moving = BaseMotion(twist=(*rng.normal(size=3), 0, 0, 0))
    assert CRANE.forward_dynamics(s.x, s.xd, s.f, base=moving) == pytest.approx(
        CRANE.forward_dynamics(s.x, s.xd, s.f), rel=1e-10, abs=1e-10)


def test_a_turning_base_is_a_turning_slew(rng):
    """A steady turn of the base about the slewing axis adds to the velocity of the slew."""
    x, xd, xdd = random_state(hiab(), rng)[:3]
    rate = 0.7
    turned = BaseMotion(twist=(0, 0, 0, 0, 0, rate))
    faster = xd + rate * np.array([1, 0, 0, 0])
    assert CRANE.inverse_dynamics(x, xd, xdd, base=turned) == pytest.approx(
        CRANE.inverse_dynamics(x, faster, xdd), rel=1e-11, abs=1e-9)


def test_a_base_on_a_carousel(rng):
    """A base at r on a turning body: v = w x r, and its acceleration, the classical one, is that of the circle."""
    machine = tree(2, 5)
    r, w, turn = rng.normal(size=(3, 3))
    arm = '<link name="hub"/>' + urdf.joint('arm', 'fixed', 'hub', 'base_link', r, (0, 0, 0))
    mounted = psdyn_ros.load(machine.xml.replace('<link name="base_link"', arm + '<link name="base_link"', 1))
    manipulator = psdyn_ros.load(machine.xml)
    s = random_state(machine, rng)
    orientation = rng.normal(size=4)
    hub = BaseMotion(orientation, (0, 0, 0, *w), (0, 0, 0, *turn))
    base = BaseMotion(orientation, (*np.cross(w, r), *w), (*(np.cross(turn, r) + np.cross(w, np.cross(w, r))), *turn))
    assert manipulator.inverse_dynamics(*s[:3], base=base) == pytest.approx(
        mounted.inverse_dynamics(*s[:3], base=hub), rel=1e-11, abs=1e-9)
    on_base, on_hub = manipulator.base_wrench(*s[:3], base=base), mounted.base_wrench(*s[:3], base=hub)
    assert on_hub[:3] == pytest.approx(on_base[:3], rel=1e-11, abs=1e-9)
    assert on_hub[3:] == pytest.approx(on_base[3:] + np.cross(r, on_base[:3]), rel=1e-11, abs=1e-9)


def test_wrenches_do_work(rng):
    """The power of a wrench on a link is that of the efforts that it saves."""
    machine = tree(8, 6, cylinder_branches=True)
    manipulator = psdyn_ros.load(machine.xml)
    x, xd, xdd = random_state(machine, rng)[:3]
    still = manipulator.inverse_dynamics(x, xd, xdd)
    for link in manipulator.links:
        force, moment = rng.normal(size=(2, 3)) * 100
        saved = still - manipulator.inverse_dynamics(x, xd, xdd, wrenches={link: (force, moment)})
        h = 1e-6
        before, pose, after = (manipulator.link_pose(x + t * xd, link) for t in (-h, 0.0, h))
        velocity = pose[:3, :3].T @ (after - before)[:3, 3] / (2 * h)
        spin = pose[:3, :3].T @ (after - before)[:3, :3] / (2 * h)
        power = force @ velocity + moment @ (spin[2, 1], spin[0, 2], spin[1, 0])
        assert saved @ xd == pytest.approx(power, rel=1e-5, abs=1e-5)


def test_wrenches_reach_the_base(rng):
    """At rest and weightless the base receives what acts on the links, negative, at its own origin."""
    weightless = psdyn_ros.load(hiab().xml, gravity=(0, 0, 0))
    x = STATE[0]
    for link in weightless.links:
        force, moment = rng.normal(size=(2, 3))
        pose = weightless.link_pose(x, link)
        f = pose[:3, :3] @ force
        m = pose[:3, :3] @ moment + np.cross(pose[:3, 3], f)
        reaction = weightless.base_wrench(x, np.zeros(4), np.zeros(4), wrenches={link: (force, moment)})
        assert reaction == pytest.approx(-np.concatenate((f, m)), abs=1e-12)


def test_the_base_carries_the_weight():
    reaction = CRANE.base_wrench(STATE[0], np.zeros(4), np.zeros(4))
    assert reaction[:3] == pytest.approx([0, 0, 9.81 * CRANE.total_mass], abs=1e-9)
