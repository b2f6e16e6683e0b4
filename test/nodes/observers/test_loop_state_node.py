"""The node `loop_state`, and robot_state_publisher on what it publishes."""

import time
from xml.etree import ElementTree

import numpy as np
import pytest
from support.machines import URDF, columns, moving

import psdyn_ros

rclpy = pytest.importorskip('rclpy', reason='the node needs rclpy')

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402

from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.nodes.observers.loop_state import LoopStateNode  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402

CRANE = URDF / 'hiab_xs031.urdf'
BOOMS = ('slew', 'lift_boom', 'tilt_boom', 'telescope')
NAN = float('nan')


# robot_state_publisher


def turn(axis, angle):
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def frame(origin):
    """(4, 4) of an <origin>."""
    T = np.eye(4)
    if origin is not None:
        T[:3, 3] = [float(value) for value in origin.get('xyz', '0 0 0').split()]
        for axis, angle in zip(np.eye(3), origin.get('rpy', '0 0 0').split()):
            T[:3, :3] = turn(axis, float(angle)) @ T[:3, :3]
    return T


class RobotStatePublisher:
    """The rules of robot_state_publisher: which messages it takes, and what becomes of them."""

    def __init__(self, urdf):
        self._joints = ElementTree.parse(urdf).getroot().findall('joint')
        self._last = 0
        self.transforms = {}        # child -> (parent, (4, 4))
        for joint in self._joints:
            if joint.get('type') == 'fixed':
                self._set(joint, frame(joint.find('origin')))

    def take(self, msg):
        assert len(msg.name) == len(msg.position), 'ignored: another number of positions than of names'
        stamp = msg.header.stamp.sec * 10**9 + msg.header.stamp.nanosec
        assert stamp > self._last, 'not published: no later than the last one'
        self._last = stamp
        position = dict(zip(msg.name, msg.position))
        for joint in self._joints:
            if joint.get('type') == 'fixed':
                continue
            q, move = position[joint.get('name')], np.eye(4)      # KeyError: no transform of this joint
            axis = [float(value) for value in joint.find('axis').get('xyz').split()]
            if joint.get('type') == 'prismatic':
                move[:3, 3] = q * np.array(axis)
            else:
                move[:3, :3] = turn(axis, q)
            self._set(joint, frame(joint.find('origin')) @ move)

    def _set(self, joint, transform):
        assert np.isfinite(transform).all()
        self.transforms[joint.find('child').get('link')] = joint.find('parent').get('link'), transform

    def pose(self, link):
        """(4, 4) in the root link."""
        pose = np.eye(4)
        while link in self.transforms:
            link, transform = self.transforms[link]
            pose = transform @ pose
        return pose


# the node


class Bench:
    """The node without a network: messages are handed to it, and what it publishes is kept."""

    def __init__(self, node):
        self.node, self.full, self.actuators, self.reports = node, [], [], []
        self._stamp = 0
        work = self.work = LoopStateNode(node)
        work._publish_full = lambda msg: self.full.append(copied(msg))
        work._publish_actuators = lambda msg: self.actuators.append(copied(msg))
        work._publish_diagnostics = lambda msg: self.reports.append(msg.status[0])

    def state(self, names, position, velocity=(), effort=(), stamp=None):
        self._stamp = self._stamp + 2_000_000 if stamp is None else stamp
        msg = JointState(name=list(names), position=list(position), velocity=list(velocity), effort=list(effort))
        conversions.ns_to_stamp(self._stamp, msg.header.stamp)
        self.work._on_state(msg)

    def report(self):
        self.work._report()
        status = self.reports[-1]
        return status.level, status.message, {pair.key: pair.value for pair in status.values}


def copied(msg):
    return JointState(header=msg.header, name=list(msg.name), position=list(msg.position),
                      velocity=list(msg.velocity), effort=list(msg.effort))


