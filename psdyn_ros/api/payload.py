"""Bodies fixed to a link."""
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..assembly.machine import Machine
from ..model.errors import InertiaError
from ..model.mechanism.description import IDENTITY, Inertial
from ..model.mechanism.tree import inertia_problem, rigid_parameters
from .arguments import vector
from .environment import find_link


def checked_payload(machine: Machine, link: str, mass: float, com: npt.ArrayLike, inertia: npt.ArrayLike) -> Inertial:
    """Return the `Inertial` of a payload on a link, arguments as `Manipulator.with_payload`.

    Raises UnknownNameError, InertiaError.
    """
    find_link(machine, link)
    where = f"payload on '{link}'"
    mass, com = float(vector(f'{where}: mass', [mass], 1)[0]), vector(f'{where}: com', com, 3)
    inertia = vector(f'{where}: inertia', inertia, (3, 3))
    if np.abs(inertia - inertia.T).max() > 1e-6 * np.abs(inertia).max():
        raise InertiaError(f'{where}: the inertia is not symmetric')
    payload = Inertial(mass, com, 0.5 * (inertia + inertia.T))
    problem = inertia_problem(payload) if mass >= 0.0 else f'mass {mass:g} kg is negative'
    if problem:
        raise InertiaError(f'{where}: {problem}')
    return payload


def combine(first: Inertial | None, second: Inertial) -> Inertial | None:
    """Return the `Inertial` of two bodies that are fixed to each other, in the same axes."""
    if first is None or second.mass == 0.0:
        return first if second.mass == 0.0 else second
    total = rigid_parameters(IDENTITY, first) + rigid_parameters(IDENTITY, second)
    mass, com = total[0], total[1:4] / total[0]
    xx, xy, xz, yy, yz, zz = total[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(mass, com, about_origin - mass * (com @ com * np.eye(3) - np.outer(com, com)))

