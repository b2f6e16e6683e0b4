"""Blocks of parameters as frozen dataclasses, whose fields declare meaning, unit and range.

    @dataclass(frozen=True, kw_only=True)
    class Relief:
        \"\"\"Opens a port to the return line.\"\"\"

        pressure: float = number('Pa, at which it opens', low=1e5, high=1e8)

A class that is declared so is read by `read_block` and printed by `markdown`.
"""
import math
from dataclasses import MISSING, dataclass, field, fields, replace

import yaml

from ..errors import ModelError, did_you_mean, shorten
from .parameter_file import CHOICE, FLAG, NUMBER, Parameter, checked, checked_number, plain

INTEGER, NUMBERS, BLOCK, WORD_OR_NUMBER = 'integer', 'numbers', 'block', 'word or number'
PLAIN = {f'tag:yaml.org,2002:{kind}' for kind in ('str', 'int', 'float', 'bool', 'null', 'timestamp', 'map', 'seq',
                                                  'value', 'merge')}


@dataclass(frozen=True)
class Declared(Parameter):
    """A field of a block.  count: of the numbers of a list, for which one alone may stand; block: class of a block."""

    count: int = 1
    block: type = None

    @property
    def required(self):
        return self.default is MISSING


def number(description, default=MISSING, *, low, high):
    """Declare a finite number; a default may be infinite."""
    return _field(Declared('', NUMBER, description, default, low, high), default)


def integer(description, default=MISSING, *, low, high):
    """Declare a whole number."""
    return _field(Declared('', INTEGER, description, default, low, high), default)


def numbers(description, count, default=MISSING, *, low, high):
    """Declare a tuple of `count` numbers, for which one alone may stand."""
    default = default if default is MISSING else (default,) * count
    return _field(Declared('', NUMBERS, description, default, low, high, count=count), default)


def flag(description, default):
    """Declare true or false."""
    return _field(Declared('', FLAG, description, default), default)


def choice(description, choices, default=MISSING):
    """Declare one word of several."""
    return _field(Declared('', CHOICE, description, default, choices=choices), default)


def word_or_number(description, choices, default=MISSING, *, low, high):
    """Declare one word of several, or a finite number."""
    return _field(Declared('', WORD_OR_NUMBER, description, default, low, high, choices=choices), default)


def block(cls, description, default=MISSING):
    """Declare a block of its own; default None: it may be absent, or an instance of `cls`."""
    return _field(Declared('', BLOCK, description, default, block=cls), default)


def _field(declared, default):
    return field(default=default, metadata={'declared': declared})


def declared(cls):
    """Return {name: Declared} of the fields of a block."""
    return {one.name: replace(one.metadata['declared'], name=one.name)
            for one in fields(cls) if 'declared' in one.metadata}


def read_block(cls, file, key, node, what, **others):
    """Return (an instance of `cls`, {dotted name: where it was given}) of a YAML mapping.

    file: `ParameterFile`.  key: node of the name of the block, for what is missing.  what: the block, for messages.
    others: fields that are not declared.  Raises ModelError or DuplicateNameError.
    """
    known, values, places = declared(cls), {}, {'': f'{file.where(key)}: {what}'}
    if not isinstance(node, yaml.MappingNode):
        raise ModelError(f'{file.where(node)}: {what}: expected a mapping of {", ".join(known)}')
    check_untagged(file, node, what)
    for name, value in file.mapping(node):
        place = f'{file.where(name)}: {what}'
        if name.value not in known:
            raise ModelError(f"{place}: '{shorten(name.value)}' is no parameter of it{did_you_mean(name.value, known)}")
        parameter = known[name.value]
        places[parameter.name] = place
        if parameter.kind == BLOCK:
            values[parameter.name], inner = read_block(parameter.block, file, name, value,
                                                       f'{what}: {parameter.name}')
            places.update({f'{parameter.name}.{one}': there for one, there in inner.items() if one})
        else:
            check_untagged(file, value, what)
            values[parameter.name] = _value(parameter, place, plain(place, value))
    for name, parameter in known.items():
        if parameter.required and name not in values:
            choices = f'; one of {", ".join(parameter.choices)}' if parameter.choices else ''
            raise ModelError(f"{places['']}: '{name}' is missing ({parameter.description}{choices})")
    return cls(**values, **others), places


def check_untagged(file, node, what):
    """Refuse a YAML tag, which would ask for an object of some class."""
    parts = {yaml.SequenceNode: lambda: node.value, yaml.MappingNode: lambda: [key for key, _ in node.value]}
    for one in (node, *parts.get(type(node), tuple)()):
        if one.tag not in PLAIN:
            raise ModelError(f"{file.where(one)}: {what}: YAML tag '{shorten(one.tag)}'; expected a plain value")


def _value(parameter, place, value):
    if parameter.kind == NUMBERS:
        values = value if isinstance(value, list) else [value] * parameter.count
        if len(values) != parameter.count:
            raise ModelError(f"{place}: '{parameter.name}' is {value!r:.80}; expected one number or a list of "
                             f'{parameter.count} ({parameter.description})')
        return tuple(checked_number(parameter, f"{place}: '{parameter.name}'", one) for one in values)
    if parameter.kind == INTEGER:
        found = checked_number(parameter, f"{place}: '{parameter.name}'", value)
        if found != int(found):
            raise ModelError(f"{place}: '{parameter.name}' is {found:g}; expected a whole number "
                             f'({parameter.description})')
        return int(found)
    if parameter.kind == WORD_OR_NUMBER:
        return _word_or_number(parameter, place, value)
    return checked(parameter, place, value)


def _word_or_number(parameter, place, value):
    if value in parameter.choices:
        return value
    try:
        float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{place}: '{parameter.name}' is {value!r:.80}; expected {', '.join(parameter.choices)} or a "
                         f'number ({parameter.description}){did_you_mean(str(value), parameter.choices)}') from None
    return checked_number(parameter, f"{place}: '{parameter.name}'", value)


def markdown(title, cls):
    """Yield the lines of a table of a block, followed by those of the blocks in it."""
    yield f'### {title}\n\n{" ".join(cls.__doc__.split())}\n'
    yield '| parameter | kind | default | range | meaning |'
    yield '|---|---|---|---|---|'
    inner = []
    for name, p in declared(cls).items():
        kind = f'{p.kind} ({p.count}, or one)' if p.kind == NUMBERS else p.kind
        ranged = [f'{p.low:g} to {p.high:g}'] if p.high < math.inf else []
        allowed = ', '.join([*p.choices, *ranged])
        yield f'| `{name}` | {kind} | {_default(p)} | {allowed} | {p.description} |'
        if p.kind == BLOCK:
            inner.append((f'{title}: {name}', p.block))
    yield ''
    for one in inner:
        yield from markdown(*one)


def _default(parameter):
    value = parameter.default
    if parameter.required:
        return 'required'
    if value is None or value in (math.inf, -math.inf):
        return 'none'
    if parameter.kind == BLOCK:
        return 'its defaults'
    if parameter.kind == NUMBERS:
        value = value[0]
    return f'`{value:g}`' if parameter.kind in (NUMBER, NUMBERS) else f'`{str(value).lower()}`'
