"""The flat records of a machine: what kernels read (`MODULE`, `ENVIRONMENT`), and their scratch (`WORK`).

A machine is a tree of modules, and a module is a joint: serial (revolute or prismatic), a cylinder triangle (LOOP), one
of a cluster of joints that closed loops couple, or a floating base (FREE).

Three frames belong to a module.  The *base frame* stands on the parent body, at the module's joint, z along its
axis.  The *link frame* is the base frame turned with the joint about z (a boom, a serial link); a prismatic
link is described in its unmoved frame, displaced by `slide`.  The *cylinder frame* of a loop has its origin at
the barrel pin, x along the stroke, z along the pins; the rod is described in it, displaced by the stroke.

All constant rotations are planar: parent body -> base frame is `placement`, then a turn about z by `azimuth`
(the identity unless `turned`), then a turn about x by `dh_alpha` (Denavit-Hartenberg).
"""
import numpy as np

REVOLUTE, PRISMATIC, LOOP, FREE = 0, 1, 2, 3    # kind of a module
LINK, BARREL, ROD = 0, 1, 2             # bodies of a module; `parent_body` is one of them
FRICTION, APPLIED, STOPS = 1, 2, 4      # bits of `passive`
# `accumulate`: how inertia and wrench of a module reach its parent body; BY_VALUE: without its accumulator
BY_VALUE, ADD, FIRST = -1, 0, 1

MODULE = np.dtype([
    ('parent', 'i8'),           # module that carries this one, -1 for the base
    ('parent_body', 'i8'),      # LINK, BARREL or ROD of the parent
    ('kind', 'i8'),
    ('position', 'i8'),         # row of x, -1: follows from other joints of its cluster
    ('coordinate', 'i8'),       # row of xd and xdd, -1 likewise; the first of six rows of a floating base
    ('actuator', 'i8'),         # row of f, -1: no actuator
    ('cluster', 'i8'),          # row of CLUSTER, -1: not in a cluster
    ('cluster_joint', 'i8'),    # row of CLUSTER_JOINT, -1: not in a cluster
    ('child_by_value', 'i8'),   # 1: module k+1 is on this link and hands its inertia over by value
    ('link_accumulates', 'i8'), # 1: modules on this link use its accumulator
    ('cylinder_has_children', 'i8'),    # +1: modules are on the barrel, +2: on the rod
    ('accumulate', 'i8'),       # FIRST: overwrites the accumulator of its parent body, ADD: adds to it, or BY_VALUE
    ('turned', 'i8'),           # 1: `azimuth` is not the identity
    ('passive', 'i8'),          # forces on the joint besides the actuator: FRICTION + APPLIED + STOPS
    ('placement', 'f8', 3),     # origin of the base frame in the parent body [m]
    ('azimuth', 'f8', 2),       # cos, sin
    ('dh_alpha', 'f8', 2),      # cos, sin
    ('turn', 'f8', 2),          # cos, sin of the angle of the link frame where the joint, or q of a triangle, is zero
    ('link', 'f8', 10),         # rigid inertia in the link frame
    ('L', 'f8'),                # barrel pin C to boom pin B, in the plane of the loop [m]
    ('L1', 'f8'),               # boom pin B to rod eye T
    ('half', 'f8'),             # 1 / (2 L L1)
    ('x0', 'f8'),               # stroke axis: T = (x + x0, e) in the cylinder frame
    ('e', 'f8'),
    ('mode', 'f8'),             # sign of sin q, the assembly mode
    ('side', 'f8'),             # sign of x + x0
    ('pin', 'f8', 3),           # barrel pin in the base frame
    ('base_turn', 'f8', 2),     # cos, sin of the direction C -> B in the base frame
    ('barrel', 'f8', 10),       # rigid inertias in the cylinder frame, the rod's at x = 0
    ('rod', 'f8', 10),
    ('damping', 'f8', 4),       # actuated joint, boom pin, barrel pin, eye pin [N s/m, N m s/rad]
    ('friction', 'f8', 4),      # Coulomb level of the same [N, N m]
    ('slip', 'f8'),             # velocity v_s of the regularised Coulomb friction [m/s, rad/s]
    ('applied', 'f8'),          # constant effort of springs and the like [N, N m]
    ('external', 'f8', (3, 6)), # wrenches of the environment on link, barrel and rod in their frames, where `loaded`
    ('lower', 'f8'),            # limits of the joint, where it meets stops
    ('upper', 'f8'),
    ('stop_stiffness', 'f8'),   # of a Hunt-Crossley stop [N/m, N m/rad]
    ('stop_damping', 'f8'),     # [s/m, s/rad]
    ('joint', 'i8', 3),         # rows of the actuated (or only) joint, the boom and the barrel; -1: none
    ('sign', 'f8', 3),          # joint position = sign * angle + zero, for boom and barrel
    ('zero', 'f8', 3),
], align=True)

WORK = np.dtype([
    ('q', 'f8'), ('qd', 'f8'), ('qdd', 'f8'),       # position, rate, acceleration of the joint; the stroke of a loop
    ('effort', 'f8'),                       # that the motion needs on the joint, passive forces not taken off
    ('c', 'f8'), ('s', 'f8'),               # base frame -> link frame
    ('kappa', 'f8'), ('sigma', 'f8'),       # motion subspace S = (0, 0, sigma; 0, 0, kappa)
    ('slide', 'f8'),                        # displacement of a prismatic link along z
    ('bias', 'f8', 6),                      # c, base frame
    ('velocity', 'f8', 6),                  # twist of the link, link frame
    ('acceleration', 'f8', 6),
    ('psi', 'f8', 6),                       # M S / alpha, base frame
    ('drive', 'f8'),                        # (f - delta) / alpha
    ('c1', 'f8'), ('s1', 'f8'),             # base frame -> cylinder frame
    ('k2', 'f8'), ('k5', 'f8'),             # of the cylinder: q1d = k2 xd, q1dd = k2 xdd + k5
    ('cylinder_velocity', 'f8', 6),         # twist of the barrel, cylinder frame
    ('cylinder_acceleration', 'f8', 6),
    ('wrench', 'f8', (3, 6)),               # accumulators of link, barrel, rod: bias wrench of the children
    ('inertia', 'f8', (3, 21)),             # the same: articulated inertia of the children
    ('root', 'f8', 6),                      # wrench of a module on the base, at its base frame
], align=True)

ENVIRONMENT = np.dtype([
    ('twist', 'f8', 6),             # of a base that does not float, in base axes
    ('acceleration', 'f8', 6),      # spatial, gravity in it, in base axes
    ('gravity', 'f8', 3),           # in inertial axes; of a base that floats
    ('base', 'f8', 10),             # rigid inertia of the base body in base axes
    ('loaded', 'i8'),               # 1: the modules' external wrenches act
    ('nx', 'i8'), ('dof', 'i8'), ('actuators', 'i8'),       # entries of x, of xd, of f
    ('system', 'f8', (7, 6)),       # scratch of a floating base
], align=True)
