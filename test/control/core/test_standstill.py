"""Nothing is enabled or reset while an actuator moves faster than its declared standstill speed, or without a pump."""

import numpy as np
import pytest
from support.control.control_rig import Rig

from psdyn_ros.control import State
from psdyn_ros.control.safety.state_machine import SafetyError

WORDS = r"'telescope' moves at 0.19 per second, at most 0.02 \('standstill_speed'\)"


def moving(rig, speed):
    """Return a spoiler of states: the telescope goes at this speed."""
    start = rig.ros_now

    def state(stamp, x, xd):
        x[3] += speed * 1e-9 * (stamp - start)
        xd[3] = speed
        return stamp, x, xd
    return state


def moves(rig, speed, ticks):
    rig.core.inputs.state_check.forget()
    rig.ticks(ticks, state=moving(rig, speed))
    return rig


def test_a_machine_that_moves_is_not_enabled():
    rig = moves(Rig().activate(), 0.19, 30)
    with pytest.raises(SafetyError, match='enabling is refused: .*' + WORDS):
        rig.core.enable(rig.now)
    assert rig.state is State.STANDBY


def test_a_machine_that_creeps_is_enabled():
    rig = moves(Rig().activate(), 0.019, 30)
    rig.core.enable(rig.now)
    assert rig.core.states.enabled


def test_a_machine_that_moves_is_not_reset():
    rig = Rig().hold()
    rig.core.fail(rig.now, 'a fault')
    rig.ticks(2)
    assert rig.state is State.SAFE
    moves(rig, 0.19, 700)
    with pytest.raises(SafetyError, match='reset is refused: ' + WORDS):
        rig.core.reset(rig.now)
    rig.core.inputs.state_check.forget()
    rig.ticks(700)
    rig.core.reset(rig.now)
    assert rig.state is not State.SAFE and np.isfinite(rig.plant.x).all()


@pytest.mark.parametrize(('supply', 'why'), [
    (0.0, 'enabling is refused: the supply reads 0 bar and is set to 190 bar: switch the pump on'), (18e5, '18 bar'),
    (20e5, None), (None, None)])
def test_a_machine_whose_pump_does_not_run_is_not_enabled(supply, why):
    rig = Rig('valve')
    take = rig.core.take_pressures
    rig.core.take_pressures = lambda stamp, ros_now, now, values, _: take(stamp, ros_now, now, values, supply)
    rig.activate()
    if why is None:
        rig.core.enable(rig.now)
        assert rig.core.states.enabled
    else:
        with pytest.raises(SafetyError, match=why):
            rig.core.enable(rig.now)
        assert rig.state is State.STANDBY
