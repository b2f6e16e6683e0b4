"""The machine as a control law believes it to be, with a payload and a motion of its base that change while it moves.

Friction of the actuators is not in it: laws compensate it from the velocity of the reference. Passive joints move
freely in it: positions, rates and accelerations are those of the driven coordinates.
"""

import math

import numpy as np

from ...api.batch import share_efforts
from ...api.environment import base_rows
from ...api.errors_from_status import check
from ...api.hydraulics.statics import frictionless
from ...api.inputs import states
from ...api.payload import checked_payload
from ...kernels.rigid_body.entry import inverse_checked
from ...model.errors import ModelError, StateError
from ...model.mechanism.tree import machine_size, radius_of_gyration, rigid_parameters
from ...model.troubleshooting import TOO_HEAVY
from .passive_states import ESTIMATED, PassiveStates

PAYLOAD_TIME = 0.5      # s in which the model goes from one payload to the next
SETTLING_TIME = 0.5     # s in which what the machine then differs by fades
SETTLED = 0.1           # of it, that is nothing any more
BASE_RATE = 20.0        # m/s^3, rad/s^3 (per s of its twist): how fast the motion of the base changes in the model
BASE_STILL = 0.005      # rad/s that noise of what measures the base may amount to
BODIES = ('link', 'barrel', 'rod')      # of a module, as places count them
# m/s^2, rad/s and rad/s^2 of bases that are believed in
FASTEST_BASE = np.array([20.0, 3.0, 20.0])


