"""Two cranes from one launch, each in its namespace: run by `launch_test`, see ../test_genuine_launch.py."""

import unittest

import launch_testing
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from launch_testing.asserts import assertExitCodes
from support.nodes.graph import START_UP
from support.paths import ROOT

from launch import LaunchDescription

HIL = ROOT / 'launch' / 'hil.launch.py'
MACHINES = '/left', '/right'


def generate_test_description():
    """Return both machines, each with launch arguments of its own."""
    return LaunchDescription([
        *(GroupAction([IncludeLaunchDescription(PythonLaunchDescriptionSource(str(HIL)),
                                                launch_arguments={'namespace': name[1:]}.items())])
          for name in MACHINES), ReadyToTest()])


class TestTwoMachines(unittest.TestCase):
    """Looks at both from outside."""

    def setUp(self):
        rclpy.init()
        self.node = rclpy.create_node('witness')

    def tearDown(self):
        self.node.destroy_node()
        rclpy.shutdown()

    def until(self, condition):
        """Spin until the condition holds."""
        deadline = self.node.get_clock().now().nanoseconds + START_UP * 1e9
        while not condition():
            rclpy.spin_once(self.node, timeout_sec=0.1)
            self.assertLess(self.node.get_clock().now().nanoseconds, deadline)

    def test_each_controller_is_active_and_commands_its_own_simulator(self):
        """Diagnostics tell which machine speaks."""
        reports = {}

        def keep(message):
            reports.update({status.name: (status.hardware_id, status.message) for status in message.status})

        self.node.create_subscription(DiagnosticArray, '/diagnostics', keep, 100)
        topics = [f'{name}/controller/joint_commands' for name in MACHINES]
        self.until(lambda: all(self.node.count_publishers(topic) == self.node.count_subscribers(topic) == 1
                               for topic in topics))
        self.until(lambda: all(f'{name[1:]}/simulator: plant' in reports for name in MACHINES))
        # names of safety states are in capitals, those of lifecycle states are not
        self.until(lambda: all(reports.get(f'{name[1:]}/controller: control', ('', 'none'))[1][0].isupper()
                               for name in MACHINES))
        self.assertEqual({name: node for name, (node, _) in reports.items()}, {
            f'{name[1:]}/{part}': f'{name}/{part.split(":")[0]}' for name in MACHINES
            for part in ('simulator: plant', 'controller: control')})


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """Looks at how they ended."""

    def test_all_processes_end_well(self, proc_info):
        """No node is killed, none fails."""
        assertExitCodes(proc_info)
