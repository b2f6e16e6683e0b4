"""A controller core on a plant, cycle by cycle in a time of their own; whatever goes between them can be spoilt."""

import math
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np

from ...api.load import load
from ...control.core.assembly import ControllerConfig, assemble
from ...control.core.inputs import MeasuredState
from ...control.monitors.actuator_motion import ActuatorMotion
from ...control.monitors.oil_flow import FlowCheck
from ...control.monitors.openings import OpeningCheck
from ...control.monitors.tracking import EffortCheck
from ...control.reference.trajectory import Waypoints
from ...control.safety.fault_table import State
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import Axis, Brake, read_hydraulics
from ...simulation.hydraulic_plant import HydraulicPlant
from ...simulation.plant import Plant
from ..studies.second_plant import SecondPlant, Sensors
from .judge import Cycle, Judge

RATE = 500.0                # Hz, where none is given
PLANTS = ('package', 'second')
TTL = 0.02                  # s after which the receiver acts by itself
PROBATION = 0.1             # s, the shortest that may be declared, so that trials are short
START = 1_700_000_000_000_000_000       # ns on the clock of stamps
SUBSTEP = 1e-3              # s of a plant's integration at most: seals are stiff
BRAKE = Brake(stiffness=2e7, damping=4e5)       # N/m, N s/m of cylinders at force level
STEADY = 5_000_000_000      # ns on the steady clock at the beginning
JITTER = 0.05               # of the period, by which a cycle comes early or late
NOISE = 1e-5                # m or rad, of what is measured
SPEED_SHARE = 0.3           # of the rated speed, peak of the motions of the trials
HANGING = 'hanging'         # level of efforts on a machine with passive joints, which are measured
LEVELS = ('effort', 'valve', HANGING)
PID = 'pid'                 # level of motions only: valves under a law that looks at no pressures
FRICTION = 'friction'       # level of motions only: efforts of drives with friction
MOTION_LEVELS = 'effort', FRICTION, 'valve', PID
RATES = 100.0, 200.0, 500.0     # Hz, at which motions are watched
LAW = {'effort': 'computed_torque', FRICTION: 'computed_torque', HANGING: 'computed_torque',
       'valve': 'valve_computed_torque', PID: 'valve_pid'}
INTERFACE = {FRICTION: 'effort', PID: 'valve'}      # level of what differs in law or plant only


class Point(NamedTuple):
    """Where the true machine is after a turn."""

    time: float      # s since the bench began
    x: np.ndarray      # (actuators,) m, rad
    xd: np.ndarray      # (actuators,) m/s, rad/s
    spool: np.ndarray      # (cylinders,) true openings; empty at force level
    reference: np.ndarray
    """(2, actuators) positions and rates that are asked for; NaN where nothing is followed."""
    state: int      # of `State`


class Machine(NamedTuple):
    """What all trials on one level share."""

    kind: str      # of `LEVELS` or `MOTION_LEVELS`
    level: str      # of `LEVELS`
    law: str
    rate: float      # Hz of the controller
    manipulator: object      # without passive joints
    whole: object      # with them
    hydraulics: object
    declaration: object
    plant: object
    rated: np.ndarray      # (actuators,) speeds [m/s, rad/s]


class DrivenPart:
    """A plant with passive joints as those without them are: `passive` (2, passive) has their positions and rates."""

    def __init__(self, plant):
        self._plant, m = plant, plant.manipulator
        self._driven = np.array([name not in m.passive_joints for name in m.coordinates])
        self.reset, self.step = plant.reset, plant.step

    spool = property(lambda self: self._plant.spool)
    x = property(lambda self: self._plant.x[self._driven])
    xd = property(lambda self: self._plant.xd[self._driven])
    passive = property(lambda self: np.array((self._plant.x, self._plant.xd))[:, ~self._driven])

    def measure(self):
        """As `Plant.measure`."""
        return self.x, self.xd, *self._plant.measure()[2:4]


