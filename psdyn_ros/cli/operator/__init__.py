"""Commands of an operator beside running nodes."""
