"""Compilation with Numba, and its cache."""
