"""Causes in words, with numbers in units that people use."""

import math

import numpy as np


def describe(candidate, theta, covariance, corrections, hydraulics):
    """(estimate, standard error, unit, text) of a candidate with its fit theta (n,) and covariance (n, n)."""
    errors = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    return WORDS[candidate.kind](candidate, theta, errors, covariance, corrections, hydraulics)


def _payload(candidate, theta, errors, covariance, corrections, hydraulics):
    mass, error = float(theta[0]), float(errors[0])
    side = 'more' if mass > 0.0 else 'less'
    text = f"a payload of {shown(abs(mass), error)} kg {side} than the model knows at '{candidate.about}'"
    if abs(mass) > 3.0 * error:
        place = ', '.join(f'{value:.2f}' for value in theta[1:] / mass)
        text += f', centre of mass ({place}) m,'
    return mass, error, 'kg', text


def _friction(candidate, theta, errors, covariance, corrections, hydraulics):
    value, error = float(theta[0]), float(errors[0])
    if corrections.believed[candidate.axis]:
        return 1.0 + value, error, '1', (f"friction of '{candidate.about}' {shown(1.0 + value, error)} times what the "
                                         'model says')
    unit = effort_unit(corrections, candidate.axis)
    return value, error, unit, (f"friction of '{candidate.about}' of {shown(value, error)} {unit}, where the model has "
                                'none,')


def _area(candidate, theta, errors, covariance, corrections, hydraulics):
    value, error = float(theta[0]), float(errors[0])
    if not corrections.by_pressure[candidate.axis]:
        return value, error, '1', (f"a gain of the sensor of the effort of '{candidate.about}' that is "
                                   f'{shown(100.0 * abs(value), 100.0 * error)} % too {_size(value)}')
    # where the model has too large an area, the effort that is computed with it is too large
    text = (f"an area of port {candidate.port.upper()} of '{candidate.about}' "
            f'{shown(100.0 * abs(value), 100.0 * error)} % {"smaller" if value > 0.0 else "larger"} than the model '
            f'says, or a gain of its pressure sensor that is too {_size(value)} by that,')
    return -value, error, '1', text


def _offset(candidate, theta, errors, covariance, corrections, hydraulics):
    return _of_sensor(candidate, float(theta[0]), float(errors[0]), corrections, hydraulics, 'an offset', '')


def _drift(candidate, theta, errors, covariance, corrections, hydraulics):
    return _of_sensor(candidate, float(theta[0]), float(errors[0]), corrections, hydraulics, 'a drift', '/s')


def _of_sensor(candidate, value, error, corrections, hydraulics, what, per):
    if not corrections.by_pressure[candidate.axis]:
        unit = effort_unit(corrections, candidate.axis) + per
        return value, error, unit, f"{what} of {shown(value, error)} {unit} of the effort of '{candidate.about}'"
    cylinder = hydraulics.cylinders[candidate.about]
    a, b = value / cylinder.area_a, -value / cylinder.area_b
    of_a, of_b = error / cylinder.area_a, error / cylinder.area_b
    text = (f"{what} of one of the pressure sensors of '{candidate.about}', {shown(1e-5 * a, 1e-5 * of_a)} bar{per} of "
            f'port A or {shown(1e-5 * b, 1e-5 * of_b)} bar{per} of port B,')
    return a, of_a, 'Pa' + per, text


def _delay(candidate, theta, errors, covariance, corrections, hydraulics):
    value, error = float(theta[0]), float(errors[0])
    return value, error, 's', (f"efforts on '{candidate.about}' that come {shown(1e3 * abs(value), 1e3 * error)} ms "
                               f'{"later" if value > 0.0 else "earlier"} than the states')


def _tilt(candidate, theta, errors, covariance, corrections, hydraulics):
    size = float(np.hypot(*theta))
    along = theta / size if size > 0.0 else theta
    error = math.sqrt(max(float(along @ covariance @ along), 0.0))
    x, y = (shown(math.degrees(value), math.degrees(sigma)) for value, sigma in zip(theta, errors))
    return size, error, 'rad', (f'a base tilted by {shown(math.degrees(size), math.degrees(error))} degrees ({x} about '
                                f'x, {y} about y)')


def _encoder(candidate, theta, errors, covariance, corrections, hydraulics):
    value, error = float(theta[0]), float(errors[0])
    kind = corrections.predictor.manipulator.machine.description.joints[candidate.about].type
    unit, factor, name = ('m', 1e3, 'mm') if kind == 'prismatic' else ('rad', 180.0 / math.pi, 'degrees')
    return value, error, unit, (f"an encoder of '{candidate.about}' that says {shown(factor * abs(value), factor * error)}"
                                f' {name} too {"much" if value > 0.0 else "little"}')


WORDS = {'payload': _payload, 'friction': _friction, 'area': _area, 'sensor_offset': _offset, 'sensor_drift': _drift,
         'delay': _delay, 'base_tilt': _tilt, 'encoder_offset': _encoder}


def effort_unit(corrections, axis):
    """'N' or 'N m'."""
    joints = corrections.predictor.manipulator.machine.description.joints
    return 'N' if joints[corrections.actuators[axis]].type == 'prismatic' else 'N m'


def _size(value):
    return 'large' if value > 0.0 else 'small'


def shown(value, error):
    """'31.2 +- 0.5': as many digits as its error is worth."""
    if not (math.isfinite(error) and error > 0.0):
        return f'{value:.3g}'
    digits = max(min(1 - math.floor(math.log10(error)), 6), 0)
    return f'{value:.{digits}f} +- {error:.{digits}f}'
