"""Bags of the second plant for a calibration: motions of the crane, what sensors make of them, and what is wrong.

One run of the plant serves every cause: either what was measured is changed, or the model is another one than the
machine, which is the same as a machine that is another one than its model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from ...api.load import load
from ...control import ClosedLoop, assemble
from ...model.errors import StateError
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import read_hydraulics
from ...model.parameters.sensors import read_sensors
from ...model.text_file import read_text
from ...model.units import ATMOSPHERE, SECOND
from ...validation.bags.recording import write_bag
from ...validation.bags.row_bag import fluid_pressure, joint_states, labelled_array
from ...validation.bags.simulated_bag import STATES, TELEMETRY
from .loaded_crane import COM, PAYLOAD, RANGES, SPEEDS, payload_urdf, random_moves, tilted_urdf
from .second_plant import SecondPlant, Sensors
from .tracking_runs import PERIOD, TORQUE, configured

MACHINE = 'hiab_xs031'
URDF, HYDRAULICS, SENSORS = find_machine(MACHINE), *(find_config(f'{MACHINE}_{what}.yaml') for what in (
    'hydraulics', 'sensors'))
REST = 0.5                  # s before and after the motion
BEGIN = 1_700_000_000 * SECOND      # ns, stamp of the first instant
LATENCY = 200_000           # ns from a stamp to its receipt
PAYLOAD_LINK = 'payload'
PUSHED = 12.3, 18.3         # s, from when to when a force acts
LIFT, TILT, TELESCOPE = 1, 2, 3     # numbers of actuators; of their cylinders one less
ENDS = 0.05                 # s of a motion at either end that no bag has, so that what is late or early is known


class Motion(NamedTuple):
    """What the second plant did, every PERIOD: true values."""

    t: np.ndarray
    """(N,) s."""
    x: np.ndarray
    """(N, 4) positions of the actuators [rad, m]."""
    xd: np.ndarray
    """(N, 4) their rates."""
    torque: np.ndarray
    """(N,) N m of the slewing drive from each instant on."""
    pressures: np.ndarray
    """(N, 3, 2) Pa gauge."""


@dataclass(frozen=True)
class Layout:
    """Sensors and topics of a bag.

    pressures      'array' (labelled), 'ports' (one FluidPressure for each) or 'effort' (JointState.effort alone)
    states_hz      of joint states
    pressures_hz   of pressures; ports are sampled one after the other
    noise          factor on noise and steps of the sensors of the machine; 0: exact
    """

    pressures: str = 'array'
    states_hz: float = 500.0
    pressures_hz: float = 500.0
    noise: float = 1.0

    @property
    def name(self):
        """In words."""
        rates = (f'{self.states_hz:g}' if self.pressures == 'effort' else f'{self.states_hz:g}/{self.pressures_hz:g}')
        return f'{self.pressures} {rates} Hz{"" if self.noise else ", exact"}'


LAYOUTS = (Layout('array'), Layout('ports'), Layout('ports', noise=0.0), Layout('ports', 500.0, 200.0),
           Layout('array', 200.0, 500.0), Layout('effort'), Layout('array', 500.0, 200.0, 0.0))


class Wrong(NamedTuple):
    """A cause that should be named: its kind, part of what it is about, and what its estimate should come to (SI)."""

    kind: str
    about: str
    size: float


@dataclass(frozen=True)
class Case:
    """One thing that is wrong, or two.

    kind, about  of the cause that should be named first; '' for none
    size         that its estimate should come to, in its unit; NaN where it has none
    model        function of nothing that returns (URDF text, `Hydraulics`) of the model
    measured     function of (t, x, xd, pressures) in place of what sensors see, before their noise
    late         s by which pressures are older than their stamps
    layouts      kinds of pressures of `Layout` that can show it
    also         `Wrong` that is there too, or None
    """

    kind: str = ''
    about: str = ''
    size: float = math.nan
    model: Callable = None
    measured: Callable = None
    late: float = 0.0
    layouts: tuple = ('array', 'ports', 'effort')
    also: Wrong = None


@cache
def machine_text(payload=PAYLOAD, com=COM, tilt=0.0):
    """URDF text of the crane with a payload [kg, m], on ground that pitches by `tilt` [rad]."""
    text = payload_urdf(read_text(URDF), payload, com)
    return tilted_urdf(text, 0.0, tilt) if tilt else text


@cache
def crane(text):
    """`Manipulator` of URDF text."""
    return load(text)


@cache
def oil():
    """`Hydraulics` of the crane."""
    return read_hydraulics(HYDRAULICS, crane(machine_text()).actuators)


def with_cylinder(name, **changes):
    """The hydraulics with one cylinder changed."""
    return replace(oil(), cylinders={**oil().cylinders, name: replace(oil().cylinders[name], **changes)})


# what is wrong


def model_with(hydraulics=None, **machine):
    """(URDF text, `Hydraulics`) of a model that is another one than the machine."""
    return machine_text(**machine), hydraulics or oil()


def _rubbing(name, factor):
    seal = oil().cylinders[name].friction
    return model_with(with_cylinder(name, friction=replace(seal, coulomb=seal.coulomb / factor,
                                                           viscous=seal.viscous / factor)))


def _larger_a(name, share):
    """The model whose area A is larger by a share, at the same area B."""
    one = oil().cylinders[name]
    bore = math.sqrt(1.0 + share) * one.bore
    return model_with(with_cylinder(name, bore=bore, rod=math.sqrt(bore ** 2 - one.bore ** 2 + one.rod ** 2)))


def _larger_bore(name, share):
    """The model whose bore is larger, and with it area A by a share, at the same rod."""
    return model_with(with_cylinder(name, bore=math.sqrt(1.0 + share) * oil().cylinders[name].bore))


def _offset(t, x, xd, pressures, cylinder, size):
    pressures[:, cylinder, 0] += size


def _drift(t, x, xd, pressures, cylinder, size):
    pressures[:, cylinder, 0] += size * t


def _encoder_offset(t, x, xd, pressures, axis, size):
    x[:, axis] += size


def _encoder_scale(t, x, xd, pressures, axis, size):
    x[:, axis] *= 1.0 + size
    xd[:, axis] *= 1.0 + size


def _exchanged_ports(t, x, xd, pressures, cylinder):
    pressures[:, cylinder] = pressures[:, cylinder, ::-1].copy()


def _exchanged_names(t, x, xd, pressures, one, other):
    pressures[:, [one, other]] = pressures[:, [other, one]]


def _slipping(t, x, xd, pressures, axis, velocity):
    cylinder = list(oil().cylinders.values())[axis - 1]
    seal = cylinder.friction
    change = np.tanh(xd[:, axis] / velocity) - np.tanh(xd[:, axis] / seal.slip_velocity)
    pressures[:, axis - 1, 0] += seal.coulomb * change / cylinder.area_a


def _pushed(t, x, xd, pressures, force, span):
    """A force upwards on the payload for a while; it does not turn the slewing column."""
    rows, machine = np.flatnonzero((t >= span[0]) & (t < span[1])), crane(machine_text())
    for row, own in zip(rows, np.ascontiguousarray(x[rows])):
        more = -force * machine.jacobian(own, PAYLOAD_LINK)[2]
        pressures[row, :, 0] += more[1:] / [one.area_a for one in oil().cylinders.values()]


BY_PRESSURE = 'array', 'ports'
HEALTHY = 'healthy'
CASES = {
    HEALTHY: Case(),
    'payload 30 kg more': Case('payload', 'payload', 30.0, partial(model_with, payload=PAYLOAD - 30.0)),
    'payload 30 kg less': Case('payload', 'payload', -30.0, partial(model_with, payload=PAYLOAD + 30.0)),
    'ground pitches by 2 degrees': Case('base_tilt', 'base', math.radians(2.0),
                                        partial(model_with, tilt=-math.radians(2.0))),
    'friction of the lift 1.5 times': Case('friction', 'lift_cylinder', 1.5, partial(_rubbing, 'lift_cylinder', 1.5)),
    'friction of the telescope 1.3 times': Case('friction', 'telescope', 1.3, partial(_rubbing, 'telescope', 1.3)),
    'area A of the tilt 3 % smaller': Case('area', 'tilt_cylinder', 1.0 / 1.03 - 1.0,
                                           partial(_larger_a, 'tilt_cylinder', 0.03), layouts=BY_PRESSURE),
    'offset of 3 bar at the tilt': Case('sensor_offset', 'tilt_cylinder', 3e5,
                                        measured=partial(_offset, cylinder=TILT - 1, size=3e5), layouts=BY_PRESSURE),
    'drift of 0.2 bar/s at the lift': Case('sensor_drift', 'lift_cylinder', 2e4,
                                           measured=partial(_drift, cylinder=LIFT - 1, size=2e4), layouts=BY_PRESSURE),
    'encoder of the tilt 5 mm off': Case('encoder_offset', 'tilt_cylinder', 5e-3,
                                         measured=partial(_encoder_offset, axis=TILT, size=5e-3)),
    'pressures 8 ms late': Case('delay', '', 8e-3, late=8e-3, layouts=BY_PRESSURE),
    'ports of the lift exchanged': Case('ports', 'lift_cylinder', 1.0, measured=partial(
        _exchanged_ports, cylinder=LIFT - 1), layouts=BY_PRESSURE),
    'lift and tilt exchanged': Case('exchanged', "lift_cylinder' and 'tilt_cylinder", 1.0, measured=partial(
        _exchanged_names, one=LIFT - 1, other=TILT - 1), layouts=BY_PRESSURE),
    'load 0.25 m further out': Case('center_of_mass', 'payload', 0.25 * PAYLOAD, partial(
        model_with, com=(COM[0] - 0.25, *COM[1:]))),
    'bore of the tilt 3 % smaller in area': Case('bore', 'tilt_cylinder', 1.0 / 1.03 - 1.0,
                                                 partial(_larger_bore, 'tilt_cylinder', 0.03), layouts=BY_PRESSURE),
    'encoder of the lift 3 % too large': Case('encoder_scale', 'lift_cylinder', 0.03, measured=partial(
        _encoder_scale, axis=LIFT, size=0.03)),
    'slip velocity of the telescope 25 mm/s': Case('slip_velocity', 'telescope', 0.025, measured=partial(
        _slipping, axis=TELESCOPE, velocity=0.025), layouts=BY_PRESSURE),
    'force of 1500 N for 6 s': Case('contact_force', PAYLOAD_LINK, 1500.0, measured=partial(
        _pushed, force=1500.0, span=PUSHED), layouts=BY_PRESSURE),
    'payload 30 kg more, ground pitches by 2 degrees': Case(
        'payload', 'payload', 30.0, partial(model_with, payload=PAYLOAD - 30.0, tilt=-math.radians(2.0)),
        also=Wrong('base_tilt', 'base', math.radians(2.0))),
    'payload 30 kg more, offset of 3 bar at the tilt': Case(
        'payload', 'payload', 30.0, partial(model_with, payload=PAYLOAD - 30.0),
        partial(_offset, cylinder=TILT - 1, size=3e5), layouts=BY_PRESSURE,
        also=Wrong('sensor_offset', 'tilt_cylinder', 3e5)),
    'payload 30 kg less, encoder of the tilt 5 mm off': Case(
        'payload', 'payload', -30.0, partial(model_with, payload=PAYLOAD + 30.0),
        partial(_encoder_offset, axis=TILT, size=5e-3), also=Wrong('encoder_offset', 'tilt_cylinder', 5e-3)),
    'friction of the lift 1.5 times, encoder of the tilt 5 mm off': Case(
        'friction', 'lift_cylinder', 1.5, partial(_rubbing, 'lift_cylinder', 1.5),
        partial(_encoder_offset, axis=TILT, size=5e-3), also=Wrong('encoder_offset', 'tilt_cylinder', 5e-3)),
    'friction of the telescope 1.3 times, offset of 3 bar at the tilt': Case(
        'friction', 'telescope', 1.3, partial(_rubbing, 'telescope', 1.3),
        partial(_offset, cylinder=TILT - 1, size=3e5), layouts=BY_PRESSURE,
        also=Wrong('sensor_offset', 'tilt_cylinder', 3e5)),
    'payload 30 kg more, force of 1500 N for 6 s': Case(
        'payload', 'payload', 30.0, partial(model_with, payload=PAYLOAD - 30.0),
        partial(_pushed, force=1500.0, span=PUSHED), layouts=BY_PRESSURE,
        also=Wrong('contact_force', PAYLOAD_LINK, 1500.0)),
    'friction of the lift 1.5 times, force of 1500 N for 6 s': Case(
        'friction', 'lift_cylinder', 1.5, partial(_rubbing, 'lift_cylinder', 1.5),
        partial(_pushed, force=1500.0, span=PUSHED), layouts=BY_PRESSURE,
        also=Wrong('contact_force', PAYLOAD_LINK, 1500.0)),
}


# motion


def run_motion(seed, seconds):
    """The `Motion` of the second plant with its payload, under the controller that ships.

    Raises StateError where the plant cannot be integrated, or the controller finds a fault.
    """
    machine = crane(machine_text())
    waypoints = random_moves(machine, RANGES, SPEEDS, seconds, seed)
    start = dict(zip(machine.coordinates, waypoints.positions[0]))
    plant = SecondPlant(machine_text(), HYDRAULICS, position=start, sensors=Sensors(seed=seed))
    loop, rows = ClosedLoop(assemble(configured(TORQUE, machine, oil())), plant).start(), []
    loop.send(replace(waypoints, times=waypoints.times + REST))
    for _ in range(round((seconds + 2.0 * REST) / PERIOD)):
        rows.append((plant.time, plant.x, plant.xd, loop.output.command[0], plant.pressures))
        loop.cycle()
    if loop.core.states.reasons:
        raise StateError(f'the second plant did not get through motion {seed}: {loop.core.states.reasons}')
    return Motion(*(np.array(column) for column in zip(*rows)))


# bags


def write(path, motion, layout, case, seed, seconds=None):
    """Write a bag of a `Motion` as sensors of a `Layout` say it; returns its path.

    case     `Case` that is wrong with it
    seed     of noise and of the phases of ports
    seconds  of it, None: all
    """
    bag = _Bag(motion, layout, case, seed, seconds)
    types, streams = {}, [bag.states()]
    if layout.pressures == 'array':
        streams.append(bag.array())
    if layout.pressures == 'ports':
        streams += [bag.port(row, name, port) for row, name in enumerate(oil().cylinders) for port in range(2)]
    messages = []
    for topic, template, ns, arrays in streams:
        types[topic] = template.msgtype
        messages += [(topic, int(stamp) + LATENCY, row.tobytes()) for stamp, row in
                     zip(ns, template.rows(ns, arrays))]
    write_bag(path, sorted(messages, key=lambda message: message[1]), types)
    return path


class _Bag:
    """Topics of a bag: (topic, `Template`, ns (n,), arrays (n, size))."""

    def __init__(self, motion, layout, case, seed, seconds):
        self._motion, self._layout, self._case = motion, layout, case
        self._rng, self._names = np.random.default_rng(seed), crane(machine_text()).actuators
        self._settings = _sensors()
        self._end = motion.t[-1] - ENDS if seconds is None else min(seconds + ENDS, motion.t[-1] - ENDS)
        self._of = {name: CubicSpline(motion.t, getattr(motion, name)) for name in ('x', 'xd', 'pressures')}

    def _instants(self, rate, phase=0.0):
        count = math.floor((self._end - ENDS) * rate - phase)
        return ENDS + (np.arange(count) + phase) / rate

    def _true(self, t, late=0.0):
        """(x, xd, pressures) at instants, changed by what is wrong."""
        x, xd = (self._of[name](t) for name in ('x', 'xd'))
        pressures = self._of['pressures'](t - late)
        if self._case.measured is not None:
            self._case.measured(t, x, xd, pressures)
        return x, xd, pressures

    def _seen(self, values, channels):
        """Values (n, channels) with noise, in steps."""
        if not self._layout.noise:
            return values
        noise, quantum = (self._layout.noise * np.array([getattr(self._settings.of(name), what) for name in channels])
                          for what in ('noise', 'quantum'))
        values = values + noise * self._rng.standard_normal(values.shape)
        step = np.where(quantum > 0.0, quantum, 1.0)
        return np.where(quantum > 0.0, np.round(values / step) * step, values)

    def states(self):
        t = self._instants(self._layout.states_hz)
        x, xd, pressures = self._true(t)
        before = np.searchsorted(self._motion.t, t + 1e-9, side='right') - 1
        effort = np.zeros_like(x)
        effort[:, 0] = self._motion.torque[before]
        if self._layout.pressures == 'effort':
            areas = np.array([(one.area_a, -one.area_b) for one in oil().cylinders.values()])
            effort[:, 1:] = (pressures * areas).sum(axis=2)
        effort = self._seen(effort, [f'{name}.effort' for name in self._names])
        if self._layout.pressures != 'effort':
            effort[:, 1:] = 0.0
        return STATES, joint_states(self._names), _ns(t), (
            self._seen(x, [f'{name}.position' for name in self._names]),
            self._seen(xd, [f'{name}.velocity' for name in self._names]), effort)

    def array(self):
        t = self._instants(self._layout.pressures_hz)
        pressures = self._true(t, self._case.late)[2]
        channels = [f'{name}.pressure_{port}' for name in oil().cylinders for port in 'ab']
        seen = self._seen(pressures.reshape(len(t), -1), channels).reshape(pressures.shape)
        stamps = np.broadcast_to((_ns(t) / SECOND)[:, None, None], (len(t), len(oil().cylinders), 1))
        template = labelled_array(tuple(oil().cylinders), ('pressure_a', 'pressure_b', 'stamp'))
        return TELEMETRY, template, _ns(t), (np.concatenate((seen, stamps), axis=2).reshape(len(t), -1),)

    def port(self, row, name, port):
        t = self._instants(self._layout.pressures_hz, self._rng.uniform())
        pressure = self._true(t, self._case.late)[2][:, row, [port]]
        seen = self._seen(pressure, [f'{name}.pressure_{"ab"[port]}'])
        return f'/{name}/pressure_{"ab"[port]}', fluid_pressure(), _ns(t), (seen + ATMOSPHERE,)


def _ns(t):
    return BEGIN + np.rint(t * SECOND).astype(np.int64)


@cache
def _sensors():
    """`SensorSettings` of the crane."""
    machine = crane(machine_text())
    channels = [f'{name}.{kind}' for name in machine.joints for kind in ('position', 'velocity', 'effort')]
    channels += [f'{name}.pressure_{port}' for name in oil().cylinders for port in 'ab']
    return read_sensors(SENSORS, channels)
