"""Under which conditions something was measured: machine, kernel, software, and what else went on meanwhile."""

import os
import platform
import re
from importlib.metadata import distributions
from pathlib import Path

import numpy as np

from ...kernels.runtime.compiler import compiled

GOVERNOR = Path('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor')
THROTTLE = Path('/proc/sys/kernel/sched_rt_runtime_us')
REALTIME = Path('/sys/kernel/realtime')
COMMAND_LINE = Path('/proc/cmdline')
STEAL, IDLE = 7, (3, 4)         # columns of the first line of /proc/stat: stolen by the host; idle, waiting for disks


def conditions():
    """{what: text} of what does not change while a process runs."""
    return {
        'processor': f'{_processor()}, {os.cpu_count()} cores, {len(os.sched_getaffinity(0))} for us',
        'kernel': f'{platform.system()} {platform.release()} {platform.version()}',
        'PREEMPT_RT': 'yes' if _read(REALTIME) == '1' else 'no',
        'isolated processors': ', '.join(
            word for word in _read(COMMAND_LINE).split() if word.startswith(('isolcpus', 'nohz_full'))) or 'none',
        'frequency governor': _read(GOVERNOR) or 'none to be seen',
        'real-time throttling': _throttling(_read(THROTTLE)),
        'Python': f'{platform.python_version()}, numpy {np.__version__}, '
                  f'kernels {"compiled" if compiled else "interpreted"}',
        'middleware': _middleware(),
    }


class Meanwhile:
    """What the machine did from the making of this to the call of `report`."""

    def __init__(self):
        self._times = _processor_times()
        self._load = _read(Path('/proc/loadavg'))

    def report(self):
        """{what: text}: time stolen by the host, idle time, load average before and after."""
        spent = _processor_times() - self._times
        total = max(spent.sum(), 1)
        return {'stolen by the host': f'{100.0 * spent[STEAL] / total:.2f} % of processor time',
                'idle': f'{100.0 * spent[list(IDLE)].sum() / total:.0f} % of processor time',
                'load average': f'{_first(self._load)} before, {_first(_read(Path("/proc/loadavg")))} after'}


def _read(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ''


def _first(text):
    return text.split()[0] if text else 'unknown'


def _processor():
    for line in _read(Path('/proc/cpuinfo')).splitlines():
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return platform.machine()


def _processor_times():
    """(10,) ticks: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice."""
    line = _read(Path('/proc/stat')).partition('\n')[0].split()[1:]
    return np.array([int(word) for word in line] + [0] * (10 - len(line)))


def _throttling(runtime):
    if not runtime:
        return 'unknown'
    return 'off' if int(runtime) < 0 else f'{int(runtime) / 1e4:g} % of each second at most'


def _middleware():
    import rclpy
    name = rclpy.get_rmw_implementation_identifier()
    wanted = [re.compile(f'ros-(\\w+-)?{package}$') for package in ('rclpy', name.replace('_', '-'), 'fastrtps')]
    found = {d.metadata['Name'].replace('_', '-'): d.version for d in distributions()}
    versions = {}
    for package, version in sorted(found.items()):
        for one in wanted:
            if one.match(package):
                versions[one] = f'{package} {version}'
    return f'{name} ({", ".join(versions.values()) or "version as of the ROS installation"})'
