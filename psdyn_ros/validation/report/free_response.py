"""The motion of a machine that nobody controls, against an integration of another order, and its energy."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...api.orientation import quaternion, rotation
from ...simulation.offline import simulate
from ...view.motion import simulated_motion
from ...view.page import write_playback
from ..bags.recording import BagError
from ..metrics.tracking import units
from . import page
from .figure_style import BLACK, BLUE, VERMILLION, finish, panels
from .machine_drawing import motion_picture

BOUNDS = {'m': 0.5e-3, 'rad': 1e-3}     # largest deviation within a window
WINDOW = 1.0            # s after which the reference starts again from what was recorded: no motion is too sensitive
TOLERANCE = 1e-10       # of the reference, relative and absolute
MOVES = 1e-3            # m or rad that some coordinate must travel


class Deviation(NamedTuple):
    """Of one coordinate, or of place and attitude of the base: m or rad as `unit` says."""

    name: str
    unit: str
    travel: float
    maximum: float
    bound: float

    @property
    def passed(self):
        """Whether it is within its bound."""
        return bool(self.maximum <= self.bound)


class FreeResponse(NamedTuple):
    """What the report says.

    time        (N,) s
    x, xd       (N, nx), (N, dof) recorded
    reference   (N, nx)
    deviations  `Deviation` of each coordinate
    energy      (N, 3) J: kinetic, potential with that of external forces, their sum
    facts       label -> text
    """

    machine: str
    duration: float
    time: np.ndarray
    x: np.ndarray
    xd: np.ndarray
    reference: np.ndarray
    deviations: tuple
    energy: np.ndarray
    facts: dict

    @property
    def reason(self):
        """Why the run failed; empty when it passed."""
        if self.time[-1] < page.COMPLETE * self.duration:
            return f'the recording ends after {self.time[-1]:.1f} s of {self.duration:.1f} s.'
        if not max(deviation.travel for deviation in self.deviations) > MOVES:
            return 'nothing moves.'
        off = [deviation.name for deviation in self.deviations if not deviation.passed]
        return f'{", ".join(off)} left the reference by more than the bound.' if off else ''

    @property
    def verdict(self):
        """One sentence."""
        if self.reason:
            return f'FAIL: {self.reason}'
        return 'PASS: the motion is that of an integration of order 8, within the bound of every coordinate.'

    def table(self):
        """Rows of text, the header first: deviation of each coordinate."""
        yield 'coordinate', 'travel', 'unit', 'largest deviation', 'bound', 'unit'
        for d in self.deviations:
            factor, unit, plain = page.DISPLAY[d.unit]
            yield d.name, f'{d.travel:.3f}', plain, f'{factor * d.maximum:.2g}', f'{factor * d.bound:.3f}', unit


def evaluate(manipulator, recording, forces, duration, facts):
    """The `FreeResponse` in a `FreeMotion` of a machine under `ExternalForces`, its actuators without effort."""
    time, x, xd = _states(manipulator, recording)
    reference = _reference(manipulator, forces, time, x, xd)
    deviations = tuple(_deviations(manipulator, x, reference))
    energy = np.array([manipulator.energy(*state) for state in zip(x, xd)])
    energy[:, 1] += [forces.energy(position) for position in x]
    return FreeResponse(manipulator.name, duration, time, x, xd, reference, deviations,
                        np.column_stack([energy, energy.sum(axis=1)]), facts)


def _states(manipulator, recording):
    """(time, x, xd) of all instants at which everything was recorded, from when the actuators are without effort on."""
    m, states = manipulator, recording.states.columns(manipulator.joints)
    driven = [m.joints.index(name) for name in m.actuators]
    free = np.flatnonzero(~states['effort'][:, driven].any(axis=1))
    if not free.size:
        raise BagError('the actuators in the recording are never without effort')
    whole = [k for k in range(free[0], states.stamps.size)
             if recording.base is None or np.isfinite(recording.base[k]).all()]
    joint_map = m.joint_map((*m.coordinates, *(name for name in m.joints if name not in m.coordinates)))
    order = [m.joints.index(name) for name in joint_map.names]
    rows = []
    for k in whole:
        options = {}
        if m.floating:
            options['base'] = _in_frame(m.machine.floating, recording.base[k, :7]), recording.base[k, 7:]
        rows.append(joint_map.state(states['position'][k][order], states['velocity'][k][order], **options)[:2])
    stamps = states.stamps[whole]
    return (stamps - stamps[0]) * 1e-9, *(np.array(part) for part in zip(*rows))


def _in_frame(frame, pose):
    """Position and quaternion (7,) in a frame of a pose (7,) in the root link."""
    return np.concatenate([frame.rotation.T @ (pose[:3] - frame.position),
                           quaternion(frame.rotation.T @ rotation(pose[3:]))])


def _reference(manipulator, forces, time, x, xd):
    """Positions (N, nx) by DOP853, each window from the recorded state at its start."""
    out, start = x.copy(), 0
    while start < len(time) - 1:
        end = int(np.searchsorted(time, time[start] + WINDOW, side='right'))
        motion = simulate(manipulator, x[start], xd[start], time[start:end], external=forces, rtol=TOLERANCE,
                          atol=TOLERANCE)
        out[start:end] = motion.x
        start = end
    return out


def _deviations(manipulator, x, reference):
    if manipulator.floating:
        for i, axis in enumerate('xyz'):
            yield _deviation(f'base {axis}', 'm', np.ptp(x[:, i]), np.abs(x[:, i] - reference[:, i]).max())
        turns = [_angle(a, b) for a, b in zip(x[:, 3:7], reference[:, 3:7])]
        yield _deviation('base attitude', 'rad', max(_angle(x[0, 3:7], q) for q in x[:, 3:7]), max(turns))
    first = manipulator.nx - len(manipulator.coordinates)
    for i, (name, unit) in enumerate(units(manipulator).items()):
        column = x[:, first + i]
        yield _deviation(name, unit, np.ptp(column), np.abs(column - reference[:, first + i]).max())


def _deviation(name, unit, travel, maximum):
    return Deviation(name, unit, float(travel), float(maximum), BOUNDS[unit])


def _angle(a, b):
    """Angle [rad] between two attitudes as quaternions."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    b = b if a @ b >= 0.0 else -b
    return 4.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


