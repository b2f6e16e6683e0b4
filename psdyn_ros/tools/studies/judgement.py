"""The controller on the second plant: tracking, and what follows a single fault; prints two tables.

    python3 -m psdyn_ros.tools.studies.judgement [part of a name ...]
"""

import argparse
import math
from functools import cache

import numpy as np

from ...control import ClosedLoop, ControllerConfig, PointStream, State, TrajectoryError, Waypoints, assemble
from ...model.locate import find_config, find_machine
from .second_plant import PERFECT, SecondPlant, Sensors

URDF = find_machine('hiab_xs031')
HYDRAULICS, SAFETY = (find_config(f'hiab_xs031_{name}.yaml') for name in ('hydraulics', 'safety'))
START = np.array([0.0, 0.25, 0.25, 0.4])
NAMES = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
SECONDS = 20.0
RISE_S = 2.0                # in which the sines begin and end
FAULT_S = 2.5               # of a trial before its fault: in the middle of a move
FULL = 0.95                 # of the spool, which counts as full
REST = 0.01                 # m/s, at which a cylinder counts as at rest
VALVES, PID, FORCES = 'valve_computed_torque', 'valve_pid', 'computed_torque'


# references: time [s] -> x, xd, xdd (4,)


def multi_sine(t):
    """Sines of 0.07 to 0.31 Hz on every axis, from rest to rest in `SECONDS`."""
    sizes = np.array([(0.15, 0.06), (0.04, 0.012), (0.04, 0.012), (0.08, 0.02)])
    frequencies = 2.0 * math.pi * np.array([(0.07, 0.23), (0.09, 0.31), (0.11, 0.27), (0.08, 0.29)])
    out = np.zeros((3, 4))
    for size, w in zip(sizes.T, frequencies.T):
        out += size * np.array([np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)])
    left = min(t, SECONDS - t) / RISE_S
    s, sign = min(max(left, 0.0), 1.0), math.copysign(1.0, SECONDS - 2.0 * t)
    r, rd, rdd = (s**3 * (10 - 15 * s + 6 * s**2), sign * 30.0 * (s * (1 - s))**2 / RISE_S,
                  60.0 * s * (1 - s) * (1 - 2 * s) / RISE_S**2)
    x, xd, xdd = out
    return START + r * x, r * xd + rd * x, r * xdd + 2 * rd * xd + rdd * x


def as_waypoints(motion, seconds, step=0.1):
    """`Waypoints` of a motion."""
    times = np.arange(0.0, seconds + 1e-9, step)
    return Waypoints(NAMES, times, *np.array([motion(t) for t in times]).transpose(1, 0, 2))


def point_to_point(seconds, way=(0.5, 0.2, -0.15, 0.5)):
    """`Waypoints` of one quintic from rest to rest."""
    zero = np.zeros((2, 4))
    return Waypoints(NAMES, [0.0, seconds], [START, START + way], zero, zero)


# runs


@cache
def configuration(law, rate=500.0):
    """`ControllerConfig` of the crane."""
    return ControllerConfig.from_files(URDF, None if law == FORCES else HYDRAULICS, safety=SAFETY, law=law, rate=rate)


def closed_loop(law, change=None, rate=500.0, sensors=None, **options):
    """`ClosedLoop` of a law on a second plant that holds."""
    plant = SecondPlant(URDF, None if law == FORCES else HYDRAULICS, position=dict(zip(NAMES, START)),
                        sensors=sensors or Sensors(), **options)
    return ClosedLoop(assemble(configuration(law, rate)), plant, change=change).start()


def tracked(law, reference, motion=multi_sine, delay=0.0, seconds=SECONDS, **options):
    """Return a row of the first table; delay: s by which the motion is expected to be behind."""
    loop = closed_loop(law, **options)
    begin = loop.time
    if isinstance(reference, Waypoints):
        loop.send(reference)
    loop.run(seconds, reference if isinstance(reference, PointStream) else None)
    record = loop.recording()
    along = record.time > begin
    wanted = np.array([motion(max(0.0, t - begin - delay))[0] for t in record.time[along]])
    errors = 1e3 * (record.x[along] - wanted)
    bad = record.time[record.state >= State.STOPPING]
    if bad.size:
        errors = errors[record.time[along] < bad[0]]
    states = ' '.join(State(value).name for value in sorted(set(record.state[along].tolist())))
    stop = f'{bad[0] - begin:.1f} s: {"; ".join(record.reasons[-1][1].values())[:70]}' if bad.size else 'no stop'
    rms, most = np.sqrt((errors**2).mean(axis=0)), np.abs(errors).max(axis=0)
    figures = ' '.join(f'{one:6.2f}/{two:6.2f}' for one, two in zip(rms, most))
    return f'{figures}  {states}, {stop}' + (f', {len(record.rejected)} points rejected' if record.rejected else '')


