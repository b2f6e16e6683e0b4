"""Steps of a page of docs/tutorials, read from the page itself, and a run of them in a fresh folder."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import NamedTuple

from support.paths import ROOT

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$|Ctrl-C in (terminal \d)|\]\((files/[^)]+)\)',
                   re.MULTILINE | re.DOTALL)
# stand for an installation: the same words start the same modules
SHIM = '#!/bin/sh\nexec {python} -m {module} "$@"\n'
MODULES = {'psdyn': 'psdyn_ros.cli', 'simulator': 'psdyn_ros.nodes.simulator.node',
           'controller': 'psdyn_ros.nodes.controller.node'}
START_UP = 120.0        # s until a process in the background prints its first line
LIMIT = 900             # s of a command on a busy computer
NUMBER = re.compile(r'-?\d+(?:\.\d+)?(?:e[+-]?\d+)?')


class Step(NamedTuple):
    """A copied file, a written file, a command, its expected output, a process, or the end of a process."""

    kind: str           # copy, file, sh, text, python, start or end
    name: str
    text: str


def steps(page):
    """Yield the `Step`s of a page (path) in its order."""
    for language, title, text, ended, linked in FENCE.findall(page.read_text()):
        if linked:
            yield Step('copy', linked, '')
        elif ended:
            yield Step('end', ended, '')
        elif language == 'sh' and title:
            yield Step('start', title, text)
        elif language in ('sh', 'text', 'python'):
            yield Step(language, title, text)
        elif title:
            yield Step('file', title, text)
        else:
            raise AssertionError(f'{page.name}: a block of {language} that is neither run nor written to a file')


def commands(text):
    r"""Yield (command, exit code) of a block; the code is 0 unless a comment behind the command says otherwise."""
    for line in text.replace('\\\n', ' ').splitlines():
        command, _, comment = line.partition('  #')
        code = re.search(r'exit code (\d)', comment)
        if command.strip():
            yield command.strip(), int(code[1]) if code else 0


def pattern(line):
    """Return a regular expression for a line of output in which numbers and spaces may differ."""
    words = [NUMBER.sub('#', word) for word in line.split()]
    return r'\s+'.join(re.escape(word).replace(r'\#', NUMBER.pattern) for word in words)


class Walk:
    """A reader of a page, who types its commands in one folder.

    folder  fresh, `bin` beside it
    """

    def __init__(self, folder, environment):
        self.folder, self.environment, self.output = folder, environment, ''
        self._processes = {}        # terminal -> (Popen, path of its output)

    def do(self, page, step):
        """Do a step; raises AssertionError with the output of a command that ends with another exit code."""
        getattr(self, f'_{step.kind}')(page, step)

    def close(self):
        """Kill the processes that a page which failed has left."""
        for process, _ in self._processes.values():
            process.kill()
            process.wait()

    def _copy(self, page, step):
        shutil.copy(page.parent / step.name, self.folder)

    def _file(self, page, step):
        (self.folder / step.name).write_text(step.text)

    def _sh(self, page, step):
        said = []
        for command, code in commands(step.text):
            done = subprocess.run(command, shell=True, cwd=self.folder, env=self.environment, capture_output=True,
                                  text=True, timeout=LIMIT, check=False)
            said.append(done.stdout + done.stderr)
            assert done.returncode == code, f'{command}: {done.returncode}\n{said[-1]}{self._logs()}'
        self.output = ''.join(said)

    def _python(self, page, step):
        script = self.folder / 'snippet.py'
        script.write_text(step.text)
        self._sh(page, Step('sh', '', f'{shlex.quote(sys.executable)} snippet.py'))

    def _text(self, page, step):
        for line in filter(str.strip, step.text.splitlines()):
            assert re.search(pattern(line), self.output), f'not in the output: {line}\n{self.output}'

    def _start(self, page, step):
        (command, _), = commands(step.text)
        log = self.folder.parent / f'{step.name}.log'
        with open(log, 'w') as file:
            process = subprocess.Popen(f'exec {command}', shell=True, cwd=self.folder, env=self.environment,
                                       stdout=file, stderr=subprocess.STDOUT)
        self._processes[step.name] = process, log
        deadline = time.monotonic() + START_UP
        while '\n' not in log.read_text():
            assert process.poll() is None and time.monotonic() < deadline, f'{command}\n{log.read_text()}'
            time.sleep(0.1)

    def _end(self, page, step):
        process, log = self._processes.pop(step.name)
        assert process.poll() is None, f'{step.name} has ended: {log.read_text()}'
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60.0) == 0, log.read_text()
        finally:
            process.kill()

    def _logs(self):
        return ''.join(f'\n{terminal}:\n{log.read_text()[-3000:]}' for terminal, (_, log) in self._processes.items())


@contextmanager
def walk(folder):
    """Yield a `Walk` in a new folder below this one, with the commands of an installation on its path."""
    programs, place = folder / 'bin', folder / 'walk'
    programs.mkdir()
    place.mkdir()
    for name, module in MODULES.items():
        path = programs / name
        path.write_text(SHIM.format(python=shlex.quote(sys.executable), module=module))
        path.chmod(0o755)
    walker = Walk(place, {**os.environ, 'PATH': f'{programs}:{os.environ["PATH"]}', 'PYTHONPATH': str(ROOT),
                          'PYTHONUNBUFFERED': '1'})
    try:
        yield walker
    finally:
        walker.close()
