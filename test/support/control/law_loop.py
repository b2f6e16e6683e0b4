"""A law on a plant without a core: some laws are measured by themselves, which checks of the core would stop."""

import numpy as np

from psdyn_ros.tools.studies.tracking_runs import PERIOD, PlainSensors


def tracked(law, plant, waypoints, seconds, late=1):
    """(N, dof) differences [m, rad] between motion and reference at the end of each period; fewer where it fails.

    late  periods between a measurement and the command that answers it
    """
    sensors, measured, errors = PlainSensors(), [], []
    law.hold(waypoints.positions[0])
    law.reference.follow(waypoints, 0.0)
    for k in range(round(seconds / PERIOD)):
        measured.append(sensors.read(plant))
        seen = max(0, k - late)
        plant.step(law.update(seen * PERIOD, *measured[seen], age=(k - seen) * PERIOD), PERIOD)
        if plant.fault:
            break
        errors.append(plant.x - law.reference.ahead((k + 1) * PERIOD)[0])
    return np.array(errors)
