"""What acts on a plant from outside, by topics: motion of its base, wrenches on links, forces of real cylinders."""

import time

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...api.arguments import vector
from ...api.environment import find_link
from ...model.errors import StateError
from ...model.units import SECOND
from ..messages.base_motion import BaseInputs, three
from ..messages.conversions import MessageError, check_lengths, stamp_to_ns
from ..runtime.qos import LATEST

MAX_FORCE = 1e7         # N or N m; beyond it is no wrench on a machine


class PlantEnvironment:
    """Subscribes to what acts on a plant from outside.

    ~/base_motion/twist, ~/base_motion/acceleration, ~/base_motion/imu where the base does not float, ~/tool_wrench, and
    for every cylinder ~/measured/<cylinder>, ~/measured_pressures/<cylinder>.  A base motion or wrench that stops
    coming counts as none after a while; real cylinders are watched by the plant.

    node        to subscribe on
    plant       the machine
    clock       `SimulationClock`
    rejections  where what is refused is counted
    timeout     s
    tool_link   that a wrench without a frame acts on; or empty
    """

    def __init__(self, node, plant, *, clock, rejections, timeout, tool_link):
        self._plant, self._clock, self._rejections = plant, clock, rejections
        self._timeout, self._tool_link = round(timeout * SECOND), tool_link
        self._machine = plant.manipulator.machine
        self._base = None if plant.manipulator.floating else BaseInputs(
            node, plant.manipulator, now=clock.now, age_clock=self._now, timeout=self._timeout,
            check=plant.set_environment, reject=lambda topic, error: rejections.add(topic, error, time.monotonic_ns()))
        self._wrenches, self._wrench_came = {}, {}      # by link
        self.base, self.wrenches = None, None           # what the plant is under
        self._stale = {}                    # what stopped coming -> why that matters
        self._subscribe(node, WrenchStamped, 'tool_wrench', self._wrench)
        for cylinder in plant.cylinders:
            self._subscribe(node, JointState, f'measured/{cylinder}', self._force_of(cylinder))
            self._subscribe(node, Float64MultiArray, f'measured_pressures/{cylinder}', self._pressures_of(cylinder))

    def _subscribe(self, node, kind, topic, read):
        node.create_subscription(kind, f'~/{topic}', self._rejections.checked(topic, read), LATEST)

    def _now(self):
        now = self._clock.age_clock()
        return self._clock.stamp if now is None else now

    @property
    def stale(self):
        """What stopped coming, in words."""
        base = {'base motion': 'at rest'} if self._base and self._base.stale else {}
        return tuple(f'{what} stale: {effect}' for what, effect in {**base, **self._stale}.items())

    def reset(self):
        """Forget everything; the base is upright and at rest."""
        if self._base:
            self._base.reset()
        self._wrenches.clear()
        self._wrench_came.clear()
        self._stale.clear()
        self._set(None, None)

    def update(self, seconds):
        """Put on the plant what acts on it from now on, as long as so many seconds before the next call."""
        base = self._base.motion(seconds) if self._base else None
        now = self._now()
        for link in [link for link, came in self._wrench_came.items() if now - came > self._timeout]:
            del self._wrenches[link], self._wrench_came[link]
            self._stale[f'tool wrench on {link}'] = 'zero'
        self._set(base, self._wrenches.copy() or None)

    def _set(self, base, wrenches):
        if base == self.base and wrenches is None and self.wrenches is None:
            return
        self.base, self.wrenches = base, wrenches
        self._plant.set_environment(base, wrenches)

    # links

    def _wrench(self, msg):
        link = msg.header.frame_id or self._tool_link
        if not link:
            raise MessageError('frame_id is empty; expected the link that the wrench acts on, or set tool_link')
        find_link(self._machine, link)
        force, moment = (vector(what, three(getattr(msg.wrench, what)), 3) for what in ('force', 'torque'))
        if max(abs(force).max(), abs(moment).max()) > MAX_FORCE:
            raise StateError(f'wrench of {abs(force).max():.3g} N, {abs(moment).max():.3g} N m is absurd')
        self._wrenches[link], self._wrench_came[link] = (force, moment), self._now()
        self._stale.pop(f'tool wrench on {link}', None)

    # real cylinders

    def _force_of(self, cylinder):
        def read(msg):
            check_lengths(msg, {'effort'})
            if list(msg.name) != [cylinder]:
                raise MessageError(f"names {list(msg.name)!s:.80}; expected ['{cylinder}']")
            self._plant.measure_cylinder(cylinder, force=msg.effort[0], now=self._clock.age_clock(),
                                         stamp=self._instant(stamp_to_ns(msg.header.stamp)))
        return read

    def _pressures_of(self, cylinder):
        def read(msg):
            if len(msg.data) != 2:
                raise MessageError(f'data has {len(msg.data)} entries; expected pressures a, b')
            self._plant.measure_cylinder(cylinder, pressures=tuple(msg.data), now=self._clock.age_clock())
        return read

    def _instant(self, stamp):
        """s of simulated time of the plant at a stamp; None for the present."""
        if not stamp or self._clock.stamp is None:
            return None
        return self._plant.time - (self._clock.stamp - stamp) / SECOND
