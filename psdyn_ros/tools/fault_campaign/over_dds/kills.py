"""kill -9 and SIGSTOP of the controller at random phases: when the receiver is safe, and what moves afterwards."""

import multiprocessing
import os
import signal
import time
from typing import NamedTuple

import numpy as np

from ....control.safety.fault_table import State
from .bench import WireError

KILLED, STOPPED, PAUSED, HELD_UP = 'kill -9', 'SIGSTOP', 'SIGSTOP, short', 'stopped before publishing'
STOPS = STOPPED, PAUSED, HELD_UP        # in turn
STOP_EVERY = 5          # of so many cycles one stops the process instead of killing it
MODULES = {HELD_UP: 'psdyn_ros.tools.fault_campaign.over_dds.late_command'}
SIGNALS = {KILLED: signal.SIGKILL, HELD_UP: signal.SIGUSR1}     # else SIGSTOP
MOVED = 0.005           # m or rad that count as a motion
# at rest: no farther in so many s, with shut valves, whose chambers take a second or two to even out
STILL, STILL_TIME, MAX_WAIT_S = 0.0002, 0.2, 6.0
HANG = (0.3, 1.0)       # s for which a process is stopped, beyond that
# s, the same, and m or rad, of stops so short that nobody takes the process for dead, and what it says is heard; the
# machine is not quite at rest yet
SHORT_SETTLED, SHORT_HANG, SHORT_MOVED = 0.2, (0.05, 0.15), 0.01
RUNNING = (0.2, 0.8)    # s of motion before
AFTERWARDS = 0.5        # s that are watched after a process went on
REDISCOVERY = 3.0       # s in which those who took it for dead find it again
NULL_PERIOD = 0.002     # s
MAX_ABANDONED = 5       # controllers that stop by themselves, beyond one for each cycle


class Kill(NamedTuple):
    """One cycle."""

    way: str      # KILLED, or one of STOPS
    seconds: float | None      # from the signal to the safe output of all cylinders; None: it did not come
    moved: float      # m or rad, most, between rest and the next reference
    moved_by: str      # what was going on when it moved
    refused: int      # late commands that the receiver refused, of a process that went on
    first: str | None
    """State of the first whole cycle of such a process; '': it told none, None: it was killed."""


class NullLoop:
    """A process that only sleeps and wakes up, in the same minutes: how late is this computer by itself?"""

    def __enter__(self):
        context = multiprocessing.get_context('spawn')
        self._end, self._worst = context.Event(), context.Array('d', 3)
        self._process = context.Process(target=_sleep, args=(self._end, self._worst), daemon=True)
        self._process.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._process.join(5.0)
        if self._process.is_alive():
            self._process.terminate()

    @property
    def worst(self):
        """s by which a wake-up was late at most."""
        return self._worst[0]

    @property
    def wakes(self):
        return int(self._worst[1])

    @property
    def late(self):
        """Wake-ups that were late by a period or more."""
        return int(self._worst[2])


def _sleep(end, worst):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    due = time.monotonic()
    while not end.is_set():
        due += NULL_PERIOD
        time.sleep(max(0.0, due - time.monotonic()))
        late = time.monotonic() - due
        worst[0] = max(worst[0], late)
        worst[1] += 1
        if late >= NULL_PERIOD:
            worst[2] += 1
            due += NULL_PERIOD * int(late / NULL_PERIOD)


def run(bench, cycles, seed, progress=lambda text: None):
    """Yield a `Kill` for each cycle on a `WireBench`.

    A controller that stops by itself before its signal, as on a computer that stalls, is replaced and counted in
    `bench.abandoned`; WireError where most do.
    """
    rng = np.random.default_rng(seed)
    present, ready = _start_controller(bench), _start_controller(bench)
    at_rest, done = None, 0         # where the machine stood when it had come to rest
    while done < cycles:
        try:
            kill, at_rest = _cycle(bench, present, rng, at_rest)
        except WireError:
            bench.abandoned += 1
            if bench.simulator_ended() or bench.abandoned > cycles + MAX_ABANDONED:
                raise
            kill, at_rest = None, None
        present.end()
        if kill is not None:
            done += 1
            progress(f'cycle {done} of {cycles}')
            yield kill
        if done < cycles:       # none is ready in the place of the last one, should that stop by itself
            present = ready or _start_controller(bench)
            ready = _start_controller(bench) if done + 1 < cycles else None
    if ready:
        ready.end()


