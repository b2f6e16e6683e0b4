"""Injections of pressures, speeds and laws that contradict the model of the machine."""

from contextlib import contextmanager

import numpy as np

from .bench import PID
from .injection import DRIVEN, HOLD, RUN, STOPPING, After, during, injection

IMPOSSIBLE = 6e7            # Pa
CREEP = 0.05                # s in which a pressure goes off
VALVE = 'valve',
ON_VALVES, UNDER_PID = {'levels': VALVE, 'lies': True}, {'levels': (PID,), 'lies': True}


def _pressure(bench, change, cylinders):
    """Context with one pressure of these cylinders changed; change: function of (value, first value)."""
    at, first = 2 * int(bench.fault_rng.choice(cylinders)) + int(bench.fault_rng.integers(2)), []
    bench.beside = at ^ 1, bench.core.inputs.pressures.flat[at ^ 1]

    def spoil(pressures):
        values = np.array(pressures[0])
        first.append(values.flat[at])
        values.flat[at] = change(values.flat[at], first[0])
        return values, pressures[1]
    return bench.spoilt(spoil_pressures=spoil)


@injection('pressure_impossible', states=DRIVEN, after=After.ONCE, **ON_VALVES)
def _a_pressure_beyond_relief(bench):
    yield from during(_pressure(bench, lambda value, first: IMPOSSIBLE, len(bench.law.cylinders)))


def _the_other_one_moved(bench):
    """Whether the pressure beside the one that stays has changed by what tells it from a machine at rest."""
    port, before = bench.beside
    return abs(bench.core.inputs.pressures.flat[port] - before) > bench.declaration.plausibility.pressure_step


@injection('pressure_frozen', states=(RUN,), after=After.ONCE, onset=_the_other_one_moved, **ON_VALVES)
def _a_pressure_stays(bench):
    # of a cylinder at rest the other pressure may stay, too
    axes = bench.law.cylinders['axis']
    fastest = int(np.argmax(np.abs(bench.desired[1][axes]) / bench.machine.rated[axes]))
    yield from during(_pressure(bench, lambda value, first: first, [fastest]))


def _creeping(bench, change):
    """Pressures go off by change(values, share), and come back as slowly: a step would be faster than oil."""
    began, ended = bench.now, []

    def spoil(pressures):
        values = np.array(pressures[0])
        share = min(1e-9 * (bench.now - began) / CREEP, 1.0)
        if ended:
            share *= max(1.0 - 1e-9 * (bench.now - ended[0]) / CREEP, 0.0)
        change(values, share)
        return values, pressures[1]
    with bench.spoilt(spoil_pressures=spoil):
        yield
        ended.append(bench.now)
        bench.turns(CREEP)


def _reported(condition):
    """Whether this condition was found."""
    return lambda bench: bench.core.states.counts[condition] > 0


@injection('flow_suspect', states=(RUN,), after=After.ONCE, **ON_VALVES)
def _one_chamber_is_off(bench):
    """The lowest pressure says a third: the force hardly changes, the flow through that edge does."""
    def change(values, share):
        values.flat[values.argmin()] *= 1.0 - 0.7 * share
    yield from _creeping(bench, change)


@contextmanager
def _drifting(bench, rate, velocity=True):
    """A cylinder whose measured position drifts [m/s], with its velocity, and stays where it is then."""
    m, began = bench.machine.manipulator, bench.now
    axes = [m.coordinates.index(name) for name in bench.machine.hydraulics.cylinders if name in m.coordinates]
    axis = np.eye(m.dof)[axes[bench.fault_rng.integers(len(axes))]] * bench.fault_rng.choice([-1.0, 1.0]) * rate
    with bench.spoilt(spoil_state=lambda msg: msg._replace(x=msg.x + 1e-9 * (bench.now - began) * axis,
                                                           xd=msg.xd + axis * velocity)):
        yield
    off = 1e-9 * (bench.now - began) * axis
    bench.spoil_state = lambda msg: msg._replace(x=msg.x + off)


# in RUN it shows only where it is fast beside the motion: see the encoders among the lies
@injection('opening_residual', 'an_encoder_drifts_without_pressures', states=(HOLD,), after=After.ONCE, **UNDER_PID)
@injection('flow_residual', states=(RUN, HOLD), after=After.ONCE, **ON_VALVES)
def _an_encoder_drifts(bench):
    yield from during(_drifting(bench, 0.04))


@injection('opening_suspect', 'a_law_without_pressures_opens_a_valve', states=(RUN, HOLD), after=After.ONCE,
           **UNDER_PID)
@injection('command_suspect', states=(RUN, HOLD), after=After.ONCE, **ON_VALVES)
def _the_law_opens_a_valve(bench):
    full = np.eye(bench.declaration.command_limit.size)[int(bench.law.cylinders['axis'][0])]
    sign = bench.fault_rng.choice([-1.0, 1.0])
    yield from during(bench.law_spoilt(lambda command: np.where(full, sign * bench.declaration.command_limit, command)))


@injection('effort_suspect', states=(RUN, HOLD), after=After.ONCE, lies=True)
def _the_law_gives_a_full_effort(bench):
    first = np.eye(bench.declaration.command_limit.size)[0]
    sign = bench.fault_rng.choice([-1.0, 1.0])
    full = sign * bench.declaration.command_limit
    yield from during(bench.law_spoilt(lambda command: np.where(first, full, command)))


