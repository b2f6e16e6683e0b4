"""A core under trial before it is used: what its first cycles compile is then compiled, and a cycle can be timed."""

import numpy as np

from ...api.hydraulics.statics import equilibrium_state, hydraulic_records
from ...kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from ...model.units import SECOND
from ..reference.trajectory import Waypoints
from ..safety.fault_table import State
from .assembly import assemble
from .inputs import MeasuredState

WARM_UP = 40            # control cycles in each state
ENDLESS = 1e6           # s of the motion that is followed


class Trial:
    """Control cycles of a core of its own, on a machine that stands at its initial position and follows a reference.

    config  `ControllerConfig`

    Call it for one cycle.
    """

    def __init__(self, config):
        m = config.machine.driven_machine
        self._core, self._declaration = assemble(config), config.declaration
        self._period, self._now = round(SECOND / config.rate), SECOND
        self._x, self._xd = m.initial_position, np.zeros(m.dof)
        self._positions = m.joint_state(self._x)[1]
        self._core.inputs.state_check.measure(m.joints)
        self._pressures = None
        if self._core.law.needs_pressures:
            axes, cylinders, supply = hydraulic_records(m, config.hydraulics)
            fluid = equilibrium_state(m, config.hydraulics, axes, cylinders, supply, self._x)[0]
            self._pressures = fluid[:, [PRESSURE_A, PRESSURE_B]]
        self._cycles()
        self._core.activate(self._now, self._now)
        self()
        self._core.enable(self._now)
        self._cycles()
        validated = self._core.validate_trajectory(Waypoints(m.coordinates, [ENDLESS], [self._x]))
        while not validated.advance(1.0):
            pass
        self._core.execute(validated, self._now)
        self._cycles()

    def __call__(self):
        now = self._forward()
        if self._pressures is not None:
            self._core.take_pressures(now, now, now, self._pressures.copy())
        self._core.step(now, now, MeasuredState(now, self._x.copy(), self._xd.copy(), 0.0, self._positions.copy()))

    def stop(self):
        """Stop without measured states until the output is the safe one."""
        end = self._now + 2 * self._declaration.stop_time_ns
        while self._core.states.state is not State.SAFE and self._now < end:
            now = self._forward()
            self._core.step(now, now)

    def _forward(self):
        self._now += self._period
        self._core.take_emergency_stop(False, self._now)
        return self._now

    def _cycles(self):
        for _ in range(WARM_UP):
            self()
