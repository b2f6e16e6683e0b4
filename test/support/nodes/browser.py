"""A page of the package in a real Chromium, without a screen and without a network."""

import os
import shutil
from contextlib import contextmanager
from typing import NamedTuple

import pytest

CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium') or shutil.which('chromium-browser')
START_S = 60.0          # for a page, on a loaded machine
# without a graphics card: WebGL by SwiftShader, the page itself by the processor, as Chromium does there by itself
FLAGS = ('--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--disable-gpu-compositing', '--no-sandbox')


class Opened(NamedTuple):
    """A page that is open.

    page      of playwright
    errors    list of what went wrong in it
    requests  list of the addresses that it asked for
    """

    page: object
    errors: list
    requests: list


@contextmanager
def browser():
    """Give a function that opens an address as `Opened`, after a script of the test where one is given.

    It waits for the viewer of a page, unless the page is none of the viewer.

    Skips the test where Chromium or playwright is missing.
    """
    playwright = pytest.importorskip('playwright.sync_api', reason='playwright is not installed')
    if CHROMIUM is None:
        pytest.skip('Chromium is not installed')
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))

        def opened(address, script=None, viewer=True):
            found = Opened(chromium.new_page(viewport={'width': 1100, 'height': 700}), [], [])
            found.page.on('pageerror', lambda error: found.errors.append(str(error)))
            found.page.on('console', lambda message: message.type == 'error' and found.errors.append(message.text))
            found.page.on('request', lambda request: found.requests.append(request.url))
            if script:
                found.page.add_init_script(script)
            found.page.goto(address)
            if viewer:
                found.page.wait_for_function('window.viewer !== undefined', timeout=1e3 * START_S)
            return found

        try:
            yield opened
        finally:
            chromium.close()
