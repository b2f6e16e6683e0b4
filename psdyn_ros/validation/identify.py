"""`identify`: what a machine weighs, what its cylinders rub, and what it carries, from a recording of it in motion.

Payload: the rest of the machine is believed, and a body on one link is found.  Otherwise all links are, with what the
URDF says as the belief, and no inertia leaves what a body can have.  Friction is force at 30 to 100 mm/s: the line
through it has a level and a slope, but a recording hardly tells one from the other.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..api.manipulator import Manipulator
from ..model.errors import PsdynError, UnknownNameError, did_you_mean
from ..model.parameters.hydraulics import Hydraulics
from .identification.base_parameters import base_structure, base_unknowns
from .identification.estimator import FAINTEST, FEWEST_GROUPS, System, squares, unknowns
from .identification.identified import (
    SPEEDS,
    BaseParameter,
    BodyEstimate,
    FrictionEstimate,
    HeldOut,
    HeldOutTrace,
    Identification,
    SensorError,
    SpeedForce,
)
from .identification.normal_equations import COULOMB, VISCOUS, WINDOW, Evidence
from .identification.physical_inertia import REACH, declared_body, unknown_body
from .identification.regressor import COUNT, Regressor
from .signals.blocks import Block

EVERY = 4                   # stretch of them is held out
FRICTION_SECONDS = 2.0      # that an actuator must slide for its friction
HEAVIEST = 1.0              # of the mass of the machine, scale of a payload
SIGNIFICANT = 2.0           # standard deviations
KNOWN = 0.9                 # share of the time during which an effort must be known for the recording to be whole
OVERFITTED = 2.0            # times as far off where held out as where not


class IdentificationError(PsdynError):
    """A recording from which nothing can be identified."""


def identify(blocks: Iterable[Block], manipulator: Manipulator, hydraulics: Hydraulics | None = None, *,
             payload_link: str | None = None, payload_com: npt.ArrayLike | None = None, reach: float = REACH,
             window: float = WINDOW, source: str = '') -> Identification:
    """Return the `Identification` of a machine.

    blocks        iterable of `Block`, read once, with memory that does not grow with it
    manipulator   as believed; its base stands
    hydraulics    `Hydraulics` as believed; None: efforts are measured as such
    payload_link  link that carries a body of which nothing is known; None: all links are in question
    payload_com   (3,) m where that body is believed to be, in axes of the link; None: where the link's own mass is
    reach         m, standard deviation of that belief
    window        s, of the zero-phase filter
    source        name of the recording, for reports
    Raises IdentificationError where the recording tells nothing, UnknownNameError for a link that does not move.
    """
    regressor = Regressor(manipulator, None if payload_link is None else [payload_link])
    evidence = Evidence(regressor, hydraulics, window)
    for block in blocks:
        evidence.add(block)
    return conclude(evidence, payload_com=payload_com if payload_link is not None else None,
                    payload=payload_link is not None, reach=reach, source=source)


def conclude(evidence, *, payload=False, payload_com=None, reach=REACH, source=''):
    """Return the `Identification` of an `Evidence` whose regressor is about one payload, or about all links."""
    _check(evidence)
    regressor, manipulator = evidence.regressor, evidence.regressor.manipulator
    inertials = {name: manipulator.machine.description.links[name].inertial for name in regressor.links}
    if payload:
        own = inertials[regressor.links[0]]
        com = payload_com if payload_com is not None else np.zeros(3) if own is None else own.com
        bodies = [unknown_body(com, HEAVIEST * manipulator.total_mass, reach)]
        declared = np.zeros(COUNT)
    else:
        bodies = [declared_body(inertials[name]) for name in regressor.links]
        declared = regressor.declared
    unknown = unknowns(evidence, bodies, declared)
    groups = [group for _, group in sorted(evidence.groups.items())]
    system = System(groups, evidence)
    estimate = system.solve(unknown)
    deviations = np.sqrt(np.diag(estimate.covariance))
    floor = FAINTEST * _usual(groups)
    return Identification(
        machine=manipulator.name, source=source, payload=payload,
        bodies=tuple(_body(name, inertials[name], model, estimate, COUNT * k, payload)
                     for k, (name, model) in enumerate(zip(regressor.links, bodies))),
        friction=tuple(_friction(evidence, number, unknown, estimate, floor)
                       for number in range(len(evidence.actuators))),
        base=_base(regressor, system, unknown, declared, float(np.max(_usual(groups))), estimate.share),
        sensors=tuple(_sensors(evidence, unknown, estimate, deviations)), sensor_share=estimate.share,
        held_out=_held_out(groups, evidence, unknown, estimate.share), filter=str(evidence.smoother),
        seconds=evidence.seconds,
        equations=int(sum(group.rows.sum() for group in groups)), skipped=evidence.skipped,
        partial=tuple(_unusable(evidence)))


def _unusable(evidence):
    """Why much of what was read could not be used."""
    instants = max(group.rows.max() for group in evidence.groups.values())
    if evidence.skipped > (1.0 - KNOWN) * instants:
        yield f'loops of the model do not close at {evidence.skipped} of the instants'
    for name, known in zip(evidence.actuators, evidence.known):
        if 0.0 < known < KNOWN * evidence.seconds:
            yield f'{name}: its effort is known during {known:.4g} of {evidence.seconds:.4g} s only'


def _check(evidence):
    groups = evidence.groups
    slowest = ', '.join(f'{name} {seconds:.1f} s' for name, seconds in zip(evidence.actuators, evidence.moved))
    if not groups:
        raise IdentificationError(
            f"'{evidence.regressor.manipulator.name}': nothing can be identified from {evidence.seconds:.1f} s in "
            f'which no actuator with a known effort keeps moving at {4e3 * evidence.slip.min():.0f} mm/s or more '
            f'({slowest}); expected motion of all of them, up and down, at 30 to 100 mm/s')
    if len(groups) < FEWEST_GROUPS:
        raise IdentificationError(f'{len(groups) * evidence.span} s of motion ({slowest}); expected at least '
                                  f'{FEWEST_GROUPS} s, better 60 s')


def _usual(groups):
    """(dof,) RMS of the efforts."""
    rows = sum(group.rows for group in groups)
    return np.sqrt(sum(group.power for group in groups) / np.maximum(rows, 1))


def _body(name, own, model, estimate, first, payload):
    """The `BodyEstimate` of the body whose columns begin at `first`."""
    part = slice(first, first + COUNT)
    eta, covariance = estimate.eta[part], estimate.covariance[part, part]
    J = model.slopes(eta)
    errors = np.sqrt(np.maximum(np.einsum('ij,jk,ik->i', J, covariance, J), 0.0))
    believed = np.sqrt(np.einsum('ij,ij->i', J, J))
    identified = 1.0 - np.clip(errors / np.maximum(believed, 1e-300), 0.0, 1.0)
    return BodyEstimate(name, own, model.inertial(eta), errors, identified, payload)


def _friction(evidence, number, unknown, estimate, floor):
    """The `FrictionEstimate` of an actuator; floor: (dof,) what no standard error of a force is below."""
    name = evidence.actuators[number]
    columns = [evidence.column(number, COULOMB), evidence.column(number, VISCOUS)]
    coulomb, viscous = evidence.friction[number]
    joint = evidence.regressor.manipulator.machine.description.joints[name]
    unit = 'm/s' if joint.type == 'prismatic' else 'rad/s'
    if evidence.moved[number] < FRICTION_SECONDS:
        return FrictionEstimate(name, unit, float(evidence.moved[number]), float(coulomb), float(viscous), None, None,
                                None, None, ())
    scale = unknown.scale[columns]
    covariance = estimate.covariance[np.ix_(columns, columns)] * np.outer(scale, scale)
    level, slope = estimate.values[columns]
    least = float(floor[number] if evidence.regressor.direct else floor.max())
    forces = []
    for speed in SPEEDS:
        row = np.array([np.tanh(speed / evidence.slip[number]), speed])
        forces.append(SpeedForce(speed, float(row @ [level, slope]), float(np.hypot(np.sqrt(row @ covariance @ row),
                                                                                   least)),
                                 float(row @ [coulomb, viscous])))
    errors = np.sqrt(np.diag(covariance))
    return FrictionEstimate(name, unit, float(evidence.moved[number]), float(coulomb), float(viscous), float(level),
                            float(slope), float(errors[0]), float(errors[1]), tuple(forces))


def _sensors(evidence, unknown, estimate, deviations):
    """What errors of sensors explain, of each actuator."""
    for number, name in enumerate(evidence.actuators):
        labels = ('offset', 'gain A', 'gain B') if evidence.by_pressure[number] else ('offset', 'gain')
        for term, label in enumerate(labels, start=VISCOUS + 1):
            column = evidence.column(number, term)
            yield SensorError(name, label, float(estimate.values[column]),
                              float(unknown.scale[column] * deviations[column]), float(unknown.scale[column]))


def _base(regressor, system, unknown, declared, usual, share):
    structure = base_structure(regressor)
    free = base_unknowns(structure, unknown, usual)
    estimate = system.solve(free, share)
    deviations = np.sqrt(np.diag(estimate.covariance))
    believed = structure.of(declared)
    return tuple(
        BaseParameter(name, float(believed[row]), float(believed[row] + estimate.values[number]),
                      float(free.scale[number] * deviations[number]))
        for row, (name, number) in enumerate(zip(structure.names, structure.independent)))


def _held_out(groups, evidence, unknown, share):
    """Fit three of four stretches, judge by the fourth."""
    numbers = sorted(evidence.groups)
    fitted = [group for number, group in enumerate(groups) if number % EVERY != EVERY - 1]
    kept = [group for number, group in enumerate(groups) if number % EVERY == EVERY - 1]
    system = System(fitted, evidence)
    values = system.solve(unknown, share).values
    believed = unknown.base.copy()
    before, after = squares(kept, believed), squares(kept, values)
    rows = sum(group.rows for group in kept)
    trained = np.sqrt(squares(fitted, values).sum(axis=0) / np.maximum(sum(group.rows for group in fitted), 1))
    gain = ((before - after) * system.weights).sum(axis=1)
    spread = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    rmse = [np.sqrt(part.sum(axis=0) / np.maximum(rows, 1)) for part in (before, after)]
    there = rows > 0
    overfitted = bool((rmse[1][there] > OVERFITTED * np.maximum(trained, FAINTEST * _usual(groups))[there]).any())
    return HeldOut(evidence.regressor.manipulator.coordinates, len(kept) * evidence.span, rows, *rmse, trained,
                   _usual(groups), float(gain.mean() / max(spread, 1e-300)), overfitted, SIGNIFICANT,
                   _trace(evidence, numbers[EVERY - 1::EVERY], believed, values))


def _trace(evidence, numbers, believed, values):
    """The `HeldOutTrace` of the stretches of these numbers."""
    t, equations, wanted, bare, counts = evidence.samples.rows()
    there = np.isin(np.floor(t).astype(int) // evidence.span, numbers)
    equations, bare = equations[there], bare[there]
    return HeldOutTrace(t[there], wanted[there], bare + equations @ believed, bare + equations @ values, counts[there])


def identify_bag(bag: str | PathLike[str], urdf: str | PathLike[str] | Manipulator, *, hydraulics: Any = None,
                 payload_link: str | None = None, payload_com: npt.ArrayLike | None = None,
                 topics: Mapping[str, Any] | None = None, initial: Mapping[str, float] | None = None,
                 window: float = WINDOW) -> tuple[Identification, Manipulator, Hydraulics | None]:
    """Return (Identification, Manipulator, Hydraulics or None) of a bag; arguments as `validate` and `identify`."""
    from .bags.source import open_bag
    from .metrics.tolerances import MachineTolerance
    from .metrics.verdict import losses
    from .signals.blocks import blocks
    from .signals.quality import Quality
    from .signals.topics import find_topics
    from .validate import read_model

    optional = hydraulics is None
    manipulator, hydraulics = read_model(urdf, hydraulics, initial)
    if payload_link is not None and payload_link not in manipulator.links:
        raise UnknownNameError(f"payload on link '{payload_link}': no link of '{manipulator.name}'"
                               f'{did_you_mean(payload_link, manipulator.links)}')
    with open_bag(bag) as source:
        channels = find_topics(source, manipulator, topics)
        if optional and not channels.hydraulic:
            hydraulics = None
        quality = Quality(channels, manipulator, hydraulics)
        pieces = blocks(source, channels, manipulator, hydraulics, overlap_s=max(0.5, window), quality=quality)
        found = identify(pieces, manipulator, hydraulics, payload_link=payload_link, payload_com=payload_com,
                         window=window, source=str(bag))
        if source.invalid:
            raise IdentificationError(f"bag '{bag}': {source.invalid}")
        partial = *losses(source, quality, found.seconds, MachineTolerance().coverage), *found.partial
        findings = tuple(f'{one.severity}: {one.about}: {one.text}' for one in quality.findings())
    return replace(found, partial=partial, findings=findings), manipulator, hydraulics
