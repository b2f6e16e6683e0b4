"""Small corrections of a model or of its sensors, as what each would add to the residual of the efforts.

To first order everything that may be a little wrong is linear: the residual e = measured - predicted is C theta, one
column of C for each number that may be off.  Payload and gravity are linear as such.
"""

import math
from functools import partial
from itertools import combinations

import numpy as np

from ...api.environment import BaseMotion
from ...api.manipulator import combine
from ...model.errors import StateError
from ...model.mechanism.description import Inertial
from ..identification.normal_equations import frictions
from ..identification.regressor import COLUMNS, COUNT, ROWS, Regressor
from ..metrics.prediction import driven_efforts
from ..signals.filters import through_gaps
from ..signals.quality import AT_LIMIT

SPACING = 0.02              # s between rows; the filter leaves little in between
STEP = 1e-4                 # m, rad of central differences, of encoders; and 1, of scales of them
ROUNDING = 1e-10            # of the largest column of a payload below which another one is rounding errors of zero
# columns that each actuator has of its own, then those of the payload, of its centre of mass, of the tilt, of a payload
# on a tilted base, of weight, of a force, of encoders, of their scales, of the second order of both, and of pairs
RATE, OFFSET, TIME, FRICTION, GAIN_A, GAIN_B, BORE, PORTS = range(8)
OWN = 8
PAYLOAD = slice(OWN, OWN + COUNT)
CENTER = slice(PAYLOAD.stop, PAYLOAD.stop + 3)
TILT = slice(CENTER.stop, CENTER.stop + 2)
TILTED = slice(TILT.stop, TILT.stop + 8)        # mass and moments of a payload under either tilt
WEIGHT = TILTED.stop
FORCE = slice(WEIGHT + 1, WEIGHT + 4)            # on the link, along x, y and z of the base
ENCODERS = FORCE.stop


