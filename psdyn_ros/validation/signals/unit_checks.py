"""Units and signs that look wrong: by 1000, degrees for radians, bar for pascal; velocities that are no rates."""

import numpy as np

from ...model.units import ATMOSPHERE, mistaken_unit

RANGE = 0.02, 1.6       # share of the supply's pressure, or of what it can push, that a whole bag reaches at most
LEAST, MOST = 2e-3, 5.0 # of it, beyond which the unit is doubted
SLACK = 0.25            # of the range of a joint, by which it may be exceeded
PORT = 'pressure_a'     # of a cylinder with pressures
PRESSURES = (1e3, 'kPa'), (1e5, 'bar'), (1e6, 'MPa'), (1e-3, 'mPa')
EFFORTS = (1e3, 'kN or kN m'), (1e-3, 'mN or mN m')
LEAST_MOTION = 1e-3     # m/s or rad/s rms, from which velocities are compared
RATIO = 1.5             # by which a ratio may differ from that of a unit
WINDOW = 0.2            # s over which velocities are averaged, so that steps of an encoder do not count
FEWEST_WINDOWS, CERTAIN_MOTION = 10, 5e-3   # and m/s or rad/s rms, from which velocities are doubted without a unit
INSTEAD = '; the rate is used instead'
CONTRADICTS = 1.3       # times the rate of the position, or a share of it, that no noise of either explains
FACTORS = ((1e3, '1000 times'), (1e-3, 'a thousandth of'), (180 / np.pi, '180/pi times'), (np.pi / 180, 'pi/180 times'),
           (-1.0, 'the negative of'))
EMPTY = 1e-4            # of the supply's pressure, which a gauge of one port exceeds by its noise
VACUUM = 0.5 * ATMOSPHERE       # Pa absolute, less than which no port has
ALIKE = 0.8             # squared correlation of efforts with those of the model, from which their sizes are compared
# of efforts over those that the model needs
SIZES = (1e-3, 'kN, kN m or kPa'), (1e3, 'mN, mN m or mPa'), (1e-5, 'bar'), (1e-6, 'MPa'), (1.0 / 9.80665, 'kgf')


