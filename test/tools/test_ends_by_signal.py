"""Whoever ends a measurement with nodes of its own leaves none of them behind."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import thorough
from support.nodes.children import children_of

pytest.importorskip('rclpy', reason='the nodes need rclpy')

pytestmark = pytest.mark.dds

LATENCY = ('psdyn_ros.cli', 'latency', '--rate', '100', '--trigger', 'timer', '--realtime', 'off'), 3
SOAK = ('psdyn_ros.tools.timing.soak', '--hours', '1'), 2


@pytest.mark.parametrize('case', thorough([(LATENCY, signal.SIGINT), (SOAK, signal.SIGTERM), (LATENCY, signal.SIGTERM),
                                           (SOAK, signal.SIGINT)], 2), ids=str)
def test_a_signal_ends_it_and_its_nodes(case):
    (arguments, nodes), number = case
    process = subprocess.Popen([sys.executable, '-m', *arguments], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    deadline, found = time.monotonic() + 120.0, []
    while len(found) < nodes and time.monotonic() < deadline and process.poll() is None:
        found = children_of(process.pid)
        time.sleep(0.05)
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    assert len(found) == nodes and process.returncode == 130 and 'Traceback' not in said, said
    assert not [pid for pid in found if os.path.exists(f'/proc/{pid}')]
