"""Measured pressures: their stamps, their age, and whether they are possible."""

import math

import numpy as np

from ...kernels.control import pressure_plausibility as kernels
from ...kernels.control.plausibility import MAX_SPEED_RATIO
from ...kernels.control.valve_inversion import MIN_CHAMBER_VOLUME_M3
from ...kernels.hydraulics.equations import ATMOSPHERIC_PRESSURE_PA
from ...model.parameters.hydraulics import VALVE
from ...model.units import BAR
from .check import COUNTED, RAMPED, REJECTED, STOP_OPEN_LOOP, Check, Finding, Result, Row, warning
from .clock import ORDER, MeasuredInput
from .state import IN_A_ROW

HIGHEST = 1.25              # of relief and supply pressure
SUPPLY_CHANGE = 0.1         # s in which a pump of unlimited flow may lose its pressure
SPOOL_TIME = 0.01           # s in which a spool follows a command to a smaller opening
JUMP, JUMP_RATE = 0.05, 2.5             # of the supply's pressure, and per s since the last message, by which one
                                        # is believed; sound cranes and excavators change by 0.036 in 0.01 s
SPEED_MARGIN = 0.2          # of its rated speed, by which a rod may be faster than measured


class PressureCheck(Check):
    """Whether pressures may be used, and whether they are recent; judged only where the law needs them.

    Possible is a pressure from vacuum to a quarter above relief and supply, which changes no faster than its chamber is
    filled by its valve, as open as it was commanded to be, and by its rod, as fast as it was measured to be. A jump
    counts from the second message on: one wrong message moves no valve.
    """

    rows = (
        Row('F01', 'pressures_silent', STOP_OPEN_LOOP, 'no pressures for the timeout, where the law needs them',
            RAMPED, 1, 0.020, 'stopping'),
        warning('F05', 'pressures_not_finite', 'NaN or infinity in pressures, or another number of them', REJECTED),
        Row('F37', 'pressure_impossible', STOP_OPEN_LOOP, 'pressures beyond vacuum, relief and supply, that change '
            'faster than oil flows, or jump to and fro, three in a row', RAMPED, 4, event=True),
        Row('F37', 'pressure_frozen', STOP_OPEN_LOOP, 'a pressure that is bit-identical while the other one of its '
            'cylinder changes', RAMPED, 1, 0.5, event=True),
    )

    def __init__(self, config, law):
        declaration = config.declaration
        self.required = law.needs_pressures
        self.input = MeasuredInput('pressures', declaration.timeouts, declaration.plausibility.clock_skew_ns,
                                   config.period)
        self.impossible = 0             # messages in a row
        self._freeze, self._frozen = declaration.plausibility.freeze_ns, -1     # ns; port that shows one value
        if self.required:
            self._sensors, self._names = _sensors(config, law)
            self._supply, self._setting = law.supply, float(law.supply['pressure'][0])
            axis = law.cylinders['axis']
            self._rates = kernels.make_pressure_rates(
                law.cylinders, [law.interfaces[i] == VALVE for i in axis],
                SPEED_MARGIN * np.array(config.machine.limits.velocity, dtype=float)[axis],
                self._sensors['rate'][:-1].reshape(-1, 2), max(1.0 - config.period / SPOOL_TIME, 0.0))

    def follow(self, inputs):
        """Let pressures change as fast as the last commands and the measured motion of these `CheckInputs` let them."""
        if not self.required or inputs.x is None:
            return
        kernels.set_pressure_rates(self._rates, self._sensors, self._supply, inputs.command,
                                   inputs.positions, inputs.rates)

    def take(self, stamp, ros_now, clock, values, supply, trusting=False):
        """Accept pressures and return None, or return the `Finding` for which they are rejected.

        stamp, ros_now  ns on the clock of stamps
        clock           ns on the clock of ages
        values          (cylinders, 2) chambers A, B [Pa gauge]
        supply          Pa gauge, or None
        trusting        whether a lasting step is taken for true, as while nothing commands the machine
        """
        refused = self.input.refuse(stamp, ros_now)
        if refused:
            kind, text = refused
            if kind is not ORDER:
                return Finding('state_stale', text)
            return Finding('stamp_order', text, demand=None if self.input.in_disorder >= IN_A_ROW else COUNTED)
        finding = self._judge(stamp, values, supply, trusting)
        if finding is None:
            self.input.accept(stamp, ros_now, clock)
        return finding

    def _judge(self, stamp, values, supply, trusting):
        """Return the `Finding` of values that cannot be, None where they can; those are kept."""
        verdict, i = kernels.POSSIBLE, -1
        if self.required:
            expected = len(self._sensors) // 2, 2
            if values.shape != expected:
                return Finding('pressures_not_finite', f'pressures {values.shape}: expected {expected}')
            before = 0 if trusting and self.impossible >= IN_A_ROW else self.input.stamp
            supply = self._setting if supply is None else float(supply)
            verdict, i = kernels.judge_pressures(self._sensors, values, supply, stamp, before, self._freeze)
        elif not math.isfinite(values.sum() + (0.0 if supply is None else supply)):
            verdict = kernels.NOT_FINITE
        if verdict == kernels.NOT_FINITE:
            return Finding('pressures_not_finite', 'a pressure is not finite')
        if verdict == kernels.POSSIBLE:
            self.impossible, self._frozen = 0, i
            return None
        self.impossible += 1
        sensor, value = self._sensors[i], (*values.ravel(), supply)[i]
        text = (f'{self._names[i]} is {value / BAR:.4g} bar: expected {sensor["low"] / BAR:.4g} to '
                f'{sensor["high"] / BAR:.4g} bar' if verdict == kernels.OUT_OF_RANGE else
                f'{self._names[i]} went from {sensor["value"] / BAR:.4g} to {value / BAR:.4g} bar at once'
                + ', in this message alone so far' * (verdict == kernels.UNCONFIRMED))
        return Finding('pressure_impossible', text, demand=None if self.impossible >= IN_A_ROW else COUNTED)

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if self.input.silent(inputs.clock):
            return (Finding('pressures_silent', self.input.silence(inputs.clock), Result.STALE),)
        i = self._frozen
        if i >= 0 and inputs.under_law:
            value, still = self._sensors['value'][i], (self.input.stamp - self._sensors['changed'][i]) / 1e6
            return (Finding('pressure_frozen', f'{self._names[i]} stays at {value / BAR:.6g} bar for '
                            f'{still:.0f} ms while the other one of its cylinder changes'),)
        return ()

    def rebase(self, jump):
        """As `Check.rebase`."""
        self.input.rebase(jump)
        if self.required:
            changed = self._sensors['changed']
            changed[changed != 0] += jump


