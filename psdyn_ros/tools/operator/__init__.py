"""What an operator asks of running nodes; needs ROS 2."""
