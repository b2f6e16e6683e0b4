"""Loop closures from YAML, for a URDF that must not be touched.

    loops:
      - name: lift_eye
        type: revolute                          # may be left out, as xyz, rpy (or quat_xyzw) and dynamics may
        parent: {link: rod_link, xyz: [0.4, 0, 0], rpy: [0, 0, 0], axis: [0, 0, 1]}
        child: {link: boom_link, xyz: [0.45, 0, 0], axis: [0, 0, 1]}
        dynamics: {damping: 1.0, friction: 0.0}
"""
from ..yaml_file import YamlFile, line_of, plain
from .xml_reader import Element


def read_loops(path):
    """Return the entries of a loops file as the <constraint> elements that a URDF would have."""
    file = YamlFile('loops file', path)
    _, loops = file.parts(file.root, ('loops',))['loops']
    return [_constraint(file, node) for node in file.items(loops, 'loops')]


def _constraint(file, node):
    loop = file.parts(node, ('name', 'parent', 'child'), ('type', 'dynamics'))
    element = _element(file, 'constraint', loop, ('name', 'type'))
    element.line = f"{line_of(node)} of '{file.path}'"
    for side in ('parent', 'child'):
        end = file.parts(loop[side][1], ('link',), ('xyz', 'rpy', 'quat_xyzw', 'axis'))
        element.append(_element(file, side, end, ('link',)))
        element.append(_element(file, f'{side}_origin', end, ('xyz', 'rpy', 'quat_xyzw')))
        if 'axis' in end:
            element.append(_element(file, f'{side}_axis', {'xyz': end['axis']}, ('xyz',)))
    if 'dynamics' in loop:
        names = 'damping', 'friction'
        element.append(_element(file, 'dynamics', file.parts(loop['dynamics'][1], (), names), names))
    return element


def _element(file, tag, parts, names):
    """Return an element with those attributes of `names` that are in {name: (key node, value node)}."""
    texts = {name: plain(file.where(parts[name][1]), parts[name][1]) for name in names if name in parts}
    return Element(tag, {name: text if isinstance(text, str) else ' '.join(text) for name, text in texts.items()})
