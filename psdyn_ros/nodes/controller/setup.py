"""What the parameters of a controller ask for: its `ControllerConfig`, and where its measurements come from."""

from typing import NamedTuple

from ...control.core.assembly import ControllerConfig
from ...control.laws.base import check_actuation
from ...control.laws.registry import LAWS
from ...model.parameters.hydraulics import read_hydraulics
from ...model.units import SECOND
from ..runtime import parameters
from ..runtime.parameters import ParameterError
from ..runtime.robot_description import find_description, load_machine
from .parameters import outputs


class ControllerSetup(NamedTuple):
    """What a controller controls, and where its measurements come from."""

    config: ControllerConfig
    description: str
    """URDF, or the path of its file."""
    pressures: tuple
    """(source, topic) of `PressureInputs`."""
    base_timeout: int
    """ns after which a motion of the base that stopped coming counts as none."""


def build(node, p):
    """Return the `ControllerSetup` of a node; p as declared from `PARAMETERS`.

    Raises PsdynError that names the parameter or file that does not fit.
    """
    description = find_description(node, p)
    machine = load_machine(node, p, description)
    check_actuation(machine)        # before anything that would have to be written for it
    hydraulics = read_hydraulics(p.hydraulics, machine.actuators) if p.hydraulics else None
    law = LAWS[p.law]
    if 'hydraulics' in law.needs and hydraulics is None:
        raise ParameterError(f"parameter law: '{p.law}' commands valves and needs the parameter hydraulics")
    if not p.safety:
        raise ParameterError('parameter safety: empty; expected the file that declares safe outputs and limits of '
                             f"'{machine.name}', since they have no default")
    for name in law.parameters:
        if not hasattr(p, name):
            raise ParameterError(f"law '{p.law}': it asks for the parameter '{name}', which this node does not have")
    # a bandwidth of 0 leaves it to the law
    options = {option: getattr(p, name) for name, option in law.parameters.items() if getattr(p, name) != 0.0}
    config = ControllerConfig.of_machine(
        machine, hydraulics, safety=p.safety, law=p.law, interfaces=_chosen_interfaces(node, machine, hydraulics),
        rate=p.rate, law_options=options, emergency_stop=p.emergency_stop == 'required',
        feedforward_ramp=p.feedforward_ramp, passive_states=p.passive_states, swing_shaper=p.swing_shaper,
        swing_damping=p.swing_damping, overrun_share=p.overrun_share, stream_delay=p.stream_delay,
        simulated_time=node.get_parameter('use_sim_time').value)
    return ControllerSetup(config, description, (p.pressure_source, p.pressure_topic), round(p.port_timeout * SECOND))


def _chosen_interfaces(node, machine, hydraulics):
    """{actuator: interface} of those that parameters give."""
    cylinders = () if hydraulics is None else hydraulics.cylinders
    table = outputs(machine.actuators, cylinders)
    given = parameters.declare_map(node, table, fixed=False)
    return {name: interface for name, interface in zip(machine.actuators, given, strict=True) if interface}
