"""Position and rate of passive coordinates: measured, estimated, or those of a load that hangs at rest."""

from contextlib import suppress
from math import exp, inf, isfinite, nan

import numpy as np

from ...api.errors_from_status import check, status_error
from ...kernels.control import passive as kernels
from ...kernels.rigid_body.entry import inverse_checked, read_mass_matrix
from ...kernels.runtime.buffer import views
from ...kernels.runtime.status import OK, SINGULAR, decode
from ...model.errors import ModelError, NonFiniteError, PsdynError, ShapeError, StateError, check_name
from ..reference.swing_damping import SwingTerms
from .passive_imu import PassiveImu

SOURCES = MEASURED, ESTIMATED, RESTING = 'measured', 'estimated', 'hanging'
BANDWIDTH = 3.0         # rad/s of corrections of an estimate by what is measured
FORCE_RATE = 4.0        # 1/s of corrections of its position by the forces that the driven joints take; a constant error
                        # of these forces, as of friction, moves the rate and not the position
ACCELERATION_ERROR = 0.05   # m/s^2, rad/s^2, of driven joints as measured
LOAD_ERROR = 0.1        # share of the load of an axis on oil by which its force may be wrong
LARGEST_ERROR = 1.0     # rad, m that forces may speak of
UNKNOWN_SWING = 0.2     # rad, m by which a passive joint may be elsewhere that is not measured
REFRESH = 0.2           # s after which the forces of a swing are computed again
PERTURBATION = 0.01     # rad, m of a passive joint for that
SILENT = 0.1            # s without a measurement, after which one counts as missing
LONGEST_STEP = 0.05     # s that an estimate is advanced at once; after a longer gap it starts from rest
IMU_AGE = 0.05          # s for which rates by an inertial sensor count
JUMP = 0.05             # rad, m between a measurement and the one before, beyond what its rate explains
IN_A_ROW = 5            # jumps after which measurements are taken where they are
SMALLEST_GRAVITY = 1e-9     # m/s^2, of a machine that gravity has no direction for
SETTLING = 50           # iterations towards rest where nothing is known before


