"""The crane of the package against the published table of its bodies, built here a second time by hand."""

from math import acos, cos, sin
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from conftest import thorough
from support.comparison import error
from support.machines import hiab
from support.witnesses.general_oracle import GeneralOracle

# (L, L1) of the triangles; the pins of a cylinder are 0.83 m apart at stroke zero
LIFT, TILT, OFFSET = (1.0071227324212, 0.37610632101293), (1.132185817991, 0.30901132665325), 0.83

EXTENSION = np.array([[0.95853460763586, -0.27664713597974, 0.0683942111482],
                      [0.28497614981675, 0.93051946315663, -0.23004808784757],
                      [0, 0.23999977258511, 0.9707729441837]])
TCP = np.array([[1, 0, 0], [0, 0.9707729441837, 0.23999977258512], [0, -0.23999977258512, 0.9707729441837]])


def about_z(angle):
    return np.array(((cos(angle), -sin(angle), 0), (sin(angle), cos(angle), 0), (0, 0, 1)))


# frame: (parent frame, position, rotation, joint model, joint); x forward, y up
FRAMES = {
    'W': (None, (0, 0, 0), np.eye(3), pin.JointModelRY(), 'slew'),
    'Bc1': ('W', (0.185, -0.085, 0), about_z(1.9515432018109), None, None),
    'B31': ('Bc1', (0, 0, 0), np.eye(3), pin.JointModelRZ(), 'lift_barrel'),
    'B41': ('B31', (0.085, 0, 0), np.eye(3), pin.JointModelPX(), 'lift_cylinder'),
    'B11': ('Bc1', (LIFT[0], 0, 0), np.eye(3), pin.JointModelRZ(), 'lift_boom'),
    'Tc1': ('B11', (LIFT[1], 0, 0), np.eye(3), None, None),
    'Bc2': ('Tc1', (0.098495302558553, 0.01838181329939, 0), about_z(0.24548563270531), None, None),
    'B32': ('Bc2', (0, 0, 0), np.eye(3), pin.JointModelRZ(), 'tilt_barrel'),
    'B42': ('B32', (0.085, 0, 0), np.eye(3), pin.JointModelPX(), 'tilt_cylinder'),
    'B12': ('Bc2', (TILT[0], 0, 0), np.eye(3), pin.JointModelRZ(), 'tilt_boom'),
    'Tc2': ('B12', (TILT[1], 0, 0), np.eye(3), None, None),
    'P22': ('Tc2', (-0.048858374920227, 0.36587359346146, 0.035276938723102), EXTENSION, None, None),
    'B52': ('P22', (0.041, 0, 0), np.eye(3), pin.JointModelPX(), 'telescope'),
    'P32': ('B52', (1.2, 0, 0), np.eye(3), None, None),
    'D22': ('P32', (0.40499744871392, -0.13130517281345, -0.013385243295654), TCP, None, None),
}

# frame: mass, centre of mass, (ixx, iyy, izz, ixy, ixz, iyz) about it
BODIES = {
    'Bc1': (307.29601379, (0.14178771, 0.16555780, 0),
            (5.892211080, 28.66965601, 29.78955950, 5.476111360, -0.000019630, -0.000024550)),
    'B31': (17.36281648, (0.35781210, 0, 0), (0.03150902, 0.90735702, 0.90763033, 0, 0, 0)),
    'B41': (10.34519231, (0.55785997, 0, 0), (0.00370720, 0.55759812, 0.55785997, 0, 0, 0)),
    'B11': (25.52660174, (0.23805608, 0.13201777, 0), (0.28426, 0.54237481, 0.67891020, -0.06487287, 0, 0)),
    'Bc2': (54.58702836, (0.54319901, 0.10543875, 0), (0.48071390, 5.80912352, 5.97255351, 0.52924041, 0, 0)),
    'B32': (17.36281648, (0.35781210, 0, 0), (0.03150902, 0.90735702, 0.90763033, 0, 0, 0)),
    'B42': (10.34519231, (0.55785997, 0, 0), (0.00370720, 0.55759812, 0.55785997, 0, 0, 0)),
    'B12': (33.92850233, (0.60504569, 0.27199376, 0.00002484),
            (1.18803886, 6.31493281, 7.40915161, -2.36786418, 0.00280315, 0.00022322)),
    'P22': (9.26136143, (0.62192523, 0, 0), (0.00662754, 1.48387017, 1.48398069, 0, 0, 0)),
    'B52': (6.73059863, (0.56802906, 0, 0), (0.00091463, 0.91790043, 0.91789884, 0, 0, 0)),
    'P32': (570.18877059, (0.25466704, -0.13034397, -0.01302248),
            (46.81220713, 71.92201786, 67.38128576, 0.38607676, -0.00453819, -1.14320993)),
}


def from_table():
    """Build the crane from the table; return the model and for each frame its joint and its pose there."""
    model, places = pin.Model(), {}
    for name, (parent, position, rotation, joint_model, joint) in FRAMES.items():
        joint_id, pose = places.get(parent, (0, pin.SE3.Identity()))
        pose = pose * pin.SE3(rotation, np.array(position, float))
        if joint_model is not None:
            joint_id, pose = model.addJoint(joint_id, joint_model, pose, joint), pin.SE3.Identity()
        places[name] = joint_id, pose
        if name in BODIES:
            mass, com, (xx, yy, zz, xy, xz, yz) = BODIES[name]
            moments = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
            model.appendBodyToJoint(joint_id, pin.Inertia(mass, np.array(com, float), moments), pose)
    model.gravity.linear = np.array((0, -9.81, 0))
    return model, places


