"""What a controller is made of: machine, hydraulics, law, safety declaration, core; each as the parameters say."""

from typing import NamedTuple

import numpy as np

from ...api.manipulator import Manipulator
from ...control.core.core import ControlCore
from ...control.laws.registry import VALVE_LAWS, make_law
from ...control.reference.trajectory import Waypoints
from ...control.safety.declaration_checks import check_safety
from ...model.parameters.hydraulics import Hydraulics, read_hydraulics
from ...model.parameters.safety import SafetyDeclaration, read_safety
from ..messages.conversions import SECOND
from ..runtime import parameters
from ..runtime.parameters import ParameterError
from ..runtime.robot_description import find_description, load_machine

REHEARSED = 40          # control cycles that are done before one is timed
ENDLESS = 1e6           # s of the motion that they follow


class Setup(NamedTuple):
    """What a controller controls, and by what.

    machine      it
    description  URDF, or the path of its file
    hydraulics   of it, or None
    declaration  of its safety
    law          name
    options      of the law
    """

    machine: Manipulator
    description: str
    hydraulics: Hydraulics | None
    declaration: SafetyDeclaration
    law: str
    options: dict

    def make_law(self, period):
        """The control law, which computes once in a period [s]."""
        return make_law(self.law, self.machine, self.hydraulics, self.declaration.tiers, period, **self.options)

    def make_core(self, p, law, simulated_time=False, log=None):
        """The `ControlCore` around a law; p as declared from `parameters.CONTROLLER`."""
        return ControlCore(self.machine, self.declaration, law, rate=p.rate, simulated_time=simulated_time,
                           emergency_stop=p.emergency_stop == 'required', feedforward_ramp=p.feedforward_ramp,
                           overrun_share=p.overrun_share, log=log)


def build(node, p):
    """The `Setup` of a node; p as declared from `parameters.CONTROLLER`. Raises PsdynError that names what is wrong."""
    description = find_description(node, p)
    machine = load_machine(node, p, description)
    hydraulics = read_hydraulics(p.hydraulics, machine.actuators) if p.hydraulics else None
    if p.law in VALVE_LAWS and hydraulics is None:
        raise ParameterError(f"parameter law: '{p.law}' commands valves and needs the parameter hydraulics")
    options = {'delay': p.command_delay}
    if p.law in VALVE_LAWS:
        options |= {'bandwidth': p.valve_bandwidth or None, 'effort_bandwidth': p.bandwidth}
    else:
        options['bandwidth'] = p.bandwidth
    tiers = make_law(p.law, machine, hydraulics, _tiers(node, machine, hydraulics), 1.0 / p.rate, **options).tiers
    if not p.safety:
        raise ParameterError('parameter safety: empty; expected the file that declares safe outputs and limits of '
                             f"'{machine.name}', since they have no default")
    supply = None if hydraulics is None else hydraulics.supply.pressure
    declaration = read_safety(p.safety, machine.actuators, tiers, machine.limits, supply)
    check_safety(declaration, machine, hydraulics)
    return Setup(machine, description, hydraulics, declaration, p.law, options)


def _tiers(node, machine, hydraulics):
    """{actuator: tier} of those that parameters give."""
    cylinders = () if hydraulics is None else hydraulics.cylinders
    table = parameters.outputs(machine.actuators, cylinders)
    given = parameters.declare_map(node, table, fixed=False)
    return {name: tier for name, tier in zip(machine.actuators, given, strict=True) if tier}


class Rehearsal:
    """Control cycles of a machine that stands at its initial position, as a function to call.

    setup   `Setup`
    p       parameters of the controller
    """

    def __init__(self, setup, p):
        m, self._period = setup.machine, round(SECOND / p.rate)
        law = setup.make_law(1.0 / p.rate)
        self._core = setup.make_core(p, law)
        self._x, self._xd = m.initial_position, np.zeros(m.dof)
        self._pressures = None
        if law.needs_pressures:
            self._pressures = np.full((len(setup.hydraulics.cylinders), 2), 0.5 * setup.hydraulics.supply.pressure)
        self._now = SECOND
        for _ in range(REHEARSED):
            self()
        self._core.activate(self._now, self._now)
        self()
        self._core.enable(self._now)
        candidate = self._core.consider(Waypoints(m.coordinates, [ENDLESS], [self._x]))
        while not candidate.advance(1.0):
            pass
        self._core.accept(candidate, self._now)
        for _ in range(REHEARSED):
            self()

    def __call__(self):
        self._now += self._period
        now = self._now
        self._core.take_emergency_stop(False, now)
        self._core.take_state(now, now, now, self._x.copy(), self._xd.copy())
        if self._pressures is not None:
            self._core.take_pressures(now, now, now, self._pressures.copy())
        self._core.cycle(now, now)
