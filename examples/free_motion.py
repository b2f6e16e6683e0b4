"""Does the model keep its energy?  The crane falls without friction for two seconds; a table for pandas."""
import numpy as np

import psdyn_ros
from psdyn_ros.api.hydraulics.statics import frictionless
from psdyn_ros.simulation.offline import simulate

crane = frictionless(psdyn_ros.load('hiab_xs031'))
rest = np.zeros(crane.dof)
motion = simulate(crane, crane.initial_position, rest, np.linspace(0.0, 0.2, 41), effort=rest)
print(motion)
drift = np.ptp(motion.energy)
print(f'energy changes by {drift:.1e} J of {motion.kinetic.max():.0f} J in motion; loops open by '
      f'{motion.closure.max():.0e} m')
assert drift < 1e-6 * motion.kinetic.max() and motion.closure.max() < 1e-9
