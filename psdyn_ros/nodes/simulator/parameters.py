"""The parameters of the node `simulator`."""

from ...model.parameters.hydraulics import MODES
from ..runtime.parameters import MACHINE, Parameter

PARAMETERS = MACHINE + (
    Parameter('rate', 500.0, 'Hz at which the plant steps and publishes its state', 1.0, 5000.0),
    Parameter('substeps', 2, 'integration steps in one step of the plant', 1, 100),
    Parameter('command_timeout', 0.5, 's without a command after which the brake of an actuator holds it', 0.001, 10.0),
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