def _start_controller(bench):
    """The next controller, whose `way` says how it will end."""
    count, last = divmod(bench.number, STOP_EVERY)
    way = STOPS[count % len(STOPS)] if last == STOP_EVERY - 1 else KILLED
    controller = bench.start_controller(module=MODULES.get(way, 'psdyn_ros.nodes.controller.node'))
    controller.way = way
    return controller


def _cycle(bench, controller, rng, at_rest):
    """(`Kill` of a controller that drives the machine, where that stands afterwards)."""
    bench.until(lambda: controller.is_up, 60.0, f'{controller.name} to come up')
    controller.configure()
    controller.activate()
    motions = [_moved(bench, at_rest, MOVED, 'a new process, active')]
    controller.enable()
    bench.through(0.05)
    motions.append(_moved(bench, at_rest, MOVED, 'a new process, enabled'))
    if {State.RUN, State.DEGRADED} & controller.states:
        motions.append((np.inf, 'a new process ran without a reference'))
    controller.follow(bench.motion(rng))
    bench.until(lambda: not bench.safe.any(), 10.0, 'the receiver to obey')
    bench.through(rng.uniform(*RUNNING))
    if controller.state in (State.STOPPING, State.SAFE) or bench.safe.any():
        raise WireError(f'{controller.name} stopped by itself')
    time.sleep(rng.uniform(0.0, 2.0 * NULL_PERIOD))     # anywhere in a period
    way = controller.way
    seconds = _signalled(bench, controller, SIGNALS.get(way, signal.SIGSTOP))
    soon = way in (PAUSED, HELD_UP)
    if soon:
        bench.through(SHORT_SETTLED)
        if os.waitid(os.P_PID, controller.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
            # it gave no command since
            raise WireError(f'{controller.name} stopped by itself')
    else:
        _come_to_rest(bench)
    stood, refused, first = bench.position.copy(), 0, None
    if way != KILLED:
        refused, first = _go_on(bench, controller, rng.uniform(*SHORT_HANG if soon else HANG), way == HELD_UP)
        motions.append(_moved(bench, stood, SHORT_MOVED if soon else MOVED, 'the process that had been stopped'))
        if controller.state in (State.RUN, State.DEGRADED):     # as it said after it went on
            motions.append((np.inf, 'the process that had been stopped went on with its reference'))
        _come_to_rest(bench)
        stood = bench.position.copy()
    farthest = max(moved for moved, _ in motions)
    return Kill(way, seconds, farthest, next((by for _, by in motions if by), ''), refused, first), stood


def _come_to_rest(bench):
    """Wait until the machine stands still, or could have."""
    end, moved = time.monotonic() + MAX_WAIT_S, np.inf
    while moved > STILL and time.monotonic() < end:
        before = bench.position.copy()
        bench.through(STILL_TIME)
        moved = np.abs(bench.position - before).max()


def _signalled(bench, controller, number):
    """Send a signal; s until all cylinders are at their safe outputs."""
    if controller.process.poll() is not None:
        raise WireError(f'{controller.name} ended by itself:\n{bench.said(controller.name)}')
    sent = time.time_ns()
    controller.process.send_signal(number)
    bench.watch(sent)
    bench.within(lambda: bench.first_safe is not None, 5.0)
    return None if bench.first_safe is None else (bench.first_safe - sent) * 1e-9


def _go_on(bench, controller, seconds, late):
    """Let a stopped process go on after so many; (commands of it that were refused, state of its first whole cycle).

    late: whether a command comes late, of whose refusal the receiver reports now and then
    """
    bench.through(seconds)
    before = bench.rejected()
    controller.state, controller.reported = None, []
    controller.process.send_signal(signal.SIGCONT)
    bench.within(lambda: controller.state is not None, REDISCOVERY)
    bench.through(AFTERWARDS)
    if late:
        bench.within(lambda: bench.rejected() > before, REDISCOVERY)
    # the very first may report the cycle in which it was stopped
    first = next((state for state in controller.reported[:2] if state in (State.STOPPING, State.SAFE)),
                 controller.state)
    return bench.rejected() - before, '' if first is None else first.name


def _moved(bench, at_rest, most, by):
    """(m or rad by which the machine is away from where it stood, what is to blame if it is more than `most`)."""
    if at_rest is None:
        return 0.0, ''
    away = float(np.abs(bench.position - at_rest).max())
    return away, by if away > most else ''
