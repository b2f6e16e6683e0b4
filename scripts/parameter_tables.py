#!/usr/bin/env python3
"""Write docs/parameters.md: what can be declared in YAML files, from the tables by which they are read."""

import contextlib
import io
import sys
from pathlib import Path

from psdyn_ros.model import external_forces, faults, hydraulics, safety, sensors

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'parameters.md'
PARTS = (
    ('Hydraulics', 'hydraulics', hydraulics,
     'of a machine: `config/*_hydraulics.yaml`, parameter `hydraulics` of the nodes'),
    ('Sensors', 'sensors', sensors, 'of a machine: `config/*_sensors.yaml`, parameter `sensors` of the simulator'),
    ('Safety', 'safety', safety, 'of a machine: `config/*_safety.yaml`, parameter `safety` of the controller'),
    ('Faults', 'faults', faults, 'by schedule or at run time: parameters `faults` and `inject_fault` of the simulator'),
    ('External forces', 'external_forces', external_forces,
     'at force level: parameters `external_forces.<name>.<parameter>` of the simulator'),
)


def page():
    """Return the text of the page."""
    lines = ['# Parameters of YAML files', '',
             'Written by `scripts/parameter_tables.py` from the declarations. SI units, pressures gauge; unknown keys '
             'are refused with the nearest known one.', '']
    for title, name, module, what in PARTS:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            module.main()
        lines += [f'## {title}', '',
                  f'{what[0].upper()}{what[1:]}; printed by `python3 -m psdyn_ros.model.{name}`.', '',
                  said.getvalue().strip(), '']
    return '\n'.join(lines)


if __name__ == '__main__':
    PAGE.write_text(page())
    sys.exit(0)
