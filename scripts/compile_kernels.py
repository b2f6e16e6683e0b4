#!/usr/bin/env python3
"""Fill a cold cache of compiled kernels, in two processes; answer at once where it is warm.

Processes that begin together on a cold cache would each compile the same kernels.
"""

import subprocess
import sys

import numpy as np

from psdyn_ros import load
from psdyn_ros.api.compilation import HYDRAULIC, HYDRAULIC_LOOPS, LOOPS, TREE
from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.kernels.runtime.compiler import cache_is_warm, compiled
from psdyn_ros.tools.fault_campaign.bench import LEVELS, Bench, make_machine
from psdyn_ros.tools.fault_campaign.fault_trials import prepare

CRANE, GENERAL = 'hiab_xs031', 'excavator'
GROUPS = TREE, HYDRAULIC, LOOPS, HYDRAULIC_LOOPS


def derive(name):
    m = load(name)
    zero = np.zeros(m.dof)
    m.inverse_dynamics_derivatives(m.initial_position, zero, zero)
    m.forward_dynamics_derivatives(m.initial_position, zero, np.zeros(len(m.actuators)))


def crane():
    """Plant, checks and control law at each level, in motion, and derivatives."""
    for level in LEVELS:
        prepare(Bench(make_machine(level, CRANE), seed=1), State.RUN)
    derive(CRANE)


JOBS = {'crane': crane, 'loops': lambda: load(GENERAL),
        'plant of loops': lambda: make_machine('valve', GENERAL), 'derivatives of loops': lambda: derive(GENERAL)}
# jobs that go side by side; the second round calls what the first one has compiled
ROUNDS = ('crane', 'loops'), ('derivatives of loops', 'plant of loops')


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
