"""Hydraulic drives of a machine: statics, integration, checks."""
