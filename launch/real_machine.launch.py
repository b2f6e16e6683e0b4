"""A machine of your own: loop_state, robot_state_publisher and our controller, or what a stock one needs.

    ros2 launch psdyn_ros real_machine.launch.py urdf:=FILE params_file:=FILE

`params_file` begins as a copy of config/real_machine.yaml, with every REPLACE replaced: as it is, no node runs with
it. Drivers of sensors and actuators are yours: they publish what they measure on /joint_states (and pressures, where
the law wants them), take /controller/joint_commands, and let the actuators go to their safe state when commands stop
coming. docs/controller.md says what else to do before the first motion.

`controller:=false annotator:=true` for a stock joint_trajectory_controller: trajectories for it go to
/annotator/trajectory_in.
"""

from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

# name, default (None: must be given), meaning
ARGUMENTS = (
    ('urdf', None, 'URDF file of the machine'),
    ('params_file', PathJoinSubstitution([FindPackageShare('psdyn_ros'), 'config', 'real_machine.yaml']),
     'parameters of all nodes; the default runs none of them'),
    ('joint_states', '/joint_states', 'topic on which the drivers publish what they measure'),
    ('joint_commands', '/controller/joint_commands', 'topic from which the drivers take commands'),
    ('controller', 'true', 'start our controller; it waits to be configured, activated and enabled'),
    ('annotator', 'false', 'start the annotator, for a stock joint_trajectory_controller'),
    ('trajectory_controller', 'joint_trajectory_controller', 'name of that controller'),
    ('discovery_range', 'LOCALHOST', 'ROS_AUTOMATIC_DISCOVERY_RANGE of all nodes; SUBNET: other computers take part'),
    ('log_level', 'info', 'log level of all nodes'),
)


def generate_launch_description():
    params_file, log_level = LaunchConfiguration('params_file'), LaunchConfiguration('log_level')
    description = {'robot_description': ParameterValue(Command(['cat ', LaunchConfiguration('urdf')]), value_type=str)}
    logging = ['--ros-args', '--log-level', log_level]
    measured = ('joint_states', LaunchConfiguration('joint_states'))

    def ours(executable, *remappings, **options):
        return Node(package='psdyn_ros', executable=executable, parameters=[params_file, description],
                    arguments=logging, remappings=[measured, *remappings], **options)

    return LaunchDescription([
        *(DeclareLaunchArgument(name, description=text, **({} if default is None else {'default_value': default}))
          for name, default, text in ARGUMENTS),
        SetEnvironmentVariable('ROS_AUTOMATIC_DISCOVERY_RANGE', LaunchConfiguration('discovery_range')),
        ours('loop_state'),
        Node(package='robot_state_publisher', executable='robot_state_publisher', parameters=[description],
             arguments=logging, remappings=[('joint_states', 'joint_states_full')]),
        ours('controller', ('~/joint_commands', LaunchConfiguration('joint_commands')),
             condition=IfCondition(LaunchConfiguration('controller'))),
        ours('annotator', ('~/trajectory_out', ['/', LaunchConfiguration('trajectory_controller'),
                                                '/joint_trajectory']),
             condition=IfCondition(LaunchConfiguration('annotator'))),
    ])
