"""The report of a validation: a page that needs no other file, its pictures as PNG, tables as JSON and CSV."""

from pathlib import Path

from ..bags.predicted_bag import FOLDER, LAYOUT, write_layout
from ..diagnosis.cause_messages import briefly
from ..metrics import FAIL, UNDECIDED
from . import validation_tables as tables
from .machine_drawing import motion_picture
from .page import MOTION, Head, write_page
from .validation_figures import curves, figures
from .when import when_wrong


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
        cause = found.causes[0] if found.causes and (verdict.but or verdict.verdict == FAIL) else None
        marked = suspected_links(found.manipulator, cause) if cause else ()
        shown['motion.png'] = 'The motion, from the side' + (
            ', with the part that is suspected first' if marked else ''), motion_picture(
            found.manipulator, playback.motion, found.manipulator.name, marked,
            briefly(cause.kind, cause.about) if cause else '')
    return write_page(
        folder, 'validation.html.j2', shown, page, f'{found.manipulator.name}: model against recording',
        metrics=list(tables.metrics_table(found)), regimes=list(tables.regimes_table(found)),
        checks=list(tables.checks_table(found)), simulation=list(tables.simulation_table(found)),
        partial=verdict.partial, left_out=verdict.left_out, causes=found.causes, causes_text=found.causes_text,
        plots=curves(found), when=when_wrong(found), bounds=found.predictor.bounds, delays=found.delays,
        findings=found.quality.findings(), playbacks={MOTION: playback})


def suspected_links(manipulator, cause):
    """Links of a machine that a `Cause` is about: a link, what stands still, or those that an actuator or a joint moves
    against each other; none of a topic."""
    machine = manipulator.machine
    joints, cylinders = machine.description.joints, {triangle.rod.name for triangle in machine.triangles}
    if cause.kind == 'base_tilt':
        moved = {joint.child for joint in joints.values()}
        return tuple(link for link in machine.description.links if link not in moved)
    if cause.about in machine.description.links:
        return (cause.about,)
    found = []
    # of two that are exchanged the names stand side by side
    for name in cause.about.split("' and '"):
        if name in joints:
            found += [joints[name].parent] if name in cylinders else []
            found.append(joints[name].child)
    return tuple(found)
