"""Example recordings: what is wrong with the machine in each, and what a validation should find.

The machine is the crane hiab_xs031 with 200 kg at its tool. The model (`model_urdf`) is what the user believes; the
machine of a case may be another one.
"""

import math
from dataclasses import dataclass

import yaml

from ...model.errors import UnknownNameError, did_you_mean
from ...model.units import BAR
from ...validation.metrics import FAIL, PASS
from ..studies.loaded_crane import PAYLOAD, PAYLOAD_LINK, payload_urdf, tilted_urdf

HEAVIER = 1.15                      # times that
TILT = math.radians(3.0)
TILT_AXIS = 0.6, 0.8                # of x and y, so that neither rolling nor pitching does all of it
DRIFT = 12e5                        # Pa at the end of the motion
DELAY = 0.008                       # s
FROZEN = 0.4, 0.3                   # of the motion: when an encoder freezes, and for how long
DRIFTING, FROZEN_JOINT = 'lift_cylinder.pressure_a', 'lift_cylinder'
PLAIN, NOISELESS = SENSORS = 'plain', 'noiseless'
DURATION = 60.0                     # s of motion
SEED = 1
MODEL, HYDRAULICS = 'machine.urdf', 'hydraulics.yaml'
MEASURED = ('slew', 'lift_cylinder', 'lift_boom', 'tilt_cylinder', 'tilt_boom', 'telescope')
PASSED_ON = ('slew', 'lift_boom', 'tilt_boom', 'telescope')     # to the controller


@dataclass(frozen=True)
class Case:
    """One recording.

    what     was done, in words
    kind     of the first cause that a diagnosis should name, '' for none
    about    what that cause should be about
    verdict  of `psdyn validate`
    """

    what: str
    kind: str = ''
    about: str = ''
    verdict: str = FAIL


CASES = {
    'healthy': Case('machine and model are the same', verdict=PASS),
    'payload': Case(f'the payload is {PAYLOAD * HEAVIER:g} kg, the model says {PAYLOAD:g} kg', 'payload',
                    PAYLOAD_LINK),
    'pressure_drift': Case(f'the sensor of the pressure in port A of the lift cylinder drifts off by {DRIFT / BAR:g} '
                           'bar during the motion', 'sensor_drift', 'lift_cylinder'),
    'delay': Case(f'all pressures are {1e3 * DELAY:g} ms older than their stamps', 'delay',
                  '/simulator/hydraulic_telemetry'),
    'frozen_encoder': Case(f'the encoder of the stroke of the lift cylinder stands still for {FROZEN[1]:.0%} of the '
                           'motion; the controller is led by the angles of the booms and does not notice',
                           'frozen_encoder', FROZEN_JOINT),
    'base_tilt': Case(f'the machine stands on ground that slopes by {math.degrees(TILT):g} degrees', 'base_tilt',
                      'base'),
}


def checked_cases(names):
    """The names as a tuple; UnknownNameError for one that there is not."""
    for name in names:
        if name not in CASES:
            raise UnknownNameError(f"there is no case '{name}'{did_you_mean(name, CASES)}")
    return tuple(dict.fromkeys(names))


def model_urdf(urdf):
    """The URDF text of the machine with its payload, as the model has it."""
    return payload_urdf(urdf, PAYLOAD)


def machine_urdf(case, urdf):
    """So too, as the machine of a case is."""
    if case == 'payload':
        return payload_urdf(urdf, HEAVIER * PAYLOAD)
    loaded = model_urdf(urdf)
    return tilted_urdf(loaded, *(TILT * share for share in TILT_AXIS)) if case == 'base_tilt' else loaded


def faults(case, cylinders, begin, duration):
    """YAML text of the faults of the machine of a case, None where it has none.

    cylinders  names
    begin      s of the plant's time at which the motion begins
    duration   s of motion
    """
    if case == 'pressure_drift':
        found = [{'kind': 'drift', 'target': DRIFTING, 'value': DRIFT / duration, 'start': begin}]
    elif case == 'delay':
        found = [{'kind': 'delay', 'target': f'{name}.pressure_{port}', 'value': DELAY}
                 for name in cylinders for port in 'ab']
    elif case == 'frozen_encoder':
        span = {'start': begin + FROZEN[0] * duration, 'duration': FROZEN[1] * duration}
        # who differentiates a position that stands still finds no velocity
        found = [{'kind': 'freeze', 'target': f'{FROZEN_JOINT}.position', **span},
                 {'kind': 'gain', 'target': f'{FROZEN_JOINT}.velocity', 'value': 0.0, **span}]
    else:
        return None
    return yaml.safe_dump({'faults': found}, sort_keys=False)


def cases_text(names, facts, before=''):
    """YAML text: where the model is, what was done in each recording, and what should be found.

    names   of the cases recorded
    facts   {what: value} about these
    before  such a text, whose other cases stay
    """
    cases = (yaml.safe_load(before) or {}).get('cases', {})
    for name in names:
        case = CASES[name]
        cause = {'kind': case.kind, 'about': case.about} if case.kind else None
        cases[name] = {'what': case.what, 'verdict': case.verdict, 'cause': cause, **facts}
    return yaml.safe_dump({'model': MODEL, 'hydraulics': HYDRAULICS, 'cases': cases}, sort_keys=False, width=120)
