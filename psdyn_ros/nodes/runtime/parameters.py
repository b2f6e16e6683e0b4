"""The parameters of the nodes: one table for each node, from which they are declared and documented.

`python3 -m psdyn_ros.nodes.runtime.parameters` prints the tables.
"""

import math
import sys
from dataclasses import dataclass
from types import SimpleNamespace

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException

from ...control.laws.gains import gain_entries
from ...control.laws.registry import LAWS
from ...control.laws.valve_gains import INTEGRAL_SHARE
from ...model.errors import PsdynError, did_you_mean
from ...model.parameters.hydraulics import EFFORT, MODES
from . import realtime


class ParameterError(PsdynError):
    """A parameter of the wrong type, out of its range, or not one of the choices."""


@dataclass(frozen=True)
class Parameter:
    """One parameter; its type is that of the default. A live one may change while the node runs."""

    name: str
    default: object
    description: str
    low: float = None
    high: float = None
    choices: tuple = ()
    live: bool = False

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


FORCE, PRESSURES = 'force', 'pressures'      # what a rig measures

MACHINE = (
    Parameter('robot_description', '',
              'URDF of the machine, as text or as the path of a file; empty: taken from the topic '
              'robot_description of the namespace'),
    Parameter('robot_description_timeout', 10.0, 's to wait for that topic', 0.1, 600.0),
    Parameter('loops_file', '', 'YAML file with the loops of a machine whose URDF does not declare them; empty: none'),
    Parameter('assembly', '', 'JOINT=POSITION pairs, m or rad, that pick the assembly mode of loops and where the '
              'machine starts; empty: as the URDF says'),
    Parameter('allow_unphysical', False, 'whether inertias are accepted that no body can have'),
    Parameter('report_rate', 1.0, 'Hz of diagnostics and statistics', 0.1, 50.0),
    Parameter('parameter_services', True, 'whether others may look at parameters and set live ones'),
)

SIMULATOR = MACHINE + (
    Parameter('rate', 500.0, 'Hz at which the plant steps and publishes its state', 1.0, 5000.0),
    Parameter('substeps', 2, 'integration steps in one step of the plant', 1, 100),
    Parameter('command_timeout', 0.5, 's without a command after which the brakes hold the machine', 0.001, 10.0),
    Parameter('max_catch_up', 0.05, 's that are made up after a stall; what exceeds them is lost time', 0.0, 1.0),
    Parameter('hydraulics', '', 'YAML file of the cylinders, valves and supply that drive the machine; empty: its '
              'actuators give the forces that are commanded'),
    Parameter('ttl', 0.02, 's without a fresh command after which an actuator takes its safe output, with hydraulics; '
              'without, command_timeout counts', 0.001, 0.2),
    Parameter('max_clock_skew', 0.005, 's that the stamp of a command may lie in the future', 0.0, 1.0),
    Parameter('sensors', '', 'YAML file of the noise, quantum, bias, delay and rate of sensors; empty: exact ones'),
    Parameter('sensor_set', '', 'which of the sets of that file; empty: what stands at its top'),
    Parameter('measured_joints', '', 'names of the joints in joint_states; empty: all'),
    Parameter('seed', 0, 'of sensor noise and of faults: the same seed, the same run', 0, 2**31 - 1),
    Parameter('faults', '', 'YAML file of faults and when they happen; empty: none'),
    Parameter('inject_fault', '', 'YAML text of a fault that begins when this is set', live=True),
    Parameter('publish_clock', False, 'whether stamps are simulated time, which /clock tells the other nodes'),
    Parameter('real_time_factor', 1.0, 's of simulated time in a second, with publish_clock; 0: as many as possible',
              0.0, 1000.0),
    Parameter('step_on_command', False, 'lock-step: one period for each answer to a state (a command with its stamp), '
              'or for each complete command; stamps in simulated time'),
    Parameter('details_divider', 1, 'periods from one message to the next, of all topics but joint_states and base_*',
              1, 10000),
    Parameter('publish_telemetry', True, 'whether hydraulic telemetry is published while somebody listens'),
    Parameter('publish_fluid_pressure', False, 'whether each port has a sensor_msgs/FluidPressure of its own'),
    Parameter('tool_link', '', 'link of which ~/tool_pose and ~/tool_twist tell the motion; empty: of none'),
    Parameter('port_timeout', 0.1, 's after which a tool wrench or a base motion that stopped coming counts as none',
              0.001, 10.0),
    Parameter('snapshot_folder', '', 'folder for the replayable file of a plant that diverged; empty: ROS_LOG_DIR, or '
              'else that for temporary files'),
)

