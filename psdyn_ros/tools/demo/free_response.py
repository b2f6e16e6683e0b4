"""The demonstration of a machine that no controller can move: the simulator alone, recorded and judged."""

from geometry_msgs.msg import PoseStamped, TwistStamped
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from ...nodes.messages.conversions import stamp_to_ns
from ...simulation.external_forces import ExternalForces
from ...validation.bags.recording import TOPICS, read_free_motion
from ...validation.report.free_response import evaluate, write_report
from .parameter_file import write_parameters
from .recorder import Recorder
from .session import PlantState, Waiting, graph, stop

START_UP = 300.0        # s for the node to come up; a first run compiles
COMMAND_PERIOD = 0.1    # s between commands of no effort, where there are actuators
COMMAND_TIMEOUT = 10.0  # s, longer than any stall
MAX_CATCH_UP = 1.0      # s; so that stamps are simulated time even where the computer is busy
LAG = 0.05              # s more are recorded than are asked for


def run(setup, manipulator, output, computer):
    """Record and judge the free response; returns (`FreeResponse`, path of the report).

    setup     `demo.Setup`
    computer  facts about it
    """
    output.mkdir(parents=True, exist_ok=True)
    bag = output / 'free_response'
    _record(bag, setup, manipulator)
    given = setup.simulator.get('external_forces', {})
    forces = ExternalForces(manipulator, given)
    m = manipulator
    facts = {
        'machine': f'{setup.machine}, {m.dof} degrees of freedom, {len(m.actuators)} actuators, {m.total_mass:.2f} kg',
        'external forces': ', '.join(forces.names) or 'none',
        'rate': f"{setup.simulator['rate']:g} Hz, Runge-Kutta of order 4, {setup.simulator.get('substeps', 2)} steps "
                'in each period',
        'process': 'the simulator, a process of its own, over DDS',
        **computer,
        'recording': f'{bag} (MCAP)',
    }
    response = evaluate(m, read_free_motion(bag, m.floating), forces, setup.duration, facts)
    return response, write_report(output, response, m)


def _record(bag, setup, manipulator):
    """Let the simulator run from its start, and write what it says into a bag."""
    logs = bag.parent / 'log' / bag.name
    logs.mkdir(parents=True, exist_ok=True)
    parameters = write_parameters(logs / 'parameters.yaml', simulator={
        **setup.simulator, 'robot_description': setup.urdf, 'report_rate': 5.0, 'command_timeout': COMMAND_TIMEOUT,
        'max_catch_up': MAX_CATCH_UP})
    topics = {TOPICS.states: JointState}
    if manipulator.floating:
        topics.update({TOPICS.base_pose: PoseStamped, TOPICS.base_twist: TwistStamped})
    with graph(logs) as (nodes, node, spin_once):
        recorder, plant = Recorder(node, topics), PlantState(node)
        if manipulator.actuators:
            publisher = node.create_publisher(JointState, '/simulator/joint_commands', 1)
            nothing = JointState(name=list(manipulator.actuators), effort=[0.0] * len(manipulator.actuators))
            node.create_timer(COMMAND_PERIOD, lambda: publisher.publish(nothing))
        nodes.start('simulator', 'psdyn_ros.nodes.simulator.node', '--ros-args', '--params-file', str(parameters))
        wait = Waiting(nodes, spin_once)
        what = 'starting the simulator'
        wait.until(lambda: recorder.heard(*topics) and plant.summary, START_UP, what)
        # back to the start while nothing is said, so that the recording begins there
        wait.called(node, SetBool, '/simulator/pause', SetBool.Request(data=True), what)
        wait.called(node, Trigger, '/simulator/reset', Trigger.Request(), what)
        recorder.clear()
        wait.called(node, SetBool, '/simulator/pause', SetBool.Request(data=False), what)
        wait.until(lambda: recorder.heard(*topics), START_UP, 'free response')
        began = _stamp(recorder)
        wait.through(lambda: (_stamp(recorder) - began) * 1e-9, setup.duration + LAG, 'free response')
        stop(nodes, logs)
    recorder.write(bag)


def _stamp(recorder):
    return stamp_to_ns(recorder.last(TOPICS.states).header.stamp)
