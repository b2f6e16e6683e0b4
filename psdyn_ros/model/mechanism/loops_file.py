"""Loop closures from YAML, for a URDF that must not be touched.

    loops:
      - name: lift_eye
        type: revolute                          # may be left out, as xyz, rpy (or quat_xyzw) and dynamics may
        parent: {link: rod_link, xyz: [0.4, 0, 0], rpy: [0, 0, 0], axis: [0, 0, 1]}
        child: {link: boom_link, xyz: [0.45, 0, 0], axis: [0, 0, 1]}
        dynamics: {damping: 1.0, friction: 0.0}
"""
import yaml

from ..errors import DuplicateNameError, ModelError, did_you_mean, shorten
from .xml_reader import Element, read_text

MAX_BYTES = 1024 * 1024


def read_loops(path):
    """Return the entries of a loops file as the <constraint> elements that a URDF would have."""
    text = read_text(path, MAX_BYTES)
    try:
        # nodes rather than values: each knows its line, and an alias of an alias of ... is never expanded
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelError(f"loops file '{path}' is not YAML: {error}") from error
    loops = _mapping(path, root, ('loops',))['loops']
    if not isinstance(loops, yaml.SequenceNode):
        raise ModelError(f'{_where(path, loops)}: expected a list of loops')
    return [_constraint(path, node) for node in loops.value]


def _constraint(path, node):
    loop = _mapping(path, node, ('name', 'parent', 'child'), ('type', 'dynamics'))
    element = _element(path, 'constraint', {key: loop[key] for key in ('name', 'type') if key in loop})
    element.line = f"{_line(node)} of '{path}'"
    for side in ('parent', 'child'):
        end = _mapping(path, loop[side], ('link',), ('xyz', 'rpy', 'quat_xyzw', 'axis'))
        element.append(_element(path, side, {'link': end['link']}))
        pose = {key: end[key] for key in ('xyz', 'rpy', 'quat_xyzw') if key in end}
        element.append(_element(path, f'{side}_origin', pose))
        if 'axis' in end:
            element.append(_element(path, f'{side}_axis', {'xyz': end['axis']}))
    if 'dynamics' in loop:
        element.append(_element(path, 'dynamics', _mapping(path, loop['dynamics'], (), ('damping', 'friction'))))
    return element


def _mapping(path, node, required, optional=()):
    """Return {key: node} of a mapping that has all required keys and no unknown one."""
    expected = ', '.join((*required, *(f'[{key}]' for key in optional)))
    if not isinstance(node, yaml.MappingNode):
        raise ModelError(f'{_where(path, node)}: expected a mapping of {expected}')
    found = {}
    for key, value in node.value:
        name = _text(path, key)
        if name not in required and name not in optional:
            raise ModelError(f"{_where(path, key)}: '{shorten(name)}' is not known"
                             f'{did_you_mean(name, (*required, *optional))}')
        if name in found:
            raise DuplicateNameError(f"{_where(path, key)}: '{name}' is there twice")
        found[name] = value
    for name in required:
        if name not in found:
            raise ModelError(f"{_where(path, node)}: '{name}' is missing; expected {expected}")
    return found


def _element(path, tag, attributes):
    return Element(tag, {key: _text(path, node) for key, node in attributes.items()})


def _text(path, node):
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return ' '.join(item.value for item in node.value)
    raise ModelError(f'{_where(path, node)}: expected a text, a number, or a list of numbers')


def _where(path, node):
    return f"loops file '{path}' (line {_line(node)})"


def _line(node):
    return node.start_mark.line + 1 if node else 1
