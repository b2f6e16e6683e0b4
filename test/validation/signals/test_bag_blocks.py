"""Channels found in a bag, and what the machine did on a uniform grid, against what the messages were made of."""

import numpy as np
import pytest
from support.bags import bag_cases as cases

from psdyn_ros.api.load import load
from psdyn_ros.model.errors import ShapeError
from psdyn_ros.model.locate import find_machine
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY, write_mcap
from psdyn_ros.validation.bags.bulk_decoder import ARRAY, JOINT_STATE, PRESSURE, TRAJECTORY
from psdyn_ros.validation.bags.recording import BagError
from psdyn_ros.validation.bags.source import open_bag
from psdyn_ros.validation.signals.blocks import blocks
from psdyn_ros.validation.signals.quality import Quality
from psdyn_ros.validation.signals.resampling import Track
from psdyn_ros.validation.signals.topics import find_topics

PERIOD = 0.002
QUANTITIES = ('pressure_a', 'pressure_b', 'flow_a', 'stamp')
ATMOSPHERE = 101325.0


@pytest.fixture(scope='module')
def swing(crane):
    """4 s of motion at 500 Hz: (times, positions, velocities)."""
    return cases.motion(crane, 2000, PERIOD)


def expected(crane, times, amplitude=0.05, frequency=0.5):
    """(N, dof) coordinates of `cases.motion`."""
    return crane.initial_position + amplitude * np.sin(2 * np.pi * frequency * np.asarray(times))[:, np.newaxis]


def pressures(times, count=3):
    """(N, cylinders, 2) smooth pressures [Pa]."""
    phase = np.asarray(times)[:, np.newaxis] * (1 + np.arange(2 * count))
    return (8e6 + 2e6 * np.sin(phase)).reshape(-1, count, 2)


def telemetry_messages(hydraulics, times, latency=200_000, topic=TELEMETRY):
    names, rows = tuple(hydraulics.cylinders), pressures(times)
    messages = []
    for t, row in zip(times, rows):
        ns = BEGIN + round(t * SECOND)
        table = np.column_stack((row, np.zeros(len(names)), np.full(len(names), ns / SECOND)))
        messages.append((topic, ns + latency, cases.labelled(table, names, QUANTITIES)))
    return messages


def collect(path, crane, hydraulics=None, overrides=None, **options):
    with open_bag(path) as source:
        channels = find_topics(source, crane, overrides)
        found = list(blocks(source, channels, crane, hydraulics, **options))
        return channels, found, source


# --- topics


def test_topics_are_found_by_type_and_name(tmp_path, crane, hydraulics, swing):
    times, positions, velocities = (one[:300] for one in swing)
    named = {'/simulator/ground_truth': JOINT_STATE, '/controller/joint_commands': JOINT_STATE,
             '/chatter': ARRAY, '/simulator/ground_truth/hydraulic_telemetry': ARRAY}
    truth = cases.state_messages(crane, times, positions, topic='/simulator/ground_truth')
    commands = cases.state_messages(crane, times, np.zeros((300, 4)), topic='/controller/joint_commands',
                                    names=crane.actuators)
    path = cases.write(tmp_path / 'a.mcap', truth, commands, cases.state_messages(crane, times, positions, velocities),
                       telemetry_messages(hydraulics, times),
                       telemetry_messages(hydraulics, times, topic='/simulator/ground_truth/hydraulic_telemetry'),
                       [('/chatter', BEGIN, cases.labelled([1.0], 'a', 'b'))], kinds=named)
    channels, found, _ = collect(path, crane, hydraulics)
    assert channels.states == (STATES,) and channels.joints == crane.joints
    assert channels.telemetry == TELEMETRY and channels.commands == '/controller/joint_commands'
    assert channels.period == pytest.approx(PERIOD) and channels.by_stamp
    assert found[0].command.shape == (300, 4)
    channels, _, _ = collect(path, crane, overrides={'states': '/simulator/ground_truth', 'commands': 'none'})
    assert channels.states == ('/simulator/ground_truth',) and channels.commands == ''
    for overrides, reason in (({'states': '/gone'}, "no topic '/gone'"), ({'state': STATES}, "did you mean 'states'"),
                              ({'states': TELEMETRY}, 'expected sensor_msgs/msg/JointState'),
                              ({'pressures': '/chatter'}, 'has no labels')):
        with pytest.raises(BagError, match=reason):
            collect(path, crane, overrides=overrides)


