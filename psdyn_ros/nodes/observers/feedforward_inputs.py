"""What `feedforward` and `annotator` read: one point of a motion, and payloads; and which source of motion counts."""

import numpy as np

from ...model.errors import PsdynError
from ..messages.conversions import MessageError, NameMaps, payload_from_msg
from ..runtime.parameters import Parameter

EFFORTS_OF = (
    Parameter('friction_scale', 1.0, 'share of the modelled friction that is compensated', 0.0, 1.0, live=True),
    Parameter('state_timeout', 0.1, 's after which what came last is stale', 0.001, 10.0),
    Parameter('closure_tolerance', 0.005, 'm or rad by which redundant joints may differ', 1e-9, 1.0),
)


class MotionReader:
    """One point of a motion of named joints to the coordinates.

    manipulator  function that gives the present one
    tolerance    m or rad by which redundant joints may contradict each other
    """

    def __init__(self, manipulator, tolerance):
        self._manipulator, self._tolerance = manipulator, tolerance
        self._names = NameMaps(self._known)

    def read(self, names, point):
        """(x, xd, xdd), each (dof,), of a JointTrajectoryPoint in these joints; what it does not say is zero.

        Joints that the machine does not have are passed over. Raises MessageError, or a StateError where no loop
        closes.
        """
        known, columns = self._names[names]
        rows = []
        for field in ('positions', 'velocities', 'accelerations'):
            values = getattr(point, field)
            if len(values) != len(names) and (field == 'positions' or len(values)):
                raise MessageError(f'{field} has {len(values)} entries for {len(names)} joints')
            rows.append(np.frombuffer(values)[columns] if len(values) else np.zeros(len(known)))
        joint_map = self._manipulator().joint_map(known)
        residual = joint_map.state(rows[0])[2]
        if not residual <= self._tolerance:
            raise MessageError(f'its joints contradict each other by {residual:.3g}, at most {self._tolerance:g} '
                               'allowed')
        return joint_map.motion(*rows)

    def _known(self, names):
        joints = self._manipulator().joints
        known = tuple(name for name in joints if name in names)
        return known, np.array([names.index(name) for name in known], dtype=np.intp)


def take_payload(feedforward, msg, rejections, log, now):
    """Attach the payload of an InertiaStamped, or count it as rejected; now in ns on a steady clock."""
    try:
        link, mass, com, inertia = payload_from_msg(msg)
        feedforward.set_payload(link, mass, com, inertia)
    except PsdynError as error:
        rejections.add('payload', error, now)
    else:
        log(f'payload of {mass:g} kg on {link}')


class Sources:
    """Which of several inputs is answered: the first that is connected and has spoken.

    topics   {source: topic}, those that count more first
    count    function of a topic: how many publish on it
    timeout  ns after which a source is silent
    """

    def __init__(self, topics, count, timeout):
        self.topics, self._count, self._timeout = topics, count, timeout
        self._came = {}         # source -> ns of its last message
        self.chosen = None      # the source that is answered

    def spoke(self, source, now):
        """Note a message that can be used, at ns on a steady clock; whether it is to be answered."""
        self._came[source] = now
        self._choose()
        return source == self.chosen

    def look(self):
        """Forget the sources that nobody is connected to any more."""
        for source in [source for source in self._came if not self._count(self.topics[source])]:
            del self._came[source]
        self._choose()

    def fresh(self, now):
        """Whether the source that is answered has spoken lately."""
        return self.chosen is not None and now - self._came[self.chosen] <= self._timeout

    def _choose(self):
        self.chosen = next((source for source in self.topics if source in self._came), None)
