"""The reference numbers of the papers, which `psdyn papers` reads too."""

import json

from .paths import ROOT

FOLDER = ROOT / 'psdyn_ros' / 'tools' / 'papers' / 'data'


def reference(name):
    """Return the contents of <name>.json; the README beside the files says where the numbers are from."""
    return json.loads((FOLDER / f'{name}.json').read_text(encoding='utf-8'))
