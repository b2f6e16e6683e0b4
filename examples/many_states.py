"""How large are the forces that hold the machine, over all of its positions?  Rows of states use all cores."""
import numpy as np

import psdyn_ros
from psdyn_ros.model.locate import find_machine

crane = psdyn_ros.load(find_machine('hiab_xs031'))
x = crane.random_positions(2000, rng=1)         # within all limits, every loop closes
forces = crane.gravity_forces(x)                # (2000, actuators)
height = crane.link_pose(x, 'tcp')[:, 2, 3]

share = np.abs(forces).max(axis=0) / crane.limits.effort
for name, part in zip(crane.actuators, share):
    print(f'{name:14s} at most {100 * part:.0f} % of its limit')
print(f'the tip is between {height.min():.2f} and {height.max():.2f} m above the base')
assert (share < 1.0).all()
