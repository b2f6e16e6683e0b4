"""Commands run as processes, and the nodes that they start."""

import os
import subprocess
import sys
from pathlib import Path

from ..paths import ROOT


def start(module, *arguments, env=None):
    """Run `python -m module arguments`; what it prints is in its `stdout`."""
    return subprocess.Popen([sys.executable, '-m', module, *arguments], cwd=ROOT, env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def children_of(pid):
    """Return the process ids of what a process started."""
    return [int(pid) for path in Path(f'/proc/{pid}/task').glob('*/children') for pid in path.read_text().split()]


def wait_for_line(process, text):
    """Read what a process prints until a line contains the text; AssertionError with all of it where none does."""
    said = []
    for line in process.stdout:
        said.append(line)
        if text in line:
            return
    raise AssertionError(f'{text!r} is in none of these lines:\n{"".join(said)}')


def assert_a_signal_ends_it(process, number, nodes):
    """A signal ends a command with 130, without a traceback, and so many nodes with it."""
    found = children_of(process.pid)
    process.send_signal(number)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 130 and 'Traceback' not in said, said
    assert len(found) == nodes and not [pid for pid in found if os.path.exists(f'/proc/{pid}')], said
