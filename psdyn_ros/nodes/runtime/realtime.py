"""What a process may ask of the operating system so that its control loop is on time, each reported as achieved or not.

    achieve(TRY)        asks for all of it; what was refused is in the report, with the reason and the remedy
    achieve(ENFORCE)    raises RealTimeError where something was refused
    achieve(OFF)        only what needs no privilege and harms nobody

To be called when everything is made and compiled, by the thread of the control loop. That thread then has SCHED_FIFO at
`priority`; all other threads of the process, which are those of DDS, have it too, BELOW by a few, since a state that is
received late is as bad as a cycle that is late, but no flood of messages may keep the loop from running.
"""

import ctypes
import gc
import os
import resource
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from ...model.errors import PsdynError

OFF, TRY, ENFORCE = LEVELS = 'off', 'try', 'enforce'
PRIORITY = 45               # of the control loop; interrupt threads of PREEMPT_RT have 50
BELOW = 5                   # by which other threads of the process come after it
PRIORITIES = 1 + BELOW, 99
CURRENT, FUTURE = 1, 2      # flags of mlockall
TIMER_SLACK = 29            # PR_SET_TIMERSLACK
ARENA_TRIM, ARENA_MMAP = -1, -4     # M_TRIM_THRESHOLD, M_MMAP_MAX of mallopt
# in the names of files of linear algebra libraries; their functions that set and tell the number of threads
LIBRARIES = 'openblas', 'mkl_rt', 'gomp', 'libomp', 'iomp'
THREADS = {'openblas_set_num_threads': 'openblas_get_num_threads',
           'openblas_set_num_threads64_': 'openblas_get_num_threads64_',
           'scipy_openblas_set_num_threads': 'scipy_openblas_get_num_threads',
           'scipy_openblas_set_num_threads64_': 'scipy_openblas_get_num_threads64_',
           'MKL_Set_Num_Threads': 'MKL_Get_Max_Threads', 'omp_set_num_threads': 'omp_get_max_threads'}
# the same for libraries that are not loaded yet
ONE_THREAD = {f'{name}_NUM_THREADS': '1' for name in ('OPENBLAS', 'OMP', 'MKL')}


class RealTimeError(PsdynError):
    """Real-time conditions that were demanded and could not be had."""


class Measure(NamedTuple):
    """One thing that was asked for.

    name      what
    achieved  whether it holds, as read back where the system tells
    detail    what holds, or why not
    remedy    what makes it possible; '' where it is achieved
    """

    name: str
    achieved: bool
    detail: str
    remedy: str = ''

    def __str__(self):
        return f'{self.name}: {"yes" if self.achieved else "NO"}, {self.detail}' + (
            f' (remedy: {self.remedy})' if self.remedy else '')


def achieve(level, priority=PRIORITY, cpus=()):
    """Ask for what the level says; the measures that were asked for, as a tuple of `Measure`.

    level     one of LEVELS
    priority  6 to 99, of SCHED_FIFO
    cpus      numbers of the processors that the calling thread may run on, or a text such as '2,3'; empty: those it has

    Raises RealTimeError, with ENFORCE, that names what is missing and the remedy of each; what could be had stays.
    """
    cpus = check(level, priority, cpus)
    measures = [fine_timers(), one_thread_for_algebra(), collect_garbage(disable=level != OFF)]
    if level != OFF:
        if cpus:
            measures.append(pin(cpus))
        measures += [lock_memory(), schedule(priority)]
    missing = [measure for measure in measures if not measure.achieved]
    if level == ENFORCE and missing:
        raise RealTimeError('realtime: enforce: not achieved: ' + '; '.join(
            f'{m.name}: {m.detail}; remedy: {m.remedy}' for m in missing))
    return tuple(measures)


def check(level, priority, cpus):
    """The numbers of the processors; RealTimeError where an argument of `achieve` makes no sense."""
    if level not in LEVELS:
        raise RealTimeError(f"realtime: '{level}' is not a choice; expected one of {', '.join(LEVELS)}")
    if not PRIORITIES[0] <= priority <= PRIORITIES[1]:
        raise RealTimeError(f'realtime: priority {priority}: expected {PRIORITIES[0]} to {PRIORITIES[1]}')
    try:
        return [int(word) for word in (cpus.replace(',', ' ').split() if isinstance(cpus, str) else cpus)]
    except ValueError:
        raise RealTimeError(f"realtime: cpus '{cpus:.80}': expected numbers such as 2,3") from None


def fine_timers():
    """Let sleeps of this thread end when they are due: by default the kernel may be late by 50 µs to save wake-ups."""
    name = 'timer slack'
    try:
        if _libc().prctl(TIMER_SLACK, ctypes.c_ulong(1)) == 0:
            return Measure(name, True, '1 ns')
        reason = os.strerror(ctypes.get_errno())
    except (OSError, AttributeError) as error:
        reason = str(error)
    return Measure(name, False, reason, 'Linux')


def one_thread_for_algebra():
    """Let linear algebra libraries that are loaded work in the thread that calls them.

    `ONE_THREAD` in the environment counts only when set before numpy is loaded, and then also keeps such threads from
    being made; `NodeProcesses` sets it. This holds in any case.
    """
    found = {}
    for path in _loaded_libraries(LIBRARIES):
        try:
            library = ctypes.CDLL(path)
        except OSError as error:        # in a folder that this user cannot enter, after privileges were dropped
            found[Path(path).name] = f'cannot be opened ({error})'
            continue
        for put, get in THREADS.items():
            if hasattr(library, put):
                getattr(library, put)(1)
                found[Path(path).name] = getattr(library, get)()
    many = any(threads != 1 for threads in found.values())
    return Measure('one thread for linear algebra', not many, ', '.join(
        f'{name}: {threads}' for name, threads in found.items()) or 'no such library is loaded',
        'in the environment ' + ' '.join(f'{name}={value}' for name, value in ONE_THREAD.items()) if many else '')


