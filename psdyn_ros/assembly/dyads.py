"""Which planar clusters close in closed form: an order of pins, each of which fixes two joints, and parallel sides."""
import math

import numpy as np

from ..kernels.loops.dyads import carries
from ..kernels.loops.planar import pin_of, place_planar, turn_joints
from ..kernels.loops.records import ACROSS, ALONG, DYAD, PARALLEL, SLIDING


def find_dyads(builder, n, start):
    """Return the DYAD records of cluster n in an order that closes it, in its assembly mode at `start`; or none."""
    cluster, cluster_joints, pins = builder.clusters[n], builder.cluster_joints, builder.loops.pins
    part = builder.slice(n)
    if not cluster['planar']:
        return []
    known = {j for j in range(part.start, part.stop) if cluster_joints[j]['independent'] >= 0}
    last = int(cluster['pin'] + cluster['pins'])
    left, dyads = [*range(last, last + int(cluster['parallels'])), *range(int(cluster['pin']), last)], []
    while left:
        found = next(filter(None, ((_parallel if i >= last else _dyad)(cluster_joints, pins[i], i, known)
                                   for i in left)), None)
        if found is None:
            break
        dyads.append(found)
        known |= {int(found['a']), int(found['b'])}
        left.remove(int(found['pin']))
    # parallel sides make a pin redundant
    if len(known) < part.stop - part.start or len(left) > cluster['parallels']:
        return []
    for found in dyads:
        found['mode'] = _mode(builder, n, found, start)
    return [] if any(found['mode'] == 0.0 for found in dyads) else dyads


def _path(cluster_joints, j):
    path = []
    while j >= 0:
        path.append(int(j))
        j = cluster_joints[j]['parent']
    return path


def _dyad(cluster_joints, pin, row, known):
    """Return the DYAD of a pin that depends on exactly two unknown joints, else None."""
    paths = [_path(cluster_joints, pin['a']), _path(cluster_joints, pin['b'])]
    unknown = sorted((set(paths[0]) ^ set(paths[1])) - known)
    # an unknown joint in both paths moves the whole triangle and does not count
    if len(unknown) != 2:
        return None
    a, b = unknown
    same = a in paths[0] and b in paths[0] or a in paths[1] and b in paths[1]
    if cluster_joints[a]['slides'] or (cluster_joints[b]['slides'] and not same):
        return None
    found = np.zeros((), DYAD)
    found['pin'], found['a'], found['b'] = row, a, b
    found['kind'] = SLIDING if cluster_joints[b]['slides'] else ALONG if same else ACROSS
    return found


def _parallel(cluster_joints, sides, row, known):
    """Return the DYAD of parallel sides where just one joint between them is unknown, else None."""
    between = set(_path(cluster_joints, sides['a'])) ^ set(_path(cluster_joints, sides['b']))
    unknown = [j for j in between - known if not cluster_joints[j]['slides']]
    if len(unknown) != 1:
        return None
    found = np.zeros((), DYAD)
    found['pin'], found['a'], found['b'], found['kind'] = row, unknown[0], unknown[0], PARALLEL
    return found


def _mode(builder, n, found, start):
    """Return the side of the triangle at the start, 0 where it is flat."""
    if found['kind'] == PARALLEL:
        return 1.0
    cluster_joints, work, pin = builder.cluster_joints, builder.loops.work, builder.loops.pins[found['pin']]
    work['q'][builder.slice(n)] = start
    turn_joints(builder.clusters[n], cluster_joints, work)
    place_planar(builder.clusters[n], cluster_joints, work)
    a, b = (np.array([work[found[end]]['x'], work[found[end]]['y']]) for end in ('a', 'b'))
    ends = [np.array(pin_of(work, pin[end], pin[f'p{end}'])) for end in ('a', 'b')]
    target = ends[1] if carries(cluster_joints, int(found['a']), int(pin['a'])) else ends[0]
    if found['kind'] == SLIDING:
        s, u = cluster_joints[found['b']]['s'], work[found['b']]
        slide = np.array([u['cos'] * s[0] - u['sin'] * s[1], u['sin'] * s[0] + u['cos'] * s[1]])
        return math.copysign(1.0, (target - a) @ slide)
    corner, base = (b, target) if found['kind'] == ALONG else (target, b)
    cross = (base - a)[0] * (corner - a)[1] - (base - a)[1] * (corner - a)[0]
    flat = abs(cross) < 1e-6 * np.linalg.norm(base - a) * np.linalg.norm(corner - a)
    return 0.0 if flat else math.copysign(1.0, cross)
