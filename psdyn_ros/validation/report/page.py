"""Tables, figures and the HTML report of a comparison of control laws."""

import base64
import io
from pathlib import Path
from typing import NamedTuple

import jinja2
import numpy as np

from ...view.motion import simulated_motion
from ..metrics.tracking import units
from . import swing
from .figure_style import BLACK, BLUE, VERMILLION, finish, in_kilo, note, panels
from .hydraulic_figures import pressures
from .machine_drawing import motion_picture

STYLES = ({'color': BLUE, 'linewidth': 1.4}, {'color': VERMILLION, 'linewidth': 1.4, 'linestyle': '--'})
# unit of an actuator -> factor and unit of its errors, unit of its positions
DISPLAY = {'m': (1e3, 'mm', 'm'), 'rad': (1e3, 'mrad', 'rad')}
FORCE_UNITS = {'m': 'N', 'rad': 'N m'}
MOTION = 'The motion in 3-D'
WITHOUT_SHAPER = 'The motion without the swing shaper'
COMPLETE = 0.98     # share of the motion that a recording must cover to be judged


class Run(NamedTuple):
    """One control law on the reference: its name, the `Recording` and the `Tracking` in it.

    Both are None where the machine never moved; `stopped` says why the run ended before its time, '' where it did not.
    """

    law: str
    recording: object
    tracking: object
    stopped: str = ''


class Summary(NamedTuple):
    """What the report says first.

    machine    name
    judged     the Run that the verdict is about
    baseline   the Run that it is compared with, also one that ended early, or None
    duration   s that the motion takes
    travel     (n,) how far the reference takes each coordinate
    facts      label -> text: the conditions of the run
    swings     (`Swing` of the judged run, of the other one) where a load hangs; of fewer runs where one did not move
    """

    machine: str
    judged: Run
    baseline: Run
    duration: float
    travel: np.ndarray
    facts: dict
    swings: tuple = ()

    @property
    def reason(self):
        """Why the run failed; empty when it passed."""
        tracking = self.judged.tracking
        if self.judged.stopped:
            return f'after {tracking.time[-1]:.1f} s of {self.duration:.1f} s {self.judged.stopped}.'
        if tracking.time[-1] < COMPLETE * self.duration:
            return f'the recording ends after {tracking.time[-1]:.1f} s of {self.duration:.1f} s.'
        covered = np.ptp(tracking.reference, axis=0)
        for error, part, whole in zip(tracking.errors, covered, self.travel):
            if part < COMPLETE * whole:
                return f'the reference of {error.joint} went {part:.3g} of {whole:.3g} {error.unit} only.'
        late = [error.joint for error in tracking.errors if not error.passed]
        if late:
            return f'{", ".join(late)} did not follow the reference within the bound.'
        return swing.reason(self.swings)

    @property
    def verdict(self):
        """One sentence."""
        if self.reason:
            return f'FAIL: {self.reason}'
        return 'PASS: every coordinate follows its reference within its bound.' + swing.sentence(self.swings) + (
            f' The baseline did not: {self.baseline.stopped}.' if self.baseline and self.baseline.stopped else '')

    @property
    def runs(self):
        """Those in which the machine moved, the judged one first."""
        return [run for run in (self.judged, self.baseline) if run is not None and run.recording is not None]


def tracking_table(summary):
    """Rows of text, the header first: error of each coordinate under both laws."""
    yield 'joint', 'unit', 'RMS', 'bound', 'maximum', 'RMS baseline', 'maximum baseline', 'ratio of RMS'
    judged, *others = summary.runs
    # errors of a part of the motion are not compared with those of the whole
    comparable = others and not summary.baseline.stopped
    baseline = others[0].tracking.errors if comparable else (None,) * len(judged.tracking.errors)
    for error, other in zip(judged.tracking.errors, baseline):
        factor, unit, _ = DISPLAY[error.unit]
        yield (error.joint, unit, f'{factor * error.rms:.3f}', f'{factor * error.bound:.3f}',
               f'{factor * error.maximum:.3f}',
               *(('', '', '') if other is None else (f'{factor * other.rms:.3g}', f'{factor * other.maximum:.3g}',
                                                     _ratio(other.rms / error.rms))))


