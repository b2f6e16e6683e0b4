"""Gains of laws on valves change on a ramp, and only to what the machine bears."""

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros import ModelError
from psdyn_ros.control import ClosedLoop, State, assemble
from psdyn_ros.control.laws.base import RAMP
from psdyn_ros.control.laws.gains import error_limits
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.studies import judgement

CASES = {judgement.VALVES: ('force_gain', 'flow_stiffness'), judgement.PID: ('proportional',)}
INTEGRAL = {judgement.VALVES: 'flow_integral', judgement.PID: 'integral'}


@pytest.mark.parametrize('law', CASES)
def test_gains_of_a_running_law_change_on_a_ramp(law):
    loop = judgement.closed_loop(law)
    control, name = loop.core.law, CASES[law][-1]
    before = control._law['flow_stiffness'].copy()
    control.set_gains(replace(control.gains, **{name: 0.5 * getattr(control.gains, name)}))
    assert control._law['flow_stiffness'] == pytest.approx(before)
    loop.run(0.5 * RAMP)
    assert control._law['flow_stiffness'] == pytest.approx(0.75 * before, rel=0.02)
    loop.run(0.6 * RAMP)
    assert control._law['flow_stiffness'] == pytest.approx(0.5 * before)
    assert getattr(control.gains, name) == pytest.approx(control._law['flow_stiffness'])


def test_the_integral_of_a_law_at_force_level_does_not_jump_with_its_gain():
    config = judgement.configuration(judgement.FORCES, 500.0)
    loaded = config.machine.with_payload('tcp', 25.0, np.zeros(3), np.eye(3))      # which the law does not know
    loop = ClosedLoop(assemble(config), Plant(loaded, period=config.period, command_timeout=0.02)).start()
    control = loop.core.law
    loop.run(3.0)
    held, period = loop.plant.x.copy(), loop.period
    control.set_gains(replace(control.gains, i=0.5 * control.gains.i))
    record = loop.run(2.0).recording()
    steps = np.abs(np.diff(record.command[record.time > 3.0 - period], axis=0))
    assert steps.max() < 20.0       # N; at once it is a kilonewton
    assert np.abs(record.x[record.time > 3.0] - held).max() < 1e-3
    assert loop.core.states.state is State.HOLD
    np.testing.assert_allclose(control._law.gains[2], control.gains.i)


@pytest.mark.parametrize('law', CASES)
def test_gains_beyond_what_the_machine_bears_are_refused_with_the_limit(law):
    control = judgement.closed_loop(law).core.law
    assert control.gains_rejection(control.gains) == ''
    for name in CASES[law]:
        value = getattr(control.gains, name).copy()
        value[1] *= 10.0
        reason = control.gains_rejection(replace(control.gains, **{name: value}))
        assert reason.startswith(f'gains.lift_cylinder.{name} ') and 'at most' in reason
        value[1] = float(reason.split()[-1]) * 0.999
        assert control.gains_rejection(replace(control.gains, **{name: value})) == ''
    integral = getattr(control.gains, INTEGRAL[law]) * 10.0
    assert 'at most' in control.gains_rejection(replace(control.gains, **{INTEGRAL[law]: integral}))


HIGH = {judgement.VALVES: (('inertia', 1e9), ('stiffness', 1e5), ('damping', 1e4), ('integral', 1e6),
                           ('flow_decoupling', 1.0)),
        judgement.PID: (),
        judgement.FORCES: (('p', 1e5), ('d', 1e3), ('i', 1e7))}
OF_SLEW = {judgement.VALVES: ('stiffness', 'damping', 'integral'), judgement.PID: (
    'stiffness', 'damping', 'force_integral')}     # which is at force level


