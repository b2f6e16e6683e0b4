"""The node `planner`: poses in, trajectories out, what it refuses, and a crane that goes to a pose."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from support.machines import URDF

rclpy = pytest.importorskip('rclpy', reason='the nodes need rclpy')

from geometry_msgs.msg import Pose, PoseArray, PoseStamped  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from support.nodes.by_hand import nodes_by_hand  # noqa: E402
from support.nodes.graph import SIMULATED, START_UP, graph  # noqa: E402

from psdyn_ros.model.errors import ModelError, UnknownNameError  # noqa: E402
from psdyn_ros.model.locate import machine_config  # noqa: E402
from psdyn_ros.nodes.messages.conversions import trajectory_from_msg  # noqa: E402
from psdyn_ros.nodes.observers.planner import PlannerNode, _Client  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402

OIL, SAFETY = (machine_config('hiab_xs031', what) for what in ('hydraulics', 'safety'))
TRAJECTORY = 'controller/joint_trajectory'
NEAR = 2e-3         # m
PATIENT = 10.0      # s that a state counts, on a busy computer


def pose(position, orientation=(0.0, 0.0, 0.0, 0.0)):
    made = Pose()
    made.position.x, made.position.y, made.position.z = map(float, position)
    q = made.orientation
    q.x, q.y, q.z, q.w = map(float, orientation)
    return made


def goal(position, frame='', orientation=(0.0, 0.0, 0.0, 0.0)):
    message = PoseStamped(pose=pose(position, orientation))
    message.header.frame_id = frame
    return message


@pytest.fixture
def make():
    with nodes_by_hand() as build:
        yield build


@pytest.fixture
def planner(make):
    """A planner of the crane; function that lets it plan what waits, from states with a speed of the slew."""
    made = make(PlannerNode, link='tcp', hydraulics=OIL, safety=SAFETY, state_timeout=PATIENT)
    m = made.work._machine

    def plan(speed=0.0, x=m.initial_position):
        state = JointState(name=list(m.coordinates), position=np.asarray(x).tolist(), velocity=[speed, 0.0, 0.0, 0.0])
        made.hear['joint_states'](state)
        made.work._look()
        if made.work._plan is not None:
            made.work._plan.exception()         # waits for it; a first plan compiles
            made.hear['joint_states'](state)
            made.work._look()
        return made.sent[TRAJECTORY]
    return SimpleNamespace(**vars(made), plan=plan, machine=m)


def status(made):
    made.work._report()
    said = made.sent['/diagnostics'][-1].status[0]
    return said.message, {pair.key: pair.value for pair in said.values}


def tip(m, x):
    return m.link_pose(np.asarray(x), 'tcp')[:3, 3]


def test_goal_becomes_a_trajectory_with_efforts_that_ends_there(planner):
    m = planner.machine
    there = tip(m, m.initial_position) + (0.1, 0.3, 0.2)
    planner.hear['goal'](goal(there, m.links[0]))
    (sent,) = planner.plan()
    waypoints, start = trajectory_from_msg(sent)
    assert start is None and waypoints.joints == m.coordinates
    np.testing.assert_allclose(waypoints.positions[0], m.initial_position, atol=1e-9)
    assert np.linalg.norm(tip(m, waypoints.positions[-1]) - there) < 1e-6
    k = len(sent.points) // 2
    expected = m.inverse_dynamics(*(rows[k] for rows in (waypoints.positions, waypoints.velocities,
                                                         waypoints.accelerations)))
    np.testing.assert_allclose(sent.points[k].effort, expected, rtol=1e-9)
    assert status(planner)[0] == f'a motion of {waypoints.times[-1]:.3f} s'


def test_way_is_gone_pose_by_pose_on_straight_lines(planner):
    m = planner.machine
    here = tip(m, m.initial_position)
    corner, end = here + (0.0, 0.3, 0.0), here + (0.0, 0.3, 0.3)
    planner.hear['way'](PoseArray(poses=[pose(corner), pose(end)]))
    (sent,) = planner.plan()
    points = np.array([tip(m, each.positions) for each in sent.points])
    assert np.linalg.norm(points - corner, axis=1).min() < 0.01 and np.linalg.norm(points[-1] - end) < 1e-6


def test_goal_waits_until_the_machine_rests_and_a_newer_one_takes_its_place(planner):
    m = planner.machine
    here = tip(m, m.initial_position)
    planner.hear['goal'](goal(here + (0.0, 0.3, 0.0)))
    assert not planner.plan(speed=0.1)
    assert status(planner)[0] == 'a goal waits until the machine rests and the controller listens'
    planner.hear['goal'](goal(here + (0.0, 0.1, 0.0)))
    (sent,) = planner.plan()
    np.testing.assert_allclose(tip(m, sent.points[-1].positions), here + (0.0, 0.1, 0.0), atol=1e-6)
    # until it is over, the next one waits
    planner.hear['goal'](goal(here))
    assert len(planner.plan()) == 1


def test_goal_waits_until_the_controller_listens(planner):
    planner.listeners[TRAJECTORY] = 0
    planner.hear['goal'](goal(tip(planner.machine, planner.machine.initial_position) + (0.0, 0.3, 0.0)))
    assert not planner.plan()
    assert status(planner)[0] == 'a goal waits until the machine rests and the controller listens'
    planner.listeners[TRAJECTORY] = 1
    assert len(planner.plan()) == 1


def test_motion_is_refused_where_the_controller_listens_no_longer(planner):
    m = planner.machine
    planner.hear['joint_states'](JointState(name=list(m.coordinates), position=m.initial_position.tolist(),
                                            velocity=[0.0] * 4))
    planner.hear['goal'](goal(tip(m, m.initial_position) + (0.0, 0.3, 0.0)))
    planner.work._look()
    planner.listeners[TRAJECTORY] = 0
    assert not planner.plan()
    said, values = status(planner)
    assert said == 'refused: the controller listens no longer' and values['refused goals'] == '1'


def test_plan_of_a_goal_that_was_replaced_is_not_sent(planner):
    m = planner.machine
    here = tip(m, m.initial_position)
    planner.hear['joint_states'](JointState(name=list(m.coordinates), position=m.initial_position.tolist(),
                                            velocity=[0.0] * 4))
    planner.hear['goal'](goal(here + (0.0, 0.3, 0.0)))
    planner.work._look()
    planner.hear['goal'](goal(here + (0.0, 0.1, 0.0)))
    planner.work._plan.exception()
    (sent,) = planner.plan()
    np.testing.assert_allclose(tip(m, sent.points[-1].positions), here + (0.0, 0.1, 0.0), atol=1e-6)


@pytest.mark.parametrize('message, says', [
    (goal((2.0, 0.0, 1.0), 'odom'), "frame_id is 'odom'; expected the root link 'base_link', or nothing"),
    (goal((np.nan, 0.0, 1.0)), 'pose 0 has numbers that are not finite'),
    (goal((2.0, 0.0, 1.0), orientation=(0.0, 0.0, 0.0, 3.0)), 'pose 0 has a quaternion of length 3; expected 1'),
    (goal((9.0, 0.0, 1.0)), 'goal: pose 0, .* does not reach'),
    (goal((2.6, 0.6, 0.9), orientation=(1.0, 0.0, 0.0, 0.0)), 'pose 0'),
])
def test_goal_that_cannot_be_is_refused_with_the_reason(planner, message, says):
    planner.hear['goal'](message)
    assert not planner.plan()
    said, values = status(planner)
    assert 'refused' in said and values['refused goals'] == '1'
    assert re.search(says, said), said
    # and the next one is planned
    planner.hear['goal'](goal(tip(planner.machine, planner.machine.initial_position) + (0.0, 0.2, 0.0)))
    assert len(planner.plan()) == 1


def test_way_without_poses_is_refused(planner):
    planner.hear['way'](PoseArray())
    assert 'it has no poses' in status(planner)[1]['last']


def test_nothing_is_planned_from_states_that_are_stale(planner):
    planner.hear['goal'](goal((2.6, 0.6, 0.9)))
    planner.work._look()
    assert planner.work._plan is None and status(planner)[0] == 'no joint_states come'


def test_parameters_are_judged_at_the_start(make):
    with pytest.raises(UnknownNameError, match="parameter link 'tpc': no link of 'hiab_xs031'; did you mean 'tcp'"):
        make(PlannerNode, link='tpc')
    with pytest.raises(ModelError, match="'hook' hangs from passive joints, which are not planned; expected 'tcp'"):
        make(PlannerNode, robot_description=str(URDF / 'loader_crane.urdf'), link='hook')
    with pytest.raises(ParameterError, match="output 'action' needs control_msgs"):
        make(PlannerNode, link='tcp', output='action')


class Done:
    """A future that is done."""

    def __init__(self, result):
        self._result = result

    def result(self):
        return self._result

    def add_done_callback(self, callback):
        callback(self)


@pytest.mark.parametrize('accepted, code, says', [
    (False, 0, ('goal refused by the controller', True)),
    (True, -4, ('goal refused by the controller: too far', True)),
    (True, 0, ('the goal is reached', False)),
])
def test_answers_of_the_action_are_said(accepted, code, says):
    """The action in the place of control_msgs, which is not installed: only what the client makes of its answers."""
    kind = SimpleNamespace(Goal=SimpleNamespace, Result=SimpleNamespace(SUCCESSFUL=0))
    ended = SimpleNamespace(result=SimpleNamespace(error_code=code, error_string='too far'))
    handle, sent = SimpleNamespace(accepted=accepted, get_result_async=lambda: Done(ended)), []

    def send(goal):
        sent.append(goal.trajectory)
        return Done(handle)
    heard = []
    _Client(SimpleNamespace(send_goal_async=send), kind, lambda *said: heard.append(said)).send('the trajectory')
    assert heard == [says] and sent == ['the trajectory']


@pytest.mark.dds
@pytest.mark.lockstep
def test_crane_goes_to_the_pose(tmp_path, crane):
    """Simulator, controller and planner as processes; the goal is a pose, and the tool is there in the end."""
    machine = ('-p', f'robot_description:={URDF / "hiab_xs031.urdf"}')
    there = tip(crane, crane.initial_position) + (0.05, 0.1, 0.1)
    with graph(tmp_path, '/planned') as g:
        goals, states = g.publisher(PoseStamped, 'planner/goal'), g.simulate(*machine, '-p', 'command_timeout:=0.2')
        g.start_controller()
        g.start('planner', *machine, *SIMULATED, '-p', 'link:=tcp', '-p', f'safety:={SAFETY}',
                '-p', 'state_timeout:=1.0')
        g.hold()
        g.until(lambda: states and goals.get_subscription_count(), START_UP)

        def away():
            now = dict(zip(states[-1].name, states[-1].position))
            return np.linalg.norm(tip(crane, [now[name] for name in crane.coordinates]) - there)
        assert away() > 0.1
        goals.publish(goal(there))
        g.until(lambda: away() < NEAR, START_UP)
        assert g.stops == 0
        assert g.processes.stop() == {'simulator': 0, 'controller': 0, 'planner': 0}
