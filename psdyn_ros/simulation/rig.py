"""A cylinder with its valve on a test rig that moves its rod: the stand-in for a real actuator under test.

The rig imposes the motion of the simulated load on the rod, the cylinder answers with force and pressures.  To move a
rod is to be so heavy that the cylinder cannot help it: the rig is one prismatic joint with `MASS` behind it, and the
cylinder on it is integrated as in any machine (`api/hydraulics/integrator.py`), from the same records.

A motion that came some milliseconds ago is carried on to the present with its acceleration.  What the rod is off that
by, it makes up as a well-damped servo, so that the oil sees one continuous motion: were the rod just put where it is
wanted, the volumes would not be the integral of the flow, and each millimetre would remain in the pressures as k times
a millimetre.
"""

import math

import numpy as np

from ..api.hydraulics.integrator import HydraulicIntegrator
from ..api.hydraulics.statics import equilibrium_state, hydraulic_records
from ..api.load import load
from ..kernels.hydraulics.records import FLUID, PRESSURE_A, PRESSURE_B, QUANTITIES, SPOOL, VALVE
from ..model.errors import ModelError, StateError, did_you_mean

MASS = 1e15             # kg
HORIZON = 0.02          # s that a motion is carried on; then the rod stands still
BANDWIDTH = 300.0       # rad/s of the servo
SWIFTEST = 0.5          # most of its bandwidth times period, with which its steps are well damped
MACHINE = """<robot name="rig of {name}">
<link name="frame"/>
<link name="rod"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{name}" type="prismatic"><parent link="frame"/><child link="rod"/><axis xyz="1 0 0"/>
<limit lower="-1e3" upper="1e3" effort="1e12" velocity="1e3"/></joint>
</robot>"""


