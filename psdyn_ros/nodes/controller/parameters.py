"""The parameters of the node `controller`; the gains of its law are live ones."""

from ...control.core.assembly import RANGES
from ...control.laws.gains import gain_entries, with_entries
from ...control.laws.passive_states import ESTIMATED, SOURCES
from ...control.laws.registry import LAWS
from ...control.laws.valve_gains import EFFORT_BANDWIDTH, INTEGRAL_SHARE
from ...control.reference.swing_damping import RATIO
from ...control.reference.swing_shaper import KINDS, ZVD
from ...model.parameters.hydraulics import EFFORT, MODES
from ...model.parameters.safety import MAX_TIMEOUT_S
from ..runtime.parameters import MACHINE, PRESSURE_TOPICS, REALTIME, Parameter, ParameterError, declare_map, release

PARAMETERS = MACHINE + REALTIME + (
    Parameter('safety', '', 'YAML file of safe outputs, timeouts and limits of the machine; without it the node is not '
              'configured'),
    Parameter('law', 'computed_torque', 'control law; those on valves need hydraulics', choices=tuple(LAWS)),
    Parameter('bandwidth', 0.0, 'rad/s from which the default gains follow: p = bandwidth^2, d = 2 bandwidth, '
              f'i = {INTEGRAL_SHARE:g} bandwidth^3; of laws on valves those of actuators without a cylinder; 0: '
              f'{EFFORT_BANDWIDTH:g}, or what period and `command_delay` allow', 0.0, 200.0),
    Parameter('hydraulics', '', 'YAML file of the cylinders, valves and supply that drive the machine; empty: efforts '
              'are commanded'),
    Parameter('valve_bandwidth', 0.0, 'rad/s from which the default gains on valves follow; 0: as far as the machine '
              'lets them go', 0.0, 200.0),
    Parameter('command_delay', 0.0, 's from a command to the valve that obeys it; laws look ahead by it', 0.0, 0.1),
    Parameter('error_space', 'actuator', 'where errors are taken: of the actuators, or of the joints that loops move, '
              'whose gains are then those of rad', choices=('actuator', 'joint')),
    Parameter('passive_states', ESTIMATED, 'where the state of passive joints comes from, as those that a load hangs '
              'from: joint_states, or an estimate that measurements correct, or taken as hanging at rest',
              choices=SOURCES),
    Parameter('stream_delay', 0.0, 's that streamed points count as stamped later, below `timeouts: stream` of the '
              'safety file', 0.0, MAX_TIMEOUT_S),
    Parameter('swing_shaper', ZVD, 'input shaper of trajectories and streams that begin at rest, where passive joints '
              'swing', choices=KINDS),
    Parameter('swing_damping', RATIO, 'damping ratio that axes give a swing, within the `swing_deviation` that the '
              'safety file declares for each; 0: none', *RANGES['swing_damping']),
    Parameter('feedforward_ramp', 0.0, 's in which the feedforward sets in after `~/enable`: a motion that begins '
              'meanwhile lags behind its reference', *RANGES['feedforward_ramp']),
    *PRESSURE_TOPICS,
    Parameter('trigger', 'state', 'compute on each state message, or at rate on a steady timer',
              choices=('state', 'timer')),
    Parameter('rate', 500.0, 'Hz of the timer, and at which states are expected', *RANGES['rate']),
    Parameter('emergency_stop', 'required', 'whether `~/emergency_stop` must come; none: only what it says counts, '
              'where something else stops the machine', choices=('required', 'none')),
    Parameter('overrun_share', 0.01, 'of the cycles of a second that may come too late before the machine runs at '
              'reduced speed', *RANGES['overrun_share']),
    Parameter('port_timeout', 0.1, 's after which a base motion that stopped coming counts as none', 0.001, 10.0),
    Parameter('autostart', False, 'configure and activate by itself; enabling it remains to be done'),
)


def outputs(actuators, cylinders):
    """Parameters of the controller, one for each actuator: the interface of its command."""
    return tuple(
        Parameter(f'output.{name}', '', f'what is commanded of {name}; empty: as law and hydraulics say',
                  choices=('', *MODES) if name in cylinders else ('', EFFORT))
        for name in actuators)


def gains(law):
    """Parameters of the controller, live: the gains of a `ControlLaw`, `gains.<joint>.<field>`."""
    return tuple(
        Parameter(f'gains.{name}.{one.name}', float(getattr(law.gains, one.name)[row]),
                  f'{one.metadata["unit"]}, {one.metadata["description"]}, of {name}', one.metadata['low'],
                  one.metadata['high'], live=True)
        for name, row, one in gain_entries(law))


class Gains:
    """Declares the gains of a law, judges what they are and shall become, and gives them to the law.

    node  to declare on
    law   `ControlLaw`

    Raises ParameterError where the gains that were given to the node must not be.
    """

    def __init__(self, node, law):
        self._node, self._law = node, law
        self._entries = tuple(gain_entries(law))
        self.table = gains(law)
        values = declare_map(node, self.table)
        reason = self.against({})
        if reason:
            self.forget()
            raise ParameterError(f'parameter {reason}')
        self._use(values)

    def against(self, given):
        """Why the gains must not become those given, {name: value}; '' where they may."""
        values = [given.get(one.name, self._node.get_parameter(one.name).value) for one in self.table]
        return self._law.gains_rejection(with_entries(self._law.gains, self._entries, values))

    def take(self):
        """Use the present values of the parameters."""
        self._use([self._node.get_parameter(one.name).value for one in self.table])

    def forget(self):
        """Release the parameters: what was set is declared again with the next law."""
        for one in self.table:
            release(self._node, one.name, one.default)

    def _use(self, values):
        self._law.set_gains(with_entries(self._law.gains, self._entries, values))