@injection('command_frozen', states=(RUN,), after=After.ONCE, levels=('effort', 'valve', PID), lies=True,
           onset=lambda bench: bench.law.desired[1].any())
def _the_law_repeats_itself(bench):
    last = []

    def frozen(command):
        last.append(command.copy())
        return last[0].copy()
    yield from during(bench.law_spoilt(frozen))


def _force(share):
    def bring(bench):
        # what is allowed refers to supply pressure and area A, so that the share of a pressure in A does the same
        supply = float(bench.law.supply['pressure'][0])
        off = share * bench.declaration.plausibility.force_share * supply
        k = int(bench.fault_rng.integers(len(bench.law.cylinders)))

        def change(values, share):
            values[k, 0] += share * off
        yield from _creeping(bench, change)
    return bring


injection('force_suspect', 'a_force_off', states=(RUN,), after=After.ONCE, onset=_reported('force_suspect'),
          **ON_VALVES)(_force(1.5))
injection('force_residual', 'a_force_far_off', states=(RUN,), after=After.ONCE, onset=_reported('force_residual'),
          conforms=_reported('force_residual'), **ON_VALVES)(_force(2.5))


@contextmanager
def _velocity(bench, share):
    """One velocity off by a share of the rated one."""
    rated = bench.machine.manipulator.coordinate_limits.velocity
    i = int(bench.fault_rng.integers(rated.size))
    off = np.eye(rated.size)[i] * share * rated[i] * bench.fault_rng.choice([-1.0, 1.0])
    with bench.spoilt(spoil_state=lambda msg: msg._replace(xd=msg.xd + off)):
        yield


@injection('overspeed', states=(RUN, HOLD), after=After.ONCE, lies=True)
def _faster_than_rated(bench):
    yield from during(_velocity(bench, 1.0 + bench.declaration.plausibility.overspeed))


@injection('speed_error', states=(RUN, HOLD), after=After.ONCE, lies=True)
def _faster_than_the_reference(bench):
    yield from during(_velocity(bench, 1.5 * bench.declaration.plausibility.speed_share))


@injection('not_standing', states=(HOLD,), after=After.ONCE, lies=True, onset=lambda bench: bench.core.states.counts[
    'not_standing'] > 0)
def _faster_than_standing(bench):
    bench.turns(0.6)        # in which a reference that has just come counts as moving
    yield from during(_velocity(bench, 0.15))


@contextmanager
def _goes_on(bench):
    """What is measured of the cylinders goes on as fast as it was, whatever the machine does."""
    began, x, xd, m = bench.now, bench.plant.x.copy(), bench.plant.xd.copy(), bench.machine.manipulator
    # at a fifth of the rated speed at least: less may be left at the end of a stop
    least = 0.2 * np.array(m.coordinate_limits.velocity)
    xd += np.where(np.abs(xd) < least, least * np.sign(xd), 0.0)
    goes_on = np.isin(m.coordinates, list(bench.machine.hydraulics.cylinders))
    with bench.spoilt(spoil_state=lambda msg: msg._replace(
            x=np.where(goes_on, x + 1e-9 * (bench.now - began) * xd, msg.x), xd=np.where(goes_on, xd, msg.xd))):
        yield


# at force level the momentum says so before
@injection('stop_failing', states=(STOPPING,), after=After.ONCE, conforms=_reported('stop_failing'), **ON_VALVES)
def _a_stop_does_not_slow_down(bench):
    yield from during(_goes_on(bench))


@injection('ramp_failing', states=(STOPPING,), after=After.ONCE, onset=_reported('stop_failing'), **ON_VALVES)
def _nor_does_its_ramp(bench):
    yield from during(_goes_on(bench))


@injection('momentum_residual', states=(RUN, HOLD), after=After.ONCE, lies=True)
def _a_force_that_is_not_given(bench):
    """The first axis seems to accelerate by 1 rad/s^2 that no effort explains."""
    began, first = bench.now, np.eye(bench.plant.xd.size)[0]

    def spoil(msg):
        t = 1e-9 * (bench.now - began)
        return msg._replace(x=msg.x + 0.5 * t * t * first, xd=msg.xd + t * first)
    yield from during(bench.spoilt(spoil_state=spoil))


@injection('swing_growing', states=(HOLD,), after=After.ONCE, lies=True, onset=_reported('swing_growing'))
def _swings_more_than_it_did(bench):
    bench.turns(0.6)        # in which what it has is the swing of the motion before
    yield from during(_velocity(bench, 0.15))


@injection('swing_in_motion', states=(RUN,), after=After.ONCE, lies=True, onset=_reported('swing_in_motion'))
def _swings_ever_more(bench):
    """Measured velocities of the first axis, which are off to either side for 30 ms, each time by 1.6 times as much."""
    began, first = bench.now, np.eye(bench.plant.xd.size)[0]

    def spoil(msg):
        half = int(1e-9 * (bench.now - began) / 0.03)
        return msg._replace(xd=msg.xd + (-1.0)**half * 0.012 * 1.6**min(half, 5) * first)
    yield from during(bench.spoilt(spoil_state=spoil))
