"""From any sufficient set of measured or commanded joints to the coordinates of the machine."""
import numpy as np

from ..kernels.quantities import coordinates
from ..kernels.records import LOOP
from ..model.errors import MeasurementError, NonFiniteError, ShapeError, UnknownNameError, did_you_mean
from .failures import measurement_error


class JointMap:
    """A fixed tuple of joint names and how each loop follows from them: stroke, else boom, else barrel."""

    def __init__(self, machine, names):
        self.names = tuple(names)
        self._machine = machine
        repeated = [name for name in self.names if self.names.count(name) > 1]
        if repeated:
            raise MeasurementError(f"joint '{repeated[0]}' is listed {len(repeated)} times")
        for name in self.names:
            if name not in machine.joints:
                raise UnknownNameError(f"joint '{name}': no movable joint of '{machine.name}'"
                                       f'{did_you_mean(name, machine.joints)}')
        places = {machine.joints.index(name): row for row, name in enumerate(self.names)}
        joints = machine.records['joint']
        self._rows = np.array([[places.get(int(j), -1) for j in row] for row in joints], dtype=np.int64)
        # -1 marks "no such joint" in the records as well as "not measured" here
        self._rows[joints < 0] = -1
        for module, row, record in zip(machine.modules, self._rows, machine.records):
            if (row < 0).all():
                self._refuse(module, record)
        n, m = len(machine.modules), len(self.names)
        self._scratch = np.zeros((4, n))
        self._rates = np.zeros((3, m))

    def _refuse(self, module, record):
        others = ''
        if record['kind'] == LOOP:
            triangle = module.triangle
            others = f" (or '{triangle.boom.name}', or '{triangle.barrel.name}') of loop '{triangle.name}'"
        raise MeasurementError(f"the joints {list(self.names)} do not fix '{module.name}'{others}; measure it too")

    def state(self, position, velocity=None):
        """Return (x, xd, residual) for positions and velocities (m,) in the order of `names`.

        residual [m]: largest disagreement of redundant joints at a rod eye; xd is zero without velocities.
        """
        scratch = self._run(position, velocity, None)
        return scratch[0].copy(), scratch[1].copy(), scratch[3].max()

    def motion(self, position, velocity, acceleration):
        """Return (x, xd, xdd) for positions, velocities and accelerations (m,) in the order of `names`."""
        scratch = self._run(position, velocity, acceleration)
        return scratch[0].copy(), scratch[1].copy(), scratch[2].copy()

    def residuals(self, position):
        """Return {loop name: disagreement of its measured joints at the rod eye [m]}."""
        scratch = self._run(position, None, None)
        return {module.triangle.name: float(gap)
                for module, gap in zip(self._machine.modules, scratch[3]) if module.triangle}

    def _run(self, position, velocity, acceleration):
        rates, scratch = self._rates, self._scratch
        rates[1:] = 0.0
        for row, values in enumerate((position, velocity, acceleration)):
            if values is None:
                continue
            if len(values) != len(self.names):
                what = ('position', 'velocity', 'acceleration')[row]
                raise ShapeError(f'{what} has {len(values)} entries for {len(self.names)} joints {list(self.names)}')
            rates[row] = values
        if not np.isfinite(rates).all():
            row, column = np.argwhere(~np.isfinite(rates))[0]
            what = ('position', 'velocity', 'acceleration')[row]
            raise NonFiniteError(f"{what} of '{self.names[column]}' is {rates[row, column]}; expected a finite number")
        status = coordinates(self._machine.records, self._rows, rates[0], rates[1], rates[2],
                             scratch[0], scratch[1], scratch[2], scratch[3])
        if status != 0:
            raise measurement_error(self._machine, status, self.names, self._rows, rates[0])
        return scratch
