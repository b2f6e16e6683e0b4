"""Description to `Draft`: modules in depth-first order, their frames turned for the kernels, flat records.

Every kernel frame has z along its joint axis; a link's x axis is turned to the common normal with the axis of the
module that follows on it (Denavit-Hartenberg), so that all constant rotations in the recursions are planar.
"""
import math
import numbers
from dataclasses import dataclass, replace

import numpy as np

from ...kernels.rigid_body.records import (
    ADD,
    BARREL,
    BY_VALUE,
    FIRST,
    FREE,
    FRICTION,
    LINK,
    LOOP,
    MODULE,
    PRISMATIC,
    REVOLUTE,
    ROD,
)
from ..errors import ActuationError, InertiaError, ModelError, UnknownNameError, check_name, did_you_mean
from ..short_repr import short_repr
from .cluster import sort_loops
from .description import IDENTITY, SLIP_VELOCITY, Description, Pose
from .frames import about_x, about_z, azimuth
from .tree import (
    body_parameters,
    build_tree,
    check_inertia,
    inertia_problem,
    looks_like_placeholder,
    machine_size,
    radius_of_gyration,
)
from .triangle import Assembly, Triangle, check_initial, choose_assembly, strokes_within, wrap

LIMIT_TOLERANCE = 1e-6      # of an initial position at a limit, as both are written with few digits [m, rad]


@dataclass(frozen=True, eq=False)
class Module:
    """One degree of freedom: a serial joint, or a boom with its cylinder."""

    joint: object                   # the actuated Joint
    parent: int
    parent_body: int
    triangle: Triangle | None
    assembly: Assembly | None

    __repr__ = short_repr

    @property
    def name(self):
        return self.joint.name


@dataclass(frozen=True)
class Place:
    """Where a URDF link is: on a body of a module (-1: the base), with `pose` in that body's kernel frame."""

    module: int
    body: int
    pose: Pose

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Draft:
    """A machine whose loops are not closed yet: what its description says."""

    name: str
    description: Description
    modules: tuple
    records: np.ndarray             # (n,) MODULE
    actuators: tuple
    joints: tuple                   # every movable joint of the tree, depth first
    places: dict                    # link name -> Place
    base_link: str
    base_inertia: np.ndarray        # (10,) of the base body in base axes
    initial: np.ndarray             # (modules,) declared initial positions of the modules
    warnings: tuple
    clusters: tuple
    hints: tuple                    # initial positions: those given, then those declared
    floating: Pose | None           # of the floating joint's frame in the world

    __repr__ = short_repr

    @property
    def total_mass(self):
        return sum(link.inertial.mass for link in self.description.links.values() if link.inertial)


def build_machine(description, *, initial=None, actuated=None, coordinates=None, allow_unphysical=False):
    """Return the `Draft` of a description; raise a `ModelError` that names what does not fit."""
    base, owner = build_tree(description)
    bodies = dict.fromkeys(owner.values())
    entries = {entry[0].name: entry for body in bodies for entry in body.joints}
    actuators = _actuators(description, entries, actuated)
    triangles, clusters = sort_loops(entries, owner, description, actuators, coordinates or ())
    if not allow_unphysical:
        clustered = {body for cluster in clusters for body in cluster.bodies}
        for body in bodies:
            check_inertia(description, body, body in clustered)
    hints = _hints(description, entries, initial)
    builder = _Builder(description, base, {triangle.boom.name: triangle for triangle in triangles}, actuators, hints,
                       clusters)
    builder.grow()
    return builder.machine()


def _actuators(description, entries, actuated):
    if actuated is None:
        names = [name for name, interface in description.interfaces.items() if interface.commanded]
        if not names and not description.interfaces:
            raise ActuationError(f"'{description.name}' has no joint with a command interface in <ros2_control>; "
                                 'name the actuated joints by load(..., actuated=[...])')
    else:
        names = list(actuated)
    for name in names:
        if name not in description.joints:
            raise UnknownNameError(f"actuated joint '{name}': no such joint{did_you_mean(name, entries)}")
        if name not in entries:
            raise ActuationError(f"actuated joint '{name}' is fixed")
        if entries[name][0].type == 'floating':
            raise ActuationError(f"actuated joint '{name}' is the floating base; actuators drive single joints")
        if name in description.mimics:
            mimic = description.mimics[name]
            raise ActuationError(f"actuated joint '{name}' (line {mimic.line}) follows '{mimic.leader}' by <mimic>; "
                                 f"expected '{mimic.leader}' to be actuated")
        if names.count(name) > 1:
            raise ActuationError(f"actuated joint '{name}' is listed twice")
    return tuple(names)


