"""One HTML file with a machine, its motion and all that draws them; it asks the network for nothing."""

import base64
import gzip
import html
import json
import os
import tempfile
import webbrowser
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .drawing import drawing, legend
from .motion import Motion
from .scene import scene

ASSETS = Path(__file__).parent / 'assets'
PLAYBACK = 'playback.html'
PROGRAM = ('three.js', 'machine.js', 'plots.js', 'viewer.js')


def machine_page(manipulator, motion=None, *, x=None, title=None, messages=(), live=False):
    """Return the text of a page that shows a `Manipulator`.

    motion    `Motion` that is played back; without one the actuators have sliders
    x         (nx,) where it stands without a motion; its initial position by default
    title     of the page; the name of the machine by default
    messages  sentences shown above the picture
    live      the page follows the events of its `Server`
    """
    shown, arrays = scene(manipulator, x)
    if motion is not None:
        arrays.update(motion.arrays())
        shown['signals'] = [{'title': one.title, 'unit': one.unit, 'names': list(one.names)} for one in motion.signals]
        shown['pressures'] = list(motion.pressures or ())
    shown.update(live=live, messages=[*shown['messages'], *messages], title=title or manipulator.name)
    shown['arrays'], data = _packed(arrays)
    texts = {'TITLE': html.escape(shown['title']), 'SCENE': json.dumps(shown, allow_nan=False).replace('<', '\\u003c'),
             'DATA': base64.b64encode(gzip.compress(data, 9, mtime=0)).decode(),
             'PROGRAM': '\n'.join(f'<script>\n{(ASSETS / name).read_text(encoding="utf-8")}\n</script>'
                                  for name in PROGRAM)}
    return _filled('page.html', texts)


def check_page(manipulator, report):
    """Return the text of a page about the structure of a `Manipulator`: a drawing, the machine in 3-D, a report.

    report  text of `psdyn check`
    """
    shown = [*legend(manipulator), *[('#ffffff', 'link', 'link')],
             *[('#ffffff', 'closes a loop; each loop has a color', 'closure')] * bool(manipulator.loops)]
    return _filled('check.html', {
        'TITLE': html.escape(manipulator.name), 'DRAWING': drawing(manipulator), 'REPORT': html.escape(report),
        'LEGEND': ' '.join(f'<span><i class="{kind}" style="background: {fill}"></i>{text}</span>'
                           for fill, text, kind in shown),
        'VIEWER': html.escape(machine_page(manipulator))})


def _filled(name, texts):
    """Return the page of the assets with texts in place of its marks, which texts may contain too."""
    first, *rest = (ASSETS / name).read_text(encoding='utf-8').split('@@')
    return first + ''.join(texts[part] if k % 2 == 0 else part for k, part in enumerate(rest))


def write_page(path, manipulator, motion=None, **options):
    """Write `machine_page` to a file and return its size in bytes."""
    text = machine_page(manipulator, motion, **options).encode('utf-8', 'replace')
    Path(path).write_bytes(text)
    return len(text)


class Playback(NamedTuple):
    """A page in a file, and the `Motion` that it plays."""

    path: Path
    motion: Motion


def write_playback(folder, manipulator, motion, *, file=PLAYBACK, messages=()):
    """Write the page that plays a `Motion` back into a folder, which is made; return the `Playback`."""
    path = Path(folder) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    write_page(path, manipulator, motion, messages=messages)
    return Playback(path, motion)


def show(manipulator, x=None, path=None):
    """Write a page of a machine at x to a file, by default a temporary one that the browser opens; return its path."""
    if path is not None:
        write_page(path, manipulator, x=x)
        return str(path)
    handle, path = tempfile.mkstemp(prefix='psdyn_', suffix='.html')
    os.close(handle)
    write_page(path, manipulator, x=x)
    webbrowser.open(Path(path).as_uri())
    return path


def _packed(arrays):
    """Return ([name, type, rows, columns] of each array, bytes); column by column, which packs better."""
    listed, parts = [], []
    for name, values in arrays.items():
        columns = np.ascontiguousarray(values.T)
        listed.append([name, 'uint' if values.dtype.kind == 'u' else 'float', *values.shape])
        parts.append(columns.tobytes())
    return listed, b''.join(parts)