REALTIME = (
    Parameter('realtime', 'off', 'real-time conditions: none, those that can be had, or none missing',
              choices=realtime.LEVELS),
    Parameter('priority', realtime.PRIORITY, 'of the control loop under SCHED_FIFO; other threads of the process come '
              f'{realtime.BELOW} below', *realtime.PRIORITIES),
    Parameter('cpus', '', 'numbers of the processors that the control loop may run on, such as 2,3; empty: any'),
)

CONTROLLER = MACHINE + REALTIME + (
    Parameter('safety', '', 'YAML file of safe outputs, timeouts and limits of the machine; without it the node is not '
              'configured'),
    Parameter('law', 'computed_torque', 'control law; those on valves need hydraulics', choices=tuple(LAWS)),
    Parameter('bandwidth', 15.0, 'rad/s from which the default gains follow: p = bandwidth^2, d = 2 bandwidth, '
              f'i = {INTEGRAL_SHARE:g} bandwidth^3; of laws on valves those of actuators without a cylinder',
              0.1, 200.0),
    Parameter('hydraulics', '', 'YAML file of the cylinders, valves and supply that drive the machine; empty: efforts '
              'are commanded'),
    Parameter('valve_bandwidth', 0.0, 'rad/s from which the default gains on valves follow; 0: as far as the machine '
              'lets them go', 0.0, 200.0),
    Parameter('command_delay', 0.0, 's from a command to the valve that obeys it; laws look ahead by it', 0.0, 0.1),
    Parameter('error_space', 'actuator', 'where errors are taken: of the actuators, or of the joints that loops move, '
              'whose gains are then those of rad', choices=('actuator', 'joint')),
    Parameter('feedforward_ramp', 0.5, 's in which the feedforward sets in after `~/enable`', 0.0, 10.0),
    Parameter('pressure_source', 'telemetry', 'one Float64MultiArray of all cylinders, or a FluidPressure of each port',
              choices=('telemetry', 'ports')),
    Parameter('pressure_topic', '', 'topic of the telemetry, or what comes before /CYLINDER/a and /CYLINDER/b; empty: '
              'simulator/hydraulic_telemetry, simulator/pressure'),
    Parameter('trigger', 'state', 'compute on each state message, or at rate on a steady timer',
              choices=('state', 'timer')),
    Parameter('rate', 500.0, 'Hz of the timer, and at which states are expected', 1.0, 5000.0),
    Parameter('emergency_stop', 'required', 'whether `~/emergency_stop` must come; none: only where something else '
              'stops the machine', choices=('required', 'none')),
    Parameter('overrun_share', 0.01, 'of the cycles of a second that may come too late before the machine runs at '
              'reduced speed', 0.0, 1.0),
    Parameter('port_timeout', 0.1, 's after which a base motion that stopped coming counts as none', 0.001, 10.0),
    Parameter('autostart', False, 'configure and activate without being told; enabling it remains to be done'),
)

RIG = MACHINE + (
    Parameter('hydraulics', '', 'YAML file of the cylinders, valves and supply of the machine'),
    Parameter('cylinder', '', 'the cylinder that is on the rig'),
    Parameter('measures', FORCE, 'what is measured; of light loads rather pressures, since friction that '
                         'comes late chatters', choices=(FORCE, PRESSURES)),
    Parameter('rate', 500.0, 'Hz at which the rig steps and measures', 50.0, 5000.0),
    Parameter('substeps', 2, 'integration steps in one step of the rig', 1, 100),
    Parameter('step_on_motion', False, 'lock-step: the rig goes to the instant of each motion and measures '
                         'there'),
    Parameter('bandwidth', 200.0, 'rad/s with which the rod follows the load', 10.0, 2000.0),
    Parameter('initial_force', math.nan, 'N with which the cylinder begins; nan: what holds the machine at '
                         'its initial position'),
    Parameter('ttl', 0.02, 's without a command after which the spool goes to neutral', 0.001, 10.0),
)