def test_topics_of_another_machine_are_left_out(tmp_path, crane, hydraulics, swing):
    times, positions, velocities = (one[:300] for one in swing)
    messages = [one for machine in ('/left', '/right') for one in cases.state_messages(
        crane, times, positions, velocities, topic=f'{machine}{STATES}')]
    path = cases.write(tmp_path / 'a.mcap', messages, telemetry_messages(hydraulics, times, topic='/right/oil'),
                       kinds={
        f'/left{STATES}': JOINT_STATE, f'/right{STATES}': JOINT_STATE, '/right/oil': ARRAY})
    channels, _, _ = collect(path, crane, hydraulics)
    assert channels.states == (f'/left{STATES}',) and channels.telemetry == ''
    assert channels.others == (f'/right{STATES}',) and f'/right{STATES} is not' in channels.others_text
    channels, _, _ = collect(path, crane, hydraulics, {'states': f'/right{STATES}'})
    assert channels.telemetry == '/right/oil' and channels.others == () and not channels.apart_text


def test_pressures_of_another_namespace_are_named(tmp_path, crane, hydraulics, swing):
    times, positions, velocities = (one[:300] for one in swing)
    states = cases.state_messages(crane, times, positions, velocities, topic=f'/left{STATES}')
    oil = telemetry_messages(hydraulics, times, topic='/right/oil')
    path = cases.write(tmp_path / 'a.mcap', states, oil, kinds={f'/left{STATES}': JOINT_STATE, '/right/oil': ARRAY})
    channels, _, _ = collect(path, crane, hydraulics)
    assert channels.apart_text == f"'/left{STATES}' and '/right/oil' are of two namespaces; are they of one machine?"


def test_without_states_what_is_there_is_listed(tmp_path, crane, hydraulics):
    path = cases.write(tmp_path / 'a.mcap', telemetry_messages(hydraulics, np.arange(10) * PERIOD))
    with pytest.raises(BagError, match=f'no topic with measured joints(.|\n)*{TELEMETRY}  {ARRAY}  10 messages'):
        collect(path, crane)


def test_a_bag_of_another_machine_is_said_to_be_one(tmp_path, crane, swing):
    times, positions, _ = swing
    names = ['elbow', 'lift_cylindre', 'wrist']
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times[:50], positions[:, :3], names=names))
    with pytest.raises(BagError, match=f"not of 'hiab_xs031': none of its joints {', '.join(names)}.*lift_cylinder"):
        collect(path, crane)


def test_too_few_joints_are_named_with_those_that_do_not_fit(tmp_path, crane, swing):
    times, positions, _ = swing
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(
        crane, times[:50], positions[:, :3], names=['slew', 'lift_cylinder', 'gripper']))
    with pytest.raises(BagError, match=r"do not fix 'tilt.*not of this machine: gripper"):
        collect(path, crane)


def test_definitions_that_are_not_those_of_ros_are_refused(tmp_path, crane, swing):
    times, positions, _ = swing
    wrong = b'std_msgs/Header header\nstring[] name\nfloat64[] velocity\nfloat64[] position\nfloat64[] effort\n'
    messages = cases.state_messages(crane, times[:50], positions)
    write_mcap(tmp_path / 'a.mcap', messages, schemas={JOINT_STATE: wrong})
    with pytest.raises(BagError, match='these cannot be read:\n.*definition of its messages in the bag'):
        collect(tmp_path / 'a.mcap', crane)


# --- blocks


def test_blocks_are_what_was_recorded(tmp_path, crane, hydraulics, swing):
    times, positions, velocities = swing
    efforts = np.arange(len(crane.joints)) + times[:, np.newaxis]
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions, velocities, efforts),
                       telemetry_messages(hydraulics, times))
    _, found, source = collect(path, crane, hydraulics)
    block, = found
    assert block.core == slice(0, 2000) and block.period == pytest.approx(PERIOD)
    np.testing.assert_allclose(np.diff(block.t), PERIOD, atol=1e-9)
    np.testing.assert_array_equal(block.positions, positions)
    np.testing.assert_allclose(block.x, expected(crane, times), atol=1e-12)
    np.testing.assert_allclose(block.xd[:, 0], 0.05 * np.pi * np.cos(np.pi * times), atol=1e-12)
    assert block.residual.max() < 1e-9
    # stamps in float64 seconds are good to a quarter of a microsecond, and pressures change by 2e7 Pa/s at most
    np.testing.assert_allclose(block.pressures, pressures(times), atol=20.0)
    slew = efforts[:, crane.joints.index('slew')]
    np.testing.assert_allclose(block.effort[:, 0], slew, atol=1e-12)
    lift = hydraulics.cylinders['lift_cylinder']
    force = lift.area_a * block.pressures[:, 0, 0] - lift.area_b * block.pressures[:, 0, 1]
    np.testing.assert_allclose(block.effort[:, 1], force)
    assert source.invalid == '' and block.command is None