def _ratio(value):
    return f'{value:.0f}' if value >= 10.0 else f'{value:.2g}'


def timing_table(summary):
    """Rows of text, the header first: control cycles of both laws."""
    yield 'law', 'cycles', 'unanswered states', 'p50 [µs]', 'p99 [µs]', 'p99.9 [µs]'
    for run in summary.runs:
        if run.recording.statistics:
            s = run.recording.statistics
            yield (run.law, f'{s["cycles"]:.0f}', f'{_unanswered(run.recording)}',
                   *(f'{1e6 * s[key]:.0f}' for key in ('p50', 'p99', 'p99.9')))


def _unanswered(recording):
    """Number of the states in a recording to which no command is stamped, between the first command and the last."""
    stamps, answered = recording.states.stamps, recording.commands.stamps
    between = stamps[(stamps >= answered[0]) & (stamps <= answered[-1])]
    return np.setdiff1d(between, answered).size


def as_text(rows):
    """A table of text rows as aligned lines."""
    rows = [tuple(row) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))) for row in rows)


def figures(summary, manipulator):
    """file name -> (title, Figure) of everything that the report shows."""
    shown = {
        'motion.png': ('The motion, from the side', motion_picture(
            manipulator, simulated_motion(manipulator, summary.judged.tracking.time,
                                          _positions(summary.judged, manipulator)),
            f'{summary.machine} under {summary.judged.law}')),
        'tracking.png': ('Positions and tracking errors', _tracking(summary)),
        'forces.png': ('Actuator forces', _forces(summary, units(manipulator, manipulator.actuators))),
    }
    if summary.swings:
        shown['swing.png'] = 'Swing of the load', swing.figure(summary.swings)
    law, recording, tracking, _ = summary.judged
    if recording.telemetry is not None:
        shown['pressures.png'] = 'Pressures and valves', pressures(
            recording.telemetry, tracking.start, tracking.time[-1], f'under {law}')
    return shown


def _positions(run, manipulator):
    """Return the positions (N, nx) of all coordinates, passive ones too, at the instants of the tracking of a run."""
    states = run.recording.states.columns(manipulator.coordinates)
    instants = run.tracking.start + np.round(1e9 * run.tracking.time).astype(np.int64)
    return states['position'][np.searchsorted(states.stamps, instants)]


def write_report(folder, summary, manipulator, playback=None, other_playback=None):
    """Write the figures as PNG files and report.html, which needs none of them; returns the path of the latter.

    playback        `Playback` of the judged run, or None
    other_playback  that of the other run, or None
    """
    return write_page(folder, 'report.html.j2', figures(summary, manipulator), summary,
                      f'{summary.machine} under {summary.judged.law}',
                      playbacks={MOTION: playback, WITHOUT_SHAPER: other_playback}, summary=summary,
                      tracking=list(tracking_table(summary)), swing=list(swing.table(summary.swings)),
                      timing=list(timing_table(summary)))


class Head(NamedTuple):
    """What stands on top of a page."""

    verdict: str
    reason: str
    facts: dict
    shade: str = ''     # class of the verdict; '': by whether there is a reason


def write_page(folder, template, figures, result, title, file='report.html', playbacks=None, **values):
    """Write {file name: (title, Figure)} as PNG files, and a page with them and the values in it; returns its path.

    result     `Head`, or another object with its attributes
    file       name of the page
    playbacks  {title: `Playback` that the page contains, or None}
    """
    folder = Path(folder)
    pictures = []
    for name, (caption, figure) in figures.items():
        data = _png(figure)
        (folder / name).write_bytes(data)
        pictures.append((caption, base64.b64encode(data).decode()))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / 'templates'), autoescape=True)
    path = folder / file
    played = [(heading, playback.path.name, playback.path.read_text(encoding='utf-8'))
              for heading, playback in (playbacks or {}).items() if playback]
    written = environment.get_template(template).stream(
        pictures=pictures, playbacks=played, title=title, verdict=result.verdict, reason=result.reason,
        shade=getattr(result, 'shade', ''), facts=result.facts, **values)
    with path.open('w', encoding='utf-8') as page:
        written.dump(page)
    return path


