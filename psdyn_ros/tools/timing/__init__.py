"""Timing of control cycles on this computer."""
