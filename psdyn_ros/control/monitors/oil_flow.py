"""Measured motion beside the oil: what valves and pressures say of the speed of a rod, and of the force on it."""

import math

import numpy as np

from ...kernels.control import pressure_plausibility as kernels
from ...kernels.control.plausibility import largest_share
from ...kernels.hydraulics.records import FLUID
from ...kernels.runtime.buffer import pack, views
from ...model.parameters.hydraulics import VALVE
from .actuator_motion import ActuatorMotion
from .check import DEGRADE, RAMPED, REDUCED, STOP_OPEN_LOOP, Check, Finding, Row, State, When

IN_A_ROW = 5                # cycles with too large a force
WRONG_COMMANDS = 0.05       # s with commands for a speed that is off by as much again as is allowed
GROSS = 12.0                # times that, which count as so many times that
OFF = 1.0                   # times the speed of standstill, by which a command may be off beyond all that explains it
SETTLING = 0.1              # s from the beginning in which nothing is judged
LONGEST_STEP = 0.1          # s between two states, else the comparison begins again


class FlowCheck(Check):
    """Compares the rate of each rod with the flows into both chambers, by the model of its valve.

    What gain of the valve and areas of the model are wrong is learnt from the way that the rod has gone.
    Where both chambers disagree with the measured position in the same direction, the position is wrong or the valve
    does not obey; where only one does, its pressure or that of the supply is doubtful. And a command that would let the
    rod go at another speed than its reference, by more than the error explains, is not that of a sound law: `restrain`
    takes as much of it as is explained, from the command before, and the less the farther it is off, so that valves
    stay as they were under a law that fails.
    """

    rows = (
        Row('F38', 'flow_suspect', DEGRADE, 'a rod moves otherwise than the oil of one of its chambers says', REDUCED,
            2, 1.0),
        Row('F38', 'flow_residual', STOP_OPEN_LOOP, 'a rod moves otherwise than the oil of both chambers says', RAMPED,
            2, 1.0, event=True),
        Row('F39', 'command_suspect', STOP_OPEN_LOOP, 'a valve is opened for another speed than that of the reference',
            RAMPED, 4, 0.02, event=True),
    )
    when = When.COMMAND

    def __init__(self, config, law):
        rows = [k for k, c in enumerate(getattr(law, 'cylinders', ())) if law.interfaces[c['axis']] == VALVE]
        self.required = law.needs_pressures and bool(rows)
        if not self.required:
            return
        declared, joints = config.declaration.plausibility, config.machine.machine.description.joints
        self._slides = [joints[name].type == 'prismatic' for name in config.machine.actuators]
        self._law, self._names, self._motion = law, config.machine.actuators, ActuatorMotion(config.machine)
        records = np.zeros(len(rows), kernels.FLOW_WITNESS)
        records['cylinder'], records['actuator'] = rows, law.cylinders['axis'][rows]
        records['slack'] = OFF * np.array(config.declaration.standstill_speed)[records['actuator']]
        self._buffer = pack(kernels.Witnesses(
            records, np.zeros((len(rows), FLUID)), law.cylinders,
            np.array([declared.flow_residual, declared.flow_share]), np.zeros((6, len(self._names)))))
        self._witnesses = kernels.Witnesses(*views(self._buffer, kernels.TYPES))
        self._period = config.period
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._last = None           # s of the last state that was compared
        self._since = 0.0           # s
        self._wrong, self._worst = 0.0, -1      # s in a row with a command for another speed, and which witness
        self._time = None           # s of the last state: one that is repeated is no further evidence
        for name in ('rate', 'rate_a', 'rate_b', 'way', 'way_a', 'way_b', 'effort', 'lasting'):
            self._witnesses.records[name] = 0.0
        self._witnesses.fluid[:] = 0.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if inputs.time == self._last:       # from state to state: a cycle may come without one
            return None
        dt = 0.0 if self._last is None else inputs.time - self._last
        if not 0.0 <= dt <= LONGEST_STEP:
            self.restart()
            dt = 0.0
        self._last, self._since = inputs.time, self._since + dt
        self._witnesses.motion[kernels.MEASURED] = inputs.positions
        off = kernels.compare_flows(self._buffer, self._law.supply, _line(inputs), inputs.pressures, inputs.command, dt)
        findings = [] if self._wrong < WRONG_COMMANDS else [self._wrong_command()]
        if off and self._since >= SETTLING:
            findings += [self._rod(w) for w in self._witnesses.records if w['verdict'] != kernels.MOVES_AS_OIL]
        return findings

    def restrain(self, command, inputs):
        """As `Check.restrain`: commands of valves to those for a speed that reference and errors explain."""
        law, motion, rows, t = self._law, self._motion, self._witnesses.motion, inputs.time
        x, xd, _ = law.desired
        x_ahead, xd_ahead, _ = law.reference.ahead(t + inputs.age + law.lag + 0.5 * self._period)
        rows[kernels.MEASURED], rows[kernels.REFERENCE] = motion.positions(inputs.estimated[0]), motion.positions(x)
        rows[kernels.RATE], rows[kernels.AHEAD_RATE] = motion.rates(x, xd), motion.rates(x_ahead, xd_ahead)
        rows[kernels.RESIDUAL], rows[kernels.EFFORT] = law.force_residuals, law.predicted_efforts
        worst, off = kernels.restrain_valves(self._buffer, law.supply, _line(inputs), inputs.pressures, command,
                                             inputs.given, self._period, inputs.state is State.STOPPING)
        if worst < 0:
            self._wrong = 0.0
        elif t != self._time:
            self._wrong += self._period * min(off, GROSS)
        self._worst, self._time = worst, t

    def _wrong_command(self):
        w = self._witnesses.records[self._worst]
        return Finding('command_suspect', f'the valve of {self._names[w["actuator"]]} is opened for '
                       f'{1e3 * w["commanded"]:.3g} {self._unit(w)}; expected {1e3 * w["low"]:.3g} to '
                       f'{1e3 * w["high"]:.3g} by reference and errors')

    def _unit(self, w):
        return 'mm/s' if self._slides[w['actuator']] else 'mrad/s'

    def _rod(self, w):
        return Finding('flow_residual' if w['verdict'] == kernels.BOTH_OFF else 'flow_suspect',
                       f'{self._names[w["actuator"]]} moves at {1e3 * w["rate"]:.3g} {self._unit(w)}, by the oil of '
                       f'chamber A at {1e3 * w["oil_a"]:.3g}, of chamber B at {1e3 * w["oil_b"]:.3g}; expected within '
                       f'{1e3 * w["allowed"]:.3g}')


