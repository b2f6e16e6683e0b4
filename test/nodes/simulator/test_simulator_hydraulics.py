"""The simulator over real DDS with hydraulics: command modes, watchdog, telemetry, faults, real cylinders."""


import numpy as np
import pytest
import yaml
from support.machines import URDF
from support.paths import CONFIG

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from sensor_msgs.msg import FluidPressure, JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

pytestmark = pytest.mark.dds

CRANE = URDF / 'hiab_xs031.urdf'
MODES = {'slew': 'effort', 'lift_cylinder': 'valve', 'tilt_cylinder': 'pressure', 'telescope': 'velocity'}
FIELD = {'effort': 'effort', 'pressure': 'effort', 'velocity': 'velocity', 'valve': 'position'}
CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'
PART = 'simulator: plant'
NAN = float('nan')
TTL = 0.1


@pytest.fixture(scope='module')
def hydraulics(tmp_path_factory):
    """The hydraulics of the crane, with pressure compensators so that velocities can be commanded."""
    contents = yaml.safe_load((CONFIG / 'hiab_xs031_hydraulics.yaml').read_text())
    contents['cylinders']['telescope']['valve']['compensated'] = True
    path = tmp_path_factory.mktemp('hydraulics') / 'crane.yaml'
    path.write_text(yaml.safe_dump(contents))
    return path


class Watched:
    """A simulator as a process, and the last that it said of everything."""

    def __init__(self, g):
        self.graph, self.truth, self.true_telemetry, self.telemetry = g, None, None, None
        g.listen(JointState, 'simulator/ground_truth', lambda msg: setattr(self, 'truth', msg))
        g.listen(Float64MultiArray, 'simulator/ground_truth/hydraulic_telemetry',
                 lambda msg: setattr(self, 'true_telemetry', msg))
        g.listen(Float64MultiArray, 'simulator/hydraulic_telemetry', lambda msg: setattr(self, 'telemetry', msg))
        self.states = g.listen(JointState, 'joint_states')
        self.named = g.publisher(JointState, 'simulator/joint_commands', 1)
        self.ordered = g.publisher(Float64MultiArray, 'simulator/commands', 1)
        self.valves = g.publisher(JointState, 'simulator/valve_commands', 1)

    def velocity(self, joint):
        return self.truth.velocity[list(self.truth.name).index(joint)]

    def at_start(self, start):
        """Whether the last true state and telemetry are those of the start, at rest."""
        position = dict(zip(self.truth.name, self.truth.position))
        return (max(map(abs, self.truth.velocity)) < 1e-5
                and [position[name] for name in MODES] == pytest.approx(start, abs=1e-4)
                and all(self.row(name)['spool_position'] == 0.0 for name in CYLINDERS))

    def row(self, cylinder, telemetry=None):
        """{quantity: value} of a cylinder in the true telemetry."""
        msg = telemetry or self.true_telemetry
        rows, columns = ([*dim.label.split(',')] for dim in msg.layout.dim)
        assert (len(rows), len(columns)) == tuple(dim.size for dim in msg.layout.dim)
        return dict(zip(columns, np.reshape(msg.data, (len(rows), len(columns)))[rows.index(cylinder)]))

    def report(self):
        return self.graph.report(PART)

    def count(self, topic):
        return int(self.report()[2].get(f'rejected {topic}', 0))

    def until(self, condition, each=None, seconds=10.0):
        return self.graph.until(condition, seconds, each)

    def command(self, **values):
        """Publish commands by name, each in the field of its mode; NaN in the others."""
        msg = JointState(name=list(values), **{field: [NAN] * len(values) for field in set(FIELD.values())})
        for k, (name, value) in enumerate(values.items()):
            getattr(msg, FIELD[MODES[name]])[k] = value
        self.named.publish(msg)


@pytest.fixture(scope='module')
def process(hydraulics, tmp_path_factory):
    with graph(tmp_path_factory.mktemp('plant'), '/oil') as g:
        modes = [part for name in ('tilt_cylinder', 'telescope')
                 for part in ('-p', f'command_modes.{name}:={MODES[name]}')]
        watched = Watched(g)
        g.start('simulator', '-p', f'robot_description:={CRANE}', '-p', f'hydraulics:={hydraulics}', *modes,
                '-p', f'sensors:={CONFIG / "hiab_xs031_sensors.yaml"}', '-p', f'ttl:={TTL}', '-p', 'seed:=5',
                '-p', 'publish_fluid_pressure:=true')
        g.until(lambda: watched.states and watched.truth and watched.true_telemetry and watched.telemetry and g.reports,
                START_UP)
        for publisher in (watched.named, watched.ordered, watched.valves):
            g.until(publisher.get_subscription_count)
        yield watched
        assert g.processes.stop() == {'simulator': 0}


