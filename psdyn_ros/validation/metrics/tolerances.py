"""
What a validation is to do and what it tolerates, from YAML; everything has a default.

    actuator: {nrmse: 0.05, bias: 0.03, delay: 0.004}
    actuators:
      telescope: {nrmse: 0.08}
    machine: {closure: 0.005, coverage: 0.95}
    filter: {kind: savitzky_golay, window: 0.2}
    topics: {states: /joint_states, pressures: [/lift/pressure_a, /lift/pressure_b]}
    delays: {/pressures: 0.008}
    align: true

`actuator` is for every actuator, `actuators` for some by name.  Delays of other topics are looked for, unless `align`
is false.  `python3 -m psdyn_ros.validation.metrics.tolerances` prints all parameters.
"""

import sys
from dataclasses import dataclass, field, make_dataclass, replace

from ...model.errors import ModelError, did_you_mean, shorten
from ...model.parameters.parameter_blocks import (
    FLAG,
    NUMBER,
    Parameter,
    block,
    checked,
    checked_number,
    choice,
    integer,
    markdown,
    number,
    read_block,
    read_blocks,
)
from ...model.yaml_file import open_declaration, plain
from ..signals.filters import CUTOFF, DEGREE, FILTERS, ORDER, WINDOW
from ..signals.filters import make_filter as filter_by_name
from ..signals.topics import OVERRIDES
from .metrics import FIGURES


def _tolerances(name, text, figures, fields=()):
    """A frozen dataclass with the tolerances of some figures, and other fields."""
    return make_dataclass(name, [*((one.name, float, one.tolerance) for one in figures), *fields], frozen=True,
                          kw_only=True, namespace={'__doc__': text, '__module__': __name__})


ActuatorTolerance = _tolerances(
    'ActuatorTolerance', 'How far the efforts that the model predicts may be from the measured ones.',
    [one for one in FIGURES if one.of_actuators])
MachineTolerance = _tolerances(
    'MachineTolerance', 'What the recording as a whole must satisfy.',
    [one for one in FIGURES if not one.of_actuators], [
        ('coverage', float, number('1, share of the recorded time that must be usable; less is a partial input', 0.9,
                                   low=0.0, high=1.0)),
        ('seconds', float, number('s that must be usable, for any verdict', 2.0, low=0.1, high=1e6)),
        ('motion', float, number('s that some actuator must move, for a verdict; with less it cannot tell', 3.5,
                                 low=0.0, high=1e6))])


@dataclass(frozen=True, kw_only=True)
class FilterChoice:
    """The zero-phase filter that everything goes through."""

    kind: str = choice('filter', tuple(FILTERS), next(iter(FILTERS)))
    window: float = number('s, of a polynomial (savitzky_golay)', WINDOW, low=1e-3, high=10.0)
    degree: int = integer('of it', DEGREE, low=2, high=9)
    frequency: float = number('Hz, cut-off (butterworth)', CUTOFF, low=1e-2, high=1e4)
    order: int = integer('of it', ORDER, low=1, high=8)

    def make(self, period):
        """Return the filter for samples `period` s apart."""
        options = ('window', 'degree') if self.kind == 'savitzky_golay' else ('frequency', 'order')
        return filter_by_name(self.kind, period, **{name: getattr(self, name) for name in options})


@dataclass(frozen=True, kw_only=True)
class BootstrapChoice:
    """How confidence intervals are made."""

    block: int = integer('s that are drawn together', 5, low=1, high=3600)
    resamples: int = integer('draws', 499, low=50, high=100_000)
    level: float = number('1, of confidence', 0.95, low=0.5, high=0.9999)
    seed: int = integer('of the draws', 0, low=0, high=2 ** 31)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of it; `actuators` is complete, {actuator: ActuatorTolerance}."""

    actuator: ActuatorTolerance = block(ActuatorTolerance, 'tolerances of every actuator', ActuatorTolerance())
    machine: MachineTolerance = block(MachineTolerance, 'what the recording must satisfy', MachineTolerance())
    filter: FilterChoice = block(FilterChoice, 'zero-phase filter', FilterChoice())
    bootstrap: BootstrapChoice = block(BootstrapChoice, 'confidence intervals', BootstrapChoice())
    actuators: dict = field(default_factory=dict)
    topics: dict = field(default_factory=dict)
    delays: dict = field(default_factory=dict)
    align: bool = True
    where: str = ''


BLOCKS = {'actuator': ActuatorTolerance, 'machine': MachineTolerance, 'filter': FilterChoice,
          'bootstrap': BootstrapChoice}
SECTIONS = (*BLOCKS, 'actuators', 'topics', 'delays', 'align')
DELAY = Parameter('delay', NUMBER, 's by which a topic is late, taken off', low=-10.0, high=10.0)
ALIGN = Parameter('align', FLAG, 'whether delays between topics are looked for')


def read_settings(source, actuators):
    """Return the `Settings` of a YAML file, of YAML text, which has more than one line, or the defaults for None.

    actuators: names of those of the machine.  Raises ModelError, UnknownNameError or DuplicateNameError that name the
    file, its line and the parameter.
    """
    if source is None:
        return Settings(actuators=dict.fromkeys(actuators, ActuatorTolerance()), where='defaults')
    file = open_declaration('validation', source)
    nodes = file.parts(file.root, (), SECTIONS) if file.root is not None else {}
    values = {}
    for name, cls in BLOCKS.items():
        values[name] = read_block(cls, file, *nodes[name], name)[0] if name in nodes else cls()
    found = dict.fromkeys(actuators, values['actuator'])
    given = read_blocks(ActuatorTolerance, file, nodes['actuators'][1], 'actuator', actuators) \
        if 'actuators' in nodes else {}
    for name, (one, places) in given.items():
        found[name] = replace(values['actuator'], **{key: getattr(one, key) for key in places if key})
    return Settings(**values, actuators=found, topics=_topics(file, nodes), delays=_delays(file, nodes),
                    align=_align(file, nodes), where=str(file))


def _topics(file, nodes):
    found = {}
    for name, node in file.mapping(nodes['topics'][1]) if 'topics' in nodes else ():
        if name.value not in OVERRIDES:
            raise ModelError(f"{file.where(name)}: topics: there is no '{shorten(name.value)}'"
                             f'{did_you_mean(name.value, OVERRIDES)}')
        found[name.value] = plain(f'{file.where(name)}: topics: {name.value}', node)
    return found


def _delays(file, nodes):
    found = {}
    for name, node in file.mapping(nodes['delays'][1]) if 'delays' in nodes else ():
        where = f"{file.where(name)}: delay of '{shorten(name.value)}'"
        found[name.value] = checked_number(DELAY, where, plain(where, node))
    return found


def _align(file, nodes):
    if 'align' not in nodes:
        return True
    key, node = nodes['align']
    return checked(ALIGN, file.where(key), plain(file.where(key), node))


def main():
    """Print all parameters as Markdown."""
    for name, cls in BLOCKS.items():
        print('\n'.join(markdown(name, cls)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
