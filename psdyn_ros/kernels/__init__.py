"""The mathematics of the package: functions of floats and arrays, compiled by Numba, plain Python without it.

Spatial vectors are pairs of 3-tuples, linear part first; see `spatial` for the algebra, `records` for the
model and scratch records, `forward.py` and `inverse.py` for the recursions.
"""
