"""The demonstration of a hanging load: with and without a swing shaper, judged by what is left of the swing."""

import numpy as np
import pytest
from support.machines import URDF
from support.nodes.children import start

import psdyn_ros
from psdyn_ros.control.core.assembly import ControllerConfig, assemble
from psdyn_ros.control.reference.swing_shaper import ZVD

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros.model.parameters.hydraulics import read_hydraulics  # noqa: E402
from psdyn_ros.tools.demo import demo, hanging  # noqa: E402
from psdyn_ros.tools.demo.demo_safety import declared_safety  # noqa: E402
from psdyn_ros.tools.demo.demonstration import demonstration, through  # noqa: E402
from psdyn_ros.validation.bags.recording import read_bag  # noqa: E402
from psdyn_ros.validation.metrics import PASS  # noqa: E402
from psdyn_ros.validation.metrics.tracking import track, units  # noqa: E402
from psdyn_ros.validation.playback import recorded_motion  # noqa: E402
from psdyn_ros.validation.report import page, swing  # noqa: E402
from psdyn_ros.validation.validate import validate  # noqa: E402

JOINTS = ('hook_pitch', 'hook_roll')


def swung(run, moving_swing, resting_swing):
    """A `Swing` that is this wide [rad] while the reference moves, and at rest."""
    moving = np.arange(100) < 50
    width = np.where(moving, moving_swing, resting_swing)
    return swing.Swing(run, JOINTS, 0.1 * np.arange(100), moving, np.column_stack([width, -0.5 * width]))


@pytest.mark.lockstep
def test_residual_swing_is_the_largest_of_all_rests():
    moving = np.zeros(100, dtype=bool)
    moving[5:20] = moving[40:50] = moving[52:60] = True
    deviation = np.where(moving, 0.5, 0.1)
    deviation[50:52], deviation[70] = 0.4, 0.2      # where the motion turns round, and in the last rest
    one = swing.Swing('zvd', JOINTS, 0.1 * np.arange(100), moving, np.column_stack([deviation, -deviation]))
    assert one.rests == [slice(20, 40), slice(60, 100)]
    assert one.residual.tolist() == [0.2, 0.2] and one.largest.max() == 0.5
    assert np.isnan(one._replace(moving=np.ones(60, dtype=bool)).residual).all()


@pytest.mark.lockstep
def test_swing_at_rest_is_compared_and_judged():
    good, bad, bare = swung('zvd', 0.1, 0.004), swung('zvd', 0.1, 0.1), swung('none', 0.3, 0.2)
    assert swing.share_left((good, bare)) == pytest.approx(0.02) and swing.reason((good, bare)) == ''
    assert 'In 1 rest between and after the motions' in swing.sentence((good, bare))
    assert '0.23 instead of 11 degrees, 2.0%' in swing.sentence((good, bare))
    assert swing.reason((bad, bare)) == '50% of the swing is left with the shaper; expected at most 20%.'
    assert swing.reason((good,)) == swing.sentence((good,)) == '' and list(swing.table(())) == []
    rows = list(swing.table((good, bare)))
    assert rows[2] == ('hook_pitch', 'none', '17.19', '11.459') and len(rows) == 5


@pytest.mark.lockstep
def test_reference_stands_still_until_a_swing_is_over():
    crane = psdyn_ros.load(URDF / 'loader_crane.urdf')
    setup = hanging.compared(demo._setup('loader_crane', None, None, {}))
    assert [run['swing_shaper'] for run in setup.runs.values()] == [ZVD, 'none'] and setup.level == 'valve'
    pause = hanging.pause(crane, setup)
    assert pause == pytest.approx(1.1 * 2 * 2.8, rel=0.05)
    waypoints = demonstration(crane, setup.duration, setup.travel, pause=pause)
    assert waypoints.times[-1] == pytest.approx(setup.duration + 2.0 * pause)
    still = np.diff(waypoints.times)[(np.diff(waypoints.positions, axis=0) == 0.0).all(axis=1)]
    assert (still >= pause).sum() == 2


@pytest.mark.lockstep
def test_forwarder_reaches_every_point_of_its_way_and_a_notice_is_enough_to_check_it():
    forwarder, setup = psdyn_ros.load('forwarder'), hanging.compared(demo._setup('forwarder', None, None, {}))
    hydraulics = setup.simulator['hydraulics']
    declared = declared_safety(forwarder, setup.safety, hydraulics)
    waypoints = through(forwarder, setup.way, setup.duration, declared, hanging.pause(forwarder, setup))
    reference = assemble(ControllerConfig(
        forwarder, declared, 'valve_computed_torque', read_hydraulics(hydraulics, forwarder.actuators),
        setup.controller['rate'], passive_states='estimated', swing_shaper=ZVD)).law.reference
    reference.hold(forwarder.driven_machine.initial_position)
    validated, slices = reference.validate_trajectory(waypoints, 0.0, 1.0), 1
    while not validated.advance(0.0):
        slices += 1
    assert validated.shaped_by == 'path of the suspension' and slices < hanging.NOTICE * setup.controller['rate']
    reference.execute(validated, 0.0)
    leaves = np.flatnonzero((np.diff(waypoints.positions, axis=0) != 0.0).any(axis=1))
    for point in leaves:        # all stood still since the pause before
        at = reference.sample(1.0 + waypoints.times[point])
        np.testing.assert_allclose(at[0], waypoints.positions[point], atol=1e-9)
        np.testing.assert_allclose(at[1:], 0.0, atol=1e-5)     # Newton leaves 1e-9 m, steps are 40 ms


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.timeout(3600)          # in lock-step it takes as long as the computer is busy with other things
def test_hanging_load_is_demonstrated_with_and_without_shaper(tmp_path):
    process = start('psdyn_ros.cli', 'demo', '--machine', 'loader_crane', '--output', str(tmp_path))
    said, _ = process.communicate()
    assert process.returncode == 0, said
    assert 'PASS' in said and 'the load swings by up to' in said
    crane = psdyn_ros.load(URDF / 'loader_crane.urdf')
    runs = []
    for name in ('valve_computed_torque', 'valve_computed_torque_unshaped'):
        recording = read_bag(tmp_path / name, demo.JUDGED_TOPICS)
        runs.append(page.Run(name, recording, track(recording, units(crane.driven_machine))))
    assert all(run.tracking.passed for run in runs)
    shaped, bare = hanging.swings(crane, runs)
    assert np.degrees(bare.residual.max()) > 5.0 and swing.share_left((shaped, bare)) < 0.1
    text = (tmp_path / 'report.html').read_text()
    assert 'Swing of the load' in text and page.MOTION in text and page.WITHOUT_SHAPER in text
    assert (tmp_path / 'swing.png').stat().st_size > 10_000 and (tmp_path / f'{hanging.UNSHAPED}.html').is_file()
    motion = recorded_motion(tmp_path / 'valve_computed_torque_unshaped', crane).motion
    shown = {name: column for one in motion.signals if one.title == 'position'
             for name, column in zip(one.names, one.values.T)}
    assert np.ptp(shown['hook_roll']) > 0.1
    assert validate(tmp_path / 'valve_computed_torque', 'loader_crane').verdict.verdict == PASS
