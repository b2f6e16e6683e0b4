"""The simulated crane under stock ros2_control: simulator, robot_state_publisher, controller_manager, controllers.

The topics between simulator and controller_manager are those that the <ros2_control> blocks of the URDF name.
`level:=effort` (default) commands forces, `level:=valve` spool positions. docs/how-to/ros2_control.md says more.

At the level of efforts trajectories for joint_trajectory_controller go to /annotator/trajectory_in, which fills them
with the efforts that they need. `loop_state` completes joint_states for robot_state_publisher.

A machine of your own: `urdf:=FILE params_file:=FILE controllers_file:=FILE namespace:=NAME controller:=NAME`.
"""

from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.nodes.launching import COMMON, FLAG, describe

ARGUMENTS = (
    ('level', 'effort', 'effort: controllers command forces; valve: they command spools, with the hydraulics',
     ('effort', 'valve')),
    ('machine', 'hiab_xs031', 'name of the machine of the package that has such blocks', ('hiab_xs031',)),
    ('urdf', '', 'URDF file of a machine with <ros2_control> blocks; empty: that of the package'),
    ('hydraulics', '', 'YAML file of cylinders, valves and supply; empty: none, or at level:=valve '
     'config/<machine>_hydraulics.yaml'),
    ('controllers_file', find_config('ros2_control/hiab_xs031_controllers.yaml'),
     'parameters of controller_manager and controllers'),
    ('controller', '', 'controller of that file to activate; empty: joint_trajectory_controller, or at level:=valve '
     'valve_controller'),
    ('annotator', '', 'start the annotator, which fills trajectories for the controller with efforts; empty: at '
     'level:=effort', ('', *FLAG)),
    ('loop_state', 'true', 'start loop_state, so that any joints that fix the others may be measured', FLAG),
    ('use_sim_time', '', 'the simulator publishes /clock, and all others use it; empty: false', ('', *FLAG)),
    *COMMON,
    ('namespace', 'hiab_xs031', 'namespace of the simulator, with which the topics of the <ros2_control> blocks begin'),
)


def start(given):
    valve, time, root = given['level'] == 'valve', given.chosen('use_sim_time'), {'namespace': ''}
    controller = given['controller'] or ('valve_controller' if valve else 'joint_trajectory_controller')
    completed = given.flag('loop_state')
    if valve and not given['urdf']:
        given.describe(find_machine('ros2_control/hiab_xs031_valves'))

    def spawner(name):
        return given.node('controller_manager', 'spawner', file='', needed=False, **root,
                          arguments=[name, '--param-file', given['controllers_file']])

    return [
        given.node('controller_manager', 'ros2_control_node', time, file=given['controllers_file'], **root),
        *map(spawner, ['joint_state_broadcaster', controller, *['slew_controller'] * valve]),
        given.robot_state_publisher(
            time, **root, remappings=[('joint_states', 'joint_states_full' if completed else 'joint_states')]),
        given.ours('simulator', given.chosen('hydraulics', publish_clock='use_sim_time'),
                   defaults={'hydraulics': given.of_package('_hydraulics.yaml') if valve else ''},
                   remappings=[('~/joint_commands', 'joint_commands'), ('~/valve_commands', 'valve_commands')]),
        *[given.ours('loop_state', time, **root)] * completed,
        *[given.ours('annotator', time, **root, remappings=[('~/trajectory_out', f'{controller}/joint_trajectory')])
          ] * (given.flag('annotator') or not given['annotator'] and not valve),
    ]


def generate_launch_description():
    return describe(ARGUMENTS, start)
