"""`psdyn load-chart`: what a machine holds at which reach and height, as a picture and a table."""

import os

from ..model.errors import ModelError
from ..model.locate import find_config
from ..model.units import BAR
from ._options import add_machine, at_least

HELP = 'draw how much a machine holds over reach and height, by its efforts and cylinder pressures'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'machine', metavar='MACHINE')
    parser.add_argument('--link', required=True, metavar='NAME', help='link at which the mass hangs')
    parser.add_argument('--point', nargs=3, type=float, default=(0.0, 0.0, 0.0), metavar=('X', 'Y', 'Z'),
                        help='where on the link, in its axes [m] (0 0 0)')
    parser.add_argument('--hydraulics', metavar='FILE',
                        help="YAML file of cylinders and supply, or 'none' for effort limits only (default: that of a "
                             'machine of the package)')
    parser.add_argument('--pressure', type=float, metavar='PA', help='of the pump (default: that of the supply)')
    parser.add_argument('--nodes', type=at_least(2), default=24, metavar='N', help='reaches, and heights (24)')
    parser.add_argument('--output', default='load_chart', metavar='NAME', help='of the .png and .csv file (load_chart)')


def run(options):
    """Write picture and table; return the exit code."""
    from ..api.load import load
    from ..model.parameters.hydraulics import read_hydraulics
    from ..tools.charts.load_chart import draw, write_table

    m = load(options.machine)
    file = options.hydraulics
    if file is None and not os.path.isfile(options.machine):
        file = find_config(f'{options.machine}_hydraulics.yaml')
    hydraulics = read_hydraulics(file, m.actuators) if file and file != 'none' else None
    chart = m.load_chart(options.link, point=options.point, hydraulics=hydraulics, pressure=options.pressure,
                         nodes=(options.nodes, options.nodes))
    if not (chart.limiting >= 0).any():
        what = 'any' if (chart.mass > 0.0).any() else 'no'
        raise ModelError(f"'{m.name}' holds {what} mass at '{options.link}' wherever it comes")
    pressure = options.pressure or (hydraulics.supply.pressure if hydraulics else None)
    draw(chart, f'{options.output}.png', f'{m.name}: mass held at {options.link}'
         + (f', pump at {pressure / BAR:.0f} bar' if pressure else ''))
    write_table(chart, f'{options.output}.csv', m.driven_machine.coordinates)
    print(f'{options.output}.png, {options.output}.csv')
    return 0
