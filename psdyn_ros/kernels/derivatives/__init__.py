"""Exact derivatives of the dynamics."""
