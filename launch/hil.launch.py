"""A machine in the loop: simulator, controller, robot_state_publisher, and RViz if asked for.

`machine:=five_bar` picks another one of the package; a machine of your own comes with `urdf:=FILE params_file:=FILE`.
One that has too few actuators for a controller, as the balloon, needs `controller:=false`.

`level:=valve` puts cylinders, valves and supply between command and force, and the controller on the valves; a machine
of your own then comes with `hydraulics:=FILE` too.

Our controller becomes active by itself and gives the safe output. `ros2 service call /controller/enable
std_srvs/srv/SetBool "{data: true}"` lets it hold the machine and take trajectories. A machine of your own needs
`safety:=FILE`.

To put a controller of your own in place of ours: `controller:=false`, and let it publish on /controller/joint_commands
(sensor_msgs/JointState) efforts, or with hydraulics what `command_modes` of the simulator say.
"""

from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import (
    Command,
    EqualsSubstitution,
    IfElseSubstitution,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

SHARE = FindPackageShare('psdyn_ros')
VALVE = EqualsSubstitution(LaunchConfiguration('level'), 'valve')
TTL = 0.1       # s; demonstrations run beside whatever else a computer does
ARGUMENTS = (
    ('machine', 'hiab_xs031', 'name of a machine of the package'),
    ('urdf', PathJoinSubstitution([SHARE, 'urdf', [LaunchConfiguration('machine'), '.urdf']]),
     'URDF file of the machine'),
    ('params_file', PathJoinSubstitution([SHARE, 'config', [LaunchConfiguration('machine'), '.yaml']]),
     'parameters of both nodes'),
    ('level', 'effort', 'effort: forces are commanded; valve: spool positions, with the hydraulics'),
    ('hydraulics', IfElseSubstitution(
        VALVE, PathJoinSubstitution([SHARE, 'config', [LaunchConfiguration('machine'), '_hydraulics.yaml']]), ''),
     'YAML file of cylinders, valves and supply; empty: force level'),
    ('safety', PathJoinSubstitution([SHARE, 'config', [LaunchConfiguration('machine'), '_safety.yaml']]),
     'YAML file of safe outputs, timeouts and limits of the machine, for our controller'),
    ('emergency_stop', 'none', 'required: our controller stops unless ~/emergency_stop says false all the time'),
    ('law', IfElseSubstitution(VALVE, 'valve_computed_torque', 'computed_torque'), 'control law'),
    ('controller', 'true', 'start our controller'),
    ('rviz', 'false', 'start RViz'),
    ('rviz_config', PathJoinSubstitution([SHARE, 'config', 'hiab_xs031.rviz']), 'what RViz shows'),
    ('discovery_range', 'LOCALHOST', 'ROS_AUTOMATIC_DISCOVERY_RANGE of all nodes; SUBNET: other computers take part'),
    ('log_level', 'info', 'log level of all nodes'),
)


def generate_launch_description():
    urdf, params_file, log_level = (LaunchConfiguration(name) for name in ('urdf', 'params_file', 'log_level'))
    description = {'robot_description': ParameterValue(Command(['cat ', urdf]), value_type=str)}
    hydraulics = {'hydraulics': ParameterValue(LaunchConfiguration('hydraulics'), value_type=str)}
    law = {'law': ParameterValue(LaunchConfiguration('law'), value_type=str)}
    safety = {'safety': ParameterValue(LaunchConfiguration('safety'), value_type=str), 'autostart': True,
              'emergency_stop': ParameterValue(LaunchConfiguration('emergency_stop'), value_type=str)}
    logging = ['--ros-args', '--log-level', log_level]
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS),
        SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', LaunchConfiguration('discovery_range')),
        Node(package='psdyn_ros', executable='simulator', arguments=logging,
             parameters=[params_file, {'ttl': TTL}, description, hydraulics],
             remappings=[('~/joint_commands', '/controller/joint_commands')]),
        Node(package='psdyn_ros', executable='controller', arguments=logging,
             parameters=[params_file, description, hydraulics, law, safety],
             condition=IfCondition(LaunchConfiguration('controller'))),
        Node(package='robot_state_publisher', executable='robot_state_publisher', parameters=[description],
             arguments=logging),
        Node(package='rviz2', executable='rviz2', arguments=['-d', LaunchConfiguration('rviz_config'), *logging],
             condition=IfCondition(LaunchConfiguration('rviz'))),
    ])
