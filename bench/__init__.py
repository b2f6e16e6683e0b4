"""Benchmark of psdyn_ros against Pinocchio and MuJoCo: `python -m bench --help`."""
