"""The motion of a machine as a page plays it back."""

from dataclasses import dataclass

import numpy as np

from ..model.units import BAR

MAX_RATE_HZ = 50.0
MAX_FRAMES = 15_000         # 5 min at 50 Hz; longer motions have fewer frames a second


@dataclass(frozen=True)
class Signal:
    """Quantities of one unit that are plotted together.

    title      of the plot
    unit       text
    names      of the k columns
    values     (n, k), NaN where unknown
    reference  (n, k) drawn dashed, or None
    """

    title: str
    unit: str
    names: tuple
    values: np.ndarray
    reference: np.ndarray = None


@dataclass(frozen=True)
class Motion:
    """N instants of a machine.

    time       (n,) s, increasing
    joints     (n, joints) positions of all `Manipulator.joints`, loops closed
    base       (n, 7) position and quaternion x y z w of a floating base; None where it does not float
    reference  (n, joints) positions that the machine should have, NaN where there are none; None without a reference
    effort     (n, actuators) [N, N m], which may color the actuators; None where unknown
    pressures  {cylinder: (n, 2) gauge pressures [Pa]}, which may color cylinders
    signals    tuple of `Signal`
    """

    time: np.ndarray
    joints: np.ndarray
    base: np.ndarray = None
    reference: np.ndarray = None
    effort: np.ndarray = None
    pressures: dict = None
    signals: tuple = ()

    def arrays(self):
        """Return {name: (n, k) float32} of everything that a page needs, at most MAX_FRAMES rows, MAX_RATE_HZ."""
        found = {'time': self.time[:, None], 'joints': self.joints, 'base': self.base, 'reference': self.reference,
                 'effort': self.effort}
        found.update((f'pressure {name}', rows) for name, rows in (self.pressures or {}).items())
        for k, signal in enumerate(self.signals):
            found[f'signal {k}'], found[f'wanted {k}'] = signal.values, signal.reference
        rows = frames(self.time)
        return {name: np.ascontiguousarray(np.asarray(values)[rows], dtype='<f4')
                for name, values in found.items() if values is not None}


def frames(time):
    """Return the rows of `time` (n,) [s] that a page shows: the nearest to instants of a uniform grid, each once."""
    duration = float(time[-1] - time[0])
    period = max(1.0 / MAX_RATE_HZ, duration / (MAX_FRAMES - 2))
    instants = time[0] + period * np.arange(int(duration / period) + 1)
    return np.unique(np.append(nearest(time, instants), len(time) - 1))


def nearest(time, instants):
    """Return the rows of `time` (n,), increasing, that are nearest to instants (m,)."""
    if len(time) == 1:
        return np.zeros(len(instants), dtype=int)
    after = np.clip(np.searchsorted(time, instants), 1, len(time) - 1)
    return after - (instants - time[after - 1] < time[after] - instants)


def simulated_motion(manipulator, time, x, effort=None):
    """Return the `Motion` of rows of states: time (n,) [s], x (n, nx), effort (n, actuators) or None."""
    time, x = np.asarray(time, dtype=float), np.asarray(x, dtype=float)
    rows = frames(time)
    time, x = time[rows], x[rows]
    joints = np.array([manipulator.joint_state(row)[1] for row in x])
    effort = None if effort is None else np.asarray(effort, dtype=float)[rows]
    return Motion(time, joints, x[:, :7] if manipulator.floating else None, effort=effort,
                  signals=signals(manipulator, joints, effort=effort))


def signals(manipulator, joints, reference=None, effort=None, pressures=None):
    """Return the tuple of `Signal` of actuators and passive joints, of the coordinates of a machine without actuators.

    joints, reference (n, joints); effort (n, actuators); pressures as in `Motion`.
    """
    description, found = manipulator.machine.description.joints, []
    driven = manipulator.actuators or manipulator.coordinates
    shown = (*driven, *(name for name in manipulator.passive_joints if name not in driven))
    for kinds, position, force in ((('prismatic',), 'm', 'N'), (('revolute', 'continuous'), 'rad', 'N m')):
        names = tuple(name for name in shown if description[name].type in kinds)
        if not names:
            continue
        columns = [manipulator.joints.index(name) for name in names]
        found.append(Signal('position', position, names, joints[:, columns],
                            None if reference is None else reference[:, columns]))
        if effort is not None and manipulator.actuators:
            names = tuple(name for name in names if name in manipulator.actuators)
            columns = [manipulator.actuators.index(name) for name in names]
            if np.isfinite(effort[:, columns]).any():
                found.append(Signal('force' if force == 'N' else 'moment', force, names, effort[:, columns]))
    if pressures:
        found.append(Signal('pressure', 'bar', tuple(f'{name} {port}' for name in pressures for port in 'ab'),
                            np.hstack(list(pressures.values())) / BAR))
    return tuple(found)
