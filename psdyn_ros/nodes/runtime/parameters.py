"""Declares tables of parameters on a node; each node has its table `PARAMETERS` in its own module."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.parameter import Parameter as RosParameter

from ...model.errors import PsdynError, did_you_mean
from . import realtime


class ParameterError(PsdynError):
    """A parameter of the wrong type, out of its range, or not one of the choices."""


@dataclass(frozen=True)
class Parameter:
    """One parameter; its type is that of the default. A live one may change while the node runs.

    numbers  whether a text may be given as an integer or a list of them, as the command line reads `2`
    """

    name: str
    default: object
    description: str
    low: float = None
    high: float = None
    choices: tuple = ()
    live: bool = False
    numbers: bool = False

    def descriptor(self, fixed=True):
        """As a ParameterDescriptor; fixed: read-only unless it is live."""
        descriptor = ParameterDescriptor(description=self.description, read_only=fixed and not self.live)
        if self.choices:
            descriptor.additional_constraints = 'one of ' + ', '.join(self.choices)
        if isinstance(self.default, float) and self.low is not None:
            descriptor.floating_point_range = [FloatingPointRange(from_value=self.low, to_value=self.high)]
        elif isinstance(self.default, int) and self.low is not None:
            descriptor.integer_range = [IntegerRange(from_value=self.low, to_value=self.high)]
        return descriptor


# of every node
MACHINE = (
    Parameter('robot_description', '',
              'URDF of the machine: its text, the path of a file, or the name of a machine of the package; empty: '
              'taken from the topic robot_description of the namespace'),
    Parameter('robot_description_timeout', 10.0, 's to wait for that topic', 0.1, 600.0),
    Parameter('loops_file', '', 'YAML file with the loops of a machine whose URDF does not declare them; empty: none'),
    Parameter('assembly', '', 'JOINT=POSITION pairs, m or rad, that pick the assembly mode of loops and where the '
              'machine starts; empty: as the URDF says'),
    Parameter('allow_unphysical', False, 'whether inertias are accepted that no body can have'),
    Parameter('report_rate', 1.0, 'Hz of diagnostics and statistics', 0.1, 50.0),
    Parameter('parameter_services', True, 'whether others may look at parameters and set live ones'),
)

# of a node with a control loop
REALTIME = (
    Parameter('realtime', 'off', 'real-time conditions: none, those that can be had, or none missing',
              choices=realtime.LEVELS),
    Parameter('priority', realtime.PRIORITY, 'of the control loop under SCHED_FIFO; other threads of the process come '
              f'{realtime.BELOW} below', *realtime.PRIORITIES),
    Parameter('cpus', '', 'numbers of the processors that the control loop may run on, such as 2,3; empty: any',
              numbers=True),
)

OF_RCLPY = 'use_sim_time', 'start_type_description_service'
FREE = 'qos_overrides.', 'external_forces.'     # what their names begin with is judged elsewhere

PRESSURE_TOPICS = (
    Parameter('pressure_source', 'telemetry', 'one Float64MultiArray of all cylinders, or a FluidPressure of each port',
              choices=('telemetry', 'ports')),
    Parameter('pressure_topic', '', 'topic of the telemetry, or what comes before /CYLINDER/a and /CYLINDER/b; empty: '
              'simulator/hydraulic_telemetry, simulator/pressure'),
)


def declare(node, table, fixed=True):
    """Declare the table on the node; the values as attributes.  fixed: as in `Parameter.descriptor`."""
    return SimpleNamespace(**{p.name: _declare(node, p, fixed) for p in table})


def declare_map(node, table, fixed=True):
    """Declare the table, whose names have dots in them; the values in its order."""
    return [_declare(node, p, fixed) for p in table]


def declared(node, table):
    """Present values of a table that was declared, as attributes."""
    return SimpleNamespace(**{p.name: node.get_parameter(p.name).value for p in table})


def warn_of_unknown(node):
    """Warn of parameters that were given and are in no table, once all tables are declared."""
    names = list(node.get_parameters_by_prefix(''))
    known = {name for name, one in zip(names, node.describe_parameters(names)) if one.description}.union(OF_RCLPY)
    for name in names:
        if name not in known and not name.startswith(FREE):
            node.get_logger().warning(f"parameter '{name:.80}' is passed over: this node does not have it"
                                      f'{did_you_mean(name, known)}')


def release(node, name, default):
    """Undeclare a parameter; a value other than its default stays, see `_keep`."""
    value = node.get_parameter(name).value
    node.undeclare_parameter(name)
    if value != default:
        _keep(node, name, value)


def _keep(node, name, value):
    """Let a value stay until the parameter is declared again; it may be set meanwhile, to any other."""
    node.declare_parameter(name, value, ParameterDescriptor(dynamic_typing=True), ignore_override=True)


def release_all(node, prefix):
    """Release the parameters whose names begin so; all of their values stay."""
    for name in node.get_parameters_by_prefix(prefix.removesuffix('.')):
        release(node, f'{prefix}{name}', None)


def below(node, prefix):
    """Values of the parameters that were given with names such as prefix.name.name, by what follows the prefix."""
    return {name: parameter.value for name, parameter in node.get_parameters_by_prefix(prefix).items()}


def joint_names(text, what, existing):
    """Names of a text such as 'slew, telescope', each once; all that exist where it is empty."""
    names = tuple(dict.fromkeys(text.replace(',', ' ').split()))
    for name in names:
        if name not in existing:
            raise ParameterError(f"{what}: '{name:.80}': no such joint{did_you_mean(name, existing)}")
    return names or tuple(existing)


def check_choice(parameter, value):
    """Raise ParameterError where the value is not one of the choices."""
    if parameter.choices and value not in parameter.choices:
        raise ParameterError(f"parameter {parameter.name}: '{value}' is not a choice"
                             f'{did_you_mean(value, parameter.choices)}')


def _declare(node, parameter, fixed=True):
    name, default, known = parameter.name, parameter.default, node.has_parameter(parameter.name)
    if known:       # as an override without a description, which may have been set to another value since
        present = node.get_parameter(name)
        node.undeclare_parameter(name)
        if parameter.numbers and present.type_ in (RosParameter.Type.INTEGER, RosParameter.Type.INTEGER_ARRAY):
            present = RosParameter(name, value=','.join(map(str, np.ravel(present.value))))
    try:
        if known and type(present.value) is not type(default):
            raise InvalidParameterTypeException(present, RosParameter.Type.from_parameter_value(default).name)
        value = node.declare_parameter(name, present.value if known else default, parameter.descriptor(fixed),
                                       ignore_override=known).value
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        if known:
            _keep(node, name, present.value)
        raise ParameterError(f'parameter {name}: {error}') from error
    check_choice(parameter, value)
    return value
