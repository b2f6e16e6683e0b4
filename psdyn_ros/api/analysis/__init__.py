"""Derivatives, linearization, equilibria and the report of a machine."""
