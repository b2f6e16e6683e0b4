"""Mechanism, cylinders, valves, friction and supply in one step: Rosenbrock-W of order 2 (ROS2), L-stable.

    (I - g h J) k1 = f(u),    (I - g h J) k2 = f(u + h k1) - 2 k1,    u += 1.5 h k1 + 0.5 h k2,    g = 1 - 1 / sqrt 2

is of order 2 for any J.  J has the slopes of fluid, friction, stops and brakes, the steepest that the predictor
u + h f(u) crosses, and none of the mechanism itself.  Everything but the velocities is eliminated, so a stage solves

    (M + A' E A) k_v = M r_v + A' ... ,      E: what friction, stops and chambers add to each actuator [kg, kg m^2]

by one Cholesky factor for both stages; the pressure of a shared supply is a border of that system.

The state is one row: x, xd (dof,), fluid (cylinders, 6), bristles (actuators,), supply pressure.

Source: J. G. Verwer et al., SIAM J. Sci. Comput. 20 (1999) 1456, for ROS2; the choice of slopes is ours.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..loops.closure import close_machine
from ..rigid_body.entry import finite
from ..rigid_body.forward import place_machine, solve_machine
from ..rigid_body.mass_matrix import actuator_map, mass_matrix
from ..rigid_body.measurement import actuator_states
from ..rigid_body.mechanism import bind
from ..runtime.compiler import inner, kernel
from ..runtime.status import EMPTY, NON_FINITE, OK, failure
from .elimination import (
    eliminate_chambers,
    fluid_increments,
    set_constant_part,
    set_slopes,
    supply_flow_at_rest,
    supply_flow_by_axis,
    supply_flow_by_pressure,
)
from .equations import cylinder_rates, line_rate, sensed_line, sensed_load, store_load_pressure, volumes
from .friction import friction_of, friction_slopes, holding_force, holding_slopes, slides, sliding_friction
from .records import FLUID, FORCE, MEASURED_FORCE, PRESSURE_A, PRESSURE_B, VALVE

GAMMA = 1.0 - math.sqrt(0.5)
MIN_FRICTION_CHANGE_SHARE = 0.01    # of its Coulomb level, in a predictor step: smaller changes are neglected
OPPOSING = np.dtype([               # resistance to the motion of an axis, see `friction_slopes` and `holding_slopes`
    ('k', 'f8'), ('d', 'f8'), ('rho', 'f8'), ('theta', 'f8'), ('sigma', 'f8'),
], align=True)


class Coupled(NamedTuple):
    """Records of a hydraulic machine and the scratch of its step, as one argument of the kernels."""

    axes: np.ndarray            # AXIS
    cylinders: np.ndarray       # CYLINDER
    supply: np.ndarray          # SUPPLY (1,)
    opposing: np.ndarray        # OPPOSING, one an axis
    slopes: np.ndarray          # SLOPES, one a cylinder
    states: np.ndarray          # (5, state)
    actuators: np.ndarray       # (7, actuators) position, rate, force, and scratch
    dofs: np.ndarray            # (2, dof)
    inertia: np.ndarray         # (2, dof, dof) M, Cholesky factor of the stages
    A: np.ndarray               # (actuators, dof) rates of the actuators for those of the coordinates


@kernel
def actuator_rates(A, xd, qd):
    """Write the rates A xd of the actuators."""
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j] * xd[j]
        qd[i] = total


@kernel
def add_actuator_forces(A, f, rhs):
    """Add A' f to the right-hand side."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            rhs[j] += A[i, j] * f[i]


@kernel
def add_actuator_inertia(A, e, M):
    """Add A' diag(e) A to the lower triangle of M."""
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            scaled = e[k] * A[k, i]
            for j in range(i + 1):
                M[i, j] += scaled * A[k, j]


@kernel
def line_pressure(s, U):
    """Return the pressure of the supply line: a state where the pump is limited, else its setting."""
    return U[-1] if s.supply[0]['limited'] else s.supply[0]['pressure']


