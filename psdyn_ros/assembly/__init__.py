"""Closes the loops of a model when it is loaded: clusters, pose tables, choice of coordinates."""
