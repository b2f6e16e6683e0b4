"""How the base of a machine moves, from topics: twist, acceleration, or an inertial sensor."""

from geometry_msgs.msg import AccelStamped, TwistStamped
from sensor_msgs.msg import Imu

from ...model.errors import PsdynError
from ...model.units import SECOND
from ...simulation.base_motion import BaseTracker
from ..runtime.qos import LATEST
from .conversions import MessageError, stamp_to_ns


class BaseInputs:
    """Subscribes to ~/base_motion/twist, ~/base_motion/acceleration, ~/base_motion/imu.

    A motion that stops coming counts as none after a while: the base is at rest then, turned as it is.

    node         to subscribe on
    manipulator  the machine
    now          function that gives ns on the clock of the stamps
    age_clock    function that gives the ns in which ages count
    timeout      ns
    reject       function of (topic, reason)
    check        function of a `BaseMotion`, which raises where the base of this machine cannot be moved
    """

    def __init__(self, node, manipulator, *, now, age_clock, timeout, reject, check):
        self._link, self._now, self._age_clock, self._timeout = manipulator.machine.base_link, now, age_clock, timeout
        self._check = check
        self._tracker = BaseTracker(manipulator.gravity)
        self.reset()
        for name, kind, read in (('twist', TwistStamped, self._twist), ('imu', Imu, self._imu),
                                 ('acceleration', AccelStamped, self._acceleration)):
            node.create_subscription(kind, f'~/base_motion/{name}', self._on(f'base_motion/{name}', read, reject),
                                     LATEST)

    def reset(self):
        """Upright and at rest, as if nothing had come."""
        self._tracker.reset()
        self._came = None           # ns of the age clock; None while the base rests
        self.turned = False         # whether it ever moved
        self.stale = False          # whether a motion stopped coming

    @property
    def moving(self):
        """Whether a motion comes."""
        return self._came is not None

    def motion(self, seconds):
        """The `BaseMotion` from now on, so many seconds before the next call; None where nothing ever came."""
        if not self.turned:
            return None
        if self.moving and self._age_clock() - self._came > self._timeout:
            self._came, self.stale = None, True
            self._tracker.rest()
        self._tracker.advance(seconds if self.moving else 0.0)
        return self._tracker.motion()

    def _on(self, topic, read, reject):
        def receive(msg):
            try:
                self._take(msg, read)
            except PsdynError as error:
                reject(topic, error)
        return receive

    def _take(self, msg, read):
        frame = msg.header.frame_id
        if frame not in ('', self._link):
            raise MessageError(f"frame_id '{frame:.80}': expected '{self._link}'")
        if not self.turned:
            self._check(self._tracker.motion())
        read((stamp_to_ns(msg.header.stamp) or self._now()) / SECOND, msg)
        self._came, self.turned, self.stale = self._age_clock(), True, False

    def _twist(self, time, msg):
        self._tracker.twist(time, _six(msg.twist))

    def _acceleration(self, time, msg):
        self._tracker.acceleration(time, _six(msg.accel))

    def _imu(self, time, msg):
        check_imu(msg)
        turn = None if msg.orientation_covariance[0] == -1.0 else [getattr(msg.orientation, k) for k in 'xyzw']
        self._tracker.imu(time, three(msg.angular_velocity), three(msg.linear_acceleration), turn)


def check_imu(msg):
    """Raise MessageError where an Imu lacks what dynamics needs."""
    for field in ('angular_velocity', 'linear_acceleration'):
        if getattr(msg, f'{field}_covariance')[0] == -1.0:
            raise MessageError(f'no {field} in it (covariance -1); dynamics needs it')


def three(vector3):
    """[x, y, z] of a geometry_msgs/Vector3."""
    return [vector3.x, vector3.y, vector3.z]


def _six(motion):
    return [*three(motion.linear), *three(motion.angular)]