def along(waypoints):
    """Motion of `Waypoints` of one quintic, at rest beyond its end."""
    def motion(t):
        s = min(max(t / waypoints.times[-1], 0.0), 1.0)
        return (waypoints.positions[0] + (waypoints.positions[1] - waypoints.positions[0])
                * s**3 * (10 - 15 * s + 6 * s**2)),
    return motion


def trajectories():
    """Yield (name, row) of tracking."""
    sine = as_waypoints(multi_sine, SECONDS)
    for law in (VALVES, PID, FORCES):
        yield f'{law}, multi-sine', lambda law=law: tracked(law, sine)
    yield f'{VALVES}, multi-sine, perfect sensors', lambda: tracked(VALVES, sine, sensors=PERFECT)
    yield f'{VALVES}, multi-sine, bristles of 0.1 mm', lambda: tracked(VALVES, sine, presliding=1e-4)
    yield f'{VALVES}, multi-sine, 100 Hz', lambda: tracked(VALVES, sine, rate=100.0)
    yield f'{VALVES}, multi-sine, sensors 4 ms late', lambda: tracked(VALVES, sine, sensors=Sensors(delay=0.004))
    yield f'{VALVES}, multi-sine, stiction 3 kN', lambda: tracked(VALVES, sine, stiction=dict.fromkeys(NAMES[1:], 3e3))
    for seconds, pump in ((4.0, None), (3.2, None), (3.2, 8e-4)):
        for law in (VALVES, PID):
            move = point_to_point(seconds)
            limit = f', pump {pump * 6e4:.0f} l/min' if pump else ''
            yield (f'{law}, point to point in {seconds:g} s{limit}',
                   lambda law=law, move=move, pump=pump: tracked(law, move, along(move), seconds=8.0, pump_flow=pump))
    for ahead in (0.0, 0.03):
        for rate in (50.0, 100.0, 500.0):
            for jitter, loss in ((0.0, 0.0), (0.3, 0.02)):
                points = PointStream(multi_sine, rate, ahead, jitter, loss)
                yield (f'{VALVES}, stream {rate:.0f} Hz, {ahead * 1e3:.0f} ms ahead, jitter {jitter:.0%}, loss '
                       f'{loss:.0%}', lambda points=points: tracked(VALVES, points))


# faults: (time [s], Measurement) -> Measurement


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


def injected(law, change, moving, seconds=3.0, **options):
    """Return a row of the second table."""
    loop = closed_loop(law, change=change, **options)
    if moving:
        loop.send(point_to_point(5.0, (0.3, 0.2, -0.15, 0.5)))
    loop.run(FAULT_S + seconds - loop.time)
    return verdict(loop, FAULT_S)


def verdict(loop, at):
    """Speeds, largest spool, time of full spool, time and travel from the stop to rest, after a fault at `at` [s]."""
    record, period = loop.recording(), loop.period
    after = record.time >= at
    x, speed, spool = record.x[after, 1:], record.speed[after, 1:], np.abs(record.spool[after])
    full = (spool > FULL).sum(axis=0).max(initial=0) * period
    text = (f'speed {speed[0].max():.3f} -> {speed.max():.3f} m/s, spool {spool.max(initial=0.0):.2f}, '
            f'full {1e3 * full:.0f} ms, ')
    stopped = np.flatnonzero(record.state[after] >= State.STOPPING)
    end = f'ends in {State(record.state[-1]).name}'
    if not stopped.size:
        return f'{text}no stop, {end}'
    moving = np.flatnonzero(speed.max(axis=1) > REST)
    last = max(moving[-1] + 1 if moving.size else 0, stopped[0])
    rest = f'rest after {period * (last - stopped[0]):.2f} s' if last < len(x) else 'no rest'
    travel = 1e3 * np.abs(x - x[stopped[0]])[stopped[0]:].max()
    reason = next((text for time, texts in record.reasons if time >= at for text in texts.values()), '')
    return f'{text}stop after {1e3 * period * stopped[0]:.0f} ms, {rest}, {travel:.1f} mm, {end}: {reason[:60]}'