LOOP_STATE = MACHINE + (
    Parameter('closure_tolerance', 0.005, 'm or rad by which redundant measured joints may differ', 1e-9, 1.0),
    Parameter('state_timeout', 0.1, 's without a state that can be used after which diagnostics are an error', 0.001,
              10.0),
    Parameter('effort_source', 'message', 'efforts of cylinders: those of the message, or the force of their '
              'pressures, friction of the seals not taken off', choices=('message', 'pressures')),
    Parameter('hydraulics', '', 'YAML file of the cylinders, for efforts from pressures'),
    Parameter('pressure_source', 'telemetry', 'one Float64MultiArray of all cylinders, or a FluidPressure of each port',
              choices=('telemetry', 'ports')),
    Parameter('pressure_topic', '', 'topic of the telemetry, or what comes before /CYLINDER/a and /CYLINDER/b; empty: '
              'simulator/hydraulic_telemetry, simulator/pressure'),
    Parameter('toggle_warning', 0.15, 'distance to toggle, 0 to 1, below which diagnostics warn', 0.0, 1.0),
    Parameter('margin_warning', 0.0, 'm or rad between an actuator and its limit below which diagnostics warn', -1.0,
              10.0),
)

EFFORTS_OF = (
    Parameter('friction_scale', 1.0, 'share of the modelled friction that is compensated', 0.0, 1.0, live=True),
    Parameter('state_timeout', 0.1, 's after which what came last is stale', 0.001, 10.0),
    Parameter('closure_tolerance', 0.005, 'm or rad by which redundant joints may differ', 1e-9, 1.0),
)

SOURCES = ('reference', 'controller_state', 'joint_states')

FEEDFORWARD = MACHINE + EFFORTS_OF + (
    Parameter('joints', '', 'names of the joints of ~/feedforward and ~/commands, in their order: all actuators, or as '
              'many independent joints as degrees of freedom; empty: the actuators'),
    Parameter('source', 'auto', 'what is answered; auto: the first of these that is connected and has spoken',
              choices=('auto', *SOURCES)),
    Parameter('scale', 1.0, 'share of all efforts that is published', 0.0, 1.0, live=True),
    Parameter('publish_terms', False, 'whether ~/terms tells inertia, Coriolis, gravity and friction apart'),
)

ANNOTATOR = MACHINE + EFFORTS_OF + (
    Parameter('max_dt', 0.02, 's from one point to the next at most', 1e-4, 10.0),
    Parameter('clamp', False, 'whether efforts beyond the limits of actuators are clamped; otherwise the trajectory is '
              'refused'),
    Parameter('from_state', True, 'whether a trajectory that begins later than at time 0 gets a first point where the '
              'machine rests'),
    Parameter('max_speed', 0.01, 'm/s or rad/s up to which a machine counts as resting', 1e-6, 1.0),
)

VALIDATOR = MACHINE + (
    Parameter('config', '', 'YAML file of tolerances, filter and delays, as of `psdyn validate --config`; empty: '
              'defaults'),
    Parameter('hydraulics', '', 'YAML file of the cylinders, for efforts from pressures and their friction; empty: '
              'friction is that of the URDF'),
    Parameter('effort_source', 'auto', 'efforts of cylinders: those of joint_states, or the force of their pressures; '
              'auto: of the pressures, where there are hydraulics', choices=('auto', 'message', 'pressures')),
    Parameter('pressure_source', 'telemetry', 'one Float64MultiArray of all cylinders, or a FluidPressure of each port',
              choices=('telemetry', 'ports')),
    Parameter('pressure_topic', '', 'topic of the telemetry, or what comes before /CYLINDER/a and /CYLINDER/b; empty: '
              'simulator/hydraulic_telemetry, simulator/pressure'),
    Parameter('contact_link', '', 'link on which a force from outside is estimated; empty: the outermost'),
    Parameter('period', 0.0, 's between the instants that are predicted; 0: the median between states', 0.0, 10.0),
    Parameter('hop', 0.1, 's from one piece that is predicted to the next', 0.02, 10.0),
    Parameter('window', 10.0, 's that figures and levels are about', 1.0, 600.0),
    Parameter('warn_share', 0.8, 'of a tolerance from which on diagnostics warn', 0.0, 1.0),
    Parameter('output_rate', 50.0, 'Hz of ~/predicted and ~/residual, in whole periods; 0: every period', 0.0, 5000.0),
    Parameter('state_timeout', 1.0, 's of ROS time without a state after which diagnostics are stale', 0.01, 3600.0),
)

