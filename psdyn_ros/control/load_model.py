"""The machine as a control law believes it to be, with a payload and a motion of its base that change while it moves.

Friction of the actuators is not in it: laws compensate it from the velocity of the reference.
"""

import numpy as np

from ..api.environment import BaseMotion, base_rows
from ..api.hydraulics.statics import frictionless, holding_efforts
from ..api.manipulator import checked_payload
from ..model.mechanism.tree import rigid_parameters

PAYLOAD_TIME = 0.5      # s in which the model goes from one payload to the next
BASE_RATE = 20.0        # m/s^3, rad/s^3 (per s of its twist): how fast the motion of the base is believed to change
BODIES = ('link', 'barrel', 'rod')      # of a module, as places count them


class LoadModel:
    """Inverse dynamics without friction of the actuators, and what may be told of the load at any time.

    manipulator  the machine
    hydraulics   `Hydraulics` of it, or None

    Calls that tell something return at once; `advance` takes it in gradually, so that commands never step: forces
    are linear in the inertia and in gravity.
    """

    def __init__(self, manipulator, hydraulics=None):
        self.mechanism = frictionless(manipulator, hydraulics)
        self.records = self.mechanism.records
        self._general = manipulator.machine.general
        mods = self.records.mods
        self._empty = np.stack([mods[body] for body in BODIES])     # (3, modules, 10)
        self._payloads = {}         # link -> (body, module, 10 parameters)
        self._from = self._to = np.zeros_like(self._empty)
        self._share = 1.0           # of the way between them
        self._base, self._base_target = self.records.env, None      # rows in use; rows that are told

    def inverse_dynamics(self, x, xd, xdd):
        """Efforts (actuators,) for the motion x, xd, xdd, each (dof,); raises what `Manipulator` does."""
        if self._general and self._base_target is not None:
            return self.mechanism.inverse_dynamics(x, xd, xdd, base=self._base_motion())
        return self.mechanism.inverse_dynamics(x, xd, xdd)

    def generalized_forces(self, x, xd, xdd):
        """The same on the coordinates (dof,)."""
        if self._general and self._base_target is not None:
            return self.mechanism.generalized_forces(x, xd, xdd, base=self._base_motion())
        return self.mechanism.generalized_forces(x, xd, xdd)

    def holding_efforts(self, x):
        """Efforts (actuators,) that keep the machine at rest at x (dof,)."""
        return holding_efforts(self.mechanism, x, self._base_motion() if self._base_target is not None else None)

    def set_payload(self, link, mass, com, inertia):
        """Carry a payload on a link instead of the last one there; arguments and errors as `with_payload`.

        mass [kg], zero for none; com (3,) [m] in link axes; inertia (3, 3) [kg m^2] about the payload's centre of mass.
        """
        machine = self.mechanism.machine
        payload = checked_payload(machine, link, mass, com, inertia)
        place = machine.places[link]
        if place.module < 0:        # on the base: no actuator carries it
            return
        self._payloads[link] = place.body, place.module, rigid_parameters(place.pose, payload)
        self._from = self._from + self._share * (self._to - self._from)
        self._to, self._share = np.zeros_like(self._empty), 0.0
        for body, module, parameters in self._payloads.values():
            self._to[body, module] += parameters

    @property
    def loading(self):
        """Whether the model is on its way to another payload."""
        return self._share < 1.0

    def set_base(self, base):
        """Believe in a `BaseMotion`; None: at rest and upright."""
        self._base_target = base_rows(self.mechanism.gravity, base)

    def advance(self, dt):
        """Take in what was told, as far as dt [s] allows."""
        if self._share < 1.0:
            self._share = min(1.0, self._share + dt / PAYLOAD_TIME)
            carried = self._empty + self._from + self._share * (self._to - self._from)
            for body, parameters in zip(BODIES, carried):
                self.records.mods[body] = parameters
        if self._base_target is not None:
            most = BASE_RATE * dt
            self._base += np.clip(self._base_target - self._base, -most, most)

    def _base_motion(self):
        """A `BaseMotion` with which the kernels get the rows in use."""
        twist, acceleration = self._base[0], self._base[1].copy()
        acceleration[:3] += np.cross(twist[3:], twist[:3]) + self.mechanism.gravity
        return BaseMotion(twist=tuple(twist), acceleration=tuple(acceleration))