def test_cores_partition_the_recording_and_overlaps_repeat_it(tmp_path, crane, swing):
    times, positions, _ = swing
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions))
    _, (whole,), _ = collect(path, crane)
    _, found, _ = collect(path, crane, rows=300, overlap_s=0.1)
    assert len(found) == 7
    np.testing.assert_array_equal(np.concatenate([block.t[block.core] for block in found]), whole.t)
    np.testing.assert_array_equal(np.concatenate([block.x[block.core] for block in found]), whole.x)
    for block in found[1:-1]:
        assert block.core.start == 50 and len(block.t) == 400
        np.testing.assert_array_equal(block.x, whole.x[np.searchsorted(whole.t, block.t)])


def test_messages_that_contradict_themselves_are_said_to(tmp_path, crane, swing):
    times, positions, _ = swing
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times[:50], positions[:, :3]))
    with pytest.raises(BagError, match=f'{STATES}: its messages contradict themselves'):
        collect(path, crane)


@pytest.mark.parametrize('measured', [
    ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), ('slew', 'lift_boom', 'tilt_boom', 'telescope'),
    ('telescope', 'tilt_cylinder', 'lift_boom', 'slew', 'gripper')])
def test_any_sufficient_joints_will_do(tmp_path, crane, swing, measured):
    times, positions, _ = (one[:100] for one in swing)
    columns = [crane.joints.index(name) if name in crane.joints else 0 for name in measured]
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions[:, columns], names=measured))
    _, (block,), _ = collect(path, crane)
    np.testing.assert_allclose(block.x, expected(crane, times), atol=1e-9)
    assert block.xd is None and np.isnan(block.effort).all()


def test_states_of_many_rows_are_those_of_each(crane, rng):
    names = ('slew', 'lift_boom', 'lift_cylinder', 'tilt_cylinder', 'telescope')
    rows = [crane.joint_state(crane.initial_position + 0.05 * rng.standard_normal(4), rng.standard_normal(4))
            for _ in range(20)]
    columns = [crane.joints.index(name) for name in names]
    position, velocity = (np.array([row[k][columns] for row in rows]) for k in (1, 2))
    position += 1e-4 * rng.standard_normal(position.shape)
    position[3, 1], position[4, 2] = np.nan, 50.0
    each = crane.joint_map(names)
    x, xd, residual = each.states(position, velocity)
    for k in range(20):
        if k in (3, 4):
            assert np.isnan(x[k]).all() and np.isnan(residual[k])
            continue
        one = each.state(position[k], velocity[k])
        np.testing.assert_array_equal(x[k], one[0])
        np.testing.assert_array_equal(xd[k], one[1])
        assert residual[k] == one[2]
    assert each.states(position)[1] is None
    with pytest.raises(ShapeError, match=r'expected \(N, 5\)'):
        each.states(position[:, :4])


def test_joints_that_fix_no_state_are_said_to(tmp_path, crane, hydraulics, swing):
    times, positions, _ = (one[:100] for one in swing)
    names = ('slew', 'lift_boom', 'tilt_barrel', 'telescope')
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(
        crane, times, positions[:, [crane.joints.index(name) for name in names]], names=names))
    with pytest.raises(BagError, match='no stretch of 8 instants.*two strokes fit within the limits of tilt_cylinder'):
        collect(path, crane)
    # strokes in mm reach no pin
    path = cases.write(tmp_path / 'mm.mcap', cases.state_messages(crane, times, 1000.0 * positions))
    with open_bag(path) as source, pytest.raises(BagError, match=r'^slew.*lift_cylinder.position: from .*: in mm\?'):
        channels = find_topics(source, crane)
        list(blocks(source, channels, crane, hydraulics, quality=Quality(channels, crane, hydraulics)))


