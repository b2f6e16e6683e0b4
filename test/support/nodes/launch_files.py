"""The launch files of the package, started with classes that only remember what launch and launch_ros would do."""

import runpy
import sys
import types

import pytest

from ..paths import ROOT

RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
NAMES = {
    'launch': ['LaunchDescription'], 'launch.event_handlers': ['OnProcessIO'], 'launch_ros': [],
    'launch.actions': ['DeclareLaunchArgument', 'ExecuteProcess', 'OpaqueFunction', 'RegisterEventHandler', 'Shutdown',
                       'TimerAction'],
    'launch_ros.actions': ['Node'], 'launch_ros.parameter_descriptions': ['Parameter', 'ParameterValue']}


class Call:
    """Stands for any class of launch and launch_ros: remembers what it was made with."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options


class Launched:
    """What a launch file starts with arguments given.

    declared  {argument: options}
    actions   that are not nodes
    nodes     options of nodes, with `defaults`, `file` and `given` of their parameters
    """

    def __init__(self, description, given, exported):
        *declared, start = description.arguments[0]
        self.declared = {one.arguments[0]: one.options for one in declared}
        values = {name: options['default_value'] for name, options in self.declared.items()
                  if 'default_value' in options} | given
        context = types.SimpleNamespace(launch_configurations=values, environment=exported)
        self.actions, self.nodes = [], []
        for action in start.options['function'](context):
            if type(action).__name__ == 'Node':
                self.nodes.append(self._node(dict(action.options)))
            else:
                self.actions.append(action)

    def _node(self, options):
        parameters = options['parameters']
        options['defaults'] = {each.arguments[0]: each.arguments[1] for each in parameters if isinstance(each, Call)}
        options['file'] = next((each for each in parameters if isinstance(each, str)), None)
        options['given'] = {name: value.arguments[0] if isinstance(value, Call) else value for each in parameters
                            if isinstance(each, dict) for name, value in each.items()}
        # rcl and launch_ros: see psdyn_ros/nodes/launching.py
        kinds = [type(each).__name__ for each in parameters]
        assert kinds == sorted(kinds, key=['Parameter', 'str', 'dict'].index)
        options['parameters'] = options['defaults'] | options['given']
        return options

    def node(self, executable):
        (node,) = (node for node in self.nodes if node['executable'] == executable)
        return node


@pytest.fixture
def launch(monkeypatch):
    """Function of the name of a launch file, exported variables and launch arguments; returns `Launched`."""
    for module, classes in NAMES.items():
        fake = types.ModuleType(module)
        for name in classes:
            setattr(fake, name, type(name, (Call,), {}))
        monkeypatch.setitem(sys.modules, module, fake)
    monkeypatch.delitem(sys.modules, 'psdyn_ros.nodes.launching', raising=False)

    def launched(name, exported=None, **given):
        make = runpy.run_path(str(ROOT / 'launch' / f'{name}.launch.py'))['generate_launch_description']
        return Launched(make(), given, exported or {})

    yield launched
    sys.modules.pop('psdyn_ros.nodes.launching', None)
