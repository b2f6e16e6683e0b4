"""A machine in the loop: simulator, controller, robot_state_publisher, and RViz if asked for.

`machine:=five_bar` picks another one of the package; a machine of your own comes with `urdf:=FILE params_file:=FILE`.
One that has too few actuators for a controller, as the balloon, needs `controller:=false`.

`level:=valve` puts cylinders, valves and supply between command and force, and the controller on the valves; a machine
of your own then comes with `hydraulics:=FILE` too.

Our controller becomes active by itself and gives the safe output. `ros2 service call /controller/enable
std_srvs/srv/SetBool "{data: true}"` lets it hold the machine and take trajectories; from SAFE `ros2 service call
/controller/reset std_srvs/srv/Trigger` comes first. A machine of your own needs `safety:=FILE`.

`namespace:=left` puts everything into a namespace, so that two machines run beside each other.

`planner_link:=tcp` starts a planner: poses of that link on planner/goal become trajectories for our controller.

To put a controller of your own in place of ours: `controller:=false`, and let it publish on controller/joint_commands
(sensor_msgs/JointState) efforts, or with hydraulics what `command_modes` of the simulator say.
"""

from psdyn_ros.nodes.launching import COMMON, FLAG, MACHINE, RVIZ, describe

TTL = 0.1       # s; demonstrations run beside whatever else a computer does
ARGUMENTS = (
    *MACHINE,
    ('level', 'effort', 'effort: forces are commanded; valve: spool positions, with the hydraulics',
     ('effort', 'valve')),
    ('hydraulics', '', 'YAML file of cylinders, valves and supply; empty: none, or at level:=valve '
     'config/<machine>_hydraulics.yaml'),
    ('safety', '', 'YAML file of safe outputs, timeouts and limits, for our controller; empty: '
     'config/<machine>_safety.yaml'),
    ('emergency_stop', '', 'required: our controller stops unless ~/emergency_stop says false all along; empty: none',
     ('', 'none', 'required')),
    ('law', '', 'control law; empty: computed_torque, or at level:=valve valve_computed_torque'),
    ('controller', 'true', 'start our controller', FLAG),
    ('autostart', '', 'our controller becomes active by itself; empty: true', ('', *FLAG)),
    ('planner_link', '', 'link that the planner takes goals for; empty: no planner'),
    ('use_sim_time', '', 'the simulator publishes /clock, of which one may exist, and all others use it; empty: false',
     ('', *FLAG)),
    *RVIZ, *COMMON,
)


def start(given):
    valve = given['level'] == 'valve'
    hydraulics = {'hydraulics': given.of_package('_hydraulics.yaml') if valve else ''}
    law = {'law': 'valve_computed_torque' if valve else 'computed_torque', 'safety': given.of_package('_safety.yaml'),
           'emergency_stop': 'none', 'autostart': True}
    time = given.chosen('use_sim_time')
    actions = [
        given.robot_state_publisher(time),
        *given.rviz(time),
        given.ours('simulator', given.chosen('hydraulics', publish_clock='use_sim_time'),
                   defaults={'ttl': TTL, **hydraulics}, remappings=[('~/joint_commands', 'controller/joint_commands')]),
    ]
    if given.flag('controller'):
        actions.append(given.ours(
            'controller', time, given.chosen('hydraulics', 'law', 'safety', 'emergency_stop', 'autostart'),
            defaults={**hydraulics, **law}))
    if given['planner_link']:
        actions.append(given.ours('planner', time, given.chosen('hydraulics', 'safety', link='planner_link'),
                                  defaults={**hydraulics, 'safety': law['safety']}))
    return actions


def generate_launch_description():
    return describe(ARGUMENTS, start)
