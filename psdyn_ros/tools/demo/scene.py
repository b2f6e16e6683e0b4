"""What a viewer needs to show the moving machine from a bag: its description, and the poses of its links."""

from ...api.orientation import quaternion
from ...model.units import SECOND
from ...nodes.messages.conversions import stamp_to_ns

DESCRIPTION, POSES = '/robot_description', '/tf'
SCENE = {DESCRIPTION: 'std_msgs/msg/String', POSES: 'tf2_msgs/msg/TFMessage'}
PERIOD = 20_000_000     # ns between two messages of poses


def scene_messages(manipulator, urdf, begin, states):
    """Return [(topic, ns, serialised message)] of the topics of `SCENE`.

    urdf    text
    begin   ns of the description
    states  iterable of (ns of the receipt, JointState with all coordinates)
    """
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    kinds = store.types
    messages = [(DESCRIPTION, begin, store.serialize_cdr(kinds['std_msgs/msg/String'](data=urdf), SCENE[DESCRIPTION]))]
    due = columns = None
    for received, state in states:
        stamp = stamp_to_ns(state.header.stamp)
        if due is not None and stamp < due:
            continue
        due = stamp + PERIOD
        if columns is None:
            columns = [list(state.name).index(name) for name in manipulator.coordinates]
        x = [state.position[column] for column in columns]
        transforms = [_transform(kinds, stamp, manipulator.links[0], link, manipulator.link_pose(x, link))
                      for link in manipulator.links[1:]]
        message = kinds['tf2_msgs/msg/TFMessage'](transforms=transforms)
        messages.append((POSES, received, store.serialize_cdr(message, SCENE[POSES])))
    return messages


def _transform(kinds, stamp, parent, link, pose):
    """Return the TransformStamped of a pose (4, 4) of a link in its parent frame."""
    seconds, rest = divmod(stamp, SECOND)
    x, y, z, w = quaternion(pose[:3, :3]).tolist()
    place = dict(zip('xyz', pose[:3, 3].tolist()))
    return kinds['geometry_msgs/msg/TransformStamped'](
        header=kinds['std_msgs/msg/Header'](
            stamp=kinds['builtin_interfaces/msg/Time'](sec=seconds, nanosec=rest), frame_id=parent),
        child_frame_id=link,
        transform=kinds['geometry_msgs/msg/Transform'](
            translation=kinds['geometry_msgs/msg/Vector3'](**place),
            rotation=kinds['geometry_msgs/msg/Quaternion'](x=x, y=y, z=z, w=w)))
