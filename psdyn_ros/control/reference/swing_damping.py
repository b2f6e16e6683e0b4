"""Active damping: driven axes deviate from their reference so that a swinging load loses energy.

For small swings s of the passive joints about where they hang at the position of the driven ones, and accelerations u
of these beyond the reference,

    M_pp s'' + K s = - C u,    u = W C' (C W C' + m S)^-1 2 r S s',    S = M_pp (M_pp^-1 K)^(1/2)

gives every mode the damping ratio r.  W weighs axes by the deviation that each is allowed, m keeps them from answering
a mode that they hardly move.  The power u . C' s' that this takes out of the swing is never negative, since
(S^-1 + m (C W C')^-1)^-1 is symmetric and not negative; bounds of u keep it so.  A critically damped return, much
slower than the swing, brings the axes back to their reference.
"""
from typing import NamedTuple

import numpy as np

from ...kernels.control import passive as kernels
from ...kernels.runtime.buffer import views
from ...model.errors import PsdynError

RATIO = 0.3             # damping ratio by default
REFRESH = 0.1           # s after which the swing is linearised again
WEAK = 0.01             # m S, as a share of what moves the mode that the axes move most
MAX_GAP_S = 0.05        # s that a deviation goes on without a state
STILL = 1e-3            # m/s, rad/s of a deviation that stays


class SwingTerms(NamedTuple):
    """Small swings of p passive joints about rest at a position of n driven ones."""

    x: np.ndarray
    """(n,) position of the driven joints."""
    rest: np.ndarray
    """(p,) position of the passive joints."""
    slope: np.ndarray
    """(p, n) by which rest moves with the driven joints."""
    coupling: np.ndarray
    """(p, n) C, of the accelerations of the driven joints in the swing: M_pd + M_pp slope."""
    inertia: np.ndarray
    """(p, p) M_pp."""
    stiffness: np.ndarray
    """(p, p) K, symmetric."""


def damping_feedback(terms, ratio, weights):
    """Return (F (n, p) with u = F s', lowest frequency [rad/s]) for `SwingTerms`; weights (n,) diagonal of W."""
    values, vectors = np.linalg.eigh(terms.inertia)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    squares, modes = np.linalg.eigh(inverse @ terms.stiffness @ inverse)
    frequencies = np.sqrt(np.maximum(squares, 0.0))
    S = root @ (modes * frequencies) @ modes.T @ root
    moved = weights[:, None] * terms.coupling.T
    A = terms.coupling @ moved
    weak = WEAK * float(np.abs(np.linalg.eigvals(np.linalg.solve(S, A))).max())
    if not weak > 0.0:
        return np.zeros_like(moved), float(frequencies.min())
    return moved @ np.linalg.solve(A + weak * S, 2.0 * ratio * S), float(frequencies.min())


class SwingDamping:
    """The deviation of the driven axes from their reference, as of the last measured state.

    terms  function of x (n,) that returns `SwingTerms`, and raises where the load does not hang

    `ratio` is the damping ratio of the swing, 0: no damping.
    """

    def __init__(self, terms, dof, passive):
        self._terms, self.ratio = terms, RATIO
        self._buffer = kernels.make_deviation(dof, passive)
        self._d = kernels.Deviation(*views(self._buffer, kernels.DEVIATION_TYPES))
        self.motion = self._d.motion        # (3, dof) position, rate and acceleration of the deviation
        self.active = False                 # whether there is a deviation
        self.problem = ''                   # why it does not act; '' where it may
        self._allowed, self._linear = True, False       # and whether the swing was linearised
        self._time = self._refreshed = None
        self._unknown = ''                  # why the swing is not known; '' where it is
        state = np.zeros((3, dof))
        kernels.damp_swing(self._buffer, 0.0, state, np.zeros((3, passive)), state, False, True)
        kernels.add_deviation(self._buffer, 0.0, state)     # nothing is compiled later

    def limit(self, deviation, acceleration, jerk, speed, upper, lower):
        """Use these limits (dof,): of the deviation, 0: none; of the others for reference and deviation together."""
        self._d.limits[:] = deviation, acceleration, jerk, speed, upper, lower
        self._refreshed = None

    @property
    def deviation(self):
        """Largest deviation (dof,) of each axis."""
        return self._d.limits[kernels.DEVIATION]

    @property
    def swing(self):
        """Largest swing [rad, m] of a passive joint, as its energy has it."""
        return float(self._d.state[kernels.SWING])

    @property
    def declared(self):
        """Whether some axis may deviate, and a ratio is asked for."""
        return self.ratio > 0.0 and bool(self.deviation.any())

    @property
    def moves(self):
        """Whether the deviation changes."""
        return bool(np.abs(self.motion[1]).max() > STILL)

    @property
    def share(self):
        """Largest deviation as a share of its bound."""
        may = self.deviation > 0.0
        return float(np.max(np.abs(self.motion[0, may]) / self.deviation[may], initial=0.0))

    def restart(self, allowed=True):
        """Begin without a deviation; allowed: whether it may come about."""
        self.motion[:], self._d.state[kernels.GAIN] = 0.0, 0.0
        self.active, self._allowed = False, allowed

    def allow(self):
        """Let deviations come about again."""
        self._allowed = True

    def stay(self):
        """End the motion of the deviation soon, wherever it is, until `allow`."""
        self._allowed = False

    def add(self, times, samples):
        """Add the deviation at these times [s] to samples (len(times), 3, dof)."""
        for t, sample in zip(times, samples):
            kernels.add_deviation(self._buffer, min(max(float(t - self._time), 0.0), MAX_GAP_S), sample)

    def advance(self, t, driven, passive, nominal, problem=''):
        """Go on to the state measured at t [s].

        driven   position and rate of the driven joints, or more rows (n,), in C order
        passive  the same of the passive ones (p,)
        nominal  (3, n) reference without a deviation
        problem  why the swing is not to be damped; ''
        """
        dt = 0.0 if self._time is None else min(max(t - self._time, 0.0), MAX_GAP_S)
        self._time = t
        if self._refreshed is None or not 0.0 <= t - self._refreshed < REFRESH:
            self._refreshed = t
            self._refresh(driven[0])
        self.problem = problem or self._unknown or ('' if self._allowed else 'a stop')
        if self._linear:
            self.active = kernels.damp_swing(self._buffer, float(dt), driven, passive, nominal, not self.problem,
                                             self._allowed)

    def _refresh(self, x):
        """Linearise the swing at x of the driven joints; the last one stays in use where that fails."""
        d = self._d
        try:
            swing = self._terms(x)
            d.feedback[:], d.state[kernels.FREQUENCY] = damping_feedback(swing, self.ratio, self.deviation**2)
        except (PsdynError, np.linalg.LinAlgError) as error:
            self._unknown = str(error)
            return
        d.x[:], d.rest[:], d.slope[:], d.coupling[:] = swing.x, swing.rest, swing.slope, swing.coupling
        self._linear, self._unknown = True, ''
