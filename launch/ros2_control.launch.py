"""The simulated crane under stock ros2_control: simulator, robot_state_publisher, controller_manager, controllers.

The topics between simulator and controller_manager are those that the <ros2_control> blocks of the URDF name.
`level:=effort` (default) commands forces, `level:=valve` spool positions. docs/ros2_control.md says more.

At the level of efforts trajectories for joint_trajectory_controller go to /annotator/trajectory_in, which fills them
with the efforts that they need. `loop_state` completes joint_states for robot_state_publisher.

A machine of your own: `urdf:=FILE params_file:=FILE controllers_file:=FILE namespace:=NAME controller:=NAME`.
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
STATES = IfElseSubstitution(LaunchConfiguration('loop_state'), 'joint_states_full', 'joint_states')


def in_share(*parts):
    return PathJoinSubstitution([SHARE, *parts])


ARGUMENTS = (
    ('level', 'effort', 'effort: controllers command forces; valve: they command spools, with the hydraulics'),
    ('urdf', IfElseSubstitution(VALVE, in_share('urdf', 'ros2_control', 'hiab_xs031_valves.urdf'),
                                in_share('urdf', 'hiab_xs031.urdf')),
     'URDF file of the machine with its <ros2_control> blocks'),
    ('params_file', in_share('config', 'hiab_xs031.yaml'), 'parameters of the simulator'),
    ('hydraulics', IfElseSubstitution(VALVE, in_share('config', 'hiab_xs031_hydraulics.yaml'), ''),
     'YAML file of cylinders, valves and supply; empty: force level'),
    ('controllers_file', in_share('config', 'ros2_control', 'hiab_xs031_controllers.yaml'),
     'parameters of controller_manager and controllers'),
    ('controller', IfElseSubstitution(VALVE, 'valve_controller', 'joint_trajectory_controller'),
     'controller of that file to activate'),
    ('annotator', IfElseSubstitution(VALVE, 'false', 'true'),
     'start the annotator, which fills trajectories for the controller with efforts'),
    ('loop_state', 'true', 'start loop_state, so that any joints that fix the others may be measured'),
    ('namespace', 'hiab_xs031', 'namespace of the simulator, with which the topics of the <ros2_control> blocks begin'),
    ('discovery_range', 'LOCALHOST', 'ROS_AUTOMATIC_DISCOVERY_RANGE of all nodes; SUBNET: other computers take part'),
    ('log_level', 'info', 'log level of all nodes'),
)


def generate_launch_description():
    params_file, controllers_file, log_level = (
        LaunchConfiguration(name) for name in ('params_file', 'controllers_file', 'log_level'))
    description = {'robot_description': ParameterValue(Command(['cat ', LaunchConfiguration('urdf')]), value_type=str)}
    hydraulics = {'hydraulics': ParameterValue(LaunchConfiguration('hydraulics'), value_type=str)}
    logging = ['--ros-args', '--log-level', log_level]

    def spawner(controller, **options):
        return Node(package='controller_manager', executable='spawner',
                    arguments=[controller, '--param-file', controllers_file, *logging], **options)

    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS),
        SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', LaunchConfiguration('discovery_range')),
        Node(package='psdyn_ros', executable='simulator', namespace=LaunchConfiguration('namespace'),
             parameters=[params_file, description, hydraulics], arguments=logging,
             remappings=[('~/joint_commands', 'joint_commands'), ('~/valve_commands', 'valve_commands')]),
        Node(package='psdyn_ros', executable='loop_state', parameters=[params_file, description], arguments=logging,
             condition=IfCondition(LaunchConfiguration('loop_state'))),
        Node(package='robot_state_publisher', executable='robot_state_publisher', parameters=[description],
             arguments=logging, remappings=[('joint_states', STATES)]),
        Node(package='psdyn_ros', executable='annotator', parameters=[params_file, description], arguments=logging,
             remappings=[('~/trajectory_out', ['/', LaunchConfiguration('controller'), '/joint_trajectory'])],
             condition=IfCondition(LaunchConfiguration('annotator'))),
        Node(package='controller_manager', executable='ros2_control_node', parameters=[controllers_file],
             arguments=logging),
        spawner('joint_state_broadcaster'),
        spawner(LaunchConfiguration('controller')),
        spawner('slew_controller', condition=IfCondition(VALVE)),
    ])
