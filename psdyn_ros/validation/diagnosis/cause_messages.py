"""Causes in words, with numbers in units that people use, and whether such a thing can be."""

import math
from typing import NamedTuple

import numpy as np

from ...model.units import BAR

REACH = 5.0                 # m from its link within which a payload is believed
MAX_SHIFT = 1.0             # m of a centre of mass that is believed
MAX_TILT = math.radians(30.0)
MAX_GAIN = 0.5              # 1, error of areas and gains that is believed
MAX_DELAY = 1.0             # s
HELD = 0.6                  # periods of the states, half of one and some, by which efforts that are held come late
LIKELY = 0.03               # of its range by which an encoder is off, before what explains as much is named instead
EXACTLY = 1e-3              # to which a model at most describes efforts, so that these are not exchanged more exactly
EXCHANGED = 0.2             # by which ports that are exchanged may be off from being that exactly
BRIEFLY = {'payload': "a payload at '{}'", 'friction': "friction of '{}'", 'area': "an area or a gain of '{}'",
           'sensor_offset': "an offset of a sensor of '{}'", 'sensor_drift': "a drift of a sensor of '{}'",
           'delay': "a delay of '{}'", 'base_tilt': 'a tilted {}', 'frozen_encoder': "a frozen encoder of '{}'",
           'encoder_offset': "an offset of the encoder of '{}'", 'ports': "exchanged ports of '{}'",
           'exchanged': "exchanged measurements of '{}'", 'encoder_scale': "a scale of the encoder of '{}'",
           'center_of_mass': "the centre of mass of '{}'", 'bore': "the bore of '{}'",
           'contact_force': "a force on '{}'", 'hanging_load': "a load that hangs from '{}'",
           'slip_velocity': "the slip velocity of '{}'"}
CHECK_NEXT = {
    'payload': "weigh what hangs on '{}', or run `psdyn identify --payload {}`",
    'friction': "record '{}' at a steady 30 to 100 mm/s both ways with warm oil; `psdyn identify` finds its friction",
    'area': "compare the bore and rod of '{}' with its data sheet, and its pressure sensors with a gauge",
    'sensor_offset': "read the sensors of '{}' with the pressure let off, and set their zero",
    'sensor_drift': "read the sensors of '{}' with the pressure let off, cold and warm",
    'delay': "compare the stamps on '{}' with those of the states: clocks, filters and buffers of its driver",
    'base_tilt': 'put a spirit level on the {} of the machine',
    'frozen_encoder': "move '{}' by hand and watch its position: cable, connector, driver",
    'encoder_offset': "move '{}' to a known position, such as an end stop, and compare",
    'ports': "follow the hoses and cables of the pressure sensors of '{}', or exchange its topics",
    'exchanged': "compare names and cables of the sensors of '{}'",
    'encoder_scale': "move '{}' between two known positions, and compare how far it went; check its gear and unit",
    'center_of_mass': "see where the load hangs on '{}', or run `psdyn identify --payload {}`",
    'bore': "compare bore and rod of '{}' with its data sheet",
    'contact_force': "see what '{}' touched or carried then",
    'hanging_load': "let the load on '{}' hang from passive joints of the model, as in loader_crane",
    'slip_velocity': "record '{}' at a steady 1 to 30 mm/s both ways, and set the slip_velocity of its friction"}

OF_EFFORT = 'effort sensor'     # in words of what is wrong with efforts that are no pressures
CHECK_EFFORT = {
    'area': "hang a known weight on '{}' and read its effort",
    'sensor_offset': "read the effort sensor of '{}' without a load, and set its zero",
    'sensor_drift': "read the effort sensor of '{}' without a load, cold and warm"}


class Wording(NamedTuple):
    """What a fit comes to: in SI units with its standard error, in words, whether it can be, and is not far-fetched."""

    estimate: float
    error: float
    unit: str
    text: str
    possible: bool
    likely: bool = True


