"""Nodes that only compute from what they receive: loop state, feedforward, annotator, validator, rig."""
