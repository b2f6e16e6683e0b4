"""Real-time conditions: each is told as achieved or not, with reason and remedy, and none is claimed falsely."""

import ctypes
import errno
import gc
import mmap
import os
import subprocess
import sys

import pytest
from support.paths import ROOT

from psdyn_ros.nodes.runtime import realtime
from psdyn_ros.nodes.runtime.realtime import ENFORCE, OFF, PRIORITY, TRY, RealTimeError, achieve

NAMES = ['timer slack', 'one thread for linear algebra', 'garbage collection', 'memory locked', 'scheduling']


class Kernel:
    """What the module asks of the operating system; requests that it refuses have an errno."""

    def __init__(self, monkeypatch):
        self.errno, self.asked = {}, []
        self.policies, self.affinity = {}, {0, 1}
        self.capabilities, self.memlock = 1 << 14, 8 << 20
        for name in ('sched_setscheduler', 'sched_getscheduler', 'sched_getparam', 'sched_setaffinity',
                     'sched_getaffinity'):
            monkeypatch.setattr(realtime.os, name, getattr(self, name))
        monkeypatch.setattr(realtime, '_libc', lambda: self)
        monkeypatch.setattr(realtime, '_status', lambda key: {'CapEff': f'{self.capabilities:x}'}.get(key, '123 kB'))
        monkeypatch.setattr(realtime.resource, 'getrlimit', lambda what: (self.memlock, self.memlock))
        for name in ('collect', 'freeze', 'disable'):
            monkeypatch.setattr(realtime.gc, name, lambda *_, name=name: self.asked.append((f'gc.{name}',)))

    def _answer(self, name, *arguments):
        self.asked.append((name, *arguments))
        if name in self.errno:
            ctypes.set_errno(self.errno[name])
            return -1
        return 0

    def prctl(self, option, value):
        return self._answer('prctl', option, value.value)

    def mallopt(self, option, value):
        return 1 + self._answer('mallopt', option, value)

    def mlockall(self, flags):
        return self._answer('mlockall', flags)

    def _raise(self, name, *arguments):
        if self._answer(name, *arguments):
            raise OSError(self.errno[name], os.strerror(self.errno[name]))

    def sched_setscheduler(self, task, policy, parameter):
        self._raise('sched_setscheduler', task, policy, parameter.sched_priority)
        self.policies[task] = policy, parameter.sched_priority

    def sched_getscheduler(self, task):
        return self.policies[realtime.threading.get_native_id()][0]

    def sched_getparam(self, task):
        return os.sched_param(self.policies[realtime.threading.get_native_id()][1])

    def sched_setaffinity(self, task, cpus):
        self._raise('sched_setaffinity', task, tuple(cpus))
        self.affinity = set(cpus)

    def sched_getaffinity(self, task):
        return self.affinity


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


def by_name(measures):
    return {measure.name: measure for measure in measures}


def test_everything_achieved(kernel):
    measures = achieve(ENFORCE, 50, '1')
    assert [measure.name for measure in measures] == [*NAMES[:3], 'processors', *NAMES[3:]]
    assert all(measure.achieved and not measure.remedy for measure in measures)
    assert ('mlockall', realtime.CURRENT | realtime.FUTURE) in kernel.asked and kernel.affinity == {1}
    assert ('gc.disable',) in kernel.asked and ('prctl', 29, 1) in kernel.asked
    me = realtime.threading.get_native_id()
    assert kernel.policies.pop(me) == (os.SCHED_FIFO, 50)
    assert set(kernel.policies.values()) <= {(os.SCHED_FIFO, 50 - realtime.BELOW)}
    assert str(measures[-1]).startswith('scheduling: yes, SCHED_FIFO 50')


def test_the_other_threads_of_the_process_come_below(kernel, monkeypatch):
    me = realtime.threading.get_native_id()
    monkeypatch.setattr(realtime.os, 'listdir', lambda path: [str(me), '900001', '900002'])
    assert '2 other threads 40' in achieve(TRY)[-1].detail
    assert kernel.policies == {me: (os.SCHED_FIFO, 45), 900001: (os.SCHED_FIFO, 40), 900002: (os.SCHED_FIFO, 40)}


