"""One streamed point of a reference out of a message."""

import numpy as np

from .conversions import MessageError, NameMaps


class PointReader:
    """A JointTrajectory of one point, in any joints that fix the others, to motion of the coordinates.

    manipulator  the machine
    """

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self._maps = NameMaps(self._map)

    def read(self, msg):
        """(x, xd, xdd), each (dof,); velocities and accelerations that are not there are zero."""
        if len(msg.points) != 1:
            raise MessageError(f'{len(msg.points)} points; expected one')
        point, count = msg.points[0], len(msg.joint_names)
        rows = []
        for field in ('positions', 'velocities', 'accelerations'):
            row = getattr(point, field)
            if len(row) != count and (row or field == 'positions'):
                raise MessageError(f'{len(row)} {field} for {count} joints')
            rows.append(np.array(row) if row else np.zeros(count))
        if not np.isfinite(rows).all():
            raise MessageError('its point is not finite')
        order, joint_map = self._maps[msg.joint_names]
        return (rows[0][order], rows[1][order], rows[2][order]) if joint_map is None else joint_map.motion(*rows)

    def _map(self, names):
        """(order of the coordinates among the names, None), or (None, map to the coordinates)."""
        coordinates = self._manipulator.coordinates
        if set(names) == set(coordinates):
            return [names.index(name) for name in coordinates], None
        return None, self._manipulator.joint_map(names)
