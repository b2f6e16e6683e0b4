#!/usr/bin/env python3
"""Fill a cold cache of compiled kernels, in two processes; answer at once where it is warm.

Processes that begin together on a cold cache would each compile the same kernels.
"""

import subprocess
import sys

import numpy as np

from psdyn_ros import load
from psdyn_ros.campaign.bench import LEVELS, Bench, make_machine
from psdyn_ros.kernels.compiler import cache_is_warm, compiled
from psdyn_ros.model.locate import find_machine

CRANE, GENERAL = 'hiab_xs031', 'excavator'
GROUPS = 'closed_form', 'hydraulic', 'general', 'hydraulic_general'      # of `api.warm_up`


def control(name):
    """Plant and control law at each level."""
    for level in LEVELS:
        Bench(make_machine(level, name), seed=1).turn()


def derive(name):
    m = load(find_machine(name))
    zero = np.zeros(m.dof)
    m.inverse_dynamics_derivatives(m.initial_position, zero, zero)
    m.forward_dynamics_derivatives(m.initial_position, zero, np.zeros(len(m.actuators)))


def crane():
    control(CRANE)
    derive(CRANE)


JOBS = {'crane': crane, 'loops': lambda: load(find_machine(GENERAL)),
        'control of loops': lambda: control(GENERAL), 'derivatives of loops': lambda: derive(GENERAL)}
# jobs that go side by side; the second round calls what the first one has compiled
ROUNDS = ('crane', 'loops'), ('derivatives of loops', 'control of loops')


def main(jobs):
    """Do the jobs that are named; where none is, all of them, each in a process of its own, if the cache is cold."""
    if jobs:
        for job in jobs:
            JOBS[job]()
        return 0
    if not compiled or all(map(cache_is_warm, GROUPS)):
        return 0
    for side_by_side in ROUNDS:
        processes = [subprocess.Popen([sys.executable, __file__, job]) for job in side_by_side]
        code = max([abs(process.wait()) for process in processes])
        if code:
            return code
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
