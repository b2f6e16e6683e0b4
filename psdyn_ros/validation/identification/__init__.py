"""Estimation of inertial parameters and friction."""
