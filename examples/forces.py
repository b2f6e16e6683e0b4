"""Which cylinder forces does a motion need, and which motion do these forces make?  Vectors go by name."""
import psdyn_ros

crane = psdyn_ros.load('hiab_xs031')
x = {'slew': 0.3, 'lift_cylinder': 0.2, 'tilt_cylinder': 0.3, 'telescope': 0.5}         # rad, m
xd = {'slew': 0.1, 'lift_cylinder': 0.05, 'tilt_cylinder': 0.0, 'telescope': 0.1}
xdd = dict.fromkeys(crane.coordinates, 0.2)

f = crane.inverse_dynamics(x, xd, xdd)
for name, force, unit in zip(crane.actuators, f, crane.axes['f'].units):
    print(f'{name:14s} {force:9.0f} {unit}')

# forward dynamics is its inverse
assert abs(crane.forward_dynamics(x, xd, f) - 0.2).max() < 1e-9
