"""The node `validator`: what it publishes and when, what it says in diagnostics, and a bag played to it over DDS."""

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from support.bags.recorded_motion import crane, exact_block, oil, with_pressures
from support.machines import URDF

rclpy = pytest.importorskip('rclpy', reason='the nodes need rclpy')

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from support.nodes.by_hand import nodes_by_hand  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402

from psdyn_ros.model.errors import ModelError, UnknownNameError  # noqa: E402
from psdyn_ros.model.units import SECOND  # noqa: E402
from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.nodes.messages.conversions import stamp_to_ns  # noqa: E402
from psdyn_ros.nodes.observers.validator import ValidatorNode  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402

CRANE, OIL = URDF / 'hiab_xs031.urdf', URDF.parent / 'config' / 'hiab_xs031_hydraulics.yaml'
OK, WARN, ERROR, STALE = (getattr(DiagnosticStatus, name) for name in ('OK', 'WARN', 'ERROR', 'STALE'))
BEGIN = 1_000 * SECOND
EVERY = 5               # of the samples of `exact_block`: 100 Hz
OFFSET = 2e6            # Pa


def recorded(seconds=4.0):
    """[(ns since the begin, positions, velocities, efforts, pressures)] of a crane that does what its model says."""
    block = exact_block(seconds)
    columns = (block.x, block.xd, block.effort, with_pressures(block.effort))
    return [(round(t * SECOND), *(column[k] for column in columns)) for k, t in enumerate(block.t)][::EVERY]


def state(ns, x, xd=(), effort=(), names=None):
    msg = JointState(name=list(crane().actuators if names is None else names), position=list(x), velocity=list(xd),
                     effort=list(effort))
    conversions.ns_to_stamp(ns, msg.header.stamp)
    return msg


def telemetry(ns, pressures):
    writer = conversions.LabelledArrayWriter(tuple(oil().cylinders), ('pressure_a', 'pressure_b', 'supply_pressure',
                                                                      'stamp'))
    writer.values[:] = np.column_stack((pressures, np.full(3, 1e7), np.full(3, ns / SECOND)))
    return writer.message


@pytest.fixture
def make():
    with nodes_by_hand() as build:
        yield lambda **values: build(ValidatorNode, 'validator', **values)


def play(made, rows, begin=BEGIN, offset=(0.0, 0.0, 0.0, 0.0)):
    for ns, x, xd, effort, _ in rows:
        made.hear['joint_states'](state(begin + ns, x, xd, effort + offset))


def report(made, now=BEGIN, simulated=False):
    """{actuator or 'machine': (level, message, values)} at ns of the clock of the node."""
    msg = made.work._report.message(now, simulated)
    assert stamp_to_ns(msg.header.stamp) == now
    return {status.name.removeprefix('validator: '): (
        status.level, status.message, {pair.key: pair.value for pair in status.values}) for status in msg.status}