def make_machine(level, name=None, plant='package', rate=RATE):
    """The `Machine` of the package with this name, on one of `PLANTS`, at rate [Hz].

    level  one of `LEVELS` or `MOTION_LEVELS`
    """
    name = name or ('loader_crane' if level == HANGING else 'hiab_xs031')
    kind, law, level = level, LAW[level], INTERFACE.get(level, level)
    urdf = find_machine(name)
    m, period, hydraulics = load(urdf), 1.0 / rate, None
    if level == 'valve' or kind == FRICTION:
        hydraulics = read_hydraulics(find_config(f'{name}_hydraulics.yaml'), m.actuators)
        hydraulics = _without_oil(hydraulics, m.actuators) if kind == FRICTION else hydraulics
    if plant == 'second':
        body = SecondPlant(urdf, hydraulics, actuators=m.actuators, ttl=TTL, sensors=Sensors())
    elif hydraulics:
        body = HydraulicPlant(m, hydraulics, period=period, substeps=math.ceil(period / SUBSTEP), ttl=TTL)
    else:
        body = Plant(m, period=period, command_timeout=TTL)
    body = DrivenPart(body) if m.underactuated else body
    declaration = ControllerConfig.of_machine(m, hydraulics, safety=find_config(f'{name}_safety.yaml'), law=law,
                                              rate=rate).declaration
    return Machine(kind, level, law, rate, m.driven_machine, m, hydraulics, replace(declaration, probation=PROBATION),
                   body, np.array(m.limits.velocity, dtype=float))


def _without_oil(hydraulics, actuators):
    """`Hydraulics` whose drives give the force that is commanded, less the friction of their seals, or are braked."""
    drives = {**hydraulics.cylinders, **hydraulics.axes}
    axes = {name: drives[name] if name in hydraulics.axes else
            Axis(friction=drives[name].friction, end_stop=drives[name].end_stop, brake=BRAKE, safe_output='brake')
            for name in actuators}
    return replace(hydraulics, cylinders={}, axes=axes)