@pytest.fixture
def plant(process, crane):
    """The plant at its start, every actuator at its safe output."""
    assert process.graph.call(Trigger, 'simulator/clear_faults', Trigger.Request()).success
    assert process.graph.call(Trigger, 'simulator/reset', Trigger.Request()).success
    process.truth = process.true_telemetry = None
    # messages of before the reset may come after its response
    process.until(lambda: process.truth and process.true_telemetry and process.report()[:2] == (WARN, 'held')
                  and process.at_start(crane.initial_position))
    return process


def inject(plant, text):
    parameter = Parameter(name='inject_fault', value=ParameterValue(
        type=ParameterType.PARAMETER_STRING, string_value=text))
    request = SetParameters.Request(parameters=[parameter])
    return plant.graph.call(SetParameters, 'simulator/set_parameters', request).results[0]


# start and telemetry


def test_it_starts_at_rest_with_pressures_that_carry_the_load(plant, crane):
    assert np.abs(plant.truth.velocity).max() < 1e-5
    position = dict(zip(plant.truth.name, plant.truth.position))
    assert [position[name] for name in crane.actuators] == pytest.approx(crane.initial_position, abs=1e-4)
    row = plant.row('lift_cylinder')
    assert row['safe'] == 1.0 and row['spool_position'] == 0.0
    net = np.pi / 4 * (0.08**2 * row['pressure_a'] - (0.08**2 - 0.045**2) * row['pressure_b'])
    assert net + row['friction_force'] == pytest.approx(row['net_force'], abs=1.0)
    assert row['net_force'] == pytest.approx(crane.gravity_forces(crane.initial_position)[1], rel=1e-3)


def test_telemetry_says_what_it_holds_and_sensors_measure_its_pressures(plant):
    labels = [dim.label for dim in plant.true_telemetry.layout.dim]
    assert labels == [','.join(CYLINDERS), 'pressure_a,pressure_b,flow_a,flow_b,spool_position,valve_command,'
                      'friction_force,net_force,supply_pressure,load_pressure,safe,stamp']
    now = plant.graph.node.get_clock().now().nanoseconds * 1e-9
    assert plant.row('telescope')['stamp'] == pytest.approx(now, abs=1.0)
    seen = []
    plant.until(lambda: len(seen) > 50, lambda: seen.append(plant.row('telescope', plant.telemetry)['pressure_a']))
    true = plant.row('telescope')['pressure_a']
    assert len(set(seen)) > 5 and np.mean(seen) == pytest.approx(true, abs=5e4)
    assert np.allclose(np.array(seen) % 6e3, 0.0, atol=1.0) or np.allclose((np.array(seen) + 1.0) % 6e3, 1.0, atol=2.0)


def test_pressures_of_ports_are_absolute(plant):
    messages = plant.graph.listen(FluidPressure, 'simulator/pressure/lift_cylinder/a')
    plant.until(lambda: len(messages) > 20)
    mean = np.mean([msg.fluid_pressure for msg in messages])
    assert mean == pytest.approx(plant.row('lift_cylinder')['pressure_a'] + 101325.0, abs=8e4)


# commands


def test_every_actuator_obeys_commands_in_its_mode(plant, crane):
    hold = float(crane.gravity_forces(crane.initial_position)[0])
    before = plant.row('tilt_cylinder')

    def drive():
        load = (np.pi / 4 * (0.08**2 * before['pressure_a'] - (0.08**2 - 0.045**2) * before['pressure_b'])) / (
            np.pi / 4 * 0.08**2)
        plant.command(slew=hold + 1500.0, lift_cylinder=0.1, tilt_cylinder=load + 2e6, telescope=0.05)

    plant.until(lambda: plant.report()[:2] == (OK, 'running'), drive)
    plant.until(lambda: plant.velocity('slew') > 0.02 and plant.velocity('lift_cylinder') > 0.02
                and plant.velocity('telescope') == pytest.approx(0.05, rel=0.1), drive)
    plant.until(lambda: plant.velocity('tilt_cylinder') > 0.005, drive)
    # a stall of the computer lets commands expire
    plant.until(lambda: plant.row('lift_cylinder')['valve_command'] == pytest.approx(0.1)
                and not any(plant.row(name)['safe'] for name in CYLINDERS), drive)


