"""The gains of a control law as live parameters."""

from ...control.laws.computed_torque import ComputedTorque
from ...control.laws.registry import INTEGRAL_SHARE
from ...control.laws.valve_law import ValveLaw
from ..runtime import parameters


class Gains:
    """Declares the gains of a law, judges what they shall become, and gives them to the law.

    node       to declare on
    law        `ControlLaw`
    bandwidth  rad/s from which those of laws at force level follow
    """

    def __init__(self, node, law, bandwidth):
        self._node, self._law = node, law
        self._on_valves = isinstance(law, ValveLaw)
        if self._on_valves:
            cylinders = () if law.hydraulics is None else law.hydraulics.cylinders
            self.table = parameters.valve_gains(law.manipulator.actuators, cylinders, law.gains)
        else:
            integral = INTEGRAL_SHARE if isinstance(law, ComputedTorque) else 0.0
            self.table = parameters.gains(law.manipulator, bandwidth, integral)
        self._use(parameters.declare_map(node, self.table))

    def against(self, given):
        """Why the gains must not become those given, {name: value}; '' where they may."""
        if self._on_valves:
            return ''
        values = {p.name: given.get(p.name, self._node.get_parameter(p.name).value) for p in self.table}
        for name in self._law.manipulator.coordinates:
            p, d, i = (values[f'gains.{name}.{field}'] for field in 'pdi')
            if i > 0.0 and not i < p * d:
                return f'gains.{name}.i {i:g} is not below p d = {p * d:g}: that is unstable'
        return ''

    def take(self):
        """Use the present values of the parameters."""
        self._use([self._node.get_parameter(parameter.name).value for parameter in self.table])

    def forget(self):
        """Undeclare the parameters."""
        for parameter in self.table:
            self._node.undeclare_parameter(parameter.name)

    def _use(self, values):
        if self._on_valves:
            self._law.set_gains(parameters.changed_gains(
                self._law.gains, tuple(self._law.manipulator.actuators), self.table, values))
        else:
            self._law.set_gains(values[0::3], values[1::3], values[2::3])
