"""Figures of agreement between a recording and the model, and the verdict on them."""
