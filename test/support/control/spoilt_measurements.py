"""Measurements that lie, for a `ClosedLoop`: changes (time [s], Measurement) -> Measurement."""

import numpy as np

FAULT_S = 2.5               # of a trial before its fault: in the middle of a move


def once(field, at, spoil):
    """Spoil a field of one measurement, at a time [s] of the loop."""
    done = []

    def change(time, measured):
        if time < at or done:
            return measured
        done.append(time)
        return spoilt(measured, field, spoil)
    return change


def ever(field, at, spoil):
    """Spoil a field of all measurements from a time [s] on; spoil: (value, s since then) -> value."""
    return lambda time, measured: measured if time < at else spoilt(
        measured, field, lambda value: spoil(value, time - at))


def spoilt(measured, field, spoil):
    value = getattr(measured, field)
    return measured._replace(**{field: spoil(np.array(value, dtype=float) if np.ndim(value) else value)})


def one_pressure(value, cylinder, chamber):
    """Set the pressure [Pa] of one chamber."""
    def spoil(pressures, *_):
        pressures[cylinder, chamber] = value
        return pressures
    return spoil


def drifting(rate, axis=1):
    """Drift of a position; rate [m/s]."""
    def spoil(x, since):
        x[axis] += rate * since
        return x
    return spoil


def drifting_state(rate, at):
    """Drift of a position with the velocity that goes with it."""
    def change(time, measured):
        if time < at:
            return measured
        xd = measured.xd.copy()
        xd[1] += rate
        return spoilt(measured, 'x', lambda x: drifting(rate)(x, time - at))._replace(xd=xd)
    return change
