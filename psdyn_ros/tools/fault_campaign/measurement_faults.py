"""Injections of what is measured: states and pressures."""

import numpy as np

from ...kernels.runtime.status import SINGULAR
from ...model.units import HOUR, MILLISECOND
from .injection import DRIVEN, RUN, STANDBY, UNDER_LAW, After, during, injection

# joint state

def _only(count, spoil):
    """`spoil` for so many messages, then what comes as it is."""
    left = [count]

    def spoilt(msg):
        left[0] -= 1
        return spoil(msg) if left[0] >= 0 else msg
    return spoilt


@injection('state_missed', states=(RUN,), after=After.ONCE)
def _some_missed(bench):
    # with three, jitter decides whether a cycle finds the last state three periods old
    yield from during(bench.spoilt(spoil_state=_only(int(bench.fault_rng.integers(4, 9)), lambda msg: None)))


@injection('state_silent')
def _no_states(bench):
    yield from during(bench.spoilt(spoil_state=lambda msg: None))


@injection('state_lost')
def _no_states_for_long(bench):
    yield from during(bench.spoilt(spoil_state=lambda msg: None))


@injection('state_silent', states=UNDER_LAW)
def _every_state_refused(bench):
    """What is refused does not make the input younger: the escalation goes on."""
    yield from during(bench.spoilt(spoil_state=lambda msg: msg._replace(x=msg.x * np.nan)))


def _spoilt_state(condition, name, spoil, **how):
    """Register a state that is refused, and leads to F01 when it lasts."""
    def bring(bench):
        yield from during(bench.spoilt(spoil_state=lambda msg: spoil(bench, msg)))
    injection(condition, name, **{'states': (*UNDER_LAW, STANDBY), **how})(bring)


_spoilt_state('state_stale', 'stamp_zero', lambda bench, msg: msg._replace(stamp=0))
_spoilt_state('state_stale', 'stamp_old', lambda bench, msg: msg._replace(stamp=msg.stamp - 25 * MILLISECOND))
_spoilt_state('state_future', 'stamp_ahead', lambda bench, msg: msg._replace(stamp=msg.stamp + 8 * MILLISECOND))
_spoilt_state('state_future', 'stamp_an_hour_ahead', lambda bench, msg: msg._replace(stamp=msg.stamp + HOUR))


def _one_not_finite(bench, msg):
    value, i = bench.fault_rng.choice([np.nan, np.inf, -np.inf]), bench.fault_rng.integers(msg.x.size)
    which = bench.fault_rng.choice(['x', 'xd'])
    spoilt = getattr(msg, which).copy()
    spoilt[i] = value
    return msg._replace(**{which: spoilt})


def _enormous(bench, msg):
    return msg._replace(x=msg.x + bench.fault_rng.choice([1e300, -1e300]))


_spoilt_state('state_not_finite', 'one_value_not_finite', _one_not_finite)
_spoilt_state('state_malformed', 'arrays_too_short', lambda bench, msg: msg._replace(x=msg.x[:-1]))


@injection('stamp_order', states=UNDER_LAW)
def _stamps_repeat(bench):
    last = []

    def frozen(msg):
        last.append(msg.stamp)
        return msg._replace(stamp=last[0])
    yield from during(bench.spoilt(spoil_state=frozen))


@injection('stamp_order', states=(RUN,), after=After.ONCE)
def _pairs_out_of_order(bench):
    """Messages overtake each other: three in a row are older than one that came before."""
    kept = []

    def disorder(msg):
        kept.append(msg)
        return None if len(kept) < 4 else [kept[3], *kept[:3]] if len(kept) == 4 else msg
    yield from during(bench.spoilt(spoil_state=disorder))


@injection('state_jump', states=DRIVEN)
def _a_step_that_lasts(bench):
    n = bench.plant.x.size
    i, size = bench.fault_rng.integers(n), bench.fault_rng.choice([-1.0, 1.0]) * bench.fault_rng.uniform(0.05, 0.5)
    step = size * np.eye(n)[i]
    yield from during(bench.spoilt(spoil_state=lambda msg: msg._replace(x=msg.x + step)))


@injection('state_jump', states=UNDER_LAW)
def _absurd_positions(bench):
    yield from during(bench.spoilt(spoil_state=lambda msg: _enormous(bench, msg)))


