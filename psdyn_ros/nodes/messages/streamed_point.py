"""One streamed point of a reference out of a message."""

import numpy as np

from ...model.errors import PsdynError
from .conversions import MessageError, NameMaps

FIELDS = 'positions', 'velocities', 'accelerations'


class PointReader:
    """A point, in any joints that fix the others, to motion of the coordinates.

    manipulator  the machine
    """

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self._maps = NameMaps(self._map)
        self._refused = None, ''        # names that came last and cannot be used, and why not

    def read(self, message):
        """(x, xd, xdd) of a JointTrajectory of one point, each (dof,); None for velocities, accelerations not there."""
        if len(message.points) != 1:
            raise MessageError(f'{len(message.points)} points; expected one')
        order, joint_map = self._map_of(message.joint_names)
        count = len(message.joint_names)
        motion = np.zeros((3, count))
        for row, field in zip(motion, FIELDS):
            given = getattr(message.points[0], field)
            if len(given) != count and (len(given) or field == 'positions'):
                raise MessageError(f'{len(given)} {field} for {count} joints')
            if len(given):
                row[:] = given
        if not np.isfinite(motion).all():
            raise MessageError('its point is not finite')
        x, xd, xdd = motion[:, order] if joint_map is None else joint_map.motion(*motion)
        sent = message.points[0]
        return x, xd if len(sent.velocities) else None, xdd if len(sent.accelerations) else None

    def _map_of(self, names):
        refused, reason = self._refused
        if names == refused:        # a flood of them must not cost a search each
            raise MessageError(reason)
        try:
            return self._maps[names]
        except PsdynError as error:
            self._refused = names, str(error)
            raise

    def _map(self, names):
        """(order of the coordinates among the names, None), or (None, map to the coordinates)."""
        coordinates = self._manipulator.coordinates
        if set(names) == set(coordinates):
            return [names.index(name) for name in coordinates], None
        return None, self._manipulator.joint_map(names)
