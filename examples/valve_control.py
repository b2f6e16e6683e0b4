"""Does the controller follow on valves?  The controller of the node around a simulated hydraulic plant, without ROS."""
import numpy as np

from psdyn_ros.control import ControllerConfig, State, Waypoints, assemble, follow
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant

files = {name: find_config(f'hiab_xs031_{name}.yaml') for name in ('hydraulics', 'safety')}
config = ControllerConfig.from_files(find_machine('hiab_xs031'), **files)
crane = config.machine
plant = HydraulicPlant(crane, config.hydraulics, period=config.period)
start = plant.x.copy()
move = Waypoints(crane.coordinates, [0.0, 4.0], [start, start + (0.2, 0.05, -0.05, 0.2)], np.zeros((2, 4)),
                 np.zeros((2, 4)))
record = follow(assemble(config), plant, move, 5.0)

error = np.nanmax(np.abs(record.x - record.desired[:, 0]), axis=0)
for name, largest, unit in zip(crane.coordinates, error, crane.axes['x'].units):
    print(f'{name:14s} largest error {1e3 * largest:6.2f} m{unit}')
assert State(record.state[-1]) is State.HOLD and error.max() < 0.02
