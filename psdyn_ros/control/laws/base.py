"""What every control law is: measured motion in, a command of each actuator out, in the unit of its interface."""

import numpy as np

from ...api.hydraulics.statics import hydraulic_records
from ...api.results.limits import check_able
from ...kernels.control.actuation import make_actuation
from ...kernels.control.effort_range import MODEL_TYPES, EffortModel, evaluate_efforts, make_effort_model
from ...kernels.control.joint_space import make_joint_space
from ...kernels.control.path import no_path
from ...kernels.hydraulics.friction import sliding_friction
from ...kernels.hydraulics.records import AXIS
from ...kernels.runtime.buffer import views
from ...kernels.runtime.status import OK
from ...model.errors import ActuationError, ModelError, NonFiniteError, UnknownNameError, did_you_mean
from ...model.mechanism.description import SLIP_VELOCITY
from ...model.parameters.hydraulics import EFFORT, PRESSURE, VALVE, VELOCITY
from ...model.parameters.hydraulics import MODES as INTERFACES
from ..reference.reference import ReferenceMotion
from ..reference.swing_damping import SwingDamping
from ..reference.swing_shaper import ZVD, SwingShaping
from .gains import NoGains
from .passive_states import ESTIMATED, RESTING, Suspension
from .payload_model import LoadModel, drives_coordinates

SPACES = ACTUATOR, JOINT = 'actuator', 'joint'
RAMP = 0.5              # s in which gains go over to others while a law runs
BASE_RESTS = 2.0        # s that the base has to rest until a swing is damped: one that rocks rests for a moment, too


class GainRamp:
    """Takes arrays of gains, in place, to others within `RAMP`; `running` while it does."""

    def __init__(self):
        self._arrays, self._passed = [], 0.0

    @property
    def running(self):
        """Whether gains are on their way."""
        return bool(self._arrays)

    def start(self, arrays, targets):
        """Begin from what arrays have now."""
        self._arrays = [(array, array.copy(), np.array(target, dtype=float)) for array, target in zip(arrays, targets)]
        self._passed = 0.0

    def advance(self, dt):
        """Go on by dt [s]."""
        self._passed += dt
        share = min(self._passed / RAMP, 1.0)
        for array, begin, end in self._arrays:
            array[:] = begin + share * (end - begin) if share < 1.0 else end
        if share == 1.0:
            self._arrays = []

    def end(self):
        """Use the others at once."""
        self.advance(RAMP)


