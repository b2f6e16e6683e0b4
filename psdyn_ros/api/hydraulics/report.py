"""The report of `psdyn check` on the hydraulics of a machine, as text."""
import math

import numpy as np

from ...kernels.hydraulics.records import PA, PRESSURE_A, PRESSURE_B
from ...model.errors import StateError
from ...model.units import BAR
from .checks import check_hydraulics
from .statics import equilibrium_state, frictionless, holding_efforts, hydraulic_records, natural_modes, oil_stiffness

LITRES_PER_MINUTE = 6e4


def hydraulic_report(manipulator, hydraulics):
    """Return the report on `Hydraulics` of a Manipulator at its initial position; raises what does not fit."""
    warnings = check_hydraulics(manipulator, hydraulics)
    records = hydraulic_records(manipulator, hydraulics)
    axes, cylinders, supply = records
    mechanism, x = frictionless(manipulator, hydraulics), manipulator.initial_position
    high, low = float(supply['pressure'][0]), float(supply['return_pressure'][0])
    most = hydraulics.supply.max_flow
    lines = [f'{hydraulics.where}: {_counted(hydraulics)}, {high / BAR:g} bar over {low / BAR:g} bar'
             + (f', at most {LITRES_PER_MINUTE * most:.0f} l/min' if math.isfinite(most) else '')
             + (f', load sensing with a margin of {supply["margin"][0] / BAR:g} bar' if supply['sensing'][0] else '')]
    held = ''
    try:
        fluid = equilibrium_state(mechanism, hydraulics, axes, cylinders, supply, x)[0]
    except StateError as error:
        fluid, held = None, str(error)
    efforts = holding_efforts(mechanism, x)
    names, position, *_ = manipulator.joint_state(x)
    for row, c in enumerate(cylinders):
        name = manipulator.actuators[c['axis']]
        force, stroke = efforts[c['axis']], position[names.index(name)]
        push, pull = high * c['area_a'] - low * c['area_b'], high * c['area_b'] - low * c['area_a']
        share = force / push if force > 0.0 else -force / pull
        declared = hydraulics.cylinders[name]
        does, undoes = ('pushes', 'pulls') if declared.kind == 'cylinder' else ('turns with', 'against')
        unit = declared.effort_unit
        lines += [
            f'  {name}: {does} {1e-3 * push:.1f} k{unit}, {undoes} {1e-3 * pull:.1f} k{unit}; '
            f'{LITRES_PER_MINUTE * c["gain"][PA] * np.sqrt(high - low):.0f} l/min of free flow, '
            f'safe output {hydraulics.safe_outputs[name]}, commands: {hydraulics.command_modes[name]}'
            + (', flow sharing' if declared.valve.flow_sharing else '')
            + (f', regenerative: {does} {1e-3 * high * (c["area_a"] - c["area_b"]):.1f} k{unit} while it moves'
               if declared.valve.regenerative else ''),
            f'    at rest {_kilo(force)} k{unit}, {100.0 * share:.0f} % of what it can'
            + ('' if fluid is None else _at_rest(declared, c, stroke, *fluid[row, [PRESSURE_A, PRESSURE_B]]))]
    lines += [f'  {name}: no oil, safe output {hydraulics.safe_outputs[name]}' for name in hydraulics.axes]
    if fluid is not None:
        frequencies = natural_modes(mechanism, hydraulics, records, x, fluid=fluid).frequencies
        lines.append('  natural frequencies on closed valves: ' + ', '.join(f'{f:.2f}' for f in frequencies) + ' Hz')
    warnings = (*warnings, held) if held else warnings
    lines.append(f'  {len(warnings)} warning(s)' + (':' if warnings else ''))
    return '\n'.join([*lines, *(f'    {warning}' for warning in warnings)])


def _kilo(effort):
    """Return an effort in thousands, as text; rounding errors have no sign."""
    return f'{round(1e-3 * effort, 1) + 0.0:.1f}'


def _counted(hydraulics):
    """Return how many cylinders, racks and motors there are, as text."""
    kinds = [one.kind for one in hydraulics.cylinders.values()]
    return ', '.join(f'{kinds.count(kind)} {kind}{"s" if kinds.count(kind) != 1 else ""}'
                     for kind in ('cylinder', 'rack', 'motor') if kind == 'cylinder' or kind in kinds)


def _at_rest(declared, cylinder, stroke, pressure_a, pressure_b):
    stiffness = oil_stiffness(cylinder, stroke, pressure_a, pressure_b)
    return (f'; pressures {pressure_a / BAR:.1f} and {pressure_b / BAR:.1f} bar; {1e-6 * stiffness:.2f} '
            f'M{declared.effort_unit}/{declared.unit} of oil')
