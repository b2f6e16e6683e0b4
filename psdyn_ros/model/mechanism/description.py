"""The contents of a URDF as frozen records: links, joints, loop closures, interfaces.  Names are not checked yet."""
import math
from dataclasses import dataclass, field

import numpy as np

from ..short_repr import short_repr


@dataclass(frozen=True)
class Pose:
    """A frame in its parent: rotation (3, 3) child to parent, position (3,) [m]."""

    rotation: np.ndarray
    position: np.ndarray

    __repr__ = short_repr

    def __matmul__(self, other):
        return Pose(self.rotation @ other.rotation, self.rotation @ other.position + self.position)

    def apply(self, point):
        return self.rotation @ point + self.position

    def inverse(self):
        return Pose(self.rotation.T, -self.rotation.T @ self.position)

    def matrix(self):
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = self.rotation, self.position
        return matrix


IDENTITY = Pose(np.eye(3), np.zeros(3))

SLIP_VELOCITY = 5e-3    # v_s of the regularised Coulomb friction [m/s, rad/s]


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], centre of mass (3,) in link axes [m], inertia (3, 3) about it in link axes [kg m^2]."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    __repr__ = short_repr


@dataclass(frozen=True)
class Link:
    name: str
    inertial: Inertial | None
    line: int

    __repr__ = short_repr


@dataclass(frozen=True)
class Joint:
    """A joint of the spanning tree; `axis` is a unit vector in the joint (= child link) frame."""

    name: str
    type: str
    parent: str
    child: str
    origin: Pose
    axis: np.ndarray
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float
    friction: float
    line: int

    __repr__ = short_repr

    @property
    def unit_doubt(self):
        """Return a sentence on limits that only degrees have, or an empty one; cranes slew beyond one turn."""
        ends = [end for end in (self.lower, self.upper) if math.isfinite(end)]
        if self.type != 'revolute' or max(map(abs, ends), default=0.0) <= 6 * math.pi:
            return ''
        return (f"joint '{self.name}' (line {self.line}): limits {self.lower:g} to {self.upper:g} rad are beyond "
                'three turns; are they in degrees?')


@dataclass(frozen=True)
class Closure:
    """A joint that closes a loop: a frame and an axis on each of two links."""

    name: str
    type: str
    parent: str
    parent_origin: Pose
    parent_axis: np.ndarray
    child: str
    child_origin: Pose
    child_axis: np.ndarray
    damping: float
    friction: float
    line: int | str                 # '3 of FILE' where a loops file has it

    __repr__ = short_repr


@dataclass(frozen=True)
class Mimic:
    """A joint that a gear, a rack or a chain moves with another: q = multiplier * q of the leader + offset."""

    name: str                       # of the joint that follows
    leader: str
    multiplier: float
    offset: float
    line: int


@dataclass(frozen=True)
class Interface:
    """A joint of a <ros2_control> tag."""

    name: str
    commanded: bool
    initial: float | None
    line: int


@dataclass(frozen=True)
class Description:
    name: str
    links: dict
    joints: dict
    closures: dict
    interfaces: dict
    warnings: tuple = field(default=())
    text: str = ''                  # of the URDF, for its visual shapes
    path: str = ''                  # of its file, '' where it was given as text
    mimics: dict = field(default_factory=dict)      # {name of the joint that follows: Mimic}

    __repr__ = short_repr
