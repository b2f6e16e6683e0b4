"""Motion of a point on a link: pose, Jacobian and its rate, and inverse kinematics."""