TABLES = (('simulator', SIMULATOR), ('controller', CONTROLLER), ('rig', RIG), ('loop_state', LOOP_STATE),
          ('feedforward', FEEDFORWARD), ('annotator', ANNOTATOR), ('validator', VALIDATOR))


def command_modes(hydraulics):
    """Parameters of the simulator with hydraulics, one for each actuator: what its commands mean."""
    return tuple(
        Parameter(f'command_modes.{name}', mode, f'what a command of {name} means',
                  choices=MODES if name in hydraulics.cylinders else ('effort',))
        for name, mode in hydraulics.command_modes.items())


def initial_positions(manipulator):
    """Parameters of the simulator, one for each coordinate: where it starts; a floating base starts at zero."""
    m, limits = manipulator, manipulator.coordinate_limits
    start = m.initial_position[m.nx - len(m.coordinates):]
    return tuple(
        Parameter(f'initial.{name}', float(x), f'm or rad at which {name} starts', float(low), float(high))
        for name, x, low, high in zip(m.coordinates, start, limits.lower, limits.upper, strict=True))


def outputs(actuators, cylinders):
    """Parameters of the controller, one for each actuator: the tier of its command."""
    return tuple(
        Parameter(f'output.{name}', '', f'what is commanded of {name}; empty: as law and hydraulics say',
                  choices=('', *MODES) if name in cylinders else ('', EFFORT))
        for name in actuators)


def gains(law):
    """Parameters of the controller, live: the gains of a `ControlLaw`, `gains.<joint>.<field>`."""
    return tuple(
        Parameter(f'gains.{name}.{one.name}', float(getattr(law.gains, one.name)[row]),
                  f'{one.metadata["unit"]}, {one.metadata["description"]}, of {name}', 0.0, one.metadata['high'],
                  live=True)
        for name, row, one in gain_entries(law))


def declare(node, table, fixed=True):
    """Declare the table on the node; the values as attributes.  fixed: as in `Parameter.descriptor`."""
    return SimpleNamespace(**{p.name: _declare(node, p, fixed) for p in table})


def declare_map(node, table, fixed=True):
    """Declare the table, whose names have dots in them; the values in its order."""
    return [_declare(node, p, fixed) for p in table]


def declared(node, table):
    """Present values of a table that was declared, as attributes."""
    return SimpleNamespace(**{p.name: node.get_parameter(p.name).value for p in table})


def undeclare(node, prefix):
    """Undeclare the parameters whose names begin so."""
    for name in node.get_parameters_by_prefix(prefix.removesuffix('.')):
        node.undeclare_parameter(f'{prefix}{name}')


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
    if node.has_parameter(parameter.name):
        # as an override without a description; it still counts
        node.undeclare_parameter(parameter.name)
    try:
        value = node.declare_parameter(parameter.name, parameter.default, parameter.descriptor(fixed)).value
    except (InvalidParameterTypeException, InvalidParameterValueException) as error:
        raise ParameterError(f'parameter {parameter.name}: {error}') from error
    check_choice(parameter, value)
    return value


def _markdown(title, table):
    yield f'### {title}\n'
    yield '| parameter | type | default | range | may change | meaning |'
    yield '|---|---|---|---|---|---|'
    for p in table:
        allowed = ', '.join(p.choices) if p.choices else f'{p.low:g} to {p.high:g}' if p.low is not None else ''
        default = f'`{p.default}`' if p.default != '' else ''
        yield (f'| `{p.name}` | {type(p.default).__name__} | {default} | {allowed} | '
               f'{"yes" if p.live else "no"} | {p.description} |')
    yield ''


def main():
    """Print the tables as Markdown."""
    for title, table in TABLES:
        print('\n'.join(_markdown(title, table)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
