"""The control cycle of laws at force level: reference and measured state in, commands of the actuators out."""
from typing import NamedTuple

import numpy as np

from ..hydraulics.friction import sliding_friction
from ..hydraulics.records import AXIS
from ..loops.closure import close_machine
from ..rigid_body.entry import close_and_place, finite
from ..runtime.buffer import FLOAT, matrix, records, stack
from ..runtime.compiler import entry, kernel
from ..runtime.status import NON_FINITE, OK
from .actuation import INT, actuator_motion, beyond_rest, limit_efforts, share
from .joint_space import bind_joint_space, joint_motion, solve_rates
from .passive import required_efforts
from .path import sample_path

APPROACH_S = 0.4        # s in which an axis is to come nearer its reference by its error: friction is overcome for that


class ForceLaw(NamedTuple):
    """State of a law at force level between cycles, and its scratch."""

    axes: np.ndarray            # (actuators,) AXIS with the friction that is compensated
    constant: np.ndarray        # (1,) 1: gravity and inertia are those of `start`, as of PD
    gains: np.ndarray           # (3, dof) of an error, its rate and its integral
    start: np.ndarray           # (3, dof) position, zeros twice
    mass: np.ndarray            # (dof,) diagonal of the mass matrix at the start
    state: np.ndarray           # (2, dof) integral of the error; sign of the last force where it was clipped, else 0
    frozen: np.ndarray          # (dof,) 1: the integral does not grow
    motion: np.ndarray          # (3, 3, dof) x, xd, xdd of the reference: when measured, where the command acts, twice
    measured: np.ndarray        # (3, dof) x, xd, and room for xdd
    error: np.ndarray           # (dof,) scratch
    needed: np.ndarray          # (dof,) scratch: efforts on the coordinates
    area: np.ndarray            # (actuators,) m^2 of the piston where pressure is commanded, else 1
    limit: np.ndarray           # (actuators,) largest effort [N, N m]
    saturations: np.ndarray     # (actuators,) count of efforts that were clipped
    predicted: np.ndarray       # (actuators,) efforts before they were clipped
    command: np.ndarray         # (actuators,) efforts over areas
    effort: np.ndarray          # (actuators,) scratch
    position: np.ndarray        # (actuators,) scratch
    rate: np.ndarray            # (actuators,) rates for which friction is overcome
    wanted: np.ndarray          # (dof,) scratch: the same, of the coordinates
    dry: np.ndarray             # (dof,) 1: an actuator with dry friction moves it


# types of the fields of `ForceLaw`
TYPES = AXIS, INT, *(FLOAT,) * 4, INT, *(FLOAT,) * 6, INT, *(FLOAT,) * 6, INT


class Step(NamedTuple):
    """One cycle."""

    times: tuple        # s: of the measurement, and twice when its command acts
    dt: float           # s since the last one
    scale: float        # of rate and acceleration of the reference that is fed forward


@kernel
def bind_law(buffer):
    """Return the `ForceLaw` of a buffer."""
    return ForceLaw(
        records(buffer, 0, AXIS)[0], records(buffer, 1, INT)[0], matrix(buffer, 2)[0], matrix(buffer, 3)[0],
        records(buffer, 4, FLOAT)[0], matrix(buffer, 5)[0], records(buffer, 6, INT)[0], stack(buffer, 7)[0],
        matrix(buffer, 8)[0], records(buffer, 9, FLOAT)[0], records(buffer, 10, FLOAT)[0],
        records(buffer, 11, FLOAT)[0], records(buffer, 12, FLOAT)[0], records(buffer, 13, INT)[0],
        records(buffer, 14, FLOAT)[0], records(buffer, 15, FLOAT)[0], records(buffer, 16, FLOAT)[0],
        records(buffer, 17, FLOAT)[0], records(buffer, 18, FLOAT)[0], records(buffer, 19, FLOAT)[0],
        records(buffer, 20, INT)[0])


