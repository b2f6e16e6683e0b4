"""Gains of laws on valves change on a ramp, and only to what the machine bears."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.control import State
from psdyn_ros.control.laws.valve_law import GAIN_RAMP
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
    loop.run(0.5 * GAIN_RAMP)
    assert control._law['flow_stiffness'] == pytest.approx(0.75 * before, rel=0.02)
    loop.run(0.6 * GAIN_RAMP)
    assert control._law['flow_stiffness'] == pytest.approx(0.5 * before)
    assert getattr(control.gains, name) == pytest.approx(control._law['flow_stiffness'])


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


@pytest.mark.long
@pytest.mark.parametrize('law', thorough(list(CASES), 1))
def test_the_largest_accepted_gains_follow_a_move(law):
    loop = judgement.closed_loop(law)
    control, most = loop.core.law, loop.core.law._stable
    limits = {'force_gain': most.force, 'flow_stiffness': most.flow, 'proportional': most.position}
    gains = replace(control.gains, **{name: np.maximum(limits[name], getattr(control.gains, name))
                                      for name in CASES[law]})
    assert control.gains_rejection(gains) == ''
    control.set_gains(gains)
    loop.send(judgement.point_to_point(4.0, (0.1, 0.05, -0.05, 0.1)))
    record = loop.run(6.0).recording()
    assert record.state[-1] == State.HOLD and not (record.state >= State.STOPPING).any(), record.reasons
    last = record.time > record.time[-1] - 0.5
    assert record.speed[last].max() < 0.02
