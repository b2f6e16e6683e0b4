"""What demonstrations are made of: nodes as processes, a node of our own among them, waiting, and an orderly end."""

import math
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from tqdm import tqdm

from ...control.safety.fault_table import State
from ...model.errors import PsdynError
from ...nodes.runtime.executor import make_executor
from .processes import NodeProcesses, environment, exported, free_domain

REACTION = 20.0             # s for a trajectory to be taken up, or a service to answer, on a busy computer
HELD = 90.0                 # s until a controller holds its machine, which takes a second without a stall
TURN = 0.05                 # s between two looks at how far the nodes are
RETRY = 0.02                # s after which a signal that came within LLVM is sent again


class DemoError(PsdynError):
    """The nodes did not do what they were started for."""


class StoppedError(DemoError):
    """The controller stopped its machine in the middle of it."""


class PlantState:
    """Keeps the last report of the simulator on its plant, and the first one on a frozen cylinder."""

    def __init__(self, node):
        self.summary, self.frozen = None, ''
        node.create_subscription(DiagnosticArray, '/diagnostics', self._keep, 10)

    def _keep(self, msg):
        for status in msg.status:
            if status.name == 'simulator: plant':
                self.summary = status.message
                self.frozen = self.frozen or next((part for part in status.message.split('; ') if ' frozen: ' in part),
                                                  '')


class ControlState:
    """What the controller last said of itself."""

    def __init__(self, node):
        self.state, self.reason, self.cycles = None, '', 0
        node.create_subscription(Float64MultiArray, '/controller/state', self._keep, 10)
        node.create_subscription(DiagnosticArray, '/diagnostics', self._keep_reason, 10)

    @property
    def active(self):
        """Whether it gives outputs."""
        return self.state is not None

    def check(self):
        """True; StoppedError where the controller has stopped its machine."""
        if self.state in (State.STOPPING, State.SAFE):
            # diagnostics say why, some time later
            raise StoppedError(self.reason if self.state.name in self.reason else self.state.name)
        return True

    def _keep(self, msg):
        self.state, self.cycles = State(int(msg.data[0])), self.cycles + 1

    def _keep_reason(self, msg):
        for status in msg.status:
            if status.name == 'controller: control':
                self.reason = status.message


class Waiting:
    """Serves our own node while the others work, and notices when one of them ends."""

    def __init__(self, nodes, spin_once):
        self._nodes, self._spin_once = nodes, spin_once

    def until(self, condition, seconds, what):
        """Wait until the condition holds; DemoError when it does not within so many seconds."""
        print(what, flush=True)
        self._until(condition, seconds, what)

    def _until(self, condition, seconds, what):
        deadline = time.monotonic() + seconds
        while not condition():
            self.turn(what)
            if time.monotonic() > deadline:
                raise DemoError(f'{what}: nothing within {seconds:g} s{self._last_words()}')

    def through(self, elapsed, seconds, what):
        """Wait until elapsed() has reached so many seconds of the machine's time, and show that they go by.

        However slowly, as in lock-step on a busy computer; it ends where elapsed() stands still for REACTION.
        """
        latest, deadline = -math.inf, time.monotonic() + REACTION
        with tqdm(total=seconds, desc=what, unit='s', disable=None, leave=False,
                  bar_format='{desc}: {bar} {n:.1f} of {total:.1f} s') as bar:
            while (now := elapsed()) < seconds:
                bar.update(now - bar.n)
                self.turn(what)
                if now > latest:
                    latest, deadline = now, time.monotonic() + REACTION
                if time.monotonic() > deadline:
                    break       # the report says how far the recording goes

    def called(self, node, kind, service, request, what):
        """The response of a service of a node."""
        client = node.create_client(kind, service)
        self._until(client.service_is_ready, REACTION, what)
        future = client.call_async(request)
        self._until(future.done, REACTION, what)
        node.destroy_client(client)
        return future.result()

    def held(self, node, what):
        """Let the controller hold its machine; DemoError with its last word when it does not for HELD."""
        print(what, flush=True)
        deadline = time.monotonic() + HELD
        while not (response := self.called(node, SetBool, '/controller/enable', SetBool.Request(data=True),
                                           what)).success:
            if time.monotonic() > deadline:
                raise DemoError(f'{what}: {response.message}')
            # it may have stopped before, on a busy computer
            self.called(node, Trigger, '/controller/reset', Trigger.Request(), what)
            self.turn(what)

    def turn(self, what):
        """Serve our node for a moment; DemoError where one of the others has ended."""
        deadline = time.monotonic() + TURN
        while (left := deadline - time.monotonic()) > 0.0:
            self._spin_once(timeout_sec=left)
        ended = self._nodes.ended()
        if ended:
            raise DemoError(f'{what}: {ended[0]} ended by itself{self._last_words(*ended)}')

    def _last_words(self, *names):
        lines = []
        for name in names or self._nodes.names():
            tail = self._nodes.log(name).read_text(errors='replace').splitlines()[-5:]
            lines += [f'  {name}: {line}' for line in tail]
        return '\n' + '\n'.join(lines) if lines else ''


def stop(nodes, logs):
    """End the nodes; DemoError where one did not end well."""
    codes = nodes.stop()
    if any(codes.values()):
        raise DemoError(f'exit codes of the nodes: {codes}; what they said is in {logs}')


@contextmanager
def graph(folder, variables=None):
    """Yield (nodes, node, spin_once): `NodeProcesses` that log into a folder, and a node of this process beside them.

    All are on a ROS domain of their own, with `variables` in their environment, and end with the `with` block.
    """
    domain = free_domain()
    with (exported({**environment(domain, folder), **(variables or {})}), NodeProcesses(folder) as nodes,
          own_node(domain) as (node, spin_once)):
        yield nodes, node, spin_once


@contextmanager
def own_node(domain=None, name='demo', namespace=None):
    """Yield (node, spin_once) of this process, which signals interrupt between two callbacks.

    domain  ROS domain; None: that of the environment
    """
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = rclpy.create_node(name, namespace=namespace, context=context)
        executor = make_executor(context)
        executor.add_node(node)
        try:
            with interruptible():
                yield node, lambda timeout_sec: _uninterrupted(lambda: executor.spin_once(timeout_sec=timeout_sec))
        finally:
            executor.shutdown()
            node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)


@contextmanager
def terminable():
    """SIGTERM and a closed terminal end the demonstration as Ctrl-C does, so that no node is left behind."""
    with interruptible():
        try:
            yield
        except KeyboardInterrupt:
            print('\nstopped; the nodes have ended', file=sys.stderr)
            raise


@contextmanager
def interruptible():
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP as on SIGINT, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame):
        if _uninterrupted.busy:
            _uninterrupted.interrupted = True
        elif _within_llvm(frame):
            threading.Timer(RETRY, os.kill, (os.getpid(), number)).start()
        else:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Uninterrupted:
    """Calls what must not be left by an exception: rclpy makes a RuntimeError of one that is raised in a callback."""

    busy = interrupted = False

    def __call__(self, work):
        self.busy = True
        try:
            work()
        finally:
            self.busy = False
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt


_uninterrupted = _Uninterrupted()


def _within_llvm(frame):
    """Return whether llvmlite runs: LLVM ignores exceptions of its callbacks, and the process crashes later."""
    while frame is not None:
        if 'llvmlite' in Path(frame.f_code.co_filename).parts:
            return True
        frame = frame.f_back
    return False
