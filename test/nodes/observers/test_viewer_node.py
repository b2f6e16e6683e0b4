"""The node of `psdyn view --live` over real DDS: joint states become events of its page."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest
from support.machines import URDF
from support.paths import ROOT

pytest.importorskip('rclpy', reason='the node needs rclpy')

import rclpy  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.api.load import load  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

START_S = 120.0     # for a process that may compile first
POSITION = [0.1, 0.25, 0.3, 0.2]


@contextmanager
def publishing(names, wanted, effort):
    """Publish the same state and reference, over and over, from a thread."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node, done = rclpy.create_node('robot', context=context), threading.Event()
    states = node.create_publisher(JointState, 'joint_states', 10)
    references = node.create_publisher(JointTrajectory, '/controller/reference', 10)

    def publish():
        while not done.wait(0.02):
            state = JointState(name=list(names), position=POSITION, effort=effort)
            state.header.stamp = node.get_clock().now().to_msg()
            states.publish(state)
            references.publish(JointTrajectory(joint_names=list(names),
                                               points=[JointTrajectoryPoint(positions=wanted)]))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        node.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture
def viewer():
    """The address of a running `psdyn view --live`; it must end well."""
    process = subprocess.Popen(
        [sys.executable, '-m', 'psdyn_ros.cli', 'view', '--live', str(URDF / 'hiab_xs031.urdf'), '--no-browser',
         '--port', '0'], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split(';')[0].split()[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(START_S) == 0
    finally:
        process.kill()
        process.wait()


def event(address, wanted):
    """Return the first event of the page for which `wanted(event)` holds."""
    deadline = time.monotonic() + START_S
    with urllib.request.urlopen(address + 'events', timeout=START_S) as stream:
        while time.monotonic() < deadline:
            line = stream.readline().decode()
            if line.startswith('data: ') and wanted(found := json.loads(line[6:])):
                return found
    raise AssertionError('no such event')


def test_states_reference_and_efforts_reach_the_page_with_loops_closed(viewer):
    m = load(URDF / 'hiab_xs031.urdf')
    aim = [0.2, 0.3, 0.3, 0.2]
    with publishing(m.actuators, aim, [1.0, 2.0, float('nan'), 4.0]):
        found = event(viewer, lambda one: one.get('q') and one.get('reference'))
    np.testing.assert_allclose(found['q'], m.joint_state(np.array(POSITION))[1], atol=1e-9)
    np.testing.assert_allclose(found['reference'], m.joint_state(np.array(aim))[1], atol=1e-9)
    assert found['effort'] == [1.0, 2.0, None, 4.0]


@pytest.mark.long
def test_silence_and_states_that_fix_no_loop_are_said_on_the_page(viewer):
    assert 'no states on /joint_states' in event(viewer, lambda one: one.get('note'))['note']
    with publishing(('a', 'b', 'c', 'd'), POSITION, []):
        assert 'are rejected' in event(viewer, lambda one: 'rejected' in one.get('note', ''))['note']
