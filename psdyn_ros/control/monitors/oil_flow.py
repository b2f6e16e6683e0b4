"""Measured motion beside the oil: what valves and pressures say of the speed of a rod, and of the force on it."""

import numpy as np

from ...kernels.control import pressure_plausibility as kernels
from ...kernels.hydraulics.records import FLUID
from ...model.parameters.hydraulics import VALVE
from .actuator_motion import ActuatorMotion
from .check import DEGRADE, RAMPED, REDUCED, STOP_OPEN_LOOP, Check, Finding, Row, When

IN_A_ROW = 5                # cycles with too large a force
WRONG_COMMANDS = 0.018      # s with commands for a speed that is off by as much again as is allowed
GROSS = 4.0                 # times that, which count as so many times that
OFF = 1.5                   # times the speed of standstill, by which a command may be off beyond all that explains it
HALVINGS = 8                # of the interval in which the command that is allowed is searched
PRIOR = 0.1                 # m of motion that count as going as the model of the valve says
SCATTER = 0.05              # share of the speed by which flows differ from their mean
SLACK = 0.2                 # of the speed of the reference by which a command may be for another one
LOOP_GAIN = 20.0            # 1/s, speed that a sound law asks for at most, for an error of position or of compression
CHANGE = 1.5                # times the flow that compresses the oil as the force of the model changes
SMOOTHING = 0.25            # s over which rates are compared
SETTLING = 0.5              # s from the beginning in which nothing is judged
LONGEST_STEP = 0.1          # s between two cycles, else the comparison begins again