def _png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png')    # a canvas of its own would keep the pixels, 5 MB a figure
    figure.clear()                          # what it has drawn refers to itself, and would stay until the end
    return buffer.getvalue()


def _tracking(summary):
    runs = summary.runs
    errors = summary.judged.tracking.errors
    columns = 1 + len(runs)
    figure, grid = panels(5.0 * columns, 2.5 * len(errors), len(errors), columns, sharex=True)
    for i, (error, row) in enumerate(zip(errors, grid)):
        _, _, unit = DISPLAY[error.unit]
        tracking = summary.judged.tracking
        row[0].plot(tracking.time, tracking.reference[:, i], color=BLACK, linewidth=4.0, alpha=0.3, label='reference')
        row[0].set_ylabel(f'{error.joint} [{unit}]')
        for axes, run in zip(row[1:], runs):
            row[0].plot(run.tracking.time, run.tracking.measured[:, i], label=run.law, **STYLES[runs.index(run)])
            _error(axes, run, i, STYLES[runs.index(run)])
    for axes, title in zip(grid[0], ('position', *(f'error under {run.law}' for run in runs))):
        axes.set_title(title)
    grid[0][0].legend(fontsize=9)
    finish(grid)
    return figure


def _error(axes, run, i, style):
    """Error of coordinate i over time, with its figures."""
    error = run.tracking.errors[i]
    factor, unit, _ = DISPLAY[error.unit]
    axes.plot(run.tracking.time, factor * (run.tracking.measured - run.tracking.reference)[:, i],
              color=style['color'], linewidth=1.0)
    axes.axhline(0.0, color=BLACK, linewidth=0.6)
    axes.set_ylabel(f'error [{unit}]')
    axes.margins(y=0.25)
    note(axes, f'RMS {factor * error.rms:.3g} {unit}, bound {factor * error.bound:.3g} {unit}')


def _forces(summary, units):
    """Efforts of the actuators under both laws; units of the actuators by name."""
    runs = summary.runs
    names = list(units)
    figure, grid = panels(12, 2.2 * len(names), len(names), 1, sharex=True)
    for axes, name in zip(grid[:, 0], names):
        series = [_effort(run, name) for run in runs]
        factor, unit = in_kilo(np.abs(series[0][1]).max(), FORCE_UNITS[units[name]])
        axes.set_ylabel(f'{name} [{unit}]')
        for k in reversed(range(len(runs))):        # the judged one on top
            stamps, effort = series[k]
            time = (stamps - runs[k].tracking.start) * 1e-9
            shown = (time >= 0.0) & (time <= runs[k].tracking.time[-1])
            axes.plot(time[shown], factor * effort[shown], label=runs[k].law, **STYLES[k])
    on_valves = runs[0].recording.telemetry is not None
    grid[0][0].set_title(('effort of the actuators on the mechanism' if on_valves else
                          'commanded effort of the actuators') + ', in the direction of their positions')
    grid[0][0].legend(fontsize=9)
    finish(grid)
    return figure


def _effort(run, name):
    """(stamps, effort) of an actuator: what was commanded, or what a cylinder on a valve gives."""
    telemetry = run.recording.telemetry
    if telemetry is not None and name in telemetry.names:
        return telemetry.stamps, telemetry['net_force'][:, telemetry.names.index(name)]
    commands = run.recording.commands
    return commands.stamps, commands['effort'][:, commands.names.index(name)]
