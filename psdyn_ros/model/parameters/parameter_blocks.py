"""Parameters with description and range, and blocks of them: frozen dataclasses whose fields declare them.

    @dataclass(frozen=True, kw_only=True)
    class Relief:
        \"\"\"Opens a port to the return line.\"\"\"

        pressure: float = number('Pa, at which it opens', low=1e5, high=1e8)

A class that is declared so is read by `read_block` and printed by `markdown`.
"""
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial

from ..errors import ModelError, check_name, did_you_mean, shorten
from ..yaml_file import plain

NUMBER, INTEGER, NUMBERS, VECTOR, FLAG, CHOICE, WORD_OR_NUMBER, LINK, JOINT, BLOCK = (
    'number', 'integer', 'numbers', 'vector', 'flag', 'choice', 'word or number', 'link', 'joint', 'block')


@dataclass(frozen=True)
class Parameter:
    """One parameter; required where it has no default.  count: numbers of a list.  block: class of a block."""

    name: str
    kind: str
    description: str
    default: object = field(default_factory=lambda: MISSING)    # a default of MISSING would be none
    low: float = -math.inf
    high: float = math.inf
    choices: tuple = ()
    count: int = 1
    block: type = None

    required = property(lambda self: self.default is MISSING)


def _field(kind, description, default=MISSING, **options):
    return field(default=default, metadata={'declared': Parameter('', kind, description, default, **options)})


# fields (description, default, low=, high=); a default may be infinite, a number not
number, integer = partial(_field, NUMBER), partial(_field, INTEGER)
vector = partial(_field, VECTOR, count=3)
flag, link_name, joint_name = partial(_field, FLAG), partial(_field, LINK), partial(_field, JOINT)


def numbers(description, count, default=MISSING, *, low, high):
    """Declare a tuple of `count` numbers, for which one alone may stand."""
    default = default if default is MISSING else (default,) * count
    return _field(NUMBERS, description, default, low=low, high=high, count=count)


def choice(description, choices, default=MISSING):
    """Declare one word of several."""
    return _field(CHOICE, description, default, choices=choices)


def word_or_number(description, choices, default=MISSING, *, low, high):
    """Declare one word of several, or a finite number."""
    return _field(WORD_OR_NUMBER, description, default, low=low, high=high, choices=choices)


def block(cls, description, default=MISSING):
    """Declare a block of its own; default None: it may be absent, or an instance of `cls`."""
    return _field(BLOCK, description, default, block=cls)


def declared(cls):
    """Return {name: Parameter} of the fields of a block, its own before those of its base class."""
    known = {one.name: replace(one.metadata['declared'], name=one.name)
             for one in fields(cls) if 'declared' in one.metadata}
    first = [name for name in cls.__dict__.get('__annotations__', ()) if name in known]
    return {name: known[name] for name in dict.fromkeys((*first, *known))}


def read_block(cls, file, key, node, what):
    """Return (an instance of `cls`, `Places` of its parameters) of a YAML mapping.

    file: `YamlFile`.  key: node of the name of the block, for what is missing.  what: the block, for messages.
    Raises ModelError or DuplicateNameError.
    """
    pairs = file.mapping(node, ', '.join(declared(cls)), what)
    return read_fields(cls, file, pairs, f'{file.where(key)}: {what}', what)


def read_fields(cls, file, pairs, where, what=''):
    """Return what `read_block` returns for [(key node, value node)]; where: of the block."""
    known, given, places = declared(cls), {}, Places({'': where})
    for name, value in pairs:
        place = f'{file.where(name)}: {what}' if what else file.where(name)
        parameter = _known(known, name.value, place)
        places[parameter.name] = place
        if parameter.kind == BLOCK:
            inside = f'{what}: {parameter.name}' if what else parameter.name
            found, inner = read_block(parameter.block, file, name, value, inside)
            places.update({f'{parameter.name}.{one}': there for one, there in inner.items() if one})
        else:
            found = plain(place, value)
        given[parameter.name] = place, found
    return checked_block(cls, where, given), places


def read_blocks(cls, file, node, what, actuators):
    """Return {actuator: what `read_block` returns} of a mapping of blocks; what: one of them, 'cylinder'.

    Raises UnknownNameError where a name is none of `actuators`, and as `read_block`.
    """
    found = {}
    for key, value in file.mapping(node):
        block_name = f"{what} '{shorten(key.value)}'"
        check_name(key.value, actuators, f'{file.where(key)}: {block_name}: the machine has no such actuator')
        found[key.value] = read_block(cls, file, key, value, block_name)
    return found


class Places(dict):
    """Where the parameters of a block were given, {dotted name: file, line and block}; '': the block itself."""

    def of(self, name):
        """Return the place of a parameter, or of the block that it is missing in."""
        return self.get(name) or self.get(name.rpartition('.')[0]) or self['']


def checked_block(cls, where, given):
    """Return an instance of `cls` from {parameter: (where, value)}; where: of the block.  Raises ModelError."""
    known = declared(cls)
    values = {name: checked(_known(known, name, place), place, value) for name, (place, value) in given.items()}
    for name, parameter in known.items():
        if parameter.required and name not in values:
            choices = f'; one of {", ".join(parameter.choices)}' if parameter.choices else ''
            raise ModelError(f"{where}: '{name}' is missing ({parameter.description}{choices})")
    return cls(**values)


def _known(known, name, where):
    check_name(name, known, f"{where}: '{shorten(name)}' is no parameter of it", ModelError)
    return known[name]


def checked(parameter, where, value):
    """Return the value of one parameter, of YAML texts or of Python values; raise ModelError."""
    where, kind, choices = f"{where}: '{parameter.name}'", parameter.kind, parameter.choices
    if kind == BLOCK or (kind == WORD_OR_NUMBER and value in choices):
        return value
    if kind == NUMBER:
        return checked_number(parameter, where, value)
    if kind == INTEGER:
        found = checked_number(parameter, where, value)
        if found != int(found):
            raise ModelError(f'{where} is {found:g}; expected a whole number ({parameter.description})')
        return int(found)
    if kind in (NUMBERS, VECTOR):
        listed = hasattr(value, '__len__') and not isinstance(value, (str, Mapping))
        values = value if listed else [value] * parameter.count if kind == NUMBERS else []
        if len(values) != parameter.count:
            alone = 'one number or ' if kind == NUMBERS else ''
            raise ModelError(f'{where} is {value!r:.80}; expected {alone}a list of {parameter.count} numbers '
                             f'({parameter.description})')
        return tuple(checked_number(parameter, where, one) for one in values)
    if kind == FLAG:
        flags = {'true': True, 'false': False}
        if str(value).lower() not in flags:
            raise ModelError(f'{where} is {value!r:.80}; expected true or false')
        return flags[str(value).lower()]
    if kind == WORD_OR_NUMBER:
        try:
            float(value)
        except (TypeError, ValueError):
            raise ModelError(f'{where} is {value!r:.80}; expected {", ".join(choices)} or a number '
                             f'({parameter.description}){did_you_mean(str(value), choices)}') from None
        return checked_number(parameter, where, value)
    if not isinstance(value, str) or not value:
        raise ModelError(f'{where} is {value!r:.80}; expected a name ({parameter.description})')
    if choices:
        check_name(value, choices, f"{where}: there is no '{shorten(value)}'", ModelError)
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
    if parameter.kind == VECTOR:
        return f'`{list(value)}`'
    if parameter.kind == NUMBERS:
        value = value[0]
    return f'`{value:g}`' if parameter.kind in (NUMBER, NUMBERS) else f'`{str(value).lower()}`'
