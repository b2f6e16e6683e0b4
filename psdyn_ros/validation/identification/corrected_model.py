"""A URDF and a YAML of hydraulics with what was identified in them; the old values stand beside them as comments.

Only those elements are rewritten that were identified, so comments and order of everything else stay.
"""
import re
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
import yaml

from ...model.errors import ModelError
from ...model.locate import find_machine
from ...model.mechanism.urdf import read
from ...model.parameters.hydraulics import JOINTS, read_hydraulics
from ...model.text_file import read_text
from .identified import IDENTIFIED_SHARE, NOT_ALONE
from .normal_equations import friction_block

AXES = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
NUMBER = '%.9g'


def write_corrected(folder, found, manipulator, urdf, hydraulics=None):
    """Write what `found` corrects of its files into a folder; returns the paths.

    urdf        file, or the name of a machine of the package
    hydraulics  `Hydraulics` as read from a file, or None
    """
    folder, written = Path(folder), []
    source = find_machine(urdf)
    text = corrected_urdf(read_text(source), found, hydraulics)
    path = folder / f'{Path(source).name.split(".")[0]}_identified.urdf'
    path.write_text(text, encoding='utf-8')
    written.append(path)
    file = re.search(r"'(.+)'", hydraulics.where) if hydraulics is not None else None
    if file and Path(file[1]).is_file():
        path = folder / f'{Path(file[1]).stem}_identified.yaml'
        path.write_text(corrected_hydraulics(read_text(file[1]), found, manipulator.actuators), encoding='utf-8')
        written.append(path)
    return tuple(written)


def corrected_urdf(text, found, hydraulics=None):
    """Return the text of a URDF with the inertials of an `Identification`, and the friction that no hydraulics
    declare, where it is declared or differs from none.

    Raises ModelError where the text cannot be corrected without harm.
    """
    description = read(text)
    elements = _elements(text)
    edits = []
    for body in found.bodies:
        if body.corrected is not None and (body.payload or (body.identified >= IDENTIFIED_SHARE).any()):
            edits.append(_inertial_edit(text, elements, body, found.source))
    for one in found.friction:
        if one.identified and friction_block(hydraulics, one.name) is None and (one.declared or one.significant):
            edits.append(_dynamics_edit(text, elements, one, found.source))
    data = text.encode('utf-8')
    for begin, end, replacement in sorted(edits, reverse=True):
        data = data[:begin] + replacement.encode('utf-8') + data[end:]
    corrected = data.decode('utf-8')
    _check_urdf(description, read(corrected), found)
    return corrected


def _elements(text):
    """{(tag, name): (begin, end of its start tag, end, {child: (begin, end)})} of links and joints, in bytes."""
    parser, stack, out = expat.ParserCreate(encoding='utf-8'), [], {}
    data = text.encode('utf-8')

    def start(tag, attributes):
        stack.append((tag, attributes.get('name'), parser.CurrentByteIndex, {}))

    def end(tag):
        name, begin, children = stack.pop()[1:]
        opened = _after_tag(data, begin)
        finish = opened if data[opened - 2:opened] == b'/>' else _after_tag(data, parser.CurrentByteIndex)
        if len(stack) == 2:
            stack[-1][3][tag] = begin, finish
        elif len(stack) == 1:
            out[tag, name] = begin, opened, finish, children

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return out


def _after_tag(data, begin):
    """Where the tag that begins here ends; a > in quotes does not end it."""
    quote = None
    for position in range(begin, len(data)):
        character = data[position:position + 1]
        if quote:
            quote = None if character == quote else quote
        elif character in (b'"', b"'"):
            quote = character
        elif character == b'>':
            return position + 1
    raise ModelError('a tag of the URDF does not end')


def _place(text, elements, tag, name, child):
    """(begin, end, indentation, whether the element was closed by itself) of what replaces a child element."""
    begin, opened, finish, children = elements[tag, name]
    data = text.encode('utf-8')
    line = data.rfind(b'\n', 0, begin) + 1
    indent = re.match(rb'[ \t]*', data[line:begin])[0].decode() + '  '
    if child in children:
        return (*children[child], indent, False)
    if opened == finish:
        return opened - 2, opened, indent, True
    return opened, opened, indent, False


def _comment(text):
    """XML comments have no two hyphens in them."""
    return f'<!-- {re.sub("-{2,}", "-", text)} -->'


def _values(values):
    return ' '.join(NUMBER % value for value in values)


def _inertial_edit(text, elements, body, source):
    begin, end, indent, closed = _place(text, elements, 'link', body.name, 'inertial')
    new, old = body.corrected, body.declared
    mass, com, inertia = body.errors[0], body.errors[1:4], body.errors[4:]
    found = body.found
    what = f' and a payload of {NUMBER % found.mass} kg at {_values(found.com)} m on it' if body.payload else ''
    was = 'had no inertial' if old is None else (
        f'was mass {NUMBER % old.mass} kg, centre of mass {_values(old.com)} m, inertia '
        f'{_values(old.inertia[np.triu_indices(3)])} kg m^2')
    lines = [
        _comment(f'Identified{_of(source)}{what}; {was}.'),
        _comment(f'Standard errors: mass {mass:.3g} kg, centre of mass {" ".join(f"{one:.3g}" for one in com)} m, '
                 f'inertia {" ".join(f"{one:.3g}" for one in inertia)} kg m^2 ({" ".join(AXES)})'
                 f'{" of the payload" if body.payload else ""}.'),
        '<inertial>',
        f'  <origin xyz="{" ".join(map(repr, map(float, new.com)))}" rpy="0 0 0"/>',
        f'  <mass value="{float(new.mass)!r}"/>',
        f'  <inertia {" ".join(f"{name}={quoteattr(repr(float(value)))}" for name, value in _named(new.inertia))}/>',
        '</inertial>']
    return _edit(begin, end, indent, closed, lines, 'link')


