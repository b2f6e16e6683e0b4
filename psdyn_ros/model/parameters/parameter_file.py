"""Parameters with description and range, and YAML files of them that report errors by line."""
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from ..errors import DuplicateNameError, ModelError, did_you_mean, shorten
from ..mechanism.xml_reader import read_text

MAX_BYTES = 1024 * 1024
MAX_LEVELS = 4          # of a ROS parameter file above a section
ROS = 'ros__parameters'

NUMBER, VECTOR, CHOICE, FLAG, LINK, JOINT = 'number', 'vector', 'choice', 'flag', 'link', 'joint'


@dataclass(frozen=True)
class Parameter:
    """One parameter; required where the default is None."""

    name: str
    kind: str
    description: str
    default: object = None
    low: float = -math.inf
    high: float = math.inf
    choices: tuple = ()


def checked(parameter, where, value):
    """Return the value of one parameter, of YAML texts or of Python values; raise ModelError."""
    where = f"{where}: '{parameter.name}'"
    if parameter.kind == NUMBER:
        return checked_number(parameter, where, value)
    if parameter.kind == VECTOR:
        if isinstance(value, (str, Mapping)) or not hasattr(value, '__len__') or len(value) != 3:
            raise ModelError(f'{where} is {value!r:.80}; expected a list of three numbers ({parameter.description})')
        return tuple(checked_number(parameter, where, one) for one in value)
    if parameter.kind == FLAG:
        flags = {'true': True, 'false': False}
        if str(value).lower() not in flags:
            raise ModelError(f'{where} is {value!r:.80}; expected true or false')
        return flags[str(value).lower()]
    if not isinstance(value, str) or not value:
        raise ModelError(f'{where} is {value!r:.80}; expected a name ({parameter.description})')
    if parameter.choices and value not in parameter.choices:
        raise ModelError(f"{where}: there is no '{shorten(value)}'{did_you_mean(value, parameter.choices)}")
    return value


def checked_number(parameter, where, value):
    """Return a finite number within the parameter's range."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f'{where} is {value!r:.80}; expected a finite number ({parameter.description})')
    if not parameter.low <= number <= parameter.high:
        raise ModelError(f'{where} is {number:g}; expected {parameter.low:g} to {parameter.high:g} '
                         f'({parameter.description})')
    return number


def open_parameters(what, source, max_size):
    """Return the `ParameterFile` of a YAML file, or of YAML text, which has more than one line.

    what  it declares, 'sensors'; max_size: bytes or characters that are read
    """
    if isinstance(source, str) and '\n' in source:
        if len(source) > max_size:
            raise ModelError(f'the {what} have {len(source)} characters; at most {max_size} are read')
        return ParameterFile(f'{what} file', 'text', source)
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(f'{what} {source!r:.80}: expected a YAML file or YAML text')
    return ParameterFile(f'{what} file', source, max_size=max_size)


class ParameterFile:
    """A YAML file as nodes: values stay texts, tags make nothing, and an alias of an alias of ... is never expanded.

    kind      what it is called in messages, 'external forces file'
    path      of the file, or what stands for it in messages where its text is given
    max_size  bytes of a file that are read
    """

    def __init__(self, kind, path, text=None, max_size=MAX_BYTES):
        self.kind, self.path = kind, path
        text = read_text(path, max_size) if text is None else text
        try:
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError) as error:
            raise ModelError(f"{kind} '{path}' is not YAML: {error}") from error

    def where(self, node):
        """Return the file and the line of a node, for messages."""
        return f"{self.kind} '{self.path}' (line {line_of(node)})"

    def mapping(self, node):
        """Return [(key node, value node)] of a mapping whose keys are texts, each once."""
        if not isinstance(node, yaml.MappingNode):
            raise ModelError(f'{self.where(node)}: expected a mapping')
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ModelError(f'{self.where(key)}: expected a name')
            if key.value in seen:
                raise DuplicateNameError(f"{self.where(key)}: '{shorten(key.value)}' is there twice")
            seen.add(key.value)
        return node.value

    def parts(self, names):
        """Return {name: (key node, value node)} of the mapping that the file is, which has nothing but `names`."""
        found = {}
        for key, node in self.mapping(self.root):
            if key.value not in names:
                raise ModelError(f"{self.where(key)}: there is no section '{shorten(key.value)}'"
                                 f'{did_you_mean(key.value, names)}')
            found[key.value] = key, node
        return found

    def section(self, name):
        """Return the node below the key `name`: at the top, alone, or once below the parameters of a ROS node."""
        sections = list(self._sections(name, self.root, MAX_LEVELS))
        if len(sections) != 1:
            where = ' and '.join(f'line {line_of(section)}' for section in sections)
            raise ModelError(f"{self.kind} '{self.path}' has " + (
                f"'{name}' more than once: {where}" if sections else
                f"no '{name}', neither at the top nor below '{ROS}'{self._hint(name)}"))
        return sections[0]

    def _sections(self, section, node, levels):
        if levels == 0 or not isinstance(node, yaml.MappingNode):
            return
        keys = self.mapping(node)
        for key, value in keys:
            if key.value == section:
                yield value
        if levels == MAX_LEVELS and any(key.value == section for key, _ in keys):
            for key, _ in keys:
                if key.value != section:
                    raise ModelError(f"{self.where(key)}: '{shorten(key.value)}' is not known beside '{section}'"
                                     f'{did_you_mean(key.value, (section,))}')
            return
        for key, value in keys:
            if key.value == ROS:
                yield from (node for name, node in self.mapping(value) if name.value == section)
            else:
                yield from self._sections(section, value, levels - 1)

    def _hint(self, name):
        keys = [key.value for key, _ in self.mapping(self.root)] if isinstance(self.root, yaml.MappingNode) else []
        return did_you_mean(name, keys) if keys else '; the file is empty or no mapping'


def plain(where, node):
    """Return the text of a node, or the list of its texts."""
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return [item.value for item in node.value]
    raise ModelError(f'{where} (line {line_of(node)}): expected a text, a number, or a list of numbers')


def line_of(node):
    """Return the line of a node; an empty file has none."""
    return node.start_mark.line + 1 if node else 1
