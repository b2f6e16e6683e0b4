"""All joints of a machine from whatever sufficient subset of them is measured, and which measurement contradicts.

A number that is NaN is not measured. Rates may come from other joints than positions do: each needs a subset of its own
that fixes every loop.
"""

from typing import NamedTuple

import numpy as np

from ...model.errors import MeasurementError, PsdynError, ShapeError

REMEMBERED = 32         # sets of measured joints kept ready; a sender that shuffles them must not fill the memory
REGULAR = 1e-6          # smallest singular value with which rates count as fixed, of unit columns


class Contradiction(MeasurementError):
    """Measured joints that no state of the machine fits.

    residual  m or rad, of the loop that is furthest from closing on them
    """

    def __init__(self, text, residual):
        super().__init__(text)
        self.residual = residual


class Completed(NamedTuple):
    """The state of a machine from what was measured."""

    x: np.ndarray               # (nx,) coordinates
    xd: np.ndarray              # (dof,) their rates; None where they were not measured
    position: np.ndarray        # (joints,) of every joint of the tree
    velocity: np.ndarray        # (joints,), or None
    residual: float             # m or rad, by which redundant measurements contradict each other
    rates: str                  # why there are none; empty where there are


class Suspicion(NamedTuple):
    """A loop whose measured joints contradict each other."""

    loop: str                   # empty where the joints fit no position at all
    residual: float             # m or rad; infinite then
    joints: tuple               # without any one of which the others agree, the likeliest first; all where none is such
    rest: float                 # m or rad, by which the others contradict each other then; NaN where they still do


class LoopState:
    """Completes measured states of one machine.

    manipulator  the machine
    tolerance    m or rad by which redundant measurements may contradict each other
    """

    def __init__(self, manipulator, tolerance):
        self.manipulator, self.tolerance = manipulator, tolerance
        self._joints = manipulator.joints
        self._sets = {}

    def complete(self, names, position, velocity=None):
        """The `Completed` state of positions and velocities (m,) measured of joints named once each, in any order.

        Names that the machine does not have are passed over. Raises `Contradiction`, MeasurementError where the joints
        do not fix a loop, UnreachableStrokeError or TogglePointError where none closes it, NonFiniteError.
        """
        position, velocity = self._measured(names, position), self._measured(names, velocity)
        measured, rated = ~np.isnan(position), ~np.isnan(velocity)
        joint_map = self._map(measured)
        same = np.array_equal(measured, rated)
        x, xd, residual = joint_map.state(position[measured], velocity[measured] if same else None)
        if not residual <= self.tolerance:
            raise Contradiction(f'the joints contradict each other by {residual:.3g}, at most {self.tolerance:g} '
                                'allowed', residual)
        rates = ''
        if not same:
            xd, rates = self._rates(x, rated, velocity)
        _, q, qd, _ = self.manipulator.joint_state(x, xd)
        return Completed(x, xd, q, qd, residual, rates)

    def residuals(self, names, position):
        """{loop: m or rad by which its measured joints contradict each other}; arguments and errors as `complete`."""
        position = self._measured(names, position)
        measured = ~np.isnan(position)
        return self._map(measured).residuals(position[measured])

    def suspicions(self, names, position):
        """A `Suspicion` of every loop whose measured joints contradict each other: each of them is left out once.

        Empty where that is not what is wrong. Where loops are closed by iteration it may take seconds.
        """
        position = self._measured(names, position)
        try:
            residuals = self.residuals(self._joints, position)
        except PsdynError:
            found = self._suspicion('', np.inf, self._joints, position)
            return [found] if np.isfinite(found.rest) else []
        return [self._suspicion(loop, residual, self.manipulator.machine.loop_joints(loop), position)
                for loop, residual in residuals.items() if residual > self.tolerance]

    def margins(self, x):
        """{actuator: m or rad to the nearer of its limits} at the coordinates x (nx,); negative beyond it."""
        m = self.manipulator
        q = self.manipulator.joint_state(x)[1][[self._joints.index(name) for name in m.actuators]]
        nearer = np.minimum(q - m.limits.lower, m.limits.upper - q)
        return dict(zip(m.actuators, nearer.tolist()))

    def _measured(self, names, values):
        """(joints,) values in the order of the machine, NaN where there are none."""
        if names is self._joints and values is not None:
            return np.array(values, dtype=float)
        found = np.full(len(self._joints), np.nan)
        if values is None:
            return found
        if len(values) != len(names):
            raise ShapeError(f'{len(values)} values for {len(names)} joints')
        for name, value in zip(names, values):
            if name in self._joints:
                found[self._joints.index(name)] = value
        return found

    def _map(self, measured):
        key = measured.tobytes()
        joint_map = self._sets.get(key)
        if joint_map is None:
            joint_map = self.manipulator.joint_map([name for name, one in zip(self._joints, measured) if one])
            if len(self._sets) == REMEMBERED:
                self._sets.clear()
            self._sets[key] = joint_map
        return joint_map

    def _rates(self, x, rated, velocity):
        """(xd, '') of least squares from the joints of which rates are measured, or (None, why not)."""
        m = self.manipulator
        if not rated.any():
            return None, 'no velocities are measured'
        first = m.dof - len(m.coordinates)      # a floating base is not in the joints: it counts as at rest
        J = np.array([m.joint_state(x, unit)[2][rated] for unit in np.eye(m.dof)[first:]]).T
        size = np.linalg.norm(J, axis=0)
        _, values, directions = np.linalg.svd(J / np.where(size > 0.0, size, 1.0))
        if len(values) < len(size) or values[-1] < REGULAR:
            free = m.coordinates[int(np.abs(directions[-1]).argmax())]
            names = [name for name, one in zip(self._joints, rated) if one]
            return None, f"the velocities of {names} do not fix that of '{free}'"
        xd = np.zeros(m.dof)
        xd[first:] = np.linalg.lstsq(J, velocity[rated], rcond=None)[0]
        return xd, ''

    def _suspicion(self, loop, residual, joints, position):
        measured = [name for name in joints if not np.isnan(position[self._joints.index(name)])]
        rests = {name: self._without(name, position, loop) for name in measured}
        agreed = sorted((name for name in measured if rests[name] <= self.tolerance), key=rests.get)
        return Suspicion(loop, residual, tuple(agreed or measured), rests[agreed[0]] if agreed else np.nan)

    def _without(self, name, position, loop):
        """The residual of a loop, or of all, without one of its joints; infinite where the others do not close it."""
        others = position.copy()
        others[self._joints.index(name)] = np.nan
        try:
            residuals = self.residuals(self._joints, others)
        except PsdynError:
            return np.inf
        return residuals[loop] if loop else max(residuals.values(), default=0.0)