def word(kind, about, theta, covariance, *, corrections, hydraulics, axis=-1, port=''):
    """Return the `Wording` of a fit.

    kind, about  of the `Cause`
    theta        (n,) and its covariance (n, n)
    axis         number of the actuator, or of the coordinate of an encoder
    port         'a' or 'b' of an area
    """
    errors = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    if kind == 'payload':
        return _payload(about, theta, errors, corrections.body.mass if corrections.body else 0.0)
    if kind == 'center_of_mass':
        return _center(about, theta, covariance, corrections.body.mass)
    if kind == 'base_tilt':
        return _tilt(theta, errors, covariance)
    value, error = float(theta[0]), float(errors[0])
    if kind == 'friction':
        return _friction(about, value, error, corrections.believed[axis], effort_unit(corrections, axis))
    if kind == 'delay':
        way = 'later' if value > 0.0 else 'earlier'
        # a step of an effort between two samples may be seen half a period before or after, and is where it is held
        return Wording(value, error, 's', f"efforts on '{about}' that come {shown(1e3 * abs(value), 1e3 * error)} ms "
                       f'{way} than the states',
                       HELD * corrections.predictor.filter.period < abs(value) < MAX_DELAY)
    if kind in ('ports', 'exchanged'):
        error = math.hypot(error, EXACTLY)
    if kind == 'ports':
        return Wording(value, error, '1', f"ports A and B of '{about}' exchanged", abs(value - 1.0) < EXCHANGED)
    if kind == 'exchanged':
        return Wording(value, error, '1', f"measurements of '{about}' exchanged", abs(value - 1.0) < EXCHANGED)
    if kind == 'encoder_offset':
        return _encoder(about, value, error, corrections, axis)
    if kind == 'encoder_scale':
        much = 'much' if value > 0.0 else 'little'
        inside = corrections.can_be_at(axis, (1.0 - value) * corrections.seen[:, axis])
        # of what it should say, not of what it says
        value, error = value / (1.0 - value), error / (1.0 - value) ** 2
        return Wording(value, error, '1', f"an encoder of '{about}' that says {_percent(value, error)} too {much}, in "
                       'proportion to its position,', abs(value) < MAX_GAIN and inside)
    if not corrections.by_pressure[axis]:
        return _effort(kind, about, value, error, effort_unit(corrections, axis))
    if kind == 'area':
        return _area(about, value, error, port)
    if kind == 'bore':
        return _bore(about, value, error, hydraulics.cylinders[about])
    most = hydraulics.supply.pressure / (corrections.seconds if kind == 'sensor_drift' else 1.0)
    return _pressure(kind, about, value, error, hydraulics.cylinders[about], most)


def of_force(link, theta, covariance, span):
    """Return the `Wording` of a force theta (3,) [N] on a link, its covariance, and from when to when it acts [s]."""
    size, error = _length(theta, covariance)
    parts = ', '.join(map(shown, theta, np.sqrt(np.diagonal(covariance))))
    return Wording(size, error, 'N', f"a force on '{link}' from {span[0]:.0f} to {span[1]:.0f} s, ({parts}) N along x, "
                   'y and z of the base,', True)


def of_swing(link, mass, period, gravity):
    """Return the `Wording` of a load that swings; mass [kg] and period [s] with their errors, gravity [m/s^2]."""
    length, of_length = (gravity * period[0] / (2.0 * math.pi) ** 2 * one for one in (period[0], 2.0 * period[1]))
    return Wording(*period, 's', f"a load of {shown(*mass)} kg that hangs from '{link}' and swings, period "
                   f'{shown(*period)} s, {shown(length, of_length)} m below it,', True)


def of_slip(actuator, value, error, model, corrections, axis):
    """Return the `Wording` of a slip velocity and of that of the model [m/s, rad/s]; error NaN at the end of what is
    looked for."""
    unit = 'm/s' if effort_unit(corrections, axis) == 'N' else 'rad/s'
    end = '' if math.isfinite(error) else 'at most ' if value < model else 'at least '
    return Wording(value, error, unit, f"a slip velocity of the friction of '{actuator}' of {end}"
                   f'{shown(1e3 * value, 1e3 * error)} m{unit}, where the model has {1e3 * model:.4g} m{unit},', True)


def briefly(kind, about):
    """A cause without numbers."""
    return BRIEFLY[kind].format(about)


def _payload(link, theta, errors, own):
    mass, error = float(theta[0]), float(errors[0])
    there = own + mass > -3.0 * error
    side = 'more' if mass > 0.0 else 'less'
    text = f"a payload of {shown(abs(mass), error)} kg {side} than the model knows at '{link}'"
    if abs(mass) <= 3.0 * error:
        moments = ', '.join(f'{value:.3g}' for value in theta[1:])
        return Wording(mass, error, 'kg', f'{text}, with ({moments}) kg m of mass times distance,',
                       there and bool(np.linalg.norm(theta[1:]) <= REACH * (abs(mass) + 3.0 * error)))
    place = theta[1:] / mass
    return Wording(mass, error, 'kg', f'{text}, centre of mass ({", ".join(f"{value:.2f}" for value in place)}) m,',
                   there and bool(np.linalg.norm(place) <= REACH))


def _center(link, theta, covariance, mass):
    size, error = _length(theta, covariance)
    moved = ', '.join(f'{value / mass:.2f}' for value in theta)
    text = (f"a centre of mass of '{link}' ({mass:.4g} kg) that is ({moved}) m off, "
            f'{shown(size, error)} kg m of mass times distance,')
    return Wording(size, error, 'kg m', text, size < MAX_SHIFT * mass)


def _length(theta, covariance):
    """(Size of a vector, its standard error).

    Errors across it make it longer, whatever their sign: their squares are taken off, as of an amplitude with noise
    (Gudbjartsson and Patz, Magn. Reson. Med. 34 (1995) 910).
    """
    square = float(theta @ theta)
    along = theta / math.sqrt(square) if square > 0.0 else theta
    variance = max(float(along @ covariance @ along), 0.0)
    across = max(float(np.trace(covariance)) - variance, 0.0)
    return math.sqrt(max(square - across, 0.0)), math.sqrt(variance)


