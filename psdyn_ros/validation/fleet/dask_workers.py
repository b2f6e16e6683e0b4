"""Validates bags on a Dask cluster: tasks that hand a bag to a process of their own, wherever they run.

Workers see the bags under the same paths, and have this package.  They, and the scheduler, run what they are sent: the
address should be one to be trusted (tls://HOST:PORT, with the certificates that Dask is configured for).
"""

import asyncio
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from ...model.errors import ModelError
from .process_pool import ClusterLost, Processes, Setup, unusable

CONNECT = 10.0              # s to reach a scheduler
POLL = 2.0                  # s without a result after which the cluster is looked at
PATIENCE = 60.0             # s without any worker after which there is no cluster
MISSING = '--scheduler needs dask and distributed; install them with `pip install dask distributed`'


def run_on_cluster(bags, setup, scheduler):
    """Yield the `Outcome` of each bag as it comes, from the workers of the scheduler at an address.

    Raises ModelError where dask is not installed, ClusterLost where no scheduler or no worker is there, or not any
    longer.
    """
    try:
        from distributed import CancelledError, Client, Security, TimeoutError, wait
        from distributed.comm import connect
    except ModuleNotFoundError as error:
        raise ModelError(f'{MISSING} ({error})') from error

    async def reach():
        # a client that does not get through is not to be had back in order to be closed
        comm = await connect(scheduler, timeout=CONNECT, **Security().get_connection_args('client'))
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as thread:       # where ours may have a loop that runs, as in a notebook
            thread.submit(lambda: asyncio.run(reach())).result()
        client = Client(scheduler, timeout=CONNECT, set_as_default=False)
    # transports say in many ways what is no address, and others than schedulers may answer
    except Exception as error:
        raise ClusterLost(f"no Dask scheduler answers at '{scheduler}' ({type(error).__name__}: {error}); expected an "
                          'address such as tcp://HOST:8786') from error
    try:
        # a task, since it is made again where a worker that has its result dies
        shared = client.submit(Setup._make, tuple(setup), pure=False)
        waiting = {client.submit(run_there, bag, shared, pure=False): bag for bag in bags}
        seen = time.monotonic()
        while waiting:
            try:
                with client.as_current():
                    done = wait(list(waiting), timeout=POLL, return_when='FIRST_COMPLETED').done
            except TimeoutError:
                if client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > PATIENCE:
                    raise ClusterLost(f"the Dask scheduler at '{scheduler}' has had no worker for {PATIENCE:g} s"
                                      ) from None
                continue
            seen = time.monotonic()
            for future in done:
                yield _outcome(future, waiting.pop(future))
    # without its scheduler what is waited for is cancelled
    except (CancelledError, OSError) as error:
        raise ClusterLost(f"the Dask scheduler at '{scheduler}' was lost ({error})") from error
    finally:
        # what waits in the cluster goes with its client; one that lost it may not get to say so
        with suppress(TimeoutError, OSError):
            client.close(timeout=POLL)


def _outcome(future, bag):
    error = future.exception()
    return future.result() if error is None else unusable(bag, f'its task failed: {type(error).__name__}: {error}')


def run_there(bag, setup):
    """Return the `Outcome` of a bag; runs on a worker."""
    if not os.path.exists(bag):
        return unusable(bag, f"bag '{bag}' does not exist on '{socket.gethostname()}', a worker of the cluster")
    return _processes().run(bag, setup)


@cache
def _processes():
    """Those of this worker, which end by themselves when there are no bags."""
    return Processes()
