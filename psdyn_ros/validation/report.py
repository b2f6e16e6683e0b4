"""Tables, figures and the HTML report of a comparison of control laws."""

import base64
import io
from pathlib import Path
from typing import NamedTuple

import jinja2
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import drawing

# Okabe and Ito: told apart by everyone, and in print
BLACK, BLUE, VERMILLION, GREY = '#000000', '#0072B2', '#D55E00', '#999999'
DISPLAY = {'m': (1e3, 'mm', 'm'), 'rad': (1e3, 'mrad', 'rad')}      # unit -> factor and unit of errors, unit of positions
FORCE_UNITS = {'m': 'kN', 'rad': 'kN m'}
POSES = 5           # of the machine in the picture of the motion
DPI = 130
COMPLETE = 0.95     # share of the instants that a recording must have to be judged


class Run(NamedTuple):
    """One control law on the reference: its name, the `Recording` and the `Tracking` in it."""

    law: str
    recording: object
    tracking: object


class Summary(NamedTuple):
    """What the report says first.

    machine    name
    judged     the Run that the verdict is about
    baseline   the Run that it is compared with, or None
    expected   instants that a complete recording of the motion has
    facts      label -> text: the conditions of the run
    """

    machine: str
    judged: Run
    baseline: Run
    expected: int
    facts: dict

    @property
    def reason(self):
        """Why the run failed; empty when it passed."""
        tracking = self.judged.tracking
        if tracking.time.size < COMPLETE * self.expected:
            return f'only {tracking.time.size} of {self.expected} instants of the motion were recorded.'
        late = [error.joint for error in tracking.errors if not error.passed]
        return f'{", ".join(late)} did not follow the reference within the bound.' if late else ''

    @property
    def verdict(self):
        """One sentence."""
        return f'FAIL: {self.reason}' if self.reason else 'PASS: every actuator follows its reference within its bound.'


def tracking_table(summary):
    """Rows of text, the header first: error of each actuator under both laws."""
    yield 'joint', 'unit', 'RMS', 'bound', 'maximum', 'RMS baseline', 'maximum baseline', 'ratio of RMS'
    baseline = summary.baseline.tracking.errors if summary.baseline else (None,) * len(summary.judged.tracking.errors)
    for error, other in zip(summary.judged.tracking.errors, baseline, strict=True):
        factor, unit, _ = DISPLAY[error.unit]
        yield (error.joint, unit, f'{factor * error.rms:.3f}', f'{factor * error.bound:.3f}',
               f'{factor * error.maximum:.3f}',
               *(('', '', '') if other is None else (f'{factor * other.rms:.3g}', f'{factor * other.maximum:.3g}',
                                                     f'{other.rms / error.rms:.0f}')))


def timing_table(summary):
    """Rows of text, the header first: control cycles of both laws."""
    yield 'law', 'cycles', 'missed states', 'p50 [us]', 'p99 [us]', 'p99.9 [us]'
    for run in (summary.judged, summary.baseline):
        if run is not None and run.recording.statistics:
            s = run.recording.statistics
            yield (run.law, f'{s["cycles"]:.0f}', f'{s["missed"]:.0f}',
                   *(f'{1e6 * s[key]:.0f}' for key in ('p50', 'p99', 'p99.9')))


def as_text(rows):
    """A table of text rows as aligned lines."""
    rows = [tuple(row) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return '\n'.join('  '.join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows)


def figures(summary, manipulator, urdf):
    """file name -> (title, Figure) of everything that the report shows."""
    return {
        'motion.png': ('The motion, from the side', _motion(summary, manipulator, urdf)),
        'tracking.png': ('Positions and tracking errors', _tracking(summary)),
        'forces.png': ('Actuator forces', _forces(summary)),
    }


def write_report(folder, summary, manipulator, urdf):
    """Write the figures as PNG files and report.html, which needs none of them; returns the path of the latter."""
    folder = Path(folder)
    pictures = []
    for name, (title, figure) in figures(summary, manipulator, urdf).items():
        data = _png(figure)
        (folder / name).write_bytes(data)
        pictures.append((title, base64.b64encode(data).decode()))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / 'templates'), autoescape=True)
    html = environment.get_template('report.html.j2').render(
        summary=summary, tracking=list(tracking_table(summary)), timing=list(timing_table(summary)), pictures=pictures)
    path = folder / 'report.html'
    path.write_text(html, encoding='utf-8')
    return path


