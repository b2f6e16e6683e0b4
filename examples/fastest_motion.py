"""How fast can a path be driven?  Timing within speeds, forces and the flow of the pump."""
import numpy as np

import psdyn_ros
from psdyn_ros.control import read_hydraulics
from psdyn_ros.control.offline.time_optimal import limits_of, plan
from psdyn_ros.model.locate import machine_config

crane = psdyn_ros.load('hiab_xs031')
hydraulics = read_hydraulics(machine_config('hiab_xs031', 'hydraulics'), crane.actuators)
limits = limits_of(crane, hydraulics, acceleration=np.full(crane.dof, 0.5))
start = crane.initial_position
fastest = plan(crane, [start, start + (0.5, 0.1, 0.05, 0.3), start + (1.0, 0.05, 0.1, 0.5)], limits)
print(fastest)
used = np.abs(fastest.xd).max(axis=0) / limits.velocity
print(f'{fastest.time[-1]:.2f} s; {crane.coordinates[used.argmax()]} uses {100 * used.max():.0f} % of its speed')
assert (used <= 1.0 + 1e-9).all()
