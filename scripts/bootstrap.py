#!/usr/bin/env python3
"""Make the virtual environment that a target of the Makefile runs in; answer at once when it is up to date.

    python3 scripts/bootstrap.py run      .venv: what `make demo` needs
    python3 scripts/bootstrap.py dev      .venv: that, and what tests, coverage, lint and benchmarks need
    python3 scripts/bootstrap.py oldest   .venv-oldest: the same on the oldest supported versions

Where a ROS 2 is sourced, .venv sees the system's packages: rclpy, NumPy and SciPy are the system's, and only
what is missing is added. Everywhere else rclpy comes as wheels (requirements/ros-jazzy.txt).

It runs under the system's python3 before anything is installed, so it uses the standard library only.
"""

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / 'requirements'
PYTHONS = ((3, 10), (3, 14))
FILES = {'run': ('run',), 'dev': ('run', 'dev'), 'oldest': ('oldest', 'dev')}
CONTAINED = {'run': ['run'], 'dev': ['run', 'dev'], 'oldest': ['oldest']}

# The NumPy that the pinned Numba accepts: the first, and the first that is too new. A system with another one
# gets the Numba that pip finds for it.
NUMBA_NUMPY = ((1, 22), (2, 6))

# Asked of a python3 in a process of its own, because it need not be the one that runs this script.
PROBE = """
import importlib.metadata, importlib.util, json
try:
    import rclpy
    rclpy_state = 'works'
except Exception as error:
    rclpy_state = str(error) if importlib.util.find_spec('rclpy') else 'absent'
installed = {d.metadata['Name']: d.version for d in importlib.metadata.distributions()}
print(json.dumps([rclpy_state, installed]))
"""

# rclpy: 'works', 'absent', or why it does not work. installed: {normalised name: version}.
Probe = namedtuple('Probe', 'rclpy installed')


def main():
    parser = argparse.ArgumentParser(description='Make or update the virtual environment of the project.')
    parser.add_argument('stage', choices=sorted(FILES))
    stage = parser.parse_args().stage
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        low, high = ('.'.join(map(str, version)) for version in PYTHONS)
        sys.exit(f'psdyn_ros needs Python {low} to {high}; {sys.executable} is {sys.version.split()[0]}.\n'
                 'Name another one with `make PYTHON=...`.')
    venv = ROOT / ('.venv-oldest' if stage == 'oldest' else '.venv')
    with open(ROOT / '.bootstrap.lock', 'w') as lock:  # `make demo` and `make test` may be started together
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            update(venv, stage)
        except subprocess.CalledProcessError as error:
            sys.exit(f'psdyn_ros: setting up {venv.name} failed at: {" ".join(error.cmd)}')
        except KeyboardInterrupt:
            sys.exit(130)


def update(venv, stage):
    """Bring `venv` to the stage wanted; a stamp in it says what it holds."""
    stamp = venv / 'psdyn_ros.json'
    base, contents = fingerprints()
    done = json.loads(stamp.read_text()) if stamp.exists() else {}
    stages = done.get('stages', []) if done.get('contents') == contents else []
    if done.get('base') == base and stage in stages:
        return
    started = time.monotonic()
    python, system = choose_python(os.environ, [os.path.realpath(sys.executable), '/usr/bin/python3'], probe)
    source = f'rclpy of ROS 2 {os.environ["ROS_DISTRO"]}' if system else 'rclpy from PyPI'
    print(f'psdyn_ros: setting up {venv.name} ({python}, {source}).\n'
          '           This takes a minute or two, once.', flush=True)
    if done.get('base') != base:
        stages = []
        site = ['--system-site-packages'] if system and stage != 'oldest' else []
        run(python, '-m', 'venv', '--clear', *site, venv)
    # Without its stamp an environment is made anew: an interrupted installation never passes for a whole one.
    stamp.unlink(missing_ok=True)
    # The conflict it would warn of is explained in requirements/pinocchio.txt.
    pip = (venv / 'bin' / 'python', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check',
           '--no-warn-conflicts')
    for arguments in pip_steps(stage, system, venv / 'requirements'):
        run(*pip, *arguments)
    stages = sorted({*stages, *CONTAINED[stage]})
    stamp.write_text(json.dumps({'base': base, 'contents': contents, 'stages': stages}, indent=1))
    print(f'psdyn_ros: {venv.name} is ready after {time.monotonic() - started:.0f} s.', flush=True)


