"""Waits of executors are not prolonged when the wall clock is set back: the system tells, and the executor is woken."""

import errno
import os
import threading
import time

import pytest

from psdyn_ros.nodes.runtime import wall_clock_wakeup


def woken(condition):
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return True


def threads():
    return [thread for thread in threading.enumerate() if thread.name == 'clock steps']


def open_files():
    return set(os.listdir('/proc/self/fd'))


def test_a_timer_of_the_system_wakes_again_and_again_and_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(wall_clock_wakeup, 'FAR', 1)      # s: its end is told in the same way as a step
    wakes, files = [], open_files()
    with wall_clock_wakeup.woken_by_clock_steps(lambda: wakes.append(time.monotonic())) as works:
        assert works and len(threads()) == 1
        assert woken(lambda: len(wakes) >= 2)
    assert threads() == [] and open_files() == files


def test_nothing_is_woken_while_the_clock_runs_on():
    wakes = []
    with wall_clock_wakeup.woken_by_clock_steps(lambda: wakes.append(1)):
        pass
    assert wakes == [] and threads() == []


class Cancelled:
    """Reads of a timer that end with this error."""

    def __init__(self, monkeypatch, number):
        self.ready, self.step = os.pipe()
        self.number, self.reads, read = number, 0, os.read

        def failing(file, count):
            if file != self.ready:
                return read(file, count)
            read(file, count)
            self.reads += 1
            raise OSError(self.number, os.strerror(self.number))

        monkeypatch.setattr(wall_clock_wakeup, '_timer', lambda: self.ready)
        monkeypatch.setattr(wall_clock_wakeup.os, 'read', failing)


def test_a_step_of_the_clock_wakes(monkeypatch):
    armed, wakes = [], []
    monkeypatch.setattr(wall_clock_wakeup, '_arm', armed.append)
    timer = Cancelled(monkeypatch, errno.ECANCELED)
    with wall_clock_wakeup.woken_by_clock_steps(lambda: wakes.append(1)):
        for k in (1, 2, 3):
            os.write(timer.step, b'12345678')
            assert woken(lambda k=k: len(wakes) == k)
    assert armed == [timer.ready] * 3       # or the next step would go unnoticed
    os.close(timer.step)


def test_a_timer_that_fails_is_given_up(monkeypatch):
    timer, wakes = Cancelled(monkeypatch, errno.EIO), []
    with wall_clock_wakeup.woken_by_clock_steps(lambda: wakes.append(1)):
        os.write(timer.step, b'12345678')
        assert woken(lambda: threads() == [])
    assert wakes == [] and timer.reads == 1
    os.close(timer.step)


class Refusing:
    """A system without such timers, or one that cannot set them."""

    def __init__(self, timer):
        self._timer = timer

    def timerfd_create(self, clock, flags):
        return os.open(os.devnull, os.O_RDONLY) if self._timer else -1

    def timerfd_settime(self, *arguments):
        return -1


@pytest.mark.parametrize('libc', [object(), Refusing(False), Refusing(True)])
def test_where_the_system_does_not_tell_that_is_said(monkeypatch, libc):
    monkeypatch.setattr(wall_clock_wakeup, '_libc', lambda: libc)
    files = open_files()
    with wall_clock_wakeup.woken_by_clock_steps(lambda: None) as works:
        assert works is False and threads() == []
    assert open_files() == files
