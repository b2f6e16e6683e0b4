"""The one assembly of a controller: `ControllerConfig` -> `ControlCore`, for the node, the fault campaign and tests."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from ...api.load import load
from ...api.manipulator import Manipulator
from ...model.errors import ModelError, check_name
from ...model.parameters.hydraulics import Hydraulics, read_hydraulics
from ...model.parameters.safety import SafetyDeclaration, read_safety
from ..laws.base import check_actuation, checked_interfaces
from ..laws.passive_states import ESTIMATED, SOURCES
from ..laws.registry import LAWS, OWN, make_law
from ..monitors.check import Check
from ..monitors.clock import SHARE
from ..reference.swing_damping import RATIO
from ..reference.swing_shaper import KINDS, ZVD
from ..safety.declaration_checks import check_safety
from .core import ControlCore

RANGES = {'rate': (1.0, 5000.0), 'feedforward_ramp': (0.0, 10.0), 'overrun_share': (0.0, 1.0),
          'swing_damping': (0.0, 0.5), 'stream_delay': (0.0, math.inf)}


def _within(low: float, high: float, value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high


def _among(known: tuple[str, ...], value: Any) -> bool:
    return isinstance(value, str) and value in known


SWITCH = 'True or False', lambda value: isinstance(value, (bool, np.bool_))
# {field: (what is expected, whether a value is that)}
FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **{name: (f'a number from {low:g} to {high:g}', partial(_within, low, high))
       for name, (low, high) in RANGES.items()},
    **{name: (f'one of {", ".join(known)}', partial(_among, known))
       for name, known in (('passive_states', SOURCES), ('swing_shaper', KINDS))},
    'emergency_stop': SWITCH, 'simulated_time': SWITCH,
    'law': ('the name of a law', lambda value: isinstance(value, str)),
    'law_options': ('{option: value}', lambda value: isinstance(value, Mapping)),
    'checks': ('a tuple of classes that derive from Check', lambda value: isinstance(value, tuple) and all(
        isinstance(one, type) and issubclass(one, Check) for one in value))}


@dataclass(frozen=True)
class ControllerConfig:
    """All that decides what a controller does; ModelError where a field cannot be what it is."""

    machine: Manipulator
    """Its base stands or is moved; its passive joints hang freely."""
    declaration: SafetyDeclaration
    """For the actuators of the machine, in the command interfaces of `command_interfaces`."""
    law: str
    """A name in `LAWS`."""
    hydraulics: Hydraulics | None = None
    """Laws on valves need it."""
    rate: float = 500.0
    """Hz of the cycles and of the states."""
    law_options: Mapping = field(default_factory=dict)
    """As of `make_law`."""
    emergency_stop: bool = True
    """Whether there must be an emergency stop that reports that it is not pressed; else only its silence is excused."""
    feedforward_ramp: float = 0.0
    """s from enabling until the whole feedforward is given; a motion that begins meanwhile lags behind."""
    overrun_share: float = SHARE
    """Of the cycles of a second that may come too late."""
    stream_delay: float = 0.0
    """s that streamed points count as stamped later, below the stream timeout; their period where stamped now."""
    simulated_time: bool = False
    """Whether stamps are of a simulated clock."""
    passive_states: str = ESTIMATED
    """Where the state of passive joints comes from: 'measured', 'estimated' or 'hanging', see `PassiveStates`."""
    swing_shaper: str = ZVD
    """Of trajectories, where passive joints swing: 'zv', 'zvd', 'ei' or 'none'."""
    swing_damping: float = RATIO
    """Damping ratio that axes give a swing, within the `swing_deviation` declared for each; 0: none."""
    checks: tuple = ()
    """Classes of further `Check`s, evaluated after those of `monitors/checks.py`."""

    def __post_init__(self) -> None:
        for name, (expected, fits) in FIELDS.items():
            if not fits(getattr(self, name)):
                raise ModelError(f'{name}={getattr(self, name)!r:.80}: expected {expected}')
        if 'hydraulics' in LAWS[self.law].needs and self.hydraulics is None:
            raise ModelError(f"law '{self.law}': it needs hydraulics")
        known = _options(self.law)
        for name in self.law_options if known else ():
            check_name(str(name), known, f"law_options: '{name}' is no option of the law '{self.law}'")
        timeouts = self.declaration.timeouts.at_period(self.period)
        if timeouts != self.declaration.timeouts:
            object.__setattr__(self, 'declaration', replace(self.declaration, timeouts=timeouts))
        if not 0.0 <= self.stream_delay < timeouts.stream:
            raise ModelError(f'stream_delay {self.stream_delay:g} s: expected 0 to less than the {timeouts.stream:g} s '
                             "of 'timeouts: stream', beyond which points lie too far ahead to be taken")

    @property
    def period(self) -> float:
        """s."""
        return 1.0 / self.rate

    @classmethod
    def from_files(cls, urdf: str | PathLike[str], hydraulics: str | PathLike[str] | None = None, *,
                   safety: str | PathLike[str], law: str | None = None, rate: float = 500.0,
                   interfaces: Mapping[str, str] | None = None, **options: Any) -> ControllerConfig:
        """Return the configuration of a machine from its files.

        urdf, hydraulics, safety  path or text of each; without hydraulics efforts are commanded
        law                       a name in `LAWS`; None: computed torque, on valves where there are hydraulics
        interfaces                as `chosen` of `command_interfaces`
        options                   further fields

        Raises what `load`, `read_hydraulics`, `command_interfaces`, `read_safety` and `check_safety` raise.
        """
        machine = load(urdf)
        declared = None if hydraulics is None else read_hydraulics(hydraulics, machine.actuators)
        return cls.of_machine(machine, declared, safety=safety, law=law, interfaces=interfaces, rate=rate, **options)

    @classmethod
    def of_machine(cls, machine: Manipulator, hydraulics: Hydraulics | None = None, *,
                   safety: str | PathLike[str], law: str | None = None,
                   interfaces: Mapping[str, str] | None = None, **options: Any) -> ControllerConfig:
        """Return the configuration of a machine that is loaded; the other arguments are those of `from_files`."""
        law = law or ('valve_computed_torque' if hydraulics else 'computed_torque')
        check_name(law, LAWS, f"law '{law}'")
        supply = hydraulics.supply.pressure if hydraulics else None
        declaration = read_safety(safety, machine.actuators, command_interfaces(law, machine, hydraulics, interfaces),
                                  machine.limits, supply)
        check_safety(declaration, machine, hydraulics)
        return cls(machine, declaration, law, hydraulics, **options)


def _options(law: str) -> set[str]:
    """Return the names of the options of a law of this package; none of another one, which judges them itself."""
    kind = OWN.get(law, object)
    found = {one.name for base in kind.__mro__ for function in ('make', '__init__') if function in vars(base)
             for one in inspect.signature(getattr(base, function)).parameters.values()
             if one.kind is inspect.Parameter.KEYWORD_ONLY}
    return found - {'hydraulics', 'period', 'interfaces'}


def assemble(config: ControllerConfig, log: Callable[[str, str], None] | None = None) -> ControlCore:
    """Return the `ControlCore` of a `ControllerConfig`.

    log  called with (level, text), level 'info', 'warning' or 'error', of events that are worth a line

    Raises as `make_law` does.
    """
    options = dict(config.law_options)
    if config.machine.underactuated:
        options |= {'passive_states': config.passive_states, 'swing_shaper': config.swing_shaper}
    law = make_law(config.law, config.machine, config.hydraulics, config.declaration.interfaces, config.period,
                   **options)
    if law.reference.damping is not None:
        law.reference.damping.ratio = config.swing_damping
    return ControlCore(replace(config, machine=config.machine.driven_machine), law, log)


def command_interfaces(law: str, machine: Manipulator, hydraulics: Hydraulics | None = None,
                  chosen: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return (actuators,) what is commanded of each by the law of this name.

    chosen  {actuator: interface} where it is not what law and hydraulics decide

    Raises ActuationError where no law can control the machine, ModelError or UnknownNameError where an interface cannot
    be commanded.
    """
    check_actuation(machine)
    return checked_interfaces(machine, hydraulics, chosen, LAWS[law].allowed)