def test_outputs_carry_the_instants_that_they_are_about(make):
    made, rows = make(hydraulics=str(OIL), effort_source='message'), recorded()
    play(made, rows, offset=(100.0, 0.0, 0.0, 0.0))
    stamps = [stamp_to_ns(msg.header.stamp) - BEGIN for msg in made.sent['predicted']]
    assert stamps == [stamp_to_ns(msg.header.stamp) - BEGIN for msg in made.sent['residual']]
    # 50 Hz, from when the filter is complete on
    assert set(np.diff(stamps)) == {SECOND // 50} and stamps[0] <= 0.12 * SECOND and stamps[-1] >= 3.5 * SECOND
    efforts = {ns: effort for ns, _, _, effort, _ in rows}
    for ns, predicted, residual in zip(stamps, made.sent['predicted'], made.sent['residual']):
        assert predicted.name == residual.name == list(crane().actuators) and not predicted.position
        assert residual.effort[0] == pytest.approx(100.0, abs=5.0)
        assert predicted.effort[1:] == pytest.approx(efforts[ns][1:], abs=2500.0)      # corners of friction are rounded
    force, deviation = made.sent['external_force'][-1], made.sent['external_force_deviation'][-1]
    assert force.header == deviation.header and force.header.frame_id == 'tcp'
    # against the drive, which gives 100 N m more than the motion needs
    then = {ns: x for ns, x, *_ in rows}[stamp_to_ns(force.header.stamp) - BEGIN]
    found = np.array([force.wrench.force.x, force.wrench.force.y, force.wrench.force.z])
    assert found @ crane().link_twist(then, np.eye(4)[0], 'tcp')[:3] == pytest.approx(-100.0, abs=1.0)
    assert deviation.wrench.force.z > 0.0
    assert force.wrench.torque.x == force.wrench.torque.y == force.wrench.torque.z == 0.0


def test_output_rate_and_link_are_parameters(make):
    made = make(output_rate=0.0, contact_link='tilt_boom_link')
    play(made, recorded(2.0))
    stamps = [stamp_to_ns(msg.header.stamp) for msg in made.sent['predicted']]
    assert set(np.diff(stamps)) == {SECOND // 100}
    assert made.sent['external_force'][0].header.frame_id == 'tilt_boom_link'


def test_levels_are_those_of_the_tolerances(make, tmp_path):
    rows = recorded()
    made = make(hydraulics=str(OIL), effort_source='message')
    play(made, rows)
    found = report(made)
    assert {name: level for name, (level, *_) in found.items()} == dict.fromkeys((*crane().actuators, 'machine'), OK)
    assert found['machine'][1] == '4 actuators within their tolerances'
    assert set(found['lift_cylinder'][2]) >= {'rms [N or N m]', 'nrmse', 'bias [N or N m]', 'delay [s]',
                                              'tolerance of nrmse'}
    made = make(hydraulics=str(OIL), effort_source='message')
    play(made, rows, offset=(0.0, 0.0, 4000.0, 0.0))
    found = report(made)
    assert {name for name, (level, *_) in found.items() if level == ERROR} == {'tilt_cylinder', 'machine'}
    assert found['tilt_cylinder'][1] in found['machine'][1] and 'at most 5%' in found['machine'][1]
    config = tmp_path / 'tolerances.yaml'
    config.write_text('actuators: {tilt_cylinder: {nrmse: 0.9, bias: 0.9, delay: 1.0}}\n')
    made = make(hydraulics=str(OIL), effort_source='message', config=str(config))
    play(made, rows, offset=(0.0, 0.0, 4000.0, 0.0))
    assert report(made)['machine'][0] == OK


def test_silence_is_stale_and_a_clock_that_stands_is_not(make):
    made, rows = make(hydraulics=str(OIL), effort_source='message', state_timeout=0.5), recorded()
    found = report(made, BEGIN - SECOND)
    assert {level for level, *_ in found.values()} == {STALE} and found['machine'][1] == 'no state on /joint_states'
    now = [BEGIN]
    made.work._now = lambda: now[0]
    play(made, rows)
    assert report(made, now[0], True)['machine'][:2] == (OK, '4 actuators within their tolerances')
    assert report(made, now[0], True)['machine'][:2] == (OK, '4 actuators within their tolerances; the clock stands')
    found = report(made, now[0] + 2 * SECOND, True)
    assert {level for level, *_ in found.values()} == {STALE} and 'for 2 s' in found['machine'][1]
    # the clock of a bag that begins again
    assert report(made, BEGIN - 900 * SECOND, True)['machine'][0] == OK
    assert 'no time on /clock' in [report(made, 0, True) for _ in range(2)][-1]['machine'][1]


@pytest.mark.parametrize('simulated', [True, False])
def test_in_simulated_time_a_message_that_is_repeated_is_passed_over(make, simulated):
    made, rows = make(hydraulics=str(OIL), use_sim_time=simulated), recorded()
    made.work._now = lambda: BEGIN
    for ns, x, xd, effort, pressures in rows + rows[-1:] * 6:
        made.hear['joint_states'](state(BEGIN + ns, x, xd, effort))
        made.hear['simulator/hydraulic_telemetry'](telemetry(BEGIN + ns, pressures))
    level, said, values = report(made, simulated=simulated)['machine']
    assert level == (OK if simulated else ERROR), said
    assert ('rejected joint_states' in values) is not simulated


def test_bad_messages_are_counted_and_a_wrong_robot_is_named(make):
    made, rows = make(hydraulics=str(OIL)), recorded()
    play(made, rows)
    ns, x, xd, effort, pressures = rows[-1]
    ns += BEGIN + SECOND // 100
    for bad in (state(ns, [float('nan'), *x[1:]]), state(ns, x[:3]), state(0, x), state(BEGIN, x)):
        made.hear['joint_states'](bad)
    made.hear['simulator/hydraulic_telemetry'](telemetry(ns, np.full((3, 2), np.nan)))
    made.hear['simulator/hydraulic_telemetry'](Float64MultiArray(data=[1.0]))
    found = report(made)['machine']
    assert found[0] == WARN and '6 messages rejected' in found[1]
    assert found[2]['rejected joint_states'] == '4' and found[2]['rejected pressures'] == '2'
    assert 'before that of the last one' in found[2]['last rejected joint_states']
    made.hear['joint_states'](state(ns, x, xd, effort))
    found = report(made)['machine']
    assert found[0] == WARN and 'no pressures on /simulator/hydraulic_telemetry' not in found[1]
    said, more = [], make(hydraulics=str(OIL))
    more.node.get_logger = lambda: SimpleNamespace(info=said.append, warning=said.append)
    for k in range(3):
        more.hear['joint_states'](state(BEGIN + k, [*x, 0.0], names=(*crane().actuators, 'lift_bom')))
    assert said == ['measured: slew, lift_cylinder, tilt_cylinder, telescope',
                    "states of lift_bom are passed over: no joint of this machine; did you mean 'lift_boom'?"]
    wrong = make(hydraulics=str(OIL))
    for k in range(6):
        wrong.hear['joint_states'](state(BEGIN + k, x, names=('slew', 'lift_cilinder', 'tilt_cylinder', 'telescope')))
    level, said, _ = report(wrong)['machine']
    assert level == ERROR and "not of 'hiab_xs031': 'lift_cilinder'; did you mean 'lift_cylinder'?" in said


def test_pressures_that_are_missing_are_told(make):
    made, rows = make(hydraulics=str(OIL)), recorded(3.0)
    for ns, x, xd, _, pressures in rows:
        made.hear['joint_states'](state(BEGIN + ns, x, xd))
        if ns < SECOND:
            made.hear['simulator/hydraulic_telemetry'](telemetry(BEGIN + ns, pressures))
    level, said, _ = report(made)['machine']
    assert level == WARN and 'no pressures on /simulator/hydraulic_telemetry for ' in said
    made = make(hydraulics=str(OIL))
    play(made, [(ns, x, xd, np.full(4, np.nan), None) for ns, x, xd, *_ in rows])
    assert 'no effort of any actuator is known' in report(made)['machine'][1]


def test_known_delays_are_taken_off(make, tmp_path):
    config = tmp_path / 'delays.yaml'
    config.write_text('delays: {/simulator/hydraulic_telemetry: 0.05}\nactuator: {delay: 0.02}\n')
    made = make(hydraulics=str(OIL), config=str(config))
    for ns, x, xd, effort, pressures in recorded():
        made.hear['joint_states'](state(BEGIN + ns, x, xd, effort))
        made.hear['simulator/hydraulic_telemetry'](telemetry(BEGIN + ns + SECOND // 20, pressures))
    found = report(made)
    assert found['machine'][0] == OK and abs(float(found['tilt_cylinder'][2]['delay [s]'])) < 0.01


@pytest.mark.parametrize('text, values, error, says', [
    ('delays: {/simulator/telemetry: 0.1}', {}, ParameterError, 'did you mean'),
    ('actuators: {telescop: {nrmse: 0.1}}', {}, UnknownNameError, 'did you mean'),
    ('actuator: {nrmse: -1}', {}, ModelError, 'nrmse'),
    ('', {'hydraulics': '', 'effort_source': 'pressures'}, ParameterError, 'needs the parameter hydraulics'),
    ('', {'contact_link': 'tpc'}, UnknownNameError, "did you mean 'tcp'")])
def test_parameters_that_cannot_be_are_refused(make, tmp_path, text, values, error, says):
    config = tmp_path / 'config.yaml'
    config.write_text(text)
    with pytest.raises(error, match=says):
        make(**{'hydraulics': str(OIL), 'config': str(config), **values})


@pytest.mark.dds
def test_a_process_watches_a_bag_that_is_played_again_and_again(tmp_path):
    """With /clock: healthy, then one sensor of pressure off, then healthy again; messages that are none among them."""
    rows = recorded()
    with graph(tmp_path, '/rig') as g:
        residuals = g.listen(JointState, 'validator/residual')
        forces = g.listen(WrenchStamped, 'validator/external_force')
        states, pressures = g.publisher(JointState, 'joint_states'), g.publisher(
            Float64MultiArray, 'simulator/hydraulic_telemetry')
        clock = g.node.create_publisher(Clock, '/clock', 10)
        g.start('validator', '-p', f'robot_description:={CRANE}', '-p', f'hydraulics:={OIL}',
                '-p', 'use_sim_time:=true')
        g.until(lambda: g.reports and states.get_subscription_count() and pressures.get_subscription_count(), START_UP)

        def tick(ns):
            msg = Clock()
            conversions.ns_to_stamp(ns, msg.clock)
            clock.publish(msg)

        def lap(condition, offset=0.0, also=None):
            """Play the bag once, three rows in every turn, and wait for the condition."""
            left = iter(rows)

            def publish():
                for ns, x, xd, effort, chambers in (row for row, _ in zip(left, range(3))):
                    shifted = chambers.copy()
                    shifted[0, 0] += offset
                    pressures.publish(telemetry(BEGIN + ns, shifted))
                    states.publish(state(BEGIN + ns, x, xd, [effort[0], *np.full(3, np.nan)]))
                    tick(BEGIN + ns)
                    if also is not None:
                        also()
            g.until(lambda: next(left, None) is None and condition(), 60.0, each=publish)

        def level(name):
            return g.report(f'validator: {name}')[0]

        def values():
            return g.report('validator: machine')[2]

        tick(BEGIN)
        g.until(lambda: level('machine') == STALE)
        lap(lambda: level('lift_cylinder') == OK and level('machine') == OK)
        assert residuals[-1].name == list(crane().actuators) and forces[-1].header.frame_id == 'tcp'
        assert BEGIN < stamp_to_ns(residuals[-1].header.stamp) < BEGIN + 4 * SECOND
        # nobody plays on: the clock stands, which is no silence
        g.until(lambda: 'the clock stands' in g.report('validator: machine')[1])
        assert level('machine') == OK

        broken, numbers = state(BEGIN, [float('nan')] * 4), count()

        def disturb():
            if next(numbers) % 40 == 7:
                states.publish(broken)
                pressures.publish(Float64MultiArray(data=[1.0]))

        lap(lambda: level('lift_cylinder') == ERROR, OFFSET, disturb)
        assert level('tilt_cylinder') == OK and level('machine') == ERROR
        assert 'lift_cylinder' in g.report('validator: machine')[1]
        assert int(values()['restarts']) == 1 and int(values()['rejected pressures']) >= 5
        lap(lambda: level('lift_cylinder') == OK and level('machine') == OK)
        assert int(values()['restarts']) == 2

        ahead = count(BEGIN + 4 * SECOND, SECOND // 10)
        g.until(lambda: level('machine') == STALE and level('telescope') == STALE, each=lambda: tick(next(ahead)))
        assert g.processes.stop() == {'validator': 0}
