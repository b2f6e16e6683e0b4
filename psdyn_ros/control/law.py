"""What every control law is: measured motion in, a command of each actuator out, in the unit of its tier."""

import numpy as np

from ..api.hydraulics.statics import hydraulic_records
from ..kernels.hydraulics.records import AXIS
from ..model.errors import ActuationError, ModelError, UnknownNameError, did_you_mean
from ..model.parameters.hydraulics import EFFORT, PRESSURE, VALVE, VELOCITY
from ..model.parameters.hydraulics import MODES as TIERS
from .load_model import LoadModel
from .reference import ReferenceMotion

SPACES = ACTUATOR, JOINT = 'actuator', 'joint'
SLIP = 5e-3     # m/s, rad/s over which Coulomb friction of the URDF changes its sign


class ControlLaw:
    """What all laws share: the reference, the load, and what is told about both.

    manipulator  with at least as many actuators as coordinates; ActuationError where it has fewer
    hydraulics   `Hydraulics` of this machine, or None where nothing but efforts is commanded
    tiers        {actuator: tier} or (actuators,): what is commanded of each,
                     effort    N or N m, of the piston where a cylinder drives it: friction of the seals included
                     pressure  Pa, load pressure: effort over the piston's area
                     valve     -1 to 1 of the spool, positive extends
                     velocity  m/s, of a cylinder whose valve is pressure-compensated
                 None: of cylinders as `hydraulics` says, where this law can command that, else effort
    period       s, between updates
    space        'actuator': errors are those of the actuators (of the coordinates, where a law says so);
                 'joint': of the joints that the loops move, whose gains are then those of rad
    joints       of which errors are taken in space 'joint'; None: booms of closed-form loops, and serial joints

    `reference` is what is followed; `desired` (3, dof) what it was at the last update: x, xd, xdd.
    `saturations` (actuators,) counts commands that were clipped.
    `kernel` is the compiled function that computes its commands, None where there is not just one; to be timed.
    `feedforward_scale`, 0 to 1, of velocity and acceleration of the reference is fed forward; the weight always is.
    `flow_scale`, 0 to 1, of the reference's full speed the pump can feed; 1 where it gives what is asked.
    """

    needs_pressures = False     # whether `update` must have them
    allowed = TIERS             # those that this law can command

    def __init__(self, manipulator, hydraulics=None, period=None, *, tiers=None, space=ACTUATOR, joints=None):
        check_actuation(manipulator)
        self.manipulator, self.hydraulics, self.period = manipulator, hydraulics, period
        self.tiers = checked_tiers(manipulator, hydraulics, tiers, self.allowed)
        self.reference = ReferenceMotion(manipulator)
        self.load = LoadModel(manipulator, hydraulics)
        self.desired = self.kernel = None
        self.saturations = np.zeros(len(manipulator.actuators), dtype=np.int64)
        self.feedforward_scale = self.flow_scale = 1.0
        self._effort_limit = np.array(manipulator.limits.effort, dtype=float)
        self._general = manipulator.machine.general
        # in place of a path, where the samples of the reference are there already
        self._no_path = np.empty((0, 6, manipulator.dof)), np.empty(0), np.empty((0, 5)), 0.0
        self._fill_axes()
        self._space = _JointSpace(manipulator, joints) if _checked_space(space) == JOINT else None

    def _fill_axes(self):
        """Friction of the actuators, and the area of the piston where pressure is commanded."""
        m = self.manipulator
        self._area = np.ones(len(m.actuators))
        if self.hydraulics is None:
            self.axes = np.zeros(len(m.actuators), AXIS)
            joints = m.machine.description.joints
            self.axes['cylinder'], self.axes['slip'] = -1, SLIP
            self.axes['coulomb'] = [joints[name].friction for name in m.actuators]
            self.axes['viscous'] = [joints[name].damping for name in m.actuators]
            return
        self.axes, self.cylinders, self.supply = hydraulic_records(m, self.hydraulics)
        for row, tier in enumerate(self.tiers):
            if tier == PRESSURE:
                self._area[row] = self.cylinders['area_a'][self.axes['cylinder'][row]]

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """Commands (actuators,), each in the unit of its tier.

        t                s, when x (dof,), xd (dof,) were measured
        pressures        (cylinders, 2) of chambers A, B, the last ones measured [Pa gauge]; None where none are needed
        age              s from t to this command
        supply_pressure  Pa gauge, measured; None: that of the record

        Without a reference the first position measured is held. Raises ShapeError, NonFiniteError, and what the
        inverse dynamics raise.
        """
        raise NotImplementedError

    def hold(self, x):
        """Hold the position x (dof,) from here on, and forget every trajectory and what was measured before."""
        self.reference.hold(x)
        self._forget()

    def _forget(self):
        """Forget what was measured."""

    def freeze(self, mask):
        """Hold the integrals of the actuators in mask (actuators,) bool, or True for all, until told otherwise."""
        raise NotImplementedError

    def set_payload(self, link, mass, com, inertia):
        """As `LoadModel.set_payload`: believed from the next update on, gradually."""
        self.load.set_payload(link, mass, com, inertia)

    def set_base(self, base):
        """As `LoadModel.set_base`: believed from the next update on, no faster than bases move."""
        self.load.set_base(base)

    def holding(self, x):
        """Commands (actuators,) that hold the load at rest at x (dof,): efforts, pressures; 0 of valves, velocities."""
        return self._of_forces(self.load.holding_efforts(x))

    def carrying(self, x, xd, xdd):
        """The same for a motion x, xd, xdd, each (dof,), by the model alone and without friction."""
        return self._of_forces(self.load.inverse_dynamics(x, xd, xdd))

    def _of_forces(self, efforts):
        command = efforts / self._area
        command[[tier in (VALVE, VELOCITY) for tier in self.tiers]] = 0.0
        return command

    @property
    def predicted_efforts(self):
        """Efforts (actuators,) [N, N m] that the model expects of the reference at the last update, with friction."""
        raise NotImplementedError