def _png(figure):
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def _tracking(summary):
    judged, baseline = summary.judged, summary.baseline
    errors = judged.tracking.errors
    columns = 3 if baseline else 2
    figure = Figure(figsize=(4.6 * columns, 2.5 * len(errors)), dpi=DPI, layout='constrained')
    grid = figure.subplots(len(errors), columns, sharex=True, squeeze=False)
    for i, (error, row) in enumerate(zip(errors, grid, strict=True)):
        factor, error_unit, unit = DISPLAY[error.unit]
        tracking = judged.tracking
        row[0].plot(tracking.time, tracking.reference[:, i], color=BLACK, linewidth=3.0, alpha=0.35, label='reference')
        row[0].plot(tracking.time, tracking.measured[:, i], color=BLUE, label=judged.law)
        row[0].set_ylabel(f'{error.joint} [{unit}]')
        row[1].plot(tracking.time, factor * (tracking.measured - tracking.reference)[:, i], color=BLUE, linewidth=0.9)
        row[1].axhspan(-factor * error.bound, factor * error.bound, color=GREY, alpha=0.2, label='bound of the RMS')
        row[1].set_ylabel(f'error [{error_unit}]')
        if baseline:
            other = baseline.tracking
            row[0].plot(other.time, other.measured[:, i], color=VERMILLION, linestyle='--', label=baseline.law)
            row[2].plot(other.time, factor * (other.measured - other.reference)[:, i], color=VERMILLION, linewidth=0.9)
            row[2].axhspan(-factor * error.bound, factor * error.bound, color=GREY, alpha=0.2)
            row[2].set_ylabel(f'error [{error_unit}]')
    for axes, title in zip(grid[0], ('position', f'error under {judged.law}',
                                     f'error under {baseline.law}' if baseline else ''), strict=False):
        axes.set_title(title)
    grid[0][0].legend(fontsize=8)
    grid[0][1].legend(fontsize=8)
    _finish(grid)
    return figure


def _forces(summary):
    errors = summary.judged.tracking.errors
    figure = Figure(figsize=(11, 2.2 * len(errors)), dpi=DPI, layout='constrained')
    grid = figure.subplots(len(errors), 1, sharex=True, squeeze=False)
    names = [error.joint for error in errors]
    for run, color, style in ((summary.baseline, VERMILLION, '--'), (summary.judged, BLUE, '-')):
        if run is None:
            continue
        commands = run.recording.commands.columns(names)
        time = (commands.stamps - run.tracking.start) * 1e-9
        shown = (time >= 0.0) & (time <= run.tracking.time[-1])
        for i, error in enumerate(errors):
            grid[i][0].plot(time[shown], 1e-3 * commands['effort'][shown, i], color=color, linestyle=style,
                            linewidth=1.2, label=run.law)
            grid[i][0].set_ylabel(f'{error.joint} [{FORCE_UNITS[error.unit]}]')
    grid[0][0].set_title('commanded force, positive when it extends the actuator')
    grid[0][0].legend(fontsize=8)
    _finish(grid)
    return figure


def _finish(grid):
    for axes in grid.flat:
        axes.grid(True, color='#dddddd', linewidth=0.6)
        axes.margins(x=0.0)
    for axes in grid[-1]:
        axes.set_xlabel('time [s]')


def _motion(summary, manipulator, urdf):
    """The machine at instants spread over the motion, and where its far end went."""
    tracking = summary.judged.tracking
    shapes = drawing.shapes_of(urdf)
    figure = Figure(figsize=(11, 6.5), dpi=DPI, layout='constrained')
    axes = figure.subplots()
    path = tracking.measured[np.linspace(0, len(tracking.time) - 1, POSES).astype(int)]
    for k, x in enumerate(path):
        drawing.draw(axes, manipulator, shapes, x, alpha=1.0 if k == 0 else 0.25)
    axes.set_aspect('equal')
    axes.set_xlabel('reach [m]')
    axes.set_ylabel('height [m]')
    axes.grid(True, color='#dddddd', linewidth=0.6)
    axes.set_axisbelow(True)
    return figure
