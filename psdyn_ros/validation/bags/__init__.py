"""Reading, repairing and writing of bags."""
