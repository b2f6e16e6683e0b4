"""What an output must never be: judged from outside, cycle by cycle, with nothing taken from the output gate.

The rules are those of the declaration and of the machine: a command is there, finite, in range, in rate and of its
cycle; without a release by an operator nothing moves; the safe output is the declared one; SAFE is left by a reset
only.
"""

import math
from typing import NamedTuple

import numpy as np

from ...control.safety.fault_table import State

MOVING = State.RUN, State.DEGRADED
AT_SAFE_OUTPUT = State.STANDBY, State.SAFE
ROUNDING = 1e-9             # relative
SWING = 0.1                 # share of the rated speed with which what is elastic may swing meanwhile
STILL = 0.02                # share of the rated speed that counts as standing still
FASTER = 1.5                # times its speed of before that a machine may have once it is to stop
HOLDING = 0.1               # share of the limit by which a safe effort may be off what holds the load


class Cycle(NamedTuple):
    """What one control cycle gave, and what the machine did."""

    now: int      # ns on the steady clock
    command: np.ndarray | None      # (actuators,), NaN where one is left out; None where nothing was given
    stamp: int      # ns that the output carries
    expected_stamp: int      # ns that it should carry
    state: State
    valid: bool
    position: np.ndarray      # (actuators,) true ones [m, rad]
    speed: np.ndarray      # (actuators,) true ones [m/s, rad/s]
    holding: np.ndarray      # (actuators,) commands that hold the load where the machine is