class CylinderRig:
    """One cylinder of a machine, its rod moved from outside.

    manipulator  the machine, which the friction of the cylinder may belong to
    hydraulics   `Hydraulics` of this machine
    cylinder     name of its joint
    period       s, the time of one step
    substeps     of the solver in a period
    bandwidth    rad/s with which the rod makes up for what it is off the motion

    There are no end stops: they belong to the machine.  The supply is the rig's own.
    """

    def __init__(self, manipulator, hydraulics, cylinder, *, period, substeps=2, bandwidth=BANDWIDTH):
        if cylinder not in hydraulics.cylinders:
            raise ModelError(f"rig: '{cylinder}': no such cylinder{did_you_mean(str(cylinder), hydraulics.cylinders)}")
        if hydraulics.cylinders[cylinder].kind != 'cylinder':
            raise ModelError(f"rig: '{cylinder}' is a {hydraulics.cylinders[cylinder].kind}; expected a cylinder")
        if not 0.0 < bandwidth * period <= SWIFTEST:
            raise ModelError(f'rig: a bandwidth of {bandwidth:g} rad/s with a period of {period:g} s: expected at most '
                             f'{SWIFTEST / period:g} rad/s')
        self.cylinder, self.period = cylinder, period
        self._hydraulics = hydraulics
        self._bandwidth = bandwidth
        axes, cylinders, self._supply = hydraulic_records(manipulator, hydraulics)
        axis = list(manipulator.actuators).index(cylinder)
        self._axis, self._record = axes[axis:axis + 1].copy(), cylinders[axes['cylinder'][axis]:][:1].copy()
        self._axis['cylinder'], self._record['axis'] = 0, 0
        self._axis['drive'], self._axis['lower'], self._axis['upper'] = VALVE, -math.inf, math.inf
        # no URDF may declare such a mass
        light = load(MACHINE.format(name=cylinder), gravity=(0.0, 0.0, 0.0), actuated=[cylinder])
        self._heavy = light.with_payload('rod', MASS, np.zeros(3), MASS * np.eye(3))
        self._integrator = HydraulicIntegrator(self._heavy, self._axis, self._record, self._supply, period, substeps)
        self._environment = np.zeros((2, 6))
        self._x, self._xd, self._xdd = np.zeros((3, 1))
        self._fluid, self._bristles, self._line = np.zeros((1, FLUID)), np.zeros(1), np.zeros(1)
        self._force, self._telemetry = np.zeros(1), np.zeros((1, len(QUANTITIES)))
        self.time = 0.0         # s
        self._motion = None     # (s, m, m/s, m/s^2): the last that was asked for
        self.reset(0.5 * float(self._record['stroke'][0]))

    position = property(lambda self: float(self._x[0]), doc='m, of the rod.')
    velocity = property(lambda self: float(self._xd[0]), doc='m/s')
    force = property(lambda self: float(self._force[0]), doc='N on the load, friction of the cylinder in it.')
    pressures = property(lambda self: tuple(self._fluid[0, (PRESSURE_A, PRESSURE_B)].tolist()), doc='Pa, a and b.')
    spool = property(lambda self: float(self._fluid[0, SPOOL]), doc='-1 to 1')
    telemetry = property(lambda self: self._telemetry[0], doc='QUANTITIES')

    @property
    def stale(self):
        """Whether the rod stands still because no motion came for `HORIZON`, or none yet."""
        return self._motion is None or self.time - self._motion[0] > HORIZON

    def reset(self, position, velocity=0.0, force=0.0, time=0.0):
        """Put the rod at `position` [m] with the spool neutral and pressures that give `force` [N] at rest.

        Raises StateError where the stroke has no such position or the supply no such force.
        """
        against = {'rod': ((-force, 0.0, 0.0), (0.0, 0.0, 0.0))}
        self._fluid[:], self._bristles[:], self._line[:] = equilibrium_state(
            self._heavy, self._hydraulics, self._axis, self._record, self._supply, [position], wrenches=against)
        self._x[:], self._xd[:] = position, velocity
        self._record['command'] = 0.0
        self.time, self._motion = time, None
        self._observe()

    def impose(self, time, position, velocity, acceleration):
        """Take the motion of the load at an instant [s, m, m/s, m/s^2], from the next step on.

        Raises StateError where it is not finite or leaves the stroke.
        """
        motion = tuple(map(float, (time, position, velocity, acceleration)))
        stroke = float(self._record['stroke'][0])
        if not all(map(math.isfinite, motion)) or not 0.0 <= position <= stroke:
            raise StateError(f"rig of '{self.cylinder}': motion {position:.6g} m, {velocity:.6g} m/s, "
                             f'{acceleration:.6g} m/s^2; expected finite numbers and a position within 0 and '
                             f'{stroke:.6g} m')
        self._motion = motion

    def step(self, command=None):
        """Advance by one period with the spool command -1 to 1; None: the last one.

        Raises StateError, and keeps the last good state, where the cylinder cannot be integrated any further.
        """
        if command is not None:
            if not math.isfinite(command):
                raise StateError(f"rig of '{self.cylinder}': command {command}; expected -1 to 1")
            self._record['command'] = min(1.0, max(-1.0, command))
        # the joint's acceleration relative to a frame that is accelerated the other way
        self._environment[1, 0] = -self._acceleration()
        self._integrator.set_environment(self._environment)
        state = self._x, self._xd, self._fluid, self._bristles, self._line
        status = self._integrator.step(*state, self._xdd)
        if status:
            error = self._integrator.error(status, self._x)
            raise StateError(f"rig of '{self.cylinder}' at {self.time:.6g} s: {error}")
        self.time += self.period
        self._observe()

    def _acceleration(self):
        """Of the rod during the next period."""
        position, velocity, acceleration = self._wanted()
        w = self._bandwidth
        return acceleration + 2.0 * w * (velocity - self.velocity) + w * w * (position - self.position)

    def _wanted(self):
        """Motion that the rod should have at the present."""
        if self._motion is None:
            return self.position, 0.0, 0.0
        time, position, velocity, acceleration = self._motion
        age = self.time - time
        ahead = min(age, HORIZON)
        position += (velocity + 0.5 * acceleration * ahead) * ahead
        return (position, 0.0, 0.0) if age > HORIZON else (position, velocity + acceleration * ahead, acceleration)

    def _observe(self):
        self._integrator.observe(self._x, self._xd, self._fluid, self._bristles, self._line, self._xdd, self._force,
                                 self._telemetry)
