"""A bag played against the model of its machine: `ros2 bag play --clock`, validator, and RViz if asked for.

    ros2 launch psdyn_ros replay.launch.py bag:=DIR
    ros2 launch psdyn_ros replay.launch.py bag:=DIR urdf:=FILE hydraulics:=FILE config:=FILE rate:=0.5 rviz:=true

Only what was measured is played, no commands: somebody might obey them. The verdict is in /diagnostics, predicted
efforts are on /validator/predicted, what is left over on /validator/residual.

`machine:=five_bar level:=effort` picks another machine of the package, whose efforts are those of joint_states.
"""

from launch.actions import DeclareLaunchArgument, ExecuteProcess, SetEnvironmentVariable
from launch.conditions import IfCondition, UnlessCondition
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
CLOCK_RATE = '100'      # Hz of /clock
# name, default (None: must be given), meaning
ARGUMENTS = (
    ('bag', None, 'folder or file of the bag'),
    ('machine', 'hiab_xs031', 'name of a machine of the package'),
    ('urdf', PathJoinSubstitution([SHARE, 'urdf', [LaunchConfiguration('machine'), '.urdf']]),
     'URDF file of the machine'),
    ('level', 'valve', 'valve: efforts of cylinders are those of their pressures; effort: those of joint_states'),
    ('hydraulics', IfElseSubstitution(
        VALVE, PathJoinSubstitution([SHARE, 'config', [LaunchConfiguration('machine'), '_hydraulics.yaml']]), ''),
     'YAML file of cylinders, valves and supply; empty: efforts are those of joint_states'),
    ('config', '', 'YAML file of tolerances, as of `psdyn validate --config`; empty: defaults'),
    ('joint_states', '/joint_states', 'topic of the bag with measured joints'),
    ('pressure_source', 'telemetry', 'telemetry: one array of all cylinders; ports: a FluidPressure of each port'),
    ('pressures', '', 'topic of the bag with pressures, or what comes before /CYLINDER/a; empty: as of the simulator'),
    ('topics', '^(/joint_states|/tf_static|/simulator/hydraulic_telemetry|/simulator/pressure/.*)$',
     'regular expression of the topics that are played'),
    ('rate', '1.0', 'times as fast as it was recorded'),
    ('delay', '5.0', 's before the bag begins, in which the nodes start'),
    ('loop', 'false', 'play it again and again'),
    ('rviz', 'false', 'start loop_state, robot_state_publisher and RViz'),
    ('rviz_config', PathJoinSubstitution([SHARE, 'config', 'hiab_xs031.rviz']), 'what RViz shows'),
    ('discovery_range', 'LOCALHOST', 'ROS_AUTOMATIC_DISCOVERY_RANGE of all nodes; SUBNET: other computers take part'),
    ('log_level', 'info', 'log level of all nodes'),
)


def generate_launch_description():
    def string(name):
        return ParameterValue(LaunchConfiguration(name), value_type=str)

    description = {'robot_description': ParameterValue(Command(['cat ', LaunchConfiguration('urdf')]), value_type=str)}
    simulated = {'use_sim_time': True}
    logging = ['--ros-args', '--log-level', LaunchConfiguration('log_level')]
    measured = ('joint_states', LaunchConfiguration('joint_states'))
    shown = {'condition': IfCondition(LaunchConfiguration('rviz'))}
    play = ['ros2', 'bag', 'play', LaunchConfiguration('bag'), '--clock', CLOCK_RATE,
            '--rate', LaunchConfiguration('rate'), '--delay', LaunchConfiguration('delay'),
            '--regex', LaunchConfiguration('topics'), '--disable-keyboard-controls']
    return LaunchDescription([
        *(DeclareLaunchArgument(name, description=text, **({} if default is None else {'default_value': default}))
          for name, default, text in ARGUMENTS),
        SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', LaunchConfiguration('discovery_range')),
        Node(package='psdyn_ros', executable='validator', arguments=logging, remappings=[measured],
             parameters=[description, simulated, {
                 'hydraulics': string('hydraulics'), 'config': string('config'),
                 'pressure_source': string('pressure_source'), 'pressure_topic': string('pressures')}]),
        Node(package='psdyn_ros', executable='loop_state', arguments=logging, remappings=[measured],
             parameters=[description, simulated], **shown),
        Node(package='robot_state_publisher', executable='robot_state_publisher', arguments=logging,
             remappings=[('joint_states', 'joint_states_full')], parameters=[description, simulated], **shown),
        Node(package='rviz2', executable='rviz2', arguments=['-d', LaunchConfiguration('rviz_config'), *logging],
             parameters=[simulated], **shown),
        ExecuteProcess(cmd=play, output='screen', condition=UnlessCondition(LaunchConfiguration('loop'))),
        ExecuteProcess(cmd=[*play, '--loop'], output='screen', condition=IfCondition(LaunchConfiguration('loop'))),
    ])
