"""A batch of states over both cores: a thread pool over kernels that release the GIL, one scratch record each."""
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from ..kernels.rigid_body.records import WORK
from ..kernels.runtime.compiler import compiled

SMALLEST_CHUNK = 256        # below this a thread costs more than it saves


def cores():
    return len(os.sched_getaffinity(0))


@cache
def _pool(process):
    # keyed by the process, since threads do not survive a fork
    return ThreadPoolExecutor(cores(), thread_name_prefix='psdyn_batch')


def run_batch(kernel, mods, env, inputs, out):
    """Run `kernel` over the rows of the (N, dof) inputs into out; return (status, row) of the first failure."""
    rows = out.shape[0]
    chunks = min(4 * cores(), rows // SMALLEST_CHUNK) if compiled else 1
    if chunks <= 1:
        return kernel(mods, np.zeros(len(mods), WORK), env, *inputs, out, 0, rows)
    ends = [rows * i // chunks for i in range(chunks + 1)]
    results = _pool(os.getpid()).map(
        lambda first, last: kernel(mods, np.zeros(len(mods), WORK), env, *inputs, out, first, last),
        ends[:-1], ends[1:])
    # every chunk must have ended before `out` is handed back
    failures = [result for result in list(results) if result[0] != 0]
    return failures[0] if failures else (0, rows)