def _named(inertia):
    return zip(AXES, inertia[np.triu_indices(3)])


def _dynamics_edit(text, elements, one, source):
    begin, end, indent, closed = _place(text, elements, 'joint', one.name, 'dynamics')
    level, slope = one.line
    lines = [_comment(f'Identified{_of(source)}; was damping {NUMBER % one.was_viscous}, friction '
                      f'{NUMBER % one.was_coulomb}. {_friction_note(one)}'),
             f'<dynamics damping="{slope!r}" friction="{level!r}"/>']
    return _edit(begin, end, indent, closed, lines, 'joint')


def _edit(begin, end, indent, closed, lines, tag):
    """What to put between two places; an element that closed itself is opened."""
    joined = f'\n{indent}'.join(lines)
    if closed:
        return begin, end, f'>\n{indent}{joined}\n{indent[:-2]}</{tag}>'
    return (begin, end, joined) if begin != end else (begin, end, f'\n{indent}{joined}')


def _of(source):
    return f' from {" ".join(source.split())}' if source else ''


def _friction_note(one):
    force = one.forces[len(one.forces) // 2]
    unit = 'N' if one.unit == 'm/s' else 'N m'
    return (f'Friction at {force.speed:g} {one.unit}: {force.force:.5g} {unit}, standard error {force.error:.2g} '
            f'{unit}. {NOT_ALONE.capitalize()}.')


def _check_urdf(before, after, found):
    """Refuse a text in which anything else has changed."""
    expected = {body.name: body.corrected for body in found.bodies
                if body.payload or (body.identified >= IDENTIFIED_SHARE).any()}
    for name, link in after.links.items():
        want = expected.get(name, before.links[name].inertial)
        if (want is None) != (link.inertial is None) or want is not None and not (
                np.isclose(want.mass, link.inertial.mass) and np.allclose(want.com, link.inertial.com)
                and np.allclose(want.inertia, link.inertial.inertia)):
            raise ModelError(f"link '{name}': the corrected URDF does not say what was identified")
    if before.joints.keys() != after.joints.keys() or before.closures.keys() != after.closures.keys():
        raise ModelError('the corrected URDF has other joints than before')


def corrected_hydraulics(text, found, actuators):
    """Return the YAML text of hydraulics with the friction of an `Identification`, where it is declared there.

    Raises ModelError where the text cannot be corrected, such as of cylinders that are aliases of each other.
    """
    before = read_hydraulics(text if '\n' in text else text + '\n', actuators)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    identified = {one.name: one for one in found.friction if one.identified}
    places, used = {}, {}
    for section in JOINTS:
        for joint, mapping in _children(_child(root, section)):
            pair = next(((key, value) for key, value in mapping.value if key.value == 'friction'), None) \
                if isinstance(mapping, yaml.MappingNode) else None
            if pair is not None:
                places[joint.value] = pair
                used.setdefault(id(pair[1]), []).append(joint.value)
            elif joint.value in identified and friction_block(before, joint.value) is not None:
                raise ModelError(f"friction of '{joint.value}' is merged in from elsewhere in the YAML; write it out")
    # where an anchor changes, all that refer to it are written out
    touched = {name for names in used.values() if identified.keys() & set(names) for name in names}
    edits = []
    for name in touched:
        key, value = places[name]
        edits += _friction_edits(text, key, value, identified.get(name), found.source)
    for begin, end, replacement in sorted(edits, reverse=True):
        text = text[:begin] + replacement + text[end:]
    after = read_hydraulics(text if '\n' in text else text + '\n', actuators)
    for name in actuators:
        old, new = friction_block(before, name), friction_block(after, name)
        want = identified[name].line if name in touched and name in identified else (
            (old.coulomb, old.viscous) if old else None)
        if (old is None) != (new is None) or want and not np.allclose(want, (new.coulomb, new.viscous)):
            raise ModelError(f"friction of '{name}': the corrected YAML does not say what was identified")
    return text


def _child(node, name):
    return next((value for key, value in node.value if key.value == name), None)


def _children(node):
    return node.value if isinstance(node, yaml.MappingNode) else ()


def _friction_edits(text, key, value, one, source):
    """A line of comment before the key, and a new value for it."""
    entries = {field.value: content.value for field, content in value.value}
    comment = ''
    if one is not None:
        level, slope = one.line
        entries['coulomb'], entries['viscous'] = NUMBER % level, NUMBER % slope
        comment = (f'# Identified{_of(source)}; was coulomb {NUMBER % one.was_coulomb}, viscous '
                   f'{NUMBER % one.was_viscous}. {_friction_note(one)}')
    begin = key.end_mark.index
    written = re.compile(r'\s*:\s*').match(text, begin).end()
    anchor = ''
    if text[written] == '*':        # the node is that of the anchor, elsewhere
        end = re.compile(r'\*[^\s,}\]]+').match(text, written).end()
    else:
        found = re.compile(r'&[^\s,}\]]+\s*').match(text, written)
        anchor = found[0].strip() + ' ' if found else ''
        end = value.end_mark.index
        if not value.flow_style:    # the mark of a block is where the next token begins
            last = value.value[-1][1].end_mark.index
            end = last
    fields = ', '.join(f'{name}: {content}' for name, content in entries.items())
    edits = [(begin, end, f': {anchor}{{{fields}}}')]
    if comment:
        line = text.rfind('\n', 0, key.start_mark.index) + 1
        indent = re.match(r'[ ]*', text[line:])[0]
        edits.append((line, line, f'{indent}{comment}\n'))
    return edits
