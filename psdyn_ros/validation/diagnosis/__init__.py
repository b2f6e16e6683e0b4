"""Likely causes of a disagreement between a recording and the model."""
