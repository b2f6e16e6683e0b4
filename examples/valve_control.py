"""Does the controller follow on valves?  The controller of the node around a simulated hydraulic plant, without ROS."""
import numpy as np

from psdyn_ros.control import ControllerConfig, State, Waypoints, assemble, follow, read_hydraulics
from psdyn_ros.model.locate import find_machine, machine_config
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant

oil, safety = (machine_config('hiab_xs031', what) for what in ('hydraulics', 'safety'))
config = ControllerConfig.from_files(find_machine('hiab_xs031'), oil, safety=safety)
crane = config.machine
plant = HydraulicPlant(crane, read_hydraulics(oil, crane.actuators), period=config.period)
start = plant.x.copy()
move = Waypoints(crane.coordinates, [0.0, 4.0], [start, start + (0.2, 0.05, -0.05, 0.2)], np.zeros((2, 4)),
                 np.zeros((2, 4)))
record = follow(assemble(config), plant, move, 5.0)

error = np.nanmax(np.abs(record.x - record.desired[:, 0]), axis=0)
for name, largest, unit in zip(crane.coordinates, error, crane.axes['x'].units):
    print(f'{name:14s} largest error {1e3 * largest:6.2f} m{unit}')
assert State(record.state[-1]) is State.HOLD and error.max() < 0.02
