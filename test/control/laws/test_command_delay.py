"""Laws and checks where an actuator obeys a command only after `command_delay`."""

from collections import deque

import numpy as np
import pytest

from psdyn_ros.control import ClosedLoop, ControllerConfig, State, Waypoints, assemble
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.tools.studies.second_plant import SecondPlant

URDF = find_machine('hiab_xs031')
HYDRAULICS, SAFETY = (find_config(f'hiab_xs031_{name}.yaml') for name in ('hydraulics', 'safety'))


class LatePlant:
    """Gives a plant each command so many steps later."""

    def __init__(self, plant, steps):
        self._plant, self._waiting, self._steps = plant, deque(), steps

    def __getattr__(self, name):
        return getattr(self._plant, name)

    def step(self, command, dt):
        self._waiting.append(command if command is None else command.copy())
        self._plant.step(self._waiting.popleft() if len(self._waiting) > self._steps else command, dt)


def moved(law, hydraulics, rate, delay):
    """(largest error in motion, that at its end) [m or rad], and reasons of a crane whose commands are late."""
    config = ControllerConfig.from_files(URDF, hydraulics, safety=SAFETY, law=law, rate=rate,
                                         law_options={'delay': delay})
    names, start = config.machine.coordinates, config.machine.initial_position
    plant = LatePlant(SecondPlant(URDF, hydraulics, position=dict(zip(names, start))), round(delay * rate))
    loop = ClosedLoop(assemble(config), plant).start()
    goal = start + (0.3, 0.05, -0.05, 0.2)
    loop.send(Waypoints(names, [0.0, 4.0], [start, goal], np.zeros((2, 4)), np.zeros((2, 4))))
    record = loop.run(6.0).recording()
    assert record.state[-1] == State.HOLD, record.reasons
    return np.nanmax(np.abs(record.x - record.desired[:, 0])), np.abs(record.x[-1] - goal).max(), record.reasons


@pytest.mark.parametrize(('law', 'hydraulics', 'error', 'end'), [
    ('computed_torque', None, 2e-3, 1e-4), ('valve_computed_torque', HYDRAULICS, 4e-3, 3e-3),
    ('valve_pid', HYDRAULICS, 8e-3, 3e-3)])
def test_a_declared_delay_of_commands_is_no_fault(law, hydraulics, error, end):
    """60 ms: gains leave it room, and motion is compared with the command that acts."""
    largest, last, reasons = moved(law, hydraulics, 100.0, 0.06)
    assert not reasons and largest < error and last < end

