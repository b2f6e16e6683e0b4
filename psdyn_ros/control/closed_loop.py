"""A controller and any plant in one loop, in simulated time: for tests, studies and campaigns.

A plant has

    step(command, dt)  advance by dt [s] under commands (actuators,), NaN for those that get none, None where none is
                       given at all
    measure()          (x, xd, pressures, supply), and the age [s] of that where it is late; or a `Measurement`. The
                       last two are None without valves
    x, xd              true positions (nx,) and rates (dof,) of the coordinates, for the recording
    spool              (cylinders,) true openings, where it has some
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ..api.arguments import Array
from ..api.results.result import Axis, Result
from ..model.units import SECOND
from .core.core import Output
from .core.inputs import MeasuredState
from .reference.trajectory import TrajectoryError, Waypoints

if TYPE_CHECKING:
    from .core.core import ControlCore

STEADY = 5 * SECOND                         # ns on the steady clock at the start
STAMPS = 1_700_000_000 * SECOND             # ns on the clock of stamps at the start


class ControlledPlant(Protocol):
    """What `ClosedLoop` asks of a plant, see above."""

    x: Any
    xd: Any

    def step(self, command: Any, dt: float) -> Any:
        """Advance by dt [s] under commands (actuators,)."""

    def measure(self) -> Any:
        """Return (x, xd, pressures, supply), or a `Measurement`."""


class Measurement(NamedTuple):
    """What a plant measured of itself."""

    x: np.ndarray
    """(dof,) m, rad; NaN of passive joints that are not measured."""
    xd: np.ndarray
    """(dof,) m/s, rad/s; NaN likewise."""
    pressures: np.ndarray | None = None
    """(cylinders, 2) Pa gauge, chambers A and B."""
    supply: float | None = None
    """Pa gauge."""
    age: float = 0.0
    """s between measurement and arrival."""


@dataclass(frozen=True)
class PointStream:
    """A sender of streamed points; a point is where the motion is at the time of its stamp."""

    motion: Callable
    """Of the time [s] since the reference began; returns x, xd, xdd (dof,)."""
    rate: float
    """Hz."""
    ahead: float = 0.0
    """s by which stamps are later than the time of sending."""
    jitter: float = 0.0
    """Share of the period by which a point is sent early or late, as a uniform distribution."""
    loss: float = 0.0
    """Share of the points that is lost."""
    seed: int = 0

    def points(self, duration: float) -> Iterator[tuple[float, float]]:
        """Yield (time of sending, time of stamp) [s] of the points of so many seconds."""
        rng = np.random.default_rng(self.seed)
        for k in range(math.ceil(duration * self.rate)):
            late, lost = self.jitter * rng.uniform(-1.0, 1.0) / self.rate, rng.random() < self.loss
            if not lost:
                sent = max(0.0, k / self.rate + late)
                yield sent, sent + self.ahead


@dataclass(frozen=True, repr=False, eq=False)
class Recording(Result):
    """N cycles; command, spool and desired are NaN where there are none."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'xd': ('xd',), 'command': ('actuators',),
                                                     'desired': ('order', 'xd')}
    UNITS: ClassVar[Mapping[str, str]] = {'time': 's'}
    INDEX: ClassVar[str] = 'time'

    time: np.ndarray
    """(N,) s since the loop began."""
    x: np.ndarray
    """(N, nx) true positions."""
    xd: np.ndarray
    """(N, dof) true rates."""
    command: np.ndarray
    """(N, actuators)."""
    state: np.ndarray
    """(N,) values of `State`."""
    desired: np.ndarray
    """(N, 3, dof) reference x, xd, xdd that the command follows, of the driven coordinates."""
    spool: np.ndarray
    """(N, cylinders) true openings."""
    reasons: tuple
    """(time, {condition: text}) at each change of them."""
    rejected: tuple
    """(time, text) of streamed points that were not taken."""

    @property
    def speed(self) -> Array:
        """(N, dof) true speeds."""
        return np.abs(self.xd)


