"""Visual shapes of the links of a URDF; bars between joints stand in for links that have none."""

import numpy as np

from ..model.errors import PsdynError, shorten
from ..model.mechanism.cluster import frame_along
from ..model.mechanism.urdf import rotation_from_rpy
from ..model.mechanism.xml_reader import parse
from .meshes import MeshError, find_mesh, read_mesh

GRAY = (0.62, 0.64, 0.68, 1.0)
BAR = (0.45, 0.52, 0.62, 1.0)
MAX_TRIANGLES = 60_000      # of all meshes of a page
MAX_LISTED = 3              # meshes that a sentence names


def shapes_of(description):
    """Return ({link: list of shapes}, sentences about what is not shown).

    A shape has `form` (box, cylinder, sphere, mesh, bar), its sizes, `color` r g b a, and `pose`: 12 numbers, the rows
    of (3, 4) in link axes.  A mesh has `vertices` (n, 3) float32 and `triangles` (m, 3) uint32.
    """
    found, missing, wrong = {name: [] for name in description.links}, {}, []
    robot = parse(description.text) if description.text else ()
    colors = dict(_colors(robot))
    visuals = [(link.get('name'), visual) for link in robot if link.tag == 'link' for visual in link.iter('visual')]
    meshes = sum(visual.find('geometry/mesh') is not None for _, visual in visuals)
    for link, visual in visuals:
        try:
            found[link].append(_shape(visual, colors, description.path, MAX_TRIANGLES // max(meshes, 1)))
        except MeshError as error:
            missing.setdefault(str(error), link)
        except (ValueError, TypeError, PsdynError) as error:
            wrong.append(f"a visual of link '{shorten(link)}' cannot be read and is not shown: {error}")
    sentences = []
    if missing:
        listed = list(missing)[:MAX_LISTED] + ([f'{len(missing) - MAX_LISTED} more'] * (len(missing) > MAX_LISTED))
        sentences.append(f'{len(missing)} meshes are not shown: {"; ".join(listed)}')
    wanted = {link for link, _ in visuals}
    # among visuals, a link without mass is a frame such as a tool centre point
    bare = [name for name, shapes in found.items() if not shapes and (
        not visuals or name in wanted or description.links[name].inertial is not None)]
    for name in bare:
        found[name] = _bars(description, name)
    if not visuals:
        sentences.append(f"'{description.name}' declares no visual shapes: bars join the joints of each link")
    elif missing or wrong:
        sentences.append('links without a shape are drawn as bars between their joints')
    return found, [*sentences, *wrong[:MAX_LISTED]]


def _colors(robot):
    for material in robot.iter('material') if len(robot) else ():
        color = material.find('color')
        if material.get('name') and color is not None:
            yield material.get('name'), _numbers(color.get('rgba'), 4)


def _shape(visual, colors, path, triangles):
    geometry = visual.find('geometry')
    element = next(iter(geometry), None) if geometry is not None else None
    if element is None:
        raise ValueError('it has no geometry')
    origin, material = visual.find('origin'), visual.find('material')
    name = None if material is None else material.get('name')
    own = None if material is None else material.find('color')
    color = _numbers(own.get('rgba'), 4) if own is not None else colors.get(name, GRAY)
    position, rpy = (np.zeros(3),) * 2 if origin is None else (
        _numbers(origin.get(key, '0 0 0'), 3) for key in ('xyz', 'rpy'))
    shape = {'form': element.tag, 'color': [float(c) for c in color],
             'pose': pose_row(rotation_from_rpy(rpy), position)}
    if element.tag == 'box':
        shape['size'] = _numbers(element.get('size'), 3).tolist()
    elif element.tag in ('cylinder', 'sphere', 'capsule'):
        shape['radius'] = _numbers(element.get('radius'), 1)[0]
        if element.tag != 'sphere':
            shape['length'] = _numbers(element.get('length'), 1)[0]
    elif element.tag == 'mesh':
        file = find_mesh(element.get('filename') or '', path)
        shape['vertices'], shape['triangles'] = read_mesh(file, _numbers(element.get('scale', '1 1 1'), 3), triangles)
    else:
        raise ValueError(f"<{shorten(element.tag)}> is not known; expected box, cylinder, sphere, capsule or mesh")
    return shape


def pose_row(rotation, position):
    """Return 12 numbers: the rows of the (3, 4) pose."""
    return np.column_stack((rotation, position)).ravel().tolist()


def middle(shape):
    """Return the middle (3,) of a shape in link axes; of a mesh the origin of its link."""
    return np.zeros(3) if shape['form'] == 'mesh' else np.array(shape['pose']).reshape(3, 4)[:, 3]


def _numbers(text, count):
    values = np.array((text or '').split(), dtype=float)
    if values.size != count or not np.isfinite(values).all():
        raise ValueError(f"'{shorten(text or '')}' is not {count} finite numbers")
    return values


def _bars(description, link):
    """Return bars from the origin of a link to the joints and pins on it, or to its centre of mass at a tip."""
    ends = [joint.origin.position for joint in description.joints.values() if joint.parent == link]
    for closure in description.closures.values():
        ends += [origin.position for side, origin in ((closure.parent, closure.parent_origin),
                                                      (closure.child, closure.child_origin)) if side == link]
    inertial = description.links[link].inertial
    if not ends and inertial is not None:
        ends = [inertial.com]
    thickness = 0.02 * _reach(description)
    shapes = []
    for end in ends:
        length = float(np.linalg.norm(end))
        if length > 1e-6:
            shapes.append({'form': 'cylinder', 'radius': 0.5 * thickness, 'length': length, 'color': BAR,
                           'pose': pose_row(frame_along(end / length), 0.5 * end)})
    # last, since the path of a tool is that of its last shape
    return [*shapes, {'form': 'sphere', 'radius': 0.8 * thickness, 'color': BAR,
                      'pose': pose_row(np.eye(3), np.zeros(3))}]


def _reach(description):
    """Return the mean length [m] of what joints lie apart, which bars are drawn in proportion to."""
    lengths = [np.linalg.norm(joint.origin.position) for joint in description.joints.values()]
    lengths = [length for length in lengths if length > 1e-6]
    return float(np.mean(lengths)) * min(len(lengths), 4) if lengths else 1.0