class Corrections:
    """Columns of a machine.

    predictor  `Predictor` whose residual is in question

    link       that carries the payload: the outermost one that moves
    body       `Inertial` whose centre of mass may be another one: of that link, or of all that is fixed to it where
               that weighs nothing; None of nothing
    encoders   {coordinate, by number: name of the measured joint that it follows from}, known with the first block
    gravity    (2, 3) change of gravity per rad that the base is tilted about its x and its y [m/s^2]
    scales     number of the first column of scales of encoders
    second     number of the first column of the second order of encoders and of scales, in the order of these
    pairs      (k, 2) numbers of actuators whose measurements may be exchanged; their columns come last
    believed   (actuators,) whether the model has any friction; else its column is that of 1 N or 1 N m
    slip       (actuators,) slip velocity of the model [m/s, rad/s]
    by_pressure  (actuators,) whether the effort was measured by chamber pressures
    skipped    rows at which a loop does not close
    seen       (2, dof) least and largest coordinates
    seconds    from the first row to the last
    """

    def __init__(self, predictor):
        self.predictor, manipulator = predictor, predictor.manipulator
        self.actuators = tuple(manipulator.actuators)
        self.link = outermost(manipulator)
        self.body = body_of(manipulator, self.link)
        self._regressor = Regressor(manipulator, [self.link])
        self.gravity = -np.cross(np.eye(3)[:2], manipulator.gravity)
        seals = np.array(frictions(manipulator, predictor.hydraulics))
        self.believed, self.slip = (seals[:, :2] > 0.0).any(axis=1), seals[:, 2]
        self.by_pressure = np.zeros(len(self.actuators), dtype=bool)
        self.encoders, self._map = None, None
        self.pairs = list(combinations(range(len(self.actuators)), 2))
        self.scales = ENCODERS + manipulator.dof
        self.second = self.scales + manipulator.dof
        self.first_pair = self.second + 2 * manipulator.dof
        self.skipped, self.seconds, self._first = 0, 0.0, None
        self.seen = np.tile([[np.inf], [-np.inf]], manipulator.dof)

    @property
    def count(self):
        """Columns."""
        return self.first_pair + len(self.pairs)

    def __call__(self, block, prediction):
        """(rows (n,), e (n, actuators), C (n, actuators, count)) of a `Block` and its `Prediction`.

        Rows are some of the core; e is NaN where the effort is not known or not clear: an end stop may push, or
        friction may be anything.  There are no rows where the model cannot follow.
        """
        rows = np.arange(prediction.core.start, prediction.core.stop, max(1, round(SPACING / prediction.period)))
        x, xd, xdd = (np.ascontiguousarray(values[rows]) for values in (prediction.x, prediction.xd, prediction.xdd))
        e = (prediction.effort - prediction.effort_id)[rows]
        e[prediction.unclear[rows]] = np.nan
        C = np.zeros((*e.shape, self.count))
        try:
            C[..., PAYLOAD] = _without_rounding(self._on_actuators(x, self._regressor(x, xd, xdd)))
            C[..., CENTER] = C[..., PAYLOAD][..., 1:4]
            C[..., TILT], C[..., WEIGHT] = self._tilt(x)
            held = np.stack([self._on_actuators(x, self._regressor.at_rest(x, axis)[..., :4]) for axis in np.eye(3)])
            C[..., FORCE] = np.moveaxis(held[..., 0], 0, -1)
            C[..., TILTED] = np.concatenate(np.tensordot(self.gravity, held, 1), axis=-1)
            offsets, curves = self._encoders(block, x, xd, xdd, rows)
            rates = self._rates(x, xd, xdd)
        except StateError:
            self.skipped += len(rows)
            return rows[:0], e[:0], C[:0]
        self._note(prediction.t[rows], x)
        C[..., ENCODERS:self.scales] = offsets
        C[..., self.second:self.second + x.shape[1]] = curves
        for k, joint in self.encoders.items():
            position = block.positions[rows, block.joints.index(joint), None]
            C[..., self.scales + k] = offsets[..., k] * position + rates[..., k]
            C[..., self.second + x.shape[1] + k] = curves[..., k] * position ** 2
        # not `effort_rate`, which has another bandwidth than the efforts
        C[..., RATE] = -np.gradient(prediction.effort, prediction.period, axis=0)[rows]
        C[..., OFFSET] = 1.0
        C[..., TIME] = prediction.t[rows, None]
        C[..., FRICTION] = self._friction(prediction)[rows]
        gains = self._gains(block, prediction)[rows]
        C[..., GAIN_A:GAIN_B + 1] = gains
        # at the same rod both areas grow by as much; (p_A - p_B) (A_A + A_B) as recorded
        C[..., BORE] = self._of_ports(gains, lambda a, b: (1.0, a / b))
        C[..., PORTS] = self._of_ports(gains, lambda a, b: ((a + b) / a, (a + b) / b))
        for k, (one, other) in enumerate(self.pairs):
            for axis, of in ((one, other), (other, one)):
                C[:, axis, self.first_pair + k] = self._taken_for(axis, of, gains, prediction.effort[rows])
        return rows, e, np.nan_to_num(C, copy=False)

    def _note(self, t, x):
        if len(t):
            self._first = t[0] if self._first is None else self._first
            self.seconds = float(t[-1] - self._first)
            self.seen = np.array([np.minimum(self.seen[0], x.min(axis=0)), np.maximum(self.seen[1], x.max(axis=0))])

    def can_be_at(self, coordinate, extremes):
        """Whether a machine comes to both extremes (2,) of a coordinate, by its limits; True of one not measured."""
        manipulator = self.predictor.manipulator
        lower, upper = (float(end[coordinate]) for end in (manipulator.coordinate_limits.lower,
                                                           manipulator.coordinate_limits.upper))
        margin = AT_LIMIT * (upper - lower)
        if self.encoders[coordinate] != manipulator.coordinates[coordinate] or not math.isfinite(margin):
            return True
        return bool(lower - margin <= min(extremes) and max(extremes) <= upper + margin)

    def _on_actuators(self, x, columns):
        """Columns (n, dof, k) of forces on the coordinates as efforts (n, actuators, k)."""
        maps = self._regressor.maps(x)
        if len(maps) == 1:
            return columns
        return np.linalg.pinv(np.swapaxes(maps, 1, 2)) @ columns

    def _tilt(self, x):
        """(n, actuators, 2) what a tilted base adds, and (n, actuators) what all of the weight is."""
        still, mechanism = np.zeros_like(x), self.predictor.mechanism
        rest = driven_efforts(mechanism, x, still, still)
        return np.stack([driven_efforts(mechanism, x, still, still, base=BaseMotion(acceleration=(*-change, 0, 0, 0)))
                         - rest for change in self.gravity], axis=-1), rest

    def _encoders(self, block, x, xd, xdd, rows):
        """(n, actuators, dof) twice: what an encoder that says too much adds to the residual, to the first order and to
        the second."""
        if self.encoders is None:
            self.encoders = measured_by(self.predictor.manipulator, block.joints)
            self._map = self.predictor.manipulator.joint_map(block.joints)
        columns, curves = np.zeros((2, len(x), len(self.actuators), x.shape[1]))
        efforts = partial(driven_efforts, self.predictor.mechanism)
        middle = efforts(x, xd, xdd)
        for k, joint in self.encoders.items():
            step = np.zeros(x.shape[1])
            step[k] = STEP
            ahead, behind = (efforts(x + way * step, xd, xdd) for way in (1.0, -1.0))
            columns[..., k] = -(ahead - behind) / (2.0 * STEP)
            curves[..., k] = (ahead - 2.0 * middle + behind) / (2.0 * STEP ** 2)
            if joint != self.predictor.manipulator.coordinates[k]:
                slope = self._slope(block, k, joint, rows)[:, None]
                columns[..., k] *= slope
                curves[..., k] *= slope ** 2
        return columns, curves

    def _rates(self, x, xd, xdd):
        """(n, actuators, dof): what rates of a coordinate that are too large in proportion add to the residual."""
        columns = np.zeros((len(x), len(self.actuators), x.shape[1]))
        for k in self.encoders:
            ahead, behind = (self.predictor.efforts(x, *(
                rates * (1.0 + way * STEP * (np.arange(x.shape[1]) == k)) for rates in (xd, xdd))) for way in (1, -1))
            columns[..., k] = -(ahead - behind) / (2.0 * STEP)
        return columns

    def _slope(self, block, k, joint, rows):
        """(n,) d coordinate / d measured joint."""
        ahead, behind = block.positions[rows], block.positions[rows]
        ahead[:, block.joints.index(joint)] += STEP
        behind[:, block.joints.index(joint)] -= STEP
        return (self._map.states(ahead)[0] - self._map.states(behind)[0])[:, k] / (2.0 * STEP)

    def _friction(self, prediction):
        friction = prediction.friction
        if self.believed.all():
            return friction
        unit = self.predictor.filter(np.tanh(prediction.v / self.slip))
        return np.where(self.believed, friction, unit)

    def _of_ports(self, gains, factors):
        """(n, actuators) efforts of ports A and B times two factors, by a function of their areas."""
        out = np.zeros(gains.shape[:-1])
        for axis in np.flatnonzero(self.by_pressure).tolist():
            one = self.predictor.hydraulics.cylinders[self.actuators[axis]]
            out[:, axis] = gains[:, axis] @ factors(one.area_a, one.area_b)
        return out

    def _taken_for(self, axis, other, gains, effort):
        """(n,) what an actuator that has the measurements of another adds to its residual; zero where they differ in
        kind."""
        if self.by_pressure[axis] != self.by_pressure[other]:
            return np.zeros(len(effort))
        if not self.by_pressure[axis]:
            return effort[:, axis] - effort[:, other]
        mine, theirs = (self.predictor.hydraulics.cylinders[self.actuators[k]] for k in (axis, other))
        ratio = np.array([mine.area_a / theirs.area_a, mine.area_b / theirs.area_b])
        return gains[:, axis].sum(axis=1) - gains[:, other] @ ratio

    def _gains(self, block, prediction):
        """(N, actuators, 2): filtered effort of port A and of port B, else the whole effort, predicted, and nothing."""
        gains = np.zeros((*prediction.effort.shape, 2))
        # the measured one has the noise of the residual in it
        gains[..., 0] = prediction.effort_id
        hydraulics = self.predictor.hydraulics
        if block.pressures is None or hydraulics is None:
            return gains
        for row, (name, one) in enumerate(hydraulics.cylinders.items()):
            ports = np.array([one.area_a, -one.area_b]) * block.pressures[:, row]
            if np.isfinite(ports).any():
                number = self.actuators.index(name)
                self.by_pressure[number] = True
                gains[:, number] = through_gaps(self.predictor.filter, ports)
        return gains


