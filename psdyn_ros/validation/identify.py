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
from .diagnosis.cause_messages import MAX_GAIN
from .identification.base_parameters import base_structure, base_unknowns
from .identification.estimator import FAINTEST, FEWEST_GROUPS, System, squares, unknowns
from .identification.identified import (
    IDENTIFIED_SHARE,
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
from .identification.normal_equations import COULOMB, VISCOUS, WINDOW, NormalEquations
from .identification.physical_inertia import REACH, declared_body, unknown_body
from .identification.regressor import COUNT, Regressor, parameters_of
from .metrics.verdict import CLEAR
from .signals.blocks import Block
from .signals.quality import INVALID

# none of the parameters, but would be taken for them
REFUSED = 'ports', 'exchanged', 'delay', 'contact_force', 'hanging_load'
EVERY = 4                   # stretch of them is held out
FRICTION_SECONDS = 2.0      # that an actuator must slide for its friction
HEAVIEST = 1.0              # of the mass of the machine, scale of a payload
SIGNIFICANT = 2.0           # standard deviations
KNOWN = 0.9                 # share of the time during which an effort must be known for the recording to be whole
OVERFITTED = 2.0            # times as far off where held out as where not, and
FAR = 0.05                  # of the range of the effort there, as `validate` tolerates it
NEAR = 2e-3                 # of that range: being worse by less than this is of no interest


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
    evidence = NormalEquations(regressor, hydraulics, window)
    for block in blocks:
        evidence.add(block)
    return conclude(evidence, payload_com=payload_com if payload_link is not None else None,
                    payload=payload_link is not None, reach=reach, source=source)


def conclude(evidence, *, payload=False, payload_com=None, reach=REACH, source=''):
    """Return the `Identification` of `NormalEquations` whose regressor is about one payload, or about all links."""
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
    found = _links_and_friction(evidence, unknown, estimate, inertials, payload, FAINTEST * _usual(groups))
    _check_possible(*found, manipulator)
    found = tuple(body.possible for body in found[0]), found[1]
    return Identification(
        machine=manipulator.name, source=source, payload=payload, bodies=found[0], friction=found[1],
        base=_base(regressor, system, unknown, declared, float(np.max(_usual(groups))), estimate),
        sensors=tuple(_sensors(evidence, unknown, estimate, deviations)), sensor_share=estimate.share,
        held_out=_held_out(groups, evidence, unknown, estimate.share, inertials, payload, found),
        filter=str(evidence.smoother), seconds=evidence.seconds,
        equations=int(sum(group.rows.sum() for group in groups)), skipped=evidence.skipped,
        partial=tuple(_unusable(evidence)))


def _links_and_friction(evidence, unknown, estimate, inertials, payload, floor):
    """(tuple of `BodyEstimate`, tuple of `FrictionEstimate`); floor: (dof,) least standard errors of forces."""
    bodies = tuple(_body(name, inertials[name], model, estimate, COUNT * k, payload)
                   for k, (name, model) in enumerate(zip(evidence.regressor.links, unknown.bodies)))
    return bodies, tuple(_friction(evidence, number, unknown, estimate, floor)
                         for number in range(len(evidence.actuators)))


def _check_possible(bodies, friction, manipulator):
    """Refuse what no machine can have: whatever else is wrong with the recording, that is not it."""
    for body in bodies:
        own = 0.0 if body.declared is None or not body.payload else body.declared.mass
        if own + body.found.mass < -SIGNIFICANT * body.errors[0]:
            raise IdentificationError(
                f"'{manipulator.name}': link '{body.name}' with its payload would weigh less than nothing; check the "
                'units and ports of its pressures, delays and the hydraulics with `psdyn validate`')
    moved = [one for one in friction if one.forces or one.impossible]
    if moved and all(one.impossible for one in moved):
        raise IdentificationError(
            f"'{manipulator.name}': friction of every actuator would be below zero ("
            f'{", ".join(one.name for one in moved)}), which none can be; check the sign of efforts, ports of '
            'pressures and delays with `psdyn validate`')


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
    by_sensors = np.sqrt(np.einsum('ij,jk,ik->i', J, estimate.systematic[part, part], J))
    believed = np.sqrt(np.einsum('ij,ij->i', J, J))
    identified = 1.0 - np.clip(errors / np.maximum(believed, 1e-300), 0.0, 1.0)
    return BodyEstimate(name, own, model.inertial(eta), errors, by_sensors, identified, payload)


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
                            float(slope), float(errors[0]), float(errors[1]), tuple(forces)).possible