def _tilt(theta, errors, covariance):
    size, error = _length(theta, covariance)
    x, y = (shown(math.degrees(value), math.degrees(one)) for value, one in zip(theta, errors))
    return Wording(size, error, 'rad', f'a base tilted by {shown(math.degrees(size), math.degrees(error))} degrees '
                   f'({x} about x, {y} about y)', size < MAX_TILT)


def _friction(actuator, value, error, believed, unit):
    if believed:
        factor = max(1.0 + value, 0.0)
        return Wording(factor, error, '1', f"friction of '{actuator}' {shown(factor, error)} times what the model says",
                       1.0 + value > -3.0 * error)
    return Wording(value, error, unit, f"friction of '{actuator}' of {shown(value, error)} {unit}, where the model has "
                   'none,', value > 0.0)


def _encoder(joint, value, error, corrections, coordinate):
    manipulator = corrections.predictor.manipulator
    prismatic = manipulator.machine.description.joints[joint].type == 'prismatic'
    unit, factor, name = ('m', 1e3, 'mm') if prismatic else ('rad', math.degrees(1.0), 'degrees')
    much = 'much' if value > 0.0 else 'little'
    text = f"an encoder of '{joint}' that says {shown(factor * abs(value), factor * error)} {name} too {much}"
    limits = manipulator.coordinate_limits
    span = limits.upper[coordinate] - limits.lower[coordinate]
    span = span if math.isfinite(span) else 2.0 * math.pi
    inside = corrections.can_be_at(coordinate, corrections.seen[:, coordinate] - value)
    return Wording(value, error, unit, text, inside and bool(abs(value) < MAX_GAIN * span),
                   bool(abs(value) < LIKELY * span))


def _effort(kind, actuator, value, error, unit):
    if kind == 'area':
        text = f"a gain of the {OF_EFFORT} of '{actuator}' that is {_percent(value, error)} too {_size(value)}"
        unit = '1'
    elif kind == 'sensor_offset':
        text = f"an offset of {shown(value, error)} {unit} of the {OF_EFFORT} of '{actuator}'"
    else:
        unit += '/s'
        text = f"a drift of {shown(value, error)} {unit} of the {OF_EFFORT} of '{actuator}'"
    return Wording(value, error, unit, text, kind != 'area' or abs(value) < MAX_GAIN)


def _area(actuator, value, error, port):
    # where the area of the model is too large, the effort that is computed with it is too large
    side, left = 'smaller' if value > 0.0 else 'larger', 1.0 - value
    text = (f"an area of port {port.upper()} of '{actuator}' that is {_percent(value, error)} {side} than the model "
            f'says, or a gain of its pressure sensor that is {_percent(value / left, error / left ** 2)} too '
            f'{_size(value)},')
    return Wording(-value, error, '1', text, abs(value) < MAX_GAIN)


def _bore(actuator, value, error, drive):
    if drive.kind == 'motor':
        return Wording(-value, error, '1', f"a displacement of '{actuator}' that is {_percent(value, error)} "
                       f'{"smaller" if value > 0.0 else "larger"} than the model says', abs(value) < MAX_GAIN)
    bore = drive.bore * math.sqrt(max(1.0 - value, 1e-9))
    found = shown(1e3 * bore, 500.0 * error * drive.bore ** 2 / bore)
    return Wording(-value, error, '1', f"a bore of '{actuator}' of {found} mm in place of {1e3 * drive.bore:.4g} mm",
                   abs(value) < MAX_GAIN and bore > drive.rod)


def _pressure(kind, actuator, value, error, cylinder, most):
    """most: Pa or Pa/s, by which a sensor at no more than the pressure of the supply can be off."""
    what, per = ('an offset', '') if kind == 'sensor_offset' else ('a drift', '/s')
    ports = ' or '.join(f'{shown(value / (BAR * area), error / (BAR * abs(area)))} bar{per} of port {port}'
                        for port, area in (('A', cylinder.area_a), ('B', -cylinder.area_b)) if abs(value / area) < most)
    return Wording(value / cylinder.area_a, error / cylinder.area_a, 'Pa' + per,
                   f"{what} of one of the pressure sensors of '{actuator}', {ports},", bool(ports))


def effort_unit(corrections, axis):
    """'N' or 'N m'."""
    joints = corrections.predictor.manipulator.machine.description.joints
    return 'N' if joints[corrections.actuators[axis]].type == 'prismatic' else 'N m'


def _percent(value, error):
    return f'{shown(100.0 * abs(value), 100.0 * error)} %'


def _size(value):
    return 'large' if value > 0.0 else 'small'


def shown(value, error):
    """'31.2 +- 0.5': as many digits as its error is worth, at most four; without an error that is less."""
    if not (math.isfinite(error) and error > 0.0):
        return f'{value:.4g}'
    size = max(abs(value), error)
    digits = max(min(1 - math.floor(math.log10(error)), 3 - math.floor(math.log10(size))), 0)
    of_error = f'{error:.{digits}f}'
    return f'{value:.{digits}f} +- {of_error}' if float(of_error) else f'{value:.{digits}f}'