def angles(stroke, base, boom_side):
    """Return boom and barrel angle of a loop on the working branch."""
    s = stroke + OFFSET
    return (-acos((s * s - base**2 - boom_side**2) / (2 * base * boom_side)),
            -acos((s * s + base**2 - boom_side**2) / (2 * s * base)))


def closed(slew, lift, tilt, telescope):
    """Return the positions of all joints."""
    boom1, barrel1 = angles(lift, *LIFT)
    boom2, barrel2 = angles(tilt, *TILT)
    return {'slew': slew, 'telescope': telescope,
            'lift_cylinder': lift, 'lift_boom': boom1, 'lift_barrel': barrel1,
            'tilt_cylinder': tilt, 'tilt_boom': boom2, 'tilt_barrel': barrel2}


def arrange(model, positions):
    return np.array([positions[name] for name in model.names[1:]])


def masses(xml):
    return sum(float(mass.get('value')) for mass in ElementTree.fromstring(xml).iter('mass'))


def test_masses():
    lift_bodies = ('Bc1', 'B31', 'B41', 'B11', 'Bc2')
    assert masses(hiab().xml) == pytest.approx(sum(mass for mass, *_ in BODIES.values()), abs=1e-9)
    lift = masses(hiab(lift_only=True).xml)
    assert lift == pytest.approx(sum(BODIES[name][0] for name in lift_bodies), abs=1e-9)
    assert (round(masses(hiab().xml), 2), round(lift, 2)) == (1062.93, 415.12)


def test_tree_has_the_dynamics_of_the_table(rng):
    """Any motion of the open tree: joint forces contain masses, centres, inertias and every frame."""
    ref, _ = from_table()
    comp = pin.buildModelFromXML(hiab().xml)
    assert sorted(comp.names) == sorted(ref.names)
    order = [ref.names.tolist().index(name) - 1 for name in comp.names[1:]]
    for _ in range(20):
        q, v, a = rng.uniform(-1, 1, (3, ref.nq))
        expected = pin.rnea(ref, ref.createData(), q, v, a)[order]
        forces = pin.rnea(comp, comp.createData(), q[order], v[order], a[order])
        assert error(forces, expected) < 1e-12


def test_lift_machine_is_the_lift_loop_of_the_crane():
    crane, lift = (ElementTree.fromstring(hiab(lift_only).xml) for lift_only in (False, True))
    for kind, names in (('link', ('pillar', 'lift_barrel_link', 'lift_rod_link', 'lift_boom_link')),
                        ('joint', ('lift_barrel', 'lift_cylinder', 'lift_boom')),
                        ('constraint', ('lift_eye',))):
        for name in names:
            one, other = (root.find(f'{kind}[@name="{name}"]') for root in (crane, lift))
            assert ElementTree.tostring(one).strip() == ElementTree.tostring(other).strip()


def test_tool_centre_point(rng):
    ref, places = from_table()
    oracle, x = GeneralOracle(hiab().xml), [rng.uniform(*span) for span in hiab().span.values()]
    data = ref.createData()
    pin.forwardKinematics(ref, data, arrange(ref, closed(*x)))
    joint, pose = places['D22']
    upright = pin.SE3(pin.rpy.rpyToMatrix(np.pi / 2, 0, 0), np.zeros(3))
    expected = (upright * data.oMi[joint] * pose).homogeneous
    assert np.abs(oracle.link_pose(x, 'tcp') - expected).max() < 1e-13


@pytest.mark.parametrize('lift_only', thorough([True, False], 1))
def test_loops_close_over_the_whole_stroke(lift_only):
    machine = hiab(lift_only)
    oracle, loops = GeneralOracle(machine.xml), ['lift', 'tilt'][:2 - lift_only]
    for part in np.linspace(0, 1, 51):
        span = {name: low + part * (high - low) for name, (low, high) in hiab().span.items()}
        names, position, *_ = oracle.joint_state([span[name] for name in machine.actuators])
        assert oracle.closure([span[name] for name in machine.actuators]) < 2e-15
        expected = closed(*span.values())
        found = dict(zip(names, position))
        for loop in loops:
            for joint in (f'{loop}_boom', f'{loop}_barrel'):
                assert found[joint] == pytest.approx(expected[joint], abs=1e-14)


def test_limits_admit_the_whole_stroke_and_one_assembly_mode():
    limits = {joint.get('name'): [float(joint.find('limit').get(end)) for end in ('lower', 'upper')]
              for joint in ElementTree.fromstring(hiab().xml).findall('joint[limit]')}
    assert {name: tuple(limits[name]) for name in hiab().actuators} == hiab().span
    for part in np.linspace(0, 1, 101):
        positions = closed(*(low + part * (high - low) for low, high in hiab().span.values()))
        for name, position in positions.items():
            assert limits[name][0] <= position <= limits[name][1]
    for joint in ('lift_boom', 'lift_barrel', 'tilt_boom', 'tilt_barrel'):
        low, high = limits[joint]
        assert -np.pi < low < high < 0  # the other mode has the mirrored angles, a toggle point 0 or -pi


def test_start_pose_is_closed():
    initial = hiab().initial
    assert initial == pytest.approx(closed(*(initial[name] for name in hiab().actuators)), abs=1e-15)
    assert hiab(lift_only=True).initial == {name: initial[name] for name in hiab(lift_only=True).initial}
