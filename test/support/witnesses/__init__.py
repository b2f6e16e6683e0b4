"""The same mathematics once more, by other means."""