def _hints(description, entries, initial):
    """Return the two sources of initial positions: load(initial=...) first, then <ros2_control>."""
    given = initial or {}
    for name, value in given.items():
        check_name(name, entries, f"initial position of '{name}': no such joint")
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise ModelError(f"initial position of '{name}' is {value!r:.80}; expected a finite number")
    declared = {name: interface.initial for name, interface in description.interfaces.items()
                if interface.initial is not None}
    for source, values in (('in load(initial=...)', given), ('in <ros2_control>', declared)):
        for name, value in values.items():
            _check_within_limits(description.joints[name], value, source)
    return dict(given), declared


def _check_within_limits(joint, position, source):
    if not joint.lower - LIMIT_TOLERANCE <= position <= joint.upper + LIMIT_TOLERANCE:
        raise ModelError(f"initial position of '{joint.name}' {source} is {position:.9g}; its limits (line "
                         f'{joint.line}) are {joint.lower:.9g} to {joint.upper:.9g}')


class _Builder:
    """Walks the tree once, depth first, and fills one record a module."""

    def __init__(self, description, base, triangles, actuators, hints, clusters):
        self.description, self.base, self.actuators, self.clusters = description, base, actuators, tuple(clusters)
        self.floating = base.joints[0][0].type == 'floating' if base.joints else False
        self.triangles = triangles                                        # by boom joint
        self.clustered = {joint for cluster in clusters for joint in cluster.joints}
        self.cylinders = {triangle.barrel.name for triangle in triangles.values()}
        self.given, self.declared = hints
        self.modules, self.records, self.places, self.initial = [], [], {}, []
        self.warnings = list(description.warnings)
        self.joint_rows = {}
        self.sizes = self._sizes(base)

    def _sizes(self, base):
        """Return the number of bodies above each body, so that the longest branch is handed over by value."""
        order, sizes = [base], {}
        for body in order:
            order.extend(child for _, _, child in body.joints)
        for body in reversed(order):
            sizes[body] = 1 + sum(sizes[child] for _, _, child in body.joints)
        return sizes

    def grow(self):
        self._place(self.base, -1, LINK, IDENTITY)
        # modules still to be added; a stack keeps the order depth first
        stack = self._float() if self.floating else self._standing(self.base, -1, LINK, IDENTITY)
        while stack:
            stack.extend(self._add(*stack.pop()))

    def _float(self):
        """Append the floating base: a module at rest in the frame of its body, whose motion the kernels are given."""
        joint, _, body = self.base.joints[0]
        record = np.zeros((), MODULE)
        record['kind'], record['parent'], record['joint'] = FREE, -1, -1
        record['azimuth'] = record['dh_alpha'] = record['turn'] = 1.0, 0.0
        record['lower'], record['upper'], record['slip'] = -math.inf, math.inf, SLIP_VELOCITY
        record['link'] = body_parameters(self.description, body, IDENTITY)
        self.modules.append(Module(joint, -1, LINK, None, None))
        self.records.append(record)
        self.initial.append(0.0)
        self._place(body, 0, LINK, IDENTITY)
        return self._standing(body, 0, LINK, IDENTITY)

    def _standing(self, body, module, parent_body, pose):
        """Return the stack entries of the modules on a body, the one handed over by value last (popped first)."""
        entries = [(joint, pose @ joint_pose, child, module, parent_body) for joint, joint_pose, child in body.joints
                   if joint.name not in self.cylinders]
        entries.sort(key=lambda entry: self.sizes[entry[2]])
        return entries

    def _place(self, body, module, parent_body, pose):
        for name, placed in body.links.items():
            self.places[name] = Place(module, parent_body, pose @ placed)

    def _add(self, joint, pose, body, parent, parent_body):
        """Append the module of `joint`, whose frame has `pose` in its parent's kernel frame; return its children."""
        k = len(self.modules)
        triangle = self.triangles.get(joint.name)
        record = np.zeros((), MODULE)
        record['parent'], record['parent_body'] = parent, parent_body
        record['lower'], record['upper'], record['slip'] = joint.lower, joint.upper, SLIP_VELOCITY
        base_axes = self._stand(record, pose, joint.axis)            # parent's kernel axes -> base frame axes

        following = self._following(body, triangle)
        unturned = base_axes @ pose.rotation                        # link axes -> base frame at angle zero
        offset = azimuth(unturned @ following) if following is not None else 0.0
        link_pose = Pose(about_z(math.cos(offset), -math.sin(offset)) @ unturned, np.zeros(3))
        record['link'] = body_parameters(self.description, body, link_pose)
        self._rows(record, joint, triangle)
        children = []
        if triangle is None:
            assembly = None
            record['kind'] = PRISMATIC if joint.type == 'prismatic' else REVOLUTE
            record['turn'] = math.cos(offset), math.sin(offset)
            self._check_lever(record, joint, body)
            record['damping'][0], record['friction'][0] = joint.damping, joint.friction
            self.initial.append(self._initial(joint, None))
        else:
            record['kind'] = LOOP
            parent_pose = pose @ triangle.boom_pose.inverse()        # base body of the loop in its kernel frame
            triangle, assembly, cylinder_pose, rod_pose = self._loop(
                record, triangle, base_axes @ parent_pose.rotation, link_pose, offset)
            for cylinder_body, part, placed in ((triangle.rod_body, ROD, rod_pose),
                                                (triangle.barrel_body, BARREL, cylinder_pose)):
                self._place(cylinder_body, k, part, placed)
                skip = {triangle.rod.name}
                children += [entry for entry in self._standing(cylinder_body, k, part, placed)
                             if entry[0].name not in skip]
        self.modules.append(Module(triangle.rod if triangle else joint, parent, parent_body, triangle, assembly))
        self.records.append(record)
        self._place(body, k, LINK, link_pose)
        return children + self._standing(body, k, LINK, link_pose)

    def _check_lever(self, record, joint, body):
        """Refuse a leaf link without inertia about its joint axis, such as a point mass."""
        mass, about_axis = record['link'][0], record['link'][9]
        if joint.type != 'prismatic' and not body.joints and abs(about_axis) <= 1e-12 * mass:
            raise InertiaError(f"link '{body.link}' (line {self.description.links[body.link].line}) has no inertia "
                               f"about the axis of its joint '{joint.name}': any effort would turn it infinitely fast")

    def _stand(self, record, pose, axis):
        """Set the placement of a module on its parent; return the rotation parent's kernel axes -> base frame."""
        direction = pose.rotation @ axis
        lateral = math.hypot(direction[0], direction[1])
        if lateral < 1e-14:
            turn, tilt = 0.0, 0.0 if direction[2] > 0 else math.pi
        else:
            turn, tilt = azimuth(direction), math.atan2(lateral, direction[2])
        if abs(turn) < 1e-15:
            turn = 0.0
        record['placement'] = pose.position
        record['turned'] = turn != 0.0
        record['azimuth'] = math.cos(turn), math.sin(turn)
        record['dh_alpha'] = (math.cos(tilt), math.sin(tilt)) if tilt < 3.14159265 else (-1.0, 0.0)
        return about_x(math.cos(tilt), -math.sin(tilt)) @ about_z(math.cos(turn), -math.sin(turn))

    def _following(self, body, triangle):
        """Return the axis, in link axes, of the module that will be handed over by value, or None."""
        standing = self._standing(body, 0, LINK, IDENTITY)
        if not standing:
            return None
        joint, pose = standing[-1][:2]
        return pose.rotation @ joint.axis

    def _rows(self, record, joint, triangle):
        names = (triangle.rod.name, triangle.boom.name, triangle.barrel.name) if triangle else (joint.name,)
        record['joint'] = -1
        for column, name in enumerate(names):
            self.joint_rows[name] = (len(self.modules), column)

    def _loop(self, record, triangle, axes, link_pose, offset):
        """Fill the record of a loop; axes: base body of the loop -> base frame of the module.

        offset: angle of the link frame at boom position zero [rad].
        """
        side = axes @ (triangle.boom_pose.position - triangle.barrel_pose.position)         # C -> B
        eye = link_pose.apply(triangle.boom_eye)
        beta, eta = math.atan2(side[1], side[0]), math.atan2(eye[1], eye[0])
        stroke = axes @ triangle.barrel_pose.rotation @ triangle.cylinder[0]
        psi = math.atan2(stroke[1], stroke[0])                     # of the stroke at barrel angle zero
        zero_boom = beta - eta - offset
        zero_barrel = triangle.barrel_sign * (beta - psi)
        zeros = zero_boom, zero_barrel
        assembly = choose_assembly(triangle, zeros, self._loop_hints(triangle))
        triangle = self._share_limits(triangle, assembly, zeros)
        record['lower'], record['upper'] = triangle.rod.lower, triangle.rod.upper

        record['L'], record['L1'], record['x0'], record['e'] = triangle.L, triangle.L1, triangle.x0, triangle.e
        record['half'] = 0.5 / (triangle.L * triangle.L1)
        record['mode'], record['side'] = assembly.mode, assembly.side
        record['pin'] = -side
        record['base_turn'] = math.cos(beta), math.sin(beta)
        record['turn'] = math.cos(beta - eta), math.sin(beta - eta)
        record['damping'] = [triangle.rod.damping, triangle.boom.damping, triangle.barrel.damping,
                             triangle.closure.damping]
        record['friction'] = [triangle.rod.friction, triangle.boom.friction, triangle.barrel.friction,
                              triangle.closure.friction]
        cylinder_pose = Pose(triangle.cylinder, np.zeros(3))
        rod_pose = cylinder_pose @ triangle.rod_pose
        record['barrel'] = body_parameters(self.description, triangle.barrel_body, cylinder_pose)
        record['rod'] = body_parameters(self.description, triangle.rod_body, rod_pose)

        x = self._initial(triangle.rod, (triangle, assembly, zero_boom))
        check_initial(triangle, assembly.reach, x)
        _check_within_limits(triangle.rod, x, f"(within the limits of '{triangle.boom.name}' and "
                             f"'{triangle.barrel.name}' too)")
        self.initial.append(x)
        q, q1 = triangle.angles(x, assembly.mode)
        if assembly.side < 0:
            zero_barrel += math.pi          # q1 points to the eye, the stroke axis away from it
        record['sign'] = 1.0, 1.0, triangle.barrel_sign
        record['zero'] = (0.0, self._turns(triangle.boom, zero_boom, q),
                          self._turns(triangle.barrel, zero_barrel, triangle.barrel_sign * q1))
        self.warnings.extend(triangle.warnings)
        self._check_reach(triangle, assembly)
        return triangle, assembly, cylinder_pose, rod_pose

    def _share_limits(self, triangle, assembly, zeros):
        """Return the triangle with its stroke within the limits of boom and barrel too; warn of narrower ones."""
        rod = triangle.rod
        start = self._initial(rod, (triangle, assembly, zeros[0]))
        others = f"the limits of '{triangle.boom.name}' and '{triangle.barrel.name}'"
        found = strokes_within(triangle, assembly, zeros, start)
        if found is None:       # a declared assembly mode overrules them
            self.warnings.append(f"loop '{triangle.name}' (line {triangle.closure.line}): {others} are not kept, since "
                                 f"they admit no stroke of '{rod.name}' in the declared assembly mode")
            return triangle
        lower, upper = found
        if found != (rod.lower, rod.upper):
            self.warnings.append(f"joint '{rod.name}' (line {rod.line}): its limits {rod.lower:.6g} to {rod.upper:.6g} "
                                 f'are narrowed to {lower:.6g} to {upper:.6g} by {others}')
        return replace(triangle, rod=replace(rod, lower=lower, upper=upper))

    def _loop_hints(self, triangle):
        passive = (triangle.boom.name, triangle.barrel.name)
        for source in (self.given, self.declared):
            if any(name in source for name in passive):
                return source
        return {**self.declared, **self.given}

    def _initial(self, joint, loop):
        """Return the coordinate of the declared initial position, else the admissible one nearest to zero."""
        low, high = joint.lower, joint.upper
        for source in (self.given, self.declared):
            if joint.name in source:
                return float(source[joint.name])
            if loop and loop[0].boom.name in source:
                triangle, assembly, zero = loop
                q = source[triangle.boom.name] - zero
                s2 = triangle.L ** 2 + triangle.L1 ** 2 + 2 * triangle.L * triangle.L1 * math.cos(q)
                x = assembly.side * math.sqrt(max(s2 - triangle.e ** 2, 0.0)) - triangle.x0
                _check_within_limits(joint, x, f"(which follows from '{triangle.boom.name}')")
                return x
        if loop:
            low, high = max(low, loop[1].reach[0]), min(high, loop[1].reach[1])
            if not low < 0.0 < high:
                return 0.5 * (low + high)
        return min(max(0.0, low), high)

    def _turns(self, joint, zero, angle):
        """Return `zero` moved by whole turns so that the joint starts where its hints or limits are."""
        for source in (self.given, self.declared):
            if joint.name in source:
                centre = source[joint.name]
                break
        else:
            centre = 0.5 * (joint.lower + joint.upper) if math.isfinite(joint.lower + joint.upper) else 0.0
        position = float(zero + angle)
        return float(zero + (centre + wrap(position - centre)) - position)

    def _check_reach(self, triangle, assembly):
        low, high = assembly.reach
        if triangle.rod.lower <= low or triangle.rod.upper >= high:
            self.warnings.append(
                f"loop '{triangle.name}': the limits of '{triangle.rod.name}' ({triangle.rod.lower:.6g} to "
                f'{triangle.rod.upper:.6g} m) reach a toggle point ({low:.6g} or {high:.6g} m)')
        if assembly.side < 0:
            self.warnings.append(f"loop '{triangle.name}': a positive force on '{triangle.rod.name}' retracts the "
                                 'cylinder, since its axis points from the rod eye to the barrel')

    def machine(self):
        names = [module.name for module in self.modules]
        records = np.array(self.records, dtype=MODULE)
        for record in records:
            record['actuator'] = -1
        for row, name in enumerate(self.actuators):
            records['actuator'][names.index(name)] = row
        records['cluster'] = records['cluster_joint'] = -1
        _link_up(records, {k for k, name in enumerate(names) if name in self.clustered})
        joints = tuple(self.joint_rows)
        for row, (module, column) in enumerate(self.joint_rows.values()):
            records['joint'][module, column] = row
        has_friction = records['friction'].any(axis=1) | records['damping'].any(axis=1)
        records['passive'] = np.where(has_friction, FRICTION, 0)
        self._warn_of_inertias()
        self._warn_of_idle_actuators()
        return Draft(
            self.description.name, self.description, tuple(self.modules), records, self.actuators, joints,
            self.places, self.base.joints[0][2].link if self.floating else self.base.link,
            body_parameters(self.description, self.base, IDENTITY), np.array(self.initial), tuple(self.warnings),
            self.clusters, (self.given, self.declared), self.base.joints[0][1] if self.floating else None)

    def _warn_of_inertias(self):
        size = machine_size(self.description)
        for link in self.description.links.values():
            if link.inertial is None:
                continue
            problem = inertia_problem(link.inertial)
            radius = radius_of_gyration(link.inertial) if link.inertial.mass > 0.0 else 0.0
            if radius > 2.0 * size > 0.0:
                self.warnings.append(f"link '{link.name}' (line {link.line}): its radius of gyration is {radius:.3g} m "
                                     f'in a machine of at most {size:.3g} m; expected inertias in kg m^2')
            if problem:
                self.warnings.append(f"link '{link.name}' (line {link.line}): {problem}")
            elif link.inertial.mass > 0 and looks_like_placeholder(link.inertial):
                self.warnings.append(f"link '{link.name}' (line {link.line}): inertia "
                                     f'{link.inertial.inertia[0, 0]:g} kg m^2 about all axes looks like a placeholder')
        for interface in self.description.interfaces.values():
            if self.description.joints[interface.name].type == 'fixed':
                self.warnings.append(f"joint '{interface.name}' in <ros2_control> (line {interface.line}) is fixed")

    def _warn_of_idle_actuators(self):
        for name in self.actuators:
            joint = self.description.joints[name]
            for what in ('effort', 'velocity'):
                if getattr(joint, what) == 0.0:
                    self.warnings.append(f"joint '{name}' (line {joint.line}): an actuator with the {what} limit 0 "
                                         f'does nothing; where none is known, its <limit> has no {what}')


def _link_up(records, clustered):
    """Set how the inertia of each module reaches its parent: by value to module k-1, else through an accumulator."""
    started = set()
    for k in range(len(records) - 1, -1, -1):
        parent, parent_body = int(records['parent'][k]), int(records['parent_body'][k])
        records['accumulate'][k] = BY_VALUE
        if parent < 0:
            continue
        if parent == k - 1 and parent_body == LINK and k not in clustered:
            records['child_by_value'][parent] = 1
            continue
        if parent_body == LINK:
            records['link_accumulates'][parent] = 1
        else:
            records['cylinder_has_children'][parent] |= parent_body          # BARREL 1, ROD 2
        records['accumulate'][k] = ADD if (parent, parent_body) in started else FIRST
        started.add((parent, parent_body))
