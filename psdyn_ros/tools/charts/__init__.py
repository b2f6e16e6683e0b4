"""Charts of a machine: what it holds at which reach."""