def test_a_subset_is_obeyed_and_the_others_stay_safe(plant):
    plant.until(lambda: plant.velocity('lift_cylinder') > 0.02 and [plant.row(name)['safe'] for name in CYLINDERS]
                == [0.0, 1.0, 1.0], lambda: plant.command(lift_cylinder=0.1))
    plant.until(lambda: plant.report()[2]['at safe output'] == 'slew, tilt_cylinder, telescope',
                lambda: plant.command(lift_cylinder=0.1))
    assert abs(plant.velocity('slew')) < 1e-3


def test_commands_that_stop_coming_end_at_the_safe_output_after_the_ttl(plant):
    safe = []
    plant.graph.listen(Float64MultiArray, 'simulator/ground_truth/hydraulic_telemetry', lambda msg: safe.append(
        (plant.row('lift_cylinder', msg)['stamp'], plant.row('lift_cylinder', msg)['safe'],
         plant.row('lift_cylinder', msg)['valve_command'])))
    sent = []

    def drive():
        sent.append(plant.graph.node.get_clock().now().nanoseconds * 1e-9)
        plant.command(lift_cylinder=0.1)

    plant.until(lambda: plant.velocity('lift_cylinder') > 0.02, drive)
    plant.until(lambda: safe and safe[-1][1] == 1.0)
    obeyed = max(stamp for stamp, flag, _ in safe if flag == 0.0)
    assert TTL - 0.02 < obeyed - sent[-1] < TTL + 0.06
    assert safe[-1][2] == 0.0
    plant.until(lambda: abs(plant.velocity('lift_cylinder')) < 1e-3)


def test_valve_commands_have_a_topic_of_their_own(plant):
    msg = JointState(name=['lift_cylinder'], position=[-0.1])
    plant.until(lambda: plant.velocity('lift_cylinder') < -0.01, lambda: plant.valves.publish(msg))
    before = plant.count('valve_commands')
    plant.valves.publish(JointState(name=['tilt_cylinder'], position=[0.1]))
    plant.until(lambda: plant.count('valve_commands') == before + 1)


def test_an_array_commands_all_in_their_modes(plant, crane):
    hold = float(crane.gravity_forces(crane.initial_position)[0])
    msg = Float64MultiArray(data=[hold + 1500.0, 0.1, 0.0, 0.05])
    plant.until(lambda: plant.velocity('lift_cylinder') > 0.02 and plant.velocity('slew') > 0.02,
                lambda: plant.ordered.publish(msg))


def test_what_is_out_of_range_is_clipped_and_counted(plant):
    before = int(plant.report()[2]['saturated commands'])
    plant.until(lambda: plant.row('lift_cylinder')['valve_command'] == 1.0, lambda: plant.command(lift_cylinder=1.5))
    plant.until(lambda: int(plant.report()[2]['saturated commands']) > before)


# faults and real cylinders


def test_a_fault_of_the_machine_can_be_injected_and_cleared(plant):
    assert inject(plant, '{kind: spool_offset, target: lift_cylinder, value: 0.3}').successful
    plant.until(lambda: plant.row('lift_cylinder')['spool_position'] > 0.25)
    plant.until(lambda: plant.report()[2]['active faults'] == 'spool_offset of lift_cylinder (0.3)')
    assert plant.graph.call(Trigger, 'simulator/clear_faults', Trigger.Request()).success
    plant.until(lambda: abs(plant.row('lift_cylinder')['spool_position']) < 0.01)
    result = inject(plant, '{kind: spool_offset, target: lift_cylinder, value: 3}')
    assert not result.successful and 'expected -1 to 1' in result.reason


def test_a_real_cylinder_moves_the_load_and_its_silence_freezes_it(plant, crane):
    forces = plant.graph.publisher(JointState, 'simulator/measured/lift_cylinder', 1)
    motions = plant.graph.listen(JointTrajectory, 'simulator/load_motion/lift_cylinder')
    plant.until(lambda: forces.get_subscription_count() and motions)
    hold = float(crane.gravity_forces(crane.initial_position)[1])

    def measure(force=hold + 6000.0):
        msg = JointState(name=['lift_cylinder'], effort=[force])
        msg.header.stamp = motions[-1].header.stamp
        forces.publish(msg)

    plant.until(lambda: motions[-1].points[0].velocities[0] > 0.01, measure)
    point = motions[-1].points[0]
    assert motions[-1].joint_names == ['lift_cylinder'] and len(point.accelerations) == len(point.positions) == 1
    plant.until(lambda: 'lift_cylinder frozen: no measurement' in plant.report()[1])
    plant.until(lambda: abs(plant.velocity('lift_cylinder')) < 1e-3)
    before = plant.count('measured/lift_cylinder')
    forces.publish(JointState(name=['telescope'], effort=[0.0]))
    plant.until(lambda: plant.count('measured/lift_cylinder') == before + 1)
    plant.graph.node.destroy_publisher(forces)
