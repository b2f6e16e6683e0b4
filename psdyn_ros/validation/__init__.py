"""Recordings in, metrics and reports out; no ROS needed."""
