"""Processes to test against, and a node of the test among them."""
