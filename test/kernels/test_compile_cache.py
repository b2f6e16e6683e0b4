"""Numba's cache on disk: never stale, never in the package, and warm the second time."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from support.machines import hiab
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.api import compilation
from psdyn_ros.api.compilation import TREE
from psdyn_ros.kernels.hydraulics.rosenbrock import copy_inertia, rates
from psdyn_ros.kernels.rigid_body.entry import finite
from psdyn_ros.kernels.runtime import compiler, turn

pytestmark = [pytest.mark.jit, pytest.mark.skipif(not psdyn_ros.compiled, reason='needs compiled kernels')]

CRANE = hiab().xml

# `holding_force` calls `stop_force` of another file, and is cheap to compile
SMALL = '''
import numpy as np
from psdyn_ros.kernels.hydraulics.friction import holding_force
from psdyn_ros.kernels.hydraulics.records import AXIS
axis = np.zeros(1, AXIS)
axis["upper"], axis["stop_stiffness"] = 1.0, 100.0
print(holding_force(axis[0], -0.5, 0.0))
'''
WHOLE = '''
import sys, time, psdyn_ros
start = time.monotonic()
crane = psdyn_ros.load(sys.argv[1])
x = crane.initial_position
print(crane.forward_dynamics(x, 0 * x, 0 * x).tolist())
print(time.monotonic() - start)
'''


def run(script, folder, *arguments, **environment):
    """Run a script in a fresh interpreter on the package in `folder`; return stdout and stderr."""
    done = subprocess.run(
        [sys.executable, '-B', '-c', script, *arguments], cwd=folder, capture_output=True, text=True, timeout=600,
        env={**os.environ, 'PYTHONPATH': str(folder), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def files_in(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in Path(folder).rglob('*') if path.is_file()}


@pytest.fixture
def copy(tmp_path):
    """A copy of the package of its own, and a cache of its own."""
    shutil.copytree(ROOT / 'psdyn_ros', tmp_path / 'copy' / 'psdyn_ros', ignore=shutil.ignore_patterns('__pycache__'))
    return tmp_path / 'copy', str(tmp_path / 'cache')


def edit_friction(folder, old, new):
    source = folder / 'psdyn_ros' / 'kernels' / 'rigid_body' / 'friction.py'
    text = source.read_text()
    assert text.count(old) == 1
    stamp = source.stat()
    source.write_text(text.replace(old, new))
    # a careless checkout: the file keeps its time, and the file of the caller was not touched at all
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_an_edit_of_another_kernel_file_is_seen(copy):
    folder, cache = copy
    before, _ = run(SMALL, folder, PSDYN_CACHE_DIR=cache)
    assert before == '50.0\n'
    kept = files_in(cache)
    assert kept, 'nothing was cached, so that nothing could be stale'
    assert run(SMALL, folder, PSDYN_CACHE_DIR=cache)[0] == before and files_in(cache) == kept
    edit_friction(folder, 'stiffness * depth * (1.0', 'stiffness * depth * (3.0')
    after, _ = run(SMALL, folder, PSDYN_CACHE_DIR=cache)
    assert after == '150.0\n'
    edit_friction(folder, 'depth * (3.0', 'depth * (1.0')
    assert run(SMALL, folder, PSDYN_CACHE_DIR=cache)[0] == before


def test_python_cannot_call_what_was_compiled_for_kernels_only():
    """Whether it is compiled already or not: there is no code that a call from Python could run."""
    psdyn_ros.load(CRANE)
    for function, arguments in ((finite, (np.zeros(3),)), (copy_inertia, (None, 1)), (rates, (None,))):
        with pytest.raises(TypeError, match=f"'{function.__name__}' is a kernel that only kernels call"):
            function(*arguments)


@pytest.mark.long
def test_cold_and_warm_start(copy, tmp_path):
    """The package folder stays as it was, as a read-only one would; of two at once one compiles; later ones do not."""
    folder, cache = copy
    urdf = tmp_path / 'crane.urdf'
    urdf.write_text(CRANE)
    sources = files_in(folder)
    with ThreadPoolExecutor() as pool:
        (out, errors), (other, waited) = pool.map(lambda _: run(WHOLE, folder, urdf, PSDYN_CACHE_DIR=cache), range(2))
    assert min(errors, waited) in ('', 'psdyn_ros: another process compiles the kernels for this machine; '
                                    'waiting for it ...\n')
    assert other.splitlines()[0] == out.splitlines()[0]
    compiled = max(errors, waited)
    assert re.match('psdyn_ros: compiling the kernels for this machine, once ...\n'
                    r'psdyn_ros: compiled the kernels for this machine in \d+ s$', compiled)
    assert files_in(folder) == sources
    kept = files_in(cache)
    assert any(path.suffix == '.nbi' for path in kept)

    start = os.times()
    again, errors = run(WHOLE, folder, urdf, PSDYN_CACHE_DIR=cache)
    end = os.times()
    # processor time, which does not depend on what else runs
    assert end.children_user + end.children_system - start.children_user - start.children_system < 10
    assert again.splitlines()[0] == out.splitlines()[0] and errors == ''
    assert files_in(cache) == kept and files_in(folder) == sources


@pytest.mark.parametrize('compiled_meanwhile', [True, False])
def test_of_processes_that_need_the_same_kernels_one_compiles_them(monkeypatch, tmp_path, capsys, compiled_meanwhile):
    warm, asked, flock = [False], threading.Event(), fcntl.flock

    def waiting(*given):
        asked.set()
        return flock(*given)
    monkeypatch.setattr(compiler, 'compiled', True)
    monkeypatch.setattr(compiler, 'CACHE_FOLDER', tmp_path)
    monkeypatch.setattr(compiler, 'cache_is_warm', lambda group: warm[0])
    monkeypatch.setattr(compilation, '_ENTRIES', {TREE: ()})
    monkeypatch.setattr(compilation, '_ready', set())
    monkeypatch.setattr(fcntl, 'flock', waiting)

    def compile_too():
        with compilation.Compilation(TREE):
            pass
    with open(tmp_path / 'compiling.lock', 'w') as other:
        flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=compile_too)
        thread.start()
        assert asked.wait(60.0)
        assert 'compiling' not in capsys.readouterr().err
        warm[0] = compiled_meanwhile
    thread.join(60.0)
    assert not thread.is_alive() and ('compiling' in capsys.readouterr().err) == (not compiled_meanwhile)


def test_only_one_process_saves_at_a_time(monkeypatch, tmp_path):
    """Else the names of their files may be the same, and a call is answered by the code for other types."""
    monkeypatch.setattr(compiler, 'CACHE_FOLDER', tmp_path)
    double, asked = compiler.python_kernel(lambda x: 2 * x), threading.Event()
    flock = fcntl.flock

    def waiting(*given):
        if 'saving' in given[0].name:
            asked.set()
        return flock(*given)
    monkeypatch.setattr(fcntl, 'flock', waiting)
    with open(tmp_path / 'saving.lock', 'w') as other:
        flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=double, args=(1.0,))
        thread.start()
        assert asked.wait(60.0)
        assert not list(tmp_path.rglob('*.nb[ic]'))
    thread.join(60.0)
    assert not thread.is_alive() and {path.suffix for path in tmp_path.rglob('*.nb[ic]')} == {'.nbi', '.nbc'}


def test_a_compilation_that_takes_long_is_told_at_its_beginning_and_its_end(monkeypatch, tmp_path, capsys):
    """Of each part, at its first call; a short one, and one from the cache, without a word."""
    monkeypatch.setattr(compiler, 'CACHE_FOLDER', tmp_path)
    monkeypatch.setattr(turn, 'SILENT', 0.0)

    def tripled(x):
        return 3 * x
    assert compiler.python_kernel(tripled)(2.0) == 6.0
    told = capsys.readouterr().err
    assert re.fullmatch(r'psdyn_ros: compiling the kernel test_compile_cache\.tripled, once \.\.\.\n'
                        r'psdyn_ros: compiled the kernel test_compile_cache\.tripled in \d+ s\n', told)
    assert compiler.python_kernel(tripled)(2.0) == 6.0 and capsys.readouterr().err == ''
    monkeypatch.setattr(turn, 'SILENT', 60.0)
    assert compiler.python_kernel(tripled)(2) == 6 and capsys.readouterr().err == ''


def test_what_cannot_be_compiled_leaves_its_turn(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, 'CACHE_FOLDER', tmp_path)
    double = compiler.python_kernel(lambda x: 2 * x)
    with pytest.raises(Exception, match='Failed in nopython'):
        double(open)
    assert double(1.0) == 2.0 and not turn._taken


def test_a_process_takes_over_what_another_has_compiled(monkeypatch, tmp_path, capsys):
    """It waits for the lock of the kernel, and then reads the cache."""
    monkeypatch.setattr(compiler, 'CACHE_FOLDER', tmp_path)
    asked, flock = threading.Event(), fcntl.flock

    def waiting(*given):
        if not given[1] & fcntl.LOCK_NB:        # it has said that it waits
            asked.set()
        return flock(*given)

    def halved(x):
        return x / 2
    compiler.python_kernel(halved)(1.0)
    here, saved = compiler.python_kernel(halved), [*tmp_path.rglob('*.nb[ic]')]
    for path in saved:
        path.rename(f'{path}.later')
    with open(tmp_path / 'compiling_test_compile_cache.halved.lock', 'w') as other:
        flock(other, fcntl.LOCK_EX)
        monkeypatch.setattr(fcntl, 'flock', waiting)
        thread = threading.Thread(target=here, args=(1.0,))
        thread.start()
        assert asked.wait(60.0)
        for path in saved:
            Path(f'{path}.later').rename(path)
    thread.join(60.0)
    assert not thread.is_alive() and sum(here.stats.cache_hits.values()) == 1 and not here.stats.cache_misses
    assert 'another process compiles the kernel test_compile_cache.halved; waiting' in capsys.readouterr().err


def test_this_process_keeps_its_cache_out_of_the_package():
    psdyn_ros.load(CRANE)
    assert ROOT / 'psdyn_ros' not in compiler.CACHE_FOLDER.parents
    assert compiler.cache_is_warm(TREE)
    assert not list((ROOT / 'psdyn_ros').rglob('*.nb[ic]'))


def test_the_setting_of_other_users_of_numba_is_left_alone():
    script = 'import numba, psdyn_ros; print(numba.config.CACHE_DIR)'
    assert run(script, ROOT, NUMBA_CACHE_DIR='/some/where')[0] == '/some/where\n'


def test_the_key_depends_on_every_kernel_file(copy):
    folder, cache = copy
    script = '''
from pathlib import Path
from psdyn_ros.kernels.runtime import compiler, turn
print(compiler.sources_key())
for source in sorted(Path("psdyn_ros/kernels").rglob("*.py")):
    with open(source, "a") as file:
        file.write("# edited\\n")
    print(compiler.sources_key())
'''
    room = folder / 'psdyn_ros' / 'kernels' / 'room_of_a_test'
    room.mkdir()
    (room / 'inner.py').write_text('X = 1\n')
    keys = run(script, folder, PSDYN_CACHE_DIR=cache)[0].split()
    sources = list((folder / 'psdyn_ros' / 'kernels').rglob('*.py'))
    assert all(source.read_text().endswith('# edited\n') for source in sources)
    assert len(set(keys)) == len(keys) == 1 + len(sources) > 8


def test_the_folder_that_is_asked_for_comes_first_and_a_writable_one_at_last(tmp_path, monkeypatch):
    monkeypatch.setenv('PSDYN_CACHE_DIR', str(tmp_path / 'mine'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'user'))
    monkeypatch.setattr(compiler.tempfile, 'gettempdir', lambda: str(tmp_path / 'temporary'))
    assert compiler.cache_folder().parent == tmp_path / 'mine'
    # a file where the folder should be: no user, not even root, can make it
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('PSDYN_CACHE_DIR', str(tmp_path / 'file'))
    assert compiler.cache_folder().parent == tmp_path / 'user' / 'psdyn_ros'
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
    assert compiler.cache_folder().parent == tmp_path / 'temporary' / f'psdyn_ros-{os.getuid()}'
    monkeypatch.setattr(compiler.tempfile, 'gettempdir', lambda: str(tmp_path / 'file'))
    assert compiler.cache_folder() is None
    monkeypatch.delenv('PSDYN_CACHE_DIR')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'user'))
    assert compiler.cache_folder().parent == tmp_path / 'user' / 'psdyn_ros'


def test_without_any_writable_folder_it_compiles_all_the_same(copy, tmp_path):
    folder, _ = copy
    (tmp_path / 'file').write_text('')
    nowhere = str(tmp_path / 'file')
    before = files_in(tmp_path)
    script = f'import tempfile; tempfile.tempdir = {nowhere!r}' + SMALL
    out, _ = run(script, folder, PSDYN_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere)
    assert out == '50.0\n'
    assert files_in(tmp_path) == before
