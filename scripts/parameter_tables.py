#!/usr/bin/env python3
"""Write docs/reference/parameters.md, what can be declared in YAML files, from the tables by which they are read.

Where rclpy is installed, also the tables of nodes on their own pages, below a heading with the name of the node.
"""

import importlib.util
import re
import sys
from pathlib import Path

from psdyn_ros.model.parameters import external_forces, faults, hydraulics, safety, sensors

DOCS = Path(__file__).resolve().parent.parent / 'docs'
PAGE = DOCS / 'reference' / 'parameters.md'
NODES = {'simulator': 'reference/simulator.md', 'controller': 'reference/controller.md',
         'rig': 'how-to/actuator_under_test.md', 'loop_state': 'reference/loop_state.md',
         'feedforward': 'reference/feedforward.md', 'annotator': 'reference/feedforward.md',
         'planner': 'how-to/plan.md', 'validator': 'reference/validator.md'}
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
        lines += [f'## {title}', '',
                  f'{what[0].upper()}{what[1:]}; printed by `python3 -m psdyn_ros.model.parameters.{name}`.', '',
                  '\n'.join(module.tables()).strip(), '']
    return '\n'.join(lines)


def node_pages():
    """Return {path: text} of the pages with tables of nodes."""
    from psdyn_ros.nodes.parameter_tables import markdown, tables
    declared, pages = tables(), {}
    for node, name in NODES.items():
        path, lines = DOCS / name, markdown(node, declared[node])
        text = pages.get(path) or path.read_text()
        table = ''.join(f'{line}\n' for line in lines if line.startswith('|'))
        pages[path], found = re.subn(rf'(?<=^### {node}\n\n)(\|.*\n)+', lambda match, table=table: table, text,
                                     flags=re.MULTILINE)
        if found != 1:
            raise SystemExit(f"{path}: expected one heading '### {node}' with a table below it")
    return pages


if __name__ == '__main__':
    PAGE.write_text(page())
    if importlib.util.find_spec('rclpy'):
        for path, text in node_pages().items():
            path.write_text(text)
    sys.exit(0)
