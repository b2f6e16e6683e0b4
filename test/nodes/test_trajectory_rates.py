"""A controller takes a trajectory at any rate, by either trigger, and its machine follows it to its end."""

import numpy as np
import pytest
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from support.nodes.graph import START_UP, away, graph, trajectory  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

MACHINE = '-p', f'robot_description:={URDF / "hiab_xs031.urdf"}'
WAY = np.array((0.05, 0.02, -0.02, 0.05))
LAST_STATE = 0.18       # s without a state before a stop, the widest that may be declared


@pytest.mark.long
@pytest.mark.parametrize('trigger, rate', [
    (trigger, rate) for rate in (50.0, 20.0, 100.0, 200.0) for trigger in ('timer', 'state')])
def test_trajectory_is_taken_and_followed_to_its_end(crane, tmp_path, trigger, rate):
    def at_rate(declared):
        declared['timeouts']['degraded_misses'] = min(20, int(LAST_STATE * rate) - 1)
        # clock and states are two topics: either is a period ahead where the other one comes later
        declared.setdefault('plausibility', {})['clock_skew'] = max(0.005, 1.5 / rate)

    with graph(tmp_path, f'/{trigger}_{rate:.0f}') as g:
        references = g.listen(JointTrajectory, 'controller/reference')
        trajectories = g.publisher(JointTrajectory, 'controller/joint_trajectory')
        states = g.simulate(*MACHINE, '-p', f'rate:={rate}', '-p', 'command_timeout:=0.2')
        g.start_controller('-p', f'trigger:={trigger}', '-p', f'rate:={rate}', '-p', 'bandwidth:=3.0', change=at_rate)
        g.hold()
        g.until(lambda: states and references and trajectories.get_subscription_count(), START_UP)
        target = crane.initial_position + WAY
        trajectories.publish(trajectory(crane.actuators, target))
        g.until(lambda: away(states[-1], crane.actuators, target) < 2e-3, 60.0)
        assert g.stops == 0
        assert g.processes.stop() == {'controller': 0, 'simulator': 0}
