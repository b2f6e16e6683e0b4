"""What came of an identification: figures with standard errors, in words and as a dictionary."""
from dataclasses import asdict, dataclass, replace

import numpy as np

from ...api.manipulator import combine
from ...model.mechanism.description import Inertial
from ..metrics import FAIL, PARTIAL_PASS
from ..metrics.metrics import plain
from .physical_inertia import declared_body, is_physical

SPEEDS = (0.03, 0.065, 0.1)     # m/s or rad/s at which friction is stated
IDENTIFIED_SHARE = 0.5          # least share of a prior that the recording must have replaced
RELATIVE = 0.3                  # standard error of a base parameter that is identified, of its value
CONTRADICTS = 3.0               # standard errors between it and what the bodies come to, from which it is not
NOT_ALONE = ('friction is known as force at 30 to 100 mm/s; its viscous part alone is not identifiable, nor is the '
             'Coulomb part without it')


@dataclass(frozen=True)
class BodyEstimate:
    """A link, or what it carries.

    name      of the link
    declared  `Inertial` of the link in the URDF, or None
    found     `Inertial` of the link, or of the payload on it
    errors    (10,) standard errors: mass, com x y z, inertia xx xy xz yy yz zz about the centre of mass
    by_sensors  (10,) by how much usual errors of sensors would change that, which a recording may not see
    identified      (10,) 0 to 1: how much of that the recording says, the rest is belief
    payload   whether it is a payload
    """

    name: str
    declared: Inertial
    found: Inertial
    errors: np.ndarray
    by_sensors: np.ndarray
    identified: np.ndarray
    payload: bool

    @property
    def possible(self):
        """It with a mass that can be: where chance puts that below nothing, a payload is nothing."""
        own = self.declared.mass if self.declared else 0.0
        if self.payload and own + self.found.mass <= 0.0:
            return replace(self, found=Inertial(0.0, self.found.com, np.zeros((3, 3))))
        return self

    @property
    def corrected(self):
        """`Inertial` of the link with what was found, one that a body can have; None where there is no mass."""
        if not self.payload:
            return self.found
        total = combine(self.declared, self.found)
        if total is None or total.mass <= 0.0:
            return self.declared
        return total if is_physical(total) else declared_body(total).inertial(np.zeros(10))

    def lines(self):
        """It in words."""
        mass, com = self.found.mass, self.found.com
        what = f"payload on '{self.name}'" if self.payload else f"link '{self.name}'"
        was = '' if self.payload or self.declared is None else f' (was {self.declared.mass:.2f})'
        less = f' less than the {self.declared.mass:.2f} kg of the model' if self.payload and mass < 0.0 else was
        yield f'{what}: mass {abs(mass):.2f} +- {self.errors[0]:.2f} kg{less}'
        if self.payload:
            yield f'  sensors that are off as much as usual would change it by {self.by_sensors[0]:.2g} kg'
        parts = []
        for axis, value, error, identified in zip('xyz', com, self.errors[1:4], self.identified[1:4]):
            note = '' if identified >= IDENTIFIED_SHARE else ', a belief: the motion does not tell it'
            parts.append(f'{axis} {value:.3f} +- {error:.3f} m{note}')
        yield f'  centre of mass {"; ".join(parts)}'
        if (self.identified[4:] < IDENTIFIED_SHARE).all():
            yield '  inertia about it: a belief, the motion does not tell it'


@dataclass(frozen=True)
class SpeedForce:
    """Friction [N, N m] at a speed [m/s, rad/s]: as found, its standard error, as believed."""

    speed: float
    force: float
    error: float
    believed: float


