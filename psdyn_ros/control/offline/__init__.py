"""Computations on whole trajectories and single states, outside the control cycle."""
