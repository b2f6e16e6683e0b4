"""`psdyn simulate`: commands from a file, a plant, a bag."""

import re
from pathlib import Path

import numpy as np
import pytest

from psdyn_ros import cli
from psdyn_ros.api.load import load
from psdyn_ros.kernels.hydraulics.records import QUANTITIES
from psdyn_ros.model.errors import ModelError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.units import SECOND
from psdyn_ros.simulation.snapshot import replay
from psdyn_ros.validation import simulated_states
from psdyn_ros.validation.bags.recording import read_messages
from psdyn_ros.validation.bags.simulated_bag import COMMANDS, DYNAMICS, LABELS, STATES, TELEMETRY, TRUTH
from psdyn_ros.validation.simulated_run import Run, simulate_into_bag

COMMANDED = """time,slew,lift_cylinder,tilt_cylinder,telescope
0,0,0,0,0
0.1,800,0.25,-0.2,0.3
0.6,nan,0,0,0
"""


@pytest.fixture(scope='module')
def commands(tmp_path_factory):
    path = tmp_path_factory.mktemp('input') / 'commands.csv'
    path.write_text(COMMANDED)
    return path


@pytest.fixture(scope='module')
def simulated(tmp_path_factory, commands):
    """(outcome, bag) of a second."""
    bag = tmp_path_factory.mktemp('simulated') / 'bag'
    return simulate_into_bag('hiab_xs031', commands, bag, Run(duration=1.0), quiet=True), bag


def contents(bag):
    return read_messages(bag, (STATES, TRUTH, DYNAMICS, COMMANDS, TELEMETRY))


def test_the_bag_holds_what_happened(simulated):
    outcome, bag = simulated
    assert outcome.simulated == pytest.approx(1.0) and not outcome.fault
    messages = contents(bag)
    assert {len(rows) for rows in messages.values()} == {101} and outcome.messages == 505
    crane = load(find_machine('hiab_xs031'))
    stamps = [row.header.stamp.sec * SECOND + row.header.stamp.nanosec for row in messages[TRUTH]]
    np.testing.assert_array_equal(np.diff(stamps), 10_000_000)
    for truth, state, dynamics in zip(messages[TRUTH], messages[STATES], messages[DYNAMICS]):
        assert tuple(truth.name) == tuple(crane.joints)
        np.testing.assert_array_equal(truth.position, state.position)
        x, xd, residual = crane.actuator_state(crane.joints, np.array(truth.position), np.array(truth.velocity))
        assert residual < 1e-9
        point = dynamics.points[0]
        assert tuple(dynamics.joint_names) == crane.actuators
        np.testing.assert_allclose(point.positions, x, atol=1e-12)
        # what the bag says of forces and accelerations is one motion
        np.testing.assert_allclose(crane.forward_dynamics(x, xd, np.array(point.effort)), point.accelerations,
                                   rtol=1e-6, atol=1e-6)
    telemetry = messages[TELEMETRY][-1]
    assert [dim.label for dim in telemetry.layout.dim] == ['lift_cylinder,tilt_cylinder,telescope', ','.join(LABELS)]
    rows = np.array(telemetry.data).reshape(3, len(LABELS))
    assert rows[0, LABELS.index('stamp')] == pytest.approx(1.0)
    assert (rows[:, QUANTITIES.index('pressure_a')] > 1e5).all()
    command = messages[COMMANDS][30]
    np.testing.assert_array_equal(command.position, [np.nan, 0.25, -0.2, 0.3])
    np.testing.assert_array_equal(command.effort, [800.0, np.nan, np.nan, np.nan])


def test_the_report_shows_commands_motion_and_pressures(simulated):
    outcome, bag = simulated
    page = outcome.report.read_text()
    assert outcome.report == bag / 'report.html' and '1.000 s simulated.' in page
    for cell in outcome.table[2]:       # of the lift cylinder
        assert f'<td>{cell}</td>' in page
    assert page.count('<iframe') == 1 and (bag / 'playback.html').is_file()
    for name in ('motion.png', 'actuators.png', 'pressures.png'):
        assert (bag / name).read_bytes().startswith(b'\x89PNG')


