"""What to do about every fault, refusal and error: the one table behind messages and docs/reference/troubleshooting.md.

Texts of refusals are written here and nowhere else. `advice` finds what to do for a message of a node or a command.
"""

import re
from typing import NamedTuple


class Fault(NamedTuple):
    """A fault id of the fault table: its likely cause, and what to do."""

    cause: str
    action: str


class Refusal(NamedTuple):
    """A sentence with which something is refused, its fields in braces, and what to do."""

    text: str
    action: str


FAULTS = {
    'F01': Fault('The sensor, its driver or the network is down or slow, or the computer is busy.',
                 'Look at the rate with `psdyn echo joint_states`. Raise `timeouts` only if the machine allows it.'),
    'F02': Fault('The driver sends no stamp, or its clock is behind.',
                 'Set the stamp in the driver; synchronise clocks.'),
    'F03': Fault('The clock of the driver is ahead.',
                 'Synchronise the clocks, or raise `clock_skew` of the safety file.'),
    'F04': Fault('Messages come out of order, or twice.', 'Look for a second driver, or for a bag that is played.'),
    'F05': Fault('A sensor is broken or not connected.', 'Repair the sensor named in the log.'),
    'F06': Fault('The driver and the URDF do not name the same joints.', 'Compare the names of both.'),
    'F07': Fault('The driver sends a joint twice.', 'Mend the driver.'),
    'F08': Fault('A sensor jumps, or its velocity is wrong.',
                 'Look at the joint in a plot; mend or filter the sensor.'),
    'F09': Fault('A sensor hangs, or the machine does not move although it should.',
                 'Does something receive the commands? Is the pump on? Then look at the sensor.'),
    'F10': Fault('The driver sends no velocities.', 'Let it fill the field `velocity` of each joint.'),
    'F11': Fault('A velocity is scaled wrongly, or late.', 'Compare it with the slope of the position in a plot.'),
    'F12': Fault('Two sensors of one loop disagree, or the URDF has other pins than the machine.',
                 'Check the zero of each encoder, then the pins in the URDF.'),
    'F13': Fault('The path leads to a place where a cylinder has no lever.', 'Choose another path, or tighter limits.'),
    'F14': Fault('A joint is at the end of its range.', 'Move it back inside, by hand if it is outside.'),
    'F15': Fault('The motion asks for more than valves, pump or limits give.', 'Make the motion slower.'),
    'F16': Fault('The control law gave no usable number.', 'A fault of the law: send the log to its author.'),
    'F17': Fault('The node was stopped while the machine moved.', 'Nothing: the machine was brought to rest.'),
    'F18': Fault('No state, or no pressures, came in time.',
                 'Start the machine or the simulator first; compare topics.'),
    'F19': Fault('The sender of streamed points stopped.', 'Restart it; it must send at least ten points a second.'),
    'F20': Fault('The machine does not follow, or the new motion starts elsewhere.',
                 'Begin motions where the machine is. Is the load in the model? Is the pump on?'),
    'F21': Fault('The motion leaves the limits or meets a dead point.', 'Change the point that the message names.'),
    'F22': Fault('The trajectory message is not well formed.', 'Correct the field that the message names.'),
    'F23': Fault('A parameter has a wrong value, or may not change now.',
                 'Deactivate the node, or choose a value in range.'),
    'F24': Fault('`use_sim_time` was set on a running controller.', 'Set it when the node starts.'),
    'F25': Fault('A mass, an inertia or a base motion that nothing can have.',
                 'Correct the number named in the message.'),
    'F26': Fault('The URDF is wrong, or came a second time.', 'Run `psdyn check` on it.'),
    'F27': Fault('The URDF is far too large, or has XML entities.', 'Expand it with xacro, and remove entities.'),
    'F28': Fault('The controller died or hung.', 'Read the end of its log; start it again and enable it.'),
    'F29': Fault('An error in the program.', 'Send the log with the traceback to the authors.'),
    'F30': Fault('The computer is too slow or too busy.', 'Lower `rate`, or set the computer up for real time.'),
    'F31': Fault('Somebody set the clock, the simulation paused, or a clock is broken.',
                 'Let clocks be slewed, not set. In lock-step raise `simulated_pause`.'),
    'F32': Fault('Two nodes publish on one topic.', 'Find them with `ros2 topic info -v`, and end one.'),
    'F33': Fault('Somebody floods a topic.', 'Find the sender with `ros2 topic info -v`.'),
    'F36': Fault('The emergency stop is pressed, or nobody publishes it.',
                 'Release it; publish `~/emergency_stop` at 20 Hz, or set `emergency_stop: none` in a simulation.'),
    'F37': Fault('A pressure sensor is broken, or scaled wrongly.', 'Check unit (Pa) and zero of the sensor.'),
    'F38': Fault('Oil leaks, or areas or positions of a cylinder are wrong.', 'Check bore, rod and the stroke sensor.'),
    'F39': Fault('The law asks for a force or flow that drives away from the reference.',
                 'Check gains, signs and units of valves.'),
    'F40': Fault('The force of a cylinder is not that of the model.',
                 'Is the load in the model? Is the cylinder blocked?'),
    'F41': Fault('The machine is faster than it should be.', 'Check valves, signs and gains; look for a falling load.'),
    'F42': Fault('The machine does not come to rest when it should.', 'Check valves and brakes before you go on.'),
    'F43': Fault('An axis does not move as its force says: a stuck sensor, a blocked axis, or a wrong model.',
                 'Compare the sensor with the axis itself. Is the load in the model?'),
    'F44': Fault('The sensor of a joint that nothing drives is silent or jumps.',
                 'Check this sensor and its driver; the log names the joint.'),
}

