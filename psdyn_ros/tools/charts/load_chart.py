"""A load chart as a picture and a table: capacity over reach, as on the cabin of a crane."""
import csv

import numpy as np

from ...validation.report.figure_style import BLUE, VERMILLION, panels

LEVELS = 8


def draw(chart, path, title):
    """Write the picture of a `LoadChart` to a file: masses in the plane of reach and height, and the best per reach."""
    figure, ((plane, curve),) = panels(11.0, 6.0, 1, 2)
    known = np.ma.masked_invalid(chart.mass)
    finite = known.compressed()
    # each curve of equal mass is as far from the next one as a share of the nodes
    levels = np.unique(rounded(np.quantile(finite, np.linspace(0.1, 0.9, LEVELS)))) if finite.size else []
    plane.pcolormesh(chart.reach, chart.height, known, cmap='Blues', vmax=np.quantile(finite, 0.95), shading='nearest')
    if len(levels):
        lines = plane.contour(chart.reach, chart.height, known, levels=levels, colors=VERMILLION, linewidths=1.0)
        plane.clabel(lines, fmt='%g kg', fontsize=8)
    plane.set_aspect('equal')
    plane.set_ylabel('height [m]')
    figure.suptitle(title)
    curve.plot(chart.reach, chart.capacity(), color=BLUE)
    curve.set_ylabel('largest mass at any height [kg]')
    curve.set_ylim(0.0, 1.05 * np.quantile(finite, 0.99))
    for axes in (plane, curve):
        axes.set_xlabel('reach [m]')
    figure.savefig(path)


def rounded(masses):
    """Return masses to two digits."""
    return np.array([float(f'{mass:.2g}') for mass in masses])


def write_table(chart, path, coordinates):
    """Write the nodes that are reached as CSV: reach, height, mass, the actuator at its limit, position."""
    with open(path, 'w', newline='', encoding='utf-8') as file:
        table = csv.writer(file)
        table.writerow(['reach_m', 'height_m', 'mass_kg', 'limited_by', *coordinates])
        for i, j in np.argwhere(np.isfinite(chart.mass)):
            table.writerow([f'{chart.reach[j]:.6g}', f'{chart.height[i]:.6g}', f'{chart.mass[i, j]:.6g}',
                            chart.actuators[chart.limiting[i, j]],
                            *(f'{value:.9g}' for value in chart.x[i, j][-len(coordinates):])])
