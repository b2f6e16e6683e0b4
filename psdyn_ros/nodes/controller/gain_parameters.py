"""The gains of a control law as live parameters."""

from ...control.laws.gains import gain_entries, with_entries
from ..runtime import parameters


class Gains:
    """Declares the gains of a law, judges what they shall become, and gives them to the law.

    node  to declare on
    law   `ControlLaw`
    """

    def __init__(self, node, law):
        self._node, self._law = node, law
        self._entries = tuple(gain_entries(law))
        self.table = parameters.gains(law)
        self._use(parameters.declare_map(node, self.table))

    def against(self, given):
        """Why the gains must not become those given, {name: value}; '' where they may."""
        values = [given.get(one.name, self._node.get_parameter(one.name).value) for one in self.table]
        return self._law.gains_rejection(with_entries(self._law.gains, self._entries, values))

    def take(self):
        """Use the present values of the parameters."""
        self._use([self._node.get_parameter(one.name).value for one in self.table])

    def forget(self):
        """Undeclare the parameters."""
        for one in self.table:
            self._node.undeclare_parameter(one.name)

    def _use(self, values):
        self._law.set_gains(with_entries(self._law.gains, self._entries, values))