def write_report(folder, response, manipulator):
    """Write the figures as PNG files and report.html, which needs none of them; returns the path of the latter."""
    motion = simulated_motion(manipulator, response.time, response.x)
    figures = {
        'motion.png': ('The motion, from the side', motion_picture(manipulator, motion, response.machine)),
        'response.png': ('The coordinates', _coordinates(manipulator, response)),
        'energy.png': ('Energy', _energy(response)),
    }
    return page.write_page(Path(folder), 'free_response.html.j2', figures, response,
                           f'{response.machine}: free response', deviations=list(response.table()),
                           playbacks={page.MOTION: write_playback(folder, manipulator, motion)})


def _coordinates(manipulator, response):
    names = [(name, page.DISPLAY[unit][2]) for name, unit in units(manipulator).items()]
    if manipulator.floating:
        names = [*((f'base {axis}', 'm') for axis in 'xyz'), *((f'base q{axis}', '1') for axis in 'xyzw'), *names]
    figure, grid = panels(12, 1.9 * len(names), len(names), 1, sharex=True)
    for i, (name, unit) in enumerate(names):
        axes = grid[i][0]
        axes.plot(response.time, response.reference[:, i], color=BLACK, linewidth=4.0, alpha=0.3,
                  label='integration of order 8')
        axes.plot(response.time, response.x[:, i], label='simulator', **page.STYLES[0])
        axes.set_ylabel(f'{name} [{unit}]')
    grid[0][0].legend(fontsize=9)
    finish(grid, 'from the start')
    return figure


def _energy(response):
    figure, grid = panels(12, 4)
    for column, label, color in zip(response.energy.T, ('kinetic', 'potential, external forces included', 'sum'),
                                    (BLUE, VERMILLION, BLACK)):
        grid[0][0].plot(response.time, column - (column[0] if label != 'kinetic' else 0.0), label=label, color=color)
    grid[0][0].set_ylabel('energy [J]')
    grid[0][0].set_title('kinetic energy, and change of potential energy and of their sum since the start')
    grid[0][0].legend(fontsize=9)
    finish(grid, 'from the start')
    return figure
