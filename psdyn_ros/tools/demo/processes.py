"""Nodes as processes of their own, on a ROS domain of their own, that do not outlive who started them."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from ...nodes.runtime.realtime import ONE_THREAD

DOMAINS = range(1, 102)             # clear of 0, and of the ports that Linux hands out by itself
PARTICIPANTS = 10                   # of a domain that are looked for
PATIENCE = 3.0                      # s for a process to end after each signal
STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_claims = {}                        # domain -> the socket that claims it, until this process ends


def free_domain():
    """Return a ROS domain that no other process uses or has claimed by this function; not that of the environment."""
    domains = list(DOMAINS)
    shift = os.getpid() % len(domains)
    for domain in domains[shift:] + domains[:shift]:
        if str(domain) != os.environ.get('ROS_DOMAIN_ID') and _is_claimed(domain) and _is_free(domain):
            return domain
    raise RuntimeError(f'no ROS domain from {DOMAINS.start} to {DOMAINS.stop - 1} is free')


def _is_claimed(domain):
    """Claim a domain; return whether this process has it."""
    if domain not in _claims:
        # a name without a file ends with its process, and belongs to no user
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f'\0psdyn_ros_domain_{domain}')
        except OSError:
            claim.close()
            return False
        _claims[domain] = claim
    return True


def environment(domain, log_folder):
    """The variables that keep nodes to themselves, as a dictionary: domain, this computer only, their logs."""
    return {'ROS_DOMAIN_ID': str(domain), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_LOG_DIR': str(log_folder)}


@contextmanager
def exported(variables):
    """The variables in the environment of this process, and as they were afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class NodeProcesses:
    """Modules of this package run as processes; leaving the `with` block ends them all.

    folder  where each writes what it has to say, <name>.log
    """

    def __init__(self, folder):
        self._folder = Path(folder)
        self._processes = {}        # name -> Popen
        # signals interrupt the main thread only: no process exists that is not yet in the dictionary
        self._starter = ThreadPoolExecutor(max_workers=1)
        # its thread is there before it has work: one that a signal interrupts the start of is not waited for
        self._starter.submit(int).result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._starter.shutdown()
        self.stop()

    def start(self, name, module, *arguments):
        """Run `python -m module arguments`; returns the process."""
        return self._starter.submit(self._start, name, module, *arguments).result()

    def _start(self, name, module, *arguments):
        root = Path(__file__).resolve().parents[3]
        path = os.pathsep.join(filter(None, [str(root), os.environ.get('PYTHONPATH')]))
        with open(self.log(name), 'wb') as log:
            # A session of its own: Ctrl-C in the terminal reaches us only, and we end the nodes in order.
            self._processes[name] = subprocess.Popen(
                [sys.executable, '-m', module, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**ONE_THREAD, **os.environ, 'PYTHONPATH': path}, start_new_session=True)
        return self._processes[name]

    def log(self, name):
        """Where the process writes."""
        return self._folder / f'{name}.log'

    def names(self):
        """Names of the processes that were started and not stopped."""
        return list(self._processes)

    def ended(self):
        """Names of the processes that have ended by themselves."""
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def signal(self, name, number=signal.SIGINT):
        """Send a signal to a process that has not ended."""
        self._processes[name].send_signal(number)

    def stop(self):
        """End all of them, the last one started first; returns their exit codes by name."""
        codes = {}
        for name in reversed(list(self._processes)):
            process = self._processes[name]
            for number in STOP:
                if process.poll() is None:
                    process.send_signal(number)
                    _wait(process, PATIENCE)
            codes[name] = process.wait()
            del self._processes[name]
        return codes


def _wait(process, seconds):
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def _is_free(domain):
    """Return whether the unicast ports of the first participants of the domain (RTPS 9.6.1.1) can be bound."""
    for participant in range(PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', 7400 + 250 * domain + 10 + 2 * participant))
            except OSError:
                return False
    return True