@injection('state_frozen', states=(RUN,), lies=True, after=After.ONCE)
def _one_position_frozen(bench):
    """Comes back slowly: after a step of a position enabling is rightly refused."""
    i, x = int(np.argmax(np.abs(bench.law.desired[1]))), bench.plant.x.copy()
    frozen, ended = np.arange(x.size) == i, []

    def freeze(msg):
        left = max(1.0 - 1e-9 * (bench.now - ended[0]), 0.0) if ended else 1.0
        return msg._replace(x=np.where(frozen, left * x + (1.0 - left) * msg.x, msg.x),
                            xd=np.where(frozen, 0.0, msg.xd))
    with bench.spoilt(spoil_state=freeze):
        yield
        ended.append(bench.now)
        bench.turns(1.0)


def _velocity_bias(share):
    def bring(bench):
        n = bench.plant.x.size
        i, sign = bench.fault_rng.integers(n), bench.fault_rng.choice([-1.0, 1.0])
        bias = np.eye(n)[i] * sign * share * bench.declaration.plausibility.velocity_residual
        yield from during(bench.spoilt(spoil_state=lambda msg: msg._replace(xd=msg.xd + bias)))
    return bring


injection('velocity_residual', 'velocities_off', states=UNDER_LAW, lies=True)(_velocity_bias(3.0))
injection('velocity_suspect', 'velocities_a_little_off', states=UNDER_LAW, lies=True)(_velocity_bias(0.75))


def _residual(share):
    def bring(bench):
        residual = share * bench.declaration.plausibility.closure_tolerance
        yield from during(bench.spoilt(spoil_state=lambda msg: msg._replace(residual=residual)))
    return bring


injection('closure_residual', 'loops_disagree')(_residual(1.5))
injection('closure_residual', 'residual_not_finite', states=UNDER_LAW)(_residual(np.nan))
injection('closure_suspect', 'loops_disagree_a_little', states=UNDER_LAW)(_residual(0.75))


@injection('branch_flip', states=UNDER_LAW)
def _another_assembly_mode(bench):
    m = bench.machine.manipulator
    joints = (next(name for name in m.joints if name not in m.coordinates), *m.coordinates)
    bench.core.inputs.state_check.measure(joints)
    columns = [m.joints.index(name) for name in joints]

    def measured(msg):
        positions = m.joint_state(msg.x)[1][columns]
        positions[0] = np.pi - positions[0]
        return msg._replace(positions=positions)
    yield from during(bench.spoilt(spoil_state=measured))


# pressures

@injection('pressures_silent', levels=('valve',))
def _no_pressures(bench):
    yield from during(bench.spoilt(spoil_pressures=lambda pressures: None))


@injection('pressures_not_finite', levels=('valve',), states=(*UNDER_LAW, STANDBY))
def _a_pressure_not_finite(bench):
    def spoil(pressures):
        values = pressures[0].copy()
        values.flat[bench.fault_rng.integers(values.size)] = bench.fault_rng.choice([np.nan, np.inf])
        return values, pressures[1]
    yield from during(bench.spoilt(spoil_pressures=spoil))


# passive joints

HANGING = {'levels': ('hanging',), 'states': (RUN,)}


@injection('passive_silent', **HANGING)
def _passive_joints_are_not_measured(bench):
    yield from during(bench.spoilt(spoil_state=lambda msg: msg._replace(passive=None)))


@injection('passive_jump', after=After.ONCE, **HANGING)
def _a_passive_joint_jumps(bench):
    off = bench.fault_rng.choice([-1.0, 1.0])
    yield from during(bench.spoilt(spoil_state=_only(1, lambda msg: msg._replace(passive=msg.passive + off))))


@injection('passive_imu', after=After.ONCE, **HANGING)
def _an_inertial_sensor_lies_on_its_side(bench):
    def spoil(msg):
        bench.core.take_imu('load', np.zeros(3), (9.81, 0.0, 0.0))
        return msg
    yield from during(bench.spoilt(spoil_state=_only(1, spoil)))


@injection('passive_unknown', after=After.ONCE, **HANGING)
def _the_load_stands_above_its_joints(bench):
    """After a gap of its states nothing is left to estimate from."""
    passive = bench.law.load.passive
    settle, passive._last = passive._settle, -np.inf

    def failing(x, iterations):
        passive._settle = settle
        return SINGULAR
    passive._settle = failing
    yield
