"""YAML files whose errors name the line: nodes whose values stay texts; no tag makes anything."""
import os
import re

import yaml

from .errors import DuplicateNameError, ModelError, check_name, did_you_mean, shorten
from .text_file import read_text

MAX_BYTES = 1024 * 1024                 # of a file that may hold other things, too
MAX_DECLARATION = 256 * 1024            # of a file or text of declarations only [bytes, characters]
MAX_DEPTH = 100                         # of lists and mappings in each other
MAX_LEVELS = 4                          # of a ROS parameter file above a section
ROS = 'ros__parameters'
PLAIN = {f'tag:yaml.org,2002:{kind}' for kind in ('str', 'int', 'float', 'bool', 'null', 'timestamp', 'map', 'seq',
                                                  'value', 'merge')}


def open_declaration(what, source):
    """Return the `YamlFile` of a file, or of YAML text, which has more than one line.

    what: it declares, 'sensors'.
    """
    if isinstance(source, str) and '\n' in source:
        return YamlFile(f'{what} file', 'text', checked_length(what, source))
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(f'{what} {source!r:.80}: expected a YAML file or YAML text')
    return YamlFile(f'{what} file', source, max_size=MAX_DECLARATION)


def checked_length(what, text):
    """Return the text, or raise ModelError where it is too long."""
    if len(text) > MAX_DECLARATION:
        raise ModelError(f'the {what} have {len(text)} characters; at most {MAX_DECLARATION} are read')
    return text


class YamlFile:
    """A YAML file as nodes; an alias of an alias of ... is never expanded.

    kind: what it is called in messages, 'external forces file'.  path: of the file, or what stands for it in messages
    where its text is given.  max_size: bytes of a file that are read.  Raises ModelError, XmlError.
    """

    def __init__(self, kind, path, text=None, max_size=MAX_BYTES):
        self.kind, self.path = kind, path
        text = read_text(path, max_size) if text is None else text
        try:
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, RecursionError) as error:
            raise ModelError(f"{kind} '{path}' is not YAML: {_without_stream(error)}") from error

    def __str__(self):
        return f"{self.kind} '{self.path}'"

    def where(self, node):
        """Return the file and the line of a node, for messages."""
        return f'{self} (line {line_of(node)})'

    def mapping(self, node, expected='', what=''):
        """Return [(key node, value node)] of a mapping whose keys are texts, each once.

        expected: the names in it, what: it is, for messages.
        """
        where = f'{self.where(node)}: {what}' if what else self.where(node)
        if not isinstance(node, yaml.MappingNode):
            raise ModelError(f'{where}: expected a mapping' + (f' of {expected}' if expected else ''))
        check_untagged(where, node)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ModelError(f'{self.where(key)}: expected a name')
            check_untagged(self.where(key), key)
            if key.value in seen:
                raise DuplicateNameError(f"{self.where(key)}: '{shorten(key.value)}' is there twice")
            seen.add(key.value)
        return node.value

    def parts(self, node, required, optional=()):
        """Return {name: (key node, value node)} of a mapping that has all required names, and no unknown one."""
        expected = ', '.join((*required, *(f'[{name}]' for name in optional)))
        found = {key.value: (key, value) for key, value in self.mapping(node, expected)}
        for name, (key, _) in found.items():
            check_name(name, (*required, *optional), f"{self.where(key)}: '{shorten(name)}' is not known", ModelError)
        for name in required:
            if name not in found:
                raise ModelError(f"{self.where(node)}: '{name}' is missing; expected {expected}")
        return found

    def items(self, node, of):
        """Return the nodes of a list; of: what it lists, for messages."""
        if not isinstance(node, yaml.SequenceNode):
            raise ModelError(f'{self.where(node)}: expected a list of {of}')
        check_untagged(self.where(node), node)
        return node.value

    def section(self, name):
        """Return the node below the key `name`: at the top, alone, or once below the parameters of a ROS node."""
        sections = list(self._sections(name, self.root, MAX_LEVELS))
        if len(sections) != 1:
            where = ' and '.join(f'line {line_of(section)}' for section in sections)
            raise ModelError(f'{self} has ' + (
                f"'{name}' more than once: {where}" if sections else
                f"no '{name}', neither at the top nor below '{ROS}'{self._hint(name)}"))
        return sections[0]

    def _sections(self, section, node, levels):
        if levels == 0 or not isinstance(node, yaml.MappingNode):
            return
        keys = self.mapping(node)
        if levels == MAX_LEVELS and any(key.value == section for key, _ in keys):
            yield self.parts(node, (section,))[section][1]
            return
        for key, value in keys:
            if key.value == section:
                yield value
            if key.value == ROS:
                yield from (node for name, node in self.mapping(value) if name.value == section)
            else:
                yield from self._sections(section, value, levels - 1)

    def _hint(self, name):
        keys = [key.value for key, _ in self.mapping(self.root)] if isinstance(self.root, yaml.MappingNode) else []
        return did_you_mean(name, keys) if keys else '; the file is empty or no mapping'


LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)      # in C ten times as fast


class _PlainLoader(LOADER):
    """Plain values; a key that is there twice is refused with its line."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{shorten(key.value)}' is there twice",
                                                        key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)


def plain_contents(where, text, *, aliases=False):
    """Return the first document of a YAML text as plain values.

    where: what the text is, for messages.  aliases: whether they are read; ROS refuses them, and as they may stand for
    others the contents can be longer than memory.
    """
    try:
        _check_events(text, aliases)
        loader = _PlainLoader(text)
        try:
            return loader.get_data() if loader.check_data() else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ModelError(f'{where} is not YAML: {_without_stream(error)}') from error


def _without_stream(error):
    """Return the text of an error without the name that the parser gives a text; the message names the file."""
    return re.sub(' in "<(unicode|byte) string>",', ' in', str(error))


def _check_events(text, aliases):
    """Refuse nesting that the parser in C would answer with a full stack, and aliases."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or not aliases and isinstance(event, yaml.AliasEvent):
            problem = f'more than {MAX_DEPTH} lists and mappings in each other' if depth > MAX_DEPTH else (
                'an alias; expected its contents written out')
            raise yaml.constructor.ConstructorError(None, None, problem, event.start_mark)


def check_untagged(where, node):
    """Refuse a YAML tag, which would ask for an object of some class."""
    if node.tag not in PLAIN:
        raise ModelError(f"{where}: YAML tag '{shorten(node.tag)}'; expected a plain value")


def plain(where, node):
    """Return the text of a node, or the list of its texts."""
    values = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(value, yaml.ScalarNode) for value in values):
        raise ModelError(f'{where}: expected a text, a number, or a list of numbers')
    for one in (node, *values):
        check_untagged(where, one)
    return node.value if isinstance(node, yaml.ScalarNode) else [value.value for value in values]


def line_of(node):
    """Return the line of a node; an empty file has none."""
    return node.start_mark.line + 1 if node else 1
