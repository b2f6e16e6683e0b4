"""Actuators under test: real cylinders on rigs, whose measured force moves the simulated load.

A measurement answers the load motion of some milliseconds ago, and much has happened since then.  Left alone, a delay
tau acts as the damping -k tau of oil with the stiffness k, and as friction that comes too late, which chatters where
the load is light.  Therefore three things are carried on from the instant t_m that was measured:

    F(t) = [F_m + friction(v(t_m)) - k (x(t) - x(t_m)) + g (t - t_m)] - friction(v(t))

the last friction and k x(t) implicitly, within the step of the solver; k and the friction are those of the model, which
need to be about right only.  g is what the flow through the valve does to the force: the slope of [F + friction] over
the measurements so far, and k v.  Of measured pressures no friction has to be taken off.
"""

import math
from collections import deque
from dataclasses import dataclass

from ..api.hydraulics.statics import oil_stiffness
from ..kernels.hydraulics.records import FORCE, MEASURED_FORCE, MEASURED_PRESSURE, PRESSURE_A, PRESSURE_B, QUANTITIES
from ..model.units import SECOND

HISTORY = 256           # periods of load motion that are remembered
SMOOTHING = 0.02        # s, time constant of the slope g
FURTHEST = 0.02         # s that a force is carried on along g
STOPPING = 0.1          # s, damping by stiffness of a frozen rod that has no brake
FRICTION = QUANTITIES.index('friction_force')
PROBATION = 1.0         # s of good measurements after which a frozen cylinder moves again
EXCESS = 1.5            # times what pressure and area can give: what exceeds it is no measurement


@dataclass
class _Rig:
    came: int               # ns of the last good measurement
    good_since: int         # ns since when they have been good
    force: float = 0.0
    pressures: tuple = None
    instant: float = math.nan   # s of simulated time that was measured
    position: float = 0.0   # of the rod at that instant
    friction: float = 0.0   # N, of the model, at that instant; of pressures none
    gross: float = 0.0      # N, [F + friction]
    slope: float = 0.0      # N/s, g
    reason: str = ''        # why it is frozen


