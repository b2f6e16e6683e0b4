"""Plausibility of a measured state: stamp, age, jump, rate, frozen sensor, loops."""

import math
from functools import partial

import numpy as np

from ...kernels.control import plausibility as kernels
from ...kernels.runtime.buffer import pack, views
from ...model.errors import PsdynError
from ...model.troubleshooting import NOT_RECEIVED
from ...model.units import SECOND
from .check import (
    AT_ONCE,
    COUNTED,
    DEGRADE,
    RAMPED,
    REDUCED,
    REJECTED,
    SAFE_OPEN_LOOP,
    STOP_OPEN_LOOP,
    Check,
    Finding,
    Row,
    When,
    warning,
)
from .clock import FUTURE, OLD, ORDER, UNSTAMPED, MeasuredInput

RISE = 0.05             # s in which no actuator gets to its rated speed
SENSOR_TRAVEL = 0.005   # m or rad that one sensor of a loop moves while another one stands still
WRONG_BRANCH = 0.1      # rad or m between a measured joint and that of the declared assembly mode

# what is found: conditions of the fault table
MALFORMED, NOT_FINITE, JUMP, FROZEN, ORDERED = (
    'state_malformed', 'state_not_finite', 'state_jump', 'state_frozen', 'stamp_order')
SUSPECT_VELOCITY, VELOCITY, SUSPECT_CLOSURE, CLOSURE, BRANCH = (
    'velocity_suspect', 'velocity_residual', 'closure_suspect', 'closure_residual', 'branch_flip')
OF_STAMPS = {UNSTAMPED: 'state_stale', OLD: 'state_stale', FUTURE: 'state_future', ORDER: ORDERED}
COASTING_TIME = 0.5     # s for which a stop may go on at its speed, beyond what its deceleration takes
SLACK = 0.005           # m or rad within which a position is the same
LAG = 0.5               # of the window, by which velocities may lag behind positions
VELOCITY_STEPS = 2.0    # of the allowed disagreement, by which a velocity may change at once
FROZEN_TRAVEL = 2.0     # times the travel that friction explains, after which a frozen position counts again
IN_A_ROW = 3            # jumps, and stamps out of order, that are a fault and not just a bad message


