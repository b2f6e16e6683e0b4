"""Positions and rates of the actuators of a machine, whether these are its coordinates or not."""


class ActuatorMotion:
    """Reads the motion of the actuators of a manipulator from that of its coordinates."""

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self.columns = None     # of the actuators among the joints, where they are not the coordinates
        if manipulator.actuators != manipulator.coordinates:
            self.columns = [manipulator.joints.index(name) for name in manipulator.actuators]

    def positions(self, x):
        """Positions (actuators,) at x (dof,)."""
        return x if self.columns is None else self._manipulator.joint_state(x)[1][self.columns]

    def rates(self, x, xd):
        """Rates (actuators,) at x, xd (dof,)."""
        return xd if self.columns is None else self._manipulator.joint_state(x, xd)[2][self.columns]
