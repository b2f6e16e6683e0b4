"""From any sufficient set of measured or commanded joints to the coordinates of the machine."""
import numpy as np

from ..kernels.rigid_body.energy import coordinates
from ..kernels.rigid_body.records import LOOP
from ..model.errors import MeasurementError, NonFiniteError, ShapeError, UnknownNameError, did_you_mean
from .arguments import numbers
from .failures import measurement_error


class JointMap:
    """A fixed tuple of joint names and how each loop follows from them: stroke, else boom, else barrel."""

    def __init__(self, machine, names):
        self.names = tuple(names)
        self._machine = machine
        self._rows = measured_rows(machine, self.names, range(len(machine.modules)))

    def state(self, position, velocity=None):
        """Return (x, xd, residual) for positions and velocities (m,) in the order of `names`.

        residual [m]: largest disagreement of redundant joints at a rod eye; xd is zero without velocities.
        """
        x, xd, _, residual = self._run(position, velocity, None)
        return x, xd, float(residual.max())

    def motion(self, position, velocity, acceleration):
        """Return (x, xd, xdd) for positions, velocities and accelerations (m,) in the order of `names`."""
        return self._run(position, velocity, acceleration)[:3]

    def states(self, position, velocity=None):
        """Return (x (N, dof), xd, residual (N,)) of N rows of positions and velocities (N, m), as `state` does of one.

        Rows that fix nothing, being not finite or of a loop that cannot close, come out as NaN; xd is None without
        velocities.
        """
        q, qd = checked_batch(self.names, position, velocity)
        count = len(self._machine.modules)
        x, xd, residual = np.full((len(q), count), np.nan), np.full((len(q), count), np.nan), np.full(len(q), np.nan)
        mods, rows, still = self._machine.records, self._rows, np.zeros(len(self.names))
        out = np.empty((4, count))
        for k in np.flatnonzero(np.isfinite(q).all(axis=1)).tolist():
            if coordinates(mods, rows, q[k], qd[k], still, out[0], out[1], out[2], out[3]) == 0:
                x[k], xd[k], residual[k] = out[0], out[1], out[3].max()
        return x, None if velocity is None else xd, residual

    def residuals(self, position):
        """Return {loop name: disagreement of its measured joints at the rod eye [m]}."""
        gaps = self._run(position, None, None)[3]
        return {module.triangle.name: float(gap)
                for module, gap in zip(self._machine.modules, gaps) if module.triangle}

    def _run(self, position, velocity, acceleration):
        # fresh memory each time: threads share this map, and callers keep what they get
        rates = checked_rows(self.names, position, velocity, acceleration)
        out = np.empty((4, len(self._machine.modules)))
        status = coordinates(self._machine.records, self._rows, rates[0], rates[1], rates[2],
                             out[0], out[1], out[2], out[3])
        if status != 0:
            raise measurement_error(self._machine, status, self.names, self._rows, rates[0])
        return out


def measured_rows(machine, names, modules):
    """Return (modules, 3) where in `names` the joints of modules stand that fix them alone, -1: not measured.

    Raises MeasurementError where one is not fixed, or a joint listed twice; UnknownNameError.
    """
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise MeasurementError(f"joint '{repeated[0]}' is listed {len(repeated)} times")
    for name in names:
        if name not in machine.joints:
            raise UnknownNameError(f"joint '{name}': no movable joint of '{machine.name}'"
                                   f'{did_you_mean(name, machine.joints)}')
    places = {machine.joints.index(name): row for row, name in enumerate(names)}
    joints = machine.records['joint'][list(modules)]
    rows = np.array([[places.get(int(j), -1) for j in row] for row in joints], dtype=np.int64).reshape(-1, 3)
    # -1 marks "no such joint" in the records as well as "not measured" here
    rows[joints < 0] = -1
    for k, row in zip(modules, rows):
        if (row < 0).all():
            _refuse(machine, names, k)
    return rows


def _refuse(machine, names, k):
    module, others = machine.modules[k], ''
    if machine.records[k]['kind'] == LOOP:
        triangle = module.triangle
        others = f" (or '{triangle.boom.name}', or '{triangle.barrel.name}') of loop '{triangle.name}'"
    raise MeasurementError(f"the joints {list(names)} do not fix '{module.name}'{others}; measure it too")


def checked_rows(names, position, velocity, acceleration):
    """Return (3, m) finite positions, velocities and accelerations of named joints; zeros for None."""
    rates = np.zeros((3, len(names)))
    for row, values in enumerate((position, velocity, acceleration)):
        if values is None and row > 0:
            continue
        what = ('position', 'velocity', 'acceleration')[row]
        values = numbers(what, values)
        if values.shape != (len(names),):
            raise ShapeError(f'{what} has shape {values.shape} for {len(names)} joints {list(names)}')
        rates[row] = values
    if not np.isfinite(rates).all():
        row, column = np.argwhere(~np.isfinite(rates))[0]
        what = ('position', 'velocity', 'acceleration')[row]
        raise NonFiniteError(f"{what} of '{names[column]}' is {rates[row, column]}; expected a finite number")
    return rates


def checked_batch(names, position, velocity):
    """Return positions and velocities (N, m) of named joints, which need not be finite; zeros for no velocities."""
    q = numbers('position', position)
    qd = np.zeros_like(q) if velocity is None else numbers('velocity', velocity)
    for what, rows in (('position', q), ('velocity', qd)):
        if rows.shape != (len(q), len(names)):
            raise ShapeError(f'{what} has shape {rows.shape}; expected (N, {len(names)})')
    # kernels take rows without strides
    return np.ascontiguousarray(q), np.ascontiguousarray(qd)