@pytest.mark.parametrize('law', HIGH)
def test_no_gain_goes_as_far_as_its_range_where_the_others_leave_less(law):
    control = judgement.closed_loop(law).core.law

    def reason(name, value, row=1):
        values = getattr(control.gains, name).copy()
        values[row] = value
        return control.gains_rejection(replace(control.gains, **{name: values}))

    given = [(name, high, 1) for name, high in HIGH[law]] + [(name, 1e6, 0) for name in OF_SLEW.get(law, ())]
    for name, high, row in given:
        why = reason(name, high, row)
        of_it = f"gains.{('slew', 'lift_cylinder')[row]}.{name} "
        assert why.startswith(f'{of_it}{high:.4g} is more than lag'), why
        most = float(why.split()[-1])
        # at the limit of p no integral is left
        assert not reason(name, 0.999 * most, row).startswith(of_it), name
        assert reason(name, 1.001 * most, row).startswith(of_it), name
    for name in {judgement.VALVES: ('error_filter', 'pressure_filter')}.get(law, ()):
        why = reason(name, 1.0)
        assert why.startswith(f'gains.lift_cylinder.{name} 1 is too slow for the other gains: at least ')
        assert reason(name, 1.001 * float(why.split()[-1])) == ''
    if law != judgement.FORCES:
        assert reason('error_filter', 1.0, 0).startswith('gains.slew.error_filter 1 is too slow')
        with pytest.raises(ModelError, match='error_filter = .*: expected 4 numbers from 1 to 10000'):
            control.set_gains(replace(control.gains, error_filter=np.zeros(4)))


@pytest.mark.parametrize('share', [0.05, 0.5, 0.999])
def test_errors_die_out_at_the_largest_gains_of_a_late_loop(share):
    lag, none = 0.05, np.zeros(1)
    d = share * error_limits(none, none, lag)[1]
    p = share * error_limits(none, d, lag)[0]
    i = 0.99 * error_limits(p, d, lag)[2]
    late = np.array([(-lag) ** k / math.factorial(k) * math.comb(6, k) / math.comb(12, k) for k in range(6, -1, -1)])
    early = np.abs(late)        # late / early: Pade of the lag
    roots = np.roots(np.polyadd(np.polymul([1.0, 0.0, 0.0, 0.0], early), np.polymul([d[0], p[0], i[0]], late)))
    assert roots.real.max() < 0.0


@pytest.mark.long
@pytest.mark.parametrize('law', thorough(list(CASES), 1))
def test_the_largest_accepted_gains_follow_a_move(law):
    loop = judgement.closed_loop(law)
    control, most = loop.core.law, loop.core.law._stable
    limits = {'force_gain': most.force, 'flow_stiffness': most.flow, 'proportional': most.position}
    gains = replace(control.gains, **{name: np.maximum(limits[name], getattr(control.gains, name))
                                      for name in CASES[law]})
    assert control.gains_rejection(gains) == ''
    follow(loop, gains)


@pytest.mark.long
@pytest.mark.parametrize('name', thorough(['damping', 'inertia', 'stiffness', 'integral', 'flow_decoupling'], 1))
def test_the_crane_follows_a_move_with_a_gain_at_its_limit(name):
    loop = judgement.closed_loop(judgement.VALVES)
    control = loop.core.law
    values = getattr(control.gains, name).copy()
    values[1] = dict(HIGH[judgement.VALVES])[name]
    why = control.gains_rejection(replace(control.gains, **{name: values}))
    values[1] = 0.999 * float(why.split()[-1])
    gains = replace(control.gains, **{name: values})
    assert control.gains_rejection(gains) == ''
    follow(loop, gains)


def follow(loop, gains):
    """Check that a loop with these gains makes a move and rests."""
    loop.core.law.set_gains(gains)
    loop.send(judgement.point_to_point(4.0, (0.1, 0.05, -0.05, 0.1)))
    record = loop.run(6.0).recording()
    assert record.state[-1] == State.HOLD and not (record.state >= State.STOPPING).any(), record.reasons
    last = record.time > record.time[-1] - 0.5
    assert record.speed[last].max() < 0.02