def retargeted(law, rate):
    """Return a row for a new target rate times a second, within the same range."""
    loop, rng, refused = closed_loop(law), np.random.default_rng(3), 0
    loop.run(FAULT_S - loop.time)
    for _ in range(round(8.0 * rate)):
        zero, way = np.zeros((1, 4)), rng.uniform(-1.0, 1.0, 4) * (0.3, 0.1, 0.1, 0.2)
        try:
            loop.send(Waypoints(NAMES, [rng.uniform(0.8, 2.0)], [START + way], zero, zero))
        except TrajectoryError:
            refused += 1
        loop.run(1.0 / rate)
    return f'{verdict(loop, FAULT_S)}, {refused} targets refused'


def held(law, stiction, seconds=20.0):
    """Return a row of holding still after a move, with so much stiction [N]."""
    loop = closed_loop(law, stiction=dict.fromkeys(NAMES[1:], stiction))
    loop.send(point_to_point(3.0, (0.1, 0.05, -0.05, 0.1)))
    loop.run(5.0 + seconds)
    record = loop.recording()
    last = record.time > record.time[-1] - seconds
    swing = 1e3 * np.ptp(record.x[last], axis=0)[1:]
    off = 1e3 * (record.x[-1] - record.desired[-1, 0])[1:]
    return (f'peak to peak {" ".join(f"{one:.2f}" for one in swing)} mm, error at the end '
            f'{" ".join(f"{one:.2f}" for one in off)} mm, {State(record.state[-1]).name}'
            f'{"; ".join([""] + [str(list(texts)) for _, texts in record.reasons])}')


def faults():
    """Yield (name, row) of fault trials."""
    at, low, zero = FAULT_S, -2.5e7, lambda value, *_: 0.0
    pressures = {f'{name} {"AB"[chamber]} says -250 bar': (cylinder, chamber)
                 for cylinder, name in enumerate(NAMES[1:]) for chamber in (0, 1)}
    for law in (VALVES, PID):
        for moving in (True, False):
            state = 'RUN' if moving else 'HOLD'
            for name, change in {
                    'lift_cylinder A says -250 bar, once': lambda: once('pressures', at, one_pressure(low, 0, 0)),
                    **{what: lambda where=where: ever('pressures', at, one_pressure(low, *where))
                       for what, where in pressures.items()},
                    'supply 0, once': lambda: once('supply', at, zero),
                    'supply 0': lambda: ever('supply', at, zero),
                    'encoder drifts 40 mm/s': lambda: ever('x', at, drifting(0.04)),
                    'encoder drifts 40 mm/s, velocity too': lambda: drifting_state(0.04, at),
                    'states lost': lambda: lambda time, measured: measured if time < at else None}.items():
                yield (f'{law}, {state}, {name}',
                       lambda law=law, change=change, moving=moving: injected(law, change(), moving))
    for rate in (1.0, 4.0, 10.0):
        yield f'{VALVES}, retargeting at {rate:g} Hz', lambda rate=rate: retargeted(VALVES, rate)
    for stiction in (0.0, 2e3, 3e3, 4e3):
        yield f'{VALVES}, HOLD, stiction {stiction:g} N', lambda stiction=stiction: held(VALVES, stiction)


def main(arguments=None):
    """Print the rows whose names have one of the given parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('parts', nargs='*')
    parts = parser.parse_args(arguments).parts
    for title, rows in (('RMS/largest error [mm, mrad] of slew, lift, tilt, telescope', trajectories()),
                        ('after the fault', faults())):
        print(title)
        for name, run in rows:
            if not parts or any(part in name for part in parts):
                print(f'  {name:75s} {run()}', flush=True)


if __name__ == '__main__':
    main()