def _line(inputs):
    """Return the pressure of the supply [Pa gauge]; NaN where it is not measured."""
    return math.nan if inputs.supply is None else float(inputs.supply)


class ForceCheck(Check):
    """Compares the force of each piston with that of the model on the reference, and what both differed by at rest."""

    rows = (
        Row('F40', 'force_suspect', DEGRADE, 'the force of a piston far from that of the model', REDUCED, IN_A_ROW),
        Row('F40', 'force_residual', STOP_OPEN_LOOP, 'the same, twice as far', RAMPED, IN_A_ROW, event=True),
    )
    when = When.COMMAND

    def __init__(self, config, law):
        self.required = law.needs_pressures
        if not self.required:
            return
        self._law, self._names, supply = law, config.machine.actuators, float(law.supply['pressure'][0])
        self._allowed = np.full(len(law.interfaces), np.inf)
        for c in law.cylinders:
            self._allowed[c['axis']] = config.declaration.plausibility.force_share * supply * c['area_a']
        self._off = 0               # cycles in a row

    def restart(self):
        """As `Check.restart`."""
        self._off = 0

    def at_rest(self, x, pressures):
        """[why] a law must not begin at x (dof,): pistons, by their pressures, that do not hold the load; empty else.

        pressures (cylinders, 2) [Pa gauge]
        """
        residuals = self._law.force_residuals_at(x, pressures)
        expected = self._law.load.holding_efforts(x)
        return [f"F40: the piston of '{self._names[i]}' pushes with {(expected[i] + residuals[i]) / 1e3:.3g} kN by its "
                f'pressures; expected {expected[i] / 1e3:.3g} kN, which holds the load, to within '
                f'{self._allowed[i] / 1e3:.3g} kN' for i in np.flatnonzero(~(np.abs(residuals) <= self._allowed))]

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        residuals = self._law.force_residuals
        i, share = largest_share(residuals, self._allowed)
        self._off = self._off + 1 if share > 1.0 else 0
        if self._off < IN_A_ROW:
            return ()
        return (Finding('force_residual' if share > 2.0 else 'force_suspect',
                        f'the piston of {self._names[i]} pushes {residuals[i] / 1e3:.3g} kN more than the model '
                        f'expects; at most {self._allowed[i] / 1e3:.3g}'),)
