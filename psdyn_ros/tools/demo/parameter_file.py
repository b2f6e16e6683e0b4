"""Parameter files as ROS reads them, for the demonstration, which starts the nodes with what is in one."""

import yaml

from ...model.errors import ModelError
from ...model.text_file import read_text
from ...model.yaml_file import plain_contents

MAX_BYTES = 1024 * 1024
PARAMETERS = 'ros__parameters'


def read_parameters(path, nodes):
    """{node: {parameter: value}} of a ROS parameter file for these nodes, whatever namespace it gives them.

    Parameters with dots in their names stay nested. Raises ModelError that names the file.
    """
    contents = plain_contents(f"parameter file '{path}'", read_text(path, MAX_BYTES)) or {}
    found = {node: {} for node in nodes}
    for key, value in _sections(path, contents, ''):
        name = key.rsplit('/', 1)[-1]
        for node in nodes if name in ('*', '**') else {name} & set(nodes):
            found[node].update(value)
    return found


def write_parameters(path, **nodes):
    """Write {node: {parameter: value}} into a file that ROS reads; return its path."""
    path.write_text(yaml.safe_dump({node: {PARAMETERS: values} for node, values in nodes.items()}))
    return path


def _sections(path, contents, name):
    """Yield (name of nodes, parameters) of every `ros__parameters`."""
    if not isinstance(contents, dict):
        raise ModelError(f"parameter file '{path}': {name or 'the file'} is {contents!r:.80}; expected a mapping of "
                         f"nodes with '{PARAMETERS}' in them")
    for key, value in contents.items():
        if key == PARAMETERS:
            if not isinstance(value, dict):
                raise ModelError(f"parameter file '{path}': the parameters of {name} are {value!r:.80}; expected a "
                                 'mapping')
            yield name, value
        else:
            yield from _sections(path, value, f'{name}/{key}')