def _without_rounding(columns):
    """Columns (n, actuators, k) with zeros in those that are rounding errors of zero.

    On a machine that moves in a plane no effort depends on the centre of mass across it; a fit would blow it up.
    """
    size = np.abs(columns).max(axis=(0, 1), initial=0.0)
    columns[..., size < ROUNDING * size.max()] = 0.0
    return columns


def point_mass(mass, moments):
    """(6, 4) d inertia / d (mass, moments (3,)) of a point: what 4 numbers add to the moments about the origin.

    The inertia is of the first degree in the four, so that this times them is the inertia itself.
    """
    def matrix(square, products):
        return square * np.eye(3) - products
    h = moments
    slopes = [-matrix(h @ h, np.outer(h, h)) / mass ** 2]
    slopes += [matrix(2.0 * one @ h, np.outer(one, h) + np.outer(h, one)) / mass for one in np.eye(3)]
    return np.array([slope[ROWS, COLUMNS] for slope in slopes]).T


def moved_center(body, moments):
    """(6, 3) of which the product with `moments` (3,) [kg m] is what the inertia of a body gains as it is moved by
    them over its mass, about the origin: what they add to that beside the moments themselves."""
    def matrix(one, other):
        return 2.0 * (one @ other) * np.eye(3) - np.outer(one, other) - np.outer(other, one)
    middle = body.com + 0.5 * moments / body.mass
    return np.array([matrix(middle, unit)[ROWS, COLUMNS] for unit in np.eye(3)]).T