def fingerprints():
    """What an environment stands on, and what goes into it, in a form to compare."""
    rclpy = importlib.util.find_spec('rclpy') if 'ROS_DISTRO' in os.environ else None
    base = [str(ROOT), os.path.realpath(sys.executable), sys.version, os.environ.get('ROS_DISTRO'),
            rclpy and rclpy.origin]
    contents = hashlib.sha256()
    files = (Path(__file__), ROOT / 'setup.py', ROOT / 'package.xml', *sorted(REQUIREMENTS.glob('*.txt')))
    for path in files:
        contents.update(path.read_bytes())
    return base, contents.hexdigest()


def choose_python(environ, candidates, probe):
    """The python3 to build on, and what it holds if it has the rclpy of a sourced ROS 2 (else None).

    A ROS 2 belongs to the system's python3; the first on the PATH may be another one, of pyenv or conda.
    """
    distro = environ.get('ROS_DISTRO')
    if not distro:
        return candidates[0], None
    probes = [(python, probe(python)) for python in candidates]
    for python, found in probes:
        if found.rclpy == 'works':
            return python, found
    for python, found in probes:
        if found.rclpy != 'absent':
            # On the PYTHONPATH it hides the wheels in every environment, so there is no way around it.
            sys.exit(f'ROS 2 {distro} is sourced, but {python} cannot use its rclpy:\n  {found.rclpy}\n'
                     'Use the Python that it was built for (`make PYTHON=...`) or a shell without it.')
    print(f'psdyn_ros: ROS_DISTRO is {distro}, but no rclpy is there (source its setup.bash to use it).')
    return candidates[0], None


def probe(python):
    if not os.path.exists(python):
        return Probe('absent', {})
    answer = subprocess.run([python, '-c', PROBE], stdout=subprocess.PIPE, check=True).stdout
    rclpy, installed = json.loads(answer)
    return Probe(rclpy, {normalised(name): version for name, version in installed.items() if name})


def pip_steps(stage, system, lists):
    """The arguments of each `pip install`, in order. `system` is the Probe of a sourced ROS 2, or None.

    The folder `lists` gets the requirement files that the arguments name.
    """
    wanted = [pin for name in FILES[stage] for pin in pins(name)]
    alone = pins('pinocchio') if stage != 'run' else []  # what is installed without its dependencies
    constraints = pins('constraints')
    if not system:
        alone = pins('ros-jazzy') + alone
    elif stage != 'oldest':
        wanted, alone, constraints = fit_to_system(wanted, alone, constraints, system.installed)
    lists.mkdir(exist_ok=True)
    for name, lines in (('alone', alone), ('wanted', wanted), ('constraints', constraints)):
        (lists / name).write_text('\n'.join(lines) + '\n')
    # Two things have no wheel, this package and EmPy. They are built with the setuptools of the first step, because
    # pip on its own would fetch an unpinned one. A missing wheel of anything else should not start a compiler.
    setuptools, empy = ([pin for pin in wanted if name_of(pin) == name] for name in ('setuptools', 'empy'))
    return [
        setuptools,
        ['--no-deps', '--no-build-isolation', '--use-pep517', *empy, '--editable', ROOT],
        ['--only-binary=:all:', '--no-deps', '-r', lists / 'alone'],
        ['--only-binary=:all:', '-r', lists / 'wanted', '-c', lists / 'constraints'],
    ]


def fit_to_system(wanted, alone, constraints, installed):
    """What is left to install beside the system's packages, and what may not be replaced while doing so."""
    numpy = tuple(int(part) for part in installed.get('numpy', '1.26').split('.')[:2])
    if not NUMBA_NUMPY[0] <= numpy < NUMBA_NUMPY[1]:
        wanted = ['numba' if name_of(pin) == 'numba' else pin for pin in wanted if name_of(pin) != 'llvmlite']
    # Setuptools is always ours: that of Ubuntu 24.04 cannot install this package without more help.
    missing = [pin for pin in wanted if name_of(pin) not in installed or name_of(pin) == 'setuptools']
    kept = [f'{name}=={installed[name]}' for name in ('numpy', 'scipy') if name in installed]
    return (missing, [pin for pin in alone if name_of(pin) not in installed],
            kept + [pin for pin in constraints if name_of(pin) not in installed])


def pins(name):
    """The requirement lines of requirements/<name>.txt."""
    lines = (line.strip() for line in (REQUIREMENTS / f'{name}.txt').read_text().splitlines())
    return [line for line in lines if line and not line.startswith('#')]


def name_of(pin):
    return normalised(re.match(r'[\w.-]+', pin).group())


def normalised(name):
    return re.sub(r'[-_.]+', '-', name).lower()


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


if __name__ == '__main__':
    main()
