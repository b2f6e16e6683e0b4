"""Messages taken by hand: where no executor serves a node, or none shall, so that a flood costs no callbacks."""

MOST = 100      # messages taken at once


def oldest(subscription):
    """The oldest message that waits on a subscription, and its information; None where none waits.

    For the thread that destroys it: nothing holds it meanwhile, since that would double the time of a look.
    """
    return subscription.handle.take_message(subscription.msg_type, subscription.raw)


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
