"""Compiles the native loops of this folder into bench/.build, once for each source, compiler and library."""

import ctypes
import hashlib
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / '.build'
EIGEN = 'cmeel-eigen==3.4.1'  # what the pin wheels are built with; they ship every header but these

OPTIMISE = ['-O3', '-march=native', '-DNDEBUG', '-fPIC', '-shared']
# Pinocchio's own compile definitions; without them its joint variant has too many types for Boost.
PINOCCHIO = ['-DBOOST_MPL_LIMIT_LIST_SIZE=30', '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30',
             '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS', '-DBOOST_FUSION_INVOKE_MAX_ARITY=12']
# Narrow registers are the better choice for its 6 x 6 products: constraintDynamics of the crane takes 2.95 us so,
# 3.1 with AVX2 as it comes, 3.4 with AVX-512, 2.8 to 3.1 without any of them (but then 30 % more for 16 loops).
NARROW = ['-mno-avx512f', '-mprefer-vector-width=128'] if platform.machine() == 'x86_64' else []
# Its templates are also in the library that the Python module has loaded: keep ours to ourselves.
PRIVATE = ['-fvisibility=hidden', '-fvisibility-inlines-hidden', '-fno-gnu-unique', '-Wl,-Bsymbolic']

pointer, integer = ctypes.c_void_p, ctypes.c_int


class Unavailable(RuntimeError):
    """A native loop cannot be built here; the message says why."""


def pinocchio_library():
    import pinocchio

    prefix = Path(pinocchio.__file__).parents[4]
    includes = [f'-isystem{folder}' for folder in (prefix / 'include', _eigen(prefix))]
    flags = ['-std=c++17', '-w', *NARROW, *PINOCCHIO, *PRIVATE, *includes]
    library = _compiled(
        'g++', flags, 'pinocchio_loop.cpp', 'two to six minutes, 5 GB of memory', [], version('pin'))
    library.machine_open.restype, library.machine_open.argtypes = pointer, [ctypes.c_char_p]
    library.machine_error.restype = ctypes.c_char_p
    for algorithm in ('constraint_dynamics', 'lcaba', 'projected_forward', 'projected_inverse', 'closed_inverse',
                      'constraint_derivatives', 'aba_derivatives'):
        getattr(library, algorithm).argtypes = [pointer, integer] + 4 * [pointer]
    return library


def mujoco_library():
    import mujoco

    folder = Path(mujoco.__file__).parent
    shared = next(folder.glob('libmujoco.so*'))
    library = _compiled('gcc', [f'-isystem{folder / "include"}'], 'mujoco_loop.c', 'a second',
                        [str(shared), f'-Wl,-rpath,{folder}'], version('mujoco'))
    for algorithm in ('forward', 'inverse'):
        getattr(library, algorithm).argtypes = [pointer, pointer, integer] + 4 * [pointer]
    return library


def _compiled(compiler, flags, source, effort, libraries, library_version):
    if shutil.which(compiler) is None:
        raise Unavailable(f'{compiler} is not installed')
    text = b''.join(path.read_bytes() for path in (HERE / source, *sorted(HERE.glob('*.hpp'))))
    compiler_version = subprocess.check_output([compiler, '--version'], text=True)
    # Not where the headers lie: another environment with the same versions gives the same code.
    flags_of_code = [flag for flag in flags if not flag.startswith('-isystem')]
    about = [compiler_version, library_version, _processor(), OPTIMISE, flags_of_code, libraries]
    key = hashlib.sha256(text + repr(about).encode()).hexdigest()[:12]
    target = BUILD / f'{Path(source).stem}-{key}.so'
    if not target.exists():
        BUILD.mkdir(exist_ok=True)
        print(f'compiling {source} (once; {effort}) ...', flush=True)
        unfinished = target.with_suffix('.part')
        command = [compiler, *OPTIMISE, *flags, str(HERE / source), *libraries, '-o', str(unfinished)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            first_error = next((line for line in done.stderr.splitlines() if 'error' in line), done.stderr)
            raise Unavailable(f'{source} does not compile: {first_error[:300]}')
        unfinished.rename(target)
    return ctypes.CDLL(str(target))


def _processor():
    """-march=native code is of use only on the processor it was compiled on."""
    flags = [line for line in Path('/proc/cpuinfo').read_text().splitlines() if line.startswith('flags')]
    return hashlib.sha256(flags[0].encode()).hexdigest() if flags else ''


def _eigen(prefix):
    """The folder of Eigen's headers: of the environment, of the system, or fetched once into .build."""
    fetched = BUILD / 'eigen'
    candidates = [prefix / 'include' / 'eigen3', Path('/usr/include/eigen3'),
                  fetched / 'cmeel.prefix' / 'include' / 'eigen3']
    for folder in candidates:
        if (folder / 'Eigen' / 'Core').exists():
            return folder
    install = [sys.executable, '-m', 'pip', 'install', '-qq', '--no-deps', '--target', str(fetched)]
    if subprocess.run([*install, EIGEN]).returncode:
        raise Unavailable(f'no Eigen headers, and {EIGEN} could not be installed')
    return candidates[-1]
