"""Checks of clocks, states, tracking and singularities while a controller runs."""
