"""Units that look wrong: by 1000, or degrees for radians, bar for pascal."""

import numpy as np

from ...model.units import ATMOSPHERE

RANGE = 0.02, 1.6       # share of the supply's pressure, or of what it can push, that a whole bag reaches at most
LEAST, MOST = 2e-3, 5.0 # of it, beyond which the unit is doubted
SLACK = 0.25            # of the range of a joint, by which it may be exceeded
TIMES = {'m': ((1e-3, 'mm'), (1e-2, 'cm')), 'rad': ((np.pi / 180, 'degrees'), (1e-3, 'mrad'))}
PRESSURES = (1e3, 'kPa'), (1e5, 'bar'), (1e6, 'MPa'), (1e-3, 'mPa')
EFFORTS = (1e3, 'kN or kN m'), (1e-3, 'mN or mN m')
LEAST_MOTION = 1e-3     # m/s or rad/s rms, from which velocities are compared
RATIO = 1.5             # by which a ratio may differ from that of a unit
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
        self._absolute = False

    def position(self, joint, seconds, position, velocity):
        """Take positions (n,) of a joint at (n,) s, and its velocities or None."""
        finite = position[np.isfinite(position)]
        if len(finite):
            low, high = self._ranges.get(joint, (np.inf, -np.inf))
            self._ranges[joint] = min(low, float(finite.min())), max(high, float(finite.max()))
        if velocity is None or len(position) < 3:
            return
        span = seconds[2:] - seconds[:-2]
        with np.errstate(divide='ignore', invalid='ignore'):
            rate = (position[2:] - position[:-2]) / span
        good = (span > 0) & np.isfinite(rate) & np.isfinite(velocity[1:-1])
        rate, said = rate[good], velocity[1:-1][good]
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
        """Take a `Prediction`: efforts as measured beside those that the model needs."""
        rows = prediction.core
        for name, measured, needed in zip(self._machine.actuators, prediction.effort[rows].T,
                                          prediction.effort_id[rows].T):
            known = np.isfinite(measured) & np.isfinite(needed)
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
            for factor, unit in TIMES['m' if prismatic else 'rad']:
                if lower - room <= factor * low and factor * high <= upper + room:
                    guess = f': in {unit}?'
                    break
            else:
                guess = ''
            yield f'{joint}.position', (f'from {low:.4g} to {high:.4g}, where the machine allows {lower:.4g} to '
                                        f'{upper:.4g}{guess}')

    def _velocities(self):
        for joint, (rates, both, said, count) in self._rates.items():
            # both must be about the same motion for their ratio to say something
            if not count or rates < count * LEAST_MOTION ** 2 or both ** 2 < 0.5 * rates * said:
                continue
            ratio = both / rates
            for factor, text in ((1e3, '1000 times'), (1e-3, 'a thousandth of'), (180 / np.pi, '180/pi times'),
                                 (np.pi / 180, 'pi/180 times')):
                if factor / RATIO < ratio < factor * RATIO:
                    yield f'{joint}.velocity', f'it is {ratio:.4g} times the rate of its position, about {text} it'

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
            if both <= 0.0 or both ** 2 < ALIKE * squares * needed:
                continue
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
