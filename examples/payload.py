"""What does a load change?  70 kg as a point mass on the tip: forces, and the first natural frequency of the slew."""
import psdyn_ros

crane = psdyn_ros.load('hiab_xs031')
loaded = crane.with_payload('tcp', 70.0)
x = crane.initial_position
for name, empty, full in zip(crane.actuators, crane.gravity_forces(x), loaded.gravity_forces(x)):
    print(f'{name:14s} {empty:9.0f} -> {full:9.0f}')
print(f'inertia about the slew: {crane.mass_matrix(x)[0, 0]:.0f} -> {loaded.mass_matrix(x)[0, 0]:.0f} kg m^2')
assert abs(loaded.total_mass - crane.total_mass - 70.0) < 1e-9
