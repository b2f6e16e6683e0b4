"""Messages taken by hand, for the moments in which no executor serves a node: in a callback, or after the last one."""

MOST = 100      # messages taken at once


def newest(subscription):
    """The newest message that waits on a subscription, and its information; None where none waits."""
    found = None
    with subscription.handle:
        for _ in range(MOST):
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                break
            found = taken
    return found
