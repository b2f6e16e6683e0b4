"""The loop of C that the makers of PREEMPT_RT measure with, beside ours: `cyclictest`, where it is installed."""

import re
import shutil
import subprocess

NAME = 'cyclictest'
LINE = re.compile(r'T:\s*0\b.*C:\s*(\d+)\s+Min:\s*(\d+)\s+Act:\s*\d+\s+Avg:\s*(\d+)\s+Max:\s*(\d+)')


class Cyclictest:
    """Wake-up lateness of a thread of C with absolute deadlines, of all turns.

    rate      Hz
    priority  of SCHED_FIFO; 0: none
    """

    def __init__(self, rate, priority):
        self.rate, self._priority = rate, priority
        self.cycles, self.mean, self.greatest = 0, 0.0, 0.0     # the latter two in s
        self.reason = '' if shutil.which(NAME) else f'{NAME} is not installed'

    def turn(self, seconds):
        """Run it for so long; where it does not run, `reason` says why."""
        if self.reason:
            return
        command = [NAME, '-q', '-t1', f'-p{self._priority}', f'-i{1e6 / self.rate:.0f}',
                   f'-l{max(1, round(seconds * self.rate))}']
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=10.0 * seconds + 10.0)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.reason = str(error)
            return
        found = LINE.search(run.stdout)
        if run.returncode or not found:
            self.reason = f'{NAME} ended with {run.returncode}: {(run.stderr or run.stdout).strip()[:200]}'
            return
        cycles, _, mean, greatest = map(int, found.groups())
        self.mean = (self.cycles * self.mean + cycles * mean * 1e-6) / (self.cycles + cycles)
        self.cycles += cycles
        self.greatest = max(self.greatest, greatest * 1e-6)
