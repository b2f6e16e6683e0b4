"""The report of `psdyn check` on a machine, as text."""
import math

import numpy as np

from ...assembly.clusters import ClusterBuilder
from ...assembly.machine import smallest_singular_values
from ...model.errors import PsdynError

ROUNDING = 1e-10            # of the largest effort: what is less is shown as zero


def check_report(manipulator):
    """Return the report on a `Manipulator`: tree, modules, loops, mass, warnings."""
    machine = manipulator.machine
    lines = [f"{manipulator.name}: {manipulator.dof} DoF, {len(manipulator.actuators)} actuators, "
             f'{len(machine.description.closures)} loops, '
             f'{len(manipulator.links)} links, {manipulator.total_mass:.2f} kg',
             '', 'Tree (joint -> link)', f'  {machine.base_link}{_mass(machine, machine.base_link)}']
    lines += _tree(machine, machine.base_link, '  ')
    lines += ['', 'Modules (coordinate: kind, limits, at the initial position)', *_coordinates(manipulator)]
    if manipulator.actuators != manipulator.coordinates:
        lines += ['', 'Actuators (joint: kind, limits, at the initial position)', *_actuators(manipulator)]
    for module in machine.modules:
        if module.triangle:
            lines += ['', *_loop(manipulator, module)]
    for n in range(len(machine.clusters)):
        lines += ['', *_cluster(manipulator, n)]
    lines += ['', f'{len(machine.warnings)} warning(s)' + (':' if machine.warnings else '')]
    lines += [f'  {warning}' for warning in machine.warnings]
    return '\n'.join(lines)


def _mass(machine, link):
    inertial = machine.description.links[link].inertial
    return f'  [{inertial.mass:.3f} kg]' if inertial else ''


def _tree(machine, link, indent):
    driven, closed = set(machine.actuators), {}
    for closure in machine.description.closures.values():
        for end in (closure.parent, closure.child):
            closed.setdefault(end, []).append(closure.name)
    children = {}
    for joint in machine.description.joints.values():
        children.setdefault(joint.parent, []).append(joint)
    lines, stack = [], [(joint, indent) for joint in reversed(children.get(link, ()))]
    while stack:
        joint, indent = stack.pop()
        role = 'actuated ' if joint.name in driven else '' if joint.type == 'fixed' else 'passive '
        if joint.name in machine.description.mimics:
            role = f"by '{machine.description.mimics[joint.name].leader}', "
        pins = ''.join(f'  o {name}' for name in closed.get(joint.child, ()))
        lines.append(f'{indent}+- {joint.name} ({role}{joint.type}) -> {joint.child}'
                     f'{_mass(machine, joint.child)}{pins}')
        deeper = indent + '|  '
        stack += [(child, deeper) for child in reversed(children.get(joint.child, ()))]
    return lines


def _initial(manipulator):
    """Return {coordinate: initial position}."""
    names = manipulator.coordinates
    return dict(zip(names, manipulator.initial_position[manipulator.nx - len(names):]))


def _joint_line(manipulator, name):
    """Return (text on kind and limits, unit of position, unit of effort) of an actuator or coordinate."""
    machine = manipulator.machine
    module = next(module for module in machine.modules if module.name == name)
    unit, force = ('rad', 'N m') if module.joint.type != 'prismatic' else ('m', 'N')
    kind = f"loop '{module.triangle.name}'" if module.triangle else module.joint.type
    kind += ''.join(f" in loop '{cluster.name}'" for cluster in machine.clusters if name in cluster.joints)
    return f'  {name}: {kind}, {module.joint.lower:.6g} to {module.joint.upper:.6g} {unit}', unit, force


def _coordinates(manipulator):
    m, start, zero = manipulator, manipulator.initial_position, np.zeros(manipulator.dof)
    lines = [f"  {m.machine.base_link}: floats, position and quaternion x y z w"] if m.floating else []
    forces = _holding(lambda: m.generalized_forces(start, zero, zero), len(m.coordinates))
    verb = 'holds with' if m.actuators == m.coordinates else 'needs'
    for (name, position), needed in zip(_initial(m).items(), forces):
        text, unit, force = _joint_line(m, name)
        lines.append(f'{text}, at {position:.6g} {unit} it {verb} {needed:.6g} {force}')
    return lines


