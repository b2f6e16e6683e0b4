"""What the emergency stop says, and when it counts."""

import numpy as np
import pytest
from support.control.control_rig import RATE, Rig

from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.control.safety.state_machine import SafetyError

STANDBY, SAFE = State.STANDBY, State.SAFE


@pytest.mark.parametrize('start', ('activate', 'hold', 'run'))
@pytest.mark.parametrize('pressed', (True, None))
def test_the_emergency_stop_pressed_or_silent_is_safe_F36(start, pressed):
    rig = getattr(Rig('valve'), start)()
    rig.pressed = pressed
    assert rig.until(SAFE, 52) <= (1 if pressed else 51)
    assert not rig.output.valid
    with pytest.raises(SafetyError, match='F36'):
        rig.core.reset(rig.now)
    rig.pressed = False
    rig.ticks(round(RATE))      # at rest behind closed valves
    rig.core.reset(rig.now)
    assert rig.tick().state is STANDBY


def test_without_an_emergency_stop_none_is_missed_but_one_that_is_pressed_stops_F36():
    rig = Rig(emergency_stop=False)
    rig.pressed = None
    rig.run()
    rig.pressed = True
    assert rig.until(SAFE, 2) <= 1
    with pytest.raises(SafetyError, match='F36: the emergency stop is pressed'):
        rig.core.reset(rig.now)


@pytest.mark.parametrize('start', ('activate', 'hold', 'run'))
def test_a_press_counts_though_a_release_comes_before_the_next_step_F36(start):
    rig = getattr(Rig(), start)()
    rig.core.take_emergency_stop(True, rig.now)
    assert rig.tick().state is SAFE and not rig.output.valid       # the tick says that it is released
    assert 'F36: the emergency stop is pressed' in rig.core.states.reasons.values()
    rig.ticks(round(RATE))
    rig.core.reset(rig.now)
    assert rig.tick().state is STANDBY
    rig.core.take_emergency_stop(True, rig.now)
    rig.core.take_emergency_stop(False, rig.now)
    with pytest.raises(SafetyError, match='F36: the emergency stop is pressed'):
        rig.core.enable(rig.now)


def test_a_press_that_was_over_before_activation_refuses_nothing_F36():
    rig = Rig()
    rig.pressed = True
    rig.ticks(5)
    rig.pressed = False
    rig.ticks(5)
    rig.core.activate(rig.now, rig.ros_now)
    assert rig.tick().state is STANDBY


@pytest.mark.parametrize('said', (None, [], '', 0, np.True_, np.zeros(2)))
def test_all_but_a_false_is_a_pressed_emergency_stop_F36(said):
    rig = Rig(emergency_stop=False).hold()
    rig.core.take_emergency_stop(said, rig.now)
    rig.pressed = None
    assert rig.tick().state is SAFE
