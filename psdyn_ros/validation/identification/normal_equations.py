"""What a recording tells of a machine's parameters, as triangles of fixed size: the data are read once and let go.

Of each instant and coordinate one equation, linear in what is to be known:

    A' f - (believed inverse dynamics) = Y d(theta) + A' (F_c tanh(v / v_s) + b v + offset + gain errors of f)

Strokes and efforts pass the same zero-phase filter.  Equations of one second make a triangle by QR; where a recording
has many seconds, neighbours are merged, so memory does not grow with it.
"""
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import convolve1d, maximum_filter1d, minimum_filter1d

from ...model.errors import StateError
from ...model.mechanism.description import SLIP_VELOCITY

WINDOW, POWER = 0.3, 5          # s, width of the filter, and the power of its weights
# derivatives of samples, of the sixth order, as kernels of a convolution
SLOPE = np.array([1.0, -9.0, 45.0, 0.0, -45.0, 9.0, -1.0]) / 60.0
CURVE = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0
FEWEST = 4                      # samples on either side in it
CUTOFFS = 4000                  # frequencies at which its response is looked at
SPACING = 0.01                  # s between equations; the filter leaves nothing in between
GROUPS = 128                    # that are kept
MAX_SAMPLES = 1600              # equations of each coordinate that are kept as they are
SLIDES = 4.0                    # v / v_s from which friction is what it is at speed
FROM_STOP = 1e-3                # m, rad from the limits of a coordinate, where stops act too
TERMS = 5                       # columns of each actuator: tanh, v, offset, gains
COULOMB, VISCOUS, OFFSET, GAIN_A, GAIN_B = range(TERMS)