def outermost(manipulator):
    """Name of the moving link with the most joints between it and the base, of several the first.

    One that nothing hangs on and that closes no loop comes before those of loops, whose linkage may be longer; of these
    barrels and rods of cylinders come last.
    """
    description = manipulator.machine.description
    parents = {joint.child: joint.parent for joint in description.joints.values()}
    inner = {*parents.values(), *(link for one in description.closures.values() for link in (one.parent, one.child))}

    def depth(link):
        return 1 + depth(parents[link]) if link in parents else 0
    cylinders = {joint.child for one in manipulator.machine.triangles for joint in (one.barrel, one.rod)}
    moving = [name for name, place in manipulator.machine.places.items() if place.module >= 0]
    return max(moving, key=lambda link: (link not in inner, link not in cylinders, depth(link)))


def body_of(manipulator, link):
    """Return the `Inertial` of a link; where it weighs nothing, of all that is fixed to it in its axes, else None."""
    links, places = manipulator.machine.description.links, manipulator.machine.places
    own = links[link].inertial
    if own is not None and own.mass > 0.0:
        return own
    place, found = places[link], None
    for name, other in places.items():
        one = links[name].inertial
        if (other.module, other.body) == (place.module, place.body) and one is not None and one.mass > 0.0:
            pose = place.pose.inverse() @ other.pose
            seen = Inertial(one.mass, pose.apply(one.com), pose.rotation @ one.inertia @ pose.rotation.T)
            found = seen if found is None else combine(found, seen)
    return found


def measured_by(manipulator, joints):
    """{coordinate, by number: measured joint that it follows from}, of those of which one joint says it alone."""
    found, machine = {}, manipulator.machine
    for k, name in enumerate(manipulator.coordinates):
        if name in joints:
            found[k] = name
        else:
            triangle = machine.modules[machine.module_of(name)].triangle
            others = (triangle.boom.name, triangle.barrel.name) if triangle else ()
            # the order in which `JointMap` asks them
            found.update((k, other) for other in reversed(others) if other in joints)
    return found
