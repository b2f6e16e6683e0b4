"""How much of the speed of a reference the pump can feed: all cylinders are slowed together when flow runs out.

A cylinder that extends takes A_a v of the pump, (A_a - A_b) v on a regenerative valve, one that retracts A_b |v|.
"""

import math

import numpy as np

from ...api.hydraulics.statics import pump_areas

SHARE = 0.9         # of the pump's flow that the reference may ask for; feedback and compression need the rest
HORIZON = 0.8       # s that the flow is looked at ahead, so that slowing down comes before flow runs out
LOOKS = 9           # from now to the horizon, one in each update, by turns
STEP = 0.05         # of the scale, which is also the least that it becomes


class PumpFlow:
    """The flow that the reference of a law on valves will ask for, at full speed."""

    def __init__(self, law):
        self._law, self._turn = law, 0
        self._seen = np.ones(LOOKS)         # share that each look has allowed
        self._scale, self._calm = 1.0, 0.0      # s for which more would have been allowed

    def needed(self, x, xd):
        """m^3/s that the cylinders take for the motion x, xd (dof,) of the coordinates."""
        cylinders = self._law.cylinders
        v = self._law.actuator_rates(x, xd)[cylinders['axis']]
        out, back = pump_areas(cylinders)
        return float(np.where(v > 0.0, out * v, -back * v).sum())

    def scale(self, t, dt):
        """Share of its full speed that the reference may have from time t on; dt [s] since the last call.

        It falls at once, in steps, and rises when more has been allowed for as long as it looks ahead.
        """
        law, reference = self._law, self._law.reference
        self._turn = (self._turn + 1) % LOOKS
        then = t + HORIZON * self._turn / (LOOKS - 1)
        x, xd, _ = reference.ahead(then)
        # streamed points keep to the clock at any speed
        speed = 1.0 if reference.stream_age(t) < math.inf else max(reference.speed(then), STEP)
        flow, most = self.needed(x, xd), SHARE * float(law.supply['flow'][0]) * speed
        self._seen[self._turn] = 1.0 if flow <= most else most / flow
        allowed = max(STEP * math.floor(self._seen.min() / STEP + 1e-9), STEP)
        self._calm = self._calm + dt if allowed > self._scale else 0.0
        if allowed < self._scale or self._calm >= HORIZON:
            self._scale, self._calm = allowed, 0.0
        return self._scale
