"""The one place that knows Numba (but for its lock, in `turn`): its flags, its cache, and what happens without it.

Numba's disk cache looks at the file of the cached function only, so an edited callee in another file would
be answered with stale machine code.  The cache folder is therefore keyed by a hash of *all* kernel sources
(and of Numba's and NumPy's version), outside the package, which may be read-only.  The path of the package belongs to
the key, since it belongs to Numba's: what was compiled for one copy does not serve another.
"""
import fcntl
import hashlib
import os
import platform
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from .turn import compile_in_turn

try:
    import numba
except ImportError:
    numba = None

# 'contract' (fused multiply-add) keeps the meaning of NaN and infinity; full fastmath would delete the
# finite checks.  error_model 'numpy' lets a division by zero give inf, which the status checks catch.
FLAGS = {'nogil': True, 'error_model': 'numpy', 'fastmath': {'contract'}}
NO_WRAPPER = {}             # more flags of functions that only kernels call

COMPLETE = 'complete'       # file in the cache folder when a first compilation has come to its end
KERNELS = Path(__file__).resolve().parent.parent       # every source below it is part of the key of the cache


def sources_key():
    """Return the hash that names the cache folder of the present kernel sources, those in sub-folders included."""
    digest = hashlib.sha256(str(KERNELS).encode())
    for source in sorted(KERNELS.rglob('*.py')):
        digest.update(source.relative_to(KERNELS).as_posix().encode())
        digest.update(source.read_bytes())
    versions = (platform.python_version(), np.__version__, numba.__version__ if numba else '')
    digest.update('|'.join(versions).encode())
    return digest.hexdigest()[:16]


def cache_folder():
    """Return the first writable cache folder: PSDYN_CACHE_DIR, the user's cache, a temporary one."""
    user_cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    candidates = [os.environ.get('PSDYN_CACHE_DIR'), os.path.join(user_cache, 'psdyn_ros'),
                  os.path.join(tempfile.gettempdir(), f'psdyn_ros-{os.getuid()}')]
    for parent in filter(None, candidates):
        folder = Path(parent) / sources_key()
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(exist_ok=True)
            status = folder.parent.stat()
        except OSError:
            continue
        # the cache is code that will run: not from a folder that others may have filled
        if status.st_uid == os.getuid() and not status.st_mode & 0o002 and os.access(folder, os.W_OK):
            return folder
    return None


compiled = numba is not None and not numba.config.DISABLE_JIT
CACHE_FOLDER = cache_folder() if compiled else None


def cache_is_warm(group):
    """Return True when all kernels of a group were compiled from these sources on this machine before."""
    return CACHE_FOLDER is not None and (CACHE_FOLDER / f'{COMPLETE}_{group}').exists()


def mark_cache_warm(group):
    """Note that every kernel of a group has been compiled."""
    if CACHE_FOLDER is not None:
        (CACHE_FOLDER / f'{COMPLETE}_{group}').touch()


def _is_supported(option):
    try:
        numba.njit(**option)(lambda: None)
    except (KeyError, TypeError, NameError):
        return False
    return True


def _compile(function, flags):
    if not compiled:
        return function
    # The cache location is fixed when the decorator runs, so Numba's global setting, which belongs to the
    # whole process, is only borrowed.
    borrowed = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER or '')
    try:
        return _in_turn(numba.njit(**flags)(function))
    finally:
        numba.config.CACHE_DIR = borrowed


def _in_turn(dispatcher):
    """Let one process at a time compile a function, with a word about it, and save what it compiled.

    Two that compile a function for different types at the same moment would take the same name for both files, and the
    index may then give the code of one for the types of the other.
    """
    if not hasattr(dispatcher, '_cache'):
        return dispatcher
    room = dispatcher.py_func.__module__.rpartition('.kernels.')[2]
    part = f'{room}.{dispatcher.py_func.__name__}'
    compile_in_turn(dispatcher, f'the kernel {part}',
                    lambda: None if CACHE_FOLDER is None else CACHE_FOLDER / f'compiling_{part}.lock')
    if CACHE_FOLDER is None:
        return dispatcher
    save = dispatcher._cache.save_overload

    def save_alone(*given):
        with open(CACHE_FOLDER / 'saving.lock', 'w') as lock:
            with suppress(OSError):     # of a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            save(*given)

    dispatcher._cache.save_overload = save_alone
    return dispatcher


