"""What a simulator says of its plant in diagnostics and in the log, and the file it leaves of one that diverged."""

import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np

from ...model.errors import PsdynError
from ...model.troubleshooting import NO_CLOCK, NOT_ANSWERED, NOT_COMMANDED
from ...model.units import SECOND
from ...simulation.offline import gap
from ...simulation.plant import FAULT, RUNNING
from ...simulation.snapshot import write_snapshot
from ..messages.conversions import diagnostics_msg
from ..runtime import diagnostics

PATIENCE = SECOND       # ns for which an answer may be missing in lock-step before that is said


class PlantReport:
    """Publishes `/diagnostics` about a plant.

    node          to publish on
    setup         `Setup`
    clock         `SimulationClock`
    inputs        `PlantInputs`
    environment  `PlantEnvironment`
    rejections    `Rejections`
    folder        for snapshots; empty: that of the logs, or else of temporary files
    """

    def __init__(self, node, setup, clock, inputs, environment, rejections, folder):
        self._node, self._setup, self._plant, self._clock = node, setup, setup.plant, clock
        self._inputs, self._environment, self._rejections = inputs, environment, rejections
        self._folder = Path(folder or os.environ.get('ROS_LOG_DIR') or tempfile.gettempdir())
        self._publish, self._log = diagnostics.publisher(node), diagnostics.log_function(node)
        self._closures = tuple(self._plant.manipulator.machine.description.closures.values())
        self._said = None               # the state that was logged last
        self._snapshot = ''             # path of the file of the last fault
        self._worst_step = 0            # ns since the last diagnostics
        self._before = time.monotonic_ns(), clock.steps
        self._stepped = self._before[0]     # ns at the last step, or while paused

    def took(self, ns):
        """Note that a step with its messages took so long."""
        self._worst_step, self._stepped = max(self._worst_step, ns), time.monotonic_ns()

    def fault(self):
        """Keep what is needed to do the step that failed again."""
        about = self._environment
        name = re.sub(r'\W+', '_', self._plant.manipulator.name) or 'plant'
        path = self._folder / f'fault_{name}_{time.time_ns()}.npz'
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_snapshot(path, self._plant, self._setup.source, base=about.base, wrenches=about.wrenches,
                           seed=self._setup.sensors.bank.seed,
                           notes={'stamp [ns]': self._clock.stamp or 0, 'faults': ', '.join(self._setup.faults.active)})
            self._snapshot = str(path)
        except OSError as error:
            self._snapshot = f'not written: {error}'

    def forget_fault(self):
        """The plant was reset."""
        self._snapshot = ''

    def _waits(self, paused):
        """ns for which a plant in lock-step has waited for an answer; 0 where that is no longer than usual."""
        now = time.monotonic_ns()
        if paused or not self._clock.lock_step:
            self._stepped = now
        return now - self._stepped if now - self._stepped > PATIENCE else 0

    def _state(self, paused):
        """(level, summary) of diagnostics, the worst first."""
        plant = self._plant
        conflicts = [f'{count} publishers on {topic}, none is obeyed'
                     for topic, count in self._inputs.conflicting_publishers.items()]
        if plant.state == FAULT:
            return 'error', f'FAULT: {plant.fault}'
        if conflicts:
            return 'error', '; '.join(conflicts)
        state = 'paused' if paused else plant.state
        frozen = [f'{name} frozen: {reason}' for name, reason in getattr(plant, 'frozen', {}).items()]
        notes = [*frozen, *self._environment.stale]
        if self._clock.waits:
            notes.append(NO_CLOCK.text)
        held = plant.actuators and len(plant.held) == len(plant.actuators)
        if held and not paused and not any(self._inputs.publishers.values()):
            notes.append(NOT_COMMANDED.text.format(topics=' or '.join(self._inputs.topics)))
        if self._waits(paused):
            notes.append(NOT_ANSWERED.text)
        quiet = state == RUNNING and not notes and not self._setup.faults.active
        return 'ok' if quiet else 'warn', '; '.join([state, *notes])

    def publish(self, paused):
        """Tell everybody, and the log where the state is another one than before."""
        level, summary = self._state(paused)
        if summary != self._said:
            self._said = summary
            self._log('warning' if level == 'warn' else level, f'the plant: {summary}')
        if NOT_ANSWERED.text in summary:
            summary += f' for {self._waits(paused) / SECOND:.1f} s'
        self._publish(diagnostics_msg(self._clock.wall(), f'{self._node.get_name()}: plant', level, summary,
                                      self._values()))
        self._worst_step = 0

    def _values(self):
        plant, clock, rejected = self._plant, self._clock, self._rejections
        now, (then, steps) = time.monotonic_ns(), self._before
        self._before = now, clock.steps
        values = {
            'simulated time [s]': plant.time,
            'real-time factor': (clock.steps - steps) * clock.period / max(1, now - then),
            'worst step [ms]': self._worst_step * 1e-6,
            'overruns': clock.overruns,
            'lost time [s]': clock.slipped / SECOND,
            'clock jumps': clock.clock_jumps,
            'closure residual [m or rad]': self._residual(),
            'at safe output': ', '.join(plant.held),
            'active faults': ', '.join(self._setup.faults.active),
            'saturated commands': plant.saturations,
            **{f'publishers of {topic}': count for topic, count in self._inputs.publishers.items()},
            **rejected.values()}
        if self._snapshot:
            values['snapshot'] = self._snapshot
        return values

    def _residual(self):
        """The largest gap of a loop."""
        plant = self._plant
        try:
            return float(max((gap(plant.manipulator, plant.x, closure) for closure in self._closures), default=0.0))
        except PsdynError:
            return float(np.nan)
