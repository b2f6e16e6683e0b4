"""Figures of what cylinders do: pressures, spools, flows and forces over time."""

import numpy as np

from ...model.units import BAR
from .figure_style import BLACK, BLUE, GREEN, VERMILLION, finish, panels

LITRES_PER_MINUTE = 6e4


def pressures(telemetry, start, until, title, since='from the first motion'):
    """Chamber pressures and supply beside spool and flow of every cylinder.

    telemetry  `Series` of cylinders
    start      ns of the time zero of the figure
    until      s, where it ends
    since      what time zero is
    """
    time = (telemetry.stamps - start) * 1e-9
    shown = (time >= 0.0) & (time <= until)
    figure, grid = panels(12, 2.5 * len(telemetry.names), len(telemetry.names), 2, sharex=True)
    for i, (name, (left, right)) in enumerate(zip(telemetry.names, grid)):
        for label, text, color in (('pressure_a', 'piston side', BLUE), ('pressure_b', 'rod side', VERMILLION),
                                   ('supply_pressure', 'supply', BLACK)):
            left.plot(time[shown], telemetry[label][shown, i] / BAR, color=color, linewidth=1.2, label=text)
        left.set_ylabel(f'{name} [bar]')
        left.set_ylim(0.0, 1.3 * left.dataLim.ymax)     # room for the legend
        right.plot(time[shown], telemetry['valve_command'][shown, i], color=BLACK, linewidth=2.5, alpha=0.3,
                   label='command')
        right.plot(time[shown], telemetry['spool_position'][shown, i], color=BLUE, linewidth=1.2, label='spool')
        flow = right.twinx()
        flow.plot(time[shown], LITRES_PER_MINUTE * telemetry['flow_a'][shown, i], color=GREEN, linewidth=1.0,
                  linestyle='--', label='flow into A')
        _about_zero(right, flow)
        right.set_ylabel('spool [1]')
        flow.set_ylabel('flow [l/min]')
        if i == 0:
            left.legend(fontsize=9, ncols=3, loc='upper left')
            lines = [*right.get_lines(), *flow.get_lines()]
            right.legend(lines, [line.get_label() for line in lines], fontsize=9, ncols=3)
    grid[0][0].set_title(f'pressures, {title}')
    grid[0][1].set_title('valves')
    finish(grid, since)
    return figure


def _about_zero(*axes):
    """Give axes limits that put zero in the same place, in the middle."""
    for each in axes:
        most = max(np.abs(each.dataLim.intervaly).max(), 1e-9)
        each.set_ylim(-1.15 * most, 1.15 * most)
