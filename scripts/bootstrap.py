#!/usr/bin/env python3
"""Make the virtual environment that a target of the Makefile runs in; answer at once when it is up to date.

    python3 scripts/bootstrap.py run      .venv: what `make demo` needs
    python3 scripts/bootstrap.py dev      .venv: that, and what tests, coverage, lint and benchmarks need
    python3 scripts/bootstrap.py oldest   .venv-oldest: the same on the oldest supported versions

Where a ROS 2 is sourced, .venv sees the system's packages: rclpy, NumPy and SciPy are the system's, and only what is
missing is added. Everywhere else rclpy comes as wheels (requirements/ros-jazzy.txt).

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

# The NumPy that the pinned Numba accepts, first and first-too-new. A system with another one gets the Numba that pip
# finds for it.
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

Probe = namedtuple('Probe', 'rclpy installed')  # 'works', 'absent' or the reason; {normalised name: version}


def main():
    parser = argparse.ArgumentParser(description='Make or update the virtual environment of the project.')
    parser.add_argument('stage', choices=sorted(FILES))
    stage = parser.parse_args().stage
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        sys.exit('psdyn_ros needs Python %d.%d to %d.%d, and %s is %s; name another with `make PYTHON=...`.' % (
            *PYTHONS[0], *PYTHONS[1], sys.executable, sys.version.split()[0]))
    venv = ROOT / ('.venv-oldest' if stage == 'oldest' else '.venv')
    with open(ROOT / '.bootstrap.lock', 'w') as lock:  # `make demo` and `make test` may be started together
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            update(venv, stage)
        except subprocess.CalledProcessError as error:
            sys.exit('psdyn_ros: setting up %s failed at: %s' % (venv.name, ' '.join(map(str, error.cmd))))


def update(venv, stage):
    """Bring `venv` to the stage wanted; a stamp in it says what it holds."""
    stamp = venv / 'psdyn_ros.json'
    base, wanted = fingerprints(stage)
    done = json.loads(stamp.read_text()) if stamp.exists() else {}
    if done.get('base') == base and done.get(stage) == wanted:
        return
    started = time.monotonic()
    python, system = choose_python(os.environ, [os.path.realpath(sys.executable), '/usr/bin/python3'], probe)
    source = 'rclpy of ROS 2 %s' % os.environ['ROS_DISTRO'] if system else 'rclpy from PyPI'
    print('psdyn_ros: setting up %s (%s, %s); this takes a minute or two, once.' % (venv.name, python, source),
          flush=True)
    if done.get('base') != base:
        done = {'base': base}
        site = ['--system-site-packages'] if system and stage != 'oldest' else []
        run(python, '-m', 'venv', '--clear', *site, venv)
    # Without its stamp an environment is made anew, so an interrupted installation never passes for a finished one.
    stamp.unlink(missing_ok=True)
    for arguments in pip_steps(stage, system, venv):
        run(venv / 'bin' / 'python', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', *arguments)
    done[stage] = wanted
    stamp.write_text(json.dumps(done, indent=1))
    print('psdyn_ros: %s is ready after %.0f s.' % (venv.name, time.monotonic() - started), flush=True)


def fingerprints(stage):
    """What the environment stands on, and what the stage puts into it, in a form to compare."""
    rclpy = importlib.util.find_spec('rclpy') if 'ROS_DISTRO' in os.environ else None
    base = [str(ROOT), os.path.realpath(sys.executable), sys.version, os.environ.get('ROS_DISTRO'),
            rclpy and rclpy.origin]
    files = [*sorted(REQUIREMENTS.glob('*.txt')), *(ROOT / name for name in ('setup.py', 'setup.cfg', 'package.xml'))]
    digest = hashlib.sha256(stage.encode())
    for path in [Path(__file__), *files]:
        digest.update(path.read_bytes())
    return base, digest.hexdigest()


def choose_python(environ, candidates, probe):
    """The python3 to build on, and what it holds if it has the rclpy of a sourced ROS 2 (else None).

    A ROS 2 belongs to the system's python3; the first on the PATH may be another one, of pyenv or conda.
    """
    distro = environ.get('ROS_DISTRO')
    if not distro:
        return candidates[0], None
    probes = [(python, probe(python)) for python in candidates if os.path.exists(python)]
    for python, found in probes:
        if found.rclpy == 'works':
            return python, found
    for python, found in probes:
        if found.rclpy != 'absent':
            # PYTHONPATH holds an rclpy that would come before the wheels in every environment, and it does not work.
            sys.exit('ROS 2 %s is sourced, but its rclpy does not work with %s:\n  %s\nUse the Python that this ROS 2 '
                     'was built for (`make PYTHON=...`) or a shell without it.' % (distro, python, found.rclpy))
    print('psdyn_ros: ROS_DISTRO is %s, but no rclpy is there (source its setup.bash to use it).' % distro)
    return candidates[0], None


def probe(python):
    result = subprocess.run([python, '-c', PROBE], stdout=subprocess.PIPE, check=True)
    rclpy, installed = json.loads(result.stdout)
    return Probe(rclpy, {normalised(name): version for name, version in installed.items() if name})


def pip_steps(stage, system, venv):
    """The arguments of each `pip install`, in order. `system` is the Probe of a sourced ROS 2, or None."""
    bare = pins('pinocchio') if stage != 'run' else []
    wanted = [pin for name in FILES[stage] for pin in pins(name)]
    constraints = pins('constraints')
    if not system:
        bare = pins('ros-jazzy') + bare
    elif stage != 'oldest':
        wanted, bare, constraints = fit_to_system(wanted, bare, constraints, system.installed)
    lists = venv / 'requirements'
    lists.mkdir(exist_ok=True)
    for name, lines in (('bare', bare), ('wanted', wanted), ('constraints', constraints)):
        (lists / name).write_text('\n'.join(lines) + '\n')
    setuptools = [pin for pin in wanted if name_of(pin) == 'setuptools']
    # EmPy is the one pin without a wheel: building it here, with the setuptools just installed, keeps pip from
    # fetching an unpinned one. A missing wheel of anything else should fail and not start a compiler.
    build = ['--no-build-isolation', '--use-pep517', '--only-binary=:all:', '--no-binary=empy']
    return [
        setuptools,
        *([['--no-deps', '--only-binary=:all:', '-r', lists / 'bare']] if bare else []),
        [*build, '-r', lists / 'wanted', '-c', lists / 'constraints'],
        ['--no-build-isolation', '--no-deps', '--editable', ROOT],
    ]


def fit_to_system(wanted, bare, constraints, installed):
    """What is left to install beside the packages of the system, and what must not be replaced while doing so."""
    numpy = tuple(int(part) for part in installed.get('numpy', '1.26').split('.')[:2])
    if not NUMBA_NUMPY[0] <= numpy < NUMBA_NUMPY[1]:
        wanted = ['numba' if name_of(pin) == 'numba' else pin for pin in wanted if name_of(pin) != 'llvmlite']
    # Only setuptools is taken from PyPI in any case: Ubuntu 24.04's cannot install this package on its own.
    missing = [pin for pin in wanted if name_of(pin) not in installed or name_of(pin) == 'setuptools']
    kept = ['%s==%s' % (name, installed[name]) for name in ('numpy', 'scipy') if name in installed]
    return (missing, [pin for pin in bare if name_of(pin) not in installed],
            kept + [pin for pin in constraints if name_of(pin) not in installed])


def pins(name):
    """The requirement lines of requirements/<name>.txt."""
    lines = (line.strip() for line in (REQUIREMENTS / (name + '.txt')).read_text().splitlines())
    return [line for line in lines if line and not line.startswith('#')]


def name_of(pin):
    return normalised(re.match(r'[\w.-]+', pin).group())


def normalised(name):
    return re.sub(r'[-_.]+', '-', name).lower()


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


if __name__ == '__main__':
    main()
