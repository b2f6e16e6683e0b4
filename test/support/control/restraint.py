"""What a check takes away from the commands of a law, and what it needs of one."""

from types import SimpleNamespace

import numpy as np

UNLOADED = SimpleNamespace(load=SimpleNamespace(settling=False))        # a law whose payload does not change


def restraint_of(check):
    """Return a list to which `check.restrain` then adds the largest change of a command in each cycle."""
    changes, restrain = [], check.restrain

    def watch(command, *given):
        sound = command.copy()
        restrain(command, *given)
        changes.append(np.abs(command - sound).max())
    check.restrain = watch
    return changes
