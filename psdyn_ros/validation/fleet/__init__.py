"""Validation of many bags in parallel."""
