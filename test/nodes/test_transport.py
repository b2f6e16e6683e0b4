"""How nodes talk: without the shared memory of Fast DDS, unless the user says otherwise."""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from support.machines import URDF  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402

from psdyn_ros.model.locate import find_config  # noqa: E402
from psdyn_ros.nodes.runtime import transport  # noqa: E402
from psdyn_ros.nodes.runtime.transport import (  # noqa: E402
    PEERS,
    PROFILES,
    RANGE,
    TRANSPORTS,
    without_shared_memory,
)

OURS = {RANGE: 'SYSTEM_DEFAULT', PROFILES[-1]: find_config('fastdds_loopback.xml')}


@pytest.mark.parametrize('given, found', [
    ({}, {TRANSPORTS: 'UDPv4'}), ({RANGE: 'SUBNET'}, {TRANSPORTS: 'UDPv4'}), ({RANGE: 'LOCALHOST'}, OURS),
    ({RANGE: 'LOCALHOST', TRANSPORTS: 'UDPv4'}, OURS), ({RANGE: 'LOCALHOST', PROFILES[0]: '', TRANSPORTS: ''}, OURS),
    *((given, {}) for given in (
        {TRANSPORTS: 'DEFAULT'}, {RANGE: 'LOCALHOST', TRANSPORTS: 'SHM'}, {RANGE: 'LOCALHOST', PEERS: '10.0.0.2'},
        *({RANGE: 'LOCALHOST', name: 'mine.xml'} for name in PROFILES), {PROFILES[0]: 'mine.xml'}))])
def test_what_the_environment_says_of_fast_dds_holds_else_no_shared_memory(given, found):
    assert without_shared_memory(given) == found


def test_other_middleware_is_left_alone(monkeypatch):
    monkeypatch.setattr(transport.rclpy, 'get_rmw_implementation_identifier', lambda: 'rmw_cyclonedds_cpp')
    assert without_shared_memory({RANGE: 'LOCALHOST'}) == {}


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_process_maps_no_port_of_others_and_is_heard_by_those_who_do(tmp_path):
    with graph(tmp_path, '/mapped') as g:
        process = g.start('simulator', '-p', f'robot_description:={URDF / "four_bar.urdf"}')
        g.until(lambda: g.reports, START_UP)
        assert '/dev/shm/fastrtps' not in Path(f'/proc/{process.pid}/maps').read_text()
        assert '/dev/shm/fastrtps' in Path('/proc/self/maps').read_text()
        assert g.processes.stop() == {'simulator': 0}