INACTIVE = Refusal('the controller is not active', '`psdyn enable` activates and enables it.')
NOT_ACTIVATED = Refusal('the node is {state}; activate it first', '`psdyn enable` activates and enables it.')
NOT_CONFIGURED = Refusal('the node is {state}; configure it first', '`psdyn enable` configures and enables it.')
DEACTIVATING = Refusal('the controller is being deactivated', 'Wait until it has stopped, then try again.')
STOP_IN_PROGRESS = Refusal('a stop is in progress', 'Wait until the machine stands, then try again.')
IN_SAFE = Refusal('the state is SAFE, which only a reset leaves', 'Remove the cause, then `psdyn reset`.')
NOT_AT_REST = Refusal("'{name}' moves at {rate} per second, at most {most} ('standstill_speed')",
                 'Let the machine come to rest. Noise of a sensor may look like motion.')
MOVED_AT_REST = Refusal("'{name}' jumped from {before} to {now} while nothing moved the machine",
                        'Look at its sensor. If the machine really is there, as after a new start of the simulator: '
                        '`psdyn enable --again`.')
NO_LIMITS = Refusal("'{name}' lacks limits: position [{lower}, {upper}], velocity {speed}, command {most}",
                    'Complete `<limit>` of this joint in the URDF.')
NO_SUPPLY = Refusal('the supply reads {measured} bar and is set to {setting} bar: switch the pump on',
                    'Switch the pump on, and wait for its pressure. If it is on, look at the sensor of the supply.')
TOO_HEAVY = Refusal('{name} would need {effort} N or N m to hold the machine here; it has {most}',
                    'Is the payload right that was declared, in kg and m, and the posture the one measured?')
NOT_RECEIVED = Refusal('nobody receives the commands: {text}',
                       'Start the simulator or the driver with the topic of the commands; see its `-r` remapping.')
NOT_COMMANDED = Refusal('nobody commands the machine: no publisher on {topics}',
                        'Start a controller; remap `/simulator/joint_commands` to its topic.')
NO_CLOCK = Refusal('use_sim_time, but no time came on /clock',
                   'Start what publishes `/clock`, or leave `use_sim_time` false.')
NOT_ANSWERED = Refusal('it waits for the answer to its state',
                       'Activate the controller, or look why it gives no command; in lock-step time waits for it.')
REFUSALS = (INACTIVE, NOT_ACTIVATED, NOT_CONFIGURED, DEACTIVATING, STOP_IN_PROGRESS, IN_SAFE, NOT_AT_REST,
            MOVED_AT_REST, NO_LIMITS, NO_SUPPLY, TOO_HEAVY)
NODES = (NOT_RECEIVED, NOT_COMMANDED, NO_CLOCK, NOT_ANSWERED)

