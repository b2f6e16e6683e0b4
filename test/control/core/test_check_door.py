"""A check of one's own: given to a `ControllerConfig`, it judges what is measured and stops the crane."""

import numpy as np
import pytest
from support.control.control_rig import PROBATION, RATE, TARGET, Rig

from psdyn_ros.control.monitors.check import COUNTED, DEGRADE, RAMPED, STOP_OPEN_LOOP, Check, Finding, Row, State, When
from psdyn_ros.model.errors import ModelError

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
MAX_PRESSURE_PA = 192e5


class SupplyPressure(Check):
    """Whether the supply is above what its hoses stand."""

    rows = (Row('X01', 'supply_pressure', STOP_OPEN_LOOP, 'a supply above what its hoses stand', RAMPED),)
    when = When.PRESSURES

    def evaluate(self, inputs):
        supply = float(inputs.supply)
        return [Finding('supply_pressure', f'{supply / 1e5:.0f} bar')] if supply > MAX_PRESSURE_PA else []


def burst(rig):
    """One cycle in which the supply reads 194 bar."""
    take = rig.core.take_pressures

    def spoilt(stamp, ros_now, now, values, supply):
        return take(stamp, ros_now, now, values, 194e5)
    rig.core.take_pressures = spoilt
    rig.tick()
    rig.core.take_pressures = take


def test_a_check_of_ones_own_stops_the_crane_without_its_state():
    rig = Rig('valve', checks=(SupplyPressure,)).run()
    burst(rig)
    assert rig.state is STOPPING and rig.core.states.reasons == {'supply_pressure': 'X01: 194 bar'}
    assert not rig.core.states.state_valid
    rig.until(SAFE, 500)
    rig.ticks(round(PROBATION * RATE) + 1)
    rig.core.reset(rig.now)
    assert rig.state is STANDBY and rig.core.states.counts['supply_pressure'] == 1
    plain = Rig('valve').run()
    burst(plain)
    assert plain.state is RUN


def test_a_check_is_evaluated_at_its_point_of_a_cycle():
    counts = dict.fromkeys(When, 0)

    def recorder(point):
        class Recorder(Check):
            when = point

            def evaluate(self, inputs):
                counts[point] += 1
                return ()
        return Recorder

    def counted(ticks, **spoil):
        before = dict(counts)
        rig.ticks(ticks, **spoil)
        return [counts[when] - before[when] for when in (When.CYCLE, When.STATE, When.PRESSURES, When.COMMAND)]
    rig = Rig('valve', checks=tuple(recorder(when) for when in When)).activate()
    assert counted(5) == [5, 5, 5, 0]
    rig.core.enable(rig.now)
    rig.tick()
    assert counted(5) == [5, 5, 5, 5]
    assert counted(2, state=lambda *_: None, pressures=False) == [2, 0, 0, 2]
    assert counted(2, state=lambda stamp, x, xd: (stamp, x + np.nan, xd)) == [2, 0, 2, 2]


def test_a_check_sees_measurements_reference_output_and_state():
    seen = {}

    class Look(Check):
        when = When.COMMAND

        def evaluate(self, inputs):
            names = [name for name in dir(inputs) if not name.startswith('_')]
            seen.update({name: getattr(inputs, name) for name in names})
            return ()
    rig = Rig('valve', checks=(Look,)).run()
    before = rig.output.command
    rig.tick()
    assert np.array_equal(seen['x'], rig.plant.x) and np.array_equal(seen['xd'], rig.plant.xd)
    assert np.array_equal(seen['pressures'], rig.plant.fluid[:, :2]) and seen['supply'] == rig.plant.supply_pressure[0]
    assert seen['stamp'] == seen['pressure_stamp'] == rig.ros_now and seen['now'] == seen['clock'] == rig.now
    assert seen['age'] == 0.0 and seen['stream_age'] == 0.0
    assert np.array_equal(seen['command'], before) and seen['clamped'] == rig.core.gate.clamped
    assert seen['desired'].shape == (3, 4) and np.abs(seen['desired'][0] - rig.plant.x).max() < 3e-3
    assert seen['predicted_efforts'].shape == (4,) and seen['state'] is RUN
    assert seen['publishing'] and seen['under_law'] and not seen['streaming']
    assert seen['machine'] is rig.machine and seen['declaration'] is rig.declaration
    assert seen['hydraulics'].cylinders and seen['period'] == 1.0 / RATE


def judging(verdict):
    """A check whose evaluation returns what `verdict` (a list) holds."""
    class Judge(Check):
        rows = (Row('X02', 'lasting', DEGRADE, 'it lasts', 'goes on'),)

        def evaluate(self, inputs):
            return verdict[0]
    return Judge


def test_a_lasting_condition_passes_when_it_is_not_found_any_more():
    verdict = [[Finding('lasting')]]
    rig = Rig(checks=(judging(verdict),)).hold()
    rig.follow(TARGET, 3.0)
    rig.ticks(10)
    assert rig.state is DEGRADED
    verdict[0] = None
    rig.ticks(round(2 * PROBATION * RATE))
    assert rig.state is DEGRADED
    verdict[0] = []
    rig.ticks(round(PROBATION * RATE) + 2)
    assert rig.state is RUN and 'lasting' not in rig.core.states.reasons


def test_a_finding_may_ask_for_less_than_its_row():
    verdict = [[Finding('lasting', demand=COUNTED)]]
    rig = Rig(checks=(judging(verdict),)).run()
    assert rig.state is RUN and rig.core.states.counts['lasting'] > 100


@pytest.mark.parametrize('verdict, reason', [
    ([[Finding('lastin')]], "condition 'lastin': none that is reported; did you mean 'lasting'"),
    ([[3]], 'TypeError'),
])
def test_a_check_that_fails_makes_the_machine_safe(verdict, reason):
    bad, verdict = verdict, [[]]
    rig = Rig(checks=(judging(verdict),)).run()
    verdict[:] = bad
    assert rig.tick().state is SAFE and reason in rig.core.states.reasons['exception']


def test_a_condition_that_exists_is_refused():
    class Twice(Check):
        rows = (Row('X03', 'tracking', DEGRADE, 'again', 'goes on'),)
    with pytest.raises(ModelError, match="condition 'tracking': it has a row in the fault table already"):
        Rig(checks=(Twice,))
