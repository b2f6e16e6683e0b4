"""Faults and motions put on a controller and a plant together, and what came of them."""