@kernel
def drive_force(b, cylinders, fluid):
    """Return the force of the drive of an axis, friction not subtracted."""
    if b['drive'] == FORCE or b['drive'] == MEASURED_FORCE:
        return b['effort']
    k = b['cylinder']
    c, p = cylinders[k], fluid[FLUID * k:FLUID * k + FLUID]
    return c['area_a'] * p[PRESSURE_A] - c['area_b'] * p[PRESSURE_B]


@kernel
def sense_loads(s, fluid):
    """Keep the highest load pressure of all sections, their fluid in one row."""
    tank = s.supply[0]['return_pressure']
    highest = tank
    for k in range(s.cylinders.shape[0]):
        c = s.cylinders[k]
        if s.axes[c['axis']]['drive'] == VALVE:
            highest = max(highest, sensed_load(c, fluid[FLUID * k:FLUID * k + FLUID], tank))
    store_load_pressure(s.cylinders, s.supply[0], highest)


@inner
def rates(tree, loops, s, n, U, F):
    """Write dU/dt into F; leaves positions, rates and forces of the actuators.  Returns a status."""
    q, qd, force = s.actuators[0], s.actuators[1], s.actuators[2]
    x, xd = U[:n], U[n:2 * n]
    status = close_machine(tree, loops, x, xd)
    if status == OK:
        status = place_machine(tree, loops, x, xd)
    if status != OK:
        return status
    actuator_states(bind(tree, loops), q, qd)
    last = 2 * n + FLUID * s.cylinders.shape[0]
    fluid, fluid_rate, bristles = U[2 * n:last], F[2 * n:last], U[last:]
    supply, line, supply_flow = s.supply[0], line_pressure(s, U), 0.0
    if supply['sensing']:
        sense_loads(s, fluid)
    for k in range(s.cylinders.shape[0]):
        c, first = s.cylinders[k], FLUID * k
        i = c['axis']
        rate = fluid_rate[first:first + FLUID]
        if s.axes[i]['drive'] != VALVE:
            for j in range(FLUID):
                rate[j] = 0.0
            continue
        v_a, v_b = volumes(c, q[i])
        if not (v_a > 0.0 and v_b > 0.0):
            return failure(EMPTY, k)
        supply_flow += cylinder_rates(c, q[i], qd[i], fluid[first:first + FLUID], line, supply['return_pressure'], rate)
    for i in range(s.axes.shape[0]):
        b = s.axes[i]
        friction, bristle_rate = friction_of(b, qd[i], bristles[i])
        F[last + i] = bristle_rate
        force[i] = drive_force(b, s.cylinders, fluid) - friction + holding_force(b, q[i], qd[i])
    F[F.shape[0] - 1] = line_rate(supply, line, supply_flow) if supply['limited'] else 0.0
    for i in range(n):
        F[i] = xd[i]
    status = solve_machine(tree, loops, None, force, F[n:2 * n])
    return status if status != OK else finite(F[n:2 * n])


@kernel
def factorise(s, n):
    """Factorise M into the place of the stages' factor."""
    copy_inertia(s, n)
    cholesky(s.inertia[1], n)


@kernel
def copy_inertia(s, n):
    M, L = s.inertia[0], s.inertia[1]
    for i in range(n):
        for j in range(i + 1):
            L[i, j] = M[i, j]


@kernel
def far_accelerations(s, n, h):
    """Set actuators[6]: accelerations of the actuators where friction is that of the velocities v + h a."""
    qd, ahead, change, far, column = s.actuators[1], s.actuators[3], s.actuators[4], s.actuators[6], s.dofs[0]
    changes = False
    for i in range(s.axes.shape[0]):
        b = s.axes[i]
        far[i], change[i] = ahead[i], 0.0
        if slides(b):
            change[i] = sliding_friction(b, qd[i]) - sliding_friction(b, qd[i] + h * ahead[i])
            changes = changes or abs(change[i]) > MIN_FRICTION_CHANGE_SHARE * b['coulomb']
    if not changes:
        return
    factorise(s, n)
    for i in range(n):
        column[i] = 0.0
    add_actuator_forces(s.A, change, column)
    solve_lower(s.inertia[1], n, column)
    solve_upper(s.inertia[1], n, column)
    actuator_rates(s.A, column, far)
    for i in range(s.axes.shape[0]):
        far[i] += ahead[i]


