"""Processes of nodes do not outlive the command that starts them, whenever a signal ends it."""

import os
import signal
import subprocess
import time

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from psdyn_ros.tools.demo.processes import NodeProcesses, environment, free_domain  # noqa: E402
from psdyn_ros.tools.demo.session import own_node, terminable  # noqa: E402

SLEEP = 'timeit', 'import time; time.sleep(60)'


def test_signal_while_a_process_starts_does_not_leave_it_behind(tmp_path, monkeypatch):
    started = []

    class InterruptedPopen(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)

    monkeypatch.setattr(subprocess, 'Popen', InterruptedPopen)
    with pytest.raises(KeyboardInterrupt), terminable(), NodeProcesses(tmp_path) as processes:
        processes.start('sleeper', *SLEEP)
    assert [process.returncode is not None for process in started] == [True]


def test_signal_while_processes_stop_does_not_leave_them_behind(tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt), terminable(), NodeProcesses(tmp_path) as processes:
        started = [processes.start(name, *SLEEP) for name in ('first', 'second')]
        with monkeypatch.context() as patch:
            patch.setattr('psdyn_ros.tools.demo.processes._wait', lambda *_: signal.raise_signal(signal.SIGTERM))
            processes.stop()
    assert [process.returncode is not None for process in started] == [True, True]


def test_signal_within_llvm_interrupts_after_it():
    scope, returned = {}, []
    text = 'def callback(call):\n    call()\n    return True'
    exec(compile(text, '/any/llvmlite/binding/callbacks.py', 'exec'), scope)
    with pytest.raises(KeyboardInterrupt), terminable():
        returned.append(scope['callback'](lambda: signal.raise_signal(signal.SIGTERM)))
        time.sleep(30.0)
    assert returned == [True]


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_callback_interrupts_after_it(monkeypatch, tmp_path, number):
    domain, finished = free_domain(), []
    for name, value in environment(domain, tmp_path).items():
        monkeypatch.setenv(name, value)

    def callback():
        signal.raise_signal(number)
        finished.append(True)

    with pytest.raises(KeyboardInterrupt), own_node(domain) as (node, spin_once):
        node.create_timer(0.001, callback)
        for _ in range(100):
            spin_once(timeout_sec=1.0)
    assert finished