class Bench:
    """One core on the plant of a machine, which begins at its start.

    machine  `Machine`; its plant is taken back to the start
    seed     of what is random: jitter, noise, the motions
    amend    function of (declaration, machine) -> declaration of this bench
    options  of `ControllerConfig`

    `turn` is one period: the plant goes on under the last command, is measured, and the core answers. What is spoilt
    on the way is in `spoil_state`, `spoil_pressures`, ...: functions of what would be handed over, None by default.
    """

    def __init__(self, machine, seed, amend=None, **options):
        self.machine, self.rng = machine, np.random.default_rng(seed)
        self.fault_rng = np.random.default_rng([seed, 1])       # of faults: with one all else is as without it
        self.period = 1.0 / machine.rate
        self.declaration = amend(machine.declaration, machine) if amend else machine.declaration
        self.plant = machine.plant
        self.plant.reset()
        self.log = []
        self.config = ControllerConfig(machine.whole, self.declaration, machine.law, machine.hydraulics, machine.rate,
                                       **{'passive_states': 'measured', **options})
        self.judge = Judge(self.declaration, machine.rated, self.period)
        self.slot = 0
        self.output = None
        self.path = []                      # `Point` of each turn
        self.ros_offset = START - STEADY
        self.clock_stands = None            # ns at which the clock of stamps stands still; None: it goes on
        self.steady_stands = None           # the same of the steady clock, for the core
        self.spoil_state = self.spoil_pressures = None
        self.emergency_stop = False         # what it says; None: nothing
        self.core_runs = True               # whether the control process has its turns
        self.beside = None                  # (port, pressure) beside that of an injection when it began
        self.motion_watched = False         # whether the motion is the verdict
        self._step, self.actuators = round(self.period * 1e9), ActuatorMotion(machine.manipulator)
        self.start_core()

    def start_core(self):
        """A new control process: it knows nothing."""
        self.core = assemble(self.config, lambda level, text: self.log.append((level, text)))
        self.law = self.core.law

    # time

    @property
    def now(self):
        """ns on the steady clock, of the present slot."""
        return STEADY + self.slot * self._step + self._late

    @property
    def ros_now(self):
        return self.clock_stands if self.clock_stands is not None else self.now + self.ros_offset

    _late = 0

    def turn(self):
        """One period; returns the `Output`, None where the core gave none or had no turn."""
        self.slot += 1
        self._late = round(self._step * JITTER * self.rng.uniform(-1.0, 1.0))
        self._drive()
        now, ros_now = self.now, self.ros_now
        steady = now if self.steady_stands is None else self.steady_stands
        self._measure(steady)
        core = self.core
        if self.emergency_stop is not None:
            core.take_emergency_stop(self.emergency_stop, steady)
        self.output = core.step(steady, ros_now) if self.core_runs else None
        self._note()
        if self.core_runs:
            self._judge(now, ros_now)
        return self.output

    def turns(self, seconds):
        """Periods for so many seconds."""
        for _ in range(round(seconds / self.period)):
            self.turn()

    def _drive(self):
        """The plant goes on under what was given last, unless its time stands still."""
        if self.clock_stands is not None:
            return
        output = self.output
        command = None if output is None or np.isnan(output.command).all() else output.command
        if command is not None and self.machine.level != 'valve' and np.isnan(command).any():
            command = None
        self.plant.step(command, self.period)

    def _measure(self, now):
        if not self.core_runs:
            return
        core, ros_now, n = self.core, self.ros_now, self.machine.manipulator.dof
        x, xd, *pressures = self.plant.measure()[:4]
        msg = MeasuredState(ros_now, x + NOISE * self.rng.standard_normal(n), xd,
                            passive=getattr(self.plant, 'passive', None))
        if self.spoil_state:
            msg = self.spoil_state(msg)
        for one in msg if isinstance(msg, list) else [msg]:
            if one is not None:
                core.take_state(one, now, ros_now)
        if self.machine.level == 'valve':
            if self.spoil_pressures:
                pressures = self.spoil_pressures(pressures)
            if pressures is not None:
                core.take_pressures(ros_now, ros_now, now, *pressures)

    def _note(self):
        state, desired, plant = self.core.states.state, self.law.desired, self.plant
        follows = self.core_runs and state in (State.RUN, State.DEGRADED, State.HOLD) and desired is not None
        x, xd = np.array(self.actuators.read(plant.x, plant.xd))
        reference = self.desired if follows else np.full((2, x.size), np.nan)
        spool = np.array(plant.spool) if self.machine.level == 'valve' else np.zeros(0)
        self.path.append(Point(self.slot * self.period, x, xd, spool, reference, int(state)))

    def _judge(self, now, ros_now):
        m, output = self.machine.manipulator, self.output
        position, speed = self.actuators.read(self.plant.x, self.plant.xd)
        state = self.core.states.state if output is None else output.state
        command = None if output is None else output.command
        holding = self.law.holding(self.plant.x) if self.machine.level != 'valve' else np.zeros(len(m.actuators))
        self.judge.look(Cycle(now, command, 0 if output is None else output.stamp, ros_now, state,
                              output is not None and output.valid, position.copy(), speed.copy(), holding))

    @property
    def desired(self):
        """(2, actuators) positions and rates that the law was asked for last."""
        return np.array(self.actuators.read(*self.law.desired[:2]))

    # what an operator does

    def activate(self):
        self.core.activate(self.now, self.ros_now)
        self.judge.was_activated()

    def enable(self):
        self.core.enable(self.now)
        self.judge.was_enabled()

    def reset(self):
        self.core.reset(self.now)
        self.judge.was_reset()

    def deactivate(self):
        self.core.deactivate(self.now)

    def motion(self, seconds=None, size=1.0):
        """`Waypoints` of a random motion of all coordinates from rest to rest, within their limits."""
        m, rng = self.machine.manipulator, self.rng
        seconds = rng.uniform(2.0, 3.0) if seconds is None else seconds
        limits, here = m.coordinate_limits, np.array(self.law.desired[0])
        far = size * SPEED_SHARE * limits.velocity * seconds / 1.875
        span = limits.upper - limits.lower
        room = np.where(np.isfinite(span), 0.15 * span, np.inf)
        low, high = limits.lower + room, limits.upper - room
        target = here + np.minimum(far, room) * rng.choice([-1.0, 1.0], m.dof) * rng.uniform(0.6, 1.0, m.dof)
        inward = np.where(here < 0.5 * (low + high), 1.0, -1.0)
        beyond = (target < low) | (target > high)
        target = np.where(beyond, here + inward * np.abs(target - here), target)
        zero = np.zeros((2, m.dof))
        return Waypoints(m.coordinates, [0.0, seconds], [here, target], zero, zero)

    def follow(self, waypoints):
        """Hand a reference over, as a node does: checked, then accepted. Raises a PsdynError where it is refused."""
        validated = self.core.validate_trajectory(waypoints)
        validated.advance()
        self.core.execute(validated, self.now)
        self.judge.took_reference()

    # how things are spoilt

    def spoilt(self, **hooks):
        """With these attributes of the bench, such as spoil_state=function, and as they were afterwards."""
        return mock.patch.multiple(self, **hooks)

    @contextmanager
    def unrestrained(self):
        """With a core whose checks change no command, so that the output gate is alone.

        Where the motion is watched they do: a law is one fault, and checks that fail with it are another.
        """
        with ExitStack() as stack:
            for kind in () if self.motion_watched else (EffortCheck, FlowCheck, OpeningCheck):
                stack.enter_context(mock.patch.object(self.core.checks[kind], 'restrain', lambda *given: None))
            yield

    def law_spoilt(self, update):
        """With update(real command) in the place of what the law says."""
        real = self.law.update
        return mock.patch.object(self.law, 'update', lambda *arguments, **named: update(real(*arguments, **named)))
