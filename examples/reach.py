"""Where must the cylinders stand so that the tip is at a point, and what if it is out of reach?"""
import numpy as np

import psdyn_ros

crane = psdyn_ros.load('hiab_xs031')
target = [2.5, 1.0, 1.5]                        # m, in base axes
x = crane.inverse_kinematics('tcp', target)
print(dict(zip(crane.coordinates, np.round(x, 3).tolist())))
assert abs(crane.link_pose(x, 'tcp')[:3, 3] - target).max() < 1e-6

try:
    crane.inverse_kinematics('tcp', [9.0, 0.0, 1.0])
except psdyn_ros.OutOfReachError as error:
    print(f'out of reach by {error.distance:.2f} m; in the way: {", ".join(error.at_limit)}')
    assert error.distance > 3.0
