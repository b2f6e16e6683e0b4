"""The action FollowJointTrajectory, where control_msgs is installed."""


def action_modules():
    """(rclpy.action, class of the action); None where control_msgs is not installed."""
    try:
        from control_msgs.action import FollowJointTrajectory
    except ImportError:
        return None
    import rclpy.action
    return rclpy.action, FollowJointTrajectory
