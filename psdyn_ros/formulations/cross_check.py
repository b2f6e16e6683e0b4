"""
The recursion beside other formulations of the same machine, on random states.

The formulations come from outside (`formulations.adapters`), so that nothing here or in them leans on the kernels: a
`mechanism` closes the loops itself, a witness has `inverse`, `forward` and `mass_matrix`.
"""
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..model.errors import LoopClosureError, PsdynError, StateError

BOUND = 1e-9        # of a disagreement, max|a - ref| / (1 + max|ref|)
ATTEMPTS = 200      # to draw one state
REGULAR = 0.05      # smallest singular value of the constraints, relative to the largest ...
SHARE = 0.3         # ... or this share of the one at the initial position
QUANTITIES = ('inverse', 'forward', 'mass_matrix')
EFFORTS = 'efforts of least norm'
MOTION = ('positions', 'rates', 'accelerations')


class Sample(NamedTuple):
    """A state and what acts on it; (nx,), (dof,), (dof,), (actuators,), {link: (f, m)}."""

    index: int
    x: np.ndarray
    xd: np.ndarray
    xdd: np.ndarray
    f: np.ndarray
    wrenches: dict


class Worst(NamedTuple):
    """The largest disagreement of one quantity, and the state that it belongs to."""

    value: float = -1.0
    sample: Sample | None = None
    error: str = ''


@dataclass
class Comparison:
    """How far witnesses and recursion are apart on `states` states of a `seed`."""

    states: int
    seed: int
    reasons: dict
    """Witness -> why it does not apply, empty where it does."""
    worst: dict = field(default_factory=dict)
    """(witness, quantity) -> `Worst`."""

    def note(self, witness, quantity, value, ref, sample):
        """Keep a disagreement when it is the largest; NaN is larger than any."""
        size = math.inf
        if np.shape(value) == np.shape(ref):
            size = float(np.abs(value - ref).max(initial=0.0) / (1 + np.abs(ref).max(initial=0.0)))
        self.keep(witness, quantity, Worst(math.inf if math.isnan(size) else size, sample))

    def keep(self, witness, quantity, found):
        """Keep a `Worst` when it is the largest."""
        if found.value > self.worst.get((witness, quantity), Worst()).value:
            self.worst[witness, quantity] = found

    def size(self, witness, quantity):
        """Return the largest disagreement of one quantity, NaN where none was computed."""
        return self.worst.get((witness, quantity), Worst(math.nan)).value

    @property
    def largest(self):
        """((witness, quantity), `Worst`) of all."""
        return max(self.worst.items(), key=lambda entry: entry[1].value)

    @property
    def agree(self):
        return self.largest[1].value < BOUND


def compare(manipulator, mechanism, witnesses, states, seed):
    """Return the `Comparison` of a `Manipulator` with witnesses, on `states` states that `seed` draws."""
    result = Comparison(states, seed, {witness.name: witness.reason for witness in witnesses})
    draw = _Draw(manipulator, mechanism)
    for index in range(states):
        sample = draw(index, np.random.default_rng([seed, index]))
        try:
            posture = draw.posture(sample.x)
        except PsdynError as error:
            # the recursion has closed the loops here
            result.keep('loops', 'positions', Worst(math.inf, sample, f'{type(error).__name__}: {error}'))
            continue
        _note_motion(result, manipulator, mechanism, posture, sample)
        _note_dynamics(result, manipulator, witnesses, posture, sample)
    return result


def _note_motion(result, m, mechanism, posture, sample):
    names, *ref = m.joint_state(sample.x, sample.xd, sample.xdd)
    order = [names.index(name) for name in mechanism.joints]
    acceleration = posture.G @ sample.xdd + mechanism.bias_acceleration(posture, sample.xd)
    joints = slice(mechanism.nv - len(order), None)
    values = posture.q, (posture.G @ sample.xd)[joints], acceleration[joints]
    for what, mine, theirs in zip(MOTION, values, ref):
        result.note('loops', what, mine, theirs[order], sample)


def _note_dynamics(result, m, witnesses, posture, sample):
    _, x, xd, xdd, f, wrenches = sample
    ref = {'inverse': m.generalized_forces(x, xd, xdd, wrenches=wrenches),
           'forward': m.forward_dynamics(x, xd, f, wrenches=wrenches), 'mass_matrix': m.mass_matrix(x)}
    inputs = {'inverse': (xd, xdd, wrenches), 'forward': (xd, f, wrenches), 'mass_matrix': ()}
    for witness in witnesses:
        for quantity in QUANTITIES if witness.dynamics else ():
            try:
                value = getattr(witness.dynamics, quantity)(posture, *inputs[quantity])
            except PsdynError as error:
                result.keep(witness.name, quantity, Worst(math.inf, sample, f'{type(error).__name__}: {error}'))
            else:
                result.note(witness.name, quantity, value, ref[quantity], sample)
        if hasattr(witness.dynamics, 'distribute') and len(m.actuators) > len(m.coordinates):
            force = witness.dynamics.inverse(posture, xd, xdd, wrenches)
            efforts = witness.dynamics.distribute(posture, force, getattr(m.allocation, 'weights', None))
            # beyond the limits of the actuators there is no least norm to compare
            if (np.abs(efforts) <= m.limits.effort).all():
                result.note(witness.name, EFFORTS, efforts, m.inverse_dynamics(x, xd, xdd, wrenches=wrenches), sample)


