"""What nodes report at the moment, as lines of text."""

from sensor_msgs.msg import JointState

from ...model.troubleshooting import advice
from ...model.units import ROUNDING
from ...nodes.messages.conversions import LEVELS
from .session import REPORT, OperatorError

LABELS = {level: label for label, level in LEVELS.items()}


def joint_text(name, position):
    """Return the line of a joint; what rounding leaves of zero is 0."""
    return f'{name}  {0.0 if abs(position) <= ROUNDING else position:.6g}'


def status(operator):
    """Return (lines, worst level) of what nodes report; OperatorError where neither controller nor report is there.

    worst level  key of `LEVELS`
    """
    states = []
    operator.node.create_subscription(JointState, 'joint_states', states.append, 1)
    operator.wait_for_graph()
    operator.until(lambda: states or not operator.node.count_publishers('joint_states'))
    operator.until(lambda: not operator.silent())
    lines, worst = [], 'ok'
    if operator.until(operator.has_controller, REPORT):
        state = 'gives no output' if operator.state is None else f'in {operator.state.name}'
        lines.append(f'{operator.controller}: {operator.lifecycle()}, {state}')
    elif not operator.statuses:
        raise OperatorError(operator.absence())
    for name, one in sorted(operator.statuses.items()):
        label = LABELS[one.level]
        worst = max(worst, label, key=tuple(LEVELS).index)
        lines.append(f'{label.upper()}  {name}: {one.message}')
        lines += [f'      what to do: {action}' for action in advice(one.message)]
    if states:
        lines += [joint_text(name, position) for name, position in zip(states[-1].name, states[-1].position)]
    else:
        lines.append(f'no message on {operator.node.resolve_topic_name("joint_states")}')
    return lines, worst
