"""How far a simulation from a recorded state gets away from what was recorded: after one step, 0.1 s and 1 s.

The machine is simulated at force level: its actuators give the efforts that were measured, and rub as the model says.
A force that is off by a little moves a machine without springs ever further, so the error grows with the square of
time; it says more about accelerations than about the machine being bad.
"""

import math
from typing import NamedTuple

import numpy as np

from ...api.hydraulics.integrator import HydraulicIntegrator
from ...api.hydraulics.statics import hydraulic_records
from ...kernels.hydraulics.records import FLUID, FORCE
from .prediction import sliding_friction

HORIZONS = (0.1, 1.0)       # s, beside one step
EVERY = 10.0                # s from one start to the next
SUBSTEPS = 4                # of a period
STABLE = 1.0                # rate of decay times sub-step; explicit steps bear 2.8
CREEP = 1e-6                # m/s or rad/s at which friction has its steepest slope


class HorizonError(NamedTuple):
    """Errors of all simulations over one horizon.

    seconds   that were simulated each time
    starts    how many
    position  (dof,) rms [m, rad]
    velocity  (dof,) rms [m/s, rad/s]
    largest   (dof,) largest error of position
    still     (dof,) rms of how far the machine moved meanwhile: the error of the prediction that it stands still
    """

    seconds: float
    starts: int
    position: np.ndarray
    velocity: np.ndarray
    largest: np.ndarray
    still: np.ndarray


class SimulationError:
    """Simulates from states of predictions, and sums up the errors.

    predictor  the `Predictor` of the predictions
    horizons   s, beside one step
    every      s from one start to the next

    Starts at which an effort is not known, or an actuator is near a stop, are left out, and so are those that end at a
    gap.
    """

    def __init__(self, predictor, horizons=HORIZONS, every=EVERY):
        self._predictor, self._every = predictor, every
        self._horizons = tuple(horizons)
        self._next, self._forces = 0.0, None
        n = predictor.manipulator.dof
        # of each horizon: squares of position and velocity, largest, squares of the way
        self._sums, self._starts = np.zeros((1 + len(horizons), 4, n)), np.zeros(1 + len(horizons), dtype=int)
        self._period = None

    def add(self, prediction):
        """Take a `Prediction`."""
        if self._forces is None:
            self._period = prediction.period
            self._forces = (_Hydraulic if self._predictor.hydraulics else _Explicit)(self._predictor, self._period)
        steps = [1, *(max(round(horizon / self._period), 1) for horizon in self._horizons)]
        for row in range(prediction.core.start, prediction.core.stop):
            if prediction.t[row] < self._next:
                continue
            last = min(row + max(steps), prediction.core.stop - 1)
            if last <= row:
                break
            self._simulate(prediction, row, last, steps)
            self._next = prediction.t[row] + self._every

    def _simulate(self, prediction, row, last, steps):
        effort = prediction.effort[row:last + 1]
        known = (np.isfinite(effort) & ~prediction.near_stop[row:last + 1]).all(axis=1)
        if not known.all():
            last = row + int(np.argmin(known)) - 1
        x, xd = prediction.x[row].copy(), prediction.xd[row].copy()
        self._forces.begin(prediction.v[row])
        for k in range(last - row):
            # efforts are held for a period: half way between its ends
            if self._forces.step(x, xd, 0.5 * (effort[k] + effort[k + 1])) != 0:
                return      # it left what the machine can reach
            if k + 1 in steps:
                there = row + k + 1
                away, faster = x - prediction.x[there], xd - prediction.xd[there]
                for index in (index for index, count in enumerate(steps) if count == k + 1):
                    sums = self._sums[index]
                    sums[0] += away ** 2
                    sums[1] += faster ** 2
                    sums[2] = np.maximum(sums[2], np.abs(away))
                    sums[3] += (prediction.x[there] - prediction.x[row]) ** 2
                    self._starts[index] += 1

    def errors(self):
        """Return the `HorizonError` of one step and of each horizon that some simulation reached."""
        out = []
        for seconds, starts, sums in zip((self._period, *self._horizons), self._starts, self._sums):
            if starts:
                out.append(HorizonError(float(seconds), int(starts), np.sqrt(sums[0] / starts),
                                        np.sqrt(sums[1] / starts), sums[2].copy(), np.sqrt(sums[3] / starts)))
        return tuple(out)


class _Hydraulic:
    """Steps of a machine whose cylinders give an effort, and rub as its hydraulics say."""

    def __init__(self, predictor, period):
        machine = predictor.manipulator
        self._axes, cylinders, supply = hydraulic_records(machine, predictor.hydraulics)
        self._axes['drive'] = FORCE
        self._integrator = HydraulicIntegrator(predictor.mechanism, self._axes, cylinders, supply, period, SUBSTEPS)
        self._fluid, self._pressure = np.zeros((len(cylinders), FLUID)), np.zeros(1)
        self._bristles, self._xdd = np.zeros(len(self._axes)), np.zeros(machine.dof)

    def begin(self, v):
        """Start at velocities (actuators,); what slides has bent its bristles."""
        bent = sliding_friction(self._axes, v[None])[0] - self._axes['viscous'] * v
        stiffness = self._axes['bristle']
        self._bristles[:] = np.divide(bent, stiffness, out=np.zeros(len(bent)), where=stiffness > 0.0)

    def step(self, x, xd, effort):
        self._axes['effort'] = effort
        # chambers and supply do nothing here, and must not run empty
        self._fluid[:], self._pressure[:] = 0.0, 0.0
        return self._integrator.step(x, xd, self._fluid, self._bristles, self._pressure, self._xdd)


class _Explicit:
    """Steps of a machine whose friction is that of its URDF."""

    def __init__(self, predictor, period):
        machine = predictor.manipulator
        self._integrator = machine.integrator(period, _substeps(machine, period))

    def begin(self, v):
        """Nothing is kept from one simulation to the next."""

    def step(self, x, xd, effort):
        return self._integrator.step(x, xd, np.ascontiguousarray(effort))


def _substeps(machine, period):
    """As many as keep explicit steps stable where Coulomb friction turns round, at the initial position."""
    x, rest = machine.initial_position, np.zeros(machine.dof)
    slope = np.array([machine.generalized_forces(x, CREEP * unit, rest) - machine.generalized_forces(x, rest, rest)
                      for unit in np.eye(machine.dof)]).T / CREEP
    rate = np.abs(np.linalg.eigvals(np.linalg.solve(machine.mass_matrix(x), slope))).max()
    return max(math.ceil(rate * period / STABLE), 2)
