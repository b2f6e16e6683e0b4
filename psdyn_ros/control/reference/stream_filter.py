"""The motion that somebody streams, estimated from the points so far: position, velocity and acceleration.

A fading-memory polynomial filter (Morrison 1969, section 13): the least-squares polynomial through all earlier points,
whose weights fall by e in `memory` seconds. Its gains depend on the time since the point before alone, so that jitter
and losses need no case of their own. What a point says of velocity and acceleration is believed; a position is
smoothed, since its stamp may be off. What a point leaves out is the derivative of what it has.
"""

from math import exp

import numpy as np

MIN_LEAD_S, MAX_LEAD_S = 0.1, 0.4        # s of a lead
MEMORY = 0.3                # of a lead: s of a polynomial through positions or velocities alone, or a period
POSITION_MEMORY = 0.1       # s of positions that come with velocities, whose integral needs no derivative
SCATTER_MEMORY = 0.5        # s
FADE_TIME = 0.2             # s in which an acceleration fades that no further point confirms
CORRECTION = np.array([60.0, 36.0, 9.0])        # m/s^3 of a quintic of 1 s that makes up for 1 m, 1 m/s, 1 m/s^2
POWERS = np.array([[0.0], [1.0], [2.0]])        # of another length, that jerk times its third power
UNKNOWN = np.nan


class StreamEstimate:
    """`state` (3, dof) of the motion at `time` [s], `scatter` (dof,) mean squares of how points correct it.

    `lead` [s] is how long the way over to this motion has to be for the jerk of corrections to be small.
    """

    def __init__(self, time, state, scatter, jerk):
        self.time, self.state, self.scatter, self.jerk = time, state, scatter, jerk
        self.lead = min(max(float((np.sqrt(scatter) / jerk).max()) ** (1.0 / 3.0), MIN_LEAD_S), MAX_LEAD_S)

    @classmethod
    def first(cls, point, before, jerk):
        """That of the first point.

        before  (3, dof) tells what it leaves out
        jerk    (dof,) m/s^3, rad/s^3 that corrections may have
        """
        state = np.where(np.isnan(point.state), before, point.state)
        return cls(point.time, state, np.zeros_like(state[0]), jerk)

    def updated(self, point):
        """The estimate after another `StreamedPoint`, which must be later."""
        dt = point.time - self.time
        x, v, a = self.state
        x, v = x + dt * (v + 0.5 * dt * a), v + dt * a
        measured_x, measured_v, measured_a = point.state
        fade = exp(-dt / max(MEMORY * self.lead, dt))
        if np.isnan(measured_v[0]):
            off = measured_x - x
            shift = np.array([(1.0 - fade**3) * off, 1.5 * (1.0 - fade)**2 * (1.0 + fade) / dt * off,
                              (1.0 - fade)**3 / dt**2 * off])
        else:
            if np.isnan(measured_a[0]):
                off = measured_v - v
                measured_v, measured_a = v + (1.0 - fade**2) * off, a + (1.0 - fade)**2 / dt * off
            dv, da = measured_v - v, measured_a - a
            integral = 0.5 * dt * dv - dt**2 / 12.0 * da        # of what the velocity was more than predicted
            shift = np.array([integral + (1.0 - exp(-dt / POSITION_MEMORY)) * (measured_x - x - integral), dv, da])
        jerk = CORRECTION @ (shift * self.lead ** POWERS)
        scatter = self.scatter + (1.0 - exp(-dt / SCATTER_MEMORY)) * (jerk**2 - self.scatter)
        return StreamEstimate(point.time, np.array([x, v, a]) + shift, scatter, self.jerk)

    def carried_on(self, t, hardest=np.inf):
        """(3, dof) at time t, with an acceleration of `hardest` (dof,) at most, which fades within FADE_TIME."""
        dt = t - self.time
        x, v, a = self.state
        a = np.clip(a, -hardest, hardest)
        fading = min(dt, FADE_TIME)
        share = fading / FADE_TIME
        gained = (1.0 - 0.5 * share) * fading * a
        return np.array([x + dt * v + (0.5 - share / 6.0) * fading**2 * a + (dt - fading) * gained, v + gained,
                         (1.0 - share) * a])
