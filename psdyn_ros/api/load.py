"""`load`: a URDF in, a `Manipulator` out."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np
import numpy.typing as npt

from ..assembly.machine import assemble
from ..model.errors import InertiaError, ModelError
from ..model.mechanism.description import Description
from ..model.mechanism.machine import Draft, build_machine
from ..model.mechanism.urdf import read
from .arguments import names, vector
from .compilation import LOOPS, TREE, Compilation
from .manipulator import Manipulator


@dataclass(frozen=True)
class Build:
    """Makes the `Draft` of a `Description` with the options of `load`."""

    description: Description        # the one that was loaded
    initial: Mapping[str, float]
    actuated: tuple[str, ...] | None
    coordinates: tuple[str, ...] | None
    allow_unphysical: bool

    def __call__(self, described: Description) -> Draft:
        """Return the `Draft`; of another description, options of joints that are fixed in it are left out."""
        fixed = {name for name, joint in described.joints.items() if joint.type == 'fixed'} if (
            described is not self.description) else ()
        return build_machine(
            described, initial={name: value for name, value in self.initial.items() if name not in fixed},
            actuated=self.actuated, coordinates=self.coordinates and tuple(
                name for name in self.coordinates if name not in fixed), allow_unphysical=self.allow_unphysical)


def load(path_or_xml: str | PathLike[str], *, gravity: npt.ArrayLike = (0.0, 0.0, -9.81),
         initial: Mapping[str, float] | None = None, actuated: Iterable[str] | None = None,
         coordinates: Iterable[str] | None = None, loops_file: str | PathLike[str] | None = None,
         allow_unphysical: bool = False) -> Manipulator:
    """Return the `Manipulator` of a URDF.

    path_or_xml: a file (.urdf, or .xacro where xacro is installed), the name of a machine of the package, or XML text,
        which starts with '<'.
    gravity: (3,) in inertial axes [m/s^2].
    initial: {joint: position}; picks the assembly mode of each loop nearest to it, and the initial position.
    actuated: actuated joints in the order of f, where <ros2_control> does not say it or is to be overruled.
    coordinates: the independent joints, in the order of x, where they are to be others than the actuators.
    loops_file: YAML with further loop closures, for a URDF that must not be touched.
    allow_unphysical: accept inertias that no body can have.
    Raises a `ModelError` that names what does not fit, with its line.
    """
    gravity = vector('gravity', gravity, 3)
    actuated = None if actuated is None else names('actuated', actuated)
    coordinates = None if coordinates is None else names('coordinates', coordinates)
    if initial is not None and not isinstance(initial, dict):
        raise ModelError(f'initial={initial!r:.80}: expected {{joint: position}}')
    description = read(path_or_xml, loops_file)
    # a copy of initial, since `with_payload` builds again
    build = Build(description, dict(initial or {}), actuated, coordinates, allow_unphysical)
    draft = build(description)
    with Compilation(LOOPS if draft.clusters else TREE) as compilation:
        manipulator = Manipulator(assemble(draft, gravity, coordinates), gravity, build)
        compilation.finish(manipulator)
    _check_mass(manipulator)
    return manipulator


def _check_mass(m: Manipulator) -> None:
    """Refuse a machine of which some coordinate has no inertia at all, and so no acceleration."""
    M = m.mass_matrix(m.initial_position)
    values, directions = np.linalg.eigh(M / np.outer(*2 * [np.sqrt(abs(np.diag(M)) + 1e-300)]))
    lightest = int(abs(values).argmin())
    if not abs(values[lightest]) > 1e-12:
        row = int(abs(directions[:, lightest]).argmax()) - m.dof + len(m.coordinates)
        name = m.coordinates[row] if row >= 0 else m.machine.base_link
        raise InertiaError(f"'{name}' moves bodies without any inertia along it")
