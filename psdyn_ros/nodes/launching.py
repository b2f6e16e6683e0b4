"""What the launch files of the package have in common: their arguments, and how they start nodes.

An argument that was not given is empty and overrules nothing. rcl resolves the sections of all parameter files of a
node in the order in which their names first appear, and launch_ros writes a dictionary under the full name of the node:
so defaults are single parameters, section `/**`, before the parameter file, and dictionaries of what was given follow.
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown, TimerAction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import Parameter, ParameterValue

from launch import LaunchDescription

from ..model.locate import find_config, find_machine
from .runtime.transport import RANGE, without_shared_memory

FLAG = 'true', 'false'
GRACE_S = 0.5
# name, default or None where it must be given, meaning, choices
COMMON = (
    ('namespace', '', 'namespace of all nodes; two machines run beside each other, each in one'),
    ('params_file', '', 'ROS parameter file of all nodes; empty: config/<machine>.yaml of a machine of the package'),
    ('discovery_range', '', f'{RANGE} of all nodes; SUBNET: other computers take part; empty: what is exported, '
     'else LOCALHOST',
     ('', 'LOCALHOST', 'SUBNET', 'SYSTEM_DEFAULT')),
    ('log_level', 'info', 'log level of all nodes'),
)
MACHINE = (
    ('machine', 'hiab_xs031', 'name of a machine of the package'),
    ('urdf', '', 'URDF file of the machine; empty: that of the package'),
)
RVIZ = (
    ('rviz', 'false', 'start RViz', FLAG),
    ('rviz_config', '', 'what RViz shows; empty: config/hiab_xs031.rviz'),
)


def describe(arguments, start):
    """Return a LaunchDescription of the arguments (as in COMMON) and of the actions that `start(Given)` returns.

    Nodes of other packages come first: where one is missing, launch leaves behind what it has started.
    """
    # a later one of the same name replaces it
    return LaunchDescription([*(_declared(*argument) for argument in {each[0]: each for each in arguments}.values()),
                              OpaqueFunction(function=lambda context: start(Given(context)))])


def _declared(name, default, meaning, choices=None):
    return DeclareLaunchArgument(name, description=meaning, choices=choices,
                                 **({} if default is None else {'default_value': default}))


class Given:
    """The launch arguments, `given['level']`, and the nodes that they start.

    description  {'robot_description': text of the URDF}
    environment  variables of the nodes
    """

    def __init__(self, context):
        self._values = context.launch_configurations
        exported = context.environment
        self.environment = {RANGE: self['discovery_range'] or exported.get(RANGE) or 'LOCALHOST'}
        self.environment |= without_shared_memory({**exported, **self.environment})
        self.describe(self['urdf'] or find_machine(self['machine']))

    def __getitem__(self, name):
        return self._values.get(name, '')

    def describe(self, urdf):
        """Take the machine from a file."""
        self.description = {'robot_description': Path(urdf).read_text(encoding='utf-8')}

    def flag(self, name):
        """Return whether an argument is true."""
        return self[name] == 'true'

    def chosen(self, *names, **renamed):
        """Return {parameter: value} of the arguments that were given; renamed: parameter=argument."""
        values = {name: self[argument] for name, argument in {**dict(zip(names, names)), **renamed}.items()}
        return {name: {'true': True, 'false': False}.get(value, value) for name, value in values.items() if value}

    def of_package(self, ending):
        """Return the path of a file of the machine in config/; '' where there is none, or the URDF was given."""
        return '' if self['urdf'] else find_config(f'{self["machine"]}{ending}') or ''

    def node(self, package, executable, *parameters, defaults=None, file=None, arguments=(), needed=True, **options):
        """Return a Node; the launch ends with one that is needed.

        parameters  {parameter: value} that overrule the parameter file, where the node has a name
        defaults    {parameter: value} that the file overrules
        file        '' for none; None for that of the arguments
        options     of `Node`; the namespace is that of the arguments by default
        """
        file = self['params_file'] or self.of_package('.yaml') if file is None else file
        return Node(
            package=package, executable=executable, output='screen',
            parameters=[*(Parameter(name, value, value_type=type(value)) for name, value in (defaults or {}).items()),
                        *filter(None, [file, *map(_typed, parameters)])],
            arguments=[*arguments, '--ros-args', '--log-level', self['log_level']], additional_env=self.environment,
            on_exit=end_launch if needed else None, **{'namespace': self['namespace'], 'remappings': [], **options})

    def ours(self, executable, *parameters, **options):
        """Return a `node` of this package, of the machine."""
        return self.node('psdyn_ros', executable, self.description, *parameters, name=executable, **options)

    def robot_state_publisher(self, *parameters, remappings=(), **options):
        """Return robot_state_publisher of the machine."""
        name = 'robot_state_publisher'
        return self.node(name, name, self.description, *parameters, name=name, remappings=[*TRANSFORMS, *remappings],
                         **options)

    def rviz(self, *parameters):
        """Return [RViz], which sees the machine of the namespace; [] where it is not asked for."""
        return [self.node('rviz2', 'rviz2', *parameters, file='', needed=False, remappings=[*TRANSFORMS, DESCRIPTION],
                          arguments=['-d', self['rviz_config'] or find_config('hiab_xs031.rviz')])
                ] * self.flag('rviz')


# frames of two machines have the same names
TRANSFORMS = ('/tf', 'tf'), ('/tf_static', 'tf_static')
DESCRIPTION = '/robot_description', 'robot_description'


def _typed(parameters):
    """Texts as they are; launch would read them as YAML."""
    return {name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
            for name, value in parameters.items()}


def end_launch(event, context):
    """End the launch because a process ended, with an error where the process ended with one.

    Not at once: Ctrl-C ends processes and launch in any order, and a second SIGINT would break off an orderly end.
    """
    def end(context):
        if event.returncode:
            raise RuntimeError(f'{event.process_name} ended with exit code {event.returncode}')
        return [Shutdown(reason=f'{event.process_name} ended')]

    return None if context.is_shutdown else [TimerAction(period=GRACE_S, actions=[OpaqueFunction(function=end)])]
