"""Active damping: driven axes deviate from their reference so that a swinging load loses energy.

For small swings s of the passive joints about where they hang at the position of the driven ones, and accelerations u
of these beyond the reference,

    M_pp s'' + K s = - C u,    u = W C' (C W C' + m S)^-1 2 r S s',    S = M_pp (M_pp^-1 K)^(1/2)

gives every mode the damping ratio r.  W weighs axes by the deviation that each is allowed, m keeps them from answering
a mode that they hardly move.  The power u . C' s' that this takes out of the swing is never negative, since
(S^-1 + m (C W C')^-1)^-1 is symmetric and not negative; bounds of u keep it so.  A critically damped return, much
slower than the swing, brings the axes back to their reference.
"""
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ...model.errors import PsdynError

RATIO = 0.3             # damping ratio by default
RETURN = 0.25           # rate of the return, as a share of the lowest frequency of the swing
REFRESH = 0.1           # s after which the swing is linearised again
BEGINS, ENDS = 0.01, 0.003      # rad, m of the swing from which damping acts, and below which it rests again
RAMP = 0.2              # s in which it sets in
WEAK = 0.01             # m S, as a share of what moves the mode that the axes move most
SHARE = 0.5             # of the acceleration that a reference may have
LOOK = 0.5              # s that the reference goes on as it does, in the distance from the limits
BRAKING = 0.5           # share of the acceleration with which a deviation ends before its bound
BRAKING_TIME = 0.05     # s
MARGIN = 0.95           # share of the declared deviation at which it ends
MAX_GAP_S = 0.05          # s that a deviation goes on without a state
MIN_STEP_S = 1e-4         # s of a step, in its change of the acceleration
STILL = 1e-3            # m/s, rad/s of a deviation that stays
ENDED = 2e-5            # m, m/s, rad, rad/s of a deviation that is over


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


def bounded_feedback(u, lower, upper, coupled_rate):
    """Return u (n,) within bounds that have zero between them; the power u . C' s' stays not negative.

    coupled_rate (n,): C' s'.
    """
    out = np.clip(u, lower, upper)
    if float(out @ coupled_rate) < 0.0:     # axes that take out the energy of others, which are at their bound
        out[out * coupled_rate < 0.0] = 0.0
    return out


