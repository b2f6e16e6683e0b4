"""A bag played against the model of its machine: `ros2 bag play --clock`, validator, and RViz if asked for.

    ros2 launch psdyn_ros replay.launch.py bag:=DIR
    ros2 launch psdyn_ros replay.launch.py bag:=DIR urdf:=FILE hydraulics:=FILE config:=FILE rate:=0.5 rviz:=true

Only what was measured is played, no commands: somebody might obey them. The bag begins when the validator is ready, and
the launch ends with the bag. The verdict is in /diagnostics, predicted efforts are on validator/predicted, what is left
over on validator/residual.

`machine:=five_bar level:=effort` picks another machine of the package, whose efforts are those of joint_states.
"""

from launch.actions import ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessIO

from psdyn_ros.nodes.launching import COMMON, FLAG, MACHINE, RVIZ, describe, end_launch

CLOCK_RATE = '100'          # Hz of /clock
READY = b'validator: ready'
LIVE = {'use_sim_time': True}
ARGUMENTS = (
    ('bag', None, 'folder or file of the bag'),
    *MACHINE,
    ('level', 'valve', 'valve: efforts of cylinders are those of their pressures; effort: those of joint_states',
     ('effort', 'valve')),
    ('hydraulics', '', 'YAML file of cylinders, valves and supply; empty: none, or at level:=valve '
     'config/<machine>_hydraulics.yaml'),
    ('config', '', 'YAML file of tolerances, as of `psdyn validate --config`; empty: defaults'),
    ('joint_states', 'joint_states', 'topic of the bag with measured joints, in the namespace'),
    ('pressure_source', '', 'telemetry: an array of all cylinders; ports: a FluidPressure a port; empty: telemetry',
     ('', 'telemetry', 'ports')),
    ('pressures', '', 'topic of the bag with pressures, or what comes before /CYLINDER/a; empty: as of the simulator'),
    ('topics', '', 'regular expression of the topics that are played; empty: /tf_static, and of the namespace '
     'joint_states and the pressures of the simulator'),
    ('rate', '1.0', 'times as fast as it was recorded'),
    ('delay', '1.0', 's, above 0, from the validator being ready to the beginning of the bag: topics find each other'),
    ('loop', 'false', 'play it again and again', FLAG),
    ('use_sim_time', '', 'the nodes live in the time of the bag; empty: true', ('', *FLAG)),
    *RVIZ, *COMMON,
)


def measured_topics(namespace):
    own = f'/{namespace.strip("/")}'.rstrip('/')
    return f'^({own}/joint_states|/tf_static|{own}/simulator/hydraulic_telemetry|{own}/simulator/pressure/.*)$'


def start(given):
    measured, time = ('joint_states', given['joint_states']), given.chosen('use_sim_time')
    hydraulics = given.of_package('_hydraulics.yaml') if given['level'] == 'valve' else ''
    validator = given.ours(
        'validator', time, given.chosen('hydraulics', 'config', 'pressure_source', pressure_topic='pressures'),
        remappings=[measured], defaults={'hydraulics': hydraulics, **LIVE})
    play = ExecuteProcess(
        cmd=['ros2', 'bag', 'play', given['bag'], '--clock', CLOCK_RATE, '--rate', given['rate'],
             '--delay', given['delay'], '--regex', given['topics'] or measured_topics(given['namespace']),
             '--disable-keyboard-controls',
             *['--loop'] * given.flag('loop')],
        output='screen', on_exit=end_launch, additional_env=given.environment)
    waiting = [play]

    def begin(event):
        return [waiting.pop()] if waiting and READY in event.text else None

    shown = [
        given.robot_state_publisher(time, remappings=[('joint_states', 'joint_states_full')], defaults=LIVE),
        *given.rviz({**LIVE, **time}),
        given.ours('loop_state', time, remappings=[measured], defaults=LIVE),
    ] if given.flag('rviz') else []
    return [RegisterEventHandler(OnProcessIO(target_action=validator, on_stdout=begin)), *shown, validator]


def generate_launch_description():
    return describe(ARGUMENTS, start)