class StateChecks(Check):
    """The checks of one measured state after another, and the last accepted one.

    `findings` has the `Finding`s of the last state, accepted or not; what is no fault yet is counted.
    """

    rows = (
        warning('F02', 'state_stale', 'stamp zero, or too old', REJECTED),
        warning('F03', 'state_future', 'stamp later than the clock and its skew', REJECTED),
        Row('F04', 'stamp_order', DEGRADE, 'stamps not later than the one before, three in a row', REDUCED, 4,
            event=True),
        warning('F05', 'state_not_finite', 'NaN or infinity in a state', REJECTED),
        warning('F06', 'state_malformed', 'joints missing, arrays of another length, positions of no pose', REJECTED),
        Row('F08', 'state_jump', STOP_OPEN_LOOP, 'positions farther than velocities explain, three in a row', RAMPED, 4,
            event=True),
        Row('F09', 'state_frozen', STOP_OPEN_LOOP, 'a position that is bit-identical while its reference moves farther '
            'than friction explains, or after it was noisy at rest', RAMPED, 1, timeout='freeze_bound', event=True),
        warning('F11', 'velocity_suspect', 'positions and velocities differ by half of what is allowed', 'is reported',
                bound_s=0.05, timeout='velocity_window'),
        Row('F11', 'velocity_residual', STOP_OPEN_LOOP, 'positions and velocities disagree, or drift apart in a '
            'quarter of a second', RAMPED, 1, 0.05, 'velocity_window', event=True),
        warning('F12', 'closure_suspect', 'redundant joints differ by half of what is allowed', 'is reported'),
        Row('F12', 'closure_residual', STOP_OPEN_LOOP, 'redundant joints of a loop disagree', RAMPED, event=True),
        Row('F12', 'branch_flip', SAFE_OPEN_LOOP, 'a loop in another assembly mode than at the start', AT_ONCE,
            event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        manipulator, declaration, period = config.machine, config.declaration, config.period
        self._names, self._dof = manipulator.coordinates, manipulator.dof
        self._manipulator, self._declared = manipulator, declaration.plausibility
        self.input = MeasuredInput('state', declaration.timeouts, declaration.plausibility.clock_skew_ns, period)
        self._longest_gap = declaration.timeouts.safe_ns
        self.x = self.xd = None         # (dof,) last accepted
        self.jumps = 0                  # in a row
        self.rejected = 0
        self.at_stop = False            # whether some coordinate is within the margin of an end stop
        self.residual = 0.0             # m, of the loops at the last state
        self._anchor = None             # (x, how far each may be from it) before a step that lasts; None: none did
        self._deceleration = declaration.of_coordinates(manipulator.coordinates, declaration.deceleration)
        self.findings = []
        self.commands_received = True   # whether somebody does: the text on a machine that stands still depends on it
        room = math.ceil(2.0 * self._declared.velocity_window / period) + 4
        history = pack(kernels.History(*_records(manipulator, declaration), np.zeros(room, np.int64),
                                       np.zeros((room, 2, manipulator.dof))))
        self._channels, self._memory, self._stamps, _ = views(history, kernels.TYPES)
        self.encoder_steps = self._channels['step']     # (dof,) m, rad; least change of each position so far, 0: none
        self._going_on = np.zeros((5, self._dof))
        self._going_on[kernels.MOST_ADDED] = FROZEN_TRAVEL * self._channels['sticking']
        # twice as many states may come as the period says
        self._path = np.full((2 * max(round(kernels.RATE_S / period), 1) + 1, 1 + self._dof), np.nan)
        self._estimated_at = 0          # ns, stamp of the last state with an estimate beside a reference; 0: none
        # (verdict, bits, coordinate) of x, xd, stamp, desired_rate
        self._judge = partial(kernels.judge_state, history)
        self._sensors = None

    def measure(self, joints):
        """Say which joints (m,) the `positions` of `take` are of; those of one loop are held against each other."""
        self._sensors = _Sensors(self._manipulator, tuple(joints), self._declared.freeze_ns)

    def restart(self):
        """As `Check.restart`."""
        self._estimated_at = 0

    def forget(self):
        """Believe the next state wherever it is."""
        self.x = self.xd = None
        self.jumps = 0
        self.at_stop = False
        self._anchor = None
        self._forget_motion()
        self.input.forget()

    def accept_position(self):
        """Take the machine to be where it is measured, whatever steps brought it there."""
        self._anchor = None

    def estimate(self, desired):
        """Return the last accepted x, xd (dof,) as a law may act on them, see `go_on`.

        desired (3, dof): reference at the state before; None: none is followed
        """
        stamp, last, estimate = self.input.stamp, self._estimated_at, np.empty((2, self._dof))
        self._estimated_at = 0 if desired is None else stamp        # what was added to a reference ends with it
        dt = 1e-9 * (stamp - last) if last else math.nan
        goes_on = other = False
        if desired is not None:
            goes_on, other = kernels.go_on(self._going_on, self._path, self.x, self.xd,
                                           np.array(desired, dtype=float), dt, estimate)
        return estimate[0] if goes_on else self.x, estimate[1] if goes_on or other else self.xd

    def displaced(self):
        """[(coordinate, before, now)] that are off since a step that lasts, though nothing moved the machine."""
        if self._anchor is None:
            return []
        x, reach = self._anchor
        return [(self._names[i], float(x[i]), float(self.x[i])) for i in np.flatnonzero(np.abs(self.x - x) > reach)]

    def rebase(self, jump):
        """The clock of the stamps jumped by so many ns."""
        self.input.rebase(jump)
        self._stamps += jump
        if self._memory['stamp'][0]:
            self._memory['stamp'] += jump
        for field in ('changed', 'driven', 'measured'):
            stamps = self._channels[field]
            stamps[stamps != 0] += jump
        self._estimated_at += jump if self._estimated_at else 0
        if self._sensors:
            self._sensors.forget()

    def disagreement(self):
        """Largest share of the allowed disagreement between positions and velocities, 1 at the limit."""
        return float(self._channels['disagreement'].max()) / self._declared.velocity_residual

    def evaluate(self, inputs):
        """As `Check.evaluate`; `take` has judged the state. A rejected state lets no condition pass."""
        return self.findings

    def take(self, measured, ros_now, clock, desired_rate, trusting):
        """Accept a `MeasuredState`, whose arrays are kept, and return '', or return why it is rejected.

        ros_now       ns on the clock of stamps
        clock         ns on the clock of ages
        desired_rate  (dof,) of the reference
        trusting      whether a lasting step is where the machine is, as while nothing commands it
        """
        self.findings.clear()
        stamp, x, xd, residual, positions = measured[:5]
        if x.shape != (self._dof,) or xd.shape != (self._dof,):
            return self._reject(MALFORMED, True, f'x {x.shape}, xd {xd.shape}: expected {(self._dof,)} of both')
        refused = self.input.refuse(stamp, ros_now)
        if refused:
            kind, text = refused
            return self._reject(OF_STAMPS[kind], kind != ORDER or self.input.in_disorder >= IN_A_ROW, text)
        if self.jumps >= IN_A_ROW and not trusting:
            return self._reject(JUMP, True, 'positions have jumped: none is believed while the machine moves')
        if trusting and (self.jumps >= IN_A_ROW or stamp - self.input.stamp > self._longest_gap):
            self._follow_step()
        if trusting:        # no law follows what drifts; a sensor that has recovered is believed at once
            self._channels['drift'] = 0.0
        verdict, bits, i = self._judge(x, xd, stamp, desired_rate)
        if verdict == kernels.NON_FINITE:
            return self._reject(NOT_FINITE, True, f'{self._names[i]} is not finite')
        if verdict == kernels.JUMPED:
            self.jumps += 1
            if not trusting or self.jumps < IN_A_ROW:
                c = self._channels[i]
                return self._reject(JUMP, self.jumps >= IN_A_ROW, f'{self._names[i]} jumped from {c["x"]:.5g} to '
                                    f'{x[i]:.5g}, its velocity from {c["xd"]:.3g} to {xd[i]:.3g}')
            self._follow_step()
            verdict, bits, i = self._judge(x, xd, stamp, desired_rate)
        self.jumps = 0
        self.x, self.xd = x, xd
        if self._anchor is not None and (np.abs(x - self._anchor[0]) <= self._anchor[1]).all():
            self._anchor = None
        self.input.accept(stamp, ros_now, clock)
        self.at_stop = bits & kernels.AT_STOP != 0
        if bits & ~kernels.AT_STOP:
            self._describe(bits)
        self.residual = residual
        if not residual <= 0.5 * self._declared.closure_tolerance:
            fault = not residual <= self._declared.closure_tolerance
            self.findings.append(Finding(CLOSURE if fault else SUSPECT_CLOSURE,
                                         f'measured joints of a loop disagree by {residual * 1e3:.3g} mm'))
        if positions is not None and self._sensors is not None:
            try:
                self.findings.extend(self._sensors.findings(x, positions, stamp))
            except PsdynError as error:     # joints that fit no position of the machine
                return self._reject(CLOSURE, True, str(error))
        return ''

    def _follow_step(self):
        """Take the next state wherever it is, and remember where the machine was before it jumped."""
        if self._anchor is None and self.jumps >= IN_A_ROW and self.x is not None:
            speed = np.abs(self.xd)
            self._anchor = self.x, 0.5 * speed**2 / self._deceleration + COASTING_TIME * speed + SLACK
        self._forget_motion()

    def _forget_motion(self):
        self._memory['stamp'] = self._estimated_at = 0
        if self._sensors:
            self._sensors.forget()

    def _reject(self, name, fault, text):
        self.rejected += 1
        self.findings.append(Finding(name, text, demand=None if fault else COUNTED))
        return text

    def _describe(self, bits):
        """Add the findings of an accepted state that the bits stand for."""
        if bits & kernels.FROZEN:
            c = self._channels
            still = np.where(c['driven'] > 0, self._memory['stamp'] - np.maximum(c['changed'], c['driven']), 0)
            i = int(np.argmax(still))
            text = f'{self._names[i]} says {c["x"][i]:.6g} for {still[i] / 1e6:.0f} ms while it should move'
            self.findings.append(Finding(FROZEN, text if self.commands_received else
                                         NOT_RECEIVED.text.format(text=text)))
        if bits & kernels.QUIET:
            c = self._channels
            i = int(np.argmax(c['silent']))
            self.findings.append(Finding(FROZEN, f'{self._names[i]} says {c["x"][i]:.6g} in {c["silent"][i]} states, '
                                         'without its noise'))
        if bits & kernels.DRIFTS and not bits & kernels.DISAGREES:
            drift, most = 1e3 * self._channels['drift'], 1e3 * self._channels['drift_allowed']
            i = int(np.argmax(np.abs(drift) / most))
            self.findings.append(Finding(VELOCITY, f'{self._names[i]} is {drift[i]:.3g} mm or mrad from where its '
                                         f'velocities have brought it; at most {most[i]:.3g}'))
        if bits & (kernels.DISAGREES | kernels.WARNED):
            i = int(np.argmax(self._channels['disagreement']))
            most = self._channels['disagreement'][i]
            self.findings.append(Finding(
                VELOCITY if bits & kernels.DISAGREES else SUSPECT_VELOCITY,
                f'positions and velocities of {self._names[i]} disagree by {most:.3g} per second'))


class _Sensors:
    """Measured joints, more than needed, each beside what the state says of it.

    Either may stand still while the other one moves: then the sensor is stuck, or one of those that the state is from.
    A joint that hardly moves with its loop, as a barrel at the turn of its swing, is no reason for that.
    """

    def __init__(self, manipulator, joints, freeze_ns):
        m, count = manipulator, len(joints)
        self._joints, self._manipulator, self._freeze, self._handle = joints, m, freeze_ns, m.handle()
        self._handle.start_from_last()
        records = np.zeros(2 * count, kernels.SENSOR)
        records['module'] = np.tile(np.arange(count), 2)
        self._sensors = pack(kernels.Sensors(
            records, np.zeros((2 * count, 2 * count)), np.zeros(2 * count),
            np.array([m.joints.index(name) for name in joints]), np.zeros((3, len(m.joints))), np.zeros(m.dof)))
        self._records = views(self._sensors, kernels.SENSOR_TYPES)[0]

    def forget(self):
        self._records['changed'] = 0

    def findings(self, x, positions, stamp):
        """Return the `Finding`s for the positions (m,) measured beside x (dof,)."""
        count, handle = len(self._joints), self._handle
        stuck, i, off = kernels.compare_with_state(handle.tree, handle.loops, self._sensors, x, positions, stamp,
                                                   self._freeze, SENSOR_TRAVEL)
        if stuck == kernels.UNCLOSED:
            self._manipulator.joint_state(x)        # raises, and says which loop does not close
        if stuck == kernels.NON_FINITE:
            return [Finding(NOT_FINITE, 'a measured joint is not finite')]
        found = []
        if stuck >= 0:
            name, which = self._joints[stuck % count], 'it stands' if stuck < count else 'the others of its loop stand'
            found.append(Finding(FROZEN, f'{name} and the other measured joints of its loop move apart: {which} still'))
        if off > WRONG_BRANCH:
            found.append(Finding(BRANCH, f'{self._joints[i]} is {off:.3g} away from where the declared assembly mode '
                                 'has it'))
        return found


def _records(manipulator, declaration):
    """(channels, memory) of the kernels."""
    limits, p = manipulator.coordinate_limits, declaration.plausibility
    channels = np.zeros(manipulator.dof, kernels.CHANNEL)
    channels['lower'], channels['upper'], channels['speed'] = limits.lower, limits.upper, limits.velocity
    channels['margin'] = declaration.of_coordinates(manipulator.coordinates, declaration.soft_margin, 0.0)
    channels['sticking'] = declaration.of_coordinates(manipulator.coordinates, declaration.freeze_travel, 0.0)
    memory = np.zeros(1, kernels.MEMORY)
    memory['jump'], memory['rise'] = p.jump_margin, RISE
    memory['step'] = VELOCITY_STEPS * p.velocity_residual
    memory['freeze_time'], memory['freeze_speed'] = p.freeze_ns, p.freeze_speed
    memory['window'], memory['disagreement'] = round(p.velocity_window * SECOND), p.velocity_residual
    memory['lag'] = LAG * p.velocity_window
    return channels, memory
