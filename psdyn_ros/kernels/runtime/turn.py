"""Who compiles: of processes that need the same kernel one does, with a word about it, and the others wait."""
import fcntl
import gc
import sys
import threading
import time
from contextlib import nullcontext, suppress

try:
    from numba.core.compiler_lock import global_compiler_lock as one_thread
except ImportError:
    one_thread = nullcontext()

SILENT = 1.0        # a compilation shorter than this is not worth a line [s]

_taken = []         # turns of this process; the first one has the lock and speaks


class Turn:
    """The right of this process to compile a part, from `take` to `leave`; turns within it belong to it."""

    def __init__(self, part, lock=None, silent=0.0):
        """part: what is compiled, in words; lock: path of a file, or None; silent: time without a word [s]."""
        self._part, self._path, self._silent = part, lock, silent
        self._lock = self._timer = None

    def wait(self):
        """Wait until no other process has the lock, which is then ours."""
        with one_thread:
            if self._path is not None and not _taken:
                self._lock = open(self._path, 'w')
                with suppress(OSError):     # of a file system without locks: both compile
                    _wait_for(self._lock, self._part)

    def begin(self):
        """Say that this process compiles now; where it is soon done, say nothing."""
        with one_thread:
            self._said, self._start, self._collects = threading.Event(), time.monotonic(), gc.isenabled()
            # the compiler makes millions of objects that live on, and the collector walks over all of them again
            gc.disable()
            if not _taken and self._silent:
                self._timer = threading.Timer(self._silent, self._announce)
                self._timer.daemon = True
                self._timer.start()
            elif not _taken:
                self._announce()
            _taken.append(self)

    def _announce(self):
        self._said.set()
        _say(f'compiling {self._part}, once ...')

    def end(self, done=True):
        """Say how long it took, where something was said, and let others have their turn."""
        with one_thread:
            if self in _taken:
                _taken.remove(self)
                if self._collects:
                    gc.enable()
                if self._timer is not None:
                    self._timer.cancel()
                if done and self._said.is_set():
                    _say(f'compiled {self._part} in {time.monotonic() - self._start:.0f} s')
            if self._lock is not None:
                self._lock.close()


def compile_in_turn(dispatcher, part, lock_of):
    """Let a dispatcher compile what no cache has in a turn of its own; lock_of() gives the path of its lock."""
    compile_one, load, turns = dispatcher.compile, dispatcher._cache.load_overload, []

    def load_or_begin(*given):
        found = load(*given)
        if found is None:
            turns.append(Turn(part, lock_of(), SILENT))
            turns[-1].wait()
            found = load(*given)        # of a process that compiled it meanwhile
            if found is None:
                turns[-1].begin()
        return found

    def compile_alone(*given):
        with one_thread:
            outer, done = len(turns), False
            try:
                code = compile_one(*given)
                done = True
                return code
            finally:
                while len(turns) > outer:
                    turns.pop().end(done)

    dispatcher.compile, dispatcher._cache.load_overload = compile_alone, load_or_begin


def _wait_for(lock, part):
    """Take a lock; say so where another process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say(f'another process compiles {part}; waiting for it ...')
        fcntl.flock(lock, fcntl.LOCK_EX)


def _say(text):
    print(f'psdyn_ros: {text}', file=sys.stderr, flush=True)
