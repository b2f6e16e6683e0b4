"""Hydraulics, sensors, faults and safety parameters, read from YAML."""
