"""The report of a validation: a page that needs no other file, its pictures as PNG, tables as JSON and CSV."""

from pathlib import Path

from ..bags.predicted_bag import FOLDER, LAYOUT, write_layout
from ..metrics import UNDECIDED
from . import validation_tables as tables
from .machine_drawing import motion_picture
from .page import MOTION, Head, write_page
from .validation_figures import figures


def write_outputs(folder, found, playback=None):
    """Write report.html, PNGs, validation.json and CSV files of a `Validation` into a folder; returns the page's path.

    playback  `Playback` of the recording, or None

    Raises OSError where that is not possible.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tables.write_tables(folder, found)
    if (folder / FOLDER).is_dir():
        write_layout(folder / LAYOUT, found.metrics.actuators)
    verdict = found.verdict
    page = Head(verdict.text, '; '.join(verdict.reasons), tables.facts(found),
                'amber' if verdict.but or verdict.verdict == UNDECIDED else '')
    shown = figures(found)
    if playback:
        shown['motion.png'] = 'The motion, from the side', motion_picture(
            found.manipulator, playback.motion, found.manipulator.name)
    return write_page(
        folder, 'validation.html.j2', shown, page, f'{found.manipulator.name}: model against recording',
        metrics=list(tables.metrics_table(found)), regimes=list(tables.regimes_table(found)),
        checks=list(tables.checks_table(found)), simulation=list(tables.simulation_table(found)),
        partial=verdict.partial, left_out=verdict.left_out, causes=found.causes, causes_text=found.causes_text,
        delays=found.delays, findings=found.quality.findings(), playbacks={MOTION: playback})
