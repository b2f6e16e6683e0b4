"""What acts on a plant from outside, by topics: motion of its base, wrenches on links, forces of real cylinders."""

import time

from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from ..api.arguments import vector
from ..api.environment import find_link
from ..model.errors import PsdynError, StateError
from ..simulation.base_motion import BaseTracker
from .conversions import SECOND, MessageError, check_lengths, stamp_to_ns

NEWEST = QoSProfile(depth=1)
MOST_FORCE = 1e7        # N or N m; beyond it is no wrench on a machine


class PlantSurroundings:
    """Subscribes to the ports of a plant.

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
        self._base = BaseTracker(plant.manipulator.gravity)
        self._base_came = None              # ns, steady or simulated; None while the base rests
        self._wrenches, self._wrench_came = {}, {}      # by link
        self.base, self.wrenches = None, None           # what the plant is under
        self._stale = {}                    # what stopped coming -> why that matters
        if not plant.manipulator.floating:
            for name, kind, read in (('twist', TwistStamped, self._twist), ('imu', Imu, self._imu),
                                     ('acceleration', AccelStamped, self._acceleration)):
                self._subscribe(node, kind, f'base_motion/{name}', read)
        self._subscribe(node, WrenchStamped, 'tool_wrench', self._wrench)
        for cylinder in plant.cylinders:
            self._subscribe(node, JointState, f'measured/{cylinder}', self._force_of(cylinder))
            self._subscribe(node, Float64MultiArray, f'measured_pressures/{cylinder}', self._pressures_of(cylinder))

    def _subscribe(self, node, kind, topic, read):
        def receive(msg):
            try:
                read(msg)
            except PsdynError as error:
                self._rejections.add(topic, error, time.monotonic_ns())
        node.create_subscription(kind, f'~/{topic}', receive, NEWEST)

    def _now(self):
        now = self._clock.age_clock()
        return self._clock.stamp if now is None else now

    @property
    def stale(self):
        """What stopped coming, in words."""
        return tuple(f'{what} stale: {effect}' for what, effect in self._stale.items())

    def reset(self):
        """Forget everything; the base is upright and at rest."""
        self._base.reset()
        self._base_came = None
        self._wrenches.clear()
        self._wrench_came.clear()
        self._stale.clear()
        self._set(None, None)

    def update(self, seconds):
        """Put on the plant what acts on it from now on, as long as so many seconds before the next call."""
        if self._base_came is None and not self._wrenches:
            return
        now = self._now()
        if self._base_came is not None and now - self._base_came > self._timeout:
            self._base_came = None
            self._base.rest()
            self._stale['base motion'] = 'at rest'
        for link in [link for link, came in self._wrench_came.items() if now - came > self._timeout]:
            del self._wrenches[link], self._wrench_came[link]
            self._stale[f'tool wrench on {link}'] = 'zero'
        self._base.advance(seconds if self._base_came is not None else 0.0)
        turned = self._base_came is not None or self.base is not None
        self._set(self._base.motion() if turned else None, self._wrenches.copy() or None)

    def _set(self, base, wrenches):
        if base == self.base and wrenches is None and self.wrenches is None:
            return
        self.base, self.wrenches = base, wrenches
        self._plant.set_environment(base, wrenches)

    # base

    def _moving(self, msg):
        """Time [s] of a message about the base; MessageError where it is not given at its origin in its axes."""
        frame = msg.header.frame_id
        if frame not in ('', self._machine.base_link):
            raise MessageError(f"frame_id '{frame:.80}': expected '{self._machine.base_link}'")
        if self.base is None:
            self._plant.set_environment(self._base.motion())     # raises where the base cannot be moved
        return (stamp_to_ns(msg.header.stamp) or self._clock.now()) / SECOND

    def _moved(self):
        self._base_came = self._now()
        self._stale.pop('base motion', None)

    def _twist(self, msg):
        self._base.twist(self._moving(msg), _six(msg.twist))
        self._moved()

    def _acceleration(self, msg):
        self._base.acceleration(self._moving(msg), _six(msg.accel))
        self._moved()

    def _imu(self, msg):
        for field in ('angular_velocity', 'linear_acceleration'):
            if getattr(msg, f'{field}_covariance')[0] == -1.0:
                raise MessageError(f'no {field} in it (covariance -1); dynamics needs it')
        turn = None if msg.orientation_covariance[0] == -1.0 else [getattr(msg.orientation, k) for k in 'xyzw']
        self._base.imu(self._moving(msg), _three(msg.angular_velocity), _three(msg.linear_acceleration), turn)
        self._moved()

    # links

    def _wrench(self, msg):
        link = msg.header.frame_id or self._tool_link
        if not link:
            raise MessageError('frame_id is empty; expected the link that the wrench acts on, or set tool_link')
        find_link(self._machine, link)
        force, moment = (vector(what, _three(getattr(msg.wrench, what)), 3) for what in ('force', 'torque'))
        if max(abs(force).max(), abs(moment).max()) > MOST_FORCE:
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


def _three(vector3):
    return [vector3.x, vector3.y, vector3.z]


def _six(motion):
    return [*_three(motion.linear), *_three(motion.angular)]
