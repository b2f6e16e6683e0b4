"""The demonstration of a machine whose load hangs: one law with and without a swing shaper, and how the load swings."""

import math

import numpy as np

from ...control.laws.payload_model import LoadModel
from ...control.reference.swing_shaper import NONE, ZVD, SwingShaping
from ...validation.report.swing import Swing

UNSHAPED = 'unshaped'       # name of what belongs to the run without a shaper
SPARE = 1.1                 # share of the time of a shaper and a swing for which the reference stands still
NOTICE = 6.0                # s before a motion at which it is announced: checks of a shaped path take more cycles
PERIOD = 20_000_000         # ns between two instants at which swing is looked at
AT_REST = 1e-6              # m/s, rad/s of a reference that stands still


def compared(setup):
    """Return the `demo.Setup` whose runs are the law that is judged, with the swing shaper of the machine and without.

    A configuration that says 'none' is compared with the default. Neither run damps a swing actively.
    """
    law, parameters = next(iter(setup.runs.items()))
    kind = setup.controller.get('swing_shaper', ZVD)
    kind = ZVD if kind == NONE else kind
    name, other = setup.names[law], f'{law}_{UNSHAPED}'
    parameters = {**parameters, 'swing_damping': 0.0}
    return setup._replace(runs={law: {**parameters, 'swing_shaper': kind}, other: {**parameters, 'swing_shaper': NONE}},
                          names={law: f'{name}, {kind} shaper', other: f'{name}, no shaper'})


def pause(manipulator, setup):
    """Return the time [s] that a shaper prolongs a motion by, and one swing after it, at the initial position."""
    modes = LoadModel(manipulator).passive.modes
    x = manipulator.driven_machine.initial_position
    shaper = SwingShaping(modes, next(iter(setup.runs.values()))['swing_shaper'])(x)
    return 0.0 if shaper is None else SPARE * (float(shaper.delays[-1]) + 2.0 * math.pi / float(modes(x)[0].min()))


def swings(manipulator, runs):
    """Return the `Swing` of each `page.Run` that has a recording.

    Where the load would hang at rest is computed at the measured positions of the driven joints.
    """
    passive = LoadModel(manipulator).passive
    return tuple(_swing(manipulator, passive, run) for run in runs if run.recording is not None)


def _swing(manipulator, passive, run):
    states = run.recording.states.columns(manipulator.coordinates)
    wanted = run.recording.reference.columns(manipulator.driven_machine.coordinates)
    _, rows, at_reference = np.intersect1d(states.stamps, wanted.stamps, return_indices=True)
    kept = np.flatnonzero(states.stamps[rows] >= run.tracking.start)
    steps = (states.stamps[rows[kept]] - run.tracking.start) // PERIOD
    kept = kept[np.flatnonzero(np.diff(steps, prepend=-1))]
    x = states['position'][rows[kept]]
    at = np.isin(manipulator.coordinates, manipulator.passive_joints)
    rest = np.array([passive.resting(row[~at])[at] for row in x])
    moving = (np.abs(wanted['velocity'][at_reference[kept]]) > AT_REST).any(axis=1)
    time = 1e-9 * (states.stamps[rows[kept]] - run.tracking.start)
    return Swing(run.law, manipulator.passive_joints, time, moving, x[:, at] - rest)
