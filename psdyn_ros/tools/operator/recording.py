"""Records topics of running nodes into a bag, and prints their messages."""

import time
from collections import Counter
from pathlib import Path

import yaml

from ...model.errors import ModelError
from ...validation.bags.recording import open_writer
from .session import OperatorError

LOOK = 1.0              # s between two looks at which topics there are
UNASKED = '/rosout', '/parameter_events'    # recorded only where they are named


def record(operator, folder, topics, seconds, say=print):
    """Record topics into an MCAP bag until `seconds` have passed or a signal; return {topic: messages}.

    folder   must not exist
    topics   names, resolved in the namespace; none: all topics, also those that appear later
    seconds  None: until SIGINT (Ctrl-C), SIGTERM or SIGHUP
    """
    from rosbags.typesys import Stores, get_typestore

    if Path(folder).exists():
        raise ModelError(f"'{folder}' exists; expected the name of a new folder")
    store, node = get_typestore(Stores.ROS2_JAZZY), operator.node
    wanted = {node.resolve_topic_name(topic) for topic in topics}
    for topic in topics:
        operator.topic_type(topic)      # raises where nobody publishes on it
    counts, passed_over = Counter(), set()
    deadline = float('inf') if seconds is None else time.monotonic() + seconds
    with open_writer(folder) as writer:
        def keep(connection, topic):
            def write(data):
                writer.write(connection, time.time_ns(), bytes(data))
                counts[topic] += 1
            return write

        subscribed = set()
        try:
            while (left := deadline - time.monotonic()) > 0.0:
                for topic, kinds in node.get_topic_names_and_types():
                    if topic in subscribed or topic in passed_over or (wanted and topic not in wanted) \
                            or (not wanted and topic in UNASKED) or not node.count_publishers(topic):
                        continue
                    if kinds[0] not in store.types:
                        passed_over.add(topic)
                        say(f'{topic} is not recorded: the message type {kinds[0]} is not known')
                        continue
                    message, qos = operator.subscription_of(topic)
                    connection = writer.add_connection(topic, kinds[0], typestore=store)
                    node.create_subscription(message, topic, keep(connection, topic), qos, raw=True)
                    subscribed.add(topic)
                    say(f'recording {topic}')
                operator.until(lambda: False, min(LOOK, left))
        except KeyboardInterrupt:
            pass        # a signal is how a recording ends
    if not counts:
        raise OperatorError(f"nothing was recorded in '{folder}': no message came")
    return dict(counts)


def echo(operator, topic, count, say=print):
    """Print so many messages of a topic as YAML documents; None: until Ctrl-C. OperatorError where none comes."""
    name, kind, qos = operator.topic_type(topic)
    messages, printed = [], 0
    operator.node.create_subscription(kind, name, messages.append, qos)
    while count is None or printed < count:
        if not operator.until(lambda: messages) and not printed:
            raise OperatorError(f'no message came on {name} within {operator.timeout:g} s')
        for message in messages[:None if count is None else count - printed]:
            say(f'{as_yaml(message)}---')
            printed += 1
        messages.clear()


def as_yaml(message):
    """Return the YAML text of a ROS message."""
    return yaml.safe_dump(_plain(message), sort_keys=False, default_flow_style=None, allow_unicode=True, width=120)


def _plain(value):
    """Return the value as dictionaries, lists and numbers."""
    if hasattr(value, 'get_fields_and_field_types'):
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, bytes):
        return value[0] if len(value) == 1 else list(value)
    return [_plain(one) for one in value.tolist()] if hasattr(value, 'tolist') else [_plain(one) for one in value]
