"""Write docs/reference/troubleshooting.md: `python3 -m psdyn_ros.control.safety.troubleshooting_page > FILE`."""

import re

from ...model.troubleshooting import ERRORS, FAULTS, NODES, REFUSALS
from .fault_table import ROWS

HEAD = """# Troubleshooting

Written by `python3 -m psdyn_ros.control.safety.troubleshooting_page` from the tables that the code uses. `psdyn` prints
the same advice below its messages, as *what to do*. First of all: `psdyn status` shows what every node reports.
"""
FAULT_TEXT = """
## Faults

The controller reports faults by their id: in `/diagnostics`, in its log and in the answers of its services. The column
*reaction* says what it does by itself. After SAFE it needs `psdyn reset`, once the cause is gone.
"""
REFUSAL_TEXT = """
## Enabling, reset and activation are refused

The answer names every reason. A reason with a fault id is in the table above. The others are:
"""
NODE_TEXT = """
## Nodes that do not find each other

Both stand in `/diagnostics` as warnings, and once in the log.
"""
ERROR_TEXT = """
## Files, parameters, messages and commands are refused

A command prints the name of the error and ends with exit code 2. A node stays unconfigured, and logs the message.
"""


def page():
    """Return the text of the page."""
    lines = [HEAD, FAULT_TEXT, *table('id', 'what is found', 'reaction', 'likely cause', 'what to do')]
    for id, fault in FAULTS.items():
        rows = [row for row in ROWS if row.id == id]
        lines.append(cells(id, *('<br>'.join(dict.fromkeys(getattr(row, name) for row in rows))
                                 for name in ('detects', 'output')), fault.cause, fault.action))
    for text, refusals in ((REFUSAL_TEXT, REFUSALS), (NODE_TEXT, NODES)):
        lines += [text, *table('message', 'what to do')]
        lines += [cells(f'`{re.sub(r"{(.*?)}", lambda field: field[1].upper(), one.text)}`', one.action)
                  for one in refusals]
    lines += [ERROR_TEXT, *table('error', 'what to do')]
    lines += [cells(f'`{name}`', action) for name, action in ERRORS.items()]
    return '\n'.join(line.strip('\n') if line.startswith('|') else line for line in lines) + '\n'


def table(*columns):
    """Return the two lines that begin a table."""
    return [cells(*columns), '|' + '---|' * len(columns)]


def cells(*texts):
    """Return the line of a row."""
    return f'| {" | ".join(texts)} |'


if __name__ == '__main__':
    print(page(), end='')
