"""What `psdyn check` says of a machine, as text."""
import math

import numpy as np

from ..model.errors import PsdynError


def check_report(manipulator):
    """Return the report on a `Manipulator`: tree, modules, loops, mass, warnings."""
    machine = manipulator.machine
    limits = manipulator.limits
    lines = [f"{manipulator.name}: {manipulator.dof} DoF, {len(manipulator.actuators)} actuators, "
             f'{sum(module.triangle is not None for module in machine.modules)} loops, '
             f'{len(manipulator.links)} links, {manipulator.total_mass:.2f} kg',
             '', 'Tree (joint -> link)', f'  {machine.base_link}{_mass(machine, machine.base_link)}']
    lines += _tree(machine, machine.base_link, '  ')
    lines += ['', 'Modules (coordinate: kind, limits, at the initial position)']
    forces = _gravity_forces(manipulator)
    for index, name in enumerate(manipulator.actuators):
        module = next(module for module in machine.modules if module.name == name)
        unit, force = ('rad', 'N m') if module.joint.type != 'prismatic' else ('m', 'N')
        kind = f"loop '{module.triangle.name}'" if module.triangle else module.joint.type
        lines.append(f'  {name}: {kind}, {limits.lower[index]:.6g} to {limits.upper[index]:.6g} {unit}, at '
                     f'{machine.initial[index]:.6g} {unit} it holds with {forces[index]:.6g} {force}')
    for module in machine.modules:
        if module.triangle:
            lines += ['', *_loop(manipulator, module)]
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
        pins = ''.join(f'  o {name}' for name in closed.get(joint.child, ()))
        lines.append(f'{indent}+- {joint.name} ({role}{joint.type}) -> {joint.child}'
                     f'{_mass(machine, joint.child)}{pins}')
        deeper = indent + '|  '
        stack += [(child, deeper) for child in reversed(children.get(joint.child, ()))]
    return lines


def _loop(manipulator, module):
    machine, triangle, assembly = manipulator.machine, module.triangle, module.assembly
    low, high = assembly.reach
    x = machine.initial[machine.actuators.index(module.name)]
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


def _gravity_forces(manipulator):
    try:
        forces = manipulator.gravity_forces(manipulator.initial_position)
        # a slewing axis along gravity holds with rounding errors, which nobody wants to read
        return np.where(abs(forces) > 1e-12 * abs(forces).max(), forces, 0.0)
    except PsdynError:
        return np.full(manipulator.dof, np.nan)
