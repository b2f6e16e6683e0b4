"""A sound machine whose sensors are worse than those of the second plant: coarse, noisy, or without velocities."""

import math

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.model.locate import find_machine
from psdyn_ros.tools.fault_campaign import bench
from psdyn_ros.tools.fault_campaign.motion_trials import false_stops
from psdyn_ros.tools.studies.second_plant import SecondPlant, Sensors

FINE = Sensors()
COARSE = Sensors(angle_quantum=2.0 * math.pi / 2**12, length_quantum=5e-4)
NOISY = Sensors(angle_noise=2.0 * FINE.angle_noise, length_noise=2.0 * FINE.length_noise,
                angle_rate_noise=2.0 * FINE.angle_rate_noise, length_rate_noise=2.0 * FINE.length_rate_noise,
                pressure_noise=2.0 * FINE.pressure_noise)


class Differentiated(SecondPlant):
    """Velocities are differences of positions, smoothed over 8 ms."""

    def reset(self):
        super().reset()
        self._before, self._rates = super().measure()[0], np.zeros(len(self.actuators))

    def step(self, command, dt):
        super().step(command, dt)
        before, self._before = self._before, super().measure()[0]
        left = math.exp(-dt / 0.008)
        self._rates = left * self._rates + (1.0 - left) * (self._before - before) / dt

    def measure(self):
        x, _, *others = super().measure()
        return x, self._rates, *others


@pytest.mark.parametrize(('plant', 'sensors', 'level', 'rate', 'seconds', 'seed'), thorough([
    (SecondPlant, COARSE, 'effort', 200.0, 60.0, 1), (SecondPlant, COARSE, 'valve', 200.0, 60.0, 1),
    (Differentiated, FINE, 'effort', 500.0, 60.0, 1), (Differentiated, FINE, 'valve', 200.0, 60.0, 1),
    (SecondPlant, NOISY, 'effort', 200.0, 90.0, 1), (SecondPlant, NOISY, 'valve', 100.0, 90.0, 1)], 1, several=True),
    ids=['12 bits', '12 bits, valves', 'differentiated', 'differentiated, valves', 'noisy', 'noisy, valves'])
def test_sound_machine_is_not_stopped(monkeypatch, plant, sensors, level, rate, seconds, seed):
    monkeypatch.setattr(bench, 'NOISE', 0.0)        # nothing comes after the step of an encoder
    machine = bench.make_machine(level, plant='second', rate=rate)
    machine = machine._replace(plant=plant(
        find_machine('hiab_xs031'), machine.hydraulics, actuators=machine.manipulator.actuators, ttl=bench.TTL,
        sensors=sensors))
    assert false_stops(machine, seed, seconds) == []