class PassiveStates:
    """The state of the passive joints of a machine, from one accepted state of the driven ones to the next.

    manipulator  the whole machine, as the controller models it
    handle       `Handle` of it, with efforts on the coordinates; what it carries may change at any time
    source       'measured': as measured; while that is silent, as estimated
                 'estimated': hybrid dynamics along the measured motion of the driven joints, corrected by what is
                 measured of the passive joints, or else by the efforts that the driven ones take
                 'hanging': at rest where the load hangs, and rigid with what it hangs from unless `on_oil`

    `joints` are their names; `hanging` is the `Hanging` for kernels; `allowance` (driven,) are the accelerations of the
    driven joints by a swing that is not known; `imu` is a `PassiveImu`, None where none speaks. Raises ModelError where
    the load does not hang at the initial position.
    """

    def __init__(self, manipulator, handle, source=ESTIMATED):
        check_name(source, SOURCES, f"passive_states '{source}'")
        self.joints, self.source, self._machine = manipulator.passive_joints, source, manipulator
        self._driven = np.array([name not in self.joints for name in manipulator.coordinates])
        passive = kernels.make_passive(self._driven)
        self.hanging = kernels.Hanging(handle.tree, handle.loops, passive)
        arrays = kernels.Passive(*views(passive, kernels.TYPES))
        self._state, self._mask = arrays.state, arrays.driven
        if source == RESTING:
            # driven at rest: with the free load errors would weigh a fraction of what disturbs the joints as it swings
            self._mask[:] = 1.0
        count = len(self.joints)
        self._before, self._after = np.zeros((2, 3, int(self._driven.sum())))
        self._last = self._refreshed = None     # s, of the last state of the driven joints
        self._reading = np.zeros((count, self._before.shape[1]))   # error of the state by that of efforts, rad/N
        self.allowance = np.zeros(self._before.shape[1])
        self._seen = [-inf] * count             # s, of the last measurement of each
        self._measurement = [(nan, nan)] * count    # position and rate, last accepted
        self._jumps = [0] * count
        self._friction = self._load_error = 0.0         # by which efforts may be wrong: (n,), and a share of the load
        self.imu, self._turned = None, None         # and what it measured since the last state
        self._turning, self._turned_at = np.full(count, nan), -inf      # rates by it, and s of them
        self.rejected, self.problem = 0, ''     # measurements that jumped; why there is no estimate
        start = manipulator.initial_position
        self._home = start[~self._driven]
        self._state[0] = self._home
        status = self._settle(start[self._driven], SETTLING)
        if status != OK:
            check(manipulator, 0 if decode(status).code == SINGULAR else status, x=start)
            raise ModelError(f"'{manipulator.name}' does not hang from {', '.join(self.joints)} at its initial "
                             'position, but stands above them; expected initial positions near where it hangs')

    @property
    def needs_measurements(self):
        """Whether it is a fault that nothing is measured."""
        return self.source == MEASURED

    @property
    def position(self):
        """(passive,) rad, m, in use."""
        return self._state[0].copy()

    @property
    def rate(self):
        """(passive,) rad/s, m/s, in use."""
        return self._state[1].copy()

    @property
    def observed(self):
        """Views of position, rate and acceleration, (3, driven) and (3, passive), as of the last `observe`."""
        return self._before, self._state

    def on_oil(self, friction):
        """Let a load that is assumed to be at rest give way to accelerations, as it does, since oil resists its swing.

        friction (n,): by which efforts on the driven coordinates may be wrong, and by LOAD_ERROR.
        """
        self._mask[:], self._friction, self._load_error = self._driven, friction, LOAD_ERROR

    def split(self, x, xd):
        """Return (x, xd, passive (2, passive)) of the driven and passive joints of a state of the whole machine.

        Entries of passive joints are NaN where they are not measured.
        """
        x, xd = np.asarray(x, dtype=float), np.asarray(xd, dtype=float)
        if x.shape != self._driven.shape or xd.shape != self._driven.shape:
            raise ShapeError(f'x {x.shape}, xd {xd.shape}: expected {self._driven.shape} of both')
        free = ~self._driven
        return x[self._driven], xd[self._driven], np.array((x[free], xd[free]))

    def whole(self, x, xd):
        """Return (x, xd) of the whole machine for x, xd of the driven joints, with the passive state in use."""
        out = np.empty((2, self._driven.size))
        out[0, self._driven], out[1, self._driven] = x, xd
        out[:, ~self._driven] = self._state[:2]
        return out

    def resting(self, x):
        """Return x of the whole machine at rest at x of the driven joints: where the load hangs."""
        kept = self._state.copy()
        try:
            status = self._settle(x, SETTLING)
            out = self.whole(x, x)[0]
        finally:
            self._state[:] = kept
        if status != OK:
            raise StateError(f"'{self._machine.name}': no position of rest of {', '.join(self.joints)} at "
                             f'x = {np.asarray(x).tolist()}')
        return out

    def efforts(self, x, xd, xdd):
        """Return the efforts (driven,) for x, xd, xdd of the driven joints at the passive state in use.

        Raises as `Manipulator.hybrid_dynamics`.
        """
        x, xd, xdd = (np.array(one, dtype=float) for one in (x, xd, xdd))
        f = np.empty(x.size)
        status = kernels.efforts_of_driven(self.hanging, x, xd, xdd, f)
        if status != OK:
            whole = self.whole(x, xd)
            check(self._machine, status, x=whole[0], xd=whole[1], xdd=xdd)
        return f

    def resting_efforts(self, x):
        """Return the efforts (driven,) that keep the machine at rest at x of the driven joints; raises StateError."""
        kept = self._state.copy()
        try:
            self._state[0], self._state[1:] = self.resting(x)[~self._driven], 0.0
            return self.efforts(x, np.zeros(len(x)), np.zeros(len(x)))
        finally:
            self._state[:] = kept

    def effort_terms(self, x, xd):
        """Return (forces (driven,) without acceleration, their increase (driven, driven) with it) at x, xd.

        At the passive state in use.  Of the mass matrix of all joints the increase is M_dd - M_dp M_pp^-1 M_pd while
        the passive joints accelerate freely, and M_dd where they are rigid.  Raises as `efforts`.
        """
        n = len(x)
        x, xd, forces, inertia = np.array(x, dtype=float), np.array(xd, dtype=float), np.empty(n), np.empty((n, n))
        status = kernels.effort_terms(self.hanging, x, xd, forces, inertia)
        if status != OK:
            whole = self.whole(x, xd)
            check(self._machine, status, x=whole[0], xd=whole[1])
        return forces, inertia

    def modes(self, x):
        """Return (frequencies [rad/s], damping ratios), each (passive,), of small swings about rest at x (driven,).

        The driven joints are held.  Friction counts as at 1 rad/s.  Raises StateError where the load does not hang.
        """
        p, whole = ~self._driven, self.resting(x)
        n = len(self.joints)
        stiffness, M = self._stiffness(whole)
        slopes = np.array((stiffness[p], self._slopes(whole, 1.0, 1)[p]))
        K, C = np.linalg.solve(M[np.ix_(p, p)], slopes)
        values = np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-K, -C]]))
        values = values[np.argsort(-values.imag)][:n]
        return np.abs(values), -values.real / np.abs(values)

    def swing_terms(self, x):
        """Return the `SwingTerms` of small swings about rest at x (driven,); raises as `modes`."""
        d, p, whole = self._driven, ~self._driven, self.resting(x)
        stiffness, M = self._stiffness(whole)
        K = 0.5 * (stiffness[p] + stiffness[p].T)
        slope = -np.linalg.solve(K, stiffness[d].T)     # the Hessian of the potential is symmetric
        coupling = M[np.ix_(p, d)] + M[np.ix_(p, p)] @ slope
        return SwingTerms(whole[d], whole[p], slope, coupling, M[np.ix_(p, p)], K)

    def _stiffness(self, whole):
        """Return slopes (dof, passive) of all efforts by passive positions, and the mass matrix, at rest at `whole`."""
        M = np.empty((whole.size, whole.size))
        slopes = self._slopes(whole, PERTURBATION, 0)
        check(self._machine, read_mass_matrix(self.hanging.tree, self.hanging.loops, whole, M), x=whole)
        return slopes, M

    def _slopes(self, whole, step, row):
        """Return slopes (dof, passive) of all efforts by positions (row 0) or rates (row 1) of the passive joints."""
        columns = []
        for j in np.flatnonzero(~self._driven):
            ends = []
            for way in (step, -step):
                state = np.array((whole, np.zeros(whole.size)))
                state[row, j] += way
                ends.append(self._generalized(*state))
            columns.append((ends[0] - ends[1]) / (2.0 * step))
        return np.array(columns).T

    def _generalized(self, x, xd):
        """Return the efforts on all coordinates at x, xd of the whole machine without acceleration."""
        f, still = np.empty(x.size), np.zeros(x.size)
        check(self._machine, inverse_checked(self.hanging.tree, self.hanging.loops, x, xd, still, f), x=x, xd=xd)
        return f

    def take_imu(self, link, turning, force):
        """Take what an inertial sensor on a link measured just now, for the next `observe`.

        turning (3,) [rad/s], force (3,) [m/s^2]: angular velocity, acceleration less gravity, in axes of the link.
        Raises as `PassiveImu`, and NonFiniteError.
        """
        turned = np.array(turning, dtype=float), np.array(force, dtype=float)
        if not isfinite(sum(one.sum() for one in turned)):
            raise NonFiniteError(f"inertial sensor on '{link}': not finite")
        if self.imu is None or self.imu.link != link:
            self.imu = PassiveImu(self._machine, link, self.resting(self._machine.initial_position[self._driven]))
        self._turned = turned

    def _with_imu(self, t, x, xd, measured):
        """Return `measured` with the rates of the inertial sensor where it has none."""
        if self._turned is not None:
            self._turning, self._turned_at = self.imu.rates(t, *self.whole(x, xd), *self._turned), t
            self._turned = None
        if not 0.0 <= t - self._turned_at <= IMU_AGE:
            return measured
        out = np.full((2, len(self.joints)), nan) if measured is None else np.array(measured, dtype=float)
        out[1] = np.where(np.isfinite(out[1]), out[1], self._turning)
        return out

    def observe(self, t, x, xd, measured=None, efforts=None):
        """Take a state x, xd (driven,) at t [s] and what is `measured` (2, passive) then, NaN or None: nothing.

        efforts: (driven,) that acted on the driven coordinates since the state before, less friction; None: not known.
        Never raises: `problem` says why there is no estimate, and the load counts as hanging at rest.
        """
        dt = None if self._last is None else t - self._last
        self._after[0], self._after[1] = x, xd
        self._last, self.problem = t, ''
        accepted = self._accepted(t, measured if self.imu is None else self._with_imu(t, x, xd, measured))
        if self.source == RESTING:
            self._rest(x)
        elif dt is None or not 0.0 < dt <= LONGEST_STEP:
            if dt != 0.0:
                self._rest(x)
                self._start(accepted)
        elif self.source == MEASURED and accepted is not None and isfinite(accepted.sum()):
            self._state[:2] = accepted
        else:
            status = kernels.predict_passive(self.hanging, self._before, self._after, float(dt))
            if status != OK:
                reason = status_error(self._machine, status, {'x': self.whole(x, xd)[0]})
                self.problem = f'their motion cannot be computed: {reason}'
                self._rest(x)
            elif self.source == ESTIMATED and efforts is not None and accepted is None:
                kernels.correct_by_efforts(self.hanging, efforts, self._reading, FORCE_RATE * dt, LARGEST_ERROR)
            if accepted is not None:
                self._correct(accepted, dt)
        self._before[0], self._before[1] = x, xd
        if self.source != MEASURED and (self._refreshed is None or not 0.0 <= t - self._refreshed < REFRESH):
            self._refreshed = t
            self._refresh(self._before[0])

    def _refresh(self, x):
        """Compute what a swing does to the driven joints at rest at x."""
        kept, mask, n = self._state.copy(), self._mask.copy(), x.size
        rest, f, slopes = np.zeros(n), np.empty((2, n)), np.empty((n, kept.shape[1]))
        try:
            self._state[1:], self._mask[:] = 0.0, self._driven
            for j in range(kept.shape[1]):
                for way, row in zip((1.0, -1.0), f):
                    self._state[0, j] = kept[0, j] + way * PERTURBATION
                    if kernels.efforts_of_driven(self.hanging, x, rest, rest, row) != OK:
                        return
                slopes[:, j], self._state[0] = (f[0] - f[1]) / (2.0 * PERTURBATION), kept[0]
            self._mask[:] = mask
            with suppress(PsdynError, np.linalg.LinAlgError):
                inertia = self.effort_terms(x, rest)[1]
                accelerations = np.linalg.solve(inertia, slopes)
                self.allowance[:] = np.abs(accelerations).sum(axis=1) * UNKNOWN_SWING
                # the likeliest swing, by these errors of accelerations and efforts
                wrong = np.full(n, self._friction) + self._load_error * np.abs(f.mean(axis=0))
                weighed = slopes.T @ np.linalg.inv(ACCELERATION_ERROR**2 * inertia @ inertia + np.diag(wrong**2))
                prior = np.eye(len(self.joints)) / UNKNOWN_SWING**2
                self._reading = np.linalg.solve(weighed @ slopes + prior, weighed)
        finally:
            self._state[:], self._mask[:] = kept, mask

    def _settle(self, x, iterations):
        return kernels.settle_passive(self.hanging, np.array(x, dtype=float), iterations)

    def _rest(self, x):
        known = np.isfinite(self._state).all()
        if not known:
            self._state[0] = self._home
        if self._settle(x, 1 if known and self.source == RESTING else SETTLING) != OK:
            self.problem = 'they do not hang'
            self._state[0], self._state[1:] = self._home, 0.0

    def _start(self, measured):
        if measured is not None:
            known = np.isfinite(measured)
            self._state[:2][known] = measured[known]

    def _correct(self, measured, dt):
        w = BANDWIDTH * dt
        # of rates alone a share: positions follow from how they differ from the estimated ones
        exact = self.source == MEASURED and isfinite(measured[0].sum())
        share, rate_gain = (1.0, 0.0) if exact else (1.0 - exp(-2.0 * w), BANDWIDTH * w)
        kernels.correct_passive(self.hanging, measured, share, rate_gain)

    def _accepted(self, t, measured):
        """Return the measurement (2, passive) with NaN where it jumped, None where nothing was measured."""
        if measured is None:
            return None
        out = [[one if isfinite(one) else nan for one in row] for row in np.asarray(measured, dtype=float).tolist()]
        seen = False
        for j, (position, rate) in enumerate(zip(*out)):
            last, last_rate = self._measurement[j]
            gap = t - self._seen[j]
            explained = JUMP + max(abs(one) for one in (last_rate, rate, 0.0) if one == one) * gap
            jumped = gap < SILENT and abs(position - last) > explained
            self._jumps[j] = self._jumps[j] + 1 if jumped else 0
            self.rejected += jumped
            if jumped and self._jumps[j] < IN_A_ROW:
                out[0][j] = out[1][j] = nan
            elif position == position or rate == rate:
                self._measurement[j], self._seen[j], seen = (position, rate), t, True
        return np.array(out) if seen else None

    def silent(self, t):
        """Return the names of those that were not measured within SILENT before t [s]."""
        return tuple(name for name, seen in zip(self.joints, self._seen) if t - seen > SILENT)


