"""How do small motions about a posture behave?  A linear model with names, for any tool that takes A, B, C, D."""
import numpy as np
from scipy.signal import StateSpace, step

import psdyn_ros

crane = psdyn_ros.load('hiab_xs031')
x = crane.initial_position
model = crane.linearize(x, np.zeros(crane.dof), crane.gravity_forces(x), outputs=['lift_boom/position'])
print(model)                                    # shapes, names, units
column = model.inputs.index('lift_cylinder/effort')
t, angle = step(StateSpace(model.A, model.B[:, [column]], model.C, model.D[:, [column]]), T=np.linspace(0.0, 0.05, 50))
print(f'1 N more on the lift cylinder turns the boom by {angle[-1]:.2e} rad in {t[-1]:.2f} s')
assert abs(angle[-1]) > 0.0
