"""The ROS 2 coat of the package: nodes, and all that reads or writes messages for them."""

# executable of the package, see the entry points in setup.py: module with its `main`
EXECUTABLES = {
    'simulator': 'psdyn_ros.nodes.simulator.node',
    'controller': 'psdyn_ros.nodes.controller.node',
    'rig': 'psdyn_ros.nodes.observers.rig',
    'loop_state': 'psdyn_ros.nodes.observers.loop_state',
    'feedforward': 'psdyn_ros.nodes.observers.feedforward',
    'annotator': 'psdyn_ros.nodes.observers.annotator',
    'planner': 'psdyn_ros.nodes.observers.planner',
    'validator': 'psdyn_ros.nodes.observers.validator',
}
