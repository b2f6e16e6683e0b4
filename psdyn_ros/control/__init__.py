"""Reference motion and control laws: plain objects with `update()`, no ROS in them."""
