"""A copy of the package in which a developer has edited some files, to show what an addition takes."""

import os
import shutil
import subprocess
import sys

from .paths import ROOT, TESTS


def edited_copy(folder, edits):
    """Link the package into a folder, with edits; return the folder.

    edits  {file below psdyn_ros: text of a new file, or [(what stands there once, what takes its place)]}
    """
    for name in ('psdyn_ros', 'urdf', 'config'):
        shutil.copytree(ROOT / name, folder / name, copy_function=os.symlink,
                        ignore=shutil.ignore_patterns('__pycache__'))
    for name, edit in edits.items():
        path = folder / 'psdyn_ros' / name
        if isinstance(edit, str):
            assert not path.exists()
            path.write_text(edit)
            continue
        text = path.read_text()
        for before, after in edit:
            assert text.count(before) == 1, f'{name}: {before}'
            text = text.replace(before, after)
        path.unlink()
        path.write_text(text)
    return folder


def run(folder, script, *arguments, compiled=True):
    """Return what a script prints that imports the package from an `edited_copy`; it must end with 0.

    compiled: whether its kernels are compiled, which takes long where they are not the ones of this package
    """
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(folder), str(TESTS)])}
    if not compiled:
        environment['NUMBA_DISABLE_JIT'] = '1'
    done = subprocess.run([sys.executable, '-c', script, *map(str, arguments)], env=environment, cwd=folder,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
