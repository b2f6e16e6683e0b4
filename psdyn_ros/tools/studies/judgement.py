"""The controller on the second plant: tracking of trajectories; prints a table.

Streams there: `stream_study.py`; what follows a fault: `tools/fault_campaign/motion_trials.py`.

    python3 -m psdyn_ros.tools.studies.judgement [part of a name ...]
"""

import argparse
import math
from functools import cache

import numpy as np

from ...control import ClosedLoop, ControllerConfig, State, Waypoints, assemble
from ...model.locate import find_config, find_machine
from .second_plant import PERFECT, SecondPlant, Sensors

URDF = find_machine('hiab_xs031')
HYDRAULICS, SAFETY = (find_config(f'hiab_xs031_{name}.yaml') for name in ('hydraulics', 'safety'))
START = np.array([0.0, 0.25, 0.25, 0.4])
NAMES = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
SECONDS = 20.0
RISE_S = 2.0                # in which the sines begin and end
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


def tracked(law, reference, motion=multi_sine, seconds=SECONDS, **options):
    """Return a row of the table."""
    loop = closed_loop(law, **options)
    begin = loop.time
    loop.send(reference)
    loop.run(seconds)
    record = loop.recording()
    along = record.time > begin
    wanted = np.array([motion(max(0.0, t - begin))[0] for t in record.time[along]])
    errors = 1e3 * (record.x[along] - wanted)
    bad = record.time[record.state >= State.STOPPING]
    if bad.size:
        errors = errors[record.time[along] < bad[0]]
    states = ' '.join(State(value).name for value in sorted(set(record.state[along].tolist())))
    stop = f'{bad[0] - begin:.1f} s: {"; ".join(record.reasons[-1][1].values())[:70]}' if bad.size else 'no stop'
    rms, most = np.sqrt((errors**2).mean(axis=0)), np.abs(errors).max(axis=0)
    figures = ' '.join(f'{one:6.2f}/{two:6.2f}' for one, two in zip(rms, most))
    return f'{figures}  {states}, {stop}'


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


def main(arguments=None):
    """Print the rows whose names have one of the given parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('parts', nargs='*')
    parts = parser.parse_args(arguments).parts
    print('RMS/largest error [mm, mrad] of slew, lift, tilt, telescope')
    for name, run in trajectories():
        if not parts or any(part in name for part in parts):
            print(f'  {name:75s} {run()}', flush=True)


if __name__ == '__main__':
    main()
