"""Spatial algebra by value, and small linear systems in place."""
