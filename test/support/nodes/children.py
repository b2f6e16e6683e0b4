"""Processes that a process started."""

from pathlib import Path


def children_of(pid):
    """Their numbers."""
    return [int(pid) for path in Path(f'/proc/{pid}/task').glob('*/children') for pid in path.read_text().split()]
