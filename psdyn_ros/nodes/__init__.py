"""The ROS 2 coat of the package: the only place that imports rclpy or a message."""