def test_joints_on_two_topics_at_two_rates(tmp_path, crane, swing):
    times, positions, _ = swing
    first, second = ('slew', 'lift_cylinder'), ('tilt_cylinder', 'telescope')
    half = slice(None, None, 5)
    path = cases.write(
        tmp_path / 'a.mcap',
        cases.state_messages(crane, times, positions[:, [crane.joints.index(n) for n in first]], names=first),
        cases.state_messages(crane, times[half], positions[half][:, [crane.joints.index(n) for n in second]],
                             names=second, topic='/encoders', latency=3_000_000), kinds={'/encoders': JOINT_STATE})
    channels, found, _ = collect(path, crane)
    assert set(channels.states) == {STATES, '/encoders'}
    block, = found
    np.testing.assert_allclose(block.x, expected(crane, block.t - block.t[0]), atol=1e-6)
    assert len(block.t) > 1980


def test_two_publishers_of_one_topic(tmp_path, crane, swing):
    """Each with joints of its own, the second one 0.1 ms after the first."""
    times, positions, _ = swing
    first, second = ('slew', 'lift_cylinder'), ('tilt_cylinder', 'telescope')
    columns = [[crane.joints.index(name) for name in names] for names in (first, second)]
    _, later, _ = cases.motion(crane, 2000, PERIOD, times=times + 1e-4)
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions[:, columns[0]], names=first),
                       cases.state_messages(crane, times + 1e-4, later[:, columns[1]], names=second))
    channels, (block,), source = collect(path, crane)
    assert channels.states == (STATES,) and channels.period == pytest.approx(PERIOD) and source.bad == 0
    shift = (source.start_ns - BEGIN - channels.offsets[STATES]) / SECOND
    np.testing.assert_allclose(block.x, expected(crane, block.t + shift), atol=1e-7)
    assert len(block.t) > 1990


def test_two_publishers_of_one_instant_are_put_together(tmp_path, crane, swing):
    times, positions, _ = swing
    halves = [('slew', 'lift_cylinder'), ('tilt_cylinder', 'telescope')]
    path = cases.write(tmp_path / 'a.mcap', *(cases.state_messages(
        crane, times, positions[:, [crane.joints.index(name) for name in names]], names=names, latency=latency)
        for names, latency in zip(halves, (100_000, 150_000))))
    _, (block,), source = collect(path, crane)
    assert source.bad == 0 and len(block.t) > 1990
    np.testing.assert_allclose(block.x, expected(crane, block.t - block.t[0]), atol=1e-7)


@pytest.mark.parametrize('every, early', [(10, 0.0), (1, 0.0), (10, 1e-4)])
def test_a_gripper_on_the_same_topic_changes_nothing(tmp_path, crane, hydraulics, swing, every, early):
    times, positions, _ = swing
    finger = times[::every] - early
    path = cases.write(
        tmp_path / 'a.mcap', cases.state_messages(crane, finger, np.zeros((len(finger), 1)), names=('finger',),
                                                  latency=50_000),
        cases.state_messages(crane, times, positions))
    with open_bag(path) as source:
        channels = find_topics(source, crane)
        quality = Quality(channels, crane, hydraulics)
        block, = blocks(source, channels, crane, hydraulics, quality=quality)
    assert channels.period == pytest.approx(PERIOD) and len(block.t) > 1990
    np.testing.assert_allclose(block.x, expected(crane, block.t - block.t[0]), atol=1e-6)
    assert quality.topics[STATES].out_of_order == 0


def test_jittering_stamps_and_reordered_names(tmp_path, crane, rng):
    """Stamps scatter by a fifth of the period; each says truly when it was measured."""
    times = np.arange(2000) * PERIOD + rng.uniform(-0.2, 0.2, 2000) * PERIOD + 0.01
    _, positions, velocities = cases.motion(crane, 2000, PERIOD, times=times)
    turned = crane.joints[::-1]
    messages = cases.state_messages(crane, times, positions, velocities)
    messages[1::2] = cases.state_messages(crane, times, positions[:, ::-1], velocities[:, ::-1], names=turned)[1::2]
    # the way to the recorder takes 1 to 9 ms
    messages = [(topic, ns + int(rng.uniform(1e6, 9e6)), data) for topic, ns, data in messages]
    path = cases.write(tmp_path / 'a.mcap', messages)
    channels, found, source = collect(path, crane)
    # messages that overtook each other are left out, so the rest is bridged
    for block in found:
        np.testing.assert_allclose(np.diff(block.t), block.period, atol=1e-9)
    t = np.concatenate([block.t[block.core] for block in found])
    x = np.concatenate([block.x[block.core] for block in found])
    shift = channels.offsets[STATES] - (source.start_ns - BEGIN)
    np.testing.assert_allclose(x, expected(crane, t - shift / SECOND), atol=2e-6)
    assert len(t) > 1500 and source.bad == 0


