"""Hydraulic machines as records and as declared."""
