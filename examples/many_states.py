"""In which of its positions can the machine hold itself?  Rows of states use all cores."""
import numpy as np

import psdyn_ros

crane = psdyn_ros.load('hiab_xs031')
x = crane.random_positions(2000, rng=1)         # within all limits, every loop closes
forces = crane.gravity_forces(x)                # (2000, actuators)
height = crane.link_pose(x, 'tcp')[:, 2, 3]

share = np.abs(forces) / crane.limits.effort
for name, part in zip(crane.actuators, share.max(axis=0)):
    print(f'{name:14s} up to {100 * part:.0f} % of its limit')
held = (share <= 1.0).all(axis=1)
print(f'{100 * held.mean():.0f} % of the positions are held; the tip is up to {height.max():.2f} m high')
assert 0.9 < held.mean() < 1.0
