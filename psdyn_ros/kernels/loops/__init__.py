"""Closed loops: position closure, G and g of the joints that they couple."""
