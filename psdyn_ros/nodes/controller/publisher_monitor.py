"""Publishers on topics that are to have one only."""


class PublisherMonitor:
    """The publishers on topics that are to have one only.

    topics  their resolved names
    ours    whether that one is of this node
    """

    def __init__(self, node, topics, ours):
        self._node, self._topics, self._ours = node, tuple(topics), ours

    def conflicts(self):
        """Text about every topic with more than one; '' where there is none.  0.1 ms for each topic."""
        return '; '.join(filter(None, map(self._on, self._topics)))

    def _on(self, topic):
        found = self._node.get_publishers_info_by_topic(topic)
        if len(found) <= 1:
            return ''
        me = self._node.get_name(), self._node.get_namespace()
        names = [(one.node_name, one.node_namespace) for one in found]
        if self._ours:
            names = _without(names, me)
        said = ', '.join(sorted(f'{namespace.rstrip("/")}/{name}' for name, namespace in names))
        return f'{len(found)} publishers on {topic}' + (f', also {said}' if self._ours else f': {said}')


def _without(names, one):
    """The names without the first occurrence of one, so that a second node of this name is still there."""
    return [name for k, name in enumerate(names) if name != one or one in names[:k]]