def test_a_thread_that_has_ended_is_no_reason_to_fail(kernel, monkeypatch):
    me = realtime.threading.get_native_id()
    before = kernel.sched_setscheduler

    def gone(task, policy, parameter):
        if task != me:
            raise ProcessLookupError
        before(task, policy, parameter)

    monkeypatch.setattr(realtime.os, 'listdir', lambda path: [str(me), '900001'])
    monkeypatch.setattr(realtime.os, 'sched_setscheduler', gone)
    assert achieve(TRY)[-1].achieved


def test_off_asks_for_nothing_that_needs_a_privilege(kernel):
    assert [measure.name for measure in achieve(OFF)] == NAMES[:3]
    assert {what for what, *_ in kernel.asked} == {'prctl', 'gc.collect', 'gc.freeze'}


@pytest.mark.parametrize('call, number, name, words', [
    ('prctl', errno.EINVAL, 'timer slack', 'Invalid argument'),
    ('mlockall', errno.ENOMEM, 'memory locked', 'RLIMIT_MEMLOCK is 8192 KiB.*limits.d'),
    ('mlockall', errno.EPERM, 'memory locked', 'not permitted.*CAP_IPC_LOCK'),
    ('sched_setscheduler', errno.EPERM, 'scheduling', 'SCHED_FIFO 45: .*not permitted.*RLIMIT_RTPRIO.*CAP_SYS_NICE'),
    ('sched_setaffinity', errno.EINVAL, 'processors', r'\[7\]: .*Invalid argument.*some of 0 to'),
])
def test_what_is_refused_is_told_and_enforce_does_without_nothing(kernel, call, number, name, words):
    kernel.errno[call] = number
    measures = by_name(achieve(TRY, cpus=[7]))
    assert [which for which, measure in measures.items() if not measure.achieved] == [name]
    told = str(measures[name])
    assert told.startswith(f'{name}: NO, ') and measures[name].remedy
    with pytest.raises(RealTimeError, match=f'^realtime: enforce: not achieved: {name}: (?s:.*){words}'):
        achieve(ENFORCE, cpus=[7])


def test_enforce_names_everything_that_is_missing(kernel):
    kernel.errno.update(mlockall=errno.ENOMEM, sched_setscheduler=errno.EPERM)
    with pytest.raises(RealTimeError) as caught:
        achieve(ENFORCE)
    assert 'memory locked' in str(caught.value) and 'scheduling' in str(caught.value)
    assert str(caught.value).count('remedy') == 2


def test_a_finite_limit_is_no_lock_of_what_comes_later(kernel):
    kernel.capabilities = 0
    measure = by_name(achieve(TRY))['memory locked']
    assert ('mlockall', realtime.CURRENT) in kernel.asked       # with FUTURE, memory beyond the limit would fail later
    assert not measure.achieved and 'not what is asked for later' in measure.detail
    kernel.memlock = realtime.resource.RLIM_INFINITY
    assert by_name(achieve(TRY))['memory locked'].achieved


def test_a_kernel_that_pretends_is_found_out(kernel, monkeypatch):
    monkeypatch.setattr(realtime.os, 'sched_getscheduler', lambda task: os.SCHED_OTHER)
    assert not achieve(TRY)[-1].achieved
    monkeypatch.setattr(realtime.os, 'sched_getaffinity', lambda task: {0, 1})
    assert not realtime.pin([1]).achieved


def test_systems_without_these_calls(kernel, monkeypatch):
    for name in ('sched_setscheduler', 'sched_setaffinity'):
        monkeypatch.delattr(realtime.os, name)
    monkeypatch.setattr(realtime, '_libc', object)
    measures = by_name(achieve(TRY, cpus='0'))
    assert [name for name, measure in measures.items() if measure.achieved] == NAMES[1:3]


