"""A machine of which one cylinder is on a test rig, against the whole machine under the same commands."""

from typing import NamedTuple

import numpy as np

from ..bags.recording import BagError
from ..metrics.tracking import units
from . import page
from .figure_style import BLACK, BLUE, VERMILLION, finish, note, panels

# largest RMS and maximum of what the split machine is off, in lock-step and on the clock of a busy computer
LOCK_STEP = {'m': (1e-4, 3e-4), 'rad': (2e-4, 6e-4)}
REAL_TIME = {'m': (1e-3, 3e-3), 'rad': (2e-3, 6e-3)}
MOVES = 0.01        # m that the cylinder on the rig must have travelled for a verdict
STEP = 0.002        # s between the instants that are compared


class Deviation(NamedTuple):
    """What the split machine is off the whole one, of one actuator, in m or rad as `unit` says."""

    name: str
    unit: str
    travel: float
    rms: float
    maximum: float
    bounds: tuple

    @property
    def passed(self):
        """Whether it is within its bounds."""
        return bool(self.rms <= self.bounds[0] and self.maximum <= self.bounds[1])


class Split(NamedTuple):
    """What the report says.

    time           (N,) s from the first command
    whole, split   (N, actuators) positions
    forces         {'whole', 'split', 'measured': (s, N)} of the cylinder on the rig
    frozen         why the simulator froze that cylinder in the motion; empty where it did not
    but            words on another reason than the coupling that a failure may have; empty: none is known
    """

    machine: str
    cylinder: str
    duration: float
    time: np.ndarray
    whole: np.ndarray
    split: np.ndarray
    forces: dict
    deviations: tuple
    facts: dict
    frozen: str = ''
    but: str = ''

    @property
    def reason(self):
        """Why the run failed; empty when it passed."""
        if self.frozen:
            return f'{self.frozen}; from there on the rig no longer moved the load.'
        if self.time[-1] < page.COMPLETE * self.duration:
            return (f'the recordings have {self.time[-1]:.1f} s of {self.duration:.1f} s in common: simulator or rig '
                    'stood still; what they said is in the folder log beside the report.')
        travel = next(d.travel for d in self.deviations if d.name == self.cylinder)
        if travel < MOVES:
            return f'{self.cylinder} moved by {1e3 * travel:.1f} mm only.'
        off = [d.name for d in self.deviations if not d.passed]
        return f'{", ".join(off)} left the whole machine by more than the bound{self.but}.' if off else ''

    @property
    def verdict(self):
        """One sentence."""
        if self.reason:
            return f'FAIL: {self.reason}'
        return f'PASS: with {self.cylinder} on the rig every actuator moves as in the whole machine, within bounds.'

    def table(self):
        """Rows of text, the header first."""
        yield 'actuator', 'travel', 'unit', 'RMS', 'bound', 'maximum', 'bound', 'unit'
        for d in self.deviations:
            factor, unit, plain = page.DISPLAY[d.unit]
            yield (d.name, f'{d.travel:.3f}', plain, f'{factor * d.rms:.3f}', f'{factor * d.bounds[0]:g}',
                   f'{factor * d.maximum:.3f}', f'{factor * d.bounds[1]:g}', unit)


class SplitRecording(NamedTuple):
    """One run: `Series` of the true joint states and telemetry, and of the measured force or None.

    began   ns, stamp of the first command
    frozen  what the simulator reported of a frozen cylinder; empty: nothing
    """

    states: object
    telemetry: object
    measured: object
    began: int
    frozen: str = ''


def compare(manipulator, cylinder, whole, split, duration, bounds, facts):
    """The `Split` of two `SplitRecording`s that were commanded alike from `began` on, judged by these bounds."""
    names = list(manipulator.actuators)
    end = min(1e-9 * (run.states.stamps[-1] - run.began) for run in (whole, split))
    time = np.arange(0.0, min(end, duration), STEP)
    if time.size < 2:
        raise BagError('the recordings have nothing in common')
    positions = [np.column_stack([_at(time, run, run.states.columns(names)['position'][:, i])
                                  for i in range(len(names))]) for run in (whole, split)]
    off = positions[1] - positions[0]
    kinds = units(manipulator, names)
    deviations = tuple(
        Deviation(name, kinds[name], float(np.ptp(positions[0][:, i])), float(np.sqrt(np.mean(off[:, i]**2))),
                  float(np.abs(off[:, i]).max()), bounds[kinds[name]]) for i, name in enumerate(names))
    forces = {}
    for label, run in (('whole', whole), ('split', split)):
        row = run.telemetry.names.index(cylinder)
        forces[label] = 1e-9 * (run.telemetry.stamps - run.began), run.telemetry['net_force'][:, row]
    if split.measured is not None:
        forces['measured'] = 1e-9 * (split.measured.stamps - split.began), split.measured['effort'][:, 0]
    return Split(manipulator.name, cylinder, duration, time, *positions, forces, deviations, facts, split.frozen)


def _at(time, run, values):
    return np.interp(time, 1e-9 * (run.states.stamps - run.began), values)


def write_report(folder, split):
    """Write the figure as a PNG file and report.html, which does not need it; returns the path of the latter."""
    figures = {'split.png': ('Motion and force', _figure(split))}
    return page.write_page(folder, 'split.html.j2', figures, split,
                             f'{split.machine} with {split.cylinder} on a rig', split=split,
                             deviations=list(split.table()))


def _figure(split):
    count = len(split.deviations)
    figure, grid = panels(12, 2.2 * (count + 1), count + 1, 2, sharex=True)
    for i, (d, (left, right)) in enumerate(zip(split.deviations, grid)):
        factor, unit, plain = page.DISPLAY[d.unit]
        left.plot(split.time, split.whole[:, i], color=BLACK, linewidth=4.0, alpha=0.3, label='whole machine')
        left.plot(split.time, split.split[:, i], color=BLUE, linewidth=1.2, label=f'{split.cylinder} on the rig')
        left.set_ylabel(f'{d.name} [{plain}]')
        right.plot(split.time, factor * (split.split - split.whole)[:, i], color=BLUE, linewidth=1.0)
        right.axhline(0.0, color=BLACK, linewidth=0.6)
        right.set_ylabel(f'difference [{unit}]')
        right.margins(y=0.25)
        note(right, f'RMS {factor * d.rms:.3g} {unit}, largest {factor * d.maximum:.3g} {unit}')
    left, right = grid[-1]
    for label, style in (('whole', {'color': BLACK, 'linewidth': 4.0, 'alpha': 0.3}),
                         ('split', {'color': BLUE, 'linewidth': 1.2}),
                         ('measured', {'color': VERMILLION, 'linewidth': 0.8, 'linestyle': '--'})):
        if label in split.forces:
            time, force = split.forces[label]
            shown = (time >= 0.0) & (time <= split.time[-1])
            left.plot(time[shown], 1e-3 * force[shown], label=label, **style)
    left.set_ylabel(f'force of {split.cylinder} [kN]')
    left.legend(fontsize=9, ncols=3)
    (time, force), (other, reference) = split.forces['split'], split.forces['whole']
    shown = (time >= 0.0) & (time <= split.time[-1])
    right.plot(time[shown], 1e-3 * (force[shown] - np.interp(time[shown], other, reference)), color=BLUE, linewidth=1.0)
    right.axhline(0.0, color=BLACK, linewidth=0.6)
    right.set_ylabel('difference [kN]')
    grid[0][0].legend(fontsize=9)
    grid[0][0].set_title('motion')
    grid[0][1].set_title('split against whole')
    finish(grid, 'from the first command')
    return figure
