"""The recursions over the bodies of a machine."""
