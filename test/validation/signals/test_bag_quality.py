"""Quality of the data of a bag: what was spoilt on purpose is found, and nothing is found in what was not."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bags import bag_cases as cases

from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.metrics.verdict import losses
from psdyn_ros.validation.signals.blocks import blocks
from psdyn_ros.validation.signals.clock_drift import ClockSteps, LeastLatency
from psdyn_ros.validation.signals.quality import INVALID, NOTE, Quality, _end
from psdyn_ros.validation.signals.signal_quality import Alternation, SignalQuality
from psdyn_ros.validation.signals.topics import find_topics
from psdyn_ros.validation.signals.unit_checks import Units

PERIOD, COUNT = 0.004, 1200
QUANTITIES = ('pressure_a', 'pressure_b', 'stamp')


@pytest.fixture(scope='module')
def swing(crane):
    return cases.motion(crane, COUNT, PERIOD)


class Recorded:
    """What is written into a bag; tests spoil it."""

    def __init__(self, crane, swing, rng, noise):
        self.times, self.positions, self.velocities = (one.copy() for one in swing)
        self.positions += noise * 2e-5 * rng.standard_normal(self.positions.shape)
        self.velocities += noise * 1e-4 * rng.standard_normal(self.positions.shape)
        self.pressures = 8e6 + 2e6 * np.sin(self.times[:, np.newaxis] * (1 + np.arange(6)))
        self.pressures += noise * 1e4 * rng.standard_normal((COUNT, 6))
        self.stamps = BEGIN + np.rint(self.times * SECOND).astype(np.int64)
        self.received = self.stamps + 100_000
        self.efforts = np.full(self.positions.shape, np.nan)
        self._crane, self.rate = crane, 0.0     # s/s by which the clock of the pressures runs ahead

    def judge(self, tmp_path, hydraulics):
        """The `Quality` of the bag."""
        names = tuple(hydraulics.cylinders)
        states = [(STATES, int(self.received[k]), cases.joint_state(
            self.stamps[k], self._crane.joints, self.positions[k], self.velocities[k], self.efforts[k]))
            for k in range(COUNT)]
        clock = (BEGIN + np.rint((1.0 + self.rate) * self.times * SECOND)) / SECOND
        arrays = [(TELEMETRY, int(self.received[k]) + 100_000, cases.labelled(np.column_stack(
            (self.pressures[k].reshape(3, 2), np.full(3, stamp))), names, QUANTITIES)) for k, stamp in enumerate(clock)]
        path = cases.write(tmp_path / 'a.mcap', states, arrays)
        with open_bag(path) as self.source:
            source = self.source
            channels = find_topics(source, self._crane)
            quality = Quality(channels, self._crane, hydraulics)
            self.blocks = list(blocks(source, channels, self._crane, hydraulics, quality=quality))
        return quality


@pytest.fixture(params=[0.0, 1.0], ids=['exact', 'noisy'])
def recorded(request, crane, swing, rng):
    return Recorded(crane, swing, rng, request.param)


@pytest.fixture
def noisy(crane, swing, rng):
    return Recorded(crane, swing, rng, 1.0)


def about(quality):
    return {finding.about for finding in quality.findings()}


def test_in_an_honest_bag_nothing_is_found(tmp_path, hydraulics, recorded):
    """Also with half of the time at rest, where the same numbers come again and again."""
    recorded.positions[700:] = recorded.positions[700]
    recorded.velocities[700:] = 0.0
    quality = recorded.judge(tmp_path, hydraulics)
    if recorded.positions[0, 0] == 0.0:
        assert quality.findings() == []
    topic = quality.topics[STATES].as_dict()
    assert topic['messages'] == COUNT and topic['rate'] == pytest.approx(1 / PERIOD) and topic['jitter'] < 1e-9
    assert quality.signals['lift_cylinder.pressure_a'].samples == COUNT
    assert set(quality.as_dict()) == {'topics', 'signals', 'findings'}


def test_a_noisy_honest_bag_that_moves_has_nothing_either(tmp_path, hydraulics, noisy):
    assert noisy.judge(tmp_path, hydraulics).findings() == []


def test_a_frozen_encoder_is_found(tmp_path, hydraulics, recorded, crane):
    column = crane.joints.index('tilt_boom')
    recorded.positions[500:900, column] = recorded.positions[500, column]
    quality = recorded.judge(tmp_path, hydraulics)
    span, = quality.signals['tilt_boom.position'].frozen
    assert span.start == pytest.approx(500 * PERIOD, abs=2 * PERIOD)
    assert span.end == pytest.approx(899 * PERIOD, abs=2 * PERIOD)
    assert about(quality) == {'tilt_boom.position'}


def test_an_encoder_frozen_to_the_end_is_found_by_its_loop_alone(tmp_path, hydraulics, recorded, crane):
    column = crane.joints.index('lift_cylinder')
    recorded.positions[1000:, column] = recorded.positions[1000, column]
    recorded.velocities[:, column] = 0.0
    assert recorded.judge(tmp_path, hydraulics).signals['lift_cylinder.position'].frozen


def test_a_frozen_pressure_sensor_is_found_where_it_is_noisy_else(tmp_path, hydraulics, noisy):
    noisy.pressures[300:400, 2] = noisy.pressures[300, 2]
    quality = noisy.judge(tmp_path, hydraulics)
    assert about(quality) == {'tilt_cylinder.pressure_a'}
    assert quality.signals['tilt_cylinder.pressure_a'].frozen[0].end == pytest.approx(399 * PERIOD, abs=2 * PERIOD)


def test_spikes_are_counted(tmp_path, hydraulics, recorded, crane):
    recorded.positions[[200, 600, 1100], 0] += 0.05
    recorded.pressures[[250, 251 + 600], 5] += 5e6
    quality = recorded.judge(tmp_path, hydraulics)
    slew, pressure = quality.signals['slew.position'], quality.signals['telescope.pressure_b']
    assert slew.spikes == 3 and slew.largest_spike == pytest.approx(0.05, rel=0.02)
    assert pressure.spikes == 2 and about(quality) == {'slew.position', 'telescope.pressure_b'}


def test_a_clipped_sensor_is_found(tmp_path, hydraulics, recorded):
    recorded.pressures[:, 1] = np.clip(recorded.pressures[:, 1], 0.0, 9e6)
    quality = recorded.judge(tmp_path, hydraulics)
    signal = quality.signals['lift_cylinder.pressure_b']
    assert signal.saturated and signal.high == 9e6 and not signal.frozen
    assert about(quality) == {'lift_cylinder.pressure_b'}


def test_gaps_repetitions_and_disorder_are_counted(tmp_path, hydraulics, noisy):
    noisy.stamps[[300, 301]] = noisy.stamps[[301, 300]]
    noisy.stamps[700] = noisy.stamps[699]
    noisy.stamps[1000:] += SECOND
    noisy.received[1000:] += SECOND
    noisy.times[1000:] += 1.0
    quality = noisy.judge(tmp_path, hydraulics)
    topic = quality.topics[STATES]
    assert (topic.out_of_order, topic.repeated, topic.gaps) == (1, 1, 1)
    assert topic.longest_gap == pytest.approx(1.0 + PERIOD) and quality.late[STATES] == 2
    assert topic.gap_spans[0][0] == pytest.approx(999 * PERIOD, abs=1e-3)
    assert len(noisy.blocks) == 2 and quality.topics[TELEMETRY].gaps == 1


def test_future_and_absurd_stamps_are_counted(tmp_path, hydraulics, noisy):
    noisy.stamps[100:110] += 50_000_000
    noisy.stamps[[500, 800]] += 10 * 86_400 * SECOND
    quality = noisy.judge(tmp_path, hydraulics)
    topic = quality.topics[STATES]
    assert topic.future == 12 and topic.absurd == 2
    assert not any(finding.severity == INVALID for finding in quality.findings())


def test_more_than_a_hundredth_of_absurd_stamps_is_no_base_for_a_verdict(tmp_path, hydraulics, noisy):
    noisy.stamps[::20] += 10 * 86_400 * SECOND
    quality = noisy.judge(tmp_path, hydraulics)
    assert quality.findings()[0].severity == INVALID
    assert '60 of 2400 messages are unusable' in quality.findings()[0].text


def test_simulated_and_wall_time_mixed_is_said(tmp_path, hydraulics, noisy):
    noisy.stamps -= BEGIN
    quality = noisy.judge(tmp_path, hydraulics)
    finding, = (one for one in quality.findings() if one.severity != NOTE)
    assert finding.about == TELEMETRY
    assert 'simulated and wall time' in finding.text and 'times of receipt are used' in finding.text


def test_a_clock_that_is_set_while_recording_is_said(tmp_path, hydraulics, noisy):
    noisy.stamps[900:] += 100 * SECOND
    noisy.times[900:] += 100.0
    texts = [finding.text for finding in noisy.judge(tmp_path, hydraulics).findings() if finding.about == STATES]
    assert any('its clock moved by 100 s' in text for text in texts)


@pytest.mark.parametrize('size', [0.05, 0.5, 20.0])
def test_a_clock_that_is_set_back_is_named_and_both_sides_are_used(tmp_path, hydraulics, noisy, crane, size):
    noisy.stamps[700:] -= round(size * SECOND)
    quality = noisy.judge(tmp_path, hydraulics)
    assert f'set back by {size:.3g} s at 2.8' in quality.findings()[0].text
    first, second = noisy.blocks
    assert quality.late[STATES] < 5 and 1190 < len(first.t) + len(second.t) < 1200
    assert 2.5 * PERIOD < second.t[0] - first.t[-1] < 8 * PERIOD
    for block in (first, second):
        telescope = block.positions[:, block.joints.index('telescope')]
        was = np.interp(block.t, noisy.times, noisy.positions[:, crane.joints.index('telescope')])
        np.testing.assert_allclose(telescope, was, atol=2e-4)


def test_only_a_clock_that_was_set_is_taken_for_one(rng):
    stamps = BEGIN + np.arange(0, 20 * SECOND, SECOND // 100)
    jam = np.where((stamps > stamps[500]) & (stamps < stamps[800]), stamps[800] - stamps, 0)
    late = stamps + jam + (SECOND * rng.exponential(2e-3, len(stamps))).astype(np.int64)
    swapped, one, other = stamps.reshape(-1, 2)[:, ::-1].ravel(), stamps.copy(), stamps.copy()
    one[::2] -= SECOND // 2         # two publishers
    other[900:] -= SECOND // 3
    for said, steps in ((stamps, []), (swapped, []), (one, []), (other, [(int(late[900]), 1.0 / 3.0)])):
        clock, order = ClockSteps(), np.argsort(late, kind='stable')
        # pieces, of which one ends two messages after the step
        found = np.concatenate([clock.add(late[part], said[part])[0] for part in np.split(order, [300, 902, 1500])])
        assert [size / SECOND for _, size in clock.set_back] == pytest.approx([size for _, size in steps], abs=2e-3)
        assert np.abs(found - (stamps if steps else said)[order])[902:].max() < 2e6


@pytest.mark.parametrize('pace', [1.5, 3.0])
def test_simulated_time_of_a_busy_computer_is_whole_however_slow_it_was(tmp_path, hydraulics, noisy, pace):
    noisy.received = BEGIN + ((noisy.stamps - BEGIN) * pace).astype(np.int64)
    quality = noisy.judge(tmp_path, hydraulics)
    assert quality.topics[STATES].own_clock
    assert list(losses(noisy.source, quality, 0.95 * COUNT * PERIOD, 0.9)) == []
    assert 'of 4.796 s recorded' in next(losses(noisy.source, quality, 0.5 * COUNT * PERIOD, 0.9))


def test_messages_without_stamps_are_used_by_receipt(tmp_path, hydraulics, noisy):
    noisy.stamps[:] = 0
    quality = noisy.judge(tmp_path, hydraulics)
    assert any('no usable stamps' in finding.text for finding in quality.findings())
    assert len(noisy.blocks[0].t) == COUNT


def test_numbers_that_are_not_finite_are_counted(tmp_path, hydraulics, noisy):
    noisy.positions[[50, 60], 3], noisy.positions[70, 3] = np.nan, 1e300
    quality = noisy.judge(tmp_path, hydraulics)
    assert quality.signals['lift_barrel.position'].missing == 3 and quality.topics[STATES].missing == 3
    assert [finding.severity for finding in quality.findings() if finding.about == 'lift_barrel.position'] == [NOTE]


@pytest.mark.parametrize('factor, unit', [(1e-5, 'bar'), (1e-3, 'kPa'), (1e-6, 'MPa'), (1e3, 'mPa')])
def test_pressures_in_other_units_are_doubted(tmp_path, hydraulics, noisy, factor, unit):
    noisy.pressures *= factor
    findings = noisy.judge(tmp_path, hydraulics).findings()
    assert any(f' {unit}?' in finding.text or f'in {unit} or' in finding.text for finding in findings)


@pytest.mark.parametrize('factor, text', [(1e3, '1000 times'), (1e-3, 'a thousandth of'), (180 / np.pi, '180/pi')])
def test_velocities_in_other_units_are_doubted(tmp_path, hydraulics, noisy, factor, text):
    noisy.velocities *= factor
    found = [finding for finding in noisy.judge(tmp_path, hydraulics).findings() if text in finding.text]
    assert {finding.about for finding in found} >= {'slew.velocity', 'telescope.velocity'}


def test_efforts_in_kn_are_doubted(tmp_path, hydraulics, noisy, crane):
    noisy.efforts[:, crane.joints.index('lift_cylinder')] = 35.0 + np.sin(noisy.times)
    found = noisy.judge(tmp_path, hydraulics).findings()
    assert [finding.about for finding in found] == ['lift_cylinder.effort'] and 'in kN' in found[0].text


@pytest.mark.parametrize('rate', [0.0, 2e-4, -2e-4])
def test_clocks_that_run_apart_are_seen_by_receipts_behind_their_jitter(rng, rate):
    latency, stamps = LeastLatency(), BEGIN + np.arange(0, 60 * SECOND, SECOND // 50)
    received = BEGIN + (stamps - BEGIN) * (1.0 + rate) + SECOND * rng.exponential(5e-3, len(stamps))
    # a jam, and pieces
    received[1000:1200] += SECOND // 10
    for part in np.array_split(np.arange(len(stamps)), 7):
        latency.add(received[part].astype(np.int64), stamps[part])
    slope, seconds = latency.slope
    assert slope == pytest.approx(rate, abs=1e-5) and 55.0 < seconds < 62.0


@pytest.mark.parametrize('rate', [0.0, 5e-4, -5e-4])
def test_clock_of_pressures_that_runs_apart_is_named(tmp_path, hydraulics, noisy, rate):
    noisy.times *= 4.0      # 19 s
    noisy.stamps = BEGIN + np.rint(noisy.times * SECOND).astype(np.int64)
    noisy.received, noisy.rate = noisy.stamps + 100_000, rate
    found = [one for one in noisy.judge(tmp_path, hydraulics).findings() if 'run apart' in one.text]
    assert [one.about for one in found] == [TELEMETRY] * (rate != 0.0)
    assert all(f'by {-1e6 * rate:.0f} us/s' in one.text for one in found)


@pytest.mark.parametrize('joint', ['lift_boom', 'tilt_barrel'])
def test_the_loop_in_which_redundant_joints_disagree_is_named(tmp_path, hydraulics, noisy, crane, joint):
    noisy.positions[:, crane.joints.index(joint)] += 0.03
    assert joint.split('_')[0] in noisy.judge(tmp_path, hydraulics).loop


def test_one_port_in_bar_is_named(tmp_path, hydraulics, noisy):
    noisy.pressures[:, 2] *= 1e-5
    found = noisy.judge(tmp_path, hydraulics).findings()
    name = tuple(hydraulics.cylinders)[1]
    assert [finding.about for finding in found] == [f'{name}.pressure_a'] and 'in bar?' in found[0].text


@pytest.mark.parametrize('factor, unit', [(1e-3, 'kN'), (1e3, 'mN'), (1.0 / 9.81, 'kgf'), (1.0, ''), (0.5, '')])
def test_efforts_a_unit_off_what_the_model_needs_are_doubted(crane, rng, factor, unit):
    needed = 2e3 * rng.standard_normal((500, len(crane.actuators)))
    effort = needed + 200.0 * rng.standard_normal(needed.shape)
    effort[:, 0] *= factor
    units = Units(crane, None)
    units.add(SimpleNamespace(effort=effort, effort_id=needed, v=np.ones_like(needed), core=slice(None)))
    found = list(units.findings())
    assert [about for about, _ in found] == [f'{crane.actuators[0]}.effort'] * bool(unit)
    assert unit in ''.join(text for _, text in found)


def test_what_a_brake_holds_has_no_sign(crane, rng):
    """A payload to the side turns round what the brake of the slewing axis holds while others move."""
    needed = 20.0 * rng.standard_normal((500, len(crane.actuators)))
    units = Units(crane, None)
    units.add(SimpleNamespace(effort=-3.66 * needed, effort_id=needed, core=slice(None),
                              v=np.where(np.arange(len(crane.actuators)) == 0, 0.0, 0.1) * np.ones_like(needed)))
    assert [about for about, _ in units.findings()] == [f'{name}.effort' for name in crane.actuators[1:]]


@pytest.mark.parametrize('joint, factor, unit', [('slew', 180.0 / np.pi, 'degrees'), ('tilt_cylinder', 1e3, 'mm')])
def test_positions_are_doubted_in_units_of_their_joint(crane, joint, factor, unit):
    units = Units(crane, None)
    units.position(joint, np.arange(4.0), factor * np.array([0.2, 0.3, 0.25, 0.28]), None)
    (about, text), = units.findings()
    assert about == f'{joint}.position' and text.endswith(f'in {unit}?')


# --- signals by themselves


def fed(values, pieces, floor=1e-3, peer=None, rate=100.0):
    signal = SignalQuality(floor, None if peer is None else lambda position: position)
    times = np.arange(len(values)) / rate
    for part in np.array_split(np.arange(len(values)), pieces):
        signal.add(times[part], values[part], peer=None if peer is None else peer[part])
    signal.finish()
    return signal


@pytest.mark.parametrize('pieces', [1, 2, 7, 40])
def test_pieces_do_not_matter(rng, pieces):
    """Frozen stretches, clipping and spikes across the edges of pieces."""
    values = 1e-3 * rng.standard_normal(2000) + np.sin(np.arange(2000) * 0.02)
    values[300:420] = values[300]
    values = np.minimum(values, 0.95)
    values[[100, 500, 1500]] += 0.2 * np.array([-1, -1, 1])
    values[1500] = min(values[1500], 0.9)
    whole, parts = fed(values, 1), fed(values, pieces)
    assert whole.frozen and whole.frozen == parts.frozen
    assert whole.saturated == parts.saturated
    assert (parts.samples, parts.low, parts.high) == (2000, values.min(), values.max())


@pytest.mark.parametrize('pieces', [1, 3, 17])
def test_spikes_at_the_edges_of_pieces_count_once(rng, pieces):
    values = 1e-5 * rng.standard_normal(340)
    # in every place that is the first, second or last of some piece
    values[[0, 19, 20, 21, 113, 226, 339]] += 1.0
    values[[19, 21]] -= 1.0
    inner = 3       # the first and the last sample have one neighbour only
    assert fed(values, pieces).spikes == inner


@pytest.mark.parametrize('pieces', [1, 3, 50])
def test_what_its_peer_left_and_came_back_to_was_frozen_too(pieces):
    peer = 0.1 * np.sin(np.arange(2001) * 0.01 * np.pi)
    values = peer.copy()
    values[400:1800] = values[400]
    span, = fed(values, pieces, peer=peer).frozen
    assert span.start == pytest.approx(4.0) and span.end == pytest.approx(17.99)
    still = np.full(2001, 0.3) + 1e-4 * np.sin(np.arange(2001))
    assert fed(np.where(np.arange(2001) < 400, values, values[400]), pieces, peer=still).frozen == []


@pytest.mark.parametrize('quantum', [1e-4, 2e-3])
def test_a_quantised_signal_at_rest_is_not_frozen(rng, quantum):
    values = np.sin(np.minimum(np.arange(1000), 600) * 0.02) + 1e-4 * rng.standard_normal(1000)
    values[600:] = values[600]
    assert fed(np.rint(values / quantum) * quantum, 3).frozen == []


def moves_with_rests(t, slowness, rest):
    """(n,) m at t (n,) s: to and fro over 0.5 m, each way in `slowness` s as a spline, with rests of `rest` s."""
    turn, within = np.divmod(t, slowness + rest)
    u = np.minimum(within / slowness, 1.0)
    u = u ** 3 * (10.0 - 15.0 * u + 6.0 * u ** 2)
    return 0.25 - 0.5 * np.where(turn % 2, 1.0 - u, u)


@given(quantum=st.sampled_from([0.0, 1e-4, 5e-4]), rate=st.sampled_from([100.0, 200.0, 500.0]),
       slowness=st.floats(1.0, 8.0), rest=st.sampled_from([0.0, 0.3, 3.0]), kept=st.floats(0.55, 0.9))
def test_only_readings_that_do_not_slow_down_are_clipped(quantum, rate, slowness, rest, kept):
    """One that turns round slowly, or stands there, repeats its readings too."""
    t = np.arange(0.0, 60.0, 1.0 / rate)
    for position in (moves_with_rests(t, slowness, rest), 0.25 * np.sin(2.0 * t / slowness)):
        clipped = np.clip(position, -0.25, 0.25 * (2.0 * kept - 1.0))
        for values, found in ((position, False), (clipped, True)):
            signal = fed(np.rint(values / quantum) * quantum if quantum else values, 5, rate=rate)
            assert bool(signal.saturated) == found


def test_an_empty_signal_and_one_without_numbers():
    assert fed(np.empty(0), 1).frozen == []
    signal = fed(np.full(50, np.nan), 2)
    assert signal.missing == 50 and signal.saturated == [] and not signal.noisy


def test_two_publishers_on_one_topic_are_named(tmp_path, crane):
    t, position, velocity = cases.motion(crane, 500, 0.01)
    _, other, rates = cases.motion(crane, 500, 0.01, amplitude=0.02)
    first = cases.state_messages(crane, t, position, velocity)
    second = cases.state_messages(crane, t + 0.003, other + 0.05, rates)
    with open_bag(cases.write(tmp_path / 'two.mcap', first, second)) as source:
        channels = find_topics(source, crane, {})
        quality = Quality(channels, crane)
        list(blocks(source, channels, crane, quality=quality))
    named = [one.about for one in quality.findings() if one.severity == INVALID and 'two publishers' in one.text]
    assert set(named) >= {f'{name}.position' for name in crane.actuators}


def test_noise_and_steps_are_not_two_publishers():
    rng = np.random.default_rng(2)
    for values in (rng.normal(0.0, 1.0, 4000), np.repeat(rng.normal(0.0, 1.0, 400), 10), np.zeros(100)):
        alternation = Alternation(1e-3)
        for piece in np.array_split(values, 7):
            alternation.add(piece)
        assert not alternation.seen
    alternation.add(np.tile([0.0, 1.0], 100))
    assert alternation.seen and alternation.size == pytest.approx(1.0, rel=0.5)


def test_clipped_position_away_from_its_limits_is_not_at_the_end_of_its_range():
    signal = SimpleNamespace(low=0.1, high=0.5)
    assert _end(signal, (0.0, 1.0)) == 'clipped where the joint has no limit'
    assert _end(signal, (0.0, 0.503)) == 'at the end of its range'
    assert _end(signal, None) == 'clipped at its largest or smallest value'