class Judge:
    """Collects what is unsafe in a sequence of cycles.

    declaration  `SafetyDeclaration`
    rated        (actuators,) speeds [m/s, rad/s] that count as full
    period       s

    Tell it what an operator was granted: `was_activated`, `was_enabled`, `was_reset`, `took_reference`.
    """

    def __init__(self, declaration, rated, period):
        self._declared, self._period = declaration, period
        self._rated = np.asarray(rated, dtype=float)
        self._before = None         # the last Cycle
        self._since = None          # ns at which the present state began
        self._entry_speed = np.zeros(len(declaration.actuators))    # fastest shortly before it began
        self._recent = []           # speeds of the last cycles
        self._active = self._enabled = self._referenced = self._reset = False
        self.lied_to = False        # whether sensors or the law were spoilt so that the machine moves wrongly
        self.fastest = 0.0          # share of the rated speed, the worst outside of RUN and DEGRADED
        self.cycles = 0
        self.findings = {}          # kind -> [texts]
        self.unsafe = 0             # outputs with at least one finding

    # what an operator was granted

    def was_activated(self, active=True):
        """From here on there must, or need not, be outputs."""
        self._active = active

    def was_enabled(self):
        self._enabled, self._referenced = True, False

    def was_reset(self):
        self._reset, self._enabled, self._referenced = True, False, False

    def took_reference(self):
        self._referenced = True

    # cycles

    def look(self, cycle):
        """Judge one cycle; how many things are wrong with it."""
        found = len(self._texts())
        self.cycles += 1
        self._follow(cycle)
        if cycle.command is None:
            if self._active:
                self._find('nothing published', cycle, 'active, but no output')
        else:
            self._judge_values(cycle)
            self._judge_rate(cycle)
            self._judge_state(cycle)
        self._judge_motion(cycle)
        self._before = cycle
        wrong = len(self._texts()) - found
        self.unsafe += bool(wrong)
        return wrong

    def _texts(self):
        return [text for texts in self.findings.values() for text in texts]

    def _find(self, kind, cycle, text):
        texts = self.findings.setdefault(kind, [])
        texts.append(f'{cycle.state.name}, {cycle.now * 1e-9:.3f} s: {text}')

    def _follow(self, cycle):
        """Note when the state changed, and how fast the machine was until then."""
        before = self._before
        if before is None or before.state != cycle.state:
            self._since = cycle.now
            self._entry_speed = np.max(np.abs([*self._recent, cycle.speed]), axis=0)
        self._recent = [*self._recent[-round(0.05 / self._period):], cycle.speed]
        if before is not None and before.state == State.SAFE and cycle.state != State.SAFE and not self._reset:
            self._find('SAFE left without a reset', cycle, f'to {cycle.state.name}')
        if cycle.state in (State.SAFE, State.STOPPING):
            self._enabled = self._referenced = False
        if cycle.state == State.SAFE:
            self._reset = False

    def _judge_values(self, cycle):
        names, limit = self._declared.actuators, self._declared.command_limit
        if cycle.command.shape != (len(names),):
            self._find('wrong length', cycle, f'{cycle.command.shape}')
            return
        for name, value, most, kind in zip(names, cycle.command, limit, self._declared.safe_kind):
            if math.isnan(value):
                if cycle.state not in AT_SAFE_OUTPUT or kind not in ('brake', 'gravity'):
                    self._find('not finite', cycle, f'{name} is NaN, its safe output {kind}')
            elif math.isinf(value):
                self._find('not finite', cycle, f'{name} is {value}')
            elif abs(value) > most * (1.0 + ROUNDING):
                self._find('out of range', cycle, f'{name} is {value:.6g}, at most {most:.6g}')
        if cycle.stamp != cycle.expected_stamp:
            self._find('stamp of another cycle', cycle, f'{(cycle.stamp - cycle.expected_stamp) * 1e-6:.3f} ms off')

    def _judge_rate(self, cycle):
        """The safe output may come at once; every other command comes from the one before at its declared rate."""
        before = self._before
        if before is None or before.command is None or cycle.state in AT_SAFE_OUTPUT \
                or before.command.shape != cycle.command.shape:
            return
        seconds = min(max((cycle.now - before.now) * 1e-9, 0.5 * self._period), 2.0 * self._period)
        most = self._declared.command_rate * seconds * (1.0 + 1e-6)
        for name, value, last, step in zip(self._declared.actuators, cycle.command, before.command, most):
            if math.isfinite(value) and math.isfinite(last) and abs(value - last) > step + ROUNDING * abs(last):
                self._find('too fast a change', cycle, f'{name} from {last:.6g} to {value:.6g} in '
                           f'{seconds * 1e3:.2f} ms, at most by {step:.6g}')

    def _judge_state(self, cycle):
        state = cycle.state
        if state in AT_SAFE_OUTPUT:
            if cycle.valid:
                self._find('valid at the safe output', cycle, '')
            self._judge_safe_output(cycle)
        if state in (*MOVING, State.HOLD) and not self._enabled:
            self._find('enabled by nobody', cycle, '')
        if state in MOVING and not self._referenced:
            self._find('moves without a reference', cycle, 'none was accepted since it was enabled')

    def _judge_safe_output(self, cycle):
        d = self._declared
        for i, (name, kind) in enumerate(zip(d.actuators, d.safe_kind)):
            value = float(cycle.command[i])
            if kind == 'neutral':
                right = value == 0.0 or self._closes(cycle, i, value)
            elif kind == 'number':
                right = value == d.safe_value[i]
            elif kind == 'brake':
                right = math.isnan(value)
            else:
                right = math.isnan(value) or abs(value - cycle.holding[i]) <= HOLDING * d.command_limit[i]
            if not right:
                self._find('wrong safe output', cycle, f'{name} is {value:.6g}, declared {kind}')

    def _closes(self, cycle, i, value):
        """Whether a command goes back to neutral from that before, within the time of a stop."""
        before = self._before
        return (cycle.state == State.SAFE and before is not None and before.command is not None
                and before.command[i] * value > 0.0 and abs(value) <= abs(before.command[i])
                and (cycle.now - self._since) * 1e-9 <= self._declared.stop_time)

    def _judge_motion(self, cycle):
        """The machine itself comes to rest in time, and gets no faster; but where it is lied to, it believes that."""
        if cycle.state in MOVING or self._before is None:
            return
        self.fastest = max(self.fastest, float(np.max(np.abs(cycle.speed) / self._rated)))
        still = STILL * self._rated
        lie = self._declared.plausibility.velocity_residual if cycle.state == State.HOLD else 0.0
        if not self.lied_to or cycle.state in AT_SAFE_OUTPUT:
            for i in np.flatnonzero(np.abs(cycle.speed) > FASTER * self._entry_speed + SWING * self._rated + lie):
                self._find('speeds up', cycle, f'{self._declared.actuators[i]} at {cycle.speed[i]:.4g}, at most '
                           f'{self._entry_speed[i]:.4g} before')
        # a moment more than the stop may take, in which what is elastic comes to rest
        if (cycle.now - self._since) * 1e-9 > self._declared.stop_time + 0.5:
            for i in np.flatnonzero(np.abs(cycle.speed) > still + lie):
                self._find('does not stand still', cycle, f'{self._declared.actuators[i]} at {cycle.speed[i]:.4g}')

    def summary(self):
        """{kind: (how many, first text)}."""
        return {kind: (len(texts), texts[0]) for kind, texts in self.findings.items()}
