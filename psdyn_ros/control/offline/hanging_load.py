"""What hangs from a machine whose motion is planned: where it rests, how it swings, and the motion without swing.

A timed motion becomes the sum of its delayed copies at the point of suspension, as a controller shapes trajectories
(`reference.suspension_path`).  The passive joints move freely meanwhile: hybrid dynamics has their accelerations, and
the efforts of the driven joints.
"""
from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from ...api.arguments import Array
from ...api.manipulator import Manipulator
from ...model.errors import PsdynError
from ..laws.passive_states import Suspension
from ..laws.payload_model import LoadModel
from ..reference.segments import SAME, Path
from ..reference.suspension_path import follow_suspension
from ..reference.swing_shaper import ZVD, SwingShaping, shaped
from ..reference.trajectory import Curve, quintic_curve

NODES = 100             # at which it is computed where the load rests along a path


class HangingLoad:
    """The passive joints of a machine that is `underactuated`.

    shaper  a kind of input shaper, as the parameter `swing_shaper` of a controller

    `driven` (dof,) says which coordinates are driven.
    """

    def __init__(self, manipulator: Manipulator, shaper: str = ZVD) -> None:
        self._machine = m = manipulator
        self.driven = np.array([name not in m.passive_joints for name in m.coordinates])
        self._passive = LoadModel(m).passive
        self._suspension = Suspension(m)
        self._shaping = SwingShaping(self._passive.modes, shaper)

    def resting(self, x: Array) -> Array:
        """Return the positions (N, nx) at which the machine rests, for x (N, driven); StateError where it does not."""
        return np.array([self._passive.resting(row) for row in x])

    def curve(self, driven: CubicSpline) -> Callable[..., Array]:
        """Return x(s), or its nth derivative x(s, n), along a path of the driven joints, while the load rests."""
        s = np.linspace(0.0, 1.0, NODES)
        passive = CubicSpline(s, self.resting(driven(s))[:, ~self.driven], bc_type='natural')

        def whole(s: Array, order: int = 0) -> Array:
            out = np.empty((len(s), self.driven.size))
            out[:, self.driven], out[:, ~self.driven] = driven(s, order), passive(s, order)
            return out
        return whole

    def shaped(self, time: Array, x: Array, xd: Array, xdd: Array) -> Curve:
        """Return the `Curve` of the driven joints, at rest at both ends, that leaves the load at rest.

        time (N,), x, xd, xdd (N, driven): the motion without a shaper.  Only the joints are shaped, as by a controller,
        where the point of suspension cannot follow its shaped path within their limits.
        """
        curve = quintic_curve(time, x, xd, xdd)
        shaper = self._shaping(x[-1])
        if shaper is None:
            return curve
        names = tuple(np.array(self._machine.coordinates)[self.driven])
        path, of_joints = (Path(one, SAME, names) for one in (curve, shaped(curve, shaper)[0]))
        try:
            found = _result(follow_suspension(path, of_joints, shaper, self._suspension))[0]
        except PsdynError:
            return of_joints.curve
        limits, reached = self._machine.driven_machine.coordinate_limits, found.coefficients[:, 0]
        within = (reached <= limits.upper).all() and (reached >= limits.lower).all()
        return found if within else of_joints.curve

    def motion(self, curve: Curve, step: float) -> tuple[Array, Array, Array]:
        """Return (time (N,), states (4, N, dof), those half way (4, N - 1, dof)); the load rests at first.

        States are x, xd, xdd, f of all coordinates; f: efforts on the driven ones, zero on the others.
        """
        time = np.linspace(curve.start, curve.end, max(int(np.ceil((curve.end - curve.start) / step)), 2) + 1)
        free = np.stack([self._passive.resting(curve.sample(curve.start)[0].copy())[~self.driven],
                         np.zeros((~self.driven).sum())])
        rows, middle = [], []
        h = time[1] - time[0]
        for t in time:
            row = self._state(curve, t, free)
            rows.append(row)
            k1 = self._rates(row)
            k2 = self._rates(self._state(curve, t + 0.5 * h, free + 0.5 * h * k1))
            middle.append(self._state(curve, t + 0.5 * h, free + 0.5 * h * k2))
            k3 = self._rates(middle[-1])
            k4 = self._rates(self._state(curve, t + h, free + h * k3))
            free = free + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        states = np.moveaxis(np.array(rows), 1, 0)
        states[1, -1, self.driven] = 0.0        # but for the rounding of the curve
        return time - time[0], states, np.moveaxis(np.array(middle[:-1]), 1, 0)

    def swing_left(self, x: Array, xd: Array) -> Array:
        """Return the amplitude (passive,) of small swings at a state x (nx,), xd (dof,), the driven joints at rest."""
        d = self.driven
        terms = self._passive.swing_terms(x[d])
        # energy of the swing, all of it in one joint after the other
        q, rate = x[~d] - terms.rest, xd[~d]
        energy = rate @ terms.inertia @ rate + q @ terms.stiffness @ q
        return np.sqrt(energy * np.diag(np.linalg.inv(terms.stiffness)))

    def _state(self, curve: Curve, t: float, free: Array) -> Array:
        """Return x, xd, xdd, f (4, dof) at time t for positions and rates (2, passive) of the passive joints."""
        d, m = self.driven, self._machine
        out = np.zeros((4, d.size))
        out[:3, d], out[:2, ~d] = curve.sample(t), free
        names = np.array(m.coordinates)
        found = m.hybrid_dynamics(out[0], out[1], accelerations=dict(zip(names[d], out[2, d])),
                                  efforts=dict.fromkeys(names[~d], 0.0))
        out[2], out[3] = found.accelerations, found.efforts
        return out

    def _rates(self, row: Array) -> Array:
        return row[1:3, ~self.driven]


def _result(steps: Generator[None, None, Any]) -> Any:
    """Return what a generator returns in the end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
