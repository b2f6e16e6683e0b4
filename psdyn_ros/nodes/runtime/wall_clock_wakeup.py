"""Ends a wait of an executor when the wall clock is set.

Executors wait on the wall clock where they were built for an old C library, as in the wheels on PyPI: set back by an
hour during a wait, it would make that wait an hour longer unless a message came. Linux tells a thread of the step, by a
timer that is cancelled by it (timerfd_create(2)); until then the thread sleeps.
"""

import ctypes
import errno
import os
import select
import threading
import time
from contextlib import contextmanager

CLOSE_ON_EXEC = 0o2000000
ABSOLUTE, CANCEL_ON_SET = 1, 2
FAR = 10 * 365 * 86400          # s until the timer ends by itself


class _Times(ctypes.Structure):
    """A struct itimerspec."""

    _fields_ = [(name, ctypes.c_long) for name in ('interval', 'interval_ns', 'seconds', 'ns')]


@contextmanager
def woken_by_clock_steps(wake):
    """Call `wake()` from a thread whenever the wall clock is set, as long as the context lasts.

    Yields whether that is so; where the system does not tell of steps it is not.
    """
    timer = _timer()
    if timer is None:
        yield False
        return
    ended, end = os.pipe()
    thread = threading.Thread(target=_watch, args=(timer, ended, wake), name='clock steps', daemon=True)
    thread.start()
    try:
        yield True
    finally:
        os.close(end)
        thread.join()
        os.close(ended)
        os.close(timer)


def _timer():
    """A timer that tells of steps of the wall clock, as a file; None where there is no such thing."""
    try:
        timer = _libc().timerfd_create(time.CLOCK_REALTIME, CLOSE_ON_EXEC)
    except (OSError, AttributeError):
        return None
    if timer < 0:
        return None
    if _arm(timer):
        return timer
    os.close(timer)
    return None


def _arm(timer):
    times = _Times(0, 0, int(time.time()) + FAR, 0)
    return _libc().timerfd_settime(timer, ABSOLUTE | CANCEL_ON_SET, ctypes.byref(times), None) == 0


def _watch(timer, ended, wake):
    waiting = select.poll()
    for file in (timer, ended):
        waiting.register(file, select.POLLIN)
    while True:
        if any(file == ended for file, _ in waiting.poll()):
            return
        try:
            os.read(timer, 8)
        except OSError as error:
            if error.errno != errno.ECANCELED:
                return
        _arm(timer)
        wake()


def _libc():
    return ctypes.CDLL(None, use_errno=True)