@inner
def prepare(s, n, h, U, F):
    """Set all slopes for the step from U to U + h F, and factorise M + A' E A in place."""
    gh = GAMMA * h
    q, qd, ahead, added, border = s.actuators[0], s.actuators[1], s.actuators[3], s.actuators[4], s.actuators[5]
    actuator_rates(s.A, F[n:2 * n], ahead)
    far_accelerations(s, n, h)
    far = s.actuators[6]
    last = 2 * n + FLUID * s.cylinders.shape[0]
    for i in range(s.axes.shape[0]):
        b, o = s.axes[i], s.opposing[i]
        v_ahead = qd[i] + h * ahead[i]
        d, o['rho'], o['theta'], o['sigma'] = friction_slopes(b, qd[i], h, ahead[i], far[i], U[last + i])
        o['k'], stop_damping = holding_slopes(b, q[i], qd[i], q[i] + 0.5 * h * (qd[i] + v_ahead), v_ahead)
        o['d'] = d + stop_damping
        added[i] = gh * o['d'] + gh * gh * (o['k'] + o['sigma'] * o['theta'] / (1.0 + gh * o['rho']))
        border[i] = 0.0
    supply, line, line_slope = s.supply[0], line_pressure(s, U), F[F.shape[0] - 1]
    for k in range(s.cylinders.shape[0]):
        c, w, first = s.cylinders[k], s.slopes[k], 2 * n + FLUID * k
        i = c['axis']
        if s.axes[i]['drive'] != VALVE:
            continue
        fluid, rate = U[first:first + FLUID], F[first:first + FLUID]
        set_slopes(c, w, h, q[i], fluid, rate, (line, line_slope, supply['return_pressure']))
        added[i] += eliminate_chambers(c, w, h, gh, fluid, rate, supply['return_pressure'])
        border[i] += gh * (c['area_a'] * w['P2'][0] - c['area_b'] * w['P2'][1])
    copy_inertia(s, n)
    add_actuator_inertia(s.A, added, s.inertia[1])
    cholesky(s.inertia[1], n)


@kernel
def prepare_supply(s, n, h, line, rate):
    """Set the border's column in dofs[1]; return gh / capacity and the Schur complement of the supply's pressure.

    The first is 0 where the flow that is taken does not matter, as long as load sensing has enough of it.
    """
    supply, column, reach, border = s.supply[0], s.dofs[1], s.actuators[3], s.actuators[5]
    for i in range(n):
        column[i] = 0.0
    add_actuator_forces(s.A, border, column)
    solve_lower(s.inertia[1], n, column)
    solve_upper(s.inertia[1], n, column)
    actuator_rates(s.A, column, reach)
    slope = 0.0
    if supply['sensing']:
        if not rate < (sensed_line(supply) - line) / supply['lag']:
            return 0.0, 1.0 + GAMMA * h / supply['lag']
    else:
        highest, lowest = max(line, line + h * rate), min(line, line + h * rate)
        if lowest < supply['pressure'] and supply['pressure'] - highest < supply['droop']:
            slope = supply['flow'] / supply['droop']
    for k in range(s.cylinders.shape[0]):
        i = s.cylinders[k]['axis']
        if s.axes[i]['drive'] == VALVE:
            slope += supply_flow_by_pressure(s.slopes[k]) + supply_flow_by_axis(s.slopes[k]) * reach[i]
    scale = GAMMA * h / supply['capacity']
    return scale, 1.0 + scale * slope