class SwingDamping:
    """The deviation of the driven axes from their reference, as of the last measured state.

    terms  function of x (n,) that returns `SwingTerms`, and raises where the load does not hang

    `ratio` is the damping ratio of the swing, 0: no damping.
    """

    def __init__(self, terms, dof):
        self._terms, self.ratio = terms, RATIO
        self.motion = np.zeros((3, dof))    # position, rate and acceleration of the deviation
        self.swing = 0.0                    # rad, m; largest swing, as its energy has it
        self.problem = ''                   # why it does not act; '' where it may
        self._gain, self._allowed = 0.0, True
        self._time = self._refreshed = self._swing = None
        self._unknown = ''                  # why the swing is not known; '' where it is
        self.limit(np.zeros(dof), *np.full((5, dof), inf))

    def limit(self, deviation, acceleration, jerk, speed, upper, lower):
        """Use these limits (dof,): of the deviation, 0: none; of the others for reference and deviation together."""
        self.deviation, self._acceleration, self._jerk, self._speed = deviation, acceleration, jerk, speed
        self._upper, self._lower = upper, lower
        self._refreshed = None

    @property
    def declared(self):
        """Whether some axis may deviate, and a ratio is asked for."""
        return self.ratio > 0.0 and bool(self.deviation.any())

    @property
    def active(self):
        """Whether there is a deviation."""
        return self._gain > 0.0 or bool(self.motion.any())

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
        self.motion[:], self._gain, self._allowed = 0.0, 0.0, allowed

    def allow(self):
        """Let deviations come about again."""
        self._allowed = True

    def stay(self):
        """End the motion of the deviation soon, wherever it is, until `allow`."""
        self._allowed = False

    def add(self, times, samples):
        """Add the deviation at these times [s] to samples (len(times), 3, dof)."""
        d, v, a = self.motion
        for t, sample in zip(times, samples):
            h = min(max(t - self._time, 0.0), MAX_GAP_S)
            sample[0] += d + h * (v + 0.5 * h * a)
            sample[1] += v + h * a
            sample[2] += a

    def advance(self, t, state, passive, nominal, problem=''):
        """Go on to the state measured at t [s].

        state    (2, n) position and rate of the driven joints
        passive  (2, p) of the passive ones
        nominal  (3, n) reference without a deviation
        problem  why the swing is not to be damped; ''
        """
        dt = 0.0 if self._time is None else min(max(t - self._time, 0.0), MAX_GAP_S)
        self._time = t
        if self._refreshed is None or not 0.0 <= t - self._refreshed < REFRESH:
            self._refreshed = t
            self._refresh(state[0])
        self.problem = problem or self._unknown or ('' if self._allowed else 'a stop')
        if self._swing is None:
            return
        s = self._swing
        rate = passive[1] - s.slope @ state[1]
        off = passive[0] - s.rest - s.slope @ (state[0] - s.x)
        self.swing = sqrt(float(np.max(off**2 + (rate / self._frequency)**2)))
        acts = not self.problem and self.swing > (ENDS if self._gain > 0.0 else BEGINS)
        self._gain = min(1.0, self._gain + dt / RAMP) if acts else 0.0
        if self.active:
            self._move(dt, rate, nominal)

    def _refresh(self, x):
        """Linearise the swing at x of the driven joints; the last one stays in use where that fails."""
        try:
            swing = self._terms(x)
            self._matrix, self._frequency = damping_feedback(swing, self.ratio, self.deviation**2)
        except (PsdynError, np.linalg.LinAlgError) as error:
            self._unknown = str(error)
            return
        self._swing, self._unknown = swing, ''
        self._most = np.minimum(SHARE * self._acceleration, self.deviation * self._frequency**2)

    def _move(self, dt, rate, nominal):
        """Take a step of the deviation; rate (p,) of the swing."""
        d, v, a = self.motion
        most, w = self._most, RETURN * self._frequency
        lower = -np.clip(self._acceleration + nominal[2], 0.0, most)
        upper = np.clip(self._acceleration - nominal[2], 0.0, most)
        u = np.zeros_like(d)
        if self._gain > 0.0:
            u = bounded_feedback(self._gain * (self._matrix @ rate), lower, upper, self._swing.coupling.T @ rate)
        if self._allowed:
            wish = np.clip(u - w * (2.0 * v + w * d), lower, upper)
        else:
            wish = -v / BRAKING_TIME
        ahead = nominal[0] + LOOK * nominal[1]
        above = np.clip(self._upper - np.maximum(ahead, nominal[0]), 0.0, MARGIN * self.deviation)
        below = np.clip(np.minimum(ahead, nominal[0]) - self._lower, 0.0, MARGIN * self.deviation)
        brake = 2.0 * BRAKING * most
        fastest = np.minimum(np.sqrt(brake * np.maximum(above - d, 0.0)), np.maximum(self._speed - nominal[1], 0.0))
        slowest = -np.minimum(np.sqrt(brake * np.maximum(below + d, 0.0)), np.maximum(self._speed + nominal[1], 0.0))
        wish = np.clip(np.clip(wish, (slowest - v) / BRAKING_TIME, (fastest - v) / BRAKING_TIME), -most, most)
        step = self._jerk * max(dt, MIN_STEP_S)
        a += np.clip(wish - a, -step, step)
        d += dt * (v + 0.5 * dt * a)
        v += dt * a
        if self._gain == 0.0 and np.abs(self.motion).max() < ENDED:
            self.motion[:] = 0.0