def _sensors(evidence, unknown, estimate, deviations):
    """What errors of sensors explain, of each actuator; none that a sensor cannot have."""
    for number, name in enumerate(evidence.actuators):
        by_pressure = evidence.by_pressure[number]
        labels = ('offset', 'gain A', 'gain B') if by_pressure else ('offset', 'gain')
        for term, label in enumerate(labels, start=VISCOUS + 1):
            column = evidence.column(number, term)
            value = float(estimate.values[column])
            most = MAX_GAIN if label != 'offset' else np.inf
            if label == 'offset' and by_pressure:
                most = evidence.hydraulics.supply.pressure * evidence.hydraulics.cylinders[name].area_a
            if abs(value) < most:
                yield SensorError(name, label, value, float(unknown.scale[column] * deviations[column]),
                                  float(unknown.scale[column]))


def _base(regressor, system, unknown, declared, usual, estimate):
    structure, links = base_structure(regressor), slice(len(declared))
    free, numbers = base_unknowns(structure, unknown, usual), structure.independent
    alone = system.solve(free, estimate.share)
    believed, slopes = (structure.of(one) for one in (declared, unknown.jacobian(estimate.eta)[links]))
    of_bodies = np.sqrt(np.einsum('ij,jk,ik->i', slopes, estimate.covariance, slopes))
    return tuple(BaseParameter(name, *map(float, of)) for name, *of in zip(
        structure.names, believed, believed + alone.values[numbers],
        (free.scale * np.sqrt(np.diag(alone.covariance)))[numbers],
        believed + structure.of(estimate.values[links]), of_bodies))


def _held_out(groups, evidence, unknown, share, inertials, payload, found):
    """Fit three of four stretches, judge by the fourth what files would say of that fit.

    found  links and friction by all stretches, which say what is written
    """
    numbers = sorted(evidence.groups)
    fitted = [group for number, group in enumerate(groups) if number % EVERY != EVERY - 1]
    kept = [group for number, group in enumerate(groups) if number % EVERY == EVERY - 1]
    system = System(fitted, evidence)
    estimate = system.solve(unknown, share)
    parts = _links_and_friction(evidence, unknown, estimate, inertials, payload, FAINTEST * _usual(groups))
    values = _written(evidence, unknown, parts, found)
    believed = unknown.base.copy()
    before, after, with_sensors = (squares(kept, one) for one in (believed, values, estimate.values))
    rows = sum(group.rows for group in kept)
    trained = np.sqrt(squares(fitted, values).sum(axis=0) / np.maximum(sum(group.rows for group in fitted), 1))
    gains = (before - after) * system.weights
    significance, each = _significance(gains.sum(axis=1)), _significance(gains)
    before, after, with_sensors = (np.sqrt(part.sum(axis=0) / np.maximum(rows, 1))
                                   for part in (before, after, with_sensors))
    reach, there = _range(evidence), rows > 0
    names = evidence.regressor.manipulator.coordinates
    worse = (after - before > NEAR * reach) & (np.minimum(each, significance) < -SIGNIFICANT)
    limit = np.maximum(OVERFITTED * np.maximum(trained, FAINTEST * _usual(groups)), FAR * reach)
    return HeldOut(
        names, len(kept) * evidence.span, rows, before, after, trained, with_sensors, _usual(groups), reach,
        float(significance), tuple(name for name, far in zip(names, there & (after > limit)) if far),
        tuple(name for name, bad in zip(names, there & worse) if bad), SIGNIFICANT,
        _trace(evidence, numbers[EVERY - 1::EVERY], believed, values))


