"""Validation while it happens: measured states and efforts in, message by message, predictions and a verdict out.

What comes goes through the same tracks, blocks and predictions as a bag in `validate.py`, in pieces of a `hop`; a
prediction is complete, and the same, once the filter has seen what comes after it.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from ..model.errors import MeasurementError, ModelError, NonFiniteError, PsdynError, ShapeError, did_you_mean, shorten
from ..model.units import SECOND
from .metrics.contact_force import ContactForce, ForceEstimate, outermost_link
from .metrics.metrics import capacities
from .metrics.prediction import Prediction, Predictor
from .metrics.rolling import RunningMetrics
from .metrics.tolerances import read_settings
from .signals.blocks import Cutter
from .signals.machine_tracks import MachineTracks
from .signals.resampling import Track
from .signals.stream_clock import AGREE, LEAP, StampError, StreamClock
from .signals.topics import PERIOD

HOP = 0.1                   # s from one piece to the next
PATIENCE = SECOND // 2      # ns that pressures may lag behind the states before they are missing
STEPS = 64                  # between states, from which their period is taken
PRESSURE_STEPS = 5          # between pressures
MAX_DELAY_S = 1.0               # s that a prediction may take longer than it must, before figures are forgotten
SLOWER = 2.5                # times the period, by which states that come more slowly begin again
MAX_WAITING = 16384         # messages that are kept until they are sampled
ORDERS = 8                  # of names that are kept ready


@dataclass(frozen=True)
class Step:
    """What one more piece says.

    prediction  `Prediction`, whose core is about this piece
    stamps      (n,) ns of the rows of its core
    force       `ForceEstimate` over the core, None where no effort is known
    """

    prediction: Prediction
    stamps: np.ndarray
    force: ForceEstimate


class LiveValidator:
    """Holds a machine against its model while it runs.

    manipulator   the model, on a fixed base
    hydraulics    its `Hydraulics`, whose friction counts and whose areas make forces of pressures; or None
    settings      `Settings` of `read_settings`; None: defaults.  Its topics and delays are for those who call
    period        s between the instants of the grid; None: the median between states at the beginning
    hop           s of a piece
    contact_link  on which a force from outside is estimated; '': the outermost
    by_pressures  whether efforts of cylinders are those of pressures only; else those of states until pressures come
    rolling       window and warn of `RunningMetrics`

    joints    names of those that are measured, () before the first state
    metrics   `RunningMetrics`, None before the first instants
    restarts  how often time, joints or rate began again
    latest    ns, stamp of the last state
    force     `ForceEstimate` of the last piece, or None

    Memory is bounded.  Raises ModelError for a floating base, UnknownNameError for a link that does not exist.
    """

    def __init__(self, manipulator, hydraulics=None, settings=None, *, period=None, hop=HOP, contact_link='',
                 by_pressures=False, **rolling):
        if manipulator.floating:
            raise ModelError(f"'{manipulator.name}' has a floating base, whose state is not in joints")
        self.manipulator, self.hydraulics = manipulator, hydraulics
        self.settings = read_settings(None, manipulator.actuators) if settings is None else settings
        self.contact = ContactForce(manipulator, contact_link or outermost_link(manipulator),
                                    capacities(manipulator, hydraulics))
        self._predictor = Predictor(manipulator, hydraulics)
        self._period, self._hop, self._options = period, round(hop * SECOND), rolling
        self._cylinders = len(hydraulics.cylinders) if hydraulics else 0
        # actuators whose efforts in messages count
        self._by_message = [name for name in manipulator.actuators
                            if not (by_pressures and hydraulics and name in hydraulics.cylinders)]
        self._state_clock, self._pressure_clock = StreamClock(), StreamClock()
        self.joints, self.restarts, self.latest = (), 0, 0
        self._places, self._last_names = {}, (None, None)
        self._lacking = 0           # messages in a row without joints that were measured before
        self._pressures = ()
        self._forget()

    def _forget(self):
        """Begin with nothing, but pressures that came with the last state."""
        self._states = deque(maxlen=MAX_WAITING)
        self._pressures = deque((one for one in self._pressures if abs(one[0] - self.latest) <= LEAP), MAX_WAITING)
        self._steps = deque(maxlen=STEPS)
        self._tracks = self._cutter = self.metrics = self.force = None
        self._looked = self._origin = self._predicted = 0

    def _restart(self):
        self.restarts += 1
        self._forget()

    # input

    def state(self, stamp, names, position, velocity=(), effort=()):
        """Take measured joints: stamp [ns], names, and of them positions, velocities and efforts, where there are any.

        The first message that fixes the machine decides which joints count; later ones may have more.  Raises
        StampError, MeasurementError where names do not fit, ShapeError, NonFiniteError: the message does not count.
        """
        joints, efforts = self._columns(names)
        count = len(names)
        for what, values in (('position', position), ('velocity', velocity), ('effort', effort)):
            if len(values) != count and (what == 'position' or len(values)):
                raise ShapeError(f'{what} has {len(values)} entries for {count} names')
        size, actuators = len(joints), len(self.manipulator.actuators)
        row = np.full(2 * size + actuators, np.nan)
        row[:size] = np.asarray(position)[joints]
        if not np.isfinite(row[:size]).all():
            k = int(np.flatnonzero(~np.isfinite(row[:size]))[0])
            raise NonFiniteError(f"position of '{self.joints[k]}' is {row[k]}; expected a finite number")
        if len(velocity):
            row[size:2 * size] = np.asarray(velocity)[joints]
        if len(effort):
            rows, places = efforts
            row[2 * size + rows] = np.asarray(effort)[places]
        before = self._state_clock.last
        restarted = self._state_clock.take(stamp)
        self.latest = stamp
        if restarted:
            self._restart()
        elif before is not None:
            self._steps.append(stamp - before)
        row[~np.isfinite(row)] = np.nan
        self._states.append((stamp, row))

    def pressures(self, stamp, values):
        """Take gauge pressures (cylinders, 2) [Pa] in the order of the hydraulics; stamp [ns].

        Raises StampError, ShapeError, NonFiniteError: the message does not count.
        """
        values = np.asarray(values, dtype=float)
        if values.shape != (self._cylinders, 2):
            raise ShapeError(f'pressures have shape {values.shape}; expected ({self._cylinders}, 2)')
        if not np.isfinite(values).all():
            raise NonFiniteError('pressures are not finite')
        if self._pressure_clock.take(stamp):
            self._pressures.clear()
            if self._tracks is not None:
                self._tracks.pressures.clear()
        self._pressures.append((stamp, values.ravel()))

    def _columns(self, names):
        """(where in a message the joints are, (rows of actuators, where their efforts are))."""
        last, found = self._last_names
        if names == last:
            self._lacking = 0
            return found
        key = tuple(names)
        found = self._places.get(key)
        if found is None:
            found = self._look_up(key)
            if len(self._places) == ORDERS:
                self._places.clear()
            self._places[key] = found
        self._last_names, self._lacking = (list(names), found), 0
        return found

    def _look_up(self, names):
        machine = self.manipulator
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise MeasurementError(f"'{shorten(twice[0])}' is named more than once")
        lacking = [name for name in self.joints if name not in names]
        self._lacking += bool(lacking)
        if not self.joints or self._lacking >= AGREE:
            self._choose(names)
        elif lacking:
            raise MeasurementError(f"it lacks '{lacking[0]}', which was measured before{self._strangers(names)}")
        rows = [row for row, name in enumerate(machine.actuators) if name in self._by_message and name in names]
        return (np.array([names.index(name) for name in self.joints], dtype=np.intp),
                (np.array(rows, dtype=np.intp),
                 np.array([names.index(machine.actuators[row]) for row in rows], dtype=np.intp)))

    def _choose(self, names):
        """Let those joints count that the machine has."""
        known = tuple(name for name in names if name in self.manipulator.joints)
        try:
            self.manipulator.joint_map(known)
        except PsdynError as error:
            raise MeasurementError(f'{error}{self._strangers(names)}') from error
        if self.joints:
            self._restart()
        self.joints = known
        self._places.clear()

    def _strangers(self, names):
        """In words, which names the machine does not have."""
        strangers = [name for name in names if name not in self.manipulator.joints]
        if not strangers:
            return ''
        more = f' and {len(strangers) - 1} more' if len(strangers) > 1 else ''
        return (f"; not of '{self.manipulator.name}': '{shorten(strangers[0])}'{more}"
                f'{did_you_mean(strangers[0], self.manipulator.joints)}')

    # output

    @property
    def behind(self):
        """s by which the last instant that is predicted is older than the last state; NaN before the grid is known."""
        return (self.latest - (self._predicted or self._origin)) / SECOND if self._origin else math.nan

    @property
    def trouble(self):
        """Why nothing is predicted although states come, '' where it is."""
        if self._tracks is None or self.behind <= MAX_DELAY_S + self._expected:
            return ''
        return f'nothing could be predicted for {self.behind:.3g} s: {self._cutter.why()}'

    @property
    def pressure_age(self):
        """ns by which the last pressures are older than the last state, None where none came."""
        return None if self._pressure_clock.last is None else self.latest - self._pressure_clock.last

    def advance(self):
        """Predict what is complete; returns a list of `Step`s, none before another hop went by."""
        if not self._states or self.latest - self._looked < self._hop:
            return []
        self._looked = self.latest
        if self._period is None and len(self._steps) == STEPS and self._tracks is not None \
                and np.median(self._steps) > SLOWER * self._tracks.period:
            self._restart_with_last()
        if self._tracks is None and not self._make_tracks():
            return []
        self._fill()
        steps = list(self._pieces()) if self._tracks.waiting >= self._hop else []
        self.metrics.forget((self.latest - self._origin) / SECOND - self._expected - MAX_DELAY_S)
        return steps

    def _restart_with_last(self):
        states, steps = list(self._states), self._steps
        self._restart()
        self._states.extend(states)
        self._steps = steps

    def _make_tracks(self):
        """Whether the grid is known by now."""
        if self._period is not None:
            period = round(self._period * SECOND)
        elif len(self._steps) == STEPS:
            period = int(np.median(self._steps))
        else:
            return False
        low, high = (round(bound * SECOND) for bound in PERIOD)
        if not low <= period <= high:
            self._forget()
            raise StampError(f'states come every {period / SECOND:.3g} s; expected {PERIOD[0]:g} to {PERIOD[1]:g} s')
        self._state_clock.leap = self._pressure_clock.leap = max(LEAP, 10 * period)
        self._origin = self._states[0][0]
        machine, size = self.manipulator, len(self.joints)
        tracks = MachineTracks(self.joints, machine.actuators, self.hydraulics, period, PATIENCE)
        tracks.positions.append((Track(2 * size, float(period)), list(range(size))))
        tracks.effort = Track(len(machine.actuators), float(period))
        smooth = self.settings.filter.make(self._period or period / SECOND)
        self._predictor.filter = smooth
        rows = max(round(self._hop / period), 1)
        # what is filtered was differentiated by the same filter: it reaches twice as far
        self._cutter = Cutter(machine, self.joints, tracks, rows, 2 * smooth.half)
        self._expected = (rows + 2 * smooth.half) * period / SECOND
        self._tracks, self.metrics = tracks, RunningMetrics(self._predictor, self.settings, **self._options)
        return True

    def _fill(self):
        """Put what came onto the tracks."""
        tracks, size = self._tracks, len(self.joints)
        times, rows = self._columns_of(self._states)
        tracks.main.add(times, rows[:, :2 * size])
        tracks.effort.add(times, rows[:, 2 * size:])
        if not tracks.pressures and len(self._pressures) > PRESSURE_STEPS:
            steps = np.diff([stamp for stamp, _ in self._pressures])
            tracks.pressures.append((Track(2 * self._cylinders, float(np.median(steps))),
                                     slice(0, 2 * self._cylinders)))
        if tracks.pressures and self._pressures:
            tracks.pressures[0][0].add(*self._columns_of(self._pressures))

    def _columns_of(self, messages):
        """(times (n,) ns since the origin, values (n, ...)) of what waits, which then waits no more."""
        stamps, rows = zip(*messages)
        messages.clear()
        return np.array(stamps, dtype=np.int64) - self._origin, np.array(rows)

    def _pieces(self):
        for instants, connected in self._tracks.grid(self._tracks.ready):
            for block in self._cutter.add(instants, connected):
                prediction = self._predictor.predict(block)
                if prediction is not None:
                    yield self._step(prediction)

    def _step(self, prediction):
        self.metrics.add(prediction)
        core = prediction.core
        stamps = self._origin + np.rint(prediction.t[core] * SECOND).astype(np.int64)
        middle = prediction.x[(core.start + core.stop) // 2]
        try:
            force = self.contact.estimate(middle, self.metrics.excess(), self.metrics.deviation())
        except PsdynError:      # no loop closes there
            force = None
        self.force, self._predicted = force, int(stamps[-1])
        return Step(prediction, stamps, force)