class Suspension:
    """The points that loads hang from, for `follow_suspension`; manipulator: the whole machine.

    They are the origins of the children of those passive joints that no other one carries; `down` is the unit vector
    (3,) of gravity.
    """

    def __init__(self, manipulator):
        m = self._machine = manipulator
        joints = m.machine.description.joints
        parents = {joint.child: name for name, joint in joints.items()}
        self._links = [joints[name].child for name in m.passive_joints if not _carried(name, joints, parents, m)]
        self._driven = [name not in m.passive_joints for name in m.coordinates]
        self.down = m.gravity / max(float(np.linalg.norm(m.gravity)), SMALLEST_GRAVITY)
        self(m.initial_position[None, self._driven])        # nothing is compiled later

    def __call__(self, x):
        """Return the points (N, k) [m], one after the other, and Jacobian (N, k, n) for x (N, n) of driven joints."""
        whole = np.tile(self._machine.initial_position, (len(x), 1))
        whole[:, self._driven] = x
        points = [self._machine.link_pose(whole, link)[:, :3, 3] for link in self._links]
        slopes = [self._machine.jacobian(whole, link)[:, :3, self._driven] for link in self._links]
        return np.concatenate(points, axis=1), np.concatenate(slopes, axis=1)


def _carried(name, joints, parents, manipulator):
    """Whether a passive joint hangs from another one."""
    link = joints[name].parent
    while link in parents:
        if parents[link] in manipulator.passive_joints:
            return True
        link = joints[parents[link]].parent
    return False
