"""The linear regressor of a machine with closed loops: efforts, linear in what its links weigh.

    A' f = Y(x, xd, xdd) theta,  theta = (m, m c_x, m c_y, m c_z, I_xx, I_xy, I_xz, I_yy, I_yz, I_zz) of each link

in link axes, the moments about the origin of the link; A xd are the rates of the actuators, which is xd itself where
the actuators are the coordinates.  Inverse dynamics are linear in the records of bodies, so each column is inverse
dynamics of the same machine, of which one body has one unit of one parameter and all else nothing.
"""
import numpy as np

from ...api.batch import actuator_states, run_batch
from ...api.hydraulics.statics import frictionless
from ...api.inputs import states
from ...kernels.rigid_body.entry import inverse_rows
from ...kernels.rigid_body.records import BARREL, LINK
from ...model.errors import ActuationError, UnknownNameError, did_you_mean

PARAMETERS = ('m', 'mx', 'my', 'mz', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
COUNT = len(PARAMETERS)
ROWS, COLUMNS = [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]      # of the six moments in a symmetric matrix


def moved_parameters(pose):
    """Return T (10, 10): parameters of a body in its own frame -> in the frame in which that has `pose`."""
    R, p = pose.rotation, pose.position
    T = np.zeros((COUNT, COUNT))
    for column, unit in enumerate(np.eye(COUNT)):
        moment = R @ unit[1:4]
        inertia = np.zeros((3, 3))
        inertia[ROWS, COLUMNS] = inertia[COLUMNS, ROWS] = unit[4:]
        inertia = R @ inertia @ R.T + 2.0 * (p @ moment) * np.eye(3) - np.outer(p, moment) - np.outer(moment, p)
        inertia += unit[0] * (p @ p * np.eye(3) - np.outer(p, p))
        T[:, column] = unit[0], *(moment + unit[0] * p), *inertia[ROWS, COLUMNS]
    return T


class Regressor:
    """Columns of some links of a machine that stands on a fixed base.

    manipulator  on a fixed base; else ActuationError
    links        names of links that move; None: all that move and have inertia

    What stands on no joint has no column: no effort tells of it.
    """

    def __init__(self, manipulator, links=None):
        if manipulator.floating:
            raise ActuationError(f"the base of '{manipulator.name}' floats; identification needs one that stands")
        self.manipulator = manipulator
        places = manipulator.machine.places
        moving = [name for name, place in places.items() if place.module >= 0]
        if links is None:
            inertials = {name: link.inertial for name, link in manipulator.machine.description.links.items()}
            links = [name for name in moving if inertials[name] is not None and inertials[name].mass > 0.0]
        for name in links:
            if name not in places:
                raise UnknownNameError(f"link '{name}': no link of '{manipulator.name}'{did_you_mean(name, places)}")
            if name not in moving:
                raise UnknownNameError(f"link '{name}' of '{manipulator.name}' does not move, so no effort tells what "
                                       f'it weighs; links that move: {", ".join(moving)}')
        self.links = tuple(links)
        # efforts on the actuators are those on the coordinates
        self.direct = manipulator.actuators == manipulator.coordinates
        self._believed = frictionless(manipulator)
        self._empty = self._believed.handle()
        for body in ('link', 'barrel', 'rod'):
            self._empty.modules[body] = 0.0
        bodies = {}
        for name in self.links:
            place = places[name]
            bodies.setdefault((place.module, place.body), []).append((name, moved_parameters(place.pose)))
        self._bodies = bodies

    @property
    def columns(self):
        """Names of the columns: 'LINK m', 'LINK mx', ..."""
        return tuple(f'{link} {parameter}' for link in self.links for parameter in PARAMETERS)

    @property
    def declared(self):
        """(10 links,) parameters of the links as the machine declares them."""
        links = self.manipulator.machine.description.links
        return np.concatenate([parameters_of(links[name].inertial) for name in self.links])

    def __call__(self, x, xd, xdd):
        """Return Y (N, dof, 10 links) for states (N, dof).

        Raises UnreachableStrokeError or TogglePointError where a loop does not close.
        """
        x, xd, xdd = states(self._believed, batch=True, x=x, xd=xd, xdd=xdd)
        Y = np.empty((len(x), self.manipulator.dof, COUNT * len(self.links)))
        nothing = self._required(x, xd, xdd)    # friction of pins, if any
        records = self._empty.modules
        for (module, body), carried in self._bodies.items():
            row = records[{LINK: 'link', BARREL: 'barrel'}.get(body, 'rod')][module]
            columns = np.empty((*nothing.shape, COUNT))
            for parameter in range(COUNT):
                row[:] = 0.0
                row[parameter] = 1.0
                try:
                    columns[..., parameter] = self._required(x, xd, xdd) - nothing
                finally:
                    row[:] = 0.0
            for name, moved in carried:
                first = COUNT * self.links.index(name)
                Y[..., first:first + COUNT] = columns @ moved
        return Y

    def at_rest(self, x, gravity):
        """Return Y (N, dof, 10 links) of states (N, dof) at rest under another gravity (3,) [m/s^2], in base axes."""
        environment = self._empty.environment
        usual = environment['acceleration'].copy()
        environment['acceleration'] = *(-value for value in gravity), 0.0, 0.0, 0.0
        try:
            return self(x, *np.zeros((2, *x.shape)))
        finally:
            environment['acceleration'] = usual

    def _required(self, x, xd, xdd):
        """Return the forces (N, dof) on the coordinates of the machine of which `_empty` holds the bodies."""
        return run_batch(self._believed, inverse_rows, self._empty, {'x': x, 'xd': xd, 'xdd': xdd})

    def believed(self, x, xd, xdd):
        """Return A' f (N, dof) of the machine as declared, without friction of the joints that it drives."""
        return self._believed.generalized_forces(*(np.ascontiguousarray(rows, dtype=float) for rows in (x, xd, xdd)))

    def maps(self, x):
        """Return A (N, actuators, dof), or (1, actuators, dof) where it is the identity; NaN where a loop is open."""
        if self.direct:
            return np.eye(self.manipulator.dof)[None]
        return actuator_states(self.manipulator, x, np.zeros_like(x))[2]

    def rates(self, x, xd):
        """Return the rates (N, actuators) of the actuated joints; NaN where a loop does not close."""
        if self.direct:
            return np.array(xd)
        return actuator_states(self.manipulator, x, xd)[1]


def parameters_of(inertial):
    """Return the 10 parameters of an `Inertial` (None: nothing) in link axes."""
    if inertial is None:
        return np.zeros(COUNT)
    mass, com = inertial.mass, inertial.com
    moments = inertial.inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.array([mass, *(mass * com), *moments[ROWS, COLUMNS]])
