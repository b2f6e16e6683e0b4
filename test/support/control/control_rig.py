"""A control core on the crane's plant, cycle by cycle in a time of its own; what reaches the core can be changed."""

from dataclasses import replace
from functools import cache

import numpy as np

import psdyn_ros
from psdyn_ros.control.core.assembly import ControllerConfig, assemble, command_interfaces
from psdyn_ros.control.core.inputs import MeasuredState
from psdyn_ros.control.reference.trajectory import Waypoints
from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant

from ..machines import URDF

RATE = 500.0
T, MS = 2_000_000, 1_000_000            # ns
WALL = 1_800_000_000_000_000_000        # ns, of the clock of stamps at the beginning
PROBATION = 0.1                         # s
SILENT, LOST = 11, 51                   # cycles without a state until STOPPING and SAFE, after 20 and 100 ms
LAW = {'effort': 'computed_torque', 'valve': 'valve_computed_torque'}
TARGET = np.array([0.25, 0.3, 0.25, 0.4])


@cache
def crane():
    return psdyn_ros.load(URDF / 'hiab_xs031.urdf')


@cache
def machine(level):
    """(hydraulics, plant, interfaces, declaration) at this level; the plant is shared."""
    m = crane()
    hydraulics = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), m.actuators) if level == 'valve' else None
    plant = (Plant(m, period=1 / RATE, command_timeout=0.02) if hydraulics is None
             else HydraulicPlant(m, hydraulics, period=1 / RATE))
    interfaces = command_interfaces(LAW[level], m, hydraulics)
    declaration = read_safety(find_config('hiab_xs031_safety.yaml'), m.actuators, interfaces, m.limits)
    return hydraulics, plant, interfaces, replace(declaration, probation=PROBATION)