# of error classes, by their names: what to do
ERRORS = {
    'PsdynError': 'Read the message: it names the thing, what was expected and what exists.',
    'ModelError': 'Correct what the message names: a file and its line, a name, or an option.',
    'XmlError': 'Open the file in an XML editor; expand xacro first.',
    'UnknownNameError': 'Compare the name with those in the message.',
    'DuplicateNameError': 'Give each thing of that kind a name of its own, and write each key of a file once.',
    'TreeError': 'Each link but one must be the child of one joint. Cut loops, and close them with `<constraint>`.',
    'InertiaError': 'Take mass and inertia from the CAD file again; check units and the frame.',
    'LoopError': 'Check the pins of this loop: `<constraint>`, both origins, both axes.',
    'NoTriangleError': 'Check barrel, rod and boom of this loop: one prismatic and three parallel pins.',
    'LoopClosureError': 'Correct the pins or the initial positions until both sides meet.',
    'AssemblyModeError': 'Set `initial_value` in `<ros2_control>`, or `--initial JOINT=POSITION`.',
    'ActuationError': 'Where a file lacks an actuator, add it there. Where joints are free, give each a command '
                      'interface in `<ros2_control>`, or pass its name as actuated.',
    'StateError': 'Give another state; the message names the joint.',
    'ShapeError': 'Give arrays of the shape in the message.',
    'NonFiniteError': 'Look for NaN in the input.',
    'UnreachableStrokeError': 'Stay within the strokes that `psdyn check` prints.',
    'TogglePointError': 'Keep away from this pose; tighten the limits of the joint.',
    'MeasurementError': 'Measure more joints, or correct those in the message.',
    'Contradiction': 'Check the zero of the joint that contradicts the others.',
    'SafetyError': 'Remove each reason that the message names.',
    'GateError': 'Check the safety file: limits and rates of commands.',
    'GoalError': 'Change the goal as the message says.',
    'TrajectoryError': 'Change the point that the message names.',
    'UnreachableError': 'Stay within the limits, and away from dead points.',
    'WaypointsError': 'Correct the sender: these points are no motion.',
    'TrajectoryOverError': 'Give the trajectory a stamp of now, or 0.',
    'TrajectoryStampError': 'Give the reference a stamp of now, or 0.',
    'TrajectoryJointsError': 'Name joints that fix all others, best the actuators.',
    'OutOfReachError': 'Choose a target nearer to the machine; the error has the best pose.',
    'EquilibriumError': 'Start nearer to a position of rest.',
    'SimulationError': 'Use smaller steps, or look at the pose where it ended.',
    'ParameterError': 'Correct the parameter; the page of the node lists all of them.',
    'RateError': 'Lower `rate`, or use a faster computer.',
    'RealTimeError': 'Follow the page on real time, or set `realtime` to another value than `enforce`.',
    'MessageError': 'Correct the sender; the message names the field.',
    'OversizeError': 'Correct the sender: its message is far too large.',
    'RepeatedNameError': 'Correct the sender: it names a joint twice.',
    'BagError': 'Record the topics that the message names; `--topic WHAT=TOPIC` chooses others.',
    'StampError': 'Correct the stamps of the sender.',
    'RepeatedStampError': 'Correct the stamps of the sender; in simulated time set `use_sim_time`.',
    'IdentificationError': 'Record half a minute in which every axis moves both ways at 30 to 100 mm/s.',
    'ClusterLost': 'Start the Dask cluster again, or use `--workers`.',
    'OperatorError': 'Start the nodes; check `ROS_DOMAIN_ID`, `--namespace` and `--controller`.',
    'RefusedError': 'Remove each reason that the message names.',
    'DemoError': 'Correct what the message names; of nodes that ran, logs are in the folder of the output.',
    'StoppedError': 'Read the fault id in the message above.',
    'ServerError': 'Choose another `--port`.',
    'LatencyError': 'Close other programs, and try again.',
    'WireError': 'Close other programs, and try again.',
    'NetworkError': 'Wire every port of the blocks once.',
    'AlgebraicLoopError': 'Give inertia to the joint or base that the message names.',
    'SingularPoseError': 'Choose another pose.',
}


def advice(text):
    """Return [what to do] for the fault ids and refusals that a message names, each once."""
    found = [f'{id}: {FAULTS[id].action}' for id in dict.fromkeys(re.findall(r'\bF\d\d\b', text)) if id in FAULTS]
    return found + [one.action for one in (*REFUSALS, *NODES) if _pattern(one).search(text)]


def error_advice(error):
    """Return what to do about an error of this package; of a class of somebody else, that of its base class."""
    return next(ERRORS[one.__name__] for one in type(error).__mro__ if one.__name__ in ERRORS)


def _pattern(refusal):
    """Return the expression that finds a refusal with any values in its fields."""
    return re.compile('.*?'.join(re.escape(part) for part in re.split(r'\{\w+\}', refusal.text)))
