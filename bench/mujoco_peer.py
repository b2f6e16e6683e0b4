"""MuJoCo on the same machine: `connect` equalities for the pins, called from Python and in a C loop of ours.

MuJoCo's equalities are soft. Here they are as stiff as it allows (impedance 0.9999), contacts and islands are
off, and actuators are applied forces, which leaves the least work that `mj_forward` can do for this machine.
"""

import mujoco
import pinocchio as pin

from bench import machines, native


class Engine:
    """Model and data of one machine, and the calls of a user of the Python module."""

    def __init__(self, machine):
        self.model = mujoco.MjModel.from_xml_string(mjcf(machine))
        self.data = mujoco.MjData(self.model)
        # The inverse is of the open tree, so its answer still has to be projected (not timed).
        self.tree = mujoco.MjModel.from_xml_string(mjcf(machine))
        self.tree.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EQUALITY
        self.tree_data = mujoco.MjData(self.tree)

    def forward(self, q, v, tau):
        data = self.data
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(self.model, data)
        return data.qacc

    def inverse(self, q, v, a):
        data = self.tree_data
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(self.tree, data)
        return data.qfrc_inverse


class Native:
    """The same over many states in one call of C; answers land in the array given."""

    def __init__(self, machine):
        self.engine = Engine(machine)
        self.library = native.mujoco_library()

    def forward(self, q, v, tau, a):
        self._run(self.library.forward, self.engine.model, self.engine.data, q, v, tau, a)

    def inverse(self, q, v, a, tau):
        self._run(self.library.inverse, self.engine.tree, self.engine.tree_data, q, v, a, tau)

    def _run(self, function, model, data, *arrays):
        function(model._address, data._address, len(arrays[0]), *(each.ctypes.data for each in arrays))


def mjcf(machine):
    """The spanning tree as Pinocchio read it (fixed joints merged), with a site on each side of a pin."""
    tree = machine.tree
    children = [[] for _ in range(tree.njoints)]
    for j in range(1, tree.njoints):
        children[tree.parents[j]].append(j)
    sites = [[] for _ in range(tree.njoints)]
    for k, each in enumerate(machine.pins):
        sites[each.joint1].append((f'pin{k}a', each.placement1))
        sites[each.joint2].append((f'pin{k}b', each.placement2))

    def body(j):
        inertia, name = tree.inertias[j], tree.names[j]
        kind = 'slide' if 'JointModelP' in tree.joints[j].shortname() else 'hinge'
        moments = inertia.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        yield f'<body name="{name}" {_pose(tree.jointPlacements[j])}>'
        yield (f'<inertial pos="{_text(inertia.lever)}" mass="{inertia.mass!r}" '
               f'fullinertia="{_text(moments)}"/>')
        yield f'<joint name="{name}" type="{kind}" axis="{_text(machines.axis(tree, j))}"/>'
        for site, pose in sites[j]:
            yield f'<site name="{site}" {_pose(pose)}/>'
        for child in children[j]:
            yield from body(child)
        yield '</body>'

    text = [f'<mujoco model="{machine.name}">',
            '<compiler angle="radian" autolimits="false"/>',
            f'<option gravity="{_text(tree.gravity.linear)}">',
            '<flag contact="disable" island="disable"/></option>',
            '<worldbody>']
    for child in children[0]:
        text += body(child)
    text += ['</worldbody>', '<equality>']
    text += [f'<connect site1="pin{k}a" site2="pin{k}b" solimp="0.9999 0.9999 0.001 0.5 2"/>'
             for k in range(len(machine.pins))]
    return '\n'.join(text + ['</equality>', '</mujoco>'])


def _pose(pose):
    w, x, y, z = pin.Quaternion(pose.rotation).coeffs()[[3, 0, 1, 2]]
    return f'pos="{_text(pose.translation)}" quat="{_text([w, x, y, z])}"'


def _text(values):
    return ' '.join(repr(float(value)) for value in values)
