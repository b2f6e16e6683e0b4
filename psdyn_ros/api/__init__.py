"""The names that users type; everything here is checked, documented and free of ROS."""