class ControlLaw:
    """What all laws share: the reference, the load, gains and limits.

    manipulator  with an actuator for each coordinate but those of passive joints (`Manipulator.underactuated`);
                 ActuationError where it has fewer
    hydraulics   `Hydraulics` of this machine, or None where nothing but efforts is commanded
    interfaces   {actuator: interface} or (actuators,): what is commanded of each,
                     effort    N or N m, of the piston where a cylinder drives it: friction of the seals included
                     pressure  Pa, load pressure: effort over the piston's area
                     valve     -1 to 1 of the spool, positive extends
                     velocity  m/s, of a cylinder whose valve is pressure-compensated
                 None: of cylinders as `hydraulics` says, where this law can command that, else effort
    period       s, between updates
    space        'actuator': errors are those of the actuators (of the coordinates, where a law says so);
                 'joint': of the joints that the loops move, whose gains are then those of rad
    joints       of which errors are taken in space 'joint'; None: booms of closed-form loops, and serial joints
    passive_states  where position and rate of passive joints come from, as the source of `PassiveStates`
    swing_shaper    of trajectories, where passive joints swing: 'zv', 'zvd', 'ei' or 'none'

    `manipulator` has the driven coordinates alone, and dof is their number: the passive joints are fixed in it. They
    move freely in `load`, in the state that `observe` was given.
    `reference` is what is followed; `desired` (3, dof) what it was at the last update: x, xd, xdd.
    `saturations` (actuators,) counts commands that were clipped.
    `kernel` is the compiled function that computes its commands.
    `feedforward_scale`, 0 to 1, of velocity and acceleration of the reference is fed forward; the weight always is.
    `speed_scaling`, 0 to 1, of the reference's full speed the pump can feed; 1 where it gives what is asked.
    `force_residuals` (actuators,) [N] of the pistons beyond those of the model and what both differed by at rest; zero
    where pressures are not measured.
    """

    kernel = None
    delay = 0.0                 # s from a command to the actuator that obeys it
    Gains = NoGains             # dataclass of arrays, whose fields are made by `gains.gain`
    gains = NoGains()           # those in use
    needs = ()                  # among 'hydraulics', 'period'
    needs_pressures = False     # whether `update` must have them
    model_feedback = False      # whether its efforts are those of the model with feedback by `effort_gains`
    effort_gains = None         # (2, dof) accelerations of axes at force level for an error [1/s^2] and its rate [1/s]
    step_gains = None           # (dof,) the same [1/s^2] for a step of a position; None: it uses measured velocities
    opens_by_speed = False      # whether it opens valves for `rod_speeds`, with feedback by `flow_gains`
    flow_gains = None           # (2, actuators) speeds of rods for an error [1/s] and its rate [1]
    allowed = INTERFACES        # those that this law can command
    parameters = {}             # {parameter of the controller node: option of this law that it sets}

    def __init__(self, manipulator, hydraulics=None, period=None, *, interfaces=None, space=ACTUATOR, joints=None,
                 passive_states=ESTIMATED, swing_shaper=ZVD):
        check_actuation(manipulator)
        whole, manipulator = manipulator, manipulator.driven_machine
        self.manipulator, self.hydraulics, self.period = manipulator, hydraulics, period
        self.interfaces = checked_interfaces(manipulator, hydraulics, interfaces, self.allowed)
        self.reference = ReferenceMotion(manipulator)
        self.load = LoadModel(whole, hydraulics, passive_states)
        if self.load.passive is not None:
            self.reference.shaping = SwingShaping(self.load.passive.modes, swing_shaper, Suspension(whole))
            if passive_states != RESTING:
                self.reference.damping = SwingDamping(self.load.passive.swing_terms, manipulator.dof,
                                                      len(self.load.passive.joints))
        self.desired, self._turned = None, -np.inf      # s at which the base turned last
        self.saturations = np.zeros(len(manipulator.actuators), dtype=np.int64)
        self.force_residuals = np.zeros(len(manipulator.actuators))
        self.feedforward_scale = self.speed_scaling = 1.0
        self._effort_limit = np.array(manipulator.limits.effort, dtype=float)
        # in place of a path, where the samples of the reference are there already
        self._no_path = no_path(manipulator.dof)
        self._rest, self._no_friction = np.zeros(manipulator.dof), np.zeros(manipulator.dof, AXIS)
        self._no_friction['slip'] = SLIP_VELOCITY
        self._model = make_effort_model(manipulator.dof)
        self._effort_terms = EffortModel(*views(self._model, MODEL_TYPES))
        self._modelled = None, None         # x, xd of the model that was evaluated last, since the last update
        self._fill_axes()
        m, model = manipulator, self.load.mechanism
        # (dof,) actuator that each coordinate is, -1 where none is
        self.rows = np.array([m.actuators.index(name) if name in m.actuators else -1 for name in m.coordinates])
        self._joints = _joints_of_space(m, joints) if _checked_space(space) == JOINT else ()
        self._space = self._actuation = None        # buffers of the kernels
        if self._joints:
            self._space = make_joint_space([m.joints.index(name) for name in self._joints], len(m.joints))
        if not drives_coordinates(model):
            self._actuation = make_actuation(model.allocation, len(m.actuators), m.dof)

    def _fill_axes(self):
        """Friction of the actuators, and the area of the piston where pressure is commanded."""
        m = self.manipulator
        self.area = np.ones(len(m.actuators))
        if self.hydraulics is None:
            self.axes = np.zeros(len(m.actuators), AXIS)
            joints = m.machine.description.joints
            self.axes['cylinder'], self.axes['slip'] = -1, SLIP_VELOCITY
            self.axes['coulomb'] = [joints[name].friction for name in m.actuators]
            self.axes['viscous'] = [joints[name].damping for name in m.actuators]
            return
        self.axes, self.cylinders, self.supply = hydraulic_records(m, self.hydraulics)
        for row, interface in enumerate(self.interfaces):
            if interface == PRESSURE:
                self.area[row] = self.cylinders['area_a'][self.axes['cylinder'][row]]

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """Commands (actuators,), each in the unit of its interface.

        t                s, when x (dof,), xd (dof,) were measured
        pressures        (cylinders, 2) of chambers A, B, the last ones measured [Pa gauge]; None where none are needed
        age              s from t to this command
        supply_pressure  Pa gauge, measured; None: that of the record

        Without a reference the first position measured is held. Raises ShapeError, NonFiniteError, and what the
        inverse dynamics raise.
        """
        raise NotImplementedError

    def observe(self, t, x, xd, passive=None, command=None):
        """Take a measured state x, xd (dof,) at t [s] for the passive joints, in every cycle, before `update`.

        passive: (2, passive) what was measured of them, NaN: nothing.  command: (actuators,) in force since the last
        state, None: none of this law.  Without passive joints it does nothing.
        """
        if self.load.passive is None:
            return
        known = command is not None and self.load.passive.source == ESTIMATED
        efforts = self.applied_efforts(command, x, xd) if known else None
        self.load.passive.observe(t, x, xd, passive, efforts)
        damping = self.reference.damping
        if damping is not None and damping.declared and command is not None and self.desired is not None:
            self._damp_swing(damping, t)

    def _damp_swing(self, damping, t):
        known, problem = self.load.passive, self.load.passive.problem
        if not problem and known.needs_measurements and known.silent(t):
            problem = f'{", ".join(known.silent(t))} not measured'
        if not problem and self.reference.shaped:
            problem = 'a shaped trajectory'
        if self.load.base_turns:
            self._turned = t
        if not problem and t - self._turned < BASE_RESTS:
            problem = 'the base turns'
        damping.advance(t, *known.observed, self.desired - damping.motion, problem)

    def applied_efforts(self, command, x, xd):
        """Return the efforts (dof,) on the coordinates that actuators give at x, xd, less friction; None: not known."""
        return None

    def hold(self, x):
        """Hold the position x (dof,) from here on, and forget every trajectory and what was measured before."""
        self.reference.hold(x)
        self._effort_terms.lack[:] = self._effort_terms.smooth[:] = 0.0
        self._forget()

    def _forget(self):
        """Forget what was measured."""

    @classmethod
    def make(cls, manipulator, hydraulics, period, **options):
        """Return the law with its default gains; as the class, where that needs no gains."""
        return cls(manipulator, hydraulics, period, **options)

    def set_gains(self, gains):
        """Use these `Gains` from the next update on; raises ModelError where they cannot be."""

    def gains_rejection(self, gains):
        """Return why a user must not set these `Gains`, as where the loop would be unstable; '' where they may be."""
        return ''

    def freeze(self, mask):
        """Let no integral of the actuators in mask (actuators,) bool, or True for all, grow until the next call."""
        raise NotImplementedError

    def set_payload(self, link, mass, com, inertia, x=None):
        """As `LoadModel.set_payload`: in the model from the next update on, gradually.

        x (dof,): where the machine is, and must be able to hold it; None: that is not known.
        """
        most = np.inf if x is None else self.holding_limits
        if x is None:
            x = self.manipulator.initial_position if self.desired is None else self.desired[0]
        self.load.set_payload(link, mass, com, inertia, x, most)

    @property
    def holding_limits(self):
        """Largest efforts (actuators,) of axes at force level; infinite of valves, which hold what they cannot lift."""
        return np.where(np.isin(self.interfaces, (VALVE, VELOCITY)), np.inf, self._effort_limit)

    @property
    def unknown_accelerations(self):
        """(dof,) m/s^2, rad/s^2 that a swing of passive joints may cause which is not measured, and a new payload."""
        swing = self._rest if self.load.passive is None else self.load.passive.allowance
        return swing + self.load.unknown_accelerations if self.load.settling else swing

    def set_base(self, base):
        """As `LoadModel.set_base`: in the model from the next update on, no faster than bases move."""
        self.load.set_base(base)

    def holding(self, x):
        """Commands (actuators,) that hold the load at rest at x (dof,): efforts, pressures; 0 of valves, velocities."""
        return self._of_forces(self.load.holding_efforts(x))

    def carrying(self, x, xd, xdd):
        """The same for a motion x, xd, xdd, each (dof,), by the model alone and without friction."""
        return self._of_forces(self.load.inverse_dynamics(x, xd, xdd))

    def friction(self, rates):
        """Commands (actuators,) that overcome the friction at rates (actuators,): efforts, pressures; 0 of the rest."""
        return self._of_forces(np.array([sliding_friction(axis, rate) for axis, rate in zip(self.axes, rates)]))

    def _of_forces(self, efforts):
        command = efforts / self.area
        command[[interface in (VALVE, VELOCITY) for interface in self.interfaces]] = 0.0
        return command

    @property
    def swing_period(self):
        """s of the slowest mode of the machine on its oil, at its initial position; 0: none is known."""
        return 0.0

    @property
    def speed_change_time(self):
        """s over which a change of the speed of a reference is spread, so that it does not swing on its oil.

        0: there is no oil.
        """
        return 0.0

    @property
    def supply_setting(self):
        """Pa gauge, pressure of the supply where its flow suffices; None without hydraulics, or where it follows the
        load: tracking errors tell there."""
        constant = self.hydraulics is not None and not self.supply['sensing'][0]
        return float(self.supply['pressure'][0]) if constant else None

    @property
    def predicted_efforts(self):
        """Efforts (actuators,) [N, N m] that the model expects of the reference at the last update, with friction."""
        raise NotImplementedError

    def force_residuals_at(self, x, pressures):
        """Forces (actuators,) [N] of the pistons at rest at x (dof,) beyond those that hold the load.

        pressures as of `update`; what both differed by before does not count.
        """
        return np.zeros(len(self.manipulator.actuators))

    def rod_speeds(self, command):
        """Return the speeds (actuators,) [m/s] for which commands (actuators,) open valves; 0 of other interfaces."""
        raise NotImplementedError

    def openings(self, speeds):
        """Return the commands (actuators,) of valves for speeds (actuators,) [m/s] of their rods; 0 of others."""
        raise NotImplementedError

    @property
    def integral_gains(self):
        """Accelerations (dof,) of axes at force level for an integral of errors [1/s^3]."""
        return self._rest

    @property
    def corrections(self):
        """(2, dof) accelerations that the last update asked for, of axes at force level: for errors of positions, and
        for their integrals."""
        return np.zeros((2, self.manipulator.dof))

    @property
    def asked_commands(self):
        """Commands (actuators,) of the last update before they were clipped, in the unit of each interface."""
        return self.predicted_efforts / self.area

    @property
    def _gains_of_coordinates(self):
        """Whether gains are those of the coordinates, and these of actuators."""
        return not self._joints and bool((self.rows >= 0).all())

    @property
    def _pressure_lead(self):
        """Efforts (actuators,) of the last commands against the lag of what drives the actuators; 0: it has none."""
        return 0.0

    @property
    def _aimed_rate(self):
        """Rates (actuators,) of the reference for which the last commands overcome friction."""
        x, rate, _ = self.desired
        return rate if self._actuation is None else self.manipulator.actuator_map(x) @ rate

    def effort_model(self, x, xd):
        """Return the buffer of the `EffortModel` at x, xd (dof,), with the friction that the last commands overcome.

        It is evaluated once for a state, after an update.
        """
        if self._modelled[0] is x and self._modelled[1] is xd:
            return self._model
        tree, loops, passive = self.load.handle.tree, self.load.handle.loops, self.load.passive
        terms, mapped = self._effort_terms, self._actuation is not None
        rate, lead = self._aimed_rate, self._pressure_lead
        if passive is not None:
            terms.efforts[:], terms.inertia[:] = passive.effort_terms(x, xd)
            tree = loops = None
        status = evaluate_efforts(tree, loops, self._model, self._no_friction if mapped else self.axes, x, xd,
                                  self._rest if mapped else rate)
        if status != OK:
            self._raise_of(((x, xd, self._rest),), 'the model gives forces that are not finite')
        if mapped:
            frictions = np.array([sliding_friction(axis, one) for axis, one in zip(self.axes, rate)])
            on_coordinates = self.manipulator.actuator_map(x).T
            terms.dry[:] = on_coordinates @ (frictions - self.axes['viscous'] * rate)
            lead = on_coordinates @ (frictions + lead)
        terms.efforts[:] += lead
        self._modelled = x, xd
        return self._model

    def _cycle(self, law, reference, times, step):
        """Call the kernel with the buffer of a law and a `Step`; where it fails, raise why.

        reference: (3, 3, dof) room for samples at these times.
        """
        self._modelled = None, None
        path = self.reference.path(times, reference) or self._no_path
        handle = self.load.handle
        hanging = None if self.load.passive is None else self.load.passive.hanging
        status = self.kernel(handle.tree, handle.loops, hanging, self._actuation, self._space, law, path, step)
        if status != OK:
            self._raise(status)

    def _raise(self, status):
        """Raise the error of a status of the kernel."""
        raise NotImplementedError

    def _raise_of(self, motions, what):
        """Raise why the model has no efforts for one of the motions, each (3, dof), or no rates of the joints."""
        for motion in motions:
            x, xd, xdd = (row.copy() for row in motion)
            self.load.inverse_dynamics(x, xd, xdd)
            if self._joints:
                q = self.manipulator.joint_state(x)[1]
                columns = [self.manipulator.joints.index(name) for name in self._joints]
                self.manipulator.joint_map(self._joints).state(q[columns], np.zeros(len(columns)))
        raise NonFiniteError(what)


