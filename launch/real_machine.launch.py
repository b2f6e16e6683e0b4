"""A machine of your own: loop_state, robot_state_publisher and our controller, or what a stock one needs.

    ros2 launch psdyn_ros real_machine.launch.py urdf:=FILE params_file:=FILE

`params_file` begins as a copy of config/real_machine.yaml, with every REPLACE replaced: as it is, no node runs with
it. Drivers of sensors and actuators are yours: they publish what they measure on joint_states (and pressures, where
the law wants them), take controller/joint_commands, and let the actuators go to their safe state when commands stop
coming. docs/reference/controller.md says what else to do before the first motion.

`controller:=false annotator:=true` for a stock joint_trajectory_controller: trajectories for it go to
annotator/trajectory_in.
"""

from psdyn_ros.model.locate import find_config
from psdyn_ros.nodes.launching import COMMON, FLAG, describe

ARGUMENTS = (
    ('urdf', None, 'URDF file of the machine'),
    ('joint_states', 'joint_states', 'topic on which the drivers publish what they measure'),
    ('joint_commands', 'controller/joint_commands', 'topic from which the drivers take commands'),
    ('controller', 'true', 'start our controller; it waits to be configured, activated and enabled', FLAG),
    ('annotator', 'false', 'start the annotator, for a stock joint_trajectory_controller', FLAG),
    ('trajectory_controller', 'joint_trajectory_controller', 'name of that controller'),
    ('use_sim_time', '', 'all nodes use /clock; empty: false', ('', *FLAG)),
    *COMMON,
    ('params_file', find_config('real_machine.yaml'), 'ROS parameter file of all nodes; that of the package runs none'),
)


def start(given):
    time = given.chosen('use_sim_time')

    def ours(executable, *remap):
        return given.ours(executable, time, remappings=[('joint_states', given['joint_states']), *remap])

    controller = ours('controller', ('~/joint_commands', given['joint_commands']))
    annotator = ours('annotator', ('~/trajectory_out', f'{given["trajectory_controller"]}/joint_trajectory'))
    return [
        given.robot_state_publisher(time, remappings=[('joint_states', 'joint_states_full')]),
        ours('loop_state'),
        *[controller] * given.flag('controller'),
        *[annotator] * given.flag('annotator'),
    ]


def generate_launch_description():
    return describe(ARGUMENTS, start)
