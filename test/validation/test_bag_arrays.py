"""`read_bag`: what was written into a bag comes back as arrays by name, without a model."""

import numpy as np
import pytest
from support.bags import bag_cases as cases
from support.bags.recorded_motion import crane, exact_block, oil, write_demonstration, write_swinging

import psdyn_ros
from psdyn_ros.model.units import ATMOSPHERE, SECOND
from psdyn_ros.tools.fuzzing import mutations as making
from psdyn_ros.validation.bags.bulk_decoder import PRESSURE, type_store
from psdyn_ros.validation.bags.recording import BagError, write_bag

BEGIN = 1_700_000_000 * SECOND


@pytest.fixture(scope='module')
def swinging(tmp_path_factory):
    return write_swinging(tmp_path_factory.mktemp('bags') / 'swinging.mcap', seconds=2.0)


@pytest.fixture(scope='module')
def demonstration(tmp_path_factory):
    return write_demonstration(tmp_path_factory.mktemp('bags') / 'demo', seconds=1.0)


def test_joints_and_pressures_come_back_as_they_were_written(swinging):
    bag = psdyn_ros.read_bag(swinging)
    block = exact_block(2.0)
    assert bag.joints.topic == making.STATES and bag.commands is None and bag.damage == ''
    assert set(bag.joints.names) == set(crane().joints) and len(bag.joints.time) == len(bag.pressures.time)
    columns = [bag.joints.names.index(name) for name in crane().coordinates]
    assert np.abs(bag.joints.position[:, columns] - block.x[::5]).max() < 1e-12
    assert np.abs(np.diff(bag.joints.time) - 0.01).max() < 1e-6 and abs(bag.joints.time[0]) < 1e-3
    assert bag.pressures.names == tuple(oil().cylinders)
    force = [one.area_a * bag.pressures.a[:, k] - one.area_b * bag.pressures.b[:, k]
             for k, one in enumerate(oil().cylinders.values())]
    # noise of 0.5 bar on each
    assert np.abs(np.mean(np.transpose(force) - block.effort[::5, 1:], axis=0)).max() < 500.0


def test_commands_of_a_simulated_bag_are_found(demonstration):
    bag = psdyn_ros.read_bag(demonstration)
    assert bag.commands is not None and set(bag.commands.names) <= set(crane().joints)
    assert bag.duration == pytest.approx(1.0, abs=0.05)
    text = repr(bag)
    assert text.startswith(f'Bag {demonstration}: ') and f'messages on {bag.joints.topic}: ' in text
    assert len(text.splitlines()) <= 6


def test_the_table_has_all_parts_at_the_times_of_the_joints(demonstration):
    pytest.importorskip('pandas')
    bag = psdyn_ros.read_bag(demonstration)
    frame = bag.to_frame()
    assert len(frame) == len(bag.joints.time) and frame.index.name == 'time'
    assert (frame['joints/position/slew'] == bag.joints.position[:, bag.joints.names.index('slew')]).all()
    name = bag.commands.names[0]
    quantity = 'position' if bag.commands.position is not None else 'effort'
    late = bag.joints.time[-1]
    last = np.searchsorted(bag.commands.time, late, side='right') - 1
    written = getattr(bag.commands, quantity)[last, 0]
    assert np.array_equal(frame[f'commands/{quantity}/{name}'].iloc[-1], written, equal_nan=True)
    tables = bag.to_dict()
    assert tables['joints']['position']['slew'].shape == bag.joints.time.shape and tables['reference'] is None


def ports(message):
    """Yield pressures of the two chambers of one cylinder, each on a topic of its own, absolute."""
    for k in range(3):
        ns = BEGIN + k * 10_000_000
        yield making.STATES, ns, cases.joint_state(ns, ['lift_cylinder'], [0.1 * k], [0.0], [0.0])
        for port, value in (('a', 1e6), ('b', 2e6)):
            yield f'/lift_cylinder/pressure_{port}', ns, message(ns, ATMOSPHERE + value + k)


def test_single_pressures_become_gauge_pressures_of_their_cylinder(tmp_path):
    store = type_store()
    kinds = store.types

    def message(ns, value):
        stamp = kinds['builtin_interfaces/msg/Time'](sec=ns // SECOND, nanosec=ns % SECOND)
        header = kinds['std_msgs/msg/Header'](stamp=stamp, frame_id='')
        return bytes(store.serialize_cdr(kinds[PRESSURE](header=header, fluid_pressure=value, variance=0.0), PRESSURE))

    types = {making.STATES: 'sensor_msgs/msg/JointState', '/lift_cylinder/pressure_a': PRESSURE,
             '/lift_cylinder/pressure_b': PRESSURE}
    write_bag(tmp_path / 'bag', ports(message), types)
    bag = psdyn_ros.read_bag(tmp_path / 'bag')
    assert bag.pressures.names == ('lift_cylinder',) and bag.pressures.topic == '/lift_cylinder'
    assert np.allclose(bag.pressures.a[:, 0], 1e6 + np.arange(3)) and np.allclose(bag.pressures.b[:, 0],
                                                                                2e6 + np.arange(3))
    assert 'Pa' in repr(bag.pressures)


def test_topics_that_are_given_are_taken(swinging):
    with pytest.raises(BagError, match="^topics: no part 'joint' of a bag; did you mean 'joints'"):
        psdyn_ros.read_bag(swinging, topics={'joint': '/x'})
    with pytest.raises(BagError, match="has no topic '/joint_stats'; it has:"):
        psdyn_ros.read_bag(swinging, topics={'joints': '/joint_stats'})
    with pytest.raises(BagError, match=f"^topic '{making.TELEMETRY}' for joints is of std_msgs/msg/Float64MultiArray"):
        psdyn_ros.read_bag(swinging, topics={'joints': making.TELEMETRY})
    assert psdyn_ros.read_bag(swinging, topics={'commands': making.STATES}).commands.topic == making.STATES


def test_a_bag_that_is_none_is_named(tmp_path):
    with pytest.raises(BagError, match="nowhere' does not exist; expected a folder with metadata.yaml"):
        psdyn_ros.read_bag(tmp_path / 'nowhere')


def test_a_truncated_bag_gives_its_beginning_and_says_what_is_lost(swinging, tmp_path):
    whole = swinging.read_bytes()
    (tmp_path / 'cut.mcap').write_bytes(whole[:int(0.6 * len(whole))])
    bag = psdyn_ros.read_bag(tmp_path / 'cut.mcap')
    assert 0 < len(bag.joints.time) and bag.damage and f'  damage: {bag.damage}' in repr(bag)


def test_a_bag_without_joints_lists_what_it_has(swinging, tmp_path):
    store = type_store()
    text = bytes(store.serialize_cdr(store.types['std_msgs/msg/String'](data='hello'), 'std_msgs/msg/String'))
    write_bag(tmp_path / 'bag', [('/words', BEGIN, text)], {'/words': 'std_msgs/msg/String'})
    with pytest.raises(BagError, match='has no topic with measured joints .* it has:\n  /words  std_msgs/msg/String'):
        psdyn_ros.read_bag(tmp_path / 'bag')
