"""The motion that somebody streams, estimated from the points so far: position, velocity and acceleration.

A fading-memory polynomial filter (Morrison 1969, section 13): the least-squares polynomial through all earlier points,
whose weights fall by e in `memory` seconds. Its gains depend on the time since the point before alone, so that jitter
and losses need no case of their own. What a point says of velocity and acceleration is believed; a position is
smoothed, since its stamp may be off. What a point leaves out is the derivative of what it has.
"""

from math import exp

import numpy as np

MEMORY = 0.03               # s of a polynomial through positions or velocities alone; at least as long as a period
POSITION_MEMORY = 0.1       # s of positions that come with velocities, whose integral needs no derivative
UNKNOWN = np.nan


class StreamEstimate:
    """`state` (3, dof) of the motion at `time` [s]."""

    def __init__(self, time, state):
        self.time, self.state = time, state

    @classmethod
    def first(cls, point, before):
        """That of the first point; before (3, dof) tells what it leaves out."""
        return cls(point.time, np.where(np.isnan(point.state), before, point.state))

    def updated(self, point):
        """The estimate after another `StreamedPoint`, which must be later."""
        dt = point.time - self.time
        x, v, a = self.state
        measured_x, measured_v, measured_a = point.state
        fade = exp(-dt / max(MEMORY, dt))
        if np.isnan(measured_v[0]):
            predicted = self.carried_on(point.time)
            off = measured_x - predicted[0]
            state = predicted + np.array([(1.0 - fade**3) * off, 1.5 * (1.0 - fade)**2 * (1.0 + fade) / dt * off,
                                          (1.0 - fade)**3 / dt**2 * off])
            return StreamEstimate(point.time, state)
        if np.isnan(measured_a[0]):
            off = measured_v - (v + dt * a)
            measured_v = v + dt * a + (1.0 - fade**2) * off
            measured_a = a + (1.0 - fade)**2 / dt * off
        predicted = x + dt * (0.5 * (v + measured_v) + dt / 12.0 * (a - measured_a))
        position = predicted + (1.0 - exp(-dt / POSITION_MEMORY)) * (measured_x - predicted)
        return StreamEstimate(point.time, np.array([position, measured_v, measured_a]))

    def carried_on(self, t, hardest=np.inf):
        """(3, dof) at time t, with constant acceleration, of `hardest` at most."""
        dt = t - self.time
        x, v, a = self.state
        a = np.clip(a, -hardest, hardest)
        return np.array([x + dt * (v + 0.5 * dt * a), v + dt * a, a])