@pytest.fixture
def bench():
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    nodes = []

    def make(**values):
        values = {'robot_description': str(CRANE), **values}
        nodes.append(rclpy.create_node(
            'loop_state', context=context, automatically_declare_parameters_from_overrides=True,
            parameter_overrides=[Parameter(name, value=value) for name, value in values.items()]))
        return Bench(nodes[-1])

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_outputs_are_complete_in_every_order_and_carry_the_stamp(bench, crane, rng):
    b = bench()
    publisher = RobotStatePublisher(CRANE)
    for k in range(12):
        x, xd, q, qd = moving(crane, rng)
        names = rng.permutation([BOOMS, crane.actuators, crane.joints][k % 3]).tolist()
        rows = columns(crane, names)
        b.state(names, q[rows], qd[rows], np.zeros(len(names)))
        full, actuators = b.full[-1], b.actuators[-1]
        assert full.name == list(crane.joints) and actuators.name == list(crane.actuators)
        assert full.position == pytest.approx(q, abs=1e-9) and full.velocity == pytest.approx(qd, abs=1e-9)
        assert actuators.position == pytest.approx(x, abs=1e-9) and actuators.velocity == pytest.approx(xd, abs=1e-9)
        assert full.header.stamp.nanosec == 2_000_000 * (k + 1)
        publisher.take(full)
        for link in crane.links:
            assert publisher.pose(link) == pytest.approx(crane.link_pose(x, link), abs=1e-9), link
    assert len(b.full) == len(b.actuators) == 12
    level, summary, values = b.report()
    assert (level, summary, values['answered messages']) == (DiagnosticStatus.OK, 'complete', '12')
    assert set(values) >= {'residual of lift_eye [m or rad]', 'residual of tilt_eye [m or rad]', 'distance to toggle',
                           'nearest to toggle', *(f'margin of {name} [m or rad]' for name in crane.actuators)}


def test_efforts_are_told_where_they_are_known(bench, crane):
    b, q = bench(), crane.joint_state(crane.initial_position)[1]
    rows = columns(crane, BOOMS)
    b.state(BOOMS, q[rows], effort=[5.0, 0.0, 0.0, NAN])
    full = dict(zip(b.full[-1].name, b.full[-1].effort))
    assert full['slew'] == 5.0 and full['lift_boom'] == full['tilt_barrel'] == 0.0
    assert np.isnan([full['lift_cylinder'], full['telescope']]).all()
    assert b.actuators[-1].effort == pytest.approx([5.0, NAN, NAN, NAN], nan_ok=True)
    assert len(b.full[-1].velocity) == len(b.actuators[-1].velocity) == 0
    b.state(crane.joints, q, 0.0 * q, np.arange(8.0))
    assert list(b.actuators[-1].effort) == [float(crane.joints.index(name)) for name in crane.actuators]
    b.state(BOOMS, q[rows])
    assert len(b.full[-1].effort) == len(b.actuators[-1].effort) == 0
    level, summary, _ = b.report()
    assert level == DiagnosticStatus.WARN and 'no velocities are measured' in summary


def test_a_contradiction_stops_the_output_and_is_explained(bench, crane):
    b, q = bench(), crane.joint_state(crane.initial_position)[1]
    b.state(crane.joints, q)
    wrong = q.copy()
    wrong[crane.joints.index('tilt_barrel')] += 0.05
    b.state(crane.joints, wrong)
    assert len(b.full) == 1
    level, summary, values = b.report()
    assert level == DiagnosticStatus.ERROR
    assert 'contradict each other by 0.05' in summary and "loop 'tilt_eye'" in summary
    assert 'without tilt_barrel the other joints agree' in summary
    assert values['contradicting joints'] == 'tilt_barrel' and values['rejected messages'] == '1'
    assert float(values['residual of tilt_eye [m or rad]']) == pytest.approx(0.05, rel=0.2)
    b.state(crane.joints, q)
    level, summary, _ = b.report()
    assert len(b.full) == 2 and level == DiagnosticStatus.WARN and '1 messages rejected' not in summary