class Rig:
    """One core, and the plant from its start.

    level      'effort' or 'valve'
    plausibility, timeouts, more  what the declaration shall say instead
    options    of `ControllerConfig`

    `tick` is one period. Every output is checked: finite or left out, within its limit and its rate, and stamps that
    do not go back.
    """

    def __init__(self, level='effort', plausibility=None, timeouts=None, declared=None, position=None, **options):
        hydraulics, self.plant, _, declaration = machine(level)
        self.level, self.machine = level, crane()
        self.declaration = replace(declaration, plausibility=replace(declaration.plausibility, **(plausibility or {})),
                                   timeouts=replace(declaration.timeouts, **(timeouts or {})), **(declared or {}))
        self.plant._start[:] = self.machine.initial_position if position is None else position
        self.plant.reset()
        self.log = []
        self.core = assemble(ControllerConfig(self.machine, self.declaration, LAW[level], hydraulics, RATE, **options),
                             lambda grade, text: self.log.append((grade, text)))
        self.law = self.core.law
        self.slot, self.ros_jump = 0, 0
        self.output, self.outputs = None, []
        self.pressed = False        # what the emergency stop says; None: nothing

    @property
    def now(self):
        return 5_000_000_000 + self.slot * T

    @property
    def ros_now(self):
        return WALL + self.slot * T + self.ros_jump

    @property
    def state(self):
        return self.core.states.state

    @property
    def refused(self):
        return self.core.refused

    @property
    def counts(self):
        return {name: count for name, count in self.core.states.counts.items() if count}

    def measured(self):
        """What a good state says: stamp, x, xd."""
        return self.ros_now, self.plant.x.copy(), self.plant.xd.copy()

    def tick(self, state=None, pressures=True, cycle=True):
        """One period; returns the `Output`.

        state  function of (stamp, x, xd) that gives what the core gets instead, None: nothing
        """
        self.slot += 1
        self._drive()
        core = self.core
        if self.pressed is not None:
            core.take_emergency_stop(self.pressed, self.now)
        if self.level == 'valve' and pressures:
            core.take_pressures(self.ros_now, self.ros_now, self.now, self.plant.fluid[:, :2].copy(),
                                float(self.plant.supply_pressure[0]))
        message = self.measured() if state is None else state(*self.measured())
        measured = None if message is None else MeasuredState(*message)
        if not cycle:
            if measured is not None:
                core.take_state(measured, self.now, self.ros_now)
            return None
        before, self.output = self.output, core.step(self.now, self.ros_now, measured)
        if self.output is not None:
            self.outputs.append(self.output)
            self._check(before)
        return self.output

    def ticks(self, count, **spoil):
        for _ in range(count):
            self.tick(**spoil)
        return self.output

    def until(self, state, most, /, **spoil):
        """Number of ticks until this sub-state, AssertionError after `most`."""
        for k in range(1, most + 1):
            self.tick(**spoil)
            if self.state is state:
                return k
        raise AssertionError(f'{self.state.name} and not {state.name} after {most} cycles')

    def _drive(self):
        command = None if self.output is None else self.output.command
        if command is not None and self.level == 'effort' and np.isnan(command).any():
            command = None
        self.plant.step(command, 1 / RATE)

    def _check(self, before):
        command, most, rate = self.output.command, self.declaration.command_limit, self.declaration.command_rate
        given = ~np.isnan(command)
        assert (np.abs(command[given]) <= most[given]).all()
        if before is not None:
            assert self.output.stamp >= before.stamp
            if self.output.valid and before.valid:
                assert (np.abs(command - before.command) <= 2.001 * rate / RATE).all()
        if not self.output.valid:
            safe, closing = self.core.gate.safe(), np.zeros(command.size)
            if self.state is State.SAFE and self.core.selector.closing:
                closing = np.where(safe == 0.0, command, 0.0)
                assert (np.abs(closing) <= np.abs(np.nan_to_num(before.command))).all()
            assert np.array_equal(command, safe + closing, equal_nan=True)

    # what an operator does

    def activate(self):
        self.tick()
        self.core.activate(self.now, self.ros_now)
        self.ticks(2)
        return self

    def hold(self):
        self.activate()
        self.core.enable(self.now)
        self.ticks(10)
        assert self.state is State.HOLD
        return self

    def run(self, seconds=0.6):
        """In motion for so long towards TARGET."""
        self.hold()
        self.follow(TARGET, 3.0)
        self.ticks(round(seconds * RATE))
        assert self.state is State.RUN and np.abs(self.plant.xd).max() > 0.01
        return self

    def follow(self, target, seconds):
        waypoints = Waypoints(self.machine.coordinates, [seconds], [target], [np.zeros(4)])
        validated = self.core.validate_trajectory(waypoints)
        assert validated.advance(100.0)
        self.core.execute(validated, self.now)


# what states may be like instead


def nothing(*_):
    return None


def jumped(by):
    return lambda stamp, x, xd: (stamp, x + np.array(by), xd)


# name: (condition that it is, what becomes of a state)
BAD_STATES = {
    'F02 zero': ('state_stale', lambda stamp, x, xd: (0, x, xd)),
    'F02 old': ('state_stale', lambda stamp, x, xd: (stamp - 21 * MS, x, xd)),
    'F02 absurd': ('state_stale', lambda stamp, x, xd: (1, x, xd)),
    'F03 future': ('state_future', lambda stamp, x, xd: (stamp + 6 * MS, x, xd)),
    'F04 frozen': ('stamp_order', lambda stamp, x, xd: (WALL + 10 * T, x, xd)),
    'F05 position': ('state_not_finite', lambda stamp, x, xd: (stamp, x + [0.0, np.nan, 0.0, 0.0], xd)),
    'F05 velocity': ('state_not_finite', lambda stamp, x, xd: (stamp, x, xd + [0.0, 0.0, np.inf, 0.0])),
    'F06 length': ('state_malformed', lambda stamp, x, xd: (stamp, x[:3], xd)),
    'F06 shape': ('state_malformed', lambda stamp, x, xd: (stamp, x, np.zeros((4, 1)))),
}
