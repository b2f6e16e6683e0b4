"""The plant that the controllers drive: plain objects with `step()`, no ROS in them."""