def test_what_is_missing_is_named(bench, crane):
    b, q = bench(), crane.joint_state(crane.initial_position)[1]
    assert b.report()[:2] == (DiagnosticStatus.ERROR, 'no state')
    b.state(('slew', 'lift_cylinder', 'telescope'), q[columns(crane, ('slew', 'lift_cylinder', 'telescope'))])
    level, summary, _ = b.report()
    assert level == DiagnosticStatus.ERROR and "do not fix 'tilt_cylinder'" in summary and not b.full


@pytest.mark.parametrize('fields, says', [
    ({'position': [0.0] * 3}, 'position has 3 entries for 4 names'),
    ({'velocity': [0.0] * 3}, 'velocity has 3 entries for 4 names'),
    ({'effort': [0.0] * 5}, 'effort has 5 entries for 4 names'),
    ({'names': ['slew', 'slew', 'lift_boom', 'tilt_boom']}, 'slew named more than once'),
    ({'position': [float('inf'), 0.4, 0.3, 0.1]}, "'slew' is inf"),
    ({'stamp': 0}, 'stamp is zero'), ({'stamp': 1_000_000}, 'before that of the last state')])
def test_messages_that_cannot_be_used_are_answered_by_nothing(bench, crane, fields, says):
    b, q = bench(), crane.joint_state(crane.initial_position)[1]
    good = {'names': BOOMS, 'position': q[columns(crane, BOOMS)]}
    b.state(**good)
    b.state(**{**good, **fields})
    assert len(b.full) == 1 and says in b.report()[1]


def test_time_may_begin_anew_after_a_pause(bench, crane):
    b, q = bench(state_timeout=0.02), crane.joint_state(crane.initial_position)[1]
    b.state(crane.actuators, crane.initial_position, stamp=10**12)
    deadline = time.monotonic() + 5.0
    while len(b.full) < 2 and time.monotonic() < deadline:
        b.state(crane.joints, q, stamp=10**9)
    assert len(b.full) == 2


@pytest.mark.long
def test_the_assembly_mode_is_that_of_the_parameter(bench):
    path = URDF / 'five_bar.urdf'
    low = psdyn_ros.load(path, initial={'elbow_1': -1.15, 'elbow_2': -2.61})
    names, q, _, _ = low.joint_state(low.initial_position)
    shoulders = [names.index(name) for name in ('shoulder_1', 'shoulder_2')]
    elbow = names.index('elbow_1')
    for assembly, same in (('', False), ('elbow_1=-1.15 elbow_2=-2.61', True)):
        b = bench(robot_description=str(path), assembly=assembly)
        b.state(('shoulder_1', 'shoulder_2'), q[shoulders], [0.1, 0.0])
        assert (abs(b.full[-1].position[elbow] - q[elbow]) < 1e-9) == same
        assert len(b.full[-1].velocity) == 4


def test_silence_limits_and_toggle_points_are_told(bench, crane):
    b = bench(state_timeout=0.001, margin_warning=0.05, toggle_warning=1.0)
    x = crane.limits.upper - [1.0, 0.02, 0.1, -0.01]
    b.state(crane.actuators, x)
    deadline = time.monotonic() + 5.0
    while b.report()[:2] != (DiagnosticStatus.ERROR, 'no state any more') and time.monotonic() < deadline:
        pass
    assert b.report()[:2] == (DiagnosticStatus.ERROR, 'no state any more')
    b.work._timeout = 10**12
    level, summary, _ = b.report()
    assert level == DiagnosticStatus.WARN and 'lift_cylinder is 0.02 from its limit' in summary
    assert 'telescope is beyond its limit by 0.01' in summary and 'near its toggle point' in summary