def collect_garbage(disable):
    """Collect what is garbage, keep the rest out of later searches; disable: search no more by itself."""
    gc.collect()
    gc.freeze()
    if disable:
        gc.disable()
    return Measure('garbage collection', True, f'{gc.get_freeze_count()} objects out of it, '
                   + ('no more by itself' if disable else 'still by itself') + f', {kind_of_garbage_collection()}')


def kind_of_garbage_collection():
    """How this Python collects: 3.14.0 to 3.14.4 do it in increments, which was taken back."""
    return 'incremental' if (3, 14, 0) <= sys.version_info[:3] <= (3, 14, 4) else 'by generations'


def collect_young():
    """Collect the youngest objects, where garbage is not collected by itself: for a loop that is in STANDBY."""
    if not gc.isenabled():
        gc.collect(0)


def lock_memory():
    """Keep all memory of the process in RAM, what it asks for later too, and let malloc keep what it has."""
    name = 'memory locked'
    remedy = "'memlock unlimited' in /etc/security/limits.d for the user, or CAP_IPC_LOCK"
    try:
        libc = _libc()
        kept = libc.mallopt(ARENA_TRIM, -1) and libc.mallopt(ARENA_MMAP, 0)
        unlimited = _may_lock_all()
        if libc.mlockall(CURRENT | FUTURE if unlimited else CURRENT) != 0:
            return Measure(name, False, f'mlockall: {os.strerror(ctypes.get_errno())}; {_memlock()}', remedy)
    except (OSError, AttributeError) as error:
        return Measure(name, False, str(error), 'Linux with glibc')
    locked = _status('VmLck')
    if not unlimited:
        # what is mapped beyond the limit would fail later, in the midst of control
        return Measure(name, False, f'{locked}, but not what is asked for later: {_memlock()}', remedy)
    return Measure(name, True, f'{locked}' + ('' if kept else '; malloc gives memory back'))


def schedule(priority):
    """SCHED_FIFO for the calling thread, and BELOW for the other threads that the process has."""
    name, me = 'scheduling', threading.get_native_id()
    try:
        others = [int(task) for task in os.listdir('/proc/self/task') if int(task) != me]
        for task in others:
            _set_fifo(task, priority - BELOW)
        _set_fifo(me, priority)
        policy, has = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    except (OSError, AttributeError) as error:
        return Measure(name, False, f'SCHED_FIFO {priority}: {error}; {_rtprio()}', _schedule_remedy(error))
    if (policy, has) != (os.SCHED_FIFO, priority):
        return Measure(name, False, f'the kernel says policy {policy} priority {has}', 'a kernel that keeps its word')
    return Measure(name, True, f'SCHED_FIFO {priority}, {len(others)} other threads {priority - BELOW}')


def pin(cpus):
    """Let the calling thread run on these processors only; other threads stay where they may be."""
    name, cpus = 'processors', set(cpus)
    try:
        os.sched_setaffinity(0, cpus)
        has = os.sched_getaffinity(0)
    except (OSError, ValueError, AttributeError) as error:
        return Measure(name, False, f'{sorted(cpus)}: {error}', _processors())
    if has != cpus:
        return Measure(name, False, f'{sorted(has)} of {sorted(cpus)}', _processors())
    return Measure(name, True, f'{sorted(has)}')


def resident_memory(process='self'):
    """Memory of a process that is in RAM, bytes; 0 where the system does not tell.

    process  its number, or 'self'
    """
    try:
        return int(Path(f'/proc/{process}/statm').read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _set_fifo(task, priority):
    try:
        os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(priority))
    except ProcessLookupError:      # a thread that has ended since
        pass


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _loaded_libraries(names):
    """Paths of the shared objects of this process with one of the names in that of the file."""
    try:
        lines = Path('/proc/self/maps').read_text().splitlines()
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if '.so' in line and line.count('/'))
    return [path for path in paths if any(name in Path(path).name for name in names)]


def _status(key):
    """A line of /proc/self/status."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{key}:'):
            return ' '.join(line.split()[1:])
    return ''


def _may_lock_all():
    """Whether locked memory has no limit: CAP_IPC_LOCK, or RLIMIT_MEMLOCK unlimited."""
    capable = int(_status('CapEff') or '0', 16) >> 14 & 1
    return bool(capable) or resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY


def _memlock():
    return f'RLIMIT_MEMLOCK is {resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] >> 10} KiB'


def _rtprio():
    return f'RLIMIT_RTPRIO is {resource.getrlimit(resource.RLIMIT_RTPRIO)[0]}'


def _schedule_remedy(error):
    if isinstance(error, PermissionError) and os.geteuid() == 0:
        return 'CAP_SYS_NICE for the container, and a cpu cgroup that has real-time run time'
    return "'rtprio 98' in /etc/security/limits.d for the user, or CAP_SYS_NICE"


def _processors():
    return f'some of 0 to {os.cpu_count() - 1}, as far as the container or cgroup allows them'
