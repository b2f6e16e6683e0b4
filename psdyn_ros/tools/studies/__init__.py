"""Studies of tracking and identification in simulation."""