class Bell:
    """Zero-phase filter for rows `period` s apart, with weights (1 - (2 t / window)^2)^POWER and their derivatives.

    A derivative that it gives is that of the values that it gives, to the sixth order in the period, so an equation
    that holds for strokes and efforts holds for the filtered ones.  With plain polynomials of Savitzky and Golay it
    does not: their second derivative is damped otherwise than their values, and what that is off looks like an error of
    the sensors.  Nor with derivatives of the weights: a few samples of them are no derivative.
    """

    def __init__(self, period, window=WINDOW):
        reach, self.period = max(round(0.5 * window / period), FEWEST), period
        self.half, self._width = reach + len(SLOPE) // 2, 2.0 * reach * period
        t = np.arange(-reach, reach + 1) / (reach + 1)
        weights = (1.0 - t ** 2) ** POWER
        weights /= weights.sum()
        self._taps = [np.pad(weights, len(SLOPE) // 2), np.convolve(weights, SLOPE) / period,
                      np.convolve(weights, CURVE) / period ** 2]
        t = period * np.arange(-self.half, self.half + 1)
        frequencies = np.arange(0.0, 0.5, 5e-4 / len(t)) / period
        response = np.array([self._taps[0] @ np.cos(2.0 * np.pi * one * t) for one in frequencies[:CUTOFFS]])
        self.cutoff = float(frequencies[np.argmax(response < np.sqrt(0.5))])

    def __call__(self, values, derivative=0):
        """Return the filtered values or a derivative of them; the first and last `half` are not valid."""
        return convolve1d(values, self._taps[derivative], axis=0, mode='nearest')

    def __str__(self):
        return (f'zero-phase filter with weights (1 - s^2)^{POWER}, {1e3 * self._width:.0f} ms wide, '
                f'cut-off {self.cutoff:.2f} Hz (-3 dB)')


@dataclass
class Group:
    """A stretch of a recording.

    triangles  (dof, P + 1, P + 1) of the equations of each coordinate, what they shall equal in the last column
    rows       (dof,) equations in each
    power      (dof,) sum of squares of the measured efforts on the coordinates
    """

    triangles: np.ndarray
    rows: np.ndarray
    power: np.ndarray

    def merge(self, other):
        for mine, theirs in zip(self.triangles, other.triangles):
            mine[:] = triangle(np.vstack((mine, theirs)))
        self.rows += other.rows
        self.power += other.power


def triangle(rows):
    """Return the (P, P) triangle R of rows (N, P): R'R = rows'rows."""
    R = np.linalg.qr(rows, mode='r')
    if len(R) < R.shape[1]:
        R = np.vstack((R, np.zeros((R.shape[1] - len(R), R.shape[1]))))
    return R


class Samples:
    """Some of the equations of a recording, to be drawn: evenly spread over it, at most MAX_SAMPLES.

    kept  lists of what `NormalEquations` makes: t (n,) [s], equations (n, dof, P), what they shall equal (n, dof), NaN
          where it is unknown, what is believed of that without friction (n, dof), whether they count (n, dof)
    """

    def __init__(self):
        self.kept = [], [], [], [], []
        self._every, self._seen = 1, 0

    def add(self, *columns):
        """Take every so many of these rows."""
        taken = slice(-self._seen % self._every, None, self._every)
        self._seen += len(columns[0])
        for kept, values in zip(self.kept, columns):
            kept.append(np.array(values[taken]))
        while sum(map(len, self.kept[0])) > MAX_SAMPLES:
            self._every *= 2
            for kept in self.kept:
                kept[:] = [np.concatenate(kept)[::2]]

    def rows(self):
        """Return the columns of all rows that are kept."""
        return tuple(np.concatenate(kept) for kept in self.kept)


class NormalEquations:
    """Equations of a recording.

    regressor   of the links that are in question
    hydraulics  whose cylinders the pressures of blocks are of; None: efforts are measured as such
    window      s, of the filter

    groups      {number of the stretch: Group}, each `span` s long
    moved       (actuators,) s during which each moved fast enough for its friction to be full
    known       (actuators,) s during which the effort of each is known
    seconds     s of the recording that were read
    slip        (actuators,) v_s of each
    samples     `Samples` of the equations
    """

    def __init__(self, regressor, hydraulics=None, window=WINDOW):
        self.regressor, self.hydraulics, self.window = regressor, hydraulics, window
        manipulator = regressor.manipulator
        self.actuators = manipulator.actuators
        self.inertial = len(regressor.columns)
        self.size = self.inertial + TERMS * len(self.actuators)
        self.groups, self.span = {}, 1
        self.moved, self.known, self.seconds = *np.zeros((2, len(self.actuators))), 0.0
        self.smoother = None
        seals = frictions(manipulator, hydraulics)
        self.slip = np.array([seal[2] for seal in seals])
        self.friction = np.array([seal[:2] for seal in seals])      # believed (actuators, 2)
        self._cylinders = tuple(hydraulics.cylinders) if hydraulics else ()
        self.by_pressure = np.zeros(len(self.actuators), dtype=bool)
        self.samples = Samples()
        self.skipped = 0                                            # instants at which a loop does not close

    def column(self, actuator, term):
        """The column of a term of an actuator, both by number."""
        return self.inertial + TERMS * actuator + term

    def add(self, block):
        """Take the equations of a `Block`."""
        if self.smoother is None or abs(self.smoother.period / block.period - 1.0) > 1e-3:
            self.smoother = Bell(block.period, self.window)
        half, every = self.smoother.half, max(1, round(SPACING / block.period))
        self.seconds += block.period * (block.core.stop - block.core.start)
        self.known += block.period * np.isfinite(block.effort[block.core]).sum(axis=0)
        rows = np.arange(half, len(block.t) - half, every)
        if not rows.size:
            return
        x, xd, xdd = (self._smooth(block.x, order)[rows] for order in range(3))
        rates = self.regressor.rates(x, xd)
        slides = minimum_filter1d(np.abs(rates), 2 * -(-half // every) + 1, axis=0) > SLIDES * self.slip
        effort, gains = (values[rows] for values in self._measured(block))
        core = (rows >= block.core.start) & (rows < block.core.stop)
        self.moved += block.period * every * slides[core].sum(axis=0)
        usable = core & np.isfinite(effort).any(axis=1) & self._free(x) & np.isfinite(rates).all(axis=1)
        chosen = np.flatnonzero(usable & slides.any(axis=1))
        if not chosen.size:
            return
        chosen, Y, believed = self._evaluate(x, xd, xdd, chosen)
        if not chosen.size:
            return
        maps = self.regressor.maps(x[chosen])
        equations = self._equations(Y, maps, rates[chosen], gains[chosen])
        # NaN of one effort is NaN in the equations that it enters only
        known = np.where(maps == 0.0, 0.0, maps * effort[chosen][:, :, None])
        wanted = known.sum(axis=1)
        good = ~(np.isnan(wanted) | ((maps != 0.0) & ~slides[chosen][:, :, None]).any(axis=1))
        self.samples.add(block.t[rows[chosen]], equations, wanted, believed, good)
        numbers = np.floor(block.t[rows[chosen]]).astype(int)
        for number in np.unique(numbers):
            here = numbers == number
            self._store(number, equations[here], wanted[here], believed[here], good[here])

    def _smooth(self, values, derivative=0):
        """Filtered values, NaN where anything in the window is."""
        unknown = ~np.isfinite(values)
        if not unknown.any():
            return self.smoother(values, derivative)
        smooth = self.smoother(np.where(unknown, 0.0, values), derivative)
        smooth[maximum_filter1d(unknown, 2 * self.smoother.half + 1, axis=0)] = np.nan
        return smooth

    def _measured(self, block):
        """Filtered efforts (N, actuators), and what errors of gains multiply (N, actuators, 2)."""
        effort = self._smooth(block.effort)
        gains = np.zeros((*effort.shape, 2))
        gains[..., 0] = effort
        if block.pressures is not None and self.hydraulics is not None:
            pressures = self._smooth(block.pressures)
            for row, name in enumerate(self._cylinders):
                number, cylinder = self.actuators.index(name), self.hydraulics.cylinders[name]
                ports = np.array([cylinder.area_a, -cylinder.area_b]) * pressures[:, row]
                if np.isfinite(ports).any():
                    self.by_pressure[number] = True
                    gains[:, number] = ports
                    effort[:, number] = ports.sum(axis=1)
        return effort, gains

    def _free(self, x):
        """Which rows keep off the ends of the coordinates."""
        limits = self.regressor.manipulator.coordinate_limits
        return ((x > limits.lower + FROM_STOP) & (x < limits.upper - FROM_STOP)).all(axis=1)

    def _evaluate(self, x, xd, xdd, chosen):
        """(rows, Y, believed) of the chosen rows at which every loop closes."""
        states = x[chosen], xd[chosen], xdd[chosen]
        try:
            return chosen, self.regressor(*states), self.regressor.believed(*states)
        except StateError:
            if len(chosen) == 1:
                self.skipped += 1
                dof = x.shape[1]
                return chosen[:0], np.zeros((0, dof, self.inertial)), np.zeros((0, dof))
        halves = [self._evaluate(x, xd, xdd, half) for half in np.array_split(chosen, 2)]
        return tuple(np.concatenate(parts) for parts in zip(*halves))

    def _equations(self, Y, maps, rates, gains):
        """(N, dof, P): columns of the links, then those of each actuator through A'."""
        count = len(rates)
        terms = np.empty((count, len(self.actuators), TERMS))
        terms[..., COULOMB], terms[..., VISCOUS] = np.tanh(rates / self.slip), rates
        terms[..., OFFSET] = 1.0
        terms[..., GAIN_A:] = np.nan_to_num(gains)
        spread = np.einsum('nac,nat->ncat', np.broadcast_to(maps, (count, *maps.shape[1:])), terms)
        return np.concatenate((Y, spread.reshape(count, Y.shape[1], -1)), axis=2)

    def _store(self, number, equations, wanted, believed, good):
        dof = wanted.shape[1]
        group = Group(np.zeros((dof, self.size + 1, self.size + 1)), good.sum(axis=0),
                      np.where(good, wanted ** 2, 0.0).sum(axis=0))
        for coordinate in range(dof):
            rows = good[:, coordinate]
            if rows.any():
                target = (wanted - believed)[rows, coordinate]
                group.triangles[coordinate] = triangle(np.column_stack((equations[rows, coordinate], target)))
        key = number // self.span
        if key in self.groups:
            self.groups[key].merge(group)
        elif group.rows.any():
            self.groups[key] = group
        while len(self.groups) > GROUPS:
            self.span *= 2
            old, self.groups = self.groups, {}
            for key, group in sorted(old.items()):
                if key // 2 in self.groups:
                    self.groups[key // 2].merge(group)
                else:
                    self.groups[key // 2] = group


def frictions(manipulator, hydraulics):
    """Return (Coulomb, viscous, v_s) of each actuator as declared, by the hydraulics or else by the URDF."""
    joints = manipulator.machine.description.joints
    found = []
    for name in manipulator.actuators:
        seal = friction_block(hydraulics, name)
        found.append((seal.coulomb, seal.viscous, seal.slip_velocity) if seal else
                     (joints[name].friction, joints[name].damping, SLIP_VELOCITY))
    return found


def friction_block(hydraulics, name):
    """Return the `Friction` that the hydraulics declare for an actuator, or None."""
    if hydraulics is None:
        return None
    return {**hydraulics.cylinders, **hydraulics.axes}[name].friction
