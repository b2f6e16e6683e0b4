"""How heavy a load may a crane hold, how does it move, and what does a bag of it hold?"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

import psdyn_ros
from psdyn_ros.control.offline.time_optimal import limits_of
from psdyn_ros.simulation.offline import Motion, simulate
from psdyn_ros.simulation.plant import Plant


def largest_load(crane: psdyn_ros.Manipulator, link: str, step: float = 50.0) -> float:
    """Return the largest mass [kg] that the crane holds at its initial position."""
    mass = 0.0
    while bool(np.all(abs(crane.with_payload(link, mass + step).gravity_forces(crane.initial_position))
                      < crane.limits.effort)):
        mass += step
    return mass


def fall(crane: psdyn_ros.Manipulator, seconds: float) -> dict[str, float]:
    """Return where each coordinate is after a free motion."""
    times: npt.NDArray[np.float64] = np.linspace(0.0, seconds, 11)
    motion: Motion = simulate(crane, crane.initial_position, np.zeros(crane.dof), times)
    last = motion.x[-1]
    return {name: float(value) for name, value in zip(crane.coordinates, last)}


def main(bag: Path | None) -> int:
    """Print the answers; return the exit code."""
    crane = psdyn_ros.load('hiab_xs031')
    try:
        poses = crane.link_pose(crane.random_positions(5, np.random.default_rng(0)), 'tcp')
        print(f'{largest_load(crane, "tcp"):.0f} kg', fall(crane, 0.1), poses.shape, crane.limits.of('slew')['effort'])
        rest = crane.equilibrium(dict.fromkeys(crane.coordinates, 0.1))
        print(rest, rest.to_dict()['f'], crane.linearize(crane.initial_position, np.zeros(4), rest.f))
        plant = Plant(crane, period=0.002)
        plant.step(crane.gravity_forces(crane.initial_position), 0.002)
        print(plant.x.tolist(), limits_of(crane))
        if bag is not None:
            recorded = psdyn_ros.read_bag(bag)
            mean = None if recorded.joints.position is None else recorded.joints.position.mean(axis=0)
            print(recorded.joints.names, mean)
    except psdyn_ros.PsdynError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
