"""The crane hiab_xs031 with a load at its tool: what example recordings and the calibration have in common."""

PAYLOAD_LINK = 'payload'
PAYLOAD = 200.0                     # kg
COM = 0.1, -0.15, 0.0               # m, of it from the tool
GYRATION = 0.12                     # m
# m or rad between which coordinates move; m/s or rad/s of the peaks of their moves, since friction is asked for at 30
# to 100 mm/s
RANGES = {'slew': (-0.8, 0.8), 'lift_cylinder': (0.08, 0.28), 'tilt_cylinder': (0.12, 0.36), 'telescope': (0.1, 0.5)}
SPEEDS = {'slew': (0.35, 0.5), 'lift_cylinder': (0.06, 0.1), 'tilt_cylinder': (0.06, 0.1), 'telescope': (0.06, 0.1)}


def payload_urdf(urdf, mass, com=COM):
    """URDF text with a payload [kg] whose centre of mass is at `com` [m] from the tool."""
    inertia, place = repr(mass * GYRATION**2), ' '.join(map(str, com))
    return _with(urdf, f'  <link name="{PAYLOAD_LINK}">\n    <inertial>\n      <origin xyz="{place}"/>\n'
                       f'      <mass value="{mass:g}"/>\n      <inertia ixx="{inertia}" iyy="{inertia}" '
                       f'izz="{inertia}" ixy="0" ixz="0" iyz="0"/>\n    </inertial>\n  </link>\n'
                       f'  <joint name="{PAYLOAD_LINK}_mount" type="fixed">\n    <parent link="tcp"/>\n'
                       f'    <child link="{PAYLOAD_LINK}"/>\n  </joint>\n')


def tilted_urdf(urdf, roll, pitch):
    """URDF text on ground that slopes [rad]."""
    return _with(urdf, '  <link name="ground"/>\n  <joint name="ground_mount" type="fixed">\n'
                       '    <parent link="ground"/>\n    <child link="base_link"/>\n'
                       f'    <origin rpy="{roll!r} {pitch!r} 0"/>\n  </joint>\n')


def _with(urdf, more):
    head, end, tail = urdf.rpartition('</robot>')
    return head + more + end + tail
