"""Whoever ends a measurement with nodes of its own leaves none of them behind."""

import signal
import time

import pytest
from conftest import thorough
from support.nodes.children import assert_a_signal_ends_it, children_of, start

pytest.importorskip('rclpy', reason='the nodes need rclpy')

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

LATENCY = ('psdyn_ros.cli', 'latency', '--rate', '100', '--trigger', 'timer', '--realtime', 'off'), 3
SOAK = ('psdyn_ros.tools.timing.soak', '--hours', '1'), 2


@pytest.mark.long
@pytest.mark.parametrize('case', thorough([(LATENCY, signal.SIGINT), (SOAK, signal.SIGTERM), (LATENCY, signal.SIGTERM),
                                           (SOAK, signal.SIGINT)], 2), ids=str)
def test_a_signal_ends_it_and_its_nodes(case):
    (arguments, nodes), number = case
    process, deadline = start(*arguments), time.monotonic() + 120.0
    while len(children_of(process.pid)) < nodes and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    assert_a_signal_ends_it(process, number, nodes)