class _JointSpace:
    """Errors in joints that the loops move, and what they are on the actuators' side."""

    def __init__(self, manipulator, joints):
        self._manipulator = manipulator
        if joints is None:
            if manipulator.machine.general:
                raise ModelError(f"space 'joint' of '{manipulator.name}': its loops are closed by iteration; expected "
                                 f'`joints`, {manipulator.dof} of {", ".join(manipulator.joints)}')
            records = manipulator.records.mods['joint']
            joints = tuple(manipulator.joints[boom if boom >= 0 else own] for own, boom, _ in records)
        self.map = manipulator.joint_map(tuple(joints))
        if len(joints) != manipulator.dof:
            raise ModelError(f"space 'joint' of '{manipulator.name}': {len(joints)} joints; expected "
                             f'{manipulator.dof}, as many as degrees of freedom')
        self._columns = [manipulator.joints.index(name) for name in joints]

    def motion(self, x, xd, xdd=None):
        """(3, dof) positions, rates and accelerations of the joints; zeros without xdd (dof,)."""
        state = self._manipulator.joint_state(x, xd, np.zeros_like(x) if xdd is None else xdd)
        return np.array(state[1:])[:, self._columns]

    def accelerations(self, x, xd, wanted):
        """xdd (dof,) at x, xd that give the joints the accelerations `wanted` (dof,)."""
        q, qd, _ = self.motion(x, xd)
        return self.map.motion(q, qd, wanted)[2]

    def rates(self, x, rates):
        """xd (dof,) at x that go with these rates (dof,) of the joints."""
        return self.map.motion(self.motion(x, np.zeros_like(x))[0], rates, np.zeros_like(x))[1]


def checked_tiers(manipulator, hydraulics, tiers, allowed=TIERS):
    """(actuators,) tiers of what a law was given; ModelError, UnknownNameError where a tier cannot be commanded."""
    names = manipulator.actuators
    cylinders = {} if hydraulics is None else hydraulics.cylinders
    declared = {name: cylinders[name].command_mode for name in names if name in cylinders}
    chosen = {name: declared[name] if declared.get(name) in allowed else EFFORT for name in names}
    if tiers is not None and not isinstance(tiers, dict):
        if isinstance(tiers, str) or len(tiers) != len(names):
            raise ModelError(f'tiers {tiers!r:.80}: expected one of {", ".join(TIERS)} for each of {", ".join(names)}')
        tiers = dict(zip(names, tiers))
    for name, tier in (tiers or {}).items():
        if name not in names:
            raise UnknownNameError(f"tier of '{name}': no such actuator{did_you_mean(str(name), names)}")
        chosen[name] = tier
    for name, tier in chosen.items():
        where = f"tier '{tier}' of '{name}'"
        if tier not in TIERS:
            raise ModelError(f'{where}: expected one of {", ".join(TIERS)}{did_you_mean(str(tier), TIERS)}')
        if tier not in allowed:
            raise ModelError(f'{where}: this law commands {" or ".join(allowed)}')
        if tier != EFFORT and name not in cylinders:
            raise ModelError(f'{where}: no cylinder of the hydraulics drives it; expected effort')
        if tier == VELOCITY and not cylinders[name].valve.compensated:
            raise ModelError(f'{where}: its valve has no pressure compensator, so its flow depends on the load; '
                             'expected `compensated: true` or another tier')
    return tuple(chosen[name] for name in names)


def _checked_space(space):
    if space not in SPACES:
        raise ModelError(f"space '{space}': expected one of {', '.join(SPACES)}{did_you_mean(str(space), SPACES)}")
    return space


def check_actuation(manipulator):
    """Raise ActuationError where some coordinate of a machine is beyond its actuators."""
    m = manipulator
    if m.floating:
        raise ActuationError(f"'{m.name}' cannot be controlled: its base floats and nothing drives it; expected a "
                             'machine that stands on its root link')
    if len(m.actuators) < m.dof:
        raise ActuationError(
            f"'{m.name}' cannot be controlled: it has {len(m.actuators)} actuators "
            f"({', '.join(m.actuators) or 'none'}) "
            f"for {m.dof} degrees of freedom ({', '.join(m.coordinates)}); expected at least {m.dof}, joints with a "
            'command interface in <ros2_control>')