@inner
def solve_stage(s, n, gh, border, R, K):
    """Write the increments K of a stage for its right-hand side R; border: what `prepare_supply` returns, or zeros."""
    scale, schur = border
    q_part, force, rhs = s.actuators[3], s.actuators[4], s.dofs[0]
    last = 2 * n + FLUID * s.cylinders.shape[0]
    actuator_rates(s.A, R[:n], q_part)
    for i in range(s.axes.shape[0]):
        o = s.opposing[i]
        force[i] = -gh * (o['k'] * q_part[i] + o['sigma'] * R[last + i] / (1.0 + gh * o['rho']))
    for k in range(s.cylinders.shape[0]):
        c, w, first = s.cylinders[k], s.slopes[k], 2 * n + FLUID * k
        i = c['axis']
        if s.axes[i]['drive'] == VALVE:
            set_constant_part(c, w, gh, R[first:first + FLUID], K[first:first + FLUID])
            force[i] += gh * (c['area_a'] * w['P0'][0] - c['area_b'] * w['P0'][1])
    M = s.inertia[0]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += M[i, j] * R[n + j]
        rhs[i] = total
    add_actuator_forces(s.A, force, rhs)
    solve_lower(s.inertia[1], n, rhs)
    solve_upper(s.inertia[1], n, rhs)
    actuator_rates(s.A, rhs, q_part)
    ks = 0.0
    if schur > 0.0:
        demand = 0.0
        for k in range(s.cylinders.shape[0]):
            i, first = s.cylinders[k]['axis'], 2 * n + FLUID * k
            if s.axes[i]['drive'] == VALVE:
                demand += supply_flow_at_rest(s.slopes[k], K[first:first + FLUID])
                demand += supply_flow_by_axis(s.slopes[k]) * q_part[i]
        ks = (R[R.shape[0] - 1] - scale * demand) / schur
        for i in range(n):
            rhs[i] += s.dofs[1][i] * ks
        actuator_rates(s.A, rhs, q_part)
    for i in range(n):
        K[n + i] = rhs[i]
        K[i] = R[i] + gh * rhs[i]
    for k in range(s.cylinders.shape[0]):
        c, first = s.cylinders[k], 2 * n + FLUID * k
        r, increments = R[first:first + FLUID], K[first:first + FLUID]
        i = c['axis']
        if s.axes[i]['drive'] == VALVE:
            fluid_increments(c, s.slopes[k], gh, r, q_part[i], ks, increments)
        else:
            for j in range(FLUID):
                increments[j] = 0.0
    for i in range(s.axes.shape[0]):
        o = s.opposing[i]
        K[last + i] = (R[last + i] + gh * o['theta'] * q_part[i]) / (1.0 + gh * o['rho'])
    K[K.shape[0] - 1] = ks


@kernel
def advance(tree, loops, s, n, h, substeps):
    """Advance states[0] by `substeps` of h [s]; return (status, sub-steps done), the last good state kept."""
    U, F, K1, K2, stage = s.states[0], s.states[1], s.states[2], s.states[3], s.states[4]
    count = U.shape[0]
    scale, schur = 0.0, 0.0
    for done in range(substeps):
        for j in range(count):
            stage[j] = U[j]
        for part in range(2):
            status = rates(tree, loops, s, n, stage, F)
            if status != OK:
                return status, done
            if part == 0:
                actuator_map(bind(tree, loops), s.A)
                status = mass_matrix(tree, loops, U[:n], s.inertia[0])
                if status != OK:
                    return status, done
                prepare(s, n, h, U, F)
                if s.supply[0]['limited']:
                    scale, schur = prepare_supply(s, n, h, U[count - 1], F[count - 1])
            else:
                for j in range(count):
                    F[j] -= 2.0 * K1[j]
            K = K1 if part == 0 else K2
            solve_stage(s, n, GAMMA * h, (scale, schur), F, K)
            if part == 0:
                for j in range(count):
                    stage[j] = U[j] + h * K1[j]
        total = 0.0
        for j in range(count):
            stage[j] = U[j] + h * (1.5 * K1[j] + 0.5 * K2[j])
            total += 0.0 * float(stage[j])
        if not total == 0.0:
            return NON_FINITE, done
        for j in range(count):
            U[j] = stage[j]
    return OK, substeps
