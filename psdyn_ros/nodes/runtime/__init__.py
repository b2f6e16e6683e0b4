"""What all nodes run on: executor, lifecycle, parameters, deadlines, real-time settings."""