def _sensors(config, law):
    """(sensors, names) of ports A and B of each cylinder, then of the supply."""
    cylinders, supply, actuators = law.cylinders, law.supply[0], config.machine.actuators
    step = config.declaration.plausibility.pressure_step
    rated = config.machine.limits.velocity
    setting, sensors = float(supply['pressure']), np.zeros(2 * len(cylinders) + 1, kernels.PRESSURE_SENSOR)
    names = [f'{actuators[c["axis"]]}, chamber {port}' for c in cylinders for port in 'AB'] + ['the supply']
    sensors['step'], sensors['low'] = step, -ATMOSPHERIC_PRESSURE_PA - step
    sensors['jump'], sensors['jump_rate'], sensors['unconfirmed'] = step + JUMP * setting, JUMP_RATE * setting, math.nan
    flow = 0.0
    for k, c in enumerate(cylinders):
        relief = float(c['relief'])
        # without relief valves a rod that is pushed compresses chamber B by the ratio of the areas
        most = relief if math.isfinite(relief) else setting * float(c['area_a'] / min(c['area_a'], c['area_b']))
        through = float(c['gain'].max()) * math.sqrt(max(most, setting))
        flow += through
        for port, (area, volume) in enumerate(((c['area_a'], c['dead_a']), (c['area_b'], c['dead_b']))):
            s = sensors[2 * k + port]
            s['high'] = HIGHEST * max(most, setting) + step
            s['rate'] = c['bulk'] / max(volume, MIN_CHAMBER_VOLUME_M3) * (
                through + MAX_SPEED_RATIO * area * rated[c['axis']])
    last = sensors[-1]
    last['high'] = HIGHEST * setting + step
    last['rate'] = ((flow + float(supply['flow'])) / float(supply['capacity']) if supply['limited'] else
                    setting / SUPPLY_CHANGE)
    return sensors, names