@dataclass(frozen=True)
class FrictionEstimate:
    """Friction of an actuator; what was found is None where it moved too little, or is below zero.

    unit                of its speed
    moved               s in which it slid
    was_coulomb         N, N m, as believed
    was_viscous         N s/m, N m s/rad
    coulomb, viscous    of the line through the forces, and their standard errors
    forces              `SpeedForce` of each of SPEEDS
    impossible          whether the best fit is below zero, beyond two standard errors: something else is wrong
    """

    name: str
    unit: str
    moved: float
    was_coulomb: float
    was_viscous: float
    coulomb: float
    viscous: float
    coulomb_error: float
    viscous_error: float
    forces: tuple
    impossible: bool = False

    @property
    def declared(self):
        """Whether there was any in the model."""
        return bool(self.was_coulomb or self.was_viscous)

    @property
    def possible(self):
        """What of it can be: no friction is below zero."""
        if any(one.force < -2.0 * one.error for one in self.forces):
            return FrictionEstimate(self.name, self.unit, self.moved, self.was_coulomb, self.was_viscous, None, None,
                                    None, None, (), True)
        if not self.forces:
            return self
        coulomb, viscous = self.line
        return replace(self, coulomb=coulomb, viscous=viscous, forces=tuple(
            replace(one, force=max(one.force, 0.0)) for one in self.forces))

    @property
    def identified(self):
        """Whether the recording tells it: cylinders side by side, for one, are not distinguished."""
        return bool(self.forces) and all(one.error <= 0.5 * max(abs(one.force), abs(one.believed))
                                         for one in self.forces)

    @property
    def significant(self):
        """Whether what was found differs from what was believed, beyond two standard errors."""
        return any(abs(one.force - one.believed) > 2.0 * one.error for one in self.forces)

    @property
    def line(self):
        """(Coulomb, viscous) as a model takes them: neither negative, through the force at the middle speed."""
        middle = self.forces[len(self.forces) // 2]
        viscous = min(max(self.viscous, 0.0), max(middle.force, 0.0) / middle.speed)
        return max(middle.force - viscous * middle.speed, 0.0), viscous

    def lines(self):
        """It in words."""
        if self.impossible:
            yield (f'{self.name}: friction not identified: what fits best is below zero, which no friction is; look '
                   'for a delay, exchanged ports or another area')
            return
        if not self.forces:
            yield f'{self.name}: friction not identified, it moved {self.moved:.1f} s only'
            return
        shown = ', '.join(f'{one.force:.4g} +- {one.error:.2g} at {one.speed:g} {self.unit} (was {one.believed:.4g})'
                          for one in self.forces)
        note = '' if self.identified else '; this recording does not tell it'
        yield f'{self.name}: friction {shown} {"N" if self.unit == "m/s" else "N m"}{note}'


@dataclass(frozen=True)
class BaseParameter:
    """A combination that efforts can tell: its name, value as believed, as found without any belief, standard error,
    and what the bodies that were found come to, with what is believed of them, and the standard error of that."""

    name: str
    believed: float
    found: float
    error: float
    of_bodies: float
    bodies_error: float

    @property
    def identified(self):
        """Whether this recording tells it, and bodies as they are believed to be do not contradict it: noise of axes
        that stand still is motion to the equations, of which no standard error knows."""
        both = (self.found, self.error), (self.of_bodies, self.bodies_error)
        return bool(abs(self.found - self.of_bodies) <= CONTRADICTS * np.hypot(self.error, self.bodies_error)
                    and all(error < RELATIVE * max(abs(value), abs(value - self.believed)) for value, error in both))


@dataclass(frozen=True)
class SensorError:
    """An error of a sensor of an actuator that explains the recording: value, standard error, and what is usual."""

    name: str
    what: str
    value: float
    error: float
    believed: float


@dataclass(frozen=True)
class HeldOutTrace:
    """Efforts on the coordinates at (N,) instants that were held out [s]: measured, NaN where unknown, as the believed
    model has them, and as the identified one that was fitted to the rest, each (N, dof) [N, N m]; and whether they
    count (N, dof), which they do while an actuator slides at speed."""

    t: np.ndarray
    measured: np.ndarray
    believed: np.ndarray
    identified: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class HeldOut:
    """How the model does where it was not fitted.

    coordinates  names
    seconds      held out
    rows         (dof,) equations in them
    before       (dof,) RMSE of the believed model there [N, N m]
    after        (dof,) of the identified one, with links and friction as they are written into files
    trained      (dof,) of the identified one where it was fitted
    with_sensors (dof,) of the identified one with the errors of sensors that were fitted along, which no file has
    usual        (dof,) RMS of the efforts
    reach        (dof,) range of the efforts
    significance standard deviations by which `after` is better
    overfitted   names of the coordinates of which it is far worse than `trained`, and of more than a share of `reach`
    worse        names of the coordinates that are worse than before by more than chance and a trifle
    threshold    of the significance
    trace        `HeldOutTrace`
    """

    coordinates: tuple
    seconds: int
    rows: np.ndarray
    before: np.ndarray
    after: np.ndarray
    trained: np.ndarray
    with_sensors: np.ndarray
    usual: np.ndarray
    reach: np.ndarray
    significance: float
    overfitted: tuple
    worse: tuple
    threshold: float
    trace: HeldOutTrace

    @property
    def passed(self):
        """Whether it explains what was held out, no worse than the believed model."""
        return not self.overfitted and not self.worse

    @property
    def text(self):
        """The verdict."""
        if self.overfitted:
            shown = '; '.join(
                f'{name}: RMSE {self.after[k]:.4g} where {self.seconds} s were held out, {self.trained[k]:.4g} where '
                f'it was fitted, {self.after[k] / self.reach[k]:.1%} of the range of {self.reach[k]:.4g} N or N m'
                for k, name in enumerate(self.coordinates) if name in self.overfitted)
            return f'FAIL: {shown}; the recording is too poor in motion'
        if not self.passed:
            shown = ', '.join(f'{name} {after:.4g} instead of {before:.4g} N or N m' for name, before, after in
                              zip(self.coordinates, self.before, self.after) if name in self.worse)
            return (f'FAIL: the identified model is worse than the believed over the {self.seconds} s that were held '
                    f'out: RMSE of {shown}')
        if self.significance < self.threshold:
            return f'PASS: the believed model is as good as the identified over the {self.seconds} s that were held out'
        return f'PASS: the identified model is better over the {self.seconds} s that were held out'


@dataclass(frozen=True)
class Identification:
    """All of it; see `identify`.

    sensor_share  of what is believed of the errors of sensors, that the recording shows
    equations     that were used, `skipped` at instants at which a loop does not close
    partial       why only a part of what was recorded could be used
    findings      what is wrong with the data, in words
    validated     {'verdict', 'text', 'rmse'} of `psdyn validate` of the recording with the corrected files, or None
    """

    machine: str
    source: str
    payload: bool
    bodies: tuple
    friction: tuple
    base: tuple
    sensors: tuple
    sensor_share: float
    held_out: HeldOut
    filter: str
    seconds: float
    equations: int
    skipped: int
    partial: tuple = ()
    findings: tuple = ()
    validated: dict | None = None

    def __repr__(self):
        return f'Identification of {self.machine} from {self.source}, {self.seconds:.1f} s: {self.verdict}'

    @property
    def passed(self):
        """Whether it explains what was held out, and the recording does not fail with the corrected files."""
        return self.held_out.passed and not (self.validated and self.validated['verdict'] == FAIL)

    @property
    def verdict(self):
        """The verdict in words."""
        text = self.held_out.text
        if self.held_out.passed and not self.passed:
            text = f'{FAIL}: `psdyn validate` of this recording with these files: {self.validated["text"]}'
        return text + (' (of a partial input)' if self.partial else '')

    @property
    def exit_code(self):
        """0 passed, 1 failed, 3 passed, from a part of what was recorded."""
        if not self.passed:
            return 1
        return PARTIAL_PASS if self.partial else 0

    @property
    def text(self):
        """A report of plain text."""
        return '\n'.join(self._lines())

    def _lines(self):
        yield f"'{self.machine}' from {self.seconds:.1f} s, {self.equations} equations; {self.filter}"
        yield self.verdict
        for text in self.partial:
            yield f'  partial input: {text}'
        held = self.held_out
        for name, rows, before, after, usual in zip(held.coordinates, held.rows, held.before, held.after, held.usual):
            if rows:
                yield f'  {name}: RMSE {before:.4g} before, {after:.4g} after, of {usual:.4g} N or N m'
        if self.sensor_share == 1.0:
            shown = ', '.join(f'{name} {value:.4g}' for name, value, rows in
                              zip(held.coordinates, held.with_sensors, held.rows) if rows)
            yield f'  errors of sensors are fitted along and are in no file; with them RMSE after {shown} N or N m'
        for body in self.bodies:
            yield from body.lines()
        for one in self.friction:
            yield from one.lines()
        yield f'  {NOT_ALONE}'
        count = sum(one.identified for one in self.base)
        yield f'{len(self.base)} base parameters, {count} of them identified by this recording within {RELATIVE:.0%}:'
        for one in self.base:
            if one.identified:
                yield f'  {one.name} = {one.found:.5g} +- {one.error:.2g} (was {one.believed:.5g})'
        for one in self.sensors:
            if abs(one.value) > 2.0 * one.error:
                yield f'{one.name}: an error of its sensors would explain some: {one.what} {one.value:.3g}'

    def as_dict(self):
        """For JSON."""
        out = plain(asdict(self))
        del out['held_out']['trace']
        out['verdict'], out['passed'] = self.verdict, self.passed
        out['exit_code'] = self.exit_code
        out['friction_note'] = NOT_ALONE
        for entry, one in zip(out['base'], self.base):
            entry['identified'] = one.identified
        return out
