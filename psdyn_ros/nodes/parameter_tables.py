"""The parameters of all nodes as Markdown; `python3 -m psdyn_ros.nodes.parameter_tables` prints the tables."""

import sys
from importlib import import_module

from . import EXECUTABLES


def tables():
    """Return {node: its `PARAMETERS`}; imports all nodes."""
    return {node: import_module(module).PARAMETERS for node, module in EXECUTABLES.items()}


def markdown(title, table):
    """Yield the lines of a table below its title."""
    yield f'### {title}\n'
    yield '| parameter | type | default | range | may change | meaning |'
    yield '|---|---|---|---|---|---|'
    for p in table:
        allowed = ', '.join(p.choices) if p.choices else f'{p.low:g} to {p.high:g}' if p.low is not None else ''
        default = f'`{p.default}`' if p.default != '' else ''
        yield (f'| `{p.name}` | {type(p.default).__name__} | {default} | {allowed} | '
               f'{"yes" if p.live else "no"} | {p.description} |')
    yield ''


def main():
    """Print the tables."""
    for title, table in tables().items():
        print('\n'.join(markdown(title, table)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