class ClosedLoop:
    """A core and a plant, cycle by cycle.

    core    `ControlCore` in STANDBY or not activated
    plant   as above
    ttl     s after which a command is withheld from the plant; None: the plant watches that itself, as those of the
            package do, and gets every command once
    change  called with (time [s], `Measurement`) in every cycle; what it returns is taken in its place, None: nothing
    """

    def __init__(self, core: ControlCore, plant: ControlledPlant, *, ttl: float | None = None,
                 change: Callable[[float, Measurement], Measurement | None] | None = None) -> None:
        self.core, self.plant, self.change = core, plant, change
        self.period, self._ttl = core.law.period, ttl
        self.slot = 0
        self.output: Output | None = None
        count = len(core.manipulator.actuators)
        self._command, self._given = np.full(count, math.nan), np.full(count, -math.inf)
        self._rows: list[tuple[Any, ...]] = []
        self._reasons: list[tuple[float, dict[str, str]]] = []
        self._rejected: list[tuple[float, str]] = []
        self._last_reasons: dict[str, str] = {}

    @property
    def time(self) -> float:
        """s since the loop began."""
        return self.slot * self.period

    @property
    def now(self) -> int:
        """ns on the steady clock."""
        return STEADY + round(self.time * SECOND)

    @property
    def ros_now(self) -> int:
        """ns on the clock of stamps."""
        return STAMPS + round(self.time * SECOND)

    def start(self) -> ClosedLoop:
        """Activate and enable the core: it holds the machine. Raises SafetyError with every reason against it."""
        self.cycle()
        self.core.activate(self.now, self.ros_now)
        self.cycle()
        self.core.enable(self.now)
        self.cycle()
        return self

    def send(self, waypoints: Waypoints) -> None:
        """Check and begin a trajectory; raises TrajectoryError."""
        validated = self.core.validate_trajectory(waypoints)
        validated.advance()
        self.core.execute(validated, self.now)

    def run(self, duration: float, points: PointStream | None = None) -> ClosedLoop:
        """Do the cycles of so many seconds; points: `PointStream` that begins now, None: none."""
        begin = self.time
        due = list(points.points(duration)) if points else []
        for _ in range(round(duration / self.period)):
            self.cycle((begin, points, due) if points else None)
        return self

    def cycle(self, stream: tuple[float, PointStream, list[tuple[float, float]]] | None = None) -> Output | None:
        """One period: the plant moves, its measurements arrive, the core answers; returns its `Output` or None."""
        core, plant = self.core, self.plant
        plant.step(self._fresh_command(), self.period)
        self.slot += 1
        now, ros_now = self.now, self.ros_now
        if stream:
            self._send_points(*stream)
        arrived = Measurement(*plant.measure())
        measured = self.change(self.time, arrived) if self.change else arrived
        core.take_emergency_stop(False, now)
        state = None
        if measured is not None:
            stamp = ros_now - round(measured.age * SECOND)
            if measured.pressures is not None:
                core.take_pressures(stamp, ros_now, now, measured.pressures, measured.supply)
            x, xd, passive = core.split(measured.x, measured.xd)
            state = MeasuredState(stamp, x, xd, passive=passive)
        self.output = core.step(now, ros_now, state)
        self._record()
        return self.output

    def _send_points(self, begin: float, stream: PointStream, due: list[tuple[float, float]]) -> None:
        while due and begin + due[0][0] <= self.time + 1e-9:
            _, stamp = due.pop(0)
            try:
                self.core.take_point(STAMPS + round((begin + stamp) * SECOND), self.now, *stream.motion(stamp))
            except TrajectoryError as error:
                self._rejected.append((self.time, str(error)))

    def _fresh_command(self) -> Array | None:
        """What the plant gets; None where there is nothing."""
        command = np.full(self._command.size, math.nan) if self.output is None else self.output.command
        if self._ttl is not None:
            given = np.isfinite(command)
            self._command[given], self._given[given] = command[given], self.time
            command = np.where(self.time - self._given <= self._ttl, self._command, math.nan)
        return None if np.isnan(command).all() else command

    def _record(self) -> None:
        core, plant, output = self.core, self.plant, self.output
        dof = core.manipulator.dof
        if output is None:
            nothing = np.full(self._command.size, math.nan)
            output = Output(nothing, 0, core.states.state, False, None)
        desired = np.full((3, dof), math.nan) if output.desired is None else np.array(output.desired)
        self._rows.append((self.time, np.array(plant.x), np.array(plant.xd), output.command.copy(), int(output.state),
                           desired, np.array(getattr(plant, 'spool', ()), dtype=float)))
        reasons = dict(core.states.reasons)
        if reasons.keys() != self._last_reasons.keys():
            self._reasons.append((self.time, reasons))
        self._last_reasons = reasons

    def recording(self) -> Recording:
        """Return the `Recording` of all cycles so far."""
        m = self.core.manipulator
        axes = {**m.axes, 'actuators': Axis(m.actuators, ('',) * len(m.actuators)),
                'order': Axis(('x', 'xd', 'xdd'), ('',) * 3)}
        time, x, xd, command, state, desired, spool = (np.array(column) for column in zip(*self._rows))
        return Recording(time, x, xd, command, state, desired, spool, tuple(self._reasons), tuple(self._rejected),
                         axes=axes)


def follow(core: ControlCore, plant: ControlledPlant, reference: Waypoints | PointStream | None, duration: float, *,
           ttl: float | None = None,
           change: Callable[[float, Measurement], Measurement | None] | None = None) -> Recording:
    """Return the `Recording` of a core that follows a reference on a plant in simulated time.

    reference  `Waypoints` or `PointStream`, which begins when the core is enabled; None: hold
    duration   s after that
    ttl, change as of `ClosedLoop`

    Raises SafetyError where the core cannot be enabled, TrajectoryError where a trajectory is refused.
    """
    loop = ClosedLoop(core, plant, ttl=ttl, change=change).start()
    if isinstance(reference, Waypoints):
        loop.send(reference)
        reference = None
    return loop.run(duration, reference).recording()
