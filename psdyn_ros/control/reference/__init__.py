"""The reference motion: trajectories, streamed points, stops and speed scaling."""