class Units:
    """Remembers extremes of the signals, and how velocities compare with the positions."""

    def __init__(self, manipulator, hydraulics):
        self._machine, self._hydraulics = manipulator, hydraulics
        self._ranges, self._rates, self._efforts, self._models, self._pressures = {}, {}, {}, {}, {}
        self._absolute, self._waiting = False, {}

    def position(self, joint, seconds, position, velocity):
        """Take positions (n,) of a joint at (n,) s, and its velocities or None."""
        finite = position[np.isfinite(position)]
        if len(finite):
            low, high = self._ranges.get(joint, (np.inf, -np.inf))
            self._ranges[joint] = min(low, float(finite.min())), max(high, float(finite.max()))
        if velocity is not None:
            self._compare(joint, np.array([seconds, position, velocity], dtype=float))

    def _compare(self, joint, rows):
        """Take rows (3, n) of s, position and velocity: rates over windows, and velocities averaged over them."""
        rows = np.concatenate((self._waiting.get(joint, np.empty((3, 0))), rows), axis=1)
        steps, ends = np.diff(rows[0]), np.array([0])
        usual = np.median(steps) if len(steps) else 0.0
        if usual > 0.0:
            ends = np.arange(0, rows.shape[1], max(round(WINDOW / usual), 2))
        self._waiting[joint] = rows[:, ends[-1]:]
        if len(ends) < 2:
            return
        steps, begins = steps[:ends[-1]], ends[:-1]
        areas = 0.5 * (rows[2, :ends[-1]] + rows[2, 1:ends[-1] + 1]) * steps
        even = (np.minimum.reduceat(steps, begins) > 0.0) & (np.maximum.reduceat(steps, begins) < 3.0 * usual)
        span = np.diff(rows[0, ends])
        with np.errstate(divide='ignore', invalid='ignore'):
            rate, said = np.diff(rows[1, ends]) / span, np.add.reduceat(areas, begins) / span
        good = even & np.isfinite(rate) & np.isfinite(said)
        rate, said = rate[good], said[good]
        sums = self._rates.setdefault(joint, np.zeros(4))
        sums += rate @ rate, rate @ said, said @ said, len(rate)

    def pressure(self, signal, values, absolute=False):
        """Take pressures (n,) of a port, gauge or absolute."""
        self._absolute = absolute
        finite = values[np.isfinite(values)]
        if len(finite):
            # a few spikes must not speak for the rest
            self._pressures[signal] = max(self._pressures.get(signal, 0.0), float(np.percentile(np.abs(finite), 90)))

    def effort(self, actuator, values):
        """Take efforts (n,) of an actuator."""
        finite = values[np.isfinite(values)]
        if len(finite):
            self._efforts[actuator] = max(self._efforts.get(actuator, 0.0), float(np.percentile(np.abs(finite), 90)))

    def add(self, prediction):
        """Take a `Prediction`: efforts as measured beside those that the model needs, while their actuator moves."""
        rows = prediction.core
        # the brake of one that stands holds what the others and a payload do, which a model need not know
        for name, measured, needed, speed in zip(self._machine.actuators, prediction.effort[rows].T,
                                                 prediction.effort_id[rows].T, np.abs(prediction.v[rows]).T):
            known = np.isfinite(measured) & np.isfinite(needed) & (speed > CERTAIN_MOTION)
            one, other = measured[known], needed[known]
            sums = self._models.setdefault(name, np.zeros(3))
            sums += one @ one, one @ other, other @ other

    def findings(self):
        """Yield (signal, what looks wrong)."""
        found = [*self._positions(), *self._velocities()]
        if self._hydraulics:
            found += [*self._of_pressures(), *self._forces()]
        # what the model makes of wrong positions, and of wrong pressures, says nothing
        yield from found or self._sizes()

    def _positions(self):
        actuators, limits = self._machine.actuators, self._machine.limits
        for k, joint in enumerate(actuators):
            if joint not in self._ranges:
                continue
            lower, upper = float(limits.lower[k]), float(limits.upper[k])
            if not (np.isfinite(lower) and np.isfinite(upper) and upper > lower):
                continue
            low, high = self._ranges[joint]
            room = SLACK * (upper - lower)
            if lower - room <= low and high <= upper + room:
                continue
            prismatic = self._machine.machine.description.joints[joint].type == 'prismatic'
            guess = ': of the wrong sign?' if lower - room <= -high and -low <= upper + room else mistaken_unit(
                low, high, lower - room, upper + room, 'm' if prismatic else 'rad')
            yield f'{joint}.position', (f'from {low:.4g} to {high:.4g}, where the machine allows {lower:.4g} to '
                                        f'{upper:.4g}{guess}')

    def _moving(self, least):
        """Yield (joint, squares of its rates, their product with velocities, squares of these, windows)."""
        for joint, (rates, both, said, count) in self._rates.items():
            if count and rates >= count * least ** 2:
                yield joint, rates, both, said, count

    def silent(self):
        """Return the joints that move, and whose velocities are zero all the time."""
        return [joint for joint, _, _, said, count in self._moving(CERTAIN_MOTION)
                if said == 0.0 and count >= FEWEST_WINDOWS]

    def contradicted(self):
        """Return whether velocities are not the rates of their positions, or zero, so that they are not to be used."""
        return bool(self.silent()) or any(True for _ in self._velocities())

    def _velocities(self):
        for joint, rates, both, said, count in self._moving(LEAST_MOTION):
            # both must be about the same motion for their ratio to say something
            alike, ratio = both ** 2 >= 0.5 * rates * said > 0.0, both / rates
            unit = next((text for factor, text in FACTORS if alike and 1.0 / RATIO < ratio / factor < RATIO), '')
            if unit:
                yield f'{joint}.velocity', f'it is {ratio:.4g} times the rate of its position, about {unit} it{INSTEAD}'
            elif said > 0.0 and count >= FEWEST_WINDOWS and rates >= count * CERTAIN_MOTION ** 2:
                # noise of the rates makes the one ratio too small, that of the velocities the other too large
                if alike and (ratio > CONTRADICTS or said / both < 1.0 / CONTRADICTS):
                    yield f'{joint}.velocity', f'it is {ratio:.2f} times the rate of its position{INSTEAD}'
                elif not alike:
                    yield f'{joint}.velocity', (f'it does not go with the rate of its position (correlation '
                                                f'{both / np.sqrt(rates * said):.2f}): of another joint, or is the '
                                                f'position frozen?{INSTEAD}')

    def _of_pressures(self):
        supply, reached = self._hydraulics.supply.pressure, max(self._pressures.values(), default=0.0)
        unit = _unit(reached, supply, PRESSURES)
        if unit:
            yield 'pressures', f'up to {reached:.4g}, where the supply has {supply:.4g} Pa: in {unit}?'
            return
        least = VACUUM if self._absolute else EMPTY * supply
        for signal, one in self._pressures.items():
            unit = _unit(one, supply, PRESSURES) if one < least else ''
            if unit:
                yield signal, f'up to {one:.4g}, where other ports have up to {reached:.4g} Pa: in {unit}?'

    def _sizes(self):
        for name, (squares, both, needed) in self._models.items():
            if both == 0.0 or both ** 2 < ALIKE * squares * needed:
                continue
            # pressures of the wrong sign are exchanged ports, of which there is a cause
            if both < 0.0 and f'{name}.{PORT}' not in self._pressures:
                yield f'{name}.effort', (f'it is {both / needed:.3g} times what the model needs: is its sign wrong, or '
                                         'that of the position?')
            for factor, unit in SIZES:
                if factor / RATIO < both / needed < factor * RATIO:
                    yield f'{name}.effort', (f'it is {both / needed:.3g} times what the model needs, and goes with it: '
                                             f'efforts or pressures in {unit}?')

    def _forces(self):
        for joint, cylinder in self._hydraulics.cylinders.items():
            most = cylinder.area_a * self._hydraulics.supply.pressure
            unit = _unit(self._efforts.get(joint, 0.0), most, EFFORTS)
            if unit:
                yield (f'{joint}.effort',
                       f'up to {self._efforts[joint]:.4g}, where the {cylinder.kind} gives {most:.4g} '
                       f'{cylinder.effort_unit}: in {unit}?')


def _unit(reached, most, units):
    """The units in which what was reached would be as much as is usual, '' where it is so already."""
    if not reached or LEAST <= reached / most <= MOST:
        return ''
    return ' or '.join(name for factor, name in units if RANGE[0] <= factor * reached / most <= RANGE[1])