@pytest.mark.parametrize('arguments, words', [
    (('hard',), "'hard' is not a choice; expected one of off, try, enforce"),
    ((TRY, 100), 'priority 100: expected 6 to 99'), ((TRY, 5), 'priority 5: expected 6 to 99'),
    ((TRY, PRIORITY, '1;2'), "cpus '1;2': expected numbers such as 2,3"),
])
def test_nonsense_is_refused_whatever_the_level(kernel, arguments, words):
    with pytest.raises(RealTimeError, match=words):
        achieve(*arguments)


def test_memory_in_use_is_told():
    before = realtime.resident_memory()
    # fresh pages: an allocator would hand out memory that other tests have freed
    with mmap.mmap(-1, 32 << 20) as ballast:
        ballast.write(os.urandom(1 << 20) * 32)
        assert realtime.resident_memory() - before > 16 << 20
    assert realtime.resident_memory(os.getppid()) > 0
    assert realtime.resident_memory('none') == 0


def test_young_objects_are_collected_only_where_nobody_else_does():
    class Cycle:
        def __init__(self):
            self.me = self

    gc.collect()
    try:
        gc.disable()
        young = [Cycle() for _ in range(10)]
        del young
        before = gc.get_count()[0]
        realtime.collect_young()
        assert gc.get_count()[0] < before
    finally:
        gc.enable()


def python(code, **variables):
    """What a Python of its own prints that does not inherit ours."""
    kept = {name: value for name, value in os.environ.items() if name not in realtime.ONE_THREAD}
    run = subprocess.run([sys.executable, '-c', code], cwd=ROOT, env={**kept, **variables}, capture_output=True,
                         text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout


THREADS_AT_WORK = '''
import os, threading
import numpy as np
{before}
def spent():
    me = str(threading.get_native_id())
    return {{task: int(open(f'/proc/self/task/{{task}}/stat').read().rsplit(')', 1)[1].split()[11])
             for task in os.listdir('/proc/self/task') if task != me}}
before, a = spent(), np.ones((1500, 1500))
for _ in range(3):
    a @ a
print(len(before), sum(spent().values()) - sum(before.values()))
'''


def test_linear_algebra_has_one_thread_by_the_environment():
    others, _ = map(int, python(THREADS_AT_WORK.format(before='import psdyn_ros'), **realtime.ONE_THREAD).split())
    assert others == 0


@pytest.mark.long
def test_linear_algebra_has_one_thread_even_if_numpy_was_loaded_before():
    code = 'from psdyn_ros.nodes.runtime import realtime\nassert realtime.one_thread_for_algebra().achieved'
    _, ticks = map(int, python(THREADS_AT_WORK.format(before=code)).split())
    assert ticks == 0


def test_a_library_that_cannot_be_opened_is_told_and_not_achieved(monkeypatch):
    def refuse(path):
        raise OSError('permission denied')

    monkeypatch.setattr(realtime, '_loaded_libraries', lambda names: ['/root/libopenblas.so'])
    monkeypatch.setattr(realtime.ctypes, 'CDLL', refuse)
    measure = realtime.one_thread_for_algebra()
    assert not measure.achieved and 'libopenblas.so: cannot be opened (permission denied)' in str(measure)


UNPRIVILEGED = '''
import os, resource
import numpy as np
from psdyn_ros.nodes.runtime import realtime
for limit in (resource.RLIMIT_MEMLOCK, 14):         # 14: RLIMIT_RTPRIO
    resource.setrlimit(limit, (0, 0))
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(os.access(np.__file__, os.R_OK))
for measure in realtime.achieve('try'):
    print(measure)
try:
    realtime.achieve('enforce')
except realtime.RealTimeError as error:
    print(error)
'''


def test_without_privileges_a_real_kernel_refuses_and_that_is_told():
    readable, *lines = python(UNPRIVILEGED).splitlines()
    algebra = ' yes' if readable == 'True' else ' NO'
    assert [line.split(':')[1].split(',')[0] for line in lines[:5]] == [' yes', algebra, ' yes', ' NO', ' NO']
    assert ('one thread for linear algebra' in lines[5]) == (algebra == ' NO')
    assert lines[5].startswith('realtime: enforce: not achieved: ')
    assert 'memory locked' in lines[5] and 'rtprio' in lines[5]
