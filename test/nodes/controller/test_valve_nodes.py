"""The controller on valves: pressures out of messages, and the node over real DDS with the test as the machine."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from builtin_interfaces.msg import Time  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from sensor_msgs.msg import FluidPressure  # noqa: E402
from std_msgs.msg import Float64MultiArray, Header  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402
from support.nodes.still_machine import StillMachine  # noqa: E402

from psdyn_ros.api.hydraulics.statics import equilibrium_state, hydraulic_records  # noqa: E402
from psdyn_ros.control.laws.gains import gain_entries, with_entries  # noqa: E402
from psdyn_ros.control.laws.valve_computed_torque import ValveControl  # noqa: E402
from psdyn_ros.kernels.hydraulics.records import QUANTITIES  # noqa: E402
from psdyn_ros.model.locate import find_config  # noqa: E402
from psdyn_ros.model.units import ATMOSPHERE  # noqa: E402
from psdyn_ros.nodes.controller.parameters import gains  # noqa: E402
from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.nodes.messages.conversions import MessageError  # noqa: E402
from psdyn_ros.nodes.messages.pressures import PORTS, PressureInputs, TelemetryReader  # noqa: E402

CRANE, HYDRAULICS = URDF / 'hiab_xs031.urdf', find_config('hiab_xs031_hydraulics.yaml')
CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
COLUMNS = (*QUANTITIES, 'safe', 'stamp')


def telemetry(pressures, stamp, rows=CYLINDERS, columns=COLUMNS, supply=190e5):
    """The Float64MultiArray of pressures {cylinder: (a, b)} with a stamp in s."""
    writer = conversions.LabelledArrayWriter(rows, columns)
    for row, name in zip(writer.values, rows):
        known = {'pressure_a': pressures[name][0], 'pressure_b': pressures[name][1], 'supply_pressure': supply,
                 'stamp': stamp}
        row[:] = [known.get(column, 0.0) for column in columns]
    return writer.message


SOME = {'lift_cylinder': (80e5, 50e5), 'tilt_cylinder': (70e5, 40e5), 'telescope': (30e5, 60e5), 'other': (1e5, 2e5)}


@pytest.mark.parametrize('rows', [CYLINDERS, ('other', *reversed(CYLINDERS))])
@pytest.mark.parametrize('columns', [COLUMNS, tuple(reversed(COLUMNS))])
def test_telemetry_is_read_by_its_labels(rows, columns):
    stamp, values, supply = TelemetryReader(CYLINDERS).read(telemetry(SOME, 1234.5, rows, columns))
    assert values.tolist() == [list(SOME[name]) for name in CYLINDERS]
    assert stamp == 1_234_500_000_000 and supply == 190e5


def spoilt(change):
    msg = telemetry(SOME, 1.0)
    change(msg)
    return msg


def set_entry(value):
    def change(msg):
        msg.data[0] = value
    return change


@pytest.mark.parametrize('msg, words', [
    (telemetry(SOME, 1.0, ('lift_cylinder', 'tilt_cylinder', 'other')), "'telescope' is labelled 0 times"),
    (telemetry(SOME, 1.0, (*CYLINDERS, 'telescope')), "'telescope' is labelled 2 times"),
    (telemetry(SOME, 1.0, columns=QUANTITIES), "'stamp' is labelled 0 times"),
    (spoilt(lambda msg: msg.data.pop()), 'entries, expected 3 x 12'),
    (spoilt(lambda msg: msg.layout.dim.pop()), 'has 1 dimensions'),
    (spoilt(set_entry(math.nan)), 'not finite'),
    (spoilt(set_entry(1e12)), 'absurd'),
    (spoilt(set_entry(-3e5)), 'absurd'),
    (telemetry(SOME, math.inf), 'not finite'),
    (Float64MultiArray(), '0 dimensions'),
])
def test_bad_telemetry_is_refused_and_the_reason_named(msg, words):
    with pytest.raises(MessageError, match=words):
        TelemetryReader(CYLINDERS).read(msg)


def test_pressures_of_ports_go_on_where_time_goes_back():
    ports, taken = {}, []
    node = SimpleNamespace(create_subscription=lambda kind, topic, callback, qos: ports.update({topic[-3:]: callback}))
    PressureInputs(node, ['c'], PORTS, '', take=lambda stamp, values, supply: taken.append((stamp, values.tolist())),
                   reject=pytest.fail)

    def say(port, seconds, gauge):
        ports[port](FluidPressure(header=Header(stamp=Time(sec=seconds)), fluid_pressure=ATMOSPHERE + gauge))

    for seconds, gauge in (10, 1e5), (11, 2e5), (1, 3e5), (2, 4e5):
        say('c/a', seconds, gauge)
        say('c/b', seconds, 2.0 * gauge)
    assert [stamp // 10**9 for stamp, _ in taken] == [10, 11, 1, 2]
    np.testing.assert_allclose([values for _, values in taken], [[[g, 2.0 * g]] for g in (1e5, 2e5, 3e5, 4e5)])


def test_gains_are_parameters_of_the_actuators_they_are_for(crane, hydraulics):
    law = ValveControl(crane, hydraulics, 0.002)
    table = gains(law)
    names = [parameter.name for parameter in table]
    assert {name for name in names if name.startswith('gains.slew.')} == {
        'gains.slew.stiffness', 'gains.slew.damping', 'gains.slew.integral', 'gains.slew.error_filter'}
    assert 'gains.telescope.flow_integral' in names and all(p.live for p in table)
    values = [p.default for p in table]
    values[names.index('gains.telescope.flow_integral')] = 7.0
    before, after = law.gains, with_entries(law.gains, gain_entries(law), values)
    assert after.flow_integral[3] == 7.0 and after.flow_integral[1] == before.flow_integral[1]
    assert (after.inertia == before.inertia).all()


# the node, with the test in the place of the machine


def oil_at_rest(crane, hydraulics):
    """{cylinder: (a, b)} Pa gauge of the crane at rest on its oil."""
    records = hydraulic_records(crane, hydraulics)
    fluid, _, _ = equilibrium_state(crane, hydraulics, *records, crane.initial_position)
    return dict(zip(CYLINDERS, fluid[:, :2].tolist()))


ON_VALVES = ('-p', f'hydraulics:={HYDRAULICS}', '-p', 'law:=valve_computed_torque')


@pytest.fixture(scope='module')
def controlled(crane, hydraulics, tmp_path_factory):
    with graph(tmp_path_factory.mktemp('controller'), '/valves') as g, \
            StillMachine(g, crane, oil_at_rest(crane, hydraulics), telemetry) as machine:
        g.start_controller(*ON_VALVES)
        machine.held()
        g.until(lambda: g.reports)
        yield machine
        assert g.stop() == {'controller': 0}


@pytest.mark.dds
@pytest.mark.lockstep
def test_valves_stay_shut_over_a_machine_at_rest_and_the_other_axis_gets_its_torque(controlled, crane):
    command = controlled.held()
    assert tuple(command.name) == crane.actuators and not command.velocity
    position, effort = np.array(command.position), np.array(command.effort)
    assert np.isnan(position[0]) and np.abs(position[1:]).max() < 1e-3
    assert np.isnan(effort[1:]).all() and effort[0] == pytest.approx(0.0, abs=1e-3)


@pytest.mark.dds
@pytest.mark.lockstep
def test_without_fresh_pressures_the_valves_are_shut_and_the_other_axis_is_left_out(controlled, crane):
    g = controlled.graph
    controlled.held()
    g.provoke()
    controlled.oil_speaks = False
    g.until(lambda: 'F01: no pressures came for' in g.report('controller: control')[1])
    g.until(lambda: len(controlled.commands[-1].name) == 3)
    del controlled.commands[:]
    g.until(lambda: len(controlled.commands) > 50)
    for command in controlled.commands:
        # the safe outputs that the machine declares: neutral of valves, brake of the drive
        assert tuple(command.name) == crane.actuators[1:]
        assert list(command.position) == [0.0, 0.0, 0.0]
    assert np.abs(np.array(controlled.held().position)[1:]).max() < 1e-3


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('shift, value', [(-10.0, None), (10.0, None), (0.0, math.nan), (0.0, 1e12)])
def test_bad_pressures_are_rejected_and_counted(controlled, shift, value):
    controlled.held()
    before = controlled.rejected('pressures')

    def send():
        msg = telemetry(controlled.pressures, controlled.now() * 1e-9 + shift)
        if value is not None:
            msg.data[0] = value
        controlled.telemetry.publish(msg)

    controlled.graph.until(lambda: controlled.rejected('pressures') > before, each=send)
    assert controlled.graph.report('controller: control')[1].startswith('HOLD')


@pytest.mark.dds
@pytest.mark.lockstep
def test_gains_may_change_while_it_runs(controlled):
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=6.0)
    request = SetParameters.Request(parameters=[Parameter(name='gains.telescope.flow_stiffness', value=value)])
    results = controlled.graph.call(SetParameters, 'controller/set_parameters', request).results
    assert results[0].successful
    controlled.held()


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_pressures_may_come_port_by_port(crane, hydraulics, tmp_path):
    with graph(tmp_path, '/ports') as g, StillMachine(g, crane, oil_at_rest(crane, hydraulics)) as machine:
        g.start_controller(*ON_VALVES, '-p', 'pressure_source:=ports', '-p', 'pressure_topic:=oil')
        assert np.abs(np.array(machine.held().position)[1:]).max() < 1e-3
        assert g.stop() == {'controller': 0}


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('case', thorough([
    (ON_VALVES[2:], 'needs the parameter hydraulics'),
    ((*ON_VALVES[:2], '-p', 'law:=computed_torque', '-p', 'output.telescope:=valve'), 'this law commands effort'),
    ((*ON_VALVES, '-p', 'output.telescope:=valv'), "did you mean 'valve'"),
    ((*ON_VALVES[:2], '-p', 'law:=valve_computed_torqe'), "did you mean 'valve_computed_torque'"),
], 1), ids=lambda case: case[1])
def test_law_hydraulics_and_outputs_have_to_go_together(tmp_path, case):
    arguments, words = case
    with graph(tmp_path, '/refused') as g:
        process = g.start_controller(*arguments)
        g.until(g.processes.ended, START_UP)
        assert process.returncode == 2 and words in g.said('controller')
