"""Simulated sensors: noise, quantisation, delay and rate of each channel."""
