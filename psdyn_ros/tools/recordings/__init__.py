"""Example recordings of a simulated crane, healthy and with faults."""