def test_efforts_from_pressures_are_those_of_the_areas(bench, crane):
    from psdyn_ros.model.parameters.hydraulics import read_hydraulics
    path = URDF.parent / 'config' / 'hiab_xs031_hydraulics.yaml'
    b = bench(effort_source='pressures', hydraulics=str(path))
    q = crane.joint_state(crane.initial_position)[1]
    b.state(crane.joints, q, 0.0 * q, np.ones(8))
    assert len(b.full[-1].effort) == 0 and 'efforts are not known: no pressures came' in b.report()[1]
    cylinders = read_hydraulics(path, crane.actuators).cylinders
    pressures = np.array([[5e6, 1e6], [2e6, 3e6], [1e6, 0.0]])
    telemetry = conversions.LabelledArrayWriter(tuple(cylinders), ('stamp', 'pressure_b', 'supply_pressure',
                                                                   'pressure_a'))
    (hear,) = (one.callback for one in b.node.subscriptions if one.topic_name.endswith('hydraulic_telemetry'))
    telemetry.values[:] = np.column_stack([np.full(3, 0.003), pressures[:, 1], np.full(3, 1e7), pressures[:, 0]])
    hear(serialize_message(telemetry.message))
    b.state(crane.joints, q, 0.0 * q)
    expected = {name: a * cylinder.area_a - c * cylinder.area_b
                for (name, cylinder), (a, c) in zip(cylinders.items(), pressures)}
    found = dict(zip(b.actuators[-1].name, b.actuators[-1].effort))
    assert np.isnan(found.pop('slew')) and found == pytest.approx(expected)
    telemetry.values[0, 1] = NAN
    hear(serialize_message(telemetry.message))                             # refused: the ones before go on
    b.state(crane.joints, q, 0.0 * q)
    assert len(b.full[-1].effort) == 8 and b.report()[2]['rejected messages'] == '1'
    b.state(crane.joints, q, 0.0 * q, stamp=10**9)
    assert len(b.full[-1].effort) == 0 and 'pressures are 0.997 s older than the state' in b.report()[1]
    with pytest.raises(ParameterError, match='needs the parameter hydraulics'):
        bench(effort_source='pressures')


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_process_completes_what_encoders_and_cylinders_say(tmp_path, crane, rng):
    """Over DDS, as robot_state_publisher and others see it; the plan of the machine comes as a file."""
    with graph(tmp_path, '/rig') as g:
        full = g.listen(JointState, 'joint_states_full')
        actuators = g.listen(JointState, 'loop_state/actuator_states')
        sender = g.publisher(JointState, 'joint_states')
        g.start('loop_state', '-p', f'robot_description:={CRANE}')
        g.until(lambda: g.reports and sender.get_subscription_count(), START_UP)
        assert g.report('loop_state: loops')[:2] == (DiagnosticStatus.ERROR, 'no state')
        x, xd, q, qd = moving(crane, rng)
        sent = [0]

        def send(names, values=q):
            def publish():
                rows = columns(crane, names)
                msg = JointState(name=list(names), position=values[rows].tolist(), velocity=qd[rows].tolist())
                sent[0] += 2_000_000
                conversions.ns_to_stamp(10**9 + sent[0], msg.header.stamp)
                sender.publish(msg)
            return publish

        for names in (BOOMS, crane.actuators, ('telescope', 'tilt_cylinder', 'lift_boom', 'slew')):
            del full[:], actuators[:]
            g.until(lambda: len(full) > 3 and len(actuators) > 3, each=send(names))
        publisher = RobotStatePublisher(CRANE)
        for msg in full:
            publisher.take(msg)
        assert full[-1].position == pytest.approx(q, abs=1e-9)
        assert publisher.pose('tcp') == pytest.approx(crane.link_pose(x, 'tcp'), abs=1e-9)
        g.until(lambda: g.report('loop_state: loops')[0] == DiagnosticStatus.OK, each=send(BOOMS))
        wrong = q.copy()
        wrong[crane.joints.index('lift_cylinder')] += 0.05
        g.until(lambda: 'without lift_cylinder the other' in g.report('loop_state: loops')[1],
                each=send(crane.joints, wrong))
        g.until_quiet(full)
        del full[:]
        g.until(lambda: g.report('loop_state: loops')[2]['contradicting joints'] == 'lift_cylinder',
                each=send(crane.joints, wrong))
        assert not full
        assert g.processes.stop() == {'loop_state': 0}