class FlowCheck(Check):
    """Compares the rate of each rod with the flows into both chambers, by the model of its valve.

    What gain of the valve and areas of the model are wrong is learnt from the way that the rod has gone.
    Where both chambers disagree with the measured position in the same direction, the position is wrong or the valve
    does not obey; where only one does, its pressure or that of the supply is doubtful. And a command that would let the
    rod go at another speed than its reference, by more than the error explains, is not that of a sound law: `restrain`
    takes as much of it as is explained, from the command before, or from a shut valve where that is not explained.
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
        rows = [k for k, c in enumerate(getattr(law, 'cylinders', ())) if law.tiers[c['axis']] == VALVE]
        self.required = law.needs_pressures and bool(rows)
        if not self.required:
            return
        declared = config.declaration.plausibility
        self._law, self._names = law, config.machine.actuators
        self._residual, self._share = declared.flow_residual, declared.flow_share
        self._cylinders = law.cylinders.copy()
        records = np.zeros(len(rows), kernels.FLOW_WITNESS)
        records['cylinder'], records['actuator'] = rows, self._cylinders['axis'][rows]
        self._witnesses = kernels.Witnesses(records, np.zeros((len(rows), FLUID)))
        self._motion = ActuatorMotion(config.machine)
        self._off = OFF * np.array(config.declaration.standstill_speed)[records['actuator']]
        self._period = config.period
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._last = None           # ns of the last evaluation
        self._since = 0.0           # s
        self._wrong, self._worst = 0.0, ''      # s in a row with a command for another speed, and which
        self._time = None           # s of the last state: one that is repeated is no further evidence
        self._efforts = 0.0         # [N] of the model, in the cycle before
        for name in ('rate', 'rate_a', 'rate_b', 'way', 'way_a', 'way_b'):
            self._witnesses.records[name] = 0.0
        self._witnesses.fluid[:] = 0.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        dt = 0.0 if self._last is None else 1e-9 * (inputs.clock - self._last)
        if not 0.0 <= dt <= LONGEST_STEP:
            self.restart()
            dt = 0.0
        self._last, self._since = inputs.clock, self._since + dt
        supply, position = self._law.supply[0], self._motion.positions(inputs.x)
        oil = kernels.Oil(inputs.pressures, float(supply['pressure'] if inputs.supply is None else inputs.supply),
                          float(supply['return_pressure']))
        kernels.compare_flows(self._witnesses, self._cylinders, oil, position, np.nan_to_num(inputs.command), dt,
                              SMOOTHING)
        findings = [] if self._wrong < WRONG_COMMANDS else [Finding('command_suspect', self._worst)]
        if self._since >= SETTLING:
            findings += [finding for w in self._witnesses.records if (finding := self._judge(w)) is not None]
        return findings

    def restrain(self, command, inputs, last):
        """Change commands (actuators,) of valves for a speed that the last of the `Inputs` do not explain.

        last  (actuators,) the commands before
        """
        if (not self.required or type(command) is not np.ndarray or command.shape != (len(self._law.tiers),)
                or command.dtype != float or not np.isfinite(command).all()):
            return      # it does not pass the gate
        position = self._motion.positions(inputs.checks.x)
        further, self._time = inputs.time != self._time, inputs.time
        speed, stiffness = self._commanded(command, inputs, position)
        desired, explained_low, explained_high = self._explained(position, stiffness)
        low, high = desired - explained_low - self._off, desired + explained_high + self._off
        off = np.maximum(speed - high, low - speed) / self._off
        i = int(off.argmax())
        if off[i] <= 0.0:
            self._wrong = 0.0
            return
        self._wrong += further * self._period * min(off[i], GROSS)
        rows = self._witnesses.records['actuator']
        self._worst = (f'the valve of {self._names[rows[i]]} is opened for {1e3 * speed[i]:.3g} mm/s; expected '
                       f'{1e3 * low[i]:.3g} to {1e3 * high[i]:.3g} by reference and errors')
        given, wrong, begin = command[rows], off > 0.0, np.nan_to_num(last[rows])
        before, _ = self._commanded(np.nan_to_num(last), inputs, position)
        begin = np.where((before >= low) & (before <= high), begin, 0.0)
        least, most = np.zeros(len(rows)), np.ones(len(rows))       # shares of the way to the given command
        for _ in range(HALVINGS):
            half = 0.5 * (least + most)
            command[rows] = np.where(wrong, begin + half * (given - begin), given)
            speed, _ = self._commanded(command, inputs, position)
            within = (speed >= low) & (speed <= high)
            least, most = np.where(within, half, least), np.where(within, most, half)
        command[rows] = np.where(wrong, begin + least * (given - begin), given)

    def _commanded(self, command, inputs, position):
        """Return (speeds [m/s], stiffnesses [N/m]) (rows,) for the commands of valves."""
        supply, records = self._law.supply[0], self._witnesses.records.copy()
        oil = kernels.Oil(inputs.pressures, float(supply['pressure'] if inputs.supply is None else inputs.supply),
                          float(supply['return_pressure']))
        kernels.compare_flows(kernels.Witnesses(records, self._witnesses.fluid.copy()), self._cylinders, oil, position,
                              command, 0.0, SMOOTHING)
        return records['commanded'], records['stiffness']

    def _explained(self, position, stiffness):
        """Return speeds (rows,) of the reference, and by how much less and more than that commands may be for."""
        rows, (x, xd, _) = self._witnesses.records['actuator'], self._law.desired
        desired = self._motion.rates(x, xd)[rows]
        error = self._motion.positions(x)[rows] - position[rows]
        # oil is compressed, too: for a force that is lacking, and where that of the model changes, as with friction
        lacking = -self._law.force_residuals[rows] / stiffness
        efforts = self._law.predicted_efforts[rows]
        changing = np.abs(efforts - self._efforts) / (self._period * stiffness)
        self._efforts = efforts
        slack = SLACK * np.abs(desired) + CHANGE * changing
        return (desired, slack - LOOP_GAIN * (np.minimum(error, 0.0) + np.minimum(lacking, 0.0)),
                slack + LOOP_GAIN * (np.maximum(error, 0.0) + np.maximum(lacking, 0.0)))

    def _judge(self, w):
        """Return the `Finding` of a cylinder, None where it moves as its oil does."""
        way = w['way'] + PRIOR
        rate, rate_a, rate_b = (w['rate'], w['rate_a'] * way / max(w['way_a'] + PRIOR, PRIOR),
                                w['rate_b'] * way / max(w['way_b'] + PRIOR, PRIOR))
        share = self._share * PRIOR / way + SCATTER
        allowed = self._residual + share * max(abs(rate), abs(rate_a), abs(rate_b))
        off_a, off_b = rate_a - rate, rate_b - rate
        if max(abs(off_a), abs(off_b)) <= allowed:
            return None
        both = min(off_a, off_b) > allowed or max(off_a, off_b) < -allowed
        return Finding('flow_residual' if both else 'flow_suspect',
                       f'{self._names[w["actuator"]]} moves at {1e3 * rate:.3g} mm/s, by the oil of chamber A at '
                       f'{1e3 * rate_a:.3g}, of chamber B at {1e3 * rate_b:.3g}; expected within {1e3 * allowed:.3g}')


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
        self._allowed = np.full(len(law.tiers), np.inf)
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
        share = np.abs(residuals) / self._allowed
        i = int(share.argmax())
        self._off = self._off + 1 if share[i] > 1.0 else 0
        if self._off < IN_A_ROW:
            return ()
        return (Finding('force_residual' if share[i] > 2.0 else 'force_suspect',
                        f'the piston of {self._names[i]} pushes {residuals[i] / 1e3:.3g} kN more than the model '
                        f'expects; at most {self._allowed[i] / 1e3:.3g}'),)