def test_gaps_split_blocks_and_short_ones_are_bridged(tmp_path, crane, swing):
    times, positions, _ = swing
    lost = np.zeros(2000, dtype=bool)
    lost[500:502] = lost[1000:1100] = lost[1500] = True
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times[~lost], positions[~lost]))
    _, found, _ = collect(path, crane)
    assert [len(block.t) for block in found] == [1000, 900]
    assert found[1].t[0] - found[0].t[-1] == pytest.approx(101 * PERIOD)
    for block, begin in zip(found, (0.0, 1100 * PERIOD)):
        np.testing.assert_allclose(block.x, expected(crane, begin + np.arange(len(block.t)) * PERIOD), atol=1e-7)


def test_numbers_that_are_not_finite_are_bridged_and_counted(tmp_path, crane, swing):
    times, positions, _ = swing
    spoilt = positions.copy()
    spoilt[700, 1], spoilt[900:950, 7] = np.nan, np.inf
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, spoilt))
    _, found, source = collect(path, crane)
    assert source.bad == 51 and source.invalid
    assert [len(block.t) for block in found] == [900, 1050]
    np.testing.assert_allclose(found[0].x, expected(crane, times[:900]), atol=1e-7)


def test_pressures_of_a_topic_for_each_port(tmp_path, crane, hydraulics, swing):
    """At 100 Hz, absolute, some named by topic and some by frame."""
    times, positions, _ = swing
    slow = times[::5]
    rows, streams, kinds = pressures(slow), [], {}
    for k, name in enumerate(hydraulics.cylinders):
        for j, port in enumerate('ab'):
            topic = f'/sensors/{name}/{port}' if k else f'/sensors/first_port_{port}'
            kinds[topic] = PRESSURE
            streams.append([(topic, BEGIN + round(t * SECOND) + 300_000, cases.fluid_pressure(
                BEGIN + round(t * SECOND), value + ATMOSPHERE, name)) for t, value in zip(slow, rows[:, k, j])])
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions), *streams, kinds=kinds)
    with open_bag(path) as source:
        channels = find_topics(source, crane)
        quality = Quality(channels, crane, hydraulics)
        block, = blocks(source, channels, crane, hydraulics, quality=quality)
    assert len(channels.ports) == 6 and channels.telemetry == ''
    assert quality.findings() == [] and quality.signals['tilt_cylinder.pressure_b'].samples == 400
    there = block.t - block.t[0] <= slow[-1]
    np.testing.assert_allclose(block.pressures[there], pressures(times[there]), atol=2e3)
    assert np.isnan(block.pressures[~there]).all()
    telescope = hydraulics.cylinders['telescope']
    np.testing.assert_allclose(block.effort[:, 3], telescope.area_a * block.pressures[:, 2, 0]
                               - telescope.area_b * block.pressures[:, 2, 1])
    assert np.isnan(block.effort[:, 0]).all()


def test_commands_are_held(tmp_path, crane, swing):
    """Of each actuator the field that has a number counts, until the next message."""
    times, positions, _ = swing
    steps = times[::50]
    commands = [('/c/commands', BEGIN + round(t * SECOND), cases.joint_state(
        BEGIN + round(t * SECOND), crane.actuators, [np.nan, k, k, k], [np.nan] * 4, [5.0 * k, *[np.nan] * 3]))
        for k, t in enumerate(steps)]
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions), commands,
                       kinds={'/c/commands': JOINT_STATE})
    _, (block,), _ = collect(path, crane)
    assert np.isnan(block.effort).all()
    k = np.arange(2000) // 50
    np.testing.assert_array_equal(block.command, np.column_stack((5.0 * k, k, k, k)))