def _joints_of_space(manipulator, joints):
    """Names of the joints of which errors are taken in space 'joint'; ModelError where they cannot be."""
    m = manipulator
    if joints is None:
        if m.machine.iterates:
            raise ModelError(f"space 'joint' of '{m.name}': it has loops other than cylinder triangles; expected "
                             f'`joints`, {m.dof} of {", ".join(m.joints)}')
        records = m.machine.records['joint']
        joints = tuple(m.joints[boom if boom >= 0 else own] for own, boom, _ in records)
    joints = tuple(joints)
    m.joint_map(joints)
    if len(joints) != m.dof:
        raise ModelError(f"space 'joint' of '{m.name}': {len(joints)} joints; expected {m.dof}, as many as degrees of "
                         'freedom')
    return joints


def checked_interfaces(manipulator, hydraulics, interfaces, allowed=INTERFACES):
    """(actuators,) interfaces of what a law was given; ModelError, UnknownNameError where one cannot be commanded."""
    names = manipulator.actuators
    cylinders = {} if hydraulics is None else hydraulics.cylinders
    declared = {name: cylinders[name].command_mode for name in names if name in cylinders}
    chosen = {name: declared[name] if declared.get(name) in allowed else EFFORT for name in names}
    if interfaces is not None and not isinstance(interfaces, dict):
        if isinstance(interfaces, str) or len(interfaces) != len(names):
            raise ModelError(f'interfaces {interfaces!r:.80}: expected one of {", ".join(INTERFACES)} for each of '
                             f'{", ".join(names)}')
        interfaces = dict(zip(names, interfaces))
    for name, interface in (interfaces or {}).items():
        if name not in names:
            raise UnknownNameError(f"interface of '{name}': no such actuator{did_you_mean(str(name), names)}")
        chosen[name] = interface
    for name, interface in chosen.items():
        where = f"interface '{interface}' of '{name}'"
        if interface not in INTERFACES:
            raise ModelError(f'{where}: expected one of {", ".join(INTERFACES)}'
                             f'{did_you_mean(str(interface), INTERFACES)}')
        if interface not in allowed:
            raise ModelError(f'{where}: this law commands {" or ".join(allowed)}')
        if interface != EFFORT and name not in cylinders:
            raise ModelError(f'{where}: no cylinder of the hydraulics drives it; expected effort')
        if interface == VELOCITY and not cylinders[name].valve.load_independent:
            raise ModelError(f'{where}: its valve has no pressure compensator, so its flow depends on the load; '
                             'expected `compensated: true`, `flow_sharing: true` or another interface')
    return tuple(chosen[name] for name in names)


def _checked_space(space):
    if space not in SPACES:
        raise ModelError(f"space '{space}': expected one of {', '.join(SPACES)}{did_you_mean(str(space), SPACES)}")
    return space


def check_actuation(manipulator):
    """Raise ActuationError where some coordinate of a machine but passive joints is beyond its actuators."""
    m = manipulator
    if m.floating:
        raise ActuationError(f"'{m.name}' cannot be controlled: its base floats and nothing drives it; expected a "
                             'machine that stands on its root link')
    check_able(m, 'effort')
    if not m.underactuated and len(m.actuators) < m.dof:
        raise ActuationError(
            f"'{m.name}' cannot be controlled: it has {len(m.actuators)} actuators "
            f"({', '.join(m.actuators) or 'none'}) "
            f"for {m.dof} degrees of freedom ({', '.join(m.coordinates)}); expected at least {m.dof}, joints with a "
            'command interface in <ros2_control>, or passive joints outside all loops beside driven ones')