class LoadModel:
    """Inverse dynamics without friction of the actuators, and a load that may change at any time.

    manipulator     the machine, with its passive joints
    hydraulics      `Hydraulics` of it, or None
    passive_states  where the state of passive joints comes from, as the source of `PassiveStates`

    `set_payload` and `set_base` return at once; `advance` takes it in gradually, so that commands never step: forces
    are linear in the inertia and in gravity.  `handle` has what was taken in so far, for kernels; `changing`: there is
    more; `settling`: the machine may still differ by `unknown_accelerations`, since a payload was set.  Where `passive`
    is not None, a `PassiveStates`, `handle` is of the driven coordinates alone, and `passive.hanging` has what was
    taken in.
    """

    def __init__(self, manipulator, hydraulics=None, passive_states=ESTIMATED):
        whole = frictionless(manipulator, hydraulics)
        self.mechanism, self.passive = whole.driven_machine, None
        self.handle = self._loaded = self.mechanism.handle()
        self.handle.start_from_last()
        if whole is not self.mechanism:
            self._loaded = whole.handle()
            self._loaded.start_from_last()
            self._loaded.let_efforts_act_on_coordinates()
            self.passive = PassiveStates(whole, self._loaded, passive_states)
        self._whole = whole
        self._empty = np.stack([self._loaded.modules[body] for body in BODIES])     # (3, modules, 10)
        self._payloads = {}         # link -> (body, module, 10 parameters)
        self._from = self._to = np.zeros_like(self._empty)
        self._share = 1.0           # of the way between them
        self._off = np.zeros(self.mechanism.dof)        # accelerations that the whole way makes
        self._unsettled = 0.0       # share of them, by which the machine may still differ
        self._base = base_rows(self.mechanism.gravity, None)        # rows in use
        self._base_target = self._base      # rows that were set
        self.changing = self.settling = False
        self._size = machine_size(whole.machine.description)

    def inverse_dynamics(self, x, xd, xdd):
        """Efforts (actuators,) for the motion x, xd, xdd, each (dof,); raises what `Manipulator` does."""
        return self.of_actuators(x, self.generalized_forces(x, xd, xdd))

    def of_actuators(self, x, needed):
        """Efforts (actuators,) that act as these (dof,) on the coordinates at x (dof,)."""
        m = self.mechanism
        return needed if drives_coordinates(m) else share_efforts(m, m.allocation, m.actuator_map(x), needed)

    def generalized_forces(self, x, xd, xdd):
        """The same on the coordinates (dof,)."""
        motion, f = states(self.mechanism, x=x, xd=xd, xdd=xdd), np.empty(self.mechanism.dof)
        if self.passive is not None:
            return self.passive.efforts(*motion)
        check(self.mechanism, inverse_checked(self.handle.tree, self.handle.loops, *motion, f),
              **dict(zip(('x', 'xd', 'xdd'), motion)))
        return f

    def inertia(self, x):
        """Inertia (dof, dof) of the coordinates at rest at x (dof,), as `PassiveStates.effort_terms` has it."""
        if self.passive is None:
            return self.mechanism.mass_matrix(x)
        return self.passive.effort_terms(x, np.zeros(len(x)))[1]

    def holding_efforts(self, x):
        """Efforts (actuators,) that keep the machine at rest at x (dof,), passive joints where they then hang."""
        still = np.zeros(self.mechanism.dof)
        if self.passive is None:
            return self.inverse_dynamics(x, still, still)
        return self.of_actuators(x, self.passive.resting_efforts(*states(self.mechanism, x=x)))

    def set_payload(self, link, mass, com, inertia, x, most=np.inf):
        """Carry a payload on a link instead of the last one there; arguments and errors as `with_payload`.

        mass [kg], zero for none; com (3,) [m] in link axes; inertia (3, 3) [kg m^2] about the payload's centre of mass;
        x (dof,): where the machine is; most (actuators,): largest efforts [N, N m].  ModelError where the payload is
        larger than the machine, or more than these efforts can hold there.
        """
        machine = self._whole.machine
        payload = checked_payload(machine, link, mass, com, inertia)
        self._check_size(link, payload)
        place = machine.places[link]
        if place.module < 0:        # on the base: no actuator carries it
            return
        payloads = self._payloads | {link: (place.body, place.module, rigid_parameters(place.pose, payload))}
        carried, target = self._from + self._share * (self._to - self._from), np.zeros_like(self._empty)
        for body, module, parameters in payloads.values():
            target[body, module] += parameters
        off = np.zeros(self.mechanism.dof)
        if self.passive is None:        # where joints swing their allowance is larger
            before, after = self._resting_forces(carried, x), self._resting_forces(target, x)
            self._check_held(link, x, before, after, most)
            off = np.abs(np.linalg.solve(self.inertia(x), after - before))
        self._payloads, self._from, self._to, self._share, self.changing = payloads, carried, target, 0.0, True
        self._off = np.maximum(self._unsettled * self._off, off)
        self._unsettled, self.settling = 1.0, True

    def _check_size(self, link, payload):
        """Raise ModelError where a payload cannot be one of this machine, as in other units."""
        if payload.mass == 0.0:
            return
        away, radius = np.linalg.norm(payload.com), radius_of_gyration(payload)
        if not max(away, radius) <= self._size:
            raise ModelError(f"payload on '{link}': its centre of mass is {away:.3g} m from the link, its radius of "
                             f'gyration {radius:.3g} m; expected at most {self._size:.3g} m, the size of '
                             f"'{self.mechanism.name}', in m and kg m^2")

    def _resting_forces(self, payloads, x):
        """Efforts on the coordinates (dof,) that hold the machine with these payloads at rest at x (dof,)."""
        still, present = np.zeros(self.mechanism.dof), self._from + self._share * (self._to - self._from)
        try:
            self._carry(payloads)
            return self.generalized_forces(x, still, still)
        finally:
            self._carry(present)

    def _check_held(self, link, x, before, after, most):
        """Raise ModelError where a payload takes the efforts of an actuator beyond `most` that were not before."""
        efforts, present = (np.abs(self.of_actuators(x, forces)) for forces in (after, before))
        limit = np.maximum(most, present)
        if (efforts > limit).any():
            i = int((efforts - limit).argmax())
            text = TOO_HEAVY.text.format(name=self.mechanism.actuators[i], effort=f'{efforts[i]:.4g}',
                                         most=f'{limit[i]:.4g}')
            raise ModelError(f"payload on '{link}': {text}")

    def _carry(self, payloads):
        for body, parameters in zip(BODIES, self._empty + payloads):
            self._loaded.modules[body] = parameters

    def take_imu(self, link, turning, force):
        """As `PassiveStates.take_imu`; ModelError where there are no passive joints."""
        if self.passive is None:
            raise ModelError(f"inertial sensor on '{link}': '{self.mechanism.name}' has no passive joints")
        self.passive.take_imu(link, turning, force)

    @property
    def loading(self):
        """Whether the model is on its way to another payload."""
        return self._share < 1.0

    @property
    def unknown_accelerations(self):
        """(dof,) by which the machine may differ: a payload is there at once, and in the model gradually."""
        return self._unsettled * self._off

    def set_base(self, base):
        """Believe in a `BaseMotion`; None: at rest and upright.  StateError where no base moves so fast."""
        rows = base_rows(self.mechanism.gravity, base)
        if base is not None:
            _, twist, acceleration = base
            fastest = np.abs([acceleration[:3], twist[3:], acceleration[3:]]).max(axis=1)
            if not (fastest <= FASTEST_BASE).all():
                raise StateError(f'base: acceleration {fastest[0]:.3g} m/s^2, turning at {fastest[1]:.3g} rad/s, by '
                                 f'{fastest[2]:.3g} rad/s^2; expected at most {FASTEST_BASE.tolist()}')
        self._base_target, self.changing = rows, True

    @property
    def base_turns(self):
        """Whether the base is believed to turn, so that rates of passive joints are no longer those of a swing."""
        return np.abs(self._base[0, 3:]).max() > BASE_STILL

    def advance(self, dt):
        """Approach the load that was set, as far as dt [s] allows."""
        if self._share < 1.0:
            self._share = min(1.0, self._share + dt / PAYLOAD_TIME)
            self._carry(self._from + self._share * (self._to - self._from))
        else:
            self._unsettled *= math.exp(-dt / SETTLING_TIME)
            self.settling = self._unsettled > SETTLED
        most = BASE_RATE * dt
        self._base = self._base + np.clip(self._base_target - self._base, -most, most)
        self._loaded.environment['twist'], self._loaded.environment['acceleration'] = self._base
        self.changing = self.loading or self.settling or not np.array_equal(self._base, self._base_target)


def drives_coordinates(manipulator):
    """Return whether efforts on the coordinates are those of the actuators, whatever these are."""
    return manipulator.actuators == manipulator.coordinates and not manipulator.allocation.limited