def _actuators(manipulator):
    m = manipulator
    if not m.actuators:
        return ['  none']
    enough = m.underactuated or len(m.actuators) >= len(m.coordinates)
    forces = _holding(lambda: m.gravity_forces(m.initial_position), len(m.actuators)) if enough else m.actuators
    lines = []
    for name, needed in zip(m.actuators, forces):
        text, _, force = _joint_line(m, name)
        lines.append(f'{text}, it holds with {needed:.6g} {force}' if enough else text)
    if m.underactuated:
        lines.append(f"  passive: {', '.join(m.passive_joints)}; no actuator drives them, they move freely, and the "
                     'controller computes their motion (hybrid dynamics)')
    elif not enough:
        lines.append(f'  fewer than the {len(m.coordinates)} joint coordinates: no inverse dynamics, no control')
    return lines


def _cluster(manipulator, n):
    machine, builder = manipulator.machine, ClusterBuilder(manipulator.machine, manipulator.machine.loops)
    cluster, record, loops = machine.clusters[n], machine.loops.clusters[n], machine.loops
    q = loops.poses[record['pose']:record['pose'] + record['poses'], :record['joints']]
    phi, K = builder.jacobian(n, q[0])
    values = np.linalg.svd(K, compute_uv=False)
    builder.clusters[n]['gap'] = record['gap']
    rows = len(K) - int(record['parallels'])
    redundant = rows - builder.rank(n, values)
    lines = ', '.join(map(str, cluster.lines))
    column = loops.cluster_joints['independent'][builder.slice(n)]
    free = [int(np.flatnonzero(column == a)[0]) for a in range(record['freedom'])]
    smallest = smallest_singular_values(machine, n, q)
    worst = int(smallest.argmin())
    at = ', '.join(f'{cluster.joints[i]} = {q[worst, i]:.4g}' for i in free)
    return [
        f"Loop '{cluster.name}' (line{'s' * (len(cluster.lines) > 1)} {lines}): {' - '.join(cluster.joints)}",
        f"  independent: {', '.join(cluster.joints[i] for i in free)}; moves in "
        f"{'one plane' if record['planar'] else 'space'}",
        f'  constraints: {rows} equations for {len(cluster.joints)} joints, '
        + (f'{redundant} of them redundant (overconstrained, and consistent)' if redundant else 'none redundant'),
        f'  smallest singular value: {smallest[0]:.4g} at the initial position; over {len(q)} closed poses of its '
        f'range at least {smallest[worst]:.4g}, at {at}' if len(q) > 1 else
        f'  smallest singular value: {smallest[0]:.4g} at the initial position',
        f'  closure residual at the initial position: {abs(phi).max():.2g} m or 1',
        *(f'  parallelogram: pins {pins}; it remains one where its sides are in line'
          for pins in builder.parallelograms[n])]


def _loop(manipulator, module):
    triangle, assembly = module.triangle, module.assembly
    low, high = assembly.reach
    x = _initial(manipulator)[module.name]
    strokes = np.array([max(low, module.joint.lower), min(high, module.joint.upper)])
    q = np.concatenate([triangle.angles(strokes, assembly.mode)[0], [triangle.angles(x, assembly.mode)[0]]])
    return [
        f"Loop '{triangle.name}' (line {triangle.closure.line}): {triangle.barrel.name} - {triangle.rod.name} against "
        f'{triangle.boom.name}',
        f'  triangle: barrel pin to boom pin {triangle.L:.6g} m, boom pin to rod eye {triangle.L1:.6g} m, cylinder '
        f'length {triangle.x0:.6g} m + stroke, offset {triangle.e:.3g} m',
        f"  assembly mode: q {'>' if assembly.mode > 0 else '<'} 0 (q from {q[0]:+.4f} to {q[1]:+.4f} rad over the "
        'stroke limits)',
        f'  reachable stroke: {low:.6g} to {high:.6g} m; limits {module.joint.lower:.6g} to {module.joint.upper:.6g} m',
        f'  distance to toggle: {strokes[0] - low:.4g} m below, {high - strokes[1]:.4g} m above the limits; at '
        f'{x:.6g} m |sin q| = {abs(math.sin(q[2])):.3f}',
        f'  closure residual at the initial position: {_gap(manipulator, triangle.closure):.2g} m']


def _gap(manipulator, closure):
    x = manipulator.initial_position
    parent, child = (manipulator.link_pose(x, link) @ origin.matrix() for link, origin in (
        (closure.parent, closure.parent_origin), (closure.child, closure.child_origin)))
    return float(np.linalg.norm(parent[:3, 3] - child[:3, 3]))


def _holding(compute, count):
    """Return the efforts (count,) that hold the initial position, NaN where there are none."""
    try:
        forces = compute()[-count:] if count else np.zeros(0)
        # a slewing axis along gravity holds with rounding errors, which nobody wants to read
        return np.where(abs(forces) > ROUNDING * abs(forces).max(initial=0.0), forces, 0.0)
    except PsdynError:
        return np.full(count, np.nan)
