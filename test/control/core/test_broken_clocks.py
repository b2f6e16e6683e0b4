"""Clocks that stand still, creep, or say nothing, while cycles go on."""

import math

import numpy as np
import pytest
from support.control.control_rig import LOST, RATE, SILENT, WALL, Rig, T
from support.control.safety_controller import running

from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.control.safety.state_machine import SPARE

RUN, STOPPING, SAFE = State.RUN, State.STOPPING, State.SAFE


class BrokenRig(Rig):
    """Its clocks say what `broken` makes of their times; None: they are right."""

    broken = None

    now = property(lambda self: self.told(super().now, super().ros_now)[0])
    ros_now = property(lambda self: self.told(super().now, super().ros_now)[1])

    def told(self, now, ros_now):
        return self.broken(now, ros_now) if self.broken else (now, ros_now)

    def break_at(self, kind):
        began, ros_began = self.now, self.ros_now
        self.broken = {
            'steady': lambda now, ros_now: (began, ros_now),
            'both': lambda now, ros_now: (began, ros_began),
            'creeping': lambda now, ros_now: (began + (now - began) // T, ros_began + (now - began) // T)}[kind]


@pytest.mark.parametrize('level', ('effort', 'valve'))
@pytest.mark.parametrize('states', (True, False))
@pytest.mark.parametrize('kind', ('steady', 'both'))
def test_a_steady_clock_that_stands_still_is_a_fault_and_the_stop_comes_to_its_end_F31(level, states, kind):
    rig = BrokenRig(level).run(1.0)
    assert np.abs(rig.plant.xd).max() > 0.03
    rig.break_at(kind)
    spoil = {} if states else {'state': lambda *good: None}
    rig.until(STOPPING, 3, **spoil)
    assert 'F31: the steady clock stands at ' in rig.core.states.reasons['clock_stands']
    rig.until(SAFE, 500, **spoil)
    rig.ticks(300, **spoil)
    assert np.abs(rig.plant.xd).max() < 5e-3 and not rig.output.valid
    assert not np.nan_to_num(rig.output.command).any()


def test_an_emergency_stop_is_missed_by_a_clock_that_stands_still_F36():
    rig = BrokenRig().hold()
    rig.break_at('steady')
    rig.pressed = None
    rig.ticks(60)
    assert 'said nothing for' in rig.core.states.reasons['emergency_stop']


def test_a_clock_may_stand_for_two_cycles_F31():
    rig = BrokenRig().run()
    rig.break_at('steady')
    rig.ticks(2)
    rig.broken = None
    rig.ticks(20)
    assert rig.state is RUN and 'clock_stands' not in rig.counts


@pytest.mark.parametrize('level', ('effort', 'valve'))
def test_states_are_missed_by_cycles_where_the_clock_creeps_F01(level):
    rig = BrokenRig(level).run(0.3)
    rig.break_at('creeping')
    assert rig.until(STOPPING, 100, state=lambda *good: None) == SILENT + SPARE
    assert 'F01: the last state is 0.0 ms old in 15 cycles' in rig.core.states.reasons['state_silent']
    assert rig.until(SAFE, 100, state=lambda *good: None) == LOST - SILENT
    assert not np.nan_to_num(rig.output.command).any()      # no ramp of valves: it would not end


@pytest.mark.parametrize('after', [T, round(1.25 * T)])
def test_with_a_sound_clock_it_is_that_which_counts_F01(after):
    c, count = running(), 0
    while c.cycle(measured=False, after=after) < STOPPING:
        count += 1
    assert count == math.floor(20_000_000 / after) and not c.s.outrun
    for _ in range(400):
        c.cycle(measured=False)
        assert not c.s.outrun


@pytest.mark.parametrize('times', [(None, None), (math.nan, WALL), ('1', '2'), (5, math.inf)])
@pytest.mark.parametrize('start', ('no', 'run'))
def test_a_step_without_a_time_raises_nothing_and_stops_F31(start, times):
    rig = Rig()
    if start == 'no':
        assert rig.core.step(*times) is None and rig.state is SAFE
        return
    rig.run(0.3)
    output = rig.core.step(*times)
    assert output.state is STOPPING and 'expected two times in ns' in rig.core.states.reasons['clock_stands']
    for _ in range(round(RATE)):
        output = rig.core.step(*times)
    assert output.state is SAFE and np.isfinite(output.stamp)