@entry
def force_cycle(tree, loops, hanging, actuation, space, law, path, step):
    """Write the commands of a law at force level; return a status.

    tree, loops  buffers of the machine without friction of its actuators
    hanging      `Hanging` of a machine with passive coordinates, tree and loops are then of the driven ones; None
    actuation    buffer of `Actuation`; None where the actuators are the coordinates
    space        buffer of `JointSpace`; None where errors are those of the coordinates
    law          buffer of `ForceLaw`; where the status is not OK its state, saturations and predicted are as before
    path         `Spline` of the reference; without segments its samples are in `motion` already
    step         `Step`
    """
    s = bind_law(law)
    if path.knots.shape[0] > 0:
        sample_path(path, step.times, s.motion)
    measured, ahead = s.measured, s.motion[2]
    if max(finite(measured[0]), finite(measured[1])) != OK:
        return NON_FINITE
    for i in range(measured.shape[1]):
        for row in range(1, 3):
            ahead[row, i] *= step.scale
    status = feed_back(tree, loops, space, s)
    if status == OK:
        status = load_forces(tree, loops, hanging, actuation, s)
    if status == OK:
        status = share(tree, loops, actuation, s.needed, s.effort)
    if status == OK:
        status = add_friction(tree, loops, actuation, s)
    if status == OK:
        status = finite(s.effort)
    if status != OK:
        return status
    for i in range(s.effort.shape[0]):
        s.command[i] = s.effort[i]
    status = limit_efforts(actuation, s.limit, s.state[1], s.saturations, s.command)
    if status != OK:
        return status
    for i in range(s.command.shape[0]):
        s.predicted[i] = s.effort[i]
        s.command[i] /= s.area[i]
    for i in range(s.error.shape[0]):
        frozen = s.frozen[i] and s.state[0, i] * s.error[i] >= 0.0
        if not frozen and not s.state[1, i] * s.error[i] > 0.0:
            # an integral that goes on at rest breaks the axis loose again and again
            rests = s.dry[i] and s.motion[0, 1, i] == 0.0
            s.state[0, i] += (beyond_rest(s.error[i]) if rests else s.error[i]) * step.dt
    return OK


@kernel
def feed_back(tree, loops, space, s):
    """Set the errors, and in row 2 of `measured` the accelerations that the coordinates are to have; a status."""
    desired, ahead, measured = s.motion[0], s.motion[2], s.measured
    if space is None:
        for i in range(measured.shape[1]):
            s.error[i] = desired[0, i] - measured[0, i]
            measured[2, i] = ahead[2, i] + correction(s, i, desired[1, i] - measured[1, i])
        return OK
    j = bind_joint_space(space)
    status = joint_motion(tree, loops, j, desired[0], desired[1], ahead[2], j.desired)
    if status == OK:
        status = joint_motion(tree, loops, j, measured[0], measured[1], j.zero, j.measured)
    if status != OK:
        return status
    for i in range(measured.shape[1]):
        s.error[i] = j.desired[0, i] - j.measured[0, i]
        # measured[2] is the acceleration of the joints at xdd = 0
        j.desired[2, i] += correction(s, i, j.desired[1, i] - j.measured[1, i]) - j.measured[2, i]
    return solve_rates(tree, loops, j, measured[0], j.desired[2], measured[2])


@kernel
def correction(s, i, rate_error):
    """Return the acceleration that the gains make of the errors of one coordinate or joint."""
    return s.gains[0, i] * s.error[i] + s.gains[1, i] * rate_error + s.gains[2, i] * s.state[0, i]


@kernel
def load_forces(tree, loops, hanging, actuation, s):
    """Set the efforts that the coordinates need for these accelerations; return a status.

    Leaves the clusters closed at the measured state.
    """
    x, xd, xdd = s.measured[0], s.measured[1], s.measured[2]
    if not s.constant[0]:
        status = required_efforts(tree, loops, hanging, x, xd, xdd, 0.0, s.needed)
        if hanging is None or actuation is None or status != OK:
            return status
        return close_and_place(tree, loops, x, xd, xdd)
    status = required_efforts(tree, loops, hanging, s.start[0], s.start[1], s.start[2], 0.0, s.needed)
    for i in range(s.needed.shape[0]):
        s.needed[i] += s.mass[i] * (xdd[i] - s.motion[2, 2, i])
    return status if status != OK else close_machine(tree, loops, x, xd)


@kernel
def add_friction(tree, loops, actuation, s):
    """Add the friction of the actuators at the rates that are wanted to the efforts; return a status."""
    has_friction = False
    for i in range(s.axes.shape[0]):
        has_friction = has_friction or s.axes[i]['coulomb'] != 0.0 or s.axes[i]['viscous'] != 0.0
    if not has_friction:
        return OK
    for i in range(s.wanted.shape[0]):
        s.wanted[i] = s.motion[2, 1, i]
        if s.dry[i]:
            s.wanted[i] += beyond_rest(s.motion[0, 0, i] - s.measured[0, i]) / APPROACH_S
    status = actuator_motion(tree, loops, actuation, s.motion[0, 0], s.wanted, s.position, s.rate)
    for i in range(s.axes.shape[0]):
        if s.axes[i]['coulomb'] != 0.0 or s.axes[i]['viscous'] != 0.0:
            s.effort[i] += sliding_friction(s.axes[i], s.rate[i])
    return status