class MeasuredCylinders:
    """Those of a `HydraulicPlant`; none until the first measurement of one comes."""

    def __init__(self, plant):
        self._plant = plant
        self.reset()

    def reset(self):
        """Forget all of them: their models move the load again."""
        self._rigs = {}
        self._past = deque(maxlen=HISTORY)      # (s, positions of the actuators, friction of the cylinders)

    @property
    def frozen(self):
        """{cylinder: why}."""
        return {name: rig.reason for name, rig in self._rigs.items() if rig.reason}

    any = property(lambda self: bool(self._rigs), doc='Whether any cylinder was measured since the start.')

    def drives(self, axis):
        """Whether a real cylinder moves this axis, or is frozen."""
        return self.any and self._plant.actuators[axis] in self._rigs

    def take(self, name, force, pressures, now, stamp):
        """Keep a measurement; an absurd one freezes the cylinder."""
        plant = self._plant
        rig = self._rigs.setdefault(name, _Rig(came=now, good_since=now))
        problem = self._problem(name, force, pressures)
        if problem:
            rig.good_since = now
            self._freeze(name, rig, problem)
            return
        if rig.reason and now - rig.came > round(plant.ttl * SECOND):
            rig.good_since = now
        rig.came, rig.force, rig.pressures = now, force, pressures
        self._learn(name, rig, plant.time if stamp is None else stamp)

    def _learn(self, name, rig, instant):
        """Note where the rod was when it was measured, and what the flow does to the force."""
        plant = self._plant
        row, axis = plant.cylinders.index(name), plant.actuators.index(name)
        cylinder = plant.cylinder_records[row]
        position, rig.friction = self._state_at(axis, row, instant)
        gross = rig.force + rig.friction if rig.pressures is None else (
            cylinder['area_a'] * rig.pressures[0] - cylinder['area_b'] * rig.pressures[1])
        passed = instant - rig.instant
        if passed > 0.0:
            # stiffness changes along the stroke: it counts for what the rod has moved
            by_flow = gross - rig.gross + self._stiffness(cylinder, position, rig) * (position - rig.position)
            rig.slope += min(1.0, passed / SMOOTHING) * (by_flow / passed - rig.slope)
        rig.instant, rig.position, rig.gross = instant, position, gross

    def _state_at(self, axis, row, instant):
        """Position and friction of a cylinder at an instant of simulated time; what is not remembered is computed."""
        plant = self._plant
        position, velocity, _ = (float(motion[axis]) for motion in plant.actuator_motion())
        later = plant.time, position, float(plant.telemetry[row, FRICTION])
        if instant < plant.time:
            for time, positions, frictions in reversed(self._past):
                if time <= instant:
                    share = (instant - time) / (later[0] - time) if later[0] > time else 0.0
                    return (positions[axis] + share * (later[1] - positions[axis]),
                            frictions[row] + share * (later[2] - frictions[row]))
                later = time, positions[axis], frictions[row]
        return position + velocity * (instant - plant.time), later[2]

    def _problem(self, name, force, pressures):
        cylinder = self._plant.cylinder_records[self._plant.cylinders.index(name)]
        most = EXCESS * self._plant.supply['pressure'][0]
        if pressures is not None:
            if not all(math.isfinite(p) and -2e5 <= p <= most for p in pressures):
                return f'pressures {pressures[0]:.3g} and {pressures[1]:.3g} Pa; expected -2e5 to {most:.3g}'
        elif force is None or not math.isfinite(force):
            return f'force {force}; expected a finite number'
        elif not -most * cylinder['area_b'] <= force <= most * cylinder['area_a']:
            return f'force {force:.3g} N; expected {-most * cylinder["area_b"]:.3g} to {most * cylinder["area_a"]:.3g}'
        return ''

    def update(self, now):
        """Within a step, before the machine moves: let measurements move it, and freeze what has become stale."""
        plant = self._plant
        if self._rigs:
            self._past.append((plant.time - plant.period, plant.actuator_motion()[0].copy(),
                               plant.telemetry[:, FRICTION].copy()))
        for name, rig in self._rigs.items():
            if now - rig.came > round(plant.ttl * SECOND):
                if not rig.reason:
                    self._freeze(name, rig, f'no measurement for {(now - rig.came) * 1e-6:.0f} ms')
            elif rig.reason and now - rig.good_since >= PROBATION * SECOND:
                rig.reason = ''
            if not rig.reason:
                self._move(name, rig)

    def _move(self, name, rig):
        plant = self._plant
        row, axis = plant.cylinders.index(name), plant.actuators.index(name)
        cylinder, record, x = plant.cylinder_records[row], plant.axes[axis], plant.actuator_motion()[0][axis]
        if rig.pressures is None:
            record['drive'] = FORCE
        else:
            record['drive'] = MEASURED_PRESSURE
            plant.fluid[row, PRESSURE_A], plant.fluid[row, PRESSURE_B] = rig.pressures
        # the law of a brake is that of the stiffness to be carried on along, and implicit in the solver
        record['effort'], record['braked'] = 0.0, 1
        record['brake_position'] = rig.position
        record['brake_stiffness'], record['brake_damping'] = self._stiffness(cylinder, x, rig), 0.0
        # to the middle of the step; its end is the time of the plant
        self._carry(axis, rig, plant.time - 0.5 * plant.period)

    def finish_step(self):
        """After a step: let the forces, which were those of its middle, be those of its end."""
        for name, rig in self._rigs.items():
            if not rig.reason:
                self._carry(self._plant.actuators.index(name), rig, self._plant.time)

    def _carry(self, axis, rig, time):
        """Let the force of a rod that would not have moved be that of a time [s]."""
        force = rig.slope * min(time - rig.instant, FURTHEST)
        self._plant.axes['brake_force'][axis] = force + (rig.gross if rig.pressures is None else 0.0)

    def _stiffness(self, cylinder, position, rig):
        """N/m; where there is air in the oil its pressures matter, and those unknown are taken as half the supply's."""
        half = 0.5 * float(self._plant.supply['pressure'][0])
        return oil_stiffness(cylinder, position, *(rig.pressures or (half, half)))

    def _freeze(self, name, rig, reason):
        """Hold the rod where it is, with the force that keeps the machine at rest."""
        plant = self._plant
        if not rig.reason:
            axis = plant.actuators.index(name)
            record, declared = plant.axes[axis], plant.declared_axes[axis]
            stiffness, damping = float(declared['brake_stiffness']), float(declared['brake_damping'])
            if not stiffness:
                # no brake: as if its oil were shut in
                cylinder = plant.cylinder_records[plant.cylinders.index(name)]
                stiffness = self._stiffness(cylinder, plant.actuator_motion()[0][axis], rig)
                damping = STOPPING * stiffness
            record['drive'], record['effort'] = MEASURED_FORCE, 0.0
            record['brake_stiffness'], record['brake_damping'] = stiffness, damping
            plant.engage_brake(axis, plant.holding_efforts()[axis])
        rig.reason = reason
