"""The sub-states of a controller: which of them is due, why, and what leads out of it."""

import math

from ...model.errors import PsdynError, UnknownNameError, did_you_mean
from ...model.troubleshooting import IN_SAFE, INACTIVE, STOP_IN_PROGRESS
from ...model.units import SECOND
from ..monitors.check import COUNTED, STOP_OPEN_LOOP, Result, State
from .fault_table import ROWS, TIMEOUTS

PASS = Result.PASS
SPARE = 3               # cycles beyond a timeout, for those that do not come at their time
NO_STATE = 'F18: no state was accepted yet'


class SafetyError(PsdynError):
    """Activation, enabling or reset is refused; the text names every reason."""


class _Condition:
    """What is known of one row of the table; `demand` and `text` are of the first failure since it was healthy."""

    __slots__ = ('row', 'asks', 'result', 'open', 'latched', 'acknowledged', 'good_since', 'demand', 'text', 'count')

    def __init__(self, row):
        self.row = row
        self.asks = row.demand or COUNTED
        self.result = PASS
        self.open = False               # failing, or in probation
        self.latched = False
        self.acknowledged = False       # of HOLD: a reference was accepted since it began to fail
        self.good_since = None          # ns at which it began to pass; None while it fails
        self.count = 0

    @property
    def reason(self):
        return f'{self.row.id}: {self.text or self.row.detects}'


