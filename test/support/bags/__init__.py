"""Bags and recordings, made message by message or by formulas."""