def _significance(gains):
    """Standard deviations by which the mean of gains (stretches, ...) is above zero."""
    spread = gains.std(axis=0, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.inf
    return gains.mean(axis=0) / np.maximum(spread, 1e-300)


def _written(evidence, unknown, parts, found):
    """(P,) values of all columns as corrected files have them: links and friction that `found` identified.

    What was fitted of sensors is in no file, and does not count.
    """
    values = unknown.base.copy()
    for k, (body, whole) in enumerate(zip(parts[0], found[0])):
        if body.payload or (whole.identified >= IDENTIFIED_SHARE).any():
            columns = slice(COUNT * k, COUNT * (k + 1))
            values[columns] = parameters_of(body.corrected) - evidence.regressor.declared[columns]
    for number, (one, whole) in enumerate(zip(*(each[1] for each in (parts, found)))):
        if whole.identified and one.forces:
            values[[evidence.column(number, COULOMB), evidence.column(number, VISCOUS)]] = one.line
    return values


def _range(evidence):
    """(dof,) between the least and the largest effort on each coordinate, where it counts."""
    _, _, wanted, _, counts = evidence.samples.rows()
    low, high = (np.where(counts, wanted, other) for other in (np.inf, -np.inf))
    return np.maximum(high.max(axis=0, initial=-np.inf) - low.min(axis=0, initial=np.inf), 0.0)


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
    """Return (Identification, Manipulator, Hydraulics or None) of a bag; arguments as `validate` and `identify`.

    Runs first what `validate` checks.  Delays that are certain are taken off, which the findings say; raises
    IdentificationError where units look wrong, ports are exchanged, or efforts that come with the states are late.
    """
    from .bags.source import open_bag
    from .metrics.tolerances import MachineTolerance
    from .metrics.verdict import losses
    from .signals.blocks import blocks
    from .signals.quality import Quality
    from .signals.topics import find_topics
    from .validate import read_model, validate

    optional = hydraulics is None
    manipulator, hydraulics = read_model(urdf, hydraulics, initial)
    if payload_link is not None and payload_link not in manipulator.links:
        raise UnknownNameError(f"payload on link '{payload_link}': no link of '{manipulator.name}'"
                               f'{did_you_mean(payload_link, manipulator.links)}')
    checked = validate(bag, manipulator, hydraulics=hydraulics or '', topics=topics, hydraulics_optional=optional)
    _check_recording(bag, checked)
    hydraulics = checked.predictor.hydraulics
    delays = {topic: delay.taken for topic, delay in checked.delays.items() if delay.taken}
    regressor = Regressor(manipulator, None if payload_link is None else [payload_link])
    evidence = NormalEquations(regressor, hydraulics, window)
    with open_bag(bag) as source:
        channels = find_topics(source, manipulator, topics)
        quality = Quality(channels, manipulator, hydraulics)
        for block in blocks(source, channels, manipulator, hydraulics, overlap_s=max(0.5, window), quality=quality,
                            delays=delays):
            evidence.add(block)
        found = conclude(evidence, payload_com=payload_com if payload_link is not None else None,
                         payload=payload_link is not None, source=str(bag))
        partial = (*losses(source, quality, found.seconds, MachineTolerance().coverage), *found.partial,
                   *(f'{name}: its effort is not measured' for name in checked.metrics.unmeasured()))
    findings = *(f'delay: {topic}: {checked.delays[topic].text}' for topic in delays), *(
        f'{one.severity}: {one.about}: {one.text}' for one in quality.findings())
    return replace(found, partial=partial, findings=findings), manipulator, hydraulics


def _check_recording(bag, checked):
    """Refuse a recording whose `Validation` found something that an identification would take for the machine."""
    quality = checked.quality
    wrong = [f'{one.about}: {one.text}' for one in quality.findings() if one.severity == INVALID]
    wrong += [f'{about}: {text}' for about, text in quality.units.findings()]
    taken = {topic for topic, delay in checked.delays.items() if delay.taken}
    # a force for a while is listed only where it explains what the first leaves
    wrong += [one.text for k, one in enumerate(checked.causes) if one.kind in REFUSED and one.about not in taken
              and one.low > CLEAR and (k == 0 or one.kind == 'contact_force')]
    if wrong:
        raise IdentificationError(f"bag '{bag}': {'; '.join(wrong)}; nothing is identified before that is right")
