"""A machine in the loop: simulator, controller, robot_state_publisher, and RViz if asked for.

`machine:=five_bar` picks another one of the package; a machine of your own comes with `urdf:=FILE params_file:=FILE`.
One that has too few actuators for a controller, as the balloon, needs `controller:=false`.

To put a controller of your own in place of ours: `controller:=false`, and let it publish efforts on
/controller/joint_commands (sensor_msgs/JointState).
"""

from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

SHARE = FindPackageShare('psdyn_ros')
ARGUMENTS = (
    ('machine', 'hiab_xs031', 'name of a machine of the package'),
    ('urdf', PathJoinSubstitution([SHARE, 'urdf', [LaunchConfiguration('machine'), '.urdf']]),
     'URDF file of the machine'),
    ('params_file', PathJoinSubstitution([SHARE, 'config', [LaunchConfiguration('machine'), '.yaml']]),
     'parameters of both nodes'),
    ('controller', 'true', 'start our controller'),
    ('rviz', 'false', 'start RViz'),
    ('rviz_config', PathJoinSubstitution([SHARE, 'config', 'hiab_xs031.rviz']), 'what RViz shows'),
    ('log_level', 'info', 'log level of all nodes'),
)


def generate_launch_description():
    urdf, params_file, log_level = (LaunchConfiguration(name) for name in ('urdf', 'params_file', 'log_level'))
    description = {'robot_description': ParameterValue(Command(['cat ', urdf]), value_type=str)}
    logging = ['--ros-args', '--log-level', log_level]
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS),
        Node(package='psdyn_ros', executable='simulator', parameters=[params_file, description], arguments=logging,
             remappings=[('~/joint_commands', '/controller/joint_commands')]),
        Node(package='psdyn_ros', executable='controller', parameters=[params_file, description], arguments=logging,
             condition=IfCondition(LaunchConfiguration('controller'))),
        Node(package='robot_state_publisher', executable='robot_state_publisher', parameters=[description],
             arguments=logging),
        Node(package='rviz2', executable='rviz2', arguments=['-d', LaunchConfiguration('rviz_config'), *logging],
             condition=IfCondition(LaunchConfiguration('rviz'))),
    ])
