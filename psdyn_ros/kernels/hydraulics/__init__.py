"""Cylinders, valves, supply and friction, coupled with the mechanism."""
