"""Photograph the playback of a run of `psdyn demo`: `python scripts/draw_view.py DEMO_OUTPUT [--at S]`.

Writes docs/images/view.png, by a Chromium without a screen: the one named by $CHROMIUM, or `chromium` of the path. The
run is that of the baseline, whose reference lies far enough from the machine to be seen as a ghost.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from psdyn_ros.api.load import load
from psdyn_ros.validation.playback import playback_html

PICTURE = Path(__file__).resolve().parent.parent / 'docs' / 'images' / 'view.png'
MACHINE, RUN = 'hiab_xs031', 'valve_pid'
SIZE = {'width': 1200, 'height': 760}
CLOSER = 0.92               # of the distance from which a page shows a machine first
FLAGS = ('--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--no-sandbox')
LOOK = '''([at, closer]) => { viewer.seek(at); document.getElementById('mass').checked = true; viewer.refresh();
    const drawing = viewer.drawing; drawing.camera.position.sub(drawing.controls.target).multiplyScalar(closer)
        .add(drawing.controls.target); drawing.controls.update(); drawing.dirty = true; }'''


def photograph(page, at, path):
    """Write a picture of a page (text) of the viewer at an instant [s]."""
    chromium = os.environ.get('CHROMIUM') or shutil.which('chromium')
    if chromium is None:
        raise SystemExit('draw_view.py: Chromium was not found; install it, or name it by $CHROMIUM')
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        file = Path(folder) / 'page.html'
        file.write_text(page, encoding='utf-8')
        browser = engine.chromium.launch(executable_path=chromium, args=list(FLAGS))
        shown = browser.new_page(viewport=SIZE)
        shown.goto(file.as_uri())
        shown.wait_for_function('window.viewer !== undefined')
        shown.evaluate(LOOK, [at, CLOSER])
        shown.wait_for_timeout(1000)
        shown.screenshot(path=str(path))
        browser.close()


def main():
    """Draw the picture of the README."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('output', metavar='DEMO_OUTPUT', help='folder of psdyn demo')
    parser.add_argument('--at', type=float, default=3.4, metavar='S', help='instant that is shown (3.4)')
    options = parser.parse_args()
    bag = Path(options.output) / RUN
    if not bag.is_dir():
        parser.error(f"'{bag}' is no folder; run `psdyn demo --output {options.output}` first")
    photograph(playback_html(load(MACHINE), bag), options.at, PICTURE)
    print(PICTURE)


if __name__ == '__main__':
    main()