@cache
def _called_by_kernels(dispatcher):
    """Return a class of dispatchers that refuses calls from Python, for which there is no code."""
    class Kernel(dispatcher):
        def __call__(self, *_):
            raise TypeError(f"'{self.py_func.__name__}' is a kernel that only kernels call; Python calls an `entry` or "
                            'a `python_kernel`')

    return Kernel


def _without_wrapper(function):
    if NO_WRAPPER:
        function.__class__ = _called_by_kernels(type(function))
    return function


def kernel(function):
    """Compile `function` into its callers, which are kernels; without Numba it stays plain Python.

    Always inlined: small tuples then live in registers across calls, which takes a quarter off a recursion.
    """
    return _without_wrapper(_compile(function, FLAGS | NO_WRAPPER | {'forceinline': True}))


def python_kernel(function):
    """Compile `function` as a `kernel` that Python may call too."""
    return _compile(function, FLAGS | {'forceinline': True})


def inner(function):
    """Compile `function` for calls from kernels, not into them: where it is long, or called at several places."""
    return _without_wrapper(_compile(function, FLAGS | NO_WRAPPER))


def batch_entry(function):
    """Compile `function` for calls from Python with scratch records of their own: they release the GIL."""
    return _compile(function, FLAGS)


def entry(function):
    """Compile `function` for calls from Python that share one scratch record: they keep the GIL."""
    return _compile(function, FLAGS | {'nogil': False})


FLAGS['cache'] = CACHE_FOLDER is not None
# Without Numba's reference counting a call is 0.1 us cheaper, and any allocation in a kernel becomes a compile error.
# Without wrappers for calls from C a sixth of the time to compile is saved, without those for calls from Python another
# fifth. These options are private, so their absence must be harmless.
for flags, option in ((FLAGS, {'_nrt': False}), (FLAGS, {'no_cfunc_wrapper': True}),
                      (NO_WRAPPER, {'no_cpython_wrapper': True})):
    if compiled and _is_supported(option):
        flags |= option


def _intrinsic_reshape():
    """Return `reshape(a, shape)` of a contiguous array as an intrinsic of Numba; None where this Numba has no such."""
    try:
        from numba.core.cgutils import unpack_tuple
        from numba.extending import intrinsic
        from numba.np.arrayobj import make_array, populate_array
    except ImportError:
        return None

    @intrinsic
    def reshape(_, a, shape):
        result = a.copy(ndim=len(shape))

        def generate(context, builder, _, arguments):
            array, view = make_array(a)(context, builder, arguments[0]), make_array(result)(context, builder)
            extents, strides = unpack_tuple(builder, arguments[1]), [array.itemsize]
            for extent in reversed(extents[1:]):
                strides.insert(0, builder.mul(strides[0], extent))
            populate_array(view, data=array.data, shape=extents, strides=strides, itemsize=array.itemsize,
                           meminfo=array.meminfo)
            return view._getvalue()

        return result(a, shape), generate

    return reshape


# Numba's own `reshape` calls a function of C that looks at strides, 10 ns for each of two dozen arrays of a machine.
# What the intrinsic is made of is private, so its absence must be harmless.
_reshape = _intrinsic_reshape() if compiled else None
if _reshape is None:
    @kernel
    def reshaped(a, shape):
        """Return a contiguous array in another shape, in a tuple."""
        return (a.reshape(shape),)
else:
    @kernel
    def reshaped(a, shape):
        """Return a contiguous array in another shape, in a tuple."""
        return (_reshape(a, shape),)
