"""Mutated bags that a validation must reject or survive."""
