"""Motion of links: Jacobians, inverse kinematics, workspace and load chart."""