@pytest.mark.long
def test_what_is_drawn_is_what_the_bag_holds(tmp_path, commands, monkeypatch):
    monkeypatch.setattr(simulated_states, 'MAX_KEPT', 40)
    plants = []
    add = simulated_states.SimulatedStates.add
    monkeypatch.setattr(simulated_states.SimulatedStates, 'add', lambda self: plants.append(self) or add(self))
    simulate_into_bag('hiab_xs031', commands, tmp_path / 'bag', Run(duration=1.0), quiet=True)
    states, messages = plants[-1], contents(tmp_path / 'bag')
    rows = np.round(100 * states.time).astype(int)
    assert 20 < len(rows) <= 41 and (np.diff(rows) == 4).all()
    for row, x, force in zip(rows, states.x, states.effort):
        point = messages[DYNAMICS][row].points[0]
        np.testing.assert_array_equal(force, point.effort)
        np.testing.assert_allclose(x, point.positions, atol=1e-15)
    # the ranges are those of all instants
    low, high = (float(part) for part in list(states.ranges())[4][1].split(' to '))
    lengths = [message.points[0].positions[3] for message in messages[DYNAMICS]]
    assert (low, high) == pytest.approx((min(lengths), max(lengths)), rel=1e-3)


@pytest.mark.long
def test_the_same_seed_gives_the_same_bag_and_another_one_does_not(tmp_path, commands):
    sensors = find_config('hiab_xs031_sensors.yaml')
    for name, seed in (('a', 3), ('b', 3), ('c', 4)):
        simulate_into_bag('hiab_xs031', commands, tmp_path / name, Run(duration=0.3, sensors=sensors, seed=seed),
                          quiet=True)
    a, b, c = (contents(tmp_path / name) for name in 'abc')
    for topic in a:
        assert repr(a[topic]) == repr(b[topic])
    assert repr(a[TRUTH]) == repr(c[TRUTH]) and repr(a[STATES]) != repr(c[STATES])
    assert repr(a[TRUTH]) != repr(a[STATES])


def test_a_machine_without_hydraulics_takes_efforts(tmp_path):
    path = tmp_path / 'efforts.csv'
    path.write_text('time,drive_1,drive_2\n0,0,0\n')
    five_bar = load(find_machine('five_bar'))
    path.write_text(f'time,{",".join(five_bar.actuators)}\n0{",0" * len(five_bar.actuators)}\n')
    outcome = simulate_into_bag('five_bar', path, tmp_path / 'bag', Run(duration=0.2), quiet=True)
    assert not outcome.fault and not (tmp_path / 'bag' / 'pressures.png').exists()
    messages = read_messages(tmp_path / 'bag', (TRUTH, TELEMETRY))
    assert len(messages[TRUTH]) == 21 and not messages[TELEMETRY]


def test_a_plant_that_cannot_go_on_ends_the_run_with_one_and_can_be_replayed(tmp_path, capsys):
    commands, hydraulics = tmp_path / 'commands.yaml', tmp_path / 'hydraulics.yaml'
    commands.write_text('- {time: 0, telescope: 1.0}\n')
    text = open(find_config('hiab_xs031_hydraulics.yaml'), encoding='utf-8').read()
    # without end stops the piston leaves its cylinder
    changed = text.replace('    dead_volume_a: 5.0e-3\n    dead_volume_b: 5.0e-3\n',
                           '    end_stop: {stiffness: 0.0}\n    dead_volume_a: 1.0e-4\n    dead_volume_b: 1.0e-6\n')
    assert changed != text
    hydraulics.write_text(changed)
    code = cli.main(['simulate', 'hiab_xs031', '--input', str(commands), '--output', str(tmp_path / 'bag'),
                     '--hydraulics', str(hydraulics), '--duration', '8'])
    said = capsys.readouterr().out
    assert code == 1 and 'FAULT: the motion cannot be integrated beyond' in said, said
    assert 'FAULT: the motion cannot' in (tmp_path / 'bag' / 'report.html').read_text()
    again = replay(tmp_path / 'bag' / 'snapshot.npz')
    assert again.fault and again.fault.split(':')[1:] == said.split('FAULT: ')[1].split(';')[0].split(':')[1:]
    truth = contents(tmp_path / 'bag')[TRUTH]
    assert len(truth) < 800 and np.isfinite([row.position for row in truth]).all()


