"""The controller node."""
