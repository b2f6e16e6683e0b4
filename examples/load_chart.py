"""How much does the crane lift, at which reach?  The chart on its cabin, by the pressure of its pump."""
import numpy as np

import psdyn_ros
from psdyn_ros.control import read_hydraulics
from psdyn_ros.model.locate import machine_config

crane = psdyn_ros.load('hiab_xs031')
hydraulics = read_hydraulics(machine_config('hiab_xs031', 'hydraulics'), crane.actuators)
chart = crane.load_chart('tcp', hydraulics=hydraulics, nodes=(8, 8))
for reach, mass in zip(chart.reach, chart.capacity()):
    print(f'{reach:5.2f} m  {mass:6.0f} kg')
weak = crane.load_chart('tcp', hydraulics=hydraulics, pressure=10e6, nodes=(8, 8))
# less pressure, less mass
assert np.nansum(weak.capacity()) < np.nansum(chart.capacity())