def test_a_delay_is_taken_off(tmp_path, crane, hydraulics, swing):
    times, positions, _ = swing
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(crane, times, positions),
                       telemetry_messages(hydraulics, times + 0.008))
    for delays, shift in (({}, 0.0), ({TELEMETRY: 0.006}, 0.006)):
        _, (block,), _ = collect(path, crane, hydraulics, delays=delays)
        good = np.isfinite(block.pressures[:, 0, 0])
        np.testing.assert_allclose(block.pressures[good], pressures(times[good] + shift), atol=50.0)
    with pytest.raises(BagError, match="no delay is known of topic '/x'"):
        collect(path, crane, hydraulics, delays={'/x': 1.0})


def test_topics_of_two_clocks_are_put_together_by_receipt(tmp_path, crane, hydraulics, swing):
    times, positions, _ = swing
    simulated = [(topic, ns, cases.joint_state(round(t * SECOND), crane.joints, positions[k]))
                 for k, ((topic, ns, _), t) in enumerate(zip(cases.state_messages(crane, times, positions), times))]
    path = cases.write(tmp_path / 'a.mcap', simulated, telemetry_messages(hydraulics, times, latency=100_000))
    channels, (block,), _ = collect(path, crane, hydraulics)
    assert not channels.by_stamp
    assert channels.clocks[TELEMETRY] == pytest.approx(-BEGIN / SECOND, rel=1e-6)
    np.testing.assert_allclose(block.pressures, pressures(times), atol=20.0)


def test_a_bag_that_is_all_simulated_time(tmp_path, crane, swing):
    """Received at half of real time; stamps say when it was."""
    times, positions, _ = swing
    messages = [(STATES, BEGIN + round(2 * t * SECOND),
                 cases.joint_state(round(t * SECOND), crane.joints, positions[k])) for k, t in enumerate(times)]
    path = cases.write(tmp_path / 'a.mcap', messages, kinds={STATES: JOINT_STATE})
    channels, (block,), source = collect(path, crane)
    assert channels.by_stamp and channels.period == pytest.approx(PERIOD) and source.bad == 0
    np.testing.assert_allclose(block.x, expected(crane, times), atol=1e-9)


def test_a_reference_and_a_machine_of_another_kind(tmp_path):
    five_bar = load(find_machine('five_bar'))
    times, positions, velocities = cases.motion(five_bar, 100, PERIOD, amplitude=0.01)
    point = cases.TYPES['trajectory_msgs/msg/JointTrajectoryPoint'](
        positions=np.zeros(2), velocities=np.zeros(2), accelerations=np.zeros(2), effort=np.zeros(0),
        time_from_start=cases.TYPES['builtin_interfaces/msg/Duration'](sec=0, nanosec=0))
    reference = [('/controller/reference', BEGIN + k, cases.serialised(cases.TYPES[TRAJECTORY](
        header=cases.header(BEGIN + k), joint_names=list(five_bar.actuators), points=[point]))) for k in range(10)]
    path = cases.write(tmp_path / 'a.mcap', cases.state_messages(five_bar, times, positions, velocities), reference,
                       kinds={'/controller/reference': TRAJECTORY})
    channels, (block,), _ = collect(path, five_bar)
    assert channels.reference == '/controller/reference'
    np.testing.assert_allclose(block.x, expected(five_bar, times, 0.01), atol=1e-9)


def test_what_is_said_again_for_an_instant_counts_where_it_is_held_and_is_left_out_where_it_is_measured():
    times, values = np.array([0, 10, 10, 5, 20]), np.array([[1.0], [2.0], [3.0], [9.0], [4.0]])
    held, measured = (Track(1, 10, held=kind) for kind in (True, False))
    for track in (held, measured):
        track.add(times, values)
    assert held.late == 1 and held.sample(np.array([9, 10, 15, 20])).ravel().tolist() == [1.0, 3.0, 3.0, 4.0]
    assert measured.late == 2 and measured.sample(np.array([10, 20])).ravel().tolist() == [2.0, 4.0]


def test_parts_of_an_instant_are_put_together_also_where_they_come_apart():
    nan, track = np.nan, Track(3, 10)
    track.add(np.array([0, 0, 10]), np.array([[1.0, nan, nan], [nan, 2.0, nan], [4.0, nan, nan]]))
    track.add(np.array([10, 10, 20]), np.array([[nan, nan, 6.0], [nan, 5.0, nan], [7.0, 8.0, 9.0]]))
    assert track.late == 0 and track.times.tolist() == [0, 10, 20]
    np.testing.assert_array_equal(track.values, [[1.0, 2.0, nan], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