class SafetyStates:
    """Judges all checks of a cycle together: `report` each, then `step`.

    declaration  `SafetyDeclaration`
    period       s, of the control cycle and of the states
    rows         of the fault table
    simulated    whether ages count simulated time, of which any number of cycles may see the same

    Times are ns of the steady clock (in lock-step: of simulated time); a time that went back counts as too long. Where
    the clock is slow, states are missed by the number of cycles without one.
    STOPPING and SAFE are never left by good news: only `reset` leads out of SAFE, to STANDBY, and from there only
    `enable` and a reference accepted after it to motion.
    """

    def __init__(self, declaration, period, rows=ROWS, simulated=False):
        timeouts = declaration.timeouts
        self._stopping = timeouts.stopping_ns
        self._stop_time = declaration.stop_time_ns
        self._probation = declaration.probation_ns
        self._conditions = {row.name: _Condition(row) for row in rows}
        self._reported = {row.name: self._conditions[row.name] for row in rows if row not in TIMEOUTS}
        limits = timeouts.degraded_misses * round(period * SECOND), timeouts.stopping_ns + 1, timeouts.safe_ns + 1
        most = [math.inf if simulated else math.ceil(limit / (period * SECOND)) + SPARE for limit in limits]
        self._timeouts = tuple((self._conditions[row.name], *both) for row, *both in zip(TIMEOUTS, limits, most))
        self._cycles = 0                # since the last accepted state
        self.outrun = False             # whether a timeout has passed by the cycles, and not by the clock
        self._unsettled = {}            # name -> _Condition that is open or latched, in the order in which they began
        self._arrival = None            # ns of the last accepted state
        self._rejected, self._rejection = 0, ''     # states since then, and why the last one was
        self._started = 0               # ns at which the stop began
        self._rest = False              # whether the stop has come to its end
        self._leaving = False           # whether it ends in inactivity
        self._moving = False            # whether a reference is followed
        self.state = State.STANDBY
        self.state_valid = True
        """Whether the measured state may be used for the stop, as of the last step."""
        self.enabled = False
        self.active = False

    @property
    def reasons(self):
        """{condition: 'F01: text'} of what keeps the state above RUN, or would."""
        return {name: one.reason for name, one in self._unsettled.items() if one.demand.state > State.RUN}

    def demanding(self, state):
        """[reason] of what asks for a state or a higher one; of SAFE also what stops first."""
        least = min(state, State.STOPPING)
        return [one.reason for one in self._unsettled.values() if one.demand.state >= least]

    @property
    def unsettled(self):
        """Whether a condition is unhealthy, or was and is latched; else it changes nothing to report what passes."""
        return bool(self._unsettled)

    def pass_others(self, now, names, failing):
        """Report PASS of the unsettled conditions among names that are not among those failing."""
        for name in [name for name in self._unsettled if name in names and name not in failing]:
            self.report(now, name, PASS)

    @property
    def flags(self):
        """{condition: whether it is unhealthy, or was and is latched} of the whole table."""
        return {name: name in self._unsettled for name in self._conditions}

    @property
    def counts(self):
        """{condition: how often it was reported other than passed} of the whole table."""
        return {name: one.count for name, one in self._conditions.items()}

    @property
    def results(self):
        """{condition: last `Result`} of the whole table."""
        return {name: one.result for name, one in self._conditions.items()}

    def state_accepted(self, now):
        """A measured state arrived at `now` and was accepted: the timeouts of F01 restart."""
        self._arrival, self._rejected, self._cycles = now, 0, 0

    def state_rejected(self, reason):
        """A measured state came and cannot be used."""
        self._rejected, self._rejection = self._rejected + 1, reason

    def _silence(self, now):
        """Say how old the last state is, and what became of those that came since."""
        since = f', {self._rejected} refused since: {self._rejection}' if self._rejected else ''
        return f'the last state is {(now - self._arrival) / 1e6:.1f} ms old{since}'

    def report(self, now, name, result, text='', demand=None):
        """Report the result of a check of this cycle.

        name: of a row of the table, but none of TIMEOUTS.  text: what was found, with figures.  demand: in the place of
        that of the table.
        """
        one = self._reported.get(name)
        if one is None:
            raise UnknownNameError(f"condition '{name}': none that is reported"
                                   f'{did_you_mean(name, self._reported)}')
        one.result = result
        if result != PASS:
            self._fail(one, text, one.asks if demand is None else demand)
        elif one.good_since is None:
            one.good_since = now

    def _fail(self, one, text, demand):
        one.count += 1
        if not (one.open or one.latched) or _severity(demand) > _severity(one.demand):
            one.demand, one.text = demand, text
        if one.good_since is not None:
            one.acknowledged = False
        one.open, one.good_since = True, None
        state = one.demand.state
        if state == State.SAFE and (self.active or one.row.event):
            one.latched = True
        elif state == State.STOPPING and (self.enabled or self.state == State.STOPPING):
            one.latched = True
        self._unsettled[one.row.name] = one

    def step(self, now):
        """Return the `State` of this cycle, after all reports."""
        self._escalate(now)
        worst = State.RUN
        hold = degraded = blind = False
        for one in list(self._unsettled.values()):
            self._settle(one, now)
            state = one.demand.state
            if one.latched:
                worst = max(worst, state)
                blind = blind or not one.demand.state_valid
            elif state == State.HOLD:
                hold = hold or not one.acknowledged
            elif state == State.DEGRADED:
                degraded = degraded or one.open
            if one.row.event and one.good_since is None:
                one.good_since = now        # over once it was reported
        stop = worst == State.STOPPING
        if worst == State.SAFE:
            self._end(State.SAFE)
        elif self.state == State.STOPPING:
            if self._rest or not 0 <= now - self._started < self._stop_time:
                self._end(State.SAFE if stop else State.STANDBY)
        elif self.enabled and stop:
            self._stop(now)
        elif self.enabled:
            self._moving = self._moving and not hold
            self.state = State.HOLD if not self._moving else State.DEGRADED if degraded else State.RUN
        self.state_valid = not blind
        return self.state

    def activate(self, now):
        """Begin to give the safe output; raises SafetyError with every reason against it."""
        self._refuse('activation', self._against(now))
        self.active = True

    def deactivate(self, now):
        """Stop, where something moves, then be inactive: `active` says when."""
        self.disable(now)
        if self.state == State.STOPPING:
            self._leaving = True
        else:
            self.active = False

    def enable(self, now):
        """Go from STANDBY to HOLD at the next step; raises SafetyError with every reason against it."""
        if self.enabled:
            return
        self._refuse('enabling', [] if self.active else [INACTIVE.text], self._against(now))
        self.enabled, self._moving = True, False

    def disable(self, now):
        """Stop, then STANDBY."""
        if self.enabled:
            self._stop(now)

    def reset(self, now, others=()):
        """Forget the faults that are gone: SAFE becomes STANDBY.  Raises SafetyError that names those that are not.

        others: further reasons against it.
        """
        present = [one.reason for one in self._unsettled.values() if one.open and one.demand.state >= State.STOPPING]
        self._refuse('reset', self._in_a_stop(), present, others)
        for name, one in list(self._unsettled.items()):
            one.latched = False
            if not one.open:
                del self._unsettled[name]
        if self.state == State.SAFE:
            self.state = State.STANDBY

    def reference_accepted(self, now):
        """A reference will be followed from the next step on; returns whether it may be, which takes `enabled`."""
        if self.enabled:
            self._moving = True
            for one in self._unsettled.values():
                one.acknowledged = True
        return self.enabled

    def reference_ended(self, now):
        """The reference is at its end, or was cancelled: from the next step on its last point is held."""
        self._moving = False

    def at_rest(self, now):
        """The stop has come to its end; it is over with the next step."""
        self._rest = True

    def _escalate(self, now):
        """Report the timeouts of F01."""
        if self._arrival is None:
            return
        age = now - self._arrival
        self._cycles += 1
        self.outrun = False
        for one, limit, cycles in self._timeouts:
            late = not 0 <= age < limit
            if late or self._cycles > cycles:
                one.result = Result.STALE
                self.outrun = not late
                # a ramp looks at no state: shut valves would stop the machine harder than it does
                ramped = late and self.state == State.STOPPING and not self.state_valid
                text = self._silence(now) + ('' if late else f' in {self._cycles} cycles')
                self._fail(one, text, STOP_OPEN_LOOP if ramped else one.asks)
            elif one.open:
                one.result = PASS
                if one.good_since is None:
                    one.good_since = now

    def _settle(self, one, now):
        """Close a condition that was good for its probation."""
        if one.open and one.good_since is not None:
            one.good_since = min(one.good_since, now)
            one.open = now - one.good_since < (self._probation if one.row.probation else 0)
        if not (one.open or one.latched):
            del self._unsettled[one.row.name]

    def _stop(self, now):
        self.state, self.enabled = State.STOPPING, False
        self._started, self._rest = now, False

    def _end(self, state):
        self.state, self.enabled = state, False
        if self._leaving:
            self._leaving, self.active = False, False

    def _against(self, now):
        """Return the reasons why nothing may begin."""
        reasons = self._in_a_stop()
        if self.state == State.SAFE:
            reasons.append(IN_SAFE.text)
        reasons += [one.reason for one in self._unsettled.values() if one.demand.state >= State.STOPPING]
        if self._arrival is None:
            reasons.append(NO_STATE)
        elif not 0 <= now - self._arrival <= self._stopping:
            reasons.append(f'F18: {self._silence(now)}')
        return reasons

    def _in_a_stop(self):
        return [STOP_IN_PROGRESS.text] if self.state == State.STOPPING else []

    @staticmethod
    def _refuse(what, *reasons):
        reasons = [reason for some in reasons for reason in some]
        if reasons:
            raise SafetyError(f'{what} is refused: {"; ".join(reasons)}')


def _severity(demand):
    return demand.state, not demand.state_valid