def test_a_machine_that_falls_to_where_its_loops_do_not_close_ends_the_run_with_one(tmp_path, capsys):
    commands, bag, urdf = tmp_path / 'commands.csv', tmp_path / 'bag', tmp_path / 'free.urdf'
    text = Path(find_machine('pkm_2pur2rpu')).read_text()
    urdf.write_text(re.sub('lower="[^"]*" upper="[^"]*"', 'lower="-9" upper="9"', text))    # nothing stops it before
    commands.write_text('time,slider_1,slider_2,leg_3,leg_4\n0,0.1,0.11,0.12,0.13\n3,0.1,0.11,0.12,0.13\n')
    assert cli.main(['simulate', str(urdf), '--input', str(commands), '--output', str(bag)]) == 1
    assert 'FAULT: ' in capsys.readouterr().out
    assert {'report.html', 'snapshot.npz', 'metadata.yaml'} <= {path.name for path in bag.iterdir()}


def test_a_bag_is_never_overwritten(simulated, commands, capsys):
    _, bag = simulated
    before = {path: path.read_bytes() for path in bag.iterdir()}
    assert cli.main(['simulate', 'hiab_xs031', '--input', str(commands), '--output', str(bag)]) == 2
    assert 'will not be overwritten' in capsys.readouterr().err
    assert {path: path.read_bytes() for path in bag.iterdir()} == before


@pytest.mark.parametrize('arguments, says', [
    (['--input', 'nowhere.csv'], 'nowhere.csv'),
    (['--mode', 'slew=valve'], "'valve' of 'slew': expected one of effort"),
    (['--mode', 'slew'], "--mode 'slew': expected JOINT=MODE"),
    (['--duration', '-1'], '--duration -1: expected a positive number'),
    (['--duration', '1e-9'], 'expected a period of the plant'),
    (['--initial', 'slew'], "--initial 'slew': expected JOINT=POSITION"),
    (['--hydraulics', 'none', '--mode', 'telescope=valve'], 'every command mode is effort'),
    (['--output', '.'], "output '.' exists and will not be overwritten; expected a new folder"),
    (['--output', '/proc/bag'], "No such file or directory: '/proc/bag'"),
    (['--hydraulics', 'none'], "commands.csv', line 4: no command of slew; without hydraulics expected one of every"),
])
def test_what_it_cannot_use_ends_it_with_two(tmp_path, commands, capsys, arguments, says):
    code = cli.main(['simulate', 'hiab_xs031', '--input', str(commands), '--output', str(tmp_path / 'bag'),
                     *arguments])
    assert code == 2 and says in capsys.readouterr().err


@pytest.mark.parametrize('rate, near', [(700.0, '500 or 1000'), (33.0, '32.2581 or 33.3333'), (5000.0, '1000')])
def test_log_rates_between_whole_steps_are_refused_with_the_nearest(tmp_path, commands, rate, near):
    with pytest.raises(ModelError, match=f'log rate {rate:g} Hz: .* expected {near} Hz'):
        simulate_into_bag('hiab_xs031', commands, tmp_path / 'bag', Run(duration=1.0, log_rate=rate), quiet=True)
    assert not (tmp_path / 'bag').exists()
