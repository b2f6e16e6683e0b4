"""How processes talk: not in the shared memory of Fast DDS.

There a publisher may wait for a third of a second when anybody comes, such as `ros2 topic list`: for the check of a
port of a healthy process that has nothing to do (Fast DDS, issue 6535).
"""

import rclpy

from ...model.locate import find_config

RANGE, TRANSPORTS, PEERS = 'ROS_AUTOMATIC_DISCOVERY_RANGE', 'FASTDDS_BUILTIN_TRANSPORTS', 'ROS_STATIC_PEERS'
PROFILES = 'FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE'


def without_shared_memory(environment):
    """Return the variables that change an environment so that Fast DDS does without shared memory.

    There are none where the environment says how to talk, or with other middleware. They count before `rclpy.init`.
    """
    said = any(map(environment.get, PROFILES)) or environment.get(TRANSPORTS) not in (None, '', 'UDPv4')
    if said or not rclpy.get_rmw_implementation_identifier().startswith('rmw_fastrtps'):
        return {}
    if environment.get(RANGE) != 'LOCALHOST':
        return {TRANSPORTS: 'UDPv4'}
    # with LOCALHOST rmw_fastrtps adds shared memory whatever else is said: a profile that keeps to this computer
    profile = find_config('fastdds_loopback.xml')
    return {RANGE: 'SYSTEM_DEFAULT', PROFILES[-1]: profile} if profile and not environment.get(PEERS) else {}