class _Draw:
    """Random states within the limits of all joints, where the loops close, away from singular poses."""

    def __init__(self, manipulator, mechanism):
        self.manipulator, self.mechanism = manipulator, mechanism
        joints = manipulator.machine.description.joints
        self.start = manipulator.initial_position
        self.free = len(self.start) - len(manipulator.coordinates)
        spans = [_span(joints[name], at) for name, at in zip(manipulator.coordinates, self.start[self.free:])]
        self.low, self.high = np.array(spans).reshape(-1, 2).T
        self.limits = [joints[name] for name in manipulator.joints]
        self.senses = None
        self.clear = min(REGULAR, SHARE * mechanism.regularity(self.posture(self.start)))

    def __call__(self, index, rng):
        """Return `Sample` number `index`."""
        m = self.manipulator
        for attempt in range(ATTEMPTS):
            # from all over the limits at first, then ever nearer to the initial position
            reach = min(1.0, 2.0 ** (8 - 16 * attempt / ATTEMPTS))
            drawn = rng.uniform(self.low, self.high)
            x = self.start.copy()
            x[self.free:] += reach * (drawn - x[self.free:])
            if self.free:
                x[:3], turned = rng.normal(size=3), rng.normal(size=4)
                x[3:7] = turned / np.linalg.norm(turned)
            if self._serves(x):
                break
        else:
            raise StateError(f"'{m.name}': none of {ATTEMPTS} random positions is within all joint limits, closes the "
                             'loops and is away from singular poses')
        weight = 9.81 * max(m.total_mass, 1e-3)
        xd, xdd = rng.uniform(-1, 1, (2, m.dof))
        f = weight * rng.uniform(-1, 1, len(m.actuators))
        link = str(rng.choice(m.links))
        wrench = 0.2 * weight * rng.uniform(-1, 1, (2, 3))
        return Sample(index, x, xd, 2 * xdd, f, {link: tuple(wrench)})

    def posture(self, x):
        """Return the posture at x: the recursion tells the assembly mode, the mechanism closes the loops."""
        names, q, *_ = self.manipulator.joint_state(x)
        posture = self.mechanism.posture(x, dict(zip(names, q)))
        senses = self.mechanism.senses(posture)
        if self.senses is None:
            self.senses = senses        # of the initial position
        if (senses != self.senses).any():
            raise LoopClosureError('a pin is the other way round than at the initial position')
        return posture

    def _serves(self, x):
        try:
            _, q, *_ = self.manipulator.joint_state(x)
        except PsdynError:
            return False
        if not all(_within(joint, value) for joint, value in zip(self.limits, q)):
            return False
        try:
            return self.mechanism.regularity(self.posture(x)) >= self.clear
        except PsdynError:
            return True         # no bad draw: the recursion closes what the mechanism cannot


def _span(joint, at):
    reach = 1.0 if joint.type == 'prismatic' else math.pi
    return (joint.lower if math.isfinite(joint.lower) else at - reach,
            joint.upper if math.isfinite(joint.upper) else at + reach)


def _within(joint, value):
    if joint.type != 'prismatic' and math.isfinite(joint.lower + joint.upper):
        value -= 2 * math.pi * round((value - 0.5 * (joint.lower + joint.upper)) / (2 * math.pi))
    return joint.lower - 1e-9 <= value <= joint.upper + 1e-9


def witness_report(name, result):
    """Return the text on a `Comparison` of a machine of that name."""
    width = max(map(len, result.reasons)) + 2
    lines = [f"Witnesses of '{name}': largest disagreement with the recursion, max|a - ref| / (1 + max|ref|), on "
             f'{result.states} random states of seed {result.seed}', '',
             f"  {'formulation':{width}}" + ''.join(f'{_words(quantity):>13}' for quantity in QUANTITIES)]
    for witness, reason in result.reasons.items():
        row = ''.join(f'{result.size(witness, quantity):13.1e}' for quantity in QUANTITIES)
        lines.append(f'  {witness:{width}}' + (f'  does not apply: {reason}' if reason else row))
    motion = ', '.join(f"{what} {result.size('loops', what):.1e}" for what in MOTION)
    lines += ['', f'  loops closed by the witnesses: {motion}']
    lines += [f'  {EFFORTS} of the actuators, {witness}: {worst.value:.1e}'
              for (witness, quantity), worst in result.worst.items() if quantity == EFFORTS]
    (witness, quantity), worst = result.largest
    sample = worst.sample
    lines += ['', f'Largest: {worst.value:.1e}, {witness}, {_words(quantity)}, at state {sample.index} of seed '
              f'{result.seed}' + (f' ({worst.error})' if worst.error else ''),
              *(f'  {label} = {_numbers(getattr(sample, label))}' for label in ('x', 'xd', 'xdd', 'f')),
              *(f"  wrench on '{link}': f = {_numbers(f)}, m = {_numbers(m)}"
                for link, (f, m) in sample.wrenches.items()),
              '', f'The formulations {"agree" if result.agree else "DISAGREE"} (bound {BOUND:g})']
    return '\n'.join(lines)


def _words(quantity):
    return quantity.replace('_', ' ')


def _numbers(values):
    return '[' + ', '.join(repr(float(value)) for value in values) + ']'
