"""How nodes talk: without the shared memory of Fast DDS, unless the user says otherwise."""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from support.machines import URDF  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402

from psdyn_ros.nodes.runtime import executor  # noqa: E402
from psdyn_ros.nodes.runtime.executor import PROFILES, RANGE, TRANSPORTS  # noqa: E402

OURS = {RANGE: 'SYSTEM_DEFAULT', PROFILES[-1]: 'fastdds_loopback.xml'}


@pytest.mark.parametrize('given, found', [
    ({}, {TRANSPORTS: 'UDPv4'}), ({RANGE: 'SUBNET'}, {RANGE: 'SUBNET', TRANSPORTS: 'UDPv4'}),
    ({TRANSPORTS: 'DEFAULT'}, {TRANSPORTS: 'DEFAULT'}), ({RANGE: 'LOCALHOST'}, OURS),
    ({RANGE: 'LOCALHOST', TRANSPORTS: 'UDPv4'}, {**OURS, TRANSPORTS: 'UDPv4'}),
    *((given, given) for given in (
        {RANGE: 'LOCALHOST', TRANSPORTS: 'SHM'}, {RANGE: 'LOCALHOST', 'ROS_STATIC_PEERS': '10.0.0.2'},
        *({RANGE: 'LOCALHOST', name: 'mine.xml'} for name in PROFILES), {PROFILES[0]: 'mine.xml'}))])
def test_what_the_environment_says_of_fast_dds_holds_else_no_shared_memory(monkeypatch, given, found):
    environment = dict(given)
    monkeypatch.setattr(executor.os, 'environ', environment)
    executor.leave_shared_memory()
    if PROFILES[-1] in environment:
        environment[PROFILES[-1]] = Path(environment[PROFILES[-1]]).name
    assert environment == found


def test_other_middleware_is_left_alone(monkeypatch):
    environment = {RANGE: 'LOCALHOST'}
    monkeypatch.setattr(executor.os, 'environ', environment)
    monkeypatch.setattr(executor.rclpy, 'get_rmw_implementation_identifier', lambda: 'rmw_cyclonedds_cpp')
    executor.leave_shared_memory()
    assert environment == {RANGE: 'LOCALHOST'}


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_process_maps_no_port_of_others_and_is_heard_by_those_who_do(tmp_path):
    with graph(tmp_path, '/mapped') as g:
        process = g.start('simulator', '-p', f'robot_description:={URDF / "four_bar.urdf"}')
        g.until(lambda: g.reports, START_UP)
        assert '/dev/shm/fastrtps' not in Path(f'/proc/{process.pid}/maps').read_text()
        assert '/dev/shm/fastrtps' in Path('/proc/self/maps').read_text()
        assert g.processes.stop() == {'simulator': 0}
